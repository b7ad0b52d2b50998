"""The laws of H = ‖zᵀU‖²: simulation, quadrature, and the bounds of the DP-SWD paper."""

import itertools
import math

import numpy as np
import pytest
import torch
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from scipy import integrate, special, stats
from scipy.special import betaln

from skdpgen.accounting import loss_distributions
from skdpgen.accounting.directions import log_mgf, split_law
from skdpgen.privacy import (
    SlicedGaussianDpEvent,
    ledger_epsilon,
    sensitivity_law,
)
from skdpgen.transport import random_directions

SHAPES = [
    (2, 1, False),
    (2, 2, False),
    (3, 40, False),
    (50, 20, False),
    (784, 200, False),
    (6, 1, True),
    (50, 20, True),
    (4, 3, True),
    (5, 12, True),
]


def tail(law, points):
    """P(H̃ > x), with what the law counts as lost."""
    return (law.weights * (law.values > np.asarray(points)[:, None])).sum(1) + law.infinity


def draw_h(n, d, k, orthogonal, seed=0):
    """Draw H by its definition: a first row of directions, made from Gaussians."""
    rng = np.random.default_rng(seed)
    h = np.zeros(n)
    if orthogonal:
        blocks, rest = divmod(k, d)
        g = rng.normal(size=(n, d)) ** 2
        return blocks + g[:, :rest].sum(1) / g.sum(1)
    for _ in range(k):
        own, others = rng.normal(size=n) ** 2, rng.chisquare(d - 1, size=n)
        h += own / (own + others)
    return h


@pytest.mark.parametrize(("d", "k", "orthogonal"), SHAPES)
def test_law_dominates_simulation_and_is_close(d, k, orthogonal):
    n = 100_000
    h = np.sort(draw_h(n, d, k, orthogonal))
    law = sensitivity_law(d, k, orthogonal)
    points = np.quantile(h, np.linspace(0.001, 0.9999, 200))
    empirical = 1 - np.searchsorted(h, points, side="right") / n
    error = 5 * np.sqrt(empirical * (1 - empirical) / n) + 5 / n
    assert (tail(law, points) >= empirical - error).all()
    # At most a value of the law (1/60 of its mass) beyond.
    assert (tail(law, points) <= empirical + error + 1 / 30).all()


@pytest.mark.parametrize(("d", "k", "orthogonal"), [s for s in SHAPES if s[0] < 10])
def test_library_directions_follow_the_law(d, k, orthogonal):
    rows = [
        random_directions(d, k, orthogonal=orthogonal, generator=generator)[0].square().sum().item()
        for generator in [torch.Generator().manual_seed(3)] * 200
    ]
    reference = draw_h(20_000, d, k, orthogonal, seed=1)
    assert stats.ks_2samp(rows, reference).pvalue > 1e-4


@pytest.mark.parametrize(("d", "k", "orthogonal"), SHAPES)
def test_law_is_a_law(d, k, orthogonal):
    law = sensitivity_law(d, k, orthogonal)
    assert (law.weights >= 0).all()
    # Mass that rounding may have lost is added, never taken.
    assert 1 - 1e-14 <= law.weights.sum() + law.infinity < 1 + 1e-9
    assert (np.diff(law.values) >= 0).all()
    assert law.values[0] > 0
    assert law.infinity < 1e-12
    mean = law.values @ law.weights
    assert k / d <= mean + 1e-12
    assert mean <= 1.05 * k / d


def test_every_quantile_is_found_or_rounded_up():
    for d, k in [*itertools.combinations(range(30, 0, -1), 2), (50, 20), (784, 200)]:
        law, exact = sensitivity_law(d, k, True), stats.beta(k / 2, (d - k) / 2)
        assert ((law.values > 0) & (law.values <= 1)).all()
        assert (np.diff(law.values) >= 0).all()
        # Each value but the last has a tail of the weights after it.
        after = np.cumsum(law.weights[:0:-1])[::-1]
        assert (exact.sf(law.values[:-1]) <= after * (1 + 1e-9)).all()


def test_in_many_dimensions_the_end_of_the_support_has_next_to_no_mass():
    law = sensitivity_law(196_608, 443, True)
    assert law.values[-1] == 1
    assert law.weights[law.values > 0.02].sum() < 1e-90
    # The price of a step follows from the likely values, and its law can be put on a grid.
    step = PoissonSampledDpEvent(0.01, SlicedGaussianDpEvent(0.05, 196_608, 443, True))
    ledger = [SelfComposedDpEvent(step, 200)]
    plain = PoissonSampledDpEvent(0.01, GaussianDpEvent(0.05 / math.sqrt(443 / 196_608)))
    mean = ledger_epsilon([SelfComposedDpEvent(plain, 200)], 1e-5)
    assert mean < ledger_epsilon(ledger, 1e-5) < 1.1 * mean


@pytest.mark.parametrize(("d", "k"), [(10**6, 2), (10**6, 50), (10**6, 443), (10**7, 100)])
def test_in_many_dimensions_iid_directions_lose_no_mass(d, k):
    law = sensitivity_law(d, k)
    assert law.infinity < 1e-18
    mean = law.values @ law.weights
    assert k / d <= mean <= 1.06 * k / d
    # A sum of k squares of Gaussians over d, nearly.
    points = stats.chi2(k).isf(10.0 ** -np.arange(1, 12)) / d
    exact = stats.chi2(k).sf(points * d)
    assert (tail(law, points * (1 - 1e-4)) >= exact * (1 - 1e-2)).all()


@pytest.mark.catches(
    "accounting.directions:_log_hyp1f1", "-a * np.log1p(-t / b) * (1 + 1e-12)", "a * t / b"
)
@pytest.mark.parametrize(("d", "t"), [(10**6, 30_000.0), (10**6, 250_000.0), (10**7, 4_000_000.0)])
def test_moments_in_many_dimensions_are_bounded_closely(d, t):
    def integrand(u):
        # With b = u² / d the pole of the density at 0 is gone.
        return 2 * math.exp((t * u * u + (d - 3) / 2 * d * math.log1p(-u * u / d)) / d)

    exact = math.log(integrate.quad(integrand, 0, 60, limit=400)[0] / math.sqrt(d))
    exact -= betaln(0.5, (d - 1) / 2)
    bound = log_mgf(np.array([t]), d, 1)[0]
    assert exact * (1 - 1e-9) <= bound <= exact * (1 + 1e-4)


@pytest.mark.parametrize("d", [3, 10, 200])
def test_sum_of_two_dominates_the_exact_tail_far_out(d):
    law = sensitivity_law(d, 2)
    one = stats.beta(0.5, (d - 1) / 2)

    def exact_tail(x):
        # Substitute b = u² to lose the pole of the density at 0.
        inner = lambda u: 2 * u * one.pdf(u * u) * one.sf(x - u * u)  # noqa: E731
        return integrate.quad(inner, 0, math.sqrt(min(x, 1)), limit=400, epsabs=1e-16)[0] + one.sf(
            x
        )

    points = 2 / d + np.linspace(0, 30 / d, 20)
    points = points[points < 1.9]
    exact = np.array([exact_tail(x) for x in points])
    above = exact > 1e-11
    assert (tail(law, points)[above] >= exact[above] * (1 - 1e-6)).all()
    wider = np.array([exact_tail(x * 0.93 - 0.02 / d) for x in points])
    assert (tail(law, points) <= wider + 1 / 30).all()


@pytest.mark.parametrize(
    ("d", "k", "orthogonal", "h"),
    [(1, 7, False, 7), (1, 1, True, 1), (5, 5, True, 1), (5, 15, True, 3)],
)
def test_constant_h(d, k, orthogonal, h):
    law = sensitivity_law(d, k, orthogonal)
    assert (law.values.tolist(), law.weights.tolist(), law.infinity) == ([h], [1], 0)


def profiles(rate):
    """All profiles that are averaged over H, at ε as the accountant evaluates them."""
    at_rate = {
        name: getattr(loss_distributions, name) for name in ("_amplified", "_remove_profile")
    }
    sampled = {name: lambda epsilon, mu, f=f: f(epsilon, mu, rate) for name, f in at_rate.items()}
    replaced = lambda epsilon, mu: loss_distributions._replace_profile(epsilon, mu, rate)  # noqa: E731
    return {
        "gaussian": (loss_distributions.gaussian_delta, -3.0),
        "amplified": (sampled["_amplified"], 0.0),
        "remove": (sampled["_remove_profile"], math.log1p(-rate) / 2),
        "add": (loss_distributions._swap(sampled["_remove_profile"]), 0.0),
        "replace": (replaced, 1e-3),
    }


@pytest.mark.catches(
    "accounting.directions:split_law",
    "log_ndtr(-np.sqrt(values) / (2 * noise_multiplier))",
    "-1e-6 * values",
)
@pytest.mark.parametrize(
    "noise_multiplier", [0.3, *(pytest.param(m, marks=pytest.mark.slow) for m in (2.0, 0.05))]
)
@pytest.mark.parametrize("profile", profiles(0.5))
@pytest.mark.parametrize("change", ["none", "a constant", "the larger of two, halved"])
def test_splitting_lowers_no_average(profile, noise_multiplier, change):
    fine = sensitivity_law(40, 6, True, n_values=2000)
    # Few values, so that a wrong split is seen.
    laws = [fine, split_law(fine, noise_multiplier, n_values=8)]
    assert laws[1].values.size < 20
    if change == "a constant":
        laws = [law._replace(values=law.values + 0.3) for law in laws]
    elif change != "none":
        laws = [loss_distributions._law_of_larger(law) for law in laws]
        laws = [law._replace(values=law.values / 2) for law in laws]
    for rate in (0.01, 0.5):
        function, low = profiles(rate)[profile]
        high = -math.log1p(-rate) * 0.99 if profile == "add" else 8.0
        epsilon = np.linspace(max(low, math.log1p(-rate) / 2) if rate < 0.5 else low, high, 60)
        exact, split = (
            sum(
                w * function(epsilon, math.sqrt(h) / noise_multiplier)
                for h, w in zip(*law[:2], strict=True)
            )
            for law in laws
        )
        assert np.all(split >= exact * (1 - 1e-9) - 1e-14)


@pytest.mark.parametrize("noise_multiplier", [0.3, 2.0])
def test_splitting_keeps_total_variation(noise_multiplier):
    # Values are rounded up first, by more than they are split.
    law = sensitivity_law(40, 6, True, n_values=5000)
    split = split_law(law, noise_multiplier)
    assert split.weights.sum() == pytest.approx(1, abs=1e-12)
    assert split.values.size < 70
    exact, kept = (
        part.weights @ special.ndtr(np.sqrt(part.values) / (2 * noise_multiplier))
        for part in (law, split)
    )
    assert kept == pytest.approx(exact, rel=1e-8)
    # Without a difference between values there is nothing to split.
    assert split_law(law, 1e100).weights @ split_law(law, 1e100).values >= law.weights @ law.values
