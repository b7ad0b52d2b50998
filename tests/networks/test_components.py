import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from skdpgen.networks.components import PrincipalComponents
from skdpgen.privacy.mechanisms.base import NoisySum


@pytest.fixture
def X():
    rng = np.random.RandomState(0)
    axes = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    return rng.normal(size=(500, 6)) * [1, 0.5, 0.25, 0.1, 0.01, 0] @ axes.T


def test_exact_moments_give_the_singular_vectors(X):
    components = PrincipalComponents.from_noisy_moments(NoisySum(X.T @ X, 0.0), len(X), 3)
    _, values, vectors = np.linalg.svd(X, full_matrices=False)
    overlap = np.abs(vectors[:3] @ components.axes.numpy())
    assert_allclose(overlap, np.eye(3), atol=1e-5)
    assert_allclose(components.scale * components.spread, values[:3] / np.sqrt(500), rtol=1e-5)


def test_spread_is_that_of_encoded_rows(X):
    components = PrincipalComponents.from_noisy_moments(NoisySum(X.T @ X, 0.0), len(X), 4)
    encoded = components.encode(torch.from_numpy(X))
    assert_allclose(encoded.square().mean(0).sqrt(), components.spread, rtol=1e-4)


def test_decode_inverts_encode_on_the_span(X):
    components = PrincipalComponents.from_noisy_moments(NoisySum(X.T @ X, 0.0), len(X), 5)
    decoded = components.decode(components.encode(torch.from_numpy(X)))
    assert_allclose(decoded, X, atol=1e-5)


@pytest.mark.parametrize(("whiten", "spread"), [(0.0, [4.0, 1.0]), (0.5, [2, 1]), (1.0, [1, 1])])
def test_whitening(whiten, spread):
    components = PrincipalComponents(torch.eye(2), torch.tensor([4.0, 1.0]), whiten)
    assert_allclose(components.spread, spread)
    row = torch.tensor([[4.0, 1.0]])
    assert_allclose(components.encode(row)[0], spread)
    assert_allclose(components.decode(components.encode(row)), row)


def test_pure_noise_gives_finite_components():
    rng = np.random.RandomState(0)
    noise = rng.normal(size=(6, 6))
    for std, moments in [(1.0, noise + noise.T), (1.0, -np.eye(6)), (0.0, np.zeros((6, 6)))]:
        components = PrincipalComponents.from_noisy_moments(NoisySum(moments, std), 10, 6)
        assert (components.spread > 0).all()
        assert torch.isfinite(components.encode(torch.ones(1, 6))).all()
        gram = components.axes.T @ components.axes
        assert_allclose(gram, np.eye(6), atol=1e-5)
