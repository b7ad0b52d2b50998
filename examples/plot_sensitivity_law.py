"""
The law of a random projection's sensitivity
============================================

DP-SWD releases XU + V: rows projected on random directions, with Gaussian noise. By how much does a
record change its row of XU? Rakotomamonjy & Ralaivola (2021) bound the answer with high
probability. Its law is known, and with it no bound is needed. This is their Figure 1, with that
law.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_sensitivity_law.png'

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from scipy.special import hyp1f1

from skdpgen.privacy import (
    SlicedGaussianDpEvent,
    calibrate_gaussian,
    calibrate_noise,
    ledger_epsilon,
    sensitivity_law,
)
from skdpgen.transport import random_directions

# %%
# Simulation and law
# ------------------
#
# A record changes a row by a unit vector z, so its projection changes by zᵀU, and
# H = ‖zᵀU‖². By symmetry every z has the same law. The d unit vectors along the axes give d values
# of H for each U, the squared norms of its rows, which hardly depend on each other.

d, k = 784, 200
delta = 1e-5
rng = np.random.default_rng(0)
kinds = {False: "independent directions", True: "orthonormal directions"}

simulated = {
    orthogonal: np.concatenate(
        [
            random_directions(d, k, orthogonal=orthogonal, generator=rng).square().sum(1).numpy()
            for _ in range(50)
        ]
    )
    for orthogonal in kinds
}
laws = {orthogonal: sensitivity_law(d, k, orthogonal, n_values=5000) for orthogonal in kinds}
for orthogonal, name in kinds.items():
    law, H = laws[orthogonal], simulated[orthogonal]
    mean = law.values @ law.weights
    std = np.sqrt((law.values - mean) ** 2 @ law.weights)
    print(f"{name}: mean {mean:.4f}, standard deviation {std:.4f} by the law,")
    print(f"{'':<{len(name)}}  mean {H.mean():.4f}, standard deviation {H.std():.4f} simulated")

# %%
# Bounds
# ------
#
# The paper takes a number that H exceeds with probability at most δ/2, and charges that
# probability to δ. Lemma 2 gives one by Bernstein's inequality. It is above 8, although H cannot
# be far from k/d. Its other choice is a quantile of the normal distribution with the same
# mean and standard deviation. That is no bound: H is skewed to the right.

log = np.log(2 / delta)
bernstein = k / d + 2 / 3 * log + 2 / d * np.sqrt(k * (d - 1) / (d + 2) * log)
normal = stats.norm(k / d, np.sqrt(2 * k * (d - 1) / (d + 2)) / d)
clt = normal.isf(delta / 2)
print(f"Bernstein bound {bernstein:.3f}, CLT bound {clt:.4f}")

# %%
# How often does H exceed the CLT bound? The library's law rounds upwards, so what it says is safe
# and a little too large. For comparison, the same probability by inversion of the characteristic
# function of H, ₁F₁(1/2; d/2; it)ᵏ (Gil-Pelaez).

fine = sensitivity_law(d, k, n_values=10**6)
by_law = fine.weights[fine.values > clt].sum() + fine.infinity
t = np.arange(0.25, 400, 0.5)  # beyond, the function is below 1e-15
by_inversion = 0.5 + 0.5 / np.pi * np.sum(
    (np.exp(-1j * t * clt) * hyp1f1(0.5, d / 2, 1j * t) ** k).imag / t
)
print("Probability that H exceeds the CLT bound")
print(f"  claimed            {delta / 2:.1e}")
print(f"  law, rounded up    {by_law:.1e}")
print(f"  exact              {by_inversion:.1e}")

# %%
# The privacy loss is an average
# ------------------------------
#
# U is public and independent of the rows, so that δ(ε) of the release is the mean, over the law of
# H, of what it is for the Gaussian mechanism. Nothing is claimed of single draws of U, so nothing
# can fail. Here is the noise for one release of all rows at ε = 1. A bound is charged as a constant
# H, at δ/2. The second column is the constant H that would need that noise at the whole δ: with the
# law, hardly more than the mean of H.

epsilon = 1.0


def calibrate(orthogonal):
    return calibrate_noise(lambda s: SlicedGaussianDpEvent(s, d, k, orthogonal), epsilon, delta)


sigmas = {
    "Bernstein, independent": np.sqrt(bernstein) * calibrate_gaussian(epsilon, delta / 2),
    "CLT, independent": np.sqrt(clt) * calibrate_gaussian(epsilon, delta / 2),
    "law, independent": calibrate(False),
    "law, orthonormal": calibrate(True),
}
multiplier = calibrate_gaussian(epsilon, delta)
constants = {name: (sigma / multiplier) ** 2 for name, sigma in sigmas.items()}
print(f"{'':<24} σ / ‖z‖   constant H   ε by the law")
for name, sigma in sigmas.items():
    spent = ledger_epsilon([SlicedGaussianDpEvent(sigma, d, k, "orthonormal" in name)], delta)
    print(f"{name:<24} {sigma:<9.3f} {constants[name]:<12.3f} {spent:.3f}")

# %%
# The picture
# -----------
#
# Left: densities, as in the paper's Figure 1. The Bernstein bound is far outside. Right: upper
# tails. Where the normal approximation has fallen to 5e-6, the law of H is eight times as high.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
colours = {False: "C0", True: "C1"}
h = np.linspace(0.16, 0.42, 400)
for orthogonal, name in kinds.items():
    law, colour = laws[orthogonal], colours[orthogonal]
    tails = np.maximum(1 - np.cumsum(law.weights), 0) + law.infinity
    left.hist(simulated[orthogonal], 80, density=True, color=colour, alpha=0.3)
    # A density from the law's distribution function, on a grid as fine as the picture.
    density = -np.gradient(np.interp(h, law.values, tails), h)
    left.plot(h, density, color=colour, label=f"{name}: law, simulation")
    above = tails > 1e-9
    right.semilogy(law.values[above], tails[above], color=colour, label=name)
left.plot(h, normal.pdf(h), "k:", label="normal, independent directions")
right.semilogy(h, normal.sf(h), "k:", label="normal")
left.axvline(clt, color="C3", linestyle="--", label=f"CLT bound: {clt:.3f}")
left.axvline(
    constants["law, independent"], color="C2", linestyle="-.", label="constant H that costs as much"
)
left.text(0.371, 9, f"Bernstein\nbound: {bernstein:.2f} →", color="C4", fontsize=7)
left.set(xlabel="H / ‖z‖²", ylabel="density", xlim=(h[0], h[-1]), ylim=(0, 32))
left.legend(fontsize=7, loc="upper right")

right.axvline(clt, color="C3", linestyle="--")
right.axhline(delta / 2, color="grey", linewidth=0.8)
right.text(0.262, delta / 2 * 0.75, "claimed: 5e-6", color="grey", fontsize=8, va="top")
right.plot(clt, by_inversion, "o", color="C3", label=f"exact: {by_inversion:.1e}")
right.set(xlabel="H / ‖z‖²", ylabel="P(H / ‖z‖² > h)", xlim=(0.255, 0.42), ylim=(1e-8, 1))
right.legend(fontsize=8)
fig.tight_layout()
