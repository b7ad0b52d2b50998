"""Ranges at any location and scale, of numbers and dates; targets of integers."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from skdpgen import DPSWFlowSampler
from skdpgen.accounting.plan import gaussian_plan
from skdpgen.curator.curator import Curator
from skdpgen.data.record_functions import RecordFunction
from skdpgen.exceptions import FitQualityWarning
from skdpgen.histograms.grids import knot_weights, wide_knots
from skdpgen.mechanisms.codes import HatBasis
from skdpgen.mechanisms.noise import NoiseSource
from skdpgen.planning.fits import find_thresholds
from skdpgen.tables.columns import Category, Date, Number, Ordinal, Unknown
from skdpgen.tables.discovery.counts import WideHistogram
from skdpgen.tables.discovery.densities import Histogram, estimate_density
from skdpgen.tables.discovery.locations import (
    FACTOR,
    N_LEVELS,
    SIZE,
    encode_locations,
    find_cells,
    find_clusters,
    place_counters,
    read_locations,
    read_value,
)
from skdpgen.tables.discovery.stages import Locations, SchemaInference
from skdpgen.tables.discovery.tails import CONSTANTS, describe_loss, estimate_loss
from skdpgen.tables.schema import Schema


def infer(frame, schema, epsilon=math.inf, seed=0, label=None):
    inference = SchemaInference(schema, label=label)
    shares = inference.split_budget(1.0)
    plan = gaussian_plan(shares, epsilon, 1e-6, thresholds=find_thresholds(shares, 1e-6))
    cells = frame[list(schema)].to_numpy(dtype=object)
    source = {"prepare": RecordFunction(inference.encode), "cells": True}
    with Curator(cells, plan=plan, noise=NoiseSource(seed), **source) as curator:
        return inference.run(curator)


def add_up(codes, n_clusters=(1,)):
    """Return what each record adds to the counters, of shape (n, n_counters)."""
    sizes, places = place_counters(n_clusters)
    rows = np.zeros((len(codes), places.max() + 2))
    np.add.at(rows.T, places, HatBasis(torch.as_tensor(codes), sizes).to_dense().numpy().T)
    return rows[:, :-1]


def count_locations(values, *cells):
    return add_up(encode_locations(values, [cells])).sum(axis=0)


def test_a_record_adds_two_neighbouring_counters_of_each_level():
    numbers = np.r_[np.random.default_rng(0).uniform(-1, 12, 500), 0, 10, np.nan, np.inf, -np.inf]
    codes = encode_locations(numbers, [(0.0, 10.0)])
    is_inside = (numbers >= 0) & (numbers <= 10)
    rows = add_up(codes).reshape(-1, N_LEVELS, SIZE // N_LEVELS)
    assert_allclose(rows.sum(axis=2), is_inside[:, None] * np.ones(N_LEVELS))
    assert rows.min() >= 0
    assert (rows > 0).sum(axis=2).max() == 2
    for number, row in zip(numbers, codes, strict=True):
        assert_array_equal(encode_locations(np.array([number]), [(0.0, 10.0)])[0], row)


@pytest.mark.catches(
    "tables.discovery.locations:place_counters",
    "np.append(first + turns, -1)",
    "np.append(first + turns, start)",
)
def test_a_record_is_at_one_place_of_each_column():
    inference = SchemaInference(Schema({"a": Number(), "b": Number(), "t": Date(unit="day")}))
    cells = [[0.5, 7.0, "2020-01-31"], [0.25, 3.0, "2020-02-01"], [None, "x", None]]
    cells = np.array(cells, dtype=object)
    cells[:, 2] = [pd.Timestamp(t) if t else t for t in cells[:, 2]]
    clusters = {"a": [(0.0, 1.0)], "b": [(5.0, 10.0), (2.0, 4.0)], "t": [(18000.0, 19000.0)]}
    stage, atoms = Locations(), {"a": [0.25], "b": [], "t": []}
    stage.clusters = clusters
    for name, column in inference.columns.items():
        column.wide = WideHistogram(None, None, 1.0, atoms[name], 3)
    codes = stage.encode(inference, cells)
    assert codes.shape == (3, 3 * N_LEVELS)
    rows = add_up(codes, (1, 2, 1))
    assert rows.shape == (3, 4 * SIZE)
    # Point masses, and cells that are no numbers, have no location.
    in_clusters = [[1, 1, 0, 1], [0, 0, 1, 1], [0, 0, 0, 0]]
    assert_array_equal(rows.reshape(3, 4, SIZE).any(axis=2), in_clusters)


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ([0, 500, 500, 0, 0, 0], (0, 3)),
        ([0, 0, 0, 0, 950, 50], (3, 5)),
        ([1000, 0, 0, 0, 0, 0], (0, 2)),
        ([500, 0, 0, 0, 0, 500], None),
        ([250, 250, 0, 0, 250, 250], None),
        ([0, 0, 0, 0, 0, 0], None),
    ],
)
def test_cells_are_found_only_where_nearly_all_values_are(counts, found):
    counts = np.array(counts, dtype=float)
    assert find_cells(np.arange(6.0), counts, 0.0, counts.sum()) == found
    assert find_cells(np.arange(6.0), counts, 1000.0, counts.sum()) is None


@pytest.mark.parametrize("width", [1e-8, 1e-5, 1e-3])
@pytest.mark.parametrize("center", [0.013, 0.5, 0.998])
def test_levels_are_read_down_to_the_width_of_the_values(center, width):
    values = center + width * np.random.default_rng(0).uniform(-1, 1, 2000)
    counts = count_locations(values, 0.0, 1.0)
    knots, near = read_locations(counts, 0.0, 2000, 0.0, 1.0)
    assert knots[0] <= values.min()
    assert values.max() <= knots[-1]
    assert knots[-1] - knots[0] <= 4 * FACTOR**3 * width
    assert np.diff(knots).min() <= 4 * width
    assert near.sum() == pytest.approx(2000)
    # They are not finer than a unit.
    knots, _ = read_locations(counts, 0.0, 2000, 0.0, 1.0, 1e-3)
    assert np.diff(knots).min() >= 1e-3 * (1 - 1e-9)


def test_levels_are_joined_exactly():
    """Without values beyond a level, whose counters others share, counts are those of hats."""
    rng = np.random.default_rng(0)
    values = np.r_[rng.uniform(0.40, 0.41, 1500), rng.uniform(0.25, 0.6, 100)]
    counts = count_locations(values, 0.0, 1.0)
    knots, near = read_locations(counts, 0.0, len(values), 0.0, 1.0, 1 / FACTOR**2)
    assert {*np.diff(knots)} == {1 / FACTOR, 1 / FACTOR**2}
    is_wide = np.r_[True, np.diff(knots) > 0.1] | np.r_[np.diff(knots) > 0.1, True]
    assert_allclose(near[is_wide], knot_weights(values, knots).sum(axis=0)[is_wide], atol=1e-9)


@pytest.mark.catches(
    "tables.discovery.locations:find_clusters",
    "all(cells[1] < first or last < cells[0] for first, last in chosen)",
    "cells not in chosen",
)
def test_clusters_are_disjoint_cells_apart_from_others():
    rng = np.random.default_rng(0)
    knots = np.arange(40.0)
    for _ in range(200):
        counts = rng.poisson(rng.choice([0, 1, 30, 300], len(knots))).astype(float)
        found = find_clusters(knots, counts, rng.choice([0.0, 5.0]), counts.sum())
        for i, (first, last) in enumerate(found):
            assert 0 <= first < last < len(knots)
            assert all(last < other[0] or other[1] < first for other in found[:i])
    counts = np.zeros(12)
    counts[:4], counts[8:10] = 200, 30
    assert find_clusters(np.arange(12.0), counts, 1.0, counts.sum()) == [(7, 10)]


@pytest.mark.parametrize(("value", "unit"), [(7777, 1), (-3.25, 0.01), (7777.125, None)])
@pytest.mark.parametrize("std", [0.0, 5.0])
def test_the_value_of_a_cluster_is_read_exactly(value, unit, std):
    rng, cells = np.random.default_rng(0), (value - 700.0, value + 1234.5)

    def read(values):
        counts = count_locations(values, *cells) + std * rng.normal(size=SIZE)
        return read_value(counts, std, len(values), *cells, unit)

    assert read(np.full(300, float(value))) == pytest.approx(value, abs=0 if unit == 1 else 1e-12)
    step = unit or 1e-6
    assert read(value + step * rng.integers(-2, 3, 300)) is None
    assert read(value + 500 * rng.uniform(-1, 1, 300)) is None


SENTINELS = [7777, -999, 12345, 7777.25]


@pytest.mark.parametrize("sentinel", SENTINELS)
def test_a_sentinel_among_other_values_comes_back_exactly(sentinel):
    rng = np.random.default_rng(0)
    ages = rng.integers(18, 90, 2000).astype(float)
    ages[:200], ages[200:300] = sentinel, -333
    found = infer(pd.DataFrame({"x": ages}), Schema({"x": Number()}), epsilon=10.0, seed=1)["x"]
    assert set(found.atoms) >= {sentinel, -333}
    assert 0 <= found.lower
    assert found.upper <= 128


def test_infinities_are_named_and_the_range_is_that_of_all_others():
    rng = np.random.default_rng(0)
    values = np.where(rng.random(3000) < 0.05, math.inf, rng.normal(size=3000))
    with pytest.warns(FitQualityWarning, match="'x' have infinities"):
        found = infer(pd.DataFrame({"x": values}), Schema({"x": Number()}), epsilon=5.0)["x"]
    assert -8 <= found.lower < -2
    assert 2 < found.upper <= 8


@pytest.mark.parametrize(
    ("share", "value", "decimals"),
    [(0.15, 4800.0, 0), (0.15, 4803.25, None), (0.3, 6000.0, 1), (0.2, 3141.59, 2)],
)
@pytest.mark.parametrize("epsilon", [2.0, 10.0])
def test_a_value_that_many_share_among_others_comes_back_exactly(share, value, decimals, epsilon):
    rng = np.random.default_rng(0)
    values = rng.normal(5000, 900, 3000)
    values = np.where(
        rng.random(3000) < share, value, values if decimals is None else values.round(decimals)
    )
    found = infer(pd.DataFrame({"x": values}), Schema({"x": Number()}), epsilon=epsilon)["x"]
    assert value in (found.atoms or ())


def test_a_cap_and_a_default_date_come_back_exactly():
    rng = np.random.default_rng(0)
    pay = np.minimum(rng.lognormal(11, 0.8, 3000).round(), 150_000)
    days = pd.Timestamp("2018-01-01") + pd.to_timedelta(rng.integers(0, 2000, 3000), "D")
    days = pd.Series(days).mask(rng.random(3000) < 0.2, pd.Timestamp("2019-04-01"))
    schema = Schema({"pay": Number(decimals=0), "day": Date(unit="day"), "n": Number(decimals=0)})
    found = infer(pd.DataFrame({"pay": pay, "day": days, "n": np.arange(3000) % 70}), schema, 4.0)
    assert (found["pay"].atoms, found["day"].atoms) == ((150_000,), ("2019-04-01",))
    # Each of 70 values is frequent, and none more than those beside it.
    assert found["n"].atoms is None


def test_values_far_from_a_range_are_named_if_they_are_no_point_mass():
    rng = np.random.default_rng(0)
    values = rng.lognormal(3, 1, 2000)
    # Too near to 7777 for the finest cells, and none of them equals it.
    values[:200] = 7777 + 1e-9 * rng.uniform(1, 2, 200)
    with pytest.warns(FitQualityWarning, match="'x'.*may have values beyond"):
        infer(pd.DataFrame({"x": values}), Schema({"x": Number()}), epsilon=4.0)


def test_values_apart_that_are_not_located_are_named():
    """They may be a code; here they are not, and the range holds them."""
    rng = np.random.default_rng(0)
    values = np.where(rng.random(3000) < 0.1, rng.normal(3000, 100, 3000), rng.normal(10, 1, 3000))
    with pytest.warns(FitQualityWarning, match="'x' .near .* values apart from the others"):
        found = infer(pd.DataFrame({"x": values}), Schema({"x": Number()}), epsilon=3.0)["x"]
    assert found.lower < 8
    assert found.upper > 3000


@pytest.mark.parametrize("column", [np.r_[np.inf, -np.inf], np.r_[1e30, -1e25]])
def test_values_beyond_all_grids_are_named(column):
    rng = np.random.default_rng(0)
    values = np.where(rng.random(1500) < 0.1, rng.choice(column, 1500), 1.0)
    frame = pd.DataFrame({"x": values, "y": rng.integers(0, 9, 1500)})
    with pytest.warns(FitQualityWarning, match="Columns 'x' have infinities, or values beyond"):
        infer(frame, Schema.from_dtypes(frame.dtypes), epsilon=10.0)


@pytest.mark.parametrize("column", [[2**63 + 5, 2**64 - 9], [2**61, 2**62]])
def test_integers_of_64_bits_are_within_the_grid(column):
    column, rng = np.array(column, dtype=np.uint64), np.random.default_rng(0)
    values = np.where(rng.random(1500) < 0.3, rng.choice(column, 1500), np.uint64(1))
    frame = pd.DataFrame({"x": values, "y": rng.integers(0, 9, 1500)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitQualityWarning)
        found = infer(frame, Schema.from_dtypes(frame.dtypes), epsilon=10.0)["x"]
    ends = [found.lower, found.upper, *(found.atoms or ())]
    assert min(ends) <= 1
    assert 0.99 * float(column.max()) < max(ends) <= 2.0**65


def test_values_in_many_cells_are_left_to_the_wide_grid():
    values = np.random.default_rng(0).uniform(size=2000)
    counts = count_locations(values, 0.0, 1.0)
    assert read_locations(counts, 0.0, 2000, 0.0, 1.0) == (None, None)


@pytest.mark.parametrize("special", ["1970-01-01", "9999-12-31"])
def test_special_dates_are_point_masses(special):
    rng = np.random.default_rng(0)
    dates = np.datetime64("2020-01-01") + rng.integers(0, 1500, 3000)
    dates[:900] = np.datetime64(special)
    found = infer(pd.DataFrame({"t": dates}), Schema({"t": Date()}), epsilon=4.0)["t"]
    assert found.atoms == (special,)
    assert "2019-01-01" <= found.lower
    assert found.upper <= "2025-01-01"


@pytest.mark.parametrize("start", ["2020-01-01", "9999-10-31"])
def test_dates_beside_a_far_bound_are_resolved(start):
    rng = np.random.default_rng(0)
    dates = np.datetime64(start, "s") + np.timedelta64(1, "D") * rng.integers(0, 60, 3000)
    schema = Schema({"t": Date("2020-01-01", "9999-12-31")})
    with warnings.catch_warnings(record=True) as caught:
        knots = infer(pd.DataFrame({"t": dates}), schema, epsilon=4.0)["t"].positions
    assert not caught
    days = dates.astype("M8[D]").astype(float)
    assert np.sum((days.min() < knots) & (knots < days.max())) >= 3


@pytest.mark.parametrize("values", [[0, 1], [1, 2], [-1, 1], [0, 1, 2]])
def test_a_target_of_few_integers_is_one_of_classes(values):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"y": rng.choice(values, 3000), "x": rng.normal(size=3000)})
    schema = Schema({"y": Number(decimals=0), "x": Number()})
    assert infer(frame, schema, 4.0, label="y")["y"] == Ordinal(values)
    assert isinstance(infer(frame, schema, 4.0)["y"], Number)
    declared = Schema({"y": Number(values[0], values[-1], decimals=0), "x": Number()})
    assert infer(frame, declared, 4.0, label="y")["y"] == declared["y"]
    frame["y"] = rng.integers(0, 100, 3000)
    assert isinstance(infer(frame, schema, 4.0, label="y")["y"], Number)


def fit(column, declared=None):
    frame = pd.DataFrame({"x": column, "z": np.arange(len(column)) % 2 == 0})
    schema = "auto" if declared is None else {"x": declared, "z": {"type": "boolean"}}
    schema = schema if declared is None else Schema(schema)
    fitted = DPSWFlowSampler(20.0, 1e-6, schema=schema, random_state=0, n_steps=1).fit(frame)
    return fitted, fitted.sample(50)["x"]


@pytest.mark.parametrize(
    ("is_european", "sign", "decimals"),
    [
        (False, "", 0),
        (False, "", 1),
        (False, "", 2),
        (False, "%", 1),
        (True, "$", 1),
        (True, "%", 2),
    ],
)
def test_decimals_stay_behind_groups_of_thousands(decimals, sign, is_european):
    values = np.random.default_rng(0).lognormal(8, 0.7, 1500)
    texts = pd.Series([f"{value:,.{decimals}f}" for value in values])
    if is_european:
        texts = texts.str.translate(str.maketrans(",.", ".,"))
    column = texts + sign if sign == "%" else sign + texts
    thousands, decimal = ".," if is_european else ",."
    style = Unknown(thousands=thousands, decimal=decimal) if is_european else None
    with warnings.catch_warnings(record=True):
        fitted, made = fit(column, style)
    assert fitted.schema_["x"].decimals == decimals
    if not is_european:  # texts come back as texts, unless they are declared to stand for numbers
        made = made.str.strip(sign).str.replace(",", "").astype(float)
    assert made.median() == pytest.approx(np.median(values), rel=0.3)


def test_numbers_stay_beside_limits_of_detection():
    values = np.random.default_rng(0).lognormal(1, 0.5, 1500).round(2).astype(str)
    values[:300] = "<0.5"
    with pytest.warns(FitQualityWarning, match=r"'x' \(\d\d\.\d%\).*count as missing"):
        fitted, made = fit(values)
    assert isinstance(fitted.schema_["x"], Number)
    assert made.isna().any()


def test_texts_that_look_missing_are_categories():
    fitted, made = fit(np.array(["DE", "NA", "None", "AT"] * 400, dtype=object).astype(str))
    assert set(fitted.schema_["x"].levels) >= {"DE", "NA", "None", "AT"}
    assert isinstance(fitted.schema_["x"], Category)
    assert not made.isna().any()


def test_texts_that_cannot_be_written_are_other():
    with pytest.warns(FitQualityWarning, match="'x' .*'other'.* lose their rare categories"):
        fitted, _ = fit(pd.Series(["\ud800", "a"] * 700, dtype=object))
    assert fitted.schema_["x"].levels == ("a", "other")


LOOKS = {
    "{h:02d}:{m:02d}": "times",
    "{m:02d} days {h:02d}:00:00": "times",
    "-1 days +{h:02d}:{m:02d}": "times",
    "PT{h}H{m}M": "times",
    "{m:02d}/{h:02d}/2020": "dates as %d/%m/%Y",
    "{h:02d}/{m:02d}/2020": "dates as %m/%d/%Y",
    "{m}.{h}.2020": "dates as %d.%m.%Y",
    "{h}-{h}-2020": "dates",
    "1'{m:02d}{h}.{h}": "numbers as 1'000",
    "1 {m:02d}{h}": "numbers as 1 000",
    "{h}.{m:02d}5": "numbers as 2.157",
    "{m}.{h} kg": "quantities",
}


@pytest.mark.parametrize("text", LOOKS)
def test_texts_that_are_not_read_are_named(text, recwarn):
    minutes = np.random.default_rng(0).integers(100, 600, 1500)
    cells = [text.format(h=1 + m // 60, m=1 + m % 30) for m in minutes.tolist()]
    fit(cells)
    named = f"'x' (look like {LOOKS[text]}) are read as texts or decimals"
    assert any(named in str(warning.message) for warning in recwarn)


def test_numbers_in_two_forms_are_named():
    cells = [f"{i % 90}{'.,'[i % 3 > 0]}25" for i in range(1500)]
    with pytest.warns(FitQualityWarning, match=r"'x' \((32|33|34)\.\d%\) hold cells that are not"):
        fit(cells)


def test_bounds_alone_are_categories(recwarn):
    """They counted as missing numbers, which all of a column was then."""
    fitted, made = fit([f">{10 * (i % 6)}" for i in range(1500)])
    assert isinstance(fitted.schema_["x"], Category)
    assert not made.isna().any()


# Tails.


def lose(values, last, std=0.0, seed=0, unit=None):
    """Return the estimate for values of which those beyond `last` are there, at noisy counts."""
    rng, knots = np.random.default_rng(seed), wide_knots(n_per_octave=4)
    wide, fine = knots[(knots >= 0) & (knots <= last)], np.linspace(0, last, 100)
    parts = []
    for grid in (wide, fine):
        counts = knot_weights(values, grid).sum(axis=0)
        parts.append(Histogram(grid, counts + std * rng.normal(size=len(grid)), std))
    density = estimate_density(parts, 0.0, last, unit)[:2]
    return estimate_loss(parts[1], parts[0], density, 0.0, last, unit), parts, density


@pytest.mark.parametrize("last", [16.0, 64.0])
@pytest.mark.parametrize("std", [5.0, 30.0])
def test_the_loss_of_a_lognormal_tail_is_estimated(last, std):
    values = np.random.default_rng(0).lognormal(0, 1.5, 30_000)
    loss = 1 - values.clip(max=last).mean() / values.mean()
    (found, error, is_clear), parts, (points, masses) = lose(values, last, std)
    assert is_clear == (last == 16)
    assert 0 < error < loss
    assert abs(found - loss) < max(2 * error, 0.2 * loss)
    fine, wide = parts[1], parts[0]
    scaled = [replace(part, knots=part.knots * 1e6) for part in (fine, wide)]
    again = estimate_loss(*scaled, (points * 1e6, masses), 0.0, last * 1e6)
    assert again == pytest.approx((found, error, is_clear), rel=1e-6)
    mirrored = [replace(p, knots=-p.knots[::-1], counts=p.counts[::-1]) for p in (fine, wide)]
    again = estimate_loss(*mirrored, (-points[::-1], masses[::-1]), -last, 0.0)
    assert again == pytest.approx((found, error, is_clear), rel=1e-6)


@pytest.mark.parametrize("name", ["uniform", "exponential", "normal", "groups", "geometric"])
@pytest.mark.parametrize("std", [0.0, 30.0])
def test_other_columns_lose_no_tail(name, std):
    rng = np.random.default_rng(0)
    values = {
        "uniform": rng.random(20_000),
        "exponential": rng.exponential(size=20_000),
        "normal": abs(rng.normal(5, 1, 20_000)),
        "groups": np.r_[rng.normal(8, 2, 17_000), rng.normal(1000, 50, 3000)].clip(0),
        "geometric": rng.geometric(0.02, 20_000),
    }[name]
    unit = 1.0 if name == "geometric" else None
    (loss, *_), *_ = lose(values, float(values.max()), std, unit=unit)
    assert not loss >= CONSTANTS.least_loss


def test_numbers_of_both_signs_and_declared_bounds_lose_no_tail():
    values = np.random.default_rng(0).lognormal(0, 2, 3000)
    _, (wide, fine), density = lose(values, 16.0)
    assert np.isnan(estimate_loss(fine, wide, density, -1.0, 16.0)[0])
    assert "mean and total low by" in describe_loss(Number(), fine, wide, density, 0.0, 16.0)[1]
    assert describe_loss(Number(None, 16.0), fine, wide, density, 0.0, 16.0) == (0.0, "")
    assert "mean and total low by" in describe_loss(Number(0.0), fine, wide, density, 0.0, 16.0)[1]


def test_long_tails_are_told_with_their_effect_on_the_mean():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.lognormal(6, 2, 3000), "y": rng.normal(size=3000)})
    schema = Schema({"x": Number(), "y": Number()})
    with pytest.warns(
        FitQualityWarning,
        match=r"Columns 'x' \(mean and total low by up to \d\d%\) have long tails",
    ):
        infer(frame, schema, epsilon=1.0)
