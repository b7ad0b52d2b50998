import inspect
import math
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler, PrivacyBudget
from skdpgen.accounting.accountants import ACCOUNTANTS, RELATIONS
from skdpgen.curator.curator import intercept_releases
from skdpgen.preprocessing import DPPCA
from skdpgen.privacy import (
    NoiseSource,
    PrivacyLeakWarning,
    SpentError,
    compose,
    preview,
    verify,
)
from skdpgen.releases import SliceSketch, from_release

# Rows are taken as they are, in the unit ball.
of_ball = partial(DPPCA, clip_norm=1.0)


@parametrize_with_checks([DPPCA()])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def X():
    rng = np.random.RandomState(0)
    axes = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    return 0.2 * rng.normal(size=(500, 6)) * [1, 0.7, 0.5, 0.3, 0.2, 0.1] @ axes.T


def release(estimator, X, null=None):
    """Return the released moments and the fitted estimator."""
    released = []

    def keep(curator, mechanism, release):
        released.append(release(mechanism))
        return released[0]

    with intercept_releases(keep, null):
        fitted = estimator.fit(X)
    assert len(released) == 1
    return released[0].value, fitted


def assert_same_axes(first, second, atol=1e-4):
    assert_allclose(np.abs(first @ second.T), np.eye(len(first)), atol=atol)


def test_without_noise_these_are_eigenvectors_of_second_moments(X):
    rows = X + 0.1  # a mean, which is not taken off
    fitted = of_ball(n_components=4, epsilon=math.inf, clip_norm=10.0).fit(rows)
    values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    assert_same_axes(fitted.components_, vectors.T[::-1][:4])
    assert_allclose(fitted.explained_variance_, values[::-1][:4], rtol=1e-3)
    assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(4), atol=1e-12)
    encoded = fitted.transform(rows)
    assert_allclose(np.mean(encoded**2, axis=0), fitted.explained_variance_, rtol=1e-3)
    assert fitted.n_components_ == 4


def test_rows_are_clipped_to_the_radius(X):
    X[0] *= 1e6
    clipped = X * np.minimum(1, 0.3 / np.linalg.norm(X, axis=1, keepdims=True))
    fitted = of_ball(epsilon=math.inf, clip_norm=0.3).fit(X)
    values, vectors = np.linalg.eigh(clipped.T @ clipped / len(X))
    assert_same_axes(fitted.components_, vectors.T[::-1], atol=1e-3)
    assert_allclose(fitted.explained_variance_, values[::-1], rtol=1e-3)
    # transform is linear
    assert_allclose(fitted.transform(X[:1]) / 1e6, fitted.transform(X[:1] / 1e6))


def test_bounds(X):
    lower, upper = np.full(6, -1.0), np.arange(1.0, 7.0)
    fitted = of_ball(epsilon=math.inf, bounds=(lower, upper)).fit(X)
    rows = (np.clip(X, lower, upper) - lower) / (upper - lower) / math.sqrt(6)
    _, vectors = np.linalg.eigh(rows.T @ rows / len(X))
    assert_same_axes(fitted.components_, vectors.T[::-1], atol=1e-3)
    assert_allclose(fitted.transform(X), rows @ fitted.components_.T)
    assert_allclose(fitted.inverse_transform(fitted.transform(X)), np.clip(X, lower, upper))
    far = fitted.inverse_transform(np.random.RandomState(0).normal(size=(50, 6)))
    assert ((lower <= far) & (far <= upper)).all()
    assert fitted.explained_variance_[0] > 0.5 * fitted.explained_variance_.sum()


@pytest.mark.parametrize("bounds", [None, (-1, 1)])
def test_inverse_is_the_projection(X, bounds):
    fitted = of_ball(n_components=3, bounds=bounds, random_state=0).fit(X)
    once = fitted.inverse_transform(fitted.transform(X))
    assert_allclose(fitted.inverse_transform(fitted.transform(once)), once, atol=1e-12)
    if bounds is None:
        residual = X - once
        assert_allclose(residual @ fitted.components_.T, 0, atol=1e-12)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("bounds", [None, (-1, 1)])
def test_neighbours(relation, bounds, monkeypatch):
    """Without its noise, the release moves by no more than its sensitivity, and reaches it."""
    monkeypatch.setattr(
        NoiseSource, "rounded_gaussian", lambda self, scale: np.zeros(np.shape(scale), np.int64)
    )
    others = np.tile([0.6, 0.8, 0.0], (12, 1))
    records = [[0, 0, 0], [1, 0, 0], [0, -1e6, 0], [1e9, 1e9, 1e9], [-1e9, 1e-9, 0], [0.1, 0.2, 0]]
    make = partial(DPPCA, relation=relation, bounds=bounds, clip_norm=0.8)
    moved = []
    for record in records:
        rows = others.copy()
        rows[0] = record
        moved.append(release(make(), rows)[0])
    if relation == "zero_out":
        absent = release(make(), others, null=np.arange(12) == 0)[0]
        pairs = [(present, absent) for present in moved]
    else:
        pairs = [(a, b) for i, a in enumerate(moved) for b in moved[:i]]
    largest = max(np.linalg.norm(a - b) for a, b in pairs)
    stated = {"zero_out": 1, "replace_one": math.sqrt(2)}[relation]
    assert 0.5 * stated < largest <= stated


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("relation", RELATIONS)
def test_certificate(X, relation, accountant):
    pca = of_ball(epsilon=0.5, delta=1e-6, relation=relation, accountant=accountant, random_state=0)
    fitted = clone(pca).fit(X)
    assert 0.49 < fitted.epsilon_ <= 0.5
    certificate = fitted.privacy_
    with pytest.warns(PrivacyLeakWarning, match="fixed seed"):
        assert certificate.epsilon == fitted.epsilon_ == verify(certificate.to_json())
    assert certificate.releases == ("second moments",)
    assert (certificate.relation, certificate.accountant) == (relation, accountant)
    assert certificate.sigma == fitted.sigma_
    assert certificate.reproducible
    assert "Assumes" in str(certificate)
    assert preview(pca, *X.shape) == certificate
    assert not hasattr(pca, "privacy_")


def test_composition_with_a_generator(X):
    pca = of_ball(n_components=3, epsilon=1.0).fit(X)
    generator = DPSlicedWassersteinGenerator(
        encoder=FrozenEstimator(pca), clip_norm=1.0, release=SliceSketch(9), n_steps=2
    ).fit(X)
    assert generator.privacy_.releases == ("slice sketch",)
    assert "paid for in a certificate of its own" in str(generator.privacy_)
    both = compose(pca.privacy_, generator.privacy_)
    assert both.releases == ("second moments", "slice sketch")
    assert 1.3 < both.epsilon < 2.0
    made = generator.sample(20)
    assert made.shape == (20, 6)
    # Samples lie in the span of the components.
    assert_allclose(pca.inverse_transform(pca.transform(made)), made, atol=1e-6)


def test_no_row_is_kept(X):
    X[7, :3] = [0.3141592653589793, -0.2718281828459045, 0.1772156649015329]
    for rows in (X, pd.DataFrame(X, columns=list("abcdef"))):
        fitted = of_ball(bounds=(-1, 1)).fit(rows)
        for name, value in vars(fitted).items():
            assert np.shape(value)[:1] != (len(X),), f"{name} has one entry for each row."
        stored = pickle.dumps(fitted)
        encoded = (X + 1) / 2 / math.sqrt(6)
        for row in np.vstack([X, encoded]):
            assert row.tobytes() not in stored
        for cell in X[7, :3]:
            assert cell.tobytes() not in stored
        fitted.transform(rows)
        assert len(pickle.dumps(fitted)) == len(stored)


def test_fitted_attributes_are_those_that_are_documented(X):
    fitted = of_ball().fit(pd.DataFrame(X, columns=list("abcdef")))
    attributes = inspect.getdoc(DPPCA).split("Attributes\n")[1].split("See Also")[0]
    learnt = {name for name in (*vars(fitted), "epsilon_", "sigma_") if name.endswith("_")}
    assert learnt == {name for name in learnt if f"\n{name} : " in attributes}
    assert learnt == {
        line.split(" :")[0].strip() for line in attributes.splitlines() if "_ :" in line
    } - {"record_shape_in_"}


@pytest.mark.parametrize(("n_features", "kept"), [(1, 1), (20, 20), (70, 64)])
def test_default_number_of_components(n_features, kept):
    X = np.random.RandomState(0).normal(size=(10, n_features))
    fitted = of_ball().fit(X)
    assert fitted.n_components_ == kept
    assert fitted.transform(X).shape == (10, kept)
    assert fitted.explained_variance_.shape == (kept,)
    assert fitted.components_.shape == (kept, n_features)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": 0}, "n_components must be a positive whole number or None"),
        ({"n_components": 1.5}, "n_components must be a positive whole number or None"),
        ({"n_components": 7}, "n_components must be at most the number of features, 6; got 7"),
        ({"bounds": (1, 0)}, "lower < upper"),
        ({"random_state": "seed"}, "random_state must be"),
    ],
)
def test_bad_parameters(X, params, message):
    budget = PrivacyBudget(100.0, 1e-5)
    pca = of_ball(**params)
    with budget, pytest.raises(ValueError, match=message):
        pca.fit(X)
    assert budget.spent == 0
    assert vars(pca) == vars(of_ball(**params))  # not even n_features_in_
    if "random_state" not in params:
        with pytest.raises(ValueError, match=message):
            preview(of_ball(**params), *X.shape)


def test_failing_fits_tell_nothing_and_change_nothing(X):
    fitted = of_ball(n_components=2, random_state=0).fit(X)
    before = vars(fitted).copy()
    nan, text = X.copy(), X.astype(object)
    nan[3, 1], text[3, 1] = np.nan, "Smith"
    for rows in (nan, text, X[:, :0], X[:0], X[0]):
        fitted.set_params(strict=rows is nan)
        with pytest.raises(ValueError, match=r"X |array") as failure:
            fitted.fit(rows)
        assert "Smith" not in str(failure.value)
        assert vars(fitted).keys() == before.keys()
        fitted.set_params(strict=before["strict"])
        assert all(vars(fitted)[name] is value for name, value in before.items())
        failing = of_ball(strict=rows is nan)
        with pytest.raises(ValueError, match=r"X |array"):
            failing.fit(rows)
        assert vars(failing) == vars(of_ball(strict=rows is nan))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_row_that_is_not_finite_adds_nothing(X, value):
    bad = X.copy()
    bad[3, 1] = value
    found = of_ball(n_components=2, epsilon=np.inf, bounds=(-3, 3)).fit(bad)
    expected = of_ball(n_components=2, epsilon=np.inf, bounds=(-3, 3)).fit(np.delete(X, 3, axis=0))
    np.testing.assert_array_equal(found.components_, expected.components_)
    assert "every record is valid" not in str(found.privacy_)
    strict = of_ball(n_components=2, bounds=(-3, 3), strict=True).fit(X)
    assert "every record is valid" in str(strict.privacy_)


def test_components_of_a_release_whose_fit_has_failed_cost_nothing(X, monkeypatch):
    def fail(matrix):
        raise np.linalg.LinAlgError("no convergence")

    # Inferred bounds and radius, and names of features, belong to the release.
    given = DPPCA(2.0, n_components=2, random_state=0)
    expected = clone(given).fit(pd.DataFrame(X).add_prefix("x"))
    with monkeypatch.context() as patched:
        patched.setattr(np.linalg, "eigh", fail)
        with pytest.raises(SpentError, match=r"on: .*second moments") as raised:
            given.fit(pd.DataFrame(X).add_prefix("x"))
    again = from_release(raised.value.release, DPPCA(n_components=2))
    assert again.privacy_.digest == expected.privacy_.digest
    for name in ("components_", "explained_variance_", "feature_names_in_", "clip_norm_"):
        assert_array_equal(getattr(again, name), getattr(expected, name))
    again.check_certified()
    # A fitted one does not keep the moments, which are large.
    assert not hasattr(expected, "release_")
    with pytest.raises(ValueError, match=r"DPSWFlowSampler.* cannot be fitted to the SecondMom"):
        from_release(raised.value.release, DPSWFlowSampler())
    sketch = DPSWFlowSampler(5.0, bounds=(-1, 1), n_steps=2).fit(X).release_
    with pytest.raises(ValueError, match="DPPCA cannot be fitted to the release of a DPSWFlow"):
        from_release(sketch, DPPCA())


def test_bad_projections(X):
    fitted = of_ball(n_components=3).fit(X)
    with pytest.raises(ValueError, match="Projections have 3 columns"):
        fitted.inverse_transform(X)
    with pytest.raises(ValueError, match="NaN"):
        fitted.inverse_transform(np.full((1, 3), np.nan))
