# SPDX-License-Identifier: BSD-3-Clause
"""Marginal calibration: synthetic numeric columns match their noisy histograms.

Rows have the weights of knots that were released, and many laws of numbers do: the weight of a knot
says nothing of which side of it numbers are on, or how near. Counts on a finer grid, by which cuts
part what is between two knots in equal shares, say that.
"""

import numpy as np
from scipy.optimize import lsq_linear

from .blocks import share_below

# Rows that are made to see what they have, in pieces; and places in an interval that are looked at.
_N_PIECES, _PIECE, _STEPS = 20, 1000, 32
# Largest factor by which the mass of rows between two knots changes. Tables constrain the knots,
# and counts of a tail may be mere noise.
_MOST = 1.5
# How much counts weigh beside knots (found on Adult and bank_marketing, on training rows).
_WEIGHT = 0.7
# How much the total weighs, which is to stay.
_EXACTLY = 1e3
# A share that goes evenly to all places, so that no two of them become one.
_EVENLY = 1e-6


def calibrate_codes(blocks, counted, make_rows):
    """Return where knots and cuts are to be when numbers are drawn, so that those are even.

    Parameters
    ----------
    blocks : list of Block
    counted : dict of str to ndarray
        From `SchemaInference`: how many numbers are between knots, by columns.
    make_rows : callable
        ``make_rows(n)`` gives n rows of weights, in which numbers are drawn.

    Returns
    -------
    dict of str to ndarray
        Places of `PlaceScale`, by columns.
    """
    made = [_Made(block) for block in blocks if block.name in counted]
    for _ in range(_N_PIECES if made else 0):
        rows = make_rows(_PIECE)
        for part in made:
            part.add(rows)
    return {part.block.name: part.encode_cells(counted[part.block.name]) for part in made}


class _Made:
    """Distribution of the codes of a numeric column over generated rows.

    Parameters
    ----------
    block : KnotBlock
        In which numbers are drawn where they are encoded.
    """

    def __init__(self, block):
        self.block = block
        n_intervals = len(block.knots) - 1
        self._from_left, self._from_right = np.zeros((2, n_intervals))
        self._below = np.zeros((n_intervals, _STEPS))

    def add(self, rows):
        from_left, from_right, _ = self.block.find_shares(rows[:, self.block.where])
        self._from_left += from_left.sum(axis=0)
        self._from_right += from_right.sum(axis=0)
        steps = np.arange(1, _STEPS + 1)[:, None, None] / _STEPS
        below = (from_left + from_right) * share_below(steps, from_left, from_right)
        self._below += below.sum(axis=1).T

    def encode_cells(self, counted):
        """Return at which quantiles of the law there is what was counted before knots and cuts."""
        scale, masses = self.block.scale, self._from_left + self._from_right
        is_clear = np.histogram(self.block.number.cuts, self.block.knots)[0] > 0
        if not masses.sum() > 0:
            return scale.places
        wanted = masses.copy()
        # Knots beside what counts do not show clearly stay: a single value may be at them.
        for start, end in _find_runs(is_clear & (masses > 0)):
            run = slice(start, end)
            wanted[run] = _compromise(self._from_left[run], self._from_right[run], counted[run])
        places = np.arange(len(masses) * _STEPS + 1) / _STEPS
        law = np.r_[0, (np.cumsum(masses)[:, None] - masses[:, None] + self._below).ravel()]
        # Cuts part what is wanted in equal shares.
        before = np.interp(scale.places, np.arange(len(masses) + 1), np.r_[0, np.cumsum(wanted)])
        law, before = (
            (1 - _EVENLY) * sums / sums[-1] + _EVENLY * where / len(masses)
            for sums, where in ((law, places), (before, scale.places))
        )
        return np.interp(before, law, places)


def _find_runs(flags):
    """Return where runs of True begin, and where they end."""
    edges = np.flatnonzero(np.diff(np.r_[False, flags, False]))
    return zip(edges[::2], edges[1::2], strict=True)


def _compromise(from_left, from_right, counted):
    """Return what is to be in neighbouring intervals, between what rows have and what was counted.

    Cuts part intervals evenly, so that half of what is in one belongs to each of its knots. The
    squared errors of that, and of the counts, are least. The total is unchanged.
    """
    made, n_intervals = from_left + from_right, len(from_left)
    total = made.sum()
    near_knots = (np.r_[from_left, 0] + np.r_[0, from_right]) / total
    halves = (np.eye(n_intervals + 1, n_intervals) + np.eye(n_intervals + 1, n_intervals, -1)) / 2
    found = lsq_linear(
        np.vstack([halves, _WEIGHT * np.eye(n_intervals), np.full(n_intervals, _EXACTLY)]),
        np.r_[near_knots, _WEIGHT * counted / counted.sum(), _EXACTLY],
        bounds=(made / total / _MOST - 1e-9, made / total * _MOST + 1e-9),
    ).x.clip(0)
    return found / found.sum() * total
