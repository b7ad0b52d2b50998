"""Noise levels: within the budget, tight, and those of the DP-SWD paper's Table 4."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from scipy.stats import norm

from skdpgen import DPAFGenerator, DPSinkhornGenerator, DPSWFlowSampler, preview
from skdpgen.accounting.calibration import calibrate, check_delta, check_epsilon
from skdpgen.privacy import (
    DiameterGaussianDpEvent,
    calibrate_gaussian,
    calibrate_sliced_gaussian,
    ledger_epsilon,
    repeated_plan,
    sliced_gaussian_epsilon,
)
from skdpgen.releases import ForwardAggregates, SampledGradients, SlicedRows

SMALL = dict(n_features=6, n_projections=3, sampling_rate=0.05, n_steps=10)
# d, k, N, batch, epochs · ceil(N / batch), δ
SETTINGS = {
    "MNIST": (784, 1000, 60000, 100, 60000, 1e-5),
    "U-M": (784, 200, 10000, 128, 7900, 1e-5),
    "M-U": (784, 200, 7438, 128, 5900, 1e-5),
    "CelebA": (8192, 2000, 162000, 256, 63300, 1e-6),
}


def setting(name):
    d, k, n, batch, n_steps, delta = SETTINGS[name]
    options = dict(n_features=d, n_projections=k, sampling_rate=batch / n, n_steps=n_steps)
    return options | {"delta": delta}


@pytest.mark.parametrize("accountant", ["pld", "rdp", "autodp"])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
def test_gaussian_is_within_the_budget_and_tight(epsilon, accountant):
    multiplier = calibrate_gaussian(epsilon, 1e-5, accountant=accountant)
    spent, less = (
        ledger_epsilon([GaussianDpEvent(s)], 1e-5, accountant=accountant)
        for s in (multiplier, 0.999 * multiplier)
    )
    assert spent <= epsilon < less


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 0.3, "orthogonal": True},
        {"epsilon": 5.0},
        {"epsilon": 0.3, "method": "rdp"},
        {"epsilon": 5.0, "method": "rdp", "orthogonal": True},
        pytest.param({"relation": "replace_one"}, marks=pytest.mark.slow),
        {"relation": "replace_one", "sampling": "fixed"},
        {"relation": "replace_one", "sampling": "fixed", "method": "rdp"},
        {
            "relation": "replace_one",
            "sampling": "fixed",
            "method": "bernstein",
            "sampling_rate": 0.001,
        },
        {"method": "bernstein"},
        {"sampling_rate": 1.0},
        {"sampling_rate": 1.0, "n_steps": 1, "n_features": 1},
    ],
    ids=str,
)
def test_sliced_is_within_the_budget_and_tight(options):
    options = SMALL | options
    epsilon = options.pop("epsilon", 1.0)
    sigma = calibrate_sliced_gaussian(epsilon, 1e-5, **options)
    spent, less = (sliced_gaussian_epsilon(s, 1e-5, **options) for s in (sigma, 0.999 * sigma))
    assert spent <= epsilon < less


def test_pld_needs_less_noise_than_rdp_and_orthogonal_less_than_iid():
    pld, rdp = (calibrate_sliced_gaussian(2.0, 1e-5, method=m, **SMALL) for m in ("pld", "rdp"))
    haar = calibrate_sliced_gaussian(2.0, 1e-5, orthogonal=True, **SMALL)
    assert haar < pld < rdp


@pytest.mark.parametrize(
    ("name", "largest"), [("MNIST", 0.664), ("U-M", 0.4517), ("M-U", 0.4925), ("CelebA", 0.298)]
)
def test_exact_rdp_noise_of_the_papers_settings(name, largest):
    sigma = calibrate_sliced_gaussian(10, method="rdp", **setting(name))
    assert 0.97 * largest < sigma <= largest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "largest"), [("MNIST", 0.6465), ("U-M", 0.4515), ("M-U", 0.4925), ("CelebA", 0.298)]
)
def test_exact_pld_noise_of_the_papers_settings(name, largest):
    sigma = calibrate_sliced_gaussian(10, **setting(name))
    assert sigma <= largest
    assert sigma < calibrate_sliced_gaussian(10, method="rdp", **setting(name))


@pytest.mark.parametrize(("name", "sigma"), [("MNIST", 0.6465), ("U-M", 0.45)])
def test_pld_epsilon_of_the_papers_settings(name, sigma):
    assert sliced_gaussian_epsilon(sigma, **setting(name)) <= 10


@pytest.mark.parametrize(
    ("name", "method", "sigma"),
    [
        ("MNIST", "bernstein", 2.94),
        ("U-M", "bernstein", 4.74),
        ("M-U", "bernstein", 5.34),
        ("CelebA", "bernstein", 2.392),
        ("MNIST", "clt", 0.84),
        ("CelebA", "clt", 0.37),
    ],
)
@pytest.mark.filterwarnings("ignore:kind='clt'")
def test_table_4(name, method, sigma):
    options = {"relation": "replace_one", "sampling": "fixed", "method": method}
    # Rows that are at most 1 apart are in a ball of radius 1/2.
    noise = calibrate_sliced_gaussian(10, **setting(name), **options) / 2
    assert noise == pytest.approx(sigma, rel=0.03)


def test_clt_warns_once_and_not_at_each_sigma_that_is_tried():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calibrate_sliced_gaussian(1.0, 1e-5, method="clt", **SMALL)
    assert ["proves nothing" in str(warning.message) for warning in caught] == [True]


@pytest.mark.catches(
    "accounting.calibration:check_epsilon", "return at_most(epsilon)", "return float(epsilon)"
)
@pytest.mark.parametrize("check", [check_epsilon, check_delta])
@pytest.mark.parametrize("number", [Fraction(1, 10), Fraction(2, 3), np.longdouble("0.7")])
def test_budgets_are_never_rounded_up(check, number):
    taken = check(number)
    assert type(taken) is float
    assert number * (1 - 1e-15) < taken <= number


def test_limits():
    assert calibrate_gaussian(math.inf, 1e-5) == 0
    assert calibrate_sliced_gaussian(math.inf, 1e-5, **SMALL) == 0
    assert sliced_gaussian_epsilon(0, 1e-5, **SMALL) == math.inf


def test_dimension_and_projections_enter_through_their_ratio_only_in_the_limit():
    # A plain Gaussian of sensitivity √(k/d) is the limit of many directions.
    sigma = calibrate_sliced_gaussian(1.0, 1e-5, n_features=10, n_projections=20_000)
    limit = math.sqrt(2000) * calibrate_gaussian(1.0, 1e-5)
    assert limit < sigma < 1.04 * limit


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0}, "epsilon must be a positive number"),
        ({"epsilon": math.nan}, "epsilon must be a positive number"),
        ({"epsilon": "1"}, "epsilon must be a positive number"),
        ({"delta": 0}, r"delta must be a number in \(0, 1\); got 0"),
        ({"delta": 1.0}, r"delta must be a number in \(0, 1\); got 1.0"),
        ({"n_features": 0}, "n_features must be a whole number"),
        ({"n_projections": 1.5}, "n_projections must be a whole number"),
        ({"sampling_rate": 0}, r"sampling_rate must be a positive number; got 0"),
        ({"sampling_rate": 1.1}, r"sampling_rate must be in \(0, 1\]; got 1.1"),
        ({"n_steps": 0}, "n_steps must be a positive whole number; got 0"),
        ({"sampling": "shuffle"}, "sampling must be one of .*; got 'shuffle'"),
        ({"method": "moments"}, "method must be one of .*; got 'moments'"),
        ({"method": "bernstein", "orthogonal": True}, "needs iid directions"),
        ({"relation": "add"}, "relation must be one of .*; got 'add'"),
    ],
    ids=str,
)
def test_bad_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        calibrate_sliced_gaussian(**({"epsilon": 1.0, "delta": 1e-5} | SMALL | change))


@pytest.mark.parametrize("epsilon", [300.0, pytest.param(1e4, marks=pytest.mark.slow)])
def test_huge_budgets_are_priced_by_losses(epsilon):
    shape = {"n_features": 20, "n_projections": 50}
    sigmas = [
        calibrate_sliced_gaussian(epsilon, 1e-5, method=method, **shape)
        for method in ("pld", "rdp")
    ]
    assert 0.7 * sigmas[1] < sigmas[0] < sigmas[1]
    assert sliced_gaussian_epsilon(sigmas[0], 1e-5, **shape) <= epsilon


@pytest.mark.parametrize("sigma", [-1.0, math.nan])
def test_bad_sigma(sigma):
    with pytest.raises(ValueError, match="sigma must be a number of at least 0"):
        sliced_gaussian_epsilon(sigma, 1e-5, n_features=3, n_projections=3)


@pytest.mark.parametrize(
    ("base", "relation"),
    [
        (GaussianDpEvent, "zero_out"),
        pytest.param(GaussianDpEvent, "replace_one", marks=pytest.mark.slow),
        pytest.param(DiameterGaussianDpEvent, "zero_out", marks=pytest.mark.slow),
        (DiameterGaussianDpEvent, "replace_one"),
    ],
)
@pytest.mark.parametrize(
    ("epsilon", "delta", "rate", "n_steps"),
    [
        (0.01, 1e-6, 0.02, 5),
        (1e-3, 1e-6, 0.02, 5),
        (1e-3, 1e-9, 0.5, 1),
        (0.01, 1e-6, 0.999, 1),
        (1.0, 1e-100, 0.02, 5),
        (100.0, 1e-6, 0.02, 2),
    ],
)
def test_noise_of_samples_is_found_at_any_budget(epsilon, delta, rate, n_steps, base, relation):
    """Rényi moments of samples cost more than a small budget at any noise; losses do not."""
    plan = repeated_plan(
        "step",
        lambda multiplier: PoissonSampledDpEvent(rate, base(multiplier)),
        n_steps,
        epsilon,
        delta,
        relation=relation,
    )
    assert 0.99 * epsilon < ledger_epsilon(plan.events, delta, relation=relation) <= epsilon


@pytest.mark.parametrize("epsilon", [0.01, 0.001])
def test_sampled_releases_are_planned_at_small_budgets(epsilon):
    public, refused = {"bounds": (0, 1), "clip_norm": 1.0}, []
    for generator in (
        DPSinkhornGenerator(epsilon, 1e-6, **public, release=SampledGradients(n_steps=4)),
        DPSWFlowSampler(epsilon, 1e-6, **public, release=SlicedRows(n_steps=4)),
        DPAFGenerator(epsilon, 1e-6, **public, release=ForwardAggregates(n_steps=4)),
    ):
        try:
            assert 0.99 * epsilon < preview(generator, 1500, 3).epsilon <= epsilon
        except ValueError as error:
            refused.append(error)
    assert not refused


def test_a_search_for_noise_starts_anywhere():
    for guess in (1e-7, 1.0, 1e9):
        assert calibrate(lambda level: 2 / level, 4.0, guess=guess) == pytest.approx(0.5, rel=2e-4)


@pytest.mark.parametrize("rate", [1e-12, 1e-3 / 3, 0.05, 0.1])
def test_samples_of_a_fixed_size_have_exactly_the_rate_that_is_given(rate):
    """A share of a billion rows that is near to it, but less, would cost less; or nothing."""
    options = {"relation": "replace_one", "sampling": "fixed", "sampling_rate": rate}
    shape = {"n_features": 1, "n_projections": 1}
    mu = 2.0
    exact = rate * (norm.cdf(mu / 2 - 0.4 / mu) - math.exp(0.4) * norm.cdf(-mu / 2 - 0.4 / mu))
    epsilon = sliced_gaussian_epsilon(1.0, exact, **shape, **options)
    assert math.log1p(rate * math.expm1(0.4)) <= epsilon
    assert epsilon <= 1.2 * math.log1p(rate * math.expm1(0.4)) + 1e-6


@pytest.mark.parametrize("n_steps", [0, -1, 1.5])
def test_a_plan_has_at_least_one_step(n_steps):
    with pytest.raises(ValueError, match="n_steps must be"):
        repeated_plan("step", GaussianDpEvent, n_steps, 1.0, 1e-5)
