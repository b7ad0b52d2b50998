"""Samples that complete partial rows: ``sample(where=DataFrame)``."""

import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdpgen import Boolean, Category, Date, DPSWFlowSampler, Identifier, Number, Ordinal, Schema
from skdpgen.data.containers import PANDAS
from skdpgen.format import RowSource
from skdpgen.privacy import NoiseSource
from skdpgen.tables import Derived, Implies, Ordered, Unique
from skdpgen.tables.encoder import TableEncoder
from skdpgen.tables.format import TableFormat
from skdpgen.tables.layout import TableLayout

SCHEMA = Schema(
    {
        "id": Identifier(),
        "age": Number(18, 90, decimals=0, n_knots=4),
        "pay": Number(0, 1000, n_knots=4, atoms=[0], missing=True),
        "job": Category(["nurse", "cook"]),
        "risk": Ordinal([1, 2]),
        "smoker": Boolean(),
        "day": Date("2020-01-01", "2020-12-31", n_knots=3),
        "at": Date("2020-01-01", "2021-01-01", unit="second", n_knots=3, zone="Europe/Vienna"),
    }
)


class Model:
    """A format of tables, and generated rows of two sorts, whose columns go together."""

    def __init__(self, schema=SCHEMA, label=None, names=None):
        kind = TableLayout(tuple(names or schema), {}, label, y=None if names is None else PANDAS)
        self.format, self.n_blocks = TableFormat(schema, kind), 0
        encoder = TableEncoder(schema)
        rng = np.random.RandomState(0)
        self._codes = rng.dirichlet(np.full(encoder.n_columns, 1.0), 2)

    def generate(self, classes, generator):
        self.n_blocks += len(classes) >= 10_000
        return self._codes[np.arange(len(classes)) % 2]

    def sample(self, n_samples=None, *, where=None, y=None, seed=0):
        if n_samples is None:
            n_samples = len(where)
        rows = RowSource(self.generate, np.ones(1), NoiseSource(seed, stream=1))
        return next(self.format.decode(rows, [n_samples], y=y, where=where))


def test_given_cells_and_the_index_are_kept():
    day = pd.Timestamp("2020-05-01")
    where = pd.DataFrame(
        {
            "job": ["nurse", None, "cook", "cook"],
            "age": [31, np.nan, 90, 31],
            "pay": [0.125, 0, math.pi, None],
            "risk": pd.Categorical([1, 2, None, 1]),
            "smoker": [True, False, None, np.True_],
            "day": [day, pd.NaT, day, day],
            "at": pd.to_datetime(["2020-05-01T10:00:00Z"] * 3 + [None]),
        },
        index=["d", "a", "c", "a"],
    )
    made = Model().sample(where=where)
    assert list(made) == list(SCHEMA)
    assert list(made.index) == list(where.index)
    assert sorted(made["id"]) == [1, 2, 3, 4]
    for name in where:
        given = where[name].notna().to_numpy()
        found, asked = made[name].to_numpy()[given], where[name].to_numpy()[given]
        if name == "at":
            assert str(made[name].dtype.tz) == "Europe/Vienna"
            found = made[name].dt.tz_convert("UTC").to_numpy()[given]
        assert_array_equal(found, asked)
    assert made.drop(columns="pay").notna().all(axis=None)


def test_shares_are_those_under_conditions():
    """Free cells follow the distribution that a dict of conditions gives them."""
    model, n = Model(), 4000
    rows = [{"job": "nurse", "age": 31}, {"smoker": True, "day": "2020-03-01"}, {"pay": 0}, {}]
    where = pd.DataFrame([rows[i % 4] for i in range(4 * n)])
    made = model.sample(where=where)
    for i, row in enumerate(rows):
        some, expected = made[i::4], model.sample(n, where=row, seed=1)
        for name in ("job", "risk", "smoker"):
            shares = some[name].value_counts(normalize=True).reindex(SCHEMA[name].levels)
            others = expected[name].value_counts(normalize=True).reindex(SCHEMA[name].levels)
            assert_allclose(shares.fillna(0), others.fillna(0), atol=0.04)
        assert_allclose(some["age"].mean(), expected["age"].mean(), atol=2)
        assert_allclose(some["pay"].isna().mean(), expected["pay"].isna().mean(), atol=0.04)


def test_a_number_of_any_decimals_weighs_rows_by_its_density():
    model = Model()
    for value in (0.0, 1e-9, 77.7, 1000.0):
        made = model.sample(where=pd.DataFrame({"pay": [value] * 4000}))
        assert (made["pay"] == value).all()
        if value:
            near = (max(0, value - 1e-3), min(1000, value + 1e-3))
            expected = model.sample(4000, where={"pay": near}, seed=1)
            for name in ("job", "smoker"):
                level = SCHEMA[name].levels[0]
                shares = [(table[name] == level).mean() for table in (made, expected)]
                assert_allclose(*shares, atol=0.05)


def test_generated_rows_are_shared():
    model = Model()
    model.sample(where=pd.DataFrame({"age": np.arange(18, 68)}))
    assert model.n_blocks == 1
    model.sample(where=pd.DataFrame({"age": [20] * 6000 + [30] * 6000}))
    assert model.n_blocks == 1 + 3


def test_rules_are_obeyed():
    schema = Schema(
        {
            "insured": Category(["yes", "no"]),
            "premium": Number(1, 500, n_knots=3, missing=True),
            "first": Number(0, 10, n_knots=3),
            "last": Number(0, 10, n_knots=3),
            "days": Number(),
            "ward": Category(["1", "2"]),
            "bed": Number(1, 50, decimals=0, n_knots=3),
        },
        [
            Implies({"insured": "no"}, {"premium": None}),
            Ordered("first", "last"),
            Derived("days", "last - first"),
            Unique(["ward", "bed"]),
        ],
    )
    where = pd.DataFrame({"ward": ["1", "2"] * 20, "first": [2.5, None, 7.25, None] * 10})
    where["premium"] = [100.5] + [None] * 39
    made = Model(schema).sample(where=where)
    assert (schema.share_obeying(made) == 1).all()
    given = where["first"].notna()
    assert_array_equal(made["first"][given], where["first"][given])
    assert made["premium"][0] == 100.5
    assert made["insured"][0] == "yes"
    broken = pd.DataFrame({"insured": ["no"], "premium": [3.5]}, index=["r"])
    with pytest.raises(ValueError, match=r"Row 'r' of where, with \{'insured': 'no', 'premium'"):
        Model(schema).sample(where=broken)


def test_the_target_of_a_split_table_is_a_column():
    schema = SCHEMA.select(["age", "job", "smoker"])
    model = Model(schema, "job", ["age", "smoker"])
    where = pd.DataFrame({"job": ["cook", "nurse"], "age": [20, np.nan]}, index=[7, 3])
    X, y = model.sample(where=where)
    assert list(X) == ["age", "smoker"]
    assert y.tolist() == ["cook", "nurse"]
    assert list(X.index) == list(y.index) == [7, 3]
    with pytest.raises(ValueError, match="as a column of where, and not as y"):
        model.sample(where=where, y=["cook", "nurse"])


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (
            {"job": ["nurse", "smith"]},
            r"Row 1 of where, with \{'job': 'smith'\}.*not among the lev",
        ),
        ({"age": [17]}, "Row 0 of where.*outside its bounds"),
        ({"age": [31.5]}, "Row 0 of where.*No value of 'age'"),
        ({"pay": [1000.5]}, "outside its bounds"),
        ({"age": ["old"]}, "asks for numbers of 'age'"),
        ({"day": ["May"]}, "must be a date"),
        ({"day": [pd.Timestamp("2020-05-01", tz="UTC")]}, "without time zone"),
        ({"id": [3]}, r"columns \['id'\] that cannot be given"),
        ({"none": [3]}, r"columns \['none'\]"),
        ({"age": [[30, 31]]}, "'age' in where must be single values"),
        ({"age": []}, "where has no rows"),
    ],
)
def test_impossible_conditions_are_refused(where, message):
    with pytest.raises(ValueError, match=message):
        Model().sample(where=pd.DataFrame(where))


def test_frames_of_other_shapes():
    twice = pd.DataFrame([[30, 31]], columns=["age", "age"])
    with pytest.raises(ValueError, match=r"columns \['age'\] that cannot be given"):
        Model().sample(where=twice)
    with pytest.raises(ValueError, match="number of rows of where, 2; got 3"):
        Model().sample(3, where=pd.DataFrame({"age": [30, 31]}))
    made = Model().sample(where=pd.DataFrame(index=["x", "y"]))
    assert list(made.index) == ["x", "y"]


@pytest.mark.filterwarnings("ignore")
def test_fitted_generators_take_partial_rows():
    schema = Schema({"age": Number(18, 90, decimals=0), "job": Category(["nurse", "cook"])})
    rng = np.random.RandomState(0)
    table = pd.DataFrame(
        {"age": rng.randint(18, 91, 500), "job": rng.choice(["nurse", "cook"], 500)}
    )
    generator = DPSWFlowSampler(epsilon=math.inf, schema=schema, n_steps=5, random_state=0)
    generator.fit(table)
    where = pd.DataFrame({"job": ["cook", None, "nurse"]})
    made = generator.sample(where=where)
    assert made["job"].tolist()[::2] == ["cook", "nurse"]
    pd.testing.assert_frame_equal(made, generator.sample(3, where=where))
    with pytest.raises(ValueError, match="number of rows of where, 3; got 2"):
        generator.sample(2, where=where)
    arrays = DPSWFlowSampler(epsilon=math.inf, bounds=(0, 1), n_steps=1, random_state=0)
    arrays.fit(rng.uniform(size=(50, 2)))
    with pytest.raises(ValueError, match="needs a schema"):
        arrays.sample(where=where)


def test_partial_rows_of_any_library():
    polars = pytest.importorskip("polars")
    table = pd.DataFrame({"job": ["nurse", "cook"] * 100, "age": [30, 40] * 100})
    sampler = DPSWFlowSampler(20.0, n_steps=1).fit(table)
    given = table[["job"]][:7]
    made = sampler.sample(where=polars.from_pandas(given))
    assert made["job"].tolist() == given["job"].tolist()
    for column in (given["job"], given.iloc[0]):
        with pytest.raises(ValueError, match=r"where must be a dict .*; got a column, Series"):
            sampler.sample(3, where=column)


def test_conditions_are_dates_as_synthetic_cells_are():
    days = pd.date_range("2020-01-01", periods=200, freq="h", tz="Europe/Vienna")
    sampler = DPSWFlowSampler(20.0, n_steps=1).fit(pd.DataFrame({"day": days}))
    for day in (days[100], days[100].tz_convert("UTC"), days[100].to_pydatetime()):
        assert set(sampler.sample(5, where={"day": day})["day"]) == {days[100]}
