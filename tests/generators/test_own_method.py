"""A method of a third party: one release and one generator, which nothing in the library names."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.testing import assert_array_equal

from skdpgen import load
from skdpgen.base import CentralGenerator
from skdpgen.checks import positive
from skdpgen.data.record_functions import RecordFunction
from skdpgen.mechanisms.sums import GaussianSumMechanism
from skdpgen.params import documented
from skdpgen.privacy import preview
from skdpgen.releases.release import Release


@dataclass(eq=False, repr=False)
class NoisyMean(Release):
    """The noisy mean of the rows."""

    radius: float = 1.0

    _checks = {"radius": positive()}
    name = "mean"
    is_sum = True

    def plan(self, terms, format):
        return terms.plan_once(
            {self.name: 1.0}, lambda plan, relation: self.sensitivity(relation, terms.n_classes)
        )

    def sensitivity(self, relation, n_classes):
        return {"zero_out": 1, "replace_one": 2}[relation] * self.radius


@documented
class MeanGenerator(CentralGenerator):
    """Normal rows around the noisy mean.

    Parameters
    ----------
    %(privacy)s
    """

    _shorthands = {**CentralGenerator._shorthands, "release": {"mean": NoisyMean}}
    _takes_components = False

    def __init__(
        self,
        epsilon=1.0,
        delta=1e-5,
        *,
        relation="zero_out",
        accountant="pld",
        random_state=None,
        device="auto",
        verbose=0,
        strict=False,
        bounds=None,
        y_bounds=None,
        classes=None,
        clip_norm="auto",
        schema="auto",
        encoder="auto",
        release="mean",
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.strict = strict
        self.bounds = bounds
        self.y_bounds = y_bounds
        self.classes = classes
        self.clip_norm = clip_norm
        self.schema = schema
        self.encoder = encoder
        self.release = release

    def _plan(self, terms, format):
        return self._find_release(format).plan(terms, format)

    def _learn(self, curator, format, noise):
        release = self._find_release(format)
        rows = RecordFunction(lambda rows: rows)
        released = curator.release(GaussianSumMechanism(rows, release.radius, release.name))
        curator.close()
        self._mean = released.value / curator.n_rows

    def _generate(self, classes, generator):
        noise = torch.randn(len(classes), len(self._mean), generator=generator)
        return self._mean + 0.1 * noise.double().numpy()


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
