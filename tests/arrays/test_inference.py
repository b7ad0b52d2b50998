"""Bounds and radii that nobody declared: found from noisy counts, and paid for."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer

from skdpgen import DPSWFlowSampler
from skdpgen.arrays.discovery import make_box
from skdpgen.arrays.layout import cast_numbers
from skdpgen.curator.curator import intercept_releases
from skdpgen.exceptions import FitQualityWarning
from skdpgen.mechanisms.base import NoisySum
from skdpgen.preprocessing import DPPCA
from skdpgen.testing.spies import spying

SCALES = np.array([1e-3, 1.0, 50.0, 1e6])


def make(n_samples=1000, n_features=4, multiplier=3.7, relation="zero_out", **given):
    return make_box(n_samples, n_features, multiplier, relation, **given)


def fit(X, y=None, **params):
    params = {"epsilon": 1.0, "n_steps": 2, "n_particles": 50, "random_state": 0, **params}
    return DPSWFlowSampler(**params).fit(X, y)


@pytest.fixture(scope="module")
def X():
    return np.random.RandomState(0).uniform(-1, 3, size=(6000, 4)) * SCALES


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_each_column_gets_its_range(X, epsilon):
    fitted = fit(X, epsilon=epsilon)
    lower, upper = fitted.bounds_
    assert (lower <= -0.9 * SCALES).all()
    assert (upper >= 2.8 * SCALES).all()
    # A knot or two further than the values are.
    assert (lower >= -4 * SCALES).all()
    assert (upper <= 8 * SCALES).all()
    assert fitted.privacy_.releases == (
        "value ranges",
        "value counts",
        "squared norms",
        "slice sketch",
    )
    assert fitted.epsilon_ <= epsilon


def test_many_columns_have_one_range_for_all():
    X = np.random.RandomState(0).uniform(2, 30, size=(3000, 51))
    lower, upper = fit(X).bounds_
    assert len(np.unique(lower)) == len(np.unique(upper)) == 1
    assert 0 <= lower[0] <= 3
    assert 29 <= upper[0] <= 64


@pytest.mark.parametrize(("dtype", "bounds"), [(bool, (0, 1)), (np.uint8, (0, 255))])
@pytest.mark.parametrize("as_frame", [False, True])
def test_some_dtypes_have_bounds_that_cost_nothing(dtype, bounds, as_frame):
    X = np.random.RandomState(0).randint(2, size=(100, 3)).astype(dtype)
    fitted = fit(pd.DataFrame(X) if as_frame else X)
    assert_array_equal(fitted.bounds_, np.repeat(bounds, 3).reshape(2, 3))
    assert "value ranges" not in fitted.privacy_.releases


def test_declared_bounds_are_not_paid_for(X):
    fitted = fit(X, bounds=(-1e6, 3e6), clip_norm=0.5)
    assert fitted.privacy_.releases == ("slice sketch",)
    assert fitted.clip_norm_ == 0.5
    assert fit(X, clip_norm=0.5).privacy_.releases == (
        "value ranges",
        "value counts",
        "slice sketch",
    )
    assert "value ranges" not in fit(X, bounds=(-1, 1)).privacy_.releases


@pytest.mark.parametrize("clip_norm", ["auto", 0.5, 2.0])
def test_records_are_counted_whole_whatever_the_radius(X, clip_norm):
    released = []

    def watch(curator, mechanism, release):
        released.append(release(mechanism))
        return released[-1]

    with intercept_releases(watch):
        fit(X, clip_norm=clip_norm, epsilon=math.inf)
    # Each adds 1/√m at m = 4 places.
    assert released[0].value.sum() == pytest.approx(2 * len(X), rel=1e-3)


@pytest.mark.catches(
    "arrays.discovery:OpenBoxFormat.encode",
    "knot_weights(numbers, self.knots) / math.sqrt(numbers.shape[1])",
    "knot_weights(numbers, self.knots)",
    param="True-4",
)
@pytest.mark.parametrize("n_features", [1, 4, 50, 51, 300])
@pytest.mark.parametrize("has_number", [False, True])
def test_a_record_adds_weights_of_norm_one_at_most(n_features, has_number):
    format = make(n_features=n_features, has_number=has_number)
    rng = np.random.RandomState(0)
    X = rng.standard_cauchy((200, n_features)) * 10.0 ** rng.randint(-9, 12, size=(200, 1))
    X[0], X[1] = 0, np.finfo(float).max
    y = rng.standard_cauchy(200)
    norms = np.linalg.norm(format.encode(X, y), axis=1)
    assert norms.max() <= 1 + 1e-12
    assert norms[0] >= 0.7
    X[0, 0] = np.nan
    assert np.isnan(format.encode(X, y)[0]).any()


def test_the_mean_square_norm_gives_the_radius():
    """Rows of known norm, without noise."""
    X = np.full((50, 9), 0.3)
    fitted = fit(X, bounds=(0, 1), epsilon=math.inf)
    # Sums are of whole numbers of a fine grid.
    assert fitted.clip_norm_ == pytest.approx((1 + 6 / 9) * 0.3, rel=1e-4)
    # A radius above 1 changes nothing.
    assert fit(X + 0.5, bounds=(0, 1), epsilon=math.inf).clip_norm_ == 1


@pytest.mark.parametrize("share", [0.3, 0.01, 0.001])
def test_the_radius_of_sparse_rows_is_found(share):
    """Squared norms are counted: noise does not grow beside them where they are small."""
    rng = np.random.RandomState(0)
    X = rng.uniform(size=(1000, 2000)) < share
    format = make(n_features=2000, bounds=(0, 1))
    std = 3.7 / math.sqrt(format.shares["squared norms"])
    counts = format.encode(X).sum(axis=0)
    for _ in range(20):
        noisy = NoisySum(counts + std * rng.normal(size=counts.shape), std=std)
        found = format._find_radius(noisy, len(X)).clip_norm
        assert 0.95 < found / math.sqrt(X.mean()) < 1.35


def test_a_radius_that_does_not_show_is_told_of():
    X = np.random.RandomState(0).uniform(size=(5, 100))
    with pytest.warns(
        FitQualityWarning, match=r"norms of rows do not exceed the noise.*clip_norm="
    ):
        assert fit(X, bounds=(0, 1)).clip_norm_ == 1


def test_a_record_adds_weights_of_its_squared_norm():
    format = make(n_features=4, bounds=(0, 1))
    assert list(format.shares) == ["squared norms"]
    X = np.random.RandomState(0).uniform(size=(500, 4)) ** 6
    weights = format.encode(np.vstack([X, np.zeros(4), np.ones(4)]))
    assert weights.min() >= 0
    assert_allclose(weights.sum(axis=1), 1)
    squares = np.r_[0, 2.0 ** np.arange(-20, 1)]
    assert_allclose(weights[:-2] @ squares, np.mean(X**2, axis=1))
    assert weights[-2, 0] == weights[-1, -1] == 1


def test_rows_are_in_units_of_the_radius():
    X = np.full((50, 9), 0.3)
    with spying() as spies:
        fit(X, bounds=(0, 1), epsilon=math.inf)
    norms = torch.cat([rows.norm(dim=1) for rows, _ in spies[-1].blocks])
    assert_allclose(norms.cpu(), 1 / (1 + 6 / 9), rtol=1e-4)


def test_rows_of_an_encoder_get_a_radius_in_its_units(X):
    encoder = FrozenEstimator(PCA(2).fit(X))
    fitted = fit(X, encoder=encoder)
    norms = np.linalg.norm(encoder.transform(X), axis=1)
    rms = np.sqrt(np.mean(norms**2))
    assert fitted.bounds_ is None
    assert fitted.encoder_ is encoder
    # With two columns, four times as much, or as much as there is.
    assert rms <= fitted.clip_norm_ <= 4.5 * rms


@pytest.mark.parametrize("n_rows", [3, 30])
def test_a_radius_is_positive_whatever_noise_says(X, n_rows):
    """Mere noise, and rows that are all zero."""
    encoder = FunctionTransformer()
    for seed in range(8):
        with pytest.warns(FitQualityWarning, match="after the encoder"):
            assert fit(X[:n_rows], encoder=encoder, random_state=seed).clip_norm_ > 0
    assert fit(np.zeros((n_rows, 2)), epsilon=math.inf).clip_norm_ == 1


def test_a_number_beside_the_rows_gets_bounds(X):
    y = np.random.RandomState(1).uniform(200, 900, size=len(X))
    with pytest.warns(FitQualityWarning, match="taken for numbers"):
        fitted = fit(X, y)
    lower, upper = fitted.y_bounds_
    assert lower <= 240
    assert 860 <= upper <= 2000
    made = fitted.sample(500)[1]
    assert lower <= made.min() <= made.max() <= upper


def test_shares_follow_from_public_numbers_alone(X):
    few, many = make(100), make(10**6)
    assert few.shares == {"value ranges": 0.15, "value counts": 0.05, "squared norms": 0.1}
    assert many.shares == {"value ranges": 0.02, "value counts": 0.02, "squared norms": 0.01}
    assert len(few.knots) < len(many.knots)
    events = [fit(rows, random_state=0).privacy_.events for rows in (X, 0 * X, X[::-1] ** 2)]
    assert events[0] == events[1] == events[2]


def test_ranges_that_are_not_found_are_named():
    X = pd.DataFrame(np.random.RandomState(0).normal(size=(30, 2)), columns=["age", "pay"])
    with pytest.warns(FitQualityWarning, match=r"2 of 2 ranges.*'age'.*'pay'.*Declare bounds"):
        fit(X, schema=None)


def test_bounds_do_not_follow_absent_records():
    """Records that all count as absent leave nothing but noise in the releases."""
    X = np.random.RandomState(0).uniform(5, 6, size=(400, 2))
    with (
        intercept_releases(
            lambda curator, mechanism, release: release(mechanism), np.ones(400, dtype=bool)
        ),
        pytest.warns(FitQualityWarning),
    ):
        hidden = [fit(rows, random_state=1).bounds_ for rows in (X, 1000 * X)]
    assert_array_equal(*hidden)


def test_components_by_themselves_find_their_units_too(X):
    pca = DPPCA(n_components=2, epsilon=5.0, random_state=0).fit(X)
    assert pca.privacy_.releases == (
        "value ranges",
        "value counts",
        "squared norms",
        "second moments",
    )
    found = pca.inverse_transform(pca.transform(X))
    assert found.max() > 1e6


def test_numbers_beyond_what_is_looked_at_are_told_of():
    X = np.random.RandomState(0).uniform(1e20, 2e20, size=(3000, 2))
    with pytest.warns(FitQualityWarning, match=r"end at ±3\.68935e\+19.*clipped"):
        fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitQualityWarning)
        fit(X / 1e7)


def fit_with_warnings(X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DPSWFlowSampler(10.0, 1e-5, n_steps=1, random_state=0).fit(X)
    return [str(w.message) for w in caught if w.category is FitQualityWarning]


def test_columns_that_are_closer_than_their_grid_are_named():
    rng = np.random.default_rng(0)
    close = 1e6 + 0.01 * rng.normal(size=3000)
    others = [rng.normal(size=3000), rng.random(3000) < 0.95, rng.random(3000) < 0.05]
    assert not fit_with_warnings(np.column_stack(others))
    (message,) = fit_with_warnings(np.column_stack([close, *others]))
    assert message.startswith("The values of column 0 are closer to each other")


def test_images_may_end_alike():
    """Ranges of images, all from black to white, were said not to be resolved."""
    images = np.random.default_rng(0).integers(0, 17, size=(1000, 6, 6)).astype(float)
    images[:, 0, :2] = 0, 16
    for pixels in (images, images / 20 + 0.1):
        assert not [m for m in fit_with_warnings(pixels) if "inference resolves" in m]
    assert any("a row are closer" in message for message in fit_with_warnings(1e6 + images / 1e3))


def test_codes_that_stretch_a_range_are_named():
    """Ages beside -9999 came back a hundred times as far from each other, without a word."""
    rng = np.random.default_rng(0)
    ages = np.where(rng.random(3000) < 0.05, -9999, rng.integers(18, 90, 3000))
    others = [rng.lognormal(0, 1.5, 3000), rng.exponential(size=3000), rng.random(3000) < 0.05]
    others += [rng.random(3000) < 0.95, rng.choice([0, 0, 0, 0, 0, 0, 0, 0, 0, -50, 7], 3000)]
    others += [np.where(rng.random(3000) < 0.9, 0, rng.uniform(-100, 100, 3000))]
    messages = fit_with_warnings(np.column_stack([ages, *others]))
    named = "Nearly all values of column 0 are in a small part"
    assert [message[: len(named)] for message in messages] == [named]


def test_numbers_beside_rows_that_are_closer_than_their_grid_are_named(X):
    y = 1e6 + 0.01 * np.random.default_rng(0).normal(size=len(X))
    with pytest.warns(FitQualityWarning, match=r"values of y are closer.* declare y_bounds="):
        fit(X, y, epsilon=5.0, bounds=(-1e7, 1e7))


def test_missing_numbers_do_not_hide_ranges():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((3000, 3)) < 0.1, np.nan, rng.normal(size=(3000, 3)))
    (message,) = fit_with_warnings(X)
    assert message.startswith("About 2")


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [(1e20, 1e21, [2**31 - 1, -5, 0]), (0.2, 0.8, [2**31 - 1, -5, 0]), (-3, 7, [7, -3, 0])],
)
def test_integers_stay_within_their_dtype_whatever_bounds_were_found(lower, upper, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cast_numbers(np.array([1e300, -5.2, 0.4]), np.dtype("int32"), lower, upper)
    assert found.tolist() == expected
