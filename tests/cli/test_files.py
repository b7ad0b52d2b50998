"""Tables in several files, in Excel files, and tables that an engine reads."""

import json

import pandas as pd
import pytest

from skdpgen.__main__ import main
from skdpgen.engines import dask as engine
from skdpgen.engines import partitioned
from skdpgen.tables import Boolean, Category, Date, Number, Schema


@pytest.fixture
def parts(folder):
    """Three Parquet files of the private table."""
    table = pd.read_csv("private.csv")
    (folder / "parts").mkdir()
    for i, stop in enumerate([100, 101, 300]):
        table[[0, 100, 101][i] : stop].to_parquet(folder / "parts" / f"{i}.parquet")
    table.to_parquet("whole.parquet")
    return folder / "parts"


def read_made(suffix=".csv"):
    if suffix != ".csv":
        read = {".xlsx": pd.read_excel, ".parquet": pd.read_parquet}[suffix]
        return read(f"made/synthetic{suffix}")
    return pd.read_csv("made/synthetic.csv")


def test_an_engine_gives_the_same(parts, synthesize, monkeypatch):
    class Frame:
        """As an engine has it: partitions, and the names of their columns."""

        def __init__(self, paths, drop):
            self.parts = [pd.read_parquet(path).drop(columns=drop) for path in paths]
            self.columns, self.dtypes = self.parts[0].columns, self.parts[0].dtypes

    class Table(partitioned.PartitionedTable):
        engine = "parts"
        _empty_frame = property(lambda self: self._frame.parts[0][:0])

        def _group_by_person(self, name):
            raise AssertionError

        def _iter_partitions(self):
            return iter(self._frame.parts)

        def _add_up(self, function):
            return partitioned.merge_sums(map(function, self._frame.parts))

        def _add_up_pairs(self, other, name, function):
            raise AssertionError

    monkeypatch.setattr(engine, "read_parquet", lambda *args: Table(Frame(*args)))
    assert synthesize("--seed", "0", table="whole.parquet") == 0
    whole = read_made(".parquet")
    assert synthesize("--seed", "0", "--engine", "dask", table="parts/*.parquet") == 0
    pd.testing.assert_frame_equal(read_made(".parquet"), whole.astype({"ward": "str"}))


@pytest.mark.parametrize(
    ("options", "table", "message"),
    [
        ([], "none/*.parquet", "There are no files none/*.parquet"),
        (["--engine", "dask"], "private.csv", "--engine is for Parquet files"),
        (["--output", "parts"], "parts/*.parquet", "holds files already"),
        ([], "*.csv", "private.csv has other columns than other.csv"),
        ([], ["private.csv", "./private.csv"], "are the same file"),
        ([], ["private.csv", "*.csv"], "are the same file"),
        ([], ["private.csv", "whole.parquet"], "whole.parquet must end in .csv"),
        (["--output", "private.csv"], ["other.csv", "private.csv"], "is no folder"),
        (["--sheet", "a"], "private.csv", "--sheet is for Excel files"),
    ],
)
def test_impossible_options_are_refused(parts, synthesize, capsys, options, table, message):
    pd.DataFrame({"a": [1]}).to_csv("other.csv", index=False)
    assert synthesize(*options, table=table) == 1
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


def test_several_csv_files_are_one_table(folder, synthesize):
    table = pd.read_csv("private.csv")
    assert synthesize("--seed", "0") == 0
    whole = read_made()
    (folder / "parts").mkdir()
    table[:100].to_csv("parts/a.csv", index=False)
    # Columns of other files may be in another order.
    table[100:][["ward", "age"]].to_csv("parts/b.csv", index=False)
    for given in ("parts/*.csv", ["parts/a.csv", "parts/b.csv"]):
        assert synthesize("--seed", "0", table=given) == 0
        pd.testing.assert_frame_equal(read_made(), whole)
    # The first file has the order of columns.
    assert synthesize("--seed", "0", table=["parts/b.csv", "parts/a.csv"]) == 0
    assert list(read_made()) == ["ward", "age"]


def test_an_excel_file_is_as_a_csv_file(folder, synthesize, infer):
    pytest.importorskip("openpyxl")
    table = pd.read_csv("private.csv")
    assert synthesize("--seed", "0") == 0
    whole = read_made()
    table.to_excel("private.xlsx", index=False)
    assert synthesize("--seed", "0", table="private.xlsx") == 0
    pd.testing.assert_frame_equal(read_made(".xlsx"), whole)
    assert infer("--seed", "0") == 0
    whole = read_made()
    assert infer("--seed", "0", table="private.xlsx") == 0
    pd.testing.assert_frame_equal(read_made(".xlsx"), whole)


def test_sheets_and_errors_of_excel_files(folder, synthesize, capsys):
    pytest.importorskip("openpyxl")
    table = pd.read_csv("private.csv")
    with pd.ExcelWriter("private.xlsx") as writer:
        table.to_excel(writer, sheet_name="rows", index=False)
        pd.DataFrame({"legend": ["A: a ward"]}).to_excel(writer, sheet_name="notes", index=False)
    assert synthesize(table="private.xlsx") == 1
    assert "several sheets, ['rows', 'notes']; name one by --sheet" in capsys.readouterr().err
    assert synthesize("--sheet", "none", table="private.xlsx") == 1
    assert "no sheet 'none'" in capsys.readouterr().err
    assert synthesize("--sep", ";", table="private.xlsx") == 1
    assert "--sep: private.xlsx is a file of Excel" in capsys.readouterr().err
    assert synthesize("--sheet", "rows", table="private.xlsx") == 0


def test_a_public_excel_file_is_described(folder, capsys):
    pytest.importorskip("openpyxl")
    pd.DataFrame(
        {
            "age": [18, 90],
            "ward": ["A", None],
            "day": pd.to_datetime(["2020-01-01", "2020-12-31"]),
            "ok": [True, False],
        }
    ).to_excel("public.xlsx", index=False)
    assert main(["schema", "public.xlsx"]) == 0
    assert Schema.from_json(capsys.readouterr().out) == Schema(
        {
            "age": Number(18, 90, 0),
            "ward": Category(["A"], missing=True),
            "day": Date("2020-01-01", "2020-12-31"),
            "ok": Boolean(),
        }
    )


def test_metadata_of_other_formats_is_a_schema(folder, synthesize, capsys):
    assert synthesize("--seed", "0") == 0
    whole = read_made()
    bounds, enum = {"minimum": 0, "maximum": 99}, {"enum": ["A", "B"], "maxLength": 1}
    document = {
        "fields": [
            {"name": name, "type": type, "constraints": {**constraints, "required": True}}
            for name, type, constraints in (("age", "integer", bounds), ("ward", "string", enum))
        ]
    }
    (folder / "tableschema.json").write_text(json.dumps(document))
    capsys.readouterr()
    assert synthesize("--seed", "0", schema="tableschema.json") == 0
    pd.testing.assert_frame_equal(read_made(), whole)
    printed = capsys.readouterr().err
    assert printed.startswith("skdpgen: warning: A schema cannot express all that the Frictionless")
    assert "'ward': maxLength 1." in printed


def test_a_public_table_without_rows_is_named(folder, capsys):
    (folder / "header.csv").write_text("age,job\n")
    assert main(["schema", "header.csv"]) == 1
    assert "header.csv has no rows below its column names" in capsys.readouterr().err
