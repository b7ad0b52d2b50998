# SPDX-License-Identifier: BSD-3-Clause
"""Commands that describe a public table, and audit a synthesis."""

import sys
from argparse import Namespace
from pathlib import Path

from ..auditing import audit as audit_releases
from ..auditing.mechanism_audit import NO_VIOLATION
from ..data.texts import PLAIN
from ..tables.schema import Schema
from .exits import BAD_RESULT
from .outputs import check_outputs, replaced
from .public_tables import read_public
from .runs import find_unit, make_generator
from .tables import read_declared, read_types

# Generated rows of an audit.
_AUDIT_ROWS = 1000


def schema(options: Namespace) -> int:
    """Write a schema with the bounds and levels of a public table."""
    # Before the table is read, which may take minutes.
    check_outputs({"--output": options.output}, {"the table": options.table})
    print(
        "The schema publishes bounds and levels of this table: it must be public.", file=sys.stderr
    )
    inferred = Schema.from_public(read_public(options))
    if options.output is None:
        print(inferred.to_json(), end="")
    else:
        with replaced([options.output]) as (path,):
            inferred.to_json(path)
    return 0


def audit(options: Namespace) -> int:
    """Audit the releases of a synthesis on generated rows."""
    declared, rules = read_declared(options)
    columns = {**declared, **read_types(options.types, PLAIN)}
    # An audit generates its rows: there is no table that names the columns.
    if not columns:
        raise ValueError(
            "An audit generates rows of declared columns. Declare them by --schema or --types, an "
            'unknown one as {"type": "unknown"} in the schema.'
        )
    if options.target is not None and options.target not in columns:
        raise ValueError(f"--target must be one of {list(columns)}; got {options.target}.")
    check_outputs({"--output": options.output}, {"--schema": options.schema})
    has_persons = options.n_persons is not None
    generator = make_generator(
        options,
        Schema(columns, rules),
        delta=options.delta,
        **find_unit(options, has_persons, "--n-persons"),
    )
    audited = audit_releases(
        generator,
        options.n_persons if has_persons else (options.n_rows or _AUDIT_ROWS),
        target=options.target,
        persons=has_persons or None,
        n_runs=options.n_runs,
        random_state=options.seed,
    )
    print(audited)
    if options.output is not None:
        with replaced([options.output]) as (path,):
            Path(path).write_text(audited.to_json() + "\n", encoding="utf-8")
    return 0 if audited.verdict == NO_VIOLATION else BAD_RESULT
