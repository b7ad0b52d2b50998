"""Private files in chunks; errors that quote nothing."""

import datetime

import numpy as np
import pandas as pd
import pytest

from skdpgen.privacy import TableError, TableFile
from skdpgen.privacy import files as module

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
def test_what_is_no_csv_is_refused_without_quoting_it(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(TableError, match="is no CSV file") as caught:
        list(TableFile(path, lambda texts: texts)())
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def test_what_is_no_parquet_is_refused(tmp_path):
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
        ("text", ["Smith", "yes", "012", "1_000", "١٢", "inf", "1e999", "2020-13-01", "1,5"]),
        ("text", ["2020-01-01T00:00:00+01:00", "20200101T", "0x1F", "--1", "1 2", "None of these"]),
    ],
)
def test_a_text_is_of_one_kind(kind, texts):
    assert [module.read_text(text)[0] for text in texts] == [kind] * len(texts)


def test_values_of_texts():
    texts = ["7", "-.5", "True", "2020-01-31 12:30", "a ", "NA"]
    values = [7.0, -0.5, True, datetime.datetime(2020, 1, 31, 12, 30), "a", None]
    assert [module.read_text(text)[1] for text in texts] == values


@pytest.mark.parametrize(
    "first", ["1,b", "a,2.5", "a,2020-01-31", "a,", "a,a", "true,b", "a,NA", ",a"]
)
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
