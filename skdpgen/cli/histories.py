# SPDX-License-Identifier: BSD-3-Clause
"""Command that learns from two private tables that belong together."""

import contextlib
import json
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ..accounting.rounding import show
from ..histories.joining import Keys, join_names
from ..histories.sampler import DPHistorySampler
from ..metadata.frictionless import write_package
from .outputs import check_folder
from .runs import (
    MOST_DELTA,
    check_options,
    choose_delta,
    describe_few,
    end,
    fit_and_write,
    list_doubts,
    list_written,
    open_total,
    shows_progress,
)
from .summaries import Read, Summary, describe_cost, tell_cost, to_records
from .tables import (
    TableOptions,
    check_table,
    list_dropped,
    open_table,
    read_pairs,
    read_rules,
    split_marker,
)


class HistoryTask:
    """A synthesis of two tables, before anything is spent.

    Parameters
    ----------
    options : argparse.Namespace

    Attributes
    ----------
    tables : dict of str to TableOptions
        That of persons and that of their rows.
    frames : dict of str to (DataFrame or table of an engine)
        Their private cells.
    generator : DPHistorySampler
        Unfitted.
    total : PrivacyBudget or None
        The budget of --budget.
    n_persons : int
        Their number, which is public.
    """

    def __init__(self, options: Namespace) -> None:
        check_options(options)
        self.options, self.total = options, open_total(options)
        given, schemas = (
            read_pairs("--table", options.table),
            read_pairs("--schema", options.schema),
        )
        if len(given) != 2:
            raise ValueError(
                "--table must be given twice, as --table patients=patients.csv --table "
                "visits=visits.csv: for the table of persons, and for that of their rows."
            )
        separate = {
            name: Namespace(
                **{
                    **vars(options),
                    "table": [file],
                    "schema": schemas.pop(name, None),
                    **dict.fromkeys(("person_column", "target")),
                    "types": [],
                }
            )
            for name, file in given.items()
        }
        self.tables = {
            name: TableOptions(one) for name, one in _split_columns(options, separate).items()
        }
        if schemas:
            raise ValueError(f"--schema names {list(schemas)}; the tables are {list(given)}.")
        for name, table in self.tables.items():
            if options.key not in table.names:
                raise ValueError(
                    f"--key must be a column of both tables; {name} has {table.names}."
                )
        self.frames = {name: _open(table) for name, table in self.tables.items()}
        columns = {
            name: table.schema.drop(options.key)
            for name, table in self.tables.items()
            if len(table.names) > 1
        }
        self.generator = DPHistorySampler(
            options.epsilon,
            MOST_DELTA if options.delta is None else options.delta,
            relation=options.relation,
            schemas=columns,
            rules=read_rules(options),
            max_rows_per_person=options.max_rows_per_person,
            random_state=options.seed,
            verbose=int(shows_progress(options)),
        )
        _, fit_plan, planned = self._plan()
        self.n_persons, self._needed = planned.n_records, fit_plan.min_samples
        if options.delta is None:
            self.generator.set_params(delta=choose_delta(self.n_persons, self.total))
        for name, schema in columns.items():
            self.tables[name].make_form({}).check(schema, self.n_made)

    @property
    def n_made(self) -> int:
        """Number of synthetic persons."""
        return self.n_persons if self.options.n_persons is None else self.options.n_persons

    @property
    def _n_columns(self) -> int:
        return sum(len(table.names) for table in self.tables.values())

    def _plan(self):
        keys = Keys(self.options.key, self.options.order)
        return self.generator._plan_data(self.frames, None, None, keys)

    def list_doubts(self) -> list[str]:
        """List the reasons to stop before anything is spent."""
        doubts = [doubt for table in self.tables.values() for doubt in table.list_doubts()]
        doubts += list_doubts(self.n_persons, self.generator.delta)
        if self._needed > self.n_persons:
            units = f"{self.n_persons:,} persons"
            doubts.insert(0, describe_few(self.options, units, self._n_columns, self._needed))
        return doubts

    def fit(self) -> None:
        """Fit the sampler, and charge the budget of --budget."""
        with self.total or contextlib.nullcontext():
            self.generator.fit(self.frames, persons=self.options.key, order=self.options.order)

    def describe_spent(self) -> str:
        """Return what a run has spent that wrote no rows."""
        return f"At most ε = {show(self.options.epsilon)} was spent."

    def write(self, folder: Path, messages: list[str]) -> dict[str, str]:
        """Write both tables and what is public of them; return the names of the files."""
        sampler, names = self.generator, {}
        drawn = sampler.sample(self.n_made, random_state=self.options.seed)
        # How texts were written whose types were inferred.
        texts = sampler._format.table.texts or {}
        for name, rows in drawn.items():
            found = {n: texts[join_names(name, n)] for n in rows if join_names(name, n) in texts}
            form = self.tables[name].make_form(found)
            if name in sampler.schemas_:
                form = form.with_units(sampler.schemas_[name])
            names[name] = f"{name}{form.suffix}"
            # Dates are objects where files hold texts.
            form.write([rows.infer_objects()], folder / names[name])
        schemas = {name: json.loads(schema.to_json()) for name, schema in sampler.schemas_.items()}
        package = write_package(sampler.schemas_, dict(names), self.options.key)
        texts = {
            "datapackage.json": json.dumps(package, ensure_ascii=False, indent=2) + "\n",
            "certificate.json": sampler.privacy_.to_json() + "\n",
            "schemas.json": json.dumps(schemas, ensure_ascii=False, indent=2) + "\n",
        }
        if sampler.rules:
            document = {"rules": [rule.to_dict() for rule in sampler.rules]}
            texts["rules.json"] = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
            names[file.partition(".")[0]] = file
        return names

    def summarize(self, messages: Sequence[str], files: dict[str, str]) -> Summary:
        """Return the summary of what was read, spent and written."""
        certificate, report = self.generator.privacy_, self.generator.schema_report_
        read = Read(", ".join(self.options.table), self.n_persons, True, self._n_columns)
        columns = report[["kind", "share_other", "share_missing", "noise", "finding"]]
        data = {
            "command": "histories",
            "read": read.to_dict(),
            "spent": describe_cost(certificate),
            "columns": to_records(columns.rename_axis("column")),
            "warnings": list(messages),
            "files": files,
        }
        heading = [f"Read {read}. Spent {tell_cost(certificate, read)}."]
        steps = [f"Wrote {', '.join(files.values())}."]
        return Summary(heading, pd.DataFrame(), [], messages, steps, data)


def _split_columns(options, separate):
    """Return the options of each table, of which --drop and --na-values name columns of either."""
    dropped, markers = list_dropped(options), options.na_values
    if not dropped and not markers:
        return separate
    names = {}
    for table, one in separate.items():
        check_table(one)
        plain = Namespace(**{**vars(one), "drop": [], "na_values": [], "schema": None})
        names[table] = open_table(plain, lambda texts: texts).names()
    known = set().union(*names.values())
    given = [*dropped, *(split_marker(marker)[0] for marker in markers)]
    lacking = [name for name in given if name is not None and name not in known]
    if lacking:
        raise ValueError(f"--drop and --na-values name {lacking}, which no table has: {names}.")
    for table, one in separate.items():
        one.drop = [name for name in dropped if name in names[table]]
        one.na_values = [
            given for given in markers if split_marker(given)[0] in (None, *names[table])
        ]
    return separate


def _open(table):
    """Return the table of an engine, or the rows in memory."""
    if table.rows is not table.file:
        return table.rows
    return pd.concat(list(table.file()), ignore_index=True)


def histories(options: Namespace) -> int:
    """Fit a sampler to two private tables, and write synthetic ones."""
    check_folder("--output", options.output)
    task = HistoryTask(options)
    names, messages, code = fit_and_write(task, options)
    return end(task.summarize(messages, list_written(options, names)), options, code)
