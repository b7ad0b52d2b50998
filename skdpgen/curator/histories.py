# SPDX-License-Identifier: BSD-3-Clause
"""Private histories: the rows of two tables, joined by person and put in order.

A record is a person: one row of a table of persons, and the first M rows of theirs in a table of
events. Which rows those are follows from the rows of that person alone.
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..accounting.plan import Plan
from .cells import CellReader, FrameCells, read_column
from .dataset import Dataset
from .persons import Persons, hash_name
from .texts import PLAIN, TextStyle

# Rows that are read at once.
_SLICE = 2**13
_SECONDS_PER_DAY = 86_400
# How an order was written: as numbers, as dates, or as neither, which comes last.
_NUMBERS, _DATES, _NEITHER = range(3)


class HistoryCells(FrameCells):
    """Cells of persons, of which slices are arrays of objects.

    A person's cells are those of one row of the table of persons, those of one of their rows of the
    table of events (None without any), and, as a single cell, an array of the first M + 1 rows in
    order, the last of which shows that there are more than M. The one row shows ranges and
    categories of events with one row a person. It is one of the first M, chosen by a hash of the
    identifier.

    Orders are numbers or dates. A row without an order comes last, and equal orders keep the order
    of the table. With orders, the last cell of a row is the gap since the row before, in days for
    dates, None where there is none.

    Parameters
    ----------
    persons, events : (FrameCells, Persons)
        Cells of both tables, and whose they are.
    columns : sequence of int
        Positions of the columns of events, in the order in which they are given out.
    order : (int, TextStyle) or None
        Position of the column that orders events, and how it is written. None: they are ordered as
        in the table.
    max_rows : int
        M.
    """

    ndim = 2

    def __init__(
        self,
        persons: tuple[FrameCells, Persons],
        events: tuple[FrameCells, Persons],
        *,
        columns: Sequence[int],
        order: tuple[int, TextStyle | None] | None,
        max_rows: int,
    ) -> None:
        (self._persons, self._owners), (self._events, self._members) = persons, events
        self._columns, self._order, self._max_rows = list(columns), order, max_rows
        n_columns = self._persons.shape[1] + len(self._columns) + (order is not None) + 1
        self.shape = (self._owners.n_persons, n_columns)

    @cached_property
    def _joined(self):
        """Which rows belong to whom; found when cells are first read, and paid for."""
        owners, max_rows = self._owners, self._max_rows
        known = {name: i for i, name in enumerate(owners.names)}
        person = np.array([*(known.get(name, -1) for name in self._members.names), -1])
        person = person[self._members.codes]
        kind, value = np.zeros((2, len(person)))
        if self._order is not None:
            kind, value = _read_orders(self._events, *self._order)
        rows = np.flatnonzero(person >= 0)
        # Stable: rows of equal order keep that of the table.
        rows = rows[np.lexsort((value[rows], kind[rows], person[rows]))]
        sizes = np.bincount(person[rows], minlength=owners.n_persons)
        rank = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        # The one place that bounds the rows of a person.
        rows, rank = rows[rank <= max_rows], rank[rank <= max_rows]
        hashes = np.array(list(map(hash_name, owners.names)), dtype=np.uint64)
        used = np.clip(sizes, 1, max_rows).astype(np.uint64)
        # Codes number persons by their first rows, and that row counts.
        codes, first = np.unique(owners.codes, return_index=True)
        return _Joined(
            first[codes >= 0],
            rows,
            np.minimum(sizes, max_rows + 1),
            None if self._order is None else _find_gaps(kind[rows], value[rows], rank),
            (hashes % used).astype(np.int64),
        )

    def __len__(self) -> int:
        return self.shape[0]

    def __getstate__(self):
        raise TypeError("Private records cannot be pickled or copied.")

    def __getitem__(self, rows) -> np.ndarray:
        joined = self._joined
        sizes, starts = joined.sizes[rows], joined.starts[rows]
        ends = np.cumsum(sizes)
        # Rows of the chosen persons, one person after the other.
        kept = np.repeat(starts - ends + sizes, sizes) + np.arange(sizes.sum())
        events = self._events[joined.rows[kept]][:, self._columns]
        if joined.gaps is not None:
            gaps = joined.gaps[kept]
            gaps = np.where(np.isnan(gaps), None, gaps.astype(object))
            events = np.column_stack([events, gaps])
        cells = np.full((len(sizes), self.shape[1]), None, dtype=object)
        persons = self._persons[joined.first[rows]]
        cells[:, : persons.shape[1]] = persons
        one = (ends - sizes + joined.chosen[rows])[sizes > 0]
        cells[sizes > 0, persons.shape[1] : -1] = events[one]
        for i, (size, end) in enumerate(zip(sizes.tolist(), ends.tolist(), strict=True)):
            cells[i, -1] = events[end - size : end]
        return cells


@dataclass(frozen=True)
class _Joined:
    """Positions of the rows of persons.

    Attributes
    ----------
    first : ndarray of int of shape (n_persons,)
        The row of each in the table of persons.
    rows : ndarray of int of shape (n_rows,)
        Rows of the table of events, one person after the other, in order.
    sizes : ndarray of int of shape (n_persons,)
        Number of these of each person.
    gaps : ndarray of shape (n_rows,) or None
        Gaps since the row before, NaN without one. None: rows have no order.
    chosen : ndarray of int of shape (n_persons,)
        Which of their rows shows ranges and categories.
    """

    first: np.ndarray
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


class HistoryDataset:
    """Two private tables on their way to a curator, with the public facts of a `Dataset`.

    Parameters
    ----------
    persons, events : Dataset
        Validated, with persons.
    reader : CellReader
        Reads the cells of `HistoryCells` but the last.
    assumption : str
        States which rows a person has.
    **options : dict
        Options of `HistoryCells`.
    """

    classes = max_rows = label = target = None
    n_classes = 1

    def __init__(self, persons: Dataset, events: Dataset, reader, assumption: str, **options):
        self._parts = persons, events
        self.n_records = persons.n_records
        self.reader = HistoryReader(reader)
        self._options, self._assumption = options, assumption

    def __getstate__(self):
        raise TypeError("Private records cannot be pickled or copied.")

    def release_ownership(self) -> tuple:
        """Return the cells, once; see `Dataset.release_ownership`."""
        both = [dataset.release_ownership() for dataset in self._parts]
        return HistoryCells(*((X, owners) for X, _, owners in both), **self._options), None, None

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
    kinds, values = [], []
    for start in range(0, len(events), _SLICE):
        cells = events[start : start + _SLICE][:, column]
        for cell in read_column(cells, style or PLAIN).tolist():
            if isinstance(cell, datetime.datetime) and cell == cell:
                zone = cell.tzinfo or datetime.timezone.utc
                kinds.append(_DATES)
                values.append(cell.replace(tzinfo=zone).timestamp())
            else:
                is_number = type(cell) is float and cell == cell
                kinds.append(_NUMBERS if is_number else _NEITHER)
                values.append(cell if is_number else np.nan)
    return np.array(kinds, dtype=np.int64), np.array(values, dtype=np.float64)


def _find_gaps(kind, value, rank):
    """Return the gap of each row since the row before, NaN without one."""
    gaps = np.full(len(value), np.nan)
    # Infinite orders have no gap.
    with np.errstate(invalid="ignore"):
        gaps[1:] = np.diff(value)
    has_gap = (rank > 0) & (kind == np.roll(kind, 1))
    return np.where(has_gap, gaps / np.where(kind == _DATES, _SECONDS_PER_DAY, 1), np.nan)
