"""DP-SWD as published: a generator trained on noisy projections of single rows."""

import math
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import torch
from dp_accounting import (
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from skdpgen import DPSlicedWassersteinGenerator, PrivacyBudget
from skdpgen.accounting.calibration import calibrate
from skdpgen.accounting.plan import Terms
from skdpgen.encoders import PrivatePCA
from skdpgen.learners.rows import RowNetwork
from skdpgen.learners.slices import fit_to_slices
from skdpgen.mechanisms.sampled import ProjectedRows
from skdpgen.networks.generators import build, find_factory
from skdpgen.privacy import (
    SlicedGaussianDpEvent,
    SlicedRowsMechanism,
    ledger_epsilon,
    preview,
)
from skdpgen.releases import SlicedRows
from skdpgen.testing.common import make_plain
from skdpgen.transport import random_directions

DIGITS = dict(bounds=(0, 16), clip_norm=0.7, classes=range(10))


def make(**params):
    return make_plain(
        DPSlicedWassersteinGenerator(**{"release": "rows", "random_state": 0, **params})
    )


# Learning.


@pytest.mark.slow
@pytest.mark.parametrize("encoder", [None, "dp-pca"])
def test_digits_without_noise(digits, encoder):
    X, X_test, y, y_test = digits
    release = SlicedRows(n_steps=120, batch_size=250)
    generator = make(**DIGITS, epsilon=math.inf, release=release, encoder=encoder)
    X_made, y_made = generator.fit(X, y).sample(1000)
    classifier = LogisticRegression(max_iter=300).fit(X_made / 16, y_made)
    assert classifier.score(X_test / 16, y_test) > 0.75
    assert_allclose(generator.class_probabilities_, np.bincount(y) / len(y), atol=0.02)


def test_second_moments_are_matched():
    """With components at hand, the network has the rows' second moments, even if all is noise."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(20_000, 6)) * [0.5, 0.3, 0.2, 0.05, 0.05, 0.05]
    params = {"encoder": PrivatePCA(3), "accountant": "rdp"}
    generator = make(epsilon=5, release=SlicedRows(n_steps=150), **params)
    made = generator.fit(X).sample(20_000)
    clipped = X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    assert_allclose(made.std(0)[:3], clipped.std(0)[:3], rtol=0.25)


def test_generated_rows_are_noised_as_records_are():
    """Where records and generated rows are alike, so are their releases: the loss stays small."""
    records = torch.tensor([[0.6, 0.0], [0.0, -0.6]])
    network = RowNetwork(build(find_factory("mlp"), 4, 2, 0), 2, 2, torch.ones(2))
    network.forward = lambda codes: records[codes[:, 2:].argmax(1)].clone().requires_grad_()
    mechanism, generator = SlicedRowsMechanism(2, 2), torch.Generator().manual_seed(0)

    def release():
        directions = random_directions(4, 4, generator=generator, dtype=torch.float64)
        classes = torch.randint(2, (300,), generator=generator)
        one_hot = torch.eye(2)[classes]
        projected = mechanism.join(records[classes], one_hot).double() @ directions
        values = 0.5 * torch.randn(2, 4, 400, generator=generator, dtype=torch.float64)
        values[classes, :, torch.arange(300)] += projected
        return ProjectedRows(values.numpy(), directions, 0.5)

    releases = SimpleNamespace(
        mechanism=mechanism, batch_size=300, n_steps=20, make=release, means=mock.Mock()
    )
    sampler = fit_to_slices(network, releases, learning_rate=1e-9, generator=generator)
    # Two samples of 400 from one law: W₂² between them is far below the noise's variance, 0.25.
    assert np.mean(sampler.losses[5:]) < 2 * 0.02
    assert_allclose(sampler.shares, 0.5, atol=0.1)


# Plans.


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_default_batches_have_the_least_noise_on_an_average(epsilon):
    n_samples, n_steps, delta = 60_000, 3000, 1e-5
    terms = Terms(epsilon, delta, "zero_out", "rdp", n_samples, 1, 3)
    rule = SlicedRows(n_steps=n_steps).count_rows(terms, n_samples) / n_samples
    if epsilon == 10:
        assert rule == 500 / n_samples  # the largest default
        n_steps = 100_000
        rule = SlicedRows(n_steps=n_steps).count_rows(terms, n_samples) / n_samples

    def noise(rate):
        def epsilon_of(multiplier):
            step = PoissonSampledDpEvent(rate, GaussianDpEvent(multiplier))
            return ledger_epsilon([SelfComposedDpEvent(step, n_steps)], delta, accountant="rdp")

        return calibrate(epsilon_of, epsilon) / math.sqrt(rate * n_steps)

    assert noise(rule) < 1.07 * min(noise(rule * factor) for factor in (0.3, 0.6, 1.6, 3.0))


def test_events(iris):
    X, y = iris
    options, given = dict(epsilon=3.0, classes=[0, 1, 2]), dict(n_projections=5, n_steps=4)
    generator = make(**options, release=SlicedRows(**given, batch_size=30)).fit(X, y)
    (event,) = generator.privacy_.events
    base = SlicedGaussianDpEvent(generator.sigma_, 7, 5, True, 3)
    assert event == SelfComposedDpEvent(PoissonSampledDpEvent(0.2, base), 4)
    assert 0.99 * 3 < generator.epsilon_ <= 3

    release = SlicedRows(**given, batch_size=30, sampling="fixed")
    fixed = make(**options, release=release, relation="replace_one").fit(X, y)
    (event,) = fixed.privacy_.events
    base = SlicedGaussianDpEvent(fixed.sigma_, 7, 5, True, 3)
    assert event == SelfComposedDpEvent(SampledWithoutReplacementDpEvent(150, 30, base), 4)

    whole = make(epsilon=3.0, release=SlicedRows(**given, batch_size=1000)).fit(X)
    (event,) = whole.privacy_.events
    assert event == SelfComposedDpEvent(SlicedGaussianDpEvent(whole.sigma_, 4, 5, True), 4)


# How it behaves.


def test_fixed_batches_need_replace_one(iris):
    with pytest.raises(ValueError, match="relation='replace_one' only"):
        make(release=SlicedRows(sampling="fixed")).fit(iris[0])
    with pytest.raises(ValueError, match="sampling must be one of"):
        make(release=SlicedRows(sampling="shuffled")).fit(iris[0])


@pytest.mark.parametrize("name", ["n_steps", "batch_size"])
@pytest.mark.parametrize("release", ["rows", SlicedRows(n_steps=2)])
def test_parameters_of_the_release_are_refused(release, name, iris):
    """Where a release is made at every step, it says how many there are, and of how many rows."""
    match = rf"{name} belongs to the release here: give release=SlicedRows\({name}=7\)"
    with pytest.raises(ValueError, match=match):
        make(release=release, **{name: 7}).fit(iris[0])
    with pytest.raises(ValueError, match=match):
        preview(make(release=release, **{name: 7}), 150, 4)


def test_a_budget_is_charged_for_all_steps(iris):
    with PrivacyBudget(10.0, 1e-5) as budget:
        fitted = make(random_state=None, delta=1e-5).fit(iris[0])
    assert budget.spent == fitted.epsilon_
