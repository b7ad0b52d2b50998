# SPDX-License-Identifier: BSD-3-Clause
"""Private location of numeric columns whose spread is small beside their level.

A wide grid shows in which of its cells the values are, and cannot tell 1,000,000 ± 0.01 from
1,000,000 ± 10,000. A second histogram has levels: each divides the cells of the one before by
`FACTOR`. The knots of a level share `N_COUNTERS` counters, modulo that number. Read from coarse to
fine, they are unambiguous: as long as nearly all values are at two neighbouring knots, only the
knots around these matter at the next level. So few counters cover 30 bits in one release.

A column may have several clusters of values that stand apart, such as a sentinel beside ages. Each
has counters of its own, at no cost: a value is in one cluster at most.
"""

from dataclasses import dataclass

import numpy as np

from ...histograms.ranges import CONSTANTS as RANGE
from ...histograms.ranges import find_clear


@dataclass(frozen=True)
class LocationConstants:
    """Constants of locations. Those without a source are set by hand."""

    # Least share of values that are nearly all, whatever the noise is.
    least: float = 0.6
    # Most clusters of a column, for memory; and the least share of its values in one, below which
    # noise on a mean hides it.
    max_clusters: int = 3
    min_share: float = 0.003


CONSTANTS = LocationConstants()
# Codes: each level divides a cell into so many; 10 levels resolve one part in 2^30 of a cell.
N_LEVELS, FACTOR = 10, 8
# More than FACTOR times the three cells that are kept of a level.
N_COUNTERS = 32
# Counters of a cluster; and codes of a level, the last of which is next to the first counter.
SIZE, _SPAN = N_LEVELS * N_COUNTERS, N_COUNTERS + 1


def encode_locations(numbers, clusters):
    """Encode the numbers of a column by their position in its clusters, each number on its own.

    Clusters are disjoint cells, each of which the first level divides into `FACTOR` cells. Numbers
    that are NaN, or in no cluster, have the last code; see `place_counters`.
    """
    codes = np.full((len(numbers), N_LEVELS), float(len(clusters) * _SPAN))
    for i, (lower, upper) in enumerate(clusters):
        with np.errstate(all="ignore"):
            shares = (numbers - lower) / (upper - lower)
        is_inside = (shares >= 0) & (shares <= 1)
        steps = shares[is_inside, None] * float(FACTOR) ** np.arange(1, N_LEVELS + 1)
        left = np.floor(steps)
        codes[is_inside] = i * _SPAN + left % N_COUNTERS + (steps - left)
    return codes


def place_counters(n_clusters):
    """Return the sizes and the places of the counts of levels, as `LevelCountsMechanism` has them.

    Knots of a level of a cluster take turns at its counters, whose sums are those of `SIZE` numbers
    for each cluster. `n_clusters` are those of each column.
    """
    sizes, places, start = [], [], 0
    turns = np.arange(_SPAN) % N_COUNTERS
    for n in n_clusters:
        sizes += N_LEVELS * [n * _SPAN + 1]
        for level in range(N_LEVELS):
            first = start + SIZE * np.arange(n)[:, None] + level * N_COUNTERS
            places.append(np.append(first + turns, -1))
        start += n * SIZE
    return sizes, np.concatenate(places)


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
    least = max(RANGE.nearly_all * n_values - 2 * noise, CONSTANTS.least * n_values)
    if pairs[best] < max(least, find_clear(noise, len(pairs))) or n_values <= 0:
        return None
    return max(best - 1, 0), min(best + 2, len(knots) - 1)


def find_clusters(knots, counts, std, n_values):
    """Return disjoint cells of a grid with values that stand apart from all others.

    Parameters
    ----------
    knots, counts, std, n_values
        As in `find_cells`.

    Returns
    -------
    list of (first, last)
        Positions of knots; first the cells that hold nearly all values, if there are any.
    """
    noise, pairs = np.sqrt(2) * std, counts[:-1] + counts[1:]
    beside = np.r_[0.0, counts[:-2]] + np.r_[counts[2:], 0.0]
    is_apart = pairs > max(CONSTANTS.min_share * n_values, find_clear(noise, len(pairs)))
    is_apart &= beside <= (1 - RANGE.nearly_all) * pairs + 2 * noise
    found = [find_cells(knots, counts, std, n_values)]
    for best in sorted(np.flatnonzero(is_apart), key=pairs.__getitem__, reverse=True):
        found.append((max(int(best) - 1, 0), min(int(best) + 2, len(knots) - 1)))
    chosen = []
    for cells in found:
        # Not even ends are common: a value adds to one cluster at most.
        if cells and all(cells[1] < first or last < cells[0] for first, last in chosen):
            chosen.append(cells)
    return chosen[: CONSTANTS.max_clusters]


def read_locations(counts, std, n_values, lower, upper, unit=None):
    """Return the knots of the finest level that resolves nearly all values, and their counts.

    Noise hides how many values are beyond them. Unless the cells of the level before seem to hold
    all values, its knots stay around the finer ones.

    Parameters
    ----------
    counts : ndarray of shape (SIZE,)
        Noisy counts of what `encode_locations` gives.
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
    finest = 0.0 if unit is None else FACTOR * unit
    levels, _ = _descend(counts, std, n_values, lower, upper, finest)
    if len(levels) == 1:
        return None, None
    knots, near = levels[-1]
    before = levels[-2][1]
    if (before[:-1] + before[1:]).max() < n_values:
        knots, near = _join_levels(*levels[-2:])
    if unit is not None:
        knots = np.round(knots / unit) * unit
    knots, where = np.unique(knots, return_inverse=True)
    return knots, np.bincount(where, near)


def _join_levels(coarse, fine):
    """Return the knots of a level, with those of the coarser one beyond them, and their counts.

    A coarse hat is a sum of fine ones, with linear weights. Less those of one side, its count at a
    common knot is that of a hat with an arm of either level.
    """
    (knots, near), (inner, counts) = coarse, fine
    first, last = np.searchsorted(knots, inner[[0, -1]])
    weights, counts = 1 - np.arange(1, FACTOR) / FACTOR, counts.copy()
    if first > 0:
        counts[0] = near[first] - weights @ counts[1:FACTOR]
    if last < len(knots) - 1:
        counts[-1] = near[last] - weights @ counts[-2 : -FACTOR - 1 : -1]
    joined = np.r_[knots[:first], inner, knots[last + 1 :]]
    return joined, np.r_[near[:first], counts, near[last + 1 :]]


def read_value(counts, std, n_values, lower, upper, unit=None):
    """Return the one value that nearly all values in a cluster equal, or None if they differ.

    Where cells are wider than a unit, it is the number with the fewest digits that is in them; None
    if these are so many that any number would have one, such as 1/3, as it equals no value.

    Parameters are as in `read_locations`.
    """
    finest = 0.0 if unit is None else unit / 2
    levels, cells = _descend(counts, std, n_values, lower, upper, finest)
    if cells is None:
        return None
    knots, near = levels[-1]
    best = int((near[:-1] + near[1:]).argmax())
    pair, weights = knots[best : best + 2], near[best : best + 2].clip(0)
    value = float(pair @ weights / weights.sum())
    if unit is not None and pair[1] - pair[0] <= unit:
        return round(value / unit) * unit
    for n_digits in range(1, 18):
        found = float(f"{value:.{n_digits}g}")
        if pair[0] <= found <= pair[1]:
            is_chance = 10.0 ** (n_digits + 1) * (pair[1] - pair[0]) > abs(value)
            return None if is_chance and found != 0 else found
    return None


def _descend(counts, std, n_values, lower, upper, finest):
    """Read levels while nearly all values are in few cells that are wider than `finest`.

    Returns
    -------
    levels : list of (knots, counts)
        Knots of each level around the cells of the level before.
    cells : (int, int) or None
        As of `find_cells`, among the knots of the last level.
    """
    counts = counts.reshape(N_LEVELS, N_COUNTERS)
    levels, first, last = [], 0, FACTOR
    for level in range(N_LEVELS):
        positions = np.arange(first, last + 1)
        near = counts[level][positions % N_COUNTERS]
        n_cells = FACTOR ** (level + 1)
        knots = lower + (upper - lower) * (positions / n_cells)
        levels.append((knots, near))
        cells = find_cells(knots, near, std, n_values)
        if cells is None or (upper - lower) / n_cells < finest or level == N_LEVELS - 1:
            break
        first, last = (int(positions[cell]) * FACTOR for cell in cells)
    return levels, cells
