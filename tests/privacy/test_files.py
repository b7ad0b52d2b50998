"""Private files in chunks; errors that quote nothing."""

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
    assert chunks[0]["a"].dtype == np.int32


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


def test_dtypes_are_found_over_all_chunks(tmp_path, small_chunks):
    frame = pd.DataFrame(
        {
            "whole": [1, 2] * 10,
            "late": [1] * 19 + [0.5],
            "mixed": ["1"] * 19 + ["x"],
            "gaps": ["", "NA", "3", ""] * 5,
            "empty": [""] * 20,
            "day": ["2020-01-01"] * 20,
            "flag": ["True", "FALSE"] * 10,
            "answer": ["yes", "no"] * 10,
            "float": ["1.0", "2.0"] * 10,
        }
    )
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    found = {name: str(dtype) for name, dtype in TableFile(path, None).dtypes().items()}
    assert found == {
        "whole": "Int64",
        "late": "float64",
        "mixed": "object",
        "gaps": "Int64",
        "empty": "object",
        "day": "datetime64[s]",
        "flag": "boolean",
        "answer": "object",
        "float": "float64",
    }


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


def test_dates_of_several_time_zones_are_texts(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("day\n2020-01-01T00:00:00+01:00\n2020-06-01T00:00:00+02:00\n")
    assert str(TableFile(path, None).dtypes()["day"]) == "object"
