"""Bad parameters are refused by name, and numbers of NumPy are numbers."""

import math

import numpy as np
import pytest
import torch
from dp_accounting import GaussianDpEvent

from skdpgen import (
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWDDomainAdapter,
    DPSWFlowSampler,
    LDPEntropicGAN,
    PrivacyBudget,
)
from skdpgen.adaptation import DPSWDDomainClassifier, PrivateSearch
from skdpgen.params import choose_device
from skdpgen.preprocessing import DPPCA, LocalPrivatizer, LowFrequencies
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


ESTIMATORS = [
    *(DPSlicedWassersteinGenerator, DPSWFlowSampler, DPSinkhornGenerator, DPAFGenerator),
    *(LDPEntropicGAN, DPPCA, LocalPrivatizer, LowFrequencies),
    *(DPSWDDomainAdapter, DPSWDDomainClassifier),
]


@pytest.mark.parametrize("value", ["nonsense", -1, math.nan, object()])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimators_refuse_by_name_for_nothing(estimator, value):
    target = {"X_target": np.eye(4)} if "Domain" in estimator.__name__ else {}
    with PrivacyBudget(9.0, 1e-4) as budget:
        for name in estimator().get_params(deep=False):
            with pytest.raises(ValueError, match=rf"^{name}\b"):
                estimator(**{name: value}).fit(np.eye(4), [0, 1, 0, 1], **target)
    assert budget.spent == 0


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


def test_parameters_of_a_string_that_names_no_specification_are_refused_by_name():
    with pytest.raises(ValueError, match=r"encoder='auto' has no parameter 'share'"):
        DPSWFlowSampler().set_params(encoder__share=0.2)
    sampler = DPSWFlowSampler().set_params(encoder="dp-pca", encoder__share=0.2)
    assert sampler.encoder.share == 0.2


def test_a_local_budget_that_needs_no_noise_is_refused():
    with pytest.raises(ValueError, match="use epsilon=inf"):
        LocalPrivatizer(1e300, bounds=(0, 1)).fit(np.eye(4))
