"""Searches of scikit-learn make several fits, which add up: that is said, from code alone."""

import contextlib
import threading
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score, validation_curve

from skdpgen import (
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    PrivacyBudget,
)
from skdpgen.adaptation import DPSWDDomainClassifier, PrivateSearch, Whole
from skdpgen.exceptions import BudgetExceededError, PrivacyLeakWarning

pytestmark = pytest.mark.filterwarnings("ignore")

X = np.random.default_rng(0).random((40, 2))
Y = np.arange(40) % 2
SAMPLER = DPSWFlowSampler(0.5, bounds=(0, 1), clip_norm=1.0, encoder=None, n_steps=2)
GRID = {"learning_rate": [0.01, 0.1]}
CLASSIFIER = DPSWDDomainClassifier(1.0, bounds=(0, 1), n_steps=2)
MANY = {
    "grid": lambda: GridSearchCV(SAMPLER, GRID, cv=2).fit(X),
    "threads": lambda: GridSearchCV(SAMPLER, GRID, cv=2, n_jobs=2, pre_dispatch=2).fit(X),
    "folds": lambda: cross_val_score(SAMPLER, X, cv=2),
    "curve": lambda: validation_curve(SAMPLER, X, None, param_name="n_steps", param_range=[1]),
    "target": lambda: cross_val_score(CLASSIFIER, X, Y, cv=2, params={"X_target": Whole(X)}),
}
ONE = {
    "fit": lambda: SAMPLER.fit(X),
    "private search": lambda: PrivateSearch(
        CLASSIFIER, {"align_weight": [0.1, 0.2]}, n_candidates=2
    ).fit(X, Y, X_target=X),
    "search among releases": lambda: PrivateSearch(
        clone(CLASSIFIER).set_params(sampler=DPSWFlowSampler(n_steps=2)),
        {"sampler__n_particles": [5, 9]},
        n_candidates=2,
    ).fit(X, Y, X_target=X),
}


def count_warnings(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    said = [w for w in caught if "add up" in str(w.message)]
    assert all(w.category is PrivacyLeakWarning for w in said)
    return len(said), {w.filename for w in said}


@pytest.mark.parametrize("name", sorted(MANY.keys() - {"threads"}))
def test_fits_of_a_search_add_up(name):
    # Once a search, however many fits it makes; a further search is told anew.
    for _ in range(2):
        assert count_warnings(MANY[name]) == (1, {__file__})


def test_fits_in_threads_are_seen():
    from joblib import parallel_config

    with parallel_config(backend="threading"):
        # Threads that catch warnings take them from each other.
        assert count_warnings(MANY["threads"])[0] >= 1


@pytest.mark.parametrize("name", ONE)
def test_single_fits_say_nothing(name):
    assert count_warnings(ONE[name]) == (0, set())


def test_budgets_cover_them():
    with PrivacyBudget(10.0, 1e-5) as budget:
        assert count_warnings(MANY["grid"]) == (0, set())
    assert budget.spent > 1


def test_the_rows_decide_nothing():
    """The warning is the same for rows that were never fitted before."""
    for rows in (X, X + 1):
        assert count_warnings(lambda rows=rows: cross_val_score(SAMPLER, rows, cv=2))[0] == 1
    thread = threading.Thread(target=lambda: SAMPLER.fit(X))
    assert count_warnings(lambda: (thread.start(), thread.join()))[0] == 0


def said_of_few_rows(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with contextlib.suppress(BudgetExceededError):
            fit()
    (said,) = [str(w.message) for w in caught if "rows to be of use" in str(w.message)]
    return said


@pytest.mark.parametrize("sums", [DPSWFlowSampler, DPSlicedWassersteinGenerator])
@pytest.mark.parametrize("steps", [DPSinkhornGenerator, DPAFGenerator])
def test_advice_is_not_what_is_done_already(sums, steps):
    for method in (sums, steps):
        # The budget refuses the fit, and that is after the warning.
        with PrivacyBudget(1e-4, 1e-5):
            said = said_of_few_rows(lambda method=method: method(0.2, bounds=(0, 1)).fit(X))
            assert ("DPSWFlowSampler with a sketch" in said) == (method is steps)


@pytest.mark.parametrize("n_target", [40, 39])
def test_targets_as_long_as_the_source_may_have_been_cut(n_target):
    classifier = DPSWDDomainClassifier(0.01, bounds=(0, 1), n_steps=2)
    said = said_of_few_rows(lambda: classifier.fit(X, Y, X_target=X[:n_target]))
    assert ("give Whole(X_target)" in said) == (n_target == 40)
    assert said == said.strip()
