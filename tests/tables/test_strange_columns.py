# SPDX-License-Identifier: BSD-3-Clause
"""Columns that came back wrong or unnamed, in one fit to two chunks; and what refuses them."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skdpgen import DPSWFlowSampler

N = 1500
rng = np.random.default_rng(0)
times = pd.Series(pd.date_range("2020-01-01", periods=N, freq="h"))
is_first = np.arange(N) < N // 2
COLUMNS = {
    "thirds": rng.integers(0, 9, N) / 3,
    "sixths": (rng.integers(0, 9, N) / 6).astype("float32"),
    "subnormal": np.where(rng.random(N) < 0.5, 5e-324, 0),
    "months": 100 * rng.integers(2000, 2024, N) + rng.integers(1, 13, N),
    "prices": rng.normal(2e5, 5e3, N).astype(int),
    "zones": times.where(is_first, times.dt.tz_localize("UTC").astype(object)),
    "commas": [
        f"{x:.3f}".replace(".", ".,"[i % 3 == 0]) for i, x in enumerate(rng.exponential(size=N))
    ],
    "tiny": rng.gamma(2, 1e-40, N),
    "countries": rng.choice(["DE", "NA", "None"], N).astype(object),
    "normal": rng.normal(size=N),
}


@pytest.fixture(scope="module")
def sampler():
    frame = pd.DataFrame(COLUMNS)
    chunks = [frame[is_first].infer_objects(), frame[~is_first].infer_objects()]
    assert len({chunk["zones"].dtype for chunk in chunks}) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = DPSWFlowSampler(1e4, 1e-6, n_steps=30, n_particles=500, random_state=0)
        return made.fit(lambda: iter(chunks))


@pytest.mark.parametrize("name", ["thirds", "sixths"])
def test_few_values_that_are_no_short_numbers_are_within_the_range(name, sampler):
    """Each was located as a point mass, which none of them equals, and two were cut."""
    column, made = COLUMNS[name], sampler.sample(3000)[name]
    first, *_, last = np.unique(column)[1:4]
    shares = [np.mean((first - 0.1 <= x) & (x <= last + 0.1)) for x in (column, made)]
    assert shares[1] == pytest.approx(shares[0], abs=0.07)


@pytest.mark.parametrize(
    ("name", "finding"),
    [
        ("thirds", None),
        ("subnormal", "constant"),
        ("months", "dates as numbers"),
        ("prices", None),
        ("tiny", "values unresolved"),
        ("zones", "other type: 50.0%: dates with and without time zones"),
        ("commas", "other type: 33.3%"),
        ("countries", None),
        ("normal", None),
    ],
)
def test_findings(name, finding, sampler):
    assert sampler.schema_report_.loc[name, "finding"] == finding


def test_most_dates_of_a_column_with_and_without_zones_are_dates(sampler):
    made = sampler.sample(1000)["zones"]
    assert made.dtype.kind == "M"
    assert 0.4 < made.isna().mean() < 0.6


def test_texts_of_missing_values_may_be_categories(sampler):
    assert {*sampler.sample(1000)["countries"]} == {"DE", "NA", "None"}


def test_decimal_commas_beside_points_are_no_groups_of_thousands(sampler):
    """1,085 came back as 1085, since more numbers had a decimal point."""
    assert sampler.sample(1000)["commas"].max() < 20


@pytest.mark.parametrize(("dtype", "finding"), [(object, "codes"), ("string", None)])
def test_codes_with_leading_zeros_among_objects_are_named(dtype, finding):
    codes = pd.Series(rng.choice(["01067", "80331"], 500), dtype=dtype)
    sampler = DPSWFlowSampler(1e4, 1e-6, n_steps=1, n_particles=50, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler.fit(pd.DataFrame({"code": codes}))
    assert sampler.schema_report_.loc["code", "finding"] == finding
    assert set(sampler.sample(99)["code"]) == ({1067, 80331} if finding else {"01067", "80331"})


def test_a_target_with_the_name_of_a_column_is_refused_by_this_name():
    table = pd.DataFrame({"age": [1, 2], "pay": [3.0, 4.0]})
    with pytest.raises(ValueError, match=r"X has a column 'age' as well.*target='age'"):
        DPSWFlowSampler(1.0).fit(table, table["age"])


def test_numbers_beside_texts_are_no_labels():
    with pytest.raises(ValueError, match="y mixes labels of different types"):
        DPSWFlowSampler(1.0).fit(np.zeros((4, 1)), [1, "a", 1, "a"])
