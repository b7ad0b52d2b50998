# SPDX-License-Identifier: BSD-3-Clause
"""Public facts of two tables that belong together, and their columns side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from ..checks import list_names
from ..curator.chunks import adapt_table
from ..curator.dataset import Dataset
from ..data.cells import CellReader
from ..exceptions import FitQualityWarning, TableError, warn_caller
from ..tables.columns import Number
from ..tables.format import TableFormat, declare
from ..tables.kind import TableKind
from ..tables.rules.ordered import Ordered
from ..tables.rules.rule import Rule
from ..tables.schema import Schema
from .records import HistoryDataset, HistoryLayout
from .schema import Elapsed, JoinedSchema

_PERSON = (
    "a person has one row of {0!r}, and rows of {1!r}, of which the first {2} in the order of {3} "
    "are used; {4!r} identifies them in both"
)


@dataclass(frozen=True)
class Keys:
    """Columns that connect two tables.

    Attributes
    ----------
    persons : str
        Name of the column of both tables that identifies persons.
    order : str or None
        Name of the column of the second table that orders the rows of a person.
    """

    persons: str
    order: str | None = None


@dataclass(frozen=True)
class JoinedTables:
    """Two tables, and their columns side by side, with the names of their tables.

    Attributes
    ----------
    table : TableFormat
        With a `JoinedSchema`: the columns of persons, the order, the other columns of rows, and, if
        there is an order, the gap since the row before.
    names : tuple of str
        Names of the two tables.
    kinds : tuple of TableKind
        Containers and columns of both.
    reader : CellReader
        Reads the cells of a row, with its order first, if there is one.
    required : tuple of str
        Columns of rows without missing values. Here they have some, in persons without rows.
    rules : tuple of (tuple of Rule)
        The rules of both schemas.
    dataset : HistoryDataset
        The private records.
    """

    table: TableFormat
    names: tuple[str, str]
    kinds: tuple[TableKind, TableKind]
    reader: CellReader
    required: tuple[str, ...]
    rules: tuple[tuple[Rule, ...], ...]
    dataset: HistoryDataset

    @classmethod
    def of(
        cls,
        tables,
        schemas: Mapping[str, Schema] | None,
        keys: Keys,
        max_rows: int,
        rules: Sequence[Rule] = (),
    ) -> "JoinedTables":
        """Check the public facts of two tables, and join their columns.

        Parameters
        ----------
        tables : dict of str to DataFrame
            That of persons, and that of their rows.
        schemas : dict of str to Schema or None
        keys : Keys
        max_rows : int
            Rows of a person that are used.
        rules : sequence of Rule
            Rules across both tables, of columns as `join_names` names them.

        Raises
        ------
        ValueError
            If their public facts contradict each other.
        """
        names, schemas = _check_tables(tables, keys.order), schemas or {}
        unknown = [name for name in schemas if name not in names]
        if unknown:
            raise ValueError(f"schemas names {unknown}, but the tables are {list(names)}.")
        persons, rows = parts = [
            _open(name, tables[name], schemas.get(name), keys.persons, may_be_empty)
            # The number of persons is public, and whether any has rows is not.
            for name, may_be_empty in zip(names, (False, True), strict=True)
        ]
        _check_order(rows, keys.order)
        schema, required = _join_schemas(persons, rows, keys.order, rules)
        # Columns of rows as they are given out: the order, if there is one, comes first.
        names_of_rows = _put_first(list(rows.schema), keys.order)
        columns = [list(rows.schema).index(name) for name in names_of_rows]
        has_order, given = keys.order is not None, rows.dataset.reader
        # The last column is the gap.
        styles, levels = (
            tuple(getattr(given, what)[i] for i in columns) + (nothing,) * has_order
            for what, nothing in (("styles", None), ("levels", ()))
        )
        before = persons.dataset.reader
        dtypes, listed = (
            {
                join_names(part.name, name): dtype
                for part in parts
                for name, dtype in getattr(part.kind, what).items()
            }
            for what in ("dtypes", "listed")
        )
        order = repr(keys.order) if has_order else "the table"
        return cls(
            TableFormat(schema, TableKind(schema.names, dtypes, listed=listed)),
            names,
            # Categories that dtypes list are private: they stay with `table` until inferred.
            tuple(replace(part.kind, listed={}) for part in parts),
            CellReader(styles, levels),
            required,
            tuple(tuple(getattr(part.schema, "rules", ())) for part in parts),
            HistoryDataset(
                persons.dataset,
                rows.dataset,
                CellReader(before.styles + styles, before.levels + levels),
                _PERSON.format(*names, max_rows, order, keys.persons),
                HistoryLayout(
                    tuple(columns),
                    (columns[0], styles[0]) if has_order else None,
                    max_rows,
                    (before, given),
                ),
            ),
        )


@dataclass(frozen=True)
class _OpenTable:
    """One of the tables: its private dataset, and its public facts."""

    name: str
    dataset: Dataset
    schema: Any
    kind: TableKind

    @classmethod
    def of(cls, name, table, schema, key, may_be_empty):
        dataset = Dataset.of(table)
        columns = list(dataset.head)
        if not isinstance(key, str) or key not in columns:
            raise ValueError(
                f"persons must name the column of both tables that identifies persons; {name!r} "
                f"has no column {key!r}, but {list_names(list(map(repr, columns)))}."
            )
        dataset = Dataset.of(table, persons=key, may_be_empty=may_be_empty)
        if len(columns) == 1:
            # Persons of whom nothing is known but their rows.
            kind = TableKind((), {}, X=dataset.container)
            return cls(name, dataset.validate_persons(), {}, kind)
        schema = _complete(schema, dataset)
        kind = TableKind.of(schema, dataset)
        # Names of features are those of an array; here they would be of two tables.
        dataset.validate_table(SimpleNamespace(), TableFormat(schema, kind))
        return cls(name, dataset, schema, kind)


def _open(name, table, schema, key, may_be_empty):
    """Return one of the tables, whose name stands before errors about it."""
    try:
        return _OpenTable.of(name, table, schema, key, may_be_empty)
    except TableError as error:
        message = str(error)
    raise TableError(f"Table {name!r}: {message}")


def _complete(schema, dataset):
    """Return a schema with the columns of a table that it does not declare, to be inferred."""
    declared = declare(schema, dataset)
    if all(name in declared for name in dataset.head):
        return declared
    kinds = {**declare(None, dataset), **declared}
    first = [name for name in dataset.head if name in kinds]
    return type(declared)({name: kinds.pop(name) for name in first} | kinds, declared.rules)


def _check_tables(tables, order):
    """Return the names of two tables."""
    if not isinstance(tables, Mapping) or len(tables) != 2:
        given = f"{len(tables)} tables" if isinstance(tables, Mapping) else type(tables).__name__
        raise ValueError(
            "X must be a dict of two tables, that of persons and that of their rows, such as "
            f"{{'patients': ..., 'visits': ...}}; got {given}. Join further tables to one of these."
        )
    if not all(isinstance(name, str) for name in tables):
        raise ValueError(f"The names of tables must be texts; got {list(tables)}.")
    engines = {name: getattr(adapt_table(table), "engine", None) for name, table in tables.items()}
    if len({*engines.values()}) > 1:
        given = ", ".join(f"{name!r}: {engine or 'none'}" for name, engine in engines.items())
        raise ValueError(
            f"Both tables must be of one engine, which joins them by person, or of none; engines "
            f"are {given}. Convert one of them, as with dask.dataframe.from_pandas(table)."
        )
    if order is None and None not in engines.values():
        raise ValueError(
            "Rows of an engine have no order: name the column of numbers or dates that orders the "
            "rows of a person, as order='date'."
        )
    return tuple(tables)


def _check_order(rows, order):
    """Raise an error if rows cannot be learned, or put in order."""
    if not any(not kind.is_generated for kind in rows.schema.values()):
        raise ValueError(f"{rows.name!r} has no column to learn beside its identifiers.")
    if order is None:
        return
    if order not in rows.schema:
        raise ValueError(f"order must be a column of {rows.name!r}; got {order!r}.")
    kind = rows.schema[order]
    if not (kind.has_knots or kind.is_unknown):
        raise ValueError(
            f"order must be a column of numbers or dates; {order!r} is a {type(kind).__name__}."
        )


def _put_first(names, order):
    return sorted(names, key=lambda name: name != order)


def _join_schemas(persons, rows, order, rules):
    """Return the schema of all columns, and the columns of rows without missing values."""
    parts = [
        {join_names(part.name, name): part.schema[name] for name in _put_first(part.schema, first)}
        for part, first in ((persons, None), (rows, order))
    ]
    renamed = [
        rule.rename({name: join_names(part.name, name) for name in rule.names})
        for part in (persons, rows)
        for rule in getattr(part.schema, "rules", ())
    ]
    rules = [*renamed, *rules]
    required = [n for n, kind in parts[1].items() if not (kind.missing or kind.is_generated)]
    kinds = parts[0] | parts[1] | {n: replace(parts[1][n], missing=True) for n in required}
    if order is None:
        _check_rules(rules, parts, ())
        return JoinedSchema(kinds, rules), tuple(required)
    order = join_names(rows.name, order)
    computed = {getattr(rule, "column", None) for rule in rules}
    differences = {r.names: r.difference for r in rules if isinstance(r, Ordered)}
    dates = [
        Elapsed(order, name, _find_days(kinds, order, name, differences.get((order, name))))
        for name in parts[1]
        if name not in (order, *computed) and _may_follow(kinds[name], kinds[order])
    ]
    _check_rules(rules, parts, (order, *(rule.date for rule in dates)))
    _warn_of_zones(order, {name: parts[1][name] for name in parts[1] if name not in computed})
    kinds[f"{rows.name} gap"] = _find_gap(kinds[order])
    # Persons without rows have no order.
    return JoinedSchema(kinds, [*rules, *dates]), tuple(n for n in required if n != order)


def _warn_of_zones(order, kinds):
    """Warn of dates whose time since the order is not learned, as one of them has no time zone."""
    dates = {name: kind.zone for name, kind in kinds.items() if kind.is_date}
    zone = dates.get(order)
    if others := [n for n, other in dates.items() if order in dates and other != zone]:
        warn_caller(
            f"Dates {others} and the order {order!r} have other time zones, or none: the time "
            f"between them is not learned. Give all of one, as with .dt.tz_localize({zone!r}).",
            FitQualityWarning,
        )


def _may_follow(kind, order):
    """Whether a column may hold dates, as the order may: these are learned relative to it.

    So the time from an admission to the discharge is kept, whatever the admission is.
    """
    if kind.is_date and order.is_date:
        return kind.zone == order.zone
    # If an order of texts turns out to be no date, declared bounds of others are of use.
    if order.is_unknown and kind.is_date:
        return kind.is_open
    return kind.is_unknown and (order.is_unknown or order.is_date)


def _find_days(kinds, order, name, difference):
    """Return the column type of the days from an order to a date that a rule declares."""
    if difference is not None and "day" not in (
        getattr(kinds[n], "unit", "day") for n in (order, name)
    ):
        raise ValueError(
            f"The difference of {order!r} and {name!r} must be in days: declare unit='day'."
        )
    return difference


def _check_rules(rules, parts, dated):
    """Refuse rules that rows cannot obey, as others decide on their columns.

    Parameters
    ----------
    rules : list of Rule
    parts : list of dict
        The columns of both tables.
    dated : tuple of str
        The order, and columns that may be dates relative to it.
    """
    free = parts[1].keys() - set(dated)
    for rule in rules:
        unknown = [name for name in rule.names if name not in parts[0] | parts[1]]
        if unknown:
            raise ValueError(
                f"{rule!r} names {unknown}, which are no columns: {[*parts[0], *parts[1]]}."
            )
        if isinstance(rule, Ordered) or parts[0].keys() >= {*rule.names}:
            continue
        changed = getattr(rule, "then", None)
        changed = [n for n, _ in changed] if changed else [getattr(rule, "column", None)]
        if changed == [None]:
            changed = free.intersection(rule.names)
        if not changed or not free.issuperset(changed):
            raise ValueError(
                f"{rule!r} cannot be obeyed: persons, the order, and dates relative to it are "
                "drawn before other columns of rows. Only Ordered compares them; leave the rule "
                "out."
            )


def _find_gap(kind):
    """Return the column type of the gaps between orders, in days for dates."""
    if kind.is_unknown or kind.is_open:
        return Number(missing=True)
    number, unit = kind.to_number(), getattr(kind, "units_per_day", 1)
    is_whole = not kind.is_date or unit == 1
    upper = (number.upper - number.lower) / unit
    return Number(0, upper, decimals=number.decimals if is_whole else None, missing=True)


def join_names(table: str, column: str) -> str:
    """Return the name of a column beside those of another table."""
    return f"{table}.{column}"
