"""Noise levels: within the budget, and tight."""

import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting import (
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)

from skdpgen import DPAFGenerator, DPSinkhornGenerator, DPSWFlowSampler, preview
from skdpgen.accounting.calibration import calibrate, check_delta, check_epsilon
from skdpgen.privacy import (
    DiameterGaussianDpEvent,
    SlicedGaussianDpEvent,
    calibrate_gaussian,
    calibrate_noise,
    ledger_epsilon,
    repeated_plan,
)
from skdpgen.releases import ForwardAggregates, SampledGradients, SlicedRows

# d, k, N, batch, epochs · ceil(N / batch), δ
SMALL = (6, 3, 20, 1, 10, 1e-5)
SETTINGS = {
    "MNIST": (784, 1000, 60000, 100, 60000, 1e-5),
    "U-M": (784, 200, 10000, 128, 7900, 1e-5),
    "M-U": (784, 200, 7438, 128, 5900, 1e-5),
    "CelebA": (8192, 2000, 162000, 256, 63300, 1e-6),
}


def slices(setting, relation="zero_out", orthogonal=False):
    """Return the event of sliced rows as a function of its noise."""
    d, k, n, batch, n_steps, _ = setting

    def make_event(sigma):
        event = SlicedGaussianDpEvent(sigma, d, k, orthogonal)
        if batch < n and relation == "zero_out":
            event = PoissonSampledDpEvent(batch / n, event)
        elif batch < n:
            event = SampledWithoutReplacementDpEvent(n, batch, event)
        return SelfComposedDpEvent(event, n_steps)

    return make_event


def calibrate_slices(epsilon, setting, accountant="pld", **options):
    terms = {"accountant": accountant, "relation": options.get("relation", "zero_out")}
    return calibrate_noise(slices(setting, **options), epsilon, setting[-1], **terms)


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
    ("epsilon", "accountant", "options"),
    [
        (0.3, "pld", {"orthogonal": True}),
        (5.0, "pld", {}),
        (0.3, "rdp", {}),
        (5.0, "rdp", {"orthogonal": True}),
        (1.0, "pld", {"relation": "replace_one"}),
        (1.0, "rdp", {"relation": "replace_one"}),
    ],
)
def test_sliced_is_within_the_budget_and_tight(epsilon, accountant, options):
    terms = {"accountant": accountant, "relation": options.get("relation", "zero_out")}
    sigma, make_event = (
        calibrate_slices(epsilon, SMALL, accountant, **options),
        slices(SMALL, **options),
    )
    spent, less = (ledger_epsilon([make_event(s)], 1e-5, **terms) for s in (sigma, 0.999 * sigma))
    assert spent <= epsilon < less


def test_pld_needs_less_noise_than_rdp_and_orthogonal_less_than_iid():
    pld, rdp = (calibrate_slices(2.0, SMALL, accountant) for accountant in ("pld", "rdp"))
    haar = calibrate_slices(2.0, SMALL, orthogonal=True)
    assert haar < pld < rdp


@pytest.mark.parametrize(
    ("name", "largest"),
    [
        ("MNIST", 0.664),
        ("U-M", 0.4517),
        ("M-U", 0.4925),
        pytest.param("CelebA", 0.298, marks=pytest.mark.slow),
    ],
)
def test_exact_rdp_noise_of_the_papers_settings(name, largest):
    sigma = calibrate_slices(10, SETTINGS[name], "rdp")
    assert 0.97 * largest < sigma <= largest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "largest"), [("MNIST", 0.6465), ("U-M", 0.4515), ("M-U", 0.4925), ("CelebA", 0.298)]
)
def test_exact_pld_noise_of_the_papers_settings(name, largest):
    sigma = calibrate_slices(10, SETTINGS[name])
    assert sigma <= largest
    assert sigma < calibrate_slices(10, SETTINGS[name], "rdp")


@pytest.mark.parametrize(("name", "sigma"), [("MNIST", 0.6465), ("U-M", 0.45)])
def test_pld_epsilon_of_the_papers_settings(name, sigma):
    assert ledger_epsilon([slices(SETTINGS[name])(sigma)], SETTINGS[name][-1]) <= 10


@pytest.mark.catches(
    "accounting.calibration:check_epsilon", "return at_most(epsilon)", "return float(epsilon)"
)
@pytest.mark.parametrize("check", [check_epsilon, check_delta])
@pytest.mark.parametrize("number", [Fraction(1, 10), Fraction(2, 3), np.longdouble("0.7")])
def test_budgets_are_never_rounded_up(check, number):
    taken = check(number)
    assert type(taken) is float
    assert number * (1 - 1e-15) < taken <= number


def test_dimension_and_projections_enter_through_their_ratio_only_in_the_limit():
    # A plain Gaussian of sensitivity √(k/d) is the limit of many directions.
    sigma = calibrate_noise(lambda s: SlicedGaussianDpEvent(s, 10, 20_000), 1.0, 1e-5)
    limit = math.sqrt(2000) * calibrate_gaussian(1.0, 1e-5)
    assert limit < sigma < 1.04 * limit


@pytest.mark.parametrize("epsilon", [300.0, pytest.param(1e4, marks=pytest.mark.slow)])
def test_huge_budgets_are_priced_by_losses(epsilon):
    setting = (20, 50, 1, 1, 1, 1e-5)
    pld, rdp = (calibrate_slices(epsilon, setting, accountant) for accountant in ("pld", "rdp"))
    assert 0.7 * rdp < pld < rdp
    assert ledger_epsilon([slices(setting)(pld)], 1e-5) <= epsilon


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


@pytest.mark.parametrize("n_steps", [0, -1, 1.5])
def test_a_plan_has_at_least_one_step(n_steps):
    with pytest.raises(ValueError, match="n_steps must be"):
        repeated_plan("step", GaussianDpEvent, n_steps, 1.0, 1e-5)
