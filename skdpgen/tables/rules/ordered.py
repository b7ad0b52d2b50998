# SPDX-License-Identifier: BSD-3-Clause
"""Orders of two columns, and the differences by which they are learned."""

import sys
from dataclasses import dataclass, replace

import numpy as np

from ..columns import Number
from ..columns.values import Values
from ..declaration import parse
from .rule import Rule

# Differences of values up to this size are finite.
_LARGEST = sys.float_info.max / 4


@dataclass(frozen=True, repr=False)
class Ordered(Rule):
    """An order: ``lower <= upper`` for two numbers or two dates, unless one is missing.

    Generators also learn the difference of both columns. They draw one of these on its own, and the
    other at a difference from it. Dates of different units are compared, and subtracted, in the
    coarser unit: a discharge by day is not before an admission in the evening of this day.

    Parameters
    ----------
    lower, upper : str
        Names of the columns.
    strict : bool, default=False
        Whether the rule is ``lower < upper``.
    difference : Number, default=None
        Column type of ``upper - lower``, for dates in the coarser unit of both. None: a generator
        infers it together with the knots of the columns, at a cost. If their knots are declared, it
        follows from their bounds.

    Raises
    ------
    ValueError
        If both columns are the same.

    Examples
    --------
    >>> from skdpgen.tables import Ordered
    >>> Ordered("admitted", "discharged")
    Ordered(lower='admitted', upper='discharged')
    """

    lower: str
    upper: str
    strict: bool = False
    difference: Number | None = None

    def __post_init__(self):
        for name in self.names:
            if not isinstance(name, str):
                raise ValueError(f"Ordered takes names of columns; got {name!r}.")
        if self.lower == self.upper:
            raise ValueError(f"Ordered needs two columns; got {self.lower!r} twice.")
        if not isinstance(self.strict, bool):
            raise ValueError(f"strict must be True or False; got {self.strict!r}.")
        if self.difference is not None:
            self._set(difference=parse(self.difference, {"number": Number}))

    @property
    def names(self):
        return self.lower, self.upper

    def rename(self, names):
        return replace(self, lower=names[self.lower], upper=names[self.upper])

    def check(self, types):
        pair = [types[name] for name in self.names]
        if any(declared.is_unknown for declared in pair):
            return
        if not pair[0].compares_with(pair[1]):
            raise ValueError(f"both must be numbers, or both dates of one zone; they are {pair}.")
        difference = self.difference
        if difference is not None:
            if pair[0].is_date and difference.decimals != 0:
                raise ValueError("the difference of dates must be declared with decimals=0.")
            if (difference.lower or 0) < 0:
                raise ValueError("the difference must not be negative.")

    def bind(self, types):
        def holds(values):
            lower, upper = (self.to_common(name, values[name], types) for name in self.names)
            return ~(lower >= upper if self.strict else lower > upper)

        return holds

    # Differences.

    def other(self, name):
        """Return the other column."""
        return self.upper if name == self.lower else self.lower

    def to_common(self, name, values, types):
        """Return values of a column in the coarser unit of both columns, rounded down."""
        factor = self._find_factor(name, types)
        return values if factor == 1 else np.floor(np.divide(values, factor))

    def _find_factor(self, name, types):
        """Return the number of units of a column in a unit of the coarser one."""
        return types[name].units_per_day // min(types[n].units_per_day for n in self.names)

    def find_difference(self, types):
        """Return the column type of the difference, or None if only one value is possible."""
        pair = [types[name].to_number() for name in self.names]
        decimals = [number.decimals for number in pair]
        decimals = None if None in decimals else max(decimals)
        first = self.strict * (0 if decimals is None else 10.0**-decimals)
        first = int(first) if not decimals else first
        found = self.difference or Number(first, decimals=decimals)
        if found.lower is None:
            found = replace(found, lower=first)
        if not any(number.is_open for number in pair):
            if found.upper is None:
                last = self._find_span(pair, types, decimals)
                if last <= found.lower:
                    return None
                found = replace(found, upper=last)
            if found.takes_knots and not any(number.takes_knots for number in pair):
                found = replace(found, scale="symlog")
        is_missing = any(number.missing or _list_sentinels(number) for number in pair)
        return replace(found, missing=bool(is_missing))

    def _find_span(self, pair, types, decimals):
        """Return the largest difference that bounds allow."""
        first, last = self.to_common(self.lower, pair[0].lower, types), pair[1].upper
        span = self.to_common(self.upper, last, types) - first
        return span if decimals is None else int(span) if decimals == 0 else round(span, decimals)

    def subtract(self, table, types):
        """Return the differences of cells, each on its own: an array, NaN for missing values."""
        lower, upper = (
            self.to_common(name, _read(table[name], types[name]), types) for name in self.names
        )
        return upper - lower

    def add(self, name, values, difference, own, types):
        """Return values of a column at a difference from those of the other one.

        Parameters
        ----------
        name : str
        values, difference : ndarray of shape (n,)
            Values of the other column, and differences.
        own : ndarray of shape (n,)
            Values of the column that were drawn on their own. They give dates the time within the
            coarser unit of the other column.
        types : Mapping

        Returns
        -------
        ndarray of shape (n,)
        """
        factor, is_lower = self._find_factor(name, types), name == self.lower
        common = self.to_common(self.other(name), values, types)
        common = common - difference if is_lower else common + difference
        if factor > 1:
            return common * factor + own % factor
        grid = Values(types[name].decimals)
        return grid.at_most(common) if is_lower else grid.at_least(common)

    def find_limit(self, name, values, types):
        """Return the largest `lower`, or the smallest `upper`, beside values of the other one."""
        factor, decimals = self._find_factor(name, types), types[name].decimals
        step = self.strict * (0 if decimals is None else 10.0**-decimals)
        common = self.to_common(self.other(name), values, types)
        if name == self.upper:
            return (common + step) * factor
        return common - step if factor == 1 else (common - step + 1) * factor - 1


def _list_sentinels(number):
    """Return the point masses beyond the bounds, which stand for no number."""
    bounds = (number.lower, number.upper)
    if None in bounds:
        return []
    return [atom for atom in number.atoms or () if not bounds[0] <= atom <= bounds[1]]


def _read(column, declared):
    """Return the values of cells within the bounds, NaN for missing ones and for sentinels."""
    number = declared.to_number()
    present, found = declared.encode(column)
    if number.decimals is not None:
        found = np.round(found, number.decimals)
    lower = -_LARGEST if number.lower is None else number.lower
    upper = _LARGEST if number.upper is None else number.upper
    values = np.full(len(present), np.nan)
    is_sentinel = np.isin(found, _list_sentinels(number))
    values[present] = np.where(is_sentinel, np.nan, np.clip(found, lower, upper))
    return values


def list_ordered(rules):
    """Return the pairs of columns that are ordered by rules, or by chains of these."""
    pairs = {rule.names for rule in rules if isinstance(rule, Ordered)}
    while True:
        new = {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs
        if not new:
            return sorted(pairs)
        pairs |= new


def list_differences(rules, types):
    """Return the orders whose differences are learned, and the types of these.

    They form a forest: the difference of two columns that others already join follows from these.

    Parameters
    ----------
    rules : sequence of Rule
    types : dict of str to ColumnType

    Returns
    -------
    dict of str to (Ordered, Number)
    """
    # Derived columns are computed; columns of unknown type may be texts.
    computed = {getattr(rule, "column", None) for rule in rules}
    learned = {n for n, declared in types.items() if not declared.is_unknown} - computed
    found, trees = {}, {name: {name} for name in learned}
    for rule in rules:
        if not isinstance(rule, Ordered) or not learned.issuperset(rule.names):
            continue
        lower, upper = (trees[name] for name in rule.names)
        declared = rule.find_difference(types)
        if lower is not upper and declared is not None:
            trees |= dict.fromkeys(lower | upper, lower | upper)
            name = f"{rule.upper} - {rule.lower}"
            while name in types:
                name = f"({name})"
            found[name] = rule, declared
    return found


def reconcile_orders(schema, types):
    """Widen inferred ranges that contradict orders: noise may find any range.

    Parameters
    ----------
    schema : Schema
        As declared.
    types : dict of str to ColumnType
        As inferred.

    Returns
    -------
    dict of str to ColumnType
    """
    for first, last in list_ordered(schema.rules):
        rule, pair = Ordered(first, last), (types[first], types[last])
        if not all(column.has_knots and not column.is_open for column in pair):
            continue
        number, other = (column.to_number() for column in pair)
        if rule.to_common(first, number.lower, types) < rule.to_common(last, other.upper, types):
            continue
        units = pair[1].units_per_day / pair[0].units_per_day
        if schema[last].upper is None:
            types = types | {last: _extend(pair[1], upper=number.upper * units)}
        elif schema[first].lower is None:
            types = types | {first: _extend(pair[0], lower=other.lower / units)}
    return types


def _extend(column, *, lower=None, upper=None):
    """Return a column with a wider range, and no values in what is added."""
    number = column.to_number()
    ends = (number.lower if lower is None else lower, number.upper if upper is None else upper)
    if number.decimals is not None:
        ends = np.round(ends, number.decimals).tolist()
    if number.decimals == 0:
        ends = [int(end) for end in ends]
    knots = number.knots and sorted({*number.knots, *ends})
    return column.from_number(replace(number, lower=ends[0], upper=ends[1], knots=knots))
