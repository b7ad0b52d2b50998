"""The price of a vector that is released beside sliced rows, as one event."""

import math

import pytest
from dp_accounting import (
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    UnsupportedEventError,
)

from skdpgen.privacy import SlicedGaussianDpEvent, ledger_epsilon

D = K = 6


@pytest.mark.catches(
    "accounting.moments:_log_moment",
    'base.beside + (base.rounding if relation == "replace_one" else 0.0)',
    'base.rounding if relation == "replace_one" else 0.0',
)
@pytest.mark.parametrize("accountant", ["pld", "rdp", "autodp"])
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_both_together_cost_one_gaussian_release(accountant, relation, rate):
    """With as many orthonormal directions as columns H is 1, and μ² = (1 + beside) / s²."""
    unit = {"zero_out": 1.0, "replace_one": 0.5}[relation]

    def price(base):
        event = base if rate == 1 else PoissonSampledDpEvent(rate, base)
        events = [SelfComposedDpEvent(event, 20)]
        return ledger_epsilon(events, 1e-5, accountant=accountant, relation=relation)

    both = price(SlicedGaussianDpEvent(4.0 / unit, D, D, orthogonal=True, beside=3.0))
    # autodp prices what is known to be Gaussian more tightly than moments.
    # And samples of two records, of which moments of slices are bounded without an integral.
    is_bounded = accountant == "autodp" or (accountant, relation, rate) == (
        "rdp",
        "replace_one",
        0.1,
    )
    gaussian = price(GaussianDpEvent(2.0 / unit))
    assert gaussian * (1 - 1e-3) <= both <= gaussian * (1.15 if is_bounded else 1 + 1e-3)
    assert both > 1.3 * price(SlicedGaussianDpEvent(4.0 / unit, D, D, orthogonal=True))


@pytest.mark.parametrize("accountant", ["pld", "rdp"])
def test_a_random_h_and_what_is_beside_add_up(accountant):
    """Between the largest H and its mean; and no less than without products."""

    def price(**params):
        return ledger_epsilon(
            [SlicedGaussianDpEvent(2.0, 40, 10, orthogonal=True, **params)],
            1e-5,
            accountant=accountant,
        )

    def gaussian(h):
        return ledger_epsilon([GaussianDpEvent(2.0 / math.sqrt(h))], 1e-5, accountant=accountant)

    assert gaussian(0.25 + 0.5) < price(beside=0.5) < gaussian(1.0 + 0.5)
    assert price() < price(beside=0.1) < price(beside=0.2)


def test_what_is_beside_rows_of_several_classes_has_no_price():
    event = SlicedGaussianDpEvent(1.0, D, K, n_classes=2, beside=0.5)
    with pytest.raises(UnsupportedEventError, match="one class only"):
        ledger_epsilon([event], 1e-5)
