# SPDX-License-Identifier: BSD-3-Clause
"""Schema of two private tables that belong together, with their columns side by side."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from ..checks import list_names
from ..curator.chunks import adapt_table
from ..curator.dataset import Dataset
from ..exceptions import FitQualityWarning, TableError, warn_caller
from ..tables.columns import Number
from ..tables.format import TableFormat, declare
from ..tables.layout import TableLayout
from ..tables.rules.ordered import Ordered
from ..tables.rules.rule import Rule
from ..tables.schema import Schema
from .schema import Elapsed, JoinedSchema


@dataclass(frozen=True)
class OpenTable:
    """One of the tables, at the trust boundary.

    Attributes
    ----------
    name : str
    dataset : Dataset
        The private rows.
    schema : Schema or dict
        All columns, that of the order first; empty if there are only identifiers.
    layout : TableLayout
        Container and dtypes.
    rules : tuple of Rule
    """

    name: str
    dataset: Dataset
    schema: Any
    layout: TableLayout
    rules: tuple[Rule, ...] = ()

    @classmethod
    def of(cls, name, table, schema, key, order, may_be_empty):
        """Check the public facts of a table."""
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
            layout = TableLayout((), {}, X=dataset.container)
            return cls(name, dataset.validate_persons(), {}, layout)
        schema = _complete(schema, dataset, order)
        layout = TableLayout.of(schema, dataset)
        # Names of features are those of an array; here they would be of two tables.
        dataset.validate_table(SimpleNamespace(), TableFormat(schema, layout))
        return cls(name, dataset, schema, layout, tuple(schema.rules))

    def rename(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Return values by the names that columns have next to those of another table."""
        return {join_names(self.name, name): value for name, value in columns.items()}


def open_tables(tables, schemas, key, order):
    """Check the public facts of the tables of persons and of rows; return two `OpenTable`."""
    _check_tables(tables, order)
    schemas = schemas or {}
    opened: list[OpenTable] = []
    unknown = [name for name in schemas if name not in tables]
    if unknown:
        raise ValueError(f"schemas names {unknown}, but the tables are {list(tables)}.")
    for name, table in tables.items():
        # The number of persons is public, and whether any has rows is not.
        given = (order, True) if opened else (None, False)
        try:
            opened.append(OpenTable.of(name, table, schemas.get(name), key, *given))
        except TableError as error:
            message = str(error)
        else:
            continue
        raise TableError(f"Table {name!r}: {message}")
    _check_order(opened[1], order)
    return opened


def _complete(schema, dataset, order):
    """Return the schema of all columns of a table, to be inferred if it does not declare them."""
    declared = declare(schema, dataset)
    columns = {**declared}
    if not all(name in declared for name in dataset.head):
        columns = {**declare(None, dataset), **declared}
    names = sorted(columns, key=lambda name: name != order)
    return Schema({name: columns[name] for name in names}, declared.rules)


def _check_tables(tables, order):
    """Raise an error if these are not two tables that can be joined."""
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


def _check_order(rows, order):
    """Raise an error if rows cannot be learned, or put in order."""
    if not any(not column.is_generated for column in rows.schema.values()):
        raise ValueError(f"{rows.name!r} has no column to learn besides its identifiers.")
    if order is None:
        return
    if order not in rows.schema:
        raise ValueError(f"order must be a column of {rows.name!r}; got {order!r}.")
    column = rows.schema[order]
    if not (column.has_knots or column.is_unknown):
        raise ValueError(
            f"order must be a column of numbers or dates; {order!r} is a {type(column).__name__}."
        )


def join_schemas(persons, rows, order, rules):
    """Return the schema of all columns, and the columns of rows without missing values.

    Parameters
    ----------
    persons, rows : OpenTable
    order : str or None
        Name of the column of rows that orders them.
    rules : sequence of Rule
        Rules across both tables, of columns as `join_names` names them.

    Raises
    ------
    ValueError
        If rows cannot obey the rules.
    """
    parts = [part.rename(part.schema) for part in (persons, rows)]
    if both := parts[0].keys() & parts[1].keys():
        raise ValueError(
            f"Columns of both tables would be {list_names(sorted(both))}: rename a table."
        )
    renamed = [
        rule.rename({name: join_names(part.name, name) for name in rule.names})
        for part in (persons, rows)
        for rule in part.rules
    ]
    rules = [*renamed, *rules]
    required = [n for n, column in parts[1].items() if not (column.missing or column.is_generated)]
    columns = parts[0] | parts[1] | {n: replace(parts[1][n], missing=True) for n in required}
    if order is None:
        _check_rules(rules, parts, ())
        return JoinedSchema(columns, rules), tuple(required)
    order = join_names(rows.name, order)
    computed = {getattr(rule, "column", None) for rule in rules}
    differences = {r.names: r.difference for r in rules if isinstance(r, Ordered)}
    dates = [
        Elapsed(order, name, _find_days(columns, order, name, differences.get((order, name))))
        for name in parts[1]
        if name not in (order, *computed) and _may_follow(columns[name], columns[order])
    ]
    _check_rules(rules, parts, (order, *(rule.date for rule in dates)))
    _warn_of_zones(order, {name: parts[1][name] for name in parts[1] if name not in computed})
    columns[f"{rows.name} gap"] = _find_gap(columns[order])
    # Persons without rows have no order.
    return JoinedSchema(columns, [*rules, *dates]), tuple(n for n in required if n != order)


def _warn_of_zones(order, columns):
    """Warn of dates whose time since the order is not learned, as one of them has no time zone."""
    dates = {name: column.zone for name, column in columns.items() if column.is_date}
    zone = dates.get(order)
    if others := [n for n, other in dates.items() if order in dates and other != zone]:
        warn_caller(
            f"Dates {others} and the order {order!r} have other time zones, or none: the time "
            f"between them is not learned. Give all of one, as with .dt.tz_localize({zone!r}).",
            FitQualityWarning,
        )


def _may_follow(column, order):
    """Whether a column may hold dates, as the order may: these are learned relative to it.

    So the time from an admission to the discharge is kept, whatever the admission is.
    """
    if column.is_date and order.is_date:
        return column.zone == order.zone
    # If an order of texts turns out to be no date, declared bounds of others are of use.
    if order.is_unknown and column.is_date:
        return column.is_open
    return column.is_unknown and (order.is_unknown or order.is_date)


def _find_days(columns, order, name, difference):
    """Return the column type of the days from an order to a date that a rule declares."""
    if difference is not None and "day" not in (
        getattr(columns[n], "unit", "day") for n in (order, name)
    ):
        raise ValueError(
            f"The difference of {order!r} and {name!r} must be in days: declare unit='day'."
        )
    return difference


def _check_rules(rules, parts, dated):
    """Refuse rules that rows cannot obey, as others decide on their columns.

    `parts` are the columns of both tables, and `dated` the order and columns that may be dates
    relative to it.
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


def _find_gap(order):
    """Return the column type of the gaps between orders, in days for dates."""
    if order.is_unknown or order.is_open:
        return Number(missing=True)
    number, unit = order.to_number(), getattr(order, "units_per_day", 1)
    is_whole = not order.is_date or unit == 1
    upper = (number.upper - number.lower) / unit
    return Number(0, upper, decimals=number.decimals if is_whole else None, missing=True)


def join_names(table: str, column: str) -> str:
    """Return the name of a column next to those of another table."""
    return f"{table}.{column}"
