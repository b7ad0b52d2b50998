"""
An own method
=============

A whole method in 40 lines: for each class, the number of rows, their sum and their second moments
are released once, with Gaussian noise; samples are normal, with these moments.
:doc:`/how_to/own_method` explains each part.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_own_method.png'

import math

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import make_blobs

from skdpgen.base import CentralGenerator
from skdpgen.params import parameters
from skdpgen.privacy import GaussianSumMechanism, RecordFunction
from skdpgen.releases import Release
from skdpgen.testing import check_generator

# %%
# The method
# ----------


def moments(rows):
    """Return (1, x, x xᵀ) of each row x, of norm √3 at most, since rows are in the unit ball."""
    products = (rows[:, :, None] * rows[:, None, :]).flatten(1)
    return torch.cat([torch.ones_like(rows[:, :1]), rows, products], dim=1)


@parameters
class Moments(Release):
    """Noisy numbers of rows, sums and second moments of each class."""

    name, is_sum = "moments", True

    def mechanism(self):
        return GaussianSumMechanism(RecordFunction(moments), math.sqrt(3), self.name, by_class=True)

    def plan(self, terms, format):
        return terms.plan_once(
            {self.name: 1.0}, lambda plan, relation: self.sensitivity(relation, terms.n_classes)
        )

    def sensitivity(self, relation, n_classes):
        return self.mechanism().sensitivity(relation)


@parameters
class NormalSampler(CentralGenerator):
    """Rows from one normal distribution a class."""

    release: object = "moments"

    _shorthands = {**CentralGenerator._shorthands, "release": {"moments": Moments}}

    def _learn(self, curator, format, noise):
        released = curator.release(self._find_release(format).mechanism()).value
        curator.close()
        counts, d = np.maximum(released[:, 0], 1), format.n_columns
        self.class_probabilities_ = counts / counts.sum()
        self._means = released[:, 1 : d + 1] / counts[:, None]
        second = (released[:, d + 1 :] / counts[:, None]).reshape(-1, d, d)
        covariances = second - self._means[:, :, None] * self._means[:, None, :]
        # Noise makes the matrices neither symmetric nor positive.
        values, axes = np.linalg.eigh((covariances + covariances.swapaxes(1, 2)) / 2)
        self._factors = axes * np.sqrt(np.maximum(values, 0))[:, None, :]

    def _generate(self, classes, generator):
        shape = len(classes), self._means.shape[1]
        normal = torch.randn(shape, generator=generator, dtype=torch.float64).numpy()
        return self._means[classes] + (self._factors[classes] @ normal[:, :, None])[:, :, 0]


# %%
# Its checks
# ----------
#
# They fit it a hundred times to small data: its noise, sensitivity and ledger, seeds, frames,
# labels, bad records and failures.

check_generator(NormalSampler())

# %%
# What it learns
# --------------
#
# All that generators have comes with it: classes, frames, undeclared bounds, `preview`, budgets and
# certificates.

X, y = make_blobs(
    60_000, centers=[[-5, 0], [0, 4], [4, -3]], cluster_std=[1, 2, 1.5], random_state=0
)
sampler = NormalSampler(
    epsilon=1.0, delta=1e-6, bounds=(-12, 12), classes=[0, 1, 2], clip_norm=1.0, random_state=0
)
X_synthetic, y_synthetic = sampler.fit(X, y).sample(2000)
print(sampler.privacy_)

figure, axes = plt.subplots(1, 2, figsize=(8, 3.5), sharex=True, sharey=True)
for axis, rows, labels, title in zip(
    axes,
    (X[:2000], X_synthetic),
    (y[:2000], y_synthetic),
    ("rows", "synthetic, ε = 1"),
    strict=True,
):
    axis.scatter(*rows.T, c=labels, s=4, cmap="viridis")
    axis.set_title(title)
figure.tight_layout()
