"""Audits of adapters: of what they release of the target; the source is made, and public."""

import math

import numpy as np
import pytest

from skdpgen import DPSWDDomainAdapter, DPSWFlowSampler, audit
from skdpgen.adaptation import DPSWDDomainClassifier, PrivateSearch
from skdpgen.privacy import NoiseSource, PrivacyLeakWarning
from skdpgen.releases import SlicedRows, SliceSketch

SKETCH = DPSWFlowSampler(encoder=None, release=SliceSketch(6, 3))
ROWS = DPSWFlowSampler(release=SlicedRows(3, n_steps=2, batch_size=4))
ADAPTERS = {
    "sketch": DPSWDDomainAdapter(2.0, 1e-6, bounds=(0, 1), sampler=SKETCH),
    "classifier": DPSWDDomainClassifier(2.0, 1e-6, bounds=(0, 1), sampler=SKETCH),
    "samples": DPSWDDomainAdapter(2.0, 1e-6, bounds=(0, 1), sampler=ROWS),
}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def find(name, n_runs=300, **given):
    return audit(ADAPTERS[name], 20, 3, n_runs=n_runs, random_state=0, **given)


@pytest.mark.parametrize(
    "name", ["sketch", "classifier", pytest.param("samples", marks=pytest.mark.slow)]
)
def test_releases_of_adapters_are_consistent(name):
    report = find(name)
    assert report.verdict == "no violation found", report
    for found in report.releases:
        least = {"sketch": 0.7, "classifier": 0.7, "samples": 0.3}[name]
        assert least * found.claim < found.bound <= found.claim, found
    assert report.bound <= report.claim == pytest.approx(2.0, abs=0.01)


def test_too_little_noise_is_found(monkeypatch):
    draw = NoiseSource.rounded_gaussian
    monkeypatch.setattr(
        NoiseSource, "rounded_gaussian", lambda self, std: draw(self, std / math.sqrt(8))
    )
    assert find("sketch").verdict == "violation found"


def test_given_rows_are_the_target():
    X = np.random.default_rng(0).random((20, 3))
    with pytest.warns(PrivacyLeakWarning, match="outside of any ledger"):
        report = audit(ADAPTERS["sketch"], X, n_runs=300, random_state=0)
    assert report.reads_rows
    assert report.verdict == "no violation found"


def test_refusals():
    with pytest.raises(TypeError, match="that it fits"):
        audit(PrivateSearch(ADAPTERS["sketch"], {}), 20)
    with pytest.raises(ValueError, match="neither labels"):
        find("sketch", n_classes=2)
