# SPDX-License-Identifier: BSD-3-Clause
"""Parser of the command line, which imports only the standard library."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from .._version import __version__
from .exits import DESCRIPTION

# Each option, as `add_argument` takes it; commands may change settings of theirs.
_OPTIONS: dict[str, dict[str, Any]] = {
    "table": dict(
        nargs="+",
        help="private rows: a .parquet, .csv, .tsv, .txt, .jsonl or .xlsx file, or several with "
        "the same columns, which are one table",
    ),
    "certificate": dict(help="a file that synthesize or sign wrote"),
    "release": dict(help="release.skdpgen of a synthesis, or a file of release_.to_file"),
    "--table": dict(
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="a private table, twice: that of persons, and that of their rows",
    ),
    "--key": dict(metavar="NAME", help="column of two tables that identifies persons"),
    "--order": dict(metavar="NAME", help="column of numbers or dates that orders rows of a person"),
    "--rules": dict(
        metavar="FILE",
        help='a public JSON file of rules across both tables, {"rules": [...]}, of columns by the '
        "names table.column",
    ),
    "--epsilon": dict(type=float, required=True, help="privacy budget"),
    "--output": dict(
        metavar="FOLDER",
        required=True,
        help="new folder for synthetic rows, certificate, schema and report",
    ),
    "--release": dict(
        metavar="FILE",
        help="release.skdpgen of an earlier run with the same options: go on from it, at no cost",
    ),
    "--n-rows": dict(type=int, help="synthetic rows; default: as many as private rows, or persons"),
    "--n-persons": dict(type=int, help="synthetic persons; default: as many as private ones"),
    "--target": dict(help="the column to be predicted, if there is one"),
    "--person-column": dict(
        metavar="NAME",
        help="column of identifiers of persons, which is not synthesized; protects each person "
        "with all rows",
    ),
    "--engine": dict(
        choices=["dask", "spark"],
        help="engine whose workers read Parquet files and compute sums; default: this process",
    ),
    "--strict": dict(
        action="store_true",
        help="refuse invalid records, which otherwise count as absent; ε does not cover a refusal",
    ),
    "--budget": dict(metavar="FILE", help="also charge the budget of skdpgen budget init"),
    "--preview": dict(action="store_true", help="say what to expect, and spend nothing"),
    "--anyway": dict(action="store_true", help="go on where the command would stop (exit code 3)"),
    "--seed": dict(type=int, help="seed of the noise, for experiments: it protects nobody"),
    "--quiet": dict(action="store_true", help="print warnings and errors only"),
    "--json": dict(dest="as_json", action="store_true", help="print one JSON object, and no more"),
    "--fail-on-warning": dict(
        action="store_true", help="exit code 4 if the releases indicate bad synthetic rows"
    ),
    "--escape-formulas": dict(
        action="store_true",
        help="write an apostrophe before texts that spreadsheets run as formulas",
    ),
    "--method": dict(
        choices=["sliced", "flow"],
        default="flow",
        help="flow: particles (DPSWFlowSampler), as accurate in half of the time; sliced: a "
        "network (DPSlicedWassersteinGenerator)",
    ),
    "--schema": dict(
        help="a public file that declares columns: our JSON, SDV, Frictionless, JSON Schema or "
        "SQL; others are inferred from the budget"
    ),
    "--types": dict(
        action="append",
        default=[],
        metavar="NAME=TYPE",
        help="type of a column, such as age=integer, or a JSON file of types; bounds and "
        "categories are inferred from the budget; can be repeated",
    ),
    "--delta": dict(
        type=float,
        help="well below 1 / rows; default: a power of ten, at most 1e-5 and 0.1 / rows",
    ),
    "--max-rows-per-person": dict(
        type=int,
        metavar="M",
        help="rows of each person that count, at M times the noise; default: 1",
    ),
    "--relation": dict(
        choices=["zero_out", "replace_one"],
        default="zero_out",
        help="neighbouring tables differ in a record that is absent or replaced",
    ),
    "--n-runs": dict(type=int, default=5000, help="runs of each release; default: 5000"),
    # With public and private rows at once, nobody could say which numbers are covered.
    "--reference": dict(
        action="append",
        help="PUBLIC rows with the same columns to compare with; of histories NAME=FILE, twice",
    ),
    "--private": dict(
        action="append",
        help="private rows to compare with; no ε covers the report, which is as secret as they are",
    ),
    "--reads-private-rows": dict(action="store_true", help="required with --private"),
    "--certificate": dict(help="the JSON file that synthesize wrote"),
    "--audit": dict(help="the JSON file of an audit"),
    "--title": dict(help="title of the page; default: the name of the file"),
    "--public-key": dict(metavar="FILE", help="PEM; the certificate must be signed by its key"),
    "--interval": dict(type=float, default=0.95, help="level of the intervals; default: 0.95"),
    "--full": dict(action="store_true", help="print all assumptions and events"),
    "--threshold-delta": dict(
        type=float,
        help="part of δ for categories that are inferred, a tenth of the δ of each synthesis; "
        "default: a tenth of δ; 0 if all categories are declared",
    ),
}
_FORMAT: dict[str, dict[str, Any]] = {
    "--sep": dict(help="separator of cells; default: the usual one that the first line has most"),
    "--sheet": dict(help="sheet of an .xlsx file; default: the only visible one"),
    "--encoding": dict(default="utf-8", help="such as latin-1; default: utf-8"),
    "--decimal": dict(help="decimal separator; default: a dot, where columns are declared"),
    "--thousands": dict(help="separator of groups of three digits"),
    "--date-format": dict(help="such as %%m/%%d/%%Y; times may follow; default: ISO 8601"),
    "--na-values": dict(
        action="append",
        default=[],
        metavar="TEXTS",
        help="texts that mean a missing value, as --na-values=-999,? or, in one column, "
        "--na-values income=9999; can be repeated",
    ),
    "--header": dict(
        choices=["auto", "yes"],
        default="auto",
        help="yes: the first line names the columns, even if it looks like data",
    ),
    "--drop": dict(
        action="append",
        default=[],
        metavar="NAMES",
        help="columns to leave out, separated by commas; can be repeated",
    ),
}
_SHORT = {"--output": "-o"}
# Options of which a command takes one at most: programs read one form of output, not both.
_EXCLUSIVE = [
    {"--quiet", "--json"},
    {"--full", "--json"},
    {"--n-rows", "--n-persons"},
    {"--reference", "--private"},
]
_LIMITS = ("--engine", "--budget", "--anyway", "--seed", "--quiet", "--json")
_TABLE = ("--target", "--person-column", "--strict", *_LIMITS, *_FORMAT, "--schema", "--types")
_PRIVACY = ("--delta", "--max-rows-per-person", "--relation")
_SYNTHESIS = (
    *("table", "--epsilon", "--output", "--n-rows", "--fail-on-warning", "--escape-formulas"),
    *("--method", *_TABLE, *_PRIVACY),
)


@dataclass(frozen=True)
class _Command:
    """Purpose and options of a command, and the module that holds it."""

    purpose: str
    module: str
    options: Sequence[str] = ()
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add the options to a parser."""
        of_format = "format of a CSV or Excel file, which is public"
        groups: dict[frozenset, Any] = {}
        for name in self.options:
            settings = {**(_OPTIONS | _FORMAT)[name], **self.changes.get(name, {})}
            group: Any = parser
            if name in _FORMAT:
                group = groups.setdefault(frozenset(), None) or parser.add_argument_group(of_format)
                groups[frozenset()] = group
            for pair in _EXCLUSIVE:
                if name in pair and pair.issubset(self.options):
                    key = frozenset(pair)
                    if key not in groups:
                        groups[key] = parser.add_mutually_exclusive_group()
                    group = groups[key]
            names = [_SHORT[name], name] if name in _SHORT else [name]
            group.add_argument(*names, **settings)


_COMMANDS = {
    "demo": _Command(
        "run preview, synthesize, report and verify on a public table of the package",
        "demo",
        ("--output",),
        {"--output": {"required": False, "default": "skdpgen-demo", "help": "new folder for all"}},
    ),
    "synthesize": _Command(
        "write a synthetic table from a private one", "synthesis", (*_SYNTHESIS, "--release")
    ),
    "preview": _Command(
        "say what to expect of a synthesis with the same options",
        "synthesis",
        _SYNTHESIS,
        {"--output": {"required": False}},
    ),
    "histories": _Command(
        "write synthetic persons and their rows, from two private tables",
        "histories",
        (
            *("--table", "--key", "--order", "--rules", "--epsilon", "--output", "--release"),
            *("--n-persons", "--schema", *_PRIVACY, *_LIMITS, "--fail-on-warning", *_FORMAT),
            "--preview",
        ),
        {
            "--key": {"required": True},
            "--output": {"help": "new folder for both synthetic tables, certificate and schemas"},
            "--schema": dict(
                action="append",
                default=[],
                metavar="NAME=FILE",
                help="a public file that declares columns of a table, as for synthesize; can be "
                "repeated",
            ),
            "--delta": {"help": "default: a power of ten, at most 1e-5 and 0.1 / persons"},
            "--max-rows-per-person": dict(
                default=8,
                help="rows of each person that count, the first in order; default: 8",
            ),
        },
    ),
    "look": _Command(
        "infer a schema to be edited, for a part of the budget",
        "synthesis",
        ("table", "--epsilon", "--output", *_TABLE, *_PRIVACY),
        {
            "--epsilon": dict(
                required=False, default=0.1, help="privacy budget of the look; default: 0.1"
            ),
            "--output": dict(
                metavar="FILE",
                help="where to write the schema, as JSON; its certificate is written beside it",
            ),
        },
    ),
    "schema": _Command(
        "describe the columns of a PUBLIC table",
        "commands",
        ("table", "--output", *_FORMAT),
        {
            "table": dict(
                nargs=None, help="a public .parquet, .csv, .tsv, .txt, .jsonl or .xlsx file"
            ),
            "--output": dict(
                metavar=None,
                required=False,
                help="where to write the schema; default: standard output",
            ),
        },
    ),
    "audit": _Command(
        "test the claims of a synthesis by many runs on generated rows",
        "commands",
        (
            *("--n-rows", "--n-persons", "--target", "--n-runs", "--output", "--seed"),
            *("--method", "--epsilon", "--schema", "--types", *_PRIVACY),
        ),
        {
            # Records of the audit are generated as single rows, or as persons with rows.
            "--n-rows": {"help": "number of rows to generate; default: 1000"},
            "--n-persons": {"help": "number of persons to generate"},
            "--output": dict(
                metavar="FILE", required=False, help="where to write the report, as JSON"
            ),
            "--seed": {"help": "seed of the rows and of the noise"},
            "--delta": dict(required=True, help="well below 1 / rows"),
        },
    ),
    "report": _Command(
        "describe synthetic rows on an HTML page",
        "reports",
        (
            *("table", "--reference", "--private"),
            *("--reads-private-rows", "--certificate", "--audit", "--budget", "--schema"),
            *("--release", "--target", "--output", "--json", "--title", *_FORMAT),
        ),
        {
            "table": {
                "help": "synthetic rows that synthesize wrote, or both tables of histories, beside "
                "what else it wrote"
            },
            "--budget": {"help": "the budget of all syntheses of the same rows"},
            "--schema": {
                "help": "a file as for synthesize; its rules are checked, and it says how to read "
                "cells"
            },
            "--release": {"help": "release.skdpgen of the synthesis, to show what was released"},
            "--target": {"help": "the column that classifiers predict"},
            "--output": dict(metavar=None, help="where to write the page, .html"),
            "--json": dict(dest="json", action="store", help="where to write the numbers, as JSON"),
        },
    ),
    "tables": _Command(
        "write released counts with their noise, as CSV with a codebook",
        "released",
        ("release", "--output", "--interval", "--epsilon", "--escape-formulas"),
        {
            "--output": {"help": "new folder for tables.csv and codebook.json"},
            "--epsilon": dict(
                required=False, help="first add noise for a smaller ε, and write that release"
            ),
        },
    ),
    "budget": _Command("limit what several syntheses spend, by a file", "certificates"),
    "verify": _Command(
        "recompute the ε of a certificate, and print both",
        "certificates",
        ("certificate", "--public-key", "--full", "--json"),
    ),
    "sign": _Command(
        "sign a certificate with a key",
        "certificates",
        ("certificate", "--key", "--output"),
        {
            "--key": dict(
                metavar="FILE", required=True, help="an Ed25519 key, PEM, without a password"
            ),
            "--output": dict(metavar=None, help="where to write the certificate as a JWS"),
        },
    ),
}
_TOGETHER = {"help": "of all syntheses together"}
_BUDGET = {
    "init": _Command(
        "create the file of a budget",
        "certificates",
        ("--epsilon", "--delta", "--relation", "--threshold-delta"),
        {"--epsilon": _TOGETHER, "--delta": _TOGETHER | {"required": True}},
    ),
    "show": _Command("print what is spent of a budget", "certificates"),
    "close": _Command("close a budget for good", "certificates"),
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # Without the usage, 15 lines of options above what is wrong.
        self.exit(2, f"{self.prog}: error: {message}. See {self.prog} --help.\n")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser, whose results name the command as `command`, in a `module` beside it."""
    parser = _make(
        _Parser,
        prog="skdpgen",
        description="Synthetic tables under differential privacy.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parsers = parser.add_subparsers(title="commands", dest="command", required=True)
    # Names of modules only: they import torch, which takes seconds and no help needs.
    for name, command in _COMMANDS.items():
        purpose = command.purpose
        one = _make(parsers.add_parser, name, help=purpose, description=f"{purpose}.")
        one.set_defaults(module=command.module)
        command.add_to(one)
        if name == "budget":
            actions = one.add_subparsers(title="actions", dest="action", required=True)
            for action, of_action in _BUDGET.items():
                added = actions.add_parser(action, help=of_action.purpose)
                added.add_argument("path", help="the file of a budget")
                of_action.add_to(added)
    return parser


def _make(make, *args, **kwargs) -> argparse.ArgumentParser:
    """Return a parser whose help ends with the exit codes."""
    # Keeps the lines of the exit codes.
    raw = argparse.RawDescriptionHelpFormatter
    return make(*args, epilog=DESCRIPTION, formatter_class=raw, **kwargs)
