"""
A table with rules
==================

Who is not insured has no insurer, nobody leaves a hospital before the day of admission, and a total
is a product. A model of noisy counts learns that roughly. Rules say it, and then every synthetic
row obeys. They are public, and cost nothing.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_rules.png'

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdpgen import Category, Date, DPSWFlowSampler, Number, Schema
from skdpgen.tables import Derived, Implies, Ordered

# %%
# Simulated stays
# ---------------

rng = np.random.default_rng(0)
n = 2500
insured = rng.random(n) < 0.8
admitted = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 365, n), "D")
nights = rng.poisson(4, n) + 1
rate = rng.choice([120, 180, 260], n, p=[0.5, 0.3, 0.2])
stays = pd.DataFrame(
    {
        "insured": np.where(insured, "yes", "no"),
        "insurer": np.where(insured, rng.choice(["public", "private"], n, p=[0.7, 0.3]), None),
        "admitted": admitted,
        "discharged": admitted + pd.to_timedelta(nights, "D"),
        "nights": nights,
        "rate": rate,
        "total": nights * rate,
    }
)

# %%
# Two schemas
# -----------
#
# The second one has rules. Its last column is not even read: it is computed, so that the others get
# its part of the budget.

columns = {
    "insured": Category(["yes", "no"]),
    "insurer": Category(["public", "private"], missing=True),
    "admitted": Date("2022-01-01", "2022-12-31"),
    "discharged": Date("2022-01-01", "2023-01-31"),
    "nights": Number(1, 30, decimals=0),
    "rate": Number(100, 300, decimals=0, atoms=[120, 180, 260]),
    "total": Number(100, 9000, decimals=0),
}
rules = [
    Implies({"insured": "no"}, {"insurer": None}),
    Ordered("admitted", "discharged"),
    Derived("total", "nights * rate"),
]


def share_of_rows(rows):
    """Return how many rows obey each rule."""
    return {
        "not insured: no insurer": rows["insurer"][rows["insured"].eq("no")].isna().mean(),
        "admitted before discharged": (rows["admitted"] <= rows["discharged"]).mean(),
        "total = nights × rate": (rows["total"] == rows["nights"] * rows["rate"]).mean(),
    }


shares = {}
for name, schema in [
    ("without rules", Schema(columns)),
    ("with rules", Schema(columns, rules=rules)),
]:
    sampler = DPSWFlowSampler(epsilon=1.0, delta=1e-6, schema=schema).fit(stays)
    synthetic = sampler.sample()
    shares[name] = share_of_rows(synthetic)
    print(f"{name}\n{synthetic.head()}\n")

# %%
# The share of rows that obey
# ---------------------------

fig, ax = plt.subplots(figsize=(7, 2.8))
pd.DataFrame(shares).iloc[::-1].plot.barh(ax=ax, color=["C1", "C0"], width=0.7)
ax.set(xlim=(0, 1.02), title="Synthetic rows that obey, ε = 1")
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
fig.tight_layout()
