"""Tables in databases: one statement a release, whose sums equal those in memory to the bit."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skdpgen import Boolean, Category, Date, DPSWFlowSampler, Number, Ordinal, PrivacyBudget, Schema
from skdpgen.engines import sql
from skdpgen.mechanisms import two_way
from skdpgen.releases import TwoWayTables
from skdpgen.tables import Ordered

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
            "whole": rng.integers(-5, 80, n),
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


@pytest.mark.catches("engines.sql_sums:write_sum", "f'cells WHERE {present}'", "'cells'")
@pytest.mark.catches("engines.sql_sums:_write_two_way", "1 - MARGIN", "1")
@pytest.mark.catches("engines.sql_codes:_write_knots", "points[[0, -1]]", "points[[0, 0]]")
@pytest.mark.catches(
    "engines.sql_codes:_write_knots", "'<=' if i == len(points) - 2 else '<'", "'<='"
)
@pytest.mark.catches("engines.sql_codes:_list_atoms", "('<>', (block", "('><', (block")
@pytest.mark.parametrize(
    ("target", "params"),
    [
        ("ill", PAIRS),
        pytest.param(None, {}, marks=pytest.mark.slow),
        pytest.param("text", {}, marks=pytest.mark.slow),
        # Strata of halves.
        pytest.param("pay", {}, marks=pytest.mark.slow),
    ],
)
def test_sums_are_those_of_rows_in_memory(rows, connection, target, params):
    schema = SCHEMA
    if target == "text":
        schema = SCHEMA.replace({"text": Category(["a", "b", "c"])})
    expected = fit(rows, schema, target, **params)
    found = fit(sql(connection, "cells"), schema, target, **params)
    assert found.privacy_.digest == expected.privacy_.digest
    assert (found.privacy_.engine, found.n_samples_) == ("duckdb", len(rows))
    assert any("query log" in text for text in found.privacy_.assumptions)
'''
'''
