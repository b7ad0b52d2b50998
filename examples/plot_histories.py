"""
Patients with visits
====================

Two tables that belong together: patients, and their visits in order. ``DPHistorySampler`` draws
patients with visits that follow from each other, and that obey rules across both tables.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_histories.png'

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdpgen import DPHistorySampler, Schema
from skdpgen.tables import Ordered

# %%
# Simulated visits
# ----------------
#
# 5,000 patients. Wards mostly stay the same, stays are longest in surgery, and gaps are short for
# patients with severe conditions.

rng = np.random.default_rng(0)
n = 5000
wards = np.array(["medicine", "surgery", "geriatrics"])
severe = rng.random(n) < 0.3
born = pd.Timestamp("1940-01-01") + pd.to_timedelta(rng.integers(0, 20000, n), "D")
patients = pd.DataFrame({"patient": range(n), "born": born, "severe": severe})
n_visits, ward, parts = rng.poisson(2 + 2 * severe), rng.integers(0, 3, n), []
day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 365, n), "D")
for t in range(5):
    nights = rng.poisson(np.array([3, 8, 5])[ward])
    visits = {"patient": range(n), "admitted": day, "ward": wards[ward]}
    visits["discharged"] = day + pd.to_timedelta(nights, "D")
    parts.append(pd.DataFrame(visits)[t < n_visits])
    ward = np.where(rng.random(n) < 0.75, ward, rng.integers(0, 3, n))
    gap = nights + rng.exponential(np.where(severe, 20, 80)).astype(int)
    day = day + pd.to_timedelta(gap, "D")
visits = pd.concat(parts, ignore_index=True)

# %%
# The fit
# -------
#
# Columns are inferred. No visit is before birth, and no discharge before its admission.

sampler = DPHistorySampler(
    epsilon=2.0,
    delta=1e-6,
    max_rows_per_person=5,
    schemas={"visits": Schema(rules=[Ordered("admitted", "discharged")])},
    rules=[Ordered("patients.born", "visits.admitted")],
    random_state=0,  # for this page alone: a seed protects nobody
)
sampler.fit({"patients": patients, "visits": visits}, persons="patient", order="admitted")
drawn = sampler.sample(n)
made = drawn["visits"]
print(sampler.privacy_)
print((made["admitted"] <= made["discharged"]).all())
drawn["visits"].head(6)

# %%
# Moves and stays
# ---------------
#
# The share of patients who go from one ward to another, and the nights of stays.


def find_steps(table):
    """Return how the next ward follows from a ward."""
    table = table.sort_values(["patient", "admitted"])
    after = table.groupby("patient")["ward"].shift(-1)
    return pd.crosstab(table["ward"], after, normalize="index").reindex(index=wards, columns=wards)


fig, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
both = {"private": visits, "synthetic": made}
for ax, (name, table) in zip(axes, both.items(), strict=False):
    ax.imshow(find_steps(table), vmin=0, vmax=1, cmap="Blues")
    ax.set(xticks=range(3), yticks=range(3), title=name, xlabel="next ward", ylabel="ward")
    ax.set_xticklabels([ward[:4] for ward in wards])
    ax.set_yticklabels([ward[:4] for ward in wards])
for name, table in both.items():
    nights = (table["discharged"] - table["admitted"]).dt.days
    means = nights.groupby(table["ward"]).mean().reindex(wards)
    axes[2].plot([ward[:4] for ward in wards], means, "o", label=name)
axes[2].set(title="mean nights", ylim=(0, None))
axes[2].legend()
plt.show()
