"""Values that are multiples of a coarser step more often than by chance."""

import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from skdpgen import DPSWFlowSampler
from skdpgen.exceptions import FitQualityWarning
from skdpgen.tables import Date, Number, Schema
from skdpgen.tables.columns.heaps import (
    DATE_STEPS,
    DECIMALS_OF,
    STEPS,
    find_date_levels,
    find_levels,
    snap_dates,
    snap_numbers,
)
from skdpgen.tables.discovery.decimals import LevelCounts
from skdpgen.tables.encoder import TableEncoder

N = 4000
rng = np.random.default_rng(0)
pay = rng.lognormal(10.3, 0.5, N)
days = np.datetime64("2018-01-01", "s") + rng.integers(0, 2000, N).astype("m8[D]")
moments = days + rng.integers(0, 86_400, N).astype("m8[s]")
fractions = moments + rng.integers(1, 1000, N).astype("m8[ms]")
months = days.astype("M8[M]").astype("M8[s]")
is_half = rng.random(N) < 0.5


def test_levels_are_the_coarsest_steps():
    numbers = [
        20_000,
        1000,
        -500,
        7,
        0.5,
        0.1,
        1e-6,
        1 / 3,
        19.99,
        -4.95,
        19,
        -750,
        175,
        7.5,
        6.75,
        4.375,
        0,
        math.inf,
        math.nan,
    ]
    ends, more = len(STEPS), len(DECIMALS_OF)
    assert_array_equal(
        find_levels(np.array(numbers)),
        [0, 1, 2, 7, 8, 9, 15, more, *range(ends, ends + 8), more + 1, -1, -1],
    )
    assert_array_equal(find_levels(np.float32([0.1, 19.99]).astype(float)), [9, ends])
    assert_array_equal(
        find_levels(np.array([20240129.0, 20241331, 18000101.0, 0.2])), [more + 2, 7, 7, 9]
    )
    texts = ["2020-01-01", "2020-02-01", "2020-02-29", "2020-06-08", "2020-06-09"]
    texts += ["2020-06-09T03", "2020-06-09T03:30", "2020-06-09T03:30:01"]
    texts += ["2020-06-09T03:30:01.25", "2020-06-09T03:30:01.25001", "NaT"]
    dates = np.array(texts, dtype="M8[us]")
    assert_array_equal(find_date_levels(dates), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1])


@pytest.mark.parametrize("step", DATE_STEPS[:-1])
def test_dates_move_to_the_next_multiple(step):
    found = snap_dates(moments, step)
    others = ("year", "month") if step == "month" else ("year", "month", "month end", "week", step)
    levels = [DATE_STEPS[i] for i in find_date_levels(found)]
    assert set(levels) <= {*others, *DATE_STEPS[: DATE_STEPS.index(step)]}
    assert_array_equal(snap_dates(found, step), found)
    length = Date(unit="millisecond").measure(step)
    assert abs((found - moments).astype("m8[ms]").astype(float)).max() <= 0.52 * length


def test_numbers_move_to_the_next_multiple():
    assert_array_equal(snap_numbers(np.array([20.6, -20.6, 19.2]), 1, 0.01), [20.99, -20.99, 18.99])
    assert_array_equal(snap_numbers(np.array([7.0, -8, 3]), 5, 0), [5, -10, 5])


def count(values, std, seed=0):
    is_date = np.issubdtype(values.dtype, np.datetime64)
    levels = find_date_levels(values) if is_date else find_levels(values)
    counts = np.bincount(levels[levels >= 0], minlength=len(DECIMALS_OF) + 3)
    noise = np.random.default_rng(seed).normal(size=len(counts))
    return LevelCounts(counts + std * noise, std)


def find(values, kind, std=0.0, masses=(), seed=0):
    quantiles = np.unique(np.quantile(pay, np.linspace(0.05, 0.95, 14)).round().astype(int))
    if isinstance(kind, Number):
        knots = [0, *quantiles.tolist(), 400_000]
        kind = Number(0, 400_000, kind.decimals, knots=knots)
    return count(values, std, seed).with_heaps(kind, dict(masses)).heaps


DAYS = Date("2018-01-01", "2023-12-31", n_knots=16)
TIMES = Date("2018-01-01", "2023-12-31", unit="second", n_knots=16)
FINE = Date("2018-01-01", "2023-12-31", unit="millisecond", n_knots=16)
WHOLE = Number(decimals=0)
HEAPED = {
    "500": (np.round(pay / 500) * 500, WHOLE, [(500, 0, 1)]),
    "half 1000": (np.where(is_half, np.round(pay, -3), np.round(pay)), WHOLE, [(1000, 0, 0.5)]),
    "prices": (np.floor(pay) + 0.99, Number(decimals=2), [(1, 0.01, 1)]),
    "half prices": (
        np.where(is_half, np.floor(pay) + 0.95, pay.round(2)),
        Number(decimals=2),
        [(1, 0.05, 0.5)],
    ),
    "250": (np.round(pay / 250) * 250, WHOLE, [(250, 0, 1)]),
    "half 25": (np.where(is_half, np.round(pay / 25) * 25, pay.round()), WHOLE, [(25, 0, 0.5)]),
    "2.5": (np.round(pay / 2.5) * 2.5, Number(decimals=1), [(2.5, 0, 1)]),
    "quarters": (np.round(pay * 4) / 4, Number(decimals=2), [(0.25, 0, 1)]),
    "half eighths": (
        np.where(is_half, np.round(pay * 8) / 8, pay.round(3)),
        Number(decimals=3),
        [(0.125, 0, 0.5)],
    ),
    "some whole": (np.where(is_half, pay.round(), pay), Number(), [(1, 0, 0.5)]),
    "months": (months, DAYS, [("month", 1)]),
    "half months": (np.where(is_half, months, days), DAYS, [("month", 0.5)]),
    "ends": (snap_dates(days, "month end"), DAYS, [("month end", 1)]),
    "weeks": (snap_dates(days, "week"), DAYS, [("week", 1)]),
    "days": (np.where(is_half, days, moments), TIMES, [("day", 0.5)]),
    "seconds": (np.where(is_half, moments, fractions), FINE, [("second", 0.5)]),
    "microseconds": (
        np.where(is_half, moments, fractions + np.timedelta64(7, "us")),
        FINE,
        [("second", 0.5)],
    ),
}


@pytest.mark.parametrize("std", [0.0, 40.0])
@pytest.mark.parametrize("name", HEAPED)
def test_shares_of_steps_are_found(name, std):
    values, kind, expected = HEAPED[name]
    found = find(values, kind, std)
    assert [heap[:-1] for heap in found] == [heap[:-1] for heap in expected]
    assert found[0][-1] == pytest.approx(expected[0][-1], abs=0.1)
    assert sum(heap[-1] for heap in found) <= 1 + 1e-9
    # Noise of so much leaves nothing.
    assert find(values, kind, 1500.0) is None


@pytest.mark.parametrize("std", [0.0, 40.0])
def test_other_columns_have_no_heaps(std):
    smooth = [(pay.round(), WHOLE), (pay.round(2), Number(decimals=2)), (pay, Number())]
    smooth += [(days, DAYS), (moments, TIMES)]
    for seed in range(10):
        for values, kind in smooth:
            assert find(values, kind, std, seed=seed) is None
    # Whole numbers of a narrow range are popular themselves.
    narrow = Number(0, 30, 0, knots=[0, 8, 9, 10, 11, 12, 30])
    assert count(rng.binomial(20, 0.5, N), std).with_heaps(narrow, {}).heaps is None


@pytest.mark.parametrize("dtype", [int, pytest.param(float, marks=pytest.mark.slow), str])
def test_dates_that_are_numbers_are_named(dtype):
    dates = pd.Series(days).dt.strftime("%Y%m%d").astype(dtype)
    frame = pd.DataFrame({"day": dates, "n": rng.integers(10_000_000, 99_999_999, N), "x": pay})
    sampler = DPSWFlowSampler(5.0, random_state=0, n_steps=2, n_particles=100)
    with pytest.warns(FitQualityWarning, match="Columns 'day' hold dates as whole numbers"):
        sampler.fit(frame)
    assert sampler.schema_report_["finding"].eq("dates as numbers").sum() == 1
    frame["day"] = pd.to_datetime(frame["day"], format="%Y%m%d")
    assert "dates" not in str(sampler.fit(frame).schema_report_["finding"].tolist())


@pytest.mark.parametrize(("share", "are_dates"), [(0.98, True), (0.5, False), (0.0, False)])
def test_dates_are_nearly_all_numbers(share, are_dates):
    dates = pd.Series(days).dt.strftime("%Y%m%d").astype(float)
    values = np.where(rng.random(N) < share, dates, rng.integers(10_000_000, 99_999_999, N))
    assert all(count(values, 20.0, seed).are_dates == are_dates for seed in range(20))
    assert not count(values, 1500.0).are_dates


def test_point_masses_are_no_heaps():
    values = np.where(is_half, 15_000, pay.round())
    assert find(values, WHOLE) == ((1000, 0, pytest.approx(0.5, abs=0.06)),)
    assert find(values, WHOLE, masses={15_000: float((values == 15_000).sum())}) is None
    dates = np.where(is_half, np.datetime64("2019-06-01", "s"), days)
    assert find(dates, DAYS, masses={18_048: float(is_half.sum())}) is None


def test_declared_heaps_are_drawn():
    kind = Number(0, 100, 0, knots=[0, 50, 100], atoms=[60], heaps=[(10, 0, 0.4), (5, 0, 0.2)])
    dated = Date("2020-01-10", "2020-12-20", heaps=[("month", 0.5)])
    encoder = TableEncoder(Schema({"x": kind, "t": dated}))
    drawn = encoder.draw(
        rng.dirichlet(np.ones(encoder.n_columns), 20_000), np.random.RandomState(0)
    )
    x = drawn["x"][drawn["x"] != 60]
    assert (x % 10 == 0).mean() == pytest.approx(0.4 + 0.2 / 2 + 0.4 / 10, abs=0.03)
    assert (x % 5 == 0).mean() == pytest.approx(0.6 + 0.4 / 5, abs=0.03)
    atom = encoder.draw(np.tile(np.eye(encoder.n_columns)[3], (200, 1)), np.random.RandomState(0))
    assert (atom["x"] == 60).all()
    assert (drawn["t"].dt.day == 1).mean() == pytest.approx(0.5 + 0.5 / 30, abs=0.03)
    assert drawn["t"].between("2020-01-10", "2020-12-20").all()


def test_no_heap_is_a_point_mass():
    """A multiple that is a point mass has all of its values: others move one step further."""
    kind = Number(0, 100, 0, knots=[0, 50, 100], atoms=[50], heaps=[(10, 0, 1)])
    encoder = TableEncoder(Schema({"x": kind}))
    rows = np.tile([0.25, 0.2, 0.2, 0.25, 0.1], (5000, 1))
    x = encoder.draw(rows, np.random.RandomState(0))["x"]
    assert (x % 10 == 0).all()
    assert (x == 50).mean() == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize(("step", "gap"), [(0.1, 0), (1, 0.01), (0.125, 0), (0.01, 0), (500, 0)])
def test_multiples_are_the_floats_that_are_written_so(step, gap):
    numbers = np.random.default_rng(0).uniform(-1000, 1000, 5000)
    found = snap_numbers(numbers, step, gap)
    assert found.tolist() == [float(f"{x:.6f}") for x in found]


@pytest.mark.parametrize("kind", [Number(0, 9, heaps=[(0.5, 0, 1)]), Date(heaps=[("week", 0.3)])])
def test_heaps_are_kept_in_json(kind, tmp_path):
    schema = Schema({"x": kind})
    schema.to_json(tmp_path / "schema.json")
    assert Schema.from_json(tmp_path / "schema.json") == schema


@pytest.mark.parametrize(
    ("kind", "heaps"),
    [
        (Number, [(0, 0, 1)]),
        (Number, [(5, 1)]),
        (Number, [(5, 0, 1.5)]),
        (Number, [(5, 0, 0.7), (10, 0, 0.7)]),
        (Date, [("moon", 1)]),
        (Date, [("month", 0)]),
        (Date, "month"),
    ],
)
def test_heaps_that_make_no_sense_are_refused(kind, heaps):
    with pytest.raises(ValueError, match="heaps"):
        kind(heaps=heaps)


@pytest.mark.parametrize("epsilon", [2.0, 10.0])
def test_rounded_columns_come_back_rounded(epsilon):
    frame = pd.DataFrame(
        {
            "pay": np.round(pay / 500) * 500,
            "price": np.floor(pay / 1000) + 0.99,
            "month": months,
            "score": rng.normal(size=N),
        }
    )
    sampler = DPSWFlowSampler(epsilon, random_state=0, n_steps=50, n_particles=500)
    made = sampler.fit(frame).sample(4000)
    assert (made["pay"] % 500 == 0).mean() > 0.95
    assert (np.abs(made["price"] % 1 - 0.99) < 1e-6).mean() > 0.95
    assert (made["month"].dt.day == 1).mean() > 0.95
    for name in ("pay", "price"):
        real, found = (np.quantile(t[name], [0.25, 0.5, 0.75]) for t in (frame, made))
        assert abs(found - real).max() < 0.15 * (real[2] - real[0])
