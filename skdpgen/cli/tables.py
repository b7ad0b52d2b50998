# SPDX-License-Identifier: BSD-3-Clause
"""Tables and schemas from the options of a command."""

import codecs
import contextlib
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path

import pandas as pd

from ..accounting.strict_json import parse_json
from ..checks import read_file
from ..curator.chunks import adapt_table
from ..data.texts import EXPECTED, PLAIN, TextStyle
from ..engines.files import FORMS, TableFile, find_form, list_files
from ..metadata import find_own, load, recognizes
from ..tables.columns import TYPES, Number, Unknown
from ..tables.columns.texts import parse_cells
from ..tables.encoder import check_columns, check_dtypes
from ..tables.rules.rules import Derived, parse_rules
from ..tables.schema import Schema
from .forms import Form
from .kept_types import KeptTypes
from .outputs import (
    check_input,
    check_suffix,
    collected_warnings,
    print_message,
)


@dataclass(frozen=True)
class Read:
    """The private table: files, and the numbers of rows or persons and of columns."""

    files: str
    n_units: int
    is_of_persons: bool
    n_columns: int

    def __str__(self):
        return f"{self.files}: {self.units}, {self.n_columns} columns"

    @property
    def units(self) -> str:
        """Their number, as text."""
        return f"{self.n_units:,} {self.unit}s"

    @property
    def unit(self) -> str:
        """Name of the unit of privacy."""
        return "person" if self.is_of_persons else "row"

    def to_dict(self) -> dict:
        """Return what was read as JSON."""
        return {
            "files": self.files,
            f"{self.unit}s": self.n_units,
            "columns": self.n_columns,
        }


class TableOptions:
    """Private table and its schema; no cell is read.

    Parameters
    ----------
    options : argparse.Namespace
    goes_on : bool, default=False
        Whether to go on from types that a stopped run has released.

    Attributes
    ----------
    kept : KeptTypes or None
        These types.
    path : str
        The first file or pattern.
    names : list of str
        Names of the columns.
    file : TableFile
    rows : TableFile, or a table of an engine
        The rows to fit.
    persons : str or None
        The column with the identifiers of persons.
    schema : Schema
        The schema of all columns; undeclared ones are `Unknown`, or of a type without bounds.
    """

    def __init__(self, options: Namespace, *, goes_on: bool = False) -> None:
        check_table(options)
        self.path, self._style = list_given(options)[0], read_style(options)
        self._styles = read_styles(options.schema)
        self.file = open_table(
            options,
            lambda texts: pd.DataFrame({n: self._parse(texts[n]) for n in texts}),
        )
        self._options = options
        self._identifiers = options.person_column, getattr(options, "key", None)
        names = self.file.names()
        self.kept = KeptTypes.read(options, names) if goes_on else None
        declared, rules = read_declared(options, names)
        if options.person_column in declared:
            raise ValueError(
                f"--person-column {options.person_column} is in --schema, but identifiers are not "
                "synthesized. Remove it from the schema."
            )
        self.schema = self._complete(names, declared, rules, options)
        check_columns(pd.DataFrame(columns=names), self.schema)
        self.names = names
        # The dtypes of a Parquet file are public: check them before a cell is read.
        if find_form(self.path) == "Parquet":
            stated = self.file.dtypes().items()
            empty = pd.DataFrame({name: pd.Series([], dtype=dtype) for name, dtype in stated})
            check_dtypes(empty, self.schema, are_stated=True)
        self.persons = options.person_column
        self.rows = self.file if options.engine is None else self._on_engine(options)
        if options.target is not None and options.target not in names:
            raise ValueError(f"--target must be one of the columns {names}; got {options.target}.")

    def _parse(self, column):
        """Return the values of a column; identifiers as Python writes numbers."""
        style = self.style_of(column.name)
        if column.name not in self._identifiers:
            return parse_cells(column.to_frame(), self.schema, style)[column.name]
        return column.map(partial(_write_identifier, style=replace(style, expected="number")))

    def style_of(self, name: str) -> TextStyle:
        """Return how the numbers and dates of a column are written, as options and files say."""
        return self._styles.get(name, self._style)

    def make_form(
        self, found: Mapping[str, TextStyle], schema: Schema, *, escapes: bool = False
    ) -> Form:
        """Return the form of the files, which synthetic rows have, with inferred styles."""
        styles = {name: self.style_of(name) for name in self.names} | dict(found)
        form = Form(
            Path(self.path).suffix.lower(),
            styles=styles,
            schema=schema,
            absent=read_markers(self._options),
            escapes=escapes,
        )
        if not form.is_csv:
            return form
        return replace(form, sep=self.file.sep, **self.file.dialect)

    def list_doubts(self) -> list[str]:
        """List what may be wrong with how cells are read, from public facts only."""
        options = self._options
        if options.decimal is not None or find_form(self.path) != "CSV":
            return []
        if len(self.names) == 1 and re.search(r"\S[\s:^~#]+\S", self.names[0]):
            return [
                f"{self.path} has one column, {self.names[0]!r}: if it has several, say by --sep "
                "what separates them."
            ]
        declared = [
            name
            for name, column in self.schema.items()
            if column.is_number and column.decimals != 0 and name not in self._styles
        ]
        # Separated by semicolons, files of half of Europe have decimal commas, and both readings
        # parse.
        if self.file.sep != ";" or not declared:
            return []
        return [
            f"{self.path} is separated by semicolons, so numbers may have decimal commas: say how "
            f"{', '.join(declared)} are written, by --decimal , or --decimal ."
        ]

    def count(self) -> int:
        """Return the number of rows, or of persons, which is public."""
        # A table of an engine counts itself; of the cells of a file, persons alone are read.
        names = [] if self.persons is None else [self.persons]
        plain = open_table(
            self._options, lambda texts: texts.assign(**{n: self._parse(texts[n]) for n in names})
        )
        table = adapt_table(plain if self.rows is self.file else self.rows)
        if self.persons is not None:
            table = table.by_person(self.persons)
        _, n_units, persons = table.map_parts(lambda part: part)
        n_units = n_units if persons is None else persons.n_persons
        if not n_units:
            raise ValueError("The table has no rows.")
        return n_units

    def describe(self, n_units: int) -> Read:
        """Return what is read: files, and public numbers."""
        files = ", ".join(list_given(self._options))
        return Read(files, n_units, self.persons is not None, len(self.names))

    def _on_engine(self, options: Namespace):
        """Return the lazy table of an engine."""
        if find_form(self.path) != "Parquet":
            raise ValueError(f"--engine is for Parquet files; got {self.path}.")
        try:
            return self.file.on_engine(options.engine)
        except ImportError:
            package = f"skdpgen[{options.engine}]"
            raise ImportError(f"--engine {options.engine} needs pip install '{package}'.") from None

    def _complete(self, names: list[str], declared, rules, options: Namespace) -> Schema:
        """Return the schema of all columns of the file."""
        stated = self.file.dtypes() if find_form(self.path) == "Parquet" else None
        typed = read_types(options.types, None if stated is not None else self._style)
        missing = [name for name in typed if name not in names]
        if missing:
            raise ValueError(f"--types names {missing}, which are no columns; there are {names}.")
        both = [name for name in typed if name in declared]
        if both:
            raise ValueError(f"--types and --schema both have {both}; use one of them.")
        known = {**declared, **typed}
        if stated is None:
            known = {**dict.fromkeys(names, Unknown()), **known}
        else:
            known = dict(_declare_stated(stated, known))
        for name in [n for n, column in known.items() if column == Unknown()]:
            if self.kept and (found := self.kept.find_type(name, self._style)) is not None:
                known[name], self._styles[name] = found
        columns = {
            name: Unknown(**_fields_of(self.style_of(name))) if column == Unknown() else column
            for name, column in known.items()
        }
        schema = Schema(columns, rules)
        return schema if stated is not None else schema.of_texts(names)


def _declare_stated(stated: Mapping, known: Mapping) -> Schema:
    """Declare undeclared columns by the types that a file states, and print which."""
    schema = Schema.from_dtypes(stated, declared=known)
    added = [
        f"{name} ({type(column).__name__})" for name, column in schema.items() if name not in known
    ]
    if added:
        print(
            f"The types of these columns are treated as public: {', '.join(added)}.",
            file=sys.stderr,
        )
    return schema


def _write_identifier(cell, style):
    """Return a text that is a number in a style as Python writes it, and other cells as they are.

    Where decimals have a comma, 7 and 7,0 are one person.
    """
    number = style.plain_number(cell.strip()) if isinstance(cell, str) else None
    return cell if number is None else number


def open_table(options: Namespace, parse: Callable) -> TableFile:
    """Return the files of the table, whose cells `parse` reads."""
    file = TableFile(
        options.table,
        parse,
        options.header == "yes",
        sep=read_sep(options),
        encoding=options.encoding,
        drop=list_dropped(options),
        person_column=getattr(options, "person_column", None),
        sheet=options.sheet,
        na_values=read_markers(options),
    )
    file.has_marks = True
    return file


def check_table(options: Namespace) -> None:
    """Raise ValueError for a table that does not exist, or of unknown format."""
    first, *others = list_given(options)
    check_suffix(first, sorted(FORMS))
    for other in others:
        check_suffix(other, (Path(first).suffix.lower(),))
    files = list_files(options.table)
    if not files:
        raise ValueError(f"There are no files {first}.")
    for file in files:
        check_input(file)
    of_csv: dict = {"sep": None, "encoding": "utf-8"}
    form = find_form(first)
    if form == "Parquet":
        _check_pyarrow()
        of_texts: dict = {**dict.fromkeys(_fields_of(PLAIN)), "na_values": []}
        _refuse_options(options, "a Parquet file", of_csv | of_texts)
    elif form != "CSV":
        _refuse_options(options, f"a file of {form}", of_csv)
    if options.sheet is not None and form != "Excel":
        raise ValueError(f"--sheet is for Excel files; got {first}.")
    with contextlib.suppress(LookupError):
        codecs.lookup(options.encoding)
        return
    raise ValueError(f"--encoding {options.encoding} is unknown; try utf-8, latin-1 or utf-16.")


def list_given(options: Namespace) -> list[str]:
    """Return the files, or patterns of files, of the table."""
    return [options.table] if isinstance(options.table, str) else options.table


def _refuse_options(options: Namespace, what: str, plain: Mapping) -> None:
    given = [name for name in plain if getattr(options, name, None) != plain[name]]
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ValueError(
            f"{names}: {list_given(options)[0]} is {what}, which needs no such option."
        )


def _check_pyarrow() -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install 'skdpgen[parquet]'.") from None


def read_sep(options: Namespace) -> str | None:
    """Return the separator of a CSV file, None to find it in the first line."""
    if options.sep is None:
        return None
    # Shells pass \\t as two characters.
    sep = {"\\t": "\t", "tab": "\t"}.get(options.sep, options.sep)
    # Letters, digits and quotes occur within cells.
    if len(sep) != 1 or sep.isalnum() or sep in "\"'\n\r":
        raise ValueError(f"--sep must be one character, as ';' or '\\t'; got {options.sep!r}.")
    return sep


def read_style(options: Namespace) -> TextStyle:
    """Return how numbers and dates are written."""
    decimal = PLAIN.decimal if options.decimal is None else options.decimal
    is_file = find_form(list_given(options)[0]) != "Parquet"
    return TextStyle(decimal, options.thousands, options.date_format, is_file=is_file)


def list_dropped(options: Namespace) -> list[str]:
    """Return the names of columns to leave out."""
    names = [name.strip() for given in options.drop for name in given.split(",")]
    return [name for name in names if name]


def list_markers(options: Namespace) -> list[str]:
    """Return what --na-values gives, and what was given for the look that wrote --schema."""
    is_parquet = find_form(list_given(options)[0]) == "Parquet"
    path = None if is_parquet else getattr(options, "schema", None)
    written = read_beside(path, "na_values") or []
    return [*options.na_values, *(given for given in written if isinstance(given, str))]


def read_markers(options: Namespace) -> dict:
    """Return the texts that mean a missing value, as `TableFile` takes them."""
    markers: dict = {}
    for given in list_markers(options):
        name, texts = split_marker(given)
        markers.setdefault(name, []).extend(text.strip() for text in texts.split(","))
    return markers


def split_marker(given: str) -> tuple[str | None, str]:
    """Return the column that a value of --na-values is about, None for all, and its texts."""
    name, separator, texts = given.rpartition("=")
    return name if separator else None, texts


def read_declared(options: Namespace, names: Iterable[str] = ()) -> tuple[dict, tuple]:
    """Return the declared columns, and rules of these and of others of a table, by their names."""
    if options.schema is None:
        return {}, ()
    dropped = list_dropped(options) if "drop" in options else []
    schema = read_schema(options.schema, [*names, *dropped])
    left = [name for name in schema if name not in dropped]
    if not left:
        return {}, schema.rules
    schema = schema.select(left)
    return {n: c for n, c in schema.items() if c != Unknown() or not names}, schema.rules


def read_schema(path: str, names: Iterable[str] = ()) -> Schema:
    """Return the schema in a file of any format of `Schema.from_metadata`.

    Rules of a schema of this library may be of further columns of a table, by their names.
    """
    with collected_warnings() as caught:
        document = load(Path(path))
        if not recognizes(document):
            return Schema.from_json(Path(path))
        if (own := find_own(document)) is not None:
            columns, rules = own[0], parse_rules(own[1])
            # A formula is of numbers; dates in it are to be declared.
            computed = {n for rule in rules if isinstance(rule, Derived) for n in rule.names}
            others = {n: Number(missing=True) if n in computed else Unknown() for n in names}
            return Schema({**others, **columns}, rules)
        schema = Schema.from_metadata(document)
    for message in caught:
        print_message(message)
    return schema


def read_styles(path: str | None) -> dict[str, TextStyle]:
    """Return how the columns of a schema that `look` or `synthesize` wrote are written."""
    texts = read_beside(path, "texts")
    with contextlib.suppress(AttributeError, TypeError, ValueError):
        return {name: TextStyle(**style, is_file=True) for name, style in (texts or {}).items()}
    return {}


def read_beside(path: str | None, name: str):
    """Return what `look` or `synthesize` wrote beside a schema, or None."""
    if path is None:
        return None
    with contextlib.suppress(ValueError):
        document = parse_json(read_file(path), path)
        return document.get(name) if isinstance(document, dict) and "schema" in document else None
    return None


def read_pairs(option: str, given: Iterable[str]) -> dict[str, str]:
    """Return what an option gives by names, as NAME=FILE."""
    pairs = {}
    for text in given:
        name, separator, file = text.partition("=")
        if not (separator and name and file) or name in pairs or "/" in name:
            raise ValueError(f"{option} must be NAME=FILE, with different names; got {text}.")
        pairs[name] = file
    return pairs


def read_rules(options: Namespace) -> tuple:
    """Return the rules across both tables, in the file of --rules."""
    if options.rules is None:
        return ()
    schema = read_schema(options.rules)
    if schema:
        raise ValueError(f'--rules must be a file of {{"rules": [...]}}; {options.rules} is none.')
    return schema.rules


def read_types(given: Iterable[str], style: TextStyle | None) -> dict:
    """Return the columns, or their dicts, that texts ``name=type`` or JSON files of these declare.

    Noisy counts check types of texts of a style. None: the file states types.
    """
    types: dict = {}
    for text in given:
        if "=" in text:
            name, _, column_type = text.rpartition("=")
            types[name.strip()] = column_type.strip()
        else:
            written = parse_json(read_file(text), f"--types {text}")
            if not isinstance(written, dict):
                raise ValueError(f'--types {text} must hold an object, as {{"age": "integer"}}.')
            types |= written
    return {name: _make_column(name, given, style) for name, given in types.items()}


def _make_column(name: str, given, style: TextStyle | None):
    if not isinstance(given, str):
        return given
    if style is not None and given in EXPECTED:
        return Unknown(**_fields_of(style) | {"expected": given})
    spec: dict = {"type": "number", "decimals": 0} if given == "integer" else {"type": given}
    if spec["type"] not in TYPES:
        raise ValueError(f"--types {name}={given}: a type must be one of {['integer', *TYPES]}.")
    # Cells of another type count as missing, as in columns whose types are inferred.
    if "missing" in [field.name for field in fields(TYPES[spec["type"]])]:
        spec["missing"] = True
    return spec


def _fields_of(style: TextStyle) -> dict:
    return {field.name: getattr(style, field.name) for field in fields(TextStyle)}
