# SPDX-License-Identifier: BSD-3-Clause
"""Tables that an engine holds in partitions, maybe on other machines: rows are added up there.

What a partition adds is exact, and so private; that of a partition of one row *is* a row. So the
engine's workers, scheduler, spills and logs stand where the rows do: inside the trust boundary.
Noise is added once, here, to the sum of all.
"""

import operator
import pickle
import threading
from abc import ABC, abstractmethod
from functools import cached_property, partial, reduce
from uuid import uuid4

import pandas as pd

from .record_functions import call_quietly

# Sums that are added up at once.
_FAN_IN = 8
# Whether warnings are muted is a matter of a process: its threads take turns.
_TURN = threading.Lock()


def hold(X):
    """Return a table of an engine as a `PartitionedTable`, and everything else as it is."""
    package = type(X).__module__.partition(".")[0]
    is_frame = hasattr(X, "columns") and hasattr(X, "dtypes")
    table = {"dask": DaskTable, "pyspark": SparkTable}.get(package) if is_frame else None
    return X if table is None else table(X)


class PartitionedTable(ABC):
    """A table in partitions; a call returns a fresh iterator over them, brought here one by one.

    Parameters
    ----------
    frame : object
        The engine's.
    read : callable, default=None
        A public map of each partition, a DataFrame.

    Attributes
    ----------
    engine : str
        What certificates call it.
    head : DataFrame
        Without rows: names and dtypes, which are public.
    n_rows : int
    """

    engine: str

    def __init__(self, frame, read=None):
        self._frame = frame
        self._read = read

    def map(self, read):
        """Return the table with each partition mapped, where it is."""
        return type(self)(self._frame, read)

    def __call__(self):
        return (part if self._read is None else self._read(part) for part in self._bring())

    @cached_property
    def n_rows(self):
        return self.add_up(len)

    def add_up(self, function):
        """Return the sum over partitions of what a function makes of each, where it is.

        Partitions without rows are passed over. What workers raise may quote rows, and is dropped.
        """
        failure, sums = "a partition could not be added up", None
        try:
            sums = self._add_up(partial(_add_up_part, self._read, function))
        except Exception as error:
            failure = type(error).__name__
        if sums is None:
            raise RuntimeError(
                f"The engine's workers failed ({failure}). What they said is not repeated here, as "
                "it may quote rows: see their own logs."
            )
        return sums[0] if sums else 0

    @property
    @abstractmethod
    def head(self):
        """Names and dtypes of the columns."""

    @abstractmethod
    def _bring(self):
        """Return a fresh iterator over the partitions, DataFrames."""

    @abstractmethod
    def _add_up(self, function):
        """Return what `_merge` makes of all ``function(partition)``."""


class DaskTable(PartitionedTable):
    """A `dask.dataframe.DataFrame`."""

    engine = "dask"

    @property
    def head(self):
        return self._frame._meta

    def _bring(self):
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
            return delayed(function, pure=False)(*args, dask_key_name=f"skdpgen-{uuid4().hex}")

        function = delayed(_Held(function), name=f"skdpgen-{uuid4().hex}", traverse=False)
        sums = [call(_call_held, function, part) for part in self._frame.to_delayed()]
        while len(sums) > 1:
            sums = [call(_merge, sums[i : i + _FAN_IN]) for i in range(0, len(sums), _FAN_IN)]
        return sums[0] if sums else None


class SparkTable(PartitionedTable):
    """A `pyspark.sql.DataFrame`."""

    engine = "spark"

    @cached_property
    def head(self):
        return self._frame.limit(0).toPandas()

    def _bring(self):
        from pyspark.sql.functions import spark_partition_id

        for i in range(self._frame.rdd.getNumPartitions()):
            yield self._frame.where(spark_partition_id() == i).toPandas()

    def _add_up(self, function):
        # One row for each partition, and no accumulators: a task that runs twice counts once.
        def add_up(chunks):
            yield pd.DataFrame({"sums": [pickle.dumps(_merge(map(function, chunks)))]})

        rows = self._frame.mapInPandas(add_up, "sums binary").toLocalIterator()
        return _merge(pickle.loads(row.sums) for row in rows)


class _Held:
    """A function that Dask takes for data, so that it is sent once."""

    def __init__(self, function):
        self.function = function


def _call_held(held, part):
    return held.function(part)


def _find_scheduler():
    """Return what Dask is to run on where nobody said it: this thread alone."""
    from dask.base import get_scheduler

    return None if get_scheduler() is not None else "synchronous"


def _add_up_part(read, function, part):
    """Return what a function makes of a partition, in a list; None if it fails."""
    if not len(part):
        return []
    with _TURN:
        return call_quietly(lambda: [function(part if read is None else read(part))])


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
    return frame.drop(columns=list(drop))


def _read_by_spark(paths, drop):
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate().read.parquet(*paths).drop(*drop)


# How an engine reads Parquet files, but for some columns.
READERS = {"dask": _read_by_dask, "spark": _read_by_spark}
