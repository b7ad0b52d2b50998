"""
Particles that flow
===================

Five Gaussians in the plane, as in Figure 1 of the DPSWflow paper, learnt by particles: from a slice
sketch, from fresh sliced rows at each step (DPSWflow-r), and from sliced rows that are released
once (DPSWflow); without noise, and with a budget.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_flow.png'

import math
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

from skdpgen import DPSWFlowSampler
from skdpgen.privacy import PrivacyLeakWarning
from skdpgen.releases import SlicedRows, SliceSketch
from skdpgen.transport import sliced_wasserstein_distance

# Seeds, so that the pictures stay the same, and infinite ε: such fits protect nobody.
warnings.simplefilter("ignore", PrivacyLeakWarning)
rng = np.random.RandomState(0)
centres = np.array([[0.0, 0.0], [0.5, 0.5], [0.5, -0.5], [-0.5, 0.5], [-0.5, -0.5]])
X = centres[rng.randint(5, size=5000)] + 0.06 * rng.randn(5000, 2)

# %%
# A sketch of the plane without noise needs more harmonics than the default to tell the five
# apart.

METHODS = {
    "sketch": SliceSketch(n_harmonics=10),
    "resample": SlicedRows(n_steps=200),
    "presample": SlicedRows(n_projections=40, n_steps=1),
}
EPSILONS = [math.inf, 3.0]
fig, axes = plt.subplots(len(METHODS), len(EPSILONS), figsize=(5, 7), sharex=True, sharey=True)
for row, (name, release) in zip(axes, METHODS.items(), strict=True):
    for ax, epsilon in zip(row, EPSILONS, strict=True):
        sampler = DPSWFlowSampler(
            epsilon,
            1e-5,
            release=release,
            n_particles=1500,
            n_steps=200 if name == "sketch" else None,
            random_state=0,
        ).fit(X)
        made = sampler.sample(2000)
        distance = sliced_wasserstein_distance(X, made, random_state=0)
        ax.scatter(*made.T, s=1)
        ax.set(title=f"{name}, ε = {epsilon:g}\nSW = {distance:.3f}", xlim=(-1, 1), ylim=(-1, 1))
fig.tight_layout()

# %%
# Particles see releases only. Here are the distances from synthetic digits to
# the nearest private ones, beside those between private digits.

digits = load_digits().data[:1000]
sampler = DPSWFlowSampler(
    5.0, 1e-5, bounds=(0, 16), clip_norm=0.5, n_steps=200, random_state=0
).fit(digits)
neighbours = NearestNeighbors(n_neighbors=2).fit(digits)
between = neighbours.kneighbors(digits)[0][:, 1]
to_nearest = neighbours.kneighbors(sampler.sample(1000))[0][:, 0]
fig, ax = plt.subplots(figsize=(6, 3.5))
ax.hist([between, to_nearest], bins=30, label=["private to private", "synthetic to private"])
ax.set(xlabel="distance to the nearest private digit", ylabel="digits")
ax.legend()
fig.tight_layout()
plt.show()
