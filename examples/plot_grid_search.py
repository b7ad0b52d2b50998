"""
Choosing hyperparameters
========================

A grid search fits many candidates and keeps the one with the best score. Two things can leak:

- *The fits.* Each fit on private rows costs its own ε, and all of them add up.
- *The scores.* ``score(X)`` compares synthetic rows with ``X`` itself, without noise. Where ``X``
  is private, the scores, and the choice made by them, depend on private rows in a way that no noise
  hides. The guarantee of the whole search is then ε = ∞, however private each fit was.

So score on public rows. This example shows two ways to do it: search on public rows only and fit
once, or pay for a search whose fits see the private rows.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_grid_search.png'

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV

from skdpgen import DPSlicedWassersteinGenerator, PrivacyBudget
from skdpgen.privacy import PrivacyLeakWarning

# %%
# Rows
# ----
#
# 4,000 simulated rows play the private data, and 1,000 play public ones: an earlier, already
# published survey, say.

# Each seed and each score warns. Here all that is scored plays public rows.
warnings.simplefilter("ignore", PrivacyLeakWarning)

X, _ = make_moons(5000, noise=0.1, random_state=0)
X_private, X_public = X[:4000], X[4000:]
bounds = ((-2, -1.5), (3, 2))  # wider than needed: they may not be read off the private rows

# %%
# Search on public rows, fit once on private ones
# -----------------------------------------------
#
# Everything up to ``search.best_params_`` is a function of public rows. The only cost is that of
# the final fit. The public rows are fewer, so the noise weighs more on them; choose only
# parameters that should carry over. The optimiser's settings are of that kind.
#
# The search runs with an int ``random_state``: its candidates then differ by their parameters
# alone. That is fine on public rows. The private fit gets ``random_state=None``.

estimator = DPSlicedWassersteinGenerator(epsilon=1.0, delta=1e-5, bounds=bounds, random_state=0)
grid = {"learning_rate": [0.003, 0.03], "n_steps": [50, 200]}
search = GridSearchCV(estimator, grid, cv=2, refit=False).fit(X_public)

for params, score in zip(
    search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
):
    print(f"{score:.4f}  {params}")

final = clone(estimator).set_params(random_state=None, **search.best_params_)
final.fit(X_private)
print(f"\nSpent on the private rows: ε = {final.epsilon_:.3f} at δ = {final.delta}")

# %%
# Or pay for the fits, and score on public rows
# ---------------------------------------------
#
# If public rows are good enough to score on, but not to fit on, the candidates can be fitted to the
# private rows. A `PrivacyBudget` charges every fit that is made inside ``with budget:``, those of
# clones in a search included, and refuses a fit that would overrun it, before anything is released.
#
# Three candidates at ε = 0.5 each cost less together than 1.5: Gaussian releases compose by their
# noise, not by their ε. The split below fits to the private rows and scores on the public ones.

rows = np.vstack([X_private, X_public])
private, public = np.arange(4000), np.arange(4000, 5000)
candidate = clone(estimator).set_params(epsilon=0.5, random_state=None)
budget = PrivacyBudget(epsilon=1.0, delta=1e-5)
with budget:
    paid = GridSearchCV(
        candidate,
        {"n_steps": [50, 100, 200]},
        cv=[(private, public)],
        refit=False,
        error_score="raise",
    ).fit(rows)
print(f"Spent by three candidates together: ε = {budget.spent:.3f} of {budget.epsilon}")
print(f"Chosen: {paid.best_params_}")

# %%
# ``refit=True`` would fit the winner once more: one more fit to pay for, here on public rows too,
# since ``rows`` holds both. ``error_score="raise"`` matters: without it, scikit-learn turns a
# refused fit into a score of NaN and a warning.

# %%
# The result
# ----------

synthetic = final.sample(1000)
fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharex=True, sharey=True)
for ax, points, title in zip(
    axes, [X_public, synthetic], ["public rows", "synthetic rows"], strict=True
):
    ax.scatter(*points.T, s=4)
    ax.set_title(title)
fig.tight_layout()
