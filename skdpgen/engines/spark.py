# SPDX-License-Identifier: BSD-3-Clause
"""Spark DataFrames as private tables in partitions."""

import pickle
from functools import cached_property, partial

import pandas as pd

from ..curator.persons import hash_persons
from .partitioned import PartitionedTable, merge_sums

# Most tasks of a sum over rows, each of which sends one to the driver: Spark's for shuffles.
_MOST_TASKS = 200
# Schema of the rows that partitions return: pickled sums.
_SUMS = "sums binary"


class SparkTable(PartitionedTable):
    """A `pyspark.sql.DataFrame`."""

    engine = "spark"
    states_dtypes = True

    @cached_property
    def _empty_frame(self):
        return self._frame.limit(0).toPandas()

    @cached_property
    def _ids(self):
        """The numbers of the partitions that hold rows, by a query: Connect has no RDDs."""
        ids = self._frame.selectExpr("spark_partition_id() AS id").distinct().collect()
        return [row.id for row in ids]

    def _group_by_person(self, name):
        # With a number given, Spark neither splits nor joins partitions later.
        return self._mark_persons(name).repartition(len(self._ids) or 1, name).drop(name)

    def _mark_persons(self, name):
        """Return the rows with a valid identifier, with its hash in a new column."""
        from pyspark.sql.functions import pandas_udf

        @pandas_udf("long")
        def hash_all(persons: pd.Series) -> pd.Series:
            return pd.Series(hash_persons(persons), dtype="Int64")

        # Beside a missing identifier, Spark passes whole numbers as floats, which rounds them.
        present = self._frame.where(self._frame[self.person_column].isNotNull())
        marked = present.withColumn(name, hash_all(self.person_column))
        return marked.where(marked[name].isNotNull())

    def _iter_partitions(self):
        return (self._frame.where(f"spark_partition_id() = {i}").toPandas() for i in self._ids)

    def _add_up(self, function):
        is_whole = self.person_column is not None
        # One row for each task, and no accumulators: a task that runs twice counts once.
        parts = self._grouped if is_whole else self._grouped.coalesce(_MOST_TASKS)
        return _collect(parts.mapInPandas(partial(_add_up_chunks, function, is_whole), _SUMS))

    def _add_up_pairs(self, other, name, function):
        n_parts = max(len(table._ids) for table in (self, other)) or 1
        grouped = [
            marked.withColumn(name, marked[name] % n_parts).groupBy(name)
            for marked in (table._mark_persons(name) for table in (self, other))
        ]

        # Spark counts the arguments of a function.
        def add_up(first, second):
            parts = (part.drop(columns=name) for part in (first, second))
            return pd.DataFrame({"sums": [pickle.dumps(function(*parts))]})

        return _collect(grouped[0].cogroup(grouped[1]).applyInPandas(add_up, _SUMS))


def read_parquet(paths, drop):
    """Return Parquet files, without some columns, as a table of Spark."""
    from pyspark.sql import SparkSession

    return SparkTable(SparkSession.builder.getOrCreate().read.parquet(*paths).drop(*drop))


def _add_up_chunks(function, is_whole, chunks):
    """Yield the sum over a partition; Spark gives it in chunks, and persons need it whole."""
    if is_whole:
        chunks = list(chunks)
        chunks = [pd.concat(chunks)] if chunks else []
    yield pd.DataFrame({"sums": [pickle.dumps(merge_sums(map(function, chunks)))]})


def _collect(sums):
    """Return `merge_sums` of rows of pickled sums."""
    return merge_sums(pickle.loads(row.sums) for row in sums.collect())
