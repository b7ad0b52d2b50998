import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdpgen import DPSlicedWassersteinGenerator
from skdpgen.preprocessing import Autoencoder
from skdpgen.releases import SliceSketch


@parametrize_with_checks([Autoencoder(n_epochs=2)])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def X():
    """Rows near a circle, in 6 dimensions."""
    rng = np.random.RandomState(0)
    angles = rng.uniform(0, 2 * np.pi, 400)
    circle = np.column_stack([np.cos(angles), np.sin(angles)]) @ rng.normal(size=(2, 6))
    return 0.5 + 0.1 * circle + 0.01 * rng.normal(size=(400, 6))


def make_images(n, shape=(1, 28, 28)):
    return np.random.RandomState(0).uniform(size=(n, int(np.prod(shape)))).astype(np.float32)


def test_reconstruction(X):
    fitted = Autoencoder(n_components=3, random_state=0).fit(X)
    made = fitted.inverse_transform(fitted.transform(X))
    assert np.mean((made - X) ** 2) < 0.05 * X.var(axis=0).mean()
    assert fitted.loss_curve_[-1] < 0.1 * fitted.loss_curve_[0]
    assert fitted.n_iter_ == len(fitted.loss_curve_) == 50
    assert fitted.image_shape_ is None


def test_images_are_learnt():
    rng = np.random.RandomState(0)
    patterns = rng.uniform(size=(2, 1, 7, 7)).repeat(4, axis=2).repeat(4, axis=3).reshape(2, 784)
    which = rng.randint(2, size=24)
    X = patterns[which].astype(np.float32)
    fitted = Autoencoder(2, n_epochs=10, batch_size=6, random_state=0).fit(X)
    assert fitted.image_shape_ == (1, 28, 28)
    assert fitted.loss_curve_[-1] < 0.7 * fitted.loss_curve_[0]
    codes = fitted.transform(X)
    first, second = (codes[which == i].mean(axis=0) for i in range(2))
    assert_allclose(codes, np.where(which[:, None] == 0, first, second), atol=1e-5)
    assert np.linalg.norm(first - second) > 0.01


def test_blocks_do_not_show(X, monkeypatch):
    fitted = Autoencoder(n_components=3, n_epochs=2, random_state=0).fit(X)
    codes, made = fitted.transform(X), fitted.inverse_transform(fitted.transform(X))
    monkeypatch.setattr("skdpgen.preprocessing._autoencoder._BLOCK", 7)
    assert_allclose(fitted.transform(X), codes, atol=1e-12)
    assert_allclose(fitted.inverse_transform(codes), made, atol=1e-12)


def test_codes_off_the_sphere_are_put_on_it(X):
    fitted = Autoencoder(n_components=3, n_epochs=2, random_state=0).fit(X)
    codes = fitted.transform(X)
    assert_allclose(np.linalg.norm(codes, axis=1), 1, rtol=1e-12)
    lengths = np.random.RandomState(0).uniform(0.01, 100, size=(len(X), 1))
    assert_allclose(
        fitted.inverse_transform(lengths * codes), fitted.inverse_transform(codes), rtol=1e-9
    )
    assert np.isfinite(fitted.inverse_transform(np.zeros((1, 3)))).all()


def test_bounds(X):
    lower, upper = np.arange(6.0), 2 * np.arange(6.0) + 1
    scaled = lower + X * (upper - lower)
    unit = Autoencoder(n_epochs=3, random_state=0).fit(X)
    fitted = Autoencoder(n_epochs=3, bounds=(lower, upper), random_state=0).fit(scaled)
    assert_allclose(fitted.loss_curve_, unit.loss_curve_, rtol=1e-5)
    assert_allclose(fitted.transform(scaled), unit.transform(X), atol=1e-5)
    far = fitted.transform(np.vstack([lower - 9, lower, upper, upper + 9]))
    assert_allclose(far[[0, 2]], far[[1, 3]])
    made = fitted.inverse_transform(np.random.RandomState(0).normal(size=(100, 8)))
    assert ((lower <= made) & (made <= upper)).all()


@pytest.mark.parametrize(
    ("n_samples", "n_epochs"), [(1, 50), (20, 50), (6000, 20), (30_000, 4), (1_000_000, 1)]
)
def test_default_epochs_follow_the_number_of_rows(n_samples, n_epochs):
    assert Autoencoder()._default_n_epochs(n_samples) == n_epochs


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": 0}, "n_components must be a positive whole number"),
        ({"batch_size": True}, "batch_size must be a positive whole number"),
        ({"bounds": None}, "bounds must be a pair"),
        ({"bounds": (1, 0)}, "lower < upper"),
        ({"image_shape": (1, 28, 28)}, "does not fit records of X, of 6 features"),
        ({"image_shape": (2, 3)}, "sides of 8 to 64 pixels"),
    ],
)
def test_bad_parameters(X, params, message):
    with pytest.raises(ValueError, match=message):
        Autoencoder(**params).fit(X)


def test_bad_codes(X):
    fitted = Autoencoder(n_components=3, n_epochs=1).fit(X)
    with pytest.raises(ValueError, match="Codes have 3 columns"):
        fitted.inverse_transform(X)
    with pytest.raises(ValueError, match="NaN"):
        fitted.inverse_transform(np.full((1, 3), np.nan))


def test_verbose(X, capsys):
    Autoencoder(n_epochs=1).fit(X)
    assert capsys.readouterr() == ("", "")
    Autoencoder(n_epochs=1, verbose=1).fit(X)
    assert "autoencoder" in capsys.readouterr().err


def test_as_an_encoder(X):
    encoder = Autoencoder(n_components=2, random_state=0).fit(X[:200])
    generator = DPSlicedWassersteinGenerator(
        epsilon=np.inf,
        encoder=FrozenEstimator(encoder),
        release=SliceSketch(20),
        n_steps=100,
        random_state=0,
    )
    made = clone(generator).fit(X[200:]).sample(200)
    assert made.shape == (200, 6)
    assert ((0 <= made) & (made <= 1)).all()
    assert_allclose(made.mean(axis=0), X.mean(axis=0), atol=0.05)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_weights_rest_on_the_cpu():
    X = make_images(20)
    fitted = Autoencoder(n_epochs=1, device="cuda", random_state=0).fit(X)
    codes = fitted.transform(X)
    assert {p.device.type for p in fitted._network.parameters()} == {"cpu"}
    assert_allclose(fitted.set_params(device="cpu").transform(X), codes, atol=1e-2)
