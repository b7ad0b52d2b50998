"""DP-Sinkhorn: what it learns from noisy gradients, what it plans, and what it refuses."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from dp_accounting import PoissonSampledDpEvent, SelfComposedDpEvent
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skdpgen import DPSinkhornGenerator, PrivacyBudget
from skdpgen.encoders import PrivatePCA
from skdpgen.learners.gradients import _draw_stratified
from skdpgen.learners.training import Descent
from skdpgen.losses import SemiDebiasedSinkhorn
from skdpgen.privacy import (
    DiameterGaussianDpEvent,
    ledger_epsilon,
    preview,
)
from skdpgen.releases import SampledGradients
from skdpgen.testing.common import make_plain
from skdpgen.transport import entropic_wasserstein
from skdpgen.transport.sinkhorn_losses import SinkhornGradient

DIGITS = dict(bounds=(0, 16), classes=range(10))


def make(**params):
    return make_plain(DPSinkhornGenerator(**{"random_state": 0, **params}))


# The loss.


@pytest.mark.parametrize("l1_weight", [0.0, 0.7])
@pytest.mark.parametrize("n_debias", [0, 2, 6])
def test_gradients_are_those_of_the_semi_debiased_loss(n_debias, l1_weight, monkeypatch):
    monkeypatch.setattr("skdpgen.transport.sinkhorn_losses._TOL", 1e-8)
    monkeypatch.setattr("skdpgen.transport.sinkhorn_losses._N_ITER", 3000)
    rng = torch.Generator().manual_seed(0)
    made, real = (torch.randn(size, 3, generator=rng).double() for size in (6 + n_debias, 9))
    codes, real_codes = torch.arange(6 + n_debias) % 2, torch.arange(9) % 2
    scale, weight = 1.7, 0.4

    def join(x, y):
        return torch.cat([scale * x, weight * torch.eye(2).double()[y]], dim=1)

    x = made.clone().requires_grad_()
    options = {"reg": 0.5, "l1_weight": l1_weight, "tol": 1e-8, "n_iter": 3000}
    joined = join(x, codes)
    cross = entropic_wasserstein(joined[:6], join(real, real_codes), **options)
    # Definition 4.3 of the paper.
    (2 * cross - entropic_wasserstein(joined[:6], joined[n_debias:], **options)).backward()
    loss = SinkhornGradient(0.5, l1_weight, weight, scale, balance=False)
    # Two empty slots.
    rows = torch.cat([real, torch.zeros(2, 3).double()])
    membership = torch.cat([torch.eye(2).double()[real_codes], torch.zeros(2, 2).double()])
    gradient = loss.apart(made, codes, n_debias)
    cross, active = loss.cross(made[:6], codes[:6], rows, membership)
    gradient[:6] += cross
    assert active.all()
    assert_allclose(gradient, x.grad, atol=1e-5)


def test_balanced_classes_are_drawn_to_their_own_class():
    """With far more records of one class, the other one's rows are not drawn to it."""
    made = torch.zeros(10, 2)
    codes = torch.tensor([0] * 5 + [1] * 5)
    rows = torch.tensor([[1.0, 0.0]] * 9 + [[0.0, 1.0]])
    membership = torch.eye(2)[[0] * 9 + [1]]
    loss = SinkhornGradient(0.01, 0.0, 15.0)
    gradient, active = loss.cross(made, codes, rows, membership)
    assert active.all()
    assert_allclose(gradient[:5], -np.array([[0.4, 0.0]] * 5), atol=2e-2)
    assert_allclose(gradient[5:], -np.array([[0.0, 0.4]] * 5), atol=2e-2)
    mixed, _ = SinkhornGradient(0.01, 0.0, 15.0, balance=False).cross(made, codes, rows, membership)
    assert (mixed[5:, 0] < -0.1).all()
    # Classes that were not drawn, or are not generated, are left out.
    gradient, active = loss.cross(made, codes, rows[:9], membership[:9])
    assert active[:, 0].tolist() == [True] * 5 + [False] * 5
    assert not gradient[5:].any()
    gradient, active = loss.cross(made[:5], codes[:5], rows[9:], membership[9:])
    assert not gradient.any()
    assert not active.any()


def test_signs_do_not_depend_on_chunks(monkeypatch):
    rng = torch.Generator().manual_seed(0)
    made, codes = torch.randn(12, 3, generator=rng), torch.zeros(12, dtype=int)
    loss = SinkhornGradient(0.5, 1.0, 0.0)
    whole = loss.apart(made, codes, 3)
    monkeypatch.setattr("skdpgen.transport.sinkhorn_losses._CHUNK", 1)
    assert_allclose(loss.apart(made, codes, 3), whole, atol=1e-6)


def test_classes_are_generated_by_their_shares():
    generator = torch.Generator().manual_seed(0)
    counts = np.mean(
        [
            np.bincount(_draw_stratified([0.5, 0.3, 0.2], 7, generator), minlength=3)
            for _ in range(400)
        ],
        axis=0,
    )
    assert_allclose(counts, [3.5, 2.1, 1.4], atol=0.15)
    exact = np.bincount(_draw_stratified([0.5, 0.3, 0.2], 10, generator), minlength=3)
    assert abs(exact - [5, 3, 2]).max() <= 1


# Learning.


@pytest.mark.parametrize(
    "params",
    [
        {},
        pytest.param({"release__perturb": "parameters"}, marks=pytest.mark.slow),
        pytest.param({"encoder": PrivatePCA(20)}, marks=pytest.mark.slow),
    ],
)
def test_digits_without_noise(digits, params):
    X, X_test, y, y_test = digits
    release = SampledGradients(n_steps=200)
    generator = make(**DIGITS, epsilon=math.inf, release=release, learning_rate=0.002)
    X_made, y_made = generator.set_params(**params).fit(X, y).sample(1000)
    classifier = LogisticRegression(max_iter=300).fit(X_made / 16, y_made)
    assert classifier.score(X_test / 16, y_test) > 0.75
    assert_allclose(generator.class_probabilities_, np.bincount(y) / len(y), atol=1e-9)


def test_the_curve_is_of_squared_gradients_without_the_energy_of_their_noise():
    X = np.random.RandomState(0).normal(size=(400, 3))
    release = SampledGradients(n_steps=80, batch_size=100, grad_clip=1e-3)
    # So small a radius is reached at every step.
    exact, noisy = (make(epsilon=e, release=release).fit(X).loss_curve_ for e in (math.inf, 50))
    assert_allclose(exact, 1, rtol=1e-3)
    # Six standard errors of the mean are 16; the energy of the noise is 320.
    assert np.std(noisy) > 20
    assert abs(np.mean(noisy) - 1) < 16


def test_averaging_is_the_memory_of_the_weights(monkeypatch):
    weights, averaging = [], 0.999

    def watched(training, loss, rate):
        step(training, loss, rate)
        vector = torch.nn.utils.parameters_to_vector(training._parameters)
        weights.append(vector.detach().clone())

    step = Descent.step
    monkeypatch.setattr(Descent, "step", watched)
    X = np.random.RandomState(0).normal(size=(60, 2))
    generator = make(release=SampledGradients(n_steps=12), learning_rate=0.01).fit(X)
    expected = weights[0]
    for n, current in enumerate(weights[1:], start=1):
        # Shorter at the start.
        memory = min(averaging, (1 + n) / (10 + n))
        expected = memory * expected + (1 - memory) * current
    found = torch.nn.utils.parameters_to_vector(generator._rows.parameters()).detach()
    assert_allclose(found, expected.cpu(), atol=1e-5)
    assert not torch.equal(found, weights[-1].cpu())


def test_debiasing_keeps_the_spread(monkeypatch):
    """Without the second term rows shrink to what is transported to them: averages."""
    X = np.random.RandomState(0).uniform(-0.5, 0.5, size=(500, 2))
    release = SampledGradients(n_steps=120, batch_size=100)
    generator = make(epsilon=math.inf, release=release, loss=SemiDebiasedSinkhorn(reg=0.3))
    spread = generator.fit(X).sample(4000).std()
    monkeypatch.setattr(SinkhornGradient, "apart", lambda self, made, *_: torch.zeros_like(made))
    assert spread > 1.3 * generator.fit(X).sample(4000).std()


@pytest.mark.parametrize(("name", "shape"), [("conv28", (1, 28, 28)), ("conv", (3, 16, 16))])
def test_images(name, shape):
    X = np.random.RandomState(0).uniform(size=(30, math.prod(shape)))
    generator = make(network=name, bounds=(0, 1), release=SampledGradients(n_steps=2))
    made = generator.fit(X).sample(2)
    assert made.shape == (2, math.prod(shape))
    assert 0 <= made.min() < made.max() <= 1
    with pytest.raises(ValueError, match="which needs bounds"):
        make(network=name).fit(X)


# Releases and plans.


@pytest.mark.parametrize("n_records", [20, 90])
@pytest.mark.parametrize("perturb", ["images", "parameters"])
def test_the_generated_batch_is_of_a_fixed_size(n_records, perturb, seen):
    """Whoever joins: shapes, and the noise, follow from parameters."""
    X = np.random.RandomState(0).normal(size=(n_records, 3))
    release = SampledGradients(n_steps=12, batch_size=5, n_generated=8, perturb=perturb)
    generator = make(release=release, loss=SemiDebiasedSinkhorn(n_debias=3)).fit(X)
    size = sum(p.numel() for p in generator._rows.network.parameters())
    shape = (8, 3) if perturb == "images" else (size,)
    assert {released.value.shape for _, released in seen} == {shape}
    assert {mechanism.shape for mechanism, _ in seen} == {shape}
    assert {released.std for _, released in seen} == {generator.sigma_}


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize("accountant", ["pld", "rdp"])
def test_the_noise_follows_from_the_number_of_steps(relation, accountant):
    release = SampledGradients(n_steps=300, batch_size=20, grad_clip=0.3)
    estimator = make(epsilon=3.0, release=release, relation=relation, accountant=accountant)
    planned = preview(estimator, 1000, 3, n_classes=2)
    counts, steps = planned.events
    multiplier = steps.event.event.noise_multiplier
    assert steps.event == PoissonSampledDpEvent(0.02, DiameterGaussianDpEvent(multiplier))
    assert planned.sigma == pytest.approx(2 * 0.3 * multiplier)
    options = {"accountant": accountant, "relation": relation}
    assert 0.99 * 3 < planned.epsilon <= 3.0
    more = SelfComposedDpEvent(steps.event, 310)
    assert ledger_epsilon([counts, more], 1e-5, **options) > 3.0


@pytest.mark.parametrize("perturb", ["images", "parameters"])
def test_gradients_are_released_in_noisy_components(perturb, digits, seen):
    release = SampledGradients(n_steps=4, perturb=perturb)
    generator = make(**DIGITS, encoder=PrivatePCA(5), epsilon=3.0, release=release)
    generator.fit(digits[0], digits[2])
    names = list(generator.privacy_.releases)
    assert names == ["second moments", "class counts", "clipped gradient"]
    assert [mechanism.name for mechanism, _ in seen] == [*names, *names[2:] * 3]
    assert 2.9 < generator.epsilon_ <= 3.0
    if perturb == "images":
        assert seen[-1][0].shape == (50, 5)
    # Nothing was learnt of what is outside the components' span, and nothing is there.
    made = generator._generate(torch.arange(50) % 10, torch.Generator())
    assert np.linalg.matrix_rank(made, tol=1e-3) == 5


@pytest.mark.parametrize(
    ("params", "match"),
    [
        (dict(release__grad_clip=0), "grad_clip"),
        (dict(release__n_generated=1), "at least 2"),
        (dict(loss__n_debias=-1), "n_debias"),
        (dict(release__n_generated=4, loss__n_debias=5), "n_debias"),
        (dict(loss__label_weight=math.inf), "label_weight"),
        (dict(encoder=PrivatePCA(n_components=0)), "n_components"),
        (dict(encoder=PrivatePCA(share=1.0)), "share must be in"),
        (
            dict(encoder=FrozenEstimator(PCA(2).fit(np.eye(3))), network="conv28", bounds=(0, 1)),
            "no encoder object",
        ),
    ],
)
def test_parameters_that_are_refused(params, match):
    with pytest.raises(ValueError, match=match):
        make().set_params(**params).fit(np.ones((20, 3)))


def test_sizes_of_batches_are_checked_before_a_schema_is_inferred():
    table = pd.DataFrame({"a": np.arange(40) % 3})
    release, loss = SampledGradients(n_generated=4), SemiDebiasedSinkhorn(n_debias=5)
    generator = make(epsilon=9.0, schema="private", release=release, loss=loss, random_state=None)
    with (
        PrivacyBudget(9.0, 1e-5, threshold_delta=5e-6) as budget,
        pytest.raises(ValueError, match="n_debias"),
    ):
        generator.fit(table)
    assert budget.spent == 0
