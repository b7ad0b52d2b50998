# SPDX-License-Identifier: BSD-3-Clause
"""Encoding and decoding of columns: weights of levels, or of knots and point masses."""

import numpy as np

from ..curator.cells import encode_levels
from ..exceptions import TableError
from .columns.cells import find_present
from .columns.values import PlaceScale, Values, find_between


def wrong_cells(name, kind, dtype):
    """Return an error about cells that are not as declared."""
    what, advice = kind.describe_mismatch(dtype)
    return TableError(f"Column {name!r} holds values that {what}; {advice}.")


class Block:
    """The place of a column in encoded rows, and what its weights stand for.

    Parameters
    ----------
    name : str
    kind : object
        From the schema.
    start : int
        First column of the block.
    n_levels : int
        Number of weights, without that for missing values.
    """

    def __init__(self, name, kind, start, n_levels):
        self.name = name
        self.kind = kind
        self.n_levels = n_levels
        self.where = slice(start, start + n_levels + kind.missing)

    def encode_cells(self, column, *, strict):
        """Return the place of each cell: its level, or between which it is; see `hats`.

        Parameters
        ----------
        column : Series
        strict : bool
            Whether cells that are not as declared are refused. Else they count as missing where
            values may be missing, and are NaN elsewhere.

        Returns
        -------
        ndarray of shape (n,)
        """
        present, places = self._find(column)
        if strict and (present & np.isnan(places)).any():
            raise wrong_cells(self.name, self.kind, column.dtype)
        if self.kind.missing:
            places[np.isnan(places)] = self.n_levels
        elif strict and not present.all():
            raise TableError(
                f"Column {self.name!r} has missing values; declare it with missing=True, or drop "
                "those rows."
            )
        return places


class LevelBlock(Block):
    """One weight per level."""

    def __init__(self, name, kind, start):
        super().__init__(name, kind, start, len(kind.levels))

    def _find(self, column):
        """Return which cells are present, and their places, NaN for those that have none."""
        labels = column.to_numpy(dtype=object)
        present = find_present(labels)
        codes = np.full(len(labels), -1)
        codes[present] = encode_levels(labels[present], self.kind.levels)
        if self.kind.other is not None:
            codes[present & (codes < 0)] = self.kind.levels.index(self.kind.other)
        return present, np.where(codes < 0, np.nan, codes)

    def draw(self, weights, random_state):
        """Draw a cell for each row of weights."""
        return self.make_cells(_draw_levels(_to_probabilities(weights), random_state))

    def make_cells(self, codes):
        """Return the cells of codes of levels."""
        return self.kind.make_cells(codes)


class KnotBlock(Block):
    """One weight per knot, of the hat functions on the knots' places; and one per atom.

    Parameters
    ----------
    name, kind, start
        As in `Block`.
    places : ndarray, default=None
        Where knots and cuts are when numbers are drawn, if not where they are encoded; see
        `PlaceScale`.
    """

    def __init__(self, name, kind, start, places=None):
        self.number = kind.to_number()
        self.knots = self.number.positions
        self.decimals, self.atoms = self.number.decimals, self.number.atoms or ()
        cuts = self.number.cuts or ()
        self.values = Values(self.decimals, self.atoms)
        self.scale = PlaceScale(self.knots, cuts)
        self.drawn = PlaceScale(self.knots, cuts, places)
        # The numbers at whole places when they are drawn: intervals are between these.
        self.ends = self.drawn.find_numbers(np.arange(len(self.knots)))
        super().__init__(name, kind, start, len(self.knots) + len(self.atoms))

    def _find(self, column):
        present, numbers = self.kind.read(column)
        places = np.full(len(present), np.nan)
        places[present] = self.scale.encode_cells(numbers)
        if self.atoms:
            values = self._to_values(numbers)
        for position, atom in enumerate(self.atoms, start=len(self.knots)):
            places[np.flatnonzero(present)[values == atom]] = position
        return present, places

    def draw(self, weights, random_state):
        from_left, from_right, others = self.find_shares(weights)
        masses = np.column_stack([from_left + from_right, others])
        drawn = _draw_levels(masses, random_state)
        n_between = len(self.knots) - 1
        left = np.where(drawn < n_between, drawn, 0)
        chosen = np.arange(len(left)), left
        share = _draw_between(from_left[chosen], from_right[chosen], random_state)
        numbers = self.values.round_at_random(left + share, self.drawn, random_state)
        return self.make_cells(numbers, drawn - n_between)

    def find_shares(self, weights):
        """Return what each interval has of its knots, and the weights of atoms and missing values.

        Returns
        -------
        from_left, from_right : ndarray of shape (n, n_knots - 1)
        others : ndarray of shape (n, n_others)
        """
        weights, others = np.split(_to_probabilities(weights), [len(self.knots)], axis=1)
        return *share_between_knots(weights), others

    def _to_values(self, numbers):
        """Round numbers, and clip those that are no atoms: a bound may be one."""
        if self.decimals is not None:
            numbers = np.round(numbers, self.decimals)
        clipped = np.clip(numbers, self.number.lower, self.number.upper)
        return np.where(np.isin(numbers, self.atoms), numbers, clipped)

    def make_cells(self, numbers, others):
        """Return numbers, and where `others` is not negative, the atoms or missing values there."""
        if self.decimals is not None:
            numbers = np.round(numbers, self.decimals) + 0.0  # no negative zero
        numbers = np.clip(numbers, self.knots[0], self.knots[-1])
        for position, atom in enumerate(self.atoms):
            numbers[others == position] = atom
        return self.kind.make_cells(numbers, others == len(self.atoms))


def knot_weights(numbers, knots):
    """Return the weights of knots: the hat functions on them.

    Parameters
    ----------
    numbers : ndarray of any shape
        Beyond the knots, they are clipped.
    knots : ndarray of shape (n_knots,)

    Returns
    -------
    ndarray of the shape of `numbers`, and n_knots at the end
        They sum to 1, and the mean of the knots by them is the number. NaN for NaN.
    """
    left, share = find_between(numbers, knots)
    weights = np.zeros((*left.shape, len(knots)))
    np.put_along_axis(weights, left[..., None], 1 - share[..., None], axis=-1)
    np.put_along_axis(weights, left[..., None] + 1, share[..., None], axis=-1)
    return weights


def _to_probabilities(weights):
    """Scale non-negative parts to sum 1; equal ones where there is no positive weight."""
    weights = np.maximum(weights, 0)
    top = weights.max(axis=1, keepdims=True)
    # By the largest first, as sums of the largest floats overflow.
    weights = np.where(top > 0, weights, 1) / np.where(top > 0, top, 1)
    return weights / weights.sum(axis=1, keepdims=True)


def _draw_levels(probabilities, random_state):
    """Draw one level per row; one of probability 0 is never drawn."""
    steps = probabilities.cumsum(axis=1)
    uniform = random_state.uniform(size=(len(steps), 1))
    return (steps / steps[:, -1:] <= uniform).sum(axis=1)


def share_between_knots(weights):
    """Share the weight of each knot among the intervals beside it.

    Draws in an interval have the right expected weights if the interval has the total of both
    shares, and its mean is their centre of gravity, for any division. Divided by the square roots
    of the neighbours' weights, a flat density stays flat, also where distances of knots grow
    geometrically, and a row between two knots stays between them.

    Returns
    -------
    from_left, from_right : ndarray of shape (n, n_knots - 1)
        For each interval, what it has of its left and of its right knot.
    """
    roots = np.pad(np.sqrt(weights), ((0, 0), (1, 1)))
    left, right = roots[:, :-2], roots[:, 2:]
    # A knot without neighbours is drawn itself, and any interval that it is in will do.
    to_right = np.ones_like(weights)
    to_right[:, -1] = 0
    np.divide(right, left + right, out=to_right, where=left + right > 0)
    to_right *= weights
    return to_right[:, :-1], (weights - to_right)[:, 1:]


def _draw_between(from_left, from_right, random_state):
    """Draw numbers in [0, 1] of mean from_right / (from_left + from_right).

    The density is a power: flat if both are equal, a triangle if one is twice the other, and an
    atom at 0 or 1 if one is 0.
    """
    share = random_state.uniform(size=len(from_left)) ** find_power(from_left, from_right)
    return np.where(from_right > from_left, share, 1 - share)


def share_below(places, from_left, from_right):
    """Return the probabilities that such numbers are below places in [0, 1]."""
    with np.errstate(divide="ignore"):
        exponent = 1 / find_power(from_left, from_right)
    is_right = from_right > from_left
    below = np.where(is_right, places, 1 - places) ** exponent
    return np.where(is_right, below, 1 - below)


def find_power(from_left, from_right):
    """Return p: such numbers are uᵖ of uniform u or, where the left has more, 1 - uᵖ."""
    largest = np.maximum(from_left, from_right)
    return np.minimum(from_left, from_right) / np.where(largest > 0, largest, 1)
