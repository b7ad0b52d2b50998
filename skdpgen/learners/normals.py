# SPDX-License-Identifier: BSD-3-Clause
"""Normal distributions fitted to a released slice sketch, from which particles start."""

from dataclasses import dataclass

import torch

from ..mechanisms.sums import Sketch
from ..transport import SliceBasis
from .sketch import draw_slices, read_sketch
from .training import Descent, descend_to_noise, enables_gradients


@dataclass(frozen=True)
class NormalConstants:
    """Constants of the normal distributions; all are set by hand."""

    # Slices of a sketch in a step, drawn anew for each step.
    n_slices: int = 500
    # Largest rank of a covariance.
    n_factors: int = 64
    # Isotropic noise of drawn rows, in standard deviations of rows: the noise of the sketch can
    # hide directions of variance, which particles could not recover without it.
    widening: float = 0.5


CONSTANTS = NormalConstants()


@enables_gradients
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

    Parameters
    ----------
    basis, sketch, std, generator, verbose
        As in `fit_particles_to_sketch`.
    n_steps : int
        The largest number of steps for each class.
    learning_rate : float
        For Adam, in units of the mean standard deviation.

    Returns
    -------
    normals : list of (tensor of shape (n_encoded,), tensor of shape (n_encoded, n_factors))
        μ and F of each class.
    """
    means, weights, noise_energy = read_sketch(basis, sketch)
    noise_energy = noise_energy / weights.cpu().numpy()
    d, normals = len(std), []
    for target, noise in zip(means, noise_energy, strict=True):
        mean = torch.zeros_like(std).requires_grad_(True)
        directions = torch.randn(d, min(d, CONSTANTS.n_factors), generator=generator).to(std)
        factor = std[:, None] * torch.linalg.qr(directions).Q
        factor.mul_((d / factor.shape[1]) ** 0.5).requires_grad_(True)

        def loss(mean=mean, factor=factor, target=target):
            part, slices = draw_slices(basis, CONSTANTS.n_slices, generator)
            gap = expected_harmonics(part, mean, factor) - target[..., slices]
            return gap.square().sum() / len(slices)

        descent = Descent([mean, factor], learning_rate * float(std.mean()))
        descend_to_noise(descent, loss, noise, n_steps, verbose)
        normals.append((mean.detach(), factor.detach()))
    return normals


def expected_harmonics(basis: SliceBasis, mean: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Return the mean values of a basis over N(`mean`, `factor`·`factor`ᵀ), of shape (B, 2, k).

    The angle on a slice is normal, with a mean α and a variance v: E exp(i b a) is
    exp(i b α - b² v / 2).
    """
    angles = mean @ basis.frequencies
    variances = (factor.T @ basis.frequencies).square().sum(0)
    b = torch.arange(1, len(basis.weights) + 1).to(angles)[:, None]
    sizes = basis.weights[:, None] * (-(b**2) * variances / 2).exp()
    return torch.stack([sizes * (b * angles).cos(), sizes * (b * angles).sin()], dim=1)


def draw_normals(
    normals: list[tuple[torch.Tensor, torch.Tensor]],
    n_particles: int,
    std: torch.Tensor,
    generator: torch.Generator,
) -> torch.Tensor:
    """Draw rows from the distributions of `fit_normals_to_sketch`, slightly widened.

    Returns
    -------
    tensor of shape (n_classes, n_particles, n_encoded)
    """
    drawn = []
    for mean, factor in normals:
        within, isotropic = (
            torch.randn(n_particles, n, generator=generator).to(mean)
            for n in (factor.shape[1], len(mean))
        )
        drawn.append(mean + within @ factor.T + CONSTANTS.widening * std * isotropic)
    return torch.stack(drawn)
