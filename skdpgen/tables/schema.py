# SPDX-License-Identifier: BSD-3-Clause
"""Schemas: the public description of a table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pandas as pd

from ..data.containers import adapt
from ..saving.registry import savable
from .columns.base import check_list
from .columns.kinds import parse_column
from .conversions import ConvertibleSchema
from .rules.feasibility import check_together
from .rules.ordered import list_differences
from .rules.rules import RULES, Derived, parse_rules, split_document


@dataclass(frozen=True, repr=False)
@savable
class Schema(ConvertibleSchema):
    """Public description of a table: names, types, bounds and levels of columns, and rules.

    Schemas are immutable and hashable mappings of names to column types. Declared bounds and levels
    must come from public knowledge, such as a codebook: those of private rows would leak.

    Parameters
    ----------
    columns : dict of str to Number, Category, Ordinal, Boolean, Date, Identifier, Unknown or dict
        The column types, in order. A dict holds the parameters of a type, and its name in lower
        case as ``"type"``. Without columns, a generator infers them, and ``rules`` hold for them.
    rules : list of Implies, Ordered, Derived, Unique, Combinations or dict, default=()
        Public constraints on all rows, which synthetic rows obey. A dict holds the parameters of a
        rule, and its name in lower case as ``"type"``.

    Attributes
    ----------
    columns : tuple of (str, Column)
    rules : tuple of Rule
    names : tuple of str
    undeclared : tuple of str
        Names of the learned columns whose bounds or categories are not declared.
    derived_names : tuple of str
        Names of the columns that are computed, not learned.
    differences : dict of str to Ordered
        The orders whose differences are learned like columns, by the names of the differences.

    Raises
    ------
    ValueError
        If there are neither columns nor rules, a description is invalid, or no rows can obey the
        rules.

    Examples
    --------
    >>> from skdpgen import Category, Number, Schema
    >>> from skdpgen.tables import Implies
    >>> schema = Schema({
    ...     "age": Number(17, 90, decimals=0),
    ...     "sex": {"type": "category", "categories": ["F", "M"], "missing": True},
    ... })
    >>> schema
    Schema({
        'age': Number(lower=17, upper=90, decimals=0),
        'sex': Category(categories=('F', 'M'), missing=True),
    })
    >>> schema.names
    ('age', 'sex')
    >>> Schema.from_json(schema.to_json()) == schema
    True
    >>> Schema({"paid": {"type": "boolean"}, "price": Number(0, 9, missing=True)},
    ...        [Implies({"paid": False}, {"price": None})])
    Schema({
        'paid': Boolean(),
        'price': Number(lower=0, upper=9, missing=True),
    }, rules=[
        Implies(when={'paid': False}, then={'price': None}),
    ])
    """

    _rule_types: ClassVar[Mapping] = RULES
    # Dates of which differences are learned in their place; see `JoinedSchema`.
    dates: ClassVar = ()

    def __post_init__(self):
        if not isinstance(self.columns, Mapping):
            raise ValueError(
                "columns must be a dict of names to column types, such as {'age': Number(17, 90)}; "
                f"got {type(self.columns).__name__}."
            )
        columns, rules = split_document(self.columns)
        rules = [*rules, *self.rules] if rules else self.rules
        columns = tuple((name, parse_column(name, kind)) for name, kind in columns.items())
        kinds = dict(columns)
        # Rules alone are for columns that a generator infers.
        rules = parse_rules(rules, kinds or None, self._rule_types)
        if not columns and not rules:
            raise ValueError("A schema needs at least one column, or a rule.")
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "rules", rules)
        if columns:
            check_together(rules, kinds)
        found = self._list_differences(kinds) if columns else {}
        object.__setattr__(self, "_orders", {name: rule for name, (rule, _) in found.items()})
        object.__setattr__(self, "_kinds", self._arrange(kinds, found))

    def _list_differences(self, kinds):
        return list_differences(self.rules, kinds)

    def _arrange(self, kinds, found):
        """Return the types of columns and differences, in the order of their weights."""
        return kinds | {name: kind for name, (_, kind) in found.items()}

    def select(self, names: Iterable[str]) -> "Schema":
        """Return the schema of some columns, and of the rules that apply to them.

        Implications and lists of combinations are restricted to the selected columns. Other rules
        are dropped unless all of their columns are selected.

        Parameters
        ----------
        names : str or list of str
            Names of the columns, in the order of the result.

        Returns
        -------
        Schema

        Raises
        ------
        KeyError
            If there is no such column.
        ValueError
            If an operand of a selected derived column is not selected.
        """
        columns = {name: self[name] for name in _list_names(names)}
        rules = (rule.restrict(columns) for rule in self.rules)
        return type(self)(columns, [rule for rule in rules if rule is not None])

    def drop(self, names: Iterable[str]) -> "Schema":
        """Return the schema without some columns; `select` describes the rules.

        Parameters
        ----------
        names : str or list of str
            Names of the columns to drop.

        Returns
        -------
        Schema

        Raises
        ------
        KeyError
            If there is no such column.
        ValueError
            If an operand of a remaining derived column is dropped.
        """
        dropped = {name: self[name] for name in _list_names(names)}
        return self.select([name for name in self if name not in dropped])

    def replace(self, kinds: Mapping) -> "Schema":
        """Return the schema with some column types replaced, and the same rules.

        Parameters
        ----------
        kinds : dict of str to Column
            By name of the column, or of the difference.

        Returns
        -------
        Schema
        """
        # A difference has no column: its type is that of the rule.
        names = {rule: name for name, rule in self.differences.items() if name in kinds}
        rules = [
            replace(rule, difference=kinds[names[rule]]) if rule in names else rule
            for rule in self.rules
        ]
        columns = {name: kind for name, kind in kinds.items() if name not in self.differences}
        return type(self)({**self, **columns}, rules)

    def resolves(self, declared: "Schema") -> bool:
        """Return whether another schema declares nothing else than this one, which may infer more.

        Parameters
        ----------
        declared : Schema
            Rules alone are those of any columns.

        Returns
        -------
        bool
        """
        # The types of differences of dates may be inferred.
        ours, theirs = (
            {replace(r, difference=None) if hasattr(r, "difference") else r for r in schema.rules}
            for schema in (self, declared)
        )
        has_all = not len(declared) or set(self.names) == set(declared.names)
        return has_all and ours == theirs and all(self[n].resolves(k) for n, k in declared.columns)

    def with_even_knots(self) -> "Schema":
        """Return the schema with evenly spaced knots in place of knots that a generator infers.

        Returns
        -------
        Schema

        Examples
        --------
        >>> from skdpgen import Number, Schema
        >>> Schema({"age": Number(18, 90)}).with_even_knots()
        Schema({
            'age': Number(lower=18, upper=90, scale='linear'),
        })
        """
        return self.replace(
            {name: kind.with_even_knots() for name, kind in self.columns if kind.takes_knots}
        )

    def conform(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return rows within the schema, as synthetic rows are.

        Numbers and dates beyond the bounds are put at the next bound, and categories that are not
        listed become `other`. A model that learnt from synthetic rows is to see real rows so: of
        rare categories and far values, it knows nothing else.

        Parameters
        ----------
        table : DataFrame
            Some or all columns of the schema, in a frame of any library and in the types that
            synthetic rows have; numbers and dates are not read from texts. Other columns stay.

        Returns
        -------
        DataFrame
            A frame of the same library.

        Raises
        ------
        ValueError
            If the schema leaves bounds or categories open.

        Examples
        --------
        >>> import pandas as pd
        >>> from skdpgen import Category, Number, Schema
        >>> age, job = Number(0, 90, decimals=0), Category(["nurse"], other="other")
        >>> schema = Schema({"age": age, "job": job})
        >>> schema.conform(pd.DataFrame({"age": [30, 99], "job": ["pilot", "nurse"]}))
           age    job
        0   30  other
        1   90  nurse
        """
        check_resolved(self)
        if not isinstance(table, pd.DataFrame):
            cells, container, _ = adapt(table)
            return container.give(self.conform(cells))
        found = {name: self[name].conform(table[name]) for name in self if name in table}
        return table.assign(**found)

    def share_obeying(self, table: pd.DataFrame) -> pd.Series:
        """Return the share of the rows of a table that obey each rule.

        Parameters
        ----------
        table : DataFrame
            Synthetic or public rows, of pandas or another library. **The shares of private rows are
            private, too.**

        Returns
        -------
        Series
            Indexed by the rules.
        """
        cells: Any = adapt(table).data
        values = {n: self[n].to_values(cells[n]) for rule in self.rules for n in rule.names}
        shares = [rule.bind(self)(values).mean() for rule in self.rules]
        return pd.Series(shares, index=pd.Index(self.rules, dtype=object, tupleize_cols=False))

    @property
    def names(self):
        """Names of the columns, in order."""
        return tuple(name for name, _ in self.columns)

    @property
    def undeclared(self):
        """Names of the learned columns whose bounds or categories are not declared."""
        return tuple(name for name, kind in self.learned.items() if kind.is_open)

    @property
    def derived_names(self):
        """Names of the columns that are computed, not learned."""
        return tuple(rule.column for rule in self.rules if isinstance(rule, Derived))

    @property
    def differences(self):
        """The orders whose differences are learned like columns, by the names of these."""
        return self._orders

    def list_advice(self):
        """Return how to declare each column that is learned but is none of the table, by name."""
        return {
            name: "declare Ordered({!r}, {!r}, difference=Number(0, 30, decimals=0))".format(
                *rule.names
            )
            for name, rule in self.differences.items()
        }

    @property
    def learned(self):
        """Types of the learned columns and differences by name; other columns are made."""
        derived = self.derived_names
        return {
            name: kind
            for name, kind in self._kinds.items()
            if name not in derived and not kind.is_generated
        }

    def add_differences(self, table):
        """Return a table of cells with the learned differences of its columns."""
        found = {name: rule.subtract(table, self) for name, rule in self.differences.items()}
        return table.assign(**found) if found else table

    def __getitem__(self, name):
        try:
            return self._kinds[name]
        except (KeyError, TypeError):  # TypeError: not hashable
            raise KeyError(f"no column {name!r} among {list(self.names)}") from None

    def __iter__(self):
        return iter(self.names)

    def __len__(self):
        return len(self.columns)

    def _repr_html_(self):
        from .._html import make_table

        types = ((name, type(kind).__name__, repr(kind)) for name, kind in self.columns)
        rows = ((name, text, shown[len(text) + 1 : -1]) for name, text, shown in types)
        head = ["Column", "Kind", "Public facts"]
        return make_table("Schema", head, rows, map(repr, self.rules), "Rules")

    def __repr__(self):
        lines = "".join(f"    {name!r}: {kind!r},\n" for name, kind in self.columns)
        rules = "".join(f"    {rule!r},\n" for rule in self.rules)
        return f"Schema({{\n{lines}}}{f', rules=[{chr(10)}{rules}]' if rules else ''})"


def check_resolved(schema):
    """Raise an error if a schema does not declare all bounds and categories."""
    if schema.undeclared:
        raise ValueError(
            f"The schema does not declare the bounds or categories of {list(schema.undeclared)}. "
            "Declare them, as Number(lower, upper) or Category([...]), from public knowledge; or "
            "pass the schema to a generator, which infers them at a cost."
        )


def _list_names(names):
    return [names] if isinstance(names, str) else list(check_list("names", names))
