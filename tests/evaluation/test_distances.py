"""The Wasserstein distance against others'."""

import numpy as np
import ot
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skdpgen.evaluation import wasserstein_distance
from skdpgen.transport import sliced_wasserstein_distance


@pytest.fixture
def samples():
    rng = np.random.RandomState(0)
    return rng.randn(200, 4) @ rng.randn(4, 4), 1 + rng.randn(300, 4)


@pytest.mark.parametrize("p", [1, 2, 3.5])
def test_exact_distance_is_that_of_others(samples, p):
    X, Y = samples
    expected = ot.emd2([], [], ot.dist(X, Y, "euclidean") ** p) ** (1 / p)
    assert_allclose(wasserstein_distance(X, Y, p=p).distance, expected)
    line = [Z[:, :1] for Z in samples]
    if p == 1:
        expected = stats.wasserstein_distance(*(Z[:, 0] for Z in line))
        assert_allclose(wasserstein_distance(*line, p=1).distance, expected)
    # One direction is all directions in one dimension.
    sliced = wasserstein_distance(*line, p=p, n_projections=1, random_state=0)
    assert_allclose(sliced, wasserstein_distance(*line, p=p, random_state=0))


def test_halves_differ_by_sampling_alone(samples):
    X = np.random.default_rng(0).normal(size=(800, 3))
    real, same = X[:400], X[400:]
    for options in ({}, {"n_projections": 20}):
        found = wasserstein_distance(real, same, random_state=0, **options)
        assert found.distance < found.between_halves
        assert found == wasserstein_distance(real, same, random_state=0, **options)
        moved = wasserstein_distance(real, same + 2, random_state=0, **options)
        assert moved.between_halves == found.between_halves < 0.5 * moved.distance
    expected = sliced_wasserstein_distance(real, same, n_projections=5000, random_state=1)
    sliced = wasserstein_distance(real, same, n_projections=5000, random_state=2).distance
    assert_allclose(sliced, expected, rtol=0.05)


def test_distances_of_tables_and_images():
    table = pd.DataFrame({"size": [0.0, 2.0, 4.0, 6.0], "kind": list("abab"), "y": [1, np.nan] * 2})
    other = table.assign(kind=list("abcb"))[["y", "kind", "size"]]
    # Categories are 1 apart; one of four changes.
    assert_allclose(wasserstein_distance(table, other, p=1).distance, 0.25)
    # A standard deviation.
    moved = table.assign(size=table["size"] + np.std([0, 2, 4, 6]))
    assert_allclose(wasserstein_distance(table, moved).distance, 1)
    images = np.random.default_rng(0).random((6, 4, 4, 3)).astype(np.float32)
    flat = images.reshape(6, -1)
    assert wasserstein_distance(images, images[:4], random_state=0) == wasserstein_distance(
        flat, flat[:4], random_state=0
    )
    grey = images[:, None, :, :, 0]
    assert wasserstein_distance(grey, grey[:, 0]).distance == 0


@pytest.mark.parametrize(
    ("real", "synthetic", "options", "match"),
    [
        ([[0.0], [1.0]], [[0.0, 1.0]], {}, "equally many columns"),
        ([[0.0]], [[0.0]], {}, "at least 2 rows"),
        # Colours in another order were compared silently, and scikit-learn's message quotes rows.
        (np.ones((4, 3, 8, 8)), np.ones((4, 8, 8, 3)), {}, "images of one shape"),
        ([0.25, 0.5], [0.25, 0.5], {}, r"got \[\(2,\), \(2,\)\]\.$"),
        ([[0.0], [np.nan]], [[0.0]], {}, "real contains NaN"),
        (pd.DataFrame({"a": [1, 2]}), [[1], [2]], {}, "same columns"),
        ([[0.0], [1e200]], [[1e200], [-1e200]], {"p": 0.5}, "p must be at least 1"),
        ([[-1e308], [1e308]], [[0.0]], {}, "range of a float"),
        ([[0.0], [1.0]], [[0.0]], {"n_projections": 0}, "n_projections"),
    ],
)
def test_distances_refuse(real, synthetic, options, match):
    with pytest.raises(ValueError, match=match):
        wasserstein_distance(real, synthetic, **options)
