"""The owners' half of local privacy: what rows become, and that noise never repeats."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.fft import dctn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skdpgen.arrays.ball import BallFormat, project_on_ball
from skdpgen.preprocessing import LocalPrivatizer
from skdpgen.privacy import preview, verify


@pytest.fixture
def X():
    return np.random.RandomState(0).normal(size=(60, 6))


@pytest.fixture
def y():
    return np.arange(60) % 3


# Noise.


def test_a_fixed_seed_never_repeats_noise(X):
    privatizer = LocalPrivatizer(random_state=0).fit(X)
    outputs = [privatizer.transform(X), privatizer.transform(X), privatizer.fit(X).transform(X)]
    outputs += [privatizer.fit_transform(X), privatizer.privatize(X)]
    for i, first in enumerate(outputs):
        for second in outputs[:i]:
            assert not (first == second).all(axis=1).any()
    # The differences of two calls do not give away those of the rows.
    Z = X + 1e-3
    assert abs(privatizer.transform(Z) - outputs[0] - (Z - X)).min() > 1e-9
    again = LocalPrivatizer(random_state=0).fit(X)
    assert_array_equal(again.transform(X), outputs[0])
    again.set_params(random_state=0)
    assert_array_equal(again.fit(X).transform(X), outputs[0])


@pytest.mark.catches(
    "preprocessing._local_privatizer:LocalPrivatizer._noise",
    "random_state, counter = self._seed",
    "random_state, counter = self.random_state, self._seed[1]",
)
def test_the_seed_is_the_one_that_was_certified(X):
    """Parameters that are set after `fit` count from the next one on."""
    private = LocalPrivatizer().fit(X).set_params(random_state=0)
    first, second = private.transform(X), LocalPrivatizer().fit(X)
    assert not private.privacy_.reproducible
    second.random_state = 0
    # A few numbers are equal by chance, as noise is rounded.
    assert (first == second.transform(X)).mean() < 0.1, "The noise follows from a later seed."
    seeded = LocalPrivatizer(random_state=0).fit(X)
    expected = LocalPrivatizer(random_state=0).fit(X).transform(X)
    assert_array_equal(seeded.set_params(random_state=None).transform(X), expected)
    assert seeded.privacy_.reproducible
    assert not seeded.fit(X).privacy_.reproducible


def test_a_failing_fit_changes_nothing(X):
    privatizer = LocalPrivatizer(random_state=0).fit(X)
    with pytest.raises(ValueError, match="distinct"):
        privatizer.set_params(clip_norm=9.0, classes=[0, 0]).fit(X[:, :3])
    expected = LocalPrivatizer(random_state=0).fit(X).transform(X)
    assert_array_equal(privatizer.transform(X), expected)


def test_without_a_seed_copies_do_not_repeat_noise(X):
    privatizer = LocalPrivatizer().fit(X)
    copies = [privatizer, copy.deepcopy(privatizer), pickle.loads(pickle.dumps(privatizer))]
    outputs = [each.transform(X) for each in [*copies, clone(privatizer).fit(X)]]
    for i, first in enumerate(outputs):
        for second in outputs[:i]:
            assert not (first == second).all(axis=1).any()


def test_no_noise_at_infinite_epsilon(X, y):
    for mechanism in ("laplace", "gaussian"):
        privatizer = LocalPrivatizer(
            mechanism=mechanism, epsilon=math.inf, clip_norm=100.0, classes=[0, 1, 2]
        ).fit(X)
        rows, labels = privatizer.privatize(X, y)
        assert_allclose(rows, X, atol=1e-3)
        assert_array_equal(labels, y)
        assert "No differential privacy" in str(privatizer.privacy_)


def test_labels(X, y):
    names = np.array(["low", "mid", "high"])
    for mechanism in ("laplace", "gaussian"):
        privatizer = LocalPrivatizer(
            mechanism=mechanism, epsilon=5.0, classes=names, label_share=0.4
        ).fit(X)
        rows, labels = privatizer.privatize(X, names[y])
        assert rows.shape == X.shape
        assert set(labels) <= set(names)
        assert 4.9 < privatizer.epsilon_ <= 5
        assert len(privatizer.privacy_.events) == 2
        assert verify(privatizer.privacy_.to_json()) == privatizer.epsilon_
    privatizer.set_params(strict=True).fit(X)
    with pytest.raises(ValueError, match="not among the given classes") as caught:
        privatizer.privatize(X, np.where(y == 0, "Smith", "low"))
    assert "Smith" not in str(caught.value)
    assert "every record is valid" in str(privatizer.privacy_)
    with pytest.raises(ValueError, match="randomised response"):
        LocalPrivatizer().fit(X).privatize(X, y)


@pytest.mark.catches(
    "preprocessing._local_privatizer:LocalPrivatizer.privatize",
    "y = classes[curator.release(LocalLabelsMechanism(len(classes))).codes]",
    "curator.release(LocalLabelsMechanism(len(classes)))",
    param="laplace",
)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_labels_are_replaced_as_often_as_certified(mechanism):
    X, y = np.zeros((20_000, 1)), np.arange(20_000) % 3
    privatizer = LocalPrivatizer(
        mechanism=mechanism, epsilon=5.0, classes=[0, 1, 2], label_share=0.3
    ).fit(X)
    _, labels = privatizer.privatize(X, y)
    # A label is drawn anew with probability p, and is then another one in two of three cases.
    share = privatizer.privacy_.events[1].noise_parameter * 2 / 3
    assert 0.2 < share < 0.5
    # Six standard errors: fails with probability 2e-9.
    assert abs(np.mean(labels != y) - share) < 6 * math.sqrt(share * (1 - share) / 20_000)


def test_certified_noise_is_released(X):
    privatizer = LocalPrivatizer(mechanism="laplace", epsilon=5.0).fit(X)
    assert privatizer.privacy_.local
    assert privatizer.privacy_.relation == "replace_one"
    assert privatizer.privacy_.shuffled(400_000, 1e-6) == pytest.approx(0.14143, rel=1e-3)
    assert (
        preview(LocalPrivatizer(mechanism="laplace", epsilon=5.0), 1, 6).epsilon
        == privatizer.epsilon_
    )
    with pytest.raises(ValueError, match="laplace"):
        LocalPrivatizer(mechanism="gaussian").fit(X).privacy_.shuffled(400_000, 1e-6)


@pytest.mark.catches(
    "preprocessing._local_privatizer:LocalPrivatizer._certify",
    "self.random_state is not None",
    "False",
)
@pytest.mark.parametrize("seed", [None, 0])
def test_the_certificate_says_whether_the_seed_was_fixed(X, seed):
    first = str(LocalPrivatizer(random_state=seed).fit(X).privacy_).splitlines()[0]
    assert first.startswith("REPRODUCIBLE MODE") == (seed is not None)


# The map.


@pytest.mark.parametrize("p", [1, 2])
def test_projection_is_the_nearest_point(p):
    rng = np.random.RandomState(0)
    rows = rng.normal(size=(50, 3)) * 2
    projected = project_on_ball(rows, 1.2, p)
    assert (np.linalg.norm(projected, ord=p, axis=1) <= 1.2 + 1e-12).all()
    # The angle from there to the row and to any point of the ball is obtuse.
    others = np.vstack([1.2 * np.eye(3), -1.2 * np.eye(3), rng.normal(size=(500, 3))])
    others /= np.maximum(np.linalg.norm(others, ord=p, axis=1, keepdims=True) / 1.2, 1)
    for row, point in zip(rows, projected, strict=True):
        assert ((others - point) @ (row - point)).max() <= 1e-12


def test_bounds_span_the_ball_and_nothing_is_projected():
    corners = np.array([[0.0, 10.0, -1.0], [2.0, 20.0, 1.0], [1.0, 15.0, 0.0]])
    bounds = ([0, 10, -1], [2, 20, 1])
    for p, radius in [(1, 3.0), (2, math.sqrt(3))]:
        format = BallFormat(3, p=p, bounds=bounds)
        assert format.radius == pytest.approx(radius)
        rows = format.encode(corners)
        assert_allclose(np.linalg.norm(rows, ord=p, axis=1), [1, 1, 0], atol=1e-12)
        assert_allclose(format.decode_rows(rows)[0], corners)
        assert_allclose(
            format.decode_rows(3 * rows)[0], corners, atol=1e-12
        )  # clipped to the bounds


@pytest.mark.parametrize("image_shape", [None, (2, 3), (1, 3, 2)])
def test_cosine_transform(X, image_shape):
    format = BallFormat(6, p=2, radius=100.0, basis="dct", image_shape=image_shape)
    images = X.reshape(len(X), *format.grid)
    expected = dctn(images, axes=(2, 3), norm="ortho").reshape(X.shape)
    assert_allclose(format.encode(X) * 100, expected, atol=1e-12)
    assert_allclose(format.decode_rows(format.encode(X))[0], X, atol=1e-12)
    kept = BallFormat(6, p=2, radius=100.0, basis="dct", keep=0.3, image_shape=image_shape).encode(
        X
    )
    assert ((kept != 0).sum(1) == 2).all()
    # Each row keeps its own: no row looks at another.
    alone = BallFormat(6, p=2, radius=100.0, basis="dct", keep=0.3, image_shape=image_shape)
    assert_array_equal(kept[:1], alone.encode(X[:1]))
    noised = LocalPrivatizer(
        mechanism="gaussian", epsilon=math.inf, clip_norm=100.0, basis="dct"
    ).fit(X)
    assert_allclose(noised.inverse_transform(noised.transform(X)), X, atol=1e-2)


def test_huge_numbers_stay_finite():
    for p in (1, 2):
        rows = BallFormat(2, p=p).encode([[1e308, -1e308], [1e290, 0.0]])
        assert np.isfinite(rows).all()
        assert (np.linalg.norm(rows, ord=p, axis=1) <= 1 + 1e-12).all()


# The interface.


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"clip_norm": 0}, "clip_norm must be a positive number"),
        ({"clip_norm": math.inf}, "clip_norm must be a positive number"),
        ({"keep": 0.5}, "keep is a share"),
        ({"keep": 1.5, "basis": "dct"}, "keep must be at most 1"),
        ({"keep": 0, "basis": "dct"}, "keep must be"),
        ({"image_shape": (2, 2)}, "does not fit records of X, of 6"),
        ({"label_share": 1.0}, "label_share"),
        ({"bounds": (1, 0)}, "lower < upper"),
        ({"classes": [0, 0]}, "distinct"),
    ],
)
def test_bad_parameters(X, params, message):
    with pytest.raises(ValueError, match=message):
        LocalPrivatizer(**params).fit(X)


def test_bad_rows(X):
    privatizer = LocalPrivatizer()
    with pytest.raises(NotFittedError):
        privatizer.transform(X)
    privatizer.fit(X)
    with pytest.raises(ValueError, match="features"):
        privatizer.transform(X[:, :5])
    with pytest.raises(ValueError, match="6 columns"):
        privatizer.inverse_transform(X[:, :5])
    with pytest.raises(ValueError, match="NaN"):
        clone(privatizer).set_params(strict=True).fit(X).transform(np.full_like(X, np.nan))
    text = X.astype(object)
    text[0, 0] = "Smith"
    with pytest.raises(ValueError, match="not numbers") as caught:
        privatizer.transform(text)
    assert "Smith" not in str(caught.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf, "label"])
def test_bad_records_are_noised_like_the_centre_with_the_first_class(X, y, bad):
    X, labels = X.copy(), y.astype(object)
    if bad == "label":
        labels[::2] = "Smith"
    else:
        X[::2, 1] = bad
    privatizer = LocalPrivatizer(epsilon=np.inf, bounds=(0, 8), classes=[2, 1, 0]).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows, found = privatizer.privatize(X, labels)
    assert not rows[::2].any()
    assert (found[::2] == 2).all()
    assert rows[1::2].any(axis=1).all()
    assert (found[1::2] == y[1::2]).all()
    # Every one is answered for, with noise, which is 0 on its grid once in some 30,000 times.
    rows, _ = privatizer.set_params(epsilon=1.0).fit(X).privatize(X, labels)
    assert (rows != 0).mean() > 0.99
