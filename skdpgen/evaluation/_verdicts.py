# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts on synthetic rows, from a certificate and the released counts of a fit."""

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from ..accounting.certificate import Certificate
from ..checks import list_names
from ..quality import MOSTLY_MISSING, MOSTLY_OTHER, MOVED
from ..releases.two_way_tables import TwoWayTables
from ._forecasts import GOOD, GOOD_NOISE, NOISE, ROUGH, VERDICTS, CountTable


@dataclass(frozen=True)
class VerdictConstants:
    """Constants of verdicts."""

    # Standard deviations that normal noise exceeds with a probability of 5 %.
    confident: float = 1.96
    # Largest ε of strong, and of reasonable, protection: tiers 1 and 2 of Ponomareva et al., "How
    # to DP-fy ML", JAIR 2023, section 5.2.
    strong: float = 1.0
    reasonable: float = 10.0
    # Values of ε at which the success of attacks is bounded, besides that of the certificate. For
    # Gaussian noise the bound is exact at 0; releases by a threshold prove nothing there.
    points: tuple[float, ...] = (0.0, 0.001, 0.1, 1.0)
    largest: float = 50.0
    # Largest share of a good column that is merged into one level: these rows differ from others.
    merged: float = 0.1
    # Largest margin of noise of a good column, relative to the count of its rarest level.
    rare: float = 0.5
    # Least share by which a mean may be low that is said; set by hand.
    least_low: float = 0.02


CONSTANTS = VerdictConstants()
# The rule of `judge_column`, besides noise.
LOWERED = (
    f"a column is at most rough if more than {CONSTANTS.merged:.0%} of its values are merged into "
    f"one, if noise (95%) may exceed {CONSTANTS.rare:.0%} of the count of its rarest value, if "
    f"more than {GOOD_NOISE * MOVED:.0%} of its numbers may be off between its counts, or if the "
    f"fit warns of it. It counts as noise if more than {MOSTLY_OTHER:.0%} are merged or "
    f"{MOSTLY_MISSING:.0%} missing. A pair is no better than its columns."
)


def judge_protection(certificate: Certificate) -> dict:
    """Return how strong the protection is.

    ``verdict``: ``"strong"`` up to ε = 1, ``"reasonable"`` up to ε = 10, else ``"weak"``, or
    ``"none"`` if there is no noise, or its seed is known. ``best_attack``: the largest probability
    of a right guess whether a record, or person, was included, at even odds, by somebody who knows
    all others. ``best_inference``: the same of which of two values, equally likely before, a record
    has.
    """
    epsilon = certificate.epsilon
    if math.isinf(epsilon) or certificate.reproducible:
        return {"verdict": "none", "best_attack": 1.0, "best_inference": 1.0}
    points = (*CONSTANTS.points, min(epsilon, CONSTANTS.largest))
    proved = [(point, certificate.delta_at(point)) for point in points]
    success = [_bound_success(*pair) for pair in proved]
    replaced = success
    if certificate.relation == "zero_out":
        # From one value to the other by way of the null record: group privacy of two.
        replaced = [_bound_success(2 * e, (1 + math.exp(e)) * delta) for e, delta in proved]
    tiers = {"strong": CONSTANTS.strong, "reasonable": CONSTANTS.reasonable, "weak": math.inf}
    verdict = next(name for name, largest in tiers.items() if epsilon <= largest)
    return {
        "verdict": verdict,
        "best_attack": min(1.0, *success),
        "best_inference": min(1.0, *replaced),
    }


def _bound_success(epsilon: float, delta: float) -> float:
    """Return the largest probability of a right guess at even odds under (ε, δ)."""
    return (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))


def judge_counts(
    report: pd.DataFrame, n_records: int, rarest: Mapping[str, tuple[str, float]] | None = None
) -> dict | None:
    """Return the expected errors of the counts of columns and of pairs, and verdicts on them.

    They follow from a ``schema_report_``, so they cost nothing. Errors of training are not among
    them. `rarest` has the rarest level of columns with levels, and its share of the synthetic rows.
    Returns ``columns`` and ``pairs``, lists of `_describe_table`; None if the releases are no
    counts.
    """
    counted = report[report["n_levels"].notna() & report["noise"].notna()]
    if counted.empty:
        return None
    columns = {
        name: judge_column(row, n_records, (rarest or {}).get(str(name)))
        for name, row in counted.iterrows()
    }
    # All pairs have the same noise, but for those with a target that has strata.
    noise, common = counted["noise_pair"], counted["noise_pair"].median()
    pairs = []
    for first, second in combinations(columns if common >= 0 else (), 2):
        parts = {str(name): columns[name] for name in (first, second)}
        n_levels = math.prod(part["n_levels"] for part in parts.values())
        own = noise[second] if noise[first] == common else noise[first]
        reasons = [f"{name}: {why}" for name, part in parts.items() for why in part["reasons"]]
        # A pair is no better than its columns.
        worst = [part["verdict"] for part in parts.values()]
        table = _describe_table(CountTable(n_levels, own, n_records), reasons, worst)
        pairs.append({"first": str(first), "second": str(second), **table})
    return {
        "columns": [{"column": str(name), **table} for name, table in columns.items()],
        "pairs": pairs,
    }


def judge_column(row: pd.Series, n_records: int, rarest: tuple[str, float] | None = None) -> dict:
    """Return the verdict on a column, and its reasons besides noise, by the rule in `LOWERED`.

    `row` is one of the report on columns, `rarest` that of `judge_counts`.
    """
    n_levels = int(row["n_levels"]) + int(row["share_missing"] > 0)
    error = 0.0 if pd.isna(error := row.get("error")) else error
    counts = CountTable(n_levels, row["noise"], n_records, error)
    found = [
        (row.get("finding"), ROUGH, pd.notna(row.get("finding"))),
        (f"{error:.0%} off between its counts", ROUGH, error > GOOD_NOISE * MOVED),
        (f"{row['share_other']:.0%} merged", ROUGH, row["share_other"] > CONSTANTS.merged),
        ("", NOISE, row["share_other"] > MOSTLY_OTHER),
        (f"{row['share_missing']:.0%} missing", NOISE, row["share_missing"] > MOSTLY_MISSING),
    ]
    if rarest is not None and pd.isna(row["share_lower"]):
        level, n_rows = rarest[0], rarest[1] * n_records
        is_rare = CONSTANTS.confident * counts.noise > CONSTANTS.rare * n_rows
        found.append((f"only about {n_rows:,.0f} rows with {level}", ROUGH, is_rare))
    held = [(reason, verdict) for reason, verdict, is_held in found if is_held]
    reasons = [reason for reason, _ in held if reason]
    return _describe_table(counts, reasons, [verdict for _, verdict in held])


def _describe_table(counts: CountTable, reasons: list[str], worst: Sequence[str]) -> dict:
    """Return a judged table as JSON holds it; its verdict is no better than others.

    ``margin`` is what the noise on a count exceeds with a probability of 5 %, in records; and
    ``error`` the expected share of records that the noise moves to other counts.
    """
    return {
        "n_levels": counts.n_levels,
        "verdict": max([counts.verdict, *worst], key=VERDICTS.index),
        "reasons": reasons,
        "margin": CONSTANTS.confident * counts.noise,
        "error": counts.n_moved / counts.n_records,
    }


def summarize_use(counts: dict | None, report: pd.DataFrame, n_records: int, n_rows: int) -> dict:
    """Return the use of synthetic rows, from `judge_counts`: three sentences and one number.

    ``use``, ``avoid`` and ``expect`` have no terms of privacy. ``score``: of 100 rows, those that
    are expected in the right cell of a table of two columns; ``ceiling``: the same without noise
    and merged values, where drawing so many rows alone matters.
    """
    columns = [] if counts is None else counts["columns"]
    usable = [table for table in columns if table["verdict"] != NOISE]
    if counts is None or not usable:
        why = "no released count shows how good it is" if counts is None else "all counts are noise"
        return {
            "use": "Use it to try out programs and forms.",
            "avoid": f"Do not use it for conclusions: {why}.",
            "expect": "How near it is to the private table is unknown.",
            "score": None,
            "ceiling": None,
        }
    pairs, judged = counts["pairs"], counts["pairs"] or columns
    n_good = sum(table["verdict"] == GOOD for table in pairs)
    rough = [table["column"] for table in usable if table["verdict"] != GOOD]
    use = f"Use it for shares, averages and charts of {len(usable)} of {len(columns)} columns"
    if rough:
        use += f" (with care of {list_names(rough)})"
    if n_good:
        use += f", and for tables and models of {n_good} of {len(pairs)} pairs of them"
    margin = max(table["margin"] for table in usable)
    noisy = [table["column"] for table in columns if table["verdict"] == NOISE]
    # At the default of `rare`, and with one digit, since it is a rule of thumb.
    least = int(float(f"{margin / CONSTANTS.rare:.1g}"))
    avoid = (
        "Do not use it for single persons, for patterns of three and more columns, or for groups "
        f"of fewer than about {least:,} rows"
    )
    if noisy:
        avoid += f"; nor for {list_names(noisy)}, which are mostly noise"
    # A share of a half has the largest sampling error.
    off = math.hypot(margin / n_records, CONSTANTS.confident * 0.5 / math.sqrt(n_rows))
    expect = f"Expect a share of rows to be off by ± {100 * off:.2g} percentage points"
    low = report["mean_low"]
    if low.max() >= CONSTANTS.least_low:
        most = f"{low.max():.0%} ({low.idxmax()})"
        expect += f", and means and totals to be low by up to {most} where tails are cut"
    merged = {str(name): share for name, share in report["share_other"].fillna(0).items()}
    right = np.zeros(2)
    for table in judged:
        lost = sum(merged.get(table.get(which), 0) for which in ("column", "first", "second"))
        right += (
            1 - min(1.0, lost + _expect_error(table, n_records, n_rows)),
            1 - _expect_error(table | {"margin": 0.0}, n_records, n_rows),
        )
    score, ceiling = (100 * right / len(judged)).round().astype(int).tolist()
    return {
        "use": f"{use}.",
        "avoid": f"{avoid}.",
        "expect": f"{expect}.",
        "score": score,
        "ceiling": ceiling,
    }


def _expect_error(table: dict, n_records: int, n_rows: int) -> float:
    """Return the expected share of rows in wrong cells, by noise and by drawing so many rows."""
    share, noise = 1 / table["n_levels"], table["margin"] / CONSTANTS.confident / n_records
    # Equal shares have the largest error.
    std = math.hypot(noise, math.sqrt(share * (1 - share) / n_rows))
    return min(1.0, table["n_levels"] * std * MOVED)


def list_limits(
    report: pd.DataFrame | None, counts: dict | None, certificate: Certificate | None
) -> list[str]:
    """Return sentences on what synthetic rows are not good for."""
    texts = []
    if counts is not None:
        for what in ("columns", "pairs"):
            worst = sorted(counts[what], key=lambda table: -table["error"])
            noise = [name_table(table) for table in worst if table["verdict"] == NOISE]
            if noise:
                few = list_names(noise)
                texts.append(f"{what.title()} that are mostly noise: {len(noise)}, {few}.")
    if report is not None:
        texts += _list_losses(report)
    if certificate is not None and TwoWayTables.name in certificate.releases:
        texts.append(
            "Patterns of three or more columns, beyond what pairs of columns imply"
            + _describe_interactions(report, TwoWayTables.multi_way in certificate.releases)
        )
    return [*texts, "Statements about single rows: no synthetic row stands for a real one."]


def name_table(table: dict) -> str:
    """Return the name of the column, or of the pair of columns, of a table."""
    return table["column"] if "column" in table else f"{table['first']} × {table['second']}"


def _describe_interactions(report: pd.DataFrame | None, are_sought: bool) -> str:
    """Return what was measured of interactions, as the end of a sentence."""
    if not are_sought:
        return ": no such pattern was measured, unless with a target of two or three levels."
    kept = pd.Series(dtype=object) if report is None else report["interactions"].dropna()
    named = list(dict.fromkeys("; ".join(kept).split("; "))) if len(kept) else []
    if not named:
        return ", unless they show above the noise; none did." if report is not None else "."
    return f". Those of {list_names(named)} stood out and have tables of their own."


def _list_losses(report: pd.DataFrame) -> list[str]:
    """Return sentences on merged levels, lost columns and truncated ranges."""
    texts = []
    for name, least, text in (
        ("share_missing", MOSTLY_MISSING, "Columns without values"),
        ("share_other", CONSTANTS.merged, "Rare values, which are merged into one"),
    ):
        found = report.loc[report[name] > least, name].sort_values(ascending=False)
        if len(found):
            texts.append(f"{text}: {list_names([f'{c} ({x:.0%})' for c, x in found.items()])}.")
    ends = report[["share_lower", "share_upper"]].max(axis=1).dropna().sort_values(ascending=False)
    ranges = [
        f"{name} ({show_range(*report.loc[name, ['lower', 'upper']])})" for name in ends.index
    ]
    if ranges:
        texts.append(f"Rare values beyond these ranges, which are cut: {list_names(ranges)}.")
    return texts


def show_range(lower, upper) -> str:
    """Return bounds as text."""
    return " to ".join(
        f"{end:,.6g}" if isinstance(end, numbers.Real) else str(end).replace("T", " ")
        for end in (lower, upper)
    )
