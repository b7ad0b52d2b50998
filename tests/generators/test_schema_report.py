"""Reports on the columns of a table, and levels that stand for what is not told apart."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler
from skdpgen.privacy import FitQualityWarning, preview
from skdpgen.releases import SlicedRows
from skdpgen.tables import Boolean, Category, Number, Schema

METHODS = {
    "network": lambda **params: DPSlicedWassersteinGenerator(random_state=0, **params),
    "particles": lambda **params: DPSWFlowSampler(random_state=0, n_particles=300, **params),
}
SCHEMA = Schema(
    {
        "a": Number(0, 10, n_knots=3, missing=True),
        "b": Category(["x", "y"], other="rest", missing=True),
        "c": Boolean(),
    }
)


def make_table(n=2000, spare=0.0, seed=0):
    """A table in which a share of the cells is missing, and of the second column unknown."""
    rng = np.random.RandomState(seed)
    frame = pd.DataFrame(
        {
            "a": rng.randint(0, 11, n).astype(float),
            "b": rng.choice(["x", "y"], n).astype(object),
            "c": rng.rand(n) < 0.5,
        }
    )
    frame.loc[rng.rand(n) < spare, "a"] = np.nan
    unknown = rng.rand(n)
    frame.loc[unknown < spare, "b"] = None
    frame.loc[unknown > 1 - spare, "b"] = "z"
    return frame


@pytest.mark.parametrize("method", METHODS)
def test_shares_are_those_of_the_table(method):
    table = make_table(spare=0.2)
    generator = METHODS[method](schema=SCHEMA, epsilon=math.inf, n_steps=2).fit(table)
    report = generator.schema_report_
    assert list(report.index) == list(table.columns)
    assert_allclose(report.loc["a", "share_missing"], table["a"].isna().mean(), atol=1e-4)
    assert_allclose(report.loc["b", "share_missing"], table["b"].isna().mean(), atol=1e-4)
    assert_allclose(report.loc["b", "share_other"], (table["b"] == "z").mean(), atol=1e-4)
    # Hat functions on the knots 0, 5 and 10.
    for end, at in (("lower", 0), ("upper", 10)):
        near = np.maximum(0, 1 - (table["a"] - at).abs() / 5).fillna(0).mean()
        assert_allclose(report.loc["a", f"share_{end}"], near, atol=1e-4)
    assert report.loc["c", "share_missing"] == 0
    assert report["n_levels"].tolist() == [3, 3, 2]
    assert (report["noise"] == 0).all()
    assert set(json.loads(report.to_json(orient="index"))) == {"a", "b", "c"}


def test_atoms_have_shares_of_their_own():
    table = make_table()
    kind = Number(0, 10, 0, knots=[0, 5, 10], atoms=[0, 7], missing=True)
    schema = Schema({**SCHEMA, "a": kind})
    generator = METHODS["network"](schema=schema, epsilon=math.inf, n_steps=2).fit(table)
    row = generator.schema_report_.loc["a"]
    assert row["n_levels"] == 5
    assert_allclose(row["share_atoms"], table["a"].isin([0, 7]).mean(), atol=1e-4)
    near = np.maximum(0, 1 - (10 - table["a"]) / 5)[table["a"] != 7].sum() / len(table)
    assert_allclose(row["share_upper"], near, atol=1e-4)
    assert generator.schema_report_.loc[["b", "c"], "share_atoms"].isna().all()


def test_noise_is_that_of_one_and_two_way_tables_together():
    params = {"schema": SCHEMA, "epsilon": 1.0, "n_steps": 2}
    report = METHODS["network"](**params).fit(make_table()).schema_report_
    sizes = np.array([4, 4, 2])
    std = preview(METHODS["network"](**params), 2000, 3).sigma
    # One record adds a vector of norm 1 / N; here one-way tables have a weight of √(2 - 2 p).
    weight = math.sqrt(max(0, min(1, 2 - 2 * (2 / 4 + 2 / 4))))
    records = math.sqrt(3 * (2 + weight**2))
    precision = weight**2 + np.array([(2 / sizes).sum() - 2 / size for size in sizes])
    assert_allclose(report["noise"], std * records / np.sqrt(precision), rtol=1e-6)
    assert_allclose(report["noise_pair"], std * records / math.sqrt(2), rtol=1e-6)


def test_pairs_with_the_target_have_the_noise_of_columns_of_its_strata():
    sampler = METHODS["particles"](schema=SCHEMA, epsilon=1.0, n_steps=2)
    report = sampler.fit(make_table(), target="c").schema_report_
    std = sampler.privacy_.sigma
    # Each of two strata has one table, of a and b: here one-way tables have no weight, and N = √2.
    assert_allclose(report.loc[["a", "b"], "noise_pair"], std * math.sqrt(2), rtol=1e-6)
    assert_allclose(report.loc[["a", "b"], "noise"], 2 * std * math.sqrt(2), rtol=1e-6)
    assert_allclose(report.loc["c", "noise_pair"], 2 * std, rtol=1e-6)
    table = make_table()[["a", "c"]]
    sampler = METHODS["particles"](
        schema=Schema({"a": SCHEMA["a"], "c": Boolean()}), epsilon=1.0, n_steps=2
    )
    report = sampler.fit(table, target="c").schema_report_
    assert_allclose(report["noise_pair"], report.loc["a", "noise"] / math.sqrt(2))
    alone = METHODS["particles"](schema=Schema({"a": SCHEMA["a"]}), epsilon=1.0, n_steps=2)
    assert alone.fit(table[["a"]]).schema_report_["noise_pair"].isna().all()


def test_other_releases_say_what_is_public():
    generator = METHODS["network"](schema=SCHEMA, release=SlicedRows(n_steps=2, batch_size=20))
    report = generator.fit(make_table()).schema_report_
    assert list(report.index) == list(SCHEMA)
    assert report["kind"].tolist() == ["number", "category", "boolean"]
    assert report.loc["a", ["lower", "upper", "n_levels"]].tolist() == [0, 10, 3]
    assert report[["share_other", "share_lower", "noise"]].isna().all(axis=None)
    assert report["share_missing"].isna().tolist() == [True, True, False]


@pytest.mark.parametrize("method", METHODS)
def test_spare_levels_within_noise_are_never_generated(method):
    # With other seeds noise may be negative, and hide that they could be.
    generator = METHODS[method](schema=SCHEMA, epsilon=2.0, n_steps=20).set_params(random_state=3)
    made = generator.fit(make_table()).sample(5000)
    assert not made.isna().any(axis=None)
    assert set(made["b"]) == {"x", "y"}
    report = generator.schema_report_
    assert report["share_missing"].tolist() == [0, 0, 0]
    assert report.loc["b", "share_other"] == 0
    assert np.isfinite(generator.loss_curve_).all()


@pytest.mark.parametrize("method", METHODS)
def test_spare_levels_that_occur_are_generated(method):
    generator = METHODS[method](schema=SCHEMA, epsilon=5.0, n_steps=100)
    made = generator.fit(make_table(3000, spare=0.2)).sample(3000)
    assert_allclose(made["a"].isna().mean(), 0.2, atol=0.06)
    assert_allclose(made["b"].isna().mean(), 0.2, atol=0.06)
    assert_allclose((made["b"] == "rest").mean(), 0.2, atol=0.06)


@pytest.mark.parametrize("schema", [SCHEMA, "private"])
def test_the_target_is_never_missing(schema):
    table = make_table(spare=0.1)
    generator = METHODS["particles"](schema=schema, epsilon=20.0, delta=1e-6, n_steps=20)
    with pytest.warns(FitQualityWarning, match="About 1.% of the records count as absent"):
        generator.fit(table, target="b")
    assert not generator.sample(3000)["b"].isna().any()
    assert generator.schema_report_.loc["b", "share_missing"] == 0
    assert not generator.schema_["b"].missing
    # Other columns have missing values.
    assert generator.sample(3000)["a"].isna().any()
