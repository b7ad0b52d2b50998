# SPDX-License-Identifier: BSD-3-Clause
"""HTML page of a report, without other files or scripts."""

import json
import math
from collections.abc import Callable, Sequence
from html import escape
from itertools import combinations

from .._html import fold
from ..accounting.certificate import Certificate
from ..accounting.rounding import show, show_event
from ._drawings import MOST_BARS, draw_bars, draw_histogram, draw_matrix
from ._front import write_front
from ._markup import STYLE, Verdict, make_list, make_section, make_table
from ._verdicts import LOWERED, show_range

# Rows of a table that is sorted by importance.
_MOST_LISTED = 10
# Pairs with verdicts, the worst first; the JSON has all.
_MOST_PAIRS = 200
_METRICS = {"accuracy": "accuracy", "roc_auc": "area under the ROC curve"}
_CLASSIFIERS = {"logistic": "logistic regression", "mlp": "small neural network"}


def write_page(results: dict) -> str:
    """Return the page of the results of a report."""
    sections = [
        write_front(results),
        _write_columns(results),
        _write_marginals(results),
        _write_pairs(results),
        *(write(results[name]) for name, write in _SECTIONS.items() if results[name] is not None),
        _write_privacy(results),
        _write_audit(results["audit"]) if results["audit"] is not None else "",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(results['title'])}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(section for section in sections if section)
        + "\n</main>\n</body>\n</html>\n"
    )


def _write_columns(results: dict) -> str:
    """Return what is expected of each column and pair of columns, from released numbers."""
    if results["columns"] is None:
        return ""
    counts = results["counts"] or {"columns": [], "pairs": []}
    judged = {table["column"]: table for table in counts["columns"]}
    rows = []
    for column in results["columns"]:
        shown_counts = _show_judged(judged.get(str(column["column"])))
        bounds = "" if column["lower"] is None else show_range(column["lower"], column["upper"])
        shares = [column[f"share_{name}"] for name in ("other", "missing")]
        shown = ["" if share is None else f"{share:.0%}" for share in shares]
        rows.append((column["column"], column["kind"], *shown_counts, *shown, bounds))
    head = ["Column", "Type", *_JUDGED, "Merged", "Missing", "Range"]
    # Readers look for what they must not rely on.
    worst = sorted(counts["pairs"], key=lambda table: -table["error"])
    pairs = ""
    if worst:
        listed = [(f"{t['first']} × {t['second']}", *_show_judged(t)) for t in worst[:_MOST_PAIRS]]
        more = len(worst) - len(listed)
        pairs = (
            f"<h3>Pairs of columns, the worst first</h3>{make_table(['Columns', *_JUDGED], listed)}"
            + f"<p>{more:,} pairs that are no worse are in the JSON of this report.</p>"
            * (more > 0)
        )
    return make_section(
        "How far the counts can be trusted",
        f"By the rule above; {LOWERED} The noise on each count stays within ± this number of rows "
        "with a probability of 95%. Rows moved: the expected share of rows that noise puts "
        "elsewhere in the table.",
        make_table(head, rows) + pairs,
    )


_JUDGED = ["Verdict", "Besides noise", "Noise", "Rows moved"]


def _show_judged(table: dict | None) -> tuple[str, ...]:
    if table is None:
        return ("",) * len(_JUDGED)
    margin, error = f"±{math.ceil(table['margin']):,}", f"{table['error']:.1%}"
    return Verdict(table["verdict"]), "; ".join(table["reasons"]), margin, error


def _write_privacy(results: dict) -> str:
    certificate = results["certificate"]
    parts = [] if certificate is None else [_show_certificate(certificate)]
    text = "" if certificate is None else _explain_epsilon(certificate)
    voids = f"<h3>What voids the protection</h3>{make_list(results['voids'])}"
    return make_section("Protection in detail", text, "\n".join([*parts, voids]))


def _explain_epsilon(certificate: dict) -> str:
    epsilon = float(certificate["epsilon"])
    if math.isinf(epsilon):
        return ""
    unit = "a person" if certificate.get("unit") == "person" else "one record"
    factor = math.exp(epsilon)
    return (
        "The synthetic rows were generated from noisy statistics, never from the rows "
        f"themselves. With the noise, the result would be nearly as likely if {unit} had been left "
        f"out{' or exchanged' if certificate['relation'] == 'replace_one' else ''}: by a factor of "
        f"at most {show(factor) if factor < 1e6 else 'a million or more'} (e<sup>ε</sup>), except "
        f"with a probability of about {show(certificate['delta'])} (δ). Smaller is safer."
    )


def _show_certificate(given: dict) -> str:
    # Read again, so that the page shows what the events cost and not what a file says.
    certificate = Certificate.from_json(json.dumps(given))
    rows = _label("Statement", certificate._list_statements())
    rows += [
        (f"Release: {name}", show_event(event))
        for name, event in zip(certificate.releases, certificate.events, strict=True)
    ]
    rows += _label("Assumptions", certificate.assumptions)
    return "<h3>Certificate</h3>" + make_table((), rows)


def _label(name: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return rows of a table, the first of which has the name."""
    return [(name if i == 0 else "", text) for i, text in enumerate(texts)]


def _write_audit(audit: dict) -> str:
    stated = {
        "verdict": audit.get("verdict"),
        "ε is shown to be above": _show_number(audit.get("bound")),
        "ε is claimed to be at most": _show_number(audit.get("claim")),
        "confidence": audit.get("confidence"),
    }
    rows = [(name, value) for name, value in stated.items() if value is not None]
    # An audit may be a file from elsewhere: show the releases of known form.
    rows += [
        (f"release: {one.get('name')}", "; ".join([one.get("verdict", ""), *one["reasons"]]))
        for one in audit.get("releases", ())
        if isinstance(one, dict) and isinstance(one.get("reasons"), list)
    ]
    return make_section(
        "Audit",
        "An audit runs the releases many times and measures how much they reveal. It can refute a "
        "claim but not prove one: the certificate does that.",
        make_table((), rows),
    )


def _write_marginals(results: dict) -> str:
    marginals, has_reference = results["marginals"], results["n_reference"] is not None
    judged, n_records = {}, 1
    if results["counts"] is not None:
        judged = {table["column"]: table for table in results["counts"]["columns"]}
        # Persons have at least one row each, so that no error bar is too short.
        n_records = results["certificate"].get("n_persons") or results["certificate"]["n_records"]
    figures = []
    for column in marginals["columns"]:
        note = f" {column['total_variation']:.1%} differ" if has_reference else ""
        drawing, others = _draw_column(column, judged.get(column["column"]), n_records)
        figures.append(
            f"<figure><figcaption>{escape(column['column'])}<span>{note}</span></figcaption>"
            f"{drawing}{_list_levels(column, others)}</figure>"
        )
    text = (
        "The share of each value among the synthetic rows. Areas of histograms are shares; thin "
        "lines with a percentage are single values."
    )
    if has_reference:
        text = (
            "The share of each value among the synthetic rows (blue) and the reference (grey). "
            "Areas of histograms are shares; thin lines with a percentage are single values. The "
            "percentage above says how many rows would have to change for both to agree: "
            f"{marginals['mean_total_variation']:.1%} on average. Two halves of the reference "
            f"differ by {marginals['halves']:.1%}."
        )
    if judged:
        text += (
            " Error bars hold 95% of the noise on each released count (approximately, for "
            "histograms)."
        )
    return make_section("Columns, one by one", text, f'<div class="grid">{"".join(figures)}</div>')


def _draw_column(column: dict, judged: dict | None, n_records: int) -> tuple[str, list[int]]:
    """Return the chart of a column, and the levels that it does not name."""
    series = [column[name] for name in ("synthetic", "reference") if name in column]
    margin = None if judged is None else judged["margin"] / n_records
    n_levels, n_bins = len(column["levels"]), len(column["bins"] or ())
    if n_bins:
        # A bin holds the noise of several knots.
        if margin:
            margin *= math.sqrt(max(1, judged["n_levels"] / n_bins))
        shown, draw = range(n_bins), draw_histogram
        options = {"is_date": column["is_date"]}
    else:
        largest = sorted(range(n_levels), key=lambda i: -max(part[i] for part in series))
        shown, draw, options = sorted(largest[:MOST_BARS]), draw_bars, {}
    levels, *parts = ([part[i] for i in shown] for part in (column["levels"], *series))
    drawing = draw(
        *([column["bins"]] if n_bins else []),
        levels,
        parts[0],
        parts[1] if len(parts) > 1 else None,
        column["column"],
        margin,
        **options,
    )
    return drawing, [i for i in range(n_levels) if n_bins or i not in shown]


def _list_levels(column: dict, others: list[int]) -> str:
    """Return a folded list of the shares of some levels."""
    names = [name for name in ("synthetic", "reference") if name in column]
    rows = [(column["levels"][i], *(f"{column[name][i]:.1%}" for name in names)) for i in others]
    if not rows:
        return ""
    more = " more" * (len(rows) < len(column["levels"]))
    return fold(f"{len(rows)}{more} values", make_table(["Value", *names], rows))


def _write_pairs(results: dict) -> str:
    pairs, has_reference = results["pairs"], results["n_reference"] is not None
    if not pairs["pairs"]:
        return ""
    names = [column["column"] for column in results["marginals"]["columns"]]
    text = (
        "The association of columns: 0 (white) for independent columns, 1 (dark) if one determines "
        "the other (Cramér's V, numbers binned)."
    )
    table = ""
    if has_reference:
        text += (
            " Above the diagonal are the synthetic rows, below it the reference: the better they "
            "agree, the more symmetric is the picture. In tables of two columns "
            f"{pairs['mean_total_variation']:.1%} of the rows differ on average; between two "
            f"halves of the reference {pairs['halves']:.1%}."
        )
        worst = sorted(pairs["pairs"], key=lambda pair: -pair["total_variation"])[:_MOST_LISTED]
        table = "<h3>Pairs that differ the most</h3>" + make_table(
            ["Columns", "Rows that differ", "Association, synthetic", "Association, reference"],
            [
                (
                    f"{pair['first']}, {pair['second']}",
                    f"{pair['total_variation']:.1%}",
                    f"{pair['synthetic']:.2f}",
                    f"{pair['reference']:.2f}",
                )
                for pair in worst
            ],
        )
    positions = {name: i for i, name in enumerate(names)}
    cells = {}
    for pair in pairs["pairs"]:
        i, j = positions[pair["first"]], positions[pair["second"]]
        cells |= {(i, j): pair["synthetic"], (j, i): pair.get("reference")}
    drawing = draw_matrix(names, cells, "Associations of pairs of columns")
    return make_section("Pairs of columns", text, drawing + table)


def _write_correlations(correlations: dict) -> str:
    names, cells, tables = correlations["columns"], {}, []
    for which in ("synthetic", "reference"):
        if correlations[which] is not None:
            tables.append(correlations[which])
    for i, j in combinations(range(len(names)), 2):
        cells[i, j] = tables[0][i][j]
        if len(tables) > 1:
            cells[j, i] = tables[1][i][j]
    rows = [
        (f"{names[i]}, {names[j]}", *(_show_number(table[i][j]) for table in tables))
        for i, j in combinations(range(len(names)), 2)
    ]
    # By the reference, if there is one: it is the real table.
    rows.sort(key=lambda row: -abs(float(row[-1])) if row[-1] != "none" else 0)
    text = "Pearson's correlations of numbers: blue if positive, red if negative"
    if correlations["mean_difference"] is not None:
        text += (
            "; synthetic rows above the diagonal, the reference below it; on average they differ "
            f"by {correlations['mean_difference']:.2f}"
        )
    head = ["Columns", "Synthetic", "Reference"][: 1 + len(tables)]
    drawing = draw_matrix(names, cells, "Correlations of numbers; the strongest are listed below")
    table = f"<h3>The strongest</h3>{make_table(head, rows[:_MOST_LISTED])}"
    return make_section("Correlations", f"{text}.", drawing + table)


def _write_k_marginals(marginals: dict) -> str:
    return make_section(
        f"Tables of {marginals['k']} columns",
        f"The k-marginal score is <b>{marginals['score']:.0f}</b> of 1,000, over "
        f"{marginals['n_marginals']} tables of {marginals['k']} columns each; equal tables score "
        f"1,000. Two halves of the reference score {marginals['halves']:.0f}.",
    )


def _write_classifiers(scored: dict) -> str:
    title = f"Predicting {escape(str(scored['target']))}"
    if "none" in scored:
        text = f"No classifier was trained on this column: {escape(scored['none'])}."
        return make_section(title, text)
    rows = [
        (
            f"{_CLASSIFIERS[score['classifier']]}, {_METRICS[score['metric']]}",
            f"{score['synthetic']:.3f}",
            f"{score['reference']:.3f}",
        )
        for score in scored["scores"]
    ]
    return make_section(
        title,
        "Classifiers trained on synthetic rows and tested on one half of the reference, beside "
        "the same trained on its other half. Always predicting the most frequent class has an "
        f"accuracy of {scored['most_frequent']:.3f}.",
        make_table(["Classifier", "Trained on synthetic", "Trained on reference"], rows),
    )


def _write_propensity(propensity: dict) -> str:
    return make_section(
        "Synthetic or not",
        "A classifier (gradient boosting) learned to distinguish synthetic from reference rows, "
        f"and was tested on others. The area under its ROC curve is <b>{propensity['roc_auc']:.3f}"
        "</b>: 0.5 for a random guess, 1 if it is always right. The propensity mean square error "
        f"is {propensity['pmse']:.3f} of its maximum ({propensity['n_rows_each']:,} rows of each).",
    )


def _write_rules(rules: list[dict]) -> str:
    if not rules:
        return make_section("Rules", "The schema has no rules.")
    rows = [(rule["rule"], f"{rule['share_breaking']:.2%}") for rule in rules]
    return make_section(
        "Rules",
        "The share of synthetic rows that break the rules of the schema.",
        make_table(["Rule", "Rows that break it"], rows),
    )


def _write_nearest(nearest: dict) -> str:
    names = {"synthetic": "synthetic rows", "reference": "other half of the reference"}
    rows = [
        (name, f"{nearest[who]['median_distance']:.3g}", f"{nearest[who]['share_of_copies']:.1%}")
        for who, name in names.items()
    ]
    return make_section(
        "Nearest records",
        f"Distances to the nearest row of one half of the reference ({nearest['n_rows']:,} rows). "
        "They do not measure privacy, which the certificate guarantees. They show whether rows are "
        "implausible (farther than the other half) or copied.",
        make_table(["Rows", "Median distance", "Equal to the nearest row"], rows),
    )


# Sections in the order of the page, each for an entry of the results.
_SECTIONS: dict[str, Callable[..., str]] = {
    "correlations": _write_correlations,
    "k_marginals": _write_k_marginals,
    "classifiers": _write_classifiers,
    "propensity": _write_propensity,
    "rules": _write_rules,
    "nearest": _write_nearest,
}


def _show_number(number: float | str | None) -> str:
    return "none" if number is None else f"{float(number):.3g}"
