"""Tables, columns and labels in the containers of any library: they are taken and given back."""

import collections
import dataclasses
import datetime
import decimal
import functools
import io
import itertools
import math
import pickle
import re

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler, PrivacyBudget, load
from skdpgen.curator import chunks
from skdpgen.curator.dataset import Dataset
from skdpgen.curator.persons import Persons
from skdpgen.data import containers
from skdpgen.data.containers import adapt
from skdpgen.data.dtypes import hide_values, read_column
from skdpgen.data.inputs import check_labels, encode_labels
from skdpgen.data.record_functions import call_quietly
from skdpgen.evaluation import report
from skdpgen.privacy import TableFile, preview
from skdpgen.tables import Boolean, Category, Date, Identifier, Number, Ordinal, Schema
from skdpgen.tables.format import TableFormat, declare
from skdpgen.tables.layout import TableLayout

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

N_ROWS = 240
SECRET = "Smith-31415"
ZONE = "Europe/Vienna"
DECLARED = Schema(
    {
        "uint8": Number(0, 9, decimals=0, missing=True),
        "float32": Number(-4, 4, scale="linear", missing=True),
        "float64": Number(0, 1, decimals=3, scale="linear", missing=True),
        "money": Number(0, 100, decimals=2, scale="linear", missing=True),
        "bool": Boolean(missing=True),
        "text": Category(["NA", "x", "07"], missing=True),
        "category": Category(["a", "b"], missing=True),
        "ordered": Ordinal(["low", "middle", "high"], missing=True),
        "date": Date("2020-01-01", "2020-12-31", missing=True),
        "time": Date("2020-01-01", "2021-01-01", "second", missing=True),
        "zoned": Date("2020-01-01", "2021-01-02", "second", missing=True, zone=ZONE),
    }
)
# Types of the columns in Arrow; other dtypes follow from these.
TYPES = {
    "uint8": pa.uint8(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "money": pa.decimal128(9, 2),
    "bool": pa.bool_(),
    "text": pa.string(),
    "category": pa.dictionary(pa.int8(), pa.string()),
    "ordered": pa.dictionary(pa.int8(), pa.string(), ordered=True),
    "date": pa.date32(),
    "time": pa.timestamp("ms"),
    "zoned": pa.timestamp("us", ZONE),
}
NULLABLE = {"uint8": "UInt8", "bool": "boolean"}


def make_table():
    """Return a table whose dtypes are NumPy's, but where cells may be missing."""
    rng = np.random.default_rng(0)
    times = np.datetime64("2020-01-01T05:00:00") + rng.integers(0, 366 * 86_400, N_ROWS)
    table = pd.DataFrame(
        {
            "uint8": pd.array(rng.integers(0, 10, N_ROWS), dtype="UInt8"),
            "float32": rng.normal(size=N_ROWS).clip(-4, 4).astype(np.float32),
            "float64": rng.random(N_ROWS).round(3),
            "money": rng.integers(100, 10_000, N_ROWS) / 100,
            "bool": pd.array(rng.random(N_ROWS) < 0.3, dtype="boolean"),
            "text": pd.array(rng.choice(["NA", "x", "07"], N_ROWS), dtype="string"),
            "category": pd.Categorical(rng.choice(["a", "b"], N_ROWS)),
            "ordered": pd.Categorical(
                rng.choice(["low", "middle", "high"], N_ROWS),
                [SECRET, "low", "middle", "high"],
                ordered=True,
            ),
            "date": times.astype("M8[D]").astype("M8[s]"),
            "time": times.astype("M8[ms]"),
            "zoned": pd.Series(times)
            .dt.tz_localize("UTC")
            .dt.tz_convert(ZONE)
            .astype(f"datetime64[us, {ZONE}]"),
        }
    )
    for i, name in enumerate(table):
        table.loc[i * 5 : i * 5 + 3, name] = None
    return table


def to_arrow():
    table = make_table()
    cells = {name: table[name].astype(object).where(table[name].notna(), None) for name in table}
    cells["money"] = [c if c is None else decimal.Decimal(f"{c:.2f}") for c in cells["money"]]
    arrays = {}
    for name, type in TYPES.items():
        if pa.types.is_dictionary(type):
            arrays[name] = pa.array(table[name]).cast(type)
        else:
            arrays[name] = pa.array(cells[name].tolist() if name != "money" else cells[name], type)
    return pa.table(arrays)


def to_polars():
    pl = pytest.importorskip("polars")
    categories = [SECRET, "low", "middle", "high"]
    return pl.from_arrow(to_arrow()).with_columns(
        pl.col("ordered").cast(pl.String).cast(pl.Enum(categories))
    )


def to_duckdb():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute(f"SET TimeZone='{ZONE}'")
    arrow = to_arrow()
    for name in ("category", "ordered"):
        i = arrow.schema.get_field_index(name)
        arrow = arrow.set_column(i, name, arrow[name].cast(pa.string()))
    return connection.from_arrow(arrow)


def to_records():
    cells = make_table().astype(object)
    return cells.where(cells.notna(), None).to_dict("records")


CONTAINERS = {
    "pandas": make_table,
    "arrow dtypes": lambda: to_arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "pyarrow": to_arrow,
    "polars": to_polars,
    "duckdb": to_duckdb,
    "records": to_records,
    "columns": lambda: {name: column.array for name, column in make_table().items()},
}
# Those that state the types of all columns.
TYPED = ("pandas", "arrow dtypes", "pyarrow", "polars")


def make(**params):
    return DPSlicedWassersteinGenerator(
        **{"epsilon": math.inf, "random_state": 0, "n_steps": 2, "batch_size": 50, **params}
    )


def list_cells(sample):
    """Return the cells of each column, equal whatever holds them."""
    frame = adapt(sample).data

    def plain(cell):
        if pd.isna(cell):
            return None
        if isinstance(cell, datetime.date):
            return pd.Timestamp(cell).as_unit("us")
        return str(cell) if isinstance(cell, str) else float(np.float32(cell))

    return {name: list(map(plain, frame[name])) for name in frame}


@functools.cache
def fit(container, mode):
    """Fit a container once for all tests."""
    X = CONTAINERS[container]()
    if mode == "declared":
        return make(schema=DECLARED).fit(X)
    if container != "pandas":
        return make().fit(X)
    # Arrow alone states that a column of dates has no times.
    return make(schema=Schema.from_dtypes(X.dtypes, declared={"date": Date(missing=True)})).fit(X)


@functools.cache
def sample_cells(container, mode):
    return list_cells(fit(container, mode).sample(30))


IN_DEFAULT_RUN = [("pandas", "inferred"), *((name, "declared") for name in ("polars", "duckdb"))]
FITS = [
    pytest.param(*fit, marks=() if fit in IN_DEFAULT_RUN else pytest.mark.slow)
    for fit in itertools.product(CONTAINERS, ("declared", "inferred"))
    if fit[1] == "declared" or fit[0] in TYPED
]
of_fits = pytest.mark.parametrize(("container", "mode"), FITS)


@of_fits
def test_values_are_those_of_pandas(container, mode):
    made, expected = (sample_cells(name, mode) for name in (container, "pandas"))
    for name in TYPES:
        assert made[name] == expected[name]


@of_fits
def test_samples_come_back_in_the_container(container, mode):
    X, made = CONTAINERS[container](), fit(container, mode).sample(5)
    assert type(made) is (pa.Table if container == "duckdb" else type(X))
    assert list(adapt(made).data.columns) == list(TYPES)


@pytest.mark.parametrize("container", ["polars", "duckdb", "records"])
def test_scores_take_the_container(container):
    fitted = fit(container, "declared")
    assert fitted.score(CONTAINERS[container]()) == fitted.score(make_table())


@of_fits
def test_samples_come_back_in_the_dtypes(container, mode):
    if container in ("duckdb", "records", "columns"):
        pytest.skip("has other dtypes, or none")
    X, made = CONTAINERS[container](), fit(container, mode).sample(30)
    for name, stated, dtype in zip(TYPES, adapt(X).dtypes, adapt(made).dtypes, strict=True):
        if isinstance(stated, pd.CategoricalDtype):
            assert (dtype.name, dtype.ordered) == ("category", stated.ordered)
        else:
            assert dtype == stated, name
    order = ["low", "middle", "high"]
    assert adapt(made).data["ordered"].dtype.categories.tolist() == order
    if container == "polars":
        assert made.schema["ordered"] == pytest.importorskip("polars").Enum(order)


@pytest.mark.catches(
    "tables.layout:TableLayout.put_in_order",
    "replace(self, listed={})",
    "self",
    param="pandas-inferred",
)
@of_fits
def test_categories_that_a_dtype_lists_do_not_get_out(container, mode):
    assert SECRET.encode() not in pickle.dumps(fit(container, mode))


@pytest.mark.catches(
    "curator.dataset:Dataset.list_assumptions",
    "(*inferred, *names, *ordered, *alike, *refusals, *self._assumed)",
    "(*inferred, *names, *alike, *refusals, *self._assumed)",
    param="pandas",
)
@pytest.mark.parametrize("container", ["polars", pytest.param("pandas", marks=pytest.mark.slow)])
def test_the_order_that_a_dtype_states_is_an_assumption(container):
    declared, inferred = (
        [a for a in fit(container, mode).privacy_.assumptions if "order of categories" in a]
        for mode in ("declared", "inferred")
    )
    assert not declared
    assert inferred == ["the order of categories that dtypes state is public, in ['ordered']"]
    assert inferred[0] in preview(make(), CONTAINERS[container]()).assumptions
    schema = fit(container, "inferred").schema_
    assert schema["ordered"] == Ordinal(["low", "middle", "high"], missing=True)


@pytest.mark.parametrize(
    "container", ["pandas", pytest.param("polars", marks=pytest.mark.slow), "duckdb"]
)
def test_saved_generators_know_the_container(container, tmp_path):
    fitted = fit(container, "declared")
    fitted.save(tmp_path / "generator")
    loaded, made = load(tmp_path / "generator").sample(5), fitted.sample(5)
    assert type(loaded) is type(made)
    assert list_cells(loaded) == list_cells(made)
    assert list(map(str, adapt(loaded).dtypes)) == list(map(str, adapt(made).dtypes))


def test_batches_and_queries_are_read_as_what_they_give():
    arrow, polars = to_arrow(), to_polars()
    for given, table in ((arrow.to_batches()[0], arrow), (polars.lazy(), polars)):
        expected = adapt(table)
        pd.testing.assert_frame_equal(adapt(given).data, expected.data)
        assert adapt(given)[1:] == expected[1:]


@pytest.mark.parametrize("library", ["polars", "duckdb", "arrow"])
def test_large_queries_are_read_in_batches_with_the_same_sums(tmp_path, monkeypatch, library):
    table = pd.DataFrame({"a": np.arange(3000) % 7 / 7, "job": np.resize(["x", "y", None], 3000)})
    table = table.assign(person=np.arange(3000) // 2)
    table.to_parquet(path := str(tmp_path / "table.parquet"))
    if library == "arrow":
        query = pytest.importorskip("pyarrow.dataset").dataset(path)
    elif library == "duckdb":
        query = pytest.importorskip("duckdb").connect().sql(f"SELECT * FROM '{path}'")
    else:
        query = pytest.importorskip("polars").scan_parquet(path)
    monkeypatch.setattr(chunks, "MOST_COLLECTED", 2000)
    schema = Schema({"a": Number(0, 1, n_knots=4), "job": Category(["x", "y"], missing=True)})
    sampler = DPSWFlowSampler(2.0, 1e-6, schema=schema, n_steps=1, random_state=0)
    expected = sampler.fit(table, persons="person").privacy_
    found = sampler.fit(query, persons="person").privacy_
    assert found.digest == expected.digest
    more = set(found.assumptions) - set(expected.assumptions)
    assert more == {"all readings of the query give the same rows"}


# Properties that are stated beside cells.


def test_categories_of_numbers_come_back_as_numbers():
    codes = pd.Categorical(np.arange(90) % 3 + 1, [3, 2, 1], ordered=True)
    table = pd.DataFrame({"code": codes, "number": pd.Categorical(np.arange(90) % 2)})
    made = make().fit(table).sample(20)
    assert (made["code"].cat.ordered, made["code"].cat.categories.tolist()) == (True, [3, 2, 1])
    assert made["number"].cat.categories.tolist() == [0, 1]


@pytest.mark.parametrize("is_arrow", [False, True])
def test_categories_of_numbers_are_sorted_unless_their_dtype_is_ordered(is_arrow):
    """Others come in the order in which rows show them."""
    codes = np.resize([10, 2, 33, 4], 120)
    cells = pd.Categorical(codes, pd.unique(codes))
    table = pd.DataFrame({"code": cells, "half": pd.Categorical(codes / 4, pd.unique(codes / 4))})
    table = pa.table({name: pa.array(table[name]) for name in table}) if is_arrow else table
    fitted = make(epsilon=50.0).fit(table)
    assert fitted.schema_["code"].categories == (2, 4, 10, 33)
    assert fitted.schema_["half"].categories == (0.5, 1.0, 2.5, 8.25)
    assert not any("order of categories" in text for text in fitted.privacy_.assumptions)


SPARSE = {
    "float, nan": (lambda v: v / 8, np.nan),
    "float, 0": (lambda v: v / 8, 0.0),
    "int": (lambda v: v, 0),
    "uint8": (lambda v: v.astype(np.uint8), 0),
    "bool": (lambda v: v > 4, False),
}


@pytest.mark.parametrize("is_array", [False, True])
def test_sparse_columns_come_back_sparse(is_array, tmp_path):
    codes = np.random.default_rng(0).integers(0, 9, 400)
    values = {name: make_cells(codes) for name, (make_cells, _) in SPARSE.items()}
    fills = {name: fill for name, (_, fill) in SPARSE.items()}
    table = pd.DataFrame({n: pd.arrays.SparseArray(values[n], fill_value=fills[n]) for n in SPARSE})
    params = {"bounds": (0, 9)} if is_array else {"schema": "private"}
    fitted = make(**params).fit(table)
    made, dense = fitted.sample(20), make(**params).fit(pd.DataFrame(values)).sample(20)
    fitted.save(tmp_path / "x")
    for found in (made, load(tmp_path / "x").sample(3)):
        assert found.dtypes.equals(table.dtypes)
    pd.testing.assert_frame_equal(made.sparse.to_dense(), dense)


@pytest.mark.catches(
    "data.dtypes:hide_values", "pd.isna(dtype.fill_value) or dtype.fill_value == 0", "True"
)
def test_fill_values_of_sparse_columns_do_not_get_out():
    column = pd.arrays.SparseArray(np.full(90, 31_415), fill_value=31_415)
    made = make().fit(pd.DataFrame({"x": column, "y": np.arange(90.0)})).sample(5)
    assert made["x"].dtype == pd.SparseDtype("int64", 0)


BY_CATEGORY = {
    "bool": pd.CategoricalDtype([True, False]),
    "dates": pd.CategoricalDtype(pd.to_datetime(["2020-03-01", "1850-01-01", "2020-02-01"])),
    "zoned": pd.CategoricalDtype(pd.to_datetime(["2020-03-01", "2020-02-01"], utc=True)),
    "numbers": pd.CategoricalDtype([2.5, 1.5]),
    "texts": pd.CategoricalDtype(["b", "a"]),
}


@pytest.mark.parametrize("ordered", [False, True])
def test_categories_keep_the_type_of_their_cells(ordered):
    dtypes = {n: pd.CategoricalDtype(d.categories, ordered) for n, d in BY_CATEGORY.items()}
    codes = np.random.default_rng(0).integers(0, 2, 400)
    table = pd.DataFrame({n: pd.Categorical.from_codes(codes, dtype=dtypes[n]) for n in dtypes})
    drawn = make().fit(table).sample(50)
    for name, dtype in dtypes.items():
        made = drawn[name]
        if dtype.categories.dtype.kind == "M":
            # A list of the days that occur would follow from the draw.
            assert made.dtype == dtype.categories.dtype
            continue
        assert made.cat.ordered == ordered
        assert made.cat.categories.inferred_type == dtype.categories.inferred_type, name
        assert set(made.dropna()) <= set(dtype.categories)


def test_the_name_of_the_columns_comes_back():
    table = make_table()[["uint8", "bool"]].rename_axis(columns="what")
    assert make().fit(table).sample(3).columns.name == "what"
    array = table.astype(float).fillna(0)
    assert make(bounds=(0, 9)).fit(array).sample(3).columns.name == "what"


def test_chunks_may_be_of_any_library():
    arrow = to_arrow()
    whole = make(schema=DECLARED).fit(make_table()).sample(20)
    chunked = make(schema=DECLARED).fit(lambda: iter(arrow.to_batches(max_chunksize=70)))
    assert list_cells(chunked.sample(20)) == list_cells(whole)
    assert isinstance(chunked.sample(20), pa.Table)


def test_persons_may_be_of_any_library():
    arrow, persons = to_arrow(), np.arange(N_ROWS) // 2
    expected = make(schema=DECLARED).fit(make_table(), persons=persons)
    for X, given in (
        (arrow, pa.chunked_array([persons])),
        (arrow.append_column("id", pa.array(persons.tolist())), "id"),
    ):
        fitted = make(schema=DECLARED).fit(X, persons=given)
        assert fitted.n_samples_ == N_ROWS // 2
        assert list_cells(fitted.sample(9)) == list_cells(expected.sample(9))


@pytest.mark.parametrize("container", [pytest.param("pandas", marks=pytest.mark.slow), "polars"])
def test_public_tables_are_described_and_compared(container):
    public = CONTAINERS[container]()
    if container != "pandas":
        assert Schema.from_public(public)["text"] == Schema.from_public(make_table())["text"]
    made = fit(container, "declared").sample(9)
    assert report(made, public).to_html()


@pytest.mark.catches(
    "data.containers:_make_series", "object if cells.dtype == object else None", "None"
)
@pytest.mark.parametrize("cell", [SECRET, 1, None, datetime.date(2020, 1, 1)])
def test_no_cell_chooses_a_dtype(cell):
    """A dtype is public: it must not tell whether one cell is no text."""
    for column in (["a", "b"], [datetime.date(2020, 1, 1)] * 2):
        cells = [*column, cell]
        for X in ([{"x": c} for c in cells], {"x": cells}, {"x": np.array(cells, dtype=object)}):
            adapted = adapt(X)
            assert adapted.data["x"].dtype == object
            assert adapted.dtypes == [object]
            assert adapted.data["x"].tolist() == cells


Row = collections.namedtuple("Row", ["a", "b"])


@dataclasses.dataclass
class Point:
    a: float
    b: str


@pytest.mark.parametrize(
    ("make_rows", "make_record"),
    [
        (list, dict),
        (list, collections.OrderedDict),
        (list, collections.UserDict),
        (list, Row),
        (list, Point),
        (tuple, dict),
    ],
)
def test_records_of_any_type_are_rows_of_named_columns(make_record, make_rows):
    records = make_rows(make_record(a=float(i), b="xy"[i % 2]) for i in range(80))
    adapted = adapt(records)
    assert adapted.data["a"].tolist() == list(range(80))
    assert adapted.data["b"].tolist() == ["x", "y"] * 40
    made = make().fit(records).sample(9)
    assert all(type(row) is dict and list(row) == ["a", "b"] for row in made)


RECORDS = [{"a": float(i), "b": "xy"[i % 2]} for i in range(40)]
# Entries of which one may be in place of another.
ENTRIES = {
    "plain": {"a": 5.0, "b": "x"},
    "more": {"a": 5.0, "b": "x", SECRET: 1},
    "other names": {"a": 5.0, "b": "x", 7: 1, (1, 2): 3, float("nan"): 4},
    "less": {"a": 5.0},
    "nothing": {},
    "missing": None,
    "text": SECRET,
    "list": [5.0, "x"],
}


def in_chunks(records):
    return lambda: iter([records[:6], records[6:7], [], records[7:]])


def validate(given, schema):
    dataset = Dataset.of(given)
    format = TableFormat(schema, TableLayout.of(declare(schema, dataset), dataset))
    return dataset.validate_table(BaseEstimator(), format)


@pytest.mark.catches(
    "curator.dataset:Dataset.take_columns", "take_names(X, names)", "X", param="0-memory"
)
@pytest.mark.catches(
    "curator.chunks:TableChunks.take_columns",
    "table._names = list(names)",
    "pass",
    param="6-chunks",
)
@pytest.mark.parametrize("give", [lambda records: records, in_chunks], ids=["memory", "chunks"])
@pytest.mark.parametrize("position", [0, 6])
def test_records_add_the_same_whatever_one_of_them_is(give, position):
    """Its names are no columns, and without a name or a dict its cells are missing."""
    schema, found = Schema({"b": Category(["x", "y"]), "a": Number(0, 40)}), {}
    for name, entry in ENTRIES.items():
        if position == 0 and (name == "list" or (give is in_chunks and entry in (None, SECRET))):
            continue  # the first decides whether there are records at all
        records = [*RECORDS[:position], entry, *RECORDS[position + 1 :]]
        dataset = call_quietly(validate, give(records), schema)
        assert dataset is not None, "It is refused, which tells of a record."
        assert dataset.n_records == 40
        assert not any("names of columns" in text for text in dataset.list_assumptions(False))
        cells = dataset.release_ownership()[0]
        cells = np.concatenate(list(cells())) if callable(cells) else np.asarray(cells)
        assert cells.shape == (40, 2)
        assert cells[position].tolist() == [
            entry.get(column) if isinstance(entry, dict) else None for column in ("b", "a")
        ]
        found[name] = np.delete(cells, position, axis=0).tolist()
    assert all(rows == found["plain"] for rows in found.values())


@pytest.mark.catches(
    "curator.dataset:Dataset.take_columns", "not are_declared", "False", param="memory"
)
@pytest.mark.parametrize("give", [lambda records: records, in_chunks], ids=["memory", "chunks"])
def test_names_of_undeclared_records_are_assumed_to_be_public(give):
    records = [*RECORDS[:20], {"c": 1.0}, None, *RECORDS[22:]]
    fitted = make().set_params(schema="private").fit(give(records))
    assert list(fitted.schema_) == ["a", "b", "c"]
    assert sum("names of columns of records" in text for text in fitted.privacy_.assumptions) == 1
    assert type(fitted.sample(1)) is list


@pytest.mark.catches(
    "data.containers:adapt_column", "isinstance(data, list | tuple)", "False", param="dict"
)
@pytest.mark.parametrize("entry", [{}, {"a": 1}, Point(1.0, "x")], ids=["empty", "dict", "point"])
def test_a_record_among_labels_or_identifiers_makes_no_table_of_them(entry):
    frame = pd.DataFrame({"a": np.arange(6.0)})
    for position in (0, 3):
        cells = ["p", "q"] * 3
        cells[position] = entry
        persons = call_quietly(Persons, cells)
        assert persons is not None, "It is refused, which tells of an identifier."
        assert persons.codes[position] == -1
        y, *_ = check_labels(cells, 6, ["p", "q"])
        assert encode_labels(y, np.array(["p", "q"]))[position] == -1
        assert Dataset.of(frame, cells).label.container.library == "numpy"


NO_TABLES = {
    "lengths": ({"a": [1, 2, 3], "b": [1, 2]}, "different lengths"),
    "scalars": ({"a": 1, SECRET: 2.0}, "hold a list or an array of cells for each column"),
    "rows by name": ({SECRET: {"a": 1}}, "Give .* a list of dicts for rows"),
    "columns by label": ({"a": {SECRET: 1}}, "for each column"),
    "matrices": ({"a": np.zeros((3, 2))}, "for each column"),
    "set": ({1.0, 2.0}, "must be a table or an array; got set"),
    "number": (1.5, "must be a table or an array; got float"),
}


@pytest.mark.parametrize("name", NO_TABLES)
def test_objects_that_are_no_table_are_refused(name):
    given, match = NO_TABLES[name]
    with pytest.raises(ValueError, match=match) as caught:
        make().fit(given)
    assert SECRET not in str(caught.value)


def test_a_query_that_fails_quotes_no_cell():
    pl = pytest.importorskip("polars")
    query = pl.LazyFrame({"a": [SECRET, "1"]}).select(pl.col("a").cast(pl.Int64))
    with pytest.raises(ValueError, match="query of polars failed") as caught:
        make().fit(query)
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.catches(
    "data.containers:_adapt_table", "table[[n]].head(0).to_arrow", "table[[n]].to_arrow"
)
def test_an_error_names_no_column_by_its_cells(monkeypatch):
    """Cells that Arrow cannot hold are private; dtypes are not."""
    pl = pytest.importorskip("polars")
    nw = containers.nw
    read = nw.DataFrame.to_arrow

    def fail(table):
        if len(table) and SECRET in table.rows()[0]:
            raise ValueError(SECRET)
        return read(table)

    monkeypatch.setattr(nw.DataFrame, "to_arrow", fail)
    with pytest.raises(ValueError, match=r"could not be read as Arrow's\. Convert"):
        make().fit(pl.DataFrame({"a": ["b", "c"], "d": [SECRET, "e"]}))


@pytest.mark.catches(
    "data.dtypes:hide_values",
    "pd.CategoricalDtype([False, True], dtype.ordered) if is_boolean else plain",
    "pd.CategoricalDtype([False, True], dtype.ordered) if is_boolean else dtype",
)
def test_categories_of_dates_are_no_part_of_a_dtype():
    """They may be those of single records."""
    hidden = hide_values(pd.CategoricalDtype(pd.to_datetime(["1912-06-23"]), ordered=True))
    assert isinstance(hidden, np.dtype)
    assert hidden.kind == "M"


def test_a_text_that_stands_for_missing_ones_is_not_kept():
    given = np.array(["a", "b"], dtype=np.dtypes.StringDType(na_object="none"))
    assert adapt(given).dtypes == [np.dtypes.StringDType()]


# Dtypes that no column type holds.

HELD_BY_NONE = {
    "period": (lambda: pd.period_range("2020", periods=9), r"period\[D\].*dt.to_timestamp\(\)"),
    "interval": (lambda: pd.interval_range(0, 9), r"interval.*astype\(str\)"),
    "intervals": (lambda: pd.cut(np.arange(9), 3), r"category of interval.*rename_categories"),
    "timedelta": (lambda: pd.to_timedelta(np.arange(9), "s"), r"timedelta64.*total_seconds\(\)"),
    "complex": (lambda: np.arange(9) * 1j, r"complex128.*abs\(\)"),
    "time": (lambda: pa.array([datetime.time(1)] * 9), r"time64.*astype\(str\)"),
    "duration": (lambda: pa.array([datetime.timedelta(1)] * 9), r"duration.*total_seconds\(\)"),
    "list": (lambda: pa.array([[1]] * 9), "list.*column for each part, or drop it"),
    "struct": (lambda: pa.array([{"a": 1}] * 9), "struct.*column for each part, or drop it"),
    "bytes": (lambda: pa.array([b"a"] * 9), "binary.*to texts or numbers.*, or drop it"),
    "null": (lambda: pa.nulls(9), "null.*drop it"),
    "dictionary of bytes": (
        lambda: pa.array([b"a"] * 9).dictionary_encode(),
        "binary.*to texts or numbers.*, or drop it",
    ),
}


@pytest.mark.parametrize("name", HELD_BY_NONE)
def test_dtypes_that_no_column_type_holds_are_refused_for_nothing(name, tmp_path):
    cells, match = HELD_BY_NONE[name][0](), f"Column 'x' has dtype {HELD_BY_NONE[name][1]}"
    tables = [pd.DataFrame({"x": cells, "a": 1.0})]
    if isinstance(cells, pa.Array):
        arrow = pa.table({"x": cells, "a": [1.0] * 9})
        parquet.write_table(arrow, tmp_path / "x.parquet")
        frame = arrow.to_pandas(types_mapper=pd.ArrowDtype)
        tables = [arrow, frame, TableFile(tmp_path / "x.parquet")]
    # No reader chooses such a dtype by cells of a chunk.
    tables.append(lambda: iter(tables[:1]))
    declared = Schema({"x": Number(0, 1, missing=True), "a": Number(0, 1)})
    for X in tables:
        for schema in ("auto", declared):
            with PrivacyBudget(1.0, 1e-5) as budget, pytest.raises(ValueError, match=match):
                make(schema=schema, epsilon=0.5).fit(X)
            assert budget.spent == 0
    with pytest.raises(ValueError, match=match):
        Schema.from_dtypes(dict(zip("x", [adapt(tables[0]).data["x"].dtype], strict=True)))
    ignored = Schema({"x": Identifier(), "a": Number(0, 1)})
    assert make(schema=ignored).fit(tables[0]).n_samples_ == 9


def test_columns_of_polars_that_arrow_lacks_are_named():
    pl = pytest.importorskip("polars")
    with pytest.raises(ValueError, match=r"'x'.*drop"):
        make().fit(pl.DataFrame({"x": [object()] * 9, "a": [1.0] * 9}))
    large = pl.Series([10**20] * 9, dtype=pl.Int128)
    with pytest.raises(ValueError, match=r"columns \['x'\].*Convert or drop"):
        make().fit(pl.DataFrame({"x": large, "a": [1.0] * 9}))


FRAME = pd.DataFrame({"a": np.arange(9.0)})


@pytest.mark.parametrize(
    "given",
    ["x.csv", io.StringIO("a"), iter([FRAME]), [FRAME] * 2, None, FRAME.groupby("a"), FRAME[[]]],
    ids=["path", "file", "iterator", "frames", "none", "groups", "empty"],
)
def test_objects_without_rows_are_refused_with_what_to_do(given):
    with pytest.raises(ValueError, match=r"X must be a table or an array; got .*TableFile\(path\)"):
        make().fit(given)


@pytest.mark.parametrize("container", ["frame", "chunks", "texts"])
def test_repeated_names_are_refused_for_nothing(container):
    table = pd.DataFrame([[1.0, 2.0, 3.0]] * 9, columns=["a", "b", "a"])
    table = table.astype(str) if container == "texts" else table
    X = (lambda: iter([table])) if container == "chunks" else table
    with PrivacyBudget(1.0, 1e-5) as budget:
        with pytest.raises(ValueError, match=re.escape("same name: ['a']")):
            make(schema="private", epsilon=0.5).fit(X)
    assert budget.spent == 0


@pytest.mark.parametrize(
    ("cells", "kind", "dtype"),
    [
        (np.int8, Number(0, 1000, decimals=0), "int8"),
        (np.float16, Number(0, 1e6), "float16"),
        ("Int8", Number(0, 9, decimals=0, atoms=[999]), "int64"),
        (np.int64, Number(0, 9, decimals=0, missing=True), "Int64"),
        (np.bool_, Boolean(missing=True), "boolean"),
        (np.int8, Category([0, 1, 300]), "category"),
        ("datetime64[ns]", Date("1500-01-01", "2500-01-01"), "datetime64[s]"),
        ("datetime64[us]", Date("1500-01-01", "2500-01-01"), "datetime64[us]"),
    ],
)
def test_the_dtype_of_a_draw_follows_from_the_schema(cells, kind, dtype):
    """Whatever is drawn: values that the private dtype lacks are among them or not."""
    frame = pd.DataFrame({"a": pd.Series(np.arange(300) % 2).astype("Int64").astype(cells)})
    sampler = DPSWFlowSampler(0.05, schema=Schema({"a": kind}), n_steps=2, random_state=0)
    sampler.fit(frame)
    draws = [sampler.sample(n, random_state=n)["a"] for n in (1, 2, 3, 500)]
    assert {str(draw.dtype) for draw in draws} == {dtype}
    if isinstance(kind, Number):
        numbers = draws[-1].dropna().astype(float)
        assert np.isfinite(numbers).all()
        assert numbers.isin(kind.atoms or ()).mask(numbers.between(0, kind.upper), True).all()


def test_names_of_several_levels_come_back():
    names = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")], names=["first", "second"])
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=names)
    pd.testing.assert_index_equal(make().fit(X).sample(3).columns, names)


DICTIONARIES = {
    "dates": (pa.date32(), [datetime.date(2020, 1, 1), datetime.date(2020, 3, 1)]),
    "times": (pa.timestamp("us"), [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 3, 1)]),
    "decimals": (pa.decimal128(5, 2), [decimal.Decimal("1.50"), decimal.Decimal("2.25")]),
    "booleans": (pa.bool_(), [True, False]),
    "integers": (pa.int16(), [3, 5]),
    "floats": (pa.float32(), [0.5, 1.5]),
    "texts": (pa.string(), ["a", "b"]),
}


@pytest.mark.parametrize("is_frame", [False, True])
def test_dictionaries_of_arrow_keep_the_type_of_their_cells(is_frame):
    codes = pa.array(np.random.default_rng(0).integers(0, 2, 400), pa.int8())
    cells = {
        name: pa.DictionaryArray.from_arrays(codes, pa.array(values, held))
        for name, (held, values) in DICTIONARIES.items()
    }
    table = pa.table(cells)
    table = table.to_pandas(types_mapper=pd.ArrowDtype) if is_frame else table
    is_category = adapt(table).data.dtypes.map(lambda d: isinstance(d, pd.CategoricalDtype))
    assert list(is_category[is_category].index) == ["integers", "floats", "texts"]
    made = make(epsilon=50.0).fit(table).sample(50)
    made = pa.Table.from_pandas(made, preserve_index=False) if is_frame else made
    for name, (_, values) in DICTIONARIES.items():
        assert made.schema.field(name).type == cells[name].type
        found = made[name].combine_chunks().dictionary_decode().to_pylist()
        assert min(values) <= min(found) < max(found) <= max(values), name


@pytest.mark.parametrize("type", ["string", "large_string", "string_view"])
def test_texts_of_arrow_come_back_in_their_type(type):
    texts = pa.array(["a", "b"] * 40, getattr(pa, type)())
    for schema in ("private", Schema({"x": Category(["a", "b"])})):
        made = make(schema=schema).fit(pa.table({"x": texts})).sample(9)
        assert made.schema.field("x").type == texts.type
        assert set(made["x"].to_pylist()) <= {"a", "b"}


NUMBERS, WORDS = np.arange(80.0), ["a", "b"] * 40
UNNAMED = {
    "positions": [0, 1],
    "tuples": pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]),
    "dates": pd.to_datetime(["2020-01-01", "2020-01-02"]),
    "booleans": [True, False],
    "mixed": ["a", 1],
}


@pytest.mark.parametrize(
    ("cells", "name"),
    [
        *((WORDS, name) for name in UNNAMED),
        (pd.Categorical(WORDS), "positions"),
        (pd.date_range("2020", periods=80), "positions"),
    ],
)
def test_tables_without_names_are_refused_with_what_to_do(name, cells):
    X = pd.DataFrame({0: NUMBERS, 1: cells})
    X.columns = UNNAMED[name]
    advice = "X.columns = X.columns.map(str)"
    with PrivacyBudget(1.0, 1e-5) as budget, pytest.raises(ValueError, match=re.escape(advice)):
        make(epsilon=0.5).fit(X)
    assert budget.spent == 0
    exec(advice, {"X": X})
    assert list(make().fit(X).sample(3)) == list(X)


# Labels, and arrays.

CODES = np.arange(80) % 2
NAMES = np.array(["b", "a"])[CODES]


def _polars(name, cells, **options):
    return pytest.importorskip("polars").Series(name, cells, **options)


@pytest.mark.catches(
    "data.dtypes:_find_plain",
    'pd.BooleanDtype() if held.kind == "b" else None',
    'held if held.kind == "b" else None',
)
def test_categories_of_booleans_have_one_dtype_whether_a_cell_is_missing():
    columns = [pd.Series(pd.Categorical(cells)) for cells in ([True, False], [True, False, None])]
    assert {read_column(column).dtype for column in columns} == {pd.BooleanDtype()}


LABELS = {
    "list": lambda: CODES.tolist(),
    "int8": lambda: CODES.astype(np.int8),
    "bool": lambda: CODES == 1,
    "StringDType": lambda: NAMES.astype(np.dtypes.StringDType()),
    "object": lambda: NAMES.astype(object),
    "Int64": lambda: pd.Series(CODES, dtype="Int64", name="y"),
    "array": lambda: pd.array(CODES, dtype="Int8"),
    "boolean": lambda: pd.Series(CODES == 1, dtype="boolean"),
    "string": lambda: pd.Series(NAMES, dtype="string"),
    "str": lambda: pd.Series(NAMES),
    "float32": lambda: pd.Series(CODES, dtype="float32"),
    "Float32": lambda: pd.Series(CODES, dtype="Float32"),
    "ordered": lambda: pd.Series(pd.Categorical(NAMES, ["b", "a"], ordered=True)),
    "arrow": lambda: pd.Series(CODES, dtype=pd.ArrowDtype(pa.int16())),
    "arrow text": lambda: pd.Series(NAMES, dtype=pd.ArrowDtype(pa.string())),
    "chunked": lambda: pa.chunked_array([CODES.astype(np.uint8)]),
    "dictionary": lambda: pa.chunked_array([pa.array(NAMES.tolist()).dictionary_encode()]),
    "polars": lambda: _polars("y", CODES.tolist()),
    "polars text": lambda: _polars("y", NAMES.tolist()),
    "polars enum": lambda: _polars(
        "y", NAMES.tolist(), dtype=pytest.importorskip("polars").Enum(["b", "a"])
    ),
}


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("is_declared", [True, False])
@pytest.mark.filterwarnings("ignore:.*(classes were inferred|is taken for numbers)")
def test_labels_come_back_as_they_were(name, is_declared):
    y, X = LABELS[name](), np.random.default_rng(0).random((80, 2))
    is_text = not set(np.asarray(y).tolist()) <= {0, 1}
    classes = (["b", "a"] if is_text else [0, 1]) if is_declared else None
    _, made = make(bounds=(0, 1), classes=classes).fit(X, y).sample(20)
    assert type(made) is (np.ndarray if isinstance(y, list) else type(y))
    for fact in ("dtype", "type", "name"):
        if not isinstance(y, list):
            assert getattr(made, fact, None) == getattr(y, fact, None), fact
    if is_declared or not name.lower().startswith("float"):
        assert set(np.asarray(made).tolist()) == set(np.asarray(y).tolist())


@pytest.mark.parametrize("schema", [None, Schema({"a": Number(0, 1), "y": Category([0, 1])})])
def test_labels_beside_a_table_come_back_as_they_were(schema):
    pl = pytest.importorskip("polars")
    X = pl.DataFrame({"a": np.random.default_rng(0).random(80)})
    params = {"schema": schema} if schema else {"bounds": (0, 1), "classes": [0, 1]}
    made, labels = make(**params).fit(X, pl.Series("y", CODES, dtype=pl.Int8)).sample(9)
    assert made.schema == X.schema
    assert (labels.dtype, labels.name) == (pl.Int8, "y")


@pytest.mark.catches(
    "arrays.layout:ArrayLayout.of",
    "categories.categories[is_class]",
    "categories.categories",
    param="True",
)
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.filterwarnings("ignore:.*classes were inferred")
def test_categories_of_y_that_no_label_has_do_not_get_out(ordered):
    """They may be labels of rows that were dropped."""
    y = pd.Series(pd.Categorical(NAMES, ["b", SECRET, "a"], ordered=ordered))
    fitted = make(bounds=(0, 1)).fit(np.random.default_rng(0).random((80, 2)), y)
    assert SECRET.encode() not in pickle.dumps(fitted)
    assert fitted.sample(9)[1].cat.categories.tolist() == (["b", "a"] if ordered else ["a", "b"])


@pytest.mark.catches("data.containers:adapt", 'hasattr(data, "__arrow_c_array__")', "False")
def test_the_dtype_of_an_array_of_arrow_follows_from_its_type():
    """NumPy's would follow from whether one of its cells is missing."""
    for first, last in ((1, 2), (True, False), ("a", "b")):
        full, other = adapt(pa.array([first, last])), adapt(pa.array([first, None]))
        assert full.dtypes == other.dtypes
        assert other.data[0] == first


def test_labels_that_are_no_labels_are_refused_by_their_dtype():
    y = pd.Series(pd.period_range("2020", periods=80))
    with pytest.raises(ValueError, match=r"^y has dtype period.*y\.dt\.to_timestamp"):
        make(bounds=(0, 1)).fit(np.zeros((80, 2)), y)


class _WithArray:
    def __init__(self, cells):
        self._cells = cells

    def __array__(self, dtype=None, copy=None):
        return self._cells


class _WithInterface:
    def __init__(self, cells):
        self._cells = cells
        self.__array_interface__ = cells.__array_interface__


def _make_read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


ARRAYS = {
    "read-only": _make_read_only,
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "reversed": lambda X: X[::-1].copy()[::-1],
    "rows in a list": list,
    "gradients": lambda X: torch.tensor(X, requires_grad=True),
    "__array__": _WithArray,
    "__array_interface__": _WithInterface,
    "masked": lambda X: np.ma.masked_array(X, np.zeros(X.shape)),
    "arrow": lambda X: pa.table(dict(zip("ab", X.T, strict=True))),
    "arrow dtypes": lambda X: pd.DataFrame(X, columns=list("ab")).astype("float[pyarrow]"),
    "Float32": lambda X: pd.DataFrame(X, columns=list("ab")).astype("Float32"),
    "polars": lambda X: pytest.importorskip("polars").DataFrame(X, schema=["a", "b"]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_any_library_give_what_numpy_gives(name):
    X = np.random.default_rng(0).random((80, 2), dtype=np.float32)
    given = ARRAYS[name](X)
    made, expected = (make(bounds=(0, 1)).fit(rows).sample(9) for rows in (given, X))
    assert_array_equal(np.asarray(adapt(made).data, dtype=np.float32), expected)
    if not isinstance(given, list):
        assert adapt(made).dtypes == adapt(given).dtypes
    comes_back = hasattr(given, "columns") or isinstance(given, torch.Tensor)
    assert made.__class__ is (type(given) if comes_back else np.ndarray)


def test_masked_cells_are_missing():
    X, hidden = np.random.default_rng(0).random((80, 2)), CODES == 1
    masked = np.ma.masked_array(X, np.column_stack([hidden, hidden]))
    masked.data[hidden] = 0.99
    assert make(bounds=(0, 1), epsilon=math.inf, strict=False).fit(masked)
    assert np.isnan(adapt(masked).data[hidden]).all()
    with pytest.raises(ValueError, match="strict=False they count as absent"):
        make(bounds=(0, 1), strict=True).fit(masked)
    labels = np.ma.masked_array(CODES, CODES == 1)
    assert set(adapt(labels).data.tolist()) == {0, None}
    _, made = make(bounds=(0, 1), classes=[0, 1]).fit(X, labels).sample(40)
    assert set(made) == {0}
    assert made.dtype == CODES.dtype


def test_structured_arrays_are_refused():
    rows = np.rec.fromarrays([CODES, CODES], names="a,b")
    with pytest.raises(ValueError, match=r"give pd\.DataFrame\(X\)"):
        make().fit(rows)


# Indexes.


@pytest.mark.parametrize(
    ("index", "persons", "named"),
    [
        ("job", None, "'job'"),
        (["job", "age"], None, "'job', 'age'"),
        ("job", "column", None),
        ("job", "index", None),
        (None, None, None),
    ],
)
def test_an_index_with_a_name_is_named_as_no_column(recwarn, index, persons, named):
    table = pd.DataFrame({"age": AGES, "x": AGES / 100, "job": AGES % 7})
    table = table if index is None else table.set_index(index)
    given = {"column": table.index.to_series(), "index": table.index}.get(persons)
    DPSWFlowSampler(20.0, schema="private", n_steps=1).fit(table, persons=given)
    found = [str(w.message) for w in recwarn if "is no column" in str(w.message)]
    expected = f"The index of X ({named}) is no column, and so not learned"
    assert [text.partition(":")[0] for text in found] == [expected] * (named is not None)
    assert all(w.filename == __file__ for w in recwarn if "is no column" in str(w.message))


# Rounding to a dtype.

AGES = np.random.default_rng(0).integers(0, 100, 600)
BY_DTYPE = {
    "int64": lambda: pd.Series(AGES),
    "Int16": lambda: pd.Series(AGES, dtype="Int16"),
    "int32[pyarrow]": lambda: pd.Series(AGES, dtype="int32[pyarrow]"),
    "decimal": lambda: pd.Series(
        pd.arrays.ArrowExtensionArray(pa.array(AGES.astype(str)).cast(pa.decimal128(6, 1)))
    ),
    "float32": lambda: pd.Series(AGES, dtype="float32"),
}


@pytest.mark.parametrize(
    "bounds", [(18.45, 79.55), pytest.param((-0.4, 99.6, 1), marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "name",
    [pytest.param(case, marks=() if case == "int64" else pytest.mark.slow) for case in BY_DTYPE],
)
def test_rounding_to_a_dtype_stays_within_the_bounds(name, bounds):
    schema, table = Schema({"x": Number(*bounds)}), pd.DataFrame({"x": BY_DTYPE[name]()})
    made = DPSWFlowSampler(20.0, schema=schema, n_steps=1).fit(table).sample(3000, random_state=0)
    assert made["x"].dtype == table["x"].dtype
    # A bound is what the dtype holds of it.
    lower, upper = np.array(bounds[:2], dtype="float32" if name == "float32" else "float64")
    assert lower <= float(made["x"].min()) < float(made["x"].max()) <= upper
    pd.testing.assert_frame_equal(schema.conform(made), made)


def test_point_masses_beyond_the_bounds_are_rounded_alone():
    x = np.where(AGES < 50, -9, AGES)
    schema = Schema({"x": Number(18.4, 99.5, atoms=[-9])})
    made = DPSWFlowSampler(20.0, schema=schema, n_steps=20).fit(pd.DataFrame({"x": x})).sample(900)
    assert (made["x"] == -9).mean() == pytest.approx(0.5, abs=0.1)
    assert made["x"][made["x"] != -9].min() >= 19


def test_bounds_without_a_value_of_the_dtype_are_refused_for_nothing():
    schema, table = Schema({"age": Number(0.18, 0.8)}), pd.DataFrame({"age": AGES})
    with PrivacyBudget(9.0, 1e-5) as budget, pytest.raises(ValueError, match="'age' has dtype int"):
        DPSWFlowSampler(1.0, schema=schema).fit(table)
    assert budget.spent == 0
