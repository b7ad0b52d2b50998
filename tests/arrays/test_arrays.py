"""The maps between arrays and rows in a ball."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from skdpgen import DPSWFlowSampler, PrivacyBudget
from skdpgen.arrays.ball import BallFormat
from skdpgen.arrays.box import BoxFormat
from skdpgen.preprocessing import DPPCA, LocalPrivatizer


@pytest.fixture
def X():
    return np.random.RandomState(0).uniform(-2, 3, size=(50, 4))


@pytest.fixture
def y():
    return np.random.RandomState(1).uniform(10, 20, size=50)


def test_rows_as_they_are(X):
    format = BoxFormat(4)
    assert_array_equal(format.encode(X), X)
    decoded, number = format.decode_rows(X)
    assert_array_equal(decoded, X)
    assert number is None
    assert format.n_columns == 4
    assert format.feature_scale is None


@pytest.mark.parametrize("bounds", [(-2, 3), ([-2, -3, -4, -5], 4.0), ((-9,) * 4, (9,) * 4)])
def test_bounds_map_to_the_unit_ball_and_back(X, bounds):
    format = BoxFormat(4, bounds=bounds)
    rows = format.encode(X)
    assert rows.min() >= 0
    assert np.linalg.norm(rows, axis=1).max() <= 1
    assert_allclose(format.decode_rows(rows)[0], X)
    assert format.feature_scale == format.unit


def test_bounds_clip_both_ways(X):
    format = BoxFormat(4, bounds=(-1, 1))
    rows = format.encode(X * 100)
    # Only a row at the upper bound everywhere has norm 1.
    assert_allclose(np.linalg.norm(format.encode(np.full((1, 4), 1e9))), 1)
    assert_allclose(format.decode_rows(rows)[0], np.clip(X * 100, -1, 1))
    outside = format.decode_rows(np.array([[-5.0, 5.0, 0.25, 0.0]]))[0]
    assert outside.min() == -1
    assert outside.max() == 1


def test_a_number_rides_along(X, y):
    format = BoxFormat(4, bounds=(-2, 3), has_number=True, y_bounds=(10, 20))
    rows = format.encode(X, y)
    assert rows.shape == (50, format.n_columns) == (50, 5)
    assert np.linalg.norm(rows, axis=1).max() <= 1
    decoded, numbers = format.decode_rows(rows)
    assert_allclose(decoded, X)
    assert_allclose(numbers, y)
    assert format.feature_scale is None
    # beyond its bounds
    assert format.decode_rows(format.encode(X, y * 100))[1].max() == 20


@pytest.mark.parametrize("bounds", [{}, {"bounds": (-2, 3), "y_bounds": (10, 20)}])
def test_rows_are_decoded_from_the_unit_ball(X, y, bounds):
    format = BoxFormat(4, **bounds, has_number=True, clip_norm=0.4)
    decoded, numbers = format.decode_rows(format.encode(X, y) / 0.4)
    assert_allclose(decoded, X)
    assert_allclose(numbers, y)


@pytest.mark.parametrize("bounds", [{}, {"bounds": (-2, 3), "y_bounds": (10, 20)}])
@pytest.mark.parametrize("p", [1, 2])
def test_local_rows_are_decoded_from_the_unit_ball(X, y, p, bounds):
    format = BallFormat(4, p=p, radius=200.0, **bounds, has_number=True)
    decoded, numbers = format.decode_rows(format.encode(X, y))
    assert_allclose(decoded, X)
    assert_allclose(numbers, y)


def test_a_number_beside_bounds_needs_its_own():
    with pytest.raises(ValueError, match="give y_bounds"):
        BallFormat(4, bounds=(0, 1), has_number=True)


def test_encoder_sees_clipped_features(X, y):
    encoder = PCA(2).fit(np.random.RandomState(2).uniform(-1, 1, size=(100, 4)))
    format = BoxFormat(4, bounds=(-1, 1), encoder=encoder, has_number=True, y_bounds=(0, 30))
    rows = format.encode(X, y)
    assert format.n_columns == rows.shape[1] == 3
    assert_allclose(rows[:, :2], encoder.transform(np.clip(X, -1, 1)))
    decoded, _ = format.decode_rows(rows * 10)
    assert decoded.shape == X.shape
    assert np.abs(decoded).max() <= 1
    assert format.feature_scale is None


def test_encoding_is_row_by_row(X):
    format = BoxFormat(4, bounds=(-2, 3))
    assert_array_equal(format.encode(X)[10:20], format.encode(X[10:20]))


@pytest.mark.parametrize(
    "bounds",
    [5, (0, 1, 2), ("a", "b"), (None, None), ([0, 0], [1, 1]), {"lower": 0}],
)
def test_bounds_that_are_no_pair(bounds):
    with pytest.raises(ValueError, match="bounds must be"):
        BoxFormat(4, bounds=bounds)


@pytest.mark.parametrize(
    "bounds", [(1, 1), (2, 1), (0, np.inf), (np.nan, 1), ([0, 0, 0, 2], [1, 1, 1, 1])]
)
def test_bounds_must_be_finite_and_in_order(bounds):
    with pytest.raises(ValueError, match="bounds must be finite, with lower < upper"):
        BoxFormat(4, bounds=bounds)
    if np.ndim(bounds[0]) == 0:
        with pytest.raises(ValueError, match="y_bounds must be finite, with lower < upper"):
            BoxFormat(4, has_number=True, y_bounds=bounds)


def test_an_encoder_that_works_in_place_leaves_the_rows_alone():
    X = np.array([[1.0, 2.0], [3.0, 5.0]])
    scaler = StandardScaler(copy=False).fit(X.copy())
    kept = X.copy()
    BoxFormat(2, encoder=scaler).encode(X)
    assert_array_equal(X, kept)


def give(X, y=None, **params):
    """Return a sample of a fit in which every value is learnt."""
    sampler = DPSWFlowSampler(10.0, n_steps=5, **{"random_state": 0} | params)
    return sampler.fit(X, y).sample(500)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_samples_stay_within_the_range_of_the_dtype(dtype):
    largest = float(np.finfo(dtype).max)
    X = (np.random.default_rng(0).uniform(0.8, 1, (1000, 2)) * largest).astype(dtype)
    found, y = give(X, X[:, 0], bounds=(0, 2 * largest), y_bounds=(0, 2 * largest))
    assert found.dtype == y.dtype == dtype
    assert np.isfinite(found).all()
    assert np.isfinite(y).all()
    assert found.max() == y.max() == np.finfo(dtype).max


def test_samples_of_a_coarse_dtype_stay_within_bounds():
    bounds = np.array([0.301, -5.01]), np.array([0.701, 5.01])
    X = torch.rand(40, 2).to(torch.bfloat16)
    fitted = DPSWFlowSampler(5.0, bounds=bounds, n_steps=2, n_particles=50).fit(X)
    made = fitted.sample(500).double().numpy()
    assert ((bounds[0] <= made) & (made <= bounds[1])).all()
    with pytest.raises(ValueError, match="bounds have no value of dtype"):
        DPSWFlowSampler(bounds=(0.302, 0.3021)).fit(X)


@pytest.mark.parametrize("container", [np.asarray, pd.Series])
@pytest.mark.parametrize(("dtype", "label"), [("int8", 300), ("uint8", -1), ("bool", 2)])
def test_classes_that_the_dtype_of_labels_lacks_widen_it_for_every_draw(container, dtype, label):
    X, y = np.random.default_rng(0).random((200, 2)), container(np.arange(200) % 2).astype(dtype)
    sampler = DPSWFlowSampler(
        10.0, bounds=(0, 1), classes=[0, 1, label], n_steps=5, random_state=0
    ).fit(X, y)
    assert set(sampler.sample(y=[label, 1])[1]) == {label, 1}
    assert sampler.sample(y=[0])[1].dtype == sampler.sample(y=[label])[1].dtype


def test_bounds_beyond_the_dtype_are_refused_for_nothing():
    X = np.random.default_rng(0).integers(0, 9, (50, 2)).astype(np.int8)
    with PrivacyBudget(10.0, 1e-4) as budget:
        with pytest.raises(ValueError, match="bounds have no value of dtype int8"):
            give(X, bounds=(200, 300), random_state=None)
        with pytest.raises(ValueError, match="bounds have no value of dtype int8"):
            give(pd.DataFrame(X), bounds=([0, 0.2], [9, 0.8]))
        with pytest.raises(ValueError, match="y_bounds have no value of dtype float16"):
            give(X, X[:, 0].astype(np.float16), bounds=(0, 9), y_bounds=(1e5, 1e6))
    assert budget.spent == 0


def test_transformers_give_no_infinities_in_the_dtype_of_rows():
    X = np.random.default_rng(0).uniform(1e38, 3e38, (50, 2)).astype(np.float32)
    pca = DPPCA(10.0, bounds=(0, 3e39), n_components=2, random_state=0).fit(X)
    assert np.isfinite(pca.inverse_transform(np.full((3, 2), 5, dtype=np.float32))).all()
    noised = LocalPrivatizer(0.1, bounds=(0, 3e39)).fit(X)
    assert np.isfinite(noised.inverse_transform(noised.transform(X) * 100)).all()
