# SPDX-License-Identifier: BSD-3-Clause
"""Marginal calibration: synthetic numeric columns match their noisy histograms.

The released weights of knots do not determine the distribution between the knots. Released counts
on a finer grid do: breakpoints divide the mass between two knots into equal shares. Calibration
moves the codes of knots and breakpoints until generated rows match these counts.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from .blocks import share_below


@dataclass(frozen=True)
class CalibrationConstants:
    """Constants of marginal calibration. Those without a source are set by hand."""

    # Batches of generated rows, rows in one, and points per interval of distribution functions.
    n_batches: int = 20
    batch_size: int = 1000
    n_steps: int = 32
    # Largest factor by which the mass of an interval changes: tables constrain the weights of
    # knots, and counts in a tail may be noise.
    max_factor: float = 1.5
    # Weight of counts relative to weights of knots (tuned on training rows of Adult and
    # bank_marketing).
    counts_weight: float = 0.7
    # Weight of the total mass, which must not change.
    total_weight: float = 1e3
    # Share of a uniform distribution, which keeps the codes strictly increasing.
    uniform_share: float = 1e-6


CONSTANTS = CalibrationConstants()


def calibrate_codes(blocks, counted, make_rows):
    """Return codes of knots and breakpoints by which numbers drawn from rows match noisy counts.

    Parameters
    ----------
    blocks : list of Block
    counted : dict of str to ndarray of shape (n_knots - 1,)
        Noisy counts of values between neighbouring knots, by column name; see `SchemaInference`.
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
        self._below = np.zeros((n_intervals, CONSTANTS.n_steps))

    def add(self, rows):
        """Add rows, each with the closed form of its distribution."""
        from_left, from_right, _ = self.block.split_weights(rows[:, self.block.where])
        self._from_left += from_left.sum(axis=0)
        self._from_right += from_right.sum(axis=0)
        steps = np.arange(1, CONSTANTS.n_steps + 1)[:, None, None] / CONSTANTS.n_steps
        below = (from_left + from_right) * share_below(steps, from_left, from_right)
        self._below += below.sum(axis=1).T

    def calibrate(self, counts):
        """Return, for each knot and breakpoint, the code at the quantile that counts require."""
        scale, masses = self.block.scale, self._from_left + self._from_right
        if not masses.sum() > 0:
            return scale.codes
        # Only intervals with breakpoints have clear counts. Others keep their mass: it may be that
        # of a single value.
        is_clear = np.histogram(self.block.number.cuts, self.block.knots)[0] > 0
        wanted = masses.copy()
        for run in _find_runs(is_clear & (masses > 0)):
            wanted[run] = _fit_masses(self._from_left[run], self._from_right[run], counts[run])
        grid = np.arange(len(masses) * CONSTANTS.n_steps + 1) / CONSTANTS.n_steps
        below = np.r_[0, (np.cumsum(masses)[:, None] - masses[:, None] + self._below).ravel()]
        # Breakpoints divide the wanted masses into equal shares.
        before = np.interp(scale.codes, np.arange(len(masses) + 1), np.r_[0, np.cumsum(wanted)])
        share = CONSTANTS.uniform_share
        below, before = (
            (1 - share) * sums / sums[-1] + share * codes / len(masses)
            for sums, codes in ((below, grid), (before, scale.codes))
        )
        return np.interp(before, below, grid)


def _find_runs(flags):
    """Return the slices of the runs of True."""
    edges = np.flatnonzero(np.diff(np.r_[False, flags, False]))
    return map(slice, edges[::2], edges[1::2])


def _fit_masses(from_left, from_right, counts):
    """Return masses of neighbouring intervals that fit generated weights and noisy counts.

    Breakpoints divide the mass of an interval evenly, so that half of it belongs to each of its
    knots. The solution minimizes the weighted squared errors of the weights of knots and of the
    counts, for the same total mass.

    Parameters
    ----------
    from_left, from_right : ndarray of shape (n_intervals,)
        Generated masses; see `KnotBlock.split_weights`.
    counts : ndarray of shape (n_intervals,)

    Returns
    -------
    ndarray of shape (n_intervals,)
    """
    masses, n_intervals = from_left + from_right, len(from_left)
    total = masses.sum()
    near_knots = (np.r_[from_left, 0] + np.r_[0, from_right]) / total
    halves = (np.eye(n_intervals + 1, n_intervals) + np.eye(n_intervals + 1, n_intervals, -1)) / 2
    weight, total_weight = CONSTANTS.counts_weight, CONSTANTS.total_weight
    factor = CONSTANTS.max_factor
    found = lsq_linear(
        np.vstack([halves, weight * np.eye(n_intervals), np.full(n_intervals, total_weight)]),
        np.r_[near_knots, weight * counts / counts.sum(), total_weight],
        bounds=(masses / total / factor - 1e-9, masses / total * factor + 1e-9),
    ).x.clip(0)
    return found / found.sum() * total
