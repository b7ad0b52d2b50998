# SPDX-License-Identifier: BSD-3-Clause
"""Marginal calibration: synthetic numeric columns match their noisy histograms.

The weights of knots do not determine the distribution between the knots. Released counts on a finer
grid do, where knots were inferred; for declared knots it is the smoothest density with the weights
that generated rows have. Calibration finds the monotone map from the codes that rows draw to
numbers of this density, so that the ranks of values stay.
"""

from dataclasses import dataclass

import numpy as np

from ..histograms.grids import find_widths
from .blocks import KnotBlock, find_power, share_below
from .columns.values import CodeScale
from .discovery.densities import Histogram, estimate_density
from .log_splines import smooth_density


@dataclass(frozen=True)
class CalibrationConstants:
    """Constants of marginal calibration. Those without a source are set by hand."""

    # Batches of generated rows, rows in one, and points per interval of distribution functions.
    n_batches: int = 20
    batch_size: int = 1000
    n_steps: int = 32
    # Powers of densities, from 0 to 1, between which distribution functions are interpolated; more
    # of them are small, where these change most.
    n_powers: int = 65
    # Standard deviation of the weights of knots of generated rows, relative to that of counts:
    # they match tables that have more of the budget (tuned on training rows of Adult and
    # bank_marketing).
    rows_std: float = 0.7
    # Densities at neighbouring knots are similar up to this factor.
    similar: float = 3.0
    # Least share of the rows' mass of an interval whose distribution is known.
    least_mass: float = 1e-9
    # Share of a uniform distribution, which keeps the codes strictly increasing.
    uniform_share: float = 1e-6


CONSTANTS = CalibrationConstants()
# Positions between two knots at which distribution functions are known: more of them near knots,
# where rows are.
_STEPS = (1 - np.cos(np.pi * np.arange(1, CONSTANTS.n_steps + 1) / CONSTANTS.n_steps)) / 2


def calibrate_scales(blocks, histograms, std, make_rows):
    """Return scales by which numbers that are drawn from rows have the released densities.

    Parameters
    ----------
    blocks : list of Block
    histograms : dict of str to list of Histogram
        Noisy histograms of the values, by column name; none of declared knots. See
        `SchemaInference`.
    std : dict of str to float
        Standard deviation of the noise on the share of a knot, by column name.
    make_rows : callable
        ``make_rows(n)`` generates n rows of weights.

    Returns
    -------
    dict of str to CodeScale
        By column name; those of numbers and dates that have values between knots.
    """
    columns = [
        _DrawDistribution(block, histograms.get(block.name, ()), std.get(block.name, 0.0))
        for block in blocks
        if block.column_type.has_knots and block.has_inner.any()
    ]
    for _ in range(CONSTANTS.n_batches if columns else 0):
        rows = make_rows(CONSTANTS.batch_size)
        for column in columns:
            column.add(rows)
    return {column.block.name: column.calibrate() for column in columns}


class _DrawDistribution:
    """Distribution of the codes of a numeric column over generated rows.

    Parameters
    ----------
    block : KnotBlock
    histograms, std
        As in `calibrate_scales`, of the column.
    """

    def __init__(self, block, histograms=(), std=0.0):
        # Rows are spread as those of the calibrated column will be.
        self.block = KnotBlock(block.name, block.column_type, block.where.start, block.scale)
        self._histograms, self._std, self._n_rows = histograms, std, 0
        n_intervals = len(block.knots) - 1
        self._from_left, self._from_right = np.zeros((2, n_intervals))
        # Masses by whether the density falls or rises, and how fast, and by interval.
        self._masses = np.zeros((2, CONSTANTS.n_powers, n_intervals))

    def add(self, rows):
        """Add rows, each with its own distribution between knots."""
        from_left, from_right, _ = self.block.split_weights(rows[:, self.block.where])
        self._n_rows += len(rows)
        self._from_left += from_left.sum(axis=0)
        self._from_right += from_right.sum(axis=0)
        masses, size, n_intervals = from_left + from_right, self._masses.size, len(self._from_left)
        power = np.sqrt(find_power(from_left, from_right)) * (CONSTANTS.n_powers - 1)
        first = np.minimum(power.astype(int), CONSTANTS.n_powers - 2)
        row = (from_right > from_left) * CONSTANTS.n_powers + first
        where = (row * n_intervals + np.arange(n_intervals)).ravel()
        to_next = masses * (power - first)
        for shift, part in ((0, masses - to_next), (n_intervals, to_next)):
            added = np.bincount(where + shift, part.ravel(), minlength=size)
            self._masses += added.reshape(self._masses.shape)

    def find_below(self):
        """Return the mass below each of `_STEPS` between two knots, (n_intervals, n_steps)."""
        powers = np.linspace(0, 1, CONSTANTS.n_powers) ** 2
        steps = _STEPS[:, None]
        falling, rising = share_below(steps, 1, powers), share_below(steps, powers, 1)
        return (falling @ self._masses[0] + rising @ self._masses[1]).T

    def calibrate(self):
        """Return the scale that maps the quantiles of rows to those of the released density."""
        block, masses = self.block, self._from_left + self._from_right
        is_free = block.has_inner & (masses > CONSTANTS.least_mass * masses.sum())
        if self._histograms:
            # The mass of other intervals may be that of a single value, whose knot was inferred.
            is_free &= self._find_narrow() | (np.histogram(block.number.cuts, block.knots)[0] > 0)
            points, counted = self._estimate()
        below = self.find_below()
        # Elsewhere, knots and breakpoints stay where they are.
        found = dict(zip(block.scale.codes.tolist(), block.scale.numbers.tolist(), strict=True))
        for run in _find_runs(is_free):
            if self._histograms:
                numbers, wanted = _select(points, counted, *block.knots[[run.start, run.stop]])
            else:
                numbers, wanted = self._smooth(run)
            if not wanted[-1] > 0:
                continue
            drawn = (np.cumsum(masses[run]) - masses[run])[:, None] + below[run]
            codes = (np.arange(run.start, run.stop)[:, None] + _STEPS).ravel()
            moved = _map_quantiles(codes - run.start, drawn.ravel(), numbers, wanted)
            inside = {c: x for c, x in found.items() if not run.start < c < run.stop}
            found = inside | dict(zip(codes.tolist(), moved.tolist(), strict=True))
        codes = np.array(sorted(found))
        numbers = np.array([found[code] for code in codes.tolist()])
        is_kept = np.r_[True, np.diff(numbers) > 0]
        return CodeScale(numbers[is_kept], codes[is_kept])

    def _smooth(self, run):
        """Return numbers, and the smoothest distribution function, in a run of intervals."""
        block = self.block
        near = np.r_[self._from_left[run], 0] + np.r_[0, self._from_right[run]]
        points, masses = smooth_density(
            block.scale.between(run.start, run.stop),
            near / near.sum(),
            self._std * self._n_rows / near.sum(),
            None if block.decimals is None else 10.0**-block.decimals,
            block.atoms,
        )
        return points, np.r_[0, np.cumsum(masses)]

    def _find_narrow(self):
        """Return intervals with one value, where no breakpoint fits, between similar densities.

        Beside a value that has far more than the next one, an interval holds so little that a small
        difference of mass would move codes far. So it would between two values of whole numbers,
        whose masses rows have.
        """
        if self.block.decimals is None:
            return False
        knots = self.block.knots
        n_between = np.round(np.diff(knots) * 10.0**self.block.decimals) - 1
        densities = self._near_knots / find_widths(knots)
        fewer, more = np.sort([densities[:-1], densities[1:]], axis=0)
        return (n_between == 1) & (more <= CONSTANTS.similar * fewer)

    @property
    def _near_knots(self):
        return np.r_[self._from_left, 0] + np.r_[0, self._from_right]

    def _estimate(self):
        """Return numbers, and their distribution function, from counts and rows."""
        last, near_knots = self._histograms[-1], self._near_knots
        near_knots *= last.counts.sum().clip(0) / max(near_knots.sum(), 1e-300)
        block = self.block
        rows = Histogram(block.knots, near_knots, CONSTANTS.rows_std * last.std, block.number.cuts)
        unit = None if block.decimals is None else 10.0**-block.decimals
        points, masses = estimate_density(
            [rows, *self._histograms], *last.knots[[0, -1]], unit, to_nearest=True
        )
        return points, np.r_[0, np.cumsum(masses)]


def _select(points, below, first, last):
    """Return the points of a range and its ends, and the mass below each."""
    inside = points[(first < points) & (points < last)]
    points = np.r_[first, inside, last], points
    below = np.interp(*points, below)
    return points[0], below - below[0]


def _map_quantiles(codes, drawn, numbers, wanted):
    """Return the number at the quantile of each code.

    A little of a uniform distribution keeps both distribution functions increasing.
    """
    share = CONSTANTS.uniform_share
    drawn, wanted = (
        (1 - share) * below / below[-1] + share * even
        for below, even in (
            (drawn, codes / codes[-1]),
            (wanted, np.linspace(0, 1, len(wanted))),
        )
    )
    mapped = np.interp(drawn, wanted, numbers)
    mapped[-1] = numbers[-1]
    return mapped


def _find_runs(flags):
    """Return the slices of the runs of True."""
    edges = np.flatnonzero(np.diff(np.r_[False, flags, False]))
    return map(slice, edges[::2], edges[1::2])
