"""
A table in many partitions, by Dask
===================================

A table that is spread over files or machines is fitted where it lies. Workers add up what is to be
released, only the sums come together, and noise is added once. It makes no difference to a fit who
read the rows.

This example needs Dask: ``pip install 'skdpgen[dask]'``.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_dask.png'

import warnings

try:
    import dask.dataframe as dd
except ImportError:
    raise SystemExit("This example needs Dask: pip install 'skdpgen[dask]'") from None

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdpgen import Boolean, Category, DPSWFlowSampler, Number, Schema
from skdpgen.privacy import PrivacyLeakWarning

# %%
# Simulated patients, in four partitions
# --------------------------------------
#
# Your own would be ``dd.read_parquet("folder/*.parquet")``.

rng = np.random.default_rng(0)
age = rng.integers(18, 90, 4000)
patients = pd.DataFrame(
    {
        "age": age,
        "ward": rng.choice(["heart", "lung", "eye"], 4000, p=[0.5, 0.3, 0.2]),
        "smoker": rng.random(4000) < 0.5 - age / 250,
    }
)
ddf = dd.from_pandas(patients, npartitions=4)
print(ddf.map_partitions(len).compute().tolist())

# %%
# The fit
# -------
#
# It is `fit` as ever, with the frame. Without a cluster one partition is read after the other, so
# that no more of the table is in memory at once.

schema = Schema(
    {
        "age": Number(18, 90, decimals=0),
        "ward": Category(["heart", "lung", "eye"]),
        "smoker": Boolean(),
    }
)
sampler = DPSWFlowSampler(epsilon=1.0, delta=1e-6, schema=schema)
sampler.fit(ddf)
print(sampler.privacy_)

# %%
# The same as on one machine
# --------------------------
#
# With a seed, which is for experiments only, noise is the same each time. Then the frame in
# partitions and the table as a whole give the same synthetic rows, to the last bit. Only the dtype
# of texts is Dask's own.

seeded = DPSWFlowSampler(epsilon=1.0, delta=1e-6, schema=schema, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", PrivacyLeakWarning)  # a seed protects nobody
    parted = seeded.fit(ddf).sample(4000, random_state=0)
    whole = seeded.fit(patients).sample(4000, random_state=0)
pd.testing.assert_frame_equal(parted, whole, check_dtype=False)
print(parted.head())

# %%
# Shares of smokers by age, of the rows and of the synthetic ones. This reads private rows outside
# of the ledger: for this example only.

bins = np.arange(18, 91, 12)
fig, ax = plt.subplots(figsize=(5, 3))
for name, table in [("rows", patients), ("synthetic", parted)]:
    shares = table.groupby(pd.cut(table["age"], bins), observed=False)["smoker"].mean()
    ax.plot(bins[:-1] + 6, shares, "o-", label=name)
ax.set(xlabel="age", ylabel="share of smokers", ylim=(0, None))
ax.legend()
fig.tight_layout()
