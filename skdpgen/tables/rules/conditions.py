# SPDX-License-Identifier: BSD-3-Clause
"""Conditions on columns of a sample: levels, ranges of values, or missing values."""

import numpy as np
import pandas as pd

from ..blocks import LevelBlock, _to_probabilities, find_power

# Halvings that leave nothing between two floats of a column.
_HALVINGS = 64
# Parts of an interval up to this are as good as their middle; differences would lose digits.
_NARROW = 1e-5
# Rounding error of codes.
_ROUNDING = 1e-12


def make_condition(block, asked):
    """Return the condition that a column is what is asked for.

    Parameters
    ----------
    block : LevelBlock or KnotBlock
    asked : object
        A level; for numbers and dates a value, or a tuple (lower, upper) of bounds of which None
        is open; None for missing; or a list of these, of which one is to hold.

    Raises
    ------
    ValueError
        If no value of the column is one of those.
    """
    make = _LevelCondition if isinstance(block, LevelBlock) else _RangeCondition
    return make(block, asked)


class _Condition:
    """How likely it is that a column is what is asked for, and columns that are."""

    def __init__(self, block, asked):
        listed = list(asked) if isinstance(asked, list | np.ndarray) else [asked]
        present = [value for value in listed if not _is_missing(value)]
        if not listed:
            raise ValueError(f"A condition asks for nothing of {block.name!r}: its list is empty.")
        if len(present) < len(listed) and not block.kind.missing:
            raise ValueError(
                f"A condition asks for missing values of {block.name!r}, which has no such: its "
                f"kind is {block.kind!r}."
            )
        self._block = block
        self._may_be_missing = len(present) < len(listed)
        self._take(present)

    def probability(self, rows):
        """Return the probability of the condition in each row, an array of shape (n,)."""
        return self._parts(rows[:, self._block.where]).sum(axis=1)

    def holds(self, values):
        """Return where it holds of levels' positions, or of numbers; NaN is a missing value."""
        return np.where(np.isnan(values), self._may_be_missing, self._includes(values))

    def draw(self, weights, random_state):
        """Draw a column like `block.draw`, under the condition; its probability must not be 0."""
        parts = self._parts(weights).cumsum(axis=1)
        uniform = random_state.uniform(size=len(parts)) * parts[:, -1]
        drawn = (parts[:, :-1] <= uniform[:, None]).sum(axis=1)
        return self._draw_part(weights, drawn, random_state)


class _LevelCondition(_Condition):
    """One of some levels."""

    def _take(self, levels):
        known = self._block.kind.levels
        for level in levels:
            if not pd.api.types.is_scalar(level) or level not in known:
                raise ValueError(
                    f"{level!r} is not among the levels of {self._block.name!r}: {list(known)}. "
                    "Several levels are a list."
                )
        positions = [known.index(level) for level in levels]
        positions += [len(known)] * self._may_be_missing
        self._positions = np.unique(positions)

    def _includes(self, positions):
        return np.isin(positions, self._positions)

    def _parts(self, weights):
        return _to_probabilities(weights)[:, self._positions]

    def _draw_part(self, weights, drawn, random_state):
        return self._block.make_cells(self._positions[drawn])


class _RangeCondition(_Condition):
    """A number or date in one of some ranges, bounds included.

    The law of what a `KnotBlock` draws has a closed form: in an interval of knots, of which the
    right one has more, a power of the position is uniform; and a place x is rounded to that of v or
    less with a probability that falls from 1 at v to 0 at the next value. So the probability of at
    most v is the mean, from its place to the next value's, of that of at most x.
    """

    def _take(self, asked):
        self._ranges, self._atoms = [], set()
        ranges = [self._read(*r) if type(r) is tuple else self._read(r, r) for r in asked]
        for lower, upper in sorted(r for r in ranges if r is not None):
            if self._ranges and lower <= self._ranges[-1][1]:
                lower, last = self._ranges.pop()
                upper = max(last, upper)
            self._ranges.append((lower, upper))
        # Where the weights are of atoms, and of missing values, that are asked for.
        self._others = sorted(self._atoms) + [len(self._block.atoms)] * self._may_be_missing

    def _read(self, *bounds):
        """Return a range of values between knots, or None; and take note of the atoms in it."""
        name, knots, values = self._block.name, self._block.knots, self._block.values
        if len(bounds) != 2:
            raise ValueError(f"A range of {name!r} is a tuple (lower, upper); got {bounds!r}.")
        lower, upper = (
            end if _is_missing(bound) else self._block.kind.check_value(name, bound)
            for bound, end in zip(bounds, (-np.inf, np.inf), strict=True)
        )
        if lower > upper:
            raise ValueError(f"The range {bounds!r} of {name!r} is empty: lower is above upper.")
        atoms = {i for i, atom in enumerate(self._block.atoms) if lower <= atom <= upper}
        self._atoms |= atoms
        is_outside = upper < knots[0] or lower > knots[-1]
        if is_outside and not atoms:
            raise ValueError(
                f"The range {bounds!r} of {name!r} is outside of its bounds: {self._block.kind!r}."
            )
        lower, upper = np.clip([lower, upper], knots[0], knots[-1])
        lower, upper = float(values.at_least(lower)), float(values.at_most(upper))
        is_empty = lower > upper or (lower == upper and values.unit is None)
        if is_empty and not atoms:
            raise ValueError(f"No value of {name!r} is in the range {bounds!r}; ask for a wider.")
        return None if is_outside or is_empty else (lower, upper)

    @property
    def ranges(self):
        """The ranges of values that are asked for, of which atoms are some by themselves."""
        atoms = [self._block.atoms[position] for position in sorted(self._atoms)]
        return [*self._ranges, *((atom, atom) for atom in atoms)]

    def _includes(self, numbers):
        unit = self._block.values.unit
        slack = 0.0 if unit is None else 1 / (4 * unit)
        inside = [
            (lower - slack <= numbers) & (numbers <= upper + slack) for lower, upper in self.ranges
        ]
        return np.any(inside, axis=0)

    def _parts(self, weights):
        law = _Law(self._block, weights)
        parts = [law.at_most(upper) - law.below(lower) for lower, upper in self._ranges]
        parts += [law.others[:, position] for position in self._others]
        return np.column_stack(parts).clip(0)

    def _draw_part(self, weights, drawn, random_state):
        others = np.array([-1] * len(self._ranges) + self._others)[drawn]
        # For what is no number between knots, one will do that is replaced.
        nowhere = [self._block.knots[[0, 0]]] * len(self._others)
        lower, upper = np.array([*self._ranges, *nowhere])[drawn].T
        uniform = random_state.uniform(size=len(drawn))
        return self._draw_numbers(weights, lower, upper, others, uniform)

    def probability_within(self, weights, lower, upper):
        """Return the probability of a number between knots, in a range of its own for each row."""
        law = _Law(self._block, weights)
        return (law.at_most(upper) - law.below(lower)).clip(0)

    def draw_within(self, weights, lower, upper, is_missing, uniform):
        """Return a column of numbers at quantiles, each in a range of its own, or missing."""
        others = np.where(is_missing, len(self._block.atoms), -1)
        return self._draw_numbers(weights, lower, upper, others, uniform)

    def _draw_numbers(self, weights, lower, upper, others, uniform):
        law, values = _Law(self._block, weights), self._block.values
        start, end = law.below(lower), law.at_most(upper)
        target = start + uniform * (end - start)
        # The smallest value that is at least as likely to be not exceeded, by halving.
        for _ in range(_HALVINGS):
            if (lower == upper).all():
                break
            middle = values.at_most((lower + upper) / 2)
            is_enough = law.at_most(middle) >= target
            lower, upper = (
                np.where(is_enough, lower, np.minimum(values.after(middle), upper)),
                np.where(is_enough, middle, upper),
            )
        return self._block.make_cells(upper, others)


class _Law:
    """The law of what a `KnotBlock` draws of each row, but for a constant factor.

    Parameters
    ----------
    block : KnotBlock
    weights : array of shape (n, n_weights)

    Attributes
    ----------
    others : array of shape (n, n_others)
        Probabilities of the atoms, and of a missing value.
    """

    def __init__(self, block, weights):
        from_left, from_right, self.others = block.find_shares(weights)
        self._values, self._scale = block.values, block.drawn
        self._ends = block.ends
        self._masses = from_left + from_right
        self._before = np.cumsum(self._masses, axis=1) - self._masses
        self._is_rising = from_right > from_left
        with np.errstate(divide="ignore"):
            self._exponent = 1 / find_power(from_left, from_right)

    def below(self, values):
        """Return the probability of a number between knots that is less than a value."""
        return self.at_most(self._values.before(values))

    def at_most(self, values):
        """Return the probability of a number between knots that is at most a value."""
        values = np.broadcast_to(values, len(self._masses))
        after = self._values.after(values)
        first, last = self._scale.encode_cells(values), self._scale.encode_cells(after)
        # Between two values, so that rounding errors do not matter.
        probes = values + (after - values) / 4
        left = (np.searchsorted(self._ends, probes, side="right") - 1).clip(0, len(self._ends) - 2)
        chosen = np.arange(len(values)), left
        share = self._find_mean(chosen, first - left, last - left)
        likely = self._before[chosen] + self._masses[chosen] * share
        # Few steps have the end of an interval inside.
        across = np.flatnonzero((last - (left + 1) > _ROUNDING) | (left - first > _ROUNDING))
        likely[across] = self._find_across(across, first[across, None], last[across, None])
        likely = np.where(probes < self._ends[0], 0, likely)
        return np.where(probes >= self._ends[-1], self._masses.sum(axis=1), likely)

    def _find_mean(self, chosen, first, last):
        """Return the mean of the distribution functions of intervals, between two shares."""
        first, last, step = first.clip(0, 1), last.clip(0, 1), last - first
        is_rising, exponent = self._is_rising[chosen], self._exponent[chosen]

        def function(share):
            power = np.where(is_rising, share, 1 - share) ** exponent
            return np.where(is_rising, power, np.where(np.isinf(exponent), 1, 1 - power))

        def integral(share):
            power = np.where(is_rising, share, 1 - share) ** (exponent + 1) / (exponent + 1)
            return np.where(is_rising, power, share + power)

        is_narrow = step < _NARROW
        mean = (integral(last) - integral(first)) / np.where(is_narrow, 1, step)
        return np.where(is_narrow, function((first + last) / 2), mean)

    def _find_across(self, rows, first, last):
        """Return the mean of the distribution functions of rows, between places in intervals.

        That is the sum over intervals, before which they have nothing, and after which all.
        """
        start = np.arange(self._masses.shape[1])
        ends = (first - start).clip(0, 1), (last - start).clip(0, 1)
        means = self._find_mean((rows[:, None], start), *ends)
        after = (last - np.maximum(first, start + 1)).clip(0)
        shares = ((ends[1] - ends[0]) * means + after) / np.maximum(last - first, _ROUNDING)
        return (self._masses[rows] * shares).sum(axis=1)


def _is_missing(value):
    return value is None or (pd.api.types.is_scalar(value) and pd.isna(value))
