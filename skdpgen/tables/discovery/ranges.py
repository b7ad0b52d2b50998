# SPDX-License-Identifier: BSD-3-Clause
"""Ranges and quantiles of numeric columns from noisy counts, by post-processing."""

import math
from itertools import pairwise

import numpy as np
from scipy.stats import norm

from ..blocks import share_below, share_between_knots
from ..columns.number import N_KNOTS
from ..columns.values import FINEST
from .windows import guess_range, list_windows, sum_windows

# Values are spread over some octaves; each cell of these is to hold so many deviations of noise.
_SPREAD, _SIGNAL = 24, 6.0
# How likely it is that, among all counts of a kind, mere noise is taken for values.
_FALSE_ALARM = 0.0005
# A bound that is so much smaller than the other may as well be zero.
_NEAR_ZERO = 1 / 8
# Share of the values that a range is to hold, or it counts as not resolved; and that may be left
# out of it if finer knots show that there is next to nothing.
_RESOLVED, _NOTHING = 0.9, 0.03
# Share of the quantiles that goes evenly to the cells between knots, whatever they hold.
_EVEN, _EVEN_FINE = 1e-3, 0.2
# Places between two knots at which quantiles are looked for; and how often values that many share
# are cut to the share of one knot, of what is then left.
_STEPS, _ROUNDS = 256, 10
# How fast the squares of bounds on sums of noise grow with the logarithm of the number of knots. By
# simulation, noise moves an end by five knots or more with a probability below 0.001.
_GROWTH = 6.0
# A knot that is further from the one before than this share of what lies before is far out.
_LEAP = 0.5
# In a tail, each knot is so many times as far from the median as the one before.
_FURTHER = 3.0
# So many deviations of noise are taken for no values.
_WITHIN = 2.0
# Knots that a column has where nearly all is noise.
_FEWEST = 5
# So many values of a range are counted each, as they may be few codes.
_FEW_VALUES = 64
# Parts between two knots, at most; what each is to hold, in deviations of noise; and which share of
# an interval goes evenly to all that is in it, whatever was counted.
_MOST_PARTS, _PART, _EVENLY = 8, 0.1, 0.05
# A knot counts a single value if the density there is so many times that at both neighbours; which
# is far more than the others if it is as many times what is between it and the next knot.
_FAR_MORE = 3.0
# Widths of intervals, in units of whole numbers, in which no breakpoint fits.
_NARROW = 2.5


def count_affordable(n_records, std, least, most):
    """Return how many cells of equal mass can each be told from noise.

    Parameters
    ----------
    n_records : int
    std : float
        Standard deviation of the noise on a count.
    least, most : int
        Bounds of the result.

    Returns
    -------
    int
    """
    return most if std == 0 else int(np.clip(n_records / (_SIGNAL * std), least, most))


def choose_per_octave(n_records, std):
    """Return how fine a wide grid is to be: 1, 2, 4 or 8 knots for each octave."""
    affordable = count_affordable(n_records, std, _SPREAD, _SPREAD * FINEST)
    return 2 ** int(np.log2(affordable / _SPREAD))


def find_clear(std, n_counts):
    """Return what none of so many counts of nothing reaches, but for false alarms.

    Parameters
    ----------
    std : float
        Standard deviation of the noise of each.
    n_counts : int

    Returns
    -------
    float
    """
    return std * norm.isf(_FALSE_ALARM / max(1, n_counts))


def find_range(knots, counts, std, n_values=None, unit=None, weights=None):
    """Return the range of values that were counted near knots, with noise.

    A value adds 1 to the counts, shared by the two knots around it. Windows of 1, 2, 4, ... knots
    are *full* if their sum is more than noise, of which the probability is small over all windows
    together. Where a full window begins, there are values at or above; where it ends, at or below.
    From the outermost of these *inner* edges, which do not follow what is at one end of a window
    only, the range grows outwards, step by step, to the next knot up to which counts add up to more
    than noise would, but not across zero. Then

    - it ends one knot further if the last knot holds more than values on its inner side would
      bring it, as densities go;
    - a bound that is small beside the other is zero, where that is a knot.

    Parameters
    ----------
    knots : ndarray of shape (n_knots,)
        Increasing.
    counts : ndarray of shape (n_knots,)
        Noisy counts.
    std : float
        Standard deviation of their noise.
    n_values : float, default=None
        How many values there are, as far as that is public or was released.
    unit : float, default=None
        Values are multiples of it.
    weights : ndarray of shape (n_knots,), default=None
        How usual values near each knot are; all alike by default. Noise is as large at any scale.

    Returns
    -------
    lower, upper : float
        Two different knots.
    is_resolved : bool
        Whether there was a full window and, as far as can be told, nine tenths of `n_values` are in
        the range. If there was none, the range is that of the posterior distribution, which may be
        mere noise.
    """
    starts, ends, is_resolved = _find_windows(counts, std)
    if is_resolved:
        lowest, highest = sorted((ends.min(), starts.max()))
        last = _end_range(knots, counts, std, highest, unit)
        lowest = len(knots) - 1 - lowest
        first = len(knots) - 1 - _end_range(-knots[::-1], counts[::-1], std, lowest, unit)
    else:
        first, last = guess_range(counts, std, n_values, weights)
    # A small bound of a guess on the other side of zero may as well be noise.
    farthest = _NEAR_ZERO * max(abs(knots[[first, last]]))
    if 0 in knots and (knots[first] > 0 or not is_resolved) and abs(knots[first]) < farthest:
        first = int(np.flatnonzero(knots == 0)[0])
    if 0 in knots and (knots[last] < 0 or not is_resolved) and abs(knots[last]) < farthest:
        last = int(np.flatnonzero(knots == 0)[0])
    if first == last:
        first -= first > 0 and knots[first] != 0
        last += last < len(knots) - 1
    if n_values is not None:
        within = counts[first : last + 1]
        is_resolved &= bool(within.sum() + 2 * std * len(within) ** 0.5 >= _RESOLVED * n_values)
    return knots[first], knots[last], is_resolved


def narrow_range(knots, counts, std, n_values, unit=None, wide=None):
    """Return a range within which there is nearly everything, from counts at finer knots.

    A bound moves inwards only if `find_range` says so, and what is then left out, by both grids, is
    no more than noise, and with its noise a small share of all values.

    Parameters
    ----------
    knots, counts, std, n_values, unit
        As in `find_range`; the knots lie within the range that it found on a wide grid.
    wide : tuple of (knots, counts, std), default=None
        The knots of that grid within that range.

    Returns
    -------
    lower, upper : float
        Two different knots.
    """
    first, last = np.searchsorted(knots, find_range(knots, counts, std, unit=unit)[:2])
    mirrored = wide and (-wide[0][::-1], wide[1][::-1], wide[2])
    n_below = _count_empty(knots, counts, std, n_values, wide)
    n_above = _count_empty(-knots[::-1], counts[::-1], std, n_values, mirrored)
    return knots[min(first, n_below)], knots[max(last, len(knots) - 1 - n_above)]


def quantile_knots(
    knots, counts, std, n_knots, unit=None, is_rest=False, is_fine=False, density=None
):
    """Return knots at quantiles of values that were counted near knots, with noise.

    Parameters
    ----------
    knots, counts, std
        As in `find_range`.
    n_knots : int
        How many quantiles, with both ends of `knots`; fewer where little is left beside single
        values that many share, so that no knot is mere noise.
    unit : float, default=None
        How far values are apart, if they are whole multiples of it. If there are at most 16, or at
        most twice as many as knots, all of them are knots; 64 where `is_fine`.
    is_rest : bool, default=False
        Whether they are counts of what is left beside atoms, which may be next to nothing.
    is_fine : bool, default=False
        Whether these are knots of a finer grid to count by. Half of it is also for where there are
        values that many share, to tell them from those around; and a fifth of it goes evenly to
        the cells between knots, whatever they hold.
    density : (points, masses), default=None
        As from `spread_counts`, in place of that of these counts.

    Returns
    -------
    knots : ndarray
        Increasing: the quantiles, and beside them those of the given knots that alone hold the
        share of a quantile; and in long tails, knots that grow apart to the end.
    """
    n_values = math.inf if unit is None else 1 + round((knots[-1] - knots[0]) / unit)
    if n_values <= max(2 * n_knots, _FEW_VALUES if is_fine else N_KNOTS):
        return np.linspace(knots[0], knots[-1], n_values)
    points, masses = density or spread_counts(knots, counts, std)
    if unit is not None:
        _, values = np.unique(np.round((points[1:] + points[:-1]) / 2 / unit), return_inverse=True)
    else:
        values = np.arange(len(masses))
    # One value that many share takes one knot, and leaves the others to the rest.
    whole = masses
    for _ in range(_ROUNDS):
        shares = np.bincount(values, masses)
        masses = masses * np.minimum(1, shares.sum() / n_knots / shares.clip(1e-300))[values]
    if is_fine:
        # Which value it is may be any about there: half of the knots are for that.
        masses = (whole + masses * (whole.sum() / max(masses.sum(), 1e-300))) / 2
    if std > 0 and not is_fine:
        n_knots = min(n_knots, max(_FEWEST, 2 + int(2 * masses.sum() / (_SIGNAL * std))))
    is_more = counts > find_clear(std, len(knots))
    shared = knots[is_more & (counts > counts.sum() / n_knots)]
    if (is_rest or len(shared)) and masses.sum() <= _WITHIN * std * len(counts) ** 0.5:
        n_knots = 2  # nothing else shows
    cumulative = np.r_[0, np.cumsum(masses)] / max(masses.sum(), 1e-9)
    even = _EVEN_FINE if is_fine else _EVEN
    cumulative = (1 - even) * cumulative + even * np.linspace(0, 1, len(points))
    quantiles = np.interp(np.linspace(0, cumulative[-1], n_knots), cumulative, points)
    quantiles[[0, -1]] = knots[[0, -1]]
    found = np.union1d(quantiles, shared)
    middle = np.interp(cumulative[-1] / 2, cumulative, points)
    lower, upper = -_list_tail(-middle, -found[::-1])[::-1], _list_tail(middle, found)
    return np.unique(np.r_[lower, found, upper])


def find_cuts(knots, counts, std, positions, unit=None, density=None):
    """Return values between positions that part it in equal shares.

    Parameters
    ----------
    knots, counts, std, unit, density
        As in `quantile_knots`.
    positions : ndarray
        Knots, each between the first and the last of `knots`, that a column has at last.

    Returns
    -------
    cuts : list of float
        Increasing; none where counts of so much would be mostly noise, or no two values are.
    """
    points, masses = density or spread_counts(knots, counts, std)
    cumulative, cuts = np.r_[0, np.cumsum(masses)], []
    is_single, step = _stand_out(knots, counts, std, unit), unit or 0.0
    for first, last in pairwise(positions):
        if unit is not None and last - first < _NARROW * unit:
            continue
        inside = points[(first < points) & (points < last)]
        values = np.r_[first, inside, last]
        shares = np.interp(values, points, cumulative)
        shares -= shares[0]
        n_parts = _MOST_PARTS if std == 0 else int(min(_MOST_PARTS, shares[-1] / (_PART * std)))
        # By these cuts, values of a knot would be drawn that has far more than is between.
        at_ends = counts[is_single & np.isin(knots, [first, last])].max(initial=0)
        inner = np.interp([first + step, last - step], points, cumulative)
        if n_parts < 2 or shares[-1] <= 0 or at_ends > _FAR_MORE * np.ptp(inner):
            continue
        shares = (1 - _EVENLY) * shares / shares[-1] + _EVENLY * (values - first) / (last - first)
        found = np.interp(np.arange(1, n_parts) / n_parts, shares, values)
        cuts += [cut for cut in np.unique(found).tolist() if first < cut < last]
    return cuts


def _stand_out(knots, counts, std, unit):
    """Return which knots count a single value.

    There is no other value near, or far more than the densities at the neighbours predict.
    """
    is_next = np.pad(np.diff(knots) < 1.5 * (unit or 0.0), 1, constant_values=True)
    is_more = _find_excess(knots, counts) > find_clear(std, len(counts))
    return is_more | (is_next[1:] & is_next[:-1])


def find_widths(knots):
    """Return the width of the interval around each knot, up to the middles of the next ones."""
    return np.convolve(np.diff(knots), [0.5, 0.5])


def _find_excess(knots, counts):
    """Return how far counts exceed far more than the densities at neighbouring knots predict."""
    widths = find_widths(knots)
    density = np.pad(counts.clip(0) / widths, 1)
    return counts - _FAR_MORE * widths * np.maximum(density[:-2], density[2:])


def spread_counts(knots, counts, std):
    """Return points between knots, and the mass between these that is more than noise.

    Parameters
    ----------
    knots, counts, std
        As in `find_range`.

    Returns
    -------
    points : ndarray of shape (n_points,)
        Increasing.
    masses : ndarray of shape (n_points - 1,)
        Spread as encoders draw values.
    """
    counts = _denoise(counts, std)
    from_left, from_right = (shares[0] for shares in share_between_knots(counts[None]))
    steps = np.linspace(0, 1, _STEPS + 1)[:, None]
    masses = np.diff(share_below(steps, from_left, from_right), axis=0) * (from_left + from_right)
    points = knots[:-1] + steps[:-1] * np.diff(knots)
    return np.r_[points.T.ravel(), knots[-1]], masses.T.ravel()


def find_far(knots):
    """Return which knots lie far out: each half as far again, or more, as all before it reach.

    But not the second one: one knot reaches nowhere, and without another all would be at it. And
    none if all would be, by what lies on either side: far out is far from others.

    Parameters
    ----------
    knots : ndarray of shape (n_knots,)
        Increasing.

    Returns
    -------
    ndarray of bool of shape (n_knots,)

    Examples
    --------
    >>> find_far(np.array([-9, 0, 1, 2, 3, 20, 100]))
    array([False, False, False, False, False,  True,  True])
    """
    is_far = _is_far_above(knots) | _is_far_above(-knots[::-1])[::-1]
    return is_far & ~is_far.all()


def is_beyond(values, knots):
    """Return which values lie far out, beyond the knots that do not; see `find_far`."""
    near = knots[~find_far(knots)]
    reach = _LEAP * np.ptp(near)
    return (values < near[0] - reach) | (values > near[-1] + reach)


def _is_far_above(knots):
    is_leap = np.diff(knots) > _LEAP * (knots[:-1] - knots[0])
    is_leap[:1] = False
    # From the uppermost inwards, to the first that is not.
    return np.r_[False, np.logical_and.accumulate(is_leap[::-1])[::-1]]


def _list_tail(middle, knots):
    """Return knots before the last, each so many times as far from the middle as the one before."""
    first, last = knots[-2:]
    if middle >= first:
        middle = knots[0]
    if middle >= first:
        return knots[:0]
    n_places = int(math.log((last - middle) / (first - middle), _FURTHER) - 0.5)
    return middle + (first - middle) * _FURTHER ** np.arange(1, n_places + 1)


def _denoise(counts, std):
    """Return counts, none of them negative, of which sums over halves, quarters, ... stay.

    Mass within noise goes to the other half; if both are, it is shared evenly.
    """

    def share(counts, mass):
        if mass == 0 or len(counts) == 1:
            return np.full(len(counts), mass)
        halves = np.array_split(counts, 2)
        sums, sizes = (np.array([f(half) for half in halves]) for f in (np.sum, len))
        parts = np.where(sums > _WITHIN * std * np.sqrt(sizes), sums, 0)
        parts = parts if parts.any() else sizes
        return np.concatenate([*map(share, halves, mass * parts / parts.sum())])

    return share(counts, max(counts.sum(), 0.0))


def _count_empty(knots, counts, std, n_values, wide):
    """Return how many of the first knots surely hold next to nothing, of at most all but two."""
    sums = np.cumsum(counts[:-2])
    noise = std * np.sqrt(np.arange(1, len(sums) + 1))
    is_empty = np.ones(len(sums), dtype=bool)
    if wide is not None:
        theirs, counts, std = wide
        # Values between two knots are at both: those before the last of these are wholly below.
        n_below = np.searchsorted(theirs, knots[1:-1], side="right") - 1
        others = np.r_[0, np.cumsum(counts)][n_below.clip(0)]
        # Both count the same values: averages by precision.
        variances = np.where(n_below > 0, std**2 * n_below, np.inf), noise**2
        share = 1 / (1 + variances[1] / np.maximum(variances[0], 1e-300))
        sums, noise = share * sums + (1 - share) * others, noise * np.sqrt(share)
        is_empty = sums <= _WITHIN * noise + 1e-9 * n_values
    is_empty &= sums + noise <= _NOTHING * n_values
    return np.flatnonzero(np.r_[True, is_empty])[-1]


def _find_windows(counts, std):
    """Return the first and the last knots of full windows, and whether there are any."""
    starts, ends = list_windows(len(counts))
    scores = sum_windows(counts, starts, ends) / np.sqrt(ends - starts + 1)
    # Without noise, sums of floats leave some.
    is_full = scores > max(find_clear(std, len(starts)), 1e-9 * np.abs(scores).max())
    return starts[is_full], ends[is_full], bool(is_full.any())


def _end_range(knots, counts, std, inner, unit):
    """Return the knot at which a range ends that holds the knot `inner`, and what is beyond."""
    if knots[inner] < 0 <= knots[-1]:
        n_most = np.searchsorted(knots, 0) - inner
    else:
        n_most = 0 if knots[inner] == 0 else len(knots) - 1 - inner
    # Bounds on sums of noise, which grow with the number of knots that are looked at. Each step is
    # measured from the knot before: values near to the range tell nothing of those far from it.
    n_added = np.arange(1, n_most + 1)
    noise = std * np.sqrt(n_added * (1 + _GROWTH * np.log(n_added)))
    end, last = inner, inner + n_most
    while (sums := np.cumsum(counts[end + 1 : last + 1])).size:
        is_more = sums > noise[: len(sums)]
        if not is_more.any():
            break
        end += 1 + int(is_more.argmax())
    if end in (0, len(knots) - 1) or knots[end] == 0:
        return end
    if unit is not None and knots[end + 1] - knots[end] <= unit * (1 + 1e-9):
        return end  # there are no values between these knots
    # The count at this knot from inside, if the density were that around the knot before.
    width = knots[end + 1] - knots[end - 1] if end < 2 else knots[end] - knots[end - 2]
    inside = counts[end - 1] * (knots[end] - knots[end - 1]) / width
    return end + (counts[end] > inside + std)
