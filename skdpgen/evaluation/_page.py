# SPDX-License-Identifier: BSD-3-Clause
"""The page of a report: HTML that needs no other file and no script."""

import json
import math
from html import escape

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
_MOST_LISTED = 10
_METRICS = {"accuracy": "accuracy", "roc_auc": "area under the ROC curve"}
_CLASSIFIERS = {"logistic": "logistic regression", "mlp": "small neural network"}


def write_page(results):
    """Return the page of the results of a report."""
    sections = [
        *_list_alarms(results),
        f"<h1>{escape(results['title'])}</h1>",
        f'<p class="faint">A report by skdpgen {results["version"]}, {results["date"]}.</p>',
        _write_summary(results),
        _write_privacy(results),
        _write_audit(results["audit"]),
        _write_marginals(results),
        _write_pairs(results),
        _write_correlations(results["correlations"]),
        _write_k_marginals(results["k_marginals"]),
        _write_classifiers(results["classifiers"]),
        _write_propensity(results["propensity"]),
        _write_rules(results["rules"]),
        _write_nearest(results["nearest"]),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(results['title'])}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(section for section in sections if section)
        + "\n</body>\n</html>\n"
    )


def _list_alarms(results):
    """Say first what nobody must overlook."""
    certificate, alarms = results["certificate"], []
    if results["reads_private_rows"]:
        alarms.append(
            "This report was computed from PRIVATE rows. No ε covers it: it is as secret as the "
            "rows themselves. Do not publish it."
        )
    if certificate is None:
        alarms.append(
            "No certificate was given: nothing here says that these rows protect anybody."
        )
    else:
        if certificate["reproducible"]:
            alarms.append(
                "The noise of this fit follows from a seed. Whoever holds or guesses it can take "
                "the noise away: this is an experiment, and not a private release."
            )
        if certificate["epsilon"] == "inf":
            alarms.append("ε is infinite: no noise was added, and there is no privacy.")
    if results["audit"] and results["audit"].get("verdict") == "violation found":
        alarms.append("An audit found that more can be told than the certificate says.")
    if results["audit"] and results["audit"]["is_of_certificate"] is False:
        alarms.append(
            "The audit is of other releases than those of the certificate, or of the same with "
            "other noise: it says nothing of these rows."
        )
    return [f'<p class="alarm" role="alert">{escape(alarm)}</p>' for alarm in alarms]


def _write_summary(results):
    certificate = results["certificate"]
    tiles = [("synthetic rows", f"{results['n_rows']:,}")]
    if certificate is not None:
        epsilon = float(certificate["epsilon"])
        unit = certificate.get("unit", "record")
        tiles += [("ε", show(epsilon)), ("δ", show(certificate["delta"])), ("protects each", unit)]
    if results["n_reference"] is not None:
        kind = "private rows" if results["reads_private_rows"] else "public reference rows"
        tiles.append((kind, f"{results['n_reference']:,}"))
    if results["k_marginals"]:
        tiles.append(("k-marginal score of 1,000", f"{results['k_marginals']['score']:.0f}"))
    shown = "".join(f'<div class="tile"><b>{escape(b)}</b>{escape(a)}</div>' for a, b in tiles)
    return f'<div class="tiles">{shown}</div>'


def _write_privacy(results):
    parts = ["<h2>What protects the private rows</h2>"]
    given = results["certificate"]
    if given is not None:
        parts += [_explain_epsilon(float(given["epsilon"]), given), _show_certificate(given)]
    parts.append("<h3>What voids it</h3>" + _write_list(results["voids"]))
    return "\n".join(parts)


def _explain_epsilon(epsilon, certificate):
    if math.isinf(epsilon):
        return ""
    unit = certificate.get("unit", "record")
    whose = "a person" if unit == "person" else "one record"
    # Of the guesses whether something is in the data or not, at even odds.
    right = 1 / (1 + math.exp(-epsilon)) + certificate["delta"]
    return (
        "<p>The synthetic rows were made from noisy numbers, never from rows themselves. The noise "
        f"is such that the result would be nearly as likely if {whose} had been left out"
        f"{' or exchanged' if certificate['relation'] == 'replace_one' else ''}: by a factor of at "
        f"most {_round_up(math.exp(epsilon))} (that is e<sup>ε</sup>), but for a probability of "
        f"about {show(certificate['delta'])} (that is δ). Whoever knows all other records, and "
        f"guesses at even odds whether {whose} was there, is right in at most "
        f"{math.ceil(1000 * min(right, 1.0)) / 10:g} of 100 cases. Smaller is "
        "safer.</p>"
    )


def _round_up(number):
    return show(number) if number < 1e6 else "a million or more"


def _show_certificate(given):
    certificate = Certificate.from_json(json.dumps(given))
    rows = _label("Statement", certificate._list_statements())
    rows += [
        (f"Release: {name}", event)
        for name, event in zip(certificate.releases, certificate.events, strict=True)
    ]
    rows += _label("Rests on", certificate.assumptions)
    return "<h3>Certificate</h3>" + _write_table((), rows)


def _label(name, texts):
    """Return rows of a table of which the first has a name."""
    return [(name if i == 0 else "", text) for i, text in enumerate(texts)]


def _write_audit(audit):
    if audit is None:
        return ""
    said = {
        "verdict": audit.get("verdict"),
        "ε is shown to be above": _show_number(audit.get("bound")),
        "ε is claimed to be at most": _show_number(audit.get("claim")),
        "confidence": audit.get("confidence"),
    }
    rows = [(name, value) for name, value in said.items() if value is not None]
    rows += [
        (f"release: {found.get('name')}", "; ".join([found.get("verdict", ""), *found["reasons"]]))
        for found in audit.get("releases", ())
        if isinstance(found, dict) and isinstance(found.get("reasons"), list)
    ]
    return (
        "<h2>Audit</h2><p>An audit runs what was released many times and tells from the results as "
        "much as it can. It can convict a claim, and cannot prove one: the certificate does that."
        "</p>" + _write_table((), rows)
    )


def _write_marginals(results):
    found, has_reference = results["marginals"], results["n_reference"] is not None
    figures = []
    for column in found["columns"]:
        note = ""
        if has_reference:
            note = f" {column['total_variation']:.1%} differ"
        drawing = draw_bars(
            column["levels"], column["synthetic"], column.get("reference"), column["column"]
        )
        figures.append(
            f"<figure><figcaption>{escape(column['column'])}<span>{note}</span></figcaption>"
            f"{drawing}{_list_other_levels(column)}</figure>"
        )
    text = "<p>How often each value is among the synthetic rows.</p>"
    if has_reference:
        text = (
            "<p>How often each value is among the synthetic rows (blue) and the reference (grey). "
            "The percentage says how many rows would have to change for both to agree: "
            f"{found['mean_total_variation']:.1%} in the mean. Two halves of the reference differ "
            f"by {found['halves']:.1%}.</p>"
        )
    return f'<h2>Columns, one by one</h2>{text}<div class="grid">{"".join(figures)}</div>'


def _list_other_levels(column):
    """List the shares of those levels that have no bar."""
    names = [name for name in ("synthetic", "reference") if name in column]
    rows = [
        (level, *(f"{share:.1%}" for share in shares))
        for level, *shares in zip(column["levels"], *map(column.get, names), strict=True)
    ][MOST_BARS:]
    if not rows:
        return ""
    return fold(f"{len(rows)} more values", _write_table(["Value", *names], rows))


def _write_pairs(results):
    found, has_reference = results["pairs"], results["n_reference"] is not None
    if not found["pairs"]:
        return ""
    names = [column["column"] for column in results["marginals"]["columns"]]
    text = (
        "<p>How strongly columns go together: 0 (white) for independent columns, 1 (dark) if one "
        "tells the other (Cramér's V, numbers cut into ranges)."
    )
    table = ""
    if has_reference:
        text += (
            " Above the diagonal are the synthetic rows, below it the reference: the better they "
            "agree, the more symmetric is the picture. Of the tables of two columns "
            f"{found['mean_total_variation']:.1%} of the rows differ in the mean; of two halves of "
            f"the reference {found['halves']:.1%}."
        )
        worst = sorted(found["pairs"], key=lambda pair: -pair["total_variation"])[:_MOST_LISTED]
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
    drawing = draw_matrix(names, found["pairs"])
    return f"<h2>Pairs of columns</h2>{text}</p>{drawing}{table}"


def _write_correlations(found):
    if found is None:
        return ""
    rows, names = [], found["columns"]
    for i, first in enumerate(names):
        for j, second in enumerate(names[i + 1 :], i + 1):
            values = [found["synthetic"][i][j]]
            if found["reference"] is not None:
                values.append(found["reference"][i][j])
            rows.append((f"{first}, {second}", *map(_show_number, values)))
    rows.sort(key=lambda row: -abs(float(row[-1])) if row[-1] != "none" else 0)
    text = "<p>Pearson's correlations of numbers, the strongest first"
    if found["mean_difference"] is not None:
        text += f"; in the mean they differ by {found['mean_difference']:.2f}"
    head = ["Columns", "Synthetic", *["Reference"] * (found["reference"] is not None)]
    return "<h2>Correlations</h2>" + text + ".</p>" + _write_table(head, rows[:_MOST_LISTED])


def _write_k_marginals(found):
    if found is None:
        return ""
    return (
        f"<h2>Tables of {found['k']} columns</h2><p>The k-marginal score is "
        f"<b>{found['score']:.0f}</b> of 1,000, over {found['n_marginals']} tables of "
        f"{found['k']} columns each; 1,000 is for tables that agree. Two halves of the reference "
        f"have {found['halves']:.0f}.</p>"
    )


def _write_classifiers(found):
    if found is None:
        return ""
    head = f"<h2>Predicting {escape(str(found['target']))}</h2>"
    if "none" in found:
        return f"{head}<p>No classifier was trained on this column: {escape(found['none'])}.</p>"
    rows = [
        (
            f"{_CLASSIFIERS[score['classifier']]}, {_METRICS[score['metric']]}",
            f"{score['synthetic']:.3f}",
            f"{score['reference']:.3f}",
        )
        for score in found["scores"]
    ]
    return (
        f"{head}<p>Classifiers that were trained on synthetic rows, and tested on one half of the "
        "reference; beside them, the same trained on its other half. Always guessing the most "
        f"frequent class has an accuracy of {found['most_frequent']:.3f}.</p>"
        + _write_table(["Classifier", "Trained on synthetic", "Trained on reference"], rows)
    )


def _write_propensity(found):
    if found is None:
        return ""
    return (
        "<h2>Telling them apart</h2><p>A classifier (gradient boosting) was shown rows of both "
        "kinds and asked of others which they are. The area under its ROC curve is "
        f"<b>{found['roc_auc']:.3f}</b>: 0.5 if it can only guess, 1 if it is always right. The "
        f"propensity mean square error is {found['pmse']:.3f} of the most there is "
        f"({found['n_rows_each']:,} rows of each).</p>"
    )


def _write_rules(found):
    if found is None:
        return ""
    if not found:
        return "<h2>Rules</h2><p>The schema has no rules.</p>"
    rows = [(rule["rule"], f"{rule['share_breaking']:.2%}") for rule in found]
    return (
        "<h2>Rules</h2><p>Which share of the synthetic rows breaks the rules of the schema.</p>"
        + _write_table(["Rule", "Rows that break it"], rows)
    )


def _write_nearest(found):
    if found is None:
        return ""
    rows = [
        (
            {"synthetic": "synthetic rows", "reference": "other half of the reference"}[who],
            f"{found[who]['median_distance']:.3g}",
            f"{found[who]['share_of_copies']:.1%}",
        )
        for who in ("synthetic", "reference")
    ]
    return (
        "<h2>Nearest records</h2><p>How far rows are from the nearest row of one half of the "
        f"reference ({found['n_rows']:,} rows). This is no measure of privacy: it shows whether "
        "rows are implausible, which are farther than those of the other half, or copied. What "
        "protects the private rows is the certificate.</p>"
        + _write_table(["Rows", "Median distance", "Equal to one of them"], rows)
    )


def _write_table(head, rows):
    lines, top = [], ""
    if head:
        cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
        top = f"<thead><tr>{cells}</tr></thead>"
    for first, *others in rows:
        cells = "".join(f"<td{_align(cell)}>{fold_text(str(cell))}</td>" for cell in others)
        lines.append(f'<tr><th scope="row">{fold_text(str(first))}</th>{cells}</tr>')
    return fold_rows(lines, top)


def _align(cell):
    is_number = str(cell).rstrip("%").lstrip("-").replace(".", "", 1).isdigit()
    return ' class="number"' if is_number else ""


def _write_list(texts):
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def _show_number(number):
    return "none" if number is None else f"{float(number):.3g}"
