# SPDX-License-Identifier: BSD-3-Clause
"""Command `report`: a page that describes synthetic rows."""

import sys
from argparse import Namespace
from pathlib import Path

from ..accounting.budget import PrivacyBudget
from ..evaluation import report as make_report
from ..tables.schema import Schema
from .outputs import check_outputs, check_suffix, replaced
from .tables import read_beside, read_public, read_schema

# Options by which synthetic rows differ from those that they are compared with.
_MADE: dict = {"sep": None, "sheet": None, "header": "yes", "drop": []}


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
    outputs = {"--output": options.output, "--json": options.json}
    inputs = {
        "the synthetic table": options.table,
        "--reference": options.reference,
        "--private": options.private,
        "--certificate": options.certificate,
        "--audit": options.audit,
        "--budget": options.budget,
        "--schema": options.schema,
    }
    check_outputs(outputs, inputs)
    check_suffix(options.output, (".html",))
    schema = None if options.schema is None else read_schema(options.schema)
    # Synthetic rows are always written with a header and all columns.
    synthetic = _read(options.table, Namespace(**{**vars(options), **_MADE}), schema)
    result = make_report(
        synthetic,
        _read(options.reference, options, schema),
        private=_read(options.private, options, schema),
        reads_private_rows=options.reads_private_rows,
        certificate=options.certificate and Path(options.certificate),
        audit=options.audit and Path(options.audit),
        budget=None if options.budget is None else PrivacyBudget.from_file(options.budget),
        schema=schema,
        schema_report=read_beside(options.schema, "report"),
        target=options.target,
        title=options.title or f"Synthetic rows: {Path(options.table).name}",
    )
    texts = {options.output: result.to_html(), options.json: result.to_json()}
    # --json may be absent.
    texts.pop(None, None)
    # Both are written before one of them is replaced.
    with replaced(texts) as paths:
        for path, text in zip(paths, texts.values(), strict=True):
            Path(path).write_text(text, encoding="utf-8")
    if options.reads_private_rows:
        print(
            f"{', '.join(texts)}: computed from private rows; keep as secret as the rows.",
            file=sys.stderr,
        )
    return 0


def _read(path: str | None, options: Namespace, schema: Schema | None):
    if path is None:
        return None
    return read_public(Namespace(**{**vars(options), "table": path}), schema)
