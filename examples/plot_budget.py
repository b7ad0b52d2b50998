"""
A budget for several fits
=========================

Fits on the same rows add up. A ``PrivacyBudget`` keeps the sum: a fit that would go beyond it is
refused before a row is read. Kept in a file, it outlives the process, so that the whole team spends
from one account.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_budget.png'

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from skdpgen import DPSWFlowSampler, PrivacyBudget
from skdpgen.privacy import BudgetExceededError, compose, preview

X, _ = make_moons(1000, noise=0.1, random_state=0)
bounds = ((-2, -1.5), (3, 2))

# %%
# Ask first
# ---------
#
# Two fits of ε = 1 cost less than 2 together, at the same δ.

certificates = [preview(DPSWFlowSampler(1.0, 1e-6, bounds=bounds), X) for _ in range(6)]
totals = [compose(*certificates[:k]).epsilon_at(1e-6) for k in range(1, 7)]
for k, total in enumerate(totals, 1):
    print(f"{k} fits of ε = 1: ε = {total:.3f} at δ = 1e-6")

fig, ax = plt.subplots(figsize=(5, 3))
ax.plot(range(1, 7), totals, "o-", label="composed")
ax.plot(range(1, 7), range(1, 7), ":", color="grey", label="added up")
ax.set(xlabel="fits of ε = 1", ylabel="ε of all of them")
ax.legend()
fig.tight_layout()

# %%
# Then spend
# ----------
#
# Two fits are within the budget; the third one is not, and no row was read for it.

path = Path(tempfile.mkdtemp()) / "survey.budget"
with PrivacyBudget(epsilon=1.6, delta=2e-6, path=path) as budget:
    DPSWFlowSampler(1.0, 1e-6, bounds=bounds).fit(X)
    print(f"spent: {budget.spent}")
    finer = DPSWFlowSampler(1.0, 1e-6, bounds=bounds).fit(X)
    print(f"spent: {budget.spent}")
    try:
        DPSWFlowSampler(1.0, 1e-6, bounds=bounds).fit(X)
    except BudgetExceededError as error:
        print(f"refused: {error}")

# %%
# On another day
# --------------
#
# The same file is opened again. It keeps what was spent.

with PrivacyBudget(epsilon=1.6, delta=2e-6, path=path) as budget:
    print(f"spent: {budget.spent}")

# %%
# Sampling and looking at synthetic rows costs nothing.

rows = finer.sample(1000)
fig, axes = plt.subplots(1, 2, figsize=(6, 3), sharex=True, sharey=True)
for ax, (title, points) in zip(axes, {"real": X[:1000], "synthetic": rows}.items(), strict=True):
    ax.plot(*np.asarray(points).T, ".", markersize=2)
    ax.set_title(title)
fig.tight_layout()
