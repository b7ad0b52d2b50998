# SPDX-License-Identifier: BSD-3-Clause
"""Normal distributions fitted to a released slice sketch, from which particles start."""

from dataclasses import dataclass

import torch

from ..mechanisms.sums import Sketch
from ..transport.harmonics import SliceBasis
from .sketch import SliceCycle, read_sketch
from .training import Descent, descend_to_noise


@dataclass(frozen=True)
class NormalConstants:
    """Constants of the normal distributions; all are set by hand."""

    # Slices of a sketch in a step.
    n_slices: int = 500
    # Largest rank of a covariance.
    n_factors: int = 64
    # Isotropic noise of drawn rows, in standard deviations of rows: the noise of the sketch can
    # hide directions of variance, which particles could not recover without it.
    widening: float = 0.5
    # Least energy of noise by which distances are divided.
    least_noise: float = 1e-12


CONSTANTS = NormalConstants()


def fit_normals_to_sketch(
    basis: SliceBasis,
    sketch: Sketch,
    std: torch.Tensor,
    *,
    n_steps: int,
    learning_rate: float,
    generator: torch.Generator,
    verbose: int = 0,
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Fit a normal distribution N(μ, FFᵀ) to the sketch of each class, up to the sketch's noise.

    It has few parameters relative to the numbers of a sketch, so that the noise hardly moves it.
    Returns μ (n_encoded,) and F (n_encoded, n_factors) of each class; parameters are those of
    `fit_particles_to_sketch`.
    """
    means, weights, noise_energy = read_sketch(basis, sketch)
    d, n_classes = len(std), len(means)
    noise = torch.tensor(noise_energy).to(weights) / weights
    mean = torch.zeros(n_classes, d).to(std).requires_grad_(True)
    directions = torch.randn(n_classes, d, min(d, CONSTANTS.n_factors), generator=generator)
    factor = std[:, None] * torch.linalg.qr(directions.to(std)).Q
    factor.mul_((d / factor.shape[2]) ** 0.5).requires_grad_(True)
    slices = SliceCycle(basis, means, CONSTANTS.n_slices, generator)

    def loss():
        part, target = next(slices)
        gaps = (expected_harmonics(part, mean, factor) - target).square().sum((1, 2, 3))
        # In units of the noise, so that all classes together are down to it.
        return (gaps / target.shape[-1] / noise.clamp(min=CONSTANTS.least_noise)).mean()

    descent = Descent([mean, factor], learning_rate * float(std.mean()))
    descend_to_noise(descent, loss, float((noise > 0).all()), n_steps, verbose)
    return list(zip(mean.detach(), factor.detach(), strict=True))


def expected_harmonics(basis: SliceBasis, mean: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Return the mean values (..., B, 2, k) of a basis over N(`mean`, `factor`·`factor`ᵀ).

    The angle on a slice is normal, with a mean α and a variance v: E exp(i b a) is
    exp(i b α - b² v / 2).
    """
    angles = (mean @ basis.frequencies)[..., None, :]
    variances = (factor.mT @ basis.frequencies).square().sum(-2)[..., None, :]
    b = torch.arange(1.0, len(basis.weights) + 1, dtype=angles.dtype, device=angles.device)[:, None]
    sizes = basis.weights[:, None] * (-(b**2) * variances / 2).exp()
    return torch.stack([sizes * (b * angles).cos(), sizes * (b * angles).sin()], dim=-2)


def draw_normals(
    normals: list[tuple[torch.Tensor, torch.Tensor]],
    n_particles: int,
    std: torch.Tensor,
    generator: torch.Generator,
) -> torch.Tensor:
    """Draw rows (n_classes, n_particles, n_encoded) of fitted normals, slightly widened."""
    drawn = []
    for mean, factor in normals:
        within, isotropic = (
            torch.randn(n_particles, n, generator=generator).to(mean)
            for n in (factor.shape[1], len(mean))
        )
        drawn.append(mean + within @ factor.T + CONSTANTS.widening * std * isotropic)
    return torch.stack(drawn)
