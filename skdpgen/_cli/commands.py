# SPDX-License-Identifier: BSD-3-Clause
"""Commands of the command line; each returns its exit code."""

import contextlib
import json
import math
import signal
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from .. import DPSlicedWassersteinGenerator, DPSWFlowSampler, PrivacyBudget
from ..accounting.events import threshold_delta
from ..accounting.previews import preview as preview_fit
from ..accounting.rounding import show
from ..accounting.units import unit_sensitivity
from ..accounting.verification import read_certificate
from ..accounting.verification import sign as sign_text
from ..accounting.verification import verify as verify_text
from ..auditing import audit as audit_releases
from ..auditing.base import NO_VIOLATION
from ..checks import read_file
from ..curator.texts import PLAIN
from ..engines.files import list_files
from ..exceptions import FitQualityWarning, SpentError
from ..mechanisms.tables import TablesMechanism
from ..releases import TwoWayTables
from ..tables.columns import Unknown
from ..tables.columns.cell_kinds import KINDS as KINDS_RELEASE
from ..tables.columns.identifier import go_on
from ..tables.rules.rules import Unique
from ..tables.schema import Schema
from .outputs import (
    Interrupted,
    check_outputs,
    interruptible,
    is_parquet,
    print_warning,
    replaced_together,
    write_table,
)
from .reports import report  # noqa: F401
from .tables import (
    TableOptions,
    check_synthetic,
    check_table,
    list_rules,
    read_declared,
    read_public,
    read_types,
)

_METHODS = {"sliced": DPSlicedWassersteinGenerator, "flow": DPSWFlowSampler}
# Synthetic rows are sampled and written in pieces of this size, which bounds the memory.
_PIECE = 100_000
# Exit codes of a synthesis of doubtful quality and of an audit that found a violation.
_BAD_QUALITY, _VIOLATION = 3, 4
# Generated rows of an audit.
_AUDIT_ROWS = 1000


def synthesize(options: Namespace) -> int:
    """Fit a generator to a private table, and write synthetic rows and a certificate."""
    outputs = _check_synthesis(options)
    table = TableOptions(options)
    has_persons = options.person_column is not None
    generator = _make_generator(
        options,
        table.schema,
        verbose=0 if options.quiet else 1,
        strict=options.strict,
        random_state=options.seed,
        **_find_unit(options, has_persons, "--person-column"),
    )
    # Errors that follow from public parameters are raised here, before a row is read.
    planned = preview_fit(generator, 1, len(table.schema), persons=has_persons)
    if options.seed is None:
        budget = PrivacyBudget(
            options.epsilon,
            options.delta,
            relation=options.relation,
            threshold_delta=threshold_delta(planned.events),
        )
    else:
        # A budget refuses fits whose noise follows from a seed.
        budget = None
    with _printed_warnings() as caught:
        total = None if options.budget is None else PrivacyBudget.from_file(options.budget)
        try:
            with interruptible() as commit, replaced_together(outputs.values(), commit) as paths:
                with budget or contextlib.nullcontext(), total or contextlib.nullcontext():
                    generator.fit(table.rows, target=options.target, persons=table.persons)
                _write(options, generator, dict(zip(outputs, paths, strict=True)))
        except KeyboardInterrupt as interrupt:
            number = getattr(interrupt, "number", signal.SIGINT)
            message = f"interrupted: no file was written. {_describe_spent(budget)}"
            raise Interrupted(number, message) from None
        except (OSError, ValueError) as error:
            if not hasattr(generator, "privacy_"):
                raise
            raise SpentError(f"{error} No file was written. {_describe_spent(budget)}") from None
    if not options.quiet:
        print(generator.privacy_)
        if (report_table := _find_report(generator)) is not None:
            print(report_table.to_string())
        if options.budget is None:
            print("Another synthesis of these rows adds to this ε: give all of them one --budget.")
    is_bad = any(issubclass(category, FitQualityWarning) for category in caught)
    return _BAD_QUALITY if options.fail_on_warning and is_bad else 0


def _check_synthesis(options: Namespace) -> dict[str, str]:
    """Check options that the generator does not, and return the outputs in order of writing."""
    if options.n_rows is not None and options.n_rows < 1:
        raise ValueError(f"--n-rows must be at least 1; got {options.n_rows}.")
    if options.seed is not None and not 0 <= options.seed < 2**32:
        raise ValueError(f"--seed must be in [0, 2**32); got {options.seed}.")
    check_synthetic(options.output)
    check_table(options)
    if options.escape_formulas and is_parquet(options.output):
        raise ValueError("--escape-formulas is for .csv files only.")
    outputs = {
        "--certificate": options.certificate,
        "--schema-out": options.schema_out,
        "--output": options.output,
    }
    files = [text for text in options.types if "=" not in text]
    first, *others = map(str, list_files(options.table))
    inputs = {"the private table": first, "--schema": options.schema}
    inputs |= {f"part {i} of the private table": path for i, path in enumerate(others, 2)}
    check_outputs(outputs, inputs | {f"--types {i}": file for i, file in enumerate(files)})
    return {option: path for option, path in outputs.items() if path is not None}


def _write(options: Namespace, generator, paths: dict[str, str]) -> None:
    pieces = _sample_in_pieces(generator, options.n_rows, options.seed)
    write_table(pieces, paths["--output"], options.output, options.escape_formulas)
    texts = {
        "--certificate": lambda: generator.privacy_.to_json(),
        "--schema-out": lambda: _describe_fit(generator),
    }
    for option, make_text in texts.items():
        if option in paths:
            Path(paths[option]).write_text(make_text() + "\n", encoding="utf-8")


def _sample_in_pieces(generator, n_rows: int | None, seed: int | None) -> Iterator[pd.DataFrame]:
    n_rows = left = generator.n_samples_ if n_rows is None else n_rows
    # An int would repeat the rows in each piece.
    random_state = None if seed is None else np.random.RandomState(seed)
    # Unique values are unique within a piece only.
    is_whole = any(isinstance(rule, Unique) for rule in generator.schema_.rules)
    largest = n_rows if is_whole else _PIECE
    while True:  # at least one piece, which writes the header
        piece = generator.sample(min(left, largest), random_state=random_state)
        yield go_on(piece, generator.schema_, n_rows - left)
        left -= largest
        if left <= 0:
            return


def _describe_fit(generator) -> str:
    """Return the fitted schema and its report as JSON."""
    table, records = _find_report(generator), []
    if table is not None:
        columns = table.rename_axis("column").reset_index()
        records = json.loads(columns.to_json(orient="records"))
    described = {"schema": generator.schema_.to_dict(), "report": records}
    return json.dumps(described, ensure_ascii=False, indent=2)


def _find_report(generator) -> pd.DataFrame | None:
    return getattr(generator, "schema_report_", None)


def _describe_spent(budget: PrivacyBudget | None) -> str:
    if budget is None:
        return "With --seed, nothing is private."
    return f"Until then ε = {show(budget.spent)} was spent, on unpublished releases."


@contextlib.contextmanager
def _printed_warnings():
    """Print each warning once, on one line; yield the list of their categories."""
    caught, printed = [], set()

    def show_warning(message, category, *args, **kwargs):
        caught.append(category)
        if str(message) not in printed:
            printed.add(str(message))
            print_warning(message)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show_warning
        yield caught


def _make_generator(options: Namespace, schema: Schema, **params):
    return _METHODS[options.method](
        epsilon=options.epsilon,
        delta=options.delta,
        relation=options.relation,
        schema=schema,
        **params,
    )


def _find_unit(options: Namespace, has_persons: bool, option: str) -> dict[str, int]:
    """Return the generator's parameters for persons, which `option` declares."""
    if options.max_rows_per_person is None:
        return {}
    if not has_persons:
        raise ValueError(f"--max-rows-per-person goes with {option}, which is not given.")
    return {"max_rows_per_person": options.max_rows_per_person}


def schema(options: Namespace) -> int:
    """Write a schema with the bounds and levels of a public table."""
    check_outputs({"--output": options.output}, {"the table": options.table})
    print(
        "The schema publishes bounds and levels of this table: it must be public.", file=sys.stderr
    )
    inferred = Schema.from_public(read_public(options))
    if options.output is None:
        print(inferred.to_json(), end="")
    else:
        with replaced_together([options.output]) as (path,):
            inferred.to_json(path)
    return 0


def preview(options: Namespace) -> int:
    """Print the releases and the cost of a synthesis, without data."""
    columns, rules = _read_columns(options)
    n_declared = len(columns)
    n_columns = max(1, n_declared) if options.n_columns is None else options.n_columns
    if n_columns < max(1, n_declared):
        raise ValueError(f"--n-columns must be at least {max(1, n_declared)}; got {n_columns}.")
    if n_columns > n_declared and options.infer is None:
        raise ValueError(
            f"--schema and --types declare {n_declared} of {n_columns} columns. Declare the "
            "others, or spend budget on inferring them by --infer private."
        )
    # Names that no column of a file can have.
    columns |= {f"{i}\0": Unknown() for i in range(n_declared, n_columns)}
    generator, has_persons = _make_unfitted(options, columns, rules)
    n_units = options.n_persons if has_persons else options.n_rows
    planned = preview_fit(generator, n_units, n_columns, persons=has_persons)
    print(planned)
    # Tables share ρ equally, so that the noise grows with the root of their number: n tables of
    # types, and n(n - 1)/2 < n²/2 of pairs. Declared columns need no table of types.
    noise = {KINDS_RELEASE: math.sqrt(n_columns), TwoWayTables.name: n_columns / math.sqrt(2)}
    for release, event in zip(planned.releases, planned.events, strict=True):
        if release in noise:
            unit = unit_sensitivity(
                TablesMechanism.sensitivity_of, options.relation, planned.max_rows
            )
            std = unit * event.noise_multiplier * noise[release]
            print(f"Counts of {release}: noise of ±{show(std)} rows or less.")
    return 0


def audit(options: Namespace) -> int:
    """Audit the releases of a synthesis on generated rows."""
    columns, rules = _read_columns(options)
    if not columns:
        raise ValueError(
            "An audit generates rows of declared columns. Declare them by --schema or --types, an "
            'unknown one as {"type": "unknown"} in the schema.'
        )
    if options.target is not None and options.target not in columns:
        raise ValueError(f"--target must be one of {list(columns)}; got {options.target}.")
    check_outputs({"--json": options.json}, {"--schema": options.schema})
    generator, has_persons = _make_unfitted(options, columns, rules)
    audited = audit_releases(
        generator,
        options.n_persons if has_persons else (options.n_rows or _AUDIT_ROWS),
        target=options.target,
        persons=has_persons or None,
        n_runs=options.n_runs,
        random_state=options.seed,
    )
    print(audited)
    if options.json is not None:
        with replaced_together([options.json]) as (path,):
            Path(path).write_text(audited.to_json() + "\n", encoding="utf-8")
    return 0 if audited.verdict == NO_VIOLATION else _VIOLATION


def _read_columns(options: Namespace) -> tuple[dict, tuple]:
    """Return the declared columns and the rules of an absent table."""
    declared = read_declared(options)
    return {**declared, **read_types(options.types, PLAIN)}, list_rules(declared)


def _make_unfitted(options: Namespace, columns: dict, rules: tuple) -> tuple:
    """Return the generator of an absent table, and whether its rows are of persons."""
    has_persons = options.n_persons is not None
    unit = _find_unit(options, has_persons, "--n-persons")
    return _make_generator(options, Schema(columns, rules), **unit), has_persons


def budget(options: Namespace) -> int:
    """Create, show or close the file of a budget."""
    if options.action == "init" and Path(options.path).exists():
        raise ValueError(f"{options.path} exists already; name a new file for the budget.")
    with _printed_warnings():
        if options.action == "init":
            threshold_delta = options.threshold_delta
            total = PrivacyBudget(
                options.epsilon,
                options.delta,
                relation=options.relation,
                threshold_delta=options.delta / 10 if threshold_delta is None else threshold_delta,
                path=options.path,
            )
        else:
            total = PrivacyBudget.from_file(options.path)
    if options.action == "close":
        total.close()
    state = "closed" if total.is_closed else "open"
    print(
        f"ε = {show(total.spent)} of {show(total.epsilon)} is spent at δ = {show(total.delta)} "
        f"({total.relation}); the budget is {state}."
    )
    return 0


def verify(options: Namespace) -> int:
    """Print a certificate, and recompute its ε."""
    text = read_file(options.certificate)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        key = options.public_key
        epsilon = verify_text(text, None if key is None else Path(key).read_bytes())
    print(read_certificate(text))
    print(
        "This verifies the arithmetic. It cannot verify that the fit took place as stated, nor "
        "that the assumptions hold."
    )
    if options.public_key is not None:
        print(f"It is signed by the key of {options.public_key}, and unchanged since.")
    print(f"The events cost ε = {show(epsilon)}, as stated.")
    for warning in caught:
        print_warning(warning.message)
    return 0


def sign(options: Namespace) -> int:
    """Sign a certificate."""
    check_outputs({"--output": options.output}, {"--key": options.key})
    text = Path(options.certificate).read_text(encoding="utf-8")
    signed = sign_text(text, Path(options.key).read_bytes())
    Path(options.output).write_text(signed + "\n", encoding="utf-8")
    return 0
