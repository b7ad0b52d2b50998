"""Searches over a domain adapter: what they cost, and what comes out of them."""

import pickle
import warnings

import numpy as np
import pytest
import torch
from dp_accounting import NeighboringRelation
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from dp_accounting.rdp import RdpAccountant
from scipy.stats import loguniform, uniform
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from torch import nn

from skdpgen import DPSWDDomainAdapter, DPSWFlowSampler, PrivacyBudget
from skdpgen.accounting.moments import ORDERS
from skdpgen.adaptation import (
    DPSWDDomainClassifier,
    Whole,
    private_search,
    reverse_validation_score,
)
from skdpgen.generators import _sliced_flow
from skdpgen.learners.particles import fit_particles_to_sketch
from skdpgen.privacy import BudgetExceededError

QUICK = {"epsilon": 5.0, "delta": 1e-4, "n_steps": 5, "n_projections": 5, "network": "mlp"}
RADIUS = {"clip_norm": uniform(0.5, 1.0)}
WEIGHT = {"align_weight": loguniform(0.01, 1.0)}


@pytest.fixture(autouse=True)
def few_steps_of_particles(monkeypatch):
    def fit(*args, n_steps, **kwargs):
        return fit_particles_to_sketch(*args, n_steps=min(n_steps, 10), **kwargs)

    monkeypatch.setattr(_sliced_flow, "fit_particles_to_sketch", fit)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = np.arange(100) % 2
    X = rng.normal(size=(100, 2)) + np.c_[4 * y, 0 * y]
    return X, y, X[:60, ::-1] + 1.0


class Scoring:
    """Scores fits by their order, and remembers all of them."""

    def __init__(self, scores=(1.1, 3.3, 2.2)):
        self.scores = list(scores)
        self.seen = []

    def __call__(self, model, X, y):
        if model.target_sampler_ is not None:
            self.rows = model.target_sampler_.sample(5, random_state=0)
        score = self.scores[len(self.seen) % len(self.scores)] + 0.123456789 * len(self.seen)
        self.seen.append((model.get_params(), getattr(self, "rows", None), score))
        return score


def search(data, params, scoring=None, *, n_candidates=4, kind=DPSWDDomainClassifier, **options):
    X, y, X_target = data
    return private_search(
        kind(**QUICK | options),
        params,
        X,
        y,
        X_target=X_target,
        n_candidates=n_candidates,
        scoring=scoring,
    )


# One price for all candidates.


def test_the_certificate_is_that_of_the_search(data):
    best = search(data, RADIUS, Scoring(), random_state=0)
    (event,) = best.privacy_.events
    assert isinstance(event, RepeatAndSelectDpEvent)
    assert event.mean == 4.0
    assert event.shape == 1.0
    assert best.privacy_.releases == ("best of several fits",)
    accountant = RdpAccountant(ORDERS, NeighboringRelation.REPLACE_SPECIAL).compose(event)
    assert best.epsilon_ == best.privacy_.epsilon == pytest.approx(accountant.get_epsilon(1e-4))
    assert 4.95 < best.epsilon_ <= best.epsilon == 5.0
    assert best.privacy_.reproducible
    assert best.target_sampler_.privacy_ == best.privacy_
    assert best.target_sampler_.epsilon_ == best.epsilon_
    assert any("not chosen" in text for text in best.privacy_.assumptions)
    assert any("scoring reads" in text for text in best.privacy_.assumptions)
    # Its noise is that of the event, at least.
    assert best.sigma_ == best.privacy_.sigma


def test_shares_may_be_searched(data):
    """Fits with one and with two releases are covered by the same event."""
    params = {"encoder": [None, "dp-pca"], "encoder_share": uniform(0.1, 0.5)}
    scoring = Scoring()
    search(data, params, scoring, n_candidates=8, random_state=1)
    assert {params["encoder"] for params, *_ in scoring.seen} == {None, "dp-pca"}


def test_encoders_that_were_drawn_are_assumed_to_be_public(data):
    assumed = "every encoder that could be drawn was fitted on public data"
    options = {"random_state": 1, "n_candidates": 2}
    assert assumed in str(search(data, {"encoder": [None]}, Scoring(), **options).privacy_)
    assert assumed not in str(search(data, RADIUS, Scoring(), **options).privacy_)


@pytest.mark.parametrize("params", [{"clip_norm": [1.0, 2.0]}, {"align_weight": [0.1, 0.2]}])
def test_candidates_do_not_share_a_network(data, params):
    """Or the best fit would hold what later ones have learnt."""
    shared, scored = nn.Sequential(nn.Linear(2, 3)), []

    def scoring(model, X, y):
        scored.append(model.predict_proba(X))
        return -len(scored)

    before = shared[0].weight.detach().clone()
    options = {"network": lambda n_inputs, n_components: shared, "random_state": 1}
    best = search(data, params, scoring, n_candidates=6, **options)
    assert len(scored) > 1
    np.testing.assert_array_equal(best.predict_proba(data[0]), scored[0])
    assert torch.equal(shared[0].weight, before)


def test_candidates_have_noise_of_their_own(data):
    """Also with a seed, and with the same parameters, which lists give again and again."""
    scoring = Scoring()
    best = search(data, {"clip_norm": [1.0]}, scoring, n_candidates=8, random_state=1)
    seeds = {params["random_state"] for params, *_ in scoring.seen}
    rows = {rows.tobytes() for _, rows, _ in scoring.seen}
    assert len(scoring.seen) > 2
    assert len(seeds) == len(rows) == len(scoring.seen)
    again = search(data, {"clip_norm": [1.0]}, Scoring(), n_candidates=8, random_state=1)
    np.testing.assert_array_equal(best.predict_proba(data[0]), again.predict_proba(data[0]))


def test_nothing_is_kept_of_other_candidates(data, capfd):
    scoring = Scoring()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        best = search(data, RADIUS, scoring, n_candidates=8, random_state=1, verbose=1)
    assert not caught
    assert capfd.readouterr() == ("", "")
    assert best.verbose == best.target_sampler_.verbose == 1
    n_runs = len(scoring.seen)
    assert n_runs > 2
    chosen, _, score = max(scoring.seen, key=lambda seen: seen[2])
    assert best.search_score_ == score
    assert best.clip_norm == chosen["clip_norm"]
    dumped = pickle.dumps(best)
    X, y, X_target = data
    bounds = [X.min(axis=0), X.max(axis=0)]
    for params, rows, other_score in scoring.seen:
        if params is not chosen:
            numbers = rows[~np.isin(rows, bounds)]
            for number in (params["clip_norm"], other_score, *numbers):
                written = np.float64(number).tobytes()
                assert written not in dumped
                assert written[::-1] not in dumped
            assert str(params["random_state"]) not in str(vars(best))
    plain = DPSWDDomainClassifier(**QUICK).fit(X, y, X_target=X_target)
    assert vars(best).keys() - vars(plain).keys() == {"search_score_"}
    assert vars(best.target_sampler_).keys() == vars(plain.target_sampler_).keys()


def test_a_budget_is_charged_for_the_search_only(data):
    with PrivacyBudget(5.0, 1e-4) as budget:
        best = search(data, RADIUS)
        assert budget.spent == best.epsilon_
        with pytest.raises(BudgetExceededError):
            search(data, RADIUS)
    scoring = Scoring()
    with PrivacyBudget(4.9, 1e-4) as budget, pytest.raises(BudgetExceededError):
        search(data, RADIUS, scoring)
    assert budget.spent == 0
    assert scoring.seen == []


def test_bad_rows_count_as_absent(data):
    X, y, X_target = data
    X_target[3, 0] = np.nan
    with PrivacyBudget(5.0, 1e-4) as budget:
        search((X, y, X_target), RADIUS)
    assert budget.spent > 0


@pytest.mark.parametrize("params", [{"learning_rate": [0.0]}, {"network": ["conv28"]}])
def test_bad_candidates_cost_nothing(data, params):
    with PrivacyBudget(5.0, 1e-4) as budget, pytest.raises(ValueError, match=r"rate|784 pixels"):
        search(data, params)
    assert budget.spent == 0


def test_rows_are_released_anew_by_each_candidate(data):
    X, y, X_target = data
    params = {"align_weight": [0.1, 1.0], "grad_clip": [0.5, 1.0]}
    scoring = Scoring()
    best = search((X, y, Whole(X_target)), params, scoring, release="rows", batch_size=20)
    (event,) = best.privacy_.events
    assert event.event.count == 5
    assert event.event.event.sampling_probability == 20 / 60
    assert 4.9 < best.epsilon_ <= 5.0
    assert best.target_sampler_ is None
    assert not best.privacy_.reproducible


def test_no_noise_is_no_privacy(data):
    assert search(data, RADIUS, epsilon=np.inf).epsilon_ == np.inf


# One sketch for all candidates.


def test_what_acts_on_a_sketch_is_searched_for_free(data, monkeypatch):
    fits = []
    fit = DPSWFlowSampler.fit
    monkeypatch.setattr(
        DPSWFlowSampler, "fit", lambda self, X: (fits.append(len(X)), fit(self, X))[1]
    )
    scoring = Scoring()
    with PrivacyBudget(5.0, 1e-4) as budget:
        best = search(data, WEIGHT, scoring, n_candidates=5)
        assert fits == [60]
        assert budget.spent == best.epsilon_ <= 5.0
    assert best.privacy_.releases == ("slice sketch",)
    assert best.accountant == best.privacy_.accountant == "pld"
    assert len(scoring.seen) == 5
    assert scoring.seen[0][0]["align_weight"] == 0.1
    assert len({params["align_weight"] for params, *_ in scoring.seen}) == 5
    assert len({rows.tobytes() for _, rows, _ in scoring.seen}) == 1
    assert best.search_score_ == max(score for *_, score in scoring.seen)
    assert best.n_target_ == 60


def test_after_the_first_fit_the_target_is_not_read(data):
    """The best of a free search is a fit to the sketch, whatever the target was."""
    X, y, X_target = data
    given = DPSWDDomainClassifier(**QUICK, random_state=0)
    best = private_search(given, WEIGHT, X, y, X_target=X_target, n_candidates=3)
    alone = DPSWDDomainClassifier(**best.get_params()).fit(X, y, X_target=X_target)
    np.testing.assert_array_equal(best.predict_proba(X), alone.predict_proba(X))
    assert not hasattr(given, "privacy_")


# Scores.


def test_reverse_validation_scores_public_and_synthetic_rows(data):
    X, y, X_target = data
    model = DPSWDDomainClassifier(**QUICK | {"n_steps": 100}, random_state=0)
    model.fit(X, y, X_target=X_target)
    synthetic = model.target_sampler_.sample(200)
    reverse = LogisticRegression().fit(model.transform(synthetic), model.predict(synthetic))
    expected = reverse.score(model.transform(X), y)
    assert reverse_validation_score(model, X, y, synthetic) == pytest.approx(expected, abs=0.02)
    one_class = np.repeat(synthetic[:1], 20, axis=0)
    assert reverse_validation_score(model, X, y, one_class) == 0.0


def test_reverse_validation_is_silent_where_its_classifier_is_slow():
    rng = np.random.default_rng(0)
    rows, classes = rng.normal(size=(300, 50)), rng.integers(10, size=300)

    class Slow:
        def predict(self, X):
            return classes

        def transform(self, X):
            return X * np.geomspace(1e-4, 1e4, 50)

    with pytest.warns(ConvergenceWarning):
        LogisticRegression(max_iter=200).fit(Slow().transform(rows), classes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert 0 < reverse_validation_score(Slow(), rows, classes, rows) < 1


def test_adapters_need_a_score(data):
    with pytest.raises(ValueError, match="Reverse validation"):
        search(data, WEIGHT, kind=DPSWDDomainAdapter)
    best = search(data, WEIGHT, Scoring(), kind=DPSWDDomainAdapter)
    assert best.transform(data[0]).shape == (100, 50)


# What is refused.


@pytest.mark.parametrize(
    ("params", "options", "match"),
    [
        ({}, {}, "names no parameter"),
        ({"aling_weight": [1.0]}, {}, "no parameters"),
        ({"epsilon": [1.0, 2.0]}, {}, "whole search"),
        ([{"random_state": [1]}, WEIGHT], {}, "whole search"),
        (WEIGHT, {"release": "rows"}, "Reverse validation"),
        (WEIGHT, {"scoring": "accuracy"}, "scoring must be"),
        ({"batch_size": [10, 20]}, {"release": "rows", "scoring": Scoring()}, "costs"),
        (RADIUS, {"release": "rows", "scoring": Scoring()}, "do nothing"),
        (WEIGHT, {"n_candidates": 0.5}, "n_candidates"),
        (WEIGHT, {"epsilon": -1.0}, "epsilon must be"),
    ],
)
def test_bad_searches_are_refused(data, params, options, match):
    with pytest.raises(ValueError, match=match):
        search(data, params, **options)


def test_other_things_are_refused(data):
    X, y, X_target = data
    with pytest.raises(TypeError, match="domain adapter"):
        private_search(LogisticRegression(), {"C": [1.0]}, X, y, X_target=X_target)
    with pytest.raises(ValueError, match="needs X_target"):
        search((X, y, None), RADIUS)
