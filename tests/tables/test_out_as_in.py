"""Out as in: samples have the dtypes, levels and words of the table, in any container and file."""

import csv
import re

import hypothesis
import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

from skdpgen import Boolean, Category, Date, DPSWFlowSampler, Number, Ordinal, Schema
from skdpgen.__main__ import main

pa = pytest.importorskip("pyarrow")

N = 200
rng = np.random.default_rng(0)
whole, fraction, is_true = (
    rng.integers(0, 90, N),
    rng.uniform(0, 90, N).round(1),
    rng.random(N) < 0.4,
)
seconds = np.datetime64("2021-01-01T00:00:00") + rng.integers(0, 86_400 * 90, N)
days = seconds.astype("M8[D]").astype("M8[s]")
LEVELS = ["low", "middle", "high"]
texts = rng.choice(LEVELS, N)
number, decimal, date = Number(0, 90, 0), Number(0, 90, 1), Date("2021-01-01", "2021-12-31")
time, booleans = Date("2021-01-01", "2021-12-31", "second"), Category(["False", "True"])
# Dtypes, declared types, cells, and whether a value may come back, or all that do.
FAMILIES = {
    "integers": (
        ["int8", "uint8", "int32", "int64", "uint64", "Int8", "Int64", "uint16[pyarrow]"],
        [number, Category([*map(str, range(90))])],
        whole,
        lambda x: -20 <= x <= 110 and x == int(x),
    ),
    "fractions": (
        ["float32", "float64", "Float32", "Float64", "float64[pyarrow]"],
        [decimal],
        fraction,
        lambda x: -20 <= x <= 110 and np.float32(x) == np.float32(round(float(x), 1)),
    ),
    "booleans": (
        ["bool", "boolean", "bool[pyarrow]", "int8", "float64"],
        [Boolean(), booleans, Ordinal(["False", "True"]), Category()],
        is_true,
        lambda x: x in (0, 1),
    ),
    "texts": (
        ["str", "object", "string", "string[pyarrow]", pd.CategoricalDtype(LEVELS, True)],
        [Category(LEVELS), Ordinal(LEVELS)],
        texts,
        lambda x: x in LEVELS,
    ),
    "words": (
        ["str", "string"],
        [Boolean(words=("no", "yes"))],
        np.where(is_true, "yes", "no"),
        {"yes", "no"},
    ),
    "blanks": (["str", "string", "string[pyarrow]"], [None], np.where(is_true, "", "x"), {"", "x"}),
    "written": (
        ["str", "string", "string[pyarrow]", pd.ArrowDtype(pa.string())],
        [None],
        [f"${x:,.2f}" for x in fraction * 99.9],
        lambda x: re.fullmatch(r"-?\$(\d?\d,)?\d{1,3}\.\d\d", x),
    ),
    "moments": (
        ["str", "string"],
        [None],
        [f"{x}Z" for x in seconds],
        lambda x: re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", x),
    ),
    "days": (
        ["M8[s]", "M8[ns]", pd.ArrowDtype(pa.date32())],
        [date],
        days,
        lambda x: pd.Timestamp(x) == pd.Timestamp(x).normalize(),
    ),
    "times": (
        ["M8[ms]", "M8[us]", "datetime64[ns, Europe/Vienna]", pd.ArrowDtype(pa.timestamp("us"))],
        [time],
        seconds,
        lambda x: pd.Timestamp(x).microsecond == 0,
    ),
}
CONTAINERS = {
    "pandas": lambda frame: frame,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "polars": lambda frame: pytest.importorskip("polars").from_pandas(frame),
    "duckdb": lambda frame: pytest.importorskip("duckdb").from_arrow(
        pa.Table.from_pandas(frame, preserve_index=False)
    ),
}


@st.composite
def columns(draw):
    """Return a family, a column of it, and a declared type or None."""
    family = draw(st.sampled_from(sorted(FAMILIES)))
    dtypes, types, cells, _ = FAMILIES[family]
    dtype, declared = draw(st.sampled_from(dtypes)), draw(st.sampled_from([*types, None]))
    if family == "booleans" and dtype in ("int8", "float64"):
        declared = Boolean()
    if isinstance(dtype, pd.CategoricalDtype) and isinstance(declared, Category):
        declared = Ordinal(LEVELS)  # a declared category has no order
    column = pd.Series(cells)
    if getattr(pd.api.types.pandas_dtype(dtype), "tz", None) is not None:
        column = column.dt.tz_localize("Europe/Vienna")
        declared = declared and Date("2021-01-01", "2021-12-31", "second", zone="Europe/Vienna")
    return family, column.astype(dtype), declared


def check(drawn, container):
    frame = pd.DataFrame({f"{i}": column for i, (_, column, _) in enumerate(drawn)})
    declared = {f"{i}": c for i, (_, _, c) in enumerate(drawn) if c is not None}
    schema = Schema.from_dtypes(frame.dtypes, declared=declared)
    table = CONTAINERS[container](frame)
    sampler = DPSWFlowSampler(1000.0, 1e-6, schema=schema, n_steps=1, random_state=0).fit(table)
    many, few = sampler.sample(200), sampler.sample(2)
    # What an engine holds comes back as Arrow's.
    assert type(many) is (pa.Table if container == "duckdb" else type(table))
    if container != "pandas":
        assert few.schema == many.schema
        if container == "pyarrow":
            levels = [
                pa.types.is_dictionary(f.type) or pa.types.is_large_string(f.type)
                for f in table.schema
            ]
            kept = [f for f, is_level in zip(table.schema, levels, strict=True) if not is_level]
            assert [many.schema.field(f.name).type for f in kept] == [f.type for f in kept]
        many = many.to_pandas()
    for i, (family, column, declared_type) in enumerate(drawn):
        made, is_value = many[f"{i}"].dropna(), FAMILIES[family][3]
        if container == "pandas":
            is_parsed = declared_type is None and str(column.dtype) == "object"
            assert is_parsed or made.dtype == column.dtype == few[f"{i}"].dtype, (
                family,
                declared_type,
            )
        if isinstance(is_value, set):
            assert set(made) == is_value
        else:
            assert all(map(is_value, made.tolist())), (family, column.dtype, declared_type)


@pytest.mark.parametrize(
    "n_examples", [5, pytest.param(60, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_samples_have_the_dtypes_and_the_values_of_the_table(n_examples):
    tables = st.lists(columns(), min_size=3, max_size=6), st.sampled_from(sorted(CONTAINERS))
    options = {"max_examples": n_examples, "deadline": None, "derandomize": True, "database": None}
    hypothesis.settings(**options)(hypothesis.given(*tables)(check))()


DIALECTS = [
    {"sep": ";", "decimal": ",", "thousands": "."},
    {"sep": "\t", "decimal": ".", "thousands": ","},
    {"sep": "|", "encoding": "latin-1", "decimal": ",", "date_format": "%d.%m.%Y"},
    {"sep": ",", "encoding": "utf-16", "date_format": "%m/%d/%Y", "na_values": "fixed=-9,NA"},
]


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("words", [("no", "yes"), ("FALSE", "TRUE"), ("0", "1"), ("N", "Y")])
def test_a_csv_file_has_the_form_of_the_table(dialect, words, tmp_path):
    decimal, thousands = dialect.get("decimal", "."), dialect.get("thousands")
    absent = dialect.get("na_values", "=NA").split("=")[1].split(",")[0]
    date_format = dialect.get("date_format", "%Y-%m-%d")
    signs = str.maketrans({",": thousands or "", ".": decimal})
    table = pd.DataFrame(
        {
            "amount": [f"{x:,.1f}".translate(signs) for x in fraction * 37.3],
            "flag": np.where(is_true, *reversed(words)),
            "code": [f"{x:05d}" for x in whole % 7],
            "day": pd.Series(days).dt.strftime(date_format),
            "fixed": np.where(
                whole % 4,
                pd.Series(fraction).map("£ {:.2f}".format).str.replace(".", decimal),
                absent,
            ),
            "whole": [f"+{x}" if x % 3 else f"({x})" for x in whole],
            "share": [f"{x * 37:.2E} %".replace(".", decimal) for x in fraction],
        }
    )
    form = {"sep": dialect["sep"], "encoding": dialect.get("encoding", "utf-8")}
    quoting = csv.QUOTE_ALL if words[0] == "0" else csv.QUOTE_MINIMAL
    table.to_csv(tmp_path / "t.csv", index=False, quoting=quoting, **form)
    Schema({"flag": Boolean()}).to_json(tmp_path / "schema.json")
    options = [f"--{name.replace('_', '-')}={value}" for name, value in dialect.items()]
    asked = ["synthesize", str(tmp_path / "t.csv"), "--epsilon", "200", "--delta", "1e-6", *options]
    asked += ["--schema", str(tmp_path / "schema.json"), "--anyway", "--quiet", "--seed", "1"]
    assert main([*asked, "-o", str(tmp_path / "made")]) == 0
    made = pd.read_csv(tmp_path / "made/synthetic.csv", dtype=str, keep_default_na=False, **form)
    assert list(made) == list(table)
    assert set(made["flag"]) == set(words)
    assert set(made["code"]) <= set(table["code"])
    assert pd.to_datetime(made["day"], format=date_format).notna().all()
    first = (tmp_path / "made/synthetic.csv").read_text(encoding=form["encoding"])
    assert first.startswith('"') is (quoting == csv.QUOTE_ALL)
    assert made["fixed"].str.fullmatch(rf"£ \d+\{decimal}\d0|{absent}").all()
    assert made["whole"].str.fullmatch(r"[+]\d+|[(]\d+[)]").all()
    assert made["share"].str.fullmatch(rf"\d\{decimal}\d+E[+]\d\d %").all()
    read = pd.read_csv(
        tmp_path / "made/synthetic.csv", decimal=decimal, thousands=thousands, **form
    )
    assert read["amount"].dtype == np.float64
    if thousands:
        assert made["amount"].str.contains(thousands, regex=False).mean() > 0.5


@pytest.mark.slow
def test_a_parquet_file_has_the_types_of_the_table(tmp_path):
    table = pa.table(
        {
            "int8": pa.array(whole, pa.int8()),
            "decimal": pa.array(fraction.round(1).astype(str)).cast(pa.decimal128(8, 2)),
            "text": pa.array(texts),
            "number": pa.array(whole.astype(str), pa.large_string()),
            "ordered": pa.DictionaryArray.from_arrays(
                pa.array(whole % 3, pa.int16()), pa.array(LEVELS), ordered=True
            ),
            "day": pa.array(days.astype("M8[D]")),
            "moment": pa.array(seconds).cast(pa.timestamp("us", "Europe/Vienna")),
            "flag": pa.array(is_true),
        }
    )
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(table, tmp_path / "t.parquet")
    asked = ["synthesize", str(tmp_path / "t.parquet"), "--epsilon", "200", "--delta", "1e-6"]
    assert main([*asked, "--quiet", "--anyway", "--seed", "1", "-o", str(tmp_path / "made")]) == 0
    assert pq.read_schema(tmp_path / "made/synthetic.parquet").equals(table.schema)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["xlsx", "jsonl"])
def test_a_sheet_has_the_cells_of_the_table(suffix, tmp_path):
    """A number that is a text stays one, beside numbers, dates and missing cells."""
    cells = {
        "number": [None if x % 3 == 0 else x for x in whole.tolist()],
        "text": whole.astype(str).tolist(),
        "date": days.astype("M8[D]").astype(str).tolist(),
        "day": pd.Series(days),
    }
    table, lines = pd.DataFrame(cells), {"orient": "records", "lines": True}
    if suffix == "xlsx":
        table.to_excel(tmp_path / "t.xlsx", index=False)
    else:
        table.to_json(tmp_path / "t.jsonl", date_format="iso", **lines)
    asked = ["synthesize", str(tmp_path / f"t.{suffix}"), "--epsilon", "200", "--delta", "1e-6"]
    assert main([*asked, "--quiet", "--anyway", "--seed", "1", "-o", str(tmp_path / "made")]) == 0
    made = tmp_path / f"made/synthetic.{suffix}"
    if suffix == "xlsx":
        made = pd.read_excel(made, dtype=object).convert_dtypes()
    else:
        made = pd.read_json(made, dtype=False, convert_dates=False, **lines).convert_dtypes()
    assert [str(dtype) for dtype in made.dtypes[:3]] == ["Int64", "string", "string"]
    assert (pd.to_datetime(made["day"]).dt.year == 2021).all()
    assert (made["day"].dtype == "string") is (suffix == "jsonl")


@pytest.mark.slow
def test_a_data_package_is_valid_for_others(tmp_path):
    validate = pytest.importorskip("frictionless").validate
    persons = pd.DataFrame(
        {
            "id": range(N),
            "born": pd.Series(days).dt.strftime("%Y-%m-%d"),
            "paid": np.where(whole % 5, [f"{x:.2f}".replace(".", ",") for x in fraction], "NA"),
        }
    )
    visits = pd.DataFrame(
        {
            "id": np.arange(N) // 2,
            "seen": [f"{x}Z" for x in seconds],
            "cost": [f"{x:.1f} €".replace(".", ",") for x in fraction],
        }
    )
    asked = ["histories", "--key", "id", "--epsilon", "200", "--delta", "1e-6", "--anyway"]
    for name, table in {"persons": persons, "visits": visits}.items():
        table.to_csv(tmp_path / f"{name}.csv", sep=";", index=False)
        asked += ["--table", f"{name}={tmp_path / name}.csv"]
    assert main([*asked, "--quiet", "--seed", "1", "-o", str(tmp_path / "made")]) == 0
    assert validate(str(tmp_path / "made/datapackage.json")).valid
