# SPDX-License-Identifier: BSD-3-Clause
"""Random windows of images."""

import torch

from .frequencies import find_shape

# Standard deviations of windows, as shares of an image's side; found on held-out images.
_NARROWEST, _WIDEST = 0.1, 0.35
# Least side of an image that has windows: those of smaller images would be hardly smaller.
_SMALLEST_SIDE = 10
# Windows that are made at once.
_BLOCK = 256


def draw_windows(n_columns, n_windows, generator):
    """Draw noise within Gaussian windows of images, of random places and widths.

    Parameters
    ----------
    n_columns : int
        Number of columns of rows, which may be square images, grey or in three colours.
    n_windows : int
    generator : torch.Generator
        On the CPU.

    Yields
    ------
    tensor of shape (n, n_columns)
        Together `n_windows`, in blocks; none if rows cannot be such images, or tiny ones only.
    """
    shape = find_shape(n_columns, (1, 3))
    if shape[1] >= _SMALLEST_SIDE:
        for start in range(0, n_windows, _BLOCK):
            yield _draw_block(shape, min(_BLOCK, n_windows - start), generator)


def _draw_block(shape, n, generator):
    side = shape[-1]
    places, sizes = torch.rand(n, 3, generator=generator, dtype=torch.float64).split([2, 1], dim=1)
    widths = side * _NARROWEST * (_WIDEST / _NARROWEST) ** sizes
    distances = (torch.arange(side) - (side - 1) * places[..., None]) / widths[..., None]
    down, along = (-(distances**2) / 2).exp().unbind(1)
    windows = down[:, None, :, None] * along[:, None, None, :]
    noise = torch.randn(n, *shape, generator=generator, dtype=torch.float64)
    return (windows * noise).flatten(1)
