"""Learning from locally noised rows: what is released, what is learnt, what is refused."""

import io
import math
import warnings
from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from skdpgen import LDPEntropicGAN, compose
from skdpgen.arrays.ball import BallFormat
from skdpgen.exceptions import FitQualityWarning
from skdpgen.learners.entropic import (
    LocalRowNetwork,
    _classes_given_labels,
    clean_shares,
    fit_to_noised_rows,
)
from skdpgen.losses import EntropicWasserstein
from skdpgen.mechanisms.local import LocalRowsMechanism
from skdpgen.networks import GENERATORS
from skdpgen.preprocessing import LocalPrivatizer
from skdpgen.privacy import Curator, PrivacyLeakWarning
from skdpgen.releases import LocalNoise


@pytest.fixture
def X():
    return np.random.RandomState(0).normal(scale=0.3, size=(80, 3))


@pytest.fixture
def y():
    return np.arange(80) % 2


def make(**params):
    return LDPEntropicGAN(**{"n_steps": 3, "random_state": 0, "classes": None, **params})


def half_circle(n, random_state=0):
    angles = np.pi * np.random.RandomState(random_state).uniform(size=n)
    return np.column_stack([np.cos(angles), np.sin(angles)])


def distance_to_half_circle(X):
    flat = np.where(X[:, 1] > 0, np.abs(np.linalg.norm(X, axis=1) - 1), np.inf)
    ends = np.linalg.norm(X[:, None] - [[1, 0], [-1, 0]], axis=2).min(1)
    return np.minimum(flat, ends).mean()


# Releases.


@pytest.mark.catches(
    "generators._ldp_entropic_gan:LDPEntropicGAN._learn",
    "curator.release(LocalRowsMechanism(format.p))",
    "[curator.release(LocalRowsMechanism(format.p)) for _ in range(3)][-1]",
)
@pytest.mark.parametrize("loss", ["entropic", "wasserstein", "sinkhorn_divergence"])
def test_rows_are_noised_once(X, y, loss):
    """However many steps there are; a second release is let through here, so as to be counted."""
    seen, release = [], Curator.release

    def counted(curator, mechanism):
        seen.append(mechanism.name)
        if seen.count(mechanism.name) == 1:
            return release(curator, mechanism)
        event = dict(curator.plan.releases)[mechanism.name]
        noise, relation = curator._noise, curator.plan.relation
        return mechanism.run(curator._source, event, relation=relation, noise=noise)

    with mock.patch.object(Curator, "release", counted):
        make(classes=[0, 1], n_steps=30, loss=loss).fit(X, y)
    assert seen == ["noised rows", "noised labels"], "Rows or labels were noised again."


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_regularisation_matches_the_noise(X, mechanism):
    """λ = p σ^p: the Laplace scale, or twice the Gaussian variance, in the units of the rows."""
    for radius in (1.0, 2.5):
        gan = make(release=mechanism, clip_norm=radius, epsilon=3.0).fit(X)
        if mechanism == "laplace":
            assert gan.sigma_ == pytest.approx(math.sqrt(2) * 2 * radius / 3)
            assert gan.reg_ == pytest.approx(2 * radius / 3)
        else:
            assert gan.reg_ == pytest.approx(2 * gan.sigma_**2)
        given = make(release=mechanism, clip_norm=radius, loss=EntropicWasserstein(reg=0.7))
        assert given.fit(X).reg_ == pytest.approx(0.7)


@pytest.mark.catches(
    "curator.dataset:Dataset.cover", "plan.local and not self._is_inferred", "plan.local"
)
def test_inferred_classes_are_not_local(X, y):
    """Somebody has to see all labels to list them."""
    with pytest.warns(PrivacyLeakWarning, match="inferred from y"):
        gan = make(release="laplace").fit(X, y)
    assert not gan.privacy_.local, "Certified as local."
    assert gan.privacy_.relation == "replace_one"
    assert gan.privacy_.assumptions[0] == "the set of classes, inferred from y, is public"
    assert "Local:" not in str(gan.privacy_)
    with pytest.raises(ValueError, match="amplifies local releases"):
        gan.privacy_.shuffled(400_000, 1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        assert make(classes=[0, 1], random_state=None).fit(X, y).privacy_.local


# Learning.


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_entropic_loss_removes_noise(mechanism):
    """In four seeds the ratio was 0.14 to 0.26; it is 1 where no noise is removed."""
    X, distances = half_circle(20_000), {}
    radius = 2**0.5 if mechanism == "laplace" else 1.0
    for loss in ("entropic", "wasserstein"):
        gan = LDPEntropicGAN(
            8.0,
            release=mechanism,
            clip_norm=radius,
            loss=loss,
            n_steps=150,
            batch_size=128,
            learning_rate=0.01,
            latent_dim=2,
            random_state=0,
        ).fit(X)
        distances[loss] = distance_to_half_circle(gan.sample(2000))
    assert distances["entropic"] < 0.6 * distances["wasserstein"], distances


def test_classes_are_not_blurred_by_randomised_response():
    """Every fourth label is wrong; the means of both classes are those of the true labels."""
    rng = np.random.RandomState(0)
    y = (rng.uniform(size=6000) < 0.3).astype(int)
    X = np.column_stack([y - 0.5, np.zeros(6000)])
    release = LocalNoise(label_share=1.1 / 30)
    gan = LDPEntropicGAN(
        30.0, classes=[0, 1], release=release, n_steps=150, latent_dim=2, random_state=0
    ).fit(X, y)
    probability = gan.privacy_.events[1].noise_parameter
    assert probability == pytest.approx(0.5, abs=0.01)
    # Uncorrected, the mean of class 1 would be about 0.06.
    means = [gan.sample(y=[label] * 2000)[:1][0][:, 0].mean() for label in (0, 1)]
    assert_allclose(means, [-0.5, 0.5], atol=0.12)
    # The standard error of a corrected share is 0.013.
    assert gan.class_probabilities_[1] == pytest.approx(0.3, abs=0.08)


def test_shares_and_posteriors():
    codes = np.repeat([0, 1, 2], [550, 250, 200])
    assert_allclose(clean_shares(codes, 3, 0.0), [0.55, 0.25, 0.2])
    shares = clean_shares(codes, 3, 0.3)
    assert_allclose(shares, (np.array([0.55, 0.25, 0.2]) - 0.1) / 0.7)
    # Shares that would be negative become 0, and the others have all.
    assert_allclose(clean_shares(np.zeros(10, dtype=int), 3, 0.3), [1, 0, 0])
    assert_allclose(clean_shares(codes, 3, 1.0), [1 / 3] * 3)
    given_label = _classes_given_labels(shares, 0.3)
    response = 0.7 * np.eye(3) + 0.1
    for label in range(3):
        joint = shares * response[:, label]
        assert_allclose(given_label[label], joint / joint.sum())


@pytest.mark.parametrize("p", [1, 2])
def test_groups_of_labels_weigh_as_many_rows_as_they_have(p):
    """All rows of a group are alike, and all generated ones are 0: its distance is their size."""
    noised = np.repeat([[0.8, 0.0], [0.0, 0.2]], [30, 10], axis=0)
    rows = LocalRowNetwork(torch.nn.Linear(4, 2), 2, 2, BallFormat(2, p=p))
    torch.nn.init.zeros_(rows.network.weight)
    torch.nn.init.zeros_(rows.network.bias)
    sampler = fit_to_noised_rows(
        rows,
        noised,
        np.repeat([0, 1], [30, 10]),
        p=p,
        reg=0.0,
        n_steps=1,
        batch_size=7,
        learning_rate=1e-3,
        generator=torch.Generator().manual_seed(0),
    )
    assert sampler.losses[0] == pytest.approx(0.75 * 0.8**p + 0.25 * 0.2**p)


@pytest.mark.parametrize("p", [1, 2])
def test_losses(p):
    """Between points that are far apart all are the distance, with the gradient of ⟨π, C⟩."""
    made = torch.tensor([[[0.0, 0.0], [4.0, 0.0]]], requires_grad=True)
    noised = torch.tensor([[[4.0, 1.0], [0.0, 1.0]]])
    for name, loss in LDPEntropicGAN._shorthands["loss"].items():
        value = loss().distance(made, noised, p=p, reg=0.05)
        assert value.shape == (1,)
        assert value.item() == pytest.approx(1.0, abs=0.01), name
        (gradient,) = torch.autograd.grad(value.sum(), made)
        expected = torch.tensor([[[0.0, -0.5 * p], [0.0, -0.5 * p]]])
        assert_allclose(gradient, expected, atol=1e-3, err_msg=name)


def test_images_are_compared_in_the_basis_of_the_noise():
    params = dict(radius=140.0, bounds=(0, 1), basis="dct", image_shape=(28, 28))
    format = BallFormat(784, p=1, **params)
    network = GENERATORS["conv28"](8, 784).eval()
    rows = LocalRowNetwork(network, 1, 7, format, unit_output=True)
    codes = torch.randn(3, 8)
    with torch.no_grad():
        made, features = rows(codes).double().numpy(), network(codes).double().numpy()
    # No projection here: features of a network are not noised.
    wide = BallFormat(784, p=2, **params)
    assert_allclose(made, wide.encode(features), atol=1e-5)
    assert_allclose(format.decode_rows(made)[0], features, atol=1e-4)


def test_no_noise_means_no_regularisation(X):
    gan = make(epsilon=math.inf, n_steps=150, release="gaussian").fit(X)
    assert gan.reg_ == 0
    assert gan.sigma_ == 0
    assert_allclose(gan.sample(2000).std(0), X.std(0), rtol=0.35)


# Two halves.


def test_two_halves(X, y):
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abc"))
    privatizer = LocalPrivatizer(
        mechanism="gaussian", epsilon=4.0, bounds=(-1, 1), classes=["no", "yes"]
    ).fit(frame)
    noised, labels = privatizer.privatize(frame, np.array(["no", "yes"])[y])
    gan = LDPEntropicGAN(n_steps=3).fit_privatized(noised, labels, privatizer=privatizer)
    made, drawn = gan.sample(7)
    assert list(made.columns) == list("abc")
    assert set(made.dtypes) == {np.dtype(np.float32)}
    assert set(drawn) <= {"no", "yes"}
    assert gan.epsilon_ == privatizer.epsilon_
    assert gan.privacy_ == privatizer.privacy_
    assert gan.sigma_ == privatizer.sigma_
    assert gan.reg_ == pytest.approx(2 * gan.sigma_**2)
    assert (np.abs(made) <= 1).to_numpy().all()
    # Parameters count as they were at the fit, and not as they were set since.
    privatizer.set_params(mechanism="laplace", random_state=0)
    assert make().fit_privatized(noised, privatizer=privatizer).privacy_ == replace(
        privatizer.privacy_, events=gan.privacy_.events[:1], releases=("noised rows",)
    )
    # Without the labels, what they cost is not spent.
    gan = LDPEntropicGAN(n_steps=3).fit_privatized(noised, privatizer=privatizer)
    assert gan.epsilon_ < privatizer.epsilon_
    assert not hasattr(gan, "classes_")
    assert gan.sample(7).shape == (7, 3)
    assert math.isfinite(gan.score(frame))


@pytest.mark.catches(
    "generators._ldp_entropic_gan:LDPEntropicGAN._fit_privatized",
    "privatizer.privacy_.reproducible",
    "False",
)
def test_rows_of_a_seeded_privatizer_are_certified_as_such(X):
    for seed in (None, 0):
        privatizer = LocalPrivatizer(4.0, bounds=(-1, 1), random_state=seed).fit(X)
        gan = make().fit_privatized(privatizer.transform(X), privatizer=privatizer)
        assert gan.privacy_.reproducible == (seed is not None)


def test_rows_of_a_single_owner():
    privatizer = LocalPrivatizer(mechanism="laplace", epsilon=5.0).fit(np.zeros((1, 2)))
    sent = [privatizer.transform(row[None]) for row in half_circle(40)]
    gan = make().fit_privatized(np.concatenate(sent), privatizer=privatizer)
    assert gan.n_samples_ == 40
    assert gan.sample(3).shape == (3, 2)


RAW = {
    "numbers": lambda rng: rng.random((300, 3)),
    "single": lambda rng: rng.random((300, 3)).astype(np.float32),
    "cents": lambda rng: rng.random((300, 3)).round(2),
    # Whole numbers and multiples of 1/256 lie on grids of powers of 2.
    "whole": lambda rng: rng.integers(0, 9, (300, 3)).astype(float),
    "flags": lambda rng: rng.integers(0, 2, (300, 3)).astype(float),
    "bytes": lambda rng: rng.integers(0, 256, (300, 3)) / 256,
    "zeros": lambda rng: np.zeros((300, 3)),
    # Too large for their precision to show a grid.
    "incomes": lambda rng: rng.lognormal(10, 1, (300, 3)).astype(np.float32),
    "large": lambda rng: 1e14 * rng.random((300, 3)),
}


@pytest.mark.catches(
    "generators._ldp_entropic_gan:LDPEntropicGAN._fit_privatized",
    "not LocalRowsMechanism(format.p).are_noised(Y, format.radius, plan.events[0])",
    "False",
    param="params0-laplace-numbers",
)
@pytest.mark.catches(
    "mechanisms.local:LocalRowsMechanism.are_noised",
    "found > p and are_so.size * divergence > _CERTAINTY",
    "False",
    param="params1-laplace-whole",
)
@pytest.mark.parametrize("raw", RAW)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("params", [{"bounds": (0, 1)}, {"clip_norm": 4.0}, {"basis": "dct"}])
@pytest.mark.filterwarnings("ignore:Without bounds")
def test_rows_without_noise_are_refused(params, mechanism, raw):
    X = RAW[raw](np.random.default_rng(0))
    for epsilon in (0.05, 20.0):
        privatizer = LocalPrivatizer(epsilon, mechanism=mechanism, **params).fit(X)
        noised = privatizer.transform(X)
        mixed = np.concatenate([X[:100], noised[100:]])
        rounded = noised.round(2)
        checked = LocalRowsMechanism(privatizer.format_.p)
        given = (privatizer.format_.radius, privatizer.plan_.events[0])
        single = noised.astype(np.float32)
        files = [io.StringIO(pd.DataFrame(rows).to_csv(index=False)) for rows in (noised, single)]
        read = [pd.read_csv(file).to_numpy() for file in files]
        for rows in (noised, single, single.astype(float), *read):
            assert checked.are_noised(rows, *given)
        assert not any(checked.are_noised(rows, *given) for rows in (X, mixed, rounded))
    for rows in (X, mixed, rounded):
        with pytest.raises(ValueError, match="does not have the noise of this privatizer"):
            make().fit_privatized(rows, privatizer=privatizer)


@pytest.mark.filterwarnings("ignore:Without bounds")
def test_rows_of_which_no_noise_is_promised_are_taken():
    X = np.eye(4)
    privatizer = LocalPrivatizer(math.inf).fit(X)
    assert make().fit_privatized(X, privatizer=privatizer).epsilon_ == math.inf


@pytest.mark.catches(
    "generators._ldp_entropic_gan:LDPEntropicGAN._fit_privatized",
    "find_digest((Y, y))",
    "find_digest((Y,))",
)
@pytest.mark.filterwarnings("ignore:Without bounds")
def test_fits_to_the_same_noised_rows_cost_what_one_does(X, y):
    privatizer = LocalPrivatizer(classes=[0, 1]).fit(X)
    noised, labels = privatizer.privatize(X, y)
    one, same = (
        make().fit_privatized(noised, labels, privatizer=privatizer).privacy_ for _ in range(2)
    )
    other = make().fit_privatized(privatizer.transform(X), labels, privatizer=privatizer).privacy_
    assert compose(one, same).events == one.events
    assert len(compose(one, same, other).events) == 2 * len(one.events)
    # Labels that were randomised again are a further release.
    again = privatizer.privatize(X, y)[1]
    assert (again != labels).any()
    other = make().fit_privatized(noised, again, privatizer=privatizer).privacy_
    assert len(compose(one, other).events) == 2 * len(one.events)


def test_fit_privatized_refuses(X, y):
    privatizer = LocalPrivatizer().fit(X)
    noised = privatizer.transform(X)
    with pytest.raises(ValueError, match="have 3 columns"):
        make().fit_privatized(noised[:, :2], privatizer=privatizer)
    with pytest.raises(ValueError, match="without randomised response"):
        make().fit_privatized(noised, y, privatizer=privatizer)
    with pytest.raises(ValueError, match="must be a LocalPrivatizer"):
        make().fit_privatized(noised, privatizer="laplace")
    with pytest.raises(NotFittedError):
        make().fit_privatized(noised, privatizer=LocalPrivatizer())
    with pytest.raises(ValueError, match="NaN"):
        make().fit_privatized(np.full_like(X, np.nan), privatizer=privatizer)
    labelled = LocalPrivatizer(classes=[0, 1]).fit(X)
    for bad in (y + 1, y[:-1]):
        with pytest.raises(ValueError, match="one of the privatizer's classes"):
            make().fit_privatized(noised, bad, privatizer=labelled)
    fitted = make().fit(X)
    before = fitted.sample(5)
    with pytest.raises(ValueError, match="have 3 columns"):
        fitted.fit_privatized(noised[:, :2], privatizer=privatizer)
    assert_array_equal(before, fitted.sample(5))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"clip_norm": 0}, "clip_norm must be a positive number"),
        ({"batch_size": 0.5}, "batch_size must be a positive whole number"),
        ({"network": "conv28"}, "needs bounds"),
        ({"release__keep": 0.5}, "keep is a share"),
        ({"release__label_share": 0}, "label_share must be"),
    ],
)
def test_bad_parameters(X, params, message):
    gan = make().set_params(**params)
    with pytest.raises(ValueError, match=message):
        gan.fit(X)
    assert not hasattr(gan, "privacy_")


def test_only_a_release_that_uses_delta_is_warned_of_a_large_one(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        unseeded = {"epsilon": 100.0, "clip_norm": 1.0, "random_state": None}
        make(release="laplace", delta=0.1, **unseeded).fit(X)
    with pytest.warns(UserWarning, match="publish a record outright"):
        make(release="gaussian", delta=0.1).fit(X)


def test_rows_without_bounds_are_said_to_be_projected_on_the_unit_ball(X):
    with pytest.warns(FitQualityWarning, match="projects its row onto the unit ball"):
        make().fit(X)
    for params in ({"bounds": (-1, 1)}, {"clip_norm": 1.0}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            make(epsilon=100.0, random_state=None, **params).fit(X)
