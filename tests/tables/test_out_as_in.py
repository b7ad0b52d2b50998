"""Out as in: samples have the dtypes, levels and words of the table, in any container and file."""

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
# Dtypes, declared types, cells, and whether a value may come back.
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
        None,
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
}


@st.composite
def columns(draw):
    """Return a family, a column of it, and a declared type or None."""
    family = draw(st.sampled_from(sorted(FAMILIES)))
    dtypes, types, cells, _ = FAMILIES[family]
    dtype, declared = draw(st.sampled_from(dtypes)), draw(st.sampled_from([*types, None]))
    if family == "booleans" and dtype in ("int8", "float64"):
        declared = Boolean()
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
    assert type(many) is type(table)
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
        if is_value is None:
            assert set(made) <= {"yes", "no"}
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
    {"sep": ",", "encoding": "utf-16", "date_format": "%m/%d/%Y"},
]


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("words", [("no", "yes"), ("FALSE", "TRUE"), ("0", "1"), ("N", "Y")])
def test_a_csv_file_has_the_form_of_the_table(dialect, words, tmp_path):
    decimal, thousands = dialect.get("decimal", "."), dialect.get("thousands")
    date_format = dialect.get("date_format", "%Y-%m-%d")
    signs = str.maketrans({",": thousands or "", ".": decimal})
    table = pd.DataFrame(
        {
            "amount": [f"{x:,.1f}".translate(signs) for x in fraction * 37.3],
            "flag": np.where(is_true, *reversed(words)),
            "code": [f"{x:05d}" for x in whole % 7],
            "day": pd.Series(days).dt.strftime(date_format),
        }
    )
    form = {"sep": dialect["sep"], "encoding": dialect.get("encoding", "utf-8")}
    table.to_csv(tmp_path / "t.csv", index=False, **form)
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
    read = pd.read_csv(
        tmp_path / "made/synthetic.csv", decimal=decimal, thousands=thousands, **form
    )
    assert read["amount"].dtype == np.float64
    if thousands:
        assert made["amount"].str.contains(thousands, regex=False).mean() > 0.5
