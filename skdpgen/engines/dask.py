# SPDX-License-Identifier: BSD-3-Clause
"""Dask DataFrames as private tables in partitions."""

import numpy as np

from ..curator.partitions import PartitionedTable, draw_name, mark_persons, merge_sums
from ..curator.tables import register_engine

# Sums that a task adds up.
_FAN_IN = 8


@register_engine("dask")
class DaskTable(PartitionedTable):
    """A `dask.dataframe.DataFrame`."""

    engine = "dask"

    @property
    def _empty_frame(self):
        return self._frame._meta

    def _group_by_person(self, name):
        meta = self._empty_frame.assign(**{name: np.zeros(0, dtype=np.int64)})
        marked = self._frame.map_partitions(mark_persons, self.person_column, name, meta=meta)
        return marked.shuffle(on=name, ignore_index=True).drop(columns=name)

    def _iter_partitions(self):
        for part in self._frame.to_delayed():
            yield part.compute(scheduler=_find_scheduler())

    def _add_up(self, function):
        sums = self._plan_sum(function)
        return [] if sums is None else sums.compute(scheduler=_find_scheduler())

    def _plan_sum(self, function):
        """Return the task graph of `_add_up`; None if there is no partition."""
        from dask import delayed

        # Keys are random: Dask's own are digests of the data.
        def call(function, *args):
            return delayed(function, pure=False)(*args, dask_key_name=draw_name())

        function = delayed(_Constant(function), name=draw_name(), traverse=False)
        sums = [call(_call_constant, function, part) for part in self._grouped.to_delayed()]
        while len(sums) > 1:
            sums = [call(merge_sums, sums[i : i + _FAN_IN]) for i in range(0, len(sums), _FAN_IN)]
        return sums[0] if sums else None


class DaskParquet(DaskTable):
    """Parquet files, which state the dtypes of their columns, as Dask reads them."""

    states_dtypes = True


def read_parquet(paths, drop):
    """Return Parquet files, without some columns, as a table of Dask."""
    import dask.dataframe

    frame = dask.dataframe.read_parquet(paths, dtype_backend="numpy_nullable")
    return DaskParquet(frame.drop(columns=list(drop)))


class _Constant:
    """A function that Dask takes for data, so that it is sent once."""

    def __init__(self, function):
        self.function = function


def _call_constant(constant, part):
    return constant.function(part)


def _find_scheduler():
    """Return Dask's scheduler; without one that the user chose, this thread alone."""
    from dask.base import get_scheduler

    return None if get_scheduler() is not None else "synchronous"
