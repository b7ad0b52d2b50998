# SPDX-License-Identifier: BSD-3-Clause
"""Principal components of noisy second moments."""

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import nn

from ..images import find_shape, lowest_frequencies
from ..quality import warn_of_fit
from ..registry import savable
from ..transport.products import ExactMatrix

# Ratio of the dimensions of successive spaces of low frequencies; a coarser grid misses the best.
_GROWTH = 1.3

# Least share of Σ‖x‖² in components; below it they are mostly directions of noise.
_LEAST_HELD = 0.1


@savable
class PrincipalComponents(nn.Module):
    """A linear map onto leading components, partly whitened, and back.

    Parameters
    ----------
    axes : tensor of shape (n_features, p)
        Orthonormal columns.
    deviations : tensor of shape (p,)
        Standard deviations of the components.
    whiten : float, default=0.5
        Components are divided by their deviation to this power: 0 keeps their scales, 1 makes
        them equal.
    unit_ball : bool, default=False
        Scale all components once more by one number, so that the root mean square norm of encoded
        rows is 1.
    energy : float, default=0.0
        Lower estimate of the mean squared norm of the rows, of which components hold a part.

    Attributes
    ----------
    spread : tensor of shape (p,)
        Standard deviations of the scaled components.
    """

    def __init__(self, axes, deviations, whiten=0.5, unit_ball=False, energy=0.0):
        super().__init__()
        self.energy = energy
        # With whiten=1, components that are mostly noise would weigh as much as the first one.
        spread = deviations ** (1 - whiten)
        radius = torch.linalg.vector_norm(spread) if unit_ball else 1.0
        # Buffers move with the module between devices, and no optimiser changes them.
        self.register_buffer("axes", axes)
        self.register_buffer("scale", deviations**whiten * radius)
        self.register_buffer("spread", spread / radius)

    @classmethod
    def from_noisy_moments(cls, moments, n_records, n_components, shape=None, **params):
        """Compute the leading components of released second moments Σ xxᵀ, by post-processing.

        Noise rotates components, and more so in many dimensions. They are therefore restricted to
        the low frequencies of images or lines, a public space of fewer dimensions, if the moments
        indicate that components explain more of the rows there; see `held_by_leading`.

        Without a `shape` of (channels, height, width) rows are square images, grey or in three
        colours, or else lines. Other parameters are those of the constructor.
        """
        shape = shape or find_shape(len(moments.value), (1, 3))
        space, inside, held = choose_space(moments, n_components, shape)
        _warn_of_noise(held, np.trace(moments.value))
        values, vectors = np.linalg.eigh(inside)
        values, vectors = values[::-1][:n_components], vectors[:, ::-1][:, :n_components]
        # Noise alone has eigenvalues up to σ√(2d); smaller ones carry no information.
        floor = 0.1 * moments.std * math.sqrt(2 * len(vectors)) + 1e-9 * n_records
        deviations = np.sqrt(np.maximum(values, floor) / n_records)
        # Less two deviations of the trace's noise: noise alone is no energy.
        trace = np.trace(moments.value) - 2 * moments.std * math.sqrt(len(moments.value))
        return cls(
            torch.tensor(space @ vectors, dtype=torch.float32),
            torch.tensor(deviations, dtype=torch.float32),
            energy=max(0.0, float(trace)) / n_records,
            **params,
        )

    def encode(self, rows):
        """Map rows (n, n_features) to scaled components (n, p)."""
        return rows.to(self.axes.dtype) @ (self.axes / self.scale)

    def encode_exactly(self, rows):
        """Map rows as `encode` does, to the bit a function of each row alone, without gradient.

        See `ExactMatrix`.
        """
        return ExactMatrix(self.axes / self.scale).times(rows)

    def decode(self, components):
        """Map scaled components back to rows."""
        return (components * self.scale) @ self.axes.T

    def find_directions(self, windows):
        """Find directions in code space that correspond to windows of the decoded rows.

        Windows are blocks of directions of features; see `Format.draw_windows`. Columns have norm
        1.
        """
        axes, scale = self.axes.double().cpu(), self.scale.double().cpu()
        parts = [axes.new_zeros(len(scale), 0)]
        for block in windows:
            # ⟨w, decode(z)⟩ = ⟨scale · axesᵀ w, z⟩
            mapped = scale[:, None] * (axes.T @ block.T)
            parts.append(mapped / torch.linalg.vector_norm(mapped, dim=0))
        return torch.cat(parts, dim=1)


def choose_space(moments, n_components: int, shape: tuple) -> tuple[np.ndarray, np.ndarray, float]:
    """Choose the space where leading components explain most: all, or that of low frequencies.

    Returns orthonormal columns, the moments of rows in their space, and the estimated second moment
    that leading components explain there; see `held_by_leading`.
    """
    spaces = [np.eye(len(moments.value)), *find_spaces(shape, n_components)]
    parts = [space.T @ moments.value @ space for space in spaces]
    held = [held_by_leading(np.linalg.eigvalsh(part), n_components, moments.std) for part in parts]
    # The choice reads released moments only, so that it costs nothing.
    best = int(np.argmax(held))
    return spaces[best], parts[best], float(held[best])


def find_spaces(shape: tuple, n_components: int) -> Iterator[np.ndarray]:
    """Yield spaces of low frequencies of images, from `n_components` dimensions to nearly all.

    Each space is a matrix with orthonormal columns.
    """
    n_last, n_axes = 0, sum(side > 1 for side in shape[1:])
    n = (n_components / shape[0]) ** (1 / max(1, n_axes))
    # The last space, of all frequencies, is the identity that the caller has.
    while math.ceil(n) < max(shape[1:]):
        if math.ceil(n) > n_last:
            n_last = math.ceil(n)
            yield lowest_frequencies(shape, n_last)
        n *= _GROWTH ** (1 / n_axes)


def held_by_leading(eigenvalues: np.ndarray, n_components: int, std: float) -> float:
    """Estimate the second moment that leading components of noisy second moments explain.

    In q × q moments, noise with a standard deviation of τ = `std`/√2 off the diagonal changes an
    eigenvalue λ > τ√q to ℓ = λ + qτ²/λ, and rotates its vector so that it explains λ - qτ²/λ of the
    rows, which is √(ℓ² - 4qτ²) [1]_. Vectors of smaller eigenvalues carry no information.

    References
    ----------
    .. [1] F. Benaych-Georges, R. R. Nadakuditi, "The eigenvalues and eigenvectors of finite, low
       rank perturbations of large random matrices", Advances in Mathematics, 2011.
    """
    leading = np.maximum(np.sort(eigenvalues)[::-1][:n_components], 0)
    return np.sqrt(np.maximum(leading**2 - 2 * std**2 * len(eigenvalues), 0)).sum()


def _warn_of_noise(held, total):
    """Warn if components, by the Σ‖x‖² that they hold, are mostly directions of noise."""
    if held <= _LEAST_HELD * max(total, 0.0):
        share = held / total if held > 0 else 0.0
        warn_of_fit(
            f"The released principal components show about {share:.0%} of the rows above the "
            "noise; the others are directions of noise. Use encoder=None, a larger epsilon, or "
            "more rows."
        )
