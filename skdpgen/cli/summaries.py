# SPDX-License-Identifier: BSD-3-Clause
"""Summaries of a command's result: some 25 lines for a terminal, and all of it as JSON."""

import shlex
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ..accounting.budget import PrivacyBudget
from ..accounting.certificate import Certificate
from ..accounting.rounding import show
from ..checks import list_names
from ..evaluation._forecasts import NOISE, VERDICTS
from ..evaluation._report import to_records
from ..evaluation._verdicts import CONSTANTS, judge_protection
from ..generators._schema_inference import InferredSchema
from ..tables.schema import Schema
from .tables import Read

# Lines of a summary, unless messages need more; warnings in it; and lines of a table, at least.
_MOST_LINES, _MOST_WARNINGS, _FEWEST_ROWS = 25, 5, 10
# Width of a line, where the terminal has no other; and its range.
_WIDTH, _WIDTHS = 100, (60, 100)
_RANKS = {verdict: -rank for rank, verdict in enumerate(VERDICTS)}
_VERDICTS = (
    "Counts are good if noise is at most 10 % of the average count, noise if above 224 %, or rough."
)


@dataclass(frozen=True)
class Summary:
    """Result of a command.

    Attributes
    ----------
    heading : list of str
        The private table, and the cost.
    columns : DataFrame of str
        A row for each column, the worst first.
    notes : list of str
        Remarks on the result.
    warnings : list of str
        The worst first.
    next_steps : list of str
        The commands to run next.
    data : dict
        All of it, for JSON.
    details : str
        Where the columns and warnings are that do not fit.
    """

    heading: Sequence[str]
    columns: pd.DataFrame
    notes: Sequence[str]
    warnings: Sequence[str]
    next_steps: Sequence[str]
    data: dict = field(default_factory=dict)
    details: str = "--json"

    def to_text(self, width: int | None = None) -> str:
        """Return the summary; of its parts, only the table of columns is cut."""
        if width is None:
            width = int(np.clip(shutil.get_terminal_size((_WIDTH, 0)).columns, *_WIDTHS))
        head, notes, steps = (
            [line for text in texts for line in wrap(text, width)]
            for texts in (self.heading, self.notes, self.next_steps)
        )
        more = len(self.warnings) - _MOST_WARNINGS
        where = f" ({more} more: {self.details})" if more > 0 else ""
        worry = [f"Worry about{where}:"] if self.warnings else []
        for i, text in enumerate(self.warnings[:_MOST_WARNINGS], 1):
            worry += wrap(f"{i}. {text}", width, "   ")
        left = _MOST_LINES - len(head) - len(notes) - len(worry) - len(steps)
        table = _list_rows(self.columns, width, max(_FEWEST_ROWS, left), self.details)
        return "\n".join([*head, *table, *notes, *worry, *steps])


def wrap(text: str, width: int = _WIDTH, indent: str = "  ") -> list[str]:
    """Return the lines of a text, none of which breaks the options that users copy."""
    return textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False) or [""]


def _list_rows(frame: pd.DataFrame, width: int, n_lines: int, details: str) -> list[str]:
    """Return a table in at most so many lines; the widest column is cut to the width."""
    n_rows = len(frame) if len(frame) < n_lines else n_lines - 2
    if frame.empty or n_rows < 1:
        return []
    rows = [list(frame.columns), *frame.iloc[:n_rows].to_numpy().tolist()]
    rows = [[" ".join(cell.split()) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for _ in range(sum(widths) + 2 * (len(widths) - 1) - width):
        widths[int(np.argmax(widths))] -= 1
    lines = []
    for row in rows:
        cells = [
            (cell if len(cell) <= w else cell[: w - 1] + "…").ljust(w)
            for cell, w in zip(row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    if n_rows < len(frame):
        lines.append(f"… and {len(frame) - n_rows} more columns: {details}")
    return lines


def _percent(share: float) -> str:
    return "" if np.isnan(share) else f"{share:.0%}"


def _describe_found(name: str, schema: Schema) -> str:
    """Return what a column holds, in a few words."""
    column = schema[name]
    if name in schema.derived_names or column.is_generated:
        return "computed, not learnt"
    if column.is_unknown:
        return "not declared"
    levels = getattr(column, "levels", None)
    if levels:
        levels = [str(level) for level in levels if level != column.other]
        return f"{len(levels)}: {', '.join(levels)}"
    bounds = [getattr(column, end, None) for end in ("lower", "upper")]
    if None in bounds:
        return "not declared"
    return " to ".join(str(bound).removesuffix(".0") for bound in bounds)


def _count_verdicts(verdicts: Iterable[str]) -> dict[str, int]:
    counted = Counter(verdicts)
    return {verdict: counted[verdict] for verdict in VERDICTS}


def _tell_pairs(counted: dict[str, int]) -> list[str]:
    if not sum(counted.values()):
        return []
    shown = ", ".join(f"{count} {verdict}" for verdict, count in counted.items() if count)
    return [f"Pairs of columns: {shown}. {_VERDICTS}"]


def tell_cost(certificate: Certificate, read: Read) -> str:
    """Return what was spent, in words."""
    cost = f"ε = {show(certificate.epsilon)} at δ = {show(certificate.delta)}"
    return f"{cost} for each {read.unit} ({certificate.relation})"


def describe_cost(certificate: Certificate) -> dict:
    """Return what was spent, for JSON."""
    epsilon = certificate.epsilon
    return {
        # JSON has no infinite numbers.
        "epsilon": epsilon if np.isfinite(epsilon) else show(epsilon),
        "delta": certificate.delta,
        "relation": certificate.relation,
    }


def _find_worst(report: pd.DataFrame) -> pd.DataFrame:
    """Return columns by their ``verdict``, and then by what they lose, the worst first."""
    names = [n for n in ("share_other", "share_missing", "mean_low") if n in report]
    losses = [report[name].fillna(0) for name in names]
    ranks = report["verdict"].map(_RANKS)
    order = pd.DataFrame({"verdict": ranks, "loss": -sum(losses, pd.Series(0.0, report.index))})
    return report.loc[order.sort_values(["verdict", "loss"], kind="stable").index]


def show_columns(report: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return what releases show of columns, as texts, those with the worst ``verdict`` first."""
    worst = _find_worst(report)
    shown = pd.DataFrame(
        {
            "column": list(map(str, worst.index)),
            "type": worst["kind"].tolist(),
            "found": [_describe_found(name, schema) for name in worst.index],
            "other": worst["share_other"].map(_percent).tolist(),
            "missing": worst["share_missing"].map(_percent).tolist(),
            "noise": ["" if np.isnan(x) else f"±{x:,.0f}" for x in worst["noise"]],
            "counts": worst["verdict"].tolist(),
        }
    )
    if (worst["mean_low"] >= CONSTANTS.least_low).any():
        lost = [f"≤{x:.0%}" if x >= CONSTANTS.least_low else "" for x in worst["mean_low"]]
        shown.insert(5, "low by", lost)
    return shown


def summarize_fit(
    run: Any,
    described: dict | None,
    warnings: list[str],
    files: dict[str, str],
    together: Certificate | None,
) -> Summary:
    """Return the summary of a `Run`, of which the generator is fitted.

    `described` are the results of its report, `files` the paths of what was written, and `together`
    is the certificate of the fit and of the look that inferred its schema.
    """
    generator, read = run.generator, run.read
    report, certificate = generator.schema_report_, generator.privacy_
    schema = generator._format.schema
    use = (described or {}).get("summary", {})
    counts = (described or {}).get("counts") or {"columns": [], "pairs": []}
    verdicts = {table["column"]: table["verdict"] for table in counts["columns"]}
    report = report.assign(verdict=[verdicts.get(str(name), "") for name in report.index])
    pairs = _count_verdicts(table["verdict"] for table in counts["pairs"])
    shown = show_columns(report, schema)
    notes = [use[name] for name in ("use", "avoid", "expect") if name in use]
    success = judge_protection(together or certificate)["best_attack"]
    heading = [
        f"Read {read}. Spent {tell_cost(certificate, read)}.",
        f"Whether a {read.unit} took part can be guessed rightly in at most {success:.0%} of cases "
        "(by chance: 50%).",
    ]
    if together is not None:
        heading.append(
            "Together with the look or run that found column types, if at the same rows: "
            f"ε = {show(together.epsilon)} at δ = {show(together.delta)}."
        )
    page = files.get("report")
    steps = [
        f"Wrote {', '.join(files.values())}.",
        f"Next: {f'open {page}; ' if page else ''}skdpgen verify "
        f"{shlex.quote(files['certificate'])}",
    ]
    if "schema" in files and any("declare " in text.lower() for text in warnings):
        # Warnings name column types of Python.
        steps.append(
            f"To declare columns, edit {shlex.quote(files['schema'])} by what is public, and give "
            "it as --schema."
        )
    if named := [f"{' and '.join(r.names[:2])} ({type(r).__name__})" for r in run.suggested]:
        steps.append(
            f"{shlex.quote(files['schema'])} suggests rules that released counts agree with; add "
            f"to its rules those that hold: {list_names(named)}."
        )
    if not read.is_of_persons:
        steps.append(
            "If a person can have several rows, --person-column protects persons, not rows."
        )
    if run.total is None:
        steps.append(
            "Another synthesis of these rows adds to this ε: give all of them one --budget."
        )
    data = {
        "command": run.options.command,
        "read": read.to_dict(),
        "spent": describe_cost(certificate),
        "with_look": None if together is None else describe_cost(together),
        "columns": to_records(report.rename_axis("column")),
        "pairs": pairs,
        "suggested_rules": [rule.to_dict() for rule in run.suggested],
        "summary": use,
        "warnings": warnings,
        "files": files,
    }
    details = files.get("schema", files.get("schemas", "--json"))
    return Summary(heading, shown, notes, warnings, steps, data, details)


def summarize_forecast(run: Any, warnings: list[str]) -> Summary:
    """Return the summary of a preview of a `Synthesis`; reasons to stop are the first warnings."""
    forecast, schema, read = run.forecast, run.table.schema, run.read
    tables = forecast.tables
    columns = tables[tables.index.get_level_values("other") == ""].droplevel("other")
    worst = _find_worst(columns)
    cells = pd.DataFrame(
        {
            "column": list(map(str, worst.index)),
            "type": [type(schema[name]).__name__.lower() for name in worst.index],
            "declared": [_describe_found(name, schema) for name in worst.index],
            "levels": [
                f"{n}" if is_known else f"~{n}"
                for n, is_known in zip(worst["levels"], worst["is_known"], strict=True)
            ],
            "noise": [f"±{x:,.0f}" for x in worst["noise"]],
            "moved": [f"{x:,.0f}" for x in worst["error"]],
            "of rows": [f"{x:.1f} %" for x in worst["error_percent"]],
            "counts": worst["verdict"].tolist(),
        }
    )
    # Columns of which the same is known are one line.
    alike = cells.groupby(list(cells.columns[1:]), sort=False)["column"].agg(list)
    shown = alike.reset_index()[list(cells.columns)]
    shown["column"] = [
        names[0] if len(names) == 1 else f"{len(names)} columns" for names in shown["column"]
    ]
    pairs = tables[tables.index.get_level_values("other") != ""]
    notes = _tell_pairs(_count_verdicts(pairs["verdict"]))
    if len(pairs):
        first, other = pairs["error_percent"].idxmax()
        notes.append(
            f"Worst pair: {first} and {other}, with ±{pairs['noise'].max():,.0f} on each of "
            f"{pairs.loc[(first, other), 'levels']:,} counts."
        )
    if forecast.least_count is not None:
        notes.append(
            f"Categories that are inferred have at least about {forecast.least_count:,.0f} rows; "
            "rarer ones become 'other'."
        )
    least = forecast.find_least_epsilon()
    notes.append(
        f"It takes about {forecast.seconds:,.0f} s of one core and "
        f"{forecast.n_bytes / 2**30:.1f} GiB, and {forecast.min_samples:,} {read.unit}s or more"
        f"{'' if least is None else f', or ε = {least:g} or more'}."
    )
    if noisy := worst.index[worst["verdict"] == NOISE].tolist():
        warnings = [
            *warnings,
            f"Columns {', '.join(map(str, noisy))} will be noise. Declare fewer levels, use a "
            "larger --epsilon, or --drop columns.",
        ]
    folder = " and --output FOLDER" * (run.options.output is None)
    steps = [
        f"Columns: {', '.join(map(str, schema))}.",
        "Each takes a share of ε: --drop identifiers and free text."
        + " If a person can have several rows, name --person-column." * (not read.is_of_persons),
        f"Next: skdpgen synthesize with the same options{folder}.",
    ]
    data = {
        "command": "preview",
        "read": read.to_dict(),
        "planned": describe_cost(forecast.certificate),
        "rows_needed": forecast.min_samples,
        "least_epsilon": least,
        "least_count": forecast.least_count,
        "seconds": forecast.seconds,
        "bytes": forecast.n_bytes,
        "tables": to_records(tables),
        "warnings": warnings,
    }
    heading = [f"Read {read}. Spent nothing; planned {tell_cost(forecast.certificate, read)}."]
    return Summary(heading, shown, notes, warnings, steps, data)


def summarize_look(
    found: InferredSchema,
    columns: pd.DataFrame,
    read: Read,
    warnings: list[str],
    files: dict[str, str],
    total: PrivacyBudget | None,
) -> Summary:
    """Return the summary of a look, of which `columns` are the report on the schema.

    `total` is the budget that counts what several commands spend.
    """
    shown = pd.DataFrame(
        {
            "column": list(map(str, columns.index)),
            "type": columns["kind"].tolist(),
            "found": [_describe_found(name, found.schema) for name in columns.index],
            "missing": [
                "yes" if getattr(column, "missing", False) else "no"
                for column in found.schema.values()
            ],
        }
    )
    steps = [
        f"Wrote {', '.join(files.values())}.",
        f"Next: correct {files['schema']} by what is public, then skdpgen synthesize {read.files} "
        f"--schema {shlex.quote(files['schema'])} --epsilon E --output FOLDER",
    ]
    if total is None:
        steps.append(
            "The synthesis adds to this ε, and states both together. Fix its ε before you read the "
            "schema, or give both commands one --budget."
        )
    data = {
        "command": "look",
        "read": read.to_dict(),
        "spent": describe_cost(found.privacy_),
        "schema": found.schema.to_dict(),
        "warnings": warnings,
        "files": files,
    }
    heading = [f"Read {read}. Spent {tell_cost(found.privacy_, read)}."]
    return Summary(heading, shown, [], warnings, steps, data, files["schema"])
