# SPDX-License-Identifier: BSD-3-Clause
"""Command `report`: a page that describes synthetic rows."""

from argparse import Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..accounting.budget import PrivacyBudget
from ..accounting.strict_json import parse_json
from ..checks import read_file
from ..data.texts import TextStyle
from ..evaluation import report as make_report
from ..releases.published import open_release
from .outputs import check_input, check_outputs, check_suffix, replaced
from .public_tables import read_public
from .tables import read_beside, read_pairs, read_schema

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
    package = _read_package(options)
    given = {
        "the synthetic table": options.table,
        "--reference": options.reference,
        "--private": options.private,
    }
    tables = {name: _list_tables(name, files, package) for name, files in given.items()}
    outputs = {"--output": options.output, "--json": options.json}
    inputs = {
        f"{name} {key}".strip(): file for name, t in tables.items() for key, file in t.items()
    }
    for name in ("certificate", "audit", "budget", "schema", "release"):
        inputs[f"--{name}"] = getattr(options, name)
    check_outputs(outputs, inputs)
    check_suffix(options.output, (".html",))
    schema = None if options.schema is None else read_schema(options.schema)
    schemas = open_release(options.release).format.list_schemas() if package else {"": schema}
    # Synthetic rows are always written with a header and all columns.
    read_as = Namespace(**{**vars(options), **_MADE}), options, options
    synthetic, reference, private = (
        _read(files, how, schemas, package)
        for files, how in zip(tables.values(), read_as, strict=True)
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
        schema_report=read_beside(options.schema, "report"),
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


def _read_package(options: Namespace) -> dict[str, dict]:
    """Return how both tables of `skdpgen histories` are written, by name; empty for one table.

    The files that a command wrote beside them are those of the report, unless others are given.
    """
    folder, files = Path(options.table[0]).parent, {Path(file) for file in options.table}
    # One table of another name may be of another fit.
    if len(options.table) > 1 or Path(options.table[0]).stem == "synthetic":
        for name in ("certificate.json", "release.skdpgen", "schema.json"):
            option = Path(name).stem
            if getattr(options, option) is None and (folder / name).exists():
                setattr(options, option, str(folder / name))
    if len(options.table) == 1:
        return {}
    path = folder / "datapackage.json"
    parts = parse_json(read_file(path), str(path))["resources"] if path.exists() else []
    if {folder / part["path"] for part in parts} != files:
        raise ValueError(
            "The synthetic table must be one file, or the two files that `skdpgen histories` "
            f"wrote, beside its datapackage.json; got {', '.join(options.table)}."
        )
    if options.schema is not None:
        raise ValueError("--schema is for one table: the release of two says their columns.")
    check_input(options.release or str(folder / "release.skdpgen"))
    options.table = [f"{part['name']}={folder / part['path']}" for part in parts]
    return {part["name"]: part for part in parts}


def _list_tables(what: str, given: Iterable[str], package: Mapping) -> dict[str, str]:
    """Return the files of one table, or of two by their names."""
    files = list(given or ())
    if not package:
        if len(files) > 1:
            raise ValueError(f"{what} must be one file; got {', '.join(files)}.")
        return dict.fromkeys([""], files[0]) if files else {}
    tables = read_pairs(what, files)
    if files and {*tables} != {*package}:
        shown = " and ".join(f"{name}=FILE" for name in package)
        raise ValueError(f"{what} must be two tables, {shown}; got {', '.join(files)}.")
    return {name: tables[name] for name in package} if files else {}


def _read(files: Mapping[str, str], options: Namespace, schemas: Mapping, package: Mapping):
    """Return the rows of a table, or those of two by name; None without files."""
    tables = {}
    for name, file in files.items():
        own, part = Namespace(**{**vars(options), "table": file}), package.get(name, {})
        own.encoding = part.get("encoding", own.encoding)
        own.sep = own.sep or part.get("dialect", {}).get("delimiter")
        fields = {spec["name"]: spec for spec in part["schema"]["fields"]} if part else {}
        missing = (
            (n, text) for n, spec in fields.items() for text in spec.get("missingValues", ())
        )
        own.na_values = [*own.na_values, *(f"{n}={text}" for n, text in missing if text)]
        styles = {n: _read_style(spec) for n, spec in fields.items()}
        tables[name] = read_public(own, schemas.get(name), styles or None)
    return tables.get("", tables or None)


def _read_style(spec: Mapping) -> TextStyle:
    """Return how the texts of a field of a data package are written."""
    dates = spec.get("format", "") if spec["type"] in ("date", "datetime") else ""
    # Dates of ISO 8601 may have a time zone.
    dates = None if dates.startswith("%Y-%m-%d") else dates or None
    return TextStyle(spec.get("decimalChar", "."), spec.get("groupChar"), dates, is_file=True)
