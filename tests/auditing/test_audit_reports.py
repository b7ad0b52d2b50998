"""Reports of audits of releases: what they say, what they read, and what they refuse."""

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from dp_accounting import LaplaceDpEvent, RandomizedResponseDpEvent
from sklearn.base import clone

from skdpgen import DPSWFlowSampler, LDPEntropicGAN, audit
from skdpgen.curator.persons import Reading
from skdpgen.preprocessing import DPPCA
from skdpgen.privacy import (
    AuditReport,
    Certificate,
    NoiseSource,
    PrivacyBudget,
    PrivacyLeakWarning,
    ReleaseAudit,
)
from skdpgen.releases import SliceSketch

SKETCH = DPSWFlowSampler(bounds=(0, 1), classes=[0, 1], encoder=None, release=SliceSketch(6, 3))
PERSONS = {"max_rows_per_person": 3}


def find(estimator, n_samples=24, *sizes, n_runs=400, **given):
    return audit(estimator, n_samples, *sizes, n_runs=n_runs, random_state=0, **given)


@pytest.fixture(scope="module")
def report():
    return find(clone(SKETCH).set_params(epsilon=2.0))


def test_content_of_a_report(report, monkeypatch):
    said = str(report)
    assert said.startswith("No violation found: the audit shows ε > ")
    assert "slice sketch: μ > " in said
    assert "<table>" in report._repr_html_()
    written = json.loads(report.to_json())
    assert written["verdict"] == "no violation found"
    assert written["bound"] == report.bound < written["claim"] == report.claim <= 2.0
    names = [found["name"] for found in written["releases"]]
    assert names == ["squared norms", "slice sketch"] == list(report.certificate.releases)
    assert written["reads_rows"] is report.reads_rows is False
    draw = NoiseSource.rounded_gaussian
    monkeypatch.setattr(NoiseSource, "rounded_gaussian", lambda self, scale: draw(self, scale / 2))
    assert str(find(SKETCH)).startswith("Violation found: ")


def test_joint_bound_of_all_releases(report):
    """The record that all of them show most of is shown exactly as much as by one Gaussian."""
    squares = sum(found.squares for found in report.releases)
    assert squares.shape == (13, 13)
    mu = math.sqrt(squares.max())
    assert all(found.bound**2 == pytest.approx(found.squares.max()) for found in report.releases)
    assert max(found.bound for found in report.releases) <= mu
    assert mu**2 <= sum(found.bound**2 for found in report.releases)


@pytest.mark.catches(
    "auditing.releases:AuditReport.bound",
    "pure += audited.bound",
    "pure = max(pure, audited.bound)",
)
def test_pure_releases_cost_together_what_they_cost_alone():
    shown = [
        ReleaseAudit(name, "epsilon", 1.0, bound, 100, {})
        for name, bound in (("noised rows", 0.75), ("noised labels", 0.5))
    ]
    events = (LaplaceDpEvent(1.0), RandomizedResponseDpEvent(0.5, 2))
    certificate = Certificate(
        events, ("noised rows", "noised labels"), relation="replace_one", local=True
    )
    assert AuditReport(tuple(shown), certificate, 0.99, False).bound == 1.25
    assert AuditReport(tuple(shown[:1]), certificate, 0.99, False).bound == 0.75


def test_a_picture(report):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = report.plot()
    assert [bar.get_width() for bar in axes.patches] == pytest.approx(
        [found.bound / found.claim for found in report.releases[::-1]]
    )


def test_a_seed_gives_the_same_report_and_no_seed_another_one():
    estimator = DPPCA(clip_norm=1.0)
    reports = [audit(estimator, 20, 3, n_runs=200, random_state=seed) for seed in (1, 1, None)]
    assert reports[0].to_json() == reports[1].to_json() != reports[2].to_json()
    assert estimator.get_params() == DPPCA(clip_norm=1.0).get_params()
    assert not hasattr(estimator, "privacy_")


@pytest.mark.catches("auditing.releases:audit", "PrivacyLeakWarning", "DeprecationWarning")
def test_made_records_are_read_without_a_warning_and_given_ones_with_one():
    rng = np.random.RandomState(0)
    X, y = rng.uniform(size=(30, 3)), np.arange(30) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        find(SKETCH, 20, n_runs=100)
    with pytest.warns(PrivacyLeakWarning, match="reads them outside of any ledger"):
        report = find(SKETCH, X, y, n_runs=100)
    assert report.reads_rows
    assert "read the given rows" in str(report)
    table = pd.DataFrame({"a": rng.uniform(size=40), "b": ["x", "y"] * 20})
    with pytest.warns(PrivacyLeakWarning):
        report = find(DPSWFlowSampler(4.0, schema="private"), table, n_runs=100, target="b")
    assert report.verdict == "no violation found"
    with pytest.warns(PrivacyLeakWarning):
        report = find(
            clone(SKETCH).set_params(**PERSONS),
            X,
            y,
            n_runs=100,
            persons=np.arange(30) // 5,
        )
    assert report.certificate.max_rows == 3


@pytest.mark.catches(
    "auditing.releases:_take_data",
    "rows = np.flatnonzero(np.asarray(persons) == np.asarray(persons)[-1])",
    "pass",
)
def test_a_person_of_given_rows_takes_the_seat_with_all_of_them(monkeypatch):
    """So rows of which all count are seen; those of others stay where they are."""
    rng = np.random.RandomState(0)
    X, y, persons = rng.uniform(size=(36, 3)), np.arange(36) % 2, np.arange(36) // 9
    persons[:3] = persons[-1]
    estimator = clone(SKETCH).set_params(**PERSONS, epsilon=4.0)
    given = {"y": y, "persons": persons, "n_runs": 400, "random_state": 0}
    with pytest.warns(PrivacyLeakWarning):
        assert audit(estimator, X, **given).verdict == "no violation found"
    monkeypatch.setattr(Reading, "choose", lambda self, X, y, codes: codes >= 0)
    with pytest.warns(PrivacyLeakWarning):
        assert audit(estimator, X, **given).verdict == "violation found"


def test_without_noise_there_is_nothing_to_audit():
    report = find(DPPCA(epsilon=math.inf, clip_norm=1.0))
    assert report.releases == ()
    assert (report.bound, report.claim, report.verdict) == (0.0, math.inf, "no violation found")


def test_noise_of_less_than_a_unit_is_not_audited():
    """Rounded to whole numbers, it is far from normal."""
    estimator = clone(SKETCH).set_params(epsilon=1e4, **PERSONS)
    assert find(estimator, persons=True).releases[0].n_runs == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_runs": 10}, "n_runs must be an integer of at least 100"),
        ({"confidence": 1.0}, "confidence must be in"),
        ({"n_samples": 3}, "needs at least 4 records"),
    ],
)
def test_refusals(given, message):
    with pytest.raises(ValueError, match=message):
        find(SKETCH, **given)


def test_estimators_that_cannot_be_audited():
    with PrivacyBudget(9.0, 1e-3), pytest.raises(ValueError, match="outside of a PrivacyBudget"):
        find(SKETCH)
    with pytest.raises(TypeError, match="cannot be audited"):
        audit(object())
    with pytest.raises(ValueError, match="schema='private' declares no columns"):
        find(DPSWFlowSampler(schema="private"))
    with pytest.raises(ValueError, match="give one row of each person"):
        find(LDPEntropicGAN(), persons=True)
    with pytest.warns(PrivacyLeakWarning), pytest.raises(ValueError, match="at least 4 rows"):
        find(SKETCH, lambda: iter([]))
