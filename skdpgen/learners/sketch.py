# SPDX-License-Identifier: BSD-3-Clause
"""Training of generator networks on a released slice sketch."""

from itertools import cycle, pairwise

import numpy as np
import torch

from ..mechanisms.sums import Sketch
from ..transport.harmonics import SliceBasis
from .interface import Sampler
from .rows import RowNetwork
from .training import Training, descend_to_noise

# Slices of a sketch in a step of a network; it bounds memory.
_SLICES = 2000


def fit_to_sketch(
    rows: RowNetwork,
    basis: SliceBasis,
    sketch: Sketch,
    *,
    n_steps: int,
    rows_per_class: int,
    learning_rate: float,
    generator: torch.Generator,
    verbose: int = 0,
) -> Sampler:
    """Train a network until its rows have the sketch, up to the noise of the sketch.

    A step generates `rows_per_class` rows of each class. Adam's rate follows a warm-up and a linear
    decay. Losses are estimated distances to the noisy sketch.
    """
    means, weights, noise_energy = read_sketch(basis, sketch)
    classes = torch.arange(len(means)).repeat_interleave(rows_per_class)
    slices = SliceCycle(basis, means, _SLICES, generator)
    training = Training(rows, learning_rate, memory=0.99)

    def loss():
        generated = rows(rows.draw(classes, generator))
        generated = generated.unflatten(0, (len(means), rows_per_class))
        part, target = next(slices)
        return part.squared_distance(generated, target, weights)

    losses = descend_to_noise(training, loss, noise_energy.sum(), n_steps, verbose)
    averaged = training.finish(lambda: rows.draw(classes, generator))
    return Sampler(averaged, losses, sketch.class_shares)


class SliceCycle:
    """The slices of a sketch in random order, of which each step takes the next ones.

    Noisy means are of shape (..., k).
    """

    def __init__(
        self, basis: SliceBasis, means: torch.Tensor, n_slices: int, generator: torch.Generator
    ) -> None:
        k = basis.n_projections
        order = torch.randperm(k, generator=generator).to(means.device)
        self._basis, self._means = basis.subset(order), means[..., order]
        n_parts = -(-k // n_slices)
        starts = [k * i // n_parts for i in range(n_parts + 1)]
        self._parts = cycle([slice(*pair) for pair in pairwise(starts)])

    def __next__(self) -> tuple[SliceBasis, torch.Tensor]:
        """Return the basis and the mean values of the next slices."""
        part = next(self._parts)
        return self._basis.subset(part), self._means[..., part]


def read_sketch(basis: SliceBasis, sketch: Sketch) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Return the means, weights and noise energies of a sketch.

    Returns
    -------
    means : tensor of shape (n_classes, B, 2, k)
        Noisy mean values of the basis over each class.
    weights : tensor of shape (n_classes,)
        The noise is the same on all sums, so that ‖n_c·E φ - S_c‖² over a common scale is
        weight_c ‖E φ - mean_c‖².
    noise_energy : ndarray of shape (n_classes,)
        The expected contribution of the noise to weight_c ‖E φ - mean_c‖² / k.
    """
    counts = np.maximum(sketch.counts, max(sketch.counts_std, 1.0))
    weights = (counts / counts.mean()) ** 2
    noise_energy = weights * basis.n_values / basis.n_projections * (sketch.sums_std / counts) ** 2

    def as_tensor(array):
        return torch.tensor(array, dtype=basis.dtype, device=basis.frequencies.device)

    means = as_tensor(sketch.sums / counts[:, None])
    means = means.view(len(counts), -1, 2, basis.n_projections)
    return means, as_tensor(weights), noise_energy
