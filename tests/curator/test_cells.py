"""Pairs of tables that differ in one record: what all other records add is the same to the bit.

Readers choose dtypes by all cells that they see at once, so that one cell decides what the others
of its chunk are: whole numbers, floats, texts, booleans or dates.
"""

import datetime
import enum
import io
import uuid

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdpgen import Boolean, Category, Date, DPSWFlowSampler, Identifier, Number, Schema, Unknown
from skdpgen.cli.parser import make_parser
from skdpgen.cli.tables import TableOptions
from skdpgen.curator.chunks import TableChunks
from skdpgen.curator.dataset import Dataset
from skdpgen.data.cells import (
    CellReader,
    as_frame,
    list_cells,
    read_cell,
    read_cells,
    read_column,
    read_numbers,
)
from skdpgen.data.containers import adapt
from skdpgen.data.inputs import check_labels
from skdpgen.data.names import encode_levels, find_ambiguous, name_cell
from skdpgen.data.texts import MARKS, MISSING_TEXTS, PLAIN, TextStyle
from skdpgen.engines.partitioned import PartitionedTable
from skdpgen.tables.columns.cells import read_dates
from skdpgen.tables.format import TableFormat, declare
from skdpgen.tables.layout import TableLayout

N, CHANGED = 24, 10
# Cells that one record may hold in place of one that looks like the others.
CELLS = [
    "?",
    " ",
    "",
    "A7",
    "1e5",
    "07",
    " 8 ",
    "-0",
    "0.5",
    "9" * 30,
    "18446744073709551615",
    "18446744073709551616",
    "123456789012345678",
    "nan",
    "NA",
    "None",
    "inf",
    "True",
    "false",
    "yes",
    "2020-02-30",
    "2020-01-01",
    "20200101",
    "2020-01-01 10:00",
    "2020-01-01 10:00:00.5",
    "2020-01-01T10:00:00Z",
    "2020-01-01T10:00:00+02:00",
    "0001-01-01T00:00:00+05:00",
    "Smith",
    "1,5",
    "٣",
]
DECLARED = Schema(
    {
        "age": Number(0, 120, decimals=0, missing=True),
        "amount": Number(-5, 5),
        "code": Category(["07", "08", "1e5", "A7"], other="another"),
        "number": Category([1, 2, 3], other=4, missing=True),
        "flag": Boolean(missing=True),
        "day": Date("2019-01-01", "2021-12-31", missing=True),
        "time": Date("2019-01-01", "2021-12-31", "second", missing=True, zone="Europe/Vienna"),
    }
)
OPEN = Schema(
    {
        "age": Number(decimals=0, missing=True),
        "amount": Number(),
        "code": Category(),
        "number": Category(other=-1),
        "flag": Unknown(),
        "day": Date(unit=None, missing=True),
        "time": Unknown(),
    }
)
UNKNOWN = Schema(dict.fromkeys(DECLARED, Unknown()))


def list_columns():
    """Return the texts of N records, as a file holds them."""
    rng = np.random.RandomState(0)
    days = [
        datetime.date(2020, 1, 1) + datetime.timedelta(int(d)) for d in rng.randint(300, size=N)
    ]
    return {
        "age": rng.randint(18, 90, N).astype(str).tolist(),
        "amount": list(map(repr, rng.normal(size=N).tolist())),
        "code": rng.choice(["07", "08"], N).tolist(),
        "number": rng.choice(["1", "2", "3", "n/a"], N).tolist(),
        "flag": rng.choice(["True", "False"], N).tolist(),
        "day": list(map(str, days)),
        "time": [f"{day}T{hour:02}:00:00Z" for hour, day in enumerate(days)],
    }


def write(columns):
    return pd.DataFrame(columns).to_csv(index=False)


def read_chunks(text, size, **options):
    options = {"parse_dates": ["day", "time"], **options}
    return lambda: pd.read_csv(io.StringIO(text), chunksize=size, **options)


CONTAINERS = {
    "whole": lambda text: pd.read_csv(io.StringIO(text), parse_dates=["day", "time"]),
    # As pandas reads a long file, piece by piece.
    "mixed": lambda text: pd.concat(list(read_chunks(text, 8)())).astype(object),
    "chunks of 7": lambda text: read_chunks(text, 7),
}


class Parts(PartitionedTable):
    """A table in partitions, whose readers choose dtypes each for itself."""

    engine = "parts"
    _empty_frame = property(lambda self: read_chunks(write(list_columns()), N)().read()[:0])

    def _group_by_person(self, name):
        raise NotImplementedError

    def _iter_partitions(self):
        yield from self._frame

    def _add_up(self, function):
        return [sum(found) for found in zip(*map(function, self._frame), strict=True)]


MORE_CONTAINERS = {
    "chunks of texts": lambda text: read_chunks(text, 7, dtype=str, parse_dates=None),
    "partitions": lambda text: Parts(list(read_chunks(text, 7)())),
    "chunks of 1": lambda text: read_chunks(text, 1),
    "chunks of 20": lambda text: read_chunks(text, 20),
    "chunks, blanks are texts": lambda text: read_chunks(text, 7, keep_default_na=False),
    "chunks, nullable": lambda text: read_chunks(text, 7, dtype_backend="numpy_nullable"),
}


def read(X, schema):
    """Return the cells of each record as a curator reads them, and what they add to releases."""
    dataset = Dataset.of(X)
    format = TableFormat(declare(schema, dataset))
    dataset.validate_table(DPSWFlowSampler(schema=schema), format)
    given, _, _ = dataset.release_ownership()
    chunks = list(given()) if callable(given) else [given[:]]
    parts = [dataset.reader(chunk) for chunk in chunks]
    cells, rows = np.concatenate(parts), np.concatenate([format.encode(part) for part in parts])
    # Dtypes of columns say the same as objects.
    np.testing.assert_array_equal(rows, format.encode(cells))
    return cells, rows


def same(cells, others, missing=()):
    """Whether cells are equal to the bit, and of the same type."""

    def is_missing(cell):
        return pd.isna(cell) or cell in missing

    return [
        (type(a), repr(a)) == (type(b), repr(b)) or (is_missing(a) and is_missing(b))
        for a, b in zip(cells.ravel().tolist(), others.ravel().tolist(), strict=True)
    ]


def check(change, read, *args, has_stated_dtypes=False, missing=(), tried=CELLS):
    """Check that a changed cell changes nothing for other records; see `CELLS`."""
    others = np.arange(N) != CHANGED
    cells, rows = read(change(None), *args)
    for cell in tried:
        if has_stated_dtypes and cell == "18446744073709551615":
            # pandas makes texts of all missing cells beside it, and the table states these.
            continue
        beside, of_beside = read(change(cell), *args)
        if not has_stated_dtypes:
            equal = same(cells[others], beside[others], missing)
            assert all(equal), (cell, cells[others].ravel()[np.argmin(equal)])
        np.testing.assert_array_equal(rows[others], of_beside[others], err_msg=cell)


def change(cell):
    """Return the text of a file in which one record has this cell in all columns, unless None."""
    columns = list_columns()
    if cell is not None:
        for cells in columns.values():
            cells[CHANGED] = cell
    return write(columns)


@pytest.mark.catches(
    "data.cells:read_cells",
    "known |= dict.fromkeys(texts & missing)",
    "pass",
    param="chunks of 7",
)
@pytest.mark.catches(
    "data.cells:_read_text",
    """
    if not math.isnan(number):
        return number
    """,
    "pass",
    param="chunks of 7",
)
@pytest.mark.catches(
    "data.dtypes:is_text",
    "is_string_dtype(dtype) and isinstance(dtype, ExtensionDtype)",
    "is_string_dtype(dtype)",
    param="mixed",
)
@pytest.mark.parametrize(
    "container",
    [*CONTAINERS, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE_CONTAINERS)],
)
def test_one_cell_changes_nothing_for_other_records(container):
    def make(cell):
        return (CONTAINERS | MORE_CONTAINERS)[container](change(cell))

    # The dtypes of a table in memory are public, and so is what follows from them.
    check(make, read, DECLARED, has_stated_dtypes=container == "whole")
    if container not in ("whole", "partitions"):
        # Texts of missing cells are read as such once the type is known.
        check(make, read, UNKNOWN, missing=MISSING_TEXTS)


def test_one_cell_changes_no_counts_of_other_records():
    def make(cell):
        return read_chunks(change(cell), 7)

    check(make, read, OPEN, missing=MISSING_TEXTS, tried=CELLS[::2])


def test_without_one_reading_the_cells_of_a_chunk_would_decide_for_each_other():
    """The test above has something to find."""
    columns = list_columns()
    columns["age"][CHANGED] = "?"
    types = {type(c) for chunk in read_chunks(write(columns), 12)() for c in chunk["age"].tolist()}
    assert types == {int, str}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_one_cell_of_a_file_changes_nothing_for_other_records(suffix, tmp_path):
    path = tmp_path / f"table.{suffix}"

    def make(cell):
        text = change(cell)
        if suffix == "csv":
            path.write_text(text, encoding="utf-8")
        else:
            pytest.importorskip("pyarrow")
            pd.read_csv(io.StringIO(text), dtype=str).to_parquet(path)
        given = ["synthesize", str(path), "--epsilon", "1", "--delta", "1e-5"]
        options = make_parser().parse_args([*given, "--output", str(tmp_path / "made")])
        return TableOptions(options)

    # Readers are those of chunks, for which all cells are tried.
    check(make, lambda table: read(table.rows, table.schema), tried=CELLS[1::3])


WRITTEN_BY_PEOPLE = [
    "$5",
    "5 %",
    "(3)",
    "€ 3",
    "1.0",
    "0.0",
    "01",
    "3.0",
    "YES",
    "2020",
    "20200131",
]


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_cell_means_the_same_in_a_file_and_in_chunks(suffix, tmp_path):
    """The command line once lost 20200131, and chunks $5, in declared columns."""
    schema, path = tmp_path / "schema.json", tmp_path / f"table.{suffix}"
    DECLARED.to_json(schema)
    given = ["synthesize", str(path), "--epsilon", "1", "--delta", "1e-5"]
    given += ["--schema", str(schema), "--output", str(tmp_path / "made.csv")]
    for cell in [*WRITTEN_BY_PEOPLE, *(CELLS[2::3] if suffix == "csv" else ())]:
        text = change(cell)
        if suffix == "csv":
            path.write_text(text, encoding="utf-8")
        else:
            pd.read_csv(io.StringIO(text)).to_excel(path, index=False)
        options = TableOptions(make_parser().parse_args(given))
        _, rows = read(options.rows, options.schema)
        _, expected = read(read_chunks(text, 7), options.schema)
        np.testing.assert_array_equal(rows[CHANGED], expected[CHANGED], err_msg=cell)


@pytest.mark.parametrize(("size", "options"), [(1, {}), (7, {"dtype": str}), (50, {})])
def test_one_identifier_changes_nothing_for_other_records(size, options):
    rng = np.random.RandomState(0)
    whose = rng.randint(1, 9, N).astype(str).tolist()
    whose[::9] = [f"0{name}" for name in whose[::9]]
    found = []
    for cell in ["5", *CELLS]:
        whose[CHANGED] = cell
        text = pd.DataFrame({"patient": whose, "age": range(N)}).to_csv(index=False)
        chunks = pd.read_csv(io.StringIO(text), chunksize=size, **options)
        X = TableChunks(lambda chunks=list(chunks): iter(chunks)).by_person("patient")
        _, _, persons = X.map_parts(len)
        names = [None if code < 0 else persons.names[code] for code in persons.codes]
        found.append(names[:CHANGED] + names[CHANGED + 1 :])
    assert all(names == found[0] for names in found)


# --- single cells --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "forms",
    [
        [7, 7.0, "7", "07", " 7 ", "7.0", "+7", "70e-1", np.int8(7), np.float32(7)],
        [True, "True", "TRUE", "true", np.bool_(True)],
        [0, 0.0, -0.0, "0", "-0", "00"],
        [float("inf"), "inf", "Infinity", "+INF", "1e999"],
        [
            datetime.datetime(2020, 1, 2),
            datetime.date(2020, 1, 2),
            pd.Timestamp("2020-01-02"),
            np.datetime64("2020-01-02", "ns"),
            "2020-01-02",
            "2020-01-02 00:00",
            "2020-01-02T00:00:00.000",
        ],
        [
            pd.Timestamp("2020-01-02T03:04:05.5", tz="Europe/Vienna"),
            "2020-01-02T03:04:05.5+01:00",
            "2020-01-02 02:04:05.500Z",
            "2020-01-02T02:04:05.5+00",
            datetime.datetime(2020, 1, 2, 2, 4, 5, 500_000, datetime.timezone.utc),
        ],
        [10**30, float(10**30), "1" + "0" * 30, "1e30"],
        [2**63, "9223372036854775808", np.uint64(2**63), float(2**63)],
    ],
)
def test_forms_of_one_value_are_one(forms):
    read = [read_cell(form, PLAIN) for form in forms]
    assert len({name_cell(cell) for cell in read}) == 1
    assert len({repr(float(c)) if isinstance(c, int | float) else repr(c) for c in read}) == 1


@pytest.mark.parametrize(
    "cells",
    [["?", "A7", "1_0", "0x1", "1,5", "٣", "nan", "", "e5", ".", "yes", "2020-13-01", "1 2"]],
)
def test_cells_that_no_reader_converts_stay_texts(cells):
    assert [read_cell(cell, PLAIN) for cell in cells] == cells


@pytest.mark.catches(
    "data.cells:_read_texts", 'is_plain and style.expected in ("number", "integer")', "False"
)
@pytest.mark.parametrize(
    ("cell", "style", "value"),
    [
        ("20190704", {"date_format": "%Y%m%d"}, datetime.datetime(2019, 7, 4)),
        (20190704, {"date_format": "%Y%m%d"}, datetime.datetime(2019, 7, 4)),
        (4072019.0, {"date_format": "%d%m%Y"}, datetime.datetime(2019, 7, 4)),
        ("04.07.2019", {"date_format": "%d.%m.%Y"}, datetime.datetime(2019, 7, 4)),
        ("20190704", {"expected": "date"}, datetime.datetime(2019, 7, 4)),
        (2019, {"expected": "date"}, datetime.datetime(2019, 1, 1)),
        (31, {"expected": "date"}, 31),
        ("$5", {"expected": "number"}, 5.0),
        (" (12.5 %)", {"expected": "integer"}, -12.5),
        ("$5", {}, "$5"),
        ("1.234,50", {"decimal": ",", "thousands": "."}, 1234.5),
        ("007,5", {"decimal": ","}, 7.5),
        ("yes", {"expected": "boolean"}, True),
        (0.0, {"expected": "boolean"}, False),
        ("2", {"expected": "boolean"}, 2.0),
    ],
)
def test_cells_are_read_as_columns_are_written(cell, style, value):
    assert read_cell(cell, TextStyle(**style)) == value


@pytest.mark.parametrize("date_format", ["%d%m%Y", "%m%d%Y", "%Y%m%d", "%d%m%y", "%y%m%d"])
def test_dates_that_readers_take_for_numbers_are_the_same_days(date_format):
    """Zeros in front are lost: 1122019 is the first of December, and not the 11th of February."""
    style = TextStyle(date_format=date_format)
    first = datetime.datetime(2007, 1, 1)
    for day in (first + datetime.timedelta(i) for i in range(0, 5000, 13)):
        written = day.strftime(date_format)
        forms = written, int(written), float(written)
        assert [read_cell(form, style) for form in forms] == [day] * 3, written


@settings(max_examples=200, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63))
def test_numbers_are_those_that_pandas_reads(number):
    texts = [repr(number), "0.5"]
    expected = pd.read_csv(io.StringIO("\n".join(["a", *texts])))["a"][0]
    assert read_numbers(texts)[0] == expected == read_numbers(texts[:1])[0]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(max_size=6) | st.sampled_from(CELLS), min_size=1, max_size=8))
def test_a_cell_is_read_as_it_is_alone(cells):
    array = np.empty((len(cells), 1), dtype=object)
    array[:, 0] = cells
    format = TableFormat(Schema({"a": Unknown()}))
    read = format.make_reader(())
    alone = [read(array[i : i + 1]) for i in range(len(cells))]
    assert all(same(np.asarray(read(array)), np.concatenate(alone)))


def test_missing_texts_are_those_of_pandas():
    for text in [*MISSING_TEXTS.difference(MARKS), "?", "na", "-", "NA."]:
        found = pd.read_csv(io.StringIO(f'a\n"{text}"\nx'))["a"][0]
        assert pd.isna(found) == (text in MISSING_TEXTS), text


def test_categories_may_look_missing():
    columns = {"code": ["NA", "DE", "NULL"], "other": ["NA", "DE", "x"]}
    cells, _ = read(
        pd.DataFrame(columns, dtype=object),
        Schema({"code": Category(["NA", "DE"], missing=True), "other": Category()}),
    )
    assert cells[:2].tolist() == [["NA", "NA"], ["DE", "DE"]]
    assert pd.isna(cells[2, 0])
    assert cells[2, 1] == "x"


class Unhashable(str):
    __hash__ = None
    strip = None


def test_categories_that_are_not_known_may_look_missing():
    cells = np.array([["NA"] * 2, ["None"] * 2, ["nan"] * 2, [""] * 2], dtype=object)
    read = as_frame(CellReader((PLAIN, PLAIN), ((), ("DE",)))(cells))
    assert read[0].tolist()[:2] == ["NA", "None"]
    assert read.isna().to_numpy().tolist() == [[False, True]] * 2 + [[True, True]] * 2


def test_texts_of_other_types_are_texts():
    array = np.array([[Unhashable("07")], ["07"], [np.str_("?")], [Unhashable("?")]], dtype=object)
    cells = np.asarray(TableFormat(Schema({"a": Unknown()})).make_reader(())(array))
    assert cells.tolist() == [[7.0], [7.0], ["?"], ["?"]]
    assert {type(cell) for cell in cells[2:, 0]} == {str}


class _Color(enum.Enum):
    RED = 1
    BLUE = ("b", 2)


class _Heat(enum.Enum):
    HOT = "hot"


class _Word(str, enum.Enum):
    YES = "yes"


class _Level(enum.IntEnum):
    ONE = 1


class _Broken(enum.Enum):
    A = 1

    @property
    def name(self):
        raise RuntimeError


WRITTEN = [
    (_Color.RED, "RED"),
    (_Color.BLUE, "BLUE"),
    (_Heat.HOT, "hot"),
    (_Word.YES, "yes"),
    (_Level.ONE, 1.0),
    (_Broken.A, None),
    (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    (datetime.time(7, 30), "07:30:00"),
    (datetime.timedelta(hours=26), "1 day, 2:00:00"),
    (pd.Timedelta("26h"), "1 days 02:00:00"),
    (np.timedelta64(90, "m"), "1:30:00"),
    (np.timedelta64("NaT"), None),
]


@pytest.mark.parametrize(("cell", "expected"), WRITTEN, ids=repr)
@pytest.mark.parametrize("beside", ["x", 3, None, uuid.UUID(int=0), ["list"]], ids=repr)
def test_cells_with_a_text_of_their_own_are_read_as_that(cell, expected, beside):
    cells = np.fromiter([beside, cell, beside], dtype=object)
    assert read_cells(cells, PLAIN)[1] == expected


def test_texts_that_a_container_states_stay_codes():
    codes = pd.DataFrame({"zip": pd.array(["01234", "99999"] * 100, dtype="str")})
    tables = [(codes, "01234"), (codes.astype("category"), "01234"), (codes.astype(object), 1234.0)]
    for table, first in tables:
        cells, _ = read(
            table,
            Schema({"zip": Unknown()}),
        )
        assert cells[0, 0] == first


def test_levels_are_found_by_value():
    cells = pd.Series(
        ["07", 7, 7.0, "7", "8", 8, True, "TRUE", "x", None, [1], "1e1", 10], dtype=object
    )
    levels = ("07", "x", "True", "10")
    assert encode_levels(cells, levels).tolist() == [0, 0, 0, 0, -1, -1, 2, 2, 1, -1, -1, 3, 3]
    # A level that is just that text comes first.
    assert encode_levels(cells[:4], ("7", "07")).tolist() == [1, 0, 0, 0]
    numbers = pd.Series([1, 1.0, True, "1", "01", 2, "2.0", "x", np.nan], dtype=object)
    assert encode_levels(numbers, (2, 1)).tolist() == [1, 1, 1, 1, 1, 0, 0, -1, -1]


@pytest.mark.catches("tables.format:_style_of", "pair is not None", "False")
def test_categories_that_readers_may_confuse_are_refused_for_nothing():
    schema = Schema({"a": Category(["7", "07", "x"])})
    frame = pd.DataFrame({"a": ["7", "07", "x"] * 40})
    assert find_ambiguous(["7", "x", "07"]) == ("7", "07")
    assert find_ambiguous(["0", "False", "no"]) is None
    assert find_ambiguous([1, 0.5, 2**53 - 1]) is None
    # Floats, which readers make beside a missing cell, do not tell these apart.
    assert find_ambiguous([2**53, 1, 2**53 + 1]) == (2**53, 2**53 + 1)
    with pytest.raises(ValueError, match="'a' has categories '7' and '07'"):
        DPSWFlowSampler(schema=schema).fit(lambda: iter([frame]))
    made = DPSWFlowSampler(np.inf, 1e-5, schema=schema, n_steps=5, random_state=0).fit(frame)
    assert set(made.sample(50)["a"]) <= {"7", "07", "x"}


@pytest.mark.parametrize("classes", [["7", "07"], [10**17, 10**17 + 1]])
def test_labels_that_readers_may_confuse_are_refused_where_no_dtype_says_what_they_are(classes):
    y = np.array(classes * 4)
    assert check_labels(y, 8, classes)[0].tolist() == classes * 4
    with pytest.raises(ValueError, match="may turn into the same label"):
        check_labels(y.astype(object), 8, classes)


@pytest.mark.catches("tables.format:declare", "not dataset.has_public_dtypes", "False")
def test_first_chunks_say_names_only():
    """Their dtypes follow from their cells: nothing else does."""
    columns = list_columns()
    for cell in ("31", "?"):
        columns["age"][0] = cell
        dataset = Dataset.of(read_chunks(write(columns), 12))
        assert dict(declare("private", dataset)) == dict(UNKNOWN)
        assert TableLayout.of(UNKNOWN, dataset).dtypes == {}


@pytest.mark.parametrize(
    ("unit", "last"),
    [
        *(("ns", "2020-02-29"), ("ns", "1700-01-01"), ("us", "9999-12-31"), ("us", "0001-01-01")),
        *(("s", "10001-01-01"), ("s", "-0400-01-01")),
    ],
)
def test_dates_are_read_as_those_of_pandas(unit, last):
    """They are made as objects of Python where these exist."""
    dates = np.array(["1969-12-31T23:59:59.999999", "NaT", last], dtype=f"M8[{unit}]")
    column = pd.Series(dates)
    found = list_cells(read_column(column, PLAIN)).tolist()
    expected = read_cells(column.to_numpy(dtype=object), PLAIN).tolist()
    assert [cell for cell in found if not pd.isna(cell)] == [expected[0], expected[2]]
    assert pd.isna(found[1])


class Named(datetime.tzinfo):
    """A time zone, or a date, whose code fails with a row in its message."""

    def utcoffset(self, date):
        raise ValueError("secret")


class Failing(datetime.datetime):
    def __str__(self):
        raise ValueError("secret")

    time = date = astimezone = __str__


LAST = datetime.datetime(9999, 12, 31, 23, 59, 59)
WEST = datetime.timezone(-datetime.timedelta(hours=5))
STRANGE_DATES = [
    (np.datetime64("12000-01-01", "s"), LAST),
    (np.datetime64("-300000-01-01", "D"), datetime.datetime(1, 1, 1)),
    (pd.Timestamp(np.datetime64("12000-01-01", "s")), LAST),
    (pd.Timestamp(np.datetime64("-0044-03-15", "s")), datetime.datetime(1, 1, 1)),
    (LAST.replace(tzinfo=WEST), LAST.replace(tzinfo=datetime.timezone.utc)),
    (Failing(2020, 1, 2, 3), datetime.datetime(2020, 1, 2, 3)),
    (datetime.datetime(2020, 1, 2, tzinfo=Named()), None),
]


@pytest.mark.parametrize(("cell", "expected"), STRANGE_DATES, ids=lambda cell: type(cell).__name__)
def test_dates_are_those_that_python_has(cell, expected):
    day = datetime.datetime(2020, 1, 31)
    assert read_cell(cell, PLAIN) == expected
    assert read_cells(np.array([day, cell, None], dtype=object), PLAIN)[0] == day
    assert read_cell(read_cell(cell, PLAIN), PLAIN) == expected


def test_a_date_that_milliseconds_do_not_hold_changes_no_other():
    dates = pd.Series(np.array(["2020-01-31", "300000000-01-01", "NaT"], dtype="M8[s]"))
    assert read_dates(dates)[1].tolist() == [datetime.datetime(2020, 1, 31), LAST]


@pytest.mark.parametrize("kind", [Date(), Category(), Unknown()], ids=["date", "category", "any"])
def test_strange_dates_do_not_end_a_fit(kind):
    """Their errors would tell of private rows that they are there, and quote them."""
    cells = [datetime.datetime(2020, 1, 1 + i % 28) for i in range(99)]
    cells += [cell for cell, _ in STRANGE_DATES]
    frame = pd.DataFrame({"day": pd.Series(cells, dtype=object)})
    sampler = DPSWFlowSampler(5.0, 1e-6, schema=Schema({"day": kind}), n_steps=1, n_particles=50)
    assert len(sampler.fit(frame).sample(9)) == 9
    far = pd.Series(np.array([*cells[:-7], np.datetime64("12000-01-01")], dtype="M8[s]"))
    assert len(sampler.fit(lambda: iter([far.to_frame("day")])).sample(9)) == 9


# Days since 1970 of a few years, the last of which Python has not.
DAYS = [-719_162, 0, 18_262, 2_932_896, 2_932_897, 5_000_000, 2**31 - 1, -719_163, -(2**31) + 1]


def in_arrow(kind):
    pa = pytest.importorskip("pyarrow")
    return pa.array([*DAYS, None], pa.int32()).cast(pa.date32()).cast(kind(pa))


def in_pandas(unit, zone=None):
    column = pd.Series(np.array([*DAYS, "NaT"], dtype="M8[D]").astype(f"M8[{unit}]"))
    return column if zone is None else column.dt.tz_localize("UTC").dt.tz_convert(zone)


def in_objects():
    cells = [np.datetime64(day, "D") for day in DAYS]
    return pd.Series([*cells, None], dtype=object)


def in_polars():
    pl = pytest.importorskip("polars")
    return pl.Series("day", [*DAYS, None], pl.Int32).cast(pl.Date)


def in_duckdb():
    duckdb = pytest.importorskip("duckdb")
    days = ", ".join(f"({i}, {day})" for i, day in enumerate(DAYS))
    far = "case when d = 2147483647 then 'infinity'::date when d = -2147483647 then "
    far += "'-infinity'::date else date '1970-01-01' + d end"
    query = f"select {far} as day from (values {days}, (99, null)) t(i, d) order by i"
    return duckdb.sql(query).fetch_arrow_table()["day"]


DATED = {
    "objects": in_objects,
    "seconds": lambda: in_pandas("s"),
    "milliseconds": lambda: in_pandas("ms"),
    "UTC": lambda: in_pandas("s", "UTC"),
    "Vienna": lambda: in_pandas("s", "Europe/Vienna"),
    "Arrow days": lambda: in_arrow(lambda pa: pa.date32()),
    "Arrow milliseconds": lambda: in_arrow(lambda pa: pa.date64()),
    "Arrow in pandas": lambda: pd.Series(
        pd.arrays.ArrowExtensionArray(in_arrow(lambda pa: pa.date32()))
    ),
    "Arrow timestamps": lambda: in_arrow(lambda pa: pa.timestamp("s")),
    "polars": in_polars,
    "DuckDB": in_duckdb,
}


@pytest.mark.parametrize("container", DATED)
def test_dates_of_any_year_are_the_same_in_all_containers(container):
    """A far one changes no other, and ends no fit."""
    column = pd.Series(adapt(DATED[container]()).data)
    found = list_cells(read_column(column, PLAIN)).tolist()
    last, zone = LAST.replace(hour=0, minute=0, second=0), None
    expected = [np.datetime64(day, "D").item() for day in DAYS[:4]] + [LAST] * 3
    expected += [datetime.date(1, 1, 1)] * 2
    if container in ("UTC", "Vienna"):
        zone = datetime.timezone.utc
    dates = [datetime.datetime(*day.timetuple()[:6], tzinfo=zone) for day in expected]
    assert dates[3] == last.replace(tzinfo=zone)
    assert found[:-1] == dates
    assert pd.isna(found[-1])
    alone = [list_cells(read_column(column[i : i + 1], PLAIN))[0] for i in range(9)]
    assert alone == dates


@pytest.mark.parametrize("container", ["Arrow days", "Vienna", "polars"])
@pytest.mark.parametrize("kind", [Date(), Date("1900-01-01", "2100-01-01"), Identifier()])
def test_a_far_date_of_a_container_ends_no_fit(container, kind):
    if container == "Vienna" and isinstance(kind, Date):
        kind = Date(kind.lower, kind.upper, zone="Europe/Vienna")
    day = adapt(DATED[container]()).data
    frame = pd.DataFrame({"day": getattr(day, "array", day), "a": np.arange(10.0)})
    schema = Schema({"day": kind, "a": Number(0, 10)})
    sampler = DPSWFlowSampler(5.0, 1e-6, schema=schema, n_steps=1, n_particles=50)
    for rows in (frame, lambda: iter([frame[:4], frame[4:]])):
        assert len(sampler.fit(rows).sample(9)) == 9


@pytest.mark.catches("data.cells:list_cells", "call_quietly(column.iloc.__getitem__, i)", "None")
def test_cells_that_no_object_of_python_holds_change_no_others():
    pa = pytest.importorskip("pyarrow")
    times = pa.array([3_600_000_000, 2**62, None], pa.int64()).cast(pa.time64("us"))
    column = pd.Series(pd.arrays.ArrowExtensionArray(times))
    whole = list_cells(column)
    alone = [list_cells(column[i : i + 1])[0] for i in range(3)]
    assert whole[0] == alone[0] == datetime.time(1)
    assert whole[1] is alone[1] is None
    assert pd.isna(whole[2])
