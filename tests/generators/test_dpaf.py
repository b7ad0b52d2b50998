"""DPAF: what it learns from noisy aggregates, what it releases and plans, and what it refuses."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
import torch
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from torch import nn

from skdpgen import DPAFGenerator, PrivacyBudget
from skdpgen.encoders import PrivatePCA
from skdpgen.learners.aggregates import (
    ClassMeans,
    RecordFeatures,
    SlowLayers,
    _keep_largest,
    fit_to_aggregates,
)
from skdpgen.learners.rows import RowNetwork
from skdpgen.mechanisms.aggregates import NoisyAggregate
from skdpgen.networks.discriminators import Discriminator, OwnDiscriminator, default_layers
from skdpgen.privacy import ForwardAggregateMechanism, preview
from skdpgen.releases import ForwardAggregates
from skdpgen.testing import privacy_checks, validate_network
from skdpgen.testing.common import make_plain

DIGITS = dict(bounds=(0, 16), classes=range(10), clip_norm=0.7)
ONE_STEP = ForwardAggregates(n_steps=1)


def make(**params):
    return make_plain(DPAFGenerator(**{"random_state": 0, **params}))


class Mixing(nn.Module):
    """Layers that would mix rows if they saw several."""

    def __init__(self, shape):
        super().__init__()
        self.layer = nn.Linear(math.prod(shape), 5)
        self.frozen = nn.Linear(5, 4).requires_grad_(False)

    def forward(self, rows):
        hidden = self.layer(rows.flatten(1))
        return self.frozen(hidden + 2 * hidden.mean(0))


def make_discriminator(image_shape=(1, 8, 8), layers=(1, 2, 0), seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        make = OwnDiscriminator if callable(layers) else Discriminator
        return make(math.prod(image_shape or (6,)), 3, layers, image_shape)


def batch(n=9, image_shape=(1, 8, 8), seed=0):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(n, math.prod(image_shape or (6,)), generator=generator)
    return rows, torch.eye(3)[torch.arange(n) % 3], generator


# Functions that the mechanism applies to records.


@pytest.mark.parametrize(
    ("image_shape", "layers"),
    [((1, 8, 8), (1, 2, 0)), ((3, 4, 4), (1, 1, 1)), (None, (1, 2, 0)), (None, Mixing)],
)
def test_products_are_those_of_single_rows(image_shape, layers):
    network = make_discriminator(image_shape, layers)
    function = RecordFeatures(network)
    rows, one_hot, generator = batch(image_shape=image_shape)
    features, pull = function(rows.double(), one_hot.double())
    cotangents = torch.randn(features.shape, generator=generator)
    expected = []
    for row, label, cotangent in zip(rows, one_hot, cotangents, strict=True):
        alone = network(network.look(row[None], label[None]))[0]
        parts = torch.autograd.grad(alone @ cotangent, list(network.trained.parameters()))
        expected.append(torch.cat([part.flatten() for part in parts]))
    products = pull(cotangents)
    assert products.shape == (9, function.n_products)
    assert_allclose(products, torch.stack(expected), rtol=1e-3, atol=1e-5)
    assert_allclose(features, network(network.look(rows, one_hot)).detach(), atol=1e-6)


@pytest.mark.catches(
    "networks.discriminators:_normalise", "maps.mean(2, keepdim=True)", "maps.mean(0)"
)
@pytest.mark.catches(
    "networks.discriminators:OwnDiscriminator._map",
    "vmap(lambda row: self.module(row[None])[0])",
    "self.module",
)
@pytest.mark.parametrize(
    ("image_shape", "layers"), [((1, 8, 8), (1, 2, 0)), (None, (1, 2, 0)), ((1, 8, 8), Mixing)]
)
def test_no_row_looks_at_another(image_shape, layers):
    function = RecordFeatures(make_discriminator(image_shape, layers))
    rows, one_hot, generator = batch(image_shape=image_shape)
    others = rows.clone()
    others[1:] = 10 * torch.randn(others[1:].shape, generator=generator)
    results = []
    for x in (rows, others):
        features, pull = function(x, one_hot)
        results.append((features[0], pull(torch.ones_like(features))[0]))
    for mine, with_others in zip(*results, strict=True):
        assert torch.equal(mine, with_others), "A row's features or products follow other rows."


class Unusable(Mixing):
    """Layers that draw, or keep something of a row."""

    def __init__(self, shape, fault):
        super().__init__(shape)
        self.fault = fault
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, rows):
        hidden = super().forward(rows)
        if self.fault == "draws":
            return torch.dropout(hidden, 0.5, True)
        if self.fault == "changes":
            self.seen += hidden[0].detach()
        if self.fault == "keeps":
            hidden, self.kept = hidden + getattr(self, "kept", 0.0), hidden
        return hidden * (math.nan if self.fault == "NaN" else 1)


OWN = {
    "draws": (partial(Unusable, fault="draws"), "random operation"),
    "changes": (partial(Unusable, fault="changes"), "RuntimeError"),
    "keeps": (partial(Unusable, fault="keeps"), "fails on made-up rows"),
    "NaN": (partial(Unusable, fault="NaN"), "NaN or infinity"),
    "no weights": (lambda shape: nn.Flatten(), "no weights to train"),
    "another size": (lambda shape: nn.Linear(3, 4), "cannot be multiplied"),
    "a module": (nn.Linear(5, 4), "a factory that makes a module"),
}


@pytest.mark.parametrize("name", OWN)
def test_layers_that_cannot_be_used_are_refused_for_nothing(name):
    layers, message = OWN[name]
    with PrivacyBudget(9.0, 1e-4) as budget, pytest.raises((TypeError, ValueError), match=message):
        DPAFGenerator(bounds=(0, 1), discriminator_layers=layers).fit(np.ones((50, 5)))
    assert budget.spent == 0
    assert len(validate_network(layers, 5)) == 1


def test_own_layers_are_trained():
    X, y = np.random.default_rng(0).random((60, 3, 8, 8)), np.arange(60) % 2
    params = dict(bounds=(0, 1), classes=[0, 1], discriminator_layers=Mixing)
    fitted = make(release=ForwardAggregates(n_steps=9, batch_size=20), **params).fit(X, y)
    assert fitted.sample(3)[0].shape == (3, 3, 8, 8)
    assert any("discriminator_layers" in text for text in fitted.privacy_.assumptions)
    with pytest.raises(ValueError, match="no conv1"):
        make(release=ForwardAggregates(budget_split=(0.2, 0.2, 0.6)), **params).fit(X, y)


def test_features_have_norm_one_at_most():
    network = make_discriminator()
    rows, one_hot, _ = batch()
    for scale in (0.0, 1e-6, 1.0, 1e6):
        norms = network(network.look(scale * rows, one_hot)).norm(dim=1)
        assert norms.max() <= 1 + 1e-6
    assert norms.min() > 0.99
    maps = network(network.look(rows, one_hot)).unflatten(1, (-1, 16))
    assert_allclose(maps.sum(2).detach(), np.zeros((9, 64)), atol=1e-5)


def test_labels_are_seen_at_the_first_layer():
    network = make_discriminator()
    rows, one_hot, _ = batch()
    seen = [network.look(rows, labels) for labels in (one_hot, one_hot.roll(1, 1))]
    assert (seen[0] - seen[1]).abs().max() > 1e-3


def test_largest_numbers_are_kept():
    products = torch.tensor([[3.0, -1.0, 2.0, -4.0, 0.5], [1.0, 5.0, -3.0, 2.0, 0.1]])
    assert _keep_largest(products, 1.0) is products
    kept = _keep_largest(products, 0.6)
    assert kept.tolist() == [[3.0, 0, 2.0, -4.0, 0], [0, 5.0, -3.0, 2.0, 0]]


# Post-processing of releases.


def test_means_are_sums_over_expected_records():
    """Never over the noisy number of those that joined."""
    known = ClassMeans(2, 3, 10.0, 1.0, "cpu")
    sums = np.arange(6.0).reshape(2, 3)
    for counts in ([900.0, 100.0], [8.0, 2.0]):
        known.update(NoisyAggregate(sums, np.array(counts), 4.0, 1e6))
    # Counts are nothing but noise here: the classes stay as likely.
    assert_allclose(known.shares.mean, [0.5, 0.5], atol=1e-3)
    assert_allclose(known.means, sums / 5, rtol=1e-2)
    assert_allclose(known.std, np.full((2, 1), 4 / math.sqrt(2) / 5), rtol=1e-2)
    for _ in range(20):
        known.update(NoisyAggregate(sums, np.array([8.0, 2.0]), 4.0, 0.1))
    assert_allclose(known.shares.mean, [0.8, 0.2], atol=0.05)
    recent = ClassMeans(2, 3, 10.0, 0.5, "cpu")
    for factor in (0.0, 0.0, 1.0):
        recent.update(NoisyAggregate(factor * sums, np.array([5.0, 5.0]), 4.0, 0.1))
    assert_allclose(recent.means, sums / 5 / 1.75, rtol=1e-2)


def test_cotangents_are_gradients_of_the_mean_over_records():
    known = ClassMeans(2, 3, 10.0, 1.0, "cpu")
    sums = np.arange(6.0).reshape(2, 3)
    aggregate = NoisyAggregate(sums, np.array([5.0, 5.0]), 1.0, 1.0)
    found = known.cotangent(lambda means: means.square().sum(), aggregate)
    assert_allclose(found, 2 * sums / 5 * 2, rtol=1e-5)


def test_slow_layers_wait_for_several_releases():
    network = make_discriminator()
    before = nn.utils.parameters_to_vector(network.trained.parameters()).detach().clone()
    slow = SlowLayers(network, 0.1, 10.0, every=3)
    products = np.where(np.arange(len(before)) % 2, 1.0, -1.0)
    calls = []

    def other():
        calls.append(1)
        return 0.0

    for i in range(6):
        slow.update(NoisyAggregate(None, None, 1.0, 1.0, products, 1.0), other)
        now = nn.utils.parameters_to_vector(network.trained.parameters()).detach()
        assert torch.equal(now, before) == (i < 2)
    assert len(calls) == 2
    assert ((now - before).sign().numpy() == -products).all()


# Learning.


@pytest.mark.slow
@pytest.mark.parametrize("split", [(0, 0, 1), (0, 0.3, 0.7)])
def test_digits_without_noise(digits, split):
    X, X_test, y, y_test = digits
    release = ForwardAggregates(n_steps=75, batch_size=300, budget_split=split)
    generator = make(**DIGITS, epsilon=math.inf, release=release, learning_rate=0.005)
    X_made, y_made = generator.fit(X, y).sample(1000)
    classifier = LogisticRegression(max_iter=300).fit(X_made / 16, y_made)
    assert classifier.score(X_test / 16, y_test) > 0.75
    assert_allclose(generator.class_probabilities_, np.bincount(y) / len(y), atol=0.02)
    assert generator.loss_curve_[-1] < 0.2 * generator.loss_curve_[0]


@pytest.mark.parametrize("objective", ["matching", "rows"])
def test_the_head_learns_to_tell_what_is_real(objective):
    """A generator that cannot learn is found out."""

    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.idle = nn.Parameter(torch.zeros(1))

        def forward(self, codes):
            return torch.ones(len(codes), 6) + 0 * self.idle

    network, generator = make_discriminator(None, (1, 1, 0)), torch.Generator().manual_seed(0)
    rows, features = RowNetwork(Fixed(), 3, 2, torch.ones(6)), RecordFeatures(network)
    real = torch.randn(3, network.n_features, generator=generator)
    real /= real.norm(dim=1, keepdim=True)

    def release(mechanism):
        products = np.zeros(features.n_products)
        return NoisyAggregate(real.numpy() * 20, np.full(3, 20.0), 1e-6, 0.1, products, 1e-6)

    fit_to_aggregates(
        rows,
        features,
        release,
        lambda cotangent: None,
        n_steps=40,
        batch_size=60.0,
        grad_clip=1.0,
        n_generated=12,
        n_updates=2,
        asymmetry=1000,
        objective=objective,
        learning_rate=0.005,
        generator=generator,
    )
    one_hot = torch.eye(3)
    with torch.no_grad():
        made = network(network.look(torch.ones(3, 6), one_hot))
        verdicts = [network.judge(means, one_hot) for means in (real, made)]
    assert verdicts[0].min() > 1
    assert verdicts[1].max() < -1


def test_rows_are_images_if_they_can_be_unless_they_are_said_to_be_none():
    X = np.random.RandomState(0).uniform(size=(60, 64))
    for shape, are_images in (("auto", True), ((1, 8, 8), True), (None, False)):
        generator = make(bounds=(0, 1), release=ONE_STEP, image_shape=shape).fit(X)
        layers = {type(layer) for layer in generator._rows.network.modules()}
        assert (nn.Unflatten in layers) == are_images, shape


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((1, 28, 28), 7), ((3, 32, 32), 4), ((3, 64, 64), 4), ((3, 128, 128), 8)],
)
def test_maps_of_images_are_small(shape, expected):
    network = Discriminator(math.prod(shape), 1, default_layers(shape), shape)
    assert network.n_features == 64 * expected**2


# Releases and plans.


def test_events():
    X, y = np.random.RandomState(0).normal(size=(400, 3)), np.arange(400) % 2
    release = ForwardAggregates(n_steps=12, batch_size=20, n_pretrain=5)
    paid = clone(release).set_params(budget_split=(0.2, 0.3, 0.5))
    generator = make(classes=[0, 1], release=paid).fit(X, y)
    certificate = generator.privacy_
    first, second = certificate.events
    assert certificate.releases == ("classifier's aggregate", "discriminator's aggregate")
    assert (first.count, second.count) == (5, 12)
    assert generator.n_iter_ == 12
    assert first.event.sampling_probability == second.event.sampling_probability == 20 / 400
    # One event for both sums of a step; shares are of Σ s⁻² over all steps.
    spent = [e.count / e.event.event.noise_multiplier**2 for e in (first, second)]
    assert spent[0] / sum(spent) == pytest.approx(0.2)
    assert second.event == PoissonSampledDpEvent(0.05, GaussianDpEvent(generator.sigma_))
    planned = preview(make(classes=[0, 1], release=paid), 400, 3, n_classes=2)
    assert planned.events == (first, second)
    unpaid = make(classes=[0, 1], release=release).fit(X, y)
    assert unpaid.privacy_.releases == ("discriminator's aggregate",)


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_two_sums_of_a_step_stack_to_its_event(relation, seen):
    X = np.random.RandomState(0).normal(size=(400, 3))
    release = ForwardAggregates(n_steps=4, batch_size=20, budget_split=(0, 0.3, 0.7))
    (event,) = make(release=release, relation=relation).fit(X).privacy_.events
    multiplier = event.event.event.noise_multiplier
    assert len(seen) == event.count == 4
    for mechanism, released in seen:
        assert mechanism.share == pytest.approx(0.7)
        features = released.features_std * math.sqrt(1 - mechanism.count_weight**2)
        products = released.products_std / mechanism.grad_clip
        assert (features**-2 + products**-2) ** -0.5 == pytest.approx(multiplier)


def test_which_layers_are_trained(monkeypatch):
    """conv1 is transferred and frozen; conv2* moves once in `asymmetry` steps, if it is paid."""
    weights = []

    class Watched(Discriminator):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            weights.append(self)

    monkeypatch.setattr("skdpgen.generators._dpaf.Discriminator", Watched)
    moved, function = [], RecordFeatures.__call__

    def watched(self, rows, membership):
        parts = (self.network.frozen, self.network.trained, self.network.head)
        # Records: neither generated rows, nor the one of zeros that comes first.
        if rows.dtype == torch.float64 and len(rows) > 1:
            vectors = (nn.utils.parameters_to_vector(p.parameters()) for p in parts if len(p))
            moved.append([vector.clone() for vector in vectors])
        return function(self, rows, membership)

    monkeypatch.setattr(RecordFeatures, "__call__", watched)
    X, y = np.random.RandomState(0).normal(size=(50, 3)), np.arange(50) % 2
    release = ForwardAggregates(7, n_pretrain=2, budget_split=(0.2, 0.3, 0.5), asymmetry=3)
    generator = make(classes=[0, 1], release=release).fit(X, y)
    network, classifier = weights
    transferred = network.frozen[0].weight
    assert torch.equal(transferred, classifier.trained[0].weight)
    later = moved[2:]
    assert all(torch.equal(step[0], later[0][0]) for step in later)
    steps = [not torch.equal(a[1], b[1]) for a, b in itertools.pairwise(later)]
    assert steps == [False, False, True, False, False, True]
    moved.clear()
    generator.set_params(release__budget_split=(0, 0, 1)).fit(X, y)
    assert all(torch.equal(step[1], moved[0][1]) for step in moved)


@pytest.mark.parametrize(
    "check",
    [
        "check_epsilon",
        "check_ledger",
        "check_noise",
        "check_post_processing",
        "check_no_row_in_pickle",
    ],
)
def test_the_first_phase_is_as_private(check):
    """The checks of all estimators; those that fit without classes cannot have a first phase."""
    release = ForwardAggregates(n_pretrain=3, budget_split=(0.3, 0.3, 0.4))
    getattr(privacy_checks, check)(make(random_state=None, release=release))


@pytest.mark.parametrize(
    ("params", "match"),
    [
        (dict(release__budget_split=(0.5, 0.5, 0.5)), "sum to 1"),
        (dict(release__budget_split=(0.5, 0.5)), "sum to 1"),
        (dict(release__budget_split=(-0.5, 0.5, 1.0)), "sum to 1"),
        (dict(release__budget_split=(0.0, 1.0, 0.0)), "the last one positive"),
        (dict(release__budget_split=(0.2, 0.2, 0.6)), "at least two classes"),
        (
            dict(image_shape=(1, 8, 8), bounds=(0, 1), encoder=None),
            "does not fit records of X, of 16 features",
        ),
        (
            dict(discriminator_layers=(1, 1, 1), image_shape=None, bounds=(0, 1)),
            "Only images",
        ),
        (dict(discriminator_layers=(0, 1, 0)), "layers"),
        (dict(discriminator_layers=(1, 1, 1)), "Only images"),
        (dict(release__grad_clip=0), "grad_clip"),
        (dict(release__keep=1.5), "keep"),
        (dict(encoder="dp-pca"), "encoder"),
        (dict(encoder=PrivatePCA(2)), "encoder"),
    ],
)
def test_parameters_that_are_refused(params, match):
    generator = make().set_params(**params)
    with pytest.raises(ValueError, match=match):
        generator.fit(np.ones((20, 16)))
    # Before anything is released.
    with pytest.raises(ValueError, match=match):
        preview(generator, 20, 16)


def test_fitted_attributes_are_those_that_are_documented():
    """A new attribute could be a leak: whoever adds one says here that it is post-processing."""
    X, y = np.random.RandomState(0).normal(size=(40, 3)), np.arange(40) % 2
    fitted = make(classes=[0, 1], release=ForwardAggregates(n_steps=3)).fit(X, y)
    public = {"n_samples_", "n_features_in_", "classes_", "privacy_"}
    declared = {"bounds_", "clip_norm_", "encoder_", "release_"}
    released = {"class_probabilities_", "n_iter_", "loss_curve_", "_rows"}
    known = public | declared | released | {"_format"}
    assert vars(fitted).keys() - fitted.get_params().keys() == known
    assert ForwardAggregateMechanism.name != fitted.privacy_.releases[0]
