"""Bad parameters are refused by name, and numbers of NumPy are numbers."""

import math

import numpy as np
import pytest
import torch
from dp_accounting import GaussianDpEvent

from skdpgen import DPSWFlowSampler
from skdpgen.adaptation import DPSWDDomainClassifier, PrivateSearch
from skdpgen.params import choose_device
from skdpgen.preprocessing import LocalPrivatizer, LowFrequencies
from skdpgen.privacy import (
    calibrate_gaussian,
    calibrate_noise,
    ledger_delta,
    ledger_epsilon,
    sensitivity_law,
)

BAD = [None, "nonsense", math.nan, -1, [1], {}, b"x"]
EVENTS = [GaussianDpEvent(4.0)]
TERMS = {"accountant": "rdp", "relation": "zero_out"}
FUNCTIONS = [
    (ledger_epsilon, {"events": EVENTS, "delta": 1e-5, **TERMS}),
    (ledger_delta, {"events": EVENTS, "epsilon": 1.0, **TERMS}),
    (calibrate_gaussian, {"epsilon": 1.0, "delta": 1e-5, **TERMS}),
    (
        calibrate_noise,
        {"make_event": GaussianDpEvent, "epsilon": 1.0, "delta": 1e-5, "guess": 2.0, **TERMS},
    ),
    (
        sensitivity_law,
        {"n_features": 4, "n_projections": 3, "orthogonal": False, "n_values": 60},
    ),
]

CASES = [
    pytest.param(function, given, name, value, id=f"{function.__name__}-{name}-{value!r}")
    for function, given in FUNCTIONS
    for name in given
    for value in BAD
]


@pytest.mark.parametrize(("function", "given", "name", "value"), CASES)
def test_functions_refuse_by_name(function, given, name, value):
    with pytest.raises((TypeError, ValueError), match=rf"^{name} must be"):
        function(**given | {name: value})


@pytest.mark.parametrize(("function", "given"), FUNCTIONS)
def test_functions_take_numbers_of_numpy(function, given):
    def as_numpy(value):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return np.asarray(value)[()] if is_number else value

    expected = function(**given)
    result = function(**{name: as_numpy(value) for name, value in given.items()})
    assert str(result) == str(expected)


@pytest.mark.parametrize("value", [EVENTS[0], [EVENTS[0], 3], {EVENTS[0]: 1}, "events"])
def test_events_are_a_list(value):
    with pytest.raises(TypeError, match=r"^events must be a list.*; got"):
        ledger_epsilon(value, 1e-5)


@pytest.mark.parametrize("delta", [1.0, 2])
def test_delta_is_below_one(delta):
    with pytest.raises(ValueError, match="delta must be in"):
        ledger_epsilon(EVENTS, delta)


@pytest.mark.parametrize("value", [*BAD, math.inf, 10**30])
@pytest.mark.parametrize("name", ["n_candidates", "shape", "estimator", "param_distributions"])
def test_searches_refuse_by_name(name, value):
    given = {"estimator": DPSWDDomainClassifier(), "param_distributions": {"align_weight": [0.1]}}
    search = PrivateSearch(**given | {name: value})
    with pytest.raises((TypeError, ValueError), match=rf"^{name}\b.* must"):
        search.fit(np.eye(4), [0, 1, 0, 1], X_target=np.eye(4))


def test_no_sampler_takes_the_parameters_of_the_default():
    for given in ({}, {"sampler": DPSWFlowSampler()}):
        classifier = DPSWDDomainClassifier().set_params(**given, sampler__n_particles=3)
        assert classifier.sampler.n_particles == 3
    with pytest.raises(ValueError, match="Invalid parameter 'n_paticles'"):
        DPSWDDomainClassifier().set_params(sampler__n_paticles=3)
    with pytest.raises(ValueError, match="encoder=None has no parameter 'share': write set_params"):
        DPSWFlowSampler(encoder=None).set_params(encoder__share=0.3)


@pytest.mark.parametrize("value", [None, "loud", -1, [1]])
@pytest.mark.parametrize("kind", [DPSWFlowSampler, DPSWDDomainClassifier])
def test_verbose_is_a_number(kind, value):
    with pytest.raises(ValueError, match=r"^verbose must be"):
        kind(verbose=value).fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("device", [10**30, -1, "gpu", 0.5, None])
def test_devices_are_refused_by_name(device):
    with pytest.raises(ValueError, match=r"^device must be"):
        DPSWFlowSampler(device=device).fit(np.eye(4))


@pytest.mark.parametrize(
    ("error", "match"),
    [
        (torch.OutOfMemoryError("CUDA out of memory."), "^device 'cpu' is there, but out of mem"),
        (RuntimeError("CUDA error: out of memory"), "^device 'cpu' is there, but out of memory"),
        (RuntimeError("no kernel image"), "can use here; got 'cpu'"),
    ],
)
def test_a_device_that_cannot_be_used_now_is_refused_with_its_reason(monkeypatch, error, match):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(torch, "empty", fail)
    with pytest.raises(ValueError, match=match) as caught:
        choose_device("cpu")
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("shape", [1.5, "square", True, [1], (), (0, 4), (2.0, 2), b"x", {}])
def test_shapes_of_images_are_refused_by_name(shape):
    with pytest.raises(ValueError, match=r"^image_shape must be"):
        LowFrequencies(image_shape=shape).fit(np.eye(4))


@pytest.mark.parametrize("seed", ["seed", -1, 1.5, [1], b"x"])
def test_seeds_of_privatizers_are_refused_by_name(seed):
    with pytest.raises(ValueError, match=r"^random_state must be"):
        LocalPrivatizer(random_state=seed).fit(np.eye(4))


def test_parameters_of_a_string_that_names_no_specification_are_refused_by_name():
    with pytest.raises(ValueError, match=r"encoder='auto' has no parameter 'share'"):
        DPSWFlowSampler().set_params(encoder__share=0.2)
    sampler = DPSWFlowSampler().set_params(encoder="dp-pca", encoder__share=0.2)
    assert sampler.encoder.share == 0.2


def test_a_local_budget_that_needs_no_noise_is_refused():
    with pytest.raises(ValueError, match="use epsilon=inf"):
        LocalPrivatizer(1e300, bounds=(0, 1)).fit(np.eye(4))
