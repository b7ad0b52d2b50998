"""Values that are multiples of a coarser step more often than by chance."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from skdpgen import DPSWFlowSampler
from skdpgen.exceptions import FitQualityWarning
from skdpgen.mechanisms.base import NoisySum
from skdpgen.tables import Date, Number, Ordered, Schema, sample_from_schema
from skdpgen.tables.columns.heaps import (
    DATE_STEPS,
    DECIMALS_OF,
    STEPS,
    find_cells,
    find_date_levels,
    find_levels,
    snap_dates,
    snap_numbers,
)
from skdpgen.tables.discovery.decimals import LevelCounts, encode_decimals, read_levels
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
    times = ["03", "03:30", "03:45", "03:20", "03:55", "03:59", "03:30:01", "03:30:01.25"]
    texts += ["2020-06-09T" + time for time in (*times, "03:30:01.25001")]
    dates = np.array([*texts, "NaT"], dtype="M8[us]")
    assert_array_equal(find_date_levels(dates), [*range(14), -1])
    assert_array_equal(find_cells(dates, "hours"), [0] * 5 + [3] * 9 + [-1])
    assert_array_equal(find_cells(dates, "weekdays"), [2, 5, 5, 0] + [1] * 10 + [-1])
    assert_array_equal(find_cells(np.array(["1969-12-28T23:59"], "M8[s]"), "weekdays"), [6])


@pytest.mark.parametrize("step", DATE_STEPS[:-1])
def test_dates_move_to_the_next_multiple(step):
    found = snap_dates(moments, step)
    others = ("year", "month") if step == "month" else ("year", "month", "month end", "week", step)
    levels = [DATE_STEPS[i] for i in find_date_levels(found)]
    assert set(levels) <= {*others, *DATE_STEPS[: DATE_STEPS.index(step)]}
    assert_array_equal(snap_dates(found, step), found)
    length = Date(unit="millisecond").measure(step)
    moved = (moments - found).astype("m8[ms]").astype(float)
    if length > 7e8:
        assert abs(moved).max() <= 0.52 * length
    elif step != "week":
        # They stay within their day and hour.
        assert moved.min() >= 0
        assert moved.max() < length


def test_numbers_move_to_the_next_multiple():
    assert_array_equal(snap_numbers(np.array([20.6, -20.6, 19.2]), 1, 0.01), [20.99, -20.99, 18.99])
    assert_array_equal(snap_numbers(np.array([7.0, -8, 3]), 5, 0), [5, -10, 5])


CELLS = {"hours": 24, "weekdays": 7}


def count(values, std, seed=0):
    is_date = np.issubdtype(values.dtype, np.datetime64)
    levels = find_date_levels(values) if is_date else find_levels(values)
    counts = np.bincount(levels[levels >= 0], minlength=len(DECIMALS_OF) + 3)
    noise = std * np.random.default_rng(seed).normal(size=len(counts))
    cycles = []
    if is_date:
        noises = (np.random.default_rng((seed, n)).normal(size=n) * 1.4 * std for n in (24, 7))
        cells = (np.bincount(find_cells(values, c), minlength=n) for c, n in CELLS.items())
        cycles = [n + noise - noise.mean() for n, noise in zip(cells, noises, strict=True)]
    return LevelCounts(counts + noise, std, *cycles)


def find(values, kind, std=0.0, masses=(), seed=0):
    quantiles = np.unique(np.quantile(pay, np.linspace(0.05, 0.95, 14)).round().astype(int))
    if isinstance(kind, Number):
        knots = [0, *quantiles.tolist(), 400_000]
        kind = Number(0, 400_000, kind.decimals, knots=knots)
    return count(values, std, seed).with_heaps(kind, dict(masses))


DAYS = Date("2018-01-01", "2023-12-31", n_knots=16)
TIMES = Date("2018-01-01", "2023-12-31", unit="second", n_knots=16)
MINUTES = Date("2018-01-01", "2023-12-31", unit="minute", n_knots=16)
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
    "quarters of hours": (snap_dates(moments, "quarter hour"), TIMES, [("quarter hour", 1)]),
    "half minutes": (
        np.where(is_half, snap_dates(moments, "5 minutes"), moments.astype("M8[m]")),
        MINUTES,
        [("5 minutes", 0.5)],
    ),
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
    found = find(values, kind, std).heaps
    assert [heap[:-1] for heap in found] == [heap[:-1] for heap in expected]
    assert found[0][-1] == pytest.approx(expected[0][-1], abs=0.1)
    assert sum(heap[-1] for heap in found) <= 1 + 1e-9
    # Noise of so much leaves nothing.
    assert find(values, kind, 1500.0).heaps is None


@pytest.mark.parametrize("std", [0.0, 40.0])
def test_other_columns_have_no_heaps(std):
    smooth = [(pay.round(), WHOLE), (pay.round(2), Number(decimals=2)), (pay, Number())]
    # Equally many on each weekday and in each hour, as sampling adds to the noise.
    even = np.datetime64("2018-01-01", "s") + (np.arange(N) // 2).astype("m8[D]")
    times = even + (np.arange(N) * 0.618034 % 1 * 86_400).astype("m8[s]")
    smooth += [(even, DAYS), (times, TIMES)]
    for seed in range(10):
        for values, kind in smooth:
            found = find(values, kind, std, seed=seed)
            assert found.heaps is None
            assert not found.cycles
    # Whole numbers of a narrow range are popular themselves.
    narrow = Number(0, 30, 0, knots=[0, 8, 9, 10, 11, 12, 30])
    assert count(rng.binomial(20, 0.5, N), std).with_heaps(narrow, {}).heaps is None


office = days + rng.integers(8 * 60, 18 * 60, N).astype("m8[m]")
night = days + rng.integers(22 * 60, 30 * 60, N).astype("m8[m]")
shifts = days + np.array([0, 8, 16])[rng.integers(0, 3, N)].astype("m8[h]")
at_work = np.isin(find_cells(days, "weekdays"), range(5))
CYCLIC = {
    "noon": (days + np.timedelta64(12, "h"), "hours", [12], 1),
    "office": (office, "hours", [*range(8, 18)], 1),
    "night": (night, "hours", [22, 23, *range(6)], 1),
    "shifts": (shifts, "hours", [0, 8, 16], 1),
    "half at midnight": (np.where(is_half, days, office), "hours", [*range(8, 18)], 0.5),
    "weekdays": (
        np.where(at_work, days, days - np.timedelta64(3, "D")),
        "weekdays",
        [*range(5)],
        1,
    ),
    "Mondays": (snap_dates(days, "week") + (moments - days), "weekdays", [0], 1),
}


@pytest.mark.parametrize("std", [0.0, 30.0])
@pytest.mark.parametrize("name", CYCLIC)
def test_hours_and_weekdays_are_drawn_as_they_were(name, std):
    """Also beside heaps of days and weeks, whose dates are at midnight and on Mondays."""
    values, cycle, cells, share = CYCLIC[name]
    kind = DAYS if name == "weekdays" else MINUTES
    found = find(values, replace(kind, lower="2018-01-01", upper="2023-06-30"), std)
    encoder = TableEncoder(Schema({"t": found}))
    rows = rng.dirichlet(np.ones(encoder.n_columns), N)
    made = encoder.draw(rows, np.random.RandomState(0))["t"].to_numpy()
    real, drawn = (np.isin(find_cells(t, cycle), cells).mean() for t in (values, made))
    assert drawn == pytest.approx(real, abs=0.05)
    assert real >= share
    assert made.min() >= np.datetime64("2018-01-01")
    assert made.max() <= np.datetime64("2023-07-01")
    # Under a condition, and as the later one of two dates, too.
    condition = encoder.find_conditions({"t": ("2019-01-01", "2019-12-31")})
    made = encoder.draw(rows, np.random.RandomState(0), condition)["t"].to_numpy()
    assert np.isin(find_cells(made, cycle), cells).mean() == pytest.approx(real, abs=0.05)
    assert (made.astype("M8[Y]") == np.datetime64("2019")).all()
    # Noise of so much leaves nothing.
    assert not find(values, kind, 4000.0).cycles
    assert count(values, 4000.0).hides_hours
    assert not count(values, std).hides_hours


def test_the_later_of_two_dates_keeps_its_hours():
    hours = [0.0] * 8 + [0.1] * 10 + [0.0] * 6
    date = Date("2020-01-01", "2020-12-31", "minute", n_knots=5, hours=hours)
    schema = Schema({"a": date, "b": date}, [Ordered("a", "b", difference=Number(0, 9**6, 0))])
    drawn = sample_from_schema(schema, 2000, random_state=0)
    assert (drawn["a"] <= drawn["b"]).all()
    assert drawn["a"].dt.hour.between(8, 17).mean() > 0.97
    far = drawn["b"] - drawn["a"] >= pd.Timedelta("1D")
    assert far.mean() > 0.3
    assert drawn["b"][far].dt.hour.between(8, 17).mean() > 0.97


def test_hours_and_weekdays_are_counted_beside_levels():
    """Absent dates have none, so that the cells of the others sum to their number."""
    schema = Schema({"t": Date(unit=None, missing=True), "x": Number()})
    table = pd.DataFrame({"t": [*office[:40], pd.NaT], "x": [1.0] * 40 + [0.5]})
    total = encode_decimals(table, schema).sum(axis=0)
    counted = read_levels(schema, NoisySum(total, 0.0), len(table))["t"]
    assert counted.counts.sum() == pytest.approx(40)
    for cycle, n_cells in CELLS.items():
        expected = np.bincount(find_cells(office[:40], cycle), minlength=n_cells)
        assert getattr(counted, cycle) == pytest.approx(expected)


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
    assert find(values, WHOLE).heaps == ((1000, 0, pytest.approx(0.5, abs=0.06)),)
    assert find(values, WHOLE, masses={15_000: float((values == 15_000).sum())}).heaps is None
    dates = np.where(is_half, np.datetime64("2019-06-01", "s"), days)
    found = find(dates, DAYS, masses={18_048: float(is_half.sum())})
    assert (found.heaps, found.weekdays) == (None, None)


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


KEPT = [
    Number(0, 9, heaps=[(0.5, 0, 1)]),
    Date(heaps=[("week", 0.3)], weekdays=[0.2] * 5 + [0] * 2),
]


@pytest.mark.parametrize("kind", KEPT)
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


@pytest.mark.parametrize("wrong", [{"weekdays": [1] * 7}, {"hours": [1]}, {"hours": [1 / 24] * 24}])
def test_shares_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Date(**wrong)


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
