# SPDX-License-Identifier: BSD-3-Clause
"""Sliced Wasserstein flows of particles."""

import torch

from .slices import _sort


def sliced_drift(
    particles: torch.Tensor, directions: torch.Tensor, source: torch.Tensor, target: torch.Tensor
) -> torch.Tensor:
    """Return the drift of particles, by the quantile maps of one-dimensional distributions.

    Along each direction, F⁻¹_target ∘ F_source maps the particle's projection z to the target
    distribution. The drift is the mean of (F⁻¹_target(F_source(z)) - z)·θ over the directions:
    equations 20 and 21 of [1]_, where both distributions are smoothed, and z is not.

    Parameters
    ----------
    particles : tensor of shape (..., n, d)
    directions : tensor of shape (d, k)
        θ, one per column.
    source : tensor of shape (..., k, n_source)
        Samples of the particles' (smoothed) distribution, for each direction.
    target : tensor of shape (..., k, n_target)
        Samples of the (smoothed) target distribution.

    Returns
    -------
    tensor of shape (..., n, d)

    References
    ----------
    .. [1] Sebag, Pydi, Franceschi, Rakotomamonjy, Gartrell, Atif & Allauzen, "Differentially
       Private Gradient Flow based on the Sliced Wasserstein Distance", 2023.

    Examples
    --------
    >>> import torch
    >>> axis, wanted = torch.ones(1, 1), torch.tensor([[5.0, 6.0, 7.0]])
    >>> x = torch.tensor([[0.0], [2.0], [4.0]])
    >>> x + sliced_drift(x, axis, x.T, wanted)
    tensor([[5.],
            [6.],
            [7.]])
    """
    positions = directions.T @ particles.mT
    source, target = _sort(source.contiguous())[0], _sort(target.contiguous())[0]
    levels = _level_at(source, positions)
    return (_value_at(target, levels) - positions).mT @ directions.T / directions.shape[1]


def _level_at(values: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    """Return F(points) for sorted samples: 0 at the first, 1 at the last, linear in between."""
    n = values.shape[-1]
    if n == 1:
        # One sample says nothing of levels: its middle.
        return torch.full_like(points, 0.5)
    right = torch.searchsorted(values, points.contiguous()).clamp_(1, n - 1)
    below, above = values.gather(-1, right - 1), values.gather(-1, right)
    # Equal neighbours have a gap of 0, and any share of it.
    share = (points - below) / (above - below).clamp(min=torch.finfo(values.dtype).tiny)
    return ((right - 1) + share.clamp(0, 1)) / (n - 1)


def _value_at(values: torch.Tensor, levels: torch.Tensor) -> torch.Tensor:
    """Return the quantiles of sorted samples, the inverse of `_level_at`."""
    position = levels * (values.shape[-1] - 1)
    # With one value there is no right neighbour; both are that value.
    left = position.floor().long().clamp_(0, max(values.shape[-1] - 2, 0))
    right = (left + 1).clamp_(max=values.shape[-1] - 1)
    return torch.lerp(values.gather(-1, left), values.gather(-1, right), position - left)
