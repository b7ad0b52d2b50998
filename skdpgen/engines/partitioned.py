# SPDX-License-Identifier: BSD-3-Clause
"""Tables that an engine holds in partitions, maybe on other machines: rows are added up there.

What a partition adds is exact, and so private; that of a partition of one row *is* a row. So the
engine's workers, scheduler, spills and logs stand where the rows do: inside the trust boundary.
Noise is added once, here, to the sum of all.
"""

import copy
import math
import operator
import pickle
import threading
from abc import ABC, abstractmethod
from functools import cached_property, partial, reduce
from uuid import uuid4

import numpy as np
import pandas as pd

from ..curator.chunks import TableChunks
from ..curator.persons import UNKNOWN_COLUMN, Persons, hash_persons
from ..curator.record_functions import call_quietly

# Sums that are added up at once.
_FAN_IN = 8
# What a partition of Spark gives: its sums, pickled.
_SUMS = "sums binary"
# Whether warnings are muted is a matter of a process: its threads take turns.
_TURN = threading.Lock()


def as_partitioned(X):
    """Return a table of an engine, or of a function of chunks, as what gives it in parts."""
    if isinstance(X, PartitionedTable | TableChunks):
        return X
    if callable(X):
        return TableChunks(X)
    package = type(X).__module__.partition(".")[0]
    table = {"dask": DaskTable, "pyspark": SparkTable}.get(package)
    if table is None:
        return X
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        raise ValueError(
            f"X is of {package}, and no table ({type(X).__name__}). Of an engine a table can be "
            "fitted, as dask.dataframe.from_dask_array(X, columns=[...]) makes one, with a schema; "
            "or bring the rows here, as X.compute() does, if they fit in memory."
        )
    return table(X)


class PartitionedTable(ABC):
    """A table in partitions; a call returns a fresh iterator over them, brought here one by one.

    Parameters
    ----------
    frame : object
        The engine's.

    Attributes
    ----------
    engine : str or None
        What certificates call it.
    sharing : Sharing or None
        If several owners hold the rows: how they share the noise.
    person_column : str or None
        Which column says whose each row is. It is no data.
    states_dtypes : bool
        Whether a column of texts holds texts only in each partition, whatever the cells are.
    """

    engine: str | None
    sharing = None
    states_dtypes = False
    are_parsed = False

    def __init__(self, frame, person_column=None):
        self.person_column = person_column
        self._frame = frame
        # As sums are made of it.
        self._parts = frame if person_column is None else self._gather(_name_once())
        self._read = None

    @property
    def head(self):
        """A DataFrame without rows, of the columns that are data: names and dtypes are public."""
        return self._leave_out(self._meta)

    def map(self, read):
        """Return the table with each partition mapped by a public function, where it is."""
        mapped = copy.copy(self)
        mapped._read = read
        return mapped

    def of_persons(self, column):
        """Return the table as one of persons, whose identifiers a column holds.

        For sums, rows of a person are brought together in one partition. Rows without an
        identifier are left out of them.
        """
        if column not in self._meta:
            raise ValueError(UNKNOWN_COLUMN)
        return type(self)(self._frame, column)

    def __call__(self):
        parts = map(self._leave_out, self._iter_partitions())
        return parts if self._read is None else map(self._read, parts)

    @cached_property
    def n_units(self):
        """How many rows there are or, if they are of persons, how many of these."""
        return self.add_up(_count_units)

    def add_up(self, function):
        """Return the sum over partitions of what a function makes of each, where it is.

        It is given the rows and, if they are of persons, whose each is. Partitions without rows are
        passed over. What workers raise may quote rows, and is dropped.
        """
        failure, sums = "a partition could not be added up", None
        try:
            sums = self._add_up(partial(_add_up_part, self._read, self.person_column, function))
        except Exception as error:
            failure = type(error).__name__
        if sums is None:
            raise RuntimeError(
                f"The engine's workers failed ({failure}). What they said is not repeated here, as "
                "it may quote rows: see their own logs."
            )
        return sums[0] if sums else 0

    def run(self, mechanism, source, event, *, relation, noise):
        """Run a mechanism on a source of these rows."""
        return mechanism.run(source, event, relation=relation, noise=noise)

    def _leave_out(self, part):
        return part if self.person_column is None else part.drop(columns=self.person_column)

    @property
    @abstractmethod
    def _meta(self):
        """A DataFrame without rows, of all columns of the frame."""

    @abstractmethod
    def _gather(self, name):
        """Return a frame of partitions that each hold all rows of some persons, by `mark`.

        In between it may have a column of the name.
        """

    @abstractmethod
    def _iter_partitions(self):
        """Return a fresh iterator over the partitions, DataFrames."""

    @abstractmethod
    def _add_up(self, function):
        """Return what `_merge` makes of all ``function(partition)``."""


class DaskTable(PartitionedTable):
    """A `dask.dataframe.DataFrame`."""

    engine = "dask"

    @property
    def _meta(self):
        return self._frame._meta

    def _gather(self, name):
        meta = self._meta.assign(**{name: np.zeros(0, dtype=np.int64)})
        marked = self._frame.map_partitions(mark, self.person_column, name, meta=meta)
        return marked.shuffle(on=name, ignore_index=True).drop(columns=name)

    def _iter_partitions(self):
        for part in self._frame.to_delayed():
            yield part.compute(scheduler=_find_scheduler())

    def _add_up(self, function):
        sums = self._plan_sum(function)
        return [] if sums is None else sums.compute(scheduler=_find_scheduler())

    def _plan_sum(self, function):
        """Return what `_add_up` gives, to be computed; None if there is no partition."""
        from dask import delayed

        # Keys are random: by default they are digests of what goes in.
        def call(function, *args):
            return delayed(function, pure=False)(*args, dask_key_name=_name_once())

        function = delayed(_Held(function), name=_name_once(), traverse=False)
        sums = [call(_call_held, function, part) for part in self._parts.to_delayed()]
        while len(sums) > 1:
            sums = [call(_merge, sums[i : i + _FAN_IN]) for i in range(0, len(sums), _FAN_IN)]
        return sums[0] if sums else None


class ParquetByDask(DaskTable):
    """Parquet files, which state the dtypes of their columns, as Dask reads them."""

    states_dtypes = True


class SparkTable(PartitionedTable):
    """A `pyspark.sql.DataFrame`."""

    engine = "spark"
    states_dtypes = True

    @cached_property
    def _meta(self):
        return self._frame.limit(0).toPandas()

    def _gather(self, name):
        from pyspark.sql.functions import pandas_udf

        @pandas_udf("long")
        def hash_all(persons: pd.Series) -> pd.Series:
            return pd.Series(hash_persons(persons), dtype="Int64")

        # Whole numbers are rounded where there is none in between.
        there = self._frame.where(self._frame[self.person_column].isNotNull())
        marked = there.withColumn(name, hash_all(self.person_column))
        n_parts = self._frame.rdd.getNumPartitions()
        # Of a number that is asked for, so that none is split or joined.
        return marked.where(marked[name].isNotNull()).repartition(n_parts, name).drop(name)

    def _iter_partitions(self):
        from pyspark.sql.functions import spark_partition_id

        for i in range(self._frame.rdd.getNumPartitions()):
            yield self._frame.where(spark_partition_id() == i).toPandas()

    def _add_up(self, function):
        is_whole = self.person_column is not None
        # One row for each partition, and no accumulators: a task that runs twice counts once.
        sums = self._parts.mapInPandas(partial(_add_up_chunks, function, is_whole), _SUMS)
        n_parts = self._parts.rdd.getNumPartitions()
        if n_parts > _FAN_IN:
            # Not all of them come here.
            sums = sums.repartition(math.isqrt(n_parts)).mapInPandas(_merge_chunks, _SUMS)
        return _merge(pickle.loads(row.sums) for row in sums.collect())


def _add_up_chunks(function, is_whole, chunks):
    if is_whole:
        chunks = list(chunks)
        chunks = [pd.concat(chunks)] if chunks else []
    yield pd.DataFrame({"sums": [pickle.dumps(_merge(map(function, chunks)))]})


def _merge_chunks(chunks):
    sums = (pickle.loads(row) for chunk in chunks for row in chunk["sums"])
    yield pd.DataFrame({"sums": [pickle.dumps(_merge(sums))]})


class _Held:
    """A function that Dask takes for data, so that it is sent once."""

    def __init__(self, function):
        self.function = function


def _call_held(held, part):
    return held.function(part)


def _name_once():
    return f"skdpgen-{uuid4().hex}"


def _find_scheduler():
    """Return what Dask is to run on where nobody said it: this thread alone."""
    from dask.base import get_scheduler

    return None if get_scheduler() is not None else "synchronous"


def mark(part, column, name):
    """Return the rows of a partition that are somebody's, and in a column the same for equal ones.

    It raises nothing: what is no identifier is none.
    """
    with _TURN:
        hashes = hash_persons(part[column])
    is_known = np.array([known is not None for known in hashes], dtype=bool)
    return part[is_known].assign(**{name: np.array(hashes)[is_known].astype(np.int64)})


def _add_up_part(read, column, function, part):
    """Return what a function makes of a partition, in a list; None if it fails."""
    if not len(part):
        return []

    def add_up():
        rows, persons = part, ()
        if column is not None:
            rows, persons = part.drop(columns=column), (part[column],)
        return [function(rows if read is None else read(rows), *persons)]

    with _TURN:
        return call_quietly(add_up)


def _count_units(rows, persons=None):
    return len(rows) if persons is None else Persons(persons).n_persons


def _merge(sums):
    """Add up what partitions gave, lists of at most one sum each; None if one of them failed."""
    there = []
    for part in sums:
        if part is None:
            return None
        there = [reduce(operator.add, there + part)] if there or part else []
    return there


def _read_by_dask(paths, drop):
    import dask.dataframe

    frame = dask.dataframe.read_parquet(paths, dtype_backend="numpy_nullable")
    return ParquetByDask(frame.drop(columns=list(drop)))


def _read_by_spark(paths, drop):
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate().read.parquet(*paths).drop(*drop)


# How an engine reads Parquet files, but for some columns.
READERS = {"dask": _read_by_dask, "spark": _read_by_spark}
