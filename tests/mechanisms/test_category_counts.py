"""Counts of categories that are not known beforehand: thresholds, their δ', and what they cost."""

import bisect
import datetime
import decimal
import fractions
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from dp_accounting import GaussianDpEvent, NonPrivateDpEvent, SelfComposedDpEvent
from scipy.stats import norm

from skdpgen.accounting.accountants import ACCOUNTANTS
from skdpgen.mechanisms.categories import FrequentValuesMechanism
from skdpgen.privacy import (
    CategoryCountsMechanism,
    Curator,
    NoiseSource,
    Plan,
    PlanError,
    RecordFunction,
    ThresholdDpEvent,
    gaussian_plan,
    ledger_delta,
    ledger_epsilon,
    repeated_plan,
)

from .common import UNIT

DELTA = 1e-5


def release(
    cells,
    event,
    *,
    columns=None,
    weights=None,
    relation="zero_out",
    null=None,
    repeats=1,
    kind=CategoryCountsMechanism,
):
    plan = Plan(((kind.name, event),), math.inf, 1e-2, relation)
    for seed in range(repeats):
        curator = Curator(
            np.array(cells, dtype=object),
            plan=plan,
            noise=NoiseSource(seed),
            prepare=RecordFunction(lambda X, y: np.zeros((len(X), 1))),
            cells=True,
            null=null,
        )
        with curator:
            yield curator.release(kind(columns or {"a": 0}, weights))


def test_without_noise_counts_are_exact():
    cells = [["x", 1], ["y", 1], ["x", None], [np.nan, 2], ["z", 2]]
    null = [False, False, False, False, True]
    (counts,) = release(cells, NonPrivateDpEvent(), columns={"a": 0, "b": 1}, null=null)
    assert counts == {"a": {"x": 2, "y": 1}, "b": {"1": 2, "2": 1}}


SHORT = [7, 0.125, 250_000, 5.00001, -9999.0, 1e15, "7 %", "2020-01-31", "x", np.float32(0.1)]
SHORT += [
    True,
    np.int8(1),
    -0.0,
    datetime.datetime(2020, 1, 31),
    pd.Timestamp("2020-01-31", tz="UTC"),
]
LONG = [1 / 3, 1234567890123, math.pi * 1e9, "0.333333333333", datetime.datetime(2020, 1, 31, 7)]
LONG += ["2020-01-31T07:30:00", math.inf, math.nan, None, pd.NaT]


@pytest.mark.parametrize("cell", SHORT + LONG, ids=repr)
def test_numbers_with_many_digits_and_dates_with_times_are_no_frequent_values(cell):
    kind, cells = FrequentValuesMechanism, [[cell], ["own"]]
    (counts,) = release(cells, NonPrivateDpEvent(), kind=kind)
    assert len(counts["a"]) == (2 if cell in SHORT else 1)


@pytest.mark.catches(
    "data.names:_count_names",
    "counts[name_cell(cell)] += size",
    "counts[name_cell(cells[0])] += size",
)
@pytest.mark.parametrize("kind", [CategoryCountsMechanism, FrequentValuesMechanism])
def test_a_record_adds_one_to_one_count_of_a_column(kind):
    """It follows from its own cell, whatever equal cells of other types there are."""
    cells = [
        *SHORT,
        *LONG,
        1,
        1.0,
        False,
        0,
        0.0,
        "1",
        decimal.Decimal(7),
        fractions.Fraction(1, 8),
    ]
    (together,) = release([[cell] for cell in cells * 2], NonPrivateDpEvent(), kind=kind)
    alone = Counter()
    for cell in cells:
        (own,) = release([[cell]], NonPrivateDpEvent(), kind=kind)
        assert sum(own["a"].values()) <= 1
        alone.update(own["a"])
    assert together["a"] == {name: 2 * count for name, count in alone.items()}


@pytest.mark.catches(
    "mechanisms.categories:CategoryCountsMechanism.postprocess",
    "count > threshold",
    "count > threshold or key == '-1'",
)
def test_frequent_values_pass_a_threshold_of_their_own():
    """One of 40 records does, and one of 2 does not; both columns are counted."""
    cells = [[5.5, 3]] * 40 + [[-1, 1 / 3]] * 2
    given = {"columns": {"a": 0, "b": 1}, "kind": FrequentValuesMechanism, "repeats": 50}
    for counts in release(cells, ThresholdDpEvent(2.0, 1e-4), **given):
        assert [set(of_column) for of_column in counts.values()] == [{"5.5"}, {"3"}]
        assert counts["a"]["5.5"] == pytest.approx(40, abs=5 * 2 * math.sqrt(2))


@pytest.mark.catches(
    "mechanisms.categories:CategoryCountsMechanism.query",
    "event.delta / (most * len(self.columns))",
    "event.delta * 8",
)
@pytest.mark.catches(
    "mechanisms.categories:CategoryCountsMechanism.postprocess", "count > threshold", "count > 0"
)
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_categories_of_one_record_pass_as_rarely_as_stated(relation):
    """Both columns hold something that nobody else does: δ' is for both of them together."""
    slack, repeats = 0.02, 1000
    cells = [["own", "too"]] + [["x", "y"]] * 3
    event = ThresholdDpEvent(3.0, slack)
    passed = sum(
        "own" in counts["a"] or "too" in counts["b"]
        for counts in release(
            cells, event, columns={"a": 0, "b": 1}, relation=relation, repeats=repeats
        )
    )
    # The threshold is a whole number, and a little higher than need be.
    assert 0.1 * slack < passed / repeats < slack + 4 * math.sqrt(slack / repeats)


@pytest.mark.catches(
    "mechanisms.categories:CategoryCountsMechanism.query",
    "most * weights + 1 + math.ceil(std * quantile * (1 + 1e-6))",
    "0 * weights + math.ceil(std * quantile * (1 + 1e-6))",
)
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize("columns", [{"a": 0}, {"a": 0, "b": 1}])
@pytest.mark.parametrize("multiplier", [0.05, 0.3, 0.99, 1.0, 2.2, 3.1, 7.7, 40.0])
def test_noise_that_passes_the_threshold_alone_is_as_rare_as_stated(multiplier, columns, relation):
    """By the tail of the noise, where the smallest that passes is found by trying."""

    class Given(NoiseSource):
        def rounded_gaussian(self, scale):
            return np.full(scale.shape, self.given)

    slack, mechanism, noise = 1e-4, CategoryCountsMechanism(columns), Given(0)
    event = ThresholdDpEvent(multiplier, slack)
    cells = np.array([["own", "too"]], dtype=object)
    plan = Plan((("category counts", event),), math.inf, 1e-2, relation)

    def passes(given):
        noise.given = given
        encode = RecordFunction(lambda X, y: np.zeros((1, 1)))
        with Curator(cells, plan=plan, noise=noise, prepare=encode, cells=True) as curator:
            return any(curator.release(mechanism).values())

    least = bisect.bisect(range(1000), False, key=passes)
    std = multiplier * UNIT[relation] * mechanism.sensitivity(relation)
    share = slack / len(columns)
    # Whole numbers from `least` on are what the noise is rounded to beyond the half before it.
    assert norm.sf((least - 0.5) / std) <= share
    # Nor is the threshold much higher than need be.
    assert norm.sf((least - 3.5) / std) > share


@pytest.mark.catches(
    "mechanisms.categories:CategoryCountsMechanism.sensitivity",
    "sum(weight**2 for weight in self.weights.values())",
    "len(self.weights)",
)
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_weights_share_the_noise(relation):
    """A record adds 3 to a count of one column, and 1 to another: √10 of sensitivity."""
    columns, weights = {"a": 0, "b": 1}, {"a": 3, "c": 5}
    alone, both = (CategoryCountsMechanism(names) for names in ({"a": 0}, columns))
    assert both.sensitivity(relation) == pytest.approx(math.sqrt(2) * alone.sensitivity(relation))
    assert alone.sensitivity("zero_out") == 1
    mechanism = CategoryCountsMechanism(columns, weights)
    sensitivity = math.sqrt({"zero_out": 10, "replace_one": 20}[relation])
    assert mechanism.sensitivity(relation) == pytest.approx(sensitivity)
    cells, event = [["x", "y"]] * 200, ThresholdDpEvent(5.0 / UNIT[relation], 1e-3)
    options = {"columns": columns, "weights": weights, "relation": relation, "repeats": 400}
    released = list(release(cells, event, **options))
    for name, cell, weight in (("a", "x", 3), ("b", "y", 1)):
        noisy = [counts[name][cell] for counts in released]
        assert np.std(noisy) == pytest.approx(5 * sensitivity / weight, rel=0.15)
        error = 5 * sensitivity / weight * 4 / math.sqrt(400)
        assert np.mean(noisy) == pytest.approx(200, abs=error)


@pytest.mark.catches(
    "mechanisms.categories:CategoryCountsMechanism.query",
    "most * weights + 1",
    "0 * weights + most + 1",
)
def test_a_heavy_category_of_one_record_passes_as_rarely_as_stated():
    """Its threshold counts the weight, or it would pass more often than others."""
    slack, repeats, columns = 0.02, 1000, {"a": 0}
    released = release(
        [["own"]],
        ThresholdDpEvent(0.1, slack),
        columns=columns,
        weights={"a": 40},
        repeats=repeats,
    )
    passed = sum(bool(counts["a"]) for counts in released)
    assert 0.1 * slack < passed / repeats < slack + 4 * math.sqrt(slack / repeats)


@pytest.mark.parametrize("event", [GaussianDpEvent(1.0), ThresholdDpEvent(1.0, 0.0)])
def test_another_event_is_refused(event):
    with pytest.raises(PlanError, match="threshold"):
        list(release([["x"]], event))


@pytest.mark.catches("accounting.accountants:_Ledger.__init__", "count * leaf.delta", "0.0")
@pytest.mark.parametrize("accountant", list(ACCOUNTANTS))
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_price_is_that_of_the_gaussian_at_a_smaller_delta(accountant, relation):
    options = {"accountant": accountant, "relation": relation}
    slack = 1e-6
    ledger = [ThresholdDpEvent(2.0, slack), GaussianDpEvent(3.0)]
    plain = [GaussianDpEvent(2.0), GaussianDpEvent(3.0)]
    priced = ledger_epsilon(ledger, DELTA, **options)
    expected = ledger_epsilon(plain, DELTA - slack, **options) - math.log1p(-slack)
    assert priced == pytest.approx(expected, rel=1e-9)
    delta = ledger_delta(ledger, 1.0, **options)
    assert delta == pytest.approx(ledger_delta(plain, 1.0, **options) + slack, rel=1e-3)
    assert ledger_epsilon(ledger, slack, **options) == math.inf
    assert ledger_delta(ledger, 0.0, **options) == 1.0


def test_the_price_bounds_the_true_profile():
    """A record that holds a category of its own, against none: the exact δ(ε) is no larger."""
    s, slack, epsilon = 2.0, 1e-3, 0.5
    # Categories of others: a Gaussian at distance 1/s; its own: there with probability slack.
    shifted = norm.cdf(1 / (2 * s) - epsilon * s) - math.exp(epsilon) * norm.cdf(
        -1 / (2 * s) - epsilon * s
    )
    there = slack + (1 - slack) * (
        norm.cdf(1 / (2 * s) - (epsilon - math.log1p(-slack)) * s)
        - math.exp(epsilon - math.log1p(-slack))
        * norm.cdf(-1 / (2 * s) - (epsilon - math.log1p(-slack)) * s)
    )
    stated = ledger_delta([ThresholdDpEvent(s, slack)], epsilon)
    assert there <= stated <= shifted + slack + 1e-3


def test_repeated_thresholds_add_up():
    event = SelfComposedDpEvent(ThresholdDpEvent(10.0, 1e-7), 5)
    expected = ledger_epsilon([GaussianDpEvent(10 / math.sqrt(5))], DELTA - 5e-7)
    assert ledger_epsilon([event], DELTA) == pytest.approx(expected - 5 * math.log1p(-1e-7))


@pytest.mark.parametrize("slack", [-0.1, 1.0, math.nan, "1", True])
def test_bad_thresholds_are_refused(slack):
    with pytest.raises(Exception, match="ThresholdDpEvent must"):
        ledger_epsilon([ThresholdDpEvent(1.0, slack)], DELTA)


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_plans_with_thresholds_spend_their_budget(relation):
    thresholds = {"category counts": 1e-6}
    shares = {"category counts": 0.2, "sums": 0.8}
    plan = gaussian_plan(shares, 1.0, DELTA, thresholds=thresholds, relation=relation)
    assert 0.999 < ledger_epsilon(plan.events, DELTA, relation=relation) <= 1.0
    assert plan.multiplier("category counts") == pytest.approx(2 * plan.multiplier("sums"))
    repeated = repeated_plan(
        "rows",
        GaussianDpEvent,
        10,
        1.0,
        DELTA,
        shares={"category counts": 0.2},
        thresholds=thresholds,
        relation=relation,
    )
    assert 0.99 < ledger_epsilon(repeated.events, DELTA, relation=relation) <= 1.0
    unlimited = gaussian_plan(shares, math.inf, DELTA, thresholds=thresholds)
    assert all(isinstance(event, NonPrivateDpEvent) for event in unlimited.events)


class Tagged(str):
    """A string that knows more than it says."""


@pytest.mark.parametrize("first", [1, 1.0, np.int8(1)])
def test_equal_categories_are_one_whatever_comes_first(first):
    cells = [[first], [1.0], [1], [-0.0], [0], [math.inf], [math.nan], [2.5], [["list"]]]
    (counts,) = release(cells, NonPrivateDpEvent())
    assert list(counts["a"].items()) == [("0", 2), ("1", 3), ("2.5", 1)]


def test_strings_are_plain():
    tagged = Tagged("x")
    tagged.patient = "Smith"
    (counts,) = release([[tagged], ["x"]], NonPrivateDpEvent())
    assert counts == {"a": {"x": 2}}
    assert type(next(iter(counts["a"]))) is str


@pytest.mark.parametrize(
    "cell", [10**400, decimal.Decimal("sNaN"), fractions.Fraction(10**400, 3), pd.NaT, pd.NA]
)
def test_cells_that_cannot_be_compared_are_not_counted(cell):
    (counts,) = release([["a"], ["a"], [cell]], NonPrivateDpEvent())
    assert counts["a"] == {"a": 2}
