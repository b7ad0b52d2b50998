# SPDX-License-Identifier: BSD-3-Clause
"""Private location of numeric columns whose spread is small beside their level.

A wide grid shows in which of its cells the values are, and cannot tell 1,000,000 ± 0.01 from
1,000,000 ± 10,000. A second histogram has levels: each divides the cells of the one before by
`FACTOR`. The knots of a level share `N_COUNTERS` counters, modulo that number. Read from coarse to
fine, they are unambiguous: as long as nearly all values are at two neighbouring knots, only the
knots around these matter at the next level. So few counters cover 30 bits in one release.
"""

import numpy as np

from .ranges import find_clear

# Each level divides a cell into so many; 10 levels resolve one part in 2^30 of a cell.
N_LEVELS, FACTOR = 10, 8
# More than FACTOR times the three cells that are kept of a level.
N_COUNTERS = 32
# Counters of a column.
SIZE = N_LEVELS * N_COUNTERS
# Nearly all values, and the least share of them, whatever the noise is.
NEARLY_ALL, _LEAST = 0.9, 0.6


def encode_locations(numbers, lower, upper):
    """Encode numbers by hat weights of the knots of all levels, each number on its own.

    Parameters
    ----------
    numbers : ndarray of shape (n,)
        Numbers that are NaN, or beyond the bounds, get no weight.
    lower, upper : float
        The cells to look into: the first level divides them into `FACTOR` cells.

    Returns
    -------
    ndarray of shape (n, SIZE)
        Non-negative, with norms of at most 1.
    """
    with np.errstate(all="ignore"):
        shares = (numbers - lower) / (upper - lower)
    is_inside = (shares >= 0) & (shares <= 1)
    steps = np.where(is_inside, shares, 0)[:, None] * float(FACTOR) ** np.arange(1, N_LEVELS + 1)
    left = np.floor(steps)
    weights = np.zeros((len(numbers), N_LEVELS, N_COUNTERS))
    for knots, weight in ((left, 1 - steps + left), (left + 1, steps - left)):
        positions = (knots % N_COUNTERS).astype(np.int64)[..., None]
        np.put_along_axis(weights, positions, weight[..., None], axis=-1)
    weights *= is_inside[:, None, None]
    return weights.reshape(len(numbers), SIZE) / np.sqrt(N_LEVELS)


def find_cells(knots, counts, std, n_values):
    """Return the cells of a grid around two neighbouring knots that hold nearly all values.

    Parameters
    ----------
    knots, counts : ndarray of shape (n_knots,)
        Noisy counts of values, each shared by the two knots around it.
    std : float
        Standard deviation of their noise.
    n_values : float

    Returns
    -------
    first, last : int or None
        Positions of knots, with a cell to spare on both sides. None if values are more spread out.
    """
    pairs = counts[:-1] + counts[1:]
    best = int(pairs.argmax())
    noise = np.sqrt(2) * std
    least = max(NEARLY_ALL * n_values - 2 * noise, _LEAST * n_values)
    if pairs[best] < max(least, find_clear(noise, len(pairs))) or n_values <= 0:
        return None
    return max(best - 1, 0), min(best + 2, len(knots) - 1)


def read_locations(counts, std, n_values, lower, upper, unit=None):
    """Return the knots of the finest level that resolves nearly all values, and their counts.

    Parameters
    ----------
    counts : ndarray of shape (SIZE,)
        Noisy sum of what `encode_locations` gives, times √N_LEVELS.
    std : float
        Standard deviation of its noise.
    n_values : float
    lower, upper : float
        As in `encode_locations`.
    unit : float, default=None
        Numbers are multiples of it: finer cells tell nothing.

    Returns
    -------
    knots, counts : ndarray or None
        Increasing knots within the bounds. None if the first level shows values in many cells: the
        wide grid, with less noise, then says as much.
    """
    counts = counts.reshape(N_LEVELS, N_COUNTERS)
    first, last = 0, FACTOR
    for level in range(N_LEVELS):
        positions = np.arange(first, last + 1)
        near = counts[level][positions % N_COUNTERS]
        n_cells = FACTOR ** (level + 1)
        knots = lower + (upper - lower) * (positions / n_cells)
        is_finest = unit is not None and (upper - lower) / n_cells < FACTOR * unit
        cells = find_cells(knots, near, std, n_values)
        if cells is None or is_finest or level == N_LEVELS - 1:
            break
        first, last = (int(positions[cell]) * FACTOR for cell in cells)
    if level == 0:
        return None, None
    if unit is not None:
        knots = np.round(knots / unit) * unit
    knots, where = np.unique(knots, return_inverse=True)
    return knots, np.bincount(where, near)
