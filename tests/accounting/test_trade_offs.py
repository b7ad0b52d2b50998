"""Trade-offs: against closed forms of Gaussian releases."""

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NonPrivateDpEvent, PoissonSampledDpEvent
from scipy.stats import norm

from skdpgen.accounting.accountants import ledger_epsilon
from skdpgen.accounting.events import SlicedGaussianDpEvent, repeat, scale_noise
from skdpgen.accounting.trade_offs import TradeOff


@pytest.mark.parametrize("mu", [0.3, 0.9, 2.0])
def test_trade_off_of_a_gaussian_release(mu):
    """Φ(Φ⁻¹(power) - μ), of which lines see a little less."""
    curve = TradeOff([GaussianDpEvent(1 / mu)], "zero_out")
    assert curve.advantage == pytest.approx(2 * norm.cdf(mu / 2) - 1, rel=1e-9)
    powers = np.array([0.01, 0.2, 0.5, 0.9, 0.99])
    least, found = (
        norm.cdf(norm.ppf(powers) - mu),
        np.array([*map(curve.min_false_positive_rate, powers)]),
    )
    assert np.all(found <= least + 1e-12)
    assert np.all(found >= 0.75 * least)
    assert curve.epsilon(1e-5) == ledger_epsilon([GaussianDpEvent(1 / mu)], 1e-5)


def test_releases_add_up_and_noise_is_scaled():
    two = TradeOff([GaussianDpEvent(3.0), GaussianDpEvent(4.0)], "zero_out", scale=2.0)
    one = TradeOff([GaussianDpEvent(2 * 2.4)], "zero_out")
    assert two.advantage == pytest.approx(one.advantage)
    steps = repeat(PoissonSampledDpEvent(0.1, SlicedGaussianDpEvent(2.0, 3, 4)), 5)
    scaled = repeat(PoissonSampledDpEvent(0.1, SlicedGaussianDpEvent(6.0, 3, 4)), 5)
    assert scale_noise(steps, lambda _: 3.0) == scaled
    assert scale_noise(NonPrivateDpEvent(), lambda _: 3.0) == NonPrivateDpEvent()


def test_trade_off_of_samples():
    """Sampled once, total variation shrinks by the rate."""
    curve = TradeOff([PoissonSampledDpEvent(0.25, GaussianDpEvent(0.5))], "zero_out")
    assert curve.advantage == pytest.approx(0.25 * (2 * norm.cdf(1.0) - 1), rel=1e-3)
    assert 0 < curve.min_false_positive_rate(0.5) < 0.5 < math.inf
