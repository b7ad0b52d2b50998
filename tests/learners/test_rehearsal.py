# SPDX-License-Identifier: BSD-3-Clause
"""Networks and other objects of users are tried before a release, and change nothing."""

import random

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.decomposition import KernelPCA
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer
from torch import nn

from skdpgen import (
    Category,
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWDDomainAdapter,
    DPSWFlowSampler,
    LDPEntropicGAN,
    Number,
    PrivacyBudget,
    Schema,
)
from skdpgen.adaptation import _domain_adapter
from skdpgen.generators import _network
from skdpgen.networks.generators import build, rehearsing
from skdpgen.privacy import Curator, preview
from skdpgen.releases import ForwardAggregates, SampledGradients, SlicedRows

pytestmark = pytest.mark.filterwarnings("ignore")

X = np.random.RandomState(0).uniform(size=(60, 4))
Y = np.arange(60) % 2
TABLE = pd.DataFrame({"age": X[:, 0], "ward": np.where(Y, "A", "B")})
SCHEMA = Schema({"age": Number(0, 1), "ward": Category(["A", "B"])})
TERMS = {"epsilon": 5.0, "delta": 1e-5, "random_state": 0}
BOX = {**TERMS, "bounds": (0, 1)}
TWO = [0, 1]


def _adapt(cls, **params):
    return lambda network: cls(**TERMS, network=network, n_steps=2, **params).fit(X, Y, X_target=X)


def _generate(cls, *data, **params):
    return lambda network: cls(network=network, **params).fit(*data)


FITS = {
    "sketch": _generate(DPSlicedWassersteinGenerator, X, Y, **BOX, n_steps=2, classes=TWO),
    "inferred": _generate(DPSlicedWassersteinGenerator, X, **TERMS, n_steps=2),
    "rows": _generate(DPSlicedWassersteinGenerator, X, **BOX, release=SlicedRows(n_steps=2)),
    "table": _generate(DPSlicedWassersteinGenerator, TABLE, **TERMS, n_steps=2, schema=SCHEMA),
    "inferred table": _generate(DPSlicedWassersteinGenerator, TABLE, **TERMS, n_steps=2),
    "images": _generate(DPSinkhornGenerator, X, **BOX, release=SampledGradients(n_steps=2)),
    "parameters": _generate(
        DPSinkhornGenerator, X, **BOX, release=SampledGradients(n_steps=2, perturb="parameters")
    ),
    "aggregates": _generate(DPAFGenerator, X, **BOX, release=ForwardAggregates(n_steps=2)),
    "local": _generate(LDPEntropicGAN, X, **BOX, n_steps=2),
    "domains": _adapt(DPSWDDomainAdapter),
}


def _fit(fit):
    """Return a fit that must not be refused."""
    try:
        return fit()
    except ValueError as error:
        raise AssertionError(str(error)) from None


class Network(nn.Module):
    """A linear layer, and what a function makes of its output."""

    def __init__(self, n_inputs, n_outputs, change):
        super().__init__()
        self.layer, self.change = nn.Linear(n_inputs, n_outputs or 3), change

    def forward(self, rows):
        return self.change(self, self.layer(rows))


def _fail_in(training):
    def change(network, outputs):
        if network.training == training:
            raise KeyError("own words")
        return outputs

    return change


def _change_in_place(network, outputs):
    squared = outputs.sigmoid() ** 2
    other = outputs.sigmoid()
    result = other * other
    other.add_(1)
    return result + squared


FAULTS = {
    "detached": (lambda network, rows: rows.detach(), "without a gradient"),
    "an array": (lambda network, rows: rows.detach().numpy(), "must return (a|one) tensor"),
    "float64": (lambda network, rows: rows.double(), "torch.float64"),
    "NaN": (lambda network, rows: rows * torch.nan, "NaN or infinity"),
    "NaN in gradients": (lambda network, rows: rows + (rows * 0).sqrt(), "gradient of NaN"),
    "fails in training": (_fail_in(True), "KeyError: 'own words'"),
    "fails in evaluation": (_fail_in(False), "own words"),
    "another batch": (
        lambda network, rows: rows.view(2, -1, rows.shape[1])[0],
        "needed|of shape|not to rows",
    ),
    "NaN in evaluation": (
        lambda network, rows: rows if network.training else rows * torch.nan,
        "NaN or infinity, in evaluation mode",
    ),
    "few rows in evaluation": (
        lambda network, rows: rows if network.training or len(rows) < 4 else rows[:3],
        "maps|not to rows",
    ),
    "one row is none": (lambda network, rows: rows.squeeze(0), "maps 1 rows, in evaluation"),
    "in place": (_change_in_place, "modified by an inplace operation"),
    "no weights": (lambda network, rows: torch.ones_like(rows).requires_grad_() * 1, "depend on"),
}


def _forbid_releases(monkeypatch):
    def release(curator, mechanism):
        raise AssertionError("A release was made.")

    monkeypatch.setattr(Curator, "release", release)


# All faults of one estimator, and two faults of all others, are tried by default.
CASES = [
    pytest.param(name, fault, marks=[] if quick else pytest.mark.slow)
    for name in FITS
    for fault in FAULTS
    for quick in [name == "sketch" or fault in ("detached", "fails in evaluation")]
]


@pytest.mark.catches(
    "learners.rehearsal:try_generator",
    "isinstance(network, str) and isinstance(optimizer, str) and device.type == 'cpu'",
    "device.type == 'cpu'",
    param="sketch-detached",
)
@pytest.mark.parametrize(("name", "fault"), CASES)
def test_a_network_that_fails_is_refused_before_a_release(monkeypatch, name, fault):
    _forbid_releases(monkeypatch)
    change, match = FAULTS[fault]
    with pytest.raises((TypeError, ValueError), match=match) as caught:
        FITS[name](lambda n_inputs, n_outputs: Network(n_inputs, n_outputs, change))
    assert str(caught.value).startswith("network")


@pytest.mark.parametrize("name", ["sketch", "inferred table", "domains"])
def test_a_refused_network_leaves_a_budget_untouched(name):
    def factory(n_inputs, n_outputs):
        return Network(n_inputs, n_outputs, FAULTS["detached"][0])

    budget = PrivacyBudget(50.0, 1e-4, threshold_delta=1e-5)
    fit = {
        "sketch": lambda: DPSlicedWassersteinGenerator(5.0, bounds=(0, 1), network=factory).fit(X),
        "inferred table": lambda: DPSlicedWassersteinGenerator(5.0, network=factory).fit(TABLE),
        "domains": lambda: DPSWDDomainAdapter(5.0, network=factory).fit(X, Y, X_target=X),
    }[name]
    with budget, pytest.raises(ValueError, match=r"^network"):
        fit()
    assert budget.spent == 0


@pytest.mark.parametrize(
    ("network", "match"),
    [
        (nn.Linear(3, 3), "must be a factory, and not a module"),
        (lambda n_inputs, n_outputs: 3, "must return a torch module"),
        (lambda: nn.Linear(2, 2), "takes 0 positional arguments"),
        (lambda n_inputs, n_outputs: {}["own words"], "own words"),
    ],
)
@pytest.mark.parametrize("name", FITS)
def test_objects_that_are_no_factories_are_refused_by_their_own_errors(
    monkeypatch, name, network, match
):
    _forbid_releases(monkeypatch)
    with pytest.raises((TypeError, ValueError), match=match) as caught:
        FITS[name](network)
    assert str(caught.value).startswith("network")


@pytest.mark.parametrize("name", [n for n in FITS if n != "domains"])
def test_a_network_without_weights_is_refused(monkeypatch, name):
    _forbid_releases(monkeypatch)
    with pytest.raises(ValueError, match=r"^network has no weights to train"):
        FITS[name](
            lambda n_inputs, n_outputs: nn.Linear(n_inputs, n_outputs or 3).requires_grad_(False)
        )


@pytest.mark.parametrize("name", FITS)
def test_frozen_weights_stay_as_they_are(name):
    """A public decoder behind a layer that is trained."""
    decoders, firsts = [], []

    def factory(n_inputs, n_outputs):
        decoders.append(nn.Linear(5, n_outputs or 3).requires_grad_(False))
        firsts.append(nn.Linear(n_inputs, 5))
        return nn.Sequential(firsts[-1], decoders[-1])

    fitted = _fit(lambda: FITS[name](factory))
    module = getattr(fitted, "_rows", None) or getattr(fitted, "_network", None) or fitted._encoder
    weights = dict(module.named_parameters())
    is_frozen = {n: not weight.requires_grad for n, weight in weights.items()}
    assert sorted(is_frozen.values()) == [False, False, True, True]
    found = [w for n, w in weights.items() if is_frozen[n] and w.ndim == 2]
    assert torch.equal(found[0], decoders[-1].weight)
    found = [w for n, w in weights.items() if not is_frozen[n] and w.ndim == 2]
    assert not torch.equal(found[0], firsts[-1].weight)


def _global_states():
    numpy_state = np.random.get_state()  # noqa: NPY002
    return torch.get_rng_state().tolist(), numpy_state[1].tolist(), random.getstate()


def test_a_rehearsal_leaves_no_trace(monkeypatch):
    """Shared modules, global generators and the rows of the fit are as without it."""
    shared = nn.Sequential(nn.Linear(25, 5), nn.BatchNorm1d(5), nn.Dropout(), nn.Linear(5, 4))
    before = {name: value.clone() for name, value in shared.state_dict().items()}
    states = _global_states()

    def factory(n_inputs, n_outputs):
        return shared

    def fit():
        generator = DPSlicedWassersteinGenerator(**BOX, latent_dim=24, network=factory)
        preview(generator, 60, 4)
        assert _global_states() == states
        assert shared.training
        assert all(parameter.grad is None for parameter in shared.parameters())
        for name, value in shared.state_dict().items():
            assert torch.equal(value, before[name])

    fit()
    made = DPSlicedWassersteinGenerator(**BOX, n_steps=3, network=lambda n, m: nn.Linear(n, m)).fit(
        X
    )
    monkeypatch.setattr(_network, "try_generator", lambda *args: None)
    expected = DPSlicedWassersteinGenerator(
        **BOX, n_steps=3, network=lambda n, m: nn.Linear(n, m)
    ).fit(X)
    np.testing.assert_array_equal(made.sample(9), expected.sample(9))


def test_a_rehearsed_adapter_starts_where_it_would(monkeypatch):
    def fit():
        return DPSWDDomainAdapter(**TERMS, n_steps=2, network=nn.Linear).set_params(n_components=3)

    made = fit().fit(X, Y, X_target=X).transform(X)
    monkeypatch.setattr(_domain_adapter, "rehearse", lambda *args: None)
    np.testing.assert_array_equal(made, fit().fit(X, Y, X_target=X).transform(X))


def test_draws_of_a_rehearsal_are_not_those_of_the_process():
    states = _global_states()

    def draw():
        torch.rand(3)
        np.random.rand(3)  # noqa: NPY002
        raise ZeroDivisionError

    with pytest.raises(ValueError, match=r"^part fails .* ZeroDivisionError"), rehearsing("part"):
        draw()
    assert _global_states() == states


def test_networks_may_be_made_in_a_rehearsal():
    with rehearsing("part"):
        build(nn.Linear, 3, 2, seed=0)


# Encoders.


class Mixing(FunctionTransformer):
    """Subtracts what other rows have."""

    def transform(self, rows):
        return np.asarray(rows) - np.asarray(rows).mean(axis=0)


class Jittering(FunctionTransformer):
    """Adds noise."""

    def transform(self, rows):
        return np.asarray(rows) + np.random.RandomState().normal(size=np.shape(rows))


def _fail_beyond_zeros(rows):
    if np.any(rows):
        raise OSError("own words")
    return rows


def _inverse(inverse):
    return FunctionTransformer(np.log1p, inverse, check_inverse=False)


ENCODERS = {
    "fails for all rows": (FunctionTransformer(_fail_beyond_zeros), "OSError: own words"),
    "NaN for all rows": (FunctionTransformer(lambda rows: rows / 0), "NaN or infinity for all"),
    "one number": (FunctionTransformer(lambda rows: rows.sum()), "a row is needed for each"),
    "mixes rows": (Mixing(), "one by one, or at random"),
    "is random": (Jittering(), "one by one, or at random"),
    "has no inverse": (KernelPCA(2).fit(X), "NotFittedError"),
    "an inverse of other columns": (_inverse(lambda rows: rows[:, :2]), r"shape \(1, 2\)"),
    "an inverse of NaN": (_inverse(lambda rows: np.log(rows - 9)), "gives NaN"),
    "an inverse of one row": (_inverse(lambda rows: rows[:1]), r"needed"),
}


def _adapt_with(encoder):
    sampler = DPSWFlowSampler(n_steps=2, encoder=encoder)
    return DPSWDDomainAdapter(5.0, n_steps=2, sampler=sampler).fit(X, Y, X_target=X)


ENCODED = {
    "flow": lambda encoder: DPSWFlowSampler(5.0, encoder=encoder).fit(X),
    "sketch": lambda encoder: DPSlicedWassersteinGenerator(5.0, encoder=encoder).fit(X),
    "gradients": lambda encoder: DPSinkhornGenerator(5.0, bounds=(0, 1), encoder=encoder).fit(X),
    "aggregates": lambda encoder: DPAFGenerator(5.0, bounds=(0, 1), encoder=encoder).fit(X),
    "domains": _adapt_with,
    "components": lambda encoder: DPSWFlowSampler(5.0, encoder=[encoder, "dp-pca"]).fit(X),
}


@pytest.mark.catches(
    "planning.arrays:try_encoder",
    "codes.shape != expected.shape or not _are_close(codes, expected)",
    "False",
    param="flow-mixes rows",
)
@pytest.mark.catches(
    "planning.arrays:_are_close",
    "1e-4 * max(1e-300, np.abs(expected).max())",
    "1e4 * max(1e-300, np.abs(expected).max())",
    param="sketch-is random",
)
@pytest.mark.parametrize("fault", ENCODERS)
@pytest.mark.parametrize("name", ENCODED)
def test_an_encoder_that_fails_is_refused_before_a_release(monkeypatch, name, fault):
    _forbid_releases(monkeypatch)
    encoder, match = ENCODERS[fault]
    with pytest.raises((TypeError, ValueError), match=match) as caught:
        ENCODED[name](FrozenEstimator(encoder))
    assert str(caught.value).startswith("encoder")


def _refuse_negative(rows):
    if np.any(np.asarray(rows) < 0):
        raise ValueError("negative")
    return np.sqrt(rows)


def test_an_encoder_may_fail_for_some_rows():
    """Made-up rows without bounds can be what no record is."""
    encoder = FunctionTransformer(_refuse_negative, np.square, check_inverse=False)
    sampler = DPSWFlowSampler(**TERMS, n_steps=2, encoder=FrozenEstimator(encoder))
    fitted = _fit(lambda: sampler.fit(X))
    assert fitted.sample(5).shape == (5, 4)


def test_a_gradient_of_nan_in_one_layer_is_enough(monkeypatch):
    class TwoLayers(nn.Module):
        def __init__(self, n_inputs, n_outputs):
            super().__init__()
            self.one, self.other = nn.Linear(n_inputs, n_outputs), nn.Linear(n_inputs, n_outputs)

        def forward(self, rows):
            return self.one(rows) + (0 * self.other(rows)).sqrt()

    _forbid_releases(monkeypatch)
    with pytest.raises(ValueError, match="network has a gradient of NaN"):
        FITS["sketch"](TwoLayers)


# Augmentation.


@pytest.mark.parametrize(
    ("augment", "match"),
    [
        (lambda rows, generator: rows[:1], "must return a tensor"),
        (lambda rows, generator: rows.double(), "torch.float64"),
        (lambda rows, generator: rows * torch.nan, "NaN or infinity"),
        (lambda rows, generator: rows.fill_diagonal_(torch.inf), "NaN or infinity"),
        (lambda rows: rows, "takes 1 positional argument"),
        (lambda rows, generator: rows.view(2, -1), "augment must|own|shape"),
    ],
)
def test_an_augmentation_that_fails_is_refused_before_a_release(monkeypatch, augment, match):
    _forbid_releases(monkeypatch)
    with pytest.raises((TypeError, ValueError), match=match) as caught:
        DPSWDDomainAdapter(5.0, n_steps=2, augment=augment).fit(X, Y, X_target=X)
    assert str(caught.value).startswith("augment")
