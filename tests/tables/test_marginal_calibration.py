"""Numbers are drawn with the shapes that were counted, whatever rows say between knots."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdpgen import Boolean, DPSlicedWassersteinGenerator, DPSWFlowSampler, Number, Schema
from skdpgen.tables.encoder import TableEncoder
from skdpgen.tables.marginal_calibration import _fit_masses, calibrate_codes

KIND = Number(0, 100, knots=[0, 10, 50, 100], cuts=[1, 2, 4, 20, 30], atoms=[0], missing=True)
SCHEMA = Schema({"a": Boolean(), "x": KIND})


def make_rows(n_rows, rng):
    """Rows of which many are nearly at a knot."""
    rows = [rng.dirichlet(np.full(width, 0.8), n_rows) for width in (2, 6)]
    return np.hstack(rows) / np.sqrt(2)


def calibrate(counted, make_rows=make_rows):
    rng = np.random.RandomState(0)
    blocks = TableEncoder(SCHEMA).make_blocks()
    return calibrate_codes(blocks, {"x": counted}, lambda n_rows: make_rows(n_rows, rng))


def draw(codes, n_rows=200_000):
    rng = np.random.RandomState(1)
    column = TableEncoder(SCHEMA, codes).draw(make_rows(n_rows, rng), rng)["x"]
    return column[column != 0].dropna().to_numpy()


def share(values, *edges):
    return np.histogram(values, edges)[0] / len(values)


def test_cuts_part_what_is_drawn_in_equal_shares():
    plain, codes = draw(None), calibrate(np.array([500.0, 300.0, 20.0]))
    even = draw(codes)
    assert np.ptp(share(plain, 0, 1, 2, 4, 10) / share(plain, 0, 10)) > 0.2
    assert_allclose(share(even, 0, 1, 2, 4, 10) / share(even, 0, 10), 1 / 4, atol=0.015)
    assert_allclose(share(even, 10, 20, 30, 50) / share(even, 10, 50), 1 / 3, atol=0.015)
    # The last interval has no cuts: its counts were not clear.
    assert_allclose(share(even, 50, 100), share(plain, 50, 100), atol=0.005)


@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_intervals_come_nearer_to_what_was_counted(ratio):
    plain = share(draw(None), 0, 10, 50, 100)
    counted = 1000 * plain * [ratio, 1, 1]
    found = share(draw(calibrate(counted)), 0, 10, 50, 100)
    wanted = counted[:2] / counted[:2].sum() * plain[:2].sum()
    # Knots of made rows say something else, and so it is between.
    assert (np.abs(found[:2] - wanted) < 0.8 * np.abs(plain[:2] - wanted)).all()


def test_fitted_masses_are_exact_where_all_agree():
    counted, half = np.array([300.0, 500.0, 200.0]), np.array([0.15, 0.25, 0.1])
    wanted = _fit_masses(half, half, counted)
    assert_allclose(wanted, counted / 1000, rtol=1e-6)


def test_fitted_masses_are_the_least_squares_solution():
    from_left, from_right = np.array([0.2, 0.3]), np.array([0.3, 0.2])
    counted = np.array([600.0, 400.0])
    a, b = _fit_masses(from_left, from_right, counted)
    # a / 2 = 0.2, (a + b) / 2 = 0.6, b / 2 = 0.2, and a = 0.6, b = 0.4, which weigh 0.49 of that,
    # of which a + b = 1 is to hold.
    assert_allclose([a, b], [(0.25 + 1.2 * 0.49) / 1.48, (0.25 + 0.8 * 0.49) / 1.48], atol=1e-4)


@pytest.mark.parametrize(
    ("made", "counted"),
    [
        ([0.9, 0.1], [0.1, 0.9]),
        ([0.98, 0.02], [0.01, 0.99]),
        ([0.5, 0.49, 0.01], [0.001, 0.001, 0.998]),
        ([0.25] * 4, [0.97, 0.01, 0.01, 0.01]),
    ],
)
def test_no_share_changes_by_more_than_half(made, counted):
    made = np.array(made)
    wanted = _fit_masses(made / 2, made / 2, np.array(counted))
    assert wanted.sum() == pytest.approx(1)
    assert np.maximum(wanted / made, made / wanted).max() < 1.51


def test_noise_in_tails_moves_next_to_nothing():
    """Where tables say that there is nothing, no noise of counts brings much."""
    made = np.array([0.5, 0.49, 0.01])
    counted = np.array([500.0, 490.0, 300.0])
    assert _fit_masses(made / 2, made / 2, counted)[2] <= 1.51 * 0.01


def test_a_value_beside_what_is_not_clear_stays_where_it_is():
    """Of those who work 40 hours, there are none between 39 and 41 to be counted."""
    kind = Number(0, 99, decimals=0, knots=[0, 39, 40, 41, 99], cuts=[5, 20, 60, 70])
    block = TableEncoder(Schema({"x": kind, "a": Boolean()})).make_blocks()[0]
    rows = np.tile([0.1, 0.1, 0.6, 0.1, 0.1, 0, 1], (1000, 1))
    counted = np.array([400.0, 100, 100, 300])
    (codes,) = calibrate_codes([block], {"x": counted}, lambda n_rows: rows).values()
    at = np.searchsorted(block.scale.numbers, [39, 40, 41])
    assert_allclose(codes[at], [1, 2, 3], atol=1e-4)


def test_codes_increase_from_the_first_knot_to_the_last():
    def make_few(n_rows, rng):
        # Nothing between knots, and nothing at all in the first interval.
        rows = np.zeros((n_rows, 8))
        rows[:, 0] = rows[:, 5] = 1
        return rows

    for make in (make_rows, make_few):
        for counted in ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1e6, 3.0]):
            codes = calibrate(np.array(counted), make)["x"]
            assert codes.shape == (9,)
            assert (np.diff(codes) > 0).all()
            assert_allclose(codes[[0, -1]], [0, 3])


def test_where_rows_have_no_such_numbers_all_stays():
    rows = np.tile([1.0, 0, 0, 0, 0, 0, 1, 0], (1000, 1))
    codes = calibrate(np.array([1.0, 1.0, 1.0]), lambda n_rows, rng: rows)["x"]
    encoded = TableEncoder(SCHEMA).make_blocks()[1].scale.codes
    assert_array_equal(codes, encoded)


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
    assert set(fitted._format.codes) == {"x", "z"}
    assert fitted._format.counted is None
    edges = [-1, *np.quantile(frame["x"], np.arange(1, 20) / 20), 201]

    def variation():
        made = fitted.sample(40_000, random_state=0)["x"]
        return 0.5 * np.abs(share(made, *edges) - share(frame["x"], *edges)).sum()

    even = variation()
    asked = fitted.sample(500, where={"x": (5, 12)}, random_state=0)["x"]
    assert asked.between(5, 12).all()
    fitted._format = fitted._format.__class__(fitted.schema_, fitted._format.kind)
    plain = variation()
    assert even < 0.04
    assert even < 0.8 * plain


def test_what_is_declared_is_drawn_where_it_is_encoded():
    rng = np.random.RandomState(0)
    frame = pd.DataFrame({"x": rng.rand(500), "y": rng.rand(500) < 0.5})
    schema = Schema({"x": Number(0, 1, knots=[0, 0.5, 1], cuts=[0.1]), "y": Boolean()})
    fitted = DPSWFlowSampler(5.0, schema=schema, random_state=0, n_steps=2).fit(frame)
    assert fitted._format.codes == {}
