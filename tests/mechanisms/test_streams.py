"""Streams of tables: factors, sensitivity of all releases together, exact sums and noise."""

import math

import numpy as np
import pytest

from skdpgen.accounting.events import gaussian_event
from skdpgen.mechanisms.streams import (
    WEIGHT_BITS,
    StreamedTablesMechanism,
    estimate_tables,
    factorize,
    weigh_releases,
)
from skdpgen.privacy import NoiseSource, TablesMechanism

from .common import UNIT, Blocks, assert_variance
from .test_tables import any_places

HORIZON, SIZES = 5, [4, 5, 3]


FACTOR = factorize(HORIZON)


def find_variances(weights, factor):
    """Variances of estimates, with noise in proportion to the largest norm of a column."""
    scale = np.square(factor).sum(axis=0).max()
    return np.array([scale * np.square(row).sum() for row in weights])


def run(t, codes, multiplier=0.0, relation="zero_out"):
    """Release y_t of records with the period in the second column."""
    mechanism = StreamedTablesMechanism(SIZES, 1, t, FACTOR)
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
    factor, ones = factorize(horizon), np.tril(np.ones((horizon, horizon)))
    for t in range(1, horizon + 1):
        weights = weigh_releases(factor, t)
        released = factor[:t] / 2**WEIGHT_BITS
        np.testing.assert_allclose(weights @ released, ones[t - 1], atol=1e-9)
    # A record of any period costs about the same, and nothing is taken away.
    norms = np.linalg.norm(factor / 2**WEIGHT_BITS, axis=0)
    np.testing.assert_allclose(norms, 1, atol=horizon**0.5 * 2.0**-WEIGHT_BITS)
    assert factor.min() == 0


@pytest.mark.parametrize(("horizon", "mean"), [(2, 1.31), (12, 2.586), (100, 5.006)])
def test_the_mean_variance_is_the_least(horizon, mean):
    """The figures of the page, and a bound by duality; the square root of A has 2.92 at 12.

    For any diagonal V ≥ 0, (tr (V^½ A'A V^½)^½)² / tr V is at most tr(A X⁻¹ A').
    """
    ones = np.tril(np.ones((horizon, horizon)))
    factor = factorize(horizon) / 2**WEIGHT_BITS
    variances = find_variances(ones @ np.linalg.inv(factor), factor)
    assert variances.mean() == pytest.approx(mean, abs=0.005)
    inverse = np.linalg.inv(factor.T @ factor)
    scale = np.sqrt(np.diag(inverse @ ones.T @ ones @ inverse))
    values = np.linalg.eigvalsh(scale[:, None] * (ones.T @ ones) * scale)
    bound = np.sqrt(values.clip(0)).sum() ** 2 / np.square(scale).sum() / horizon
    assert bound <= variances.mean() < 1.01 * bound


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
    "(factor**2).sum(axis=0)",
    "(factor[:t]**2).sum(axis=0)",
)
@pytest.mark.catches(
    "mechanisms.streams:StreamedTablesMechanism.__init__", "factor[t - 1]", "factor[-1]"
)
def test_sensitivity_of_all_releases_together():
    traces, mechanism = make_traces(), StreamedTablesMechanism(SIZES, 1, 1, FACTOR)
    norms = np.linalg.norm(traces, axis=1)
    assert 0.999 < norms.max() / mechanism.sensitivity("zero_out") <= 1
    assert (traces >= 0).all()
    apart = np.linalg.norm(traces[:, None] - traces[None], axis=2)
    assert 0.95 < apart.max() / mechanism.sensitivity("replace_one") <= 1
    column = np.linalg.norm(FACTOR / 2**WEIGHT_BITS, axis=0).max()
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
        estimate = estimate_tables(released, FACTOR)
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
    factor = factorize(horizon)
    codes, released = np.zeros((1, 3)), []
    for t in range(1, horizon + 1):
        mechanism = StreamedTablesMechanism(sizes, 1, t, factor)
        source, event = Blocks(codes, absent=True), gaussian_event(3.0)
        noise = NoiseSource(t)
        released.append(mechanism.run(source, event, relation=relation, noise=noise))
        # Both tables have the noise of a sum of v/√2.
        std = 3.0 * UNIT[relation] * mechanism.sensitivity(relation) * mechanism.records
        assert released[-1].columns_std == pytest.approx(std)
        assert_variance(released[-1].cells, released[-1].pairs_std)
        estimate = estimate_tables(released, factor)
        assert_variance(estimate.cells, estimate.pairs_std)
    row = np.linalg.norm(weigh_releases(factor, horizon))
    assert estimate.pairs_std == pytest.approx(row * std / math.sqrt(2))


@pytest.mark.catches(
    "mechanisms.streams:StreamedTablesMechanism._find_scale",
    "n_records << WEIGHT_BITS",
    "n_records",
)
def test_sums_of_many_records_do_not_overflow():
    mechanism = StreamedTablesMechanism([2, 3, 2], 1, 3, factorize(3))
    source = Blocks(np.zeros((1, 3)))
    source.n_records = 2**40
    measured = mechanism.query(source, gaussian_event(0.0), "zero_out", None)
    assert source.n_records * measured.scale <= 2.0**62
