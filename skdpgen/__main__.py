"""The command line: synthetic tables from private ones, in files.

    skdpgen synthesize private.csv --schema schema.json --epsilon 1 --delta 1e-6 \
        --output synthetic.csv --certificate certificate.json
"""

import argparse
import contextlib
import json
import math
import os
import sys
import tempfile
import warnings
from pathlib import Path

import pandas as pd

from . import DPSlicedWassersteinGenerator, PrivacyBudget
from .accounting.accountants import RELATIONS
from .accounting.certificate import Certificate, preview, verify
from .accounting.events import threshold_delta
from .accounting.figures import show
from .exceptions import BudgetExceededError, SpentError
from .formats.columns import Unknown
from .formats.identifiers import go_on
from .formats.schema import Schema
from .formats.texts import parse_texts
from .privacy import TableFile

# Synthetic rows are made and written in pieces of this size.
_PIECE = 100_000


def main(arguments=None):
    """Run the command line; return its exit code."""
    parser = _make_parser()
    options = parser.parse_args(arguments)
    try:
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has gone; nor is anything to be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (BudgetExceededError, SpentError, OSError, ImportError, ValueError) as error:
        print(f"skdpgen: error: {error}", file=sys.stderr)
        return 1
    return 0


def _make_parser():
    parser = argparse.ArgumentParser(
        prog="skdpgen", description="Synthetic tables under differential privacy."
    )
    commands = parser.add_subparsers(title="commands", required=True)

    command = commands.add_parser("synthesize", help="make a synthetic table from a private one")
    command.add_argument("table", help="private rows, a .parquet file or a CSV file with a header")
    command.add_argument("--output", required=True, help="synthetic rows, .csv or .parquet")
    command.add_argument("--certificate", help="where to write what was released, as JSON")
    command.add_argument("--target", help="the column that is to be predicted, if there is one")
    command.add_argument("--n-rows", type=int, help="synthetic rows; default: as many as private")
    command.add_argument(
        "--header",
        choices=["auto", "yes"],
        default="auto",
        help="yes: the first line of a CSV file names its columns, also where it looks like data",
    )
    command.add_argument(
        "--strict",
        action="store_true",
        help="refuse records that are not as declared, which else count as absent; ε does not "
        "cover a refusal",
    )
    command.add_argument("--quiet", action="store_true", help="no progress bar, no statement")
    _add_privacy(command)
    command.set_defaults(run=_synthesize)

    command = commands.add_parser("schema", help="describe the columns of a PUBLIC table")
    command.add_argument("table", help="a public .csv or .parquet file; never private rows")
    command.add_argument("--output", help="where to write the schema; default: standard output")
    command.set_defaults(run=_describe)

    command = commands.add_parser("preview", help="say what a synthesis would release and cost")
    command.add_argument("--n-rows", type=int, required=True, help="number of private rows")
    _add_privacy(command)
    command.set_defaults(run=_preview)

    command = commands.add_parser("verify", help="print a certificate, and recompute its ε")
    command.add_argument("certificate", help="a JSON file that synthesize wrote")
    command.set_defaults(run=_verify)
    return parser


def _add_privacy(command):
    command.add_argument("--schema", help="a JSON file: what is public of the columns")
    command.add_argument(
        "--infer",
        choices=["private"],
        help="pay for columns that are not in the schema, by noisy counts: types, bounds and "
        "categories; types that a Parquet file states are public",
    )
    command.add_argument("--epsilon", type=float, required=True, help="privacy budget")
    command.add_argument("--delta", type=float, required=True, help="well below 1 / rows")
    command.add_argument("--relation", choices=list(RELATIONS), default="zero_out")


def _read_schema(options):
    if options.schema is None and options.infer is None:
        raise ValueError(
            "say what is public of the columns by --schema, or pay for finding it by --infer "
            "private."
        )
    return None if options.schema is None else Schema.from_json(Path(options.schema))


def _make_generator(options, schema, **params):
    return DPSlicedWassersteinGenerator(
        epsilon=options.epsilon,
        delta=options.delta,
        relation=options.relation,
        schema=schema,
        **params,
    )


def _synthesize(options):
    schema = _read_schema(options)
    table = TableFile(
        options.table, lambda texts: parse_texts(texts, schema), options.header == "yes"
    )
    if options.infer is not None and _is_parquet(options.table):
        schema = _declare_types(table, schema)
    elif options.infer is not None:
        unknown = dict.fromkeys(table.names(), Unknown())
        schema = Schema({**unknown, **(schema or {})})
    verbose = 0 if options.quiet else 1
    generator = _make_generator(options, schema, verbose=verbose, strict=options.strict)
    budget = PrivacyBudget(
        options.epsilon,
        options.delta,
        relation=options.relation,
        threshold_delta=threshold_delta(preview(generator, 1, len(schema)).events),
    )
    outputs = [options.output] + [options.certificate] * (options.certificate is not None)
    try:
        with _written_at_once(outputs) as paths:
            with budget:
                generator.fit(table, target=options.target)
            write = _write_parquet if _is_parquet(options.output) else _write_csv
            write(_sample_in_pieces(generator, options.n_rows), paths[0])
            if options.certificate is not None:
                Path(paths[1]).write_text(generator.privacy_.to_json() + "\n", encoding="utf-8")
    except KeyboardInterrupt:
        raise ValueError(
            f"interrupted: no file was written. Until then ε = {show(budget.spent)} was spent, "
            "on releases that nobody has seen."
        ) from None
    if not options.quiet:
        print(generator.privacy_)


def _declare_types(table, schema):
    """Declare the columns that a schema lacks by the types that the file states, and say so."""
    known, schema = set(schema or ()), Schema.from_dtypes(table.dtypes(), declared=schema)
    found = [
        f"{name} ({type(kind).__name__})" for name, kind in schema.items() if name not in known
    ]
    if found:
        print(
            f"The types of these columns are taken to be public: {', '.join(found)}.",
            file=sys.stderr,
        )
    return schema


def _describe(options):
    print(
        "The schema publishes bounds and levels of this table: it must be public.", file=sys.stderr
    )
    schema = Schema.from_public(_read_public(options.table))
    if options.output is None:
        print(schema.to_json(), end="")
    else:
        with _written_at_once([options.output]) as (path,):
            schema.to_json(path)


def _preview(options):
    schema = _read_schema(options)
    schema = Schema({"any": Unknown()}) if schema is None else schema
    print(preview(_make_generator(options, schema), options.n_rows, len(schema)))


def _verify(options):
    text = Path(options.certificate).read_text(encoding="utf-8")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        epsilon = verify(text)
    print(Certificate.from_json(text))
    stated = float(json.loads(text)["epsilon"])
    is_stated = stated == epsilon or math.isclose(stated, epsilon)
    says = "as stated" if is_stated else f"and the certificate states ε = {show(stated)}"
    print(f"The events cost ε = {show(epsilon)}, {says}.")
    for warning in caught:
        print(f"skdpgen: warning: {warning.message}", file=sys.stderr)


def _read_public(path):
    if _is_parquet(path):
        return pd.read_parquet(path)
    frame = pd.read_csv(path)
    for name in frame.select_dtypes(exclude=["number", "bool"]).columns:
        with contextlib.suppress(ValueError, TypeError):
            frame[name] = pd.to_datetime(frame[name], format="ISO8601")
    return frame


def _is_parquet(path):
    return Path(path).suffix == ".parquet"


def _sample_in_pieces(generator, n_rows):
    n_rows = left = generator.n_samples_ if n_rows is None else n_rows
    while True:
        piece = generator.sample(min(left, _PIECE))
        yield go_on(piece, generator.schema_, n_rows - left)
        left -= _PIECE
        if left <= 0:
            return


def _write_csv(pieces, path):
    for i, piece in enumerate(pieces):
        piece.to_csv(path, index=False, mode="a" if i else "w", header=i == 0)


def _write_parquet(pieces, path):
    from pyarrow import Table
    from pyarrow.parquet import ParquetWriter

    tables = (Table.from_pandas(piece, preserve_index=False) for piece in pieces)
    first = next(tables)
    with ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)


@contextlib.contextmanager
def _written_at_once(paths):
    """Give temporary files beside `paths`, which replace them only if all goes well."""
    temporary = []
    try:
        for path in paths:
            folder = Path(path).resolve().parent
            handle, name = tempfile.mkstemp(dir=folder, prefix=".skdpgen-")
            os.close(handle)
            temporary.append(name)
        yield temporary
        for name, path in zip(temporary, paths, strict=True):
            os.chmod(name, 0o644)
            os.replace(name, path)
    finally:
        for name in temporary:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


if __name__ == "__main__":
    sys.exit(main())
