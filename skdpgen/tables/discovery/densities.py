# SPDX-License-Identifier: BSD-3-Clause
"""Densities of numeric columns from noisy histograms, and knots and breakpoints by these."""

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import nnls
from scipy.stats import norm

from ...histograms.grids import find_widths, knot_weights
from ...histograms.ranges import CONSTANTS as RANGE
from ...histograms.ranges import find_clear, find_windows
from ...quality import MOVED
from ...registry import savable
from ..blocks import share_below, share_between_knots
from ..columns.number import N_KNOTS
from ..columns.values import CodeScale


@dataclass(frozen=True)
class DensityConstants:
    """Constants of densities; all are set by hand."""

    # Fewest and most bins, and points of a bin at which the weights of knots are averaged.
    min_bins: int = 64
    max_bins: int = 128
    n_points: int = 8
    # Order of the differences that are penalized: a parabola has none.
    order: int = 3
    # Weights of the penalty among which the evidence decides.
    penalties: tuple = tuple(10.0**k for k in range(-6, 7))
    # Least standard deviation of a count, relative to the average one.
    min_std: float = 1e-3
    # Probability that noise alone widens a range at one of its ends, and the largest share of
    # values that are taken for noise there: more of them would narrow the quartiles.
    false_alarm: float = 0.05
    beyond: float = 0.005
    # Points between two knots of a density without a prior.
    n_steps: int = 256


@dataclass(frozen=True)
class KnotConstants:
    """Constants of knots and breakpoints; all are set by hand."""

    # Share of the quantiles that goes evenly to the cells between knots, whatever they hold; of the
    # knots of a column, and of a finer grid to count by.
    even: float = 1e-3
    even_fine: float = 0.2
    # How often values that many share are cut to the share of one knot, of what is then left.
    n_rounds: int = 10
    # A knot that is further from the one before than this share of what lies before is far out.
    leap: float = 0.5
    # In a tail, each knot is so many times as far from the median as the one before.
    further: float = 3.0
    # Knots that a column has where nearly all is noise.
    fewest: int = 5
    # So many values of a range are counted each, as they may be few codes.
    few_values: int = 64
    # Parts between two knots, at most; what each is to hold, in deviations of noise; and which
    # share of an interval goes evenly to all that is in it, whatever was counted.
    max_parts: int = 8
    part: float = 0.1
    evenly: float = 0.05
    # A knot counts a single value if the density there is so many times that at both neighbours;
    # which is far more than the others if it is as many times what is between it and the next knot.
    far_more: float = 3.0
    # Widths of intervals, in units of whole numbers, in which no breakpoint fits.
    narrow: float = 2.5


DENSITY, KNOTS = DensityConstants(), KnotConstants()


@savable
@dataclass(frozen=True)
class Histogram:
    """Noisy counts of values in the hat basis on the codes of knots.

    Attributes
    ----------
    knots, counts : ndarray of shape (n_knots,)
    std : float
        Standard deviation of the noise on a count.
    cuts : sequence of float, default=()
        Breakpoints between knots.
    """

    knots: np.ndarray
    counts: np.ndarray
    std: float
    cuts: Sequence = ()

    @property
    def scale(self):
        """The map between numbers and codes."""
        return CodeScale.of_knots(self.knots, self.cuts)

    def weigh(self, numbers):
        """Return the weights of numbers at the knots, which are the last axis."""
        return knot_weights(self.scale.encode(numbers), np.arange(len(self.counts)))

    def clip(self, lower, upper):
        """Return the knots of a range, with its ends, and their counts."""
        first = max(np.searchsorted(self.knots, lower, side="right") - 1, 0)
        where = slice(first, np.searchsorted(self.knots, upper) + 1)
        return self.knots[where].clip(lower, upper), self.counts[where]

    def spread(self):
        """Return codes, and the masses between these as encoders draw them."""
        return spread_counts(np.arange(len(self.counts), dtype=float), self.counts, self.std)


def estimate_density(histograms, lower, upper, unit=None, *, to_nearest=False):
    """Estimate the masses of bins by penalized weighted least squares.

    The histograms are independent, and weighted by their precision. The penalty is that of third
    differences of the masses of bins that are equal in arsinh((x - median) / (IQR / 2)), so that
    the estimate follows location and scale; its weight has the largest evidence, as in a Gaussian
    model with this prior. No mass is negative, and the density falls in tails whose counts
    may be noise: such a count at a far end would move the mean.

    Parameters
    ----------
    histograms : list of Histogram
        The last one has a knot wherever values are.
    lower, upper : float
        Values outside are at these bounds.
    unit : float, default=None
        Values are whole multiples of it. If there are few, each has a mass of its own.
    to_nearest : bool, default=False
        Whether numbers are rounded to the nearest value, and not at random between two.

    Returns
    -------
    points : ndarray of shape (n_bins + 1,)
        Increasing: the edges of bins.
    masses : ndarray of shape (n_bins,)
    error : float
        Expected total variation from the true density, by the posterior of the masses.
    """
    last, order = histograms[-1], DENSITY.order
    if last.std == 0:
        # An exact histogram needs no prior, nor another one.
        codes, masses = last.spread()
        return last.scale.decode(codes), masses, 0.0
    total = max(last.counts.sum(), 1.0)
    if is_few := _are_few(lower, upper, unit):
        values = np.linspace(lower, upper, 1 + round((upper - lower) / unit))
        middles = values[:, None]
    else:
        n_bins = int(np.clip(2 * len(last.counts), DENSITY.min_bins, DENSITY.max_bins))
        fine = _place_bins(last, lower, upper, n_bins * DENSITY.n_points)
        middles = ((fine[1:] + fine[:-1]) / 2).reshape(n_bins, DENSITY.n_points)
        points = fine[:: DENSITY.n_points]
    n_bins, weights, counts = len(middles), [], []
    for part in histograms:
        std = max(part.std, DENSITY.min_std * total / len(part.counts))
        weights.append(part.weigh(middles).mean(axis=1).T / std)
        counts.append(part.counts / std)
    weights, counts = np.vstack(weights), np.concatenate(counts)
    roughness = np.diff(np.eye(n_bins), min(order, n_bins - 1), axis=0) * (n_bins / total)
    penalties = np.array(DENSITY.penalties)
    penalty = penalties[_evidence(weights, counts, roughness, penalties).argmax()]
    weights = np.vstack([weights, math.sqrt(penalty) * roughness])
    masses = _solve(weights, np.r_[counts, np.zeros(len(roughness))])
    # Masses that are 0 are held there.
    precision = (weights.T @ weights)[np.ix_(masses > 0, masses > 0)]
    variances = np.diag(np.linalg.pinv(precision, hermitian=True))
    error = min(1.0, MOVED * np.sqrt(variances.clip(0)).sum() / total)
    if is_few and to_nearest:
        return np.r_[values[0], (values[1:] + values[:-1]) / 2, values[-1]], masses, error
    if is_few:
        # Values are drawn between each other, and then rounded.
        return *spread_counts(values, masses, 0.0), error
    return points, _order_tails(points, masses, histograms), error


def trim_density(histograms, lower, upper, unit=None):
    """Estimate the density of a range without values at its ends that noise alone would show.

    Parameters and the first two results are as in `estimate_density`. Values that are left out of
    the range are at its ends.
    """
    std, bounds = histograms[-1].std, np.array([lower, upper])
    points, masses, _ = estimate_density(histograms, lower, upper, unit, to_nearest=True)
    below = np.r_[0, np.cumsum(masses)]
    noise = min(std * norm.isf(DENSITY.false_alarm), DENSITY.beyond * below[-1])
    if noise > 0:
        ends = np.interp([noise, below[-1] - noise], below, points)
        ends = ends if unit is None else np.round(ends / unit) * unit
        ends[(bounds == 0) & (np.abs(ends) < RANGE.near_zero * np.abs(ends).max())] = 0
        lower, upper = ends if ends[0] < ends[1] else bounds
    if std > 0 and _are_few(lower, upper, unit):
        return estimate_density(histograms, lower, upper, unit)[:2]
    inner = np.r_[lower, points[(lower < points) & (points < upper)], upper]
    return inner, np.diff(np.r_[0, np.interp(inner[1:-1], points, below), below[-1]])


def _are_few(lower, upper, unit):
    """Return whether each of the values of a range can have a mass of its own."""
    return unit is not None and round((upper - lower) / unit) < DENSITY.max_bins


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
    steps = np.linspace(0, 1, DENSITY.n_steps + 1)[:, None]
    masses = np.diff(share_below(steps, from_left, from_right), axis=0) * (from_left + from_right)
    points = knots[:-1] + steps[:-1] * np.diff(knots)
    return np.r_[points.T.ravel(), knots[-1]], masses.T.ravel()


def _denoise(counts, std):
    """Return counts, none of them negative, of which sums over halves, quarters, ... stay.

    Mass within noise goes to the other half; if both are, it is shared evenly.
    """

    def share(counts, mass):
        if mass == 0 or len(counts) == 1:
            return np.full(len(counts), mass)
        halves = np.array_split(counts, 2)
        sums, sizes = (np.array([f(half) for half in halves]) for f in (np.sum, len))
        parts = np.where(sums > RANGE.within * std * np.sqrt(sizes), sums, 0)
        parts = parts if parts.any() else sizes
        return np.concatenate([*map(share, halves, mass * parts / parts.sum())])

    return share(counts, max(counts.sum(), 0.0))


def _order_tails(points, masses, histograms):
    """Return masses whose density falls in both tails, beyond all neighbours with clear counts."""
    found = [(part.knots, *find_windows(part.counts, part.std)) for part in histograms]
    clear = [
        (knots[ends.min()], knots[starts.max()]) for knots, starts, ends, is_any in found if is_any
    ]
    if not clear:
        return masses
    first, last = min(end for end, _ in clear), max(start for _, start in clear)
    first, last, widths = min(first, last), max(first, last), np.diff(points)
    masses = masses.copy()
    for is_tail, sign in ((points[1:] <= first, 1), (points[:-1] >= last, -1)):
        density = sign * np.sort(sign * masses[is_tail] / widths[is_tail])
        total = density @ widths[is_tail]
        if total > 0:
            masses[is_tail] = density * widths[is_tail] * (masses[is_tail].sum() / total)
    return masses


def _solve(weights, counts):
    """Return the non-negative solution of least squares; never raise, as the budget is spent."""
    with contextlib.suppress(RuntimeError):
        return nnls(weights, counts, maxiter=100 * weights.shape[1])[0]
    return np.linalg.lstsq(weights, counts)[0].clip(0)


def _place_bins(histogram, lower, upper, n_points):
    """Return the edges of bins of equal width in the coordinate of the density."""
    codes, masses = histogram.spread()
    points, cumulative = histogram.scale.decode(codes), np.r_[0, np.cumsum(masses)]
    quantiles = np.interp(np.array([0.25, 0.5, 0.75]) * cumulative[-1], cumulative, points)
    scale = max((quantiles[2] - quantiles[0]) / 2, 1e-6 * (upper - lower))
    ends = np.arcsinh((np.array([lower, upper]) - quantiles[1]) / scale)
    points = quantiles[1] + scale * np.sinh(np.linspace(*ends, n_points + 1))
    points[[0, -1]] = lower, upper
    return points


def _evidence(weights, counts, roughness, penalties):
    """Return the log evidence of a Gaussian model for each penalty, but for a constant."""
    data, prior = weights.T @ weights, roughness.T @ roughness
    # Both are about as large, so that one basis, in which both are diagonal, serves all penalties.
    scale = np.trace(data) / np.trace(prior)
    both = data + scale * prior
    # Where nothing is counted, only the penalty decides.
    both += 1e-12 * np.trace(both) / len(both) * np.eye(len(both))
    shares, vectors = eigh(data, both)
    shares = shares.clip(0, 1)
    values = shares + (penalties / scale)[:, None] * (1 - shares)
    values = values.clip(1e-300)
    explained = ((vectors.T @ (weights.T @ counts)) ** 2 / values).sum(axis=1)
    return 0.5 * (explained - np.log(values).sum(axis=1) + len(roughness) * np.log(penalties))


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
    if n_values <= max(2 * n_knots, KNOTS.few_values if is_fine else N_KNOTS):
        return np.linspace(knots[0], knots[-1], n_values)
    points, masses = density or spread_counts(knots, counts, std)
    if unit is not None:
        _, values = np.unique(np.round((points[1:] + points[:-1]) / 2 / unit), return_inverse=True)
    else:
        values = np.arange(len(masses))
    # One value that many share takes one knot, and leaves the others to the rest.
    whole = masses
    for _ in range(KNOTS.n_rounds):
        shares = np.bincount(values, masses)
        masses = masses * np.minimum(1, shares.sum() / n_knots / shares.clip(1e-300))[values]
    if is_fine:
        # Which value it is may be any about there: half of the knots are for that.
        masses = (whole + masses * (whole.sum() / max(masses.sum(), 1e-300))) / 2
    if std > 0 and not is_fine:
        n_knots = min(n_knots, max(KNOTS.fewest, 2 + int(2 * masses.sum() / (RANGE.signal * std))))
    is_more = counts > find_clear(std, len(knots))
    shared = knots[is_more & (counts > counts.sum() / n_knots)]
    if (is_rest or len(shared)) and masses.sum() <= RANGE.within * std * len(counts) ** 0.5:
        n_knots = 2  # nothing else shows
    cumulative = np.r_[0, np.cumsum(masses)] / max(masses.sum(), 1e-9)
    even = KNOTS.even_fine if is_fine else KNOTS.even
    cumulative = (1 - even) * cumulative + even * np.linspace(0, 1, len(points))
    quantiles = np.interp(np.linspace(0, cumulative[-1], n_knots), cumulative, points)
    quantiles[[0, -1]] = knots[[0, -1]]
    found = np.union1d(quantiles, shared)
    middle = np.interp(cumulative[-1] / 2, cumulative, points)
    lower, upper = -_list_tail(-middle, -found[::-1])[::-1], _list_tail(middle, found)
    return np.unique(np.r_[lower, found, upper])


def _list_tail(middle, knots):
    """Return knots before the last, each so many times as far from the middle as the one before."""
    first, last = knots[-2:]
    if middle >= first:
        middle = knots[0]
    if middle >= first:
        return knots[:0]
    n_places = int(math.log((last - middle) / (first - middle), KNOTS.further) - 0.5)
    return middle + (first - middle) * KNOTS.further ** np.arange(1, n_places + 1)


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
        if unit is not None and last - first < KNOTS.narrow * unit:
            continue
        inside = points[(first < points) & (points < last)]
        values = np.r_[first, inside, last]
        shares = np.interp(values, points, cumulative)
        shares -= shares[0]
        n_parts = (
            KNOTS.max_parts
            if std == 0
            else int(min(KNOTS.max_parts, shares[-1] / (KNOTS.part * std)))
        )
        # By these cuts, values of a knot would be drawn that has far more than is between.
        at_ends = counts[is_single & np.isin(knots, [first, last])].max(initial=0)
        inner = np.interp([first + step, last - step], points, cumulative)
        if n_parts < 2 or shares[-1] <= 0 or at_ends > KNOTS.far_more * np.ptp(inner):
            continue
        shares = (1 - KNOTS.evenly) * shares / shares[-1] + KNOTS.evenly * (values - first) / (
            last - first
        )
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


def _find_excess(knots, counts):
    """Return how far counts exceed far more than the densities at neighbouring knots predict."""
    widths = find_widths(knots)
    density = np.pad(counts.clip(0) / widths, 1)
    return counts - KNOTS.far_more * widths * np.maximum(density[:-2], density[2:])


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


def _is_far_above(knots):
    is_leap = np.diff(knots) > KNOTS.leap * (knots[:-1] - knots[0])
    is_leap[:1] = False
    # From the uppermost inwards, to the first that is not.
    return np.r_[False, np.logical_and.accumulate(is_leap[::-1])[::-1]]


def is_beyond(values, knots):
    """Return which values lie far out, beyond the knots that do not; see `find_far`."""
    near = knots[~find_far(knots)]
    reach = KNOTS.leap * np.ptp(near)
    return (values < near[0] - reach) | (values > near[-1] + reach)
