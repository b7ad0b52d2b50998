# SPDX-License-Identifier: BSD-3-Clause
"""Marginal calibration: synthetic numeric columns match their noisy histograms.

The released weights of knots do not determine the distribution between the knots. Released counts
on a finer grid do: breakpoints divide the mass between two knots into equal shares. Calibration
moves the codes of knots and breakpoints until generated rows match these counts.
"""

from dataclasses import dataclass

import numpy as np

from ..histograms.grids import find_widths
from .blocks import find_power, share_below
from .discovery.densities import Histogram, estimate_density


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
    # Share of a uniform distribution, which keeps the codes strictly increasing.
    uniform_share: float = 1e-6


CONSTANTS = CalibrationConstants()


def calibrate_codes(blocks, counted, make_rows):
    """Return codes of knots and breakpoints by which numbers drawn from rows match noisy counts.

    Parameters
    ----------
    blocks : list of Block
    counted : dict of str to list of Histogram
        Noisy histograms of the values, by column name; see `SchemaInference`.
    make_rows : callable
        ``make_rows(n)`` generates n rows of weights.

    Returns
    -------
    dict of str to ndarray of shape (n_knots + n_cuts,)
        Codes for `CodeScale`, by column name.
    """
    found = [_CodeDistribution(block) for block in blocks if block.name in counted]
    for _ in range(CONSTANTS.n_batches if found else 0):
        rows = make_rows(CONSTANTS.batch_size)
        for part in found:
            part.add(rows)
    return {part.block.name: part.calibrate(counted[part.block.name]) for part in found}


class _CodeDistribution:
    """Distribution of the codes of a numeric column over generated rows.

    Parameters
    ----------
    block : KnotBlock
        Without calibrated codes.
    """

    def __init__(self, block):
        self.block = block
        n_intervals = len(block.knots) - 1
        self._from_left, self._from_right = np.zeros((2, n_intervals))
        # Masses by whether the density falls or rises, and how fast, and by interval.
        self._masses = np.zeros((2, CONSTANTS.n_powers, n_intervals))

    def add(self, rows):
        """Add rows, each with its own distribution between knots."""
        from_left, from_right, _ = self.block.split_weights(rows[:, self.block.where])
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

    def _find_below(self):
        """Return the mass below each step between two knots, of shape (n_intervals, n_steps)."""
        steps = np.arange(1, CONSTANTS.n_steps + 1)[:, None] / CONSTANTS.n_steps
        powers = np.linspace(0, 1, CONSTANTS.n_powers) ** 2
        falling, rising = share_below(steps, 1, powers), share_below(steps, powers, 1)
        return (falling @ self._masses[0] + rising @ self._masses[1]).T

    def calibrate(self, histograms):
        """Return, for each knot and breakpoint, the code at the quantile that counts require."""
        scale, masses = self.block.scale, self._from_left + self._from_right
        is_clear = np.histogram(self.block.number.cuts, self.block.knots)[0] > 0
        is_clear |= self._find_narrow()
        wanted = self._estimate(histograms)
        # At knots and breakpoints. Other intervals keep their mass: it may be that of a single
        # value.
        before = np.interp(scale.codes, np.arange(len(masses) + 1), np.r_[0, np.cumsum(masses)])
        for run in _find_runs(is_clear):
            first, last = np.searchsorted(scale.codes, (run.start, run.stop))
            shares = wanted[first : last + 1] - wanted[first]
            if shares[-1] > 0:
                total = before[last] - before[first]
                before[first : last + 1] = before[first] + total * shares / shares[-1]
        if not masses.sum() > 0:
            return scale.codes
        grid = np.arange(len(masses) * CONSTANTS.n_steps + 1) / CONSTANTS.n_steps
        below = np.cumsum(masses)[:, None] - masses[:, None] + self._find_below()
        below = np.r_[0, below.ravel()]
        share = CONSTANTS.uniform_share
        below, before = (
            (1 - share) * sums / sums[-1] + share * codes / len(masses)
            for sums, codes in ((below, grid), (before, scale.codes))
        )
        return np.interp(before, below, grid)

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

    def _estimate(self, histograms):
        """Return the distribution function at knots and breakpoints, from counts and rows."""
        scale, cuts, last = self.block.scale, self.block.number.cuts, histograms[-1]
        near_knots = self._near_knots
        near_knots *= last.counts.sum().clip(0) / max(near_knots.sum(), 1e-300)
        rows = Histogram(self.block.knots, near_knots, CONSTANTS.rows_std * last.std, cuts)
        decimals = self.block.decimals
        unit = None if decimals is None else 10.0**-decimals
        points, masses = estimate_density([rows, *histograms], *last.knots[[0, -1]], unit)
        return np.interp(scale.numbers, points, np.r_[0, np.cumsum(masses)])


def _find_runs(flags):
    """Return the slices of the runs of True."""
    edges = np.flatnonzero(np.diff(np.r_[False, flags, False]))
    return map(slice, edges[::2], edges[1::2])
