"""Numbers as they are asked for, and as they are printed: exactly, or on the safe side."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

from skdpgen import (
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    LDPEntropicGAN,
    PrivacyBudget,
)
from skdpgen.accounting.calibration import calibrate_gaussian, check_delta, check_epsilon
from skdpgen.accounting.rounding import at_most, plain_numbers, show
from skdpgen.encoders import PrivatePCA
from skdpgen.mechanisms.local import local_plan
from skdpgen.preprocessing import DPPCA, LocalPrivatizer
from skdpgen.privacy import Certificate, gaussian_plan, preview, verify
from skdpgen.releases import ForwardAggregates, SampledGradients, SlicedRows

NARROW = {
    "sliced": DPSlicedWassersteinGenerator(
        n_steps=np.int64(3), encoder=PrivatePCA(share=np.float32(0.2))
    ),
    "rows": DPSlicedWassersteinGenerator(
        release=SlicedRows(
            n_projections=np.int64(5),
            batch_size=np.int16(10),
            n_steps=np.int64(3),
            sampling="fixed",
        ),
        relation="replace_one",
    ),
    "flow": DPSWFlowSampler(n_steps=np.uint8(3), n_particles=np.int64(50)),
    "sinkhorn": DPSinkhornGenerator(
        release=SampledGradients(n_steps=np.int64(3), grad_clip=np.float32(0.3)),
        clip_norm=Fraction(1, 3),
    ),
    "dpaf": DPAFGenerator(
        release=ForwardAggregates(n_steps=np.int64(3), budget_split=(0, np.float64(0.5), 0.5))
    ),
    "local": LDPEntropicGAN(release="gaussian", n_steps=np.int64(3)),
    "pca": DPPCA(n_components=np.int64(2)),
    "privatizer": LocalPrivatizer(mechanism="gaussian"),
}


@pytest.mark.parametrize("epsilon", [np.float32(1), Fraction(1, 3)])
@pytest.mark.parametrize("name", NARROW)
def test_no_fit_costs_more_than_was_asked_in_any_type(name, epsilon):
    """In float32 a price of 1 + 7e-9 is no more than 1."""
    X = np.random.RandomState(0).normal(size=(60, 3))
    estimator = NARROW[name].set_params(epsilon=epsilon, delta=np.float32(1e-5), random_state=0)
    given = estimator.get_params()
    fitted = estimator.fit(X)
    exact = epsilon if isinstance(epsilon, Fraction) else Fraction(float(epsilon))
    assert Fraction(fitted.epsilon_) <= exact
    assert fitted.privacy_.delta == float(np.float32(1e-5))
    assert all(fitted.get_params()[key] is value for key, value in given.items())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the seed
        assert verify(fitted.privacy_.to_json()) == fitted.epsilon_
    assert preview(estimator, np.int64(60), np.int64(3)).epsilon == fitted.epsilon_


@pytest.mark.parametrize("seed", range(20))
def test_parts_of_a_budget_cost_no_more_than_the_whole(seed):
    """By the exact price of their pooled multiplier, in the last digit too."""
    rng = np.random.RandomState(seed)
    shares = rng.dirichlet(np.ones(5))
    epsilon = float(rng.uniform(0.05, 5))
    plan = gaussian_plan(dict(enumerate(shares)), epsilon, 1e-6)
    assert Certificate.of_plan(plan).epsilon <= epsilon
    assert Certificate.of_plan(local_plan(1, 3, epsilon, 1e-6, label_share=0.99999)).epsilon <= (
        epsilon
    )


@pytest.mark.catches(
    "accounting.rounding:at_most",
    "nearest if nearest <= number else math.nextafter(nearest, -math.inf)",
    "nearest",
)
def test_numbers_become_floats_that_are_not_above_them():
    for number in (np.float16(0.1), np.float32(0.1), 0.1, 3, np.int64(3), math.inf):
        assert at_most(number) == number
        assert type(at_most(number)) is float
    for number in (Fraction(1, 10), Fraction(2, 3), 2**53 + 1, 10**400, np.longdouble("0.1")):
        assert at_most(number) <= number
        assert math.nextafter(at_most(number), math.inf) > number
    assert check_epsilon(np.float32(2)) == 2
    assert type(check_delta(np.float32(1e-5))) is float
    with pytest.raises(ValueError, match="epsilon must be"):
        check_epsilon(Fraction(1, 10**400))
    assert PrivacyBudget(np.float32(1), np.float32(1e-5)).delta == float(np.float32(1e-5))
    assert calibrate_gaussian(np.float32(1), 1e-5) == calibrate_gaussian(1.0, 1e-5)


@pytest.mark.catches("accounting.rounding:plain_numbers", "plain(value)", "value")
def test_parameters_are_plain_inside_and_as_given_outside():
    given = {"epsilon": np.float32(2), "n_steps": np.int64(3), "clip_norm": Fraction(1, 3)}
    estimator = DPSlicedWassersteinGenerator(**given)
    with plain_numbers(estimator):
        inside = [type(getattr(estimator, name)) for name in given]
    assert inside == [float, int, float]
    assert all(getattr(estimator, name) is value for name, value in given.items())


@pytest.mark.catches(
    "accounting.rounding:show", "Context(_DIGITS, ROUND_CEILING)", "Context(_DIGITS)"
)
def test_printed_numbers_are_never_less():
    rng = np.random.RandomState(0)
    for number in np.exp(rng.uniform(-30, 30, 2000)).tolist():
        assert number <= float(show(number)) <= number * 1.0011, number
    assert [show(number) for number in (1.0, 0.1, 1e-5, 1e-6, 10, 0, 1e300, math.inf)] == [
        "1",
        "0.1",
        "1e-05",
        "1e-06",
        "10",
        "0",
        "1e+300",
        "inf",
    ]
    assert show(1.0000001) == "1.001"
