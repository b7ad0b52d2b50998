"""
The smoothed sliced distance
============================

DP-SWD is a sliced Wasserstein distance between noisy projections: both sides get the noise that
makes one of them private. Does it still tell distributions apart? This is Figure 2 of
Rakotomamonjy & Ralaivola (2021), on simulated rows.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_smoothed_distance.png'

import matplotlib.pyplot as plt
import numpy as np

from skdpgen.transport import smoothed_sliced_wasserstein_distance

# %%
# Two normal distributions
# ------------------------
#
# In dimension 5, one has mean 0 and the other (c, ..., c); both have the identity as covariance.
# On a slice along θ they are normal with variance 1 and means that are c·Σθ apart, so that W₂² is
# (c·Σθ)², which is c² on average over θ: their sliced distance is c. Noise on both sides makes both
# variances 1 + σ² and leaves the difference of the means: between *distributions* the
# smoothed distance is c as well, here.
#
# Between *samples* it is larger. Each side has its own noise, so even two samples of one
# distribution are apart, more so for large σ and few rows.

SHIFTS = np.linspace(0, 1, 11)
SIZES = [100, 500, 2000]
N_DRAWS = 5


def distances(sigma, n_rows, random_state):
    """Distances for all shifts, from fresh rows, directions and noise for each."""
    rng = np.random.RandomState(random_state)
    return [
        smoothed_sliced_wasserstein_distance(
            rng.standard_normal((n_rows, 5)),
            rng.standard_normal((n_rows, 5)) + shift,
            sigma=sigma,
            n_projections=100,
            random_state=rng,
        )
        for shift in SHIFTS
    ]


# %%
# SWD is the case σ = 0. Means of five draws, with a band of one standard deviation.

fig, axes = plt.subplots(1, 3, figsize=(9, 3.4), sharey=True)
for ax, sigma in zip(axes, [0, 1, 3], strict=True):
    for n_rows in SIZES:
        draws = np.array([distances(sigma, n_rows, seed) for seed in range(N_DRAWS)])
        mean, std = draws.mean(0), draws.std(0, ddof=1)
        ax.plot(SHIFTS, mean, label=f"{n_rows} rows")
        ax.fill_between(SHIFTS, mean - std, mean + std, alpha=0.25)
        print(
            f"σ = {sigma}, {n_rows:4d} rows: {mean[0]:.2f} (± {std[0]:.2f}) at c = 0, "
            f"{mean[-1]:.2f} (± {std[-1]:.2f}) at c = 1"
        )
    ax.plot(SHIFTS, SHIFTS, "k:", label="distributions")
    ax.set(xlabel="c", title="SWD" if sigma == 0 else f"DP-SWD, σ = {sigma}")
axes[0].set_ylabel("distance")
axes[0].legend(fontsize=8)
fig.tight_layout()

# %%
# The smoothed distance grows with c, as SWD does, so that descending it brings distributions
# closer. Noise costs contrast: at σ = 3 and 100 rows, the curve is flat near c = 0, where
# it starts at more than half of what it has at c = 1.
