# SPDX-License-Identifier: BSD-3-Clause
"""HTML page of a report, without other files or scripts."""

import json
import math
from itertools import combinations

from .._html import render
from ..accounting.certificate import Certificate
from ..accounting.rounding import show, show_event
from ..quality import LEAST_SIGNAL
from ._charts import MOST_BARS, Shares, draw_bars, draw_histogram, draw_matrix
from ._forecasts import GOOD_NOISE
from ._verdicts import CONSTANTS, LOWERED, show_range

# Rows of a table that is sorted by importance.
_MOST_LISTED = 10
# Pairs with verdicts, the worst first; the JSON has all.
_MOST_PAIRS = 200
_METRICS = {"accuracy": "accuracy", "roc_auc": "area under the ROC curve"}
_CLASSIFIERS = {"logistic": "logistic regression", "mlp": "small neural network"}


def write_page(results: dict) -> str:
    """Return the page of the results of a report."""
    judged = (results["counts"] or {}).get("columns", ())
    judged = {table["column"]: table for table in judged}
    shown = {
        "show": show,
        "constants": CONSTANTS,
        "lowered": LOWERED,
        "good_noise": GOOD_NOISE,
        "rough_noise": LEAST_SIGNAL**-0.5,
        "most_pairs": _MOST_PAIRS,
        "column_rows": _list_columns(results["columns"] or (), judged),
        "pair_rows": _list_pairs((results["counts"] or {}).get("pairs", ())),
        "charts": _draw_columns(results, judged),
        "audit_rows": _list_audit(results["audit"] or {}),
        **_describe_certificate(results["certificate"]),
        **_compare_pairs(results),
        **_compare_correlations(results["correlations"]),
        **_list_scores(results),
    }
    return render("report.html", **(results | shown))


def _list_columns(columns, judged) -> list[tuple]:
    rows = []
    for column in columns:
        bounds = "" if column["lower"] is None else show_range(column["lower"], column["upper"])
        shares = [column[f"share_{name}"] for name in ("other", "missing")]
        shown = ["" if share is None else f"{share:.0%}" for share in shares]
        verdict = _show_judged(judged.get(str(column["column"])), column["finding"])
        rows.append((column["column"], column["kind"], *verdict, *shown, bounds))
    return rows


def _list_pairs(pairs) -> list[tuple]:
    # Readers look for what they must not rely on.
    worst = sorted(pairs, key=lambda table: -table["error"])
    return [(f"{table['first']} × {table['second']}", *_show_judged(table)) for table in worst]


def _show_judged(table: dict | None, finding: str | None = None) -> tuple:
    """Return the cells of a judged table of counts: the template shows its verdict."""
    found = [finding] if finding else []
    if table is None:
        return "", *(found or [""]), "", ""
    margin, error = f"±{math.ceil(table['margin']):,}", f"{table['error']:.1%}"
    return table, "; ".join([*table["reasons"], *found]), margin, error


def _draw_columns(results: dict, judged: dict) -> list[dict]:
    """Return the chart of each column, and the shares of levels that it does not name."""
    certificate, charts = results["certificate"], []
    for column in results["marginals"]["columns"]:
        series = [column[name] for name in ("synthetic", "reference") if name in column]
        n_levels, bins, margin = len(column["levels"]), column["bins"], 0.0
        n_shown = len(bins) if bins else MOST_BARS
        # The bins, of which all levels are listed, or the most frequent levels.
        ranked = sorted(range(n_levels), key=lambda i: -max(part[i] for part in series))
        shown = list(range(n_shown)) if bins else sorted(ranked[:n_shown])
        others = list(range(n_levels)) if bins else sorted(ranked[n_shown:])
        if table := judged.get(column["column"]):
            # Persons have at least one row each, so that no error bar is too short.
            margin = table["margin"] / (certificate.get("n_persons") or certificate["n_records"])
            # A bin holds the noise of several knots.
            margin *= math.sqrt(max(1, table["n_levels"] / n_shown)) if bins else 1
        levels, *parts = ([part[i] for i in shown] for part in (column["levels"], *series))
        behind = parts[1] if len(parts) > 1 else None
        shares = Shares(column["column"], levels, parts[0], behind, margin)
        charts.append(
            {
                "name": column["column"],
                "gap": column.get("total_variation"),
                "drawing": draw_histogram(shares, bins, column["is_date"])
                if bins
                else draw_bars(shares),
                "n_levels": n_levels,
                "others": [
                    (column["levels"][i], *(f"{part[i]:.1%}" for part in series)) for i in others
                ],
            }
        )
    return charts


def _describe_certificate(given: dict | None) -> dict:
    """Return the rows of the certificate, e^ε, and what else its events say."""
    if given is None:
        return {"certified": [], "factor": "", "readings": []}
    # Read again, so that the page shows what the events cost and not what a file says.
    certificate = Certificate.from_json(json.dumps(given))
    rows = [("Statement", text) for text in certificate._list_statements()]
    events = zip(certificate.releases, certificate.events, strict=True)
    rows += [(f"Release: {name}", show_event(event)) for name, event in events]
    rows += [("Assumptions", text) for text in certificate.assumptions]
    # A name is shown once, in the first of its rows.
    names = ["", *(name for name, _ in rows)]
    certified = [
        ("" if name == before else name, text)
        for (name, text), before in zip(rows, names, strict=False)
    ]
    factor = math.exp(min(float(given["epsilon"]), 700))
    costs = {name: float(given.get(key) or 0) for name, key in (("μ", "mu"), ("ρ", "rho"))}
    return {
        "certified": certified,
        "factor": show(factor) if factor < 1e6 else "a million or more",
        "readings": [
            f"{name} = {show(cost)}" for name, cost in costs.items() if 0 < cost < math.inf
        ],
    }


def _compare_pairs(results: dict) -> dict:
    """Return the heat map of associations, and the pairs that differ the most."""
    pairs = results["pairs"]["pairs"]
    names = [column["column"] for column in results["marginals"]["columns"]]
    positions = {name: i for i, name in enumerate(names)}
    cells: dict = {}
    for pair in pairs:
        i, j = positions[pair["first"]], positions[pair["second"]]
        cells |= {(i, j): pair["synthetic"], (j, i): pair.get("reference")}
    worst = sorted(pairs, key=lambda pair: -pair.get("total_variation", 0))[:_MOST_LISTED]
    return {
        "associations": draw_matrix(names, cells, "Associations of pairs of columns"),
        "differing_pairs": [
            (
                f"{pair['first']}, {pair['second']}",
                f"{pair['total_variation']:.1%}",
                f"{pair['synthetic']:.2f}",
                f"{pair['reference']:.2f}",
            )
            for pair in worst
            if "reference" in pair
        ],
    }


def _compare_correlations(correlations: dict | None) -> dict:
    """Return the heat map of correlations, and the strongest."""
    if correlations is None:
        return {"correlation_matrix": "", "strongest": []}
    names = correlations["columns"]
    cells: dict = {}
    tables = [correlations[which] for which in ("synthetic", "reference") if correlations[which]]
    rows = []
    for i, j in combinations(range(len(names)), 2):
        found = [table[i][j] for table in tables]
        cells |= dict(zip([(i, j), (j, i)], found, strict=False))
        rows.append((f"{names[i]}, {names[j]}", *found))
    # By the reference, if there is one: it is the real table.
    rows.sort(key=lambda row: -abs(row[-1] or 0))
    label = "Correlations of numbers; the strongest are listed below"
    return {
        "correlation_matrix": draw_matrix(names, cells, label),
        "strongest": [(names, *map(_show_number, found)) for names, *found in rows[:_MOST_LISTED]],
    }


def _list_scores(results: dict) -> dict:
    """Return the rows of classifiers, rules and nearest records."""
    nearest = results["nearest"] or {}
    who = {"synthetic": "synthetic rows", "reference": "other half of the reference"}
    return {
        "scores": [
            (
                f"{_CLASSIFIERS[score['classifier']]}, {_METRICS[score['metric']]}",
                f"{score['synthetic']:.3f}",
                f"{score['reference']:.3f}",
            )
            for score in (results["classifiers"] or {}).get("scores", ())
        ],
        "broken_rules": [
            (rule["rule"], f"{rule['share_breaking']:.2%}") for rule in results["rules"] or ()
        ],
        "nearest_rows": [
            (who[name], f"{found['median_distance']:.3g}", f"{found['share_of_copies']:.1%}")
            for name, found in nearest.items()
            if name in who
        ],
    }


def _list_audit(audit: dict) -> list[tuple]:
    stated = {
        "verdict": audit.get("verdict"),
        "ε is shown to be above": _show_number(audit.get("bound")),
        "ε is claimed to be at most": _show_number(audit.get("claim")),
        "confidence": audit.get("confidence"),
    }
    # An audit may be a file from elsewhere: show the releases of known form.
    return [(name, value) for name, value in stated.items() if value is not None] + [
        (f"release: {one.get('name')}", "; ".join([one.get("verdict", ""), *one["reasons"]]))
        for one in audit.get("releases", ())
        if isinstance(one, dict) and isinstance(one.get("reasons"), list)
    ]


def _show_number(number: float | str | None) -> str:
    return "none" if number is None else f"{float(number):.3g}"
