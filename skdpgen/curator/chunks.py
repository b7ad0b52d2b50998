# SPDX-License-Identifier: BSD-3-Clause
"""Adapters of private tables that are read in parts: functions of chunks, and engines."""

import contextlib
import copy
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from importlib import import_module
from itertools import accumulate, chain, filterfalse
from typing import Any

import pandas as pd

from ..data.containers import PANDAS, adapt, adapt_records, find_batches, is_image, take_names
from ..data.record_functions import call_quietly, describe_failure, iter_quietly
from ..exceptions import INTERRUPTS, PublicRuntimeError, TableError
from .persons import Persons

# Rows up to which queries are collected, as chunks are read again for each release.
MOST_COLLECTED = 1_000_000


class TableInParts(ABC):
    """A private table that is read in parts; a call returns a fresh iterator over them.

    Attributes
    ----------
    head : DataFrame
        The data columns without rows: column names are public.
    person_column : str or None
        The column that identifies the person of each row; it is not a data column.
    has_fixed_dtypes : bool
        Whether all parts have the dtypes of `head`.
    states_dtypes : bool
        Whether the source states dtypes, as a Parquet file does. Otherwise a reader infers them
        from private cells.
    are_parsed : bool
        Whether texts were already parsed as the declared types.
    container : Container
        That of the parts that were read.
    """

    person_column: str | None = None
    # The safe side: a fact that a subclass does not state is unknown.
    has_fixed_dtypes = False
    states_dtypes = False
    are_parsed = False
    may_hold_arrays = False
    container = PANDAS

    head: pd.DataFrame
    assumptions: tuple[str, ...] = ()  # of certificates

    @abstractmethod
    def __call__(self) -> Iterator:
        """Return a fresh iterator over the parts, without identifiers."""

    def check_fit(self, format, estimator) -> "TableInParts":
        """Return the table as a fit reads it, or refuse that fit, which public facts decide."""
        return self

    @abstractmethod
    def by_person(self, column: str) -> "TableInParts":
        """Return the table with the column that identifies persons."""

    @abstractmethod
    def map_parts(self, read: Callable) -> tuple[Callable, int | None, Persons | None]:
        """Apply a public function to each part.

        Returns
        -------
        source : callable
            For a `RecordSource`.
        n_units : int or None
            Number of rows, or of persons if the engine counts them. None: `persons` counts them.
        persons : Persons or None
        """


class Partitions(ABC):
    """Private records of an engine, whose workers sum their partitions.

    Exact sums over partitions are private: that of a partition of one row *is* a row. So the
    workers, scheduler, spills and logs of an engine are inside the trust boundary. This process
    adds noise once, to the sum of all partitions.

    Attributes
    ----------
    engine : str or None
        Name of the engine on certificates.
    person_column : str or None
        The column that identifies the person of each row.
    """

    engine: str | None
    person_column: str | None = None

    @property
    @abstractmethod
    def n_units(self) -> int:
        """Number of rows or, with a person column, of persons."""

    def add_up(self, function: Callable):
        """Return the sum of a function over non-empty partitions.

        Messages of workers' errors are withheld, as they may quote rows.

        Parameters
        ----------
        function : callable
            Its arguments are the records of a partition and, if these are rows with a person
            column, their identifiers.

        Raises
        ------
        RuntimeError
            If the function fails for a partition.
        """
        failure, sums = "a partition could not be added up", None
        # Workers give None for a failed partition, so both ways to fail end in one message.
        try:
            sums = self._sum_parts(function)
        except INTERRUPTS:
            raise
        except BaseException as error:
            failure = type(error).__name__
        if sums is None:
            raise PublicRuntimeError(
                f"The engine's workers failed ({failure}). Their messages are withheld, as they "
                "may quote rows: read the workers' own logs."
            )
        return sums[0] if sums else 0

    @abstractmethod
    def _sum_parts(self, function: Callable) -> list | None:
        """Return `merge_sums` of a function over all partitions, as in `add_up`."""


class TableChunks(TableInParts):
    """A table in chunks, from a function that returns a fresh iterator over them at each call.

    Messages of its errors are withheld, as they may quote rows. No state refers to positions of
    rows: two calls may yield them in different orders.

    Parameters
    ----------
    function : callable
    """

    def __init__(self, function: Callable[[], Iterable]):
        self._function = function
        self._names: list | None = None
        self.states_dtypes = getattr(function, "states_dtypes", False)
        self.has_fixed_dtypes = getattr(function, "has_fixed_dtypes", False)
        self.are_parsed = getattr(function, "are_parsed", False)
        self.may_hold_arrays = not hasattr(function, "states_dtypes")

    @property
    def stated_dtypes(self):
        """The dtypes of `head`, as the source states them."""
        is_stated = self.has_fixed_dtypes and hasattr(self._function, "stated_dtypes")
        return self._function.stated_dtypes() if is_stated else dict(self.head.dtypes)

    def by_person(self, column):
        table = copy.copy(self)
        table.person_column = column
        return table

    def take_columns(self, names):
        """Return the table with these columns of records, and of no other container."""
        table = copy.copy(self)
        table._names = list(names)
        vars(table).pop("head", None)
        return table

    @cached_property
    def head(self):
        with contextlib.closing(self._read()) as chunks:
            # Closed at once: a file would stay open until the generator is collected.
            first = next(chunks, None)
            table = next(filterfalse(_is_empty, chain([first], chunks)), first)
        if table is None:
            raise TableError("The table has no rows, nor names of columns.")
        table = self._split(table)[0].iloc[:0]
        if self._is_of_records and self._names is None:
            # Each record may have names of its own.
            names = dict.fromkeys(name for part in self._read() for name in self._split(part)[0])
            return take_names(table, names)
        return table

    def __call__(self):
        return (table for table, _ in self._split_chunks())

    def map_parts(self, read):
        if self.person_column is None:
            return (lambda: map(read, self())), sum(map(len, self())), None
        chunks = self._split_chunks
        persons = Persons(lambda: (identifiers for _, identifiers in chunks()), may_be_none=True)
        return (lambda: ((read(t), None, ids) for t, ids in self._split_chunks())), None, persons

    def _split_chunks(self):
        """Yield pairs of a chunk that holds rows and its identifiers, or None.

        Raises
        ------
        TableError
            If a chunk is no table, or has other columns than the first one. Names are public: the
            first reading, which counts rows, refuses such chunks for nothing.
        """
        names = None
        # Readers may end with an empty chunk.
        for chunk in filterfalse(_is_empty, self._read()):
            chunk, identifiers = self._split(chunk)
            names = chunk.columns if names is None else names
            _check_names(chunk.columns, names)
            yield chunk, identifiers

    def _split(self, chunk):
        """Return a chunk, and its identifiers or None."""
        if not isinstance(chunk, pd.DataFrame):
            raise TableError(
                f"Chunks of X must be tables; got {type(chunk).__name__}. For arrays declare "
                "bounds=(lower, upper), and classes=[...] if they hold labels."
            )
        if self.person_column is None:
            return chunk, None
        if self.person_column not in chunk:
            raise TableError(f"A chunk has no column {self.person_column!r} of persons.")
        return chunk.drop(columns=self.person_column), chunk[self.person_column]

    def call(self):
        """Return what the function returns, an iterable that is no table."""
        chunks = self._function()
        # Tables are iterable: over their names.
        is_table = hasattr(chunks, "columns") or isinstance(chunks, str | Mapping)
        if is_table or not isinstance(chunks, Iterable):
            raise TableError(
                "The function that gives the chunks of X must return an iterator of tables, as "
                f"lambda: iter([table]); it returned {type(chunks).__name__}."
            )
        return chunks

    def _read(self):
        # Errors of files quote no cell.
        harmless = (ImportError, OSError, TableError) if self.states_dtypes else (TableError,)
        chunks = iter_quietly(self.call, harmless, describe_failure)
        for chunk in chunks:
            if isinstance(chunk, tuple) and is_image(next(iter(chunk), None)):
                self._split(chunk)  # raises: no list of images
            is_list = self._is_of_records and isinstance(chunk, list | tuple)
            chunk, self.container, _ = adapt_records(chunk) if is_list else adapt(chunk)
            if self._is_of_records:
                own = list(chunk) if self._names is None else self._names
                person = [self.person_column] if self.person_column is not None else []
                chunk = take_names(chunk, dict.fromkeys([*own, *person]))
            yield chunk

    @property
    def _is_of_records(self):
        return self.container.library == "records"


def adapt_query(X):
    """Return a query of many rows as a table in chunks; others are unchanged, and collected."""
    if (found := find_batches(X)) is None:
        return X
    read: Any = partial(found)
    read.states_dtypes = read.has_fixed_dtypes = True
    table = TableChunks(read)
    table.assumptions = ("all readings of the query give the same rows",)
    is_large = (n > MOST_COLLECTED for n in accumulate(map(len, table())))
    # A query that fails does so again where it is collected, as no data set of Arrow is.
    return table if hasattr(X, "to_batches") or call_quietly(any, is_large) else X


def _is_empty(chunk):
    return isinstance(chunk, pd.DataFrame) and not len(chunk)


def _check_names(names, first):
    """Refuse names of columns of a chunk that are not those of the first one, in any order."""
    if Counter(names) != Counter(first):
        lacking, more = Counter(first) - Counter(names), Counter(names) - Counter(first)
        found = [f"lacks {list(lacking)}"] * bool(lacking) + [f"has {list(more)} more"] * bool(more)
        raise TableError(
            f"A later chunk of X has other columns than the first one: it {' and '.join(found)}. "
            "All chunks must have the same."
        )


def adapt_table(X):
    """Return an engine's table, or a function of chunks, as a `TableInParts`; else X itself.

    Parameters
    ----------
    X : object

    Returns
    -------
    TableInParts or object

    Raises
    ------
    ValueError
        If X is an object of an engine but not a table, or holds no rows itself.
    """
    if isinstance(X, TableInParts):
        return X
    package = type(X).__module__.partition(".")[0]
    engines = import_module(__package__.partition(".")[0]).ENGINES
    if package not in engines:
        _refuse_sources(X)
        return TableChunks(X) if callable(X) else X
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        raise ValueError(
            f"X is no table of {package} (got {type(X).__name__}), and estimators accept only "
            "tables of engines. Convert it, as dask.dataframe.from_dask_array(X, columns=[...]) "
            "does; or load the rows into memory, as X.compute() does."
        )
    home, name = engines[package]
    return getattr(import_module(home), name)(X)


def _refuse_sources(X):
    """Raise an error for what is no table or array, but may lead to one."""
    is_list = isinstance(X, list | tuple) and len(X) > 0
    if (
        X is None
        or isinstance(X, str | os.PathLike | Iterator | pd.api.typing.DataFrameGroupBy)
        or hasattr(X, "read")
        or (isinstance(X, pd.DataFrame) and not len(X.columns))
        or (is_list and all(issubclass(type(part), pd.DataFrame) for part in X))
    ):
        raise ValueError(
            f"X must be a table or an array; got {type(X).__name__}. Give pd.DataFrame(X) with its "
            "columns, TableFile(path) for a file, pd.concat(X) for several tables, or a "
            "function that returns an iterator of tables, as lambda: iter(chunks)."
        )
