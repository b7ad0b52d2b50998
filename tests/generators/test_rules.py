"""Generators of tables whose rows obey rules."""

import math

import numpy as np
import pandas as pd
import pytest

from skdpgen import (
    Category,
    Date,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    Identifier,
    Number,
    Schema,
)
from skdpgen.privacy import preview
from skdpgen.tables import Combinations, Derived, Implies, Ordered, Unique

SCHEMA = Schema(
    {
        "id": Identifier(),
        "insured": Category(["yes", "no"]),
        "premium": Number(0, 500, decimals=0, n_knots=5, missing=True),
        "admitted": Date("2020-01-01", "2020-12-31", n_knots=6),
        "discharged": Date("2020-01-01", "2021-01-31", n_knots=6),
        "nights": Number(1, 9, decimals=0),
        "rate": Number(50, 150, decimals=0, n_knots=4),
        "total": Number(decimals=0),
        "ward": Category(["1", "2", "3"]),
        "bed": Number(1, 400, decimals=0, n_knots=4),
        "city": Category(["Wien", "Graz", "Bonn"]),
        "country": Category(["AT", "DE"]),
    },
    [
        Implies({"insured": "no"}, {"premium": None}),
        Ordered("admitted", "discharged"),
        Derived("total", "nights * rate"),
        Unique(["ward", "bed"]),
        Combinations(["city", "country"], [["Wien", "AT"], ["Graz", "AT"], ["Bonn", "DE"]]),
    ],
)


def make_table(n=500, seed=0):
    rng = np.random.RandomState(seed)
    insured, city = rng.rand(n) < 0.6, rng.choice(["Wien", "Graz", "Bonn"], n, p=[0.6, 0.3, 0.1])
    nights, rate = rng.randint(1, 10, n), rng.randint(50, 151, n)
    admitted = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.randint(366, size=n), "D")
    return pd.DataFrame(
        {
            "id": rng.permutation(n),
            "insured": np.where(insured, "yes", "no"),
            "premium": np.where(insured, rng.randint(100, 400, n), np.nan),
            "admitted": admitted,
            "discharged": admitted + pd.to_timedelta(nights, "D"),
            "nights": nights,
            "rate": rate,
            "total": nights * rate,
            "ward": rng.choice(["1", "2", "3"], n),
            "bed": rng.permutation(n) % 400 + 1,
            "city": city,
            "country": np.where(city == "Bonn", "DE", "AT"),
        }
    )


def fit(cls=DPSWFlowSampler, epsilon=math.inf, table=None, **params):
    params = {"schema": SCHEMA, "random_state": 0, "n_steps": 20} | params
    table = make_table() if table is None else table
    return cls(epsilon=epsilon, delta=1e-5, **params).fit(table, target="city")


@pytest.fixture(scope="module")
def fitted():
    return fit()


def test_all_sampled_rows_obey(fitted):
    rows = fitted.sample()
    assert len(rows) == 500
    assert (SCHEMA.share_obeying(rows) == 1).all()
    assert (rows.dtypes == make_table().dtypes).all()
    assert fitted.schema_.rules == SCHEMA.rules
    assert list(fitted.schema_report_.index) == [*SCHEMA, "discharged - admitted"]
    stays = (rows["discharged"] - rows["admitted"]).dt.days
    assert abs(stays.median() - 5) <= 1
    assert pd.isna(fitted.schema_report_.loc["total", "n_levels"])
    # Values that rules leave open follow the data.
    assert abs((rows["city"] == "Wien").mean() - 0.6) < 0.15


def test_rows_that_are_asked_for_obey_too(fitted):
    rows = fitted.sample(80, where={"insured": "no", "nights": (3, 5), "country": "AT"})
    assert len(rows) == 80
    assert (SCHEMA.share_obeying(rows) == 1).all()
    assert rows["premium"].isna().all()
    assert rows["nights"].between(3, 5).all()
    wanted = ["Bonn", "Wien"] * 30
    rows = fitted.sample(y=wanted, where={"ward": "2"})
    assert (SCHEMA.share_obeying(rows) == 1).all()
    assert rows["city"].tolist() == wanted
    assert rows["id"].tolist() == list(range(1, 61))
    with pytest.raises(ValueError, match="obey Implies"):
        fitted.sample(9, where={"insured": "no", "premium": (0, 500)})
    with pytest.raises(ValueError, match="1300 rows: there are 1200 different values"):
        fitted.sample(1300)


def test_a_derived_column_is_not_read_and_costs_nothing():
    fitted, again = (fit(table=t, n_steps=2) for t in (None, make_table().assign(total=-1)))
    pd.testing.assert_frame_equal(again.sample(50), fitted.sample(50))
    without, learnt = SCHEMA.drop("total"), SCHEMA.drop("total").replace({"total": Number(0, 9)})
    sigma = [
        preview(DPSlicedWassersteinGenerator(schema=schema, delta=1e-5), 500, 12).epsilon
        for schema in (SCHEMA, without, learnt)
    ]
    assert sigma[0] == sigma[1]
    with pytest.raises(ValueError, match="'total' is an identifier or derived"):
        fitted.__sklearn_clone__().fit(make_table(), target="total")


def test_private_rows_that_break_rules_are_read_like_others():
    table = make_table()
    table.loc[:50, "premium"] = 200
    table["discharged"] = pd.Timestamp("2020-01-01")
    with_rules, without = (
        DPSWFlowSampler(epsilon=1, delta=1e-5, schema=schema, random_state=0, n_steps=5).fit(table)
        for schema in (SCHEMA, Schema({n: k for n, k in SCHEMA.items()}, SCHEMA.rules[1:3]))
    )
    assert with_rules.privacy_ == without.privacy_
    # Up to cells that rules leave out, which are put to 0.
    pd.testing.assert_frame_equal(with_rules.schema_report_, without.schema_report_, atol=0.03)


def test_rules_hold_where_columns_are_found():
    table = make_table().drop(columns=["bed", "ward"])
    declared = SCHEMA.drop(["bed", "ward"])
    opened = declared.replace(
        {"rate": Number(decimals=0), "admitted": Date(), "premium": Number(missing=True)}
    )
    sampler = fit_open(Schema.from_dtypes(table.dtypes, declared=opened), table)
    rows = sampler.sample()
    # The difference is found, too.
    assert sampler.schema_["discharged - admitted"].upper <= 16
    assert sampler.schema_.replace({"discharged - admitted": None}).rules == declared.rules
    assert (sampler.schema_.share_obeying(rows) == 1).all()


def fit_open(schema, table):
    return DPSWFlowSampler(epsilon=50, delta=1e-5, schema=schema, random_state=0, n_steps=20).fit(
        table
    )


def test_the_score_leaves_derived_columns_out(fitted):
    assert -1 < fitted.score(make_table(50, seed=1)) < 0
