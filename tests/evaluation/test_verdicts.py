"""Verdicts of a report: closed forms, and never better for more noise."""

import math

import numpy as np
import pandas as pd
import pytest
from dp_accounting import GaussianDpEvent, LaplaceDpEvent, NonPrivateDpEvent
from numpy.testing import assert_allclose
from scipy.stats import norm

from skdpgen.accounting.events import ThresholdDpEvent
from skdpgen.evaluation._forecasts import GOOD, NOISE, ROUGH, VERDICTS, CountTable
from skdpgen.evaluation._verdicts import (
    judge_column,
    judge_counts,
    judge_protection,
    list_limits,
    summarize_use,
)
from skdpgen.privacy import Certificate

GOOD_ROW = {
    "interactions": None,
    "kind": "category",
    "lower": None,
    "upper": None,
    "n_levels": 10,
    "share_other": np.nan,
    "share_missing": 0.0,
    "share_lower": np.nan,
    "share_upper": np.nan,
    "share_atoms": np.nan,
    "mean_low": np.nan,
    "noise": 5.0,
    "noise_pair": 10.0,
}
NUMBER = {"kind": "number", "lower": 1, "upper": 9, "share_lower": 0.05, "share_upper": 0.05}


def make_report(**columns):
    rows = [GOOD_ROW | row for row in columns.values()]
    return pd.DataFrame(rows, index=list(columns)).astype({"n_levels": "Int64"})


def test_verdicts_have_their_bounds():
    found = [CountTable(10, noise, 1000).verdict for noise in (0, 10, 10.1, 223, 224)]
    assert found == [GOOD, GOOD, ROUGH, ROUGH, NOISE]


@pytest.mark.parametrize("lowered", [{}, {"share_other": 0.3}, {**NUMBER, "finding": "cut"}])
def test_more_noise_is_never_better(lowered):
    ranks, errors = [], []
    for noise in np.geomspace(0.1, 1e4, 30):
        report = make_report(a={**lowered, "noise": noise, "noise_pair": 2 * noise}, b={})
        counts = judge_counts(report, 1000)
        tables = [counts["columns"][0], *counts["pairs"]]
        ranks.append([VERDICTS.index(table["verdict"]) for table in tables])
        errors.append([table["error"] for table in tables])
    for series in (ranks, errors):
        assert (np.diff(series, axis=0) >= 0).all()
    assert ranks[0] == ([1, 1] if lowered else [0, 0])
    assert ranks[-1][0] == 2


@pytest.mark.parametrize(
    ("row", "verdict", "reason"),
    [
        ({}, GOOD, ""),
        ({"share_other": 0.1}, GOOD, ""),
        ({"share_other": 0.11}, ROUGH, "11% merged"),
        ({"share_other": 0.91}, NOISE, "91% merged"),
        ({"share_missing": 0.94}, GOOD, ""),
        ({"share_missing": 0.96}, NOISE, "96% missing"),
        (NUMBER, GOOD, ""),
        ({**NUMBER, "error": 0.039}, GOOD, ""),
        ({**NUMBER, "error": 0.05}, ROUGH, "5% off between its counts"),
        ({**NUMBER, "share_upper": 0.3}, GOOD, ""),
        ({**NUMBER, "finding": "cut: 30% at 9"}, ROUGH, "cut: 30% at 9"),
    ],
)
def test_losses_lower_a_verdict(row, verdict, reason):
    table = judge_column(make_report(a=row).loc["a"], 1000)
    assert (table["verdict"], "; ".join(table["reasons"])) == (verdict, reason)


@pytest.mark.parametrize(("share", "verdict"), [(0.02, GOOD), (0.0195, ROUGH)])
def test_a_rare_level_lowers_a_verdict(share, verdict):
    """A column of 97 % of one value is not good for the others, whatever the average count is."""
    report = make_report(died={"n_levels": 2, "noise": 5.0}, b={})
    counts = judge_counts(report, 1000, {"died": ("yes", share)})
    assert counts["columns"][0]["verdict"] == verdict
    reasons = [] if verdict == GOOD else ["only about 20 rows with yes"]
    assert counts["columns"][0]["reasons"] == reasons
    assert len(counts["pairs"][0]["reasons"]) == len(reasons)


@pytest.mark.parametrize("own", [4.0, 40.0])
def test_a_pair_has_the_noise_of_the_target_and_the_worse_verdict_of_its_columns(own):
    report = make_report(
        a={"n_levels": 2},
        y={"n_levels": 5, "noise_pair": own},
        c={"n_levels": 2, **NUMBER, "error": 0.1},
    )
    counts = judge_counts(report.assign(n_levels=[2, 5, 2]), 1000)
    pairs = {(pair["first"], pair["second"]): pair for pair in counts["pairs"]}
    for pair in pairs:
        expected = own if "y" in pair else 10
        assert pairs[pair]["margin"] == pytest.approx(1.96 * expected)
    assert pairs["a", "y"]["verdict"] == (GOOD if own == 4 else ROUGH)
    assert pairs["a", "c"]["verdict"] == ROUGH
    assert pairs["a", "c"]["reasons"] == ["c: 10% off between its counts"]


def test_the_error_is_the_share_of_rows_that_noise_moves():
    (table,) = judge_counts(make_report(a={}), 1000)["columns"]
    noise = 5 * np.random.default_rng(0).normal(size=(20_000, 10))
    assert_allclose(table["error"], np.abs(noise).sum(1).mean() / 2 / 1000, rtol=0.01)
    assert np.mean(np.abs(noise) > table["margin"]) == pytest.approx(0.05, abs=0.003)


def test_columns_without_counts_have_no_verdict():
    report = make_report(a={}, id={"n_levels": None, "noise": np.nan})
    assert [c["column"] for c in judge_counts(report, 1000)["columns"]] == ["a"]
    assert judge_counts(report.loc[["id"]], 1000) is None


def certify(*events, **options):
    return Certificate(events, tuple(f"r{i}" for i in range(len(events))), **options)


@pytest.mark.parametrize("multiplier", [0.5, 2.0, 10.0])
def test_the_best_attack_on_gaussian_noise_in_closed_form(multiplier):
    best = judge_protection(certify(GaussianDpEvent(multiplier)))["best_attack"]
    assert_allclose(best, norm.cdf(0.5 / multiplier), rtol=1e-3)
    assert best >= norm.cdf(0.5 / multiplier)
    # A release by a threshold proves no δ at ε = 0, and hardly helps an attack.
    events = GaussianDpEvent(multiplier), ThresholdDpEvent(multiplier, 1e-6)
    both = judge_protection(certify(*events))["best_attack"]
    expected = norm.cdf(0.5 * math.sqrt(2) / multiplier)
    assert expected <= both <= expected + 0.001


def test_the_best_attack_on_pure_noise():
    best = judge_protection(certify(LaplaceDpEvent(2.0), relation="replace_one"))["best_attack"]
    # The total variation of Laplace densities that are 1 apart is 1 - e^-½; ε alone proves less.
    assert 1 - math.exp(-0.5) / 2 <= best <= math.e / (1 + math.e) + 1e-9


@pytest.mark.parametrize(
    ("event", "options", "verdict"),
    [
        (GaussianDpEvent(5.0), {}, "strong"),
        (GaussianDpEvent(1.0), {}, "reasonable"),
        (GaussianDpEvent(0.2), {}, "weak"),
        (GaussianDpEvent(5.0), {"reproducible": True}, "none"),
        (NonPrivateDpEvent(), {}, "none"),
    ],
)
def test_protection_is_strong_reasonable_weak_or_none(event, options, verdict):
    found = judge_protection(certify(event, **options))
    assert found["verdict"] == verdict
    assert (found["best_attack"] == 1) == (verdict == "none")
    assert found["best_inference"] >= found["best_attack"]


def test_uses_and_limits_in_words():
    report = make_report(
        a={},
        b={"share_other": 0.3},
        lost={"noise": 1e3, "noise_pair": 1e3},
        n={**NUMBER, "lower": 0.0, "upper": 123456.5},
    )
    counts = judge_counts(report, 1000)
    summary = summarize_use(counts, report, 1000, 10_000)
    assert summary["use"].startswith(
        "Use it for shares, averages and charts of 3 of 4 columns (with"
    )
    assert "groups of fewer than about 20 rows; nor for lost" in summary["avoid"]
    # Half of 1.96 / √10,000, and 9.8 of 1,000 rows.
    expected = "Expect a share of rows to be off by ± 1.4 percentage points"
    assert summary["expect"] == f"{expected}."
    cut = summarize_use(counts, report.assign(mean_low=[np.nan, 0.01, 0.03, 0.2]), 1000, 10_000)
    low = "and means and totals to be low by up to 20% (n) where tails are cut"
    assert cut["expect"] == f"{expected}, {low}."
    assert 0 < summary["score"] < summary["ceiling"] < 100
    assert summarize_use(None, report, 1000, 1000)["score"] is None
    certificate = Certificate((GaussianDpEvent(4.0),), ("two-way tables",))
    limits = " ".join(list_limits(report, counts, certificate))
    assert "Columns that are mostly noise: 1, lost." in limits
    assert "merged into one: b (30%)." in limits
    assert "which are cut: n (0 to 123,456)." in limits or "n (0 to 123,457)" in limits
    assert "no such pattern was measured" in limits
    names = "two-way tables", "interactions", "multi-way tables"
    released = Certificate((GaussianDpEvent(9.0),) * 3, names)
    assert "above the noise; none did." in " ".join(list_limits(report, counts, released))
    report.loc[["a", "n"], "interactions"] = ["a × b × n", "a × b × n; a × n × lost"]
    limits = " ".join(list_limits(report, counts, released))
    assert "Those of a × b × n, a × n × lost stood out and have tables of their own." in limits
    assert list_limits(None, None, None) == [
        "Statements about single rows: no synthetic row stands for a real one."
    ]
