"""Audits of whole fits by guesses of who was there."""

import json

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
    Number,
    Schema,
)
from skdpgen.auditing import fits as fit_audit
from skdpgen.auditing.membership import SCORES, count_right_guesses
from skdpgen.preprocessing import DPPCA, LocalPrivatizer
from skdpgen.privacy import NoiseSource, audit_fit
from skdpgen.releases import ForwardAggregates, SampledGradients, SlicedRows, SliceSketch

BOX = {"bounds": (0, 1)}
SKETCH = DPSWFlowSampler(4.0, **BOX, encoder=None, n_steps=3, release=SliceSketch(10, 3))
WIDE = DPSWFlowSampler(
    4.0, **BOX, encoder=None, n_steps=3, clip_norm=1.0, release=SliceSketch(40, 3)
)
SCHEMA = Schema({"age": Number(0, 9, n_knots=4), "a": Category(["x", "y"]), "b": Boolean()})
ESTIMATORS = {
    "sketch": SKETCH,
    "components": DPPCA(epsilon=4.0, **BOX),
    "table": DPSWFlowSampler(4.0, schema=SCHEMA, n_steps=3),
    "rows": DPSlicedWassersteinGenerator(
        4.0, **BOX, release=SlicedRows(8, n_steps=5, batch_size=10)
    ),
    "rows of classes": DPSWFlowSampler(
        4.0, **BOX, classes=[0, 1], release=SlicedRows(4, n_steps=5, batch_size=10)
    ),
    "gradients": DPSinkhornGenerator(4.0, **BOX, release=SampledGradients(n_steps=2)),
    "aggregates": DPAFGenerator(4.0, **BOX, release=ForwardAggregates(n_steps=2, batch_size=10)),
}

SLOW = {"rows", "gradients", "aggregates"}


def find(estimator, n_samples=30, n_features=4, n_fits=4, **given):
    return audit_fit(estimator, n_samples, n_features, n_fits=n_fits, random_state=0, **given)


def change_noise(monkeypatch, factor):
    """Let all noise be so many times as large as is said."""
    draw = NoiseSource.rounded_gaussian
    monkeypatch.setattr(
        NoiseSource, "rounded_gaussian", lambda self, scale: draw(self, factor * scale)
    )


# --- guesses -------------------------------------------------------------------------------------


@pytest.mark.catches(
    "auditing.membership:count_right_guesses", "np.argsort(scores)", "np.argsort(np.abs(scores))"
)
def test_a_guess_is_of_the_clearest():
    scores = np.array([3.0, -1.0, 0.1, 5.0, -4.0, 0.2])
    is_there = np.array([True, False, False, True, True, False])
    assert count_right_guesses(scores, is_there, 4) == 3
    assert count_right_guesses(scores, is_there, 2) == 1
    assert count_right_guesses(scores, ~is_there, 4) == 1


@pytest.mark.catches("auditing.fits:audit_fit", "(1 - confidence) / 2", "1 - confidence")
def test_two_ways_to_refute_share_what_may_be_wrong(monkeypatch):
    asked = {}
    for name in ("refute_by_fits", "refute_by_guesses"):

        def refute(*args, name=name):
            asked[name] = args[-1]
            return False

        monkeypatch.setattr(fit_audit, name, refute)
    find(SKETCH, n_canaries=1, confidence=0.75)
    assert list(asked) == ["refute_by_fits", "refute_by_guesses"]
    assert sum(asked.values()) <= 0.25


@pytest.mark.parametrize("name", SCORES)
def test_rows_that_are_copied_score_more(name):
    rng = np.random.default_rng(0)
    rows, others = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    scores = SCORES[name](rows, rows[:30] + 1e-3, others)
    assert np.median(scores[:30]) > np.median(scores[30:])
    # A score is relative to what others have there.
    assert abs(np.median(SCORES[name](rows, others, others))) < 1e-9


# --- fits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in ESTIMATORS],
)
def test_sound_fits(name):
    classes = {"n_classes": 2} if name == "rows of classes" else {}
    n_canaries = 1 if name in {"rows", "rows of classes", "gradients"} else 3
    found = find(ESTIMATORS[name], n_canaries=n_canaries, **classes)
    assert found.verdict == "no violation found"
    assert 0 <= found.bound <= found.claim <= 4.0
    assert (found.n_fits, found.n_canaries) == (4, 4 * n_canaries)


def test_much_of_the_claim_is_shown_and_less_noise_is_a_violation(monkeypatch):
    """With a seed, so that nothing fails by chance; of more fits see below."""
    sizes = {"n_samples": 5, "n_features": 8, "n_fits": 100, "confidence": 0.99}
    found = find(WIDE, **sizes)
    assert 0.4 * found.claim < found.bound <= found.claim, found
    change_noise(monkeypatch, 0.5)
    assert find(WIDE, **sizes).verdict == "violation found"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_fits", "n_canaries", "confidence"),
    [
        ("sketch", 600, 4, 1 - 1e-6),
        ("components", 1500, 1, 1 - 1e-6),
        ("table", 500, 3, 1 - 1e-6),
        ("rows", 3500, 1, 0.95),
    ],
)
def test_near_half_of_the_claim(name, n_fits, n_canaries, confidence):
    """With 95 % a sound fit is convicted once in 20 seeds; this one does not change."""
    estimator = WIDE if name == "sketch" else ESTIMATORS[name]
    if "clip_norm" in estimator.get_params() and name != "table":
        estimator = clone(estimator).set_params(clip_norm=0.3)
    found = find(estimator, 50, 8, n_fits, n_canaries=n_canaries, confidence=confidence)
    assert 0.45 * found.claim < found.bound <= found.claim, found


@pytest.mark.parametrize("name", ["sketch", "components", "table"])
def test_without_noise_nearly_all_guesses_are_right(name, monkeypatch):
    change_noise(monkeypatch, 0)
    estimator = clone(ESTIMATORS[name]).set_params(epsilon=1.0)
    found = find(estimator, 6, 12, n_fits=30, n_canaries=3, confidence=0.99)
    assert found.verdict == "violation found", found
    assert found.n_right >= 0.85 * found.n_canaries


@pytest.mark.parametrize("attack", SCORES)
@pytest.mark.parametrize("name", ["sketch", "table"])
def test_black_boxes(name, attack):
    found = find(ESTIMATORS[name], attack=attack, n_fits=2)
    assert (found.attack, found.verdict) == (attack, "no violation found")


@pytest.mark.parametrize("attack", SCORES)
def test_a_sampler_that_repeats_its_rows(attack, monkeypatch):
    fit = DPSWFlowSampler._fit

    def remember(self, X, y, target, persons):
        kept = _present(X)
        fitted = fit(self, X, y, target, persons)
        fitted.sample = lambda *args, **kwargs: kept
        return fitted

    monkeypatch.setattr(DPSWFlowSampler, "_fit", remember)
    estimator = clone(SKETCH).set_params(epsilon=0.1)
    found = find(estimator, 30, 12, 10, attack=attack, confidence=0.99)
    assert found.verdict == "violation found"
    assert found.n_right >= 0.6 * found.n_canaries


def _present(X):
    """The records of this fit that are not absent."""
    from skdpgen.curator.curator import _intercepted

    return X[~_intercepted.get()[1]]


def test_content_of_an_audit():
    found = find(SKETCH, n_clear=10, confidence=0.9)
    assert str(found).startswith("No violation found: the audit shows ε > ")
    assert f"In 4 fits, {found.n_right} of 20 guesses by releases were right, and " in str(found)
    assert f"{found.n_clear_right} of the 10 clearest." in str(found)
    written = json.loads(found.to_json())
    assert written["verdict"] == "no violation found"
    assert written["n_right"] == found.n_right
    again = find(SKETCH, n_clear=10, confidence=0.9)
    assert again == found
    assert not hasattr(SKETCH, "privacy_")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"attack": "magic"}, "attack must be one of"),
        ({"n_fits": 0}, "n_fits must be an integer"),
        ({"n_canaries": 0}, "n_canaries must be an integer"),
        ({"n_clear": 10**6}, r"n_clear must be in \[1, 20\]"),
        ({"confidence": 2}, "confidence must be in"),
    ],
)
def test_refusals(given, message):
    with pytest.raises(ValueError, match=message):
        find(SKETCH, **given)
    with pytest.raises(ValueError, match="with relation='zero_out'"):
        find(clone(SKETCH).set_params(relation="replace_one"))
    with pytest.raises(TypeError, match="cannot be audited"):
        find(LocalPrivatizer())
