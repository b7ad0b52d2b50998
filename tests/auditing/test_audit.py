"""Audits: what is sound is consistent, and shown to be nearly what is claimed; faults are found."""

import math
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from sklearn.base import clone

from skdpgen import (
    Boolean,
    Category,
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    LDPEntropicGAN,
    Number,
    Schema,
    Unknown,
    audit,
)
from skdpgen.curator import batches as sources
from skdpgen.curator.persons import Reading
from skdpgen.mechanisms import sums
from skdpgen.mechanisms.base import Mechanism
from skdpgen.mechanisms.local import LocalRowsMechanism
from skdpgen.preprocessing import DPPCA, LocalPrivatizer
from skdpgen.privacy import CategoryCountsMechanism, NoiseSource, SumMechanism
from skdpgen.releases import ForwardAggregates, SampledGradients, SlicedRows, SliceSketch
from skdpgen.tables.discovery.stages import LOCATIONS

KINDS = {
    "age": Number(0, 100, n_knots=4),
    "pet": Category(["cat", "dog", "fish"]),
    "ok": Boolean(),
    "city": Category(["Graz", "Lyon"]),
}
OPEN = {"age": Number(), "pet": Category(), "what": Unknown()}
BOX = {"bounds": (0, 1), "classes": [0, 1]}
SKETCH = DPSWFlowSampler(**BOX, encoder=None, release=SliceSketch(6, 3))
ROWS = SlicedRows(3, n_steps=5, batch_size=4)
GRADIENTS = SampledGradients(n_steps=2, batch_size=4, n_generated=4)
PERSONS = {"max_rows_per_person": 3}
TABLE = DPSWFlowSampler(4.0, schema=Schema(KINDS))

# How much of the claim has to be shown of each release, and what is asked for beside sizes.
SOUND = {
    "second moments": (DPPCA(bounds=(0, 1)), 0.75),
    "second moments, of what is found": (DPPCA(), 0.35),
    "second moments, replaced": (DPPCA(bounds=(0, 1), relation="replace_one"), 0.4),
    "slice sketch": (SKETCH, 0.75),
    "tables": (TABLE, 0.75),
    "open tables": (DPSWFlowSampler(1.0, 1e-4, schema=Schema(OPEN)), 0.7),
    "local, Laplace noise": (LDPEntropicGAN(4.0, **BOX), 0.5),
    "local, Gaussian noise": (LDPEntropicGAN(4.0, **BOX, release="gaussian"), 0.7),
    "owners": (LocalPrivatizer(epsilon=2.0, **BOX), 0.5),
}
RANDOM = {
    "sliced rows": (DPSlicedWassersteinGenerator(bounds=(0, 1), release=ROWS), 0.35),
    "sliced rows of classes": (DPSWFlowSampler(**BOX, release=ROWS), 0.35),
    # The bound is for opposite gradients with and without a record, which are rare.
    "gradients": (DPSinkhornGenerator(**BOX, release=GRADIENTS), 0.3),
    "aggregates": (
        DPAFGenerator(**BOX, release=ForwardAggregates(n_steps=2, batch_size=4)),
        0.5,
    ),
}


def find(estimator, n_samples=24, *sizes, n_runs=400, **given):
    return audit(estimator, n_samples, *sizes, n_runs=n_runs, random_state=0, **given)


def assert_sound(report, least):
    assert report.verdict == "no violation found", report
    assert report.releases
    for found in report.releases:
        if found.name == LOCATIONS and found.n_runs == 0:
            # Nothing is to be located: the planned release reads no record.
            continue
        assert least * found.claim < found.bound <= found.claim, found
        assert found.rate is None or 0.2 * found.rate[0] < found.rate[1] <= found.rate[0]
        assert not found.reasons
    assert report.bound <= report.claim


@pytest.mark.catches(
    "auditing.runs:Canary.insert",
    "taken[rows] if position is None else position",
    "taken[rows]",
    param="second moments, replaced",
)
@pytest.mark.parametrize("name", [name for name in SOUND if name != "owners"])
def test_sound_releases_are_shown_to_cost_nearly_what_is_claimed(name):
    estimator, least = SOUND[name]
    report = find(estimator)
    assert_sound(report, least)
    assert report.bound > 0.5 * report.claim or "local, Gaussian" in name


@pytest.mark.catches(
    "auditing.mechanism_audit:MechanismAudit._report",
    "over_sensitivity(self._base, self._relation)",
    "self._base",
    param="slice sketch-replace_one",
)
@pytest.mark.parametrize(
    ("name", "relation"),
    [
        ("slice sketch", "zero_out"),
        ("slice sketch", "replace_one"),
        ("tables", "replace_one"),
        ("open tables", "zero_out"),
        pytest.param("tables", "zero_out", marks=pytest.mark.slow),
        pytest.param("open tables", "replace_one", marks=pytest.mark.slow),
    ],
)
def test_persons(name, relation):
    """Their rows move sums by three times as much, which the noise is for."""
    estimator = clone(SOUND[name][0]).set_params(relation=relation, **PERSONS)
    assert_sound(find(estimator, persons=True), 0.7 if relation == "zero_out" else 0.4)


@pytest.mark.parametrize(
    "name",
    [
        "gradients",
        pytest.param("sliced rows of classes", marks=pytest.mark.slow),
        pytest.param("aggregates", marks=pytest.mark.slow),
    ],
)
def test_samples(name):
    """Releases of samples, step by step, and the rate at which a record is among them."""
    estimator, least = RANDOM[name]
    report = find(estimator, 8, n_runs=120)
    assert_sound(report, least)
    assert report.releases[-1].rate is not None


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize("name", [*SOUND, *RANDOM])
def test_with_many_runs(name, relation):
    estimator, _ = (SOUND | RANDOM)[name]
    if "relation" in estimator.get_params():
        estimator = clone(estimator).set_params(relation=relation)
    report = find(estimator, 60, n_runs=5000)
    is_tight = relation == "zero_out" and name != "gradients"
    has_noisy_bound = name in RANDOM or "local" in name or name == "owners"
    assert_sound(report, 0.9 if is_tight and not has_noisy_bound else 0.35)


# --- faults --------------------------------------------------------------------------------------


def find_violations(estimator, *sizes, **given):
    """Return the violations of each release that has some."""
    report = find(estimator, *sizes, **given)
    assert report.verdict == "violation found", report
    return {found.name: found.reasons for found in report.releases if found.reasons}


def change_noise(monkeypatch, change, method="rounded_gaussian"):
    draw = getattr(NoiseSource, method)
    monkeypatch.setattr(
        NoiseSource, method, lambda self, scale: change(lambda s: draw(self, s), scale)
    )


MORE = "privacy loss exceeds the claim"


@pytest.mark.catches(
    "auditing.mechanism_audit:ReleaseAudit.reasons",
    "self.bound > self.claim",
    "self.bound > 2 * self.claim",
    param="tables",
)
@pytest.mark.parametrize("name", ["slice sketch", "tables", "second moments"])
def test_noise_of_half_the_variance(name, monkeypatch):
    change_noise(monkeypatch, lambda draw, scale: draw(scale / math.sqrt(2)))
    report = find(SOUND[name][0])
    assert report.bound > report.claim
    assert all(MORE in found.reasons for found in report.releases), report


def _share(draw, scale):
    """Let both halves have the same noise, as two classes would."""
    drawn = draw(scale).ravel()
    drawn[len(drawn) - len(drawn) // 2 :] = drawn[: len(drawn) // 2]
    return drawn.reshape(scale.shape)


def _shuffle(draw, scale):
    """Let two numbers anywhere have the same noise, up to a sign."""
    drawn = draw(scale).ravel()
    drawn[-3] = -drawn[1]
    return drawn.reshape(scale.shape)


def _mix(draw, scale):
    """Let neighbours have noise in common, and some of their own."""
    drawn = draw(scale)
    return (0.8 * drawn + 0.6 * np.roll(drawn, 1)).astype(np.int64)


def _flat(draw, scale):
    """Uniform noise of the same variance."""
    sizes = np.random.default_rng(abs(int(draw(np.full(1, 2.0**40))[0])))
    return (scale * sizes.uniform(-math.sqrt(3), math.sqrt(3), size=scale.shape)).astype(np.int64)


def _leave_out(draw, scale):
    """Leave one number without noise."""
    drawn = draw(scale).ravel()
    drawn[0] = 0
    return drawn.reshape(scale.shape)


@pytest.mark.catches(
    "auditing.gaussian:GaussianAudit.audit",
    "len(shared)",
    "len(shared) and False",
    param="_shuffle-numbers share their noise-inf",
)
@pytest.mark.catches(
    "auditing.gaussian:_Neighbours.__init__",
    "self.faults.append(_BARE)",
    "pass",
    param="_leave_out-numbers are released without noise-0",
)
@pytest.mark.parametrize(
    ("change", "reason", "least"),
    [
        (_share, "numbers share their noise", math.inf),
        (_shuffle, "numbers share their noise", math.inf),
        (_mix, "noise fails the test of independence of numbers", 0),
        (_flat, "noise fails the test of normality", 0),
        (_leave_out, "numbers are released without noise", 0),
    ],
)
def test_noise_that_is_not_what_it_is_taken_to_be(change, reason, least, monkeypatch):
    change_noise(monkeypatch, change)
    (found,) = find(clone(SKETCH).set_params(clip_norm=1.0)).releases
    assert reason in found.reasons
    assert found.bound >= least


def test_noise_that_is_the_same_in_each_run(monkeypatch):
    monkeypatch.setattr(
        NoiseSource,
        "rounded_gaussian",
        lambda self, scale: np.random.default_rng(0).normal(scale=scale).astype(np.int64),
    )
    assert find(SKETCH).bound == math.inf


def test_runs_that_go_on_with_the_same_noise(monkeypatch):
    """Noise that is used twice, in one run and in the next one."""
    held = []

    def change(draw, scale):
        if held and held[0].shape == scale.shape:
            return held.pop()
        held[:] = [draw(scale)]
        return held[0].copy()

    change_noise(monkeypatch, change)
    (*_, reasons) = find_violations(SKETCH).values()
    assert "noise fails the test of independence of runs" in reasons


def test_noise_that_follows_from_the_record(monkeypatch):
    shape = SumMechanism._noise_shape
    monkeypatch.setattr(
        SumMechanism,
        "_noise_shape",
        lambda self, total: shape(self, total) * (1 + 0.01 * (total.sum() % 2)),
    )
    reasons = find_violations(SKETCH)["slice sketch"]
    assert "noise depends on the record" in reasons


@pytest.mark.catches(
    "auditing.releases:audit",
    "np.isin(np.arange(len(first)), canary.candidates)",
    "None",
    param="auto, few records",
)
@pytest.mark.catches(
    "auditing.made_records:_draw_inside",
    "_INSIDE * generator.uniform(size=(n_rows, 1))",
    "1.0 * generator.uniform(size=(n_rows, 1))",
    param="auto",
)
@pytest.mark.parametrize(
    ("estimator", "n_samples", "n_features", "least"),
    [
        (DPPCA(clip_norm=1.0), 24, None, 4),
        # Radii that are inferred, from enough records to see them despite the noise.
        (DPPCA(bounds=(0, 1)), 300, None, 50),
        (DPPCA(bounds=(0, 1), relation="replace_one"), 300, None, 50),
        # Nearly half of the records are extreme, and would be inside if they were there.
        (DPPCA(epsilon=10.0, bounds=(0, 1)), 60, None, 50),
        # Inferred ranges are mostly noise: how far rows are outside depends on it.
        pytest.param(DPPCA(epsilon=4.0), 300, 30, 1, marks=pytest.mark.slow),
    ],
    ids=["declared", "auto", "auto, replaced", "auto, few records", "auto, inferred bounds"],
)
def test_records_that_are_not_clipped(estimator, n_samples, n_features, least, monkeypatch):
    assert find(estimator, n_samples, n_features, n_runs=200).verdict == "no violation found"
    monkeypatch.setattr(sources, "clip_rows", lambda rows, radius: rows)
    report = find(estimator, n_samples, n_features, n_runs=200)
    found = report.releases[-1]
    assert found.name == "second moments"
    assert MORE in found.reasons
    assert found.bound > least * found.claim
    # Releases that are clipped elsewhere are as they were.
    assert all(other.verdict == "no violation found" for other in report.releases[:-1])


def scale_noise_of(mechanism, monkeypatch, factor, is_changed):
    """Let noise be `factor` times as large on sources for which that holds."""
    run = mechanism.run

    def changed(self, source, event, *, relation, noise):
        if not is_changed(source):
            return run(self, source, event, relation=relation, noise=noise)
        scaled = mock.Mock(wraps=noise)
        for name in ("rounded_gaussian", "rounded_laplace"):
            draw = getattr(noise, name)
            getattr(scaled, name).side_effect = lambda scale, draw=draw: draw(factor * scale)
        return run(self, source, event, relation=relation, noise=scaled)

    monkeypatch.setattr(mechanism, "run", changed)


UNEQUAL = "noise fails the test of equal scale for both neighbours"


@pytest.mark.catches(
    "auditing.gaussian:GaussianAudit._draw_pairs",
    "zip(sources, runs, strict=True)",
    "[(sources[0], runs[0])]",
    param="slice sketch-0.5-present",
)
@pytest.mark.catches(
    "auditing.gaussian:GaussianAudit._draw_pairs", "(0, 1)", "(0,)", param="gradients-0.5-present"
)
# That a record halves the noise looks like that its absence doubles it, but for the scale.
@pytest.mark.parametrize("is_present", [True, False], ids=["present", "absent"])
@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("slice sketch", 0.5),
        ("tables", 0.5),
        ("gradients", 0.5),
        pytest.param("slice sketch", 2.0, marks=pytest.mark.slow),
        pytest.param("tables", 2.0, marks=pytest.mark.slow),
        pytest.param("gradients", 2.0, marks=pytest.mark.slow),
    ],
)
def test_noise_that_depends_on_presence(name, factor, is_present, monkeypatch):
    """As its scale, and not its stated deviation, follows from whether the record is there."""
    scale_noise_of(
        Mechanism, monkeypatch, factor, lambda source: bool(source._null[-1]) != is_present
    )
    estimator, _ = (SOUND | RANDOM)[name]
    report = find(estimator, 8 if name == "gradients" else 24, n_runs=200)
    assert all(UNEQUAL in found.reasons for found in report.releases), report


@pytest.mark.parametrize(
    "name", ["local, Laplace noise", pytest.param("local, Gaussian noise", marks=pytest.mark.slow)]
)
def test_local_noise_that_depends_on_the_record(name, monkeypatch):
    estimator = SOUND[name][0]
    assert find(estimator, n_runs=200).verdict == "no violation found"
    # Opposite corners of the box are compared.
    scale_noise_of(
        LocalRowsMechanism, monkeypatch, 0.5, lambda source: source._arrays[0][0, 0] > 0.5
    )
    assert UNEQUAL in find_violations(estimator, n_runs=200)["noised rows"]


# --- thresholds ----------------------------------------------------------------------------------

ALONE = "values of a single record pass the threshold too often"


def audit_threshold(monkeypatch, change, max_rows=None):
    """Return what is found of category counts whose threshold is changed."""
    estimator, given = SOUND["open tables"][0], {}
    if max_rows is not None:
        estimator, given = (
            clone(estimator).set_params(max_rows_per_person=max_rows),
            {"persons": True},
        )
    present = CategoryCountsMechanism.postprocess

    def present_changed(self, noisy, measured):
        keys, thresholds = measured.context
        changed = [change(threshold) for threshold in thresholds]
        return present(self, noisy, replace(measured, context=(keys, changed)))

    monkeypatch.setattr(CategoryCountsMechanism, "postprocess", present_changed)
    return next(
        found for found in find(estimator, **given).releases if found.name == "category counts"
    )


@pytest.mark.parametrize("max_rows", [None, 3, pytest.param(20, marks=pytest.mark.slow)])
def test_thresholds(max_rows, monkeypatch):
    found = audit_threshold(monkeypatch, lambda threshold: threshold, max_rows)
    claimed, shown = found.threshold
    # Another half is for frequent values.
    assert claimed == pytest.approx(5e-6)
    assert 1e-12 < shown <= claimed
    assert found.verdict == "no violation found"


@pytest.mark.catches(
    "auditing.mechanism_audit:ReleaseAudit.reasons", "self.threshold[0]", "1", param="None"
)
@pytest.mark.parametrize("max_rows", [None, pytest.param(3, marks=pytest.mark.slow)])
def test_a_threshold_of_0(max_rows, monkeypatch):
    """A count of 1 passes with a probability of more than a half, and that of one of several."""
    found = audit_threshold(monkeypatch, lambda threshold: 0, max_rows)
    assert found.reasons == (ALONE,)
    assert found.threshold[1] > 0.4


def test_a_sketch_that_counts_for_more(monkeypatch):
    of = sums.SliceSketchMechanism.sensitivity_of
    monkeypatch.setattr(
        sums.SliceSketchMechanism,
        "sensitivity_of",
        staticmethod(lambda k, *args: of(k / 2, *args)),
    )
    assert MORE in find_violations(SKETCH)["slice sketch"]


@pytest.mark.catches("auditing.releases:_generate_data", "2 * max_rows", "max_rows - 1")
def test_rows_of_a_person_of_which_all_count(monkeypatch):
    monkeypatch.setattr(Reading, "choose", lambda self, X, y, codes: codes >= 0)
    estimator = clone(SKETCH).set_params(**PERSONS)
    assert MORE in find_violations(estimator, persons=True)["slice sketch"]


@pytest.mark.catches("auditing.mechanism_audit:ReleaseAudit.reasons", "self.rate[0]", "1")
@pytest.mark.slow
def test_records_that_join_too_often(monkeypatch):
    drawn = NoiseSource.poisson_sample
    monkeypatch.setattr(
        NoiseSource, "poisson_sample", lambda self, n, rate: drawn(self, n, min(1, 2.5 * rate))
    )
    estimator = clone(RANDOM["sliced rows"][0]).set_params(release__batch_size=1)
    found = find(estimator, 12, n_runs=400).releases[-1]
    assert "sampling rate exceeds the claim" in found.reasons
    assert found.bound <= found.claim


@pytest.mark.parametrize(
    ("estimator", "method"),
    [
        (LDPEntropicGAN(3.0, clip_norm=1.0), "rounded_laplace"),
        (LDPEntropicGAN(3.0, clip_norm=1.0, release="gaussian"), "rounded_gaussian"),
    ],
    ids=["Laplace", "Gaussian"],
)
def test_local_noise(estimator, method, monkeypatch):
    with monkeypatch.context() as patch:
        change_noise(patch, lambda draw, scale: draw(scale * 0.7), method)
        assert find_violations(estimator) == {"noised rows": (MORE,)}

    def repeat(draw, scale):
        drawn = draw(scale)
        drawn[len(drawn) // 2 :] = drawn[: len(drawn) - len(drawn) // 2]
        return drawn

    change_noise(monkeypatch, repeat, method)
    assert "rows share their noise" in find_violations(estimator)["noised rows"]


def test_local_labels(monkeypatch):
    answer = NoiseSource.randomized_response
    monkeypatch.setattr(
        NoiseSource,
        "randomized_response",
        lambda self, codes, k, probability: answer(self, codes, k, 0.7 * probability),
    )
    assert find_violations(LDPEntropicGAN(4.0, **BOX)) == {"noised labels": (MORE,)}
