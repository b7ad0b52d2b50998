# SPDX-License-Identifier: BSD-3-Clause
"""Data format of persons with histories: codes of persons and of their rows in order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..data.texts import PLAIN, TextStyle
from ..format import Format, check_count
from ..registry import savable
from ..tables.encoder import TableEncoder
from ..tables.format import TableFormat
from ..tables.layout import TableLayout
from ..tables.rules.rule import Rule
from ..tables.schema import Schema
from .calendars import count_cells, find_times
from .joining import join_names, join_schemas, open_tables
from .mechanism import HistorySizes
from .records import HistoryDataset, HistoryReader
from .sampling import HistorySampler


@savable
@dataclass(frozen=True)
class HistoryFormat(Format):
    """Maps two tables to codes of persons and of their rows in order, and back.

    Parameters
    ----------
    table : TableFormat
        With a `JoinedSchema`: the columns of persons, the order, the other columns of rows, and, if
        there is an order, the gap since the row before. `resolve` infers what is not declared, from
        one row of each person.
    names : tuple of str
        Names of the two tables.
    layouts : tuple of TableLayout
        Containers and columns of both.
    key : str
        Name of the column of both tables that identifies persons.
    order : str or None
        Name of the column of the second table that orders the rows of a person.
    reader : HistoryReader
    required : tuple of str
        Columns of rows without missing values. They have some, in persons without rows, until
        `resolve` returns.
    rules : tuple of (tuple of Rule)
        The rules of both schemas.
    has_undated : bool, default=False
        Whether released counts show rows without an order.
    """

    table: TableFormat
    names: tuple[str, str]
    layouts: tuple[TableLayout, TableLayout]
    key: str
    order: str | None
    reader: HistoryReader
    required: tuple[str, ...]
    rules: tuple[tuple[Rule, ...], ...]
    has_undated: bool = False

    @classmethod
    def open(
        cls,
        tables,
        schemas: Mapping[str, Schema] | None,
        key: str,
        order: str | None,
        max_rows: int,
        rules: Sequence[Rule] = (),
    ) -> tuple["HistoryFormat", HistoryDataset]:
        """Check the public facts of two tables; return their format, and the private records.

        Parameters
        ----------
        tables : dict of str to DataFrame
            That of persons, and that of their rows.
        schemas : dict of str to Schema or None
        key, order : str
            As in the attributes.
        max_rows : int
            Rows of a person that are used.
        rules : sequence of Rule
            As in `join_schemas`.

        Raises
        ------
        ValueError
            If their public facts contradict each other.
        """
        persons, rows = parts = open_tables(tables, schemas, key, order)
        schema, required = join_schemas(persons, rows, order, rules)
        dtypes, listed = (
            persons.rename(getattr(persons.layout, what)) | rows.rename(getattr(rows.layout, what))
            for what in ("dtypes", "listed")
        )
        own, events = persons.dataset, rows.dataset
        declared = rows.schema.get(order, PLAIN)
        style = declared if isinstance(declared, TextStyle) else events.reader.styles[0] or PLAIN
        style = None if order is None else style
        reader = HistoryReader(own.reader, events.reader, style, max_rows)
        format = cls(
            TableFormat(schema, TableLayout(schema.names, dtypes, listed=listed)),
            (persons.name, rows.name),
            # Categories that dtypes list are private: they stay with `table` until inferred.
            (replace(persons.layout, listed={}), replace(rows.layout, listed={})),
            key,
            order,
            reader,
            required,
            tuple(part.rules for part in parts),
        )
        assumption = (
            f"a person has one row of {persons.name!r}, and rows of {rows.name!r}, of which the "
            f"first {max_rows} in the order of {'the table' if order is None else repr(order)} "
            f"are used; {key!r} identifies them in both"
        )
        return format, HistoryDataset(own, events, reader, assumption)

    @property
    def max_rows(self) -> int:
        """Rows of a person that are used."""
        return self.reader.max_rows

    @property
    def parameters(self):
        return {"schemas": self.list_schemas()}

    @property
    def fitted_attributes(self):
        return {"schemas_": self.list_schemas()}

    def split_budget(self, noise):
        """Return the shares of the releases of `resolve`; see `Format.split_budget`."""
        return self.table.split_budget(noise)

    @property
    def n_columns(self):
        """Number of columns of an encoded row with its person."""
        return self.table.n_columns

    @property
    def n_planned(self):
        return self.table.n_planned

    @property
    def schema(self):
        """The schema of the columns of both tables, side by side."""
        return self.table.schema

    @property
    def learned_names(self):
        """Names of the learned columns, and differences, of persons and of rows: two lists."""
        schema, own = self.table.schema, {*self.person_names}
        parts = {
            n: schema.differences[n].names if n in schema.differences else (n,)
            for n in schema.learned
        }
        is_own = {name: own.issuperset(names) for name, names in parts.items()}
        return [n for n in parts if is_own[n]], [n for n in parts if not is_own[n]]

    @property
    def n_blocks(self):
        """Numbers of learned columns of persons and of rows, and of calendars of the order."""
        return (*map(len, self.learned_names), len(count_cells(self.order_type)))

    @property
    def history_sizes(self):
        """The `HistorySizes` of a resolved format."""
        sizes, n = self.table.block_sizes, self.n_blocks[0]
        persons, rows = (*sizes[:n], self.max_rows + 2), tuple(sizes[n:])
        return HistorySizes(persons, rows, self.max_rows, count_cells(self.order_type))

    @property
    def order_name(self):
        """Name of the order among the joined columns; None if rows are ordered as they are."""
        return None if self.order is None else join_names(self.names[1], self.order)

    @property
    def order_type(self):
        """The column type of the order, or None."""
        return None if self.order is None else self.table.schema[self.order_name]

    @property
    def gap_block(self):
        """The block of the gaps, if dates or numbers order the rows, or None."""
        if self.order is None or not self.order_type.has_knots:
            return None
        return TableEncoder(self.table.schema).make_blocks()[-1]

    def list_advice(self):
        """Return how to declare each column that is learned but is none of a table, by name."""
        advice, gap = self.table.schema.list_advice(), self.gap_block
        return (
            advice if gap is None else {gap.name: f"declare the bounds of {self.order!r}"} | advice
        )

    @property
    def person_names(self):
        """The joined columns that a person has once: the order stands for that of the first row."""
        n = len(self.layouts[0].names) + (self.order is not None)
        return self.table.schema.names[:n]

    def list_schemas(self):
        """Return the schemas of the tables, by name, without the gap; not of keys alone."""
        schemas = {}
        for table, layout, rules in zip(self.names, self.layouts, self.rules, strict=True):
            columns = {}
            for name in layout.names:
                joined = join_names(table, name)
                columns[name] = column = self.table.schema[joined]
                if joined in self.required and not column.is_unknown:
                    columns[name] = replace(column, missing=False)
                elif joined == self.order_name and not column.is_unknown:
                    columns[name] = replace(column, missing=self.has_undated)
            if columns:
                schemas[table] = Schema(columns, rules)
        return schemas

    # Private tables.

    def resolve(self, curator):
        """Infer what is not declared from one row of each person; see `TableFormat.resolve`."""
        table, name = self.table.resolve(_OneRow(curator)), self.order_name
        # A derived column is missing where the order is.
        computed = {getattr(rule, "column", None) for rule in table.schema.rules}
        columns = {
            n: replace(table.schema[n], missing=False) for n in self.required if n not in computed
        }
        if name is not None:
            # Persons without rows have no first order, and counts are those of rows in any place.
            columns[name] = replace(table.schema[name], missing=True)
            table = table.without_histograms([name])
        return replace(self, table=replace(table, schema=table.schema.replace(columns)))

    def encode(self, X, y=None):
        """Map persons with one of their rows to rows of weights; see `TableFormat.encode`."""
        return self.table.encode(X[:, :-1])

    def encode_histories(self, X, y=None):
        """Map persons to codes; see `HistorySizes`.

        A row with a cell that is not as declared is left out, and the others close up.
        """
        n_columns, n = len(self.table.schema.names), len(self.person_names)
        has_order, (own, others) = self.order is not None, self.learned_names
        histories = [cell if isinstance(cell, np.ndarray) else [] for cell in X[:, -1]]
        sizes = np.array([len(rows) for rows in histories])
        rows = np.concatenate(
            [np.empty((0, n_columns - n + has_order), dtype=object)]
            + [history for history in histories if len(history)]
        )
        rows = np.asarray(self.reader.rows_with_gaps(rows))
        person = np.repeat(np.arange(len(X)), sizes)
        codes = self._encode_some(np.column_stack([X[person, : n - has_order], rows]), others)
        codes = np.column_stack([codes, self._find_times(rows[:, 0])])
        # Rows after the first M show only that there are any.
        is_used = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes) < self.max_rows
        is_valid = is_used & ~np.isnan(codes).any(axis=1)
        person = person[is_valid]
        counts = np.bincount(person, minlength=len(X))
        starts = np.cumsum(counts) - counts
        persons = X[:, :n]
        if has_order:
            first = np.full(len(X), None, dtype=object)
            first[counts > 0] = rows[is_valid, 0][starts[counts > 0]]
            persons = np.column_stack([persons[:, :-1], first])
        of_rows = np.zeros((len(X), self.max_rows, codes.shape[1]))
        of_rows[person, np.arange(len(person)) - starts[person]] = codes[is_valid]
        persons = self._encode_some(persons, own)
        counts += (counts == self.max_rows) & (sizes > self.max_rows)
        return np.column_stack([persons, counts, of_rows.reshape(len(X), -1)])

    def _find_times(self, cells):
        """Return the cells of calendars of orders."""
        order, name = self.order_type, self.order_name
        if not count_cells(order):
            return np.empty((len(cells), 0))
        part = TableFormat(Schema({name: order}), inferred=self.table.inferred)
        present, units = order.encode(part._parse(cells[:, None])[name])
        dates = np.full(len(cells), np.nan)
        dates[present] = units
        number = order.to_number()
        return find_times(order, dates.clip(number.lower, number.upper))

    def _encode_some(self, cells, names):
        """Return the codes of some learned columns and differences, from the first columns."""
        if not names:
            return np.empty((len(cells), 0))
        schema = self.table.schema
        needed = {n for name in names for n in getattr(schema.differences.get(name), "names", ())}
        positions = [i for i, name in enumerate(schema.names) if name in needed.union(names)]
        part = TableFormat(
            schema.select([schema.names[i] for i in positions]), inferred=self.table.inferred
        )
        listed = list(part.schema.learned)
        return part.encode_cells(cells[:, positions])[:, [listed.index(name) for name in names]]

    # Public tables.

    def calibrate_marginals(self, generate, report=None):
        return replace(self, table=self.table.calibrate_marginals(generate, report))

    def read_public(self, estimator, X):
        cells = self._read_public(X)
        # Only persons with rows have one that can be compared.
        return cells[[len(history) > 0 for history in cells[:, -1]]]

    def encode_public(self, X):
        """Return the codes of public persons; see `encode_histories`."""
        return self.encode_histories(self._read_public(X))

    def _read_public(self, X):
        facts = self.list_schemas(), self.key, self.order, self.max_rows
        dataset = HistoryFormat.open(X, *facts)[1]
        return dataset.reader(dataset.release_ownership()[0][:])

    def decode(self, rows, sizes, *, y=None, where=None):
        if y is not None or where is not None:
            raise ValueError(
                "Histories are drawn without y and where: draw more persons, and keep those that "
                "satisfy the conditions."
            )
        noise = rows.noise
        sampler = HistorySampler(
            self, rows.generate, noise.torch_generator(), noise.public_generator()
        )
        for size in sizes:
            yield sampler.draw(check_count(size))


class _OneRow:
    """A curator as inference sees it: the cells of a person with one of their rows."""

    def __init__(self, curator):
        self._curator = curator

    def __getattr__(self, name):
        return getattr(self._curator, name)

    def parse_cells(self, function):
        self._curator.parse_cells(partial(_parse_one_row, function))

    def prepare(self, function, clip_norm):
        self._curator.prepare(function.after(lambda cells: cells[:, :-1]), clip_norm)


def _parse_one_row(function, cells):
    return np.column_stack([function(cells[:, :-1]), cells[:, -1]])
