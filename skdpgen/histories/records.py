# SPDX-License-Identifier: BSD-3-Clause
"""Private histories: the rows of two tables, joined by person and put in order.

A record is a person: one row of a table of persons, and the first M rows of theirs in a table of
events. Which rows those are follows from the rows of that person alone.
"""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from .._process.muting import muted
from ..accounting.plan import Plan
from ..curator.chunks import Partitions
from ..curator.dataset import Dataset
from ..curator.persons import Persons, hash_name, hash_rows
from ..data.cells import CellReader, FrameCells, as_frame, read_column
from ..data.names import map_cells
from ..data.texts import TextStyle
from ..quality import warn_of_other_persons
from ..registry import savable

# Rows that are read at once.
_SLICE = 2**13
_SECONDS_PER_DAY = 86_400
# How an order was written: as numbers, as dates, or as neither, which comes last.
_NUMBERS, _DATES, _NEITHER = range(3)


@savable
@dataclass(frozen=True)
class HistoryReader:
    """Brings all cells of persons into canonical form but those of histories; see `CellReader`.

    Attributes
    ----------
    persons, rows : CellReader
        Read the cells of both tables. The column that orders rows, if there is one, comes first.
    order : TextStyle or None
        How the texts of the column that orders rows are written. None: they are ordered as in the
        table.
    max_rows : int
        M.
    """

    persons: CellReader
    rows: CellReader
    order: TextStyle | None
    max_rows: int

    @property
    def rows_with_gaps(self) -> CellReader:
        """The reader of rows which, if there is an order, have the gap since the row before."""
        n = int(self.order is not None)
        return CellReader(self.rows.styles + (None,) * n, self.rows.levels + ((),) * n)

    @property
    def one_row(self) -> CellReader:
        """The reader of the cells of persons with one of their rows."""
        own, rows = self.persons, self.rows_with_gaps
        return CellReader(own.styles + rows.styles, own.levels + rows.levels)

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        """Return cells, an array of objects of shape (n_persons, n_columns), in canonical form."""
        return np.column_stack([self.one_row(cells[:, :-1]), cells[:, -1]])

    def read_orders(self, events) -> tuple[np.ndarray, np.ndarray]:
        """Return, of each row, how its order is written, and the number or the seconds.

        The latter is NaN for none. Each cell is read on its own.
        """
        if self.order is None:
            return np.zeros(len(events)), np.zeros(len(events))
        cells = read_column(as_frame(events).iloc[:, 0], self.order)
        orders = np.array(map_cells(_read_order, cells).tolist()).reshape(-1, 2)
        return orders[:, 0].astype(np.int64), orders[:, 1]


def _read_order(cell):
    if isinstance(cell, datetime.datetime) and cell == cell:
        zone = cell.tzinfo or datetime.timezone.utc
        return _DATES, cell.replace(tzinfo=zone).timestamp()
    is_number = type(cell) is float and cell == cell
    return (_NUMBERS, cell) if is_number else (_NEITHER, np.nan)


class HistoryCells(FrameCells):
    """Cells of persons, which are joined when they are first read: an array of objects.

    A person's cells are those of one row of the table of persons, those of one of their rows of the
    table of events (None without any), and, as a single cell, an array of the first M + 1 rows in
    order, the last of which shows that there are more than M. The one row shows ranges and
    categories of events with one row a person. It is one of the first M, chosen by a hash of the
    identifier.

    The rows of a person are in order: of numbers, then of dates, then those without an order. Equal
    orders keep that of the table, or, in partitions, which have no order, follow from the cells of
    the rows. With orders, the last cell of a row is the gap since the row before, in days for
    dates, None where there is none.

    Parameters
    ----------
    owners : Persons
        Persons of the table of persons.
    read : callable
        Returns the cells of persons, the row of each person among these, the cells of events, and
        the keys by which events are sorted: the code of the person, -1 for nobody, and both arrays
        of `HistoryReader.read_orders`. It is called when cells are first read, and paid for.
    reader : HistoryReader
    """

    has_persons = True

    def __init__(self, owners: Persons, read: Callable, reader: HistoryReader) -> None:
        self._owners, self._read, self._reader = owners, read, reader
        self.shape = (owners.n_persons, len(reader.one_row.styles) + 1)

    @cached_property
    def _joined(self):
        """Cells of both tables, and the sizes and chosen rows of histories."""
        persons, first, events, keys = self._read()
        rows, rank = _find_first(keys, self._reader.max_rows + 1)
        person, form, value = (key[rows] for key in keys)
        sizes = np.bincount(person, minlength=len(self))
        hashes = np.array(list(map(hash_name, self._owners.names)), dtype=np.uint64)
        used = np.clip(sizes, 1, self._reader.max_rows).astype(np.uint64)
        gaps = _find_gaps(form, value, rank) if self._reader.order else None
        return persons[first], events[rows], gaps, sizes, (hashes % used).astype(np.int64)

    def __len__(self) -> int:
        return self.shape[0]

    def __getstate__(self):
        raise TypeError("Private records cannot be pickled or copied.")

    def __getitem__(self, rows):
        # Read before, since the warning of other persons is for the user.
        joined = self._joined
        with muted():
            return self._collect(*joined)[rows]

    def _collect(self, persons, events, gaps, sizes, chosen):
        events = np.asarray(events)
        if gaps is not None:
            gaps = np.where(np.isnan(gaps), None, gaps.astype(object))
            events = np.column_stack([events, gaps])
        cells = np.full(self.shape, None, dtype=object)
        n_columns, starts, has_rows = persons.shape[1], np.cumsum(sizes) - sizes, sizes > 0
        cells[:, :n_columns] = persons
        cells[has_rows, n_columns:-1] = events[(starts + chosen)[has_rows]]
        for i, (start, size) in enumerate(zip(starts, sizes, strict=True)):
            cells[i, -1] = events[start : start + size]
        return cells


def _read_tables(persons, events, reader):
    """Return the rows of two tables in memory, or in chunks, of which the rows are held.

    Each table is a pair: its cells, or a function that gives chunks, and its `Persons`.
    """
    (own, owners), (cells, members) = persons, events
    if callable(own):
        own, first = _hold_persons(own, owners, reader)
    else:
        first = _find_first_of_each(owners.codes)
    if callable(cells):
        return own, first, *_hold_events(cells, owners, reader)
    known = {name: i for i, name in enumerate(owners.names)}
    person = np.array([*(known.get(name, -1) for name in members.names), -1])
    return own, first, cells, (person[members.codes], *reader.read_orders(cells))


def _read_partitions(persons, events, reader):
    """Return the rows of two partitions, with all rows of their persons, in any order.

    Each is a pair: its cells, an array, and its `Persons`, or the identifiers of its rows.
    """
    (own, owners), (cells, identifiers) = persons, events
    by_content = _sort_by_content((owners.codes,), own, reader.persons)
    first = by_content[_find_first_of_each(owners.codes[by_content])]
    keys = owners.find_codes(identifiers, set()), *reader.read_orders(cells)
    by_content = _sort_by_content(keys, cells, reader.rows)
    return own, first, cells[by_content], tuple(key[by_content] for key in keys)


def _find_first_of_each(codes):
    """Return the position of the first row of each person, whose codes are not negative."""
    persons, first = np.unique(codes, return_index=True)
    return first[persons >= 0]


def _find_first(keys, limit):
    """Return the first rows of each person in order, and their ranks, from 0."""
    rows = np.flatnonzero(keys[0] >= 0)
    # Stable: rows of equal keys keep the order of the table.
    rows = rows[np.lexsort([key[rows] for key in keys[::-1]])]
    sizes = np.bincount(keys[0][rows])
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # The one place that bounds the rows of a person.
    is_first = rank < limit
    return rows[is_first], rank[is_first]


def _sort_by_content(keys, cells, reader):
    """Return the positions of rows by keys, and rows of equal keys by their cells.

    Which row comes first follows from the rows of that person alone: cells have one canonical form
    in all partitions.
    """
    is_equal = pd.DataFrame(dict(enumerate(keys))).duplicated(keep=False) & (keys[0] >= 0)
    content = np.zeros(len(cells), dtype=np.uint64)
    content[is_equal] = hash_rows(reader(cells[is_equal.to_numpy()]))
    return np.lexsort([content, *keys[::-1]])


def _hold_persons(read, owners, reader):
    """Return the cells of the first row of each person of chunks, and where they are."""
    # Persons who are gone in this reading have the first row, without cells.
    held, n_held = [np.full((1, len(reader.persons.styles)), None)], 1
    first, unknown = np.zeros(owners.n_persons, dtype=np.int64), set()
    for cells, _, identifiers in read():
        codes = owners.find_codes(identifiers, unknown)
        codes[first[codes] > 0] = -1  # the row of an earlier chunk counts
        rows = _find_first_of_each(codes)
        first[codes[rows]] = n_held + np.arange(len(rows))
        held.append(cells[rows])
        n_held += len(rows)
    # The number of persons is public.
    warn_of_other_persons(owners.n_persons, int((first > 0).sum()) + len(unknown))
    return np.concatenate(held), first


def _hold_events(read, owners, reader):
    """Return the cells of the first M + 1 rows of each person of chunks, and their keys."""
    n_columns = len(reader.rows.styles)
    kept = (np.empty((0, n_columns), dtype=object), *np.zeros((3, 0), dtype=np.int64))
    held: list = []

    def keep_first():
        cells, *keys = map(np.concatenate, zip(kept, *held, strict=True))
        rows, _ = _find_first(keys, reader.max_rows + 1)
        held.clear()
        return cells[rows], *(key[rows] for key in keys)

    for cells, _, identifiers in read():
        codes = owners.find_codes(identifiers, set())
        held.append((cells, codes, *reader.read_orders(cells)))
        # As many as are kept: so all of this takes the time of a few readings.
        if sum(len(part[0]) for part in held) > max(len(kept[0]), _SLICE):
            kept = keep_first()
    cells, *keys = keep_first()
    return cells, tuple(keys)


def _find_gaps(form, value, rank):
    """Return the gap of each row since the row before, NaN without one."""
    gaps = np.full(len(value), np.nan)
    # Infinite orders have no gap, and those of large ones may be infinite.
    with np.errstate(all="ignore"):
        gaps[1:] = np.diff(value)
    has_gap = (rank > 0) & (form == np.roll(form, 1))
    return np.where(has_gap, gaps / np.where(form == _DATES, _SECONDS_PER_DAY, 1), np.nan)


class PartitionedHistories(Partitions):
    """Persons with histories in two tables of an engine, whose workers join them by person.

    Parameters
    ----------
    persons, events : PartitionedTable
    reader : HistoryReader
    """

    def __init__(self, persons: Any, events: Any, reader: HistoryReader) -> None:
        self._persons, self._events, self._reader = persons, events, reader
        self.engine, self.person_column = persons.engine, persons.person_column

    @property
    def n_units(self):
        return self._persons.n_units

    def _sum_parts(self, function):
        pair = partial(_add_up_pair, function, self._reader)
        return self._persons.add_up_pairs(self._events, pair)


def _add_up_pair(function, reader, own, owners, events, members):
    """Return the value of a function for the persons of two partitions."""
    persons = Persons(owners)
    read = partial(_read_partitions, (own, persons), (events, members), reader)
    return function(HistoryCells(persons, read, reader))


class HistoryDataset:
    """Two private tables on their way to a curator, with the public facts of a `Dataset`.

    Parameters
    ----------
    persons, events : Dataset
        Validated, with persons; both of one engine, or of none.
    reader : HistoryReader
    assumption : str
        States which rows a person has.
    """

    classes = max_rows = label = target = database = None
    n_classes = 1

    def __init__(
        self, persons: Dataset, events: Dataset, reader: HistoryReader, assumption: str
    ) -> None:
        self._parts = persons, events
        self.n_records = persons.n_records
        self.reader, self._assumption = reader, assumption

    def __getstate__(self):
        raise TypeError("Private records cannot be pickled or copied.")

    def release_ownership(self) -> tuple:
        """Return the cells, once; see `Dataset.release_ownership`."""
        (own, _, owners), (events, _, members) = (part.release_ownership() for part in self._parts)
        if isinstance(own, Partitions):
            return PartitionedHistories(own, events, self.reader), None, None
        read = partial(_read_tables, (own, owners), (events, members), self.reader)
        return HistoryCells(owners, read, self.reader), None, None

    def cover(self, plan: Plan) -> Plan:
        """Return the plan; see `Dataset.cover`."""
        return plan

    def list_assumptions(self, strict: bool) -> tuple[str, ...]:
        """List what a certificate assumes; see `Dataset.list_assumptions`."""
        both = [dataset.list_assumptions(strict) for dataset in self._parts]
        return (self._assumption, *dict.fromkeys(both[0] + both[1]))
