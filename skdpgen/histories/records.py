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
from ..data.texts import PLAIN, TextStyle
from ..quality import warn_of_other_persons

# Rows that are read at once.
_SLICE = 2**13
_SECONDS_PER_DAY = 86_400
# How an order was written: as numbers, as dates, or as neither, which comes last.
_NUMBERS, _DATES, _NEITHER = range(3)


class HistoryCells(FrameCells):
    """Cells of persons, which are joined when they are first read: an array of objects.

    A person's cells are those of one row of the table of persons, those of one of their rows of the
    table of events (None without any), and, as a single cell, an array of the first M + 1 rows in
    order, the last of which shows that there are more than M. The one row shows ranges and
    categories of events with one row a person. It is one of the first M, chosen by a hash of the
    identifier.

    With orders, the last cell of a row is the gap since the row before, in days for dates, None
    where there is none.

    Parameters
    ----------
    owners : Persons
        Persons of the table of persons.
    read : callable
        Returns the `HistoryRows` of both tables. It is called when cells are first read, and paid
        for.
    layout : HistoryLayout
    """

    has_persons = True

    def __init__(self, owners: Persons, read: Callable, layout: "HistoryLayout") -> None:
        self._owners, self._read, self._layout = owners, read, layout
        n_columns = layout.n_person_columns + len(layout.columns) + (layout.order is not None) + 1
        self.shape = (owners.n_persons, n_columns)

    @cached_property
    def _rows(self):
        return self._read()

    @cached_property
    def _joined(self):
        """Which rows belong to whom."""
        keys, max_rows = self._rows.keys, self._layout.max_rows
        rows, rank = _find_first(keys, max_rows + 1)
        person, kind, value = (key[rows] for key in keys)
        sizes = np.bincount(person, minlength=len(self))
        hashes = np.array(list(map(hash_name, self._owners.names)), dtype=np.uint64)
        used = np.clip(sizes, 1, max_rows).astype(np.uint64)
        return _Joined(
            rows,
            sizes,
            None if self._layout.order is None else _find_gaps(kind, value, rank),
            (hashes % used).astype(np.int64),
        )

    def __len__(self) -> int:
        return self.shape[0]

    def __getstate__(self):
        raise TypeError("Private records cannot be pickled or copied.")

    def __getitem__(self, rows):
        # Read before, since the warning of other persons is for the user.
        joined = self._joined
        with muted():
            return self._collect(joined)[rows]

    def _collect(self, joined):
        events = np.asarray(self._rows.events[joined.rows])[:, self._layout.columns]
        if joined.gaps is not None:
            gaps = np.where(np.isnan(joined.gaps), None, joined.gaps.astype(object))
            events = np.column_stack([events, gaps])
        cells = np.full(self.shape, None, dtype=object)
        n_columns, has_rows = self._layout.n_person_columns, joined.sizes > 0
        cells[:, :n_columns] = self._rows.persons[self._rows.first]
        cells[has_rows, n_columns:-1] = events[(joined.starts + joined.chosen)[has_rows]]
        for i, (start, size) in enumerate(zip(joined.starts, joined.sizes, strict=True)):
            cells[i, -1] = events[start : start + size]
        return cells


@dataclass(frozen=True)
class HistoryLayout:
    """Which cells are given out of a table of events, and in which order of its rows.

    Attributes
    ----------
    columns : tuple of int
        Positions of the columns of events, in the order in which they are given out.
    order : (int, TextStyle) or None
        Position of the column that orders events, and how it is written. None: they are ordered as
        in the table.
    max_rows : int
        M.
    readers : (CellReader, CellReader)
        Read the cells of both tables, with their columns in the order of the tables.
    """

    columns: tuple[int, ...]
    order: tuple[int, TextStyle | None] | None
    max_rows: int
    readers: tuple[CellReader, CellReader]

    @property
    def n_person_columns(self) -> int:
        """Number of columns of the table of persons."""
        return len(self.readers[0].styles)

    def read_orders(self, events) -> tuple[np.ndarray, np.ndarray]:
        """Return, of each row, how its order is written, and the number or the seconds."""
        if self.order is None:
            return np.zeros(len(events)), np.zeros(len(events))
        return _read_orders(events, *self.order)


@dataclass(frozen=True)
class HistoryRows:
    """Rows of both tables, and whose they are.

    The rows of a person are in order: of numbers, then of dates, then those without an order.
    Equal orders keep that of the table, or, in partitions, which have no order, follow from the
    cells of the rows.

    Attributes
    ----------
    persons, events : FrameCells or ndarray of object
        Cells of both tables.
    first : ndarray of int of shape (n_persons,)
        The row of each person in the table of persons.
    keys : tuple of (ndarray of shape (n_events,))
        By which rows are sorted: the code of the person, -1 for nobody, how the order is written,
        and the order; see `HistoryLayout.read_orders`.
    """

    persons: FrameCells | np.ndarray
    first: np.ndarray
    events: FrameCells | np.ndarray
    keys: tuple[np.ndarray, np.ndarray, np.ndarray]

    @classmethod
    def of(cls, persons: tuple, events: tuple, layout: HistoryLayout) -> "HistoryRows":
        """Return the rows of two tables in memory, or in chunks, of which the rows are held.

        Parameters
        ----------
        persons, events : (FrameCells or callable, Persons)
            A function gives chunks, each ``(cells, None, identifiers)``.
        layout : HistoryLayout
        """
        (own, owners), (cells, members) = persons, events
        if callable(own):
            own, first = _hold_persons(own, owners, layout)
        else:
            first = _find_first_of_each(owners.codes)
        if callable(cells):
            return cls(own, first, *_hold_events(cells, owners, layout))
        known = {name: i for i, name in enumerate(owners.names)}
        person = np.array([*(known.get(name, -1) for name in members.names), -1])
        return cls(own, first, cells, (person[members.codes], *layout.read_orders(cells)))

    @classmethod
    def of_partition(cls, persons: tuple, events: tuple, layout: HistoryLayout) -> "HistoryRows":
        """Return the rows of two partitions, with all rows of their persons, in any order.

        Parameters
        ----------
        persons : (ndarray of object, Persons)
        events : (ndarray of object, array of identifiers)
        layout : HistoryLayout
        """
        (own, owners), (cells, identifiers) = persons, events
        by_content = _sort_by_content((owners.codes,), own, layout.readers[0])
        first = by_content[_find_first_of_each(owners.codes[by_content])]
        person = owners.find_codes(identifiers, set())
        keys = person, *layout.read_orders(cells)
        by_content = _sort_by_content(keys, cells, layout.readers[1])
        return cls(own, first, cells[by_content], tuple(key[by_content] for key in keys))


def _find_first_of_each(codes):
    """Return the position of the first row of each person, whose codes are not negative."""
    found, first = np.unique(codes, return_index=True)
    return first[found >= 0]


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


def _hold_persons(read, owners, layout):
    """Return the cells of the first row of each person of chunks, and where they are."""
    # Persons who are gone in this reading have the first row, without cells.
    held, n_held = [np.full((1, layout.n_person_columns), None)], 1
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


def _hold_events(read, owners, layout):
    """Return the cells of the first M + 1 rows of each person of chunks, and their keys."""
    n_columns = len(layout.readers[1].styles)
    kept = (np.empty((0, n_columns), dtype=object), *np.zeros((3, 0), dtype=np.int64))
    held: list = []

    def keep_first():
        cells, *keys = map(np.concatenate, zip(kept, *held, strict=True))
        rows, _ = _find_first(keys, layout.max_rows + 1)
        held.clear()
        return cells[rows], *(key[rows] for key in keys)

    for cells, _, identifiers in read():
        codes = owners.find_codes(identifiers, set())
        held.append((cells, codes, *layout.read_orders(cells)))
        # As many as are kept: so all of this takes the time of a few readings.
        if sum(len(part[0]) for part in held) > max(len(kept[0]), _SLICE):
            kept = keep_first()
    cells, *keys = keep_first()
    return cells, tuple(keys)


@dataclass(frozen=True)
class _Joined:
    """Positions of the rows of persons.

    Attributes
    ----------
    rows : ndarray of int of shape (n_rows,)
        Rows of the table of events, one person after the other, in order.
    sizes : ndarray of int of shape (n_persons,)
        Number of these of each person.
    gaps : ndarray of shape (n_rows,) or None
        Gaps since the row before, NaN without one. None: rows have no order.
    chosen : ndarray of int of shape (n_persons,)
        Which of their rows shows ranges and categories.
    """

    rows: np.ndarray
    sizes: np.ndarray
    gaps: np.ndarray | None
    chosen: np.ndarray

    @cached_property
    def starts(self):
        """Position of the first of the rows of each person."""
        return np.cumsum(self.sizes) - self.sizes


@dataclass(frozen=True)
class HistoryReader:
    """Brings all cells of persons into canonical form but those of histories; see `CellReader`."""

    reader: CellReader

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        """Return cells, an array of objects of shape (n_persons, n_columns), in canonical form."""
        return np.column_stack([self.reader(cells[:, :-1]), cells[:, -1]])


class PartitionedHistories(Partitions):
    """Persons with histories in two tables of an engine, whose workers join them by person.

    Parameters
    ----------
    persons, events : PartitionedTable
    layout : HistoryLayout
    """

    def __init__(self, persons: Any, events: Any, layout: HistoryLayout) -> None:
        self._persons, self._events, self._layout = persons, events, layout
        self.engine, self.person_column = persons.engine, persons.person_column

    @property
    def n_units(self):
        return self._persons.n_units

    def _sum_parts(self, function):
        pair = partial(_add_up_pair, function, self._layout)
        return self._persons.add_up_pairs(self._events, pair)


def _add_up_pair(function, layout, own, owners, events, members):
    """Return the value of a function for the persons of two partitions."""
    persons = Persons(owners)
    rows = HistoryRows.of_partition((own, persons), (events, members), layout)
    return function(HistoryCells(persons, lambda: rows, layout))


class HistoryDataset:
    """Two private tables on their way to a curator, with the public facts of a `Dataset`.

    Parameters
    ----------
    persons, events : Dataset
        Validated, with persons; both of one engine, or of none.
    reader : CellReader
        Reads the cells of `HistoryCells` but the last.
    assumption : str
        States which rows a person has.
    layout : HistoryLayout
    """

    classes = max_rows = label = target = None
    n_classes = 1

    def __init__(
        self,
        persons: Dataset,
        events: Dataset,
        reader: CellReader,
        assumption: str,
        layout: HistoryLayout,
    ) -> None:
        self._parts = persons, events
        self.n_records = persons.n_records
        self.reader = HistoryReader(reader)
        self._layout, self._assumption = layout, assumption

    def __getstate__(self):
        raise TypeError("Private records cannot be pickled or copied.")

    def release_ownership(self) -> tuple:
        """Return the cells, once; see `Dataset.release_ownership`."""
        (own, _, owners), (events, _, members) = (part.release_ownership() for part in self._parts)
        if isinstance(own, Partitions):
            return PartitionedHistories(own, events, self._layout), None, None
        read = partial(HistoryRows.of, (own, owners), (events, members), self._layout)
        return HistoryCells(owners, read, self._layout), None, None

    def cover(self, plan: Plan) -> Plan:
        """Return the plan; see `Dataset.cover`."""
        return plan

    def list_assumptions(self, strict: bool) -> tuple[str, ...]:
        """List what a certificate assumes; see `Dataset.list_assumptions`."""
        both = [dataset.list_assumptions(strict) for dataset in self._parts]
        return (self._assumption, *dict.fromkeys(both[0] + both[1]))


def _read_orders(events, column, style):
    """Return, of each row, how its order is written, and the number or the seconds; NaN for none.

    Each cell is read on its own.
    """

    def read(cell):
        if isinstance(cell, datetime.datetime) and cell == cell:
            zone = cell.tzinfo or datetime.timezone.utc
            return _DATES, cell.replace(tzinfo=zone).timestamp()
        is_number = type(cell) is float and cell == cell
        return (_NUMBERS, cell) if is_number else (_NEITHER, np.nan)

    cells = read_column(as_frame(events).iloc[:, column], style or PLAIN)
    orders = np.array(map_cells(read, cells).tolist()).reshape(-1, 2)
    return orders[:, 0].astype(np.int64), orders[:, 1]


def _find_gaps(kind, value, rank):
    """Return the gap of each row since the row before, NaN without one."""
    gaps = np.full(len(value), np.nan)
    # Infinite orders have no gap, and those of large ones may be infinite.
    with np.errstate(all="ignore"):
        gaps[1:] = np.diff(value)
    has_gap = (rank > 0) & (kind == np.roll(kind, 1))
    return np.where(has_gap, gaps / np.where(kind == _DATES, _SECONDS_PER_DAY, 1), np.nan)
