"""
A table: fit, read the certificate, compare
===========================================

Fit a generator to a table of mixed types of which nothing but the dtypes is said, read what it
cost, and compare the columns of synthetic and real rows.

The rows are simulated: 6,000 people with an age, a job, an income that follows from both and that
some do not tell, and the day on which they joined.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_a_table.png'

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdpgen import DPSWFlowSampler

rng = np.random.default_rng(0)
n = 6000
age = rng.integers(18, 80, n)
job = rng.choice(["nurse", "clerk", "cook", "teacher"], n, p=[0.4, 0.3, 0.2, 0.1])
pay = pd.Series(job).map({"nurse": 1.1, "clerk": 1.0, "cook": 0.7, "teacher": 1.4})
income = rng.lognormal(7.2, 0.3, n) * pay * np.sqrt(age / 40)
table = pd.DataFrame(
    {
        "age": age,
        "job": job,
        "income": income.round(0).where(rng.random(n) > 0.15),
        "joined": pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 730, n), "D"),
        "smoker": rng.random(n) < 0.45 - age / 250,
    }
)

# %%
# Fit
# ---
#
# Names and dtypes of the columns are public. Their bounds and categories are inferred by releases
# that are paid for. If a codebook states them, declare a ``Schema``, which saves that part of the
# budget.
#
# ``random_state`` stays None. The noise then comes from the operating system's entropy, so each
# run gives other rows. An int would make the run reproducible, and no private release.

generator = DPSWFlowSampler(epsilon=1.0, delta=1e-6)
generator.fit(table, target="job")
print(generator.privacy_)

# %%
# The inferred column types:

print(generator.schema_)

# %%
# Synthetic rows
# --------------
#
# Without a number, ``sample`` gives as many rows as were fitted. It costs no privacy, however often
# it is called, and rows can be asked for by levels, by ranges, and by whether a value is missing.

synthetic = generator.sample()
print(synthetic.head())
print(generator.sample(5, where={"age": (30, 40), "job": ["nurse", "cook"]}))

# %%
# Real and synthetic columns
# --------------------------
#
# These figures compare with the private rows outside of the ledger: they are for this example, of
# simulated rows, and are not to be published of real ones.

for name in ["job", "smoker"]:
    shares = {
        what: rows[name].astype(str).value_counts(normalize=True).round(3)
        for what, rows in [("real", table), ("synthetic", synthetic)]
    }
    print(pd.DataFrame(shares).fillna(0.0), end="\n\n")
for what, rows in [("real", table), ("synthetic", synthetic)]:
    missing = rows["income"].isna().mean()
    print(f"Share of missing incomes, {what}: {missing:.3f}")

fig, axes = plt.subplots(1, 3, figsize=(9, 3))
for ax, name in zip(axes, ["age", "income", "joined"], strict=True):
    columns = [table[name].dropna(), synthetic[name].dropna()]
    if name == "joined":
        columns = [column.dt.to_pydatetime() for column in columns]
    ax.hist(columns, bins=20, density=True, label=["real", "synthetic"])
    ax.set(title=name, yticks=[])
    ax.tick_params(axis="x", rotation=30)
axes[0].legend()
fig.suptitle(f"Real and synthetic columns at ε = {generator.epsilon_:.3g}")
fig.tight_layout()

# %%
# Relations of two columns are there, too: the mean income of each job.

fig, ax = plt.subplots(figsize=(5, 3))
pd.DataFrame(
    {
        what: rows.groupby(rows["job"].astype(str))["income"].mean()
        for what, rows in [("real", table), ("synthetic", synthetic)]
    }
).plot.bar(ax=ax, rot=0, ylabel="mean income")
fig.tight_layout()
