"""Refutations by right guesses: against closed forms, and the best guesses that there are."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from scipy import stats

from skdpgen.accounting.accountants import ledger_epsilon
from skdpgen.auditing.refutation import TradeOff, find_bound, refute_by_fits, refute_by_guesses

DELTA, ALPHA = 1e-5, 1e-3


def certify(mu):
    event = GaussianDpEvent(1 / mu)
    return SimpleNamespace(
        events=(event,), relation="zero_out", delta=DELTA, epsilon=ledger_epsilon([event], DELTA)
    )


def draw(mu, n_fits, n_canaries, seed=0):
    """Return how clear guesses are, and which are right, of orthogonal canaries."""
    coins, noise = np.random.default_rng(seed).normal(size=(2, n_fits, n_canaries))
    scores = mu * (coins > 0) + noise - mu / 2
    return np.abs(scores), (scores > 0) == (coins > 0)


def bound_by_fits(certificate, right, alpha=ALPHA):
    return find_bound(certificate, lambda curve: refute_by_fits(curve, right.mean(1), alpha))


def bound_by_guesses(certificate, n, n_guesses, n_right, alpha=ALPHA):
    return find_bound(
        certificate, lambda curve: refute_by_guesses(curve, n, n_guesses, n_right, alpha)
    )


@pytest.mark.parametrize("mu", [0.3, 0.9, 2.0])
def test_trade_off_of_a_gaussian_release(mu):
    """Φ(Φ⁻¹(power) - μ), of which lines see a little less."""
    curve = TradeOff([GaussianDpEvent(0.5 / mu)], "zero_out", scale=2.0)
    assert curve.advantage == pytest.approx(2 * stats.norm.cdf(mu / 2) - 1, rel=1e-9)
    powers = np.array([0.01, 0.2, 0.5, 0.9, 0.99])
    least = stats.norm.cdf(stats.norm.ppf(powers) - mu)
    found = np.array([*map(curve.min_false_positive_rate, powers)])
    assert np.all(found <= least + 1e-12)
    assert np.all(found >= 0.75 * least)
    assert curve.epsilon(1e-5) == ledger_epsilon([GaussianDpEvent(1 / mu)], 1e-5)


@pytest.mark.catches(
    "auditing.refutation:refute_by_fits",
    "1 + curve.advantage",
    "1 + curve.advantage / 2",
    param="1",
)
@pytest.mark.parametrize("n_canaries", [1, 5])
def test_many_fits_come_near_the_truth(n_canaries):
    """It is above with a probability of ALPHA."""
    certificate = certify(0.925)
    _, right = draw(0.925, 10_000 // n_canaries, n_canaries)
    assert 0.75 * certificate.epsilon < bound_by_fits(certificate, right) <= certificate.epsilon


def test_less_noise_is_a_violation():
    certificate = certify(0.925)
    _, right = draw(0.925 * math.sqrt(2), 2000, 1)
    assert bound_by_fits(certificate, right) > certificate.epsilon


def test_one_fit_shows_half_by_the_clearest():
    certificate = certify(0.925)
    clear, right = (drawn.ravel() for drawn in draw(0.925, 1, 3000))
    order = np.argsort(-clear)[:600]
    bound = bound_by_guesses(certificate, 3000, 600, right[order].sum(), 0.05)
    assert 0.5 * certificate.epsilon < bound <= certificate.epsilon
    # As a share of right guesses in one fit it would say nothing.
    assert bound_by_fits(certificate, right[None], 0.05) == 0


@pytest.mark.catches(
    "auditing.refutation:refute_by_fits",
    "logsumexp(gains) - math.log(len(_STAKES))",
    "logsumexp(gains)",
)
def test_fits_are_refuted_as_often_as_said():
    """Curves that guesses meet just so are refuted with probability alpha at most."""
    mu, alpha, n_draws = 1.0, 0.1, 400
    curve = TradeOff([GaussianDpEvent(1 / mu)], "zero_out")
    n_wrong = sum(
        refute_by_fits(curve, draw(mu, 100, 2, seed)[1].mean(1), alpha) for seed in range(n_draws)
    )
    assert n_wrong <= stats.binom.isf(1e-6, n_draws, alpha)


def test_all_at_once():
    """A fit that tells all with probability p, and nothing else, is no more private than that.

    F(x) = p + x; all r guesses are right with probability p + (1 - p) / 2^r.
    """
    p, r = 0.05, 20
    curve = SimpleNamespace(min_false_positive_rate=lambda power: max(0.0, power - p))
    chance = p + (1 - p) * 0.5**r
    assert not refute_by_guesses(curve, r, r, r, chance * (1 - 1e-9))
    assert refute_by_guesses(curve, r, r, r, 1.2 * chance)


@pytest.mark.catches(
    "auditing.refutation:refute_by_guesses",
    "v / (n_guesses - v)",
    "n_guesses / (n_guesses - v)",
    param="0.5",
)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_one_guess_of_randomised_response(epsilon):
    """It is right with probability e^ε / (1 + e^ε), and no sooner refuted."""
    curve = SimpleNamespace(
        min_false_positive_rate=lambda power: max(
            power * math.exp(-epsilon), 1 - math.exp(epsilon) * (1 - power)
        )
    )
    chance = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert not refute_by_guesses(curve, 1, 1, 1, chance - 1e-9)
    assert refute_by_guesses(curve, 1, 1, 1, chance + 1e-9)


def test_nothing_is_shown_by_chance_or_of_what_has_no_noise():
    certificate = certify(0.925)
    _, right = draw(0.0, 500, 1)
    assert bound_by_fits(certificate, right) == 0
    assert bound_by_guesses(certificate, 100, 50, 25) == 0
    certificate.epsilon = math.inf
    assert bound_by_fits(certificate, np.ones((500, 1))) == 0
