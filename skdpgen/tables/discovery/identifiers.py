# SPDX-License-Identifier: BSD-3-Clause
"""Columns of whole numbers that may be identifiers, from released counts."""

import numpy as np

from ..columns.values import MAX_UNITS

# Identifiers are spread evenly over their range: the middle half of uniform values is 0.556 of the
# distance between the quantiles 0.05 and 0.95, that of normal ones 0.41, of exponential ones 0.37.
# Noise moves it by less than this in fits to a few thousand rows.
_QUANTILES, _MIDDLE, _TOLERANCE = (0.05, 0.25, 0.5, 0.75, 0.95), 0.5556, 0.06
# Least number of values for each row: noise and outer knots widen ranges.
_FEWEST_VALUES = 0.8
# Floats hold fifteen digits of any number.
_LARGEST_EXACT = 1e15


def may_identify(kind, density, n_values, atoms, is_text):
    """Return whether nearly all values of a column are different, and evenly spread or too long.

    Parameters
    ----------
    kind : Number
        As declared.
    density : (points, masses)
        As from `estimate_density`.
    n_values : float
        Number of values that are neither missing nor at point masses, as far as it is known.
    atoms : list of float
        The point masses of the column.
    is_text : bool
        Whether the cells are texts, which may have more digits than floats.

    Returns
    -------
    bool
    """
    points, masses = density
    if not masses.sum() > 0:
        return False
    cumulative = np.r_[0, np.cumsum(masses)] / masses.sum()
    first, low, median, high, last = np.interp(_QUANTILES, cumulative, points)
    is_whole = kind.decimals == 0
    if (is_text and abs(median) >= _LARGEST_EXACT) or (is_whole and abs(median) >= MAX_UNITS):
        return True
    width = (last - first) / (_QUANTILES[-1] - _QUANTILES[0])
    if not is_whole or len(atoms) or width < _FEWEST_VALUES * n_values:
        return False
    shape = np.array([(high - low) / (last - first), (median - first) / (last - first)])
    return bool((np.abs(shape - [_MIDDLE, 0.5]) < _TOLERANCE).all())
