"""Tables in databases: one statement a release, whose sums equal those in memory to the bit."""

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skdpgen import Boolean, Category, Date, DPSWFlowSampler, Number, Ordinal, PrivacyBudget, Schema
from skdpgen.engines import sql
from skdpgen.releases import TwoWayTables

duckdb = pytest.importorskip("duckdb")

SECRET = "Smith-31415"
SCHEMA = Schema(
    {
        "age": Number(0, 100, n_knots=7, missing=True, atoms=[0, -3]),
        "pay": Number(0, 1e5, decimals=2, knots=[0, 10, 500, 5000.5, 1e5], cuts=[7.25], atoms=[0]),
        "log": Number(1, 1e5, n_knots=9, scale="log", atoms=[-999.0]),
        "whole": Number(0, 50, decimals=0, n_knots=11, atoms=[7, 50, 77]),
        "text": Category(["a", "b", "c", "7"], other="else", missing=True),
        "digit": Category([1, 2, 3]),
        "rank": Ordinal(["1", "2", "3"], missing=True),
        "ill": Boolean(),
        "words": Boolean(words=("no", "yes"), missing=True),
        "day": Date("2019-01-01", "2021-12-31", n_knots=12, atoms=["2017-05-05"]),
        "time": Date("1969-06-01", "1970-06-01", unit="second", n_knots=5, missing=True),
    }
)


def make_table(n=2000):
    """Return cells at and beyond all bounds, of point masses, missing ones and bad ones."""
    rng = np.random.default_rng(0)
    pay = np.where(rng.random(n) < 0.3, rng.choice([0, -5, 0.004, 0.005, 1e5, 1e9], n), 0)
    seconds = rng.integers(-(10**8), 10**8, n).astype("m8[s]")
    table = pd.DataFrame(
        {
            "age": rng.choice([np.nan, np.inf, -np.inf, 0, -3, -1, 5e-324, 100, 30.7, 1 / 3], n),
            "pay": np.where(pay == 0, rng.lognormal(5, 3, n).round(2), pay),
            "log": np.where(rng.random(n) < 0.1, -999, rng.lognormal(5, 3, n)),
            "whole": rng.integers(-10, 160, n) / 2,
            "text": rng.choice(["a", "b", " c", "c", "7", " 7", "it's", "", "NA"], n),
            "digit": rng.choice([1, 2, 3, 9], n, p=[0.3, 0.3, 0.3, 0.1]),
            "rank": rng.choice([1.0, 2.0, 3.0, np.nan, 2.5], n),
            "ill": rng.random(n) < 0.3,
            "words": rng.choice(["yes", "no", " yes", "maybe", "NA"], n),
            "day": np.datetime64("2020-01-01", "s") + seconds,
            "time": np.datetime64("1970-01-01", "us") + rng.integers(-(10**13), 10**13, n),
        }
    )
    is_missing = rng.random(n) < 0.05
    return table.assign(**{name: table[name].mask(is_missing) for name in ("text", "time")})


@pytest.fixture(scope="module")
def rows():
    return make_table()


@pytest.fixture
def connection(rows):
    connection = duckdb.connect()
    connection.execute("CREATE TABLE cells AS SELECT * FROM rows")
    return connection


def fit(X, schema=SCHEMA, target=None, **params):
    params = {"epsilon": 3.0, "delta": 1e-6, "n_steps": 1, "random_state": 0} | params
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DPSWFlowSampler(schema=schema, **params).fit(X, target=target)


class Translated:
    """A connection of ADBC, to a database of another dialect; DuckDB computes what it is asked."""

    def __init__(self, connection, dialect):
        self.connection, self.dialect, self.asked = connection, dialect, []

    def cursor(self):
        return self

    def execute(self, statement):
        sqlglot = pytest.importorskip("sqlglot")
        self.asked.append(statement)
        self.held = self.connection.sql(sqlglot.transpile(statement, self.dialect, "duckdb")[0])

    def fetchall(self):
        return self.held.fetchall()

    def fetch_arrow_table(self):
        return self.held.to_arrow_table()


PAIRS = {"release": TwoWayTables(max_order=2)}
slow = pytest.mark.slow


@pytest.mark.catches(
    "engines.sql_codes:_write_levels", "str(block.n_levels) if column.missing else 'NULL'", "'0'"
)
@pytest.mark.catches("engines.warehouse:_write_two_way", "1 - MARGIN", "1")
@pytest.mark.catches("engines.sql_codes:_write_knots", "points[[0, -1]]", "points[[0, 0]]")
@pytest.mark.catches("engines.sql_codes:_list_atoms", "'' if middle % 2 else '='", "'='")
@pytest.mark.catches("engines.sql_codes:_write_levels", "' ' + keys", "keys")
@pytest.mark.parametrize(
    ("schema", "target", "params"),
    [
        (SCHEMA.select(["pay", "whole", "text", "digit", "ill"]), "ill", PAIRS),
        pytest.param(SCHEMA, None, {}, marks=slow),
        pytest.param(SCHEMA.replace({"text": Category(["a", "b", "c"])}), "text", {}, marks=slow),
        # Strata of halves.
        pytest.param(SCHEMA, "pay", {}, marks=slow),
    ],
)
def test_sums_are_those_of_rows_in_memory(rows, connection, schema, target, params):
    names = list(schema)
    connection.execute(f"CREATE VIEW part AS SELECT {', '.join(names)} FROM cells")
    expected = fit(rows[names], schema, target, **params)
    found = fit(sql(connection, "part"), schema, target, **params)
    assert found.privacy_.digest == expected.privacy_.digest
    assert (found.privacy_.engine, found.n_samples_) == ("duckdb", len(rows))
    assert any("query log" in text for text in found.privacy_.assumptions)


@slow
def test_adult_is_the_same(monkeypatch):
    path = Path(os.environ.get("SKDPGEN_DATA", ""), "adult.csv.gz")
    if not path.is_file():
        pytest.skip("needs the data of the benchmarks")
    adult = pd.read_csv(path, skipinitialspace=True).astype({"age": "int32"})
    connection = duckdb.connect()
    connection.execute("CREATE TABLE adult AS SELECT * FROM adult")
    schema = Schema.from_public(adult, n_knots=16)
    target = adult.columns[-1]
    expected, found = (fit(X, schema, target) for X in (adult, sql(connection, "adult")))
    assert found.privacy_.digest == expected.privacy_.digest
    assert len(found.privacy_.releases) == 3


@slow
@pytest.mark.parametrize("dialect", ["postgres", "bigquery", "snowflake"])
def test_statements_of_other_dialects_say_the_same(rows, connection, dialect):
    pytest.importorskip("sqlglot")
    translated = Translated(connection, dialect)
    found = fit(sql(translated, "cells", dialect), target="ill")
    assert found.privacy_.digest == fit(rows, target="ill").privacy_.digest
    written = {
        "postgres": ("DOUBLE PRECISION", "NOT MATERIALIZED"),
        "bigquery": ("FLOAT64", "SUM("),
        "snowflake": ("BIGINT", "SUM("),
    }[dialect]
    assert all(word in translated.asked[-1] for word in written)
    # The types and the number of rows; then one statement a release, which reads one state.
    assert len(translated.asked) == 2 + len(found.privacy_.releases)


@pytest.mark.catches("engines.warehouse:Warehouse.add_products", "rows[0, 1] != self.n_units", "0")
def test_rows_that_come_between_are_refused(connection):
    connection.execute("CREATE TABLE one AS SELECT ill FROM cells")
    table = sql(connection, "one")
    assert table.n_units == 2000
    connection.execute("INSERT INTO one VALUES (TRUE)")
    with pytest.raises(RuntimeError, match="another number of rows"):
        fit(table, Schema({"ill": Boolean()}))


def test_errors_of_the_database_are_withheld(connection):
    connection.execute(f"CREATE VIEW bad AS SELECT '{SECRET}' || text AS t FROM cells")
    connection.execute("CREATE VIEW worse AS SELECT CAST(t AS BOOLEAN) AS ill FROM bad")
    with pytest.raises(RuntimeError, match="withheld") as caught:
        fit(sql(connection, "worse"), Schema({"ill": Boolean()}))
    assert SECRET not in str(caught.value)


@pytest.mark.catches(
    "engines.warehouse:Warehouse.check_fit", "c.is_open or c.takes_knots", "c.is_open"
)
@pytest.mark.parametrize(
    ("message", "select", "schema", "params"),
    [
        ("infers nothing: declare \\['age'\\]", "age", {"age": Number(0, 100)}, {}),
        ("infers nothing: declare \\['text'\\]", "text", {"text": Category()}, {}),
        ("leave out", "ill", {"ill": Boolean()}, {"strict": True}),
        ("decimal128", "age::DECIMAL(30, 2) AS age", {"age": Number(0, 9, n_knots=3)}, {}),
        ("time zone|without zone", "day::TIMESTAMPTZ AS day", {"day": SCHEMA["day"]}, {}),
        ("view of one row", "ill, digit", {"ill": Boolean()}, {"persons": "digit"}),
    ],
)
def test_what_sql_cannot_do_is_refused_for_nothing(connection, message, select, schema, params):
    connection.execute(f"CREATE VIEW part AS SELECT {select} FROM cells")
    persons = {"persons": params.pop("persons")} if "persons" in params else {}
    sampler = DPSWFlowSampler(1.0, 1e-6, schema=Schema(schema), **params)
    with PrivacyBudget(epsilon=1.0, delta=1e-6) as budget:
        with pytest.raises(ValueError, match=message):
            sampler.fit(sql(connection, "part"), **persons)
        assert budget.spent == 0
