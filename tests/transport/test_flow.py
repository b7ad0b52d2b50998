"""The drift of particles, against closed forms."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from skdpgen.transport import random_directions, sliced_drift


def project(X, directions):
    return directions.T @ X.T


def test_along_one_axis_particles_take_the_place_of_the_target():
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(50, 1, generator=generator), 3 + 2 * torch.randn(50, 1, generator=generator)
    axis = torch.ones(1, 1)
    moved = x + sliced_drift(x, axis, project(x, axis), project(y, axis))
    assert_allclose(moved.sort(0)[0], y.sort(0)[0], atol=1e-5)
    # Monotone: the map keeps the order.
    assert_allclose(np.argsort(moved[:, 0]), np.argsort(x[:, 0]))


def test_no_drift_where_both_are_the_same():
    x = torch.randn(30, 4, dtype=torch.float64)
    directions = random_directions(4, 6, generator=torch.Generator().manual_seed(0)).double()
    drift = sliced_drift(x, directions, project(x, directions), project(x, directions))
    assert_allclose(drift, 0, atol=1e-12)


def test_drift_between_gaussians_is_that_of_the_closed_form():
    """N(0, I) to N(m, s²I): along θ the map is z ↦ m·θ + s·z; averaged over θ, (m + (s-1)x) / d."""
    d, n, s = 3, 40_000, 2.0
    generator = torch.Generator().manual_seed(0)
    mean = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    source = torch.randn(n, d, generator=generator, dtype=torch.float64)
    target = mean + s * torch.randn(n, d, generator=generator, dtype=torch.float64)
    directions = random_directions(d, 60, generator=generator, orthogonal=True).double()
    points = source[:200]
    drift = sliced_drift(
        points, directions, project(source, directions), project(target, directions)
    )
    assert_allclose(drift, (mean + (s - 1) * points) / d, atol=0.12)


def test_sizes_may_differ_and_batches_are_separate():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 20, 3, generator=generator)
    directions = random_directions(3, 5, generator=generator)
    source, target = (
        torch.randn(2, 5, 33, generator=generator),
        torch.randn(2, 5, 7, generator=generator),
    )
    together = sliced_drift(x, directions, source, target)
    assert together.shape == x.shape
    for i in range(2):
        assert_allclose(
            together[i], sliced_drift(x[i], directions, source[i], target[i]), atol=1e-6
        )


def test_beyond_all_samples_particles_go_to_the_ends():
    axis = torch.ones(1, 1)
    x = torch.tensor([[-9.0], [9.0]])
    moved = x + sliced_drift(x, axis, torch.tensor([[0.0, 1.0]]), torch.tensor([[4.0, 5.0, 6.0]]))
    assert_allclose(moved[:, 0], [4, 6])


@pytest.mark.parametrize("n", [1, 2])
def test_few_samples_and_ties(n):
    axis, x = torch.ones(1, 1), torch.zeros(3, 1)
    drift = sliced_drift(x, axis, torch.zeros(1, n), torch.full((1, n), 2.0))
    assert_allclose(drift, 2.0)
