# SPDX-License-Identifier: BSD-3-Clause
"""Partitioned tables: the base of engines, and sums over their partitions."""

import copy
import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial, reduce
from uuid import uuid4

import numpy as np
import pandas as pd

from ..curator.chunks import Partitions, TableInParts
from ..curator.persons import UNKNOWN_COLUMN, Persons, hash_persons
from ..data.record_functions import call_quietly


class PartitionedTable(TableInParts, Partitions):
    """A partitioned table of an engine.

    An engine is a subclass in a module of `skdpgen.engines`, which implements the five abstract
    methods, and a function ``read_parquet(paths, drop)`` for files. ``skdpgen.ENGINES`` lists it.

    Parameters
    ----------
    frame : object
        The engine's table.
    """

    engine: str | None
    has_fixed_dtypes = True

    def __init__(self, frame):
        self._frame = self._grouped = frame
        self._read: Callable | None = None

    @property
    def head(self):
        return self._drop_persons(self._empty_frame)

    def by_person(self, column):
        """Return the table with the column that identifies persons.

        For sums, the engine moves all rows of a person to one partition. Sums exclude rows without
        an identifier.
        """
        if column not in self._empty_frame:
            raise ValueError(UNKNOWN_COLUMN)
        table = copy.copy(self)
        vars(table).pop("n_units", None)
        table.person_column = column
        table._grouped = table._group_by_person(draw_name())
        return table

    def map_parts(self, read):
        mapped = copy.copy(self)
        mapped._read = read
        return mapped, self.n_units, None

    def __call__(self):
        parts = map(self._drop_persons, self._iter_partitions())
        return parts if self._read is None else map(self._read, parts)

    @cached_property
    def n_units(self) -> int:
        """Number of rows or, with a person column, of persons."""
        return self.add_up(_count_units)

    def add_up_pairs(self, other: "PartitionedTable", function: Callable) -> list | None:
        """Return `merge_sums` of a function over pairs of partitions of two tables of persons.

        Parameters
        ----------
        other : PartitionedTable
            A table of the same engine.
        function : callable
            Its arguments are the rows of a partition of this table and their identifiers, and those
            of the other one. All rows of a person are in one pair.
        """
        columns = self.person_column, other.person_column
        pair = partial(_add_up_part, (self._read, other._read), columns, function)
        return self._add_up_pairs(other, draw_name(), pair)

    def _sum_parts(self, function):
        return self._add_up(partial(_add_up_part, (self._read,), (self.person_column,), function))

    def _drop_persons(self, part):
        return part if self.person_column is None else part.drop(columns=self.person_column)

    @property
    @abstractmethod
    def _empty_frame(self) -> pd.DataFrame:
        """All columns of the frame, without rows."""

    @abstractmethod
    def _group_by_person(self, name: str):
        """Return the frame, repartitioned so that all rows of a person are in one partition.

        A temporary column `name` may hold hashes of identifiers; see `mark_persons`.
        """

    @abstractmethod
    def _iter_partitions(self) -> Iterator[pd.DataFrame]:
        """Return a fresh iterator over the partitions."""

    @abstractmethod
    def _add_up(self, function: Callable) -> list | None:
        """Return `merge_sums` of ``function(partition)`` over all partitions."""

    @abstractmethod
    def _add_up_pairs(self, other, name: str, function: Callable) -> list | None:
        """Return `merge_sums` of ``function(partition, partition of the other table)``.

        Both are repartitioned by `name`, as in `_group_by_person`, into as many partitions.
        """


def draw_name() -> str:
    """Draw a unique random name, for a column or a Dask task."""
    return f"skdpgen-{uuid4().hex}"


def mark_persons(part: pd.DataFrame, column: str, name: str) -> pd.DataFrame:
    """Return the rows of a partition with a valid identifier, with its hash in a new column.

    Other rows are dropped without an error, which would reveal them.

    Parameters
    ----------
    part : DataFrame
    column : str
        The column of identifiers.
    name : str
        The new column, of int64. Equal identifiers have equal hashes.
    """
    # A hash, not the identifier: the column is only for moving rows of one person together.
    hashes = hash_persons(part[column])
    is_known = np.array([known is not None for known in hashes], dtype=bool)
    return part[is_known].assign(**{name: np.array(hashes)[is_known].astype(np.int64)})


def merge_sums(sums: Iterable[list | None]) -> list | None:
    """Add up the sums of partitions.

    Parameters
    ----------
    sums : iterable of list or None
        For each partition a list of its sum, an empty list without rows, or None if it failed.

    Returns
    -------
    list or None
        A list of at most one sum; None if a partition failed.

    Examples
    --------
    >>> merge_sums([[1], [], [2]]), merge_sums([]), merge_sums([[1], None])
    ([3], [], None)
    """
    total: list = []
    for part in sums:
        if part is None:
            # A sum without the failed partitions would be a statement about their rows.
            return None
        total = [reduce(operator.add, total + part)] if total or part else []
    return total


def _add_up_part(reads, columns, function, *parts):
    """Return a list of the value for a partition of each table, empty without rows in the first.

    None if it fails.
    """
    # Engines call functions on empty partitions, too, whose dtypes may differ.
    if not len(parts[0]):
        return []

    def add_up():
        pieces: list = []
        for read, column, rows in zip(reads, columns, parts, strict=True):
            persons = [] if column is None else [rows[column]]
            rows = rows if column is None else rows.drop(columns=column)
            pieces += [rows if read is None else read(rows), *persons]
        return [function(*pieces)]

    return call_quietly(add_up)


def _count_units(rows, persons=None):
    return len(rows) if persons is None else Persons(persons).n_persons
