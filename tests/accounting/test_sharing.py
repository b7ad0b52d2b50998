"""Noise in shares: how far sums of rounded Gaussians are from what is charged, by convolution."""

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, UnsupportedEventError
from scipy.interpolate import BSpline
from scipy.stats import norm

from skdpgen.accounting.event_json import event_from_dict, event_to_dict
from skdpgen.accounting.loss_distributions import gaussian_delta
from skdpgen.exceptions import PlanError
from skdpgen.federated.sharing import Sharing
from skdpgen.privacy import (
    Certificate,
    Plan,
    SharedGaussianDpEvent,
    gaussian_plan,
    ledger_delta,
    ledger_epsilon,
    verify,
)


def sum_divergence(std: float, n_shares: int) -> float:
    """Bound log P(N = n) / P(N* = n) of `SharedGaussianDpEvent`, for s = std and m = n_shares."""
    tau = 0.0
    for k in range(1, n_shares):
        exponent = 2 * math.pi**2 * std**2 * k / (k + 1)
        # j² ≥ 1 + 3(j - 1): a geometric series.
        theta = 2 * math.exp(-exponent) / -math.expm1(-3 * exponent) if exponent > 0 else math.inf
        # The bound does not hold for such little noise.
        if theta >= 1:
            return math.inf
        tau -= math.log1p(-theta)
    return tau


def sum_law(std, n_shares):
    """Return P(N = n) of a sum of rounded Gaussians, n = -R … R, by convolution."""
    reach = math.ceil(12 * std) + 2
    one = np.diff(norm.cdf(np.arange(-reach, reach + 2) - 0.5, scale=std))
    law = one
    for _ in range(n_shares - 1):
        law = np.convolve(law, one)
    return law


def rounded_law(std, n_shares, numbers):
    """Return P(N* = n): the density of ΣG + ΣU at n, with as many uniform U as G, by quadrature."""
    spline = BSpline.basis_element(np.arange(n_shares + 1) - n_shares / 2, extrapolate=False)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    starts = np.arange(n_shares) - n_shares / 2
    points = (starts[:, None] + (nodes + 1) / 2).ravel()
    weights = np.tile(weights / 2, n_shares) * spline(points)
    return norm.pdf(numbers[:, None] - points, scale=math.sqrt(n_shares) * std) @ weights


@pytest.mark.parametrize("n_shares", [2, 3, 7])
@pytest.mark.parametrize("std", [0.6, 0.8, 1.0, 1.3])
def test_sums_are_as_close_to_rounded_sums_as_is_said(std, n_shares):
    law = sum_law(std, n_shares)
    reach = len(law) // 2
    numbers = np.arange(-reach, reach + 1)
    # Beyond, doubles lose digits.
    near = np.abs(numbers) < 6 * std * math.sqrt(n_shares)
    ratios = np.abs(np.log(law[near] / rounded_law(std, n_shares, numbers[near])))
    tau = sum_divergence(std, n_shares)
    assert ratios.max() <= tau * (1 + 1e-6) + 1e-7
    if n_shares == 2 and tau > 1e-4:
        # Nor is it said for nothing.
        assert ratios.max() > tau / 3


def test_divergence_by_its_formula():
    terms = [
        2 * sum(math.exp(-2 * math.pi**2 * j**2 * k / (k + 1)) for j in (1, 2)) for k in (1, 2)
    ]
    assert sum_divergence(1.0, 3) == pytest.approx(-sum(math.log1p(-t) for t in terms), rel=1e-6)
    assert sum_divergence(1.0, 1) == 0
    assert sum_divergence(0.1, 2) == sum_divergence(0.0, 2) == math.inf
    # The divergence is 0 for as many owners as there can be, with the least share that is taken.
    assert sum_divergence(16.0, 100_000) == 0


@pytest.mark.parametrize("n_shares", [1, 2, 5])
@pytest.mark.parametrize(("std", "change"), [(1.0, 1), (1.0, 3), (3.0, 4), (16.0, 20)])
def test_no_test_tells_sums_apart_better_than_is_charged(std, change, n_shares):
    law = sum_law(std, n_shares)
    zeros = np.zeros(change)
    here, there = np.concatenate([law, zeros]), np.concatenate([zeros, law])
    tau = sum_divergence(std, n_shares)
    event = SharedGaussianDpEvent(std * math.sqrt(n_shares) / change, n_shares + 1, 0, 1)
    for epsilon in (0.0, 0.3, 1.0, 3.0):
        delta = np.maximum(here - math.exp(epsilon) * there, 0).sum()
        charged = ledger_delta([event], max(0.0, epsilon - 2 * tau))
        assert delta <= math.exp(tau) * charged + 1e-13
        if std == 16.0:
            # And hardly worse.
            assert delta >= 0.97 * ledger_delta([event], epsilon) - 1e-13


@pytest.mark.parametrize("accountant", ["pld", "rdp", "autodp"])
def test_the_price_is_that_of_the_shares_that_count(accountant):
    event, plain = SharedGaussianDpEvent(3.0, 20, 2, 1), GaussianDpEvent(3.0)
    for more in ([], [GaussianDpEvent(5.0)], [event]):
        ours, theirs = ([e, *more] for e in (event, plain))
        costs = [ledger_epsilon(events, 1e-5, accountant=accountant) for events in (ours, theirs)]
        assert costs[0] == costs[1]
    assert ledger_delta([event], 1.0, accountant="pld") == gaussian_delta(1.0, 1 / 3)
    with pytest.raises(UnsupportedEventError):
        ledger_epsilon([PoissonSampledDpEvent(0.1, event)], 1e-5, accountant=accountant)


def test_certificates_name_owners():
    event = SharedGaussianDpEvent(3.0, 20, 2, 1)
    certificate = Certificate((event,), ("two-way tables",))
    text = certificate.to_json()
    assert Certificate.from_json(text) == certificate
    assert verify(text) == ledger_epsilon([GaussianDpEvent(3.0)], 1e-5)
    assert certificate.mu == pytest.approx(1 / 3)
    assert "n_clients=20, n_dropouts=2, n_colluding=1" in " ".join(str(certificate).split())
    for name, value in [("n_colluding", 18), ("n_dropouts", -1), ("n_clients", 20.0)]:
        changed = {**event_to_dict(event), name: value}
        with pytest.raises(ValueError, match="whole number"):
            event_from_dict(changed)
        with pytest.raises(ValueError, match="Not a certificate"):
            verify(text.replace(f'"{name}": {getattr(event, name)}', f'"{name}": {value}'))


@pytest.mark.parametrize("counts", [(0, 0, 0), (3, 1, 2), (3, -1, 0), (3, 0, True), (2.0, 0, 1)])
def test_somebody_is_left(counts):
    with pytest.raises(ValueError, match="leave at least one client"):
        Sharing(*counts)


def test_shares_that_count():
    sharing = Sharing(20, 2, 1)
    assert (sharing.n_shares, sharing.min_clients) == (17, 18)
    plan = gaussian_plan({"two-way tables": 1.0}, 1.0, 1e-5)
    covered = sharing.cover(plan)
    event = covered.events[0]
    assert event == SharedGaussianDpEvent(plan.events[0].noise_multiplier, 20, 2, 1)
    assert covered.multiplier("two-way tables") == plan.multiplier("two-way tables")
    assert any("of 20 clients, at most 1" in text for text in sharing.assumptions)


@pytest.mark.parametrize(
    "plan",
    [
        gaussian_plan({"row count": 0.1, "two-way tables": 0.9}, 1.0, 1e-5),
        gaussian_plan({"two-way tables": 1.0}, math.inf, 1e-5),
        Plan((("two-way tables", GaussianDpEvent(9.0)),), 1.0, 1e-5, max_rows=2),
    ],
)
def test_other_plans_have_no_shares(plan):
    with pytest.raises(PlanError, match="one Gaussian release of records"):
        Sharing(3).cover(plan)
