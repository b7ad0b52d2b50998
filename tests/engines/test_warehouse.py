"""Tables in databases: one statement a release, whose sums equal those in memory to the bit."""

import itertools
import os
import re
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from skdpgen import Boolean, Category, Date, DPSWFlowSampler, Number, Ordinal, PrivacyBudget, Schema
from skdpgen.engines import sql, warehouse
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
@pytest.mark.catches(
    "engines.sql_codes:_find_rounded",
    "np.round(near * unit) == step",
    "abs(near * unit - step) <= 0.5",
)
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
    assert found.release_.published.degrade(1.0).certificate.engine == "duckdb"


def test_wide_tables_are_read_in_few_sets_of_columns():
    tables = [(c,) for c in range(60)] + [*itertools.combinations(range(60), 2)]
    start = time.process_time()
    sets = list(warehouse._join_tables(tables, [], [16] * 60))
    assert time.process_time() - start < 2
    assert sorted(table for _, own in sets for table in own) == sorted(tables)
    # No column joins a set of which it has no table.
    assert all({*joint} == {c for table in own for c in table} for joint, own in sets)


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
    # One statement a release reads one state. Types are asked for before each, as at first; all
    # releases are rehearsed without rows.
    assert len(translated.asked) == 2 + 2 * 2 * len(found.privacy_.releases)


@pytest.mark.catches("engines.warehouse:Warehouse.add_products", "rows[0, 1] != self.n_units", "0")
@pytest.mark.catches("engines.warehouse:Warehouse.check_fit", "copy.copy(self)", "self")
def test_rows_that_come_between_are_refused(connection, monkeypatch):
    connection.execute("CREATE TABLE one AS SELECT ill FROM cells")
    table, schema, map_parts = (
        sql(connection, "one"),
        Schema({"ill": Boolean()}),
        sql.map_parts,
    )
    assert table.n_units == 2000
    connection.execute("INSERT INTO one VALUES (TRUE)")
    # A fit reads the table as it is, and leaves no state in it.
    assert fit(table, schema).n_samples_ == 2001
    assert not hasattr(table, "_codes")

    def insert(table, read):
        parts = map_parts(table, read)
        connection.execute("INSERT INTO one VALUES (TRUE)")
        return parts

    monkeypatch.setattr(sql, "map_parts", insert)
    with pytest.raises(RuntimeError, match="another number of rows"):
        fit(table, schema)


@pytest.mark.catches("engines.warehouse:Warehouse.add_products", "self._read_types()", "self.types")
@pytest.mark.parametrize("change", ["ADD COLUMN more INTEGER", "ALTER ill TYPE VARCHAR"])
def test_columns_that_change_are_refused_for_nothing(connection, change):
    connection.execute("CREATE TABLE one AS SELECT ill FROM cells")
    table, schema = sql(connection, "one"), Schema({"ill": Boolean()})
    assert list(table.head) == ["ill"]
    connection.execute(f"ALTER TABLE one {change}")
    with PrivacyBudget(epsilon=9.0, delta=1e-5) as budget:
        with pytest.raises(ValueError, match="columns changed: give sql"):
            fit(table, schema, random_state=None)
        assert budget.spent == 0


@pytest.mark.parametrize("where", ["", " WHERE CAST(t AS BOOLEAN)"])
def test_errors_of_the_database_are_withheld(connection, where):
    connection.execute(f"CREATE VIEW bad AS SELECT '{SECRET}' || text AS t FROM cells")
    connection.execute(f"CREATE VIEW worse AS SELECT CAST(t AS BOOLEAN) AS ill FROM bad{where}")
    with pytest.raises(RuntimeError, match="withheld") as caught:
        fit(sql(connection, "worse"), Schema({"ill": Boolean()}))
    assert SECRET not in str(caught.value)


@pytest.mark.catches(
    "engines.warehouse:Warehouse._fetch",
    "self._connection.sql(statement)",
    "self._connection.execute(statement)",
)
@pytest.mark.catches("engines.warehouse:Warehouse._fetch", "_LOCK", "threading.Lock()")
def test_results_are_those_of_own_statements(connection):
    locked = []

    class Busy:
        """A connection that another fit uses before a result is read."""

        def sql(self, statement):
            locked.append(warehouse._LOCK.locked())
            return connection.sql(statement)

        def execute(self, statement):
            return connection.execute("SELECT 0")

    assert sql(Busy(), "cells").n_units == 2000
    assert locked == [True]


@pytest.mark.catches("engines.sql_codes:_write_units", "start - 1", "start")
@pytest.mark.parametrize("unit", ["D", "s", "ms", "us"])
def test_far_dates_do_not_fail(connection, unit):
    is_date = unit == "D"
    most, whole = (2**31 - 2, pa.int32()) if is_date else (2**63 - 2, pa.int64())
    held = pa.date32() if is_date else pa.timestamp(unit)
    minutes = np.arange("1999-11-30", "2000-07-01", 67, dtype="M8[m]")
    days = minutes.astype(f"M8[{unit}]").astype(int).tolist()
    hours = {"unit": "hour", "n_knots": 4, "atoms": ["1999-12-24 05:00"]}
    schema = Schema({"day": Date("2000-01-01 07:00", "2000-06-01 07:00", **hours)})
    near, far = (
        pa.table({"day": pa.array([*days, *ends], whole).cast(held)})
        for ends in ((days[0], days[-1]), (-most, most))
    )
    connection.from_arrow(far).create("far")
    found = fit(sql(connection, "far"), schema)
    assert found.privacy_.digest == fit(near, schema).privacy_.digest


@pytest.mark.catches("engines.sql_codes:_write_knots", "2.0 ** -55", "0.0")
@pytest.mark.parametrize("decimals", [None, 2])
def test_no_cell_makes_doubles_underflow_or_overflow(connection, monkeypatch, decimals):
    """Some databases fail where they do, and so would show that a cell is there."""
    cells = [5e-324, -5e-324, 1e-300, 1e-20, 1e308, -1e308, 89.99, 95.0]
    rows = pd.DataFrame({"a": cells})
    schema = Schema({"a": Number(0, 90, decimals=decimals, n_knots=4, atoms=[20, 110])})
    made, write_codes = [], warehouse.write_codes
    monkeypatch.setattr(
        warehouse, "write_codes", lambda *args: made.append(write_codes(*args)) or made[-1]
    )
    connection.execute("CREATE TABLE few AS SELECT * FROM rows")
    assert fit(sql(connection, "few"), schema).privacy_.digest == fit(rows, schema).privacy_.digest
    ((column,),) = made
    codes = f"SELECT {column.code} FROM (SELECT {column.cell} AS x0 FROM few)"
    assert all(code == 0 or code > 2**-56 for (code,) in connection.sql(codes).fetchall())
    assert all("*" not in case for case in re.findall("WHEN (.*?) THEN", column.code))


@pytest.mark.catches("base:BaseGenerator._fit", "dataset.database is not None", "False")
@pytest.mark.catches(
    "planning.rehearsal:_rehearse", "dataset.database.without_rows()", "dataset.database"
)
@pytest.mark.parametrize(("word", "n_asked"), [("WITH", 1), ("TRUNC(", 2)])
def test_statements_fail_before_they_are_paid_for(connection, word, n_asked):
    asked = []

    class Unable(Translated):
        def execute(self, statement):
            asked.extend(["WITH"] * statement.startswith("WITH"))
            if word in statement:
                raise NotImplementedError(statement)
            super().execute(statement)

    schema = Schema(
        {
            "text": Category(["a NOT MATERIALIZED (", "b"], other="b"),
            **SCHEMA.select(["digit", "ill"]),
        }
    )
    connection.execute("CREATE VIEW part AS SELECT text, digit, ill FROM cells")
    unable, able = (made(connection, "bigquery") for made in (Unable, Translated))
    with PrivacyBudget(epsilon=3.0, delta=1e-6) as budget:
        with pytest.raises(RuntimeError, match="NotImplementedError"):
            fit(sql(unable, "part", "bigquery"), schema)
        assert (budget.spent, len(asked)) == (0, n_asked)
    fit(sql(able, "part", "bigquery"), schema)
    sums = ["LIMIT 0" in statement for statement in able.asked if statement.startswith("WITH")]
    assert sums == [True] * 3 + [False] * 3
    assert "'a NOT MATERIALIZED ('" in able.asked[-1]
    assert "AS NOT MATERIALIZED" not in able.asked[-1]


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
