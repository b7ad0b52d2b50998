# SPDX-License-Identifier: BSD-3-Clause
"""Rules: public constraints that all synthetic rows of a table obey."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from ..declaration import check_keys, check_list, explain, find_repeated, parse, suggest
from .formulas import Formula
from .ordered import Ordered
from .predicates import (
    all_hold,
    bind,
    check_declared,
    check_names,
    format_predicate,
    parse_predicate,
    to_scalar,
)
from .rule import Rule


@dataclass(frozen=True, repr=False)
class Implies(Rule):
    """An implication: rows that satisfy the predicate `when` also satisfy `then`.

    Parameters
    ----------
    when, then : dict of str to value or list
        Predicates by column name, all of which must hold, as in ``sample(where=...)``: a level, a
        number or a date; a tuple ``(lower, upper)``, with None for no bound; None for missing
        values; or a list of alternatives. In JSON, a range is ``{"lower": 18, "upper": null}``.

    Raises
    ------
    ValueError
        If a predicate is empty, or both have a column in common.

    Examples
    --------
    >>> from skdpgen.tables import Implies
    >>> Implies({"insured": "no"}, {"insurer": None, "premium": [None, (0, 10)]})
    Implies(when={'insured': 'no'}, then={'insurer': None, 'premium': [None, (0, 10)]})
    """

    when: Mapping
    then: Mapping

    def __post_init__(self):
        self._set(**{side: parse_predicate(side, getattr(self, side)) for side in ("when", "then")})
        repeated = find_repeated(self.names)
        if repeated:
            raise ValueError(f"{self!r} has {repeated} on both sides.")

    @property
    def names(self):
        return tuple(name for name, _ in self.when + self.then)

    def _show(self, value, is_json):
        return format_predicate(value, is_json)

    def rename(self, names):
        return Implies(
            *({names[n]: list(values) for n, values in side} for side in (self.when, self.then))
        )

    def restrict(self, names):
        if not {name for name, _ in self.when} <= set(names):
            return None
        left = {name: list(values) for name, values in self.then if name in names}
        return Implies({name: list(values) for name, values in self.when}, left) if left else None

    def check(self, types):
        for name, values in self.when + self.then:
            # Undeclared columns declare at least whether values may be missing.
            if values != (None,) or not (types[name].is_open and types[name].missing):
                check_declared(name, types[name])
                bind(name, types[name], values)

    def find_conditions(self, types):
        """Return the conditions of `when` and of `then`, two dicts by column name."""
        return tuple(
            {name: bind(name, types[name], values) for name, values in side}
            for side in (self.when, self.then)
        )

    def bind(self, types):
        when, then = self.find_conditions(types)
        return lambda values: ~all_hold(when, values) | all_hold(then, values)


@dataclass(frozen=True, repr=False)
class Derived(Rule):
    """A derived column: computed by a formula from other columns, not learned, at no cost.

    Results are rounded to the declared decimals. They are missing if an operand is missing, and for
    a division by zero. Synthetic rows keep them within the declared bounds. Dates are numbers of
    days: the difference of two dates is a number, and a date plus a number is a date.

    Parameters
    ----------
    column : str
    formula : str
        An expression of columns, numbers, ``+ - * /`` and parentheses. Names of columns that are
        no Python identifiers are in backticks.

    Raises
    ------
    ValueError
        If `formula` is no such expression, or contains `column`.

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
            raise ValueError(f"{self!r} contains its own column.")

    @property
    def operands(self):
        """The columns of the formula."""
        return Formula(self.formula).names

    @property
    def names(self):
        return self.column, *self.operands

    def rename(self, names):
        return Derived(names[self.column], Formula(self.formula).rename(names))

    def restrict(self, names):
        lacking = [name for name in self.operands if name not in names]
        if lacking and self.column in names:
            raise ValueError(
                f"{self.column!r} cannot be computed without {lacking}: drop it, too, or leave "
                f"{self!r} out of the rules."
            )
        return super().restrict(names)

    def check(self, types):
        result, declared = Formula(self.formula).find_type(types), types[self.column]
        fits = declared.is_date and declared.zone is None and declared.unit is not None
        if not (fits if result == "date" else declared.is_number):
            detail = " without zone, with a declared unit" if result == "date" else ""
            raise ValueError(f"its formula gives a {result}{detail}; the column is {declared}.")
        missing = [name for name in self.operands if types[name].missing]
        if missing and not declared.missing:
            raise ValueError(
                f"it is missing where {missing} are: declare {self.column!r} with missing=True."
            )

    def compute(self, values, types):
        """Return the column, an array of floats, from the values of its operands."""
        operands = {n: values[n] / types[n].units_per_day for n in self.operands}
        declared = types[self.column]
        found = Formula(self.formula).compute(operands) * declared.units_per_day
        decimals = declared.decimals
        if decimals is None:
            # Sums of tenths are tenths, and no 7.800000000000001; days may have any fraction.
            known = {n: None if types[n].is_date else types[n].decimals for n in self.operands}
            decimals = Formula(self.formula).find_decimals(known)
        return found if decimals is None else np.round(found, decimals) + 0.0

    def find_range(self, ranges, types):
        """Return bounds on the column from bounds on its operands."""
        operands = {n: np.divide(ranges[n], types[n].units_per_day) for n in self.operands}
        return np.multiply(
            Formula(self.formula).find_range(operands), types[self.column].units_per_day
        )

    def bind(self, types):
        declared, (lower, upper) = types[self.column], types[self.column].bounds

        def holds(values):
            found, computed = values[self.column], self.compute(values, types)
            is_none = np.isnan(computed)
            # The tolerance allows for tables of float32.
            is_same = np.isclose(found, computed, rtol=1e-6, atol=1e-9)
            is_within = (lower <= computed) & (computed <= upper)
            return np.where(is_none, np.isnan(found) & declared.missing, is_same & is_within)

        return holds


@dataclass(frozen=True, repr=False)
class Unique(Rule):
    """A key: no two rows of a sample have the same values in these columns.

    Rows with a missing value in one of the columns are exempt.

    Parameters
    ----------
    columns : str or list of str

    Raises
    ------
    ValueError
        If `columns` is empty or has duplicates.

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

    def rename(self, names):
        return Unique([names[name] for name in self.columns])

    def check(self, types):
        generated = [name for name in self.columns if types[name].is_generated]
        if generated:
            raise ValueError(f"{generated} are identifiers, which are always unique.")

    def bind(self, types):
        def holds(values):
            keys = pd.DataFrame({name: values[name] for name in self.columns})
            return (~keys.duplicated(keep=False) | keys.isna().any(axis=1)).to_numpy()

        return holds


@dataclass(frozen=True, repr=False)
class Combinations(Rule):
    """A list of the allowed combinations of levels of some columns.

    Parameters
    ----------
    columns : list of str
        Categories, ordinals or booleans.
    rows : list of lists
        In each row, one level per column, or None for a missing value.

    Raises
    ------
    ValueError
        If `rows` is empty, or a row does not have one level per column.

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
            raise ValueError(f"Combinations needs two columns or more; got {list(columns)}.")
        rows = tuple(
            tuple(to_scalar(value) for value in check_list("rows of combinations", row))
            for row in check_list("rows", self.rows)
        )
        if not rows or any(len(row) != len(columns) for row in rows):
            raise ValueError(f"rows must be lists of {len(columns)} levels, at least one of them.")
        self._set(columns=columns, rows=tuple(dict.fromkeys(rows)))

    @property
    def names(self):
        return self.columns

    def _show(self, value, is_json):
        return [list(row) if isinstance(row, tuple) else row for row in value]

    def rename(self, names):
        return Combinations([names[name] for name in self.columns], self.rows)

    def restrict(self, names):
        left = [i for i, name in enumerate(self.columns) if name in names]
        if len(left) < 2:
            return None
        rows = [[row[i] for i in left] for row in self.rows]
        return Combinations([self.columns[i] for i in left], rows)

    def check(self, types):
        for name, levels in zip(self.columns, zip(*self.rows, strict=True), strict=True):
            check_declared(name, types[name])
            if not types[name].levels:
                raise ValueError(f"{name!r} has no levels: it is {types[name]!r}.")
            bind(name, types[name], dict.fromkeys(levels))

    def find_codes(self, types):
        """Return the codes of the levels, NaN for missing, of shape (n_rows, n_columns)."""

        def encode(name, level):
            return np.nan if level is None else types[name].levels.index(level)

        return np.array([list(map(encode, self.columns, row)) for row in self.rows])

    def bind(self, types):
        listed = pd.MultiIndex.from_arrays(np.nan_to_num(self.find_codes(types), nan=-1).T)

        def holds(values):
            keys = [np.nan_to_num(values[name], nan=-1) for name in self.columns]
            return pd.MultiIndex.from_arrays(keys).isin(listed)

        return holds


RULES = {rule.__name__.lower(): rule for rule in (Implies, Ordered, Derived, Unique, Combinations)}


def split_document(document):
    """Return the columns and the rules of a schema's document, where rules may stand alone."""
    columns, rules = document.get("columns"), document.get("rules")
    # No column type is a list, and a type is a text.
    has_columns = isinstance(columns, Mapping) and not isinstance(columns.get("type"), str)
    if not has_columns and not isinstance(rules, list):
        return document, []
    check_keys(document, ("columns", "rules"), 'a schema with "columns" or "rules"')
    return columns or {}, rules or []


def parse_rules(given, types=None, classes=RULES):
    """Return rules from rules or dicts, checked for columns of these types if there are any."""
    rules = []
    for i, rule in enumerate(check_list("rules", given), 1):
        rule = explain(partial(parse, rule, classes), f"Rule {i}")
        if types:
            unknown = [name for name in rule.names if name not in types]
            if unknown:
                raise ValueError(
                    f"{rule!r} names {unknown}, which are no columns: {list(types)}."
                    f"{suggest(unknown, types)}"
                )
            explain(partial(rule.check, types), f"{rule!r} cannot be obeyed")
        rules.append(rule)
    return tuple(rules)
