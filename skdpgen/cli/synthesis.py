# SPDX-License-Identifier: BSD-3-Clause
"""Commands that learn from a private table, or say what that costs."""

import contextlib
import json
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from .. import PrivacyBudget
from ..accounting.certificate import Certificate
from ..accounting.composition import compose
from ..accounting.events import threshold_delta
from ..accounting.previews import preview as preview_fit
from ..accounting.rounding import show
from ..checks import read_file
from ..data.texts import PLAIN, TextStyle
from ..engines.files import list_files
from ..evaluation import report as make_report
from ..looks import count_needed_rows, infer_schema
from ..planning.forecasts import Forecast
from ..tables.report import describe
from ..tables.rules.draws import check_enough
from ..tables.schema import Schema
from .exits import STOPPED
from .forms import Form
from .outputs import (
    check_folder,
    check_outputs,
    check_space,
    collected_warnings,
    interruptible,
    is_parquet,
    replaced,
)
from .runs import (
    MOST_DELTA,
    check_options,
    choose_delta,
    describe_few,
    end,
    find_unit,
    fit_and_write,
    interrupted,
    list_doubts,
    list_written,
    make_generator,
    open_total,
    shows_progress,
    stop_for,
)
from .summaries import Read, summarize_fit, summarize_forecast, summarize_look
from .tables import TableOptions, list_given, list_markers

# Synthetic rows are sampled and written in pieces of this size, which bounds the memory.
_PIECE = 100_000


@dataclass
class Task:
    """A synthesis before anything is spent.

    Attributes
    ----------
    options : argparse.Namespace
    table : TableOptions
    total : PrivacyBudget or None
        The budget of --budget.
    generator : estimator
        Unfitted.
    forecast : Forecast
    """

    options: Namespace
    table: TableOptions
    total: PrivacyBudget | None
    generator: Any
    forecast: Forecast

    @classmethod
    def of(cls, options: Namespace) -> "Task":
        """Read what is public of the table, and plan the fit."""
        check_options(options)
        table, total = TableOptions(options), open_total(options)
        has_persons = table.persons is not None
        generator = make_generator(
            options,
            table.schema,
            delta=MOST_DELTA if options.delta is None else options.delta,
            verbose=int(shows_progress(options)),
            strict=options.strict,
            random_state=options.seed,
            **find_unit(options, has_persons, "--person-column"),
        )
        # Errors that follow from public parameters are raised here, before a row is read.
        preview_fit(generator, 1, len(table.schema), persons=has_persons)
        if options.delta is None:
            generator.set_params(delta=choose_delta(table.count(), total))
        forecast = Forecast.of(generator, table.rows, target=options.target, persons=table.persons)
        task = cls(options, table, total, generator, forecast)
        task.make_form({}).check(table.schema, task.n_made)
        most_levels = forecast.most_levels
        check_enough(table.schema.rules, table.schema, task.n_made, most_levels=most_levels)
        return task

    @property
    def n_units(self) -> int:
        """Number of rows, or of persons, which is public."""
        return self.forecast.n_records

    @property
    def n_made(self) -> int:
        """Number of synthetic rows."""
        return self.n_units if self.options.n_rows is None else self.options.n_rows

    def make_form(self, found: Mapping[str, TextStyle]) -> Form:
        """Return the form of the private table, with inferred styles, for synthetic rows."""
        return self.table.make_form(found, escapes=self.options.escape_formulas)

    def list_doubts(self) -> list[str]:
        """List the reasons to stop before anything is spent."""
        doubts = self.table.list_doubts() + list_doubts(self.n_units, self.generator.delta)
        forecast = self.forecast
        if forecast.min_samples > forecast.n_expected:
            n_columns = len(self.table.names)
            units = self.table.describe_units(self.n_units)
            doubts.insert(0, describe_few(self.options, units, n_columns, forecast.min_samples))
        return doubts

    @cached_property
    def _budget(self) -> PrivacyBudget | None:
        """A budget that tells what a fit that fails has spent; None with a seed."""
        if self.options.seed is not None:
            # A budget refuses fits whose noise follows from a seed.
            return None
        certificate = self.forecast.certificate
        return PrivacyBudget(
            self.options.epsilon,
            certificate.delta,
            relation=certificate.relation,
            threshold_delta=threshold_delta(certificate.events),
        )

    def describe_spent(self) -> str:
        """Return what a run has spent that wrote no rows."""
        if self._budget is None:
            return "With --seed, nothing is private."
        return f"Until then ε = {show(self._budget.spent)} was spent."

    def fit(self) -> None:
        """Fit the generator, and charge the budget of --budget."""
        none = contextlib.nullcontext()
        with self._budget or none, self.total or none:
            self.generator.fit(
                self.table.rows, target=self.options.target, persons=self.table.persons
            )

    def write(self, folder: Path, messages: list[str]) -> tuple[dict[str, str], dict | None]:
        """Write rows, certificate, schema and report; return their names, and verdicts.

        A report that cannot be made is added to the messages: the rows are paid for.
        """
        counts = None
        generator, names = self.generator, {"rows": f"synthetic{self.make_form({}).suffix}"}
        # Columns whose types were inferred are written as their texts were.
        form = self.make_form(generator._format.texts or {}).with_units(generator.schema_)
        pieces = generator.sample_batches(self.n_made, _PIECE, random_state=self.options.seed)
        first = next(pieces)
        form.write(chain([first], pieces), folder / names["rows"])
        texts = {"certificate.json": generator.privacy_.to_json() + "\n"}
        try:
            page = make_report(
                first,
                certificate=generator.privacy_,
                budget=self.total,
                schema=generator.schema_,
                schema_report=generator.schema_report_,
                target=self.options.target,
                title=f"Synthetic rows: {names['rows']}",
            )
            texts["report.html"], counts = page.to_html(), page.results["counts"]
        # The rows were paid for: they are written even if they cannot be described.
        except ValueError as error:
            messages.append(f"There is no report: {error}")
        texts["schema.json"] = write_schema(
            generator.schema_,
            form.styles,
            list_markers(self.options),
            generator.schema_report_,
            messages,
        )
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
            names[name.partition(".")[0]] = name
        return names, counts

    def read(self) -> Read:
        """Return what was read."""
        return Read(
            ", ".join(list_given(self.options)),
            self.n_units,
            self.table.persons is not None,
            len(self.table.names),
        )


def synthesize(options: Namespace) -> int:
    """Fit a generator to a private table, and write synthetic rows and what belongs to them."""
    check_folder("--output", options.output)
    task = Task.of(options)
    # A Parquet file packs cells, and may need less.
    if not is_parquet(task.table.path):
        check_space(options.output, task.n_made * len(task.table.names))
    (names, counts), messages, code = fit_and_write(task, options)
    together, differing = _add_look(task.generator.privacy_, options.schema)
    summary = summarize_fit(
        task.generator,
        counts,
        task.read(),
        differing + messages,
        list_written(options, names),
        together,
        has_budget=task.total is not None,
    )
    return end(summary, options, code)


def preview(options: Namespace) -> int:
    """Print what to expect of `synthesize` with the same options; nothing is spent."""
    if options.output is not None:
        check_folder("--output", options.output)
    with collected_warnings() as caught:
        task = Task.of(options)
    doubts = task.list_doubts()
    summary = summarize_forecast(
        task.forecast,
        task.table.schema,
        task.read(),
        doubts + [str(warning) for warning in caught],
        options,
    )
    return end(summary, options, STOPPED if doubts and not options.anyway else 0)


def look(options: Namespace) -> int:
    """Infer the schema of a private table, and write it and its certificate."""
    check_options(options)
    outputs = {"certificate": find_certificate(options.output), "schema": options.output}
    inputs = {"the private table": str(list_files(options.table)[0]), "--schema": options.schema}
    check_outputs({f"the {name}": path for name, path in outputs.items()}, inputs)
    if Path(outputs["certificate"]).exists():
        raise ValueError(
            f"{outputs['certificate']} is there already, and that look counts. Use its schema, or "
            "name another --output."
        )
    table, total = TableOptions(options), open_total(options)
    n_units = table.count()
    delta = choose_delta(n_units, total) if options.delta is None else options.delta
    asked: dict[str, Any] = {
        "target": options.target,
        "persons": table.persons,
        "epsilon": options.epsilon,
        "delta": delta,
        "relation": options.relation,
        "schema": table.schema,
        "strict": options.strict,
        "random_state": options.seed,
        "verbose": int(shows_progress(options)),
        **find_unit(options, table.persons is not None, "--person-column"),
    }
    doubts = table.list_doubts() + list_doubts(n_units, delta)
    needed = count_needed_rows(table.rows, **asked)
    if needed > n_units * (options.max_rows_per_person or 1):
        units = table.describe_units(n_units)
        doubts.insert(0, describe_few(options, units, len(table.names), needed))
    stop_for(doubts, options)
    try:
        with interruptible() as commit, replaced(outputs.values(), commit) as paths:
            with collected_warnings() as caught, total or contextlib.nullcontext():
                found = infer_schema(table.rows, **asked)
            messages = [str(warning) for warning in caught]
            styles = {name: table.style_of(name) for name in table.names} | found.styles
            columns = describe(found.schema)
            texts = (
                found.privacy_.to_json() + "\n",
                write_schema(found.schema, styles, list_markers(options), columns, messages),
            )
            for path, text in zip(paths, texts, strict=True):
                Path(path).write_text(text, encoding="utf-8")
    except KeyboardInterrupt as interrupt:
        spent = f"No file was written. At most ε = {show(options.epsilon)} was spent."
        raise interrupted(interrupt, spent) from None
    read = Read(", ".join(list_given(options)), n_units, table.persons is not None, len(columns))
    summary = summarize_look(found, columns, read, messages, outputs, total is not None)
    return end(summary, options, 0)


def find_certificate(schema: str) -> str:
    """Return the name of the certificate beside a schema that `look` writes."""
    path = Path(schema)
    return str(path.with_name(f"{path.stem}.certificate.json"))


def _add_look(certificate: Certificate, schema: str | None) -> tuple[Certificate | None, list[str]]:
    """Return the certificate of a fit and of the look that found its schema, if there was one.

    Returns
    -------
    Certificate or None
    list of str
        Why they cannot be added.
    """
    path = None if schema is None else find_certificate(schema)
    if path is None or not Path(path).exists():
        return None, []
    try:
        return compose(Certificate.from_json(read_file(path)), certificate), []
    except ValueError as error:
        return None, [f"{path} and the certificate of this synthesis cannot be added: {error}"]


def write_schema(
    schema: Schema,
    styles: Mapping[str, TextStyle],
    markers: list[str],
    report: pd.DataFrame,
    messages: list[str],
) -> str:
    """Return a schema and what was found with it as JSON, which --schema takes."""
    parts = {
        "schema": schema.to_json().rstrip(),
        # How cells are written, where it is not as by default.
        "texts": json.dumps({n: given for n, s in styles.items() if (given := _list_given(s))}),
        # The values of --na-values.
        "na_values": json.dumps(markers, ensure_ascii=False),
        "report": report.rename_axis("column")
        .reset_index()
        .to_json(orient="records", force_ascii=False),
        "warnings": json.dumps(messages, ensure_ascii=False, indent=2),
    }
    return "{" + ",".join(f"\n{json.dumps(k)}: {text}" for k, text in parts.items()) + "\n}\n"


def _list_given(style: TextStyle) -> dict:
    """Return the parameters of a style that are not at their defaults."""
    given = {f.name: getattr(style, f.name) for f in fields(TextStyle) if f.name != "expected"}
    return {key: value for key, value in given.items() if value != getattr(PLAIN, key)}
