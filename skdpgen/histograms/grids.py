# SPDX-License-Identifier: BSD-3-Clause
"""Grids of knots on which numbers are counted, and weights in the hat basis on them."""

import math

import numpy as np

# Numbers with decimals have fewer units than this: float64 holds 2^53, and a bit is for rounding.
# Whole numbers may be larger: all floats from there on are whole.
MAX_UNITS = 2.0**52
# Numbers are looked for up to 2^64 on both sides of zero, as far as 64-bit integers go, and from
# 2^-60 on: knots beyond what a column holds cost a logarithm of their number only. One octave more
# tells them from numbers beyond.
_OCTAVES = -60, 65
# The finest wide grid has so many knots in each octave.
FINEST = 8


def wide_knots(decimals=None, n_per_octave=FINEST):
    """Return the wide grid for private inference of ranges: zero, and powers of 2 on both sides.

    Parameters
    ----------
    decimals : int, default=None
        Decimals of the numbers: knots are rounded to them, equal ones are merged, and the grid
        ends where floats do not hold fractions.
    n_per_octave : int, default=8
        Knots from a power of 2 to the next.

    Returns
    -------
    knots : ndarray
        Increasing, from -2⁶⁵ to 2⁶⁵ at most.
    """
    first, last = _OCTAVES
    sizes = 2.0 ** (np.arange(first * n_per_octave, last * n_per_octave + 1) / n_per_octave)
    if decimals is not None:
        sizes = np.unique(np.round(sizes[sizes <= find_farthest(decimals)], decimals))
    return np.unique(np.r_[-sizes[::-1], 0, sizes]) + 0.0


def find_farthest(decimals):
    """Return the power of 2 at which the grid ends for numbers with so many decimals."""
    if not decimals:
        return 2.0 ** _OCTAVES[1]
    return 2.0 ** math.floor(math.log2(MAX_UNITS / 10.0**decimals))


def locate_between(numbers, knots):
    """Return the index of the knot left of each number, and its relative position after it.

    Parameters
    ----------
    numbers : ndarray of any shape
        They are clipped to the range of the knots.
    knots : ndarray of shape (n_knots,)
        Increasing.

    Returns
    -------
    left : ndarray of int
    share : ndarray of float
        In [0, 1]: 0 at the left knot and 1 at the next one.
    """
    numbers = np.clip(numbers, knots[0], knots[-1])
    left = np.searchsorted(knots[1:-1], numbers, side="right")
    return left, (numbers - knots[left]) / (knots[left + 1] - knots[left])


def knot_weights(numbers, knots):
    """Return the weights of numbers in the hat basis on knots.

    Parameters
    ----------
    numbers : ndarray of any shape
        They are clipped to the range of the knots.
    knots : ndarray of shape (n_knots,)
        Increasing.

    Returns
    -------
    ndarray of the shape of `numbers`, with n_knots appended
        Weights that sum to 1; the mean of the knots with these weights is the number. NaN for NaN.
    """
    left, share = locate_between(numbers, knots)
    weights = np.zeros((*left.shape, len(knots)))
    np.put_along_axis(weights, left[..., None], 1 - share[..., None], axis=-1)
    np.put_along_axis(weights, left[..., None] + 1, share[..., None], axis=-1)
    return weights


def find_widths(knots):
    """Return the width of the interval around each knot, up to the middles of the next ones."""
    return np.convolve(np.diff(knots), [0.5, 0.5])
