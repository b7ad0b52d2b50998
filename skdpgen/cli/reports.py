# SPDX-License-Identifier: BSD-3-Clause
"""Command `report`: a page that describes synthetic rows."""

from argparse import Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..accounting.budget import PrivacyBudget
from ..accounting.strict_json import parse_json
from ..checks import read_file
from ..evaluation import join_histories
from ..evaluation import report as make_report
from ..histories.joining import join_names
from ..tables.rules.rules import Unique
from ..tables.schema import Schema
from .outputs import check_outputs, check_suffix, replaced
from .public_tables import read_public
from .tables import list_rules, read_beside, read_pairs, read_rules, read_schema

# Options by which synthetic rows differ from those that they are compared with.
_MADE: dict = {"sep": None, "sheet": None, "header": "yes", "drop": [], "na_values": []}


def report(options: Namespace) -> int:
    """Write a report on synthetic rows."""
    if options.private is not None and not options.reads_private_rows:
        raise ValueError(
            "--private: a report on private rows reveals exact numbers about them, which no ε "
            "covers. Use --reference with public rows, or add --reads-private-rows and keep the "
            "report as secret as the rows."
        )
    if options.reads_private_rows and options.private is None:
        raise ValueError("--reads-private-rows goes with --private, which is not given.")
    given = {
        "the synthetic table": options.table,
        "--reference": options.reference,
        "--private": options.private,
    }
    tables = {name: _list_tables(name, files, options) for name, files in given.items()}
    outputs = {"--output": options.output, "--json": options.json}
    inputs = {
        f"{name} {key}".strip(): file for name, t in tables.items() for key, file in t.items()
    }
    for name in ("certificate", "audit", "budget", "schema", "rules", "release"):
        inputs[f"--{name}"] = getattr(options, name)
    check_outputs(outputs, inputs)
    check_suffix(options.output, (".html",))
    schemas, schema = _read_schemas(options, list(tables["the synthetic table"]))
    # Synthetic rows are always written with a header and all columns.
    read_as = Namespace(**{**vars(options), **_MADE}), options, options
    synthetic, reference, private = (
        _read(files, how, schemas) for files, how in zip(tables.values(), read_as, strict=True)
    )
    title = ", ".join(Path(file).name for file in tables["the synthetic table"].values())
    result = make_report(
        synthetic,
        reference,
        private=private,
        reads_private_rows=options.reads_private_rows,
        certificate=options.certificate and Path(options.certificate),
        audit=options.audit and Path(options.audit),
        budget=None if options.budget is None else PrivacyBudget.from_file(options.budget),
        schema=schema,
        schema_report=None if options.key else read_beside(options.schema, "report"),
        release=options.release and Path(options.release),
        target=options.target,
        title=options.title or f"Synthetic rows: {title}",
    )
    texts = {options.output: result.to_html(), options.json: result.to_json()}
    # --json may be absent.
    texts.pop(None, None)
    # Both are written before one of them is replaced.
    with replaced(texts) as paths:
        for path, text in zip(paths, texts.values(), strict=True):
            Path(path).write_text(text, encoding="utf-8")
    summary = result.results["summary"]
    print(*(summary[name] for name in ("use", "avoid", "expect")), sep="\n")
    print(f"Wrote {', '.join(texts)}.")
    return 0


def _list_tables(what: str, given: Iterable[str], options: Namespace) -> dict[str, str]:
    """Return the files of one table, or of two by their names."""
    files = list(given or ())
    if options.key is None:
        if options.order or options.rules:
            raise ValueError("--order and --rules are for two tables, which --key joins.")
        if len(files) > 1:
            raise ValueError(f"{what} must be one file; got {', '.join(files)}.")
        return dict.fromkeys([""], files[0]) if files else {}
    tables = read_pairs(what, files)
    if files and len(tables) != 2:
        raise ValueError(
            f"With --key, {what} must be two tables, that of persons first, as "
            f"patients=patients.csv and visits=visits.csv; got {', '.join(files)}."
        )
    return tables


def _read_schemas(options, names):
    """Return the schema of each table, by name, and that of the rows of the report, or None."""
    if options.key is None:
        schema = None if options.schema is None else read_schema(options.schema)
        return {"": schema}, schema
    schemas = {}
    if options.schema is not None:
        document = parse_json(read_file(options.schema), options.schema)
        if not isinstance(document, dict) or not set(document) <= set(names):
            raise ValueError(
                f"--schema must be the schemas.json of both tables, {names}, as `skdpgen "
                f"histories` writes it; got {options.schema}."
            )
        schemas = {name: Schema(columns) for name, columns in document.items()}
    return schemas, _join_schemas(names, schemas, read_rules(options))


def _join_schemas(names: list[str], schemas: Mapping, rules: Iterable) -> Schema | None:
    """Return the schema of the rows of `join_histories`: those of the second table."""
    persons, rows = (schemas.get(name, {}) for name in names)
    joined = {n: join_names(names[0], n) for n in persons}
    columns = {**rows, **{joined[n]: column for n, column in persons.items()}}
    own = {join_names(names[1], n): n for n in rows}
    # A person is in several rows.
    of_persons = [rule for rule in list_rules(persons) if not isinstance(rule, Unique)]
    checked = [
        *list_rules(rows),
        *(rule.rename(joined) for rule in of_persons),
        *(rule.rename({n: own.get(n, n) for n in rule.names}) for rule in rules),
    ]
    return Schema(columns, checked) if columns else None


def _read(files: dict[str, str], options: Namespace, schemas: Mapping):
    """Return the rows of a table, or those of two as one; None without files."""
    if not files:
        return None
    tables = {
        name: read_public(Namespace(**{**vars(options), "table": file}), schemas.get(name))
        for name, file in files.items()
    }
    if options.key is None:
        return tables[""]
    return join_histories(tables, persons=options.key, order=options.order)
