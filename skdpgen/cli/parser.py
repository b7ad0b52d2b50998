# SPDX-License-Identifier: BSD-3-Clause
"""Parser of the command line, which imports only the standard library."""

import argparse
from collections.abc import Callable
from functools import partial

from .._version import __version__
from .exits import DESCRIPTION


def make_parser() -> argparse.ArgumentParser:
    """Return the parser, whose results name the command as `command`, in a `module` beside it."""
    parser = _make(
        argparse.ArgumentParser,
        prog="skdpgen",
        description="Synthetic tables under differential privacy.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", required=True)
    # Names of modules only: they import torch, which takes seconds and no help needs.
    for name, (purpose, add_options, module) in _COMMANDS.items():
        command = _make(commands.add_parser, name, help=purpose, description=f"{purpose}.")
        command.set_defaults(module=module)
        add_options(command)
    return parser


def _make(make, *args, **kwargs) -> argparse.ArgumentParser:
    """Return a parser whose help ends with the exit codes."""
    # Keeps the lines of the exit codes.
    raw = argparse.RawDescriptionHelpFormatter
    return make(*args, epilog=DESCRIPTION, formatter_class=raw, **kwargs)


def _add_synthesize(command: argparse.ArgumentParser, is_preview: bool = False) -> None:
    add = command.add_argument
    _add_table(command)
    _add_epsilon(command)
    folder = "new folder for synthetic rows, certificate, schema and report"
    add("-o", "--output", metavar="FOLDER", required=not is_preview, help=folder)
    if not is_preview:
        _add_release(command)
    add("--n-rows", type=int, help="synthetic rows; default: as many as private rows, or persons")
    _add_run(command)
    _add_fail_on_warning(command)
    add(
        "--escape-formulas",
        action="store_true",
        help="write an apostrophe before texts that spreadsheets run as formulas",
    )
    _add_method(command)
    _add_format(command)
    _add_schema(command)
    _add_privacy(command)


def _add_histories(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--table",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="a private table, twice: that of persons, and that of their rows",
    )
    _add_keys(command, is_required=True)
    _add_epsilon(command)
    folder = "new folder for both synthetic tables, certificate and schemas"
    add("-o", "--output", metavar="FOLDER", required=True, help=folder)
    _add_release(command)
    add("--n-persons", type=int, help="synthetic persons; default: as many as private ones")
    add(
        "--max-rows-per-person",
        type=int,
        metavar="M",
        default=8,
        help="rows of each person that count, the first in order; default: 8",
    )
    add(
        "--schema",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="a public file that declares columns of a table, as for synthesize; can be repeated",
    )
    add("--delta", type=float, help="default: a power of ten, at most 1e-5 and 0.1 / persons")
    _add_relation(command)
    _add_engine(command)
    _add_limits(command)
    _add_fail_on_warning(command)
    _add_format(command)


def _add_keys(command: argparse.ArgumentParser, is_required: bool = False) -> None:
    add = command.add_argument
    add(
        "--key",
        metavar="NAME",
        required=is_required,
        help="column of two tables that identifies persons",
    )
    add("--order", metavar="NAME", help="column of numbers or dates that orders rows of a person")
    add(
        "--rules",
        metavar="FILE",
        help='a public JSON file of rules across both tables, {"rules": [...]}, of columns by the '
        "names table.column",
    )


def _add_look(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    _add_table(command)
    add("--epsilon", type=float, default=0.1, help="privacy budget of the look; default: 0.1")
    file = "where to write the schema, as JSON; its certificate is written beside it"
    add("-o", "--output", metavar="FILE", required=True, help=file)
    _add_run(command)
    _add_format(command)
    _add_schema(command)
    _add_privacy(command)


def _add_table(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "table",
        nargs="+",
        help="private rows: a .parquet, .csv, .tsv, .txt or .xlsx file, or several with the same "
        "columns, which are one table",
    )


def _add_run(command: argparse.ArgumentParser) -> None:
    """Add the options of the table, its protection and the limits of a run."""
    add = command.add_argument
    add("--target", help="the column to be predicted, if there is one")
    add(
        "--person-column",
        metavar="NAME",
        help="column of identifiers of persons, which is not synthesized; protects each person "
        "with all rows",
    )
    _add_engine(command)
    add(
        "--strict",
        action="store_true",
        help="refuse invalid records, which otherwise count as absent; ε does not cover a refusal",
    )
    _add_limits(command)


def _add_release(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--release",
        metavar="FILE",
        help="release.skdpgen of an earlier run with the same options: go on from it, at no cost",
    )


def _add_engine(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--engine",
        choices=["dask", "spark"],
        help="engine whose workers read Parquet files and compute sums; default: this process",
    )


def _add_limits(command: argparse.ArgumentParser) -> None:
    """Add the options that charge, stop, seed and silence a run."""
    add = command.add_argument
    add("--budget", metavar="FILE", help="also charge the budget of skdpgen budget init")
    add("--anyway", action="store_true", help="go on where the command would stop (exit code 3)")
    add("--seed", type=int, help="seed of the noise, for experiments: it protects nobody")
    # Programs read one of these two forms, and not both.
    said = command.add_mutually_exclusive_group()
    said.add_argument("--quiet", action="store_true", help="print warnings and errors only")
    _add_json(said)


def _add_fail_on_warning(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--fail-on-warning",
        action="store_true",
        help="exit code 4 if the releases indicate bad synthetic rows",
    )


def _add_json(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--json", dest="as_json", action="store_true", help="print one JSON object, and no more"
    )


def _add_describe(command: argparse.ArgumentParser) -> None:
    command.add_argument("table", help="a public .parquet, .csv, .tsv, .txt or .xlsx file")
    command.add_argument(
        "-o", "--output", help="where to write the schema; default: standard output"
    )
    _add_format(command)


def _add_audit(command: argparse.ArgumentParser) -> None:
    # Records of the audit are generated as single rows, or as persons with rows.
    size = command.add_mutually_exclusive_group()
    size.add_argument("--n-rows", type=int, help="number of rows to generate; default: 1000")
    size.add_argument("--n-persons", type=int, help="number of persons to generate")
    add = command.add_argument
    add("--target", help="the column to be predicted, if there is one")
    add("--n-runs", type=int, default=5000, help="runs of each release; default: 5000")
    add("-o", "--output", metavar="FILE", help="where to write the report, as JSON")
    add("--seed", type=int, help="seed of the rows and of the noise")
    _add_method(command)
    _add_epsilon(command)
    _add_schema(command)
    _add_privacy(command, delta_is_required=True)


def _add_report(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "table",
        nargs="+",
        help="synthetic rows that synthesize wrote; with --key, both tables, as NAME=FILE",
    )
    # With public and private rows at once, nobody could say which numbers are covered.
    compared = command.add_mutually_exclusive_group()
    compared.add_argument(
        "--reference",
        action="append",
        help="PUBLIC rows with the same columns to compare with; with --key, NAME=FILE, twice",
    )
    compared.add_argument(
        "--private",
        action="append",
        help="private rows to compare with; no ε covers the report, which is as secret as they are",
    )
    _add_keys(command)
    add("--reads-private-rows", action="store_true", help="required with --private")
    add("--certificate", help="the JSON file that synthesize wrote")
    add("--audit", help="the JSON file of an audit")
    add("--budget", metavar="FILE", help="the budget of all syntheses of the same rows")
    add(
        "--schema",
        help="a file as for synthesize, or the schemas.json of histories; its rules are checked, "
        "and it says how to read cells",
    )
    add("--target", help="the column that classifiers predict")
    add("--output", required=True, help="where to write the page, .html")
    add("--json", help="where to write the numbers, as JSON")
    add("--title", help="title of the page; default: the name of the file")
    _add_format(command)


def _add_budget(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(title="actions", dest="action", required=True)
    init = actions.add_parser("init", help="create the file of a budget")
    init.add_argument("path", help="the file, which must not exist")
    init.add_argument("--epsilon", type=float, required=True, help="of all syntheses together")
    init.add_argument("--delta", type=float, required=True, help="of all syntheses together")
    _add_relation(init)
    init.add_argument(
        "--threshold-delta",
        type=float,
        help="part of δ for categories that are inferred, a tenth of the δ of each synthesis; "
        "default: a tenth of δ; 0 if all categories are declared",
    )
    for name, purpose in (
        ("show", "print what is spent of a budget"),
        ("close", "close a budget for good"),
    ):
        actions.add_parser(name, help=purpose).add_argument("path", help="the file of a budget")


def _add_verify(command: argparse.ArgumentParser) -> None:
    command.add_argument("certificate", help="a file that synthesize or sign wrote")
    command.add_argument(
        "--public-key", metavar="FILE", help="PEM; the certificate must be signed by its key"
    )
    shown = command.add_mutually_exclusive_group()
    shown.add_argument("--full", action="store_true", help="print all assumptions and events")
    _add_json(shown)


def _add_sign(command: argparse.ArgumentParser) -> None:
    command.add_argument("certificate", help="a file that synthesize or sign wrote")
    command.add_argument(
        "--key", metavar="FILE", required=True, help="an Ed25519 key, PEM, without a password"
    )
    command.add_argument("--output", required=True, help="where to write the certificate as a JWS")


def _add_format(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("format of a CSV or Excel file, which is public")
    add = group.add_argument
    add("--sep", help="separator of cells; default: the usual one that the first line has most")
    add("--sheet", help="sheet of an .xlsx file; default: the only visible one")
    add("--encoding", default="utf-8", help="such as latin-1; default: utf-8")
    add("--decimal", help="decimal separator; default: a dot, where columns are declared")
    add("--thousands", help="separator of groups of three digits")
    add("--date-format", help="such as %%m/%%d/%%Y; default: ISO 8601")
    add(
        "--na-values",
        action="append",
        default=[],
        metavar="TEXTS",
        help="texts that mean a missing value, as --na-values=-999,? or, in one column, "
        "--na-values income=9999; can be repeated",
    )
    add(
        "--header",
        choices=["auto", "yes"],
        default="auto",
        help="yes: the first line names the columns, even if it looks like data",
    )
    add(
        "--drop",
        action="append",
        default=[],
        metavar="NAMES",
        help="columns to leave out, separated by commas; can be repeated",
    )


def _add_schema(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--schema",
        help="a public file that declares columns: our JSON, SDV, Frictionless, JSON Schema or "
        "SQL; others are inferred from the budget",
    )
    add(
        "--types",
        action="append",
        default=[],
        metavar="NAME=TYPE",
        help="type of a column, such as age=integer, or a JSON file of types; bounds and "
        "categories are inferred from the budget; can be repeated",
    )


def _add_epsilon(command: argparse.ArgumentParser) -> None:
    command.add_argument("--epsilon", type=float, required=True, help="privacy budget")


def _add_privacy(command: argparse.ArgumentParser, delta_is_required: bool = False) -> None:
    add = command.add_argument
    default = "" if delta_is_required else "; default: a power of ten, at most 1e-5 and 0.1 / rows"
    add("--delta", type=float, required=delta_is_required, help=f"well below 1 / rows{default}")
    add(
        "--max-rows-per-person",
        type=int,
        metavar="M",
        help="rows of each person that count, at M times the noise; default: 1",
    )
    _add_relation(command)


def _add_method(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--method",
        choices=["sliced", "flow"],
        default="flow",
        help="flow: particles (DPSWFlowSampler), as accurate in half of the time; sliced: a "
        "network (DPSlicedWassersteinGenerator)",
    )


def _add_relation(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--relation",
        choices=["zero_out", "replace_one"],
        default="zero_out",
        help="neighbouring tables differ in a record that is absent or replaced",
    )


# The purpose of each command, its options, and the module that holds it.
_COMMANDS: dict[str, tuple[str, Callable, str]] = {
    "synthesize": ("write a synthetic table from a private one", _add_synthesize, "synthesis"),
    "preview": (
        "say what to expect of a synthesis with the same options",
        partial(_add_synthesize, is_preview=True),
        "synthesis",
    ),
    "histories": (
        "write synthetic persons and their rows, from two private tables",
        _add_histories,
        "histories",
    ),
    "look": ("infer a schema to be edited, for a part of the budget", _add_look, "synthesis"),
    "schema": ("describe the columns of a PUBLIC table", _add_describe, "commands"),
    "audit": (
        "test the claims of a synthesis by many runs on generated rows",
        _add_audit,
        "commands",
    ),
    "report": ("describe synthetic rows on an HTML page", _add_report, "reports"),
    "budget": ("limit what several syntheses spend, by a file", _add_budget, "certificates"),
    "verify": ("recompute the ε of a certificate, and print both", _add_verify, "certificates"),
    "sign": ("sign a certificate with a key", _add_sign, "certificates"),
}
