"""How fine open columns are: decimals of numbers, times and zones of dates, codes."""

import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdpgen import DPSWFlowSampler
from skdpgen.histograms.grids import find_farthest
from skdpgen.mechanisms.base import NoisySum
from skdpgen.mechanisms.sums import WeightSumMechanism
from skdpgen.planning.fits import find_thresholds
from skdpgen.privacy import (
    Curator,
    NoiseSource,
    RecordFunction,
    TableError,
    gaussian_plan,
    preview,
)
from skdpgen.tables import Category, Date, Number, Schema, Unknown
from skdpgen.tables.columns.cells import read_dates
from skdpgen.tables.columns.date import DATE_CODES
from skdpgen.tables.columns.texts import parse_cells
from skdpgen.tables.discovery.decimals import encode_decimals, find_decimals, read_levels
from skdpgen.tables.discovery.stages import SchemaInference
from skdpgen.tables.encoder import TableEncoder

ROUGH = Schema({"a": Number(missing=True), "t": Date(unit=None, missing=True), "s": Number(0, 1)})


def found_of(cells, kind, std=0.0, seed=0):
    schema = Schema({"a": kind})
    table = pd.DataFrame({"a": pd.Series(cells, dtype=object)})
    total = encode_decimals(table, schema).sum(axis=0)
    noise = np.random.default_rng(seed).normal(size=len(total)) * std
    return find_decimals(schema, read_levels(schema, NoisySum(total + noise, std), len(table)))["a"]


def infer_texts(cells, epsilon):
    inference = SchemaInference(Schema({"a": Unknown()}))
    shares = inference.split_budget(1.0)
    plan = gaussian_plan(shares, epsilon, 1e-6, thresholds=find_thresholds(shares, 1e-6))
    cells = np.array(cells, dtype=object)[:, None]
    source = {"prepare": RecordFunction(inference.encode), "cells": True}
    with Curator(cells, plan=plan, noise=NoiseSource(0), **source) as curator:
        return inference.run(curator)["a"]


@pytest.mark.parametrize(
    ("cells", "decimals"),
    [
        ([3913.0, 0.0, -2.0, 5], 0),
        ([0.5, 1.0, 2.25], 2),
        ([0.29, 1e9 + 0.57, -3.1], 2),
        ([0.1 + 0.2, math.pi], None),
        ([1e-6, 1.0], 6),
        ([1e-7, 1.0], None),
        ([float(np.float32(v)) for v in (0.29, 0.1, 7.33)], 2),
        ([1234.875, 2.0], 3),
        ([None, 7.0, math.nan, math.inf, "x"], 0),
        ([None, "x"], None),
        ([1.0] * 96 + [0.5] * 4, 0),  # 95 % are enough
        ([1.0] * 90 + [0.5] * 10, 1),
    ],
)
def test_decimals(cells, decimals):
    assert found_of(cells * 10, Number(missing=True)).decimals == decimals


def test_whole_numbers_are_found_up_to_64_bits_without_a_release_of_decimals():
    """Those of a frame of integers ended at 2^52, and those next to 2^64 were called too large."""
    rng = np.random.default_rng(0)
    largest = np.uint64(2**64 - 1) - rng.integers(0, 1000, 1000).astype(np.uint64)
    table = pd.DataFrame({"a": largest, "b": rng.integers(10**17, 2 * 10**17, 1000)})
    sampler = DPSWFlowSampler(100.0, 1e-6, n_steps=1, random_state=0).fit(table)
    made = sampler.sample(500)
    assert "decimals" not in sampler.privacy_.releases
    assert made.dtypes.tolist() == ["uint64", "int64"]
    assert made["a"].min() > 2**64 - 2**40
    assert_allclose(made["b"].quantile([0.1, 0.9]), table["b"].quantile([0.1, 0.9]), rtol=0.1)
    assert sampler.schema_report_["finding"].tolist() == ["identifiers"] * 2


def test_decimals_that_noise_hides_are_left_as_they_are():
    cells = [1.0] * 900
    assert found_of(cells, Number(), std=20.0).decimals == 0
    coarse = [found_of(cells, Number(), 2000.0, seed).decimals is not None for seed in range(200)]
    assert np.mean(coarse) < 0.25
    floats = np.random.default_rng(0).random(900).tolist()
    coarse = [found_of(floats, Number(), 100.0, seed).decimals is not None for seed in range(200)]
    assert np.mean(coarse) < 0.05


def test_a_few_values_beside_missing_ones_keep_their_decimals():
    """Their sum is less than the noise of the sum of all counts."""
    cells = np.random.default_rng(0).normal(8.5, 2.6, 1400).round(1).tolist()
    kept = [found_of(cells, Number(), 150.0, seed).decimals for seed in range(100)]
    assert np.mean([decimals == 1 for decimals in kept]) > 0.95


@pytest.mark.parametrize("price", [9.99, 4.5])
def test_a_clear_count_keeps_its_decimals_whatever_the_noise_of_others(price):
    """The noise of the sum of all counts is five times that of one."""
    cells = [*range(1, 2500), *[price] * 500]
    kept = [found_of(cells, Number(), 80.0, seed).decimals for seed in range(100)]
    assert np.mean([decimals == 0 for decimals in kept]) < 0.05


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_times_finer_than_milliseconds_are_named(share, recwarn):
    """Microseconds come back in milliseconds, except in a column that is declared so."""
    times = pd.date_range("2020-01-01T12:00:01.5", periods=200, freq="D")
    times += pd.to_timedelta(np.where(np.arange(200) < share * 200, 7, 0), unit="us")
    found_of(times.tolist(), Date(unit="millisecond"))
    assert not recwarn.list
    assert found_of(times.tolist(), Date(unit=None)).unit == "millisecond"
    named = ["'a' have times finer than milliseconds" in str(w.message) for w in recwarn.list]
    assert named == [True] * (share > 0.05)


@pytest.mark.parametrize("unit", DATE_CODES)
def test_dates_come_back_in_their_unit(unit):
    kind = Date(unit=unit)
    times = pd.Series(np.array(["2020-02-03T04:05:06.789", "1960-02-03T04:05:06.789"], "M8[us]"))
    present, units = kind.encode(times)
    made = kind.decode(units, ~present)
    assert_array_equal(made, times.to_numpy().astype(f"M8[{DATE_CODES[unit]}]"))
    assert_array_equal(kind.to_values(made), units)


def test_a_time_counts_as_what_its_declared_unit_makes_of_it():
    """Otherwise values of coarse units would have no level among those of the unit."""
    times = pd.Series(pd.date_range("2020-01-01T12:00:01.5", periods=3, freq="D"))
    rows = [
        encode_decimals(pd.DataFrame({"a": t}), Schema({"a": Date()}))
        for t in (times, times.dt.floor("D"))
    ]
    assert_array_equal(*rows)


def test_bounds_that_are_declared_may_be_finer():
    assert found_of([1.0, 2.0] * 9, Number(lower=0.5)).decimals is None
    dates = pd.date_range("2020-01-01", periods=9).tolist()
    assert found_of(dates, Date("2019-01-01T12:00", unit=None)).unit == "second"
    assert found_of(dates, Date("2019-01-01", unit=None)).unit == "day"


def test_bounds_may_be_too_far_from_zero_for_the_decimals():
    """Open bounds are looked for where numbers of so many decimals are exact."""
    assert found_of([7.125, 8.375] * 9, Number(lower=5)).decimals == 3
    far = 1.25 * find_farthest(1)
    for kind in (Number(lower=far), Number(upper=-far)):
        assert found_of([7.1, 8.3] * 9, kind) == kind


def test_units_of_dates():
    days = pd.date_range("2020-01-01", periods=40, freq="D")
    assert found_of(days.tolist(), Date(unit=None)).unit == "day"
    shifts = (("2h", "hour"), ("90min", "minute"), ("61s", "second"), ("5ms", "millisecond"))
    for times, unit in shifts:
        assert found_of((days + pd.Timedelta(times)).tolist(), Date(unit=None)).unit == unit
    with pytest.raises(ValueError, match="None with open bounds"):
        Date("2020-01-01", "2021-01-01", unit=None)


@pytest.mark.catches(
    "tables.discovery.decimals:encode_decimals", "weight / len(names)", "1 / len(names)"
)
@pytest.mark.parametrize(("relation", "bound"), [("zero_out", 1.0), ("replace_one", math.sqrt(2))])
def test_a_record_moves_the_counts_by_at_most_what_is_stated(relation, bound):
    cells = [[1.0, "2020-01-01"], [0.5, "2020-01-01T10:00"], [None, None], [math.pi, "x"]]
    table = pd.DataFrame(cells, columns=["a", "t"], dtype=object)
    table["t"] = [pd.Timestamp(t) if t and t != "x" else t for t in table["t"]]
    rows = encode_decimals(table, ROUGH)
    # A date has three weights: at its level, its hour and its weekday.
    assert ((rows > 0).sum(axis=1) == 4).all()
    apart = rows if relation == "zero_out" else rows[:, None] - rows
    assert np.linalg.norm(apart, axis=-1).max() == pytest.approx(bound)
    assert WeightSumMechanism("decimals").sensitivity(relation) == pytest.approx(bound)


def test_each_cell_is_counted_on_its_own():
    cells = np.array([0.29, 1e300, 7, None, "x", 2**70, True, math.inf], dtype=object)
    together = encode_decimals(pd.DataFrame({"a": cells}), Schema({"a": Number()}))
    for i, row in enumerate(together):
        alone = pd.DataFrame({"a": cells[i : i + 1]})
        assert_array_equal(encode_decimals(alone, Schema({"a": Number()}))[0], row)


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan, None, "x", True])
def test_numbers_that_are_not_finite_have_no_decimals(bad):
    """They count as missing, and not as whole numbers."""
    cells = pd.DataFrame({"a": np.array([bad, 7.0, 0.35], dtype=object)})
    rows = encode_decimals(cells, Schema({"a": Number()}))
    assert rows.argmax(axis=1).tolist() == [rows.shape[1] - 1, 7, 10]


def test_it_is_planned_where_something_may_be_rough():
    def releases(**kinds):
        return SchemaInference(Schema(kinds)).releases

    assert "decimals" in releases(a=Number())
    assert "decimals" in releases(a=Date(unit=None))
    assert "decimals" in releases(a=Unknown())
    assert "decimals" not in releases(a=Number(decimals=2))
    assert "decimals" not in releases(a=Number(0, 1))
    assert "decimals" not in releases(a=Date(), b=Category())
    generator = DPSWFlowSampler(schema=Schema({"a": Number()}))
    assert preview(generator, 100, 1).releases[0] == "decimals"


def test_texts_of_whole_numbers_are_whole():
    assert infer_texts([f"{i}.0" for i in range(100)], math.inf).decimals == 0


def test_columns_come_back_as_they_are():
    n, rng = 1500, np.random.RandomState(0)
    table = pd.DataFrame(
        {
            "whole": rng.randint(0, 4000, n).astype(float),
            "cents": np.round(rng.gamma(2, 20, n), 2),
            "zeros": np.where(rng.rand(n) < 0.5, 0, np.round(rng.gamma(2, 20, n), 2)),
            "flag": rng.randint(0, 2, n).astype(float),
            "any": rng.rand(n),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.randint(300, size=n), "D"),
            "time": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.randint(9**8, size=n), "s"),
            "zoned": (pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.randint(9**8, size=n), "s"))
            .tz_localize("UTC")
            .tz_convert("Europe/Vienna"),
        }
    )
    generator = DPSWFlowSampler(
        epsilon=8.0, delta=1e-6, schema="private", random_state=0, n_steps=20, n_particles=200
    ).fit(table)
    made = generator.sample(500)
    assert dict(made.dtypes) == dict(table.dtypes)
    assert (made["whole"] % 1 == 0).all()
    assert_allclose(made["cents"], made["cents"].round(2))
    assert (made["zeros"] == 0).mean() > 0.35
    assert set(made["flag"]) <= {0.0, 1.0}
    assert (made["any"] % 1 != 0).mean() > 0.5
    assert (made["day"] == made["day"].dt.normalize()).all()
    for name in ("time", "zoned"):
        assert (made[name] != made[name].dt.normalize()).mean() > 0.9
    assert generator.schema_["zoned"].zone == "Europe/Vienna"


# Time zones.


def test_dates_in_a_zone():
    kind = Date("2020-01-01", "2020-12-31T23:59:59", unit="second", n_knots=3, zone="Europe/Vienna")
    schema = Schema({"t": kind})
    assert Schema.from_json(schema.to_json()) == schema
    # A clock in Vienna shows noon when one in London shows eleven, or the summer's time of day.
    zoned = pd.DataFrame(
        {"t": pd.to_datetime(["2020-03-01T11:00Z", "2020-12-31T23:30Z"]).tz_convert("UTC")}
    )
    present, dates = read_dates(zoned["t"].astype(object), "Europe/Vienna")
    assert present.all()
    assert dates.astype(str).tolist() == ["2020-03-01T12:00:00.000", "2021-01-01T00:30:00.000"]
    naive = pd.Series([pd.Timestamp("2020-03-01"), "x", 7], dtype=object)
    assert np.isnat(read_dates(naive, "UTC")[1][1:]).all()
    mixed = pd.Series([*zoned["t"], *naive], dtype=object)
    assert_array_equal(read_dates(mixed, "Europe/Vienna")[1][:2], dates)
    encoder = TableEncoder(schema)
    rows = encoder.encode(zoned)
    drawn = encoder.draw(np.repeat(rows[:1], 50, axis=0), np.random.RandomState(0))
    assert str(drawn["t"].dtype) == "datetime64[s, Europe/Vienna]"
    assert Schema.from_public(zoned)["t"].zone == "UTC"
    with pytest.raises(ValueError, match="name of a time zone"):
        Date(zone="nowhere")


def test_zones_have_to_be_declared():
    zoned = pd.DataFrame({"t": pd.to_datetime(["2020-03-01T11:00Z"] * 9)})
    bounds, params = ("2020-01-01", "2021-01-01"), {"random_state": 0, "n_steps": 2}
    for kind, table in (
        (Date(*bounds), zoned),
        (Date(*bounds, zone="UTC"), zoned.assign(t=pd.Timestamp("2020-03-01"))),
    ):
        with pytest.raises(TableError, match="zone="):
            DPSWFlowSampler(schema=Schema({"t": kind}), **params).fit(table)


def test_clocks_that_skip_or_repeat_an_hour():
    kind = Date("2021-03-28T02:10:00", "2021-03-28T02:50:00", "second", zone="Europe/Vienna")
    encoder = TableEncoder(Schema({"t": kind}))
    drawn = encoder.draw(np.ones((20, len(kind.positions))), np.random.RandomState(0))["t"]
    assert (drawn == pd.Timestamp("2021-03-28T03:00", tz="Europe/Vienna")).all()
    kind = Date("2021-10-31T02:10:00", "2021-10-31T02:50:00", "second", zone="Europe/Vienna")
    encoder = TableEncoder(Schema({"t": kind}))
    assert encoder.draw(np.ones((20, 16)), np.random.RandomState(0))["t"].notna().all()


def test_texts_of_files_with_zones():
    texts = pd.DataFrame({"t": ["2020-03-01T12:00+01:00", "2020-03-01T12:00", ""]})
    kind = Date("2020-01-01", "2021-01-01", unit="second", zone="UTC")
    parsed = parse_cells(texts, Schema({"t": kind}))["t"]
    assert parsed[0] == pd.Timestamp("2020-03-01T11:00Z")
    # It has no zone, and counts as no date of the column.
    assert parsed[1] == pd.Timestamp("2020-03-01T12:00")
    assert pd.isna(parsed[2])


# Codes.


@pytest.mark.parametrize(("share", "kind"), [(0.03, Category), (0.0, Number)])
def test_codes_with_leading_zeros_are_texts(share, kind):
    """Also where most cells would do as numbers: as such they would lose their zeros."""
    n = 2000
    cells = np.array(["98765", "12345"], dtype=object)[np.arange(n) % 2]
    cells[: int(share * n)] = "00123"
    found = infer_texts(cells, 8.0)
    assert type(found) is kind
    assert kind is Number or {"00123", "98765"} <= set(found.levels)
