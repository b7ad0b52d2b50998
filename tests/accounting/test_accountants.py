"""Accountants against closed forms, numerical integration, simulation and dp-accounting."""

import dataclasses
import math
import sys

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    UnsupportedEventError,
)
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from scipy import integrate, optimize, special, stats

from skdpgen import DPSWFlowSampler, PrivacyBudget
from skdpgen.accounting import loss_distributions
from skdpgen.accounting.directions import log_mgf
from skdpgen.accounting.events import flatten
from skdpgen.accounting.loss_distributions import largest_loss, pld_of
from skdpgen.accounting.moments import rdp_of
from skdpgen.mechanisms.base import MARGIN, grid_scale
from skdpgen.privacy import (
    Certificate,
    DiameterGaussianDpEvent,
    SlicedGaussianDpEvent,
    ledger_delta,
    ledger_epsilon,
    verify,
)

SLICED = SlicedGaussianDpEvent(2.0, 4, 2)
SHAPES = [(1, 3, False), (2, 1, False), (784, 200, False), (784, 200, True), (5, 12, True)]


def steps(event, q=1.0, T=1, sampling="poisson"):
    """A ledger of T releases, each from a sample of the records."""
    if q < 1 and sampling == "poisson":
        event = PoissonSampledDpEvent(q, event)
    elif q < 1:
        event = SampledWithoutReplacementDpEvent(1000, round(1000 * q), event)
    return [SelfComposedDpEvent(event, T)]


def gaussian_delta(epsilon, mu):
    return stats.norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * stats.norm.cdf(
        -mu / 2 - epsilon / mu
    )


def make_plane(limit, n):
    """Return a grid of the plane, and the masses of a standard Gaussian on it."""
    grid = np.linspace(-limit, limit, n)
    x, y = np.meshgrid(grid, grid)
    return x, y, stats.norm.pdf(x) * stats.norm.pdf(y) * (grid[1] - grid[0]) ** 2


def log_hyp1f1(a, b, t):
    """Reference by the series in 40 digits; all of its terms are positive."""
    with mpmath.workdps(40):
        a, b, t = mpmath.mpf(a), mpmath.mpf(b), mpmath.mpf(t)
        term = total = mpmath.mpf(1)
        n = 0
        while n < 2 * t or term > total * mpmath.mpf("1e-30"):
            term *= (a + n) / (b + n) * t / (n + 1)
            total += term
            n += 1
        return mpmath.log(total)


def reference_log_mgf(t, d, k, orthogonal):
    if orthogonal:
        blocks, rest = divmod(k, d)
        return float(blocks * t + (log_hyp1f1(rest / 2, d / 2, t) if rest else 0))
    return float(k * (t if d == 1 else log_hyp1f1(0.5, d / 2, t)))


# --- moments -------------------------------------------------------------------------------


def test_reference_series_is_mpmath():
    assert log_hyp1f1(0.5, 392, 40) == pytest.approx(mpmath.log(mpmath.hyp1f1(0.5, 392, 40)))


@pytest.mark.parametrize(
    ("d", "k", "orthogonal", "ts"),
    [
        *((*shape, (0.0, 1e-6, 0.3, 20.0, 700.0, 1990.0)) for shape in SHAPES),
        (8192, 2000, False, (3000.0, 16_000.0)),
    ],
)
def test_log_mgf_is_exact(d, k, orthogonal, ts):
    for t, found in zip(ts, log_mgf(np.array(ts), d, k, orthogonal), strict=True):
        expected = reference_log_mgf(t, d, k, orthogonal)
        assert found == pytest.approx(expected, rel=2e-9, abs=1e-8)
        # Rounded up, never down.
        assert found >= expected * (1 - 1e-13)


@pytest.mark.parametrize(("d", "t"), [(3, 2500.0), (784, 5000.0), (8192, 17000.0)])
def test_log_mgf_beyond_the_series_is_an_upper_bound(d, t):
    capped = log_mgf(np.array([t]), d, 7)[0]
    assert reference_log_mgf(t, d, 7, False) <= capped <= 7 * t


def integrated_moment(alpha, q, sigma):
    """E_Q (P/Q)^α for P = (1-q)N(0,σ²) + qN(1,σ²) and Q = N(0,σ²), by quadrature."""

    def integrand(x):
        log_ratio = np.logaddexp(math.log1p(-q), math.log(q) + (2 * x - 1) / (2 * sigma**2))
        return math.exp(alpha * log_ratio + stats.norm.logpdf(x, scale=sigma))

    end = alpha + 12 * sigma
    return integrate.quad(integrand, -12 * sigma, end, points=[0, alpha], limit=400)[0]


@pytest.mark.catches(
    "accounting.moments:_integrated_log_moment",
    "0.5 if is_replaced else 1.0",
    "0.5",
    param="2.5-0.2-0.7",
)
@pytest.mark.parametrize(("q", "sigma"), [(0.01, 1.0), (0.2, 0.7), (0.5, 3.0)])
@pytest.mark.parametrize("alpha", [1.1, 2, 2.5, 3, 6.7, 7.75, 8])
def test_poisson_moments_match_quadrature(alpha, q, sigma):
    """Between the orders of which they are computed they are upper bounds."""
    event = PoissonSampledDpEvent(q, GaussianDpEvent(sigma))
    exact = math.log(integrated_moment(alpha, q, sigma)) / (alpha - 1)
    found = rdp_of(event, "zero_out", np.array([float(alpha)]))[0]
    assert exact * (1 - 1e-9) < found
    assert found == pytest.approx(exact, rel=5e-3 if alpha in (1.1, 7.75) else 1e-6)


def integrated_replace_moment(alpha, q, r):
    """E_Q (P/Q)^α for P = (1-q)N(0,1) + qN(r,1) and Q = (1-q)N(0,1) + qN(-r,1), by quadrature."""

    def log_density(x, mean):
        log_ratio = np.logaddexp(math.log1p(-q), math.log(q) + mean * x - mean * mean / 2)
        return log_ratio + stats.norm.logpdf(x)

    def integrand(x):
        return math.exp(alpha * log_density(x, r) + (1 - alpha) * log_density(x, -r))

    peak = (2 * alpha - 1) * r
    return integrate.quad(integrand, -peak - 14, peak + 14, points=[0, r, peak], limit=500)[0]


@pytest.mark.catches(
    "accounting.moments:_replace_log_moment", "np.r_[0.0, bound]", "alone[: _MAX_SAMPLED_ORDER + 1]"
)
@pytest.mark.parametrize("alpha", [1.3, 2, 3, 4.5, 8, 20])
@pytest.mark.parametrize(
    ("q", "r"), [(0.01, 0.3), (0.01, 1.5), (0.2, 0.5), (0.5, 0.1), (0.5, 1.2), (0.95, 0.4)]
)
def test_poisson_moments_under_replace_one_bound_quadrature(alpha, q, r):
    event = PoissonSampledDpEvent(q, GaussianDpEvent(1 / (2 * r)))
    exact = math.log(integrated_replace_moment(alpha, q, r)) / (alpha - 1)
    bound = rdp_of(event, "replace_one", np.array([float(alpha)]))[0]
    assert 0 < exact <= bound
    # It is exact where it was computed, and else up to interpolation.
    if alpha in (2, 3, 4.5, 8):
        assert bound == pytest.approx(exact, rel=1e-6, abs=1e-9)
    elif alpha == 20:
        assert bound <= 1.01 * exact
    # Nor more than without sampling, up to the interpolation between whole orders.
    whole = math.ceil(alpha)
    assert bound <= 2 * r * r * whole * (whole - 1) / (alpha - 1) * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(("q", "s", "alpha"), [(0.3, 2.0, 2), (0.05, 0.4, 8), (0.001, 1.0, 3)])
def test_moments_of_slices_under_replace_one_bound_quadrature(alpha, q, s):
    # Opposite records, along the same directions.
    d, k = 9, 4
    law = stats.beta(k / 2, (d - k) / 2)
    h = law.ppf((np.arange(12) + 0.5) / 12)
    moments = [integrated_replace_moment(alpha, q, math.sqrt(x) / (2 * s)) for x in h]
    exact = math.log(np.mean(moments))
    event = PoissonSampledDpEvent(q, SlicedGaussianDpEvent(s, d, k, True))
    bound = rdp_of(event, "replace_one", np.array([float(alpha)]))[0] * (alpha - 1)
    assert exact <= bound * 1.001
    if (q, s, alpha) == (0.3, 2.0, 2):
        assert bound <= 1.1 * exact
    # Less than with a sample of fixed size, which would be a bound, too.
    fixed = SampledWithoutReplacementDpEvent(1000, round(1000 * q), event.event)
    orders = np.array([2.0, 5.0, 30.0])
    assert (rdp_of(event, "replace_one", orders) < rdp_of(fixed, "replace_one", orders)).all()


def test_no_moment_of_two_records_exceeds_that_of_opposite_ones():
    q, r, alpha = 0.3, 0.8, 4  # noise 1
    event = PoissonSampledDpEvent(q, GaussianDpEvent(1 / (2 * r)))
    bound = math.exp(rdp_of(event, "replace_one", np.array([float(alpha)]))[0] * (alpha - 1))
    x, y, density = make_plane(12, 401)

    def ratio(angle, length):
        a, b = length * math.cos(angle), length * math.sin(angle)
        return 1 - q + q * np.exp(a * x + b * y - length**2 / 2)

    found = [
        (density * ratio(0, r) ** alpha * ratio(angle, length) ** (1 - alpha)).sum()
        for angle in np.linspace(0, math.pi, 9)
        for length in (0.0, 0.4 * r, r)
    ]
    assert max(found) == pytest.approx(bound, rel=1e-5)
    assert found.index(max(found)) == len(found) - 1


def profile_moment(alpha, q, mu):
    """A moment of the pair of advanced joint convexity, as an integral of its profile."""

    def integrand(log_gamma):
        gamma = math.exp(log_gamma)
        delta = q * gaussian_delta(math.log1p((gamma - 1) / q), mu)
        return (gamma ** (alpha - 1) + gamma**-alpha) * delta

    # Beyond 8 standard deviations of the largest loss of a sampled record.
    end = math.log1p(q * math.expm1(mu * mu * alpha + 8 * mu))
    integral = integrate.quad(integrand, 0, end, limit=500, points=np.linspace(0, end, 9)[1:-1])
    return 1 + alpha * (alpha - 1) * integral[0]


@pytest.mark.catches(
    "accounting.moments:_sampled_log_moment",
    "1 / base.noise_multiplier",
    "1 / (2 * base.noise_multiplier)",
)
@pytest.mark.parametrize("alpha", [2, 3, 8])
@pytest.mark.parametrize(
    ("q", "mu"), [(0.01, 0.6), (0.01, 1.2), (0.2, 1.0), (0.5, 0.1), (0.9, 0.4)]
)
def test_moments_of_any_two_of_three_releases(q, mu, alpha):
    exact = math.log(profile_moment(alpha, q, mu))
    event = PoissonSampledDpEvent(q, DiameterGaussianDpEvent(1 / mu))
    bound = rdp_of(event, "replace_one", np.array([float(alpha)]))[0] * (alpha - 1)
    assert exact * (1 - 1e-6) <= bound <= 1.001 * exact + 1e-9
    # Corners of a triangle: without the record, with it, and with another.
    if alpha * mu < 5:
        x, y, density = make_plane(12, 401)
        one = 1 - q + q * np.exp(mu * x - mu * mu / 2)
        other = 1 - q + q * np.exp(mu * (x + math.sqrt(3) * y) / 2 - mu * mu / 2)
        assert math.log((density * one**alpha * other ** (1 - alpha)).sum()) <= exact * (1 + 1e-6)


def test_moments_of_strong_steps_stay_finite_and_below_those_without_sampling():
    orders = np.array([2.0, 3.0, 100.0, 256.0])
    for base in (GaussianDpEvent, DiameterGaussianDpEvent):
        for s in (1e-9, 1e-3, 0.02, 0.3, 50.0, 1e9):
            rdp = rdp_of(PoissonSampledDpEvent(1e-4, base(s)), "replace_one", orders)
            assert np.isfinite(rdp).all()
            assert (rdp >= 0).all()
            assert (rdp <= orders / (2 * s * s) * (1 + 1e-9) + 1e-9).all()


def test_poisson_moments_of_slices_average_over_the_directions():
    q, sigma, d, k, alpha = 0.3, 0.6, 7, 3, 4
    law = stats.beta(k / 2, (d - k) / 2)

    def moment(h):
        j = np.arange(alpha + 1)
        binomial = stats.binom.pmf(j, alpha, q)
        return binomial @ np.exp(j * (j - 1) * h / (2 * sigma**2))

    mean = integrate.quad(lambda h: law.pdf(h) * moment(h), 0, 1)[0]
    event = PoissonSampledDpEvent(q, SlicedGaussianDpEvent(sigma, d, k, True))
    got = rdp_of(event, "zero_out", np.array([float(alpha)]))[0]
    assert got == pytest.approx(math.log(mean) / (alpha - 1), rel=1e-7)


def test_sampled_moments_stop_at_the_largest_whole_order():
    event = PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0))
    assert np.isinf(rdp_of(event, "zero_out", np.array([257.0]))).all()


@pytest.mark.parametrize("q", [1e-10, 1e-8])
def test_rounding_makes_no_moment_negative(q):
    # dp-accounting reads a negative moment as ε = 0. At ε = 0 one step costs δ = q·TV exactly.
    ledger = steps(GaussianDpEvent(30.0), q)
    exact = q * gaussian_delta(0, 1 / 30)
    assert ledger_epsilon(ledger, exact / 10, accountant="rdp") > 0


# --- privacy loss distributions against exact references, T = 1 --------------------------------


@pytest.mark.catches(
    "accounting.loss_distributions:_law_of",
    "sensitivity_law(base.n_features, base.n_projections, base.orthogonal, n_values=5000)",
    "sensitivity_law(base.n_features, base.n_projections, base.orthogonal)",
)
def test_delta_of_one_sliced_release_matches_quadrature():
    d, k, sigma = 12, 5, 0.5
    law = stats.beta(k / 2, (d - k) / 2)
    for epsilon in (0.5, 2.0, 6.0):
        profile = lambda h, e=epsilon: law.pdf(h) * gaussian_delta(e, math.sqrt(h) / sigma)  # noqa: E731
        exact = integrate.quad(profile, 0, 1, epsabs=1e-14)[0]
        certified = ledger_delta([SlicedGaussianDpEvent(sigma, d, k, True)], epsilon)
        assert exact <= certified <= 1.01 * exact


@pytest.mark.parametrize(
    ("event", "q", "T"),
    [
        (SlicedGaussianDpEvent(0.55, 40, 6, True), 0.02, 100),
        (GaussianDpEvent(4.3), 0.05, 500),
        (GaussianDpEvent(2.4), 0.1, 30),
    ],
)
def test_pessimism_is_less_than_half_a_percent(event, q, T, monkeypatch):
    certified = ledger_epsilon(steps(event, q, T), 1e-5)
    # Four times as fine, so that what is left is a small part of the difference.
    grid = loss_distributions.LOSS_GRID
    fine = dataclasses.replace(
        grid, step_per_std=grid.step_per_std / 4, max_step=grid.max_step / 4, max_points=200_000
    )
    monkeypatch.setattr(loss_distributions, "LOSS_GRID", fine)
    split, law = loss_distributions.split_law, loss_distributions.sensitivity_law
    monkeypatch.setattr(loss_distributions, "split_law", lambda law, s: split(law, s, 150))
    monkeypatch.setattr(
        loss_distributions, "sensitivity_law", lambda *shape, n_values: law(*shape, n_values=20_000)
    )
    loss_distributions.compose_losses.cache_clear()
    leaves = tuple(flatten(steps(event, q, T)).items())
    exact = loss_distributions.compose_losses("zero_out", leaves).get_epsilon_for_delta(1e-5)
    loss_distributions.compose_losses.cache_clear()
    assert exact <= certified <= 1.005 * exact


@pytest.mark.parametrize("sampling", ["poisson", "fixed"])
@pytest.mark.parametrize("q", [0.01, 0.5, 0.999])
def test_delta_of_one_sampled_gaussian_is_the_closed_form(q, sampling):
    epsilon, s = 0.4, 0.8
    exact = q * gaussian_delta(math.log1p(math.expm1(epsilon) / q), 1 / s)
    relation, unit = ("zero_out", 1) if sampling == "poisson" else ("replace_one", 2)
    ledger = steps(GaussianDpEvent(unit * s), q, sampling=sampling)
    certified = ledger_delta(ledger, epsilon, relation=relation)
    assert exact * (1 - 1e-9) <= certified <= 1.001 * exact + 1e-12
    if sampling == "fixed":
        with pytest.raises(UnsupportedEventError, match="replace_one"):
            ledger_delta(ledger, epsilon)


# --- replace_one --------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.7])
def test_no_pair_of_rows_beats_opposite_ends_of_the_diameter(epsilon):
    q, radius = 0.3, 1.2  # noise 1
    certified = ledger_delta(steps(GaussianDpEvent(1 / radius), q), epsilon, relation="replace_one")
    rng = np.random.default_rng(0)
    x, y, density = make_plane(8, 321)

    def mixture(row):
        ratio = np.exp(row[0] * x + row[1] * y - row @ row / 2)
        return density * (1 - q + q * ratio)

    worst = 0.0
    for trial in range(40):
        a, b = (v / np.linalg.norm(v) * radius for v in rng.normal(size=(2, 2)))
        if trial % 2:
            a, b = a * rng.random(), b * rng.random()
        if trial == 0:
            b = -a
        worst = max(worst, np.maximum(mixture(a) - math.exp(epsilon) * mixture(b), 0).sum())
    assert 0.99 * certified <= worst <= certified + 1e-6


def test_replace_one_slices_bound_simulated_pairs():
    # Two rows of norm 1/2, at right angles or opposite, see the same directions.
    q, sigma, epsilon, d, k, n = 0.3, 0.5, 0.2, 6, 3, 60_000
    certified = ledger_delta(
        steps(SlicedGaussianDpEvent(sigma / 0.5, d, k), q), epsilon, relation="replace_one"
    )
    rng = np.random.default_rng(0)
    U = rng.normal(size=(n, d, k))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    for b_sign, b_axis in ((-1, 0), (1, 1)):
        a, b = U[:, 0] / 2, b_sign * U[:, b_axis] / 2
        out = sigma * rng.normal(size=(n, k)) + a * (rng.random((n, 1)) < q)

        def log_mixture(row, out=out):
            inner = (out * row).sum(1) - (row * row).sum(1) / 2
            return np.logaddexp(math.log1p(-q), math.log(q) + inner / sigma**2)

        deltas = np.maximum(0, -np.expm1(epsilon - log_mixture(a) + log_mixture(b)))
        error = deltas.std() / math.sqrt(n)
        assert certified >= deltas.mean() - 4 * error
        if b_sign == -1:
            assert certified <= 1.6 * deltas.mean()  # the union bound over the two rows


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_records_of_two_classes_cost_at_most_what_is_certified(epsilon):
    # Each changes a row of its own class, by half of the diameter, along the same directions.
    s, d, k, n = 0.3, 4, 1, 100_000
    rng = np.random.default_rng(0)
    U = rng.normal(size=(n, d, k))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    one, two = (
        ledger_delta([SlicedGaussianDpEvent(2 * s, d, k, True, c)], epsilon, relation="replace_one")
        for c in (1, 2)
    )
    h = (U**2).sum(2)
    for other in (0, 1):  # the same row, or one at a right angle
        deltas = gaussian_delta(epsilon, np.sqrt((h[:, 0] + h[:, other]) / 4) / s)
        assert deltas.mean() <= two + 4 * deltas.std() / math.sqrt(n)
    assert one < two


@pytest.mark.catches(
    "accounting.loss_distributions:pld_of",
    'sampling == "fixed" or compares_any_two(base, relation)',
    'sampling == "fixed"',
)
@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("q", [0.05, 0.4, 0.9])
def test_three_releases_that_are_alike_far_apart_cost_at_most_what_is_certified(q, mu):
    # Corners of a triangle, in a plane: without the record, with it, and with another.
    grid = np.linspace(-9, 9, 601)
    x, y = np.meshgrid(grid, grid)

    def gaussian(a, b):
        return stats.norm.pdf(x - a) * stats.norm.pdf(y - b) * (grid[1] - grid[0]) ** 2

    without = (1 - q) * gaussian(0, 0)
    one = without + q * gaussian(mu, 0)
    other = without + q * gaussian(mu / 2, mu * math.sqrt(3) / 2)
    ledger = steps(DiameterGaussianDpEvent(1 / mu), q)
    for epsilon in (0.0, 0.1, 0.5):
        exact = np.maximum(one - math.exp(epsilon) * other, 0).sum()
        certified = ledger_delta(ledger, epsilon, relation="replace_one")
        assert exact <= certified * (1 + 1e-3) + 1e-9
        if epsilon == 0:
            assert certified == pytest.approx(exact, rel=5e-3)
    # Two records of a sum, opposite to each other, would be no bound.
    pair = ledger_delta(steps(GaussianDpEvent(2 / mu), q), 0.5, relation="replace_one")
    assert pair < 0.997 * exact + 1e-14


# --- composition ---------------------------------------------------------------------------------


def strong_delta(epsilon, mu, q):
    """Profile of one sampled step by logarithms: nothing leaves the range of a float."""
    epsilon = np.asarray(epsilon, dtype=float)
    inner = np.where(
        epsilon > 40, epsilon - math.log(q), np.log1p(np.expm1(np.clip(epsilon, -1, 40)) / q)
    )
    first = special.log_ndtr(mu / 2 - inner / mu)
    second = inner + special.log_ndtr(-mu / 2 - inner / mu)
    gained = q * np.exp(first) * -np.expm1(np.minimum(second - first, 0))
    return np.where(epsilon > math.log1p(-q), gained, -np.expm1(epsilon))


@pytest.mark.parametrize("accountant", ["pld", "rdp", "autodp"])
def test_price_of_the_diameter_of_a_release(accountant):
    options = {"delta": 1e-5, "accountant": accountant}
    diameter, gaussian = DiameterGaussianDpEvent(1.5), GaussianDpEvent

    def epsilon(event, relation, q=0.1, sampling="poisson", T=20):
        if event is gaussian:
            event = event(3.0 if relation == "replace_one" else 1.5)
        return ledger_epsilon(steps(event, q, T, sampling), relation=relation, **options)

    # Two values are compared, ...
    assert epsilon(diameter, "zero_out") == epsilon(gaussian, "zero_out")
    for relation in ("zero_out", "replace_one"):
        unsampled = epsilon(gaussian, relation, 1.0, T=1)
        # autodp knows a Gaussian release of all records without moments.
        assert unsampled * (1 - 1e-6) <= epsilon(diameter, relation, 1.0, T=1) < 1.1 * unsampled
    # ... or three: as of a sample of a fixed size, whose members all differ.
    three = epsilon(diameter, "replace_one")
    if accountant != "autodp":  # it samples by itself
        assert three == epsilon(diameter, "replace_one", sampling="fixed")
        assert three == epsilon(gaussian, "replace_one", sampling="fixed")
    assert three > epsilon(diameter, "zero_out")
    assert three > epsilon(gaussian, "replace_one")
    # Written down, and read again.
    ledger = steps(diameter, 0.1, 20)
    certificate = Certificate(tuple(ledger), ("step",), "replace_one", accountant)
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert verify(certificate.to_json()) == three


@pytest.mark.catches(
    "accounting.loss_distributions:_amplified",
    "epsilon - math.log(rate)",
    "epsilon - 10 * math.log(rate)",
    param="1-0.01-0.02",
)
@pytest.mark.parametrize(
    ("T", "q", "s"), [(1, 0.01, 0.02), (1, 0.5, 0.05), (2, 0.01, 0.05), (2, 0.5, 0.005)]
)
def test_steps_of_large_losses_are_tight(s, q, T):
    """Moments have 2500 for 1399, at s = 0.02 and q = 0.01, and T times that for T steps."""
    mu = 1 / s
    # One step, and a mean over the loss of a second one: of a record that is sampled, and not.
    x = np.linspace(-9, 9, 20_001)
    weights = stats.norm.pdf(x) * (x[1] - x[0])
    losses = [np.logaddexp(math.log1p(-q), math.log(q) + mu * y - mu**2 / 2) for y in (x, x + mu)]

    def delta(epsilon):
        if T == 1:
            return float(strong_delta(epsilon, mu, q))
        absent, present = (weights @ strong_delta(epsilon - part, mu, q) for part in losses)
        return (1 - q) * absent + q * present

    exact = optimize.brentq(lambda e: delta(e) - 1e-5, 1, 2 * T * mu**2, xtol=1e-9, rtol=1e-12)
    found = ledger_epsilon(steps(GaussianDpEvent(s), q, T), 1e-5)
    assert exact * (1 - 1e-9) <= found <= 1.003 * exact
    moments = ledger_epsilon(steps(GaussianDpEvent(s), q, T), 1e-5, accountant="rdp")
    assert found < 0.75 * moments
    # The other direction: δ at an ε whose exponential leaves no range.
    assert delta(400.0) <= ledger_delta(steps(GaussianDpEvent(s), q, T), 400.0) + 1e-12


@pytest.mark.parametrize(("s", "event"), [(0.02, GaussianDpEvent), (0.02, DiameterGaussianDpEvent)])
@pytest.mark.parametrize("sampling", ["poisson", "fixed"])
def test_large_losses_of_replaced_records(s, event, sampling):
    """A step of a pair that is known, with both records at the edge of the ball."""
    q, r = 0.01, 1 / (2 * s)
    with mpmath.workdps(60):

        def ratio(x):
            first, second = ((1 - q) + q * mpmath.exp(c * r * x - r * r / 2) for c in (1, -1))
            return mpmath.log(first / second)

        def delta(epsilon):
            x = mpmath.findroot(lambda x: ratio(x) - epsilon, (0, 100), solver="anderson")
            above = [mpmath.ncdf(c * r - x) for c in (0, 1, -1)]
            first, second = (1 - q) * above[0] + q * above[1], (1 - q) * above[0] + q * above[2]
            return first - mpmath.exp(epsilon) * second

        low, high = 1.0, 5000.0
        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (middle, high) if delta(middle) > 1e-5 else (low, middle)
    # Over the radius, or over the diameter.
    ledger = steps(event(2 * s if event is GaussianDpEvent else s), q, sampling=sampling)
    found = ledger_epsilon(ledger, 1e-5, relation="replace_one")
    assert low <= found
    if (sampling, event) == ("poisson", GaussianDpEvent):
        assert found <= 1.003 * low


@pytest.mark.parametrize(
    ("q", "s", "T", "expected"),
    [(8e-4, 2, 15_000, 0.170), (0.001, 1.5, 20_000, 0.367), (0.001, 2, 3000, 0.091)],
)
def test_many_weak_steps_are_priced_on_a_fine_grid(q, s, T, expected):
    # dp-accounting brackets the truth, on a grid that is finer still.
    low, high = (
        from_gaussian_mechanism(
            s, sampling_prob=q, value_discretization_interval=2e-5, pessimistic_estimate=pessimistic
        )
        .self_compose(T)
        .get_epsilon_for_delta(1e-5)
        for pessimistic in (False, True)
    )
    ours = ledger_epsilon(steps(GaussianDpEvent(s), q, T), 1e-5)
    assert low <= ours <= min(1.01 * high, expected)


def test_rare_strong_steps_are_priced_on_a_short_grid():
    # The loss of a sampled record, of up to 40, is far beyond what δ makes room for.
    ledger = steps(GaussianDpEvent(0.15), 1e-7, 1000)
    # A record that is never drawn costs nothing, so δ is at most the chance that it is.
    assert ledger_epsilon(ledger, 1.01e-4) < 1e-3
    certified = ledger_epsilon(ledger, 1e-5)
    loss = optimize.brentq(
        lambda x: 1000 * 1e-7 * stats.norm.sf((x - math.log(1e-7)) * 0.15 - 0.5 / 0.15) - 1e-5,
        0.0,
        60.0,
    )
    assert 0.5 * loss < certified < loss + 0.1


@pytest.mark.catches(
    "accounting.loss_distributions:_pmf",
    "create_pmf_pessimistic_connect_dots_fixed_gap(step, first, last, delta)",
    "create_pmf_pessimistic_connect_dots_fixed_gap(step, first, last, delta - delta[-1])",
)
@pytest.mark.parametrize("chance", [1e-2, 1e-4, 1e-12])
@pytest.mark.parametrize("q", [1.0, 0.2])
def test_losses_beyond_the_grid_count_as_infinite(q, chance):
    mu = 2.0
    event = steps(GaussianDpEvent(1 / mu), q)[0].event
    assert largest_loss(event, chance) < largest_loss(event)
    pld = pld_of(event, "zero_out", 1e-3, chance)
    for epsilon in np.linspace(0, 1.5 * largest_loss(event, chance), 12):
        exact = q * gaussian_delta(math.log1p(math.expm1(epsilon) / q), mu)
        assert exact <= pld.get_delta_for_epsilon(epsilon) <= exact * 1.001 + chance


@pytest.mark.parametrize("accountant", ["pld", "rdp"])
def test_tiny_deltas_of_many_steps_have_a_price(accountant):
    ledger = steps(GaussianDpEvent(1.0), 0.01, 10_000)
    deltas = 10.0 ** -np.arange(5, 31)
    epsilons = [ledger_epsilon(ledger, d, accountant=accountant) for d in deltas]
    assert np.isfinite(epsilons).all()
    assert (np.diff(epsilons) > 0).all()
    # Below what Fourier transforms resolve moments take over, by a small step.
    assert np.diff(epsilons).max() < 1.2
    for delta, epsilon in zip(deltas[::5], epsilons[::5], strict=True):
        # Near the limit of Fourier transforms, results differ between processors by 0.3 %.
        assert ledger_delta(ledger, epsilon, accountant=accountant) <= delta * 1.01


def test_fixed_size_rdp_is_the_theorem_of_wang_balle_kasiviswanathan():
    q, s, alpha = 0.05, 1.1, 5
    base = [0.0, 0.0] + [j / (2 * s * s) for j in range(2, alpha + 1)]  # D_j
    total = 1 + q**2 * math.comb(alpha, 2) * min(4 * math.expm1(base[2]), 2 * math.exp(base[2]))
    for j in range(3, alpha + 1):
        total += 2 * q**j * math.comb(alpha, j) * math.exp((j - 1) * base[j])
    # One orthonormal direction in one dimension: H is 1.
    event = SampledWithoutReplacementDpEvent(20, 1, SlicedGaussianDpEvent(s, 1, 1))
    expected = math.log(total) / (alpha - 1)
    assert rdp_of(event, "replace_one", np.array([float(alpha)]))[0] == pytest.approx(
        expected, rel=1e-6
    )
    # Known to be a Gaussian, it costs half of that, nearly.
    event = SampledWithoutReplacementDpEvent(20, 1, GaussianDpEvent(s))
    assert rdp_of(event, "replace_one", np.array([float(alpha)]))[0] < 0.55 * expected


@pytest.mark.parametrize(
    ("ledger", "other"),
    [
        (steps(GaussianDpEvent(3.0), T=4), "pld"),
        (steps(SlicedGaussianDpEvent(0.8, 20, 10), T=2), "rdp"),
        (steps(SlicedGaussianDpEvent(0.8, 20, 10), 0.05, 50), "rdp"),
        ([GaussianDpEvent(4.0), *steps(SlicedGaussianDpEvent(0.8, 20, 10), 0.05, 50)], "rdp"),
    ],
    ids=["ExactGaussianMechanism", "Composition", "AmplificationBySampling", "mixed"],
)
def test_autodp_agrees(ledger, other):
    """Each call of autodp is as tight as what it stands for: its last release is of 2023."""
    autodp = ledger_epsilon(ledger, 1e-5, accountant="autodp")
    assert autodp == pytest.approx(ledger_epsilon(ledger, 1e-5, accountant=other), rel=2e-4)


def test_autodp_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "autodp.mechanism_zoo", None)
    budget = PrivacyBudget(1.0, 1e-5)
    sampler = DPSWFlowSampler(0.5, 1e-6, accountant="autodp", bounds=(0, 1))
    with budget, pytest.raises(ImportError, match=r"pip install 'skdpgen\[autodp\]'"):
        sampler.fit(np.zeros((50, 2)))
    assert budget.spent == 0.0


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_very_little_noise_is_priced_without_nan(relation, recwarn):
    # One sampled step: the loss exceeds μ²/2 + log q with probability about q/2 > δ.
    ledger = steps(GaussianDpEvent(1 / 60), 0.01)
    radius = 60 if relation == "zero_out" else 30
    epsilon = ledger_epsilon(ledger, 1e-5, relation=relation)
    assert epsilon >= radius**2 / 2 + math.log(0.01)
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]


# --- what has no price ------------------------------------------------------------------------


@pytest.mark.parametrize("accountant", ["pld", "rdp", "autodp"])
@pytest.mark.parametrize(
    "event",
    [
        NonPrivateDpEvent(),
        GaussianDpEvent(0.0),
        SlicedGaussianDpEvent(0.0, 4, 2),
        PoissonSampledDpEvent(0.1, GaussianDpEvent(0.0)),
    ],
)
def test_no_noise_costs_infinity(event, accountant):
    ledger = [GaussianDpEvent(5.0), event]
    assert ledger_epsilon(ledger, 1e-5, accountant=accountant) == math.inf
    assert ledger_delta(ledger, 3.0, accountant=accountant) == 1.0


@pytest.mark.parametrize("accountant", ["pld", "rdp", "autodp"])
@pytest.mark.parametrize(
    "event",
    [
        dp_accounting.dp_event.ZCDpEvent(1.0),
        PoissonSampledDpEvent(0.1, LaplaceDpEvent(1.0)),
        PoissonSampledDpEvent(0.1, PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0))),
        PoissonSampledDpEvent(0.1, ComposedDpEvent([GaussianDpEvent(1.0)] * 2)),
        dp_accounting.dp_event.UnsupportedDpEvent(),
        GaussianDpEvent(math.nan),
        GaussianDpEvent(-4.0),
        SlicedGaussianDpEvent(-1.0, 4, 2),
        SlicedGaussianDpEvent(math.nan, 4, 2),
    ],
)
def test_events_without_a_price_are_refused(event, accountant):
    with pytest.raises(UnsupportedEventError, match=r"not known|one event|as noise_multiplier"):
        ledger_epsilon([GaussianDpEvent(1.0), event], 1e-5, accountant=accountant)


@pytest.mark.parametrize("accountant", ["pld", "rdp", "autodp"])
@pytest.mark.parametrize(
    "event", [NoOpDpEvent(), GaussianDpEvent(math.inf), PoissonSampledDpEvent(0, SLICED)]
)
def test_releases_without_information_cost_nothing(event, accountant):
    for ledger in ([], [event]):
        assert ledger_epsilon(ledger, 1e-5, accountant=accountant) == 0.0
        assert ledger_delta(ledger, 0.0, accountant=accountant) == 0.0
    both, alone = (
        ledger_epsilon(e, 1e-5, accountant=accountant) for e in ([SLICED, event], [SLICED])
    )
    assert both == alone


@pytest.mark.catches(
    "accounting.events:SlicedGaussianDpEvent.rounding",
    "max(2.0**-21, 2.0**-39 * self.noise_multiplier)",
    "2.0**-21",
)
@pytest.mark.parametrize("multiplier", 2.0 ** np.arange(-20, 60, 7))
def test_rounded_rows_are_paid_for_on_the_grid_that_they_are_on(multiplier):
    """Two rows of norm 1 differ by a step in each number; the noise is relative to twice that."""
    event = SlicedGaussianDpEvent(multiplier, 50, 20)
    step = 1 / grid_scale(2 * multiplier) / 2
    # (1-m)√H + g√k is at most the root of H + g²k / (1 - (1-m)²), and reaches it for some H.
    needed = 20 * step**2 / (1 - (1 - MARGIN) ** 2)
    assert needed <= event.rounding < 5 * needed


@pytest.mark.catches(
    "accounting.accountants:PLDAccountant.__init__",
    "RDPAccountant(leaves, relation)",
    "RDPAccountant({over_sensitivity(e, relation): n for e, n in leaves.items()}, relation)",
    param="replace_one",
)
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_where_grids_do_not_reach_the_price_is_that_of_moments(relation):
    event, delta = SlicedGaussianDpEvent(9.0, 6, 3, True), 1e-40
    by_moments = ledger_epsilon([event], delta, accountant="rdp", relation=relation)
    assert ledger_epsilon([event], delta, relation=relation) <= by_moments < math.inf
