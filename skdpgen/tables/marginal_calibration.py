# SPDX-License-Identifier: BSD-3-Clause
"""Marginal calibration: synthetic numeric columns match their noisy histograms.

The weights of knots do not determine the distribution between the knots. For inferred knots it is
estimated from released counts on a finer grid; for declared knots it is the smoothest density with
the weights of generated rows. Calibration maps the codes that rows draw to numbers with this
distribution. The map is monotone, so the ranks of values stay.
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

    # Batches of generated rows, rows in a batch, and steps of distribution functions per interval.
    n_batches: int = 20
    batch_size: int = 1000
    n_steps: int = 32
    # Exponents from 0 to 1 (see `find_power`) by which rows are tabulated, on a quadratic grid:
    # distribution functions change most at small exponents.
    n_powers: int = 65
    # Standard deviation of the mean weights of generated rows, relative to the noise of the counts.
    # It is less, since rows match tables with more of the budget; tuned on training rows of Adult
    # and bank_marketing.
    rows_std: float = 0.7
    # Largest ratio of similar densities at neighbouring knots; see `_find_narrow`.
    similar: float = 3.0
    # Least share of the rows' mass in an interval that is calibrated.
    least_mass: float = 1e-9
    # Share of a uniform distribution that is mixed in, so that the map is strictly increasing.
    uniform_share: float = 1e-6


CONSTANTS = CalibrationConstants()
# Positions between two knots at which distribution functions are evaluated: Chebyshev points, as
# most values are near knots.
_STEPS = (1 - np.cos(np.pi * np.arange(1, CONSTANTS.n_steps + 1) / CONSTANTS.n_steps)) / 2


def calibrate_scales(blocks, histograms, std, make_rows):
    """Return scales that decode the codes of generated rows to numbers of the released densities.

    Parameters
    ----------
    blocks : list of Block
    histograms : dict of str to list of Histogram
        Noisy histograms of the values, by column name; columns with declared knots have none. See
        `SchemaInference`.
    std : dict of str to float
        Standard deviation of the noise on the share of a knot, by column name.
    make_rows : callable
        ``make_rows(n)`` generates n rows of weights.

    Returns
    -------
    dict of str to (CodeScale, float)
        By column name, with the expected total variation of the density from that of the records;
        for numbers and dates that have values between knots.
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
        # Calibrated, so that weights are split as in draws of the calibrated column.
        self.block = KnotBlock(block.name, block.column_type, block.where.start, block.scale)
        self._histograms, self._std, self._n_rows = histograms, std, 0
        self._unit = None if block.decimals is None else 10.0**-block.decimals
        n_intervals = len(block.knots) - 1
        self._from_left, self._from_right = np.zeros((2, n_intervals))
        # Masses by falling or rising density, exponent, and interval.
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
        # Share each mass linearly between the two nearest exponents of the grid.
        to_next = masses * (power - first)
        for shift, part in ((0, masses - to_next), (n_intervals, to_next)):
            added = np.bincount(where + shift, part.ravel(), minlength=size)
            self._masses += added.reshape(self._masses.shape)

    def find_below(self):
        """Return the mass of each interval below each of `_STEPS`, (n_intervals, n_steps)."""
        powers = np.linspace(0, 1, CONSTANTS.n_powers) ** 2
        steps = _STEPS[:, None]
        falling, rising = share_below(steps, 1, powers), share_below(steps, powers, 1)
        return (falling @ self._masses[0] + rising @ self._masses[1]).T

    def calibrate(self):
        """Return the scale of the quantiles of the released density, and the density's error."""
        block, masses, error = self.block, self._from_left + self._from_right, 0.0
        is_calibrated = block.has_inner & (masses.sum() > 0)
        if self._histograms:
            # Without a breakpoint, the mass may be that of a single value at an inferred knot. With
            # one, counts may show values where rows have none, as beyond the last knot but one.
            has_cut = np.histogram(block.number.cuts, block.knots)[0] > 0
            is_calibrated &= has_cut | self._find_narrow()
            points, counted, error = self._estimate()
            error *= masses.sum() / self._n_rows
        else:
            is_calibrated &= masses > CONSTANTS.least_mass * masses.sum()
        below = self.find_below()
        # Knots and breakpoints outside of calibrated intervals keep their numbers.
        found = dict(zip(block.scale.codes.tolist(), block.scale.numbers.tolist(), strict=True))
        for run in _find_runs(is_calibrated):
            if self._histograms:
                numbers, wanted = _select(points, counted, *block.knots[[run.start, run.stop]])
            else:
                numbers, wanted, part = self._smooth(run)
                error += part
            if not (wanted[-1] > 0 and masses[run].sum() > 0):
                continue
            drawn = (np.cumsum(masses[run]) - masses[run])[:, None] + below[run]
            codes = (np.arange(run.start, run.stop)[:, None] + _STEPS).ravel()
            moved = _map_quantiles(codes - run.start, drawn.ravel(), numbers, wanted)
            inside = {c: x for c, x in found.items() if not run.start < c < run.stop}
            found = inside | dict(zip(codes.tolist(), moved.tolist(), strict=True))
        codes = np.array(sorted(found))
        numbers = np.array([found[code] for code in codes.tolist()])
        is_kept = np.r_[True, np.diff(numbers) > 0]
        return CodeScale(numbers[is_kept], codes[is_kept]), error

    def _smooth(self, run):
        """Return numbers, the smoothest distribution function in a run, and its error."""
        block, weights = self.block, self._sum_weights(run)
        points, masses, error = smooth_density(
            block.scale.between(run.start, run.stop),
            weights / weights.sum(),
            self._std * self._n_rows / weights.sum(),
            self._unit,
            block.atoms,
        )
        return points, np.r_[0, np.cumsum(masses)], error * weights.sum() / self._n_rows

    def _find_narrow(self):
        """Return whether intervals hold one value, so no breakpoint, between similar densities.

        Between dissimilar ones, the interval holds so little mass that noise would move codes far.
        """
        densities = self._sum_weights() / find_widths(self.block.knots)
        lower, higher = np.sort([densities[:-1], densities[1:]], axis=0)
        return (self.block.n_between == 1) & (higher <= CONSTANTS.similar * lower)

    def _sum_weights(self, run=slice(None)):
        """Return the sums over rows of the weights of knots, in a run of intervals."""
        return np.r_[self._from_left[run], 0] + np.r_[0, self._from_right[run]]

    def _estimate(self):
        """Return numbers, their distribution function from counts and rows, and its error."""
        block, last, weights = self.block, self._histograms[-1], self._sum_weights()
        weights *= last.counts.sum().clip(0) / max(weights.sum(), 1e-300)
        rows = Histogram(block.knots, weights, CONSTANTS.rows_std * last.std, block.number.cuts)
        points, masses, error = estimate_density(
            [rows, *self._histograms], *last.knots[[0, -1]], self._unit, to_nearest=True
        )
        return points, np.r_[0, np.cumsum(masses)], error


def _select(points, below, first, last):
    """Return the points of a range, with its ends, and the mass of the range below each."""
    selected = np.r_[first, points[(first < points) & (points < last)], last]
    below = np.interp(selected, points, below)
    return selected, below - below[0]


def _map_quantiles(codes, drawn, numbers, wanted):
    """Map each code to the number at the same quantile, by the mass below both."""
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
