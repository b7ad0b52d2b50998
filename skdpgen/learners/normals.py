# SPDX-License-Identifier: BSD-3-Clause
"""A learner: the normal distributions that have a slice sketch, as nearly as they can.

It sees releases only, never rows.
"""

import torch

from .sketch import read_sketch
from .training import Descent, descend_to_noise

# Slices of a sketch that a step looks at, drawn anew for each step.
_SLICES = 500
# Directions in which a distribution varies, at most.
_MOST_FACTORS = 64
# What is drawn has so much of the spread besides: without it, what noise has taken away of a
# distribution does not come back.
_WIDENING = 0.5


@torch.inference_mode(False)
@torch.enable_grad()
def fit_normals_to_sketch(basis, sketch, spread, *, n_steps, learning_rate, generator, verbose=0):
    """Fit a normal distribution N(μ, FFᵀ) to the sketch of each class, up to the sketch's noise.

    They have few parameters beside the numbers of a sketch, so that noise hardly moves them; and
    what a sketch leaves open of them is as smooth as can be.

    Parameters
    ----------
    basis, sketch, spread, generator, verbose
        As in `fit_particles_to_sketch`.
    n_steps : int
        The largest number of steps for each class.
    learning_rate : float
        Of Adam, in units of the mean spread.

    Returns
    -------
    normals : list of (tensor of shape (n_encoded,), tensor of shape (n_encoded, n_factors))
        μ and F of each class.
    """
    means, weights, noise_energy = read_sketch(basis, sketch)
    noise_energy = noise_energy / weights.cpu().numpy()
    d, k, normals = len(spread), basis.n_projections, []
    for target, noise in zip(means, noise_energy, strict=True):
        mean = torch.zeros_like(spread).requires_grad_(True)
        # Of the spread in some directions, which are all if there are few.
        directions = torch.randn(d, min(d, _MOST_FACTORS), generator=generator).to(spread)
        factor = spread[:, None] * torch.linalg.qr(directions).Q
        factor.mul_((d / factor.shape[1]) ** 0.5).requires_grad_(True)

        def loss(mean=mean, factor=factor, target=target):
            slices = torch.randperm(k, generator=generator)[:_SLICES].to(spread.device)
            made = expected_harmonics(basis.subset(slices), mean, factor)
            return (made - target[..., slices]).square().sum() / len(slices)

        descent = Descent([mean, factor], learning_rate * float(spread.mean()))
        descend_to_noise(descent, loss, noise, n_steps, verbose)
        normals.append((mean.detach(), factor.detach()))
    return normals


def expected_harmonics(basis, mean, factor):
    """Return the mean values of a basis over N(`mean`, `factor`·`factor`ᵀ), of shape (B, 2, k).

    The angle on a slice is normal, with a mean α and a variance v: E exp(i b a) is
    exp(i b α - b² v / 2).
    """
    angles = mean @ basis.frequencies
    variances = (factor.T @ basis.frequencies).square().sum(0)
    b = torch.arange(1, len(basis.weights) + 1).to(angles)[:, None]
    sizes = basis.weights[:, None] * (-(b**2) * variances / 2).exp()
    return torch.stack([sizes * (b * angles).cos(), sizes * (b * angles).sin()], dim=1)


def draw_normals(normals, n_particles, spread, generator):
    """Draw rows from the distributions that `fit_normals_to_sketch` gives, somewhat widened.

    Returns
    -------
    tensor of shape (n_classes, n_particles, n_encoded)
    """
    drawn = []
    for mean, factor in normals:
        within, besides = (
            torch.randn(n_particles, n, generator=generator).to(mean)
            for n in (factor.shape[1], len(mean))
        )
        drawn.append(mean + within @ factor.T + _WIDENING * spread * besides)
    return torch.stack(drawn)
