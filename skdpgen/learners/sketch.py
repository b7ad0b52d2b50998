# SPDX-License-Identifier: BSD-3-Clause
"""A learner: a network whose rows have a released slice sketch."""

import numpy as np
import torch

from .training import Training, descend_to_noise

# Slices that a step looks at, at most, drawn anew for each step.
_SLICES = 2000


@torch.inference_mode(False)
@torch.enable_grad()
def fit_to_sketch(
    rows, basis, sketch, *, n_steps, rows_per_class, learning_rate, generator, verbose=0
):
    """Train a network until what it makes has the sketch, up to the sketch's noise.

    Parameters
    ----------
    rows : RowNetwork
        To be trained, on the device of `basis`.
    basis : SliceBasis
    sketch : skdpgen.mechanisms.sums.Sketch
    n_steps, rows_per_class : int
        Largest number of steps; generated rows of each class at a step.
    learning_rate : float
        Of Adam, after a warm-up and before a linear decay.
    generator : torch.Generator
        Where codes come from.
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
        made = rows(rows.draw(classes, generator)).unflatten(0, (len(means), rows_per_class))
        if basis.n_projections <= _SLICES:
            return basis.squared_distance(made, means, weights)
        slices = torch.randperm(basis.n_projections, generator=generator)[:_SLICES].to(made.device)
        return basis.subset(slices).squared_distance(made, means[..., slices], weights)

    losses = descend_to_noise(training, loss, noise_energy.sum(), n_steps, verbose)
    return training.finish(lambda: rows.draw(classes, generator)), losses


def read_sketch(basis, sketch):
    """Return what a learner needs of a sketch.

    Returns
    -------
    means : tensor of shape (n_classes, B, 2, k)
        Noisy mean values of the basis over each class.
    weights : tensor of shape (n_classes,)
        ‖n_c·E φ - S_c‖² over a common scale is Σ weight_c ‖E φ - mean_c‖²: noise is the same on
        all sums.
    noise_energy : ndarray of shape (n_classes,)
        What the noise adds to weight_c ‖E φ - mean_c‖² / k, on average.
    """
    counts = np.maximum(sketch.counts, max(sketch.counts_std, 1.0))
    weights = (counts / counts.mean()) ** 2
    noise_energy = weights * basis.n_values / basis.n_projections * (sketch.sums_std / counts) ** 2
    as_tensor = {"dtype": basis.dtype, "device": basis.frequencies.device}
    means = torch.tensor(sketch.sums / counts[:, None], **as_tensor)
    means = means.view(len(counts), -1, 2, basis.n_projections)
    return means, torch.tensor(weights, **as_tensor), noise_energy
