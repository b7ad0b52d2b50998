"""Smooth densities follow the evidence of noisy counts, location and scale, and precision."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import beta, lognorm, multivariate_normal, norm, uniform

from skdpgen.histograms.grids import knot_weights
from skdpgen.tables.columns.values import CodeScale
from skdpgen.tables.discovery import densities
from skdpgen.tables.discovery.densities import (
    Histogram,
    _evidence,
    estimate_density,
    trim_density,
)
from skdpgen.tables.log_splines import smooth_density

KNOTS = np.array([-6.0, -3, -2, -1.2, -0.7, -0.3, 0, 0.4, 0.9, 1.3, 2.2, 3, 6])
NORMAL = norm.ppf((np.arange(3000) + 0.5) / 3000)


def count(values, knots=KNOTS):
    return knot_weights(values, knots).sum(axis=0)


def find_quantiles(density, shares=(0.25, 0.5, 0.75)):
    points, masses, _ = density
    return np.interp(np.array(shares) * masses.sum(), np.r_[0, np.cumsum(masses)], points)


@pytest.mark.parametrize(("level", "scale"), [(0, 1), (1e6, 0.01), (-3, 1e-9), (0, 1e12)])
def test_densities_follow_location_and_scale(level, scale):
    counts = count(NORMAL) + np.random.RandomState(0).normal(0, 30, len(KNOTS))
    points, masses, _ = estimate_density([Histogram(KNOTS, counts, 30.0)], -6, 6)
    moved = Histogram(level + scale * KNOTS, counts, 30.0)
    moved_points, moved_masses, _ = estimate_density([moved], level - 6 * scale, level + 6 * scale)
    assert_allclose((moved_points - level) / scale, points, atol=1e-6)
    assert_allclose(moved_masses, masses, atol=1e-3)


def test_counts_with_little_noise_are_met():
    for values in (NORMAL, np.exp(NORMAL), np.linspace(-5, 5, 3000)):
        histogram = Histogram(KNOTS, count(values), 1.0)
        points, masses, _ = estimate_density([histogram], -6, 6)
        found = masses @ histogram.weigh((points[1:] + points[:-1]) / 2)
        assert_allclose(found, histogram.counts, atol=12)
        assert (masses >= 0).all()


def test_a_histogram_without_noise_is_spread_as_encoders_draw():
    histogram = Histogram(KNOTS, count(NORMAL), 0.0)
    parts = [Histogram(KNOTS, -count(NORMAL), 1.0), histogram]
    points, masses, _ = estimate_density(parts, -6, 6)
    assert masses.sum() == pytest.approx(3000)
    assert points[[0, -1]].tolist() == [-6, 6]


def test_noise_seldom_widens_a_range():
    """Ages up to 97, in a range of powers of 2: noise beyond 128 is not taken for a tail."""
    rng, knots, ends = np.random.RandomState(0), np.r_[0, 16, 24:80:4, 88, 100, 128, 256.0], []
    exact = count(np.clip(np.round(rng.gamma(9, 6, 2000)), 18, 97), knots)
    for _ in range(40):
        histogram = Histogram(knots, exact + rng.normal(0, 10, len(knots)), 10.0)
        points, masses = trim_density([histogram], 0, 256, 1.0)
        ends.append(points[-1])
        assert masses.sum() == pytest.approx(2000, abs=200)
    assert np.quantile(ends, 0.9) <= 135
    assert np.quantile(ends, 0.1) >= 88


def test_little_of_a_range_is_taken_for_noise():
    """Else noise of a twentieth of the values would cut the tails, and narrow the quartiles."""
    points = trim_density([Histogram(KNOTS, count(NORMAL), 200.0)], -6, 6)[0]
    assert points[0] < norm.ppf(0.02)
    assert points[-1] > norm.ppf(0.98)


def test_a_second_histogram_makes_quantiles_more_precise():
    """Errors of quartiles over 60 draws of noise; those of both are the smallest."""
    rng, other = np.random.RandomState(0), np.linspace(-6, 6, 9)
    coarse, cuts = np.array([-6.0, -1, 1, 6]), [0, 2]
    codes = count(CodeScale.of_knots(coarse, cuts).encode(NORMAL), np.arange(4.0))
    errors = []
    for _ in range(60):
        parts = [
            Histogram(other, count(NORMAL, other) + rng.normal(0, 50, 9), 50.0),
            Histogram(coarse, codes + rng.normal(0, 40, 4), 40.0, cuts),
            Histogram(KNOTS, count(NORMAL) + rng.normal(0, 50, len(KNOTS)), 50.0),
        ]
        some = (parts[:2][::-1], parts[2:], parts)
        errors.append([find_quantiles(estimate_density(p, -6, 6))[[0, 2]] for p in some])
    errors = np.sqrt(np.mean(np.square(np.array(errors) - norm.ppf([0.25, 0.75])), axis=(0, 2)))
    assert errors[2] < errors[:2].min()
    assert errors[2] < 0.1 * 1.35 / 2


def test_the_evidence_is_that_of_a_gaussian_model():
    """Compared with a proper prior that is nearly flat along parabolas."""
    rng, n = np.random.RandomState(0), 9
    weights, counts = rng.rand(6, n), rng.normal(0, 1, 6)
    roughness = np.diff(np.eye(n), 3, axis=0)

    def log_density(penalty, flat=1e-7):
        prior = np.linalg.inv(penalty * roughness.T @ roughness + flat * np.eye(n))
        cov = np.eye(6) + weights @ prior @ weights.T
        return multivariate_normal(np.zeros(6), (cov + cov.T) / 2).logpdf(counts)

    found = _evidence(weights, counts, roughness, np.array([0.1, 30.0]))
    assert np.diff(found)[0] == pytest.approx(log_density(30.0) - log_density(0.1), abs=1e-3)


def test_a_solver_that_does_not_converge_is_replaced(monkeypatch):
    """Nothing may fail after the counts were released."""

    def fail(*args, **options):
        raise RuntimeError("Maximum number of iterations reached.")

    histogram = Histogram(KNOTS, count(NORMAL), 30.0)
    expected = find_quantiles(estimate_density([histogram], -6, 6))
    monkeypatch.setattr(densities, "nnls", fail)
    density = estimate_density([histogram], -6, 6)
    assert (density[1] >= 0).all()
    assert_allclose(find_quantiles(density), expected, atol=0.1)


@pytest.mark.parametrize("sign", [1, -1])
def test_densities_fall_in_tails_of_noise(sign):
    """A count of noise, of 50 ± 30, is at the far end of a range a thousand times the spread."""
    knots = np.r_[0, 2.0 ** np.arange(13)]
    counts = count(np.exp(NORMAL), knots)
    counts[-1] += 50
    parts = [Histogram(knots, counts, 30.0)]
    if sign < 0:
        parts = [Histogram(-knots[::-1], counts[::-1], 30.0)]
    points, masses, _ = estimate_density(parts, *sorted([0, sign * knots[-1]]))
    density = (masses / np.diff(points))[::sign]
    is_tail = np.abs(points[1:] if sign > 0 else points[:-1])[::sign] > 64
    assert (np.diff(density[is_tail]) <= 1e-12).all()
    # As many values at the far end would have a mean of 70.
    assert abs(masses @ (points[1:] + points[:-1]) / 2) / masses.sum() < 15


EVEN = np.linspace(0, 100, 16)
LOGS = np.expm1(np.linspace(0, np.log1p(20_000), 8))
LAWS = {
    "uniform": (uniform(0, 100), EVEN),
    "few knots": (norm(50, 12), EVEN[::3]),
    "normal": (norm(50, 12), EVEN),
    "ages": (beta(1.6, 2.8, 17, 73), np.linspace(17, 90, 16)),
    "amounts": (lognorm(1, scale=400), LOGS),
    "amounts, even knots": (lognorm(1, scale=400), np.linspace(0, 20_000, 8)),
}


@pytest.mark.parametrize("std", [3e-4, 5e-3])
@pytest.mark.parametrize("name", LAWS)
def test_the_stated_error_covers_that_between_knots(name, std):
    """The total variation in 100 cells of equal probability; noise on the counts is far less."""
    law, knots = LAWS[name]
    values = law.ppf((np.arange(20_000) + 0.5) / 20_000).clip(knots[0], knots[-1])
    cells = law.ppf(np.linspace(0, 1, 101)).clip(knots[0], knots[-1])
    rng, shares = np.random.default_rng(0), knot_weights(values, knots).mean(0)
    errors = []
    for _ in range(3):
        noisy = shares + rng.normal(0, std, len(knots))
        found = [smooth_density(CodeScale.of_knots(knots), noisy / noisy.sum(), std)]
        if len(knots) == 16:
            found.append(
                estimate_density([Histogram(knots, 1e4 * noisy, 1e4 * std)], *cells[[0, -1]])
            )
        for points, masses, stated in found:
            below = np.interp(cells, points, np.r_[0, np.cumsum(masses)] / masses.sum())
            errors.append((stated, 0.5 * np.abs(np.diff(below) - 0.01).sum()))
    stated, measured = np.mean(errors, axis=0)
    assert 0.8 * measured < stated < 5 * measured + 0.02
    if "even knots" in name:
        assert measured > 2.5 * len(knots) * std / np.sqrt(2 * np.pi)
