# SPDX-License-Identifier: BSD-3-Clause
"""Images in rows: their shapes, orthonormal cosine transform, and random windows."""

import math

import numpy as np
import torch
from scipy.fft import dct

# Standard deviations of windows, as shares of an image's side; found on held-out images.
_NARROWEST, _WIDEST = 0.1, 0.35
# Least side of an image that has windows: those of smaller images would be hardly smaller.
_SMALLEST_SIDE = 10
# Windows that are made at once.
_BLOCK = 256


def find_shape(n_columns, channels=(1,)):
    """Return the shape (channels, height, width) of rows that can be square images, or else lines.

    Parameters
    ----------
    n_columns : int
    channels : sequence of int, default=(1,)
        Numbers of channels of images; the first with which images are squares of more than a
        pixel is taken.
    """
    for n_channels in channels:
        side = math.isqrt(n_columns // n_channels)
        if side > 1 and n_channels * side**2 == n_columns:
            return n_channels, side, side
    return 1, 1, n_columns


def cosine_matrices(shape):
    """Return the orthonormal cosine transforms of columns and of rows of images, as matrices."""
    return [dct(np.eye(size), axis=0, norm="ortho") for size in shape[-2:]]


def lowest_frequencies(shape, n_frequencies):
    """Return images of so many frequencies along each axis, of shape (n_columns, n_kept)."""
    across, along = (matrix[:n_frequencies] for matrix in cosine_matrices(shape))
    return np.kron(np.eye(shape[0]), np.kron(across, along)).T


def draw_windows(shape, n_windows, generator):
    """Draw noise within Gaussian windows of images, of random places and widths.

    Parameters
    ----------
    shape : tuple of (channels, height, width)
    n_windows : int
    generator : torch.Generator
        On the CPU.

    Yields
    ------
    tensor of shape (n, n_columns)
        Together `n_windows`, in blocks; none for tiny images.
    """
    if min(shape[1:]) >= _SMALLEST_SIDE:
        for start in range(0, n_windows, _BLOCK):
            yield _draw_block(shape, min(_BLOCK, n_windows - start), generator)


def _draw_block(shape, n, generator):
    places, sizes = torch.rand(n, 3, generator=generator, dtype=torch.float64).split([2, 1], dim=1)
    widths = min(shape[1:]) * _NARROWEST * (_WIDEST / _NARROWEST) ** sizes
    down, along = (
        (-(((torch.arange(side) - (side - 1) * places[:, i, None]) / widths) ** 2) / 2).exp()
        for i, side in enumerate(shape[1:])
    )
    windows = down[:, None, :, None] * along[:, None, None, :]
    noise = torch.randn(n, *shape, generator=generator, dtype=torch.float64)
    return (windows * noise).flatten(1)
