"""Searches: their price, the number of runs, what each may release, and what is kept of them."""

import math
import warnings

import numpy as np
import pytest
from dp_accounting import (
    GaussianDpEvent,
    LaplaceDpEvent,
    NeighboringRelation,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    UnsupportedEventError,
)
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from dp_accounting.rdp import RdpAccountant
from scipy.stats import kstest, norm

from skdpgen.accounting.budget import Reservation
from skdpgen.accounting.events import gaussian_event
from skdpgen.accounting.moments import ORDERS, number_of_runs, run_halting_probability
from skdpgen.privacy import (
    BudgetExceededError,
    Curator,
    GaussianSumMechanism,
    NoiseSource,
    Plan,
    PlanError,
    PrivacyBudget,
    RecordFunction,
    ThresholdDpEvent,
    gaussian_plan,
    ledger_delta,
    ledger_epsilon,
    select_best,
    selection_plan,
)

ROWS = np.random.default_rng(0).normal(size=(30, 2))
GAUSSIAN = GaussianDpEvent(1.5)


def best_of(event, mean=7.0, shape=1.0):
    return RepeatAndSelectDpEvent(event, mean, shape)


def density_of_the_best(x, mean, std, n_runs, shape):
    """Return the density of the largest of normal numbers, of which there are about n_runs."""
    gamma = run_halting_probability(n_runs, shape)
    rest = 1 - (1 - gamma) * norm.cdf(x, mean, std)  # φ' at the distribution function
    weight = shape / math.expm1(-shape * math.log(gamma)) if shape else -1 / math.log(gamma)
    return rest ** (-shape - 1) * (1 - gamma) * weight * norm.pdf(x, mean, std)


# The price.


@pytest.mark.parametrize("shape", [0, 0.4, 1, 3.0])
@pytest.mark.parametrize(
    "event",
    [GAUSSIAN, SelfComposedDpEvent(PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0)), 20)],
    ids=["gaussian", "sampled"],
)
def test_the_price_is_that_of_dp_accounting(event, shape):
    ours = ledger_epsilon([best_of(event, 7.0, shape)], 1e-5, accountant="rdp")
    # Sampled moments are ours at whole orders.
    orders = ORDERS if event is GAUSSIAN else ORDERS[(ORDERS == np.rint(ORDERS)) & (ORDERS < 257)]
    accountant = RdpAccountant(orders, NeighboringRelation.REPLACE_SPECIAL)
    theirs = accountant.compose(best_of(event, 7.0, shape)).get_epsilon(1e-5)
    assert ours == pytest.approx(theirs, rel=1e-8 if event is GAUSSIAN else 2e-2)
    assert ours <= theirs * (1 + 1e-8)
    assert ours > ledger_epsilon([event], 1e-5, accountant="rdp")


@pytest.mark.parametrize("shape", [0, 0.5, 1, 3.0])
@pytest.mark.parametrize("sign", [-1, 1])
def test_the_price_covers_the_largest_of_gaussian_numbers(shape, sign):
    """The law of the largest of K is known: that of K has the generating function φ."""
    multiplier, x = 2.0, np.linspace(-30, 30, 200_001)

    def density(mean):
        return density_of_the_best(x, mean, multiplier, 7.0, shape)

    p, q = density(0), density(sign)
    assert np.trapezoid(p, x) == pytest.approx(1, abs=1e-6)
    for epsilon in (0.5, 1.0, 2.0):
        exact = np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), x)
        event = GaussianDpEvent(multiplier)
        assert exact <= ledger_delta([best_of(event, 7.0, shape)], epsilon, accountant="rdp")
        if sign == -1:
            # One run would not cover it.
            assert exact > 1.2 * ledger_delta([event], epsilon)


def test_prices_add_up_and_go_both_ways():
    search = best_of(GAUSSIAN)
    alone = ledger_epsilon([search], 1e-5, accountant="rdp")
    both = ledger_epsilon([search, GAUSSIAN], 1e-5, accountant="rdp")
    twice = ledger_epsilon([SelfComposedDpEvent(search, 2)], 1e-5, accountant="rdp")
    assert alone < both < twice
    assert ledger_delta([search], alone, accountant="rdp") == pytest.approx(1e-5, rel=1e-3)
    assert ledger_epsilon([best_of(NonPrivateDpEvent())], 1e-5, accountant="rdp") == math.inf
    assert ledger_delta([best_of(NonPrivateDpEvent())], 1.0, accountant="rdp") == 1.0


@pytest.mark.parametrize("accountant", ["pld", "autodp"])
def test_other_accountants_refuse(accountant):
    with pytest.raises(UnsupportedEventError, match="accountant='rdp' only"):
        ledger_epsilon([best_of(GAUSSIAN)], 1e-5, accountant=accountant)


@pytest.mark.parametrize(
    "event",
    [
        best_of(GAUSSIAN, mean=0.5),
        best_of(GAUSSIAN, mean=math.nan),
        best_of(GAUSSIAN, mean=math.inf),
        best_of(GAUSSIAN, shape=-0.1),
        best_of(GAUSSIAN, shape=math.inf),
        best_of(LaplaceDpEvent(1.0)),
        best_of(ThresholdDpEvent(1.0, 1e-6)),
        best_of(best_of(GAUSSIAN)),
        PoissonSampledDpEvent(0.1, best_of(GAUSSIAN)),
    ],
)
def test_events_without_a_price_are_refused(event):
    with pytest.raises(UnsupportedEventError):
        ledger_epsilon([event], 1e-5, accountant="rdp")


@pytest.mark.parametrize("epsilon", [0.5, 3.0, math.inf])
def test_a_search_spends_its_budget(epsilon):
    plan = selection_plan("search", gaussian_event, 10.0, 1.0, epsilon, 1e-5)
    cost = ledger_epsilon(plan.events, 1e-5, accountant="rdp")
    assert cost <= epsilon
    assert cost > 0.99 * epsilon or cost == epsilon
    assert plan.events[0].mean == 10.0


# The number of runs.


@pytest.mark.parametrize("shape", [0, 0.5, 1, 4.0])
def test_the_number_of_runs(shape):
    """Its mean is as stated, and its chances are those of the law."""
    noise = NoiseSource(0)
    drawn = np.array([noise.number_of_runs(6.0, shape) for _ in range(5000)])
    assert drawn.min() == 1
    assert drawn.mean() == pytest.approx(6.0, abs=4 * drawn.std() / 5000**0.5)
    gamma = run_halting_probability(6.0, shape)
    k = np.arange(1, 400)
    log_chance = k * math.log1p(-gamma) + np.array([math.lgamma(i + (shape or 1e-12)) for i in k])
    chance = np.exp(log_chance - np.array([math.lgamma(i + 1) for i in k]))
    chance /= chance.sum()
    assert chance @ k == pytest.approx(6.0, rel=1e-6)
    for n in (1, 2, 5):
        assert (drawn == n).mean() == pytest.approx(chance[n - 1], abs=0.03)


def test_the_law_at_its_ends():
    assert run_halting_probability(1, 0.5) == 1.0
    assert number_of_runs(0.999, 1, 0.5) == 1
    assert run_halting_probability(8.0, 1.0) == 1 / 8
    assert run_halting_probability(8.0, 1 + 1e-9) == pytest.approx(1 / 8, rel=1e-6)
    assert number_of_runs(1 - 2**-53, 3.0, 0) < 1000


# Runs.


def release(epsilon, shares=None):
    shares = shares or {"a": 1.0}
    plan = gaussian_plan(shares, epsilon, 1e-5, accountant="rdp")
    with Curator(ROWS, plan=plan, noise=NoiseSource()) as curator:
        for name in shares:
            curator.release(GaussianSumMechanism(RecordFunction(lambda rows: rows), 1.0, name=name))


class Runs:
    """A search whose runs release what they are told to, and score 0, 1, 2, ..."""

    def __init__(self, *releases, mean=6.0, epsilon=3.0, random_state=None):
        self.plan = selection_plan("search", gaussian_event, mean, 1.0, epsilon, 1e-5)
        run = ledger_epsilon([self.plan.events[0].event], 1e-5, accountant="rdp")
        self.releases = releases or [lambda: release(0.999 * run)]
        self.epsilon = run
        self.noise = NoiseSource(random_state)
        self.n_runs = 0

    def __call__(self):
        self.releases[min(self.n_runs, len(self.releases) - 1)]()
        self.n_runs += 1
        return float(self.n_runs), object()

    def search(self):
        return select_best(self, self.plan, self.noise)


@pytest.mark.catches(
    "accounting.selection:select_best",
    "noise.number_of_runs(event.mean, event.shape)",
    "noise.number_of_runs(4 * event.mean, event.shape)",
)
def test_an_audit_of_what_a_search_tells():
    """Outcomes have the law of the largest where runs tell a noisy number and are scored by it.

    The audit shows over half of what is claimed, and no more.
    """
    plan, noise = selection_plan("search", gaussian_event, 7.0, 1.0, 4.0, 1e-5), NoiseSource(0)
    event = plan.events[0].event
    one_run = Plan((("Gaussian sum", event),), 4.0, 1e-5)

    def search(cell):
        def run():
            with Curator([[cell]], plan=one_run, noise=noise) as curator:
                total = curator.release(GaussianSumMechanism(RecordFunction(lambda row: row), 1.0))
            return total.value.item(), total.value.item()

        return select_best(run, plan, noise)[1]

    x, densities = np.linspace(-40, 40, 100_001), []
    for cell in (0.0, -1.0):  # without the record, and with it
        density = density_of_the_best(x, cell, event.noise_multiplier, 7.0, 1.0)
        below = np.cumsum(density) * (x[1] - x[0])
        outcomes = [search(cell) for _ in range(250)]
        assert kstest(outcomes, lambda at, law=below: np.interp(at, x, law)).pvalue > 1e-6
        densities.append(density)

    def show(epsilon):
        p, q = densities
        return np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), x)

    assert show(4.0) < 1e-5 < show(2.0)


def test_first_of_equals_is_chosen():
    runs = Runs(mean=50.0, random_state=0)
    outcomes = iter(range(100))

    def run():
        runs()
        return 1.0, next(outcomes)

    assert select_best(run, runs.plan, runs.noise) == (1.0, 0)
    assert runs.n_runs > 1


@pytest.mark.catches(
    "accounting.budget:PaidRun._reserve",
    "not is_covered(plan.events, self._event, self._relation)",
    "False",
)
def test_a_run_releases_no_more_than_was_paid_for():
    runs = Runs(mean=2.0)
    with PrivacyBudget(3.0, 1e-5) as budget:
        for dear in (lambda: release(1.01 * runs.epsilon), lambda: [release(0.3), release(0.3)]):
            runs.releases, raised = [dear], False
            try:
                runs.search()
            except BudgetExceededError as error:
                raised = "paid for" in str(error) or "no more" in str(error)
            assert raised
            assert budget.spent in (0, pytest.approx(3.0, rel=1e-3))
            budget._store._charges.clear()
    runs.releases = [lambda: release(0.999 * runs.epsilon, {"a": 0.3, "b": 0.7})]
    runs.search()
    runs.releases = [lambda: None]
    with pytest.raises(PlanError, match="nothing that was seen"):
        runs.search()
    # The next fit is on its own again.
    release(100.0)


def test_unsettled_runs_are_paid_for():
    def interrupted():
        plan = gaussian_plan({"sum": 1.0}, 0.5 * runs.epsilon, 1e-5, accountant="rdp")
        Reservation(plan, False)  # and something is released
        raise KeyboardInterrupt

    runs = Runs(interrupted)
    with PrivacyBudget(3.0, 1e-5) as budget, pytest.raises(KeyboardInterrupt):
        runs.search()
    assert budget.spent == pytest.approx(3.0, rel=1e-3)


def test_errors_and_warnings_tell_of_no_other_run():
    def fail():
        release(0.1)
        raise RuntimeError("failed")

    def warn():
        release(0.1)
        warnings.warn("a secret", UserWarning, stacklevel=1)

    runs = Runs(warn, fail, mean=50.0, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError, match="failed") as raised:
            runs.search()
    assert runs.n_runs == 1
    assert not caught
    (frame,) = [entry.frame for entry in raised.traceback if entry.name == "select_best"]
    assert frame.f_locals["best"] is frame.f_locals["result"] is None
    with pytest.raises(ValueError, match="nan"):
        select_best(lambda: (release(0.1), (math.nan, 0))[1], runs.plan, runs.noise)


# Budgets.


def test_a_budget_is_charged_once():
    runs = Runs(mean=8.0)
    with PrivacyBudget(3.0, 1e-5) as budget:
        runs.search()
        assert budget.spent == ledger_epsilon(runs.plan.events, 1e-5, accountant="rdp")
        for again in (Runs().search, lambda: release(0.01)):
            with pytest.raises(BudgetExceededError):
                again()
    assert 2.9 < budget.spent <= 3.0


@pytest.mark.catches(
    "accounting.budget:PrivacyBudget._cost",
    "ledger_epsilon(charge.events, delta, accountant=accountant, relation=self.relation)",
    "ledger_epsilon(charge.events, delta, accountant=accountant)",
)
def test_a_budget_prices_a_search_under_its_relation():
    terms = {"relation": "replace_one"}
    plan = selection_plan("search", gaussian_event, 6.0, 1.0, 3.0, 1e-5, **terms)
    with PrivacyBudget(3.0, 1e-5, **terms) as budget:
        Reservation(plan, False)
    assert budget.spent == ledger_epsilon(plan.events, 1e-5, accountant="rdp", **terms)
    assert 2.9 < budget.spent <= 3.0


def test_a_budget_that_cannot_pay_refuses_before_anything_is_released():
    for budget in (
        PrivacyBudget(2.9, 1e-5),
        PrivacyBudget(9.0, 9e-6),
        PrivacyBudget(9.0, 1e-5, threshold_delta=1e-6),
        PrivacyBudget(9.0, 1e-5, relation="replace_one"),
    ):
        runs = Runs()
        with budget, pytest.raises(BudgetExceededError):
            runs.search()
        assert runs.n_runs == budget.spent == 0
    with PrivacyBudget(9.0, 1e-5), pytest.raises(BudgetExceededError, match="random_state"):
        Runs(random_state=0).search()


def test_rest_of_a_search_is_for_gaussian_releases():
    with PrivacyBudget(5.0, 3e-5) as budget:
        runs = Runs()
        runs.search()
        release(1.0)
        with pytest.raises(BudgetExceededError, match="takes unsampled Gaussian releases last"):
            Runs(epsilon=0.1).search()
        with pytest.raises(BudgetExceededError):
            release(2.0)
    with PrivacyBudget(9.0, 3e-5):
        release(1.0)
        with pytest.raises(BudgetExceededError, match="takes unsampled Gaussian releases last"):
            Runs().search()
    searched = ledger_epsilon(runs.plan.events, 1e-5, accountant="rdp")
    plan = gaussian_plan({"a": 1.0}, 1.0, 1e-5, accountant="rdp")
    assert budget.spent == pytest.approx(searched + ledger_epsilon(plan.events, 2e-5), rel=1e-9)


def test_a_search_that_releases_nothing_costs_nothing():
    def fail():
        with Curator(np.ones((1, 1)), plan=plan, noise=NoiseSource()):
            raise ValueError("not this time")

    plan = gaussian_plan({"a": 1.0}, 0.1, 1e-5)
    with PrivacyBudget(3.0, 1e-5) as budget:
        with pytest.raises(ValueError, match="not this time"):
            Runs(fail).search()
        assert budget.spent == 0
        Runs().search()
        assert budget.spent > 2.9
