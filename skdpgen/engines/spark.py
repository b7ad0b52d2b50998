# SPDX-License-Identifier: BSD-3-Clause
"""Spark DataFrames as private tables in partitions."""

import math
import pickle
from functools import cached_property, partial

import pandas as pd

from ..curator.chunks import register_engine
from ..curator.persons import hash_persons
from .partitioned import PartitionedTable, merge_sums

# Up to so many partitions send their sums to the driver; more are merged beforehand.
_FAN_IN = 8
# Schema of the rows that partitions return: pickled sums.
_SUMS = "sums binary"


@register_engine("pyspark")
class SparkTable(PartitionedTable):
    """A `pyspark.sql.DataFrame`."""

    engine = "spark"
    states_dtypes = True

    @cached_property
    def _empty_frame(self):
        return self._frame.limit(0).toPandas()

    def _group_by_person(self, name):
        # With a number given, Spark neither splits nor joins partitions later.
        n_parts = self._frame.rdd.getNumPartitions()
        return self._mark_persons(name).repartition(n_parts, name).drop(name)

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
        from pyspark.sql.functions import spark_partition_id

        for i in range(self._frame.rdd.getNumPartitions()):
            yield self._frame.where(spark_partition_id() == i).toPandas()

    def _add_up(self, function):
        is_whole = self.person_column is not None
        # One row for each partition, and no accumulators: a task that runs twice counts once.
        sums = self._grouped.mapInPandas(partial(_add_up_chunks, function, is_whole), _SUMS)
        return _collect(sums, self._grouped.rdd.getNumPartitions())

    def _add_up_pairs(self, other, name, function):
        n_parts = max(table._frame.rdd.getNumPartitions() for table in (self, other))
        # Groups of persons, as many as partitions.
        grouped = [
            marked.withColumn(name, marked[name] % n_parts).groupBy(name)
            for marked in (table._mark_persons(name) for table in (self, other))
        ]

        # Spark counts the arguments of a function.
        def add_up(first, second):
            parts = (part.drop(columns=name) for part in (first, second))
            return pd.DataFrame({"sums": [pickle.dumps(function(*parts))]})

        return _collect(grouped[0].cogroup(grouped[1]).applyInPandas(add_up, _SUMS), n_parts)


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


def _collect(sums, n_parts):
    """Return `merge_sums` of as many rows of pickled sums; of many, some are merged beforehand."""
    if n_parts > _FAN_IN:
        sums = sums.repartition(math.isqrt(n_parts)).mapInPandas(_merge_chunks, _SUMS)
    return merge_sums(pickle.loads(row.sums) for row in sums.collect())


def _merge_chunks(chunks):
    sums = (pickle.loads(row) for chunk in chunks for row in chunk["sums"])
    yield pd.DataFrame({"sums": [pickle.dumps(merge_sums(sums))]})
