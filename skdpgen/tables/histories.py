# SPDX-License-Identifier: BSD-3-Clause
"""Data format of persons with histories: two tables that belong together."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pandas as pd

from ..checks import list_names
from ..curator.cells import CellReader
from ..curator.dataset import Dataset
from ..curator.histories import HistoryDataset
from ..curator.record_functions import RecordFunction
from ..format import SAMPLE_BLOCK, Format, check_count
from ..mechanisms.histories import HistorySizes
from ..registry import savable
from .blocks import draw_levels, to_probabilities
from .columns import Date, Number
from .columns.identifier import go_on
from .encoder import TableEncoder
from .format import TableFormat, declare
from .kind import TableKind
from .schema import Schema

_RECORD = (
    "a record is a person: their row of {0!r} and their rows of {1!r}, of which the first {2} {3} "
    "are used; one person has one identifier {4!r}, and those of two persons do not read alike, as "
    "7, 7.0, '7' and '007' do"
)


@dataclass(frozen=True)
class Keys:
    """What connects two tables.

    Attributes
    ----------
    persons : str
        Name of the column of both tables that identifies persons.
    order : str or None
        Name of the column of the second table that orders the rows of a person.
    """

    persons: str
    order: str | None = None


@savable
@dataclass(frozen=True)
class HistoryFormat(Format):
    """Maps two tables to codes of persons and of their rows in order, and back.

    Parameters
    ----------
    table : TableFormat
        All columns with the names of their tables: those of persons, the order, those of rows, and
        the gap since the row before. `resolve` infers what is not declared, from one row of each
        person.
    names : tuple of str
        Names of the two tables.
    kinds : tuple of TableKind
        Containers and columns of both.
    key, order : str
        As in `Keys`.
    max_rows : int
        Rows of a person that are used.
    reader : CellReader
        Of the cells of a row, with its order first, if there is one.
    """

    table: TableFormat
    names: tuple
    kinds: tuple
    key: str
    order: str | None
    max_rows: int
    reader: CellReader

    has_blocks = True

    @property
    def found(self):
        return {"schemas_": dict(zip(self.names, self._split_schema(), strict=True))}

    @property
    def shares(self):
        return self.table.shares

    @property
    def n_columns(self):
        """Number of columns of an encoded row with its person."""
        return self.table.n_columns

    @property
    def n_blocks(self):
        """Numbers of learned columns of persons and of rows."""
        learned = self.table.schema.learned
        n_persons = sum(name in learned for name in self._person_names)
        return n_persons, len(learned) - n_persons

    @property
    def history_sizes(self):
        """The `HistorySizes` of a resolved format."""
        sizes, n = self.table.block_sizes, self.n_blocks[0]
        return HistorySizes((*sizes[:n], self.max_rows + 1), tuple(sizes[n:]), self.max_rows)

    @property
    def order_name(self):
        """Name of the order among the joined columns; None if rows are ordered as they are."""
        return None if self.order is None else _join(self.names[1], self.order)

    @property
    def gap_block(self):
        """The block of the gaps, if dates or numbers order the rows, or None."""
        if self.order is None or not self.table.schema[self.order_name].has_knots:
            return None
        return TableEncoder(self.table.schema).make_blocks()[-1]

    @property
    def _person_names(self):
        """The joined columns that a person has once: the order stands for that of the first row."""
        n = len(self.kinds[0].names) + (self.order is not None)
        return self.table.schema.names[:n]

    def _split_schema(self):
        """Return the schemas of both tables, without the gap."""
        found = []
        for table, kind in zip(self.names, self.kinds, strict=True):
            columns = {name: self.table.schema[_join(table, name)] for name in kind.names}
            if table == self.names[1] and self.order is not None:
                # Each synthetic row has an order.
                given = columns[self.order]
                columns[self.order] = replace(given, missing=False) if given.has_knots else given
            found.append(Schema(columns))
        return found

    # Private tables.

    def resolve(self, curator):
        """Infer what is not declared from one row of each person; see `TableFormat.resolve`."""
        table, name = self.table.resolve(_OneRow(curator)), self.order_name
        if name is not None:
            # Persons without rows have no first order. What was counted is of rows in any place.
            kinds = {name: replace(table.schema[name], missing=True)}
            counted = {n: found for n, found in (table.counted or {}).items() if n != name}
            table = replace(table, schema=table.schema.replace(kinds), counted=counted or None)
        return replace(self, table=table)

    def validate(self, X, y=None):
        """Raise an error if cells are not as declared; see `TableFormat.validate`."""
        self.table.validate(X[:, :-1])

    def encode(self, X, y=None):
        """Map persons with one of their rows to rows of weights; see `TableFormat.encode`."""
        return self.table.encode(X[:, :-1])

    def encode_histories(self, X, y=None):
        """Map persons to codes; see `HistorySizes`.

        A row with a cell that is not as declared is left out, and the others close up.
        """
        names, n = self.table.schema.names, len(self._person_names)
        has_order = self.order is not None
        histories = [cell if isinstance(cell, np.ndarray) else [] for cell in X[:, -1]]
        sizes = np.array([len(rows) for rows in histories])
        rows = np.concatenate([np.empty((0, len(names) - n + has_order), dtype=object)] + [
            history for history in histories if len(history)
        ])
        rows = self.reader(rows)
        codes = self._encode_some(rows[:, has_order:], names[n:])
        is_valid = ~np.isnan(codes).any(axis=1)
        person = np.repeat(np.arange(len(X)), sizes)[is_valid]
        counts = np.bincount(person, minlength=len(X))
        starts = np.cumsum(counts) - counts
        persons = X[:, :n]
        if has_order:
            first = np.full(len(X), None, dtype=object)
            first[counts > 0] = rows[is_valid, 0][starts[counts > 0]]
            persons = np.column_stack([persons[:, :-1], first])
        found = np.zeros((len(X), self.max_rows, codes.shape[1]))
        found[person, np.arange(len(person)) - starts[person]] = codes[is_valid]
        persons = self._encode_some(persons, names[:n])
        return np.column_stack([persons, counts, found.reshape(len(X), -1)])

    def _encode_some(self, cells, names):
        """Return the codes of some columns, which may have none that is learned."""
        schema = self.table.schema.select(list(names))
        if not schema.learned:
            return np.empty((len(cells), 0))
        return TableFormat(schema, texts=self.table.texts).encode_cells(cells)

    # Public tables.

    def calibrate_marginals(self, generate):
        return replace(self, table=self.table.calibrate_marginals(generate))

    def read_public(self, estimator, X):
        keys = Keys(self.key, self.order)
        schemas = dict(zip(self.names, self._split_schema(), strict=True))
        dataset = open_histories(X, schemas, keys, self.max_rows)[1]
        return dataset.reader(dataset.release_ownership()[0][:])

    def sample(self, generate, shares, n_samples, *, y, where, noise):
        return next(self._sample(generate, [check_count(n_samples)], y, where, noise))

    def sample_batches(self, generate, shares, sizes, *, where, noise):
        yield from self._sample(generate, sizes, None, where, noise)

    def _sample(self, generate, sizes, y, where, noise):
        if y is not None or where is not None:
            raise ValueError(
                "Histories are drawn without y and where: draw more persons, and keep those that "
                "satisfy the conditions."
            )
        sampler = HistorySampler(self, generate, noise)
        for size in sizes:
            yield sampler.draw(size)


class _OneRow:
    """A curator as inference sees it: the cells of a person with one of their rows."""

    def __init__(self, curator):
        self._curator = curator

    def __getattr__(self, name):
        return getattr(self._curator, name)

    def prepare(self, function, clip_norm):
        self._curator.prepare(function.after(lambda cells: cells[:, :-1]), clip_norm)


class HistorySampler:
    """Draws persons and their rows; the keys of all that it draws are different.

    Parameters
    ----------
    format : HistoryFormat
    generate : callable
        ``generate(n_persons, generator)`` returns weights of persons, of shape (n, n_levels), the
        last of which are those of numbers of rows, and weights of rows, (n, M, n_levels).
    noise : NoiseSource
    """

    def __init__(self, format, generate, noise):
        self._format, self._generate = format, generate
        self._generator, self._public = noise.torch_generator(), noise.public_generator()
        self._blocks = TableEncoder(format.table.schema, format.table.codes).make_blocks()
        self._schemas = format._split_schema()
        self._n_drawn, self._n_keys = [0, 0], 0

    def draw(self, n_persons):
        """Return new persons and their rows, a dict of tables."""
        sizes = [
            min(SAMPLE_BLOCK, n_persons - start) for start in range(0, n_persons, SAMPLE_BLOCK)
        ]
        pieces = zip(*(self._draw_piece(size) for size in sizes), strict=True)
        tables = [pd.concat(parts, ignore_index=True) for parts in pieces]
        found, names = {}, self._format.names
        for i, (name, frame) in enumerate(zip(names, tables, strict=True)):
            frame = go_on(frame, self._schemas[i], self._n_drawn[i])
            self._n_drawn[i] += len(frame)
            found[name] = self._restore(i, frame)
        return found

    def _draw_piece(self, n_persons):
        format = self._format
        persons, rows = self._generate(n_persons, self._generator)
        n_levels, M = rows.shape[2], format.max_rows
        persons, numbers = persons[:, : -M - 1], to_probabilities(persons[:, -M - 1 :])
        counts = draw_levels(numbers, self._public)
        rows = rows[np.arange(M) < counts[:, None]]
        person, order = np.repeat(np.arange(n_persons), counts), format.order_name
        cells = {}
        for block in self._blocks:
            own = block.where.stop <= persons.shape[1]
            shift = 0 if own else persons.shape[1]
            weights = (persons if own else rows)[:, block.where.start - shift :]
            weights = weights[:, : block.where.stop - block.where.start]
            if block.name == order:
                # Persons with rows have a first order.
                weights = np.where(np.arange(weights.shape[1]) < block.n_levels, weights, 0)
            cells[block.name] = block.draw(weights, self._public)
        if order is not None:
            cells[order] = self._put_in_order(cells, person)
        keys, sizes = np.arange(n_persons) + self._n_keys, (n_persons, len(rows))
        self._n_keys += n_persons
        frames = []
        for i, (table, schema) in enumerate(zip(format.names, self._schemas, strict=True)):
            own = {n: cells[_join(table, n)] for n in schema if _join(table, n) in cells}
            frame = TableEncoder(schema).assemble(own, sizes[i], self._public)
            frame.insert(0, format.key, keys[person] if i else keys)
            frames.append(frame)
        return frames

    def _put_in_order(self, cells, person):
        """Return the orders of rows: the first of the person, and what the gaps add up to."""
        format = self._format
        name, gap = format.order_name, format.gap_block
        kind = format.table.schema[name]
        first = pd.Series(cells[name]).iloc[person].reset_index(drop=True)
        if gap is None:
            return first
        gaps = np.nan_to_num(format.table.schema[gap.name].to_values(cells[gap.name]))
        is_first, number = np.diff(person, prepend=-1) > 0, kind.to_number()
        total = np.cumsum(np.where(is_first, 0, np.maximum(gaps, 0)))
        total -= total[is_first][np.cumsum(is_first) - 1]
        values = kind.to_values(first) + total * getattr(kind, "units_per_day", 1)
        if number.decimals is not None:
            values = np.round(values, number.decimals)
        values = np.clip(values, number.lower, number.upper)
        return replace(kind, missing=False).make_cells(values, np.zeros(len(values), dtype=bool))

    def _restore(self, i, frame):
        """Return a table in the container and dtypes that `fit` was given."""
        format = self._format
        table, kind, dtypes = format.names[i], format.kinds[i], format.table.kind.dtypes
        dtypes = {n: dtypes[_join(table, n)] for n in kind.names if _join(table, n) in dtypes}
        kind = replace(kind, names=(format.key, *kind.names), dtypes=dtypes)
        return kind.restore(frame, self._schemas[i])


def open_histories(tables, schemas, keys, max_rows):
    """Check the public facts of two tables; return their format and the private records.

    Parameters
    ----------
    tables : dict of str to DataFrame
        That of persons, and that of their rows.
    schemas : dict of str to Schema or None
    keys : Keys
    max_rows : int

    Returns
    -------
    HistoryFormat
    HistoryDataset

    Raises
    ------
    ValueError
        If what is public of them does not belong together.
    """
    names = _check_tables(tables)
    unknown = [name for name in schemas or {} if name not in names]
    if unknown:
        raise ValueError(f"schemas names {unknown}, but the tables are {list(names)}.")
    datasets, found, kinds = [], [], []
    for name in names:
        dataset = _open_table(name, tables[name], keys.persons)
        schema = declare((schemas or {}).get(name), dataset)
        if schema.rules:
            raise ValueError(
                f"The schema of {name!r} has rules, and histories keep none: drop them, as by "
                "Schema(dict(schema))."
            )
        kind = TableKind.of(schema, dataset)
        datasets.append(dataset.validate_table(SimpleNamespace(), TableFormat(schema, kind)))
        found.append(schema)
        kinds.append(kind)
    joined, position = _join_schemas(names, found, keys.order)
    # Columns of rows as they are given out: the order, if there is one, comes first.
    columns = [i for i in range(len(found[1])) if i != position]
    columns = columns if position is None else [position, *columns]
    readers = [dataset.reader for dataset in datasets]
    n_gaps = 0 if position is None else 1
    row_reader = CellReader(
        (*(readers[1].styles[i] for i in columns), *([None] * n_gaps)),
        (*(readers[1].levels[i] for i in columns), *([()] * n_gaps)),
    )
    reader = CellReader(
        readers[0].styles + row_reader.styles, readers[0].levels + row_reader.levels
    )
    dtypes, listed = (
        {_join(t, n): d for t, k in zip(names, kinds, strict=True) for n, d in getattr(k, what).items()}
        for what in ("dtypes", "listed")
    )
    table = TableFormat(joined, TableKind(joined.names, dtypes, listed=listed))
    format = HistoryFormat(
        table, names, tuple(kinds), keys.persons, keys.order, max_rows, row_reader
    )
    if not format.n_blocks[1]:
        raise ValueError(f"{names[1]!r} has no column to learn beside its identifiers.")
    how = "in the order of the table" if keys.order is None else f"in the order of {keys.order!r}"
    dataset = HistoryDataset(
        *datasets,
        reader,
        _RECORD.format(*names, max_rows, how, keys.persons),
        columns=columns,
        order=None if position is None else (position, readers[1].styles[position]),
        max_rows=max_rows,
    )
    return format, dataset


def _check_tables(tables):
    """Return the names of two tables."""
    if not isinstance(tables, Mapping) or len(tables) != 2:
        given = f"{len(tables)} tables" if isinstance(tables, Mapping) else type(tables).__name__
        raise ValueError(
            "X must be a dict of two tables, that of persons and that of their rows, such as "
            f"{{'patients': ..., 'visits': ...}}; got {given}. Join further tables to one of these."
        )
    if not all(isinstance(name, str) for name in tables):
        raise ValueError("Tables must have names that are texts.")
    return tuple(tables)


def _open_table(name, table, key):
    dataset = Dataset.of(table)
    if dataset.is_in_parts:
        raise ValueError(f"{name!r} must be a table in memory; chunks and engines are not read.")
    columns = list(dataset.head)
    if not isinstance(key, str) or key not in columns:
        raise ValueError(
            f"persons must name the column that identifies persons in both tables; {name!r} has no "
            f"column {key!r}, but {list_names(list(map(repr, columns)))}."
        )
    if len(columns) == 1:
        raise ValueError(f"{name!r} has no column beside {key!r}.")
    return Dataset.of(table, persons=key)


def _join_schemas(names, schemas, order):
    """Return the schema of all columns, and the position of the order among those of rows."""
    persons, rows = ({_join(t, n): k for n, k in s.items()} for t, s in zip(names, schemas, strict=True))
    if order is None:
        return Schema({**persons, **rows}), None
    if order not in schemas[1]:
        raise ValueError(f"order must be a column of {names[1]!r}; got {order!r}.")
    name, kind = _join(names[1], order), schemas[1][order]
    if not (kind.has_knots or kind.is_unknown):
        raise ValueError(
            f"order must be a column of numbers or dates; {order!r} is a {type(kind).__name__}."
        )
    rows.pop(name)
    gap = f"{name} gap"
    return Schema({**persons, name: kind, **rows, gap: _find_gap(kind)}), list(schemas[1]).index(order)


def _find_gap(kind):
    """Return the column type of the gaps between orders, in days for dates."""
    if kind.is_unknown or kind.is_open:
        return Number(missing=True)
    number, unit = kind.to_number(), getattr(kind, "units_per_day", 1)
    is_whole = not isinstance(kind, Date) or unit == 1
    upper = (number.upper - number.lower) / unit
    return Number(0, upper, decimals=number.decimals if is_whole else None, missing=True)


def _join(table, column):
    return f"{table}.{column}"
