"""One budget for many fits: refused in time, never reset, never counted twice."""

import contextlib
import copy
import functools
import itertools
import pickle
import threading
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from dp_accounting import (
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
)
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV

from skdpgen import DPSWFlowSampler
from skdpgen.accounting.budget import Reservation
from skdpgen.accounting.rounding import show
from skdpgen.privacy import (
    BudgetExceededError,
    Curator,
    GaussianSumMechanism,
    NoiseSource,
    Plan,
    PrivacyBudget,
    RecordFunction,
    SlicedGaussianDpEvent,
    ThresholdDpEvent,
    calibrate_gaussian,
    gaussian_plan,
    ledger_epsilon,
    repeated_plan,
)

ROWS = np.random.default_rng(0).normal(size=(30, 2))


def fit(epsilon=1.0, X=ROWS, shares=None, released=None, random_state=None, **options):
    """Plan releases, and make some of them."""
    shares = shares or {"a": 1.0}
    plan = gaussian_plan(shares, epsilon, 1e-5, **options)
    with Curator(X, plan=plan, noise=NoiseSource(random_state)) as curator:
        for name in list(shares)[:released]:
            curator.release(GaussianSumMechanism(RecordFunction(lambda rows: rows), 1.0, name=name))
    return plan


class Model(BaseEstimator):
    """An estimator whose fit is one release."""

    def __init__(self, epsilon=1.0, strength=1):
        self.epsilon = epsilon
        self.strength = strength

    def fit(self, X, y=None):
        fit(self.epsilon, X)
        return self

    def score(self, X, y=None):
        return self.strength


def together(*epsilons):
    events = [GaussianDpEvent(calibrate_gaussian(epsilon, 1e-5)) for epsilon in epsilons]
    return ledger_epsilon(events, 1e-5)


def test_ctrl_c_while_rows_are_read_is_charged_and_says_so():
    """The code of a cell can raise it, too."""

    def read():
        yield ROWS
        raise KeyboardInterrupt

    with PrivacyBudget(3.0, 1e-5) as budget, pytest.raises(KeyboardInterrupt) as raised:
        fit(1.0, X=read)
    assert budget.spent == pytest.approx(1.0)
    assert "all of the fit is charged: ε = 1 at δ = 1e-05" in raised.value.__notes__[0]


@pytest.mark.catches(
    "accounting.budget:PrivacyBudget._cost",
    "ledger_epsilon(together, left, relation=self.relation)",
    "ledger_epsilon(together, left)",
    param="replace_one",
)
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_a_fit_costs_as_much_as_on_its_certificate(relation):
    plan = gaussian_plan({"a": 1.0}, 1.0, 1e-5, relation=relation)
    with PrivacyBudget(3.0, 1e-5, relation=relation) as budget:
        with Curator(ROWS, plan=plan, noise=NoiseSource()) as curator:
            curator.release(GaussianSumMechanism(RecordFunction(lambda rows: rows), 1.0, name="a"))
    assert budget.spent == pytest.approx(curator.certificate().epsilon, rel=1e-6)
    assert budget.spent == pytest.approx(1.0, rel=1e-6)


@pytest.mark.catches(
    "accounting.budget:PrivacyBudget._cost",
    "cost - math.log1p(-self.threshold_delta)",
    "cost",
    param="0.5",
)
@pytest.mark.parametrize("part", [0.01, 0.5, 0.9])
def test_thresholds_cost_as_much_as_on_a_certificate(part):
    """Their δ' is taken off δ, and adds -log(1 - δ') to ε, of which large ones show."""
    delta, slack = 0.2, 0.2 * part
    budget = PrivacyBudget(5.0, delta, threshold_delta=slack)
    plan = Plan((("a", ThresholdDpEvent(2.0, slack)), ("b", GaussianDpEvent(2.0))), 5.0, delta)
    with budget, Curator(ROWS, plan=plan, noise=NoiseSource()):
        assert budget.spent == pytest.approx(ledger_epsilon(plan.events, delta), rel=1e-6)


@pytest.mark.catches("accounting.budget:PrivacyBudget._check_thresholds", "1 + 1e-9", "1 + 1e-2")
def test_a_threshold_that_overruns_by_a_millionth_is_refused():
    def fit(slack):
        plan = Plan((("a", ThresholdDpEvent(20.0, slack)),), 1.0, 1e-5)
        Curator(ROWS, plan=plan, noise=NoiseSource())

    with PrivacyBudget(5.0, 1e-5, threshold_delta=1e-6):
        with pytest.raises(BudgetExceededError, match="sets aside threshold_delta=1e-06"):
            fit(1e-6 * (1 + 1e-6))
        fit(0.5e-6)
        with pytest.raises(BudgetExceededError, match="sets aside threshold_delta=1e-06"):
            fit(0.5e-6 * (1 + 1e-5))
        fit(0.5e-6)


@pytest.mark.catches(
    "accounting.plan:_gaussian_releases",
    "math.log1p(-slack)",
    "sum(math.log1p(-one) for one in thresholds.values())",
    param="2.0-0.001",
)
@pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 1e-3), (8.0, 1e-2), (1.0, 1.4e-3)])
def test_an_exact_fit_with_several_thresholds_is_allowed(epsilon, delta):
    """They cost less than the one of all their δ', which a budget must set aside."""
    table = pd.DataFrame({name: list("abcd") * 50 for name in "xyz"})
    budget, refused = PrivacyBudget(epsilon, delta, threshold_delta=delta / 10), None
    try:
        with budget:
            DPSWFlowSampler(epsilon, delta, n_steps=1).fit(table)
    except BudgetExceededError as error:
        refused = error
    assert refused is None
    assert 0.999 * epsilon < budget.spent <= epsilon * (1 + 1e-9)


@pytest.mark.catches("accounting.budget:PrivacyBudget._check", "1 + 1e-9", "1 + 1e-2")
def test_a_fit_that_overruns_by_a_millionth_is_refused():
    cost = together(1.0, 0.5)
    with PrivacyBudget(cost, 1e-5) as enough:
        fit(1.0)
        fit(0.5)
    assert 0.999 * cost < enough.spent <= cost
    with PrivacyBudget(cost * (1 - 1e-6), 1e-5) as too_small:
        fit(1.0)
        with pytest.raises(BudgetExceededError, match="over the budget"):
            fit(0.5)
    assert too_small.spent == pytest.approx(1.0, rel=1e-6)


def test_an_overrunning_fit_is_refused_before_rows_are_read():
    def read():
        raise AssertionError("rows were read")
        yield

    budget = PrivacyBudget(1.2, 1e-5)
    with budget:
        fit(1.0)
        with pytest.raises(
            BudgetExceededError, match=r"over the budget of 1.2; 1 is spent .* smaller epsilon"
        ):
            fit(1.0, X=read)
    assert budget.spent == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(("released", "share"), [(0, 0.0), (1, 0.25), (2, 1.0)])
def test_unreleased_share_is_returned(released, share):
    budget = PrivacyBudget(3.0, 1e-5)
    with budget:
        plan = fit(2.0, shares={"a": 0.25, "b": 0.75}, released=released)
    expected = ledger_epsilon(plan.events[:released], 1e-5)
    assert budget.spent == pytest.approx(expected, rel=1e-9)


def test_a_fit_in_progress_has_its_whole_plan_reserved():
    budget = PrivacyBudget(1.5, 1e-5)
    plan = gaussian_plan({"a": 0.1, "b": 0.9}, 1.0, 1e-5)
    with budget, Curator(ROWS, plan=plan, noise=NoiseSource()) as curator:
        curator.release(GaussianSumMechanism(RecordFunction(lambda rows: rows), 1.0, name="a"))
        assert budget.spent == pytest.approx(1.0, rel=1e-6)
        with pytest.raises(BudgetExceededError):
            fit(1.4)


def test_bad_shapes_cost_nothing_and_a_refusal_of_rows_all():
    budget = PrivacyBudget(1.5, 1e-5)
    with budget, pytest.raises(ValueError, match="2-dimensional"):
        fit(1.0, X=ROWS[0])
    assert budget.spent == 0
    plan = gaussian_plan({"a": 1.0}, 1.0, 1e-5)
    with budget, pytest.raises(ValueError, match="NaN"):
        Curator(ROWS * np.nan, plan=plan, noise=NoiseSource(), refuse=lambda X, y: None)
    assert budget.spent == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize("random_state", [0, np.random.RandomState(0)], ids=["int", "instance"])
def test_seeds_are_refused(random_state):
    budget = PrivacyBudget(3.0, 1e-5)
    with budget, pytest.raises(BudgetExceededError, match="share noise"):
        fit(1.0, random_state=random_state)
    assert budget.spent == 0


def test_another_relation_is_refused():
    with PrivacyBudget(3.0, 1e-5), pytest.raises(BudgetExceededError, match="'replace_one'"):
        fit(1.0, relation="replace_one")


@functools.cache
def plan_of(event, n_steps, relation="replace_one"):
    """Plan a class count and a repeated release, at ε = 1."""
    shares = {"counts": 0.1} if n_steps > 1 else {}
    return repeated_plan("step", event, n_steps, 1.0, 1e-5, shares=shares, relation=relation)


OTHERS = {
    "samples": (lambda m: PoissonSampledDpEvent(0.1, GaussianDpEvent(m)), 50),
    "rows": (lambda m: SlicedGaussianDpEvent(m, 9, 2), 3),
    "local": (LaplaceDpEvent, 1),
}
LAST = gaussian_plan({"a": 1.0}, 0.5, 1e-5, relation="replace_one")


def reserve(plan, n_released=None):
    Reservation(plan, False).settle(plan.events[:n_released])


@pytest.mark.catches(
    "accounting.budget:PrivacyBudget._check",
    "self.adaptive and is_late and self._is_apart(charge.events)",
    "False",
    param="samples",
)
@pytest.mark.catches("accounting.budget:PrivacyBudget._cost", "left -= delta", "", param="rows")
@pytest.mark.catches(
    "accounting.budget:PrivacyBudget._settle",
    "self.adaptive and _is_gaussian(planned)",
    "True",
    param="samples",
)
@pytest.mark.parametrize("name", OTHERS)
def test_fits_of_other_releases_come_first_and_add_up(name):
    other = plan_of(*OTHERS[name])
    with PrivacyBudget(1.0, 1e-5, relation="replace_one") as budget:
        reserve(other)
    assert 0.99 < budget.spent <= 1.0
    with PrivacyBudget(2.6, 3e-5, relation="replace_one") as budget:
        reserve(other)
        # The whole plan, whenever it ends: to go on with the rest would be an adaptive choice.
        reserve(other, 1)
        reserve(LAST)
        with pytest.raises(BudgetExceededError, match=r"Gaussian releases last.* Make such fits f"):
            reserve(other)
    one = ledger_epsilon(other.events, 0 if name == "local" else 1e-5, relation="replace_one")
    left = 3e-5 if name == "local" else 1e-5
    last = ledger_epsilon(LAST.events, left, relation="replace_one")
    assert budget.spent == pytest.approx(2 * one + last, rel=1e-9)


@pytest.mark.catches(
    "accounting.budget:PrivacyBudget._settle",
    "self.adaptive and _is_gaussian(planned)",
    "_is_gaussian(planned)",
)
def test_fits_that_are_fixed_beforehand_compose_by_their_losses(tmp_path):
    threshold = Plan((("a", ThresholdDpEvent(9.0, 1e-6)), ("b", GaussianDpEvent(9.0))), 2.0, 1e-5)
    others = itertools.starmap(plan_of, OTHERS.values())
    plans = [LAST, *others, replace(threshold, relation="replace_one"), LAST]
    options = {"relation": "replace_one", "adaptive": False, "path": tmp_path / "budget"}
    with PrivacyBudget(3.6, 1e-5, **options) as budget:
        for plan in plans:
            reserve(plan, 1)
        events = [event for plan in plans for event in plan.events]
        assert budget.spent == ledger_epsilon(events, 1e-5, relation="replace_one") < 3.1
        with pytest.raises(BudgetExceededError, match=r"over the budget of 3.6; 3\."):
            reserve(plan_of(*OTHERS["local"]))
    assert "(replace_one, fits fixed beforehand)" in repr(PrivacyBudget.from_file(budget.path))


def test_costs_that_no_budget_can_pay_say_why():
    with PrivacyBudget(9.0, 2.5e-5, relation="replace_one") as budget:
        reserve(plan_of(*OTHERS["rows"]))
        reserve(plan_of(*OTHERS["rows"]))
        with pytest.raises(BudgetExceededError, match=r"δ = 3e-05 would be .* a smaller delta, or"):
            reserve(plan_of(*OTHERS["samples"]))
        with pytest.raises(BudgetExceededError, match="ε = inf"):
            reserve(Plan((("a", NonPrivateDpEvent()),), np.inf, 1e-6, "replace_one"))
    assert 1.9 < budget.spent <= 2.0


@pytest.mark.parametrize("refusing", ["outer", "inner"])
def test_the_smaller_of_two_budgets_refuses_for_both(refusing):
    outer = PrivacyBudget(0.5 if refusing == "outer" else 5.0, 1e-5)
    inner = PrivacyBudget(0.5 if refusing == "inner" else 5.0, 1e-5)
    with outer, inner, pytest.raises(BudgetExceededError, match=r"budget of 0\.5"):
        fit(1.0)
    assert outer.spent == inner.spent == 0


def test_nested_budgets_are_all_charged():
    outer, middle, inner = (PrivacyBudget(5.0, 1e-5) for _ in range(3))
    with outer:
        fit(1.0)
        with middle, inner:
            fit(1.0)
    assert outer.spent == pytest.approx(together(1.0, 1.0), rel=1e-6)
    assert middle.spent == pytest.approx(1.0, rel=1e-6)
    assert inner.spent == pytest.approx(1.0, rel=1e-6)


def test_a_budget_that_is_open_twice_is_charged_once():
    budget = PrivacyBudget(5.0, 1e-5)
    with budget, budget:
        fit(1.0)
    assert budget.spent == pytest.approx(1.0, rel=1e-6)


def test_a_parallel_search_is_charged_for_every_fit():
    budget = PrivacyBudget(5.0, 1e-5)
    with budget:
        GridSearchCV(Model(0.5), {"strength": [1, 2]}, cv=2, n_jobs=2).fit(ROWS)
    assert budget.spent == pytest.approx(together(*[0.5] * 5), rel=1e-6)


def test_threads_cannot_overrun():
    budget = PrivacyBudget(1.0, 1e-5)
    outcomes, start = [], threading.Barrier(8)

    def work():
        start.wait()
        try:
            fit(0.5)
            outcomes.append(True)
        except BudgetExceededError:
            outcomes.append(False)

    with budget:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    fits = sum(outcomes)
    assert len(outcomes) == 8
    assert budget.spent == pytest.approx(together(*[0.5] * fits), rel=1e-6)
    assert budget.spent <= 1.0 < together(*[0.5] * (fits + 1))


@pytest.mark.parametrize("spread", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_and_pickles_are_refused(spread):
    with pytest.raises(TypeError, match="the copy could be spent too"):
        spread(PrivacyBudget(1.0, 1e-5))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1e-5), "epsilon must be"),
        ((np.nan, 1e-5), "epsilon must be"),
        ((1.0, 0), "delta must be"),
        ((1.0, 2), "delta must be"),
        ((1.0, 1e-5, {"relation": "neighbours"}), "relation must be one of"),
        ((1.0, 1e-5, {"threshold_delta": -1e-6}), "threshold_delta must be in"),
        ((1.0, 1e-5, {"threshold_delta": 1e-5}), "threshold_delta must be in"),
        ((1.0, 1e-5, {"threshold_delta": 1e-6, "adaptive": False}), "set threshold_delta=0"),
    ],
)
def test_bad_budgets(arguments, message):
    epsilon, delta, *options = arguments
    with pytest.raises(ValueError, match=message):
        PrivacyBudget(epsilon, delta, **dict(*options))


def test_reprs_say_what_is_spent_and_on_what():
    budget = PrivacyBudget(2.0, 1e-5)
    assert repr(budget) == "<PrivacyBudget: ε = 0 of 2 is spent at δ = 1e-05 (zero_out)>"
    with budget:
        fit(1.0)
    assert f"ε = {show(budget.spent)} of 2 is spent" in repr(budget)
    page = budget._repr_html_()
    ElementTree.fromstring(page)
    assert page.count("GaussianDpEvent") == 1
    assert repr(budget)[16:-1] in page


@pytest.mark.catches(
    "accounting.budget:PrivacyBudget._check",
    "any(charge.is_for_persons != other.is_for_persons for other in charges)",
    "charge.is_for_persons and not all(other.is_for_persons for other in charges)",
    param="None-3",
)
@pytest.mark.parametrize("first", [None, 1, 3])
@pytest.mark.parametrize("second", [None, 1, 3])
def test_records_and_persons_never_share_a_budget(first, second):
    """A person of one row, too, is none: others may have several."""
    budget, is_mixed = PrivacyBudget(9.0, 1e-5), (first is None) != (second is None)

    def fit_to(max_rows):
        plan = replace(gaussian_plan({"a": 1.0}, 1.0, 1e-5), max_rows=max_rows)
        persons = None if max_rows is None else np.arange(len(ROWS))
        Curator(ROWS, plan=plan, persons=persons, noise=NoiseSource()).close()

    with budget:
        fit_to(first)
        refused = pytest.raises(BudgetExceededError, match="for records, or all for persons")
        with refused if is_mixed else contextlib.nullcontext():
            fit_to(second)


@pytest.mark.catches(
    "accounting.budget:PrivacyBudget._reserve",
    "paid == replace(charge, digest=plan.follows)",
    "paid.digest == plan.follows",
)
def test_only_a_plan_of_the_same_events_claims_a_charge():
    """A plan of other events that names the same digest is charged on its own."""

    def release_one(plan):
        mechanism = GaussianSumMechanism(RecordFunction(lambda rows: rows), 1.0, name="a")
        with Curator(ROWS, plan=plan, noise=NoiseSource(None)) as curator:
            curator.release(mechanism)
        return curator.certificate().digest

    small, large = (gaussian_plan({"a": 1.0}, epsilon, 1e-5) for epsilon in (1.0, 2.0))
    with PrivacyBudget(5.0, 1e-5) as budget:
        digest = release_one(small)
        release_one(replace(large, follows=digest))
        assert budget.spent == pytest.approx(together(1.0, 2.0))
        release_one(replace(small, follows=digest))
        assert budget.spent == pytest.approx(together(1.0, 2.0))
