# SPDX-License-Identifier: BSD-3-Clause
"""Dask DataFrames as private tables in partitions."""

import numpy as np

from .partitioned import PartitionedTable, draw_name, mark_persons, merge_sums

# Sums that a task adds up.
_FAN_IN = 8


class DaskTable(PartitionedTable):
    """A `dask.dataframe.DataFrame`."""

    engine = "dask"

    @property
    def _empty_frame(self):
        return self._frame._meta

    def _group_by_person(self, name, n_parts=None):
        meta = self._empty_frame.assign(**{name: np.zeros(0, dtype=np.int64)})
        marked = self._frame.map_partitions(mark_persons, self.person_column, name, meta=meta)
        return marked.shuffle(on=name, ignore_index=True, npartitions=n_parts).drop(columns=name)

    def _iter_partitions(self):
        return (part.compute(scheduler=_find_scheduler()) for part in self._frame.to_delayed())

    def _add_up(self, function):
        return self._plan_sum(function).compute(scheduler=_find_scheduler())

    def _add_up_pairs(self, other, name, function):
        n_parts = max(table._frame.npartitions for table in (self, other))
        # As Dask joins tables: equal hashes are in equal places of as many partitions.
        grouped = [table._group_by_person(name, n_parts) for table in (self, other)]
        return self._plan_sum(function, grouped).compute(scheduler=_find_scheduler())

    def _plan_sum(self, function, frames=None):
        """Return the task graph of a sum over partitions of frames."""
        from dask import delayed

        # Keys are random: Dask's own are digests of the data.
        def call(function, *args):
            return delayed(function, pure=False)(*args, dask_key_name=draw_name())

        # In a list Dask takes it for data, which is sent once.
        functions = delayed([function], name=draw_name(), traverse=False)
        parts = zip(*(frame.to_delayed() for frame in frames or [self._grouped]), strict=True)
        sums = [call(_call_first, functions, *part) for part in parts] or [call(merge_sums, [])]
        while len(sums) > 1:
            sums = [call(merge_sums, sums[i : i + _FAN_IN]) for i in range(0, len(sums), _FAN_IN)]
        return sums[0]


def read_parquet(paths, drop):
    """Return Parquet files, without some columns, as a table of Dask."""
    import dask.dataframe

    # An index of pandas is a column.
    frame = dask.dataframe.read_parquet(paths, index=False, dtype_backend="numpy_nullable")
    table = DaskTable(frame.drop(columns=[name for name in drop if name in frame.columns]))
    table.states_dtypes = True
    return table


def _call_first(functions, *parts):
    return functions[0](*parts)


def _find_scheduler():
    """Return Dask's scheduler; without one that the user chose, this thread alone."""
    from dask.base import get_scheduler

    return None if get_scheduler() is not None else "synchronous"
