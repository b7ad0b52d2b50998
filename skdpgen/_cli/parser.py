# SPDX-License-Identifier: BSD-3-Clause
"""The options of the command line; nothing here needs more than the standard library."""

import argparse

from .._version import __version__


def make_parser():
    """Return the parser; what it parses has the name of a command as `command`."""
    parser = argparse.ArgumentParser(
        prog="skdpgen", description="Synthetic tables under differential privacy."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", required=True)

    command = commands.add_parser("synthesize", help="make a synthetic table from a private one")
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

    command = commands.add_parser("preview", help="say what a synthesis would release and cost")
    size = command.add_mutually_exclusive_group(required=True)
    size.add_argument("--n-rows", type=int, help="number of private rows")
    size.add_argument("--n-persons", type=int, help="of rows of persons, how many these are")
    command.add_argument(
        "--n-columns", type=int, help="number of columns; default: those of the schema"
    )
    _add_schema(command)
    _add_privacy(command)

    command = commands.add_parser(
        "audit", help="run what a synthesis would release on made rows, and test what it claims"
    )
    size = command.add_mutually_exclusive_group()
    size.add_argument("--n-rows", type=int, help="number of rows to make; default: 1000")
    size.add_argument("--n-persons", type=int, help="of rows of persons, how many of these to make")
    command.add_argument("--target", help="the column that is to be predicted, if there is one")
    command.add_argument(
        "--n-runs", type=int, default=5000, help="how often each release is run; default: 5000"
    )
    command.add_argument("--json", metavar="FILE", help="where to write the report")
    command.add_argument("--seed", type=int, help="by which rows are made and noise is drawn")
    _add_schema(command)
    _add_privacy(command)

    command = commands.add_parser("report", help="describe synthetic rows on a page of HTML")
    command.add_argument("table", help="synthetic rows, as synthesize has written them")
    _add_report(command)
    _add_form(command)

    command = commands.add_parser("budget", help="keep what several syntheses spend in a file")
    actions = command.add_subparsers(title="actions", dest="action", required=True)
    action = actions.add_parser("init", help="make the file of a budget, of which nothing is spent")
    action.add_argument("path", help="where; it must not be there yet")
    action.add_argument("--epsilon", type=float, required=True, help="of all syntheses together")
    action.add_argument("--delta", type=float, required=True, help="of all syntheses together")
    action.add_argument("--relation", choices=["zero_out", "replace_one"], default="zero_out")
    action.add_argument(
        "--threshold-delta",
        type=float,
        default=0.0,
        help="part of δ for categories that are found by --infer: a tenth of the δ of each such "
        "synthesis; default: 0",
    )
    action = actions.add_parser("show", help="say what is spent of a budget")
    action.add_argument("path", help="the file of a budget")
    action = actions.add_parser("close", help="let nothing be spent any more, for good")
    action.add_argument("path", help="the file of a budget")

    command = commands.add_parser("verify", help="print a certificate, and recompute its ε")
    command.add_argument("certificate", help="a file that synthesize or sign wrote")
    command.add_argument(
        "--public-key",
        metavar="FILE",
        help="PEM; the certificate must be signed by that key",
    )

    command = commands.add_parser("sign", help="sign a certificate, by a key of your own")
    command.add_argument("certificate", help="a JSON file that synthesize wrote")
    command.add_argument(
        "--key", metavar="FILE", required=True, help="an Ed25519 key, PEM, without a password"
    )
    command.add_argument("--output", required=True, help="where to write the certificate as a JWS")
    return parser


def _add_outputs(command):
    command.add_argument("--output", required=True, help="synthetic rows, .csv or .parquet")
    command.add_argument("--certificate", help="where to write what was released, as JSON")
    command.add_argument(
        "--schema-out", help="where to write the schema with what was found, and a report, as JSON"
    )
    command.add_argument(
        "--n-rows", type=int, help="synthetic rows; default: as many as private, or as persons"
    )
    command.add_argument(
        "--escape-formulas",
        action="store_true",
        help="write an apostrophe before texts that a spreadsheet would run as a formula",
    )
    command.add_argument("--quiet", action="store_true", help="no progress bar, no statement")


def _add_report(command):
    compared = command.add_mutually_exclusive_group()
    compared.add_argument("--reference", help="PUBLIC rows with the same columns to compare with")
    compared.add_argument(
        "--private",
        help="private rows instead; the report is then as secret as they are, which no ε covers",
    )
    command.add_argument(
        "--reads-private-rows", action="store_true", help="has to be said beside --private"
    )
    command.add_argument("--certificate", help="the JSON file that synthesize wrote")
    command.add_argument("--audit", help="the JSON file of an audit")
    command.add_argument("--schema", help="a JSON file: its rules are checked, cells read by it")
    command.add_argument("--target", help="the column that classifiers are to predict")
    command.add_argument("--output", required=True, help="where to write the page, .html")
    command.add_argument("--json", help="where to write the same numbers as JSON")
    command.add_argument("--title", help="of the page; default: the name of the file")


def _add_form(command):
    form = command.add_argument_group("form of a CSV file, which is public")
    form.add_argument("--sep", help="what separates cells; default: a comma, and of .tsv tabs")
    form.add_argument("--encoding", default="utf-8", help="such as latin-1; default: utf-8")
    form.add_argument("--decimal", default=".", help="what comes before decimals; default: a dot")
    form.add_argument("--thousands", help="what stands between groups of three digits")
    form.add_argument("--date-format", help="such as %%m/%%d/%%Y; default: ISO 8601")
    form.add_argument(
        "--header",
        choices=["auto", "yes"],
        default="auto",
        help="yes: the first line names the columns, also where it looks like data",
    )
    form.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="NAMES",
        help="columns to leave out, separated by commas; may be repeated",
    )


def _add_schema(command):
    command.add_argument("--schema", help="a JSON file: what is public of the columns")
    command.add_argument(
        "--types",
        action="append",
        default=[],
        metavar="NAME=KIND",
        help="what a column is said to be, such as age=integer, or a JSON file of such; bounds and "
        "categories are paid for; may be repeated",
    )
    command.add_argument(
        "--infer",
        choices=["private"],
        help="pay for columns that are not in the schema, by noisy counts: types, bounds and "
        "categories; types that a Parquet file states are public",
    )


def _add_privacy(command):
    command.add_argument("--epsilon", type=float, required=True, help="privacy budget")
    command.add_argument("--delta", type=float, required=True, help="well below 1 / rows")
    command.add_argument(
        "--max-rows-per-person",
        type=int,
        metavar="M",
        help="how many rows of each person count, at M times the noise; default: 1",
    )
    command.add_argument("--relation", choices=["zero_out", "replace_one"], default="zero_out")
    command.add_argument(
        "--method",
        choices=["sliced", "flow"],
        default="sliced",
        help="sliced: a network (DPSlicedWassersteinGenerator); flow: particles (DPSWFlowSampler)",
    )


def _add_fit(command):
    command.add_argument("--target", help="the column that is to be predicted, if there is one")
    command.add_argument(
        "--person-column",
        metavar="NAME",
        help="the column that says whose each row is, which is no data: protects persons, with all "
        "their rows",
    )
    command.add_argument(
        "--engine",
        choices=["dask", "spark"],
        help="whose workers read Parquet files and add up what is released; default: this process",
    )
    command.add_argument(
        "--budget", metavar="FILE", help="also charge the budget that skdpgen budget init made"
    )
    command.add_argument(
        "--strict",
        action="store_true",
        help="refuse records that are not as declared, which else count as absent; ε does not "
        "cover a refusal",
    )
    command.add_argument(
        "--seed", type=int, help="reproducible mode, for experiments: it protects nobody"
    )
    command.add_argument(
        "--fail-on-warning",
        action="store_true",
        help="exit code 3 if the releases say that the synthetic rows may be bad",
    )
