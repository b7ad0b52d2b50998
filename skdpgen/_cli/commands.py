# SPDX-License-Identifier: BSD-3-Clause
"""The commands of the command line; each returns its exit code."""

import contextlib
import json
import math
import sys
import warnings
from pathlib import Path

import numpy as np

from .. import DPSlicedWassersteinGenerator, DPSWFlowSampler, PrivacyBudget
from .._files import read_file
from ..accounting.calibration import check_delta, check_epsilon
from ..accounting.certificate import Certificate
from ..accounting.events import threshold_delta
from ..accounting.previews import preview as preview_fit
from ..accounting.rounding import show
from ..accounting.signatures import sign as sign_text
from ..accounting.units import largest_change
from ..accounting.verification import verify as verify_text
from ..audit.releases import audit as audit_fit
from ..curator.texts import PLAIN
from ..engines.files import list_files
from ..exceptions import FitQualityWarning, SpentError
from ..mechanisms.tables import TablesMechanism
from ..releases import TwoWayTables
from ..tables.columns.cell_kinds import KINDS as KINDS_RELEASE
from ..tables.columns.identifiers import go_on
from ..tables.columns.types import Unknown
from ..tables.rules.rules import Unique
from ..tables.schema import Schema
from .interrupts import Interrupted, interruptible
from .outputs import check_outputs, is_parquet, write_table, written_at_once
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
# Synthetic rows are made and written in pieces of this size.
_PIECE = 100_000
# The exit code where releases say that synthetic rows may be bad.
_BAD_QUALITY = 3
# That of an audit which finds that a claim is false, and the rows that it makes by default.
_CONVICTED, _MADE = 4, 1000


def synthesize(options):
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
    # What can be refused for what is public is, before a row is read.
    planned = preview_fit(generator, 1, len(table.schema), persons=has_persons)
    if options.seed is None:
        budget = PrivacyBudget(
            options.epsilon,
            options.delta,
            relation=options.relation,
            threshold_delta=threshold_delta(planned.events),
        )
    else:
        # A budget takes no fits of which the noise can be made again.
        budget = contextlib.nullcontext()
    with _printed_warnings() as caught:
        kept = contextlib.nullcontext()
        if options.budget is not None:
            kept = PrivacyBudget.from_file(options.budget)
        try:
            with interruptible() as end, written_at_once(outputs.values(), end) as paths:
                paths = dict(zip(outputs, paths, strict=True))
                with budget, kept:
                    generator.fit(table.rows, target=options.target, persons=table.persons)
                _write(options, generator, paths)
        except KeyboardInterrupt as interrupt:
            raise _say_what_was_spent(interrupt, budget) from None
        except (OSError, ValueError) as error:
            if not hasattr(generator, "privacy_"):
                raise
            raise SpentError(f"{error} No file was written. {_tell_spent(budget)}") from None
    if not options.quiet:
        print(generator.privacy_)
        described = _report_of(generator)
        if described is not None:
            print(described.to_string())
    is_bad = any(issubclass(category, FitQualityWarning) for category in caught)
    return _BAD_QUALITY if options.fail_on_warning and is_bad else 0


def _check_synthesis(options):
    """Refuse options that make no sense; return the outputs, in the order of writing."""
    if options.n_rows is not None and options.n_rows < 1:
        raise ValueError(f"--n-rows must be at least 1; got {options.n_rows}.")
    if options.seed is not None and not 0 <= options.seed < 2**32:
        raise ValueError(f"--seed must be in [0, 2**32); got {options.seed}.")
    check_epsilon(options.epsilon)
    check_delta(options.delta)
    check_synthetic(options.output)
    check_table(options)
    if options.escape_formulas and is_parquet(options.output):
        raise ValueError("--escape-formulas is for .csv files, which a spreadsheet opens.")
    outputs = {
        "--certificate": options.certificate,
        "--schema-out": options.schema_out,
        "--output": options.output,
    }
    files = [text for text in options.types if "=" not in text]
    first, *others = list_files(options.table)
    inputs = {"the private table": first, "--schema": options.schema}
    inputs |= {f"part {i} of the private table": path for i, path in enumerate(others, 2)}
    check_outputs(outputs, inputs | {f"--types {i}": file for i, file in enumerate(files)})
    return {option: path for option, path in outputs.items() if path is not None}


def _write(options, generator, paths):
    pieces = _sample_in_pieces(generator, options.n_rows, options.seed)
    write_table(pieces, paths["--output"], options.output, options.escape_formulas)
    texts = {
        "--certificate": lambda: generator.privacy_.to_json(),
        "--schema-out": lambda: _describe_fit(generator),
    }
    for option, make_text in texts.items():
        if option in paths:
            Path(paths[option]).write_text(make_text() + "\n", encoding="utf-8")


def _sample_in_pieces(generator, n_rows, seed):
    n_rows = left = generator.n_samples_ if n_rows is None else n_rows
    # An int would give the same rows in each piece.
    random_state = None if seed is None else np.random.RandomState(seed)
    # What is different in all rows is so in a piece.
    is_whole = any(isinstance(rule, Unique) for rule in generator.schema_.rules)
    largest = n_rows if is_whole else _PIECE
    while True:
        piece = generator.sample(min(left, largest), random_state=random_state)
        yield go_on(piece, generator.schema_, n_rows - left)
        left -= largest
        if left <= 0:
            return


def _describe_fit(generator):
    """Return what was found of the columns, as JSON."""
    described = _report_of(generator)
    columns = None if described is None else described.rename_axis("column").reset_index()
    records = [] if columns is None else json.loads(columns.to_json(orient="records"))
    found = {"schema": generator.schema_.to_dict(), "report": records}
    return json.dumps(found, ensure_ascii=False, indent=2)


def _report_of(generator):
    return getattr(generator, "schema_report_", None)


def _say_what_was_spent(interrupt, budget):
    """Return an interrupt that says what no file tells of."""
    spent = _tell_spent(budget)
    number = getattr(interrupt, "number", 2)
    return Interrupted(number, f"interrupted: no file was written. {spent}")


def _tell_spent(budget):
    if not isinstance(budget, PrivacyBudget):
        return "With --seed, nothing is private."
    return f"Until then ε = {show(budget.spent)} was spent, on releases that nobody has seen."


@contextlib.contextmanager
def _printed_warnings():
    """Print each warning once and as one line; give the list of their categories."""
    caught, seen = [], set()

    def show_warning(message, category, *args, **kwargs):
        caught.append(category)
        if str(message) not in seen:
            seen.add(str(message))
            _warn(message)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show_warning
        yield caught


def _warn(message):
    print(f"skdpgen: warning: {message}", file=sys.stderr)


def _make_generator(options, schema, **params):
    return _METHODS[options.method](
        epsilon=options.epsilon,
        delta=options.delta,
        relation=options.relation,
        schema=schema,
        **params,
    )


def _find_unit(options, has_persons, said_by):
    """Return what a generator is told of persons."""
    if options.max_rows_per_person is None:
        return {}
    if not has_persons:
        raise ValueError(f"--max-rows-per-person goes with {said_by}, which is not given.")
    return {"max_rows_per_person": options.max_rows_per_person}


def schema(options):
    check_outputs({"--output": options.output}, {"the table": options.table})
    print(
        "The schema publishes bounds and levels of this table: it must be public.", file=sys.stderr
    )
    found = Schema.from_public(read_public(options))
    if options.output is None:
        print(found.to_json(), end="")
    else:
        with written_at_once([options.output]) as (path,):
            found.to_json(path)
    return 0


def preview(options):
    declared = read_declared(options)
    kinds = {**declared, **read_types(options.types, PLAIN)}
    n_columns = max(1, len(kinds)) if options.n_columns is None else options.n_columns
    if n_columns < max(1, len(kinds)):
        raise ValueError(f"--n-columns must be at least {max(1, len(kinds))}; got {n_columns}.")
    if n_columns > len(kinds) and options.infer is None:
        raise ValueError(
            f"--schema and --types have {len(kinds)} of {n_columns} columns; the others have to be "
            "paid for: say so by --infer private."
        )
    # Names that no column of a file has.
    kinds |= {f"{i}\0": Unknown() for i in range(len(kinds), n_columns)}
    has_persons = options.n_persons is not None
    unit = _find_unit(options, has_persons, "--n-persons")
    generator = _make_generator(options, Schema(kinds, list_rules(declared)), **unit)
    n_units = options.n_persons if has_persons else options.n_rows
    planned = preview_fit(generator, n_units, n_columns, persons=has_persons)
    print(planned)
    # Of all columns; what was declared of some makes it less.
    noise = {KINDS_RELEASE: math.sqrt(n_columns), TwoWayTables.name: n_columns / math.sqrt(2)}
    for release, event in zip(planned.releases, planned.events, strict=True):
        if release in noise:
            unit = largest_change(
                TablesMechanism.sensitivity_of, options.relation, planned.max_rows
            )
            std = unit * event.noise_multiplier * noise[release]
            print(f"Counts of {release}: noise of ±{show(std)} rows or less.")
    return 0


def audit(options):
    declared = read_declared(options)
    kinds = {**declared, **read_types(options.types, PLAIN)}
    if not kinds:
        raise ValueError(
            "Say by --schema or --types which columns there are to make rows of; of one of which "
            'nothing is known, {"type": "unknown"} in the schema.'
        )
    if options.target is not None and options.target not in kinds:
        raise ValueError(f"--target must be one of {list(kinds)}; got {options.target}.")
    outputs = {"--json": options.json}
    check_outputs(outputs, {"--schema": options.schema})
    has_persons = options.n_persons is not None
    unit = _find_unit(options, has_persons, "--n-persons")
    generator = _make_generator(options, Schema(kinds, list_rules(declared)), **unit)
    found = audit_fit(
        generator,
        options.n_persons if has_persons else (options.n_rows or _MADE),
        target=options.target,
        persons=has_persons or None,
        n_runs=options.n_runs,
        random_state=options.seed,
    )
    print(found)
    if options.json is not None:
        with written_at_once([options.json]) as (path,):
            Path(path).write_text(found.to_json() + "\n", encoding="utf-8")
    return _CONVICTED if found.verdict == "convicted" else 0


def budget(options):
    if options.action == "init" and Path(options.path).exists():
        raise ValueError(f"{options.path} is there already: a budget needs a file of its own.")
    with _printed_warnings():
        if options.action == "init":
            kept = PrivacyBudget(
                options.epsilon,
                options.delta,
                relation=options.relation,
                threshold_delta=options.threshold_delta,
                path=options.path,
            )
        else:
            kept = PrivacyBudget.from_file(options.path)
    if options.action == "close":
        kept.close()
    state = "closed" if kept.is_closed else "open"
    print(
        f"ε = {show(kept.spent)} of {show(kept.epsilon)} is spent at δ = {show(kept.delta)} "
        f"({kept.relation}); the budget is {state}."
    )
    return 0


def verify(options):
    text = read_file(options.certificate)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        key = options.public_key
        epsilon = verify_text(text, None if key is None else Path(key).read_bytes())
    print(Certificate.from_json(text))
    print(
        "What follows proves the arithmetic. It cannot prove that the fit took place as stated, "
        "nor that what is assumed holds."
    )
    if options.public_key is not None:
        print(f"It is signed by the key of {options.public_key}, and was not changed since.")
    print(f"The events cost ε = {show(epsilon)}, as stated.")
    for warning in caught:
        _warn(warning.message)
    return 0


def sign(options):
    check_outputs({"--output": options.output}, {"--key": options.key})
    text = Path(options.certificate).read_text(encoding="utf-8")
    signed = sign_text(text, Path(options.key).read_bytes())
    Path(options.output).write_text(signed + "\n", encoding="utf-8")
    return 0
