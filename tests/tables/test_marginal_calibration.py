"""Numbers are drawn with the shapes that were counted, whatever rows say between knots."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdpgen import Boolean, DPSlicedWassersteinGenerator, DPSWFlowSampler, Number, Schema
from skdpgen.histograms.grids import knot_weights
from skdpgen.tables.blocks import share_below
from skdpgen.tables.discovery.densities import Histogram
from skdpgen.tables.encoder import TableEncoder
from skdpgen.tables.marginal_calibration import _STEPS, _DrawDistribution, calibrate_scales

KIND = Number(0, 100, knots=[0, 10, 50, 100], cuts=[1, 2, 4, 20, 30], atoms=[0], missing=True)
SCHEMA = Schema({"a": Boolean(), "x": KIND})


def make_rows(n_rows, rng):
    """Rows of which many are nearly at a knot."""
    rows = [rng.dirichlet(np.full(width, 0.8), n_rows) for width in (2, 6)]
    return np.hstack(rows) / np.sqrt(2)


def find_scales(*args):
    return {name: scale for name, (scale, _) in calibrate_scales(*args).items()}


def calibrate(histogram, make_rows=make_rows):
    rng = np.random.RandomState(0)
    blocks = TableEncoder(SCHEMA).make_blocks()
    return find_scales(blocks, {"x": [histogram]}, {}, lambda n_rows: make_rows(n_rows, rng))


def count(values, std):
    knots = np.linspace(0, 100, 101)
    return Histogram(knots, knot_weights(values, knots).sum(axis=0), std)


EXPONENTIAL = -15 * np.log(1 - (np.arange(10_000) + 0.5) / 10_000)


def draw(codes, make_rows=make_rows, n_rows=200_000):
    rng = np.random.RandomState(1)
    column = TableEncoder(SCHEMA, codes).draw(make_rows(n_rows, rng), rng)["x"]
    return column[column != 0].dropna().to_numpy()


def share(values, *edges):
    return np.histogram(values, edges)[0] / len(values)


def make_exponential(n_rows, rng, factor=1.0):
    """Rows of which each has the weights of a few values, as those of records."""
    block = TableEncoder(SCHEMA).make_blocks()[1]
    codes = block.scale.encode(factor * rng.choice(EXPONENTIAL, (3, n_rows)))
    rows = np.zeros((n_rows, 8))
    rows[:, 2:6] = knot_weights(codes, np.arange(4.0)).mean(axis=0)
    return rows


def test_distributions_of_rows_are_added_up():
    """Those of powers on a grid are near enough to that of each row."""
    block = TableEncoder(SCHEMA).make_blocks()[1]
    rows = make_rows(5_000, np.random.default_rng(0))
    found = _DrawDistribution(block)
    found.add(rows)
    from_left, from_right, _ = found.block.split_weights(rows[:, block.where])
    steps = _STEPS[:, None, None]
    below = ((from_left + from_right) * share_below(steps, from_left, from_right)).sum(axis=1)
    assert_allclose(found.find_below(), below.T, atol=1e-3 * below.max())


def test_shares_between_cuts_are_as_counted():
    codes = calibrate(count(EXPONENTIAL, 3.0), make_exponential)
    plain, even = (draw(c, make_exponential) for c in (None, codes))
    edges = 0, 1, 2, 4, 10, 20, 30, 50
    expected = -np.diff(np.exp(-np.array(edges) / 15))
    expected /= expected.sum()
    off, found = (share(x, *edges) / share(x, 0, 50) - expected for x in (plain, even))
    assert np.abs(found).max() < 0.02
    assert np.abs(off).max() > 0.03
    # The last interval has no cuts: its counts were not clear.
    assert_allclose(share(even, 50, 100), share(plain, 50, 100), atol=0.005)


def test_intervals_are_between_what_was_counted_and_the_rows():
    make = partial(make_exponential, factor=1.5)
    drawn = draw(calibrate(count(EXPONENTIAL, 3.0), make), make)
    found, counted, of_rows = (
        np.divide(*share(x, 0, 10, 50)) for x in (drawn, EXPONENTIAL, 1.5 * EXPONENTIAL)
    )
    assert of_rows < found < counted


@pytest.mark.parametrize("gap", [1, 2])
def test_a_value_beside_what_is_not_clear_stays_where_it_is(gap):
    """Beside 40 hours, there is hardly a number between the next knots to be counted."""
    near = [40 - gap, 40, 40 + gap]
    kind = Number(0, 99, decimals=0, knots=[0, *near, 99], cuts=[5, 20, 60, 70])
    block = TableEncoder(Schema({"x": kind, "a": Boolean()})).make_blocks()[0]
    rows = np.tile([0.1, 0.1, 0.6, 0.1, 0.1, 0, 1], (1000, 1))
    knots = np.arange(100.0)
    counted = Histogram(knots, np.where(knots == 40, 600.0, 4.0), 1.0)
    (scale,) = find_scales([block], {"x": [counted]}, {}, lambda n_rows: rows).values()
    assert_allclose(scale.encode(np.array(near)), [1, 2, 3], atol=1e-4)


def test_values_between_whole_knots_are_as_many_as_were_counted():
    """Seven is between knots, and eight is one: rows say of neither how many there are."""
    kind = Number(0, 30, decimals=0, knots=[0, 6, 8, 9, 10, 12, 14, 30], cuts=[2, 4, 18, 24])
    block = TableEncoder(Schema({"x": kind})).make_blocks()[0]
    values = np.arange(31.0)
    # Rows are sharp, so that few numbers lie between their knots.
    rows = knot_weights(block.scale.encode(values), np.arange(8.0)).clip(0.01)
    rows = np.tile(np.where(rows > 0.6, rows, 0.3 * rows), (200, 1))
    counted = Histogram(values, np.full(31, 200.0), 1.0)

    def share_off(codes):
        made = TableEncoder(Schema({"x": kind}), codes).make_blocks()[0]
        drawn = made.draw(np.tile(rows, (20, 1)), np.random.RandomState(0))
        shares = np.bincount(drawn, minlength=31)[6:15] / len(drawn)
        return np.abs(shares - 1 / 31).sum()

    codes = find_scales([block], {"x": [counted]}, {}, lambda n_rows: rows[:n_rows])
    assert share_off(codes) < 0.7 * share_off(None)


def test_the_first_of_a_few_values_is_not_taken_for_the_second():
    """Calls of customers: at least one. Whether counts say a few or none of 0, one stays one."""
    kind = Number(0, 16, decimals=0, knots=[0, 1, 2, 3, 4, 8, 16], cuts=[5, 6])
    block = TableEncoder(Schema({"x": kind})).make_blocks()[0]
    shares = np.array([0, 0.387, 0.276, 0.123, 0.112, 0.077, 0.025])
    # Rows have next to nothing of their neighbours, and some as much of 0 as of 2.
    rng = np.random.RandomState(0)
    tiny = np.tile(1e-12 * shares, (20_000, 1))
    tiny[::10, 0] = tiny[::10, 2]
    drawn = rng.choice(7, 20_000, p=shares)
    drawn[::4000] = 0
    rows = tiny + np.eye(7)[drawn]
    expected = np.bincount(block.draw(rows, rng), minlength=17)
    for first in (-30.0, 40.0):
        counted = Histogram(np.arange(17.0), np.r_[first, 1.5 * expected[1:]], 50.0)
        codes = find_scales([block], {"x": [counted] * 2}, {}, lambda _: rows)
        made = TableEncoder(Schema({"x": kind}), codes).make_blocks()[0]
        found = np.bincount(made.draw(rows, rng), minlength=17)
        assert_allclose(found / 20_000, expected / 20_000, atol=0.02)


def test_counts_of_an_interval_without_rows_are_drawn():
    """A knot far out may have no row, since its count is within the noise of tables."""
    kind = Number(0, 100, knots=[0, 10, 100], cuts=[5, 30, 60])
    block = TableEncoder(Schema({"x": kind})).make_blocks()[0]
    rows = np.tile([0.5, 0.5, 0.0], (1000, 1))
    counted = count(np.linspace(0, 100, 5000), 1.0)
    scales = find_scales([block], {"x": [counted]}, {}, lambda n_rows: rows)
    drawn = (
        TableEncoder(Schema({"x": kind}), scales)
        .make_blocks()[0]
        .draw(rows, np.random.RandomState(0))
    )
    assert 0.2 < (drawn > 10).mean() < 0.95


def test_codes_increase_from_the_first_knot_to_the_last():
    def make_few(n_rows, rng):
        # Nothing between knots, and nothing at all in the first interval.
        rows = np.zeros((n_rows, 8))
        rows[:, 0] = rows[:, 5] = 1
        return rows

    for make in (make_rows, make_few):
        for values in ([3.0], [40.0, 41.0], EXPONENTIAL, []):
            scale = calibrate(count(np.array(values), 1.0), make)["x"]
            assert (np.diff(scale.codes) > 0).all()
            assert (np.diff(scale.numbers) > 0).all()
            assert_allclose(scale.codes[[0, -1]], [0, 3])
            assert_allclose(scale.numbers[[0, -1]], [0, 100])


def test_where_rows_have_no_such_numbers_all_stays():
    rows = np.tile([1.0, 0, 0, 0, 0, 0, 1, 0], (1000, 1))
    scale = calibrate(count(EXPONENTIAL, 1.0), lambda n_rows, rng: rows)["x"]
    encoded = TableEncoder(SCHEMA).make_blocks()[1].scale
    assert_array_equal(scale.encode(encoded.numbers), encoded.codes)


@pytest.mark.parametrize(
    ("cls", "sizes"),
    [
        (DPSlicedWassersteinGenerator, {"n_steps": 150, "batch_size": 500}),
        (DPSWFlowSampler, {"n_steps": 60}),
    ],
)
def test_samples_have_the_shape_that_was_counted(cls, sizes):
    rng = np.random.RandomState(0)
    frame = pd.DataFrame({"x": rng.gamma(2, 10, 6000).clip(0, 200), "y": rng.rand(6000) < 0.3})
    frame["z"] = (frame["x"] + rng.normal(0, 10, 6000)).clip(0, 200)
    schema = Schema({"x": Number(0, 200), "y": Boolean(), "z": Number(0, 200)})
    fitted = cls(3.0, schema=schema, random_state=0, **sizes).fit(frame, target="y")
    assert set(fitted._format.scales) == {"x", "z"}
    assert not fitted._format._histograms
    edges = [-1, *np.quantile(frame["x"], np.arange(1, 20) / 20), 201]

    def variation():
        made = fitted.sample(40_000, random_state=0)["x"]
        return 0.5 * np.abs(share(made, *edges) - share(frame["x"], *edges)).sum()

    even = variation()
    asked = fitted.sample(500, where={"x": (5, 12)}, random_state=0)["x"]
    assert asked.between(5, 12).all()
    fitted._format = fitted._format.__class__(fitted.schema_, fitted._format.layout)
    plain = variation()
    assert even < 0.04
    assert even < 0.8 * plain


DECLARED = {
    "bounds": Number(0, 100, n_knots=16),
    "few knots": Number(0, 100, knots=[0, 10, 55, 100]),
    "cents": Number(0, 100, decimals=2, n_knots=11),
    "whole": Number(0, 100, decimals=0, n_knots=11),
    "cuts": Number(0, 100, knots=[0, 50, 100], cuts=[5, 12, 60, 90]),
}


@pytest.mark.parametrize("kind", DECLARED.values(), ids=DECLARED)
def test_declared_numbers_have_the_smoothest_density(kind):
    """Sharp rows, as learnt ones, put most numbers near knots; uniform numbers come back."""
    block = TableEncoder(Schema({"x": kind})).make_blocks()[0]
    rng = np.random.RandomState(0)
    codes = block.scale.encode(rng.uniform(0, 100, 40_000))
    shares = knot_weights(codes, np.arange(block.n_levels)).mean(axis=0)
    rows = rng.dirichlet(0.2 + shares, 4000)
    rows *= shares / rows.mean(axis=0)
    rows /= rows.sum(axis=1, keepdims=True)
    scales = find_scales([block], {}, {"x": 1e-3}, lambda n_rows: rows[:n_rows])

    def variation(scales):
        made = TableEncoder(Schema({"x": kind}), scales).make_blocks()[0]
        drawn = made.draw(np.tile(rows, (20, 1)), np.random.RandomState(1))
        found = np.histogram(drawn, np.linspace(0, 100, 21))[0]
        return 0.5 * np.abs(found / len(drawn) - 0.05).sum()

    assert variation(scales) < min(0.07, 0.8 * variation(None))
