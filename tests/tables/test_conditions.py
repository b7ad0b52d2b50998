"""Columns under conditions have the law of those that are drawn until the conditions hold."""

import datetime

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from skdpgen.tables import Boolean, Category, Date, Number, Ordinal, Schema
from skdpgen.tables.columns.values import CodeScale
from skdpgen.tables.encoder import TableEncoder

N = 5_000
KINDS = {
    "whole": Number(0, 40, decimals=0, n_knots=5, missing=True),
    "cents": Number(-1, 1, decimals=2, knots=[-1, -0.57, 0, 0.29, 1]),
    "real": Number(0, 1000, n_knots=7, scale="log", missing=True),
    "day": Date("2020-01-01", "2020-12-31", n_knots=4),
    "second": Date("2020-01-01", "2021-01-01", unit="second", n_knots=4, missing=True),
    "few": Number(0, 2, decimals=0),
    "atom": Number(0, 40, decimals=0, knots=[0, 9, 40], atoms=[0, 9, 10, -99], missing=True),
    "atoms": Number(-4, 4, decimals=0, knots=[-4, 0, 4], atoms=[0, 1, 99]),
    "beside": Number(-4, 4, decimals=1, knots=[-4, 0, 4], atoms=[0, 2]),
    "gain": Number(0, 1000, n_knots=5, scale="symlog", atoms=[0, 1e6]),
    "cuts": Number(0, 100, decimals=0, knots=[0, 50, 100], cuts=[2, 3.5, 10, 90], missing=True),
    "parts": Number(0, 1000, n_knots=3, cuts=[1, 10, 100, 501], atoms=[0]),
    "moved": Number(0, 100, decimals=0, knots=[0, 50, 100], cuts=[2, 3.5, 10, 90], missing=True),
    "moved parts": Number(0, 1000, n_knots=3, cuts=[1, 10, 100, 501], atoms=[0]),
    "level": Category(["a", "b", "c"], other="d", missing=True),
}
# Numbers that are not drawn where they are encoded.
SCALES = {
    "moved": CodeScale(
        np.array([0, 2, 3.5, 10, 50, 90, 100]), np.array([0, 0.1, 0.6, 1, 1.3, 1.35, 2])
    ),
    "moved parts": CodeScale(
        np.array([0.0, 1, 10, 100, 500, 501, 1000]), np.array([0, 0.2, 0.3, 0.4, 0.7, 1.5, 2])
    ),
}
ASKED = {
    "whole": [(3, 12.5), (11, 14), 30, None],
    "cents": (-0.6, 0.3),
    "real": [(0.5, 3), (400, None)],
    "day": ("2020-05-17", "2020-05-20"),
    "second": [("2020-03-01T12:00:00", datetime.datetime(2020, 6, 1)), None],
    "few": 1,
    "atom": [(None, 3), (8, 12), None],
    "atoms": [(-1, 1), 3],
    "beside": [(-0.1, 0.2), (1.8, 2.2)],
    "gain": [0, (500, None)],
    "cuts": [(3, 20), (90, None)],
    "parts": [(0, 2.5), (300, 600)],
    "moved": [(3, 20), (45, 60), (90, None)],
    "moved parts": [(0, 2.5), (300, 600)],
    "level": ["b", "d", None],
}


def _holds(name, column):
    asked, kind = ASKED[name], KINDS[name]
    held = pd.Series(False, index=column.index)
    for part in asked if isinstance(asked, list) else [asked]:
        if part is None:
            held |= column.isna()
        elif isinstance(kind, Category):
            held |= column == part
        else:
            lower, upper = part if isinstance(part, tuple) else (part, part)
            if isinstance(kind, Date):
                lower, upper = pd.Timestamp(lower), pd.Timestamp(upper)
            lower = -np.inf if lower is None else lower
            upper = np.inf if upper is None else upper
            held |= column.ge(lower).fillna(False).astype(bool) & column.le(upper).fillna(
                False
            ).astype(bool)
    return held


def _weights(encoder, name):
    """Return a few rows of weights of different shapes, each many times."""
    rng, width = np.random.RandomState(1), encoder.n_columns
    rows = rng.dirichlet(np.full(width, 0.7), size=3)
    rows = np.vstack([rows, np.full(width, 1 / width), np.eye(width)[1] + np.eye(width)[2]])
    return rows


@pytest.mark.parametrize("name", KINDS)
def test_probabilities_and_draws_are_those_of_rows_that_are_drawn(name):
    encoder = TableEncoder(Schema({name: KINDS[name]}), SCALES)
    conditions = encoder.find_conditions({name: ASKED[name]})
    for weights in _weights(encoder, name):
        rows = np.tile(weights, (N, 1))
        drawn = encoder.draw(rows, np.random.RandomState(2))[name]
        held = _holds(name, drawn)
        probability = conditions[name].probability(rows[:1])[0]
        assert (
            abs(held.mean() - probability)
            < 4.5 * np.sqrt(probability * (1 - probability) / N) + 1e-9
        )
        if not held.any():
            continue
        made = encoder.draw(rows, np.random.RandomState(3), conditions)[name]
        assert _holds(name, made).all()
        assert made.dtype == drawn.dtype
        expected = drawn[held]
        assert abs(made.isna().mean() - expected.isna().mean()) < 5 / np.sqrt(len(expected))
        if isinstance(KINDS[name], Category):
            made, expected = made.cat.codes, expected.cat.codes
        made, expected = (
            np.sort(c.dropna().astype("float64" if c.dtype.kind != "M" else "int64"))
            for c in (made, expected)
        )
        if len(expected) < 50:
            continue
        # Kolmogorov-Smirnov.
        at = np.unique(expected)
        gaps = [np.searchsorted(c, at, side="right") / len(c) for c in (made, expected)]
        assert np.abs(gaps[0] - gaps[1]).max() < 2.2 * np.sqrt(1 / len(made) + 1 / len(expected))


SCHEMA = Schema(
    {
        "age": Number(18, 90, decimals=0),
        "height": Number(0.0, 2.5),
        "income": Number(0, 100, missing=True),
        "job": Category(["nurse", "cook"]),
        "risk": Ordinal(["low", "high"]),
        "smoker": Boolean(),
        "day": Date("2020-01-01", "2020-12-31"),
    }
)
REFUSED = {
    "unknown column": ({"size": 1}, r"names \['size'\], which are no columns"),
    "unknown level": ({"job": ["nurse", "clerk"]}, "'clerk' is not among the levels of 'job'"),
    "tuple of levels": ({"job": ("nurse", "cook")}, "Pass several levels as a list"),
    "nothing": ({"job": []}, "condition on 'job' is an empty list"),
    "missing level": ({"job": None}, "missing values of 'job', which has none"),
    "missing number": ({"age": [(20, 30), None]}, "missing values of 'age', which has none"),
    "missing as NaN": ({"smoker": float("nan")}, "missing values of 'smoker'"),
    "reversed": ({"age": (40, 30)}, r"range \(40, 30\) of 'age' is empty"),
    "reversed dates": ({"day": ("2020-03-01", "2020-02-01")}, "of 'day' is empty"),
    "below": ({"age": (1, 17)}, "outside its bounds"),
    "above": ({"age": 91}, "outside its bounds"),
    "late": ({"day": "2021-01-01"}, "outside its bounds"),
    "between values": ({"age": (30.2, 30.8)}, "No value of 'age' is in the range"),
    "a point": ({"height": 1.7}, "No value of 'height' is in the range .* wider"),
    "three ends": ({"age": (1, 2, 3)}, r"must be \(lower, upper\)"),
    "text": ({"age": "old"}, "asks for numbers of 'age'"),
    "bool": ({"age": True}, "asks for numbers of 'age'"),
    "no date": ({"day": 3}, "of 'day' must be a date"),
    "part of a day": ({"day": "2020-03-01T12:00"}, "whole day"),
    "no dict": ([("age", 3)], "where must be a dict"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_contradictions_are_refused(name):
    where, match = REFUSED[name]
    with pytest.raises(ValueError, match=match):
        TableEncoder(SCHEMA).find_conditions(where)


def test_an_atom_alone_may_be_asked_for():
    """Numbers without decimals allow no other single value, and atoms beyond the bounds."""
    kind = Number(0, 1, atoms=[0, -9], missing=True)
    encoder = TableEncoder(Schema({"x": kind}))
    row = np.full((1, encoder.n_columns), 1 / encoder.n_columns)
    for asked, weights in ((0, 1), (-9, 1), ([0, -9], 2), ((None, None), 18), ([-9, None], 2)):
        condition = encoder.find_conditions({"x": asked})["x"]
        assert condition.probability(row) == pytest.approx(weights / 19)
        made = set(condition.draw(np.tile(row, (200, 1)), np.random.RandomState(0)))
        if weights == 1:
            assert made == {asked}
    for asked in (0.5, -8, (-8, -1), (2, 3)):
        with pytest.raises(ValueError, match=r"outside its bounds|No value of 'x'"):
            encoder.find_conditions({"x": asked})


LONG, DAYS = np.linspace(0, 1, 40).tolist(), [f"2020-01-{day:02d}" for day in range(1, 32)]
LONG_COLUMNS = {
    "knots": (Number(0, 1, knots=LONG), (2, 3), "is outside its bounds"),
    "breakpoints": (Number(-1, 2, n_knots=2, cuts=LONG), None, "missing values"),
    "dates": (Date(DAYS[0], DAYS[-1], knots=DAYS), "2030-01-01", "is outside its bounds"),
    "categories": (Category(DAYS), None, "missing values"),
}


@pytest.mark.parametrize("name", LONG_COLUMNS)
def test_messages_list_no_knots(name):
    """Inferred columns have hundreds of knots, breakpoints and categories."""
    column, asked, match = LONG_COLUMNS[name]
    with pytest.raises(ValueError, match=match) as caught:
        TableEncoder(Schema({"x": column})).find_conditions({"x": asked})
    assert len(str(caught.value)) < 200
    assert len(repr(column)) > 300


def test_bounds_that_reach_further_are_cut():
    condition = TableEncoder(SCHEMA).find_conditions({"age": (-5, 200)})["age"]
    rows = np.random.RandomState(0).uniform(size=(3, TableEncoder(SCHEMA).n_columns))
    assert condition.probability(rows) == pytest.approx(np.ones(3))


def test_impossible_values_have_a_probability_of_zero():
    """Also where differences of sums would leave rounding errors."""
    kind = Number(0, 100, decimals=1, n_knots=9)
    encoder = TableEncoder(Schema({"x": kind}))
    rows = np.tile([0.1, 0.2, 0.3, 0.4, 0, 0, 0, 0, 0], (3, 1))
    for asked in (75, (70, 88), (81, 84)):
        (condition,) = encoder.find_conditions({"x": asked}).values()
        assert_array_equal(condition.probability(rows), 0)


@pytest.mark.parametrize("rare", [1e-3, 1e-8, 1e-11])
def test_rare_ranges_have_their_law(rare):
    kind = Number(0, 1000, decimals=2, n_knots=6)
    encoder = TableEncoder(Schema({"x": kind}))
    rows = np.tile([0.5, 0.5, *[rare] * 4], (4000, 1))
    conditions = encoder.find_conditions({"x": (700, 701)})
    # 101 values of 20,000 in each interval, of which each has its right knot's weight.
    likely = conditions["x"].probability(rows[:1])[0] * (1 + 4 * rare)
    assert likely == pytest.approx(rare * 101 / 20_000, rel=1e-3)
    drawn = encoder.draw(rows, np.random.RandomState(0), conditions)["x"]
    assert drawn.nunique() > 90


def test_ends_of_intervals_within_a_step_of_whole_numbers():
    kind = Number(0, 1e6, decimals=0, knots=[0, 5e5, 1e6], cuts=[1e5, 9e5])
    numbers = np.array([0, 1e5, 5e5, 9e5, 1e6])
    scale = CodeScale(numbers, np.array([0, 0.9, 1 + 1e-7, 1 + 2e-7, 2]))
    encoder = TableEncoder(Schema({"x": kind}), {"x": scale})
    rows = np.tile([0.0, 1, 0], (20_000, 1))
    (condition,) = encoder.find_conditions({"x": (0, 499_999)}).values()
    drawn = encoder.draw(rows, np.random.RandomState(0))["x"]
    assert condition.probability(rows[:1])[0] == pytest.approx((drawn < 5e5).mean(), abs=0.02)
