"""Certificates are verified that some fit, or a composition of fits, could make; no others."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.dp_event import RepeatAndSelectDpEvent

from skdpgen import (
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    preview,
)
from skdpgen.accounting.event_types import RELEASES
from skdpgen.curator.chunks import Partitions
from skdpgen.privacy import (
    Certificate,
    Curator,
    DegradedGaussianDpEvent,
    DiameterGaussianDpEvent,
    NoiseSource,
    Plan,
    PlanError,
    SlicedGaussianDpEvent,
    ThresholdDpEvent,
    compose,
    verify,
)

pytestmark = pytest.mark.filterwarnings("ignore")

SLICED = SlicedGaussianDpEvent(9.0, 6, 3, True)
# Each event, and the letters of all that it goes with: Zero_out, Persons, Engine, Local.
EVENTS = {
    "Gaussian": (GaussianDpEvent(9.0), "ZPEL"),
    "degraded": (DegradedGaussianDpEvent(9.0), "ZPE"),
    "repeated": (SelfComposedDpEvent(GaussianDpEvent(9.0), 3), "ZPEL"),
    "no noise": (NonPrivateDpEvent(), "ZPEL"),
    "threshold": (ThresholdDpEvent(9.0, 1e-7), "ZPE"),
    "rows": (SLICED, "Z"),
    "sampled sum": (PoissonSampledDpEvent(0.1, GaussianDpEvent(2.0)), "Z"),
    "sampled gradient": (PoissonSampledDpEvent(0.1, DiameterGaussianDpEvent(2.0)), "Z"),
    "steps": (SelfComposedDpEvent(PoissonSampledDpEvent(0.1, SLICED), 2), "Z"),
    "fixed": (SampledWithoutReplacementDpEvent(100, 5, SLICED), ""),
    "Laplace": (LaplaceDpEvent(9.0), "ZPEL"),
    "response": (RandomizedResponseDpEvent(0.5, 3), "L"),
    "search": (RepeatAndSelectDpEvent(GaussianDpEvent(9.0), 5, 1.0), "Z"),
}
PLACES = [*itertools.product(("zero_out", "replace_one"), (False, True), (None, "dask"), (None, 5))]


def is_made(letters, relation, local, engine, max_rows):
    """Whether a fit releases this under these terms."""
    if local:
        return "L" in letters and (relation, engine, max_rows) == ("replace_one", None, None)
    return (
        (relation == "replace_one" or "Z" in letters)
        and (engine is None or "E" in letters)
        and (max_rows is None or "P" in letters)
    )


def accountant_of(event):
    return "rdp" if isinstance(event, RepeatAndSelectDpEvent) else "pld"


class OfAnEngine(Partitions):
    """Rows of an engine, of which nothing is read."""

    def __init__(self):
        self.engine, self.person_column = "dask", None

    n_units = _sum_parts = None


@pytest.mark.catches(
    "accounting.certificate:Certificate.__post_init__",
    "find_conflict(self.events, *terms)",
    "None",
    param="steps-replace_one-False-None-5",
)
@pytest.mark.catches(
    "accounting.plan:Plan.check_place",
    "find_conflict(self.events, *terms)",
    "None",
    param="threshold-replace_one-True-None-None",
)
@pytest.mark.catches(
    "curator.curator:Curator.__init__",
    "plan.check_place(self._engine)",
    "plan.check_place(None)",
    param="rows-zero_out-False-dask-None",
)
@pytest.mark.catches(
    "accounting.event_types",
    '_SAMPLE = EventType("a release of samples or of single rows")',
    '_SAMPLE = EventType("a release of samples or of single rows", for_persons=True)',
    param="sampled gradient-zero_out-False-None-5",
)
@pytest.mark.catches(
    "accounting.event_types:find_conflict",
    "flatten(events)",
    "events",
    param="steps-replace_one-False-None-5",
)
@pytest.mark.parametrize(("relation", "local", "engine", "max_rows"), PLACES)
@pytest.mark.parametrize("name", EVENTS)
def test_verify_passes_what_a_fit_can_make(name, relation, local, engine, max_rows):
    event, letters = EVENTS[name]
    terms = {"accountant": accountant_of(event), "local": local, "max_rows": max_rows}
    expected = is_made(letters, relation, local, engine, max_rows)

    def certify(events):
        names = tuple(map(str, range(len(events))))
        certificate = Certificate(events, names, relation, engine=engine, **terms)
        return verify(certificate.to_json())

    def fit():
        plan = Plan((("a", event),), math.inf, 1e-5, relation, **terms)
        rows = np.zeros((4, 2)) if engine is None else OfAnEngine()
        persons = None if max_rows is None else np.arange(4)
        Curator(rows, plan=plan, noise=NoiseSource(None), persons=persons)

    if expected:
        assert certify((event,)) > 0
        if engine is None:
            fit()
        return
    for make in (lambda: certify((event,)), lambda: certify((ComposedDpEvent((event,)),))):
        with pytest.raises(ValueError, match=r"[Nn]eed|records|record;|An engine|sums it"):
            make()
    with pytest.raises(PlanError):
        fit()


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(EVENTS, 2)))
def test_compositions_of_what_fits_make_are_verified(first, second):
    """One fit may have had an engine, and the other rows in memory."""
    (one, letters), (other, _) = EVENTS[first], EVENTS[second]
    engine = "dask" if "E" in letters else None
    terms = {"relation": "replace_one", "accountant": "rdp"}
    parts = [
        Certificate((one,), ("a",), engine=engine, **terms),
        Certificate((other,), ("b",), **terms),
    ]
    both = compose(*parts)
    assert both.engine == engine
    assert verify(both.to_json()) == both.epsilon


@pytest.mark.parametrize("with_persons", [True, False])
@pytest.mark.parametrize(
    "generator",
    [
        DPSlicedWassersteinGenerator(bounds=(0, 1)),
        DPSWFlowSampler(release="resample", bounds=(0, 1)),
        DPSWFlowSampler(release="presample", bounds=(0, 1)),
        DPSinkhornGenerator(bounds=(0, 1)),
        DPAFGenerator(bounds=(0, 1)),
    ],
)
def test_fits_refuse_persons_where_the_table_does(generator, with_persons):
    planned = preview(generator.set_params(accountant="rdp"), 9_000, 3)
    goes = all(RELEASES[type(getattr(e, "event", e))].for_persons for e in planned.events)
    if not with_persons:
        assert verify(planned.to_json()) == planned.epsilon
    elif goes:
        assert preview(generator, 9_000, 3, persons=True).max_rows is not None
    else:
        with pytest.raises(ValueError, match="sums over all rows"):
            preview(generator, 9_000, 3, persons=True)
