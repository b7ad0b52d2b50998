"""Normal distributions that have a slice sketch: closed forms, and what they are fitted to."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from skdpgen import DPSWFlowSampler
from skdpgen.learners import normals, particles
from skdpgen.learners.normals import draw_normals, expected_harmonics, fit_normals_to_sketch
from skdpgen.mechanisms.sums import Sketch
from skdpgen.testing.common import make_plain
from skdpgen.transport import SliceBasis, random_directions

MEAN = torch.tensor([0.3, -0.1, 0.2])
FACTOR = torch.tensor([[0.4, 0.0, 0.0], [0.2, 0.1, 0.0], [-0.1, 0.1, 0.3]])


def make_basis(n_features=3, k=60, n_harmonics=4):
    generator = torch.Generator().manual_seed(0)
    return SliceBasis(
        random_directions(n_features, k, generator=generator).float(), 1.5, n_harmonics
    )


def sketch_of(basis, normals, count=1000.0, std=0.0):
    """Return the sketch that so many rows of each distribution have on average, with noise."""
    sums = np.stack([count * expected_harmonics(basis, *n).numpy().ravel() for n in normals])
    sums += std * np.random.RandomState(0).standard_normal(sums.shape)
    return Sketch(sums, np.full(len(sums), count), std, 0.0)


def fit(basis, sketch, spread, n_steps=400):
    generator = torch.Generator().manual_seed(1)
    return fit_normals_to_sketch(
        basis, sketch, spread, n_steps=n_steps, learning_rate=0.05, generator=generator
    )


def test_mean_values_are_those_of_many_draws():
    basis = make_basis()
    spread = torch.tensor([0.1, 0.2, 0.6])
    generator = torch.Generator().manual_seed(0)
    rows = draw_normals([(MEAN, FACTOR)], 100_000, spread, generator)[0]
    assert_allclose(rows.mean(0), MEAN, atol=0.01)
    covariance = FACTOR @ FACTOR.T + 0.25 * torch.diag(spread**2)
    assert_allclose(torch.cov(rows.T), covariance, atol=0.01)
    rows = draw_normals([(MEAN, FACTOR)], 100_000, torch.zeros(3), generator)[0]
    angles = basis.angles(rows)
    drawn = basis.harmonics(angles).mean(2) * basis.weights.double()[:, None, None]
    assert_allclose(expected_harmonics(basis, MEAN, FACTOR), drawn, atol=0.01)


def test_a_distribution_is_found_from_its_sketch():
    """Each class has its own, from the same starts."""
    basis, other = make_basis(), (-MEAN, 0.5 * FACTOR)
    found = fit(basis, sketch_of(basis, [(MEAN, FACTOR), other]), torch.full((3,), 0.5))
    for (mean, factor), (true_mean, true_factor) in zip(
        found, [(MEAN, FACTOR), other], strict=True
    ):
        assert_allclose(mean, true_mean, atol=0.01)
        assert_allclose(factor @ factor.T, true_factor @ true_factor.T, atol=0.01)


def test_a_fit_ends_at_the_noise(monkeypatch):
    basis, steps = make_basis(), []
    monkeypatch.setattr(
        normals,
        "expected_harmonics",
        lambda *args: steps.append(1) or expected_harmonics(*args),
    )
    for std in (0.0, 300.0):
        steps.clear()
        fit(basis, sketch_of(basis, [(MEAN, FACTOR)], std=std), torch.full((3,), 0.4))
        assert len(steps) == 400 if std == 0 else len(steps) < 200


@pytest.mark.parametrize("d", [5, 100])
def test_the_start_has_the_spread(d):
    spread = torch.linspace(1.0, 2.0, d)
    basis = make_basis(d, 100, 1)
    target = sketch_of(basis, [(torch.zeros(d), torch.diag(spread))])
    ((mean, factor),) = fit(basis, target, spread, n_steps=1)
    assert factor.shape == (d, min(d, 64))
    # After a step that is a thirtieth of the learning rate.
    assert_allclose(factor.square().sum(), spread.square().sum(), rtol=0.1)
    if d <= 64:
        assert_allclose(factor @ factor.T, torch.diag(spread**2), atol=0.05)
    assert mean.abs().max() < 0.01


def test_particles_start_there(monkeypatch):
    rng = np.random.RandomState(0)
    y = np.arange(4000) % 2
    X = rng.multivariate_normal([0, 0], [[0.02, 0.015], [0.015, 0.02]], 4000) + 0.3 * y[:, None]
    started = []

    def stay(basis, sketch, starts, *args, **params):
        started.append(starts.cpu())
        return starts, [0.0]

    monkeypatch.setattr(particles, "fit_particles_to_sketch", stay)
    sampler = make_plain(
        DPSWFlowSampler(math.inf, classes=[0, 1], random_state=0, n_particles=4000)
    )
    sampler.fit(X, y)
    (starts,) = started
    assert starts.shape == (2, 2000, 2)
    for label in (0, 1):
        rows = X[y == label]
        assert_allclose(starts[label].mean(0), rows.mean(0), atol=0.03)
        # Half of the spread, 1/√2, besides.
        assert_allclose(np.cov(starts[label].T), np.cov(rows.T) + np.eye(2) / 8, atol=0.015)
