"""Searches over a domain adapter: what they cost, and what comes out of them."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from dp_accounting import NeighboringRelation
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from dp_accounting.rdp import RdpAccountant
from scipy.stats import loguniform, uniform
from sklearn.base import clone, is_classifier
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler, scale
from torch import nn

from skdpgen import (
    DPSlicedWassersteinGenerator,
    DPSWDDomainAdapter,
    DPSWFlowSampler,
    PrivacyBudget,
    compose,
)
from skdpgen.accounting.moments import ORDERS
from skdpgen.accounting.rounding import show
from skdpgen.adaptation import (
    DPSWDDomainClassifier,
    PrivateSearch,
    get_scorer,
    reverse_validation_score,
)
from skdpgen.adaptation._steps import map_target
from skdpgen.encoders import PrivatePCA
from skdpgen.privacy import BudgetExceededError, SpentError
from skdpgen.releases import SlicedRows, from_release

QUICK = {"epsilon": 5.0, "delta": 1e-4, "n_steps": 5, "n_projections": 5, "network": "mlp"}
RADIUS = {"sampler__clip_norm": uniform(0.5, 1.0)}
WEIGHT = {"align_weight": loguniform(0.01, 1.0)}


# No test of it tells how well a fit learns.
pytestmark = pytest.mark.usefixtures("few_steps")


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
        if hasattr(model, "target_sampler_"):
            self.rows = model.target_sampler_.sample(5, random_state=0)
        score = self.scores[len(self.seen) % len(self.scores)] + 0.123456789 * len(self.seen)
        self.seen.append((model.get_params(), getattr(self, "rows", None), score))
        return score


def search(data, params, scoring=None, *, n_candidates=4, kind=DPSWDDomainClassifier, **options):
    X, y, X_target = data
    if kind is DPSWDDomainClassifier:
        options = {"sampler": DPSWFlowSampler()} | options
    estimator = kind(**QUICK | options)
    searching = PrivateSearch(estimator, params, n_candidates=n_candidates, scoring=scoring)
    return searching.fit(X, y, X_target=X_target)


# One price for all candidates.


@pytest.mark.catches(
    "adaptation._private_search:PrivateSearch._search_releases",
    "Certificate.of_plan(plan, assumptions, reproducible=noise.reproducible)",
    "best.privacy_",
)
def test_the_certificate_is_that_of_the_search(data):
    searched = search(data, RADIUS, Scoring(), random_state=0)
    best = searched.best_estimator_
    (event,) = best.privacy_.events
    assert isinstance(event, RepeatAndSelectDpEvent)
    assert event.mean == 4.0
    assert event.shape == 1.0
    assert best.privacy_.releases == ("best of several fits",)
    accountant = RdpAccountant(ORDERS, NeighboringRelation.REPLACE_SPECIAL).compose(event)
    assert best.epsilon_ == best.privacy_.epsilon == pytest.approx(accountant.get_epsilon(1e-4))
    assert 4.95 < best.epsilon_ <= best.epsilon == 5.0
    assert best.privacy_.reproducible
    assert searched.privacy_ == best.target_sampler_.privacy_ == best.privacy_
    assert searched.epsilon_ == best.epsilon_
    assert best.target_sampler_.epsilon_ == best.epsilon_
    assert any("not chosen" in text for text in best.privacy_.assumptions)
    assert any("scoring reads" in text for text in best.privacy_.assumptions)
    # Its noise is that of the event, at least.
    assert best.sigma_ == best.privacy_.sigma


@pytest.mark.catches("adaptation._private_search:_certify", "published is not None", "False")
def test_published_values_of_the_best_fit_have_the_price_of_the_search(data, tmp_path):
    found = search(data, RADIUS, Scoring())
    published = found.best_estimator_.target_sampler_.release_.published
    assert published.certificate == found.privacy_
    assert found.privacy_.digest == published.digest
    published.save(tmp_path / "release")
    again = from_release(tmp_path / "release", DPSWFlowSampler(n_steps=2))
    assert again.epsilon_ == found.epsilon_
    assert "best of several fits" in again.privacy_.releases
    # However it is handed on, it is one release.
    assert compose(again.privacy_, found.privacy_).events == found.privacy_.events


def test_shares_may_be_searched(data):
    """Fits with one and with two releases are covered by the same event."""
    params = {"sampler__encoder": [None, PrivatePCA(share=0.1), PrivatePCA(share=0.5)]}
    scoring = Scoring()
    search(data, params, scoring, n_candidates=12, random_state=1)
    seen = [params["sampler__encoder"] for params, *_ in scoring.seen]
    assert {encoder and encoder.share for encoder in seen} == {None, 0.1, 0.5}


def test_samplers_may_be_searched(data):
    """One of them says what the search says, too, and one is the default."""
    params = {"sampler": [DPSWFlowSampler(epsilon=5.0, n_particles=60), None]}
    scoring = Scoring()
    searched = search(data, params, scoring, n_candidates=8, random_state=1)
    assert {params["sampler"] is None for params, *_ in scoring.seen} == {True, False}
    assert searched.best_params_ == {"sampler": searched.best_estimator_.sampler}
    assert 4.9 < searched.epsilon_ <= 5.0


def test_samplers_that_release_more_are_refused(data):
    sampler = DPSWFlowSampler(release=SlicedRows(batch_size=6, n_steps=30))
    params = {"sampler__n_particles": [20, 40]}
    with PrivacyBudget(5.0, 1e-4) as budget:
        with pytest.raises(BudgetExceededError, match="more than what the search has paid for"):
            search(data, params, sampler=sampler)
    assert budget.spent == 0


def test_encoders_that_were_drawn_are_assumed_to_be_public(data):
    assumed = "every encoder that could be drawn was fitted on public data"
    options = {"random_state": 1, "n_candidates": 2}
    for params in ({"sampler__encoder": [None]}, {"sampler": [None]}):
        assert assumed in str(search(data, params, Scoring(), **options).privacy_)
    assert assumed not in str(search(data, RADIUS, Scoring(), **options).privacy_)


@pytest.mark.parametrize(
    "params", [{"sampler__clip_norm": [0.9, 2.0]}, {"align_weight": [0.1, 0.2]}]
)
def test_candidates_do_not_share_a_network(data, params):
    """Or the best fit would hold what later ones have learnt."""
    shared, scored = nn.Sequential(nn.Linear(2, 3)), []

    def scoring(model, X, y):
        scored.append(model.predict_proba(X))
        return -len(scored)

    before = shared[0].weight.detach().clone()
    options = {"network": lambda n_inputs, n_components: shared, "random_state": 1}
    best = search(data, params, scoring, n_candidates=6, **options)
    assert len(scored) > 2
    # The first call tries the function, on a model that no private row has changed.
    np.testing.assert_array_equal(best.predict_proba(data[0]), scored[1])
    assert torch.equal(shared[0].weight, before)


@pytest.mark.catches(
    "adaptation._private_search:PrivateSearch._search_releases",
    "noise.seed() if noise.reproducible else None",
    "estimator.random_state",
)
def test_candidates_have_noise_of_their_own(data):
    """Also with a seed, and with the same parameters, which lists give again and again."""
    scoring = Scoring()
    best = search(data, {"sampler__clip_norm": [0.9]}, scoring, n_candidates=8, random_state=1)
    seeds = {params["random_state"] for params, *_ in scoring.seen}
    rows = {rows.tobytes() for _, rows, _ in scoring.seen}
    assert len(scoring.seen) > 2
    assert len(seeds) == len(rows) == len(scoring.seen)
    again = search(data, {"sampler__clip_norm": [0.9]}, Scoring(), n_candidates=8, random_state=1)
    np.testing.assert_array_equal(best.predict_proba(data[0]), again.predict_proba(data[0]))


def test_nothing_is_kept_of_other_candidates(data, capfd):
    scoring = Scoring()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        searched = search(data, RADIUS, scoring, n_candidates=8, random_state=1, verbose=1)
    best = searched.best_estimator_
    assert not caught
    assert capfd.readouterr() == ("", "")
    assert best.verbose == best.target_sampler_.verbose == 1
    n_runs = len(scoring.seen)
    assert n_runs > 2
    chosen, _, score = max(scoring.seen, key=lambda seen: seen[2])
    assert searched.best_score_ == score
    radius = chosen["sampler__clip_norm"]
    assert searched.best_params_ == {"sampler__clip_norm": radius}
    assert best.sampler.clip_norm == best.target_sampler_.clip_norm == radius
    # A scoring function of the caller's may remember anything: it is left out of the pickle.
    dumped = pickle.dumps(searched.set_params(scoring=None))
    X, y, X_target = data
    bounds = [X.min(axis=0), X.max(axis=0)]
    for params, rows, other_score in scoring.seen:
        if params is not chosen:
            numbers = rows[~np.isin(rows, bounds)]
            for number in (params["sampler__clip_norm"], other_score, *numbers):
                written = np.float64(number).tobytes()
                assert written not in dumped
                assert written[::-1] not in dumped
            for fitted in (searched, best, best.target_sampler_):
                assert str(params["random_state"]) not in str(vars(fitted))
    plain = DPSWDDomainClassifier(**QUICK).fit(X, y, X_target=X_target)
    assert vars(best).keys() == vars(plain).keys()
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


@pytest.mark.parametrize("params", [{"learning_rate": [0.0]}, {"network": ["conv28"]}])
def test_bad_candidates_cost_nothing(data, params):
    with PrivacyBudget(5.0, 1e-4) as budget, pytest.raises(ValueError, match=r"rate|784 pixels"):
        search(data, params)
    assert budget.spent == 0


def _fail(model, X, y):
    if model.n_iter_ > 1:  # no rehearsal
        raise KeyError("No score.")
    return 0.0


@pytest.mark.catches(
    "adaptation._private_search:PrivateSearch._fit", "self._try_scoring(model, X, y)", "None"
)
@pytest.mark.parametrize(
    ("scoring", "match"),
    [
        (lambda model, X, y: None, "not 'NoneType'"),
        (lambda model: 1.0, "takes 1 positional argument"),
        (lambda model, X, y: model.no_method(X), "no_method"),
    ],
)
@pytest.mark.parametrize("params", [WEIGHT, RADIUS])
def test_scoring_that_fails_is_refused_before_a_release(data, params, scoring, match):
    with PrivacyBudget(5.0, 1e-4) as budget:
        with pytest.raises((SpentError, TypeError, ValueError), match=match) as caught:
            search(data, params, scoring)
    assert budget.spent == 0
    assert str(caught.value).startswith("scoring fails on made-up rows")


@pytest.mark.catches(
    "adaptation._private_search:PrivateSearch._try_scoring", "PublicRun()", "muted()"
)
def test_scoring_is_tried_with_any_sampler_and_costs_nothing(data):
    for sampler in (
        DPSWFlowSampler(release=SlicedRows(batch_size=6, n_steps=2)),
        DPSlicedWassersteinGenerator(),
    ):
        with PrivacyBudget(5.0, 1e-4) as budget:
            estimator = DPSWDDomainClassifier(**QUICK, sampler=sampler)
            searching = PrivateSearch(estimator, WEIGHT, scoring=Scoring())
            try:
                searching._try_scoring(estimator, *data[:2])
            except BudgetExceededError as error:
                raise AssertionError(str(error)) from None
        assert budget.spent == 0


# How a run fails: its parameters, and which error then tells the price.
FAILURES = {
    "a run diverges": ({"learning_rate": 1e14}, None, SpentError),
    "a score fails": ({}, _fail, SpentError),
    "a score is nan": ({}, lambda model, X, y: np.nan, ValueError),
    "rows are refused": ({"strict": True}, None, ValueError),
}


def _prices(error):
    return re.findall(r"ε = (\S+) at", str(error))


@pytest.mark.catches(
    "accounting.selection:select_best", "released and isinstance(error, Exception)", "False"
)
@pytest.mark.catches("accounting.spending:report_spent_on_error", "not is_search_run()", "True")
@pytest.mark.catches(
    "accounting.spending:restate_with_price", "price * (not is_search_run())", "price"
)
@pytest.mark.parametrize("name", FAILURES)
def test_an_error_states_the_price_of_the_search_and_no_other(data, name):
    options, scoring, kind = FAILURES[name]
    X, y, X_target = data
    if name == "rows are refused":
        X_target[3, 0] = np.nan
    budget = PrivacyBudget(5.0, 1e-4)
    with budget, pytest.raises(kind, match="All of the search is charged: ε = 5 at") as raised:
        search((X, y, X_target), RADIUS, scoring, **options)
    assert _prices(raised.value) == ["5"] == [show(budget.spent)]


def test_an_error_of_a_candidate_that_costs_nothing_states_the_price_of_the_search(data):
    scores = [2.0, 1.0]

    def fail_at_last(model, X, y):
        if not scores:
            raise ValueError("No score.")
        return scores.pop()

    budget = PrivacyBudget(5.0, 1e-4)
    with budget, pytest.raises(SpentError, match=r"No score\. Until then") as raised:
        search(data, WEIGHT, fail_at_last)
    assert _prices(raised.value) == [show(budget.spent)]


# One sketch for all candidates.


def test_parameters_that_act_on_a_sketch_are_searched_for_free(data, monkeypatch):
    fits = []
    fit = DPSWFlowSampler.fit
    monkeypatch.setattr(
        DPSWFlowSampler, "fit", lambda self, X: (fits.append(len(X)), fit(self, X))[1]
    )
    scoring = Scoring()
    with PrivacyBudget(5.0, 1e-4) as budget:
        searched = search(data, WEIGHT, scoring, n_candidates=5)
        best = searched.best_estimator_
        # The source, for a rehearsal of the scoring function, and the target.
        assert fits == [100, 60]
        assert budget.spent == searched.epsilon_ == best.epsilon_ <= 5.0
    assert searched.privacy_.releases == best.privacy_.releases == ("slice sketch",)
    assert best.accountant == best.privacy_.accountant == "pld"
    assert len(scoring.seen) == 5
    assert scoring.seen[0][0]["align_weight"] == 0.1
    assert len({params["align_weight"] for params, *_ in scoring.seen}) == 5
    assert len({rows.tobytes() for _, rows, _ in scoring.seen}) == 1
    assert searched.best_score_ == max(score for *_, score in scoring.seen)
    assert searched.best_params_ == {"align_weight": best.align_weight}
    assert best.n_target_ == 60


@pytest.mark.parametrize("sampler", [None, DPSWFlowSampler()])
def test_parameters_handed_to_the_sampler_are_not_free(data, sampler):
    """All but that is."""
    classifier = DPSWDDomainClassifier(sampler=sampler)
    handed = {"sampler", "bounds", "epsilon", "delta", "relation", "accountant"}
    handed |= {"random_state", "device", "verbose", "strict"}
    assert classifier.free_parameters == set(classifier.get_params(deep=False)) - handed
    scoring = Scoring()
    params = {"bounds": [(-9, 9), (-8, 8)]}
    searched = search(data, params, scoring, sampler=sampler, random_state=1)
    assert searched.privacy_.releases == ("best of several fits",)


def test_after_the_first_fit_the_target_is_not_read(data):
    """The best of a free search is a fit to the sketch, whatever the target was."""
    X, y, X_target = data
    given = DPSWDDomainClassifier(**QUICK, random_state=0)
    best = PrivateSearch(given, WEIGHT, n_candidates=3).fit(X, y, X_target=X_target)
    alone = clone(best.best_estimator_).fit(X, y, X_target=X_target)
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

    class Slow(DPSWDDomainClassifier):
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
    with pytest.raises(ValueError, match="needs an estimator with predict"):
        search(data, WEIGHT, kind=DPSWDDomainAdapter)
    best = search(data, WEIGHT, Scoring(), kind=DPSWDDomainAdapter)
    assert best.transform(data[0]).shape == (100, 50)


@pytest.mark.parametrize("name", ["reverse_validation", "source_accuracy", "target_entropy"])
def test_scores_have_names_and_cost_nothing(data, name):
    X, y, _ = data
    with PrivacyBudget(5.0, 1e-4) as budget:
        best = search(data, WEIGHT, name, n_candidates=2)
    assert budget.spent == best.epsilon_
    shares = best.predict_proba(best.best_estimator_.target_sampler_.sample(1000, random_state=0))
    expected = {
        "reverse_validation": reverse_validation_score(best.best_estimator_, X, y),
        "source_accuracy": best.score(X, y),
        "target_entropy": (shares * np.log(shares)).sum(axis=1).mean(),
    }
    model, scorer = best.best_estimator_, pickle.loads(pickle.dumps(get_scorer(name)))
    scaled = Pipeline([("scale", StandardScaler().fit(X)), ("model", model)])
    for found in (
        best.best_score_,
        scorer(model, X, y),
        scorer(scaled, scaled[0].inverse_transform(X), y),
    ):
        assert found == pytest.approx(expected[name])


# Pipelines.


def search_pipeline(data, steps, params, scoring=None, **options):
    X, y, X_target = data
    adapter = DPSWDDomainAdapter(**QUICK, sampler=DPSWFlowSampler(), **options)
    pipe = Pipeline([*steps, ("adapt", adapter), ("classify", LogisticRegression())])
    searching = PrivateSearch(pipe, params, n_candidates=3, scoring=scoring)
    return searching.fit(X, y, X_target=X_target)


def test_a_pipeline_costs_what_its_adapter_costs(data):
    X, y, X_target = data
    steps = [("scale", StandardScaler()), ("skip", "passthrough")]
    params = {"adapt__align_weight": [0.1, 1.0], "classify__C": [0.1, 1.0]}
    with PrivacyBudget(5.0, 1e-4) as budget:
        found = search_pipeline(data, steps, params)
        assert budget.spent == found.epsilon_ <= 5.0
    assert found.privacy_.releases == ("slice sketch",)
    scaler, _, adapter, classifier = found.best_estimator_.named_steps.values()
    # The scaler learns of the source alone, and the adapter's rows are in its units.
    np.testing.assert_allclose(scaler.mean_, X.mean(axis=0))
    bounds = scaler.transform(X).min(axis=0), scaler.transform(X).max(axis=0)
    np.testing.assert_allclose(adapter.target_sampler_.bounds_, bounds)
    mapped = adapter.transform(scaler.transform(X_target))
    np.testing.assert_array_equal(found.predict(X_target), classifier.predict(mapped))
    assert found.best_params_ == {
        "adapt__align_weight": adapter.align_weight,
        "classify__C": classifier.C,
    }
    assert found.best_score_ == reverse_validation_score(found.best_estimator_, X, y)
    both = np.vstack([X, X_target]), np.r_[y, np.full(60, -1)]
    again = clone(found).fit(*both, sample_domain=np.repeat([1, -1], [100, 60]))
    np.testing.assert_allclose(again.best_estimator_[0].mean_, X.mean(axis=0))


@pytest.mark.catches(
    "adaptation._private_search:PrivateSearch._fit",
    "{own.split('__')[0] for own in names.values()} <= free",
    "True",
)
def test_a_pipeline_pays_for_what_its_sampler_reads(data):
    steps, params = [("scale", StandardScaler())], {"adapt__sampler__clip_norm": [0.5, 0.9]}
    found = search_pipeline(data, steps, params)
    assert found.privacy_.releases == ("best of several fits",)
    assert found.privacy_ == found.best_estimator_["adapt"].privacy_
    assert found.best_params_.keys() == params.keys()


@pytest.mark.catches("adaptation._steps:map_target", "1e-8", "9.0")
@pytest.mark.parametrize("step", [scale, lambda X: X + np.random.default_rng().random(X.shape)])
def test_steps_that_mix_rows_are_refused(data, step):
    steps = [("mix", FunctionTransformer(step))]
    with PrivacyBudget(5.0, 1e-4) as budget, pytest.raises(ValueError, match="each row on its own"):
        search_pipeline(data, steps, {"classify__C": [1.0]})
    assert budget.spent == 0


@pytest.mark.parametrize("make", [np.asarray, np.ndarray.tolist, pd.DataFrame])
def test_rows_for_which_a_step_fails_are_absent(data, make):
    """An error would be a statement about them, and so would a change of other rows."""
    X, _, X_target = data
    before = make_pipeline(PCA(1)).fit(X)
    expected = before.transform(X_target)
    X_target[[3, 40], 1] = np.nan, np.inf
    mapped = map_target(before, make(X), make(X_target))
    assert np.isnan(mapped[[3, 40]]).all()
    np.testing.assert_allclose(np.delete(mapped, [3, 40], 0), np.delete(expected, [3, 40], 0))
    with pytest.raises(ValueError, match="columns of X"):
        map_target(before, make(X), make(X_target[:, :1]))
    assert search_pipeline(data, [("pca", PCA(1))], {"classify__C": [1.0]}).epsilon_ <= 5.0


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"classify__C": [-1.0]}, "'C' parameter"),
        ({"adapt__learning_rate": [0.0]}, "learning_rate"),
        ({"adapt": [DPSWDDomainAdapter()]}, "whole search"),
        ({"adapt__epsilon": [9.0]}, "whole search"),
        ({"adapt__sampler__epsilon": [9.0]}, "whole search"),
        ({"memory": ["cache"]}, "whole search"),
        ({"scale__with_std": [True]}, "whole search"),
    ],
)
def test_bad_pipelines_cost_nothing(data, params, match):
    with PrivacyBudget(5.0, 1e-4) as budget, pytest.raises(ValueError, match=match):
        search_pipeline(data, [("scale", StandardScaler())], params)
    assert budget.spent == 0


# As an estimator.


def test_a_search_does_what_its_best_fit_does(data):
    X, y, _ = data
    searched = search(data, WEIGHT, random_state=0)
    best = searched.best_estimator_
    np.testing.assert_array_equal(searched.predict(X), best.predict(X))
    np.testing.assert_array_equal(searched.predict_proba(X), best.predict_proba(X))
    np.testing.assert_array_equal(searched.transform(X), best.transform(X))
    np.testing.assert_array_equal(searched.classes_, [0, 1])
    assert searched.score(X, y) == best.score(X, y)
    assert searched.n_features_in_ == 2
    assert is_classifier(searched)


def test_a_search_before_it_is_fitted():
    searching = PrivateSearch(DPSWDDomainClassifier(), WEIGHT, n_candidates=3)
    assert clone(searching).get_params().keys() == searching.get_params().keys()
    assert repr(searching).startswith("PrivateSearch(estimator=DPSWDDomainClassifier(),")
    assert searching.set_params(estimator__epsilon=2.0).estimator.epsilon == 2.0
    with pytest.raises(NotFittedError):
        searching.predict([[0.0, 1.0]])
    assert not hasattr(searching, "classes_")
    transformer = PrivateSearch(DPSWDDomainAdapter(), WEIGHT)
    assert hasattr(transformer, "transform")
    assert not any(hasattr(transformer, name) for name in ("predict", "predict_proba", "score"))


# Refusals.


@pytest.mark.parametrize(
    ("params", "options", "match"),
    [
        ({}, {}, "at least one parameter"),
        ({"aling_weight": [1.0]}, {}, "no parameters"),
        ({"epsilon": [1.0, 2.0]}, {}, "whole search"),
        ([{"random_state": [1]}, WEIGHT], {}, "whole search"),
        ({"sampler__epsilon": [1.0, 2.0]}, {}, "whole search"),
        ({"sampler__n_paticles": [10]}, {"sampler": None}, "no parameters"),
        ({"network__width": [10]}, {}, "no parameters"),
        ({"sampler__release__width": [10]}, {}, "no parameters"),
        (WEIGHT, {"kind": DPSWDDomainAdapter}, "needs an estimator with predict"),
        (WEIGHT, {"scoring": "accuracy"}, "scoring must be"),
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
        PrivateSearch(LogisticRegression(), {"C": [1.0]}).fit(X, y, X_target=X_target)
    two = make_pipeline(DPSWDDomainAdapter(), DPSWDDomainClassifier())
    with pytest.raises(TypeError, match="Pipeline with 2"):
        PrivateSearch(two, WEIGHT).fit(X, y, X_target=X_target)
    with pytest.raises(ValueError, match="needs X_target"):
        search((X, y, None), RADIUS)
