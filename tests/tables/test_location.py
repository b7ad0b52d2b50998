"""Ranges at any location and scale, of numbers and dates; targets of integers."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdpgen import DPSWFlowSampler
from skdpgen.accounting.plan import gaussian_plan
from skdpgen.curator.curator import Curator
from skdpgen.curator.record_functions import RecordFunction
from skdpgen.exceptions import FitQualityWarning
from skdpgen.mechanisms.noise import NoiseSource
from skdpgen.tables.columns import Category, Date, Number, Ordinal
from skdpgen.tables.inference.columns import SchemaInference
from skdpgen.tables.inference.location import (
    FACTOR,
    N_LEVELS,
    SIZE,
    encode_locations,
    find_cells,
    read_locations,
)
from skdpgen.tables.schema import Schema


def infer(frame, schema, epsilon=math.inf, seed=0, label=None):
    inference = SchemaInference(schema, label=label)
    plan = gaussian_plan(inference.split_budget(1.0), epsilon, 1e-6)
    cells = frame[list(schema)].to_numpy(dtype=object)
    source = {"prepare": RecordFunction(inference.encode), "cells": True}
    with Curator(cells, plan=plan, noise=NoiseSource(seed), **source) as curator:
        return inference.run(curator)


def test_a_record_adds_a_vector_of_norm_one_at_most():
    numbers = np.r_[np.random.default_rng(0).uniform(-1, 12, 500), 0, 10, np.nan, np.inf, -np.inf]
    rows = encode_locations(numbers, 0.0, 10.0)
    assert rows.min() >= 0
    assert np.linalg.norm(rows, axis=1).max() <= 1 + 1e-12
    is_inside = (numbers >= 0) & (numbers <= 10)
    assert_allclose(rows.sum(axis=1)[is_inside], math.sqrt(N_LEVELS))
    assert not rows[~is_inside].any()
    for number, row in zip(numbers, rows, strict=True):
        assert_array_equal(encode_locations(np.array([number]), 0.0, 10.0)[0], row)


def test_a_record_adds_a_vector_of_norm_one_at_most_over_all_columns():
    inference = SchemaInference(Schema({"a": Number(), "b": Number(), "t": Date(unit="day")}))
    cells = [[0.5, 7.0, "2020-01-31"], [0.25, 3.0, "2020-02-01"], [None, "x", None]]
    cells = np.array(cells, dtype=object)
    cells[:, 2] = [pd.Timestamp(t) if t else t for t in cells[:, 2]]
    bounds = {"a": (0.0, 1.0), "b": (0.0, 10.0), "t": (18000.0, 19000.0)}
    rows = inference._encode_locations(bounds, {"a": [0.25], "b": [], "t": []}, cells)
    assert rows.shape == (3, 3 * SIZE)
    assert_allclose(np.linalg.norm(rows, axis=1)[:2] <= 1 + 1e-12, True)
    # Point masses, and cells that are no numbers, have no location.
    assert_array_equal(rows.reshape(3, 3, SIZE).any(axis=2), [[1, 1, 1], [0, 1, 1], [0, 0, 0]])


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
    counts = encode_locations(values, 0.0, 1.0).sum(axis=0) * math.sqrt(N_LEVELS)
    knots, near = read_locations(counts, 0.0, 2000, 0.0, 1.0)
    assert knots[0] <= values.min()
    assert values.max() <= knots[-1]
    assert knots[-1] - knots[0] <= 4 * FACTOR**2 * width
    assert near.sum() == pytest.approx(2000)
    # They are not finer than a unit.
    knots, _ = read_locations(counts, 0.0, 2000, 0.0, 1.0, 1e-3)
    assert np.diff(knots).min() >= 1e-3 * (1 - 1e-9)


def test_values_in_many_cells_are_left_to_the_wide_grid():
    values = np.random.default_rng(0).uniform(size=2000)
    counts = encode_locations(values, 0.0, 1.0).sum(axis=0) * math.sqrt(N_LEVELS)
    assert read_locations(counts, 0.0, 2000, 0.0, 1.0) == (None, None)


SCALES = [
    *((0, 10.0**k) for k in (-12, -5, 0, 6, 12, 15)),
    *((1e6, 0.01), (-1e9, 1.0), (-273.15, 0.5), (1e15, 1e9), (1e-6, 1e-9)),
]


@pytest.mark.parametrize(("level", "scale"), SCALES)
def test_numbers_are_found_at_any_level_and_scale(level, scale):
    rng = np.random.default_rng(0)
    frame = {"a": rng.normal(size=3000), "b": rng.lognormal(size=3000), "c": rng.random(3000)}
    frame = level + scale * pd.DataFrame(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitQualityWarning)
        found = infer(frame, Schema(dict.fromkeys(frame, Number())), epsilon=4.0)
    for name, column in frame.items():
        knots = found[name].positions
        low, high = np.quantile(column, [0.25, 0.75])
        assert knots[0] <= low
        assert high <= knots[-1]
        # Several knots are among the middle half.
        assert np.sum((low - 0.5 * (high - low) < knots) & (knots < high + 0.5 * (high - low))) >= 3


@pytest.mark.parametrize("unit", ["day", "second"])
@pytest.mark.parametrize("spread", [1e2, 1e4])
def test_dates_are_found_wherever_they_are(unit, spread):
    rng = np.random.default_rng(0)
    start = np.datetime64("1873-05-01") if unit == "day" else np.datetime64("2024-02-29T13:45:00")
    dates = start + rng.integers(0, int(spread), 3000)
    found = infer(pd.DataFrame({"t": dates}), Schema({"t": Date(unit=unit)}), epsilon=4.0)["t"]
    values = dates.astype(f"M8[{unit[0] if unit == 'second' else 'D'}]").astype(float)
    assert_allclose(found.positions[[0, -1]], values[[values.argmin(), values.argmax()]], rtol=0.01)
    assert found.positions[-1] - found.positions[0] < 3 * spread


@pytest.mark.parametrize("special", ["1970-01-01", "9999-12-31"])
def test_special_dates_are_point_masses(special):
    rng = np.random.default_rng(0)
    dates = np.datetime64("2020-01-01") + rng.integers(0, 1500, 3000)
    dates[:900] = np.datetime64(special)
    found = infer(pd.DataFrame({"t": dates}), Schema({"t": Date()}), epsilon=4.0)["t"]
    assert found.atoms == (special,)
    assert "2019-01-01" <= found.lower
    assert found.upper <= "2025-01-01"


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
    ("texts", "kind", "low", "high"),
    [
        ("{:.2f}%", Number, 0, 1100),
        ("EUR {:.2f}", Number, 0, 1100),
        ("({:.2f})", Number, -1100, 0),
        ("{:,.2f}", Number, 0, 1100),
        ("{:d}", Number, 0, 1100),
    ],
)
def test_amounts_are_numbers_however_they_are_written(texts, kind, low, high):
    values = np.random.default_rng(0).uniform(1, 999, 1500)
    values = values.astype(int) if "d" in texts else values
    with warnings.catch_warnings(record=True):
        fitted, made = fit([texts.format(value) for value in values.tolist()])
    assert isinstance(fitted.schema_["x"], kind)
    assert made.dropna().between(low, high).all()


def test_decimal_commas_are_told_from_groups():
    rng = np.random.default_rng(0)
    for write in (lambda v: f"{v:.2f}".replace(".", ","), lambda v: f"{1000 * v:,.0f}"):
        with warnings.catch_warnings(record=True):
            _, made = fit([write(value) for value in rng.uniform(1, 90, 1500)])
        assert made.median() == pytest.approx(45 if made.max() < 1000 else 45_000, rel=0.3)


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
