"""Certificates: recomputed, written down, verified, composed."""

import html
import json
import math
import re
import warnings
from dataclasses import replace
from datetime import date
from xml.etree import ElementTree

import numpy as np
import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.dp_event import ZCDpEvent
from sklearn.base import BaseEstimator

from skdpgen import DPSlicedWassersteinGenerator, Number, Schema, __version__
from skdpgen.accounting.event_types import event_to_dict
from skdpgen.accounting.rounding import show
from skdpgen.privacy import (
    Certificate,
    Plan,
    PrivacyLeakWarning,
    SlicedGaussianDpEvent,
    compose,
    ledger_delta,
    ledger_epsilon,
    preview,
    verify,
)

SLICED = SlicedGaussianDpEvent(0.8, 20, 10)
EVENTS = {
    "Gaussian": GaussianDpEvent(4.0),
    "sliced": SlicedGaussianDpEvent(3.0, 20, 10, True),
    "Poisson": SelfComposedDpEvent(PoissonSampledDpEvent(0.05, SLICED), 10),
    "fixed": SelfComposedDpEvent(SampledWithoutReplacementDpEvent(100, 5, SLICED), 3),
    "composed": ComposedDpEvent([GaussianDpEvent(4.0), NoOpDpEvent(), GaussianDpEvent(6.0)]),
    "none": NonPrivateDpEvent(),
}


def certificate(event, **options):
    if isinstance(getattr(event, "event", None), SampledWithoutReplacementDpEvent):
        options["relation"] = "replace_one"
    return Certificate((event,), ("release",), **options)


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-3])
@pytest.mark.parametrize("accountant", ["pld", "rdp"])
@pytest.mark.parametrize("name", ["Gaussian", "sliced", "Poisson"])
def test_epsilon_at_and_delta_at_are_inverse(name, accountant, delta):
    cert = certificate(EVENTS[name], accountant=accountant)
    assert cert.delta_at(cert.epsilon_at(delta)) == pytest.approx(delta, rel=2e-3)


@pytest.mark.parametrize("name", EVENTS)
def test_json_round_trip(name):
    cert = certificate(EVENTS[name], assumptions=("bounds are public",), reproducible=True)
    again = Certificate.from_json(cert.to_json())
    with pytest.warns(PrivacyLeakWarning, match="fixed seed"):
        assert verify(cert.to_json()) == verify(cert) == cert.epsilon
    assert again.to_json() == cert.to_json()
    assert again == cert


@pytest.mark.catches(
    "accounting.certificate:Certificate.delta_at",
    "ledger_delta(self.events, epsilon, accountant=self.accountant, relation=self.relation)",
    "ledger_delta(self.events, epsilon, accountant=self.accountant)",
)
@pytest.mark.parametrize("accountant", ["pld", "rdp"])
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_readings_are_under_the_relation_and_by_the_accountant(relation, accountant):
    events = (PoissonSampledDpEvent(0.1, GaussianDpEvent(1.5)), GaussianDpEvent(2.0))
    terms = {"relation": relation, "accountant": accountant}
    certified = Certificate(events, ("a", "b"), **terms)
    assert certified.epsilon_at(1e-6) == ledger_epsilon(events, 1e-6, **terms)
    assert certified.delta_at(1.0) == ledger_delta(events, 1.0, **terms)
    others = [
        replace(certified, relation="zero_out" if relation == "replace_one" else "replace_one"),
        replace(certified, accountant="rdp" if accountant == "pld" else "pld"),
    ]
    for other in others:
        assert other.epsilon_at(1e-6) != certified.epsilon_at(1e-6)
        assert other.delta_at(1.0) != certified.delta_at(1.0)


@pytest.mark.parametrize("name", ["Gaussian", "sliced", "Poisson", "fixed", "composed", "none"])
def test_verify_refuses_a_smaller_epsilon(name):
    cert = certificate(EVENTS[name])
    forged = json.loads(cert.to_json())
    forged["epsilon"] = min(cert.epsilon, 1e6) * 0.99
    with pytest.raises(ValueError, match="but its events cost"):
        verify(json.dumps(forged))


@pytest.mark.catches(
    "accounting.certificate:Certificate.from_json",
    "check_unit(certificate.assumptions, max_rows)",
    """
    check_unit(certificate.assumptions, max_rows)
    events = certificate.events[:-1] or certificate.events
    object.__setattr__(certificate, "events", events)
    """,
)
@pytest.mark.parametrize("n_events", [2, 3])
def test_verify_prices_every_event(n_events):
    events = [GaussianDpEvent(s) for s in (3.0, 4.0, 5.0)[:n_events]]
    whole = Certificate(tuple(events), ("release",) * n_events)
    for i in range(n_events):
        others = tuple(events[:i] + events[i + 1 :])
        forged = json.loads(whole.to_json())
        cheaper = Certificate(others, ("release",) * len(others))
        forged |= {name: getattr(cheaper, name) for name in ("epsilon", "mu", "rho")}
        with pytest.raises(ValueError, match="but its events cost"):
            verify(json.dumps(forged))
    assert verify(whole.to_json()) == whole.epsilon


@pytest.mark.catches(
    "accounting.certificate:Certificate.from_json",
    "math.isclose(float(stated), cost, rel_tol=_TOLERANCE)",
    "float(stated) >= cost * (1 - _TOLERANCE)",
)
@pytest.mark.parametrize("name", ["epsilon", "mu", "rho"])
@pytest.mark.parametrize("change", [lambda x: x * 1.01, lambda x: x * 0.99, lambda x: "inf"])
def test_numbers_that_follow_from_events_cannot_be_stated_otherwise(name, change):
    stated = json.loads(certificate(EVENTS["Gaussian"]).to_json())
    forged = json.dumps(stated | {name: change(stated[name])})
    for read in (verify, Certificate.from_json):
        with pytest.raises(ValueError, match=f"states {name} = .*, but its events cost"):
            read(forged)
    # A number that differs only in digits that depend on the processor is accepted.
    nearly = json.dumps(stated | {name: stated[name] * (1 + 1e-9)})
    assert verify(nearly) == certificate(EVENTS["Gaussian"]).epsilon


@pytest.mark.catches(
    "accounting.verification:verify",
    "min(_LARGEST_DELTA, 1 / (certificate.n_records or 1))",
    "_LARGEST_DELTA",
)
@pytest.mark.parametrize(
    ("delta", "n_records", "largest"),
    [
        (1e-4, 9_000, None),
        (1e-4, 11_000, "9.09e-05"),
        (1e-4, None, None),
        (2e-3, None, "0.001"),
        (2e-3, 10, "0.001"),
        (2e-3, 10**6, "1e-06"),
    ],
)
@pytest.mark.parametrize("max_rows", [None, 3])
def test_verify_warns_of_a_delta_that_could_cover_whole_records(
    delta, n_records, largest, max_rows
):
    """Above 0.001, or above 1 over the number of records, or persons; pure releases have none."""
    terms = {"delta": delta, "n_records": n_records, "max_rows": max_rows}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        verify(Certificate((GaussianDpEvent(4.0),), ("sum",), **terms).to_json())
        told = [str(warning.message) for warning in caught]
        pure = {"relation": "replace_one", "local": True, **terms, "max_rows": None}
        verify(Certificate((LaplaceDpEvent(4.0),), ("rows",), **pure).to_json())
    assert len(caught) == len(told) == (largest is not None)
    assert all(f"is above {largest}: it allows" in message for message in told)


def test_unknown_events_are_not_written_down():
    with pytest.raises(TypeError, match="ZCDpEvent"):
        event_to_dict(ZCDpEvent(1.0))


def test_text():
    lines = str(certificate(EVENTS["Gaussian"], assumptions=("bounds are public",))).splitlines()
    assert lines[0] == "Differential privacy with ε = 0.9264 at δ = 1e-05."
    assert lines[1].startswith("Unit: record")
    assert "zero_out" in lines[2]
    assert any("release: GaussianDpEvent(noise_multiplier=4.0)" in line for line in lines)
    assert lines[-1] == "Assumes: bounds are public"
    seeded = str(certificate(EVENTS["none"], reproducible=True))
    assert seeded.startswith("REPRODUCIBLE MODE, NOT A PRIVATE RELEASE")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.epsilon_at(0), "delta must be a number"),
        (lambda c: c.delta_at(-1.0), "epsilon must be a positive number"),
        (lambda c: replace(c, releases=()), "one name per event"),
        (lambda c: replace(c, relation="add"), "relation must be one of"),
        (lambda c: compose(), "at least one"),
        (lambda c: compose([c, c]), "one by one"),
        (lambda c: preview(DPSlicedWassersteinGenerator(), 0, 3), "whole number of at least 1"),
        (lambda c: preview(DPSlicedWassersteinGenerator(), 10, "a"), "whole number of at least 1"),
        (lambda c: preview(object(), 10, 3), "must be a generator"),
        (lambda c: verify(Certificate((), ()).to_json()), "lists no release"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(certificate(EVENTS["Gaussian"]))


def test_no_noise_is_said():
    cert = certificate(NonPrivateDpEvent())
    assert cert.epsilon == math.inf
    assert cert.delta_at(1.0) == 1.0
    assert str(cert).splitlines()[0] == "No differential privacy: ε = inf."
    assert json.loads(cert.to_json())["epsilon"] == "inf"


def test_infinite_epsilon_has_delta_zero_unless_nothing_is_private():
    assert certificate(EVENTS["Gaussian"]).delta_at(math.inf) == 0
    assert certificate(EVENTS["none"]).delta_at(math.inf) == 1


@pytest.mark.parametrize(
    "event",
    [
        PoissonSampledDpEvent(0.1, GaussianDpEvent(1e-153)),
        GaussianDpEvent(1e200),
        GaussianDpEvent(True),
        SampledWithoutReplacementDpEvent(-10, -1, GaussianDpEvent(1.0)),
        SampledWithoutReplacementDpEvent(0, 0, GaussianDpEvent(1.0)),
        SelfComposedDpEvent(GaussianDpEvent(1.0), 10**8),
        SlicedGaussianDpEvent(1.0, 10**400, 3),
        SlicedGaussianDpEvent(1.0, 3, 3, "false"),
    ],
)
def test_verify_refuses_events_that_mean_nothing(event):
    text = json.loads(certificate(EVENTS["Gaussian"]).to_json())
    text["releases"] = [{"name": "release", **event_to_dict(event)}]
    with pytest.raises(ValueError, match="Not a certificate"):
        verify(json.dumps(text))


def test_a_priced_plan_cannot_change():
    releases = [("slice sketch", GaussianDpEvent(4.0))]
    plan = Plan(releases, 1.0, 1e-5)
    releases[0] = ("slice sketch", GaussianDpEvent(1e-3))
    assert plan.events == (GaussianDpEvent(4.0),)


def test_a_certificate_as_html_says_what_its_text_says_and_escapes_it():
    certificate = Certificate(
        (GaussianDpEvent(4.0), NoOpDpEvent()),
        ("slice <sketch>", "counts & sums"),
        delta=1e-5,
        assumptions=("<script>alert(1)</script>", "one person has one record"),
        reproducible=True,
    )
    page = certificate._repr_html_()
    ElementTree.fromstring(page)  # every tag is closed
    text = html.unescape(re.sub("<[^>]*>", "\n", page))
    for line in str(certificate).replace("\n    ", " ").split("\n"):
        for part in re.split(r"  - |: |Assumes: |Releases, priced.*", line):
            assert part in text, part
    assert "<script" not in page
    assert "slice &lt;sketch&gt;" in page
    assert page.count("<li>") == 2
    assert show(certificate.epsilon) in page
    assert show(certificate.epsilon) != f"{certificate.epsilon:.4g}", "It is not rounded up."
    assert "<details>" not in replace(certificate, assumptions=())._repr_html_()


def test_twenty_of_many_releases_are_shown_and_the_others_folded():
    names = tuple(f"fit {i:02d}" for i in range(25))
    page = Certificate((GaussianDpEvent(9.0),) * 25, names)._repr_html_()
    shown, folded = page.split("<summary>5 more</summary>")
    assert [name for name in names if name in folded] == list(names[20:])
    assert [name for name in names if name in shown] == list(names[:20])


def _unwrapped(certificate):
    return str(certificate).replace("\n    ", " ")


def test_lines_are_wrapped_and_indented():
    text = str(certificate(EVENTS["Gaussian"], assumptions=("many words " * 30,)))
    assert max(map(len, text.splitlines())) <= 88
    assert sum(line.startswith("    many") or "many" in line for line in text.splitlines()) > 3
    assert all(line.startswith("    ") for line in text.split("Assumes")[1].splitlines()[1:])


def test_reprs_are_one_line_that_says_what_holds_for_whom():
    assert repr(certificate(EVENTS["Gaussian"])) == (
        "<Certificate: ε = 0.9264 at δ = 1e-05 (zero_out) for each record; 1 release>"
    )
    both = compose(*(certificate(EVENTS["Gaussian"], max_rows=m) for m in (2, 3)))
    assert repr(both).endswith("for each person; 2 releases>")
    assert "NOT PRIVATE" in repr(certificate(EVENTS["Gaussian"], reproducible=True))
    assert "ε = inf" in repr(certificate(EVENTS["none"]))


class _Estimator(BaseEstimator):
    def __init__(self, epsilon=1.0, bounds=None, inner=None, classes=None, random_state=None):
        self.epsilon, self.bounds, self.inner = epsilon, bounds, inner
        self.classes, self.random_state = classes, random_state


def test_the_origin_says_who_made_it_when_and_with_what():
    inner = _Estimator(2.0, random_state=424242)
    estimator = _Estimator(np.float64(1), (0, np.inf), inner, range(10), random_state=31337)
    made = certificate(EVENTS["Gaussian"], n_records=6000).made_by(estimator)
    assert made == certificate(EVENTS["Gaussian"], n_records=6000), "It is the same statement."
    assert dict(made.provenance.parameters) == {
        "bounds": "[0, inf]",
        "inner": "_Estimator(epsilon=2.0)",
        "classes": "range(0, 10)",
    }
    text = _unwrapped(made)
    assert f"By _Estimator of skdpgen {__version__}, on {date.today().isoformat()}." in text
    assert "bounds=[0, inf], inner=_Estimator(epsilon=2.0), classes=range(0, 10);" in text
    assert "the number of records, 6,000, is public" in text
    # A seed is never told.
    for told in (text, made.to_json(), made._repr_html_(), repr(made)):
        assert "31337" not in told
        assert "424242" not in told


def test_an_origin_is_written_down_and_does_not_grow():
    schema = Schema({f"column {i}": Number(0, 1) for i in range(99)})
    estimator = _Estimator(bounds=np.zeros((2, 500)), inner=schema, classes=["long" * 9] * 99)
    made = certificate(EVENTS["Gaussian"]).made_by(estimator)
    told = dict(made.provenance.parameters)
    assert told["bounds"] == "ndarray of shape (2, 500)"
    assert told["inner"] == "Schema of 99 columns"
    assert len(told["classes"]) == 120
    assert Certificate.from_json(made.to_json()).provenance == made.provenance
    assert "made_by" not in json.loads(certificate(EVENTS["Gaussian"]).to_json())


def test_a_certificate_says_no_more_than_what_applies():
    planned = preview(DPSlicedWassersteinGenerator(), 1000, 3)
    of_table = preview(DPSlicedWassersteinGenerator(schema=Schema({"a": Number(0, 1)})), 1000, 1)
    assert any("clip_norm" in text for text in planned.assumptions)
    assert not any("schema" in text for text in planned.assumptions)
    assert not any("clip_norm" in text for text in of_table.assumptions)
    assert any("the schema and all other" in text for text in of_table.assumptions)


@pytest.mark.catches(
    "accounting.events:scale_noise",
    "ComposedDpEvent(tuple(scale_noise(one, find_factor) for one in event.events))",
    "event",
    param="replace_one",
)
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_a_composition_in_one_event_has_the_readings_of_its_parts(relation):
    events = GaussianDpEvent(8.0), LaplaceDpEvent(9.0)
    events = events[: 1 + (relation == "replace_one")]
    parts = Certificate(events, tuple("ab"[: len(events)]), relation)
    one = Certificate((SelfComposedDpEvent(ComposedDpEvent(events), 2),), ("all",), relation)
    assert one.rho == pytest.approx(2 * parts.rho, rel=1e-12)
    mu = None if parts.mu is None else pytest.approx(math.sqrt(2) * parts.mu, rel=1e-12)
    assert one.mu == mu
