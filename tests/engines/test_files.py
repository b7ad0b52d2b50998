"""Private files in chunks; errors that quote nothing."""

import datetime
import re
import sys

import numpy as np
import pandas as pd
import pytest

from skdpgen.data.texts import TextStyle, read_text
from skdpgen.engines import files as module
from skdpgen.privacy import TableError, TableFile
from skdpgen.tables import Category, Date, Number, Schema
from skdpgen.tables.columns.texts import parse_cells

SECRET = "Smith-31415"


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(module, "_CHUNK_ROWS", 7)


def test_csv_comes_in_chunks_of_texts(tmp_path, small_chunks):
    path = tmp_path / "table.csv"
    frame = pd.DataFrame({"a": np.arange(20), "b": [f"{i}x" for i in range(20)]})
    frame.to_csv(path, index=False)
    table = TableFile(path, lambda texts: texts)
    for _ in range(2):  # a fresh iterator at each call
        chunks = list(table())
        assert [len(chunk) for chunk in chunks] == [7, 7, 6]
        pd.testing.assert_frame_equal(pd.concat(chunks), frame.astype(str), check_dtype=False)


def test_parquet_comes_in_chunks_with_dtypes(tmp_path, small_chunks):
    pytest.importorskip("pyarrow")
    path = tmp_path / "table.parquet"
    frame = pd.DataFrame({"a": np.arange(20, dtype=np.int32), "b": ["x", "y"] * 10})
    frame.to_parquet(path)
    chunks = list(TableFile(path, None)())
    assert [len(chunk) for chunk in chunks] == [7, 7, 6]
    # Which holds missing values, too: a dtype may not follow from those of a chunk.
    assert chunks[0]["a"].dtype == pd.Int32Dtype()


@pytest.mark.catches("engines.files:TableFile._read_json", "object", "None", param="null")
@pytest.mark.parametrize("other", ["null", "0.5", "1e999", "1" * 30, r'"\ud83d"'])
def test_a_cell_of_json_does_not_depend_on_others(tmp_path, other):
    path = tmp_path / "table.jsonl"
    path.write_text(f'{{"id": {2**53 + 1}}}\n{{"id": {other}}}\n')
    (chunk,) = TableFile(path)()
    assert chunk["id"].tolist()[:1] == [2**53 + 1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"a,b\n{SECRET},2\n{SECRET},2,3,4\n",
        f"a,b\n{SECRET},2,3\n{SECRET},2,3\n",
        f'a,b\n"{SECRET},2\n',
        "a\n\udcff\udcfe\n",
    ],
)
def test_files_that_are_no_csv_are_refused_without_quoting_them(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(TableError, match="is no CSV file") as caught:
        list(TableFile(path, lambda texts: texts)())
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def test_files_that_are_no_parquet_are_refused(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "table.parquet"
    path.write_text(SECRET)
    with pytest.raises(TableError, match="is no Parquet file") as caught:
        list(TableFile(path, None)())
    assert SECRET not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(TableFile(tmp_path / "none.csv", None)())


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("whole", ["0", "-7", "+12", " 31 ", "123456789012345"]),
        ("number", ["0.5", "-.5", "1.", "1e5", "-2.5E-3", "1234567890123456"]),
        ("boolean", ["true", "FALSE", "True"]),
        ("date", ["2020-01-31", "2020-01-31 12:30", "2020-01-31T12:30:59"]),
        ("missing", ["", "  ", "NA", "NULL", "nan"]),
        ("text", ["Smith", "yes", "012", "1_000", "١٢", "inf", "1e999", "1,5,5"]),
        ("text", ["20200101T", "0x1F", "--1", "1 2", "None of these", "(-5)", "5 %%", "XYZ 5"]),
        ("number", ["12.5%", "(0.5)", "EUR 5.50", "₹5.5", "5.5 kr", "$ -0.5"]),
        ("decimal comma", ["1,5", "47,75", "1.234,5", "-0,123456", "12,5 %", "1.234.567"]),
        ("grouped", ["1,234,567", "1,234.5", "(1,234.50)", "$1,234.00"]),
        ("comma", ["1,234", "-12,345"]),
        ("limit", ["<0.5", "> 100", "≤ 3", ">=7"]),
        ("times", ["12:30", "1:05 pm", "23:59:59.5"]),
        (
            "dates",
            ["1/3/2020", "1/31/20", "31-Jan-20", "31. März 2020", "May 3, 2020"],
        ),
        ("dates as %d.%m.%Y", ["31.01.2020", "3.1.2020 12:30", "3.1.2020, 9:05:01.5"]),
        ("dates as %d/%m/%Y", ["31/01/2020 12:30", "13/1/2020"]),
        ("dates as %m/%d/%Y", ["1/31/2020", "1/31/2020 1:05:09 pm"]),
        ("dates as %Y/%m/%d", ["2020/1/31"]),
        ("dates", ["1/2/2020 12:30", "2020-13-01"]),
        ("numbers as 1 000", ["1 234", "-12\u202f345,5"]),
        ("numbers as 1'000", ["1'234'567.89"]),
        ("numbers", ["12.5-", "−7"]),
        ("quantities", ["12 kg", "3.5cm", "-4,5 °C", "120 mmHg", "90 min", "2 Years"]),
        ("text", ["123-45-6789", "12ABC34", "1.2.3", "10-19", "555 1234", "12 Main", "3XL", "7 -"]),
        ("date", ["20200131T123059", "2020-01-31 12:30:59.123456789"]),
        ("zoned date", ["2020-01-01T00:00:00+01:00", "20200101T000000Z", "2020-01-01 00:00 UTC"]),
    ],
)
def test_a_text_is_of_one_kind(kind, texts):
    assert [read_text(text)[0] for text in texts] == [kind] * len(texts)


@pytest.mark.parametrize(
    ("style", "text", "expected"),
    [
        ({}, "$12.50", ("number", 12.5)),
        ({}, "-£5", ("whole", -5.0)),
        ({}, "1,234", ("comma", "1,234")),
        ({"thousands": ","}, "$1,234", ("whole", 1234.0)),
        ({"thousands": ","}, "1,23", ("text", "1,23")),
        ({"thousands": " "}, "1\u202f234.5", ("number", 1234.5)),
        ({"decimal": ","}, "1,5", ("number", 1.5)),
        ({"decimal": ","}, "1.234", ("grouped", "1.234")),
        ({"decimal": ","}, "1.23", ("text", "1.23")),
        ({"decimal": ",", "thousands": "."}, "1.234,50 €", ("number", 1234.5)),
        (
            {"date_format": "%Y%m%d"},
            "20200131",
            ("date", datetime.datetime(2020, 1, 31)),
        ),
        (
            {"date_format": "%m/%d/%Y"},
            "01/31/2020",
            ("date", datetime.datetime(2020, 1, 31)),
        ),
        *[
            (
                {"date_format": "%m/%d/%Y"},
                f"1/31/2020{clock}",
                ("date", datetime.datetime(2020, 1, 31, *parts)),
            )
            for clock, parts in {
                " 9:05": (9, 5),
                "T13:05:09.25": (13, 5, 9, 250_000),
                ", 1:05 pm": (13, 5),
            }.items()
        ],
        ({"date_format": "%d/%m/%Y %H:%M"}, "31/1/2020", ("dates as %d/%m/%Y", "31/1/2020")),
        ({"date_format": "%m/%d/%Y"}, "31/01/2020", ("dates as %d/%m/%Y", "31/01/2020")),
        ({"date_format": "%Y-%d-%m"}, "2020-01-31", ("dates", "2020-01-31")),
        ({"expected": "boolean"}, "No", ("boolean", False)),
        ({"expected": "boolean"}, "2", ("text", "2")),
        ({"expected": "number"}, "007", ("whole", 7.0)),
        ({"expected": "integer"}, "7.0", ("whole", 7.0)),
        ({"expected": "integer"}, "7.5", ("number", 7.5)),
    ],
)
def test_styles_of_texts(style, text, expected):
    assert read_text(text, TextStyle(**style)) == expected


@pytest.mark.parametrize(
    ("style", "match"),
    [
        ({"decimal": "x"}, "decimal must be"),
        ({"thousands": ".."}, "thousands must be"),
        ({"thousands": "."}, "different"),
        ({"date_format": "%d/%m"}, "date_format must contain"),
        ({"date_format": "%Y-%m-%d %z"}, "date_format must contain"),
        ({"expected": "text"}, "expected must be"),
    ],
)
def test_styles_that_make_no_sense(style, match):
    with pytest.raises(ValueError, match=match):
        TextStyle(**style)


def test_values_of_texts():
    texts = ["7", "-.5", "True", "2020-01-31 12:30", "a ", "NA"]
    values = [7.0, -0.5, True, datetime.datetime(2020, 1, 31, 12, 30), "a", None]
    assert [read_text(text)[1] for text in texts] == values


@pytest.mark.parametrize("first", ["1,b", "a,2.5", "a,2020-01-31", "true,b", "a,NA"])
def test_a_first_line_that_looks_like_a_record_is_refused(tmp_path, first):
    path = tmp_path / "table.csv"
    path.write_text(f"{first}\nSmith,3\n")
    for read in (lambda table: list(table()), lambda table: table.names()):
        with pytest.raises(TableError, match="looks like a record") as caught:
            read(TableFile(path, lambda texts: texts))
        assert first not in str(caught.value)
        assert len(read(TableFile(path, lambda texts: texts, has_header=True))) > 0
    path.write_text("name,year 2020\nSmith,3\n")
    assert TableFile(path, None).names() == ["name", "year 2020"]


@pytest.mark.parametrize("has_header", [None, True])
@pytest.mark.parametrize(
    ("first", "where"), [(",a", "1"), ("a,", "2"), (" , b", "1"), (f"{SECRET}, {SECRET}", "1, 2")]
)
def test_blank_and_equal_names_are_refused_by_position(tmp_path, has_header, first, where):
    path = tmp_path / "table.csv"
    path.write_text(f"{first}\nSmith,3\n")
    with pytest.raises(TableError, match=f"blank or equal cells, at position {where}, ") as caught:
        TableFile(path, None, has_header).names()
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("first", "sep", "other"),
    [
        ("a;b", ",", "';'"),
        ("a\tb", ",", r"'\\t'"),
        ("a|b", ",", "'\\|'"),
        ("a,b", ";", "','"),
        ("name;price, EUR;day", ",", "';'"),
    ],
)
def test_another_separator_is_noticed(tmp_path, first, sep, other):
    path = tmp_path / "table.csv"
    path.write_text(f"{first}\n{SECRET}\n")
    with pytest.raises(TableError, match=f"--sep {other}"):
        TableFile(path, None, sep=sep).names()
    assert len(TableFile(path, None, True, sep=sep).names()) == first.count(sep) + 1
    path.write_text("a,b;c,d\n1,2,3\n")
    assert TableFile(path, None).names() == ["a", "b;c", "d"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16", "utf-16-le"])
def test_encodings(tmp_path, encoding):
    path = tmp_path / "table.csv"
    path.write_bytes(' größe ;"Ort"\n1,5;Zürich\n'.encode(encoding))
    table = TableFile(path, lambda texts: texts, sep=";", encoding=encoding)
    assert table.names() == ["größe", "Ort"]
    assert [chunk.to_dict("list") for chunk in table()] == [{"größe": ["1,5"], "Ort": ["Zürich"]}]
    if encoding == "utf-8-sig":
        assert TableFile(path, None, sep=";").names()[0] == "größe"
    elif encoding != "utf-8":
        match = "--encoding utf-16" if "16" in encoding else "is no CSV file in UTF-8.*--encoding"
        with pytest.raises(TableError, match=match):
            TableFile(path, None, sep=";").names()


@pytest.mark.parametrize("compression", ["gzip", "zip", "bz2", "xz"])
def test_compressed_files_are_named_as_such(tmp_path, compression):
    path = tmp_path / "ages.csv"
    pd.DataFrame({"age": [31, 62]}).to_csv(path, index=False, compression=compression)
    with pytest.raises(TableError, match=r"ages\.csv is compressed.* unpack it"):
        TableFile(path).names()


def test_columns_are_left_out(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": ["x"], "b": ["y"], "c": ["z"]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.PARQUET")
    for name in ("t.csv", "t.PARQUET"):
        table = TableFile(tmp_path / name, lambda texts: texts, drop=["b", "c"])
        assert table.names() == ["a"]
        assert [list(chunk) for chunk in table()] == [["a"]]
        with pytest.raises(TableError, match=r"no columns \['d'\] to drop"):
            TableFile(tmp_path / name, None, drop=["a", "d"]).names()


@pytest.mark.parametrize("other", [{"a": ["1"]}, {"a": [1.5]}, {"b": [1]}, {"a": [1], "b": [1]}])
def test_files_of_one_table_have_the_same_columns_of_the_same_types(tmp_path, other):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"a": [1, 2]}).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame({"a": [3, 4]}).to_parquet(tmp_path / "2.parquet")
    table = TableFile(tmp_path / "*.parquet")
    assert table.names() == ["a"]
    assert [chunk["a"].tolist() for chunk in table()] == [[1, 2], [3, 4]]
    pd.DataFrame(other).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(TableError, match=r"2\.parquet has other columns, or of other types"):
        table.dtypes()


def test_dtypes_of_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "table.parquet"
    frame = pd.DataFrame(
        {"a": np.arange(3, dtype=np.int32), "b": [0.5, 1, 2], "c": [True, False, None]}
    )
    frame.to_parquet(path)
    found = {name: str(dtype) for name, dtype in TableFile(path, None).dtypes().items()}
    # Whatever the values are: from the file's schema.
    assert found == {"a": "Int32", "b": "float64", "c": "boolean"}


@pytest.mark.parametrize("index", ["job", ["job", "age"], None])
def test_an_index_of_parquet_is_a_column_if_it_has_a_name(tmp_path, index):
    pytest.importorskip("pyarrow")
    path = tmp_path / "table.parquet"
    frame = pd.DataFrame({"job": list("aba"), "age": [31, 62, 31], "dose": [0.5, 1.0, 1.5]})
    indexed = frame.set_axis([7, 8, 9]) if index is None else frame.set_index(index)
    indexed.to_parquet(path)
    (chunk,) = TableFile(path)()
    assert sorted(chunk) == sorted(TableFile(path).names()) == ["age", "dose", "job"]
    assert sorted(TableFile(path, person_column="job").names()) == ["age", "dose"]
    pd.testing.assert_frame_equal(chunk[[*frame]], frame, check_dtype=False)
    assert chunk.dtypes.to_dict() == TableFile(path).dtypes()


@pytest.mark.parametrize("engine", ["dask", "spark"])
@pytest.mark.parametrize("index", ["job", None])
def test_an_index_of_parquet_is_a_column_of_engines(tmp_path, index, engine):
    pytest.importorskip({"spark": "pyspark"}.get(engine, engine))
    path = tmp_path / "table.parquet"
    frame = pd.DataFrame({"job": list("aba"), "age": [31, 62, 31]})
    (frame.set_axis([7, 8, 9]) if index is None else frame.set_index(index)).to_parquet(path)
    assert sorted(TableFile(path).on_engine(engine).head) == ["age", "job"]


def write_excel(path, rows):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)


def test_excel_comes_in_chunks_of_cells_that_depend_on_themselves_alone(tmp_path, small_chunks):
    path = tmp_path / "table.xlsx"
    day = datetime.datetime(2020, 1, 31)
    cells = [7, 0.5, "07", True, day, None, datetime.time(12, 30), "#N/A", " ", "x"]
    write_excel(path, [["a", " b "], *([cell, "y"] for cell in cells), [None, None], ["z"]])
    table = TableFile(path)
    chunks = list(table())
    assert [len(chunk) for chunk in chunks] == [7, 4]
    assert list(chunks[0]) == table.names() == ["a", "b"]
    read = [7, 0.5, "07", True, day, None, "12:30:00", None, None, "x", "z"]
    assert pd.concat(chunks)["a"].tolist() == read
    assert chunks[1]["b"].tolist()[-1] is None
    assert {str(dtype) for chunk in chunks for dtype in chunk.dtypes} == {"object"}
    for i in (0, 1, 2, 3, 9):
        # Beside any other cell, a cell is read as it is alone.
        write_excel(path, [["a"], [cells[i]], ["?"]])
        assert next(TableFile(path)())["a"].tolist() == [read[i], "?"]


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_texts_that_are_said_to_be_missing(tmp_path, form):
    cells = ["-999", " ? ", "-999.00", "999", "True", "1", "x"]
    rows = [["person", "a", "b"], *([cell] * 3 for cell in cells)]
    path = tmp_path / f"table.{form}"
    if form == "csv":
        path.write_text("\n".join(map(",".join, rows)))
    else:
        write_excel(path, rows)

    def find(na_values):
        table = TableFile(path, person_column="person", na_values=na_values)
        assert table.names() == ["a", "b"]
        (chunk,) = table()
        is_missing = chunk.isna() | (chunk == "")
        return {name: np.flatnonzero(is_missing[name]).tolist() for name in chunk}

    assert find([]) == {"person": [], "a": [], "b": []}
    # Numbers in any spelling, and texts beside spaces; persons have identifiers like any others.
    assert find(["?", -999, "1"]) == {"person": [], "a": [0, 1, 2, 5], "b": [0, 1, 2, 5]}
    of_columns = {"b": ["x"], None: [999.0], "person": ["?"]}
    assert find(of_columns) == {"person": [1], "a": [3], "b": [3, 6]}
    for na_values, match in (({"c": ["x"]}, "names ['c'], which are no columns"), ("?", "a list")):
        with pytest.raises(ValueError, match=re.escape(match)):
            TableFile(path, na_values=na_values).names()
    with pytest.raises(ValueError, match="Parquet file states which cells"):
        TableFile(tmp_path / "table.parquet", na_values=["?"])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "is no Excel file"),
        ([["a"], [SECRET, SECRET]], "is no Excel file"),
        ([[SECRET, 3]], "looks like a record"),
        ([["a", None, "b"]], "blank or equal cells, at position 2"),
    ],
)
def test_sheets_that_are_no_table_are_refused_without_quoting_them(tmp_path, rows, message):
    path = tmp_path / "table.xlsx"
    write_excel(path, rows)
    with pytest.raises(TableError, match=message) as caught:
        list(TableFile(path)())
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def test_files_that_are_no_excel_are_refused(tmp_path, monkeypatch):
    pytest.importorskip("openpyxl")
    path = tmp_path / "table.xlsx"
    path.write_text(SECRET)
    with pytest.raises(TableError, match=r"is no Excel file \(\.xlsx\)") as caught:
        TableFile(path).names()
    assert SECRET not in str(caught.value)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match=r"pip install 'skdpgen\[excel\]'"):
        TableFile(path).names()


def test_several_csv_files_are_chunks_of_one_table(tmp_path):
    paths = [tmp_path / f"{name}.csv" for name in "abc"]
    for path, text in zip(paths, ["x,y\n1,2\n", "y,x\n4,3\n", "x,y\n"], strict=True):
        path.write_text(text)
    for given in (paths, tmp_path / "*.csv", [tmp_path / "a*.csv", *paths[1:]]):
        chunks = list(TableFile(given)())
        assert pd.concat(chunks).to_numpy().tolist() == [["1", "2"], ["3", "4"]]
    paths[1].write_text(f"x,{SECRET}\n1,2\n")
    with pytest.raises(TableError, match=r"b\.csv has other columns than .*a\.csv") as caught:
        TableFile(paths).names()
    assert SECRET not in str(caught.value)
    (tmp_path / "link.csv").symlink_to(paths[0])
    with pytest.raises(ValueError, match="same file, whose rows would count twice"):
        module.list_files([paths[0], tmp_path / "link.csv"])
    with pytest.raises(ValueError, match="at least one file"):
        TableFile([])
    with pytest.raises(FileNotFoundError, match="There are no files"):
        TableFile(tmp_path / "*.tsv").names()


def test_texts_of_spreadsheets_are_parsed_and_other_cells_stay():
    day = datetime.datetime(2020, 1, 31)
    frame = pd.DataFrame(
        {"n": [1, "2,5", None, "x"], "d": [day, "31.01.2020", 3, ""], "c": [7, "7", None, "NA"]},
        dtype=object,
    )
    schema = Schema({"n": Number(0, 9), "d": Date("2020-01-01", "2021-01-01"), "c": Category([7])})
    parsed = parse_cells(frame, schema, TextStyle(decimal=",", date_format="%d.%m.%Y"))
    assert parsed["n"].tolist()[:2] == [1, 2.5]
    assert parsed["n"].tolist()[3] == "x"
    assert [pd.Timestamp(cell) for cell in parsed["d"][:2]] == [day, day]
    assert parsed["c"].tolist()[:2] == [7, 7]
    assert parsed["c"].isna().tolist() == [False, False, True, True]
