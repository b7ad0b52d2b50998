# SPDX-License-Identifier: BSD-3-Clause
"""Private and public tables, and what is said of their columns, from options."""

import codecs
import contextlib
import sys
from dataclasses import fields
from pathlib import Path

import pandas as pd

from .._files import parse, read_file
from ..curator.texts import MISSING_TEXTS, TextStyle, read_text
from ..engines.files import TableFile, list_files
from ..tables.columns import TYPES, Unknown
from ..tables.columns.texts import parse_texts
from ..tables.encoder import check_columns, check_dtypes
from ..tables.schema import Schema
from .outputs import check_input, check_suffix, is_parquet

# What else than the name of a kind --types takes.
_SAID = ("number", "integer", "boolean", "date")


class TableOptions:
    """A table and its schema, as options say; no cell is read.

    Attributes
    ----------
    file : TableFile
    rows : TableFile, or a table of an engine
        What is fitted to.
    persons : str or None
        The column that says whose the rows are.
    schema : Schema
        Of all columns. Of what is not known of them it leaves open what is paid for.
    """

    def __init__(self, options):
        check_table(options)
        self._path, self._style = options.table, read_style(options)
        declared = read_declared(options)
        if options.person_column in declared:
            raise ValueError(
                f"--person-column {options.person_column} is in --schema: identifiers are no data. "
                "Leave it out of the schema."
            )
        self.file = TableFile(
            self._path,
            lambda texts: parse_texts(texts, self.schema, self._style),
            options.header == "yes",
            sep=read_sep(options),
            encoding=options.encoding,
            drop=list_dropped(options),
            person_column=options.person_column,
        )
        names = self.file.names()
        self.schema = self._complete(names, declared, options)
        check_columns(pd.DataFrame(columns=names), self.schema)
        if is_parquet(self._path):
            stated = self.file.dtypes().items()
            empty = pd.DataFrame({name: pd.Series([], dtype=dtype) for name, dtype in stated})
            check_dtypes(empty, self.schema, are_stated=True)
        self.persons = options.person_column
        self.rows = self.file if options.engine is None else self._on_engine(options)
        if options.target is not None and options.target not in names:
            raise ValueError(f"--target must be one of the columns {names}; got {options.target}.")

    def _on_engine(self, options):
        """Return the table of an engine, which nothing is read of yet."""
        if not is_parquet(self._path):
            raise ValueError(f"--engine is for Parquet files; got {self._path}.")
        try:
            return self.file.on_engine(options.engine)
        except ImportError:
            package = f"skdpgen[{options.engine}]"
            raise ImportError(f"--engine {options.engine} needs pip install '{package}'.") from None

    def _complete(self, names, declared, options):
        """Return the schema of the file."""
        stated = self.file.dtypes() if is_parquet(self._path) else None
        said = read_types(options.types, None if stated is not None else self._style)
        lacking = [name for name in said if name not in names]
        if lacking:
            raise ValueError(f"--types names {lacking}, which are no columns; there are {names}.")
        both = [name for name in said if name in declared]
        if both:
            raise ValueError(f"--types and --schema both have {both}; give one of them.")
        known = {**declared, **said}
        if options.infer is None:
            left = [name for name in names if name not in known]
            if left:
                raise ValueError(
                    f"The columns {left} are neither in --schema nor in --types: say what they "
                    "are, pay for finding it by --infer private, or leave them out by --drop."
                )
        elif stated is None:
            known = {**dict.fromkeys(names, Unknown()), **known}
        else:
            known = _take_stated(stated, known)
        written = Unknown(**_fields_of(self._style))
        kinds = {n: written if kind == Unknown() else kind for n, kind in known.items()}
        return Schema(kinds, list_rules(declared))


def _take_stated(stated, known):
    """Declare the columns of which nothing is known by the types that a file states, and say so."""
    schema = Schema.from_dtypes(stated, declared=known)
    found = [
        f"{name} ({type(kind).__name__})" for name, kind in schema.items() if name not in known
    ]
    if found:
        print(
            f"The types of these columns are taken to be public: {', '.join(found)}.",
            file=sys.stderr,
        )
    return schema


def check_table(options):
    """Refuse a table that is none, or of unknown form, by its name."""
    check_suffix(options.table, (".csv", ".parquet", ".tsv", ".txt"))
    files = list_files(options.table)
    if not files:
        raise ValueError(f"There are no files {options.table}.")
    for file in files:
        check_input(file)
    if len(files) > 1 and not is_parquet(options.table):
        raise ValueError(f"{options.table} are several files, which only those of Parquet can be.")
    if is_parquet(options.table):
        _check_pyarrow()
        plain = {"sep": None, "encoding": "utf-8"} | _fields_of(TextStyle())
        given = [name for name in plain if getattr(options, name, None) != plain[name]]
        if given:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise ValueError(f"{names}: {options.table} is a Parquet file, whose form is known.")
    with contextlib.suppress(LookupError):
        codecs.lookup(options.encoding)
        return
    raise ValueError(f"--encoding {options.encoding} is unknown; try utf-8, latin-1 or utf-16.")


def _check_pyarrow():
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install 'skdpgen[parquet]'.") from None


def check_synthetic(path):
    """Refuse synthetic rows in a form that cannot be written."""
    check_suffix(path, (".csv", ".parquet"))
    if is_parquet(path):
        _check_pyarrow()


def read_sep(options):
    suffix = Path(options.table).suffix.lower()
    if options.sep is None:
        if suffix == ".txt":
            raise ValueError(f"Say by --sep what separates the cells of {options.table}.")
        return "\t" if suffix == ".tsv" else ","
    sep = {"\\t": "\t", "tab": "\t"}.get(options.sep, options.sep)
    if len(sep) != 1 or sep.isalnum() or sep in "\"'\n\r":
        raise ValueError(f"--sep must be one sign, such as ';' or '\\t'; got {options.sep!r}.")
    return sep


def read_style(options):
    return TextStyle(options.decimal, options.thousands, options.date_format)


def list_dropped(options):
    names = [name.strip() for given in options.drop for name in given.split(",")]
    return [name for name in names if name]


def read_declared(options):
    """Return what is public of the columns, as a schema; as an empty dict for nothing."""
    if options.schema is None and options.infer is None and not options.types:
        raise ValueError(
            "say what is public of the columns by --schema, or pay for finding it by --infer "
            "private."
        )
    if options.schema is None:
        return {}
    dropped = list_dropped(options) if "drop" in options else ()
    schema = read_schema(options.schema)
    left = [name for name in schema if name not in dropped]
    return schema.select(left) if left else {}


def read_schema(path):
    """Read a schema, also of what ``skdpgen synthesize --schema-out`` has written."""
    written = parse(read_file(path), "The schema")
    is_found = isinstance(written, dict) and set(written) == {"schema", "report"}
    if is_found and isinstance(written["report"], list):
        return Schema(written["schema"])
    return Schema.from_json(Path(path))


def list_rules(declared):
    """Return the rules of what `read_declared` gives."""
    return getattr(declared, "rules", ())


def read_types(given, style):
    """Return the kinds that columns are said to be of.

    Parameters
    ----------
    given : list of str
        Of ``name=kind``, or names of JSON files of a dict of kinds, which may be dicts.
    style : TextStyle or None
        How texts are written; then kinds are checked by noisy counts. None: types are stated.

    Returns
    -------
    dict of str to kind
    """
    said = {}
    for text in given:
        said.update(_read_pair(text) if "=" in text else _read_file(text))
    return {name: _make_kind(name, kind, style) for name, kind in said.items()}


def _read_pair(text):
    name, _, kind = text.rpartition("=")
    return {name.strip(): kind.strip()}


def _read_file(path):
    said = parse(read_file(path), f"--types {path}")
    if not isinstance(said, dict):
        raise ValueError(f"--types {path} must hold an object, such as " + '{"age": "integer"}.')
    return said


def _make_kind(name, kind, style):
    if not isinstance(kind, str):
        return kind
    if style is not None and kind in _SAID:
        return Unknown(**_fields_of(style) | {"expected": kind})
    spec = {"type": "number", "decimals": 0} if kind == "integer" else {"type": kind}
    if spec["type"] not in TYPES:
        raise ValueError(f"--types {name}={kind}: a kind must be one of {['integer', *TYPES]}.")
    # Cells that are none count as missing, as in columns whose kinds are found.
    if "missing" in [field.name for field in fields(TYPES[spec["type"]])]:
        spec["missing"] = True
    return spec


def _fields_of(style):
    return {field.name: getattr(style, field.name) for field in fields(TextStyle)}


def read_public(options, schema=None):
    """Read a public table, whose columns are what a schema says, or else all of their cells are."""
    check_table(options)
    file = TableFile(
        options.table,
        lambda texts: texts,
        options.header == "yes",
        sep=read_sep(options),
        encoding=options.encoding,
        drop=list_dropped(options),
    )
    file.names()
    frame = pd.concat(list(file()), ignore_index=True)
    if is_parquet(options.table):
        return frame
    style, declared = read_style(options), schema or {}
    parsed = parse_texts(frame, declared, style)
    return parsed.assign(
        **{name: _parse_public(frame[name], style) for name in frame if name not in declared}
    )


def _parse_public(cells, style):
    kinds, values = zip(*(read_text(cell, style) for cell in cells), strict=True)
    found = set(kinds) - {"missing"}
    if found and found <= {"whole", "number"}:
        return pd.Series(values, dtype="float64")
    if found == {"date"}:
        return pd.Series(values, dtype="datetime64[us]")
    if found == {"boolean"}:
        return pd.Series(values, dtype=object)
    texts = cells.str.strip()
    return texts.astype(object).where(~texts.isin(MISSING_TEXTS), None)
