# SPDX-License-Identifier: BSD-3-Clause
"""Private inference of ranges from noisy counts near the knots of a grid, by post-processing."""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from scipy.stats import norm

from .grids import FINEST


@dataclass(frozen=True)
class RangeConstants:
    """Constants of ranges. Those without a source are set by hand."""

    # Values are spread over some octaves; each cell of these is to hold so many deviations of
    # noise.
    n_octaves: int = 24
    signal: float = 6.0
    # Probability that, among all counts of a kind, mere noise is taken for values.
    false_alarm: float = 0.0005
    # A bound that is so much smaller than the other may as well be zero.
    near_zero: float = 1 / 8
    # Share of the values that a range is to hold, or it counts as not resolved; and that may be
    # left out of it if finer knots show that there is next to nothing.
    resolved: float = 0.9
    nothing: float = 0.02
    # How fast the squares of bounds on sums of noise grow with the logarithm of the number of
    # knots. By simulation, noise moves an end by five knots or more with a probability below 0.001.
    growth: float = 6.0
    # So many deviations of noise are taken for no values.
    within: float = 2.0
    # Share of nearly all values of a column.
    nearly_all: float = 0.9
    # Sizes of numbers in general: mean and deviation of their binary logarithm, and the share of
    # those above zero. They choose a range that does not show above the noise; its ends are this
    # quantile of their posterior distributions, outwards. The quantile was set on tables of 1,000
    # to 4,000 rows: a smaller range cuts amounts, and a larger one blows small counts up.
    usual_size: float = 6.0
    sizes_std: float = 6.0
    positive: float = 0.95
    quantile: float = 0.65


CONSTANTS = RangeConstants()


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
    return most if std == 0 else int(np.clip(n_records / (CONSTANTS.signal * std), least, most))


def choose_per_octave(n_records, std):
    """Return how fine a wide grid is to be: 1, 2, 4 or 8 knots for each octave."""
    affordable = count_affordable(n_records, std, CONSTANTS.n_octaves, CONSTANTS.n_octaves * FINEST)
    return 2 ** int(np.log2(affordable / CONSTANTS.n_octaves))


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
    return std * norm.isf(CONSTANTS.false_alarm / max(1, n_counts))


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
    starts, ends, is_resolved = find_windows(counts, std)
    if is_resolved:
        lowest, highest = sorted((ends.min(), starts.max()))
        last = _end_range(knots, counts, std, highest, unit)
        lowest = len(knots) - 1 - lowest
        first = len(knots) - 1 - _end_range(-knots[::-1], counts[::-1], std, lowest, unit)
    else:
        first, last = _guess_range(counts, std, n_values, weights)
    # A small bound of a guess on the other side of zero may as well be noise.
    farthest = CONSTANTS.near_zero * max(abs(knots[[first, last]]))
    if 0 in knots and (knots[first] > 0 or not is_resolved) and abs(knots[first]) < farthest:
        first = int(np.flatnonzero(knots == 0)[0])
    if 0 in knots and (knots[last] < 0 or not is_resolved) and abs(knots[last]) < farthest:
        last = int(np.flatnonzero(knots == 0)[0])
    if first == last:
        first -= first > 0 and knots[first] != 0
        last += last < len(knots) - 1
    if n_values is not None:
        within = counts[first : last + 1]
        is_resolved &= bool(
            within.sum() + 2 * std * len(within) ** 0.5 >= CONSTANTS.resolved * n_values
        )
    return knots[first], knots[last], is_resolved


def narrow_range(knots, counts, std, n_values, unit=None):
    """Return a range within which there is nearly everything, from counts at finer knots.

    A bound moves inwards only if `find_range` says so, and what is then left out is, with its
    noise, a small share of all values.

    Parameters
    ----------
    knots, counts, std, n_values, unit
        As in `find_range`; the knots lie within the range that it found on a wide grid.

    Returns
    -------
    lower, upper : float
        Two different knots.
    """
    first, last = np.searchsorted(knots, find_range(knots, counts, std, unit=unit)[:2])
    most = CONSTANTS.nothing * n_values - std * np.sqrt(np.arange(1, len(counts) - 1))
    n_below, n_above = (
        np.flatnonzero(np.r_[True, np.cumsum(side[:-2]) <= most])[-1]
        for side in (counts, counts[::-1])
    )
    return knots[min(first, n_below)], knots[max(last, len(knots) - 1 - n_above)]


def weigh_sizes(knots):
    """Return how usual numbers of the size of each knot of a wide grid are, up to a factor."""
    with np.errstate(divide="ignore"):
        octaves = np.log2(np.abs(knots))
    weights = np.where(
        knots == 0, 0.5, norm.pdf(octaves, CONSTANTS.usual_size, CONSTANTS.sizes_std)
    )
    return weights * np.where(knots < 0, 1 - CONSTANTS.positive, CONSTANTS.positive)


def find_windows(counts, std):
    """Return the first and the last knots of full windows, and whether there are any."""
    starts, ends = _list_windows(len(counts))
    scores = _sum_windows(counts, starts, ends) / np.sqrt(ends - starts + 1)
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
    noise = std * np.sqrt(n_added * (1 + CONSTANTS.growth * np.log(n_added)))
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


def _guess_range(counts, std, n_values, weights):
    """Return the first and the last knot of a range that noise hides.

    Values are spread evenly over one of the windows. Its prior weight is the geometric mean of
    those of its knots, and the likelihood of the counts is normal.
    """
    starts, ends = _list_windows(len(counts))
    widths, sums = ends - starts + 1, _sum_windows(counts, starts, ends)
    weights = np.ones(len(counts)) if weights is None else weights
    logits = _sum_windows(np.log(weights), starts, ends) / widths
    if std > 0:
        n_values = sums.clip(0) if n_values is None else n_values
        logits += n_values * (sums - n_values / 2) / (widths * std**2)
    masses = softmax(logits)
    first, last = (np.cumsum(np.bincount(where, masses)) for where in (starts, ends))
    return np.searchsorted(first, 1 - CONSTANTS.quantile), np.searchsorted(last, CONSTANTS.quantile)


def _list_windows(n_knots):
    """Return the first and the last knots of all windows of 1, 2, 4, ... knots."""
    widths = 2 ** np.arange(int(np.log2(n_knots)) + 1)
    starts = [np.arange(n_knots - width + 1) for width in widths]
    ends = [start + width - 1 for start, width in zip(starts, widths, strict=True)]
    return np.concatenate(starts), np.concatenate(ends)


def _sum_windows(numbers, starts, ends):
    """Return the sums of numbers of knots over windows."""
    sums = np.r_[0, np.cumsum(numbers)]
    return sums[ends + 1] - sums[starts]
