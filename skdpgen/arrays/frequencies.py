# SPDX-License-Identifier: BSD-3-Clause
"""Orthonormal cosine transform of images and signals."""

import math

import numpy as np
from scipy.fft import dct


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
