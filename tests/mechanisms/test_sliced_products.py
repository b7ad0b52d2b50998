"""Products released beside sliced rows: one event, of which each record's part is bounded."""

import math

import numpy as np
import pytest
import torch
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent

from skdpgen.privacy import (
    Curator,
    NoiseSource,
    PlanError,
    PullingFunction,
    SlicedGaussianDpEvent,
    SlicedRowsMechanism,
    ledger_epsilon,
    repeated_plan,
)

D, K, BESIDE = 6, 6, 0.5
WEIGHTS = torch.tensor(np.random.RandomState(0).normal(size=(5, D)))


def encode(rows):
    """Rows as they are, and products that are not linear in the cotangents, and large."""
    return rows, lambda cotangents: 50 * torch.tanh(rows * cotangents) @ WEIGHTS.T


def make_mechanism(cotangent, grad_clip=3.0, function=encode):
    return SlicedRowsMechanism(
        D,
        encode=PullingFunction(function),
        cotangent=cotangent,
        n_products=5,
        grad_clip=grad_clip,
        beside=BESIDE,
    )


def release(X, cotangent, multiplier=0.0, relation="zero_out", seed=0, null=None, **params):
    event = SlicedGaussianDpEvent(multiplier, D, K, orthogonal=True, beside=BESIDE)
    plan = repeated_plan("sliced rows", lambda _: event, 1, math.inf, 1e-5, relation=relation)
    with Curator(X, plan=plan, noise=NoiseSource(seed), null=null) as curator:
        return curator.release(make_mechanism(cotangent, **params))


def rows(n=8, seed=0):
    X = np.random.RandomState(seed).normal(size=(n, D))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def ones(released):
    return torch.ones(released.values.shape[2], D)


def test_products_are_clipped_one_by_one_and_added_up():
    X = rows()
    released = release(X, ones, grad_clip=3.0)
    products = encode(torch.tensor(X))[1](torch.ones(8, D)).numpy()
    norms = np.linalg.norm(products, axis=1, keepdims=True)
    assert (norms > 3).all()
    expected = (products * 3 / norms).sum(0)
    np.testing.assert_allclose(released.products, expected, atol=1e-3)
    # Much smaller than the radius: as they are.
    np.testing.assert_allclose(
        release(X, ones, grad_clip=1e4).products, products.sum(0), rtol=1e-2, atol=0.1
    )


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_both_parts_have_the_noise_of_the_event(relation):
    seen = []

    def cotangent(released):
        seen.append(released.values)
        return ones(released)

    X, multiplier, noise = rows(), 2.0, []
    exact = release(X, ones)
    for seed in range(200):
        noisy = release(X, cotangent, multiplier, relation, seed)
        noise.append(noisy.products - exact.products)
        # The cotangent is found at the released values, noise included.
        np.testing.assert_array_equal(seen[-1], noisy.values)
        assert noisy.std == multiplier
    expected = noisy.std * 3 / math.sqrt(BESIDE)
    assert np.std(noise) == pytest.approx(expected, rel=0.08)
    # Eight unit rows on a basis, and noise.
    energy = np.mean(np.square(seen))
    assert energy == pytest.approx(8 / seen[0].size + noisy.std**2, rel=0.05)


@pytest.mark.parametrize("grad_clip", [1e-3, 1.0, 1e3])
def test_a_record_changes_the_sum_of_products_by_no_more_than_the_radius(grad_clip):
    """With the same public cotangents; in the unit of the noise, by √beside at most."""
    X = rows()
    for function in (encode, lambda x: (x, lambda c: torch.full((len(x), 5), 1e20))):
        full, without = (
            release(X, ones, grad_clip=grad_clip, function=function, null=null).products
            for null in (None, np.arange(8) == 3)
        )
        assert 0 < np.linalg.norm(full - without) <= grad_clip * (1 + 1e-9)


def test_rows_that_are_not_finite_add_nothing():
    def broken(x):
        return x, lambda c: torch.full((len(x), 5), math.nan)

    assert (release(rows(), ones, function=broken).products == 0).all()
    assert not release(
        rows(), ones, function=lambda x: (x, lambda c: 1e38 * c[:, :5])
    ).products.any()


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


def test_unplanned_releases_are_refused():
    with pytest.raises(PlanError, match="planned as"):
        make_mechanism(ones).check(SlicedGaussianDpEvent(1.0, D, K, orthogonal=True))
    with pytest.raises(ValueError, match="one class"):
        SlicedRowsMechanism(D, 2, PullingFunction(encode), cotangent=ones, n_products=5, beside=0.5)
    with pytest.raises(ValueError, match="beside > 0"):
        SlicedRowsMechanism(D, encode=PullingFunction(encode), cotangent=ones)
    event = SlicedGaussianDpEvent(1.0, D, K, n_classes=2, beside=0.5)
    with pytest.raises(Exception, match="one class only"):
        ledger_epsilon([event], 1e-5)
