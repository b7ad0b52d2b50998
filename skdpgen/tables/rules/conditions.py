# SPDX-License-Identifier: BSD-3-Clause
"""Conditions on columns of a sample: levels, ranges of values, or missing values."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..blocks import LevelBlock, find_power, to_probabilities


@dataclass(frozen=True)
class ConditionConstants:
    """Numerical constants of conditions; all are set by hand."""

    # Steps of a bisection, after which no float is left between two values of a column.
    n_bisections: int = 64
    # Narrower parts of an interval are evaluated at their midpoint: differences would cancel.
    narrow: float = 1e-5
    # Rounding error of codes.
    rounding: float = 1e-12


CONSTANTS = ConditionConstants()


def make_condition(block, values):
    """Return the condition that a column has one of some values.

    Parameters
    ----------
    block : LevelBlock or KnotBlock
    values : object
        A level; for numbers and dates a value, or a tuple (lower, upper) of bounds, with None for
        no bound; None for missing values; or a list of alternatives. A date without a time is a
        whole day.

    Raises
    ------
    ValueError
        If the column cannot have one of the values.
    """
    make = _LevelCondition if isinstance(block, LevelBlock) else _RangeCondition
    return make(block, values)


class _Condition:
    """Probability of a condition on a column, and draws from the conditional distribution."""

    def __init__(self, block, values):
        listed = list(values) if isinstance(values, list | np.ndarray) else [values]
        present = [value for value in listed if not is_missing(value)]
        if not listed:
            raise ValueError(f"The condition on {block.name!r} is an empty list.")
        if len(present) < len(listed) and not block.column_type.missing:
            raise ValueError(
                f"A condition asks for missing values of {block.name!r}, which has none: it is "
                f"{block.column_type}."
            )
        self._block = block
        self._may_be_missing = len(present) < len(listed)
        self._set_alternatives(present)

    def probability(self, rows):
        """Return the probability of the condition in each row, an array of shape (n,)."""
        return self._parts(rows[:, self._block.where]).sum(axis=1)

    def holds(self, values):
        """Return whether it holds for codes of levels, or for numbers; NaN is a missing value."""
        return np.where(np.isnan(values), self._may_be_missing, self._includes(values))

    def draw(self, weights, random_state):
        """Draw cells like `block.draw`, given the condition, whose probability must be positive."""
        parts = self._parts(weights).cumsum(axis=1)
        uniform = random_state.uniform(size=len(parts)) * parts[:, -1]
        drawn = (parts[:, :-1] <= uniform[:, None]).sum(axis=1)
        return self._draw_part(weights, drawn, random_state)


class _LevelCondition(_Condition):
    """The condition that a column has one of some levels."""

    def _set_alternatives(self, levels):
        known, labels = self._block.column_type.levels, self._block.column_type.labels
        for level in levels:
            if not pd.api.types.is_scalar(level) or level not in (*labels, *known):
                raise ValueError(
                    f"{level!r} is not among the levels of {self._block.name!r}: {list(labels)}. "
                    "Pass several levels as a list."
                )
        codes = [(labels if level in labels else known).index(level) for level in levels]
        codes += [len(known)] * self._may_be_missing
        self._codes = np.unique(codes)

    def _includes(self, codes):
        return np.isin(codes, self._codes)

    def _parts(self, weights):
        return to_probabilities(weights)[:, self._codes]

    def _draw_part(self, weights, drawn, random_state):
        return self._block.make_cells(self._codes[drawn])


class _RangeCondition(_Condition):
    """The condition that a number or date is in one of some closed ranges.

    The distribution of the draws of a `KnotBlock` has a closed form. In an interval between knots,
    a power of the position is uniform. A code that `Values.round` rounds at random becomes a value
    v or less with a probability that falls linearly from 1 at the code of v to 0 at that of the
    next value. So P(at most v) is the mean of the distribution function of codes between these two
    codes; or, where numbers are rounded to the nearest value, the one at the code half-way.
    """

    def _set_alternatives(self, values):
        self._ranges, self._atoms = [], set()
        ranges = [self._parse(*r) if type(r) is tuple else self._parse(r, r) for r in values]
        for lower, upper in sorted(r for r in ranges if r is not None):
            if self._ranges and lower <= self._ranges[-1][1]:
                lower, last = self._ranges.pop()
                upper = max(last, upper)
            self._ranges.append((lower, upper))
        # Indices, among `others`, of the point masses and of missing values in the condition.
        self._others = sorted(self._atoms) + [len(self._block.atoms)] * self._may_be_missing

    def _parse(self, *bounds):
        """Return a range of values between knots, or None; add its point masses to the set."""
        name, knots, values = self._block.name, self._block.knots, self._block.values
        if len(bounds) != 2:
            raise ValueError(f"A range of {name!r} must be (lower, upper); got {bounds!r}.")
        lower, upper = (
            end
            if is_missing(bound)
            else self._block.column_type.check_value(name, bound, is_last=end > 0)
            for bound, end in zip(bounds, (-np.inf, np.inf), strict=True)
        )
        if lower > upper:
            raise ValueError(f"The range {bounds!r} of {name!r} is empty: lower is above upper.")
        atoms = {i for i, atom in enumerate(self._block.atoms) if lower <= atom <= upper}
        self._atoms |= atoms
        is_outside = upper < knots[0] or lower > knots[-1]
        if is_outside and not atoms:
            raise ValueError(
                f"The range {bounds!r} of {name!r} is outside its bounds: "
                f"{self._block.column_type}."
            )
        lower, upper = np.clip([lower, upper], knots[0], knots[-1])
        lower, upper = float(values.at_least(lower)), float(values.at_most(upper))
        is_empty = lower > upper or (lower == upper and values.unit is None)
        if is_empty and not atoms:
            raise ValueError(f"No value of {name!r} is in the range {bounds!r}; use a wider one.")
        return None if is_outside or is_empty else (lower, upper)

    @property
    def ranges(self):
        """The ranges of the condition; each point mass is a range of its own."""
        atoms = [self._block.atoms[position] for position in sorted(self._atoms)]
        return [*self._ranges, *((atom, atom) for atom in atoms)]

    def _includes(self, numbers):
        unit = self._block.values.unit
        slack = 0.0 if unit is None else 1 / (4 * unit)
        inside = [(a - slack <= numbers) & (numbers <= b + slack) for a, b in self.ranges]
        return np.any(inside, axis=0)

    def _parts(self, weights):
        numbers = _NumberDistribution(self._block, weights)
        parts = [numbers.at_most(upper) - numbers.below(lower) for lower, upper in self._ranges]
        parts += [numbers.others[:, position] for position in self._others]
        return np.column_stack(parts).clip(0)

    def _draw_part(self, weights, drawn, random_state):
        others = np.array([-1] * len(self._ranges) + self._others)[drawn]
        # `make_cells` replaces the numbers of point masses and missing values.
        replaced = [self._block.knots[[0, 0]]] * len(self._others)
        lower, upper = np.array([*self._ranges, *replaced])[drawn].T
        uniform = random_state.uniform(size=len(drawn))
        numbers = self._draw_numbers(weights, lower, upper, uniform)
        numbers = self._block.settle(numbers, (lower, upper), random_state)
        return self._block.make_cells(numbers, others)

    def probability_within(self, weights, lower, upper):
        """Return the probability of a number between knots in a range, one range per row."""
        numbers = _NumberDistribution(self._block, weights)
        return (numbers.at_most(upper) - numbers.below(lower)).clip(0)

    def draw_within(self, weights, lower, upper, is_missing, uniform):
        """Return cells at quantiles of numbers in ranges, or missing values.

        Parameters
        ----------
        weights : ndarray of shape (n, n_weights)
        lower, upper : ndarray of shape (n,)
            One range per row.
        is_missing : ndarray of bool of shape (n,)
        uniform : ndarray of shape (n,)
            Quantiles in [0, 1] of the conditional distribution.
        """
        others = np.where(is_missing, len(self._block.atoms), -1)
        return self._block.make_cells(self._draw_numbers(weights, lower, upper, uniform), others)

    def _draw_numbers(self, weights, lower, upper, uniform):
        numbers, values = _NumberDistribution(self._block, weights), self._block.values
        start, end = numbers.below(lower), numbers.at_most(upper)
        target = start + uniform * (end - start)
        # Bisect for the smallest value whose distribution function reaches the target.
        for _ in range(CONSTANTS.n_bisections):
            if (lower == upper).all():
                break
            middle = values.at_most((lower + upper) / 2)
            is_enough = numbers.at_most(middle) >= target
            lower, upper = (
                np.where(is_enough, lower, np.minimum(values.after(middle), upper)),
                np.where(is_enough, middle, upper),
            )
        return upper


class _NumberDistribution:
    """Distribution of the draws of a `KnotBlock` from each row, up to a constant factor.

    Parameters
    ----------
    block : KnotBlock
    weights : ndarray of shape (n, n_weights)

    Attributes
    ----------
    others : ndarray of shape (n, n_others)
        Probabilities of the point masses, and of a missing value.
    """

    def __init__(self, block, weights):
        from_left, from_right, self.others = block.split_weights(weights)
        self._block, self._values, self._scale = block, block.values, block.draw_scale
        self._ends = block.ends
        self._masses = from_left + from_right
        self._before = np.cumsum(self._masses, axis=1) - self._masses
        self._is_rising = from_right > from_left
        with np.errstate(divide="ignore"):
            self._exponent = 1 / find_power(from_left, from_right)

    def below(self, values):
        """Return the probability of numbers between knots below one value per row."""
        return self.at_most(self._values.before(values))

    def at_most(self, values):
        """Return the probability of numbers between knots up to one value per row."""
        values = np.broadcast_to(values, len(self._masses))
        after = self._values.after(values)
        first, last = self._scale.encode(values), self._scale.encode(after)
        if self._block.is_calibrated:
            at = np.searchsorted(self._block.knots, values, side="right") - 1
            to_nearest = self._block.has_inner[at.clip(0, len(self._block.has_inner) - 1)]
            middle = self._scale.encode((values + after) / 2)
            first, last = np.where(to_nearest, middle, first), np.where(to_nearest, middle, last)
        # A probe between two values finds the interval in spite of rounding errors.
        probes = values + (after - values) / 4
        left = (np.searchsorted(self._ends, probes, side="right") - 1).clip(0, len(self._ends) - 2)
        chosen = np.arange(len(values)), left
        share = self._find_mean(chosen, first - left, last - left)
        likely = self._before[chosen] + self._masses[chosen] * share
        # Few steps between two values contain the end of an interval: those need a sum.
        beyond = np.maximum(last - (left + 1), left - first)
        across = np.flatnonzero(beyond > CONSTANTS.rounding)
        likely[across] = self._find_across(across, first[across, None], last[across, None])
        likely = np.where(probes < self._ends[0], 0, likely)
        return np.where(probes >= self._ends[-1], self._masses.sum(axis=1), likely)

    def _find_mean(self, chosen, first, last):
        """Return means of distribution functions of intervals, between positions in [0, 1]."""
        first, last, step = first.clip(0, 1), last.clip(0, 1), last - first
        is_rising, exponent = self._is_rising[chosen], self._exponent[chosen]

        def function(share):
            power = np.where(is_rising, share, 1 - share) ** exponent
            return np.where(is_rising, power, np.where(np.isinf(exponent), 1, 1 - power))

        def integral(share):
            power = np.where(is_rising, share, 1 - share) ** (exponent + 1) / (exponent + 1)
            return np.where(is_rising, power, share + power)

        is_narrow = step < CONSTANTS.narrow
        mean = (integral(last) - integral(first)) / np.where(is_narrow, 1, step)
        return np.where(is_narrow, function((first + last) / 2), mean)

    def _find_across(self, rows, first, last):
        """Return the means of the distribution functions of rows between two codes.

        Each is a sum over intervals, whose distribution functions are 0 before and 1 after them.
        """
        start = np.arange(self._masses.shape[1])
        ends = (first - start).clip(0, 1), (last - start).clip(0, 1)
        means = self._find_mean((rows[:, None], start), *ends)
        after = (last - np.maximum(first, start + 1)).clip(0)
        steps = np.maximum(last - first, CONSTANTS.rounding)
        shares = ((ends[1] - ends[0]) * means + after) / steps
        return (self._masses[rows] * shares).sum(axis=1)


def is_missing(value):
    return value is None or (pd.api.types.is_scalar(value) and pd.isna(value))
