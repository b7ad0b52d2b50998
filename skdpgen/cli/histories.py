# SPDX-License-Identifier: BSD-3-Clause
"""Command that learns from two private tables that belong together."""

import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from ..histories.joining import join_names
from ..histories.sampler import DPHistorySampler
from ..metadata.frictionless import write_package
from ..planning.few_rows import find_least_epsilon
from .exits import STOPPED
from .outputs import check_folder, collected_warnings, print_message
from .runs import Run, choose_delta, end, shows_progress
from .summaries import Summary, describe_cost, summarize_fit, tell_cost
from .tables import (
    Read,
    TableOptions,
    check_table,
    list_dropped,
    open_table,
    read_pairs,
    read_rules,
    split_marker,
)


class Histories(Run):
    """A synthesis of two tables; see `Run`.

    Attributes
    ----------
    tables : dict of str to TableOptions
        That of persons and that of their rows.
    """

    def __init__(self, options: Namespace) -> None:
        super().__init__(options)
        self.tables = _open_tables(options)
        self.opened = list(self.tables.values())
        columns = {
            name: table.schema.drop(options.key)
            for name, table in self.tables.items()
            if len(table.names) > 1
        }
        self.generator = DPHistorySampler(
            options.epsilon,
            options.delta,
            relation=options.relation,
            schemas=columns,
            rules=read_rules(options),
            max_rows_per_person=options.max_rows_per_person,
            random_state=options.seed,
            verbose=int(shows_progress(options)),
        )
        frames = {name: table.rows for name, table in self.tables.items()}
        keys = options.key, options.order
        format, fit_plan, self.planned = self.generator._plan_data(frames, None, None, keys)
        self.fit_arguments = {"X": frames, "persons": options.key, "order": options.order}
        n_columns = sum(len(table.names) for table in self.tables.values())
        self.read = Read(", ".join(options.table), self.planned.n_records or 0, True, n_columns)
        delta = choose_delta(options.delta, self.read.n_units, self.total)
        self.generator.set_params(delta=delta)
        n_persons, plan = self.read.n_units, fit_plan.plan
        find_least = partial(find_least_epsilon, self.generator, plan, n_persons, 1, format)
        self.needed = fit_plan.min_samples, n_persons, find_least
        self._n_made = self.read.n_units if options.n_persons is None else options.n_persons
        for name, schema in columns.items():
            self.tables[name].make_form({}, schema).check(self._n_made)

    def write(self, folder: Path, messages: list[str]) -> tuple[dict[str, str], dict | None]:
        """Write both tables, what is public of them, and a report; return their names, and it."""
        sampler, names, forms = self.generator, {}, {}
        drawn = sampler.sample(self._n_made, random_state=self.options.seed)
        # How texts were written whose types were inferred.
        texts = sampler._format.table.texts
        for name, rows in drawn.items():
            found = {n: texts[join_names(name, n)] for n in rows if join_names(name, n) in texts}
            form = self.tables[name].make_form(found, sampler.schemas_.get(name, {}))
            names[name], forms[name] = f"{name}{form.suffix}", form
            # Dates are objects where files hold texts.
            form.write([rows.infer_objects()], folder / names[name])
        schemas = {name: json.loads(schema.to_json()) for name, schema in sampler.schemas_.items()}
        package = write_package(sampler.schemas_, dict(names), self.options.key)
        package["resources"] = [forms[part["name"]].describe(part) for part in package["resources"]]
        texts = {
            "datapackage.json": json.dumps(package, ensure_ascii=False, indent=2) + "\n",
            "certificate.json": sampler.privacy_.to_json() + "\n",
            "schemas.json": json.dumps(schemas, ensure_ascii=False, indent=2) + "\n",
        }
        title = f"Synthetic rows: {', '.join(names.values())}"
        page, results = self.describe(drawn, messages, title=title)
        texts |= page
        if sampler.rules:
            document = {"rules": [rule.to_dict() for rule in sampler.rules]}
            texts["rules.json"] = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
            names[file.partition(".")[0]] = file
        return names, results

    def summarize_plan(self, warnings: Sequence[str]) -> Summary:
        """Return the summary of a preview, of which nothing is spent."""
        needed, _, find_least = self.needed
        data = {
            "command": "histories",
            "read": self.read.to_dict(),
            "planned": describe_cost(self.planned),
            "persons_needed": needed,
            "warnings": list(warnings),
        }
        cost = tell_cost(self.planned, self.read)
        heading = [f"Read {self.read}. Spent nothing; planned {cost}."]
        least = find_least()
        larger = "" if least is None else f", or ε = {least:g} or more,"
        notes = [f"It takes {needed:,} persons or more{larger} to be of use."]
        steps = ["Next: the same command without --preview."]
        return Summary(heading, pd.DataFrame(), notes, warnings, steps, data)


def _open_tables(options: Namespace) -> dict[str, TableOptions]:
    """Return the options of both tables, by name."""
    given = read_pairs("--table", options.table)
    schemas = read_pairs("--schema", options.schema)
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
    _split_columns(options, separate)
    tables = {name: TableOptions(one) for name, one in separate.items()}
    if schemas:
        raise ValueError(f"--schema names {list(schemas)}; the tables are {list(given)}.")
    for name, table in tables.items():
        if options.key not in table.names:
            raise ValueError(f"--key must be a column of both tables; {name} has {table.names}.")
    return tables


def _split_columns(options: Namespace, separate: Mapping[str, Namespace]) -> None:
    """Give each table its part of --drop and --na-values, which name columns of either."""
    dropped, markers = list_dropped(options), options.na_values
    if not dropped and not markers:
        return
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


def histories(options: Namespace) -> int:
    """Fit a sampler to two private tables, and write synthetic ones."""
    check_folder("--output", options.output)
    with collected_warnings() as caught:
        run = Histories(options)
    if options.preview:
        doubts = run.list_doubts()
        summary = run.summarize_plan(doubts + [str(warning) for warning in caught])
        return end(summary, options, STOPPED if doubts and not options.anyway else 0)
    for warning in caught:
        print_message(warning)
    (names, described), messages, code = run.fit_and_write()
    files = run.list_written(names)
    return end(summarize_fit(run, described, messages, files, None), options, code)
