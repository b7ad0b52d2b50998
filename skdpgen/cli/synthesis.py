# SPDX-License-Identifier: BSD-3-Clause
"""Commands that learn from a private table, or say what that costs."""

import contextlib
import json
import sys
from argparse import Namespace
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import clone

from ..accounting.certificate import Certificate
from ..accounting.composition import compose
from ..accounting.previews import preview as preview_fit
from ..accounting.rounding import show
from ..checks import read_file
from ..curator.curator import Curator
from ..data.texts import PLAIN, TextStyle
from ..engines.files import find_form, list_files
from ..evaluation._forecasts import Forecast
from ..generators._schema_inference import count_needed_rows, infer_schema
from ..tables.discovery.stages import SchemaInference
from ..tables.format import TableFormat
from ..tables.report import describe
from ..tables.rules.draws import check_enough
from ..tables.schema import Schema
from ..tables.suggestions import suggest_rules
from .exits import STOPPED
from .forms import Form
from .kept_types import KeptTypes
from .outputs import (
    check_folder,
    check_outputs,
    check_space,
    collected_warnings,
    interruptible,
    replaced,
)
from .runs import (
    Run,
    TypesUnreadError,
    check_seed,
    choose_delta,
    end,
    find_unit,
    interrupted,
    list_doubts,
    make_generator,
    open_total,
    shows_progress,
    stop_for,
)
from .summaries import summarize_fit, summarize_forecast, summarize_look
from .tables import TableOptions, list_markers

# Synthetic rows are sampled and written in pieces of this size, which bounds the memory.
_PIECE = 100_000
# Steps from 0 to --epsilon, in which the rest after a stopped run is found.
_N_PARTS = 1000


class Synthesis(Run):
    """A synthesis of one table; see `Run`.

    Attributes
    ----------
    table : TableOptions
    forecast : Forecast
    n_made : int
        Number of synthetic rows.
    """

    def __init__(self, options: Namespace) -> None:
        super().__init__(options)
        if options.n_rows is not None and options.n_rows < 1:
            raise ValueError(f"--n-rows must be at least 1; got {options.n_rows}.")
        table = self.table = TableOptions(options, goes_on=True)
        self.opened = [table]
        has_persons = table.persons is not None
        self.generator = make_generator(
            options,
            table.schema,
            delta=options.delta,
            verbose=int(shows_progress(options)),
            strict=options.strict,
            random_state=options.seed,
            **find_unit(options, has_persons, "--person-column"),
        )
        # Errors that follow from public parameters are raised here, before a row is read.
        preview_fit(self.generator, 1, len(table.schema), persons=has_persons)
        delta = choose_delta(options.delta, table.count(), self.total)
        self.generator.set_params(delta=delta)
        if table.kept is not None:
            self.generator.set_params(epsilon=self._find_rest(table.kept.certificate))
        self.fit_arguments = {"X": table.rows, "target": options.target, "persons": table.persons}
        forecast = self.forecast = Forecast.of(self.generator, **self.fit_arguments)
        self.needed = forecast.min_samples, forecast.n_expected, forecast.find_least_epsilon
        self.planned, self.read = self.forecast.certificate, table.describe(self.forecast.n_records)
        self.n_made = self.read.n_units if options.n_rows is None else options.n_rows
        self.make_form({}, table.schema).check(self.n_made)
        most_levels = self.forecast.most_levels
        check_enough(table.schema.rules, table.schema, self.n_made, most_levels=most_levels)

    def make_form(self, found: Mapping[str, TextStyle], schema: Schema) -> Form:
        """Return the form of the private table, with inferred styles, for synthetic rows."""
        return self.table.make_form(found, schema, escapes=self.options.escape_formulas)

    def _find_rest(self, spent: Certificate) -> float:
        """Return the ε of a fit that makes --epsilon together with what a stopped run spent."""
        whole, has_persons = self.options.epsilon, self.table.persons is not None
        n_units, n_columns = self.table.count(), len(self.table.schema)

        def exceeds(part):
            fit = clone(self.generator).set_params(epsilon=whole * part / _N_PARTS)
            planned = preview_fit(fit, n_units, n_columns, persons=has_persons)
            return compose(spent, planned).epsilon > whole

        n_fitting = bisect_left(range(1, _N_PARTS), True, key=exceeds)
        if not n_fitting:
            raise ValueError(
                f"--epsilon {show(whole)} leaves nothing to spend: the stopped run has spent "
                f"ε = {show(spent.epsilon)} on column types. Use a larger one."
            )
        return whole * n_fitting / _N_PARTS

    def certify(self, certificate: Certificate) -> Certificate:
        """Add what a stopped run spent on the types from which the rows follow, too."""
        kept = self.table.kept
        return certificate if kept is None else compose(kept.certificate, certificate)

    def review_types(self, inference: SchemaInference, curator: Curator) -> None:
        """Keep column types where a fit stops; see `Run.review_types`."""
        try:
            super().review_types(inference, curator)
        except TypesUnreadError as stop:
            assumed = self.generator._list_assumptions(TableFormat(inference.schema))
            certificate = curator.certificate(assumed).made_by(self.generator)
            types = {n: inference.schema[n] for n in inference.unknown if n not in inference.looks}
            kept = KeptTypes(certificate, types, inference.texts, inference.looks)
            path = kept.write(self.options, self.table.names)
            raise TypesUnreadError(f"{stop} A later run goes on from {path}.") from None

    def write(self, folder: Path, messages: list[str]) -> tuple[dict[str, str], dict | None]:
        """Write rows, certificate, schema and report; return their names, and the report."""
        generator = self.generator
        self.suggested = suggest_rules(generator)
        # Columns whose types were inferred are written as their texts were.
        form = self.make_form(generator._format.texts, generator.schema_)
        names = {"rows": f"synthetic{form.suffix}"}
        pieces = generator.sample_batches(self.n_made, _PIECE, random_state=self.options.seed)
        first = next(pieces)
        form.write(chain([first], pieces), folder / names["rows"])
        texts = {"certificate.json": self.certify(generator.privacy_).to_json() + "\n"}
        page, results = self.describe(
            first,
            messages,
            schema=generator.schema_,
            schema_report=generator.schema_report_,
            target=self.options.target,
            title=f"Synthetic rows: {names['rows']}",
        )
        texts |= page
        texts["schema.json"] = write_schema(
            generator.schema_,
            form.styles,
            list_markers(self.options),
            generator.schema_report_,
            messages,
            self.suggested,
        )
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
            names[name.partition(".")[0]] = name
        return names, results


def synthesize(options: Namespace) -> int:
    """Fit a generator to a private table, and write synthetic rows and what belongs to them."""
    check_folder("--output", options.output)
    run = Synthesis(options)
    # A Parquet file packs cells, and may need less.
    if find_form(run.table.path) != "Parquet":
        check_space(options.output, run.n_made * len(run.table.names))
    if shows_progress(options):
        print(f"It takes about {run.forecast.seconds:,.0f} s of one core.", file=sys.stderr)
    (names, described), messages, code = run.fit_and_write()
    together, differing = _add_earlier(run.generator.privacy_, options.schema, run.table.kept)
    files = run.list_written(names)
    return end(summarize_fit(run, described, differing + messages, files, together), options, code)


def preview(options: Namespace) -> int:
    """Print what to expect of `synthesize` with the same options; nothing is spent."""
    if options.output is not None:
        check_folder("--output", options.output)
    with collected_warnings() as caught:
        run = Synthesis(options)
    doubts = run.list_doubts()
    summary = summarize_forecast(run, doubts + [str(warning) for warning in caught])
    return end(summary, options, STOPPED if doubts and not options.anyway else 0)


def look(options: Namespace) -> int:
    """Infer the schema of a private table, and write it and its certificate."""
    check_seed(options)
    outputs = {"certificate": find_certificate(options.output), "schema": options.output}
    inputs = {"the private table": str(list_files(options.table)[0]), "--schema": options.schema}
    check_outputs({f"the {name}": path for name, path in outputs.items()}, inputs)
    if Path(outputs["certificate"]).exists():
        raise ValueError(
            f"{outputs['certificate']} is there already, and that look counts. Use its schema, or "
            "name another --output."
        )
    table, total = TableOptions(options), open_total(options)
    read = table.describe(table.count())
    delta = choose_delta(options.delta, read.n_units, total)
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
    needed = count_needed_rows(table.rows, **asked)
    n_expected = read.n_units * (options.max_rows_per_person or 1)
    stop_for(list_doubts(options, [table], read, delta, needed, n_expected), options)
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
    return end(summarize_look(found, columns, read, messages, outputs, total), options, 0)


def find_certificate(schema: str) -> str:
    """Return the name of the certificate beside a schema that `look` writes."""
    path = Path(schema)
    return str(path.with_name(f"{path.stem}.certificate.json"))


def _add_earlier(
    certificate: Certificate, schema: str | None, kept: KeptTypes | None
) -> tuple[Certificate | None, list[str]]:
    """Return the certificate of a fit and what it went on from, if any, and why there is none."""
    path = None if schema is None else find_certificate(schema)
    earlier = [] if kept is None else [kept.certificate]
    try:
        if path is not None and Path(path).exists():
            earlier.append(Certificate.from_json(read_file(path)))
        return (compose(*earlier, certificate) if earlier else None), []
    except ValueError as error:
        return None, [f"{path} and the certificate of this synthesis cannot be added: {error}"]


def write_schema(
    schema: Schema,
    styles: Mapping[str, TextStyle],
    markers: list[str],
    report: pd.DataFrame,
    messages: list[str],
    suggested: Sequence = (),
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
        "suggested_rules": json.dumps([rule.to_dict() for rule in suggested], ensure_ascii=False),
        "warnings": json.dumps(messages, ensure_ascii=False, indent=2),
    }
    return "{" + ",".join(f"\n{json.dumps(k)}: {text}" for k, text in parts.items()) + "\n}\n"


def _list_given(style: TextStyle) -> dict:
    """Return the parameters of a style that are not at their defaults."""
    given = {f.name: getattr(style, f.name) for f in fields(TextStyle)}
    others = ("expected", "is_file")
    return {k: v for k, v in given.items() if v != getattr(PLAIN, k) and k not in others}
