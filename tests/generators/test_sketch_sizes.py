"""How many slices and harmonics a sketch has: a rule of public numbers, fixed before a read."""

import itertools
import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler
from skdpgen.accounting.plan import Terms
from skdpgen.learners.sketch import fit_to_sketch
from skdpgen.mechanisms.sums import Sketch
from skdpgen.privacy import Curator, SliceSketchMechanism, preview
from skdpgen.releases import SliceSketch
from skdpgen.testing.common import make_plain
from skdpgen.transport import SliceBasis

EPSILONS = (0.1, 1.0, 3.0, 10.0, 40.0, math.inf)
SIZES = (100, 1000, 7000, 60_000, 10**6)


def count(epsilon, n_samples, n_columns=64, n_classes=10, release=None, relation="zero_out"):
    """Return the numbers of slices and of harmonics that are resolved, and the multiplier."""
    release = release or SliceSketch()
    terms = Terms(epsilon, 1e-5, relation, "pld", n_samples, n_classes, n_columns)
    plan = release.plan(terms, None)
    resolved = release.resolved(plan, terms)
    k, n_harmonics = resolved.n_projections, resolved.n_harmonics
    sensitivity = SliceSketchMechanism.sensitivity_of(k, n_harmonics, n_classes, relation)
    assert plan.sigma == plan.multiplier(release.name) * sensitivity
    # `run` counts again, with the resolved release or with the given one.
    for each in (release, resolved):
        assert each.count(plan, n_columns, n_classes, n_samples) == (k, n_harmonics)
    return k, n_harmonics, plan.multiplier(release.name)


@pytest.mark.parametrize("n_columns", [1, 4, 30, 64, 300])
def test_slices_are_as_many_as_show_above_the_noise(n_columns):
    fewest = min(2000, max(50, 25 * n_columns))
    seen = set()
    for epsilon, n, n_classes in itertools.product(EPSILONS, SIZES, (1, 10)):
        k, _, multiplier = count(epsilon, n, n_columns, n_classes)
        times = n / n_classes / max(multiplier, 0.25) / 250
        assert k == round(fewest * max(1, min(16, n_columns / 4, times)))
        seen.add(k)
    # In few columns directions are close to each other.
    assert len(seen) > 2 if n_columns > 4 else seen == {fewest}


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_more_budget_and_more_records_never_give_fewer_values(relation):
    for n_columns, n_classes in itertools.product((2, 30, 784), (1, 10)):
        counts = np.array(
            [
                [count(e, n, n_columns, n_classes, relation=relation)[:2] for e in EPSILONS]
                for n in SIZES
            ]
        )
        assert (np.diff(counts, axis=0) >= 0).all()
        assert (np.diff(counts, axis=1) >= 0).all()


def test_more_classes_leave_fewer_slices():
    slices = [count(3.0, 60_000, n_classes=n_classes)[0] for n_classes in (1, 3, 10, 30, 100)]
    assert slices == sorted(slices, reverse=True)
    assert slices[0] > slices[-1]


def test_memory_holds_the_slices_that_are_chosen():
    # A sketch of many classes, and directions of many columns; both would else be 16 times these.
    k = count(math.inf, 10**7, 20, n_classes=1000)[0]
    assert k * 1000 <= 2**19 < (k + 1) * 1000
    k = count(math.inf, 10**7, 10_000, n_classes=1)[0]
    assert k * 10_000 <= 2**25 < (k + 1) * 10_000
    # The fewest there are in any case, and what is asked for.
    assert count(math.inf, 10**7, 20_000, n_classes=300)[0] == 2000
    for epsilon in EPSILONS:
        assert count(epsilon, 10**6, release=SliceSketch(70))[0] == 70


@pytest.mark.catches("releases.sketches:SliceSketch.run", "k", "self._fewest(len(std))")
@pytest.mark.parametrize(("n_projections", "k"), [(None, 400), (70, 70)])
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize("estimator", [DPSWFlowSampler, DPSlicedWassersteinGenerator])
def test_release_is_the_planned_one_whatever_the_rows_are(
    estimator, relation, n_projections, k, monkeypatch
):
    chosen, original = [], Curator.release

    def spy(self, mechanism):
        sketch = original(self, mechanism)
        chosen.append((mechanism.basis.n_projections, len(mechanism.basis.weights)))
        assert sketch.sums_std == self.plan.sigma
        return sketch

    monkeypatch.setattr(Curator, "release", spy)
    params = {"epsilon": 30.0, "relation": relation, "bounds": (0, 1), "n_steps": 1}
    params["release"] = SliceSketch(n_projections)
    for X in (np.random.RandomState(0).uniform(size=(900, 8)), np.zeros((900, 8))):
        fitted = make_plain(estimator(random_state=0, **params)).fit(X)
        assert chosen[-1] == (fitted.release_.n_projections, fitted.release_.n_harmonics)
        planned = preview(make_plain(estimator(**params)), 900, 8)
        assert planned.sigma == fitted.sigma_
        assert planned.events == fitted.privacy_.events
    assert chosen[0] == chosen[1]
    assert chosen[0][0] == k


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_more_slices_are_not_taken_for_more_noise(relation):
    """Choices that go by the noise on a value go by that on one of the fewest slices."""
    release = SliceSketch()
    for n in SIZES:
        terms = Terms(10.0, 1e-5, relation, "pld", n, 1, 64)
        plan = release.plan(terms, None)
        # With several classes, or of null records, harmonics make no difference to the noise.
        sensitivity = SliceSketchMechanism.sensitivity_of(
            1600, release.count(plan, 64, 1, n)[1], 1, relation
        )
        noise = plan.multiplier(release.name) * sensitivity
        assert_allclose(release.noise_ratio(plan, 64, 1, n) * n, noise)
        assert math.isclose(release.min_samples(plan, terms, None), noise, abs_tol=1.0)


def test_a_step_of_a_network_looks_at_some_slices_of_many(monkeypatch):
    """At all in turn, and at what was released of them."""
    k, seen = 4200, []
    # The frequency of a slice tells which it is, and so does what was released of it.
    basis = SliceBasis(torch.ones(1, k), torch.arange(1, k + 1), 1)
    marks = basis.frequencies[0].numpy()
    sketch = Sketch(np.concatenate([marks, marks])[None], np.ones(1), 0.0, 0.0)
    original = SliceBasis.squared_distance

    def look(self, rows, means, weights, **params):
        assert_array_equal(self.frequencies, means[0, 0, :1])
        assert means.shape == (1, 1, 2, 1400)
        seen.append(frozenset(self.frequencies[0].tolist()))
        return original(self, rows, means, weights, **params)

    monkeypatch.setattr(SliceBasis, "squared_distance", look)
    options = {"n_steps": 3, "rows_per_class": 4, "learning_rate": 0.1}
    fit_to_sketch(_Rows(), basis, sketch, generator=torch.Generator().manual_seed(0), **options)
    assert frozenset.union(*seen) == {*marks.tolist()}
    assert not set(seen[0]) & set(seen[1])
    assert max(seen[0]) > marks[1400]


class _Rows(torch.nn.Module):
    """The least that can be trained."""

    def __init__(self):
        super().__init__()
        self.shift = torch.nn.Parameter(torch.zeros(1))

    def draw(self, classes, generator):
        return torch.randn(len(classes), 1, generator=generator)

    def forward(self, codes):
        return codes + self.shift
