# SPDX-License-Identifier: BSD-3-Clause
"""HTML page of a report, which needs no other file."""

import json
import math
from itertools import pairwise

import numpy as np

from .._html import render
from ..accounting.certificate import Certificate
from ..accounting.rounding import show, show_event
from ..quality import LEAST_SIGNAL
from ._charts import MOST_BARS, Shares, draw_bars, draw_histogram, draw_matrix, draw_tables
from ._forecasts import GOOD_NOISE
from ._verdicts import CONSTANTS, LOWERED, name_table, show_range

# Rows of a table that is sorted by importance.
_MOST_LISTED = 10
# Pairs with verdicts, the worst first, and pictures of pairs; the JSON has all.
_MOST_PAIRS, _MOST_PICTURES = 200, 8
_METRICS = {"accuracy": "accuracy", "roc_auc": "area under the ROC curve"}
_CLASSIFIERS = {"logistic": "Logistic regression", "mlp": "Small neural network"}


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
        "charts": _draw_columns(results),
        **_show_released(results["released"], results["columns"] or ()),
        "audit_rows": _list_audit(results["audit"] or {}),
        **_describe_certificate(results["certificate"]),
        **_compare_pairs(results),
        "figures": [
            (name, *("" if x is None else f"{x:.{digits}f}" for x in found))
            for name, digits, *found in list_figures(results)
        ],
        "broken_rules": [
            (rule["rule"], f"{rule['share_breaking']:.2%}") for rule in results["rules"] or ()
        ],
    }
    return render("report.html", **(results | shown))


def _list_columns(columns, judged) -> list[tuple]:
    rows = []
    for column in columns:
        bounds = "" if column["lower"] is None else show_range(column["lower"], column["upper"])
        if column["share_atoms"]:
            bounds += f"; {column['share_atoms']:.0%} single values"
        shares = [column[f"share_{name}"] for name in ("other", "missing")]
        shown = ["" if share is None else f"{share:.0%}" for share in shares]
        verdict = _show_judged(judged.get(str(column["column"])), column["finding"])
        rows.append((column["column"], column["kind"], *verdict, *shown, bounds))
    return rows


def _list_pairs(pairs) -> list[tuple]:
    # Readers look for what they must not rely on.
    worst = sorted(pairs, key=lambda table: -table["error"])
    return [(name_table(table), *_show_judged(table)) for table in worst]


def _show_judged(table: dict | None, finding: str | None = None) -> tuple:
    """Return the cells of a judged table of counts: the template shows its verdict."""
    if table is None:
        return "", finding or "", "", ""
    margin, error = f"±{math.ceil(table['margin']):,}", f"{table['error']:.1%}"
    return table, "; ".join(table["reasons"]), margin, error


def _draw_columns(results: dict) -> list[dict]:
    """Return the chart of each column, of synthetic rows beside the reference or the release."""
    if results["released"] is not None and results["n_reference"] is None:
        return [_draw_released(column) for column in results["released"]["columns"]]
    charts = []
    for column in results["marginals"]["columns"]:
        series = [column[name] for name in ("synthetic", "reference") if name in column]
        chart = _draw(column["column"], column["levels"], series, column["bins"], column["is_date"])
        if (gap := column.get("total_variation")) is not None:
            chart["beside"].insert(0, f"{gap:.1%} differ")
        charts.append(chart)
    return charts


def _draw_released(column: dict) -> dict:
    """Return the chart of a column: released shares behind synthetic ones."""
    names, series = _name_levels(column), [column["synthetic"], column["released"]]
    bins = None
    if values := column.get("values"):
        bins = _bin_knots(values, column["n_knots"])
        order = sorted(range(len(bins)), key=bins.__getitem__)
        bins = [bins[i] for i in order]
        order += range(len(values), len(names))
        names, *series = ([part[i] for i in order] for part in (names, *series))
    is_date = column.get("is_date", False)
    return _draw(column["column"], names, series, bins, is_date, column["margin"])


def _draw(name, levels, series, bins, is_date, margin=0.0) -> dict:
    """Return a chart of bins, or of the most frequent levels; and the shares of all others."""
    n_shown = len(bins) if bins else MOST_BARS
    # All levels of bins are listed.
    ranked = sorted(range(len(levels)), key=lambda i: -max(part[i] for part in series))
    shown = list(range(n_shown)) if bins else sorted(ranked[:n_shown])
    others = list(range(len(levels))) if bins else sorted(ranked[n_shown:])
    listed, *parts = ([part[i] for i in shown] for part in (levels, *series))
    shares = Shares(name, listed, parts[0], parts[1] if parts[1:] else None, margin)
    # A histogram has no bar for texts, such as missing cells.
    texts = list(zip(levels, series[0], strict=True))[len(bins) :] if bins else []
    return {
        "name": name,
        "drawing": draw_histogram(shares, bins, is_date) if bins else draw_bars(shares),
        "n_levels": len(levels),
        "beside": [f"{share:.0%} {level}" for level, share in texts if share >= 0.005],
        "others": [(levels[i], *(f"{part[i]:.1%}" for part in series)) for i in others],
    }


def _bin_knots(values: list, n_knots: int) -> list[tuple[float, float]]:
    """Return the range around each knot, and point masses as ranges of width 0."""
    knots = values[:n_knots]
    middles = [(a + b) / 2 for a, b in pairwise(knots)]
    bins = list(zip([knots[0], *middles], [*middles, knots[-1]], strict=True)) if knots else []
    return bins + [(value, value) for value in values[n_knots:]]


def _name_levels(column: dict) -> list[str]:
    """Return the names of the released levels of a column, or of its knots and point masses."""
    values = column.get("values", ())
    if column.get("is_date"):
        return [str(np.datetime64(int(v), "s"))[:10] for v in values] + column["levels"]
    return [f"{v:,.6g}" for v in values] + column["levels"]


def _show_released(released: dict | None, reported) -> dict:
    """Return the means and totals of released columns, and pictures of pairs and histories."""
    if released is None:
        return dict.fromkeys(["mean_rows", "pair_pictures", "histories", "transitions"], ())
    columns, pairs = released["columns"], released["pairs"]
    keys = ("mean", "mean_margin", "synthetic_mean", "total", "total_margin")
    low = {column["column"]: f"{column['mean_low'] or 0:.0%}" for column in reported}
    levels = {column["column"]: _name_levels(column) for column in columns}
    levels |= {f"next {name}": found for name, found in levels.items()}
    return {
        "mean_rows": [
            (
                column["column"],
                *(_show_amount(column[key]) for key in keys),
                low.get(column["column"], ""),
            )
            for column in columns
            if column.get("mean") is not None
        ],
        "pair_pictures": [
            _draw_pair(pair, levels) for pair in pairs[:_MOST_PICTURES] if pair["beyond_noise"] > 0
        ],
        "histories": [c | _draw_released(c) for c in released.get("histories", ())],
        "transitions": [
            _draw_pair(p, levels) for p in pairs if p["second"] == f"next {p['first']}"
        ],
    }


def _draw_pair(pair: dict, levels: dict) -> dict:
    """Return the picture of a pair: released shares beside synthetic ones."""
    names = levels[pair["first"]], levels[pair["second"]]
    drawing = draw_tables([pair["released"], pair["synthetic"]], *names)
    return {"name": name_table(pair), "beyond": pair["beyond_noise"], "drawing": drawing}


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
                name_table(pair),
                f"{pair['total_variation']:.1%}",
                f"{pair['synthetic']:.2f}",
                f"{pair['reference']:.2f}",
            )
            for pair in worst
            if "reference" in pair
        ],
    }


def list_figures(results: dict) -> list[tuple]:
    """Return names, digits, and figures of synthetic rows, half of the reference, equal tables."""
    if results["k_marginals"] is None:
        return []
    k, propensity, quality = (results[n] for n in ("k_marginals", "propensity", "quality"))
    halves = propensity["halves"]
    rows: list[tuple] = [
        (f"Total variation of {what}, mean", 3, part["mean_total_variation"], part["halves"], 0.0)
        for what, part in (("columns", results["marginals"]), ("pairs", results["pairs"]))
        if part.get("halves") is not None
    ]
    rows.append((f"Score of {k['k']}-marginals (NIST), of 1,000", 0, k["score"], k["halves"], 1e3))
    rows.append(("Quality score (SDMetrics)", 3, quality["score"], quality["halves"], 1.0))
    names = {"roc_auc": "Propensity, area under the ROC curve", "pmse": "pMSE, of its maximum"}
    best = {"roc_auc": 0.5, "pmse": 0.0}
    rows += [(names[key], 3, propensity[key], halves[key], best[key]) for key in names]
    for score in (results["classifiers"] or {}).get("scores", ()):
        name = f"{_CLASSIFIERS[score['classifier']]}, {_METRICS[score['metric']]}"
        rows.append((name, 3, score["synthetic"], score["reference"], None))
    return rows


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


def _show_amount(amount: float) -> str:
    return f"{amount:,.4g}" if abs(amount) < 1000 else f"{amount:,.0f}"


def _show_number(number: float | str | None) -> str:
    return "none" if number is None else f"{float(number):.3g}"
