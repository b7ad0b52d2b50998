# SPDX-License-Identifier: BSD-3-Clause
"""Schemas: the public description of a table."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from .._html import make_table
from ..accounting.strict_json import parse_json
from ..checks import read_file
from ..curator.containers import as_array
from .columns.base import check_list
from .columns.kinds import describe_public, kind_of_dtype, read_kind
from .metadata import load, read_metadata, write_metadata
from .rules.feasibility import check_together
from .rules.ordered import list_differences
from .rules.rules import Derived, parse_rules


@dataclass(frozen=True, repr=False)
class Schema(Mapping):
    """Public description of a table: names, types, bounds and levels of columns, and rules.

    Schemas are immutable and hashable mappings of names to column types. Declared bounds and levels
    must come from public knowledge, such as a codebook: those of private rows would leak.

    Parameters
    ----------
    columns : dict of str to Number, Category, Ordinal, Boolean, Date, Identifier, Unknown or dict
        The column types, in order. A dict holds the parameters of a type, and its name in lower
        case as ``"type"``. Without columns, a generator infers them, and ``rules`` hold for them.
    rules : list of Implies, Ordered, Derived, Unique, Combinations or dict, default=()
        Public constraints on all rows, which synthetic rows obey. A dict holds the parameters of a
        rule, and its name in lower case as ``"type"``.

    Attributes
    ----------
    columns : tuple of (str, Column)
    rules : tuple of Rule
    names : tuple of str
    open_names : tuple of str
        Names of the learned columns whose bounds or categories are not declared.
    derived_names : tuple of str
        Names of the columns that are computed, not learned.
    differences : dict of str to Ordered
        The orders whose differences are learned like columns, by the names of the differences.

    Raises
    ------
    ValueError
        If there are neither columns nor rules, a description is invalid, or no rows can obey the
        rules.

    Examples
    --------
    >>> from skdpgen import Category, Number, Schema
    >>> from skdpgen.tables import Implies
    >>> schema = Schema({
    ...     "age": Number(17, 90, decimals=0),
    ...     "sex": {"type": "category", "categories": ["F", "M"], "missing": True},
    ... })
    >>> schema
    Schema({
        'age': Number(lower=17, upper=90, decimals=0),
        'sex': Category(categories=('F', 'M'), missing=True),
    })
    >>> schema.names
    ('age', 'sex')
    >>> Schema.from_json(schema.to_json()) == schema
    True
    >>> Schema({"paid": {"type": "boolean"}, "price": Number(0, 9, missing=True)},
    ...        [Implies({"paid": False}, {"price": None})])
    Schema({
        'paid': Boolean(),
        'price': Number(lower=0, upper=9, missing=True),
    }, rules=[
        Implies(when={'paid': False}, then={'price': None}),
    ])
    """

    columns: Any = field(default_factory=dict)
    rules: Any = ()

    def __post_init__(self):
        if not isinstance(self.columns, Mapping):
            raise ValueError(
                "columns must be a dict of names to column types, such as {'age': Number(17, 90)}; "
                f"got {type(self.columns).__name__}."
            )
        columns, rules = self.columns, self.rules
        if set(columns) == {"columns", "rules"} and isinstance(columns["rules"], list):
            # The output of `to_dict`: no column type is a list.
            columns, rules = columns["columns"], [*columns["rules"], *rules]
        columns = tuple((name, read_kind(name, kind)) for name, kind in columns.items())
        kinds = dict(columns)
        # Rules alone are for columns that a generator infers.
        rules = parse_rules(rules, kinds or None)
        if not columns and not rules:
            raise ValueError("A schema needs at least one column, or a rule.")
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "rules", rules)
        if columns:
            check_together(rules, kinds)
        found = list_differences(rules, kinds) if columns else {}
        object.__setattr__(self, "_orders", {name: rule for name, (rule, _) in found.items()})
        object.__setattr__(self, "_kinds", kinds | {n: kind for n, (_, kind) in found.items()})

    @classmethod
    def from_json(cls, path_or_text: str | PathLike) -> "Schema":
        """Read a schema from a JSON file or a JSON text.

        Parameters
        ----------
        path_or_text : str or path
            The text, which begins with a brace, or the name of a UTF-8 file. It holds an object
            of objects, such as ``{"age": {"type": "number", "lower": 17, "upper": 90}}``; with
            rules, it is ``{"columns": {...}, "rules": [{"type": "unique", ...}, ...]}``.

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
    ) -> "Schema":
        """Read a schema from public metadata in another format, recognized by its content.

        SDV metadata, Frictionless Table Schema and data packages, CSVW, Croissant, JSON Schema,
        definitions of tables in SQL (with ``pip install skdpgen[metadata]``), and schemas of this
        library are read. Bounds and categories that a document does not state are undeclared: a
        generator infers them, at a cost. Values may be missing unless the document excludes it.

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
        declared, rules = _split_declared(declared)
        return read_metadata(cls, load(path_or_document), declared, rules, table)

    @classmethod
    def from_public(
        cls, frame: pd.DataFrame, *, declared: Mapping | None = None, n_knots: int | None = None
    ) -> "Schema":
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
                else describe_public(name, frame[name], n_knots)
                for name in frame.columns
            },
            rules,
        )

    @classmethod
    def from_dtypes(
        cls, dtypes: Mapping | pd.Series, *, declared: Mapping | None = None
    ) -> "Schema":
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
        document = write_metadata(Schema, self, format)
        if path is not None:
            text = json.dumps(document, ensure_ascii=False, indent=2)
            Path(path).write_text(text + "\n", encoding="utf-8")
        return document

    def select(self, names: Iterable[str]) -> "Schema":
        """Return the schema of some columns, and of the rules that apply to them.

        Implications and lists of combinations are restricted to the selected columns. Other rules
        are dropped unless all of their columns are selected.

        Parameters
        ----------
        names : str or list of str
            Names of the columns, in the order of the result.

        Returns
        -------
        Schema

        Raises
        ------
        KeyError
            If there is no such column.
        ValueError
            If an operand of a selected derived column is not selected.
        """
        columns = {name: self[name] for name in _list_names(names)}
        rules = (rule.restrict(columns) for rule in self.rules)
        return Schema(columns, [rule for rule in rules if rule is not None])

    def drop(self, names: Iterable[str]) -> "Schema":
        """Return the schema without some columns; `select` describes the rules.

        Parameters
        ----------
        names : str or list of str
            Names of the columns to drop.

        Returns
        -------
        Schema

        Raises
        ------
        KeyError
            If there is no such column.
        ValueError
            If an operand of a remaining derived column is dropped.
        """
        dropped = {name: self[name] for name in _list_names(names)}
        return self.select([name for name in self if name not in dropped])

    def replace(self, kinds: Mapping) -> "Schema":
        """Return the schema with some column types replaced, and the same rules.

        Parameters
        ----------
        kinds : dict of str to Column
            By name of the column, or of the difference.

        Returns
        -------
        Schema
        """
        names = {rule: name for name, rule in self.differences.items() if name in kinds}
        rules = [
            replace(rule, difference=kinds[names[rule]]) if rule in names else rule
            for rule in self.rules
        ]
        columns = {name: kind for name, kind in kinds.items() if name not in self.differences}
        return Schema({**self, **columns}, rules)

    def with_even_knots(self) -> "Schema":
        """Return the schema with evenly spaced knots in place of knots that a generator infers.

        Returns
        -------
        Schema

        Examples
        --------
        >>> from skdpgen import Number, Schema
        >>> Schema({"age": Number(18, 90)}).with_even_knots()
        Schema({
            'age': Number(lower=18, upper=90, scale='linear'),
        })
        """
        return self.replace(
            {name: kind.with_even_knots() for name, kind in self.columns if kind.takes_knots}
        )

    def share_obeying(self, table: pd.DataFrame) -> pd.Series:
        """Return the share of the rows of a table that obey each rule.

        Parameters
        ----------
        table : DataFrame
            Synthetic or public rows. **The shares of private rows are private, too.**

        Returns
        -------
        Series
            Indexed by the rules.
        """
        values = {n: self[n].to_values(table[n]) for rule in self.rules for n in rule.names}
        shares = [rule.bind(self)(values).mean() for rule in self.rules]
        return pd.Series(shares, index=pd.Index(self.rules, dtype=object, tupleize_cols=False))

    @property
    def names(self):
        """Names of the columns, in order."""
        return tuple(name for name, _ in self.columns)

    @property
    def open_names(self):
        """Names of the learned columns whose bounds or categories are not declared."""
        return tuple(name for name, kind in self.learnt.items() if kind.is_open)

    @property
    def derived_names(self):
        """Names of the columns that are computed, not learned."""
        return tuple(rule.column for rule in self.rules if isinstance(rule, Derived))

    @property
    def differences(self):
        """The orders whose differences are learned like columns, by the names of these."""
        return self._orders

    @property
    def learnt(self):
        """Types of the learned columns and differences by name; other columns are made."""
        derived = self.derived_names
        return {
            name: kind
            for name, kind in self._kinds.items()
            if name not in derived and not kind.is_generated
        }

    def add_differences(self, table):
        """Return a table of cells with the learned differences of its columns."""
        found = {name: rule.subtract(table, self) for name, rule in self.differences.items()}
        return table.assign(**found) if found else table

    def __getitem__(self, name):
        try:
            return self._kinds[name]
        except (KeyError, TypeError):  # TypeError: not hashable
            raise KeyError(f"no column {name!r} among {list(self.names)}") from None

    def __iter__(self):
        return iter(self.names)

    def __len__(self):
        return len(self.columns)

    def _repr_html_(self):
        rows = ((n, type(kind).__name__, _show_parameters(kind)) for n, kind in self.columns)
        head = ["Column", "Kind", "Public facts"]
        return make_table("Schema", head, rows, map(repr, self.rules), "Rules")

    def __repr__(self):
        lines = "".join(f"    {name!r}: {kind!r},\n" for name, kind in self.columns)
        rules = "".join(f"    {rule!r},\n" for rule in self.rules)
        return f"Schema({{\n{lines}}}{f', rules=[{chr(10)}{rules}]' if rules else ''})"


def _split_declared(declared):
    """Return declared column types, a dict, and rules."""
    if declared is None:
        return {}, ()
    if not isinstance(declared, Mapping):
        raise TypeError(f"declared must be a Schema or a dict of columns; got {declared!r}.")
    return dict(declared), getattr(declared, "rules", ())


def _show_parameters(kind):
    """Return the parameters in the repr of a column type."""
    return repr(kind).removeprefix(type(kind).__name__)[1:-1]


def _dump(value):
    return json.dumps(value, ensure_ascii=False)


def _write_lines(lines, indent):
    return ",".join(f"\n{indent}{line}" for line in lines)


def _list_names(names):
    return [names] if isinstance(names, str) else list(check_list("names", names))
