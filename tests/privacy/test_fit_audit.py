"""Audits of whole fits by guesses of who was there."""

import json
import math

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from skdpgen import (
    DPPCA,
    Boolean,
    Category,
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    ForwardAggregates,
    LocalPrivatizer,
    Number,
    SampledGradients,
    Schema,
    SlicedRows,
    SliceSketch,
)
from skdpgen.privacy import NoiseSource, audit_fit
from skdpgen.privacy.auditing.guesses import SCORES, bound_of_guesses, guess

BOX = {"bounds": (0, 1)}
SKETCH = DPSWFlowSampler(4.0, **BOX, encoder=None, n_steps=3, release=SliceSketch(10, 3))
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


# --- what guesses show ---------------------------------------------------------------------------


@pytest.mark.parametrize(("n_guesses", "bound"), [(100, 3.5), (450, 5.0), (1000, 5.8)])
def test_guesses_that_are_all_right(n_guesses, bound):
    """By hand: log(p / (1 - p)) with p = .05^(1/r)."""
    p = 0.05 ** (1 / n_guesses)
    found = bound_of_guesses(n_guesses, n_guesses, n_guesses, 0.0, 0.05)
    assert found == pytest.approx(math.log(p / (1 - p)), abs=1e-5)
    assert found == pytest.approx(bound, abs=0.05)


def test_guesses_of_randomised_response():
    """Each answer is right with probability e^ε / (1 + e^ε): bounds are wrong as often as said."""
    rng, epsilon = np.random.default_rng(0), 1.0
    n_right = rng.binomial(200, math.exp(epsilon) / (1 + math.exp(epsilon)), size=1000)
    bounds = {n: bound_of_guesses(200, 200, n, 0.0, 0.1) for n in set(n_right.tolist())}
    wrong = np.mean([bounds[n] > epsilon for n in n_right.tolist()])
    assert 0.05 < wrong <= stats.binom.isf(1e-6, 1000, 0.1) / 1000


def test_what_delta_takes_from_the_bound():
    bounds = [bound_of_guesses(1000, 100, 90, delta, 0.05) for delta in (0, 1e-6, 1e-4, 1e-2)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == 0 < bounds[2] < bounds[0]
    assert bound_of_guesses(100, 50, 25, 0.0, 0.05) == 0
    # With probability δ all is told of a record: of m records 2·m·δ at most, for one guess more.
    for delta in (1e-5, 1e-3):
        epsilon = bound_of_guesses(100, 20, 20, delta, 0.05)
        law = stats.binom(20, 1 / (1 + math.exp(-epsilon)))
        most = (
            max(law.cdf(19) - law.cdf(19 - i) for i in range(1, 21))
            if delta == 0
            else max((law.cdf(19) - law.cdf(19 - i)) / i for i in range(1, 21))
        )
        assert law.pmf(20) + 2 * 100 * delta * most == pytest.approx(0.05, abs=1e-5)


def test_a_guess_is_of_the_clearest():
    scores = np.array([3.0, -1.0, 0.1, 5.0, -4.0, 0.2])
    is_there = np.array([True, False, False, True, True, False])
    assert guess(scores, is_there, 4) == 3
    assert guess(scores, is_there, 2) == 1
    assert guess(scores, ~is_there, 4) == 1


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
    found = find(ESTIMATORS[name], n_fits=2, **classes)
    assert found.verdict == "consistent"
    assert 0 <= found.bound <= found.claim <= 4.0
    assert (found.n_canaries, found.n_guesses) == (60, 6)


@pytest.mark.parametrize("name", ["sketch", "components", "table"])
def test_without_noise_nearly_all_guesses_are_right(name, monkeypatch):
    monkeypatch.setattr(
        NoiseSource, "rounded_gaussian", lambda self, scale: np.zeros(scale.shape, np.int64)
    )
    estimator = clone(ESTIMATORS[name]).set_params(epsilon=1.0)
    found = find(estimator, 16, 12, n_fits=5, n_guesses=32)
    assert found.verdict == "convicted", found
    assert found.n_right >= 28


@pytest.mark.parametrize("attack", SCORES)
@pytest.mark.parametrize("name", ["sketch", "table"])
def test_black_boxes(name, attack):
    found = find(ESTIMATORS[name], attack=attack, n_fits=2)
    assert (found.attack, found.verdict) == (attack, "consistent")


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
    found = find(estimator, attack=attack, n_guesses=40)
    assert found.verdict == "convicted"
    assert found.n_right >= 28


def _present(X):
    """The records of this fit that are not absent."""
    from skdpgen.privacy.curator import _watched

    return X[~_watched.get()[1]]


def test_what_an_audit_says():
    found = find(SKETCH, n_guesses=10, confidence=0.9)
    assert str(found).startswith("Consistent: ε > ")
    assert f"{found.n_right} of 10 guesses by releases were right, of 120 records" in str(found)
    written = json.loads(found.to_json())
    assert written["verdict"] == "consistent"
    assert written["n_right"] == found.n_right
    again = find(SKETCH, n_guesses=10, confidence=0.9)
    assert again == found
    assert not hasattr(SKETCH, "privacy_")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"attack": "magic"}, "attack must be one of"),
        ({"n_fits": 0}, "n_fits must be a whole number"),
        ({"n_guesses": 10**6}, r"n_guesses must be in \[1, 120\]"),
        ({"confidence": 2}, "confidence must be in"),
    ],
)
def test_what_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        find(SKETCH, **given)
    with pytest.raises(ValueError, match="under relation='zero_out'"):
        find(clone(SKETCH).set_params(relation="replace_one"))
    with pytest.raises(TypeError, match="cannot be audited"):
        find(LocalPrivatizer())
