"""Rules within and across the tables of histories, and dates relative to the order of rows."""

import datetime
import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import skdpgen
from skdpgen import Category, Date, Number, Schema
from skdpgen.generators import DPHistorySampler
from skdpgen.histories.orders import add_days, add_gaps
from skdpgen.histories.schema import Elapsed, JoinedSchema
from skdpgen.tables import Combinations, Derived, Implies, Ordered, Unique
from skdpgen.tables.rules.formulas import Formula

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpgen.privacy.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::skdpgen.privacy.FitQualityWarning"),
]
QUICK = {"random_state": 0, "device": "cpu", "n_particles": 200, "max_rows_per_person": 4}
N = 800


def days(numbers, first="1990-01-01"):
    return pd.to_datetime(first) + pd.to_timedelta(numbers, "D")


def make_tables():
    """Persons who may die, and rows within their lives, with a limit of the person."""
    rng = np.random.default_rng(0)
    persons = pd.DataFrame({"id": range(N), "born": days(rng.integers(0, 9000, N))})
    persons["died"] = days(rng.integers(11500, 12000, N)).where(rng.random(N) < 0.5)
    persons["sex"], persons["region"] = rng.choice(["f", "m"], N), rng.choice(list("xyz"), N)
    persons["limit"] = rng.integers(5, 12, N)
    rows = pd.DataFrame({"id": rng.integers(0, N, 3 * N)})
    about = persons.loc[rows["id"]].reset_index(drop=True)
    n = len(rows)
    rows["day"] = days(rng.integers(9100, 11400, n))
    rows["ward"] = np.where(about["region"] == "x", rng.choice(list("AB"), n), "C")
    rows["out"] = rows["day"] + pd.to_timedelta(
        np.where(rows["ward"] == "C", 20, 2) + np.arange(n) % 5, "D"
    )
    rows["cost"] = (rng.random(n) * 9).round(2)
    rows["paid"] = (rows["cost"] * rng.random(n)).round(2)
    rows["use"] = np.minimum(about["limit"], rng.integers(0, 12, n))
    rows["birth"] = np.where(about["sex"] == "f", rng.choice(["y", "n"], n), "n")
    rows["nights"] = (rows["out"] - rows["day"]).dt.days
    rows["age"] = (rows["day"] - about["born"]).dt.days
    return {"persons": persons, "rows": rows}


TABLES = make_tables()
WITHIN = {
    "persons": [Ordered("born", "died")],
    "rows": [Ordered("day", "out"), Ordered("paid", "cost")],
}
ACROSS = [
    Ordered("persons.born", "rows.day"),
    Ordered("rows.out", "persons.died"),
    Ordered("rows.use", "persons.limit"),
]
KINDS = {
    "persons": {
        "born": Date("1990-01-01", "2014-12-31"),
        "died": Date("2021-01-01", "2023-12-31", missing=True),
        "sex": Category(["f", "m"]),
        "region": Category(list("xyz")),
        "limit": Number(0, 12, decimals=0),
    },
    "rows": {
        "day": Date("2014-01-01", "2023-12-31"),
        "ward": Category(list("ABC")),
        "out": Date("2014-01-01", "2024-12-31"),
        "cost": Number(0, 9),
        "paid": Number(0, 9, decimals=2),
        "use": Number(0, 12, decimals=0),
        "birth": Category(["y", "n"]),
        "nights": Number(0, 4000, decimals=0),
        "age": Number(0, 20000, decimals=0),
    },
}


def draw(tables, epsilon=np.inf, n_steps=100, **params):
    sampler = DPHistorySampler(epsilon, **QUICK, n_steps=n_steps, **params)
    return sampler.fit(tables, persons="id", order="day"), sampler.sample(N, random_state=1)


def join(drawn):
    return drawn["rows"].merge(drawn["persons"], on="id")


def check_orders(drawn):
    rows, persons = join(drawn), drawn["persons"]
    assert len(rows) > N
    assert not (persons["born"] > persons["died"]).any()
    for lower, upper in [
        *(("born", "day"), ("day", "out"), ("out", "died"), ("paid", "cost"), ("use", "limit")),
    ]:
        assert not (rows[lower] > rows[upper]).any(), (lower, upper)
    assert drawn["rows"].groupby("id")["day"].is_monotonic_increasing.all()


def test_declared_rules_hold_within_and_across_tables():
    rules = [
        *ACROSS,
        Derived("rows.age", "`rows.day` - `persons.born`"),
        Implies({"persons.sex": "m"}, {"rows.birth": "n"}),
        Combinations(
            ["persons.region", "rows.ward"], [["x", "A"], ["x", "B"], *zip("yz", "CC", strict=True)]
        ),
    ]
    within = WITHIN | {"rows": [*WITHIN["rows"], Derived("nights", "out - day")]}
    schemas = {name: Schema(KINDS[name], within[name]) for name in KINDS}
    sampler, drawn = draw(TABLES, schemas=schemas, rules=rules)
    check_orders(drawn)
    rows = join(drawn)
    assert (rows["nights"] == (rows["out"] - rows["day"]).dt.days).all()
    assert (rows["age"] == (rows["day"] - rows["born"]).dt.days).all()
    assert not ((rows["sex"] == "m") & (rows["birth"] == "y")).any()
    assert ((rows["region"] == "x") == (rows["ward"] != "C")).all()
    assert set(rows["ward"]) == {*"ABC"}
    # Differences are learned.
    true = join(TABLES)
    assert (rows["cost"] - rows["paid"]).mean() == pytest.approx(
        (true["cost"] - true["paid"]).mean(), abs=0.4
    )
    nights = rows["nights"].groupby(rows["ward"]).mean()
    assert 2 < nights["C"] - nights["A"] < 22
    assert sampler.schemas_["rows"].rules == schemas["rows"].rules
    assert sampler.schemas_["rows"]["out"] == KINDS["rows"]["out"]
    assert not any(kind.missing for kind in sampler.schemas_["rows"].values())


@pytest.mark.slow
def test_orders_of_undeclared_columns_hold_and_fits_are_saved(tmp_path):
    schemas = {name: Schema({}, rules) for name, rules in WITHIN.items()}
    sampler, drawn = draw(TABLES, 1.0, n_steps=20, schemas=schemas, rules=ACROSS)
    check_orders(drawn)
    names = {"rows.out since rows.day", "rows.day - persons.born", "persons.limit - rows.use"}
    assert names < set(sampler.schema_report_.index)
    sampler.save(tmp_path / "fit")
    loaded = skdpgen.load(tmp_path / "fit")
    assert loaded.rules == ACROSS
    again = loaded.sample(N, random_state=1)
    assert all(again[name].equals(table) for name, table in drawn.items())


def test_keys_of_rows_are_unique_across_persons():
    schemas = {"rows": Schema(KINDS["rows"], [Unique(["day", "cost"])])}
    _, drawn = draw(TABLES, schemas=schemas, n_steps=5)
    assert not drawn["rows"].duplicated(["day", "cost"]).any()


def write_texts(table):
    table = pd.DataFrame(table)
    return pd.read_csv(io.StringIO(table.to_csv(index=False)), dtype=dict.fromkeys(["id"], int))


@pytest.mark.parametrize(
    "convert",
    [
        pytest.param(lambda t: t.assign(out=write_texts(t)["out"]), id="one of texts"),
        pytest.param(
            lambda t: t.assign(day=write_texts(t)["day"]),
            id="order of texts",
            marks=pytest.mark.slow,
        ),
        pytest.param(lambda t: t.assign(day=t["day"].dt.date), id="date"),
        pytest.param(
            lambda t: pl.from_pandas(write_texts(t)), id="texts in polars", marks=pytest.mark.slow
        ),
        pytest.param(pa.Table.from_pandas, id="arrow", marks=pytest.mark.slow),
    ],
)
def test_dates_are_relative_to_the_order_in_any_container(convert):
    rows = TABLES["rows"][["id", "day", "out"]].assign(
        out=lambda t: t["out"].where(t.index % 9 > 0)
    )
    sampler = DPHistorySampler(20.0, **QUICK, n_steps=30)
    persons = TABLES["persons"][["id", "sex"]]
    sampler.fit({"persons": persons, "rows": convert(rows)}, persons="id", order="day")
    drawn = sampler.sample(N)["rows"]
    drawn = drawn if isinstance(drawn, pd.DataFrame) else drawn.to_pandas()
    assert list(drawn) == ["id", "day", "out"]
    stays = (pd.to_datetime(drawn["out"]) - pd.to_datetime(drawn["day"])).dt.days
    assert 0 <= stays.min()
    assert stays.max() <= 40
    assert 0.05 < stays.isna().mean() < 0.2
    assert sampler._format.table.schema["rows.out since rows.day"].decimals == 0


def test_texts_beside_an_order_that_is_no_date_stay_as_they_are():
    rows = TABLES["rows"].assign(day=TABLES["rows"]["day"].dt.day_of_year)[["id", "day", "out"]]
    texts = write_texts(rows)
    sampler, drawn = draw({"persons": TABLES["persons"][["id"]], "rows": texts}, 20.0, n_steps=5)
    assert isinstance(sampler.schemas_["rows"]["out"], Date)
    assert not sampler.schemas_["rows"]["out"].is_open
    assert drawn["rows"]["out"].between("2014-01-01", "2022-01-01").mean() > 0.8


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([Ordered("born", "rows.day")], r"names \['born'\], which are no columns"),
        ([Implies({"rows.ward": "A"}, {"persons.sex": "f"})], "drawn before other columns of rows"),
        ([Implies({"persons.sex": "f"}, {"rows.day": ("2015-01-01", None)})], "drawn before"),
        ([Derived("persons.limit", "`rows.use` + 1")], "drawn before other columns"),
        ([Derived("rows.day", "`persons.born` + 1")], "drawn before other columns"),
        ([Ordered("persons.born", "rows.use")], "cannot be obeyed: both must be numbers"),
        (["born"], "Rule 1: it must be one of"),
    ],
)
def test_rules_that_cannot_be_obeyed_are_refused(rules, message):
    schemas = {name: Schema(kinds) for name, kinds in KINDS.items()}
    with pytest.raises(ValueError, match=message):
        draw(TABLES, schemas=schemas, rules=rules)


def test_differences_stand_where_their_weights_do():
    kinds = {
        "a.x": Number(0, 9),
        "a.y": Number(0, 9),
        "b.day": Date("2020-01-01", "2020-12-31"),
        "b.out": Date(missing=True),
        "b.z": Number(0, 9),
        "b gap": Number(0, 9),
    }
    rules = [Ordered("a.x", "a.y"), Ordered("a.y", "b.z"), Ordered("b.day", "b.out")]
    schema = JoinedSchema(kinds, [*rules, Elapsed("b.day", "b.out")])
    names = ["a.x", "a.y", "a.y - a.x", "b.day", "b.out since b.day", "b.z", "b.z - a.y", "b gap"]
    assert list(schema.learned) == names
    assert schema["b.out since b.day"] == Number(decimals=0, missing=True)
    # Until texts are known to be dates, they are learned as they are.
    unknown = schema.replace({"b.out": skdpgen.Unknown()})
    assert "b.out" in unknown.learned
    assert unknown.replace({"b.out": Date(missing=True)}) == schema
    assert JoinedSchema(schema.to_dict()) == schema
    closed = schema.replace({"b.out since b.day": Number(0, 5, decimals=0, missing=True)})
    assert JoinedSchema(closed.to_dict()).learned == closed.learned


@pytest.mark.catches(
    "histories.schema:Elapsed.subtract", "days[1] - days[0]", "days[1] - np.roll(days[0], 1)"
)
def test_days_to_a_date_follow_from_its_row_alone():
    kinds = {"day": Date(unit="hour", lower="2020-01-01", upper="2021-01-01"), "out": Date()}
    table = pd.DataFrame(
        {
            "day": [datetime.datetime(2020, 1, 3, 12), datetime.datetime(2020, 2, 1), None, "x"],
            "out": [datetime.date(2020, 1, 9), None, *[datetime.datetime(2020, 2, 2)] * 2],
        },
        dtype=object,
    )
    rule = Elapsed("day", "out")
    found = rule.subtract(table, kinds)
    assert found[0] == 5.5
    assert np.isnan(found[1:]).all()
    for i in range(4):
        np.testing.assert_array_equal(rule.subtract(table[i : i + 1], kinds), found[i : i + 1])


def test_orders_add_up_and_dates_follow():
    kind = Date("2020-01-01", "2020-12-31")
    first, gaps = np.array([10.0, 10, 10, 3]), np.array([np.nan, 2, np.nan, 7])
    person = np.array([0, 0, 0, 2])
    assert add_gaps(first, gaps, person, kind, np.random.default_rng(0)).tolist() == [10, 12, 12, 3]
    # Rows beyond the range were all at its end.
    beyond = add_gaps(
        first, gaps + np.array([0, 9, 9, 0]), person, Number(0, 20), np.random.default_rng(0)
    )
    assert 10 < beyond[1] < 20
    hours = Date("2020-01-01", "2020-12-31", unit="hour")
    assert add_days(np.array([2.0, np.nan]), np.array([0.5, 1]), kind, hours)[0] == 60


def test_formulas_are_renamed():
    formula = Formula("2 * (`a b` - c) / -c")
    renamed = Formula(formula.rename({"a b": "t.a b", "c": "t.c"}))
    values = {"t.a b": np.array([7.0]), "t.c": 2.0}
    assert renamed.compute(values) == formula.compute({"a b": np.array([7.0]), "c": 2.0})
    date = datetime.date(2020, 1, 1)
    rules = [
        Implies({"x": 1.0}, {"y": (date, None)}),
        Unique(["x", "y"]),
        Combinations(["x", "y"], [[1, 2]]),
        Ordered("x", "y", strict=True),
    ]
    back = {"t.x": "x", "t.y": "y"}
    for rule in rules:
        moved = rule.rename({name: f"t.{name}" for name in rule.names})
        assert {*moved.names} == {*back}
        assert moved.rename(back) == rule
