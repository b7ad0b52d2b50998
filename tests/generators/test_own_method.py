"""A method of a third party: one release and one generator, which nothing in the library names."""

import math

import numpy as np
import pytest
import torch
from dp_accounting import LaplaceDpEvent
from numpy.testing import assert_array_equal

from skdpgen import PrivacyBudget, load
from skdpgen.base import CentralGenerator
from skdpgen.checks import positive
from skdpgen.params import parameters
from skdpgen.privacy import (
    Curator,
    GaussianSumMechanism,
    LaplaceSumMechanism,
    NoiseSource,
    Plan,
    PlanError,
    RecordFunction,
    gaussian_plan,
    preview,
)
from skdpgen.releases import Release
from skdpgen.testing import check_generator, validate_network, yield_checks


@parameters
class NoisyMean(Release):
    """The noisy sum of the rows of each class."""

    radius: float = 1.0

    _checks = {"radius": positive()}
    name, is_sum, mechanism = "mean", True, GaussianSumMechanism

    def plan(self, terms, format):
        return terms.plan_once(
            {self.name: 1.0}, lambda plan, relation: self.sensitivity(relation, terms.n_classes)
        )

    def sensitivity(self, relation, n_classes):
        return {"zero_out": 1, "replace_one": 2}[relation] * self.radius


class LaplaceMean(NoisyMean):
    """With Laplace noise, on rows in a ball of the L1 norm."""

    mechanism = LaplaceSumMechanism

    def plan(self, terms, format):
        bound = self.sensitivity(terms.relation, terms.n_classes)
        return terms.plan_steps(self.name, LaplaceDpEvent, 1, sensitivity=bound)


class Costly(NoisyMean):
    """With a plan of its own budget."""

    def plan(self, terms, format):
        return gaussian_plan({"mean": 1.0}, epsilon=3.0, delta=1e-5)


@parameters
class MeanGenerator(CentralGenerator):
    """Normal rows around the noisy mean of all classes."""

    release: object = "mean"

    _shorthands = {
        **CentralGenerator._shorthands,
        "release": {"mean": NoisyMean, "laplace": LaplaceMean()},
    }

    def _learn(self, curator, format, noise):
        release = self._find_release(format)
        rows = RecordFunction(lambda rows: rows)
        released = curator.release(release.mechanism(rows, release.radius, "mean", by_class=True))
        curator.close()
        self._mean = released.value.sum(0) / curator.n_rows

    def _generate(self, classes, generator):
        noise = torch.randn(len(classes), len(self._mean), generator=generator)
        return self._mean + 0.1 * noise.double().numpy()


class WithoutClasses(MeanGenerator):
    _takes_classes = False


def test_a_method_is_one_release_and_one_generator(tmp_path):
    X = np.random.default_rng(0).random((2000, 3))
    generator = MeanGenerator(epsilon=5.0, bounds=(0, 1), random_state=0)
    planned = preview(generator, X)
    fitted = generator.set_params(release__radius=0.9).fit(X)
    assert fitted.privacy_.releases == planned.releases
    assert "mean" in planned.releases
    assert repr(fitted.release_) == "NoisyMean(radius=0.9)"
    assert np.abs(fitted.sample(1000).mean(axis=0) - 0.5).max() < 0.1
    path = tmp_path / "fitted.skdpgen"
    fitted.save(path)
    assert_array_equal(load(path).sample(5, random_state=1), fitted.sample(5, random_state=1))


@pytest.mark.catches("mechanisms.laplace:LaplaceSumMechanism.query", "True", "False")
@pytest.mark.catches(
    "mechanisms.laplace:LaplaceSumMechanism._clip", "vectors.abs()", "vectors.square()"
)
def test_sums_have_the_noise_and_the_bound_that_they_state():
    generator = WithoutClasses(release="laplace", bounds=(0, 1), clip_norm=1.0)
    checks = dict(yield_checks(generator))
    for name in ("check_noise", "check_neighbours", "check_plan", "check_epsilon"):
        checks[name](generator)
    fitted = generator.set_params(epsilon=2.0).fit(np.full((50, 3), 0.5))
    assert fitted.privacy_.delta_at(2.0) == 0
    plan = Plan((("mean", LaplaceDpEvent(2.0)),), math.inf, 1e-5)
    mechanism = LaplaceSumMechanism(RecordFunction(lambda rows: 0 * rows), 1.0, "mean")
    with Curator(np.ones((4, 5000)), plan=plan, noise=NoiseSource(0)) as curator:
        noise = curator.release(mechanism).value
    # Six standard errors; Gaussian noise would have 1.6 and 2.
    assert np.abs(noise).mean() == pytest.approx(2.0, abs=6 * 2 / math.sqrt(5000))
    assert noise.std() == pytest.approx(2 * math.sqrt(2), rel=6 * math.sqrt(5 / 4 / 5000))


def test_checks_want_shares_of_classes_where_there_are_some():
    checks = dict(yield_checks(MeanGenerator()))
    with pytest.raises(AssertionError, match="A tenth of the labels"):
        checks["check_class_probabilities"](MeanGenerator())
    checks["check_neighbours"](MeanGenerator())
    assert not {"check_labels", "check_class_probabilities"} & {
        *dict(yield_checks(WithoutClasses()))
    }
    with pytest.raises(ValueError, match="takes no classes"):
        WithoutClasses(classes=[0, 1]).fit(np.zeros((9, 2)), np.arange(9) % 2)


@pytest.mark.catches("planning.fits:Planning._make_plan", "terms.check(plan)", "None")
def test_a_plan_above_its_terms_is_refused_before_rows_are_read():
    with PrivacyBudget(9.0, 1e-4) as budget, pytest.raises(PlanError, match="is for ε = 3"):
        MeanGenerator(bounds=(0, 1), clip_norm=1.0, release=Costly()).fit(np.zeros((9, 2)))
    assert budget.spent == 0
    with pytest.raises(AssertionError, match=r"check_sample_shapes.*The plan is for"):
        check_generator(MeanGenerator(release=Costly()))


def test_networks_are_validated_for_nothing():
    assert validate_network("mlp", 20, 4) == []
    assert (
        "no weights"
        in validate_network(lambda *n: torch.nn.Linear(*n).requires_grad_(False), 2, 3)[0]
    )
    assert "factory" in validate_network(torch.nn.Linear(2, 3), 2, 3)[0]
