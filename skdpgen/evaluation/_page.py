# SPDX-License-Identifier: BSD-3-Clause
"""HTML page of a report, without other files or scripts."""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import combinations

from .._html import fold, fold_rows, fold_text
from ..accounting.certificate import Certificate
from ..accounting.rounding import show
from ._drawings import MOST_BARS, draw_bars, draw_matrix

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1c2733; background: #fff; margin: 0 auto;
  max-width: 62em; padding: 1.5em; }
h1 { margin: 0 0 .2em; } h2 { margin: 2em 0 .4em; border-bottom: 2px solid #d5dce3; }
p { max-width: 44em; } .faint { color: #5a6875; }
.alarm { border: 3px solid #b3261e; background: #fdecea; color: #8c1d18; padding: .6em 1em;
  font-weight: 600; margin: 0 0 1em; }
.tiles { display: flex; flex-wrap: wrap; gap: .8em; margin: 1em 0; }
.tile { border: 1px solid #c6d0d9; border-radius: 6px; padding: .5em 1em; min-width: 8em; }
.tile b { display: block; font-size: 1.5em; }
table { border-collapse: collapse; margin: .8em 0; }
th, td { text-align: left; padding: .2em 1em .2em 0; border-bottom: 1px solid #e3e8ed;
  vertical-align: top; } td { overflow-wrap: anywhere; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.grid { display: flex; flex-wrap: wrap; gap: 1.2em; } figure { margin: 0; break-inside: avoid; }
figcaption { font-weight: 600; } figcaption span { font-weight: 400; color: #5a6875; }
svg { max-width: 100%; height: auto; } summary { cursor: pointer; color: #2f6db3; }
@media (max-width: 40em) { table { display: block; overflow-x: auto; } }
@media print { body { max-width: none; padding: 0; font-size: 12px; } h2 { break-after: avoid; } }
"""
# Rows of a table that is sorted by importance.
_MOST_LISTED = 10
_METRICS = {"accuracy": "accuracy", "roc_auc": "area under the ROC curve"}
_CLASSIFIERS = {"logistic": "logistic regression", "mlp": "small neural network"}


def write_page(results: dict) -> str:
    """Return the page of the results of a report."""
    sections = [
        *_list_alarms(results),
        f"<h1>{escape(results['title'])}</h1>",
        f'<p class="faint">A report by skdpgen {results["version"]}, {results["date"]}.</p>',
        _write_summary(results),
        _write_privacy(results),
        _write_audit(results["audit"]) if results["audit"] is not None else "",
        _write_marginals(results),
        _write_pairs(results),
        *(write(results[name]) for name, write in _SECTIONS.items() if results[name] is not None),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(results['title'])}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(section for section in sections if section)
        + "\n</body>\n</html>\n"
    )


def _list_alarms(results: dict) -> list[str]:
    """Return the warnings at the top of the page."""
    certificate, audit, alarms = results["certificate"], results["audit"] or {}, []
    if results["reads_private_rows"]:
        alarms.append(
            "This report was computed from PRIVATE rows. No ε covers it: it is as secret as the "
            "rows themselves. Do not publish it."
        )
    if certificate is None:
        alarms.append("No certificate was given: nothing here shows that these rows are private.")
    elif certificate["reproducible"]:
        alarms.append(
            "The noise of this fit follows from a seed. Whoever knows or guesses it can remove "
            "the noise: this is an experiment, not a private release."
        )
    if certificate is not None and certificate["epsilon"] == "inf":
        alarms.append("ε is infinite: no noise was added, and there is no privacy.")
    if audit.get("verdict") == "violation found":
        alarms.append("An audit found that more is revealed than the certificate claims.")
    if audit.get("is_of_certificate") is False:
        alarms.append(
            "The audit is of other releases than those of the certificate, or of the same with "
            "other noise: it is no evidence for these rows."
        )
    return [f'<p class="alarm" role="alert">{escape(alarm)}</p>' for alarm in alarms]


def _write_summary(results: dict) -> str:
    certificate = results["certificate"]
    tiles = [("synthetic rows", f"{results['n_rows']:,}")]
    if certificate is not None:
        epsilon = float(certificate["epsilon"])
        unit = certificate.get("unit", "record")
        tiles += [("ε", show(epsilon)), ("δ", show(certificate["delta"])), ("protects each", unit)]
    if results["n_reference"] is not None:
        name = "private rows" if results["reads_private_rows"] else "public reference rows"
        tiles.append((name, f"{results['n_reference']:,}"))
    if results["k_marginals"]:
        tiles.append(("k-marginal score of 1,000", f"{results['k_marginals']['score']:.0f}"))
    shown = "".join(f'<div class="tile"><b>{escape(b)}</b>{escape(a)}</div>' for a, b in tiles)
    return f'<div class="tiles">{shown}</div>'


def _write_privacy(results: dict) -> str:
    parts = ["<h2>Protection of the private rows</h2>"]
    certificate = results["certificate"]
    if certificate is not None:
        parts += [_explain_epsilon(certificate), _show_certificate(certificate)]
    voids = "".join(f"<li>{escape(text)}</li>" for text in results["voids"])
    return "\n".join([*parts, f"<h3>What voids it</h3><ul>{voids}</ul>"])


def _explain_epsilon(certificate: dict) -> str:
    epsilon = float(certificate["epsilon"])
    if math.isinf(epsilon):
        return ""
    unit = "a person" if certificate.get("unit") == "person" else "one record"
    # The probability of a right guess at even odds, e^ε / (1 + e^ε) + δ, rounded up.
    right = 1 / (1 + math.exp(-epsilon)) + certificate["delta"]
    right = math.ceil(1000 * min(right, 1.0)) / 10
    factor = math.exp(epsilon)
    return (
        "<p>The synthetic rows were generated from noisy statistics, never from the rows "
        f"themselves. With the noise, the result would be nearly as likely if {unit} had been left "
        f"out{' or exchanged' if certificate['relation'] == 'replace_one' else ''}: by a factor of "
        f"at most {show(factor) if factor < 1e6 else 'a million or more'} (e<sup>ε</sup>), except "
        f"with a probability of about {show(certificate['delta'])} (δ). Whoever knows all other "
        f"records, and guesses at even odds whether {unit} was included, is right in at most "
        f"{right:g} of 100 cases. Smaller is safer.</p>"
    )


def _show_certificate(given: dict) -> str:
    certificate = Certificate.from_json(json.dumps(given))
    rows = _label("Statement", certificate._list_statements())
    rows += [
        (f"Release: {name}", event)
        for name, event in zip(certificate.releases, certificate.events, strict=True)
    ]
    rows += _label("Assumptions", certificate.assumptions)
    return "<h3>Certificate</h3>" + _write_table((), rows)


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
    return _section(
        "Audit",
        "An audit runs the releases many times and measures how much they reveal. It can refute a "
        "claim but not prove one: the certificate does that.",
        _write_table((), rows),
    )


def _write_marginals(results: dict) -> str:
    marginals, has_reference = results["marginals"], results["n_reference"] is not None
    figures = []
    for column in marginals["columns"]:
        note = f" {column['total_variation']:.1%} differ" if has_reference else ""
        drawing = draw_bars(
            column["levels"], column["synthetic"], column.get("reference"), column["column"]
        )
        figures.append(
            f"<figure><figcaption>{escape(column['column'])}<span>{note}</span></figcaption>"
            f"{drawing}{_list_other_levels(column)}</figure>"
        )
    text = "The share of each value among the synthetic rows."
    if has_reference:
        text = (
            "The share of each value among the synthetic rows (blue) and the reference (grey). The "
            "percentage says how many rows would have to change for both to agree: "
            f"{marginals['mean_total_variation']:.1%} on average. Two halves of the reference "
            f"differ by {marginals['halves']:.1%}."
        )
    return _section("Columns, one by one", text, f'<div class="grid">{"".join(figures)}</div>')


def _list_other_levels(column: dict) -> str:
    """Return a folded list of the shares of levels without a bar."""
    names = [name for name in ("synthetic", "reference") if name in column]
    rows = [
        (level, *(f"{share:.1%}" for share in shares))
        for level, *shares in zip(column["levels"], *map(column.get, names), strict=True)
    ][MOST_BARS:]
    if not rows:
        return ""
    return fold(f"{len(rows)} more values", _write_table(["Value", *names], rows))


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
        table = "<h3>Pairs that differ the most</h3>" + _write_table(
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
    return _section("Pairs of columns", text, draw_matrix(names, pairs["pairs"]) + table)


def _write_correlations(correlations: dict) -> str:
    tables = [
        correlations[name] for name in ("synthetic", "reference") if correlations[name] is not None
    ]
    rows = [
        (f"{first}, {second}", *(_show_number(table[i][j]) for table in tables))
        for (i, first), (j, second) in combinations(enumerate(correlations["columns"]), 2)
    ]
    rows.sort(key=lambda row: -abs(float(row[-1])) if row[-1] != "none" else 0)
    text = "Pearson's correlations of numbers, the strongest first"
    if correlations["mean_difference"] is not None:
        text += f"; on average they differ by {correlations['mean_difference']:.2f}"
    head = ["Columns", "Synthetic", "Reference"][: 1 + len(tables)]
    return _section("Correlations", f"{text}.", _write_table(head, rows[:_MOST_LISTED]))


def _write_k_marginals(marginals: dict) -> str:
    return _section(
        f"Tables of {marginals['k']} columns",
        f"The k-marginal score is <b>{marginals['score']:.0f}</b> of 1,000, over "
        f"{marginals['n_marginals']} tables of {marginals['k']} columns each; equal tables score "
        f"1,000. Two halves of the reference score {marginals['halves']:.0f}.",
    )


def _write_classifiers(scored: dict) -> str:
    title = f"Predicting {escape(str(scored['target']))}"
    if "none" in scored:
        text = f"No classifier was trained on this column: {escape(scored['none'])}."
        return _section(title, text)
    rows = [
        (
            f"{_CLASSIFIERS[score['classifier']]}, {_METRICS[score['metric']]}",
            f"{score['synthetic']:.3f}",
            f"{score['reference']:.3f}",
        )
        for score in scored["scores"]
    ]
    return _section(
        title,
        "Classifiers trained on synthetic rows and tested on one half of the reference, beside "
        "the same trained on its other half. Always predicting the most frequent class has an "
        f"accuracy of {scored['most_frequent']:.3f}.",
        _write_table(["Classifier", "Trained on synthetic", "Trained on reference"], rows),
    )


def _write_propensity(propensity: dict) -> str:
    return _section(
        "Synthetic or not",
        "A classifier (gradient boosting) learned to distinguish synthetic from reference rows, "
        f"and was tested on others. The area under its ROC curve is <b>{propensity['roc_auc']:.3f}"
        "</b>: 0.5 for a random guess, 1 if it is always right. The propensity mean square error "
        f"is {propensity['pmse']:.3f} of its maximum ({propensity['n_rows_each']:,} rows of each).",
    )


def _write_rules(rules: list[dict]) -> str:
    if not rules:
        return _section("Rules", "The schema has no rules.")
    rows = [(rule["rule"], f"{rule['share_breaking']:.2%}") for rule in rules]
    return _section(
        "Rules",
        "The share of synthetic rows that break the rules of the schema.",
        _write_table(["Rule", "Rows that break it"], rows),
    )


def _write_nearest(nearest: dict) -> str:
    names = {"synthetic": "synthetic rows", "reference": "other half of the reference"}
    rows = [
        (
            name,
            f"{nearest[who]['median_distance']:.3g}",
            f"{nearest[who]['share_of_copies']:.1%}",
        )
        for who, name in names.items()
    ]
    return _section(
        "Nearest records",
        f"Distances to the nearest row of one half of the reference ({nearest['n_rows']:,} rows). "
        "They do not measure privacy, which the certificate guarantees. They show whether rows are "
        "implausible (farther than the other half) or copied.",
        _write_table(["Rows", "Median distance", "Equal to the nearest row"], rows),
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


def _section(title: str, text: str, content: str = "") -> str:
    return f"<h2>{title}</h2><p>{text}</p>{content}"


def _write_table(head: Sequence[str], rows: Iterable[Sequence]) -> str:
    """Return a table whose first column has row headers."""
    top = ""
    if head:
        cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
        top = f"<thead><tr>{cells}</tr></thead>"
    lines = []
    for first, *others in rows:
        cells = "".join(f"<td{_align(cell)}>{fold_text(str(cell))}</td>" for cell in others)
        lines.append(f'<tr><th scope="row">{fold_text(str(first))}</th>{cells}</tr>')
    return fold_rows(lines, top)


def _align(cell) -> str:
    is_number = str(cell).rstrip("%").lstrip("-").replace(".", "", 1).isdigit()
    return ' class="number"' if is_number else ""


def _show_number(number: float | str | None) -> str:
    return "none" if number is None else f"{float(number):.3g}"
