# SPDX-License-Identifier: BSD-3-Clause
"""Rules: public constraints that all synthetic rows of a table obey."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from ..columns import Date, Number
from ..columns.base import check_list, find_repeated, read_dict
from .formulas import Formula
from .predicates import (
    all_hold,
    bind,
    check_declared,
    check_names,
    find_bounds,
    plain_value,
    read_asked,
    show_asked,
    show_range,
)


class Rule:
    """Base of rules: a repr, conversion to a dict, and the interface of constraints.

    A rule holds of rows of floats, a dict of columns: positions of levels, numbers, or dates in
    their units since 1970, and NaN for missing values. See `Column.to_values`.

    Attributes
    ----------
    names : tuple of str
        The columns that it is about.
    """

    def to_dict(self):
        """Return the rule as a dict, without what is at its default.

        Returns
        -------
        dict
        """
        return {"type": type(self).__name__.lower(), **self._given(show_range)}

    def __repr__(self):
        given = ", ".join(f"{name}={value!r}" for name, value in self._given(tuple).items())
        return f"{type(self).__name__}({given})"

    def _given(self, write_range):
        values = ((field, getattr(self, field.name)) for field in fields(self))
        return {f.name: self._show(f.name, v, write_range) for f, v in values if v != f.default}

    def _show(self, name, value, write_range):
        return list(value) if isinstance(value, tuple) else value

    def _set(self, **values):
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def check(self, kinds):
        """Raise an error if no rows of columns of these kinds could be asked to obey."""

    def restrict(self, names):
        """Return what the rule says of these columns alone, a rule, or None for nothing."""
        return self if set(self.names) <= set(names) else None

    def bind(self, kinds):
        """Return a function of rows of columns of these kinds that says which ones obey."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class Implies(Rule):
    """Rows in which some columns are this have other columns that are that.

    Parameters
    ----------
    when, then : dict
        What the columns are, by their names, all together, as in ``sample(where=...)``: a level, a
        number or a date; a tuple ``(lower, upper)`` of bounds, of which None is open; None for
        missing; or a list of these, of which one holds. In JSON, a range is
        ``{"lower": 18, "upper": null}``.

    Raises
    ------
    ValueError
        If one of them is empty, or both are about a column.

    Examples
    --------
    >>> from skdpgen.tables import Implies
    >>> Implies({"insured": "no"}, {"insurer": None, "premium": [None, (0, 10)]})
    Implies(when={'insured': 'no'}, then={'insurer': None, 'premium': [None, (0, 10)]})
    """

    when: Mapping
    then: Mapping

    def __post_init__(self):
        self._set(when=read_asked("when", self.when), then=read_asked("then", self.then))
        repeated = find_repeated(self.names)
        if repeated:
            raise ValueError(f"{self!r} has {repeated} on both sides.")

    @property
    def names(self):
        return tuple(name for name, _ in self.when + self.then)

    def _show(self, name, value, write_range):
        return show_asked(value, write_range)

    def restrict(self, names):
        if not {name for name, _ in self.when} <= set(names):
            return None
        left = {name: list(asked) for name, asked in self.then if name in names}
        return Implies({name: list(asked) for name, asked in self.when}, left) if left else None

    def check(self, kinds):
        for name, asked in self.when + self.then:
            # Whether values may be missing is known of undeclared columns, too.
            if asked != (None,) or not (kinds[name].is_open and kinds[name].missing):
                check_declared(name, kinds[name])
                bind(name, kinds[name], asked)

    def find_conditions(self, kinds):
        """Return the conditions of `when` and those of `then`, two dicts by names of columns."""
        return tuple(
            {name: bind(name, kinds[name], asked) for name, asked in side}
            for side in (self.when, self.then)
        )

    def bind(self, kinds):
        when, then = self.find_conditions(kinds)
        return lambda values: ~all_hold(when, values) | all_hold(then, values)


@dataclass(frozen=True, repr=False)
class Ordered(Rule):
    """A column is at most another one, of numbers or of dates, wherever both are there.

    Parameters
    ----------
    lower, upper : str
        The columns.
    strict : bool, default=False
        Whether they are never equal.

    Raises
    ------
    ValueError
        If they are the same.

    Examples
    --------
    >>> from skdpgen.tables import Ordered
    >>> Ordered("admitted", "discharged")
    Ordered(lower='admitted', upper='discharged')
    """

    lower: str
    upper: str
    strict: bool = False

    def __post_init__(self):
        for name in self.names:
            if not isinstance(name, str):
                raise ValueError(f"Ordered is of names of columns; got {name!r}.")
        if self.lower == self.upper:
            raise ValueError(f"Ordered needs two columns; got {self.lower!r} twice.")
        if not isinstance(self.strict, bool):
            raise ValueError(f"strict must be True or False; got {self.strict!r}.")

    @property
    def names(self):
        return self.lower, self.upper

    def check(self, kinds):
        pair = [kinds[name] for name in self.names]
        if {type(kind) for kind in pair} not in ({Number}, {Date}):
            raise ValueError(f"both must be numbers, or both dates; they are {pair}.")
        if isinstance(pair[0], Date) and len({(kind.unit, kind.zone) for kind in pair}) > 1:
            raise ValueError(f"both dates must have one unit and one zone; they are {pair}.")

    def bind(self, kinds):
        def holds(values):
            lower, upper = values[self.lower], values[self.upper]
            return ~(lower >= upper if self.strict else lower > upper)

        return holds


@dataclass(frozen=True, repr=False)
class Derived(Rule):
    """A column is a formula of other columns. It is not learnt: it costs nothing, and is computed.

    It is rounded as its kind says, is missing where an operand is or where a number is divided by
    zero, and stays within the bounds of its kind, if there are any. Dates count in days: the
    difference of two is a number, and a date and a number are a date.

    Parameters
    ----------
    column : str
    formula : str
        Of columns, numbers, ``+ - * /`` and brackets. Names that are not Python's stand between
        backticks.

    Raises
    ------
    ValueError
        If that is no formula, or has the column in it.

    Examples
    --------
    >>> from skdpgen.tables import Derived
    >>> Derived("total", "nights * rate")
    Derived(column='total', formula='nights * rate')
    """

    column: str
    formula: str

    def __post_init__(self):
        if not isinstance(self.column, str):
            raise ValueError(f"column must be the name of a column; got {self.column!r}.")
        if self.column in self.operands:
            raise ValueError(f"{self!r} is of itself.")

    @property
    def operands(self):
        """The columns of the formula."""
        return Formula(self.formula).names

    @property
    def names(self):
        return self.column, *self.operands

    def restrict(self, names):
        lacking = [name for name in self.operands if name not in names]
        if lacking and self.column in names:
            raise ValueError(
                f"{self.column!r} cannot be computed without {lacking}: drop it, too, or leave "
                f"{self!r} out of the rules."
            )
        return super().restrict(names)

    def check(self, kinds):
        made, kind = Formula(self.formula).find_type(kinds), kinds[self.column]
        fits = isinstance(kind, Date) and kind.zone is None and kind.unit is not None
        if not (fits if made == "date" else isinstance(kind, Number)):
            known = " without zone, of known unit" if made == "date" else ""
            raise ValueError(f"its formula makes a {made}{known}, and its kind is {kind!r}.")
        loose = [name for name in self.operands if kinds[name].missing]
        if loose and not kind.missing:
            raise ValueError(
                f"it is missing where {loose} are: declare {self.column!r} with missing=True."
            )

    def compute(self, values, kinds):
        """Return the column, floats, from its operands."""
        operands = {n: values[n] / kinds[n].units_per_day for n in self.operands}
        kind = kinds[self.column]
        found = Formula(self.formula).compute(operands) * kind.units_per_day
        decimals = kind.decimals
        return found if decimals is None else np.round(found, decimals) + 0.0

    def find_range(self, ranges, kinds):
        """Return bounds on the column from those of its operands."""
        operands = {n: np.divide(ranges[n], kinds[n].units_per_day) for n in self.operands}
        return np.multiply(
            Formula(self.formula).find_range(operands), kinds[self.column].units_per_day
        )

    def bind(self, kinds):
        kind, (lower, upper) = kinds[self.column], find_bounds(kinds[self.column])

        def holds(values):
            found, computed = values[self.column], self.compute(values, kinds)
            is_none = np.isnan(computed)
            # As float32 has it, where tables do.
            is_same = np.isclose(found, computed, rtol=1e-6, atol=1e-9)
            is_within = (lower <= computed) & (computed <= upper)
            return np.where(is_none, np.isnan(found) & kind.missing, is_same & is_within)

        return holds


@dataclass(frozen=True, repr=False)
class Unique(Rule):
    """No two rows of a sample have the same values in these columns, unless some are missing.

    Parameters
    ----------
    columns : str or list of str

    Raises
    ------
    ValueError
        If there are none, or one is there twice.

    Examples
    --------
    >>> from skdpgen.tables import Unique
    >>> Unique(["ward", "bed"])
    Unique(columns=['ward', 'bed'])
    """

    columns: Sequence

    def __post_init__(self):
        columns = [self.columns] if isinstance(self.columns, str) else self.columns
        self._set(columns=check_names(columns))

    @property
    def names(self):
        return self.columns

    def check(self, kinds):
        made_up = [name for name in self.columns if kinds[name].is_generated]
        if made_up:
            raise ValueError(f"{made_up} are identifiers, which are different anyway.")

    def bind(self, kinds):
        def holds(values):
            keys = pd.DataFrame({name: values[name] for name in self.columns})
            return (~keys.duplicated(keep=False) | keys.isna().any(axis=1)).to_numpy()

        return holds


@dataclass(frozen=True, repr=False)
class Combinations(Rule):
    """Some columns take the listed combinations of levels only.

    Parameters
    ----------
    columns : list of str
        Categories, ordinals or booleans.
    rows : list of lists
        A level for each of the columns, or None for missing.

    Raises
    ------
    ValueError
        If there are no rows, or one is not as long as `columns`.

    Examples
    --------
    >>> from skdpgen.tables import Combinations
    >>> Combinations(["city", "country"], [["Wien", "AT"], ["Graz", "AT"], ["Bonn", "DE"]])
    Combinations(columns=['city', 'country'], rows=[['Wien', 'AT'], ['Graz', 'AT'], ['Bonn', 'DE']])
    """

    columns: Sequence
    rows: Sequence

    def __post_init__(self):
        columns = check_names(self.columns)
        if len(columns) < 2:
            raise ValueError(f"Combinations need two columns or more; got {list(columns)}.")
        rows = tuple(
            tuple(plain_value(value) for value in check_list("rows of combinations", row))
            for row in check_list("rows", self.rows)
        )
        if not rows or any(len(row) != len(columns) for row in rows):
            raise ValueError(f"rows must be lists of {len(columns)} levels, at least one of them.")
        self._set(columns=columns, rows=tuple(dict.fromkeys(rows)))

    @property
    def names(self):
        return self.columns

    def _show(self, name, value, write_range):
        return [list(row) if isinstance(row, tuple) else row for row in value]

    def restrict(self, names):
        left = [i for i, name in enumerate(self.columns) if name in names]
        if len(left) < 2:
            return None
        rows = [[row[i] for i in left] for row in self.rows]
        return Combinations([self.columns[i] for i in left], rows)

    def check(self, kinds):
        for name, levels in zip(self.columns, zip(*self.rows, strict=True), strict=True):
            check_declared(name, kinds[name])
            if not hasattr(kinds[name], "levels"):
                raise ValueError(f"{name!r} has no levels: its kind is {kinds[name]!r}.")
            bind(name, kinds[name], dict.fromkeys(levels))

    def find_positions(self, kinds):
        """Return the positions of the levels, NaN for missing, shape (n_rows, n_columns)."""
        return np.array(
            [
                [
                    np.nan if level is None else kinds[name].levels.index(level)
                    for name, level in zip(self.columns, row, strict=True)
                ]
                for row in self.rows
            ]
        )

    def bind(self, kinds):
        listed = pd.MultiIndex.from_arrays(np.nan_to_num(self.find_positions(kinds), nan=-1).T)

        def holds(values):
            keys = [np.nan_to_num(values[name], nan=-1) for name in self.columns]
            return pd.MultiIndex.from_arrays(keys).isin(listed)

        return holds


RULES = {rule.__name__.lower(): rule for rule in (Implies, Ordered, Derived, Unique, Combinations)}


def read_rules(given, kinds):
    """Return rules, which may be dicts, of columns of these kinds; name the rule in errors."""
    rules = tuple(_read_rule(i, rule) for i, rule in enumerate(check_list("rules", given), 1))
    for rule in rules:
        unknown = [name for name in rule.names if name not in kinds]
        if unknown:
            raise ValueError(f"{rule!r} names {unknown}, which are no columns: {list(kinds)}.")
        try:
            rule.check(kinds)
        except ValueError as error:
            reason = str(error)
        else:
            continue
        raise ValueError(f"{rule!r} cannot be obeyed: {reason}")
    return rules


def _read_rule(i, rule):
    if type(rule) in RULES.values():
        return rule
    try:
        if not isinstance(rule, Mapping):
            kinds = [kind.__name__ for kind in RULES.values()]
            raise ValueError(f"it must be one of {kinds} or a dict; got {rule!r}.")
        return read_dict(rule, RULES)
    except ValueError as error:
        reason = str(error)
    raise ValueError(f"Rule {i}: {reason}")
