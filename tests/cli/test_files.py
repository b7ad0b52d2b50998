"""A table in several Parquet files, and one that an engine reads."""

import pandas as pd
import pytest

from skdpgen.curator import tables
from skdpgen.engines import dask as engine


@pytest.fixture
def parts(folder):
    """Three Parquet files of the private table."""
    table = pd.read_csv("private.csv")
    (folder / "parts").mkdir()
    for i, stop in enumerate([100, 101, 300]):
        table[[0, 100, 101][i] : stop].to_parquet(folder / "parts" / f"{i}.parquet")
    table.to_parquet("whole.parquet")
    return folder / "parts"


def read_made():
    return pd.read_csv("made.csv")


def test_several_files_are_one_table(parts, synthesize):
    assert synthesize("--seed", "0", table="whole.parquet") == 0
    whole = read_made()
    assert synthesize("--seed", "0", table="parts/*.parquet") == 0
    pd.testing.assert_frame_equal(read_made(), whole)


def test_an_engine_gives_the_same(parts, synthesize, monkeypatch):
    class Frame:
        """As an engine has it: partitions, and the names of their columns."""

        def __init__(self, paths, drop):
            self.parts = [pd.read_parquet(path).drop(columns=drop) for path in paths]
            self.columns, self.dtypes = self.parts[0].columns, self.parts[0].dtypes

    class Table(tables.PartitionedTable):
        engine = "parts"
        _empty_frame = property(lambda self: self._frame.parts[0][:0])

        def _group_by_person(self, name):
            raise AssertionError

        def _iter_partitions(self):
            return iter(self._frame.parts)

        def _add_up(self, function):
            return tables.merge_sums(map(function, self._frame.parts))

    monkeypatch.setattr(engine, "read_parquet", lambda *args: Table(Frame(*args)))
    assert synthesize("--seed", "0", table="whole.parquet") == 0
    whole = read_made()
    assert synthesize("--seed", "0", "--engine", "dask", table="parts/*.parquet") == 0
    pd.testing.assert_frame_equal(read_made(), whole)


@pytest.mark.parametrize(
    ("options", "table", "message"),
    [
        ([], "none/*.parquet", "There are no files none/*.parquet"),
        (["--engine", "dask"], "private.csv", "--engine is for Parquet files"),
        (["--output", "parts/1.parquet"], "parts/*.parquet", "the same file"),
        ([], "*.csv", "several files"),
    ],
)
def test_what_cannot_be(parts, synthesize, capsys, options, table, message):
    pd.DataFrame({"a": [1]}).to_csv("other.csv")
    schema = None if "--person-column" in options else "schema.json"
    more = ["--infer", "private"] if schema is None else []
    assert synthesize(*options, *more, table=table, schema=schema) == 1
    assert message in capsys.readouterr().err


def test_files_of_other_columns_are_refused(parts, synthesize, capsys):
    pd.DataFrame({"age": [1.5], "ward": ["A"]}).to_parquet(parts / "9.parquet")
    assert synthesize(table="parts/*.parquet") == 1
    assert "9.parquet has other columns" in capsys.readouterr().err


def test_an_engine_that_is_not_installed(parts, synthesize, capsys, monkeypatch):
    def lacking(paths, drop):
        raise ImportError("No module named 'dask'")

    monkeypatch.setattr(engine, "read_parquet", lacking)
    assert synthesize("--engine", "dask", table="whole.parquet") == 1
    assert "skdpgen[dask]" in capsys.readouterr().err
