"""
Several rows of a person
========================

Visits, purchases, pictures: where a person has several rows, a guarantee for rows says little of
the person. With ``persons=`` all rows of a person are protected together. That costs noise, which
is known before anything is read.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_persons.png'

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdpgen import Category, DPSWFlowSampler, Number, Schema
from skdpgen.privacy import preview

# %%
# Simulated visits
# ----------------
#
# 1,500 patients with one to six visits each. Who comes often is older.

rng = np.random.default_rng(0)
n_visits = rng.integers(1, 7, 1500)
age = np.clip(rng.normal(35 + 6 * n_visits, 10), 0, 100).round()
patient = np.repeat(np.arange(1500), n_visits)
visits = pd.DataFrame(
    {
        "age": age[patient],
        "ward": rng.choice(["heart", "lung", "eye"], len(patient), p=[0.5, 0.3, 0.2]),
        "cost": rng.lognormal(5, 0.5, len(patient)).round(),
    }
)
schema = Schema(
    {
        "age": Number(0, 100, decimals=0),
        "ward": Category(["heart", "lung", "eye"]),
        "cost": Number(0, 5000, decimals=0),
    }
)

# %%
# The cost
# --------
#
# At most M rows of each patient count. Noise is M times as much, and rows are at most M times as
# many: relative to the rows, no M has less noise than 1.

limits = [1, 2, 3, 6]
noise = []
for limit in limits:
    sampler = DPSWFlowSampler(1.0, 1e-6, schema=schema, max_rows_per_person=limit)
    noise.append(preview(sampler, 1500, 3, persons=True).sigma)
counted = [np.minimum(n_visits, limit).sum() for limit in limits]

fig, ax = plt.subplots(figsize=(5, 3))
ratio = np.array(noise) / counted
ax.plot(limits, ratio / ratio[0], "o-")
ax.set(
    xlabel="rows of a person that count (M)", ylabel="noise over rows, M = 1 is 1", ylim=(0, None)
)
fig.tight_layout()

# %%
# The choice of M
# ---------------
#
# With M = 1 each patient has the same weight, as in a survey. With M = 6 each visit has. The last
# line compares with the private rows, outside of the ledger: for this example only.

for limit in (1, 6):
    sampler = DPSWFlowSampler(1.0, 1e-6, schema=schema, max_rows_per_person=limit)
    sampler.fit(visits, persons=patient)
    print(f"M = {limit}: mean age of synthetic rows {sampler.sample()['age'].mean():.1f}")
print(f"Mean age of patients {age.mean():.1f}, of visits {visits['age'].mean():.1f}")

# %%
# The certificate says whom it protects.

print(sampler.privacy_)
