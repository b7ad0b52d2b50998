"""
The cost of a smaller ε
=======================

The same table at four budgets: how far are counts off, and what does a classifier learn? Noise is a
number of rows, whatever their number is. So each halving of ε asks for twice as many rows.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_epsilon.png'

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from skdpgen import Category, DPSWFlowSampler, Number, Schema

# %%
# A simulated table
# -----------------

rng = np.random.default_rng(0)


def simulate(n):
    """Return n people: an age, a region, an income, and whether they own a car."""
    age = rng.integers(18, 80, n)
    region = rng.choice(["north", "south", "east"], n, p=[0.5, 0.3, 0.2])
    income = rng.lognormal(10, 0.4, n) * (1 + 0.3 * (region == "south"))
    odds = (income - 25_000) / 12_000 + (region == "east") - (age < 25)
    car = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    return pd.DataFrame({"age": age, "region": region, "income": income.round(), "car": car})


private, public = simulate(4000), simulate(4000)
schema = Schema(
    {
        "age": Number(18, 80, decimals=0),
        "region": Category(["north", "south", "east"]),
        "income": Number(0, 200_000, decimals=0),
        "car": Category(["yes", "no"]),
    }
)

# %%
# Four budgets
# ------------
#
# The classifier is tested on public rows. The error of counts compares with private ones, outside
# of the ledger: for this example only.


def features(rows):
    """Return what the classifier sees."""
    regions = [rows["region"] == region for region in ("north", "south", "east")]
    return np.column_stack([rows["age"] / 80, np.log1p(rows["income"]), *regions])


def cells(rows):
    """Return the share of each region and car, by deciles of the private ages."""
    edges = np.quantile(private["age"], np.linspace(0, 1, 11)[1:-1])
    return rows.groupby([np.searchsorted(edges, rows["age"]), "region", "car"]).size() / len(rows)


budgets = [0.1, 0.3, 1.0, 3.0]
errors, accuracies = [], []
for epsilon in budgets:
    sampler = DPSWFlowSampler(epsilon, 1e-6, schema=schema).fit(private, target="car")
    synthetic = sampler.sample()
    errors.append(cells(synthetic).sub(cells(private), fill_value=0).abs().sum() / 2)
    model = LogisticRegression(max_iter=1000).fit(features(synthetic), synthetic["car"])
    accuracies.append(model.score(features(public), public["car"]))
    print(f"ε = {epsilon:g}: variation {errors[-1]:.3f}, accuracy {accuracies[-1]:.3f}")
real = LogisticRegression(max_iter=1000).fit(features(private), private["car"])
print(f"real rows: accuracy {real.score(features(public), public['car']):.3f}")

fig, axes = plt.subplots(1, 2, figsize=(8, 3))
axes[0].semilogx(budgets, errors, "o-")
axes[0].set(xlabel="ε", title="total variation of age × region × car", ylim=(0, None))
axes[1].semilogx(budgets, accuracies, "o-", label="synthetic rows")
axes[1].axhline(
    real.score(features(public), public["car"]), color="grey", ls=":", label="real rows"
)
axes[1].set(xlabel="ε", title="accuracy of a classifier")
axes[1].legend()
fig.tight_layout()
