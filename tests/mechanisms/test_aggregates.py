"""Forward aggregates: what bounds both sums, who sees what, and what the two cost together."""

import math

import numpy as np
import pytest
import torch
from dp_accounting import GaussianDpEvent, NonPrivateDpEvent, PoissonSampledDpEvent

from skdpgen.mechanisms.sampled import count_slots
from skdpgen.privacy import (
    ForwardAggregateMechanism,
    NoiseSource,
    PlanError,
    PullingFunction,
    SlicedGaussianDpEvent,
    ledger_delta,
)

from .common import Drawn, Rows, assert_variance

N_RECORDS, RATE, N_CLASSES = 40, 0.2, 2
N_SLOTS = count_slots(N_RECORDS, RATE)
W = ForwardAggregateMechanism.count_weight
LABELS = np.arange(N_RECORDS) % N_CLASSES
EXTREMES = ([1, 0, 0], [-1, 0, 0], [0, 1e6, 0], [0, 0, -1e-7], [0, 0, 0], [0.5, -0.5, 0.7])


def records(seed=0):
    return np.random.default_rng(seed).normal(size=(N_RECORDS, 3)) / 2


def source(X=None, labels=LABELS, null=False):
    rows = records() if X is None else np.asarray(X, dtype=float)
    rows = rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    return Rows(rows, np.where(null, -1, labels), N_CLASSES)


def poisson(multiplier=0.0, rate=RATE):
    return PoissonSampledDpEvent(rate, GaussianDpEvent(multiplier))


def squares(scale=1.0):
    """A small network of one weight: features (θ·x)², at θ = `scale`, and their derivative."""

    def function(rows, membership):
        return (scale * rows) ** 2, lambda cotangents: 2 * scale * rows**2 * cotangents

    return function


def make(function=None, cotangent=None, **params):
    if cotangent is None:
        cotangent = lambda aggregate: torch.as_tensor(np.sign(aggregate.features))  # noqa: E731
    params = {"grad_clip": 0.5, "share": 0.6, "n_products": 3, **params}
    return ForwardAggregateMechanism(
        PullingFunction(function or squares()), 3, N_CLASSES, cotangent=cotangent, **params
    )


def run(mechanism, rows, noise, multiplier=0.0, relation="zero_out"):
    return mechanism.run(rows, poisson(multiplier), relation=relation, noise=noise)


def stages(mechanism, rows, noise, told, relation="zero_out"):
    """Measure both sums at a given first release, in the units of the noise."""
    first = mechanism.query(rows, poisson(1.0), relation, noise)
    second = first.then(told)
    return np.concatenate([m.exact.ravel() / m.scale for m in (first, second)])


# Releases.


def test_sums_are_those_of_the_records_that_joined():
    x, drawn = records(), [3, 4, 8, 21]
    v = torch.tensor([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]], dtype=torch.float64)
    mechanism = make(squares(0.9), lambda aggregate: v, grad_clip=0.7)
    released = run(mechanism, source(x), Drawn(drawn))
    rows = x[drawn] / np.maximum(1, np.linalg.norm(x[drawn], axis=1, keepdims=True))
    features = (0.9 * rows) ** 2
    features /= np.maximum(1, np.linalg.norm(features, axis=1, keepdims=True))
    one_hot = np.eye(N_CLASSES)[LABELS[drawn]]
    np.testing.assert_allclose(released.features, one_hot.T @ features, atol=1e-4)
    np.testing.assert_allclose(released.counts, one_hot.sum(0), rtol=1e-4)
    products = 1.8 * rows**2 * v.numpy()[LABELS[drawn]]
    norms = np.linalg.norm(products, axis=1, keepdims=True)
    assert (norms > 0.7).any()
    assert (norms < 0.7).any()
    np.testing.assert_allclose(
        released.products, (products * np.minimum(1, 0.7 / norms)).sum(0), atol=1e-4
    )


def test_without_products():
    mechanism = ForwardAggregateMechanism(PullingFunction(squares()), 3, N_CLASSES)
    released = run(mechanism, source(), Drawn([1, 2]), 2.0)
    assert released.products is released.products_std is None
    assert released.features_std == pytest.approx(2.0 / math.sqrt(1 - W**2))


# Bounds.


@pytest.mark.catches(
    "mechanisms.aggregates:ForwardAggregateMechanism._join", "math.sqrt(self.share)", "1.0"
)
@pytest.mark.catches(
    "mechanisms.sampled:bounded_rows",
    "weight / norms.clamp(min=radius)",
    "weight / radius + 0 * norms",
)
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize("share", [0.1, 0.6, 0.9])
@pytest.mark.parametrize("scale", [0.3, 30.0])
def test_both_sums_together_move_by_at_most_what_is_stated(relation, share, scale):
    """At the same first release: what follows from it is public."""
    mechanism = make(squares(scale), share=share, grad_clip=1e-3 if scale < 1 else 50.0)
    told = np.random.default_rng(0).normal(size=(N_CLASSES, 4))
    exact = []
    for extreme in EXTREMES:
        for label in range(N_CLASSES):
            X, y = records(), LABELS.copy()
            X[0], y[0] = extreme, label
            exact.append(stages(mechanism, source(X, y), Drawn([0, 5, 9]), told, relation))
    if relation == "zero_out":
        null = np.arange(N_RECORDS) == 0
        absent = stages(mechanism, source(null=null), Drawn([0, 5, 9]), told, relation)
        moved = [np.linalg.norm(e - absent) for e in exact]
    else:
        moved = [np.linalg.norm(a - b) for a in exact for b in exact]
    stated = mechanism.sensitivity(relation)
    assert max(moved) <= stated, f"The two sums move by {max(moved)}, over {stated}."
    assert scale < 1 or max(moved) > 0.5 * stated


@pytest.mark.catches(
    "mechanisms.aggregates:ForwardAggregateMechanism.query_batch",
    "math.sqrt(1 - self.share)",
    "1.0",
)
def test_a_record_adds_one_vector_of_norm_one_to_both_sums():
    """The bound is met by features of norm 1, and a product that is clipped."""

    def function(rows, membership):
        return rows, lambda cotangents: 1e3 * cotangents

    mechanism = make(function, lambda aggregate: torch.ones(N_CLASSES, 3), share=0.3)
    X = np.tile([1.0, 0.0, 0.0], (N_RECORDS, 1))
    told = np.zeros((N_CLASSES, 4))
    one, none = (stages(mechanism, source(X), Drawn(drawn), told) for drawn in ([4], []))
    assert np.linalg.norm(one - none) == pytest.approx(1.0, rel=1e-4)
    split = np.linalg.norm((one - none)[:8]), np.linalg.norm((one - none)[8:])
    np.testing.assert_allclose(split, [math.sqrt(0.3), math.sqrt(0.7)], rtol=1e-4)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_records_that_are_not_finite_add_nothing(bad):
    def function(rows, membership):
        return rows * bad, lambda cotangents: rows * bad

    released = run(make(function), source(), Drawn([1, 2]))
    assert not released.features.any()
    assert not released.products.any()
    assert released.counts.sum() == pytest.approx(2, rel=1e-4)


# Who sees what.


@pytest.mark.catches(
    "mechanisms.aggregates:ForwardAggregateMechanism.query_batch",
    "self._read(noisy, std)",
    "self._read(sums.cpu().numpy() / scale, std)",
)
@pytest.mark.catches(
    "mechanisms.aggregates:ForwardAggregateMechanism.query_batch",
    "self.cotangent(aggregate)",
    "self.cotangent(self._read(sums.cpu().numpy() / scale, std))",
)
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_cotangents_are_taken_at_the_noisy_sums(relation):
    seen = []

    def watched(aggregate):
        seen.append(aggregate)
        return torch.zeros(N_CLASSES, 3)

    mechanism, residuals = make(cotangent=watched), []
    exact = run(mechanism, source(), Drawn([1, 2, 3]))
    for seed in range(60):
        released = run(mechanism, source(), Drawn([1, 2, 3], seed), 2.0, relation)
        np.testing.assert_array_equal(seen[-1].features, released.features)
        np.testing.assert_array_equal(seen[-1].counts, released.counts)
        assert seen[-1].products is None
        residuals.append((released.features - exact.features) / released.features_std)
    # Else the cotangent sees less noise than is stated.
    assert_variance(residuals, 1.0)


def test_noise_of_the_two_sums_stacks_to_that_of_the_event():
    mechanism = make(share=0.3, grad_clip=0.25)
    # A record of norm 1 is left out, or replaced by an opposite one.
    for relation in ("zero_out", "replace_one"):
        released = run(mechanism, source(), Drawn([1]), 1.7, relation)
        # Over what a record can add to each, alone.
        first = released.features_std * math.sqrt(1 - W**2)
        assert first == pytest.approx(released.counts_std * W)
        second = released.products_std / 0.25
        assert (first**-2 + second**-2) ** -0.5 == pytest.approx(1.7)


@pytest.mark.parametrize("n_drawn", [0, 1, 5, N_SLOTS, N_SLOTS + 1, N_RECORDS])
def test_nothing_tells_how_many_joined(n_drawn):
    shapes = []

    def watched(rows, membership):
        shapes.append((tuple(rows.shape), tuple(membership.shape)))
        return squares()(rows, membership)

    mechanism = make(watched)
    exact, noisy = (run(mechanism, source(), Drawn(range(n_drawn)), s) for s in (0.0, 3.0))
    # Before the first step, a public row of zeros.
    step = (N_SLOTS, 3), (N_SLOTS, N_CLASSES)
    assert shapes == [((1, 3), (1, N_CLASSES)), step, step]
    assert exact.counts.sum() == pytest.approx(n_drawn if n_drawn <= N_SLOTS else 0, rel=1e-4)
    assert (noisy.features != exact.features).all()
    assert (noisy.products != exact.products).all()


def test_empty_slots_and_null_records_add_nothing():
    null = np.arange(N_RECORDS) == 2
    without = run(make(), source(), Drawn([1]))
    with_null = run(make(), source(null=null), Drawn([1, 2]))
    for name in ("features", "counts", "products"):
        np.testing.assert_array_equal(getattr(without, name), getattr(with_null, name))


def test_chunks_do_not_change_sums(monkeypatch):
    whole = run(make(), source(), Drawn([1, 7, 12, 30]))
    monkeypatch.setattr("skdpgen.mechanisms.aggregates._CHUNK", 3)
    parts = run(make(), source(), Drawn([1, 7, 12, 30]))
    np.testing.assert_array_equal(whole.features, parts.features)
    np.testing.assert_array_equal(whole.products, parts.products)


@pytest.mark.catches(
    "data.record_functions:PullingFunction.with_products",
    "_by_record(result, pull_alone, (cotangents, *blocks), n_products)",
    "cotangents.new_zeros(len(cotangents), n_products) if result is None else result",
)
def test_a_record_for_which_the_function_fails_adds_no_features_or_products_of_its_own_only():
    """Terms of others are the same to the bit, whether it fails or is not drawn."""

    def failing(where):
        def function(rows, membership):
            bad = rows.abs().max() > 0.9
            if bad and where == "features":
                raise ValueError("Smith")
            features, pull = squares()(rows, membership)

            def fail(cotangents):
                raise ValueError("Smith")

            return features, fail if bad and where == "pull" else pull

        return function

    X = records() / 10
    X[1] = [1.0, 0.0, 0.0]
    drawn = Drawn(range(10), 3)
    null = np.arange(N_RECORDS) == 1
    for where in ("features", "pull"):
        released = run(make(failing(where)), source(X), Drawn(range(10), 3))
        without = run(make(failing(where)), source(X, null=null), drawn)
        if where == "features":
            assert (released.features == without.features).all()
            assert released.counts[LABELS[1]] == pytest.approx(
                without.counts[LABELS[1]] + 1, rel=1e-4
            )
        else:
            assert (released.features != without.features).any()
        assert (released.products == without.products).all()
        assert released.products.any()
        drawn = Drawn(range(10), 3)


def test_refusals():
    for event in (GaussianDpEvent(1.0), poisson(1.0), NonPrivateDpEvent()):
        make().check(event)
    with pytest.raises(PlanError, match="has Gaussian noise"):
        make().check(PoissonSampledDpEvent(0.1, SlicedGaussianDpEvent(1.0, 3, 3)))
    mechanism = ForwardAggregateMechanism(PullingFunction(squares()), 3, 5)
    with pytest.raises(PlanError, match="is for 5 classes"):
        run(mechanism, source(), Drawn([1]))
    for share in (0, 1, 1.5, -0.1):
        with pytest.raises(ValueError, match="share must be"):
            make(share=share)
    with pytest.raises(ValueError, match="share must be"):
        ForwardAggregateMechanism(PullingFunction(squares()), 3, share=0.5)
    with pytest.raises(ValueError, match="grad_clip must be"):
        make(grad_clip=0)


# Costs.


@pytest.mark.slow
def test_a_step_costs_what_one_event_costs():
    """The loss of the worst record, simulated: its products turn with the first noisy sum."""
    n_runs, s, rate, share = 3000, 0.9, 0.3, 0.5

    def function(rows, membership):
        return rows[:, :1], lambda cotangents: cotangents

    mechanism = ForwardAggregateMechanism(
        PullingFunction(function),
        1,
        cotangent=lambda aggregate: torch.as_tensor(np.sign(aggregate.features)),
        n_products=1,
        grad_clip=1.0,
        share=share,
    )
    alone = Rows([[1.0]])
    coins = np.random.default_rng(0).random(n_runs) < rate
    losses, noise = [], NoiseSource(0)
    for joins in coins:
        noise.poisson_sample = lambda n, q, joins=joins: np.arange(int(joins))
        released = mechanism.run(alone, poisson(s, rate), relation="zero_out", noise=noise)
        first = np.array([released.features[0, 0] * math.sqrt(1 - W**2), released.counts[0] * W])
        values = np.append(math.sqrt(share) * first, math.sqrt(1 - share) * released.products)
        added = np.append(
            math.sqrt(share) * np.array([math.sqrt(1 - W**2), W]),
            math.sqrt(1 - share) * np.sign(released.features[0, 0]),
        )
        assert np.linalg.norm(added) == pytest.approx(1)
        ratio = math.exp((values @ added - 0.5) / s**2)
        losses.append(math.log(1 - rate + rate * ratio))
    for epsilon in (0.1, 0.4):
        found = np.maximum(0, 1 - np.exp(epsilon - np.array(losses))).mean()
        assert found == pytest.approx(ledger_delta([poisson(s, rate)], epsilon), abs=0.015)
    # As two sampled events it would be certified as less than it is.
    two = [poisson(s / math.sqrt(share), rate), poisson(s / math.sqrt(1 - share), rate)]
    assert ledger_delta(two, 0.4) < 0.9 * ledger_delta([poisson(s, rate)], 0.4)
