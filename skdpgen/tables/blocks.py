# SPDX-License-Identifier: BSD-3-Clause
"""Encoding and decoding of columns: weights of levels, or of knots and point masses."""

from dataclasses import replace
from functools import cached_property

import numpy as np

from ..exceptions import TableError
from .columns.values import CodeScale, Values

# Least part of either end in the weight of an interval of a calibrated column, so that numbers of a
# row at a knot lie in about this share of the interval. Set by hand.
LEAST_PART = 1 / 33
# Step of a Kronecker sequence of low discrepancy: the golden ratio.
_GOLDEN = (5**0.5 - 1) / 2


def make_mismatch_error(name, column_type, dtype):
    """Return the error about cells that are not as declared."""
    what, advice = column_type.describe_mismatch(dtype)
    return TableError(f"Column {name!r} holds values that {what}; {advice}.")


class Block:
    """The weights of a column in encoded rows.

    Parameters
    ----------
    name : str
    column_type : ColumnType
        The column type, from the schema.
    start : int
        First column of the block in encoded rows.
    n_levels : int
        Number of weights, without that of missing values.

    Attributes
    ----------
    where : slice
        The columns of the block in encoded rows.
    """

    def __init__(self, name, column_type, start, n_levels):
        self.name = name
        self.column_type = column_type
        self.n_levels = n_levels
        self.where = slice(start, start + n_levels + column_type.missing)

    def encode_cells(self, column, *, strict):
        """Return the code of each cell: an integer at a level, a fraction between two knots.

        Parameters
        ----------
        column : Series
        strict : bool
            Whether to raise for cells that are not as declared. Otherwise they count as missing if
            values may be missing, and their code is NaN if not.

        Returns
        -------
        ndarray of shape (n,)
            See `HatBasis`.

        Raises
        ------
        TableError
            If `strict`, for cells that are not as declared.
        """
        present, codes = self._encode(column)
        if strict and (present & np.isnan(codes)).any():
            raise make_mismatch_error(self.name, self.column_type, column.dtype)
        if self.column_type.missing:
            codes[np.isnan(codes)] = self.n_levels
        elif strict and not present.all():
            raise TableError(
                f"Column {self.name!r} has missing values; declare it with missing=True, or drop "
                "those rows."
            )
        return codes


class LevelBlock(Block):
    """One weight per level."""

    def __init__(self, name, column_type, start):
        super().__init__(name, column_type, start, column_type.n_levels)

    def _encode(self, column):
        """Return which cells are present, and their codes, NaN for undeclared levels."""
        present, found = self.column_type.encode(column)
        codes = np.full(len(present), np.nan)
        codes[present] = found
        return present, codes

    def draw(self, weights, random_state):
        """Draw a cell for each row of weights."""
        return self.make_cells(draw_levels(to_probabilities(weights), random_state))

    def make_cells(self, codes):
        """Return the cells of codes of levels."""
        return self.column_type.decode(codes, codes == self.n_levels)


class KnotBlock(Block):
    """One weight per knot, in the hat basis on the codes of the knots; and one per point mass.

    Parameters
    ----------
    name, column_type, start
        As in `Block`.
    calibrated : CodeScale, default=None
        The scale by which numbers are drawn; see `calibrate_marginals`. None: that used for
        encoding, by which the expected weights of a draw are those of its row.

    Attributes
    ----------
    scale, draw_scale : CodeScale
        For encoding, and for drawing.
    is_calibrated : bool
        Whether numbers are drawn by a calibrated scale.
    ends : ndarray of shape (n_knots,)
        Numbers at integer codes of `draw_scale`: the ends of the intervals that are drawn from.
    """

    def __init__(self, name, column_type, start, calibrated=None):
        self.number = column_type.to_number()
        self.knots = self.number.positions
        self.decimals, self.atoms = self.number.decimals, self.number.atoms or ()
        cuts = self.number.cuts or ()
        self.values = Values(self.decimals, self.atoms)
        self.scale = CodeScale.of_knots(self.knots, cuts)
        self.is_calibrated, self.draw_scale = calibrated is not None, calibrated or self.scale
        self.ends = self.draw_scale.decode(np.arange(len(self.knots)))
        super().__init__(name, column_type, start, len(self.knots) + len(self.atoms))

    @property
    def is_discrete(self):
        """Whether each value is a knot or a point mass."""
        inside = [a for a in self.atoms if self.number.lower <= a <= self.number.upper]
        return len(self.knots) + len(inside) == self.number.n_values

    def _encode(self, column):
        present, numbers = self.column_type.encode(column)
        codes = np.full(len(present), np.nan)
        codes[present] = self.scale.encode(numbers)
        if self.atoms:
            values = self._to_values(numbers)
        for code, atom in enumerate(self.atoms, start=len(self.knots)):
            codes[np.flatnonzero(present)[values == atom]] = code
        return present, codes

    def draw(self, weights, random_state):
        """Draw a cell for each row of weights."""
        from_left, from_right, others = self.split_weights(weights)
        masses = np.column_stack([from_left + from_right, others])
        drawn = draw_levels(masses, random_state)
        n_intervals = len(self.knots) - 1
        # Rows that drew a point mass or a missing value get any interval; `make_cells` overwrites
        # it.
        left = np.where(drawn < n_intervals, drawn, 0)
        chosen = np.arange(len(left)), left
        share = _draw_between(from_left[chosen], from_right[chosen], random_state)
        to_nearest = self.is_calibrated & self.has_inner[left]
        numbers = self.values.round(left + share, self.draw_scale, to_nearest, random_state)
        numbers = self.settle(numbers, self.knots[[0, -1]], random_state)
        return self.make_cells(numbers, drawn - n_intervals)

    def settle(self, numbers, ends, random_state):
        """Move numbers to cells of cycles and to steps of heaps, between common or own ends."""
        for cycle in self.column_type.cycles:
            numbers = self._rotate(numbers, *cycle, ends, random_state)
        if self.column_type.heaps:
            numbers = self._heap(numbers, ends, random_state)
        return numbers

    def _rotate(self, numbers, shares, width, origin, ends, random_state):
        """Move numbers to cells of a cycle that are drawn by their shares, within the cycle."""
        below = np.cumsum(shares)
        cells = np.searchsorted(below, random_state.uniform(0, below[-1], len(numbers)), "right")
        moved = numbers + (cells - (numbers - origin) // width % len(shares)) * width
        return self._move(numbers, moved, len(shares) * width, True, ends)

    def _heap(self, numbers, ends, random_state):
        """Round shares of numbers to the steps of heaps, unless they leave the range."""
        heaps = self.column_type.heaps
        shares = np.cumsum([share for *_, share in heaps])
        chosen = np.searchsorted(shares, random_state.uniform(size=len(numbers)))
        for position, (*step, _) in enumerate(heaps):
            length = self.column_type.measure(*step)
            numbers = self._move(numbers, numbers, length, chosen == position, ends, step)
        return numbers

    def _move(self, numbers, moved, length, is_left, ends, step=None):
        """Replace the numbers that are left by moved ones, rounded to a step if there is one."""
        # Values that are point masses have all of their cells: those one further are taken.
        for shift in (0, length, -length):
            found = moved + shift if step is None else self.column_type.snap(moved + shift, *step)
            is_value = (ends[0] <= found) & (found <= ends[1])
            is_value &= ~np.isin(found, self.atoms) & is_left
            numbers, is_left = np.where(is_value, found, numbers), is_left & ~is_value
        return numbers

    def split_weights(self, weights):
        """Split the weights of knots among intervals; see `share_between_knots`.

        Returns
        -------
        from_left, from_right : ndarray of shape (n, n_knots - 1)
            Parts of the weights of the left and of the right knot of each interval.
        others : ndarray of shape (n, n_others)
            Weights of point masses and missing values.
        """
        weights, others = np.split(to_probabilities(weights), [len(self.knots)], axis=1)
        from_left, from_right = share_between_knots(weights)
        if self.is_calibrated:
            # Numbers of rows at a knot would be tied, and no monotone map could spread them.
            masses = from_left + from_right
            least = masses * np.where(self.has_inner, LEAST_PART, 0)
            from_right = from_right.clip(least, masses - least)
            from_left = masses - from_right
        return from_left, from_right, others

    @cached_property
    def has_inner(self):
        """Whether there are values between neighbouring knots, of shape (n_knots - 1,)."""
        return self.n_between > np.histogram(self.atoms, self.knots)[0]

    @property
    def n_between(self):
        """Number of values between neighbouring knots, point masses included."""
        return np.round(np.diff(self.knots) * (self.values.unit or np.inf)) - 1

    def refine(self, n_parts):
        """Return the column type with further knots, at equally spaced codes between the knots.

        Returns
        -------
        Column or None
            None if there are fewer values than new knots.
        """
        n_knots = n_parts * (len(self.knots) - 1) + 1
        knots = self.scale.decode(np.arange(n_knots) / n_parts)
        if self.decimals is not None:
            knots = np.round(knots, self.decimals)
        # Evenly spaced knots follow from other parameters; and rounded ones may coincide.
        if self.number.knots is None or (np.diff(knots) <= 0).any():
            return None
        cuts = [cut for cut in self.number.cuts or () if cut not in knots]
        # A bound that is a point mass is no position, but still the first or last knot.
        knots = np.union1d(knots, [self.number.lower, self.number.upper]).tolist()
        number = replace(self.number, knots=knots, cuts=cuts)
        return self.column_type.from_number(number) if len(number.positions) == n_knots else None

    def _to_values(self, numbers):
        """Round numbers, and clip all but point masses, which may lie beyond the bounds."""
        if self.decimals is not None:
            numbers = np.round(numbers, self.decimals)
        clipped = np.clip(numbers, self.number.lower, self.number.upper)
        return np.where(np.isin(numbers, self.atoms), numbers, clipped)

    def make_cells(self, numbers, others):
        """Return the cells of numbers, or of point masses and missing values.

        Parameters
        ----------
        numbers : ndarray of shape (n,)
        others : ndarray of int of shape (n,)
            Index of the point mass, their number for a missing value, or negative for a number.
        """
        if self.decimals is not None:
            numbers = np.round(numbers, self.decimals) + 0.0  # no negative zero
        numbers = np.clip(numbers, self.knots[0], self.knots[-1])
        for position, atom in enumerate(self.atoms):
            numbers[others == position] = atom
        return self.column_type.decode(numbers, others == len(self.atoms))


def to_probabilities(weights):
    """Clip weights at 0 and normalize each row; a row without a positive weight is uniform."""
    weights = np.maximum(weights, 0)
    top = weights.max(axis=1, keepdims=True)
    # Sums of the largest floats overflow: first divide by the maximum.
    weights = np.where(top > 0, weights, 1) / np.where(top > 0, top, 1)
    return weights / weights.sum(axis=1, keepdims=True)


def draw_levels(probabilities, random_state):
    """Draw one level per row; levels of probability 0 are never drawn.

    Each draw has the probabilities of its row, and draws of like rows are spread evenly, with a
    smaller sampling error than independent ones: their quantiles are a Kronecker sequence.
    """
    steps = probabilities.cumsum(axis=1)
    # Equal rows are in random order, so that the draws of other columns are independent.
    order = random_state.permutation(len(steps))
    order = order[np.argsort(steps.sum(axis=1)[order], kind="stable")]
    quantiles = np.empty((len(steps), 1))
    quantiles[order, 0] = (random_state.uniform() + _GOLDEN * np.arange(len(steps))) % 1
    return (steps / steps[:, -1:] <= quantiles).sum(axis=1)


def share_between_knots(weights):
    """Split the weight of each knot among the two intervals next to it.

    Expected weights are unchanged under any split if an interval is drawn with the sum of its two
    parts as probability, and its mean is their centre of gravity. Parts in proportion to the square
    roots of the weights of the neighbouring knots keep a flat density flat, also for geometrically
    growing distances of knots, and keep a row between two knots between them.

    Returns
    -------
    from_left, from_right : ndarray of shape (n, n_knots - 1)
        For each interval, the parts of its left and of its right knot.
    """
    roots = np.pad(np.sqrt(weights), ((0, 0), (1, 1)))
    left, right = roots[:, :-2], roots[:, 2:]
    # A knot whose neighbours have no weight is drawn itself: either interval will do.
    to_right = np.ones_like(weights)
    to_right[:, -1] = 0
    np.divide(right, left + right, out=to_right, where=left + right > 0)
    to_right *= weights
    return to_right[:, :-1], (weights - to_right)[:, 1:]


def _draw_between(from_left, from_right, random_state):
    """Draw numbers in [0, 1] with mean from_right / (from_left + from_right).

    The density is a power: flat for equal arguments, a triangle if one is twice the other, and a
    point mass at 0 or 1 if one is 0.
    """
    share = random_state.uniform(size=len(from_left)) ** find_power(from_left, from_right)
    return np.where(from_right > from_left, share, 1 - share)


def share_below(shares, from_left, from_right):
    """Return the distribution function of `_draw_between` at numbers in [0, 1]."""
    with np.errstate(divide="ignore"):
        exponent = 1 / find_power(from_left, from_right)
    is_right = from_right > from_left
    below = np.where(is_right, shares, 1 - shares) ** exponent
    return np.where(is_right, below, 1 - below)


def find_power(from_left, from_right):
    """Return the exponent p of `_draw_between`: uᵖ or, if the left part is larger, 1 - uᵖ."""
    largest = np.maximum(from_left, from_right)
    return np.minimum(from_left, from_right) / np.where(largest > 0, largest, 1)
