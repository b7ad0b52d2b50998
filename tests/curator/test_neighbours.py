"""Pairs of tables that differ in one record, in every container: it is the first, or the last.

All that other records add is the same to the bit, and so is all that is public: schema, dtypes,
assumptions, errors. Exact sums then differ by what one record adds, which no release may exceed.
"""

import datetime
import decimal
import itertools
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from skdpgen import (
    Boolean,
    Category,
    Date,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    Number,
    Ordinal,
    Schema,
)
from skdpgen.accounting.events import over_sensitivity
from skdpgen.curator.dataset import Dataset
from skdpgen.curator.persons import Persons, RowLimit
from skdpgen.data.cells import OBJECT, read_cells, read_column
from skdpgen.data.inputs import check_labels, encode_labels
from skdpgen.data.labels import Label
from skdpgen.data.texts import PLAIN
from skdpgen.engines import files
from skdpgen.privacy import PrivacyBudget, TableFile
from skdpgen.tables.format import TableFormat, declare
from skdpgen.tables.layout import TableLayout
from skdpgen.testing.spies import release_only

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

N = 30
SECRET = "Smith"
UTC = datetime.timezone.utc
DECLARED = Schema(
    {
        "whole": Number(0, 30, decimals=0, n_knots=4, missing=True),
        "real": Number(0, 4, n_knots=4, missing=True),
        "word": Category(["a", "b", "c"], other="another", missing=True),
        "code": Category(["07", "08"], missing=True),
        "day": Date("2020-01-01", "2020-12-31", n_knots=4, missing=True),
        "time": Date("2020-01-01", "2020-12-31", "second", n_knots=4, missing=True, zone="UTC"),
        "flag": Boolean(missing=True),
        "number": Category([1, 2, 3], missing=True),
        "level": Ordinal(["low", "high"], missing=True),
    }
)


@pytest.fixture(autouse=True)
def in_short_chunks(monkeypatch):
    monkeypatch.setattr(files, "_CHUNK_ROWS", 7)


def list_records():
    """Return the columns of N records."""
    first = datetime.date(2020, 1, 1)
    days = [first + datetime.timedelta(i) for i in range(N)]
    return {
        "whole": [i * 7 % 23 for i in range(N)],
        "real": [None if i % 11 == 5 else i / 8 for i in range(N)],
        "word": ["abc"[i % 3] for i in range(N)],
        "code": [("07", "08")[i % 2] for i in range(N)],
        "day": days,
        "time": [datetime.datetime(2020, 3, day.day, day.day % 24, tzinfo=UTC) for day in days],
        "flag": [i % 3 == 0 for i in range(N)],
        "number": [1 + i % 3 for i in range(N)],
        "level": [("low", "high")[i % 2] for i in range(N)],
    }


class Panic(BaseException):
    """As panics of Rust libraries, which are no `Exception`."""


class Zone(datetime.tzinfo):
    def utcoffset(self, date):
        raise Panic(SECRET)


def _panic(*args):
    raise Panic(SECRET)


class Hostile:
    """An object all of whose code fails, and quotes a cell."""

    __str__ = __repr__ = __eq__ = __hash__ = __float__ = __bool__ = __len__ = _panic
    __class__ = property(_panic)
    ndim = _asdict = property(_panic)


class HostileType(type):
    __hash__ = __eq__ = _panic


class HostileText(str):
    __str__ = __repr__ = __eq__ = strip = __len__ = _panic
    __hash__ = None


class HostileNumber(float):
    __float__ = __eq__ = __repr__ = is_integer = _panic
    __hash__ = None


LATIN = "Zürich".encode("latin-1")
# One record in place of another.
CHANGES = {
    "usual": dict(
        zip(list_records(), (row[4] for row in list_records().values()), strict=True), number=3
    ),
    "missing": dict.fromkeys(list_records()),
    "new": {
        "whole": 2**53 + 1,
        "real": -1e300,
        "word": "0",
        "code": "7",
        "day": datetime.date(1, 1, 1),
        "time": datetime.datetime(1850, 1, 1, tzinfo=UTC),
        "flag": True,
        "number": -5,
        "level": "high",
    },
    # Texts that are not UTF-8, where texts are bytes.
    "bytes": {"word": LATIN, "code": LATIN},
}
OBJECTS = [
    Hostile(),
    HostileText(SECRET),
    HostileNumber(3),
    HostileType("Cell", (), {})(),
    datetime.datetime(1987, 1, 1, tzinfo=Zone()),
    decimal.Decimal("sNaN"),
    decimal.Decimal("1e999999"),
    10**5000,
    ["list"],
    complex(1, 2),
    np.datetime64("NaT"),
    np.array([1, 2]),
]
FOR_OBJECTS = {
    "texts": dict.fromkeys(list_records(), "?"),
    "naive": {"time": datetime.datetime(2020, 2, 3)},
    "zoned": {"day": datetime.datetime(2020, 2, 3, tzinfo=UTC)},
    # Each of the objects in each column.
    **{
        f"objects {i}": {
            name: OBJECTS[(i + j) % len(OBJECTS)] for j, name in enumerate(list_records())
        }
        for i in range(len(OBJECTS))
    },
}


# Another record that is not as all others, where a column may hold any cells.
MIXED = {
    "whole": "NA",
    "real": "0.5",
    "word": "nan",
    "code": 7,
    "day": datetime.datetime(2020, 1, 9, tzinfo=UTC),
    "time": datetime.datetime(2020, 1, 9),
    "flag": "yes",
    "number": "2",
    "level": "NA",
}


def change(name=None, position=0):
    """Return columns of which one record is another one."""
    columns = list_records()
    for column, cell in ((CHANGES | FOR_OBJECTS)[name] if name else {}).items():
        columns[column][position] = cell
    return columns


# Containers.


def _texts(cells, kind):
    """Return texts of Arrow, which may be bytes that are not UTF-8."""
    held = pa.array([c.encode() if isinstance(c, str) else c for c in cells], pa.binary())
    valid, ends, data = held.buffers()
    return pa.Array.from_buffers(pa.string(), len(cells), [valid, ends, data]).cast(
        getattr(pa, kind)()
    )


def _column(name, cells, text):
    types = {
        **{"whole": pa.int64(), "real": pa.float64(), "day": pa.date32(), "flag": pa.bool_()},
        **{"time": pa.timestamp("us", "UTC"), "number": pa.int16()},
    }
    if name in types:
        return pa.array(cells, types[name])
    if name != "level":
        return _texts(cells, text)
    codes = pa.array([None if cell is None else ["low", "high"].index(cell) for cell in cells])
    return pa.DictionaryArray.from_arrays(codes, pa.array(["low", "high"]), ordered=True)


def _arrow(columns, *, has_dictionaries=True, size=N, text="string"):
    """Return an Arrow table in chunks of some rows, each with dictionaries of its own."""
    tables = []
    for start in range(0, N, size):
        made = {n: _column(n, c[start : start + size], text) for n, c in columns.items()}
        for name in ("word", "number") if has_dictionaries else ():
            made[name] = made[name].dictionary_encode()
        tables.append(pa.table(made))
    return pa.concat_tables(tables)


def _arrow_frame(columns):
    return _arrow(columns).to_pandas(types_mapper=pd.ArrowDtype)


def _texts_of_pandas(columns):
    """Return a frame whose texts are bytes of Arrow, as files give them."""
    frame = _nullable(columns | {name: ["07"] * N for name in ("word", "code")})
    for name in ("word", "code"):
        texts = pa.chunked_array([_texts(columns[name], "large_string")])
        frame[name] = pd.arrays.ArrowStringArray(texts, dtype=pd.StringDtype("pyarrow"))
    return frame


def _numpy(columns):
    def plain(name, filling):
        return [filling if cell is None else cell for cell in columns[name]]

    number = plain("number", 3)
    return pd.DataFrame(
        {
            "whole": np.array(plain("whole", 0)),
            "real": np.array(columns["real"], dtype=float),
            "word": pd.Categorical(
                columns["word"], [w for w in dict.fromkeys(columns["word"]) if w]
            ),
            "code": pd.Series(columns["code"], dtype="str"),
            "day": np.array(columns["day"], dtype="M8[s]"),
            "time": pd.Series(columns["time"], dtype="datetime64[us, UTC]"),
            "flag": np.array(plain("flag", False)),
            # In the order in which rows show them, and one that none has.
            "number": pd.Categorical(number, [99, *dict.fromkeys(number)]),
            "level": pd.Categorical(columns["level"], ["low", "high"], ordered=True),
        }
    )


def _nullable(columns):
    dtypes = {"whole": "Int64", "real": "Float64", "code": "string", "flag": "boolean"}
    frame = _numpy(columns)
    for name, dtype in dtypes.items():
        frame[name] = pd.array(columns[name], dtype=dtype)
    return frame


def _objects(columns):
    made = {}
    for name, cells in columns.items():
        made[name] = pd.Series([None] * N, dtype=object)
        made[name][:] = np.fromiter(cells, dtype=object)
    return pd.DataFrame(made)


def _records(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _polars(columns):
    pl = pytest.importorskip("polars")
    frame = pl.from_arrow(_arrow(columns, has_dictionaries=False, size=N))
    return frame.with_columns(pl.col("word").cast(pl.Categorical))


def _duckdb(columns):
    connection = pytest.importorskip("duckdb").connect()
    table = _arrow(columns, has_dictionaries=False)
    table = table.set_column(8, "level", table["level"].cast(pa.string()))
    connection.register("arrow", table)
    words = ", ".join(f"'{word}'" for word in dict.fromkeys(columns["word"]) if word)
    connection.execute(f"CREATE TYPE words AS ENUM ({words})")
    return connection.sql("SELECT * REPLACE (word::words AS word) FROM arrow").to_arrow_table()


def _chunks_of(make):
    def cut(columns):
        table = make(columns)
        return lambda: iter([table[i : i + 7] for i in range(0, N, 7)])

    return cut


def _csv(columns, path):
    pd.DataFrame(columns, dtype=object).to_csv(path / "x.csv", index=False)
    return path / "x.csv"


def _read_csv(columns, path):
    file = _csv(columns, path)
    return lambda: pd.read_csv(file, chunksize=7, parse_dates=["day", "time"])


def _parquet(columns, path):
    parquet.write_table(_arrow(columns), path / "x.parquet", row_group_size=7)
    return TableFile(path / "x.parquet")


def _excel(columns, path):
    # Rows without any cell are none.
    frame = pd.DataFrame(columns | {"whole": [c or 0 for c in columns["whole"]]}, dtype=object)
    frame.assign(time=frame["time"].astype(str)).to_excel(path / "x.xlsx", index=False)
    return TableFile(path / "x.xlsx")


def _json(columns, path):
    lines = pd.DataFrame(columns, dtype=object).to_dict("records")
    text = "\n".join(json.dumps(line, default=str) for line in lines)
    (path / "x.jsonl").write_text(text)
    return TableFile(path / "x.jsonl")


HOLD_BYTES = {
    "Arrow": _arrow,
    "Arrow without dictionaries": lambda columns: _arrow(columns, has_dictionaries=False),
    "Arrow in chunks": lambda columns: _arrow(columns, size=4),
    "large texts of Arrow": lambda columns: _arrow(columns, text="large_string"),
    "views of texts of Arrow": lambda columns: _arrow(
        columns, has_dictionaries=False, text="string_view"
    ),
    "dtypes of Arrow": _arrow_frame,
    "texts of Arrow in pandas": _texts_of_pandas,
    "Parquet": _parquet,
    "chunks of Arrow": _chunks_of(_arrow),
}
HOLD_OBJECTS = {
    "objects": _objects,
    "records": _records,
    "columns": lambda columns: columns,
    "chunks of objects": _chunks_of(_objects),
    "chunks of records": _chunks_of(_records),
}
OTHERS = {
    "pandas": _numpy,
    "nullable": _nullable,
    "polars": _polars,
    "DuckDB": _duckdb,
    "chunks of pandas": _chunks_of(_numpy),
    "CSV": lambda columns, path: TableFile(_csv(columns, path)),
    "chunks of CSV": _read_csv,
    "Excel": _excel,
    "JSON": _json,
}
CONTAINERS = HOLD_BYTES | HOLD_OBJECTS | OTHERS
IN_FILES = ("Parquet", "CSV", "chunks of CSV", "Excel", "JSON")


def make(container, path, *args):
    columns = change(*args)
    for name, cell in MIXED.items() if container in HOLD_OBJECTS else ():
        columns[name][3] = cell
    given = (columns, path) if container in IN_FILES else (columns,)
    return CONTAINERS[container](*given)


def list_changes(container, is_quick=False):
    """List what one record may be, and where."""
    names = [name for name in CHANGES if name != "bytes" or container in HOLD_BYTES]
    names += list(FOR_OBJECTS) * (container in HOLD_OBJECTS)
    if is_quick:
        return [(name, 0) for name in names[:7]] + [("new", -1)]
    return list(itertools.product(names, (0, -1)))


quick_or_all = pytest.mark.parametrize(
    "is_quick",
    [pytest.param(True, id="quick"), pytest.param(False, marks=pytest.mark.slow, id="all")],
)


def succeed(function, *args):
    """Return what a function gives; an error, of whatever type, would tell of a record."""
    try:
        return function(*args)
    except BaseException as error:
        failure = type(error).__name__
    raise AssertionError(f"One record ends it by {failure}.")


def read(X, schema):
    """Return what is public of a table, the cells of each record, and what they add to releases."""
    dataset = Dataset.of(X)
    schema = declare(schema, dataset)
    kind = TableLayout.of(schema, dataset)
    format = TableFormat(schema, kind)
    dataset.validate_table(SimpleNamespace(), format)
    public = dict(schema), kind, dataset.list_assumptions(False), dataset.reader
    given, _, _ = dataset.release_ownership()
    chunks = list(given()) if callable(given) else [given[:]]
    parts = [dataset.reader(chunk) for chunk in chunks]
    cells, rows = np.concatenate(parts), np.concatenate([format.encode(part) for part in parts])
    # Dtypes of columns say the same as objects.
    np.testing.assert_array_equal(rows, format.encode(cells))
    return public, cells, rows


def without(position, rows):
    return np.delete(rows, position % N, axis=0)


def same(cells, others):
    """Whether cells are equal to the bit, and of one type; missing ones are all the same."""
    return [
        (type(a), repr(a)) == (type(b), repr(b)) or (pd.isna(a) and pd.isna(b))
        for a, b in zip(cells.ravel().tolist(), others.ravel().tolist(), strict=True)
    ]


def in_both_modes(is_in_default_run):
    """Parametrize a test by containers, and by whether the schema is declared."""
    pairs = [
        pytest.param(*pair, marks=() if is_in_default_run(*pair) else pytest.mark.slow)
        for pair in itertools.product(CONTAINERS, ("declared", "inferred"))
    ]
    return pytest.mark.parametrize(("container", "mode"), pairs)


@pytest.mark.catches(
    "data.dtypes:_drop_unreadable",
    "None if text is None else call_quietly(text.decode)",
    "None",
    param="Arrow-declared-quick",
)
@pytest.mark.catches(
    "data.cells:read_cells",
    "known |= dict.fromkeys(texts & missing)",
    "known |= dict.fromkeys(texts & missing) if types == {str} else {}",
    param="objects-declared-quick",
)
@pytest.mark.catches(
    "data.cells:_convert", "return OBJECT", "return cell", param="objects-inferred-quick"
)
@pytest.mark.catches(
    "tables.layout:_list_categories",
    "dtype.ordered",
    "True",
    param="pandas-inferred-quick",
)
@pytest.mark.catches(
    "tables.layout:TableLayout.of",
    "dataset.is_in_parts and isinstance(dtype, pd.CategoricalDtype)",
    "False",
    param="Parquet-inferred-quick",
)
@quick_or_all
@in_both_modes(lambda container, mode: mode == "inferred" or container in ("Arrow", "objects"))
def test_terms_of_others_do_not_follow_from_one_record(container, mode, is_quick, tmp_path):
    schema = DECLARED if mode == "declared" else "private"
    public, cells, rows = read(make(container, tmp_path), schema)
    # Parts list categories of their own.
    assert not (container in IN_FILES and public[1].listed)
    for case in list_changes(container, is_quick):
        changed = make(container, tmp_path, *case)
        found, beside, of_beside = succeed(read, changed, schema)
        assert found == public, case
        others = [without(case[1], given) for given in (cells, beside, rows, of_beside)]
        equal = same(*others[:2])
        assert all(equal), (case, others[0].ravel()[np.argmin(equal)])
        np.testing.assert_array_equal(*others[2:], str(case))
        if case[0] == "bytes":
            assert pd.isna(beside[case[1], [2, 3]]).all(), "They are no missing cells."


def read_persons(X, column):
    """Return the name of the person of each row."""
    dataset, schema = Dataset.of(X, persons=column, max_rows=2), DECLARED.drop(column)
    format = TableFormat(declare(schema, dataset))
    dataset.validate_table(SimpleNamespace(), format)
    _, _, persons = dataset.release_ownership()
    return np.array([None if c < 0 else persons.names[c] for c in persons.codes.tolist()])


@quick_or_all
@pytest.mark.parametrize("column", ["word", pytest.param("whole", marks=pytest.mark.slow)])
@pytest.mark.parametrize("container", CONTAINERS)
def test_persons_of_other_rows_do_not_follow_from_one_record(container, column, is_quick, tmp_path):
    names = read_persons(make(container, tmp_path), column)
    for name, position in list_changes(container, is_quick):
        changed = make(container, tmp_path, name, position)
        found = succeed(read_persons, changed, column)
        assert (without(position, found) == without(position, names)).all(), (name, position)
        if name == "bytes" and column == "word":
            assert found[position] is None, "A text that cannot be read is somebody."


def list_labels(container, *args):
    return make(container, None, *args)["word"]


@quick_or_all
@pytest.mark.parametrize(
    "container",
    [
        name
        for name in CONTAINERS
        if name not in IN_FILES and not name.endswith("records") and not name.startswith("chunks")
    ],
)
def test_labels_of_others_do_not_follow_from_one_record(container, is_quick):
    def read_labels(y):
        labels, classes, _ = check_labels(y, N, ["a", "b", "c"])
        label = Label.of(y)
        return (label.name, label.container), encode_labels(labels, classes)

    public, codes = read_labels(list_labels(container))
    assert set(codes) >= {0, 1, 2}
    for case in list_changes(container, is_quick):
        found, beside = succeed(read_labels, list_labels(container, *case))
        assert found == public
        np.testing.assert_array_equal(without(case[1], beside), without(case[1], codes), str(case))
        if case[0] not in ("usual", "zoned", "naive"):
            assert beside[case[1]] == -1


@pytest.mark.catches(
    "data.record_functions:drops_errors.__exit__",
    "not issubclass(cls, INTERRUPTS)",
    "issubclass(cls, Exception)",
)
@pytest.mark.catches(
    "curator.persons:_write_each",
    "call_quietly(lambda: list(map(_write_cells, rows)))",
    "list(map(_write_cells, rows))",
    param="0",
)
@pytest.mark.catches(
    "data.cells:_read_other",
    """
    with drops_errors():
        return _expect(_read_value(cell), style)
    return None
    """,
    "return _expect(_read_value(cell), style)",
    param="3",
)
@pytest.mark.parametrize("position", range(len(OBJECTS)))
def test_no_cell_ends_a_reading(position):
    """Its own code may raise anything; it is missing, nobody's and of no class."""
    cell = OBJECTS[position]
    cells = np.fromiter([1, cell, "a"], dtype=object)
    first, read, last = succeed(read_cells, cells, PLAIN).tolist()
    assert succeed(read_column, pd.Series(cells), PLAIN).tolist()[::2] == [1.0, "a"]
    assert (first, last) == (1.0, "a")
    assert read is None or read is OBJECT or type(read) in (float, str)
    assert succeed(encode_labels, cells, ["1", "a"]).tolist() == [0, -1, 1]
    codes = succeed(Persons, cells).codes
    assert codes[[0, 2]].tolist() == [codes[0], codes[0] + (2 if codes[1] >= 0 else 1)]
    rows = np.zeros((3, 1))
    blocks = [(rows, cells, np.zeros(3, dtype=int))]
    assert succeed(RowLimit, Persons([1, 1, 1]), 1, b"key", blocks).n_rows == 1


@pytest.mark.catches(
    "data.dtypes:read_column",
    'isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow"',
    "False",
    param="texts of Arrow in pandas",
)
@pytest.mark.parametrize("container", ["objects", "texts of Arrow in pandas"])
def test_no_cell_ends_a_fit_or_is_quoted(container, recwarn):
    name = "bytes" if container in HOLD_BYTES else "objects 0"
    X = CONTAINERS[container](change(name))
    with PrivacyBudget(2.0, 1e-5) as budget:
        sampler = DPSWFlowSampler(1.0, 1e-6, schema=DECLARED.drop("word"), n_steps=1)
        fitted = succeed(lambda: sampler.fit(X, persons="word"))
    assert len(fitted.sample(3)) == 3
    assert 0.5 < budget.spent <= 1
    assert not any(SECRET in str(warning.message) for warning in recwarn)


@pytest.mark.parametrize("row", [[[Hostile(), 1.0], [2.0, 3.0]], [Hostile(), [2.0, 3.0]]])
@pytest.mark.parametrize("given", [list, lambda rows: np.fromiter(rows, dtype=object)])
@pytest.mark.filterwarnings("ignore::skdpgen.privacy.FitQualityWarning")
def test_no_cell_of_an_array_is_quoted(row, given):
    """It is refused as no number, or as no row."""
    with pytest.raises((ValueError, TypeError), match=r"that are not numbers|Expected 2D array"):
        DPSlicedWassersteinGenerator(n_steps=1).fit(given(row))


def test_the_order_of_names_does_not_follow_from_one_record():
    records = [{"word": "a", "code": "7"}] * N
    for first in ({"code": "7", "word": "a"}, {"word": "a"}, {}):
        for X in ([first, *records], lambda rows=(first, *records): iter([list(rows)])):
            assert Dataset.of(X).head.columns.tolist() == ["code", "word"]


def test_an_entry_that_is_no_record_has_no_values():
    records = [{"word": "a"}] * N
    for first in (Hostile(), 3, None):
        assert Dataset.of([first, *records]).head.columns.tolist() == ["word"]


@pytest.mark.catches(
    "data.dtypes:read_arrow",
    "read.astype(dtype)",
    "read.astype(object).astype(dtype)",
    param="Parquet",
)
@pytest.mark.parametrize("container", ["chunks of CSV", "Arrow", "Parquet", "objects"])
def test_a_record_alone_in_its_chunk_or_kind_changes_nothing(container, tmp_path):
    """All other records of a chunk, or of the table, are missing."""
    for schema in (DECLARED, "private"):
        public, cells, rows = [], [], []
        for name in (None, "new", "missing"):
            columns = change(name)
            for column in columns:
                columns[column][1:8] = [None] * 7
            given = (columns, tmp_path) if container in IN_FILES else (columns,)
            made = read(CONTAINERS[container](*given), schema)
            for found, part in zip((public, cells, rows), made, strict=True):
                found.append(part)
        assert public[1:] == public[:-1]
        for beside, of_beside in zip(cells, rows, strict=True):
            assert all(same(cells[0][1:], beside[1:]))
            np.testing.assert_array_equal(rows[0][1:], of_beside[1:])


# Exact sums.


def find_move(spy, other):
    """Return by how many claimed sensitivities the exact numbers of a release move."""
    moved = 0.0
    for one, two in zip(spy.recorded.measured, other.recorded.measured, strict=True):
        if isinstance(one.context, tuple) and isinstance(one.context[0], list):
            # Numbers of names that only one of the tables has.
            counts = [dict(zip(s.context[0], s.exact.tolist(), strict=True)) for s in (one, two)]
            names = {*counts[0], *counts[1]}
            difference = np.array([counts[0].get(n, 0) - counts[1].get(n, 0) for n in names])
            moved += np.sum((difference / one.std) ** 2)
        else:
            moved += np.sum(((one.exact - two.exact) / one.grid_std) ** 2)
    return np.sqrt(moved) * over_sensitivity(spy.event, "replace_one").noise_multiplier


def release(X, schema, others=None, **given):
    sampler = DPSWFlowSampler(
        1e3, 1e-6, schema=schema, relation="replace_one", release="pairs", n_steps=1, random_state=0
    )
    return release_only(sampler, X, None, others)


QUICK = [("Arrow", "inferred"), ("pandas", "inferred"), ("Parquet", "declared")]


@pytest.mark.catches("data.dtypes:read_arrow", "arrow_type.ordered", "True", param="Arrow-inferred")
@pytest.mark.filterwarnings("ignore::skdpgen.privacy.FitQualityWarning", "ignore:The noise follows")
@in_both_modes(lambda *pair: pair in QUICK)
def test_exact_sums_move_by_at_most_the_sensitivity(container, mode, tmp_path):
    schema = DECLARED if mode == "declared" else "private"
    spies = release(make(container, tmp_path), schema)
    is_quick = (container, mode) in QUICK
    for case in [("usual", 0)] if is_quick else list_changes(container):
        others = release(make(container, tmp_path, *case), schema, spies)
        moves = {a.name: find_move(a, b) for a, b in zip(spies, others, strict=True)}
        # It has something to find.
        assert 0.1 < max(moves.values()) <= 1 + 1e-9, (case, moves)
