# SPDX-License-Identifier: BSD-3-Clause
"""Public facts of two tables that belong together, and their columns side by side."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from ...checks import list_names
from ...curator.cells import CellReader
from ...curator.dataset import Dataset
from ...curator.histories import HistoryDataset
from ..columns import Date, Number
from ..format import TableFormat, declare
from ..kind import TableKind
from ..rules.ordered import Ordered
from ..schema import Schema

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
        The columns of persons, the order, the other columns of rows, and, if there is an order,
        the days from it to other dates of a row, and the gap since the row before.
    names : tuple of str
        Names of the two tables.
    kinds : tuple of TableKind
        Containers and columns of both.
    reader : CellReader
        Reads the cells of a row, with its order first, if there is one.
    required : tuple of str
        Columns of rows without missing values. Here they have some, in persons without rows.
    dates : Schema or dict
        The order, the columns of rows that are learned as dates relative to it, and their rules;
        empty without such columns.
    dataset : HistoryDataset
        The private records.
    """

    table: TableFormat
    names: tuple[str, str]
    kinds: tuple[TableKind, TableKind]
    reader: CellReader
    required: tuple[str, ...]
    dates: Any
    dataset: HistoryDataset

    @classmethod
    def of(
        cls, tables, schemas: Mapping[str, Schema] | None, keys: Keys, max_rows: int
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

        Raises
        ------
        ValueError
            If what is public of them does not belong together.
        """
        names, schemas = _check_tables(tables), schemas or {}
        unknown = [name for name in schemas if name not in names]
        if unknown:
            raise ValueError(f"schemas names {unknown}, but the tables are {list(names)}.")
        persons, rows = (
            _OpenTable.of(name, tables[name], schemas.get(name), keys.persons) for name in names
        )
        _check_order(rows, keys.order)
        dates = _find_dates(rows, keys.order)
        _check_rules((persons, rows), dates)
        schema, required = _join_schemas(persons, rows, keys.order, dates)
        # Columns of rows as they are given out: the order, if there is one, comes first.
        position = {name: i for i, name in enumerate(rows.schema)}
        names_of_rows = [n for n in rows.schema if n not in dates and n != keys.order]
        names_of_rows = [keys.order] * (keys.order is not None) + names_of_rows
        columns = [position[name] for name in names_of_rows]
        # The days to each other date, and the gap.
        n_differences = 0 if keys.order is None else max(len(dates), 1)
        given = rows.dataset.reader
        styles, levels = (
            tuple(getattr(given, what)[i] for i in columns) + (nothing,) * n_differences
            for what, nothing in (("styles", None), ("levels", ()))
        )
        before = persons.dataset.reader
        dtypes, listed = (
            {
                join_names(part.name, name): dtype
                for part in (persons, rows)
                for name, dtype in getattr(part.kind, what).items()
            }
            for what in ("dtypes", "listed")
        )
        order = "the table" if keys.order is None else repr(keys.order)
        return cls(
            TableFormat(schema, TableKind(schema.names, dtypes, listed=listed)),
            names,
            # Categories that dtypes list are private: they stay with `table` until inferred.
            tuple(replace(part.kind, listed={}) for part in (persons, rows)),
            CellReader(styles, levels),
            required,
            dates,
            HistoryDataset(
                persons.dataset,
                rows.dataset,
                CellReader(before.styles + styles, before.levels + levels),
                _PERSON.format(*names, max_rows, order, keys.persons),
                columns=columns,
                order=None if keys.order is None else (columns[0], styles[0]),
                dates=[
                    (position[name], given.styles[position[name]])
                    for name in dates
                    if name != keys.order
                ],
                max_rows=max_rows,
            ),
        )


@dataclass(frozen=True)
class _OpenTable:
    """One of the tables: its private dataset, and what is public of it."""

    name: str
    dataset: Dataset
    schema: Any
    kind: TableKind

    @classmethod
    def of(cls, name, table, schema, key):
        dataset = Dataset.of(table)
        if dataset.is_in_parts:
            raise ValueError(
                f"{name!r} must be a table in memory, and no chunks or table of an engine."
            )
        columns = list(dataset.head)
        if not isinstance(key, str) or key not in columns:
            raise ValueError(
                f"persons must name the column of both tables that identifies persons; {name!r} "
                f"has no column {key!r}, but {list_names(list(map(repr, columns)))}."
            )
        dataset = Dataset.of(table, persons=key)
        if len(columns) == 1:
            # Persons of whom nothing is known but their rows.
            kind = TableKind((), {}, X=dataset.container)
            return cls(name, dataset.validate_persons(), {}, kind)
        schema = declare(schema, dataset)
        kind = TableKind.of(schema, dataset)
        # Names of features are those of an array; here they would be of two tables.
        dataset.validate_table(SimpleNamespace(), TableFormat(schema, kind))
        return cls(name, dataset, schema, kind)


def _check_tables(tables):
    """Return the names of two tables."""
    if not isinstance(tables, Mapping) or len(tables) != 2:
        given = f"{len(tables)} tables" if isinstance(tables, Mapping) else type(tables).__name__
        raise ValueError(
            "X must be a dict of two tables, that of persons and that of their rows, such as "
            f"{{'patients': ..., 'visits': ...}}; got {given}. Join further tables to one of these."
        )
    if not all(isinstance(name, str) for name in tables):
        raise ValueError(f"The names of tables must be texts; got {list(tables)}.")
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


def _find_dates(rows, order):
    """Return the columns of dates beside an order of dates: these are learned relative to it.

    So the time from an admission to the discharge is kept, whatever the admission is.
    """
    first = rows.schema.get(order)
    if not isinstance(first, Date):
        return {}
    kinds = {
        name: kind
        for name, kind in rows.schema.items()
        if isinstance(kind, Date) and kind.zone == first.zone and name != order
    }
    rules = [rule for rule in rows.schema.rules if _is_kept(rule, order, kinds)]
    return Schema({order: first, **kinds}, rules) if kinds else {}


def _is_kept(rule, order, dates):
    return isinstance(rule, Ordered) and rule.lower == order and rule.upper in dates


def _check_rules(tables, dates):
    """Refuse rules that histories do not obey."""
    kept = getattr(dates, "rules", ())
    for table in tables:
        others = [rule for rule in getattr(table.schema, "rules", ()) if rule not in kept]
        if others:
            raise ValueError(
                f"Histories obey Ordered(order, date) and no other rules; that of {table.name!r} "
                f"has {others[0]!r}: leave it out of the schema."
            )
    for rule in kept:
        # Differences are learned in days.
        is_by_day = "day" in (dates[rule.lower].unit, dates[rule.upper].unit)
        if rule.difference is not None and not is_by_day:
            raise ValueError(f"The difference of {rule!r} must be in days: declare unit='day'.")


def _join_schemas(persons, rows, order, dates):
    """Return the schema of all columns, and the columns of rows without missing values."""
    own, others = (
        {join_names(part.name, name): kind for name, kind in part.schema.items()}
        for part in (persons, rows)
    )
    required = [name for name, kind in others.items() if not (kind.missing or kind.is_generated)]
    others |= {name: replace(others[name], missing=True) for name in required}
    if order is not None:
        first, name = others.pop(join_names(rows.name, order)), join_names(rows.name, order)
        differences = {}
        declared = {rule.upper: rule.difference for rule in getattr(dates, "rules", ())}
        for date in (date for date in dates if date != order):
            kind = others.pop(join_names(rows.name, date))
            after = name_difference(rows.name, date, order)
            is_whole = (kind.unit, first.unit) == ("day", "day")
            inferred = Number(decimals=0 if is_whole else None)
            differences[after] = replace(declared.get(date) or inferred, missing=True)
            required = [after if n == join_names(rows.name, date) else n for n in required]
        required = [n for n in required if n != name]
        others = {name: first, **others, **differences, f"{name} gap": _find_gap(first)}
    return Schema({**own, **others}), tuple(required)


def _find_gap(kind):
    """Return the column type of the gaps between orders, in days for dates."""
    if kind.is_unknown or kind.is_open:
        return Number(missing=True)
    number, unit = kind.to_number(), getattr(kind, "units_per_day", 1)
    is_whole = not isinstance(kind, Date) or unit == 1
    upper = (number.upper - number.lower) / unit
    return Number(0, upper, decimals=number.decimals if is_whole else None, missing=True)


def join_names(table: str, column: str) -> str:
    """Return the name of a column beside those of another table."""
    return f"{table}.{column}"


def name_difference(table: str, date: str, order: str) -> str:
    """Return the name of the days from the order of a row to another date."""
    return f"{join_names(table, date)} since {order}"
