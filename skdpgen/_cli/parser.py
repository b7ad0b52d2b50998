# SPDX-License-Identifier: BSD-3-Clause
"""Parser of the command line, which imports only the standard library."""

import argparse

from .._version import __version__


def make_parser() -> argparse.ArgumentParser:
    """Return the parser, whose results name the command as `command`."""
    parser = argparse.ArgumentParser(
        prog="skdpgen", description="Synthetic tables under differential privacy."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", required=True)

    command = commands.add_parser("synthesize", help="write a synthetic table from a private one")
    command.add_argument(
        "table",
        help="private rows: a .parquet, .csv, .tsv or .txt file; or several, as 'folder/*.parquet'",
    )
    _add_outputs(command)
    _add_form(command)
    _add_schema(command)
    _add_privacy(command)
    _add_fit(command)

    command = commands.add_parser("schema", help="describe the columns of a PUBLIC table")
    command.add_argument("table", help="a public .parquet, .csv, .tsv or .txt file")
    command.add_argument("--output", help="where to write the schema; default: standard output")
    _add_form(command)

    command = commands.add_parser("preview", help="print the releases and the cost of a synthesis")
    size = command.add_mutually_exclusive_group(required=True)
    size.add_argument("--n-rows", type=int, help="number of private rows")
    size.add_argument("--n-persons", type=int, help="number of persons, if rows belong to persons")
    command.add_argument(
        "--n-columns", type=int, help="number of columns; default: those of the schema"
    )
    _add_schema(command)
    _add_privacy(command)

    command = commands.add_parser(
        "audit", help="test the claims of a synthesis by many runs on generated rows"
    )
    size = command.add_mutually_exclusive_group()
    size.add_argument("--n-rows", type=int, help="number of rows to generate; default: 1000")
    size.add_argument("--n-persons", type=int, help="number of persons to generate")
    command.add_argument("--target", help="the column to be predicted, if there is one")
    command.add_argument(
        "--n-runs", type=int, default=5000, help="runs of each release; default: 5000"
    )
    command.add_argument("--json", metavar="FILE", help="where to write the report")
    command.add_argument("--seed", type=int, help="seed of the rows and of the noise")
    _add_schema(command)
    _add_privacy(command)

    command = commands.add_parser("report", help="describe synthetic rows on an HTML page")
    command.add_argument("table", help="synthetic rows that synthesize wrote")
    _add_report(command)
    _add_form(command)

    command = commands.add_parser("budget", help="limit what several syntheses spend, by a file")
    actions = command.add_subparsers(title="actions", dest="action", required=True)
    action = actions.add_parser("init", help="create the file of a budget")
    action.add_argument("path", help="the file, which must not exist")
    action.add_argument("--epsilon", type=float, required=True, help="of all syntheses together")
    action.add_argument("--delta", type=float, required=True, help="of all syntheses together")
    action.add_argument("--relation", choices=["zero_out", "replace_one"], default="zero_out")
    action.add_argument(
        "--threshold-delta",
        type=float,
        default=0.0,
        help="part of δ for categories that --infer finds, a tenth of the δ of each synthesis; "
        "default: 0",
    )
    action = actions.add_parser("show", help="print what is spent of a budget")
    action.add_argument("path", help="the file of a budget")
    action = actions.add_parser("close", help="close a budget for good")
    action.add_argument("path", help="the file of a budget")

    command = commands.add_parser("verify", help="print a certificate, and recompute its ε")
    command.add_argument("certificate", help="a JSON file that synthesize wrote")
    command.add_argument(
        "--public-key", metavar="FILE", help="PEM; the certificate must be signed by its key"
    )

    command = commands.add_parser("sign", help="sign a certificate with a key")
    command.add_argument("certificate", help="a JSON file that synthesize wrote")
    command.add_argument(
        "--key", metavar="FILE", required=True, help="an Ed25519 key, PEM, without a password"
    )
    command.add_argument("--output", required=True, help="where to write the signed certificate")
    return parser


def _add_outputs(command):
    command.add_argument("--output", required=True, help="synthetic rows, .csv or .parquet")
    command.add_argument("--certificate", help="where to write the certificate, as JSON")
    command.add_argument(
        "--schema-out", help="where to write the fitted schema and a report on it, as JSON"
    )
    command.add_argument(
        "--n-rows", type=int, help="synthetic rows; default: as many as private rows, or persons"
    )
    command.add_argument(
        "--escape-formulas",
        action="store_true",
        help="write an apostrophe before texts that spreadsheets run as formulas",
    )
    command.add_argument("--quiet", action="store_true", help="no progress bar, no statement")


def _add_report(command):
    compared = command.add_mutually_exclusive_group()
    compared.add_argument("--reference", help="PUBLIC rows with the same columns to compare with")
    compared.add_argument(
        "--private",
        help="private rows to compare with; no ε covers the report, which is as secret as they are",
    )
    command.add_argument(
        "--reads-private-rows", action="store_true", help="required with --private"
    )
    command.add_argument("--certificate", help="the JSON file that synthesize wrote")
    command.add_argument("--audit", help="the JSON file of an audit")
    command.add_argument(
        "--schema", help="a JSON file; its rules are checked, and cells parsed by it"
    )
    command.add_argument("--target", help="the column that classifiers predict")
    command.add_argument("--output", required=True, help="where to write the page, .html")
    command.add_argument("--json", help="where to write the numbers, as JSON")
    command.add_argument("--title", help="title of the page; default: the name of the file")


def _add_form(command):
    form = command.add_argument_group("format of a CSV file, which is public")
    form.add_argument("--sep", help="separator of cells; default: a comma, for .tsv a tab")
    form.add_argument("--encoding", default="utf-8", help="such as latin-1; default: utf-8")
    form.add_argument("--decimal", default=".", help="decimal separator; default: a dot")
    form.add_argument("--thousands", help="separator of groups of three digits")
    form.add_argument("--date-format", help="such as %%m/%%d/%%Y; default: ISO 8601")
    form.add_argument(
        "--header",
        choices=["auto", "yes"],
        default="auto",
        help="yes: the first line names the columns, even if it looks like data",
    )
    form.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="NAMES",
        help="columns to leave out, separated by commas; can be repeated",
    )


def _add_schema(command):
    command.add_argument("--schema", help="a JSON file that declares columns, which is public")
    command.add_argument(
        "--types",
        action="append",
        default=[],
        metavar="NAME=TYPE",
        help="type of a column, such as age=integer, or a JSON file of types; bounds and "
        "categories are inferred from the budget; can be repeated",
    )
    command.add_argument(
        "--infer",
        choices=["private"],
        help="infer undeclared columns from the budget, by noisy counts: types, bounds and "
        "categories; types that a Parquet file states are public",
    )


def _add_privacy(command):
    command.add_argument("--epsilon", type=float, required=True, help="privacy budget")
    command.add_argument("--delta", type=float, required=True, help="well below 1 / rows")
    command.add_argument(
        "--max-rows-per-person",
        type=int,
        metavar="M",
        help="rows of each person that count, at M times the noise; default: 1",
    )
    command.add_argument("--relation", choices=["zero_out", "replace_one"], default="zero_out")
    command.add_argument(
        "--method",
        choices=["sliced", "flow"],
        default="sliced",
        help="sliced: a network (DPSlicedWassersteinGenerator); flow: particles (DPSWFlowSampler)",
    )


def _add_fit(command):
    command.add_argument("--target", help="the column to be predicted, if there is one")
    command.add_argument(
        "--person-column",
        metavar="NAME",
        help="column of identifiers of persons, which is not synthesized; protects each person "
        "with all rows",
    )
    command.add_argument(
        "--engine",
        choices=["dask", "spark"],
        help="engine whose workers read Parquet files and compute sums; default: this process",
    )
    command.add_argument(
        "--budget",
        metavar="FILE",
        help="also charge the budget of this file, from skdpgen budget init",
    )
    command.add_argument(
        "--strict",
        action="store_true",
        help="refuse invalid records, which otherwise count as absent; ε does not cover a refusal",
    )
    command.add_argument(
        "--seed", type=int, help="seed of the noise, for experiments: it protects nobody"
    )
    command.add_argument(
        "--fail-on-warning",
        action="store_true",
        help="exit code 3 if the releases indicate bad synthetic rows",
    )
