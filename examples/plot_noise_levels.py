"""
Noise levels of DP-SWD
======================

Table 4 of Rakotomamonjy & Ralaivola (2021) lists the noise that their experiments take for ε = 10.
This example computes what exact accounting takes.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_noise_levels.png'

import math

import matplotlib.pyplot as plt
import numpy as np
from dp_accounting import (
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)

from skdpgen.privacy import SlicedGaussianDpEvent, calibrate_noise

# %%
# The settings
# ------------
#
# d columns are projected on k directions at each step; a step takes `batch` of N rows, and an epoch
# as many steps as cover them all. U-M and M-U adapt digits between USPS and MNIST, VisDA and Office
# features of pictures; the others fit generators. The last column is what the paper prints, by its
# Bernstein bound.

SETTINGS = {  # d, k, N, epochs, batch, δ, published σ
    "MNIST": (784, 1000, 60_000, 100, 100, 1e-5, 2.94),
    "U-M": (784, 200, 10_000, 100, 128, 1e-5, 4.74),
    "M-U": (784, 200, 7_438, 100, 128, 1e-5, 5.34),
    "VisDA": (100, 1000, 55_387, 50, 128, 1e-5, 6.40),
    "Office": (50, 100, 497, 50, 32, 1e-3, 8.05),
    "CelebA": (8192, 2000, 162_000, 100, 256, 1e-6, 2.392),
}

# %%
# The columns
# -----------
#
# σ is per unit of ‖z‖, the largest change of a row. This depends on the relation, so each
# column names one:
#
# - Columns 1 and 2 are under ``replace_one``, with batches of a fixed size, as the paper counts. It
#   takes rows to be at most 1 apart, so that ‖z‖ = 1; for rows in a ball of radius C, ‖z‖ = 2C.
# - Columns 3 to 5 are under ``zero_out``, the library's default, with Poisson sampling: ‖z‖ = C.
#
# In the paper a bound on H = ‖zᵀU‖² / ‖z‖² is put in place of H, at the price of δ/2 for all steps
# together. ``rdp`` and ``pld`` average over the exact law of H. With orthonormal directions H
# spreads less.

COLUMNS = {
    "pld, replace_one": ("pld", "replace_one", False),
    "rdp, zero_out": ("rdp", "zero_out", False),
    "pld, zero_out": ("pld", "zero_out", False),
    "pld, zero_out, orthonormal": ("pld", "zero_out", True),
}


def find_noise(setting, accountant, relation, orthogonal):
    d, k, N, n_epochs, batch, delta, _ = setting

    def take_steps(sigma):
        step = SlicedGaussianDpEvent(sigma, d, k, orthogonal)
        if relation == "replace_one":
            sampled = SampledWithoutReplacementDpEvent(N, batch, step)
        else:
            sampled = PoissonSampledDpEvent(batch / N, step)
        return SelfComposedDpEvent(sampled, n_epochs * math.ceil(N / batch))

    sigma = calibrate_noise(take_steps, 10, delta, accountant=accountant, relation=relation)
    # In units of ‖z‖, which is twice the radius if a row is replaced.
    return sigma / {"zero_out": 1, "replace_one": 2}[relation]


sigmas = {
    name: [setting[-1], *(find_noise(setting, *column) for column in COLUMNS.values())]
    for name, setting in SETTINGS.items()
}
columns = ["published", *COLUMNS]
for position, column in enumerate(columns, 1):
    print(f"{position}: {column}")
print(f"\n{'':<8}" + "".join(f"{position:>8}" for position in range(1, 6)))
for name, row in sigmas.items():
    print(f"{name:<8}" + "".join(f"{sigma:8.4f}" for sigma in row))

# %%
# Between columns 1 and 2 relation, sampling and ‖z‖ are the same: the difference is what the bound
# costs.

fig, ax = plt.subplots(figsize=(8, 3.8))
width = 0.15
for position, column in enumerate(columns):
    places = np.arange(len(SETTINGS)) + (position - 2) * width
    heights = [row[position] for row in sigmas.values()]
    colour = f"C{position - 1}" if position else "C7"
    ax.bar(places, heights, width, label=column, color=colour, edgecolor="black")
ticks = [0.2, 0.5, 1, 2, 5]
ax.set_yscale("log")
ax.set(ylabel="σ / ‖z‖ at ε = 10", ylim=(0.2, 20))
ax.set_yticks(ticks, labels=ticks)
ax.set_xticks(np.arange(len(SETTINGS)), labels=SETTINGS)
ax.minorticks_off()
ax.legend(fontsize=8, ncols=2)
fig.tight_layout()
