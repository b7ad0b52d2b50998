"""The Fréchet distance against closed forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import sqrtm

from skdpgen.evaluation import frechet_distance


@pytest.fixture
def samples():
    rng = np.random.RandomState(0)
    return rng.randn(200, 4) @ rng.randn(4, 4), 1 + rng.randn(300, 4)


def test_distance_to_itself_is_zero_and_it_is_symmetric(samples):
    X, Y = samples
    assert_allclose(frechet_distance(X, X), 0, atol=1e-8)
    # Few rows of many columns.
    assert_allclose(frechet_distance(X.T, X.T), 0, atol=1e-6)
    assert_allclose(frechet_distance(X, Y), frechet_distance(Y, X))


def test_shifts_and_scales():
    X = np.random.RandomState(0).randn(500, 3)
    assert_allclose(frechet_distance(X, X + np.array([1, 2, 2])), 9)
    assert_allclose(frechet_distance(X, 3 * X), 4 * (np.cov(X.T).trace() + (X.mean(0) ** 2).sum()))


def test_against_matrix_square_roots(samples):
    X, Y = samples
    A, B = np.cov(X.T), np.cov(Y.T)
    expected = ((X.mean(0) - Y.mean(0)) ** 2).sum() + np.trace(A + B - 2 * sqrtm(A @ B).real)
    assert_allclose(frechet_distance(X, Y), expected)


@pytest.mark.parametrize(
    ("X", "Y", "match"),
    [
        ([[0.0], [1.0]], [[0.0, 1.0]] * 2, "equally many columns"),
        ([[0.0]], [[0.0]] * 2, "minimum of 2"),
        ([[np.nan]] * 2, [[0.0]] * 2, "NaN"),
    ],
)
def test_bad_input(X, Y, match):
    with pytest.raises(ValueError, match=match):
        frechet_distance(X, Y)


@pytest.mark.parametrize("scale", [1e-150, 1e-120, 1e150])
def test_squares_of_moments_stay_in_range(scale):
    rng = np.random.default_rng(0)
    X, Y = rng.random((9, 2)), rng.random((9, 2)) + 1
    assert_allclose(frechet_distance(X * scale, Y * scale) / scale**2, frechet_distance(X, Y))


@pytest.mark.parametrize("scale", [1e-170, 1e160])
def test_squares_that_no_float_holds_are_refused(scale):
    X = np.random.default_rng(0).random((9, 2))
    with pytest.raises(ValueError, match="X and Y leaves the range of a float"):
        frechet_distance(X * scale, X * scale * 2)
    assert frechet_distance(np.zeros((3, 2)), np.zeros((3, 2))) == 0
