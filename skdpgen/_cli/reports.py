# SPDX-License-Identifier: BSD-3-Clause
"""The command that reports on synthetic rows."""

import sys
from argparse import Namespace
from pathlib import Path

from ..evaluation import report as make_report
from .outputs import check_outputs, check_suffix, written_at_once
from .tables import read_public, read_schema

# How `skdpgen synthesize` writes synthetic rows.
_PLAIN = {
    "sep": None,
    "encoding": "utf-8",
    "decimal": ".",
    "thousands": None,
    "date_format": None,
    "header": "yes",
    "drop": [],
}


def report(options):
    if options.private is not None and not options.reads_private_rows:
        raise ValueError(
            "--private: a report on private rows is an exact answer about them, which no ε covers. "
            "Compare with public rows, by --reference; or say --reads-private-rows, and keep the "
            "report as secret as the rows."
        )
    if options.reads_private_rows and options.private is None:
        raise ValueError("--reads-private-rows goes with --private, which is not given.")
    outputs = {"--output": options.output, "--json": options.json}
    inputs = {
        "the synthetic table": options.table,
        "--reference": options.reference,
        "--private": options.private,
        "--certificate": options.certificate,
        "--audit": options.audit,
        "--schema": options.schema,
    }
    check_outputs(outputs, inputs)
    check_suffix(options.output, (".html",))
    schema = None if options.schema is None else read_schema(options.schema)
    synthetic = _read(options.table, Namespace(**{**vars(options), **_PLAIN}), schema)
    found = make_report(
        synthetic,
        _read(options.reference, options, schema),
        private=_read(options.private, options, schema),
        reads_private_rows=options.reads_private_rows,
        certificate=options.certificate and Path(options.certificate),
        audit=options.audit and Path(options.audit),
        schema=schema,
        target=options.target,
        title=options.title or f"Synthetic rows: {Path(options.table).name}",
    )
    texts = {options.output: found.to_html(), options.json: found.to_json()}
    texts.pop(None, None)
    with written_at_once(texts) as paths:
        for path, text in zip(paths, texts.values(), strict=True):
            Path(path).write_text(text, encoding="utf-8")
    if options.reads_private_rows:
        print(
            f"{', '.join(texts)}: computed from private rows, and as secret as they are.",
            file=sys.stderr,
        )
    return 0


def _read(path, options, schema):
    if path is None:
        return None
    return read_public(Namespace(**{**vars(options), "table": path}), schema)
