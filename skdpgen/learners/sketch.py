# SPDX-License-Identifier: BSD-3-Clause
"""Training of generator networks on a released slice sketch."""

import numpy as np
import torch

from ..mechanisms.sums import Sketch
from ..transport import SliceBasis
from .rows import RowNetwork
from .training import Training, descend_to_noise, enables_gradients

# Slices of a sketch in a step of a network, drawn anew for each step; it bounds memory.
_SLICES = 2000


@enables_gradients
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
) -> tuple[RowNetwork, list[float]]:
    """Train a network until its rows have the sketch, up to the noise of the sketch.

    Parameters
    ----------
    rows : RowNetwork
        Trained in place, on the device of `basis`.
    basis : SliceBasis
    sketch : skdpgen.mechanisms.sums.Sketch
    n_steps, rows_per_class : int
        Largest number of steps; generated rows of each class in a step.
    learning_rate : float
        For Adam, after a warm-up and before a linear decay.
    generator : torch.Generator
        Generator of the codes.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    rows : RowNetwork
        With averaged weights, on the CPU and in evaluation mode.
    losses : list of float
        The estimated distance to the noisy sketch at each step.
    """
    means, weights, noise_energy = read_sketch(basis, sketch)
    classes = torch.arange(len(means)).repeat_interleave(rows_per_class)
    training = Training(rows, learning_rate, memory=0.99)

    def loss():
        generated = rows(rows.draw(classes, generator))
        generated = generated.unflatten(0, (len(means), rows_per_class))
        if basis.n_projections <= _SLICES:
            return basis.squared_distance(generated, means, weights)
        part, slices = draw_slices(basis, _SLICES, generator)
        return part.squared_distance(generated, means[..., slices], weights)

    losses = descend_to_noise(training, loss, noise_energy.sum(), n_steps, verbose)
    return training.finish(lambda: rows.draw(classes, generator)), losses


def draw_slices(
    basis: SliceBasis, n_slices: int, generator: torch.Generator
) -> tuple[SliceBasis, torch.Tensor]:
    """Draw slices of a sketch for one step; return their basis and their positions."""
    slices = torch.randperm(basis.n_projections, generator=generator)[:n_slices]
    slices = slices.to(basis.frequencies.device)
    return basis.subset(slices), slices


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
