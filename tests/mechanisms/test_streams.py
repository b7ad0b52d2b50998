"""Streams of tables: factors, sensitivity of all releases together, exact sums and noise."""

import math

import numpy as np
import pytest

from skdpgen.accounting.events import gaussian_event
from skdpgen.mechanisms.streams import (
    WEIGHT_BITS,
    StreamedTablesMechanism,
    estimate_tables,
    list_weights,
    weigh_releases,
)
from skdpgen.privacy import NoiseSource, TablesMechanism

from .common import UNIT, Blocks, assert_variance
from .test_tables import any_places

HORIZON, SIZES = 5, [4, 5, 3]


def factor(horizon):
    """R, from its first column."""
    weights = list_weights(horizon) / 2**WEIGHT_BITS
    return sum(np.diag(np.full(horizon - k, weights[k]), -k) for k in range(horizon))


def run(t, codes, multiplier=0.0, relation="zero_out"):
    """Release y_t of records with the period in the second column."""
    mechanism = StreamedTablesMechanism(SIZES, 1, t)
    event = gaussian_event(multiplier)
    noise = NoiseSource(t)
    return mechanism, mechanism.run(Blocks(codes), event, relation=relation, noise=noise)


def as_vector(mechanism, tables):
    parts = [math.sqrt(2) * tables.cells, tables.columns]
    return np.concatenate(parts) / mechanism.records


def trace(states):
    """All releases of one record, which may have other cells at each update."""
    return np.concatenate([as_vector(*run(t + 1, row[None])) for t, row in enumerate(states)])


@pytest.mark.parametrize("horizon", [2, 12, 100])
def test_factors_give_prefix_sums(horizon):
    R, ones = factor(horizon), np.tril(np.ones((horizon, horizon)))
    for t in range(1, horizon + 1):
        weights = weigh_releases(horizon, t)
        np.testing.assert_allclose(weights @ R[:t], ones[t - 1], atol=1e-9)
    # R is close to the square root of the matrix of ones.
    np.testing.assert_allclose(R @ R, ones, atol=horizon * 2.0**-WEIGHT_BITS)


def test_noise_at_a_horizon_of_twelve():
    """The figures of the page; independent releases of each period have t, and 12 at most."""
    scale = np.square(list_weights(12) / 2**WEIGHT_BITS).sum()
    variances = [scale * np.square(weigh_releases(12, t)).sum() for t in range(1, 13)]
    assert variances[0] == pytest.approx(1.85, abs=0.005)
    assert variances[-1] == pytest.approx(3.43, abs=0.005)
    assert max(variances) == variances[-1]


def make_traces():
    """Records of all periods, with others at different updates; and what they release."""
    rng = np.random.default_rng(0)
    places = any_places(SIZES, rng, 40)
    periods = rng.integers(HORIZON, size=len(places))
    periods[:HORIZON] = np.arange(HORIZON)
    places[:, 1] = periods
    traces = [trace([place] * HORIZON) for place in places]
    for period in range(HORIZON):
        states = any_places(SIZES, rng, HORIZON + 9)[9:]
        states[:, 1] = period
        traces.append(trace(states))
    return np.stack(traces)


@pytest.mark.catches(
    "mechanisms.streams:StreamedTablesMechanism.sensitivity",
    "super().sensitivity(relation) * self._norm",
    "super().sensitivity(relation)",
)
@pytest.mark.catches(
    "mechanisms.streams:StreamedTablesMechanism.__init__",
    "(weights**2).sum()",
    "(weights[:t]**2).sum()",
)
@pytest.mark.catches(
    "mechanisms.streams:StreamedTablesMechanism.__init__", "weights[:t][::-1]", "weights[0]"
)
def test_sensitivity_of_all_releases_together():
    traces, mechanism = make_traces(), StreamedTablesMechanism(SIZES, 1, 1)
    norms = np.linalg.norm(traces, axis=1)
    assert 0.999 < norms.max() / mechanism.sensitivity("zero_out") <= 1
    assert (traces >= 0).all()
    apart = np.linalg.norm(traces[:, None] - traces[None], axis=2)
    assert 0.95 < apart.max() / mechanism.sensitivity("replace_one") <= 1
    column = np.linalg.norm(factor(HORIZON)[:, 0])
    assert mechanism.sensitivity("zero_out") == pytest.approx(column)
    assert mechanism.sensitivity("replace_one") == pytest.approx(math.sqrt(2) * column)


@pytest.mark.catches(
    "mechanisms.streams:StreamedTablesMechanism._add_up", "scale / 2**WEIGHT_BITS", "scale"
)
def test_estimates_are_the_tables_of_all_rows_so_far():
    codes = any_places(SIZES, np.random.default_rng(1), 60)
    codes[:, 1] = np.arange(60) % HORIZON
    released = []
    for t in range(1, HORIZON + 1):
        # Rows of later periods add nothing.
        released.append(run(t, codes)[1])
        estimate = estimate_tables(released, HORIZON)
        plain = TablesMechanism([4, 3])
        rows = codes[codes[:, 1] < t][:, [0, 2]]
        event = gaussian_event(0.0)
        exact = plain.run(Blocks(rows), event, relation="zero_out", noise=NoiseSource(0))
        np.testing.assert_allclose(estimate.cells, exact.cells, atol=1e-3)
        np.testing.assert_allclose(estimate.columns, exact.columns, atol=1e-3)
        assert estimate.by is None


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_noise_is_as_stated(relation):
    horizon, sizes = 4, [40, 4, 30]
    codes, released = np.zeros((1, 3)), []
    for t in range(1, horizon + 1):
        mechanism = StreamedTablesMechanism(sizes, 1, t)
        source, event = Blocks(codes, absent=True), gaussian_event(3.0)
        noise = NoiseSource(t)
        released.append(mechanism.run(source, event, relation=relation, noise=noise))
        # Both tables have the noise of a sum of v/√2.
        std = 3.0 * UNIT[relation] * mechanism.sensitivity(relation) * mechanism.records
        assert released[-1].columns_std == pytest.approx(std)
        assert_variance(released[-1].cells, released[-1].pairs_std)
        estimate = estimate_tables(released, horizon)
        assert_variance(estimate.cells, estimate.pairs_std)
    row = np.linalg.norm(weigh_releases(horizon, horizon))
    assert estimate.pairs_std == pytest.approx(row * std / math.sqrt(2))


@pytest.mark.catches(
    "mechanisms.streams:StreamedTablesMechanism._find_scale",
    "n_records << WEIGHT_BITS",
    "n_records",
)
def test_sums_of_many_records_do_not_overflow():
    mechanism = StreamedTablesMechanism([2, 3, 2], 1, 3)
    source = Blocks(np.zeros((1, 3)))
    source.n_records = 2**40
    measured = mechanism.query(source, gaussian_event(0.0), "zero_out", None)
    assert source.n_records * measured.scale <= 2.0**62
