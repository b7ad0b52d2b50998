"""Forecasts of errors, beside the noise that fits then have; and schemas that are looked for."""

import numpy as np
import pandas as pd
import pytest

from skdpgen import Boolean, Category, DPSWFlowSampler, Number, Schema
from skdpgen.evaluation._forecasts import Forecast, measure_tables
from skdpgen.privacy import (
    CategoryCountsMechanism,
    FitQualityWarning,
    TablesMechanism,
    compose,
    infer_schema,
    preview_tables,
)

SCHEMA = Schema(
    {
        "age": Number(0, 99, decimals=0, n_knots=8, missing=True),
        "ward": Category(["A", "B", "C"], other="other"),
        "smoker": Boolean(),
    }
)


def make_table(n=600):
    rng = np.random.RandomState(0)
    return pd.DataFrame(
        {
            "age": rng.randint(20, 80, n).astype(float),
            "ward": rng.choice(["A", "B", "C"], n),
            "smoker": rng.rand(n) < 0.3,
        }
    )


def make(**params):
    return DPSWFlowSampler(**{"epsilon": 5.0, "delta": 1e-6, "n_steps": 2, **params})


@pytest.mark.parametrize("target", [None, "smoker", "ward"])
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_the_noise_is_that_of_the_fit(target, relation):
    """All sizes are known beforehand where columns are declared."""
    generator = make(schema=SCHEMA, relation=relation)
    planned = preview_tables(generator, make_table(), target=target)
    assert planned["is_known"].all()
    report = generator.fit(make_table(), target=target).schema_report_
    assert report["error"].dropna().index.tolist() == ["age"]
    between = planned.loc[("age", ""), "error"] / 600
    assert 0 < report.loc["age", "error"] < 5 * between < 25 * report.loc["age", "error"]
    noise = planned.xs("", level="other")["noise"]
    others = [name for name in SCHEMA if name != target]
    np.testing.assert_allclose(noise[others], report.loc[others, "noise"])
    if target == "smoker":
        # Strata are counted by the sums of all their tables.
        assert noise[target] / 3 < report.loc[target, "noise"] < noise[target] * 3
    # The same follows from what is fitted.
    again = measure_tables(generator._format, generator.privacy_.sigma, 600)
    pd.testing.assert_frame_equal(again, planned)


def test_errors_in_closed_form():
    """Half of the absolute noise on all cells moves; the mean of |N(0, 1)| is √(2/π)."""
    forecast = Forecast.of(make(schema=SCHEMA), make_table())
    age, ward, smoker = 9, 4, 2
    pair = forecast.tables.loc[("age", "ward")]
    assert pair["levels"] == age * ward
    mechanism = TablesMechanism((age, ward, smoker))
    std = forecast.certificate.sigma * mechanism.records / np.sqrt(2)
    assert pair["noise"] == pytest.approx(std)
    assert pair["error"] == pytest.approx(0.5 * age * ward * std * np.sqrt(2 / np.pi))
    assert pair["error_percent"] == pytest.approx(pair["error"] / 6)
    assert forecast.least_count is None
    assert forecast.n_expected == forecast.certificate.n_records == 600
    assert list(forecast.tables.index) == [
        *((name, "") for name in SCHEMA),
        *(("age", "ward"), ("age", "smoker"), ("ward", "smoker")),
    ]


def test_more_levels_and_less_budget_are_worse():
    def judge(n_levels, epsilon):
        schema = Schema({"code": Category(list(map(str, range(n_levels)))), "smoker": Boolean()})
        table = make_table()[["smoker"]].assign(code="0")
        return preview_tables(make(epsilon=epsilon, schema=schema), table).loc[("code", "")]

    few, many = judge(3, 5.0), judge(300, 5.0)
    assert (few["verdict"], many["verdict"]) == ("good", "rough")
    assert few["error"] < many["error"] <= 600
    assert judge(300, 1.0)["verdict"] == "noise"
    assert judge(3, 0.001)["verdict"] == "noise"


def test_nothing_private_is_looked_at():
    table, other = make_table(), make_table().iloc[::-1].assign(ward="Smith", age=np.inf)
    planned = [preview_tables(make(schema=SCHEMA), X, target="smoker") for X in (table, other)]
    pd.testing.assert_frame_equal(*planned)


def test_categories_that_pass(monkeypatch):
    """The count that a category is said to need is about the threshold of the release."""
    table = make_table()[["ward"]].assign(site=["north", "south"] * 300)
    forecast = Forecast.of(make(), table)
    thresholds, measure = [], CategoryCountsMechanism.query

    def watch(self, *args):
        measured = measure(self, *args)
        if self.name == CategoryCountsMechanism.name:
            thresholds.append(max(measured.context[1]))
        return measured

    monkeypatch.setattr(CategoryCountsMechanism, "query", watch)
    make().fit(table)
    assert forecast.least_count == pytest.approx(thresholds[0], abs=2)
    assert not forecast.tables["is_known"].any()


def test_arrays_have_no_tables():
    with pytest.raises(ValueError, match="is an array here"):
        preview_tables(make(), np.zeros((9, 2)))


def test_a_look_finds_types_ranges_and_categories():
    table = make_table(4000)
    look = infer_schema(table, epsilon=4.0, delta=1e-6)
    assert look.privacy_.epsilon <= 4
    assert look.privacy_.provenance.estimator == "infer_schema"
    assert "two-way tables" not in look.privacy_.releases
    assert look.schema["ward"].categories == ("A", "B", "C")
    age = look.schema["age"]
    assert (10 < age.lower <= 22, 77 <= age.upper < 130, age.knots, age.cuts) == (
        *(True, True),
        *(None, None),
    )
    generator = make(schema=look.schema, epsilon=1.0).fit(table)
    assert "category counts" not in generator.privacy_.releases
    assert look.privacy_.epsilon < compose(look.privacy_, generator.privacy_).epsilon <= 5


def test_a_look_of_persons_counts_persons():
    table = make_table(2000).assign(person=np.arange(2000) // 2)
    look = infer_schema(
        table, epsilon=8.0, delta=1e-6, persons="person", max_rows_per_person=2, random_state=0
    )
    assert (look.privacy_.max_rows, look.privacy_.n_records) == (2, 1000)
    assert list(look.schema) == ["age", "ward", "smoker"]


def test_a_look_keeps_what_is_declared():
    schema = Schema({"age": Number(0, 99), "ward": Category(), "smoker": Boolean()})
    look = infer_schema(make_table(), epsilon=5.0, delta=1e-6, schema=schema)
    assert (look.schema["age"], look.schema["smoker"]) == (schema["age"], Boolean())
    with pytest.raises(ValueError, match="nothing is left to infer"):
        infer_schema(make_table(), schema=SCHEMA)


def test_a_target_of_which_one_level_shows_is_warned_of():
    table = make_table(300)[["age"]].assign(died=np.arange(300) == 0)
    table["died"] = table["died"].astype(int)
    with pytest.warns(FitQualityWarning, match="One level of the target 'died' shows"):
        make(epsilon=2.0).fit(table, target="died")
