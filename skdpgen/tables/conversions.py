# SPDX-License-Identifier: BSD-3-Clause
"""Schemas from, and as, JSON, metadata, public tables and dtypes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..accounting.strict_json import parse_json
from ..checks import read_file
from ..data.containers import as_array
from .columns.kinds import infer_public_column, kind_of_dtype

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, repr=False)
class ConvertibleSchema(Mapping):
    """Conversions of a `Schema`, whose parameters it has."""

    columns: Any = field(default_factory=dict)
    rules: Any = ()

    @classmethod
    def from_json(cls, path_or_text: str | PathLike) -> "Self":
        """Read a schema from a JSON file or a JSON text.

        Parameters
        ----------
        path_or_text : str or path
            The text, which begins with a brace, or the name of a UTF-8 file. It holds an object
            of objects, such as ``{"age": {"type": "number", "lower": 17, "upper": 90}}``; with
            rules, it is ``{"columns": {...}, "rules": [{"type": "unique", ...}, ...]}``, without
            ``"columns"`` if a generator infers all of them.

        Returns
        -------
        Schema

        Raises
        ------
        ValueError
            If the text is not JSON, names a column twice, or has an invalid description.
        """
        text = path_or_text
        if not (isinstance(text, str) and text.lstrip().startswith("{")):
            text = read_file(text)
        return cls(parse_json(text, "The schema"))

    @classmethod
    def from_metadata(
        cls,
        path_or_document: str | PathLike | Mapping,
        *,
        declared: Mapping | None = None,
        table: str | None = None,
    ) -> "Self":
        """Read a schema from public metadata in another format, recognized by its content.

        SDV metadata, Frictionless Table Schema and data packages, JSON Schema, definitions
        of tables in SQL (with ``pip install skdpgen[metadata]``), and schemas of this library are
        read. Bounds and categories that a document does not state are undeclared: a generator
        infers them, at a cost. Values may be missing unless the document excludes it.

        One warning names all constraints that a schema cannot express, such as patterns, lengths
        and foreign keys.

        Parameters
        ----------
        path_or_document : str, path or dict
            The document, its text, or the name of its file in UTF-8.
        declared : Schema or dict of str to column, default=None
            Columns to describe in this way instead. Rules of a schema are kept.
        table : str, default=None
            The table to read, if the document describes several.

        Returns
        -------
        Schema

        Raises
        ------
        ValueError
            If the format is unknown, the document describes several tables, or a column cannot be
            read.

        Examples
        --------
        >>> from skdpgen import Schema
        >>> Schema.from_metadata({"fields": [
        ...     {"name": "age", "type": "integer", "constraints": {"minimum": 18, "maximum": 90}},
        ...     {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}},
        ... ]})
        Schema({
            'age': Number(lower=18, upper=90, decimals=0, missing=True),
            'sex': Category(categories=('F', 'M'), missing=True),
        })
        """
        from ..metadata import load, read_metadata

        declared, rules = _split_declared(declared)
        return read_metadata(cls, load(path_or_document), declared, rules, table)

    @classmethod
    def from_public(
        cls, frame: pd.DataFrame, *, declared: Mapping | None = None, n_knots: int | None = None
    ) -> "Self":
        """Infer a schema from a PUBLIC table. Never pass private rows.

        The schema publishes the minimum and maximum of each numeric column, the categories that
        occur, and whether values are missing. Use a public sample, synthetic rows, or a hand-made
        table of extreme rows. **The privacy guarantee does not cover a schema that was inferred
        from private rows.**

        - Numbers get the bounds of the sample, and its decimals, up to 6; integers get 0 decimals.
        - Dates get the bounds of the sample, in days if all are at midnight, else in seconds.
        - Columns of categorical dtype get its categories, in order if they are ordered. Strings
          get the categories that occur, at most 100.
        - Values may be missing if some are.

        Parameters
        ----------
        frame : DataFrame
            The public table.
        declared : Schema or dict of str to Column, default=None
            Column types that replace inferred ones. Rules of a schema are kept.
        n_knots : int, default=None
            Number of knots of each undeclared number and date. None: as in `Number`.

        Returns
        -------
        Schema

        Raises
        ------
        ValueError
            If a column of the sample has a single number, no values, too many categories, or
            values of several types.

        Examples
        --------
        >>> import pandas as pd
        >>> from skdpgen import Schema
        >>> public = pd.DataFrame({"age": [17, 90], "sex": ["F", "M"]})
        >>> Schema.from_public(public)
        Schema({
            'age': Number(lower=17, upper=90, decimals=0),
            'sex': Category(categories=('F', 'M')),
        })
        """
        frame = as_array(frame)
        if not isinstance(frame, pd.DataFrame):
            raise ValueError(f"frame must be a DataFrame; got {type(frame).__name__}.")
        if not frame.columns.is_unique:
            raise ValueError("frame has several columns of the same name; rename them.")
        declared, rules = _split_declared(declared)
        unknown = [name for name in declared if name not in frame.columns]
        if unknown:
            raise ValueError(f"declared names columns that frame does not have: {unknown}.")
        return cls(
            {
                name: declared[name]
                if name in declared
                else infer_public_column(name, frame[name], n_knots)
                for name in frame.columns
            },
            rules,
        )

    @classmethod
    def from_dtypes(cls, dtypes: Mapping | pd.Series, *, declared: Mapping | None = None) -> "Self":
        """Return a schema of the dtypes of a private table; read no cell.

        Bounds and categories stay undeclared, also those of categorical dtypes, which are private
        data. A generator infers them at a cost. It also infers whether strings and objects are
        numbers, booleans, dates or categories, the decimals of numbers, and whether dates have
        times. Values may be missing if the dtype can hold missing values.

        Parameters
        ----------
        dtypes : Series or dict of str to dtype
            The dtype of each column, such as ``frame.dtypes``.
        declared : Schema or dict of str to Column, default=None
            Public column types that replace those of the dtypes. Rules of a schema are kept.

        Returns
        -------
        Schema

        Examples
        --------
        >>> import pandas as pd
        >>> from skdpgen import Number, Schema
        >>> private = pd.DataFrame({"age": [31, 52], "sex": ["F", "M"]})
        >>> Schema.from_dtypes(private.dtypes, declared={"age": Number(18, 90, decimals=0)})
        Schema({
            'age': Number(lower=18, upper=90, decimals=0),
            'sex': Unknown(),
        })
        """
        if not isinstance(dtypes, Mapping | pd.Series):
            raise TypeError(f"dtypes must be frame.dtypes or a dict; got {dtypes!r}.")
        kinds, rules = _split_declared(declared)
        found = {
            name: kinds[name] if name in kinds else kind_of_dtype(name, dtype)
            for name, dtype in dtypes.items()
        }
        return cls({**found, **kinds}, rules)

    def to_dict(self) -> dict:
        """Return the schema as a dict of dicts, without parameters at their defaults.

        Returns
        -------
        dict
        """
        columns = {name: kind.to_dict() for name, kind in self.columns}
        if not self.rules:
            return columns
        return {"columns": columns, "rules": [rule.to_dict() for rule in self.rules]}

    def to_json(self, path: str | PathLike | None = None) -> str:
        """Return the schema as JSON text, and write it to a file if a path is given.

        Parameters
        ----------
        path : str or path, default=None
            Name of the UTF-8 file.

        Returns
        -------
        str
        """
        # A line for each column, so that people can edit the file and see what changed.
        columns = [f"{_dump(n)}: {_dump(kind.to_dict())}" for n, kind in self.columns]
        if not self.rules:
            text = "{" + _write_lines(columns, "  ") + "\n}\n"
        else:
            columns = "{" + _write_lines(columns, "    ") + "\n  }"
            rules = "[" + _write_lines([_dump(r.to_dict()) for r in self.rules], "    ") + "\n  ]"
            text = f'{{\n  "columns": {columns},\n  "rules": {rules}\n}}\n'
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def to_metadata(self, path: str | PathLike | None = None, format: str = "frictionless") -> dict:
        """Return the schema as metadata in another format, and write it to a file if one is given.

        One warning names all that the format cannot express.

        Parameters
        ----------
        path : str or path, default=None
            Where to write it to, as JSON in UTF-8.
        format : {"frictionless", "sdv"}, default="frictionless"
            Frictionless Table Schema, or SDV metadata.

        Returns
        -------
        dict

        Examples
        --------
        >>> from skdpgen import Number, Schema
        >>> Schema({"age": Number(18, 90, decimals=0)}).to_metadata()["fields"]
        [{'name': 'age', 'type': 'integer',
          'constraints': {'required': True, 'minimum': 18, 'maximum': 90}}]
        """
        from ..metadata import WRITABLE, write_metadata

        document = write_metadata(type(self), self, format)
        if path in WRITABLE:
            raise ValueError(f"path names a format: write to_metadata(format={path!r}).")
        if path is not None:
            text = json.dumps(document, ensure_ascii=False, indent=2)
            Path(path).write_text(text + "\n", encoding="utf-8")
        return document


def _split_declared(declared):
    """Return declared column types, a dict, and rules."""
    if declared is None:
        return {}, ()
    if not isinstance(declared, Mapping):
        raise TypeError(f"declared must be a Schema or a dict of columns; got {declared!r}.")
    return dict(declared), getattr(declared, "rules", ())


def _dump(value):
    return json.dumps(value, ensure_ascii=False)


def _write_lines(lines, indent):
    return ",".join(f"\n{indent}{line}" for line in lines)
