# SPDX-License-Identifier: BSD-3-Clause
"""Schemas: the public description of a table, and its conversions."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from ..accounting.strict_json import parse_json
from ..checks import read_file
from ..data.containers import adapt, as_array
from ..data.dtypes import check_dtype, read_dtype
from ..data.texts import is_writable
from ..registry import savable
from .columns import TYPES, Category
from .declaration import check_list, explain, parse
from .rules.ordered import list_differences
from .rules.rules import RULES, Derived, parse_rules, split_document

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, repr=False)
@savable
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
    columns : tuple of (str, ColumnType)
    rules : tuple of Rule
    names : tuple of str
    undeclared : tuple of str
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

    _rule_types: ClassVar[Mapping] = RULES
    # Dates of which differences are learned in their place; see `JoinedSchema`.
    dates: ClassVar = ()

    def __post_init__(self):
        if not isinstance(self.columns, Mapping):
            raise ValueError(
                "columns must be a dict of names to column types, such as {'age': Number(17, 90)}; "
                f"got {type(self.columns).__name__}."
            )
        columns, rules = split_document(self.columns)
        rules = [*rules, *self.rules] if rules else self.rules
        columns = tuple((name, _parse_column(name, column)) for name, column in columns.items())
        types = dict(columns)
        # Rules alone are for columns that a generator infers.
        rules = parse_rules(rules, types or None, self._rule_types)
        if not columns and not rules:
            raise ValueError("A schema needs at least one column, or a rule.")
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "rules", rules)
        if columns and rules:
            from .rules.feasibility import check_together  # most schemas have no rules

            check_together(rules, types)
        found = self._list_differences(types) if columns else {}
        object.__setattr__(self, "_orders", {name: rule for name, (rule, _) in found.items()})
        object.__setattr__(self, "_types", self._arrange(types, found))

    def _list_differences(self, types):
        return list_differences(self.rules, types)

    def _arrange(self, types, found):
        """Return the types of columns and differences, in the order of their weights."""
        return types | {name: column for name, (_, column) in found.items()}

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
        declared = {name: _parse_column(name, column) for name, column in declared.items()}
        columns, found = read_metadata(load(path_or_document), declared, table)
        return cls(columns, [*found, *rules])

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
        declared : Schema or dict of str to ColumnType, default=None
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
        from .public_tables import read_public

        frame = as_array(frame)
        if not isinstance(frame, pd.DataFrame):
            raise ValueError(f"frame must be a DataFrame; got {type(frame).__name__}.")
        if not frame.columns.is_unique:
            raise ValueError("frame has several columns of the same name; rename them.")
        declared, rules = _split_declared(declared)
        unknown = [name for name in declared if name not in frame.columns]
        if unknown:
            raise ValueError(f"declared names columns that frame does not have: {unknown}.")
        left = read_public(frame[[name for name in frame.columns if name not in declared]])
        found = {name: _of_public(name, column, n_knots) for name, column in left.items()}
        columns = {**dict.fromkeys(frame.columns), **found, **declared}
        return cls(columns, rules)

    @classmethod
    def from_dtypes(
        cls, dtypes: Mapping | pd.Series, *, declared: Mapping | None = None, rules: Iterable = ()
    ) -> "Self":
        """Return a schema of the dtypes of a private table; read no cell.

        Bounds and categories stay undeclared, also those of categorical dtypes, which are private
        data. A generator infers them at a cost. It also infers whether strings and objects are
        numbers, booleans, dates or categories, the decimals of numbers, and whether dates have
        times. Values may be missing if the dtype can hold missing values.

        Parameters
        ----------
        dtypes : Series or dict of str to dtype
            The dtype of each column, such as ``frame.dtypes``.
        declared : Schema or dict of str to ColumnType, default=None
            Public column types that replace those of the dtypes. Rules of a schema are kept.
        rules : sequence of rule, default=()
            Further rules, of columns of the dtypes.

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
            raise TypeError(f"dtypes must be frame.dtypes or a dict; got {type(dtypes).__name__}.")
        columns, others = _split_declared(declared)
        found = {name: _of_dtype(name, t) for name, t in dtypes.items() if name not in columns}
        return cls({**dict.fromkeys(dtypes.keys()), **found, **columns}, (*others, *rules))

    def to_dict(self) -> dict:
        """Return the schema as a dict of dicts, without parameters at their defaults.

        Returns
        -------
        dict
        """
        columns = {name: column.to_dict() for name, column in self.columns}
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
        columns = [f"{_dump(n)}: {_dump(column.to_dict())}" for n, column in self.columns]
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

        document = write_metadata(self, format)
        if path in WRITABLE:
            raise ValueError(f"path names a format: write to_metadata(format={path!r}).")
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
        return type(self)(columns, [rule for rule in rules if rule is not None])

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

    def replace(self, columns: Mapping) -> "Schema":
        """Return the schema with some column types replaced, and the same rules.

        Parameters
        ----------
        columns : dict of str to ColumnTypeType
            By name of the column, or of the difference.

        Returns
        -------
        Schema
        """
        # A difference has no column: its type is that of the rule.
        names = {rule: name for name, rule in self.differences.items() if name in columns}
        rules = [
            replace(rule, difference=columns[names[rule]]) if rule in names else rule
            for rule in self.rules
        ]
        own = {name: column for name, column in columns.items() if name not in self.differences}
        return type(self)({**self, **own}, rules)

    def of_texts(self, names: Iterable[str]) -> "Schema":
        """Return the schema of a table in which some columns hold texts.

        Parameters
        ----------
        names : iterable of str
            Names of columns.

        Returns
        -------
        Schema
        """
        columns = {name: self[name].of_texts() for name in names}
        found = {name: column for name, column in columns.items() if column != self[name]}
        return self.replace(found) if found else self

    def resolves(self, declared: "Schema") -> bool:
        """Return whether another schema declares nothing else than this one, which may infer more.

        Parameters
        ----------
        declared : Schema
            Rules alone are those of any columns.

        Returns
        -------
        bool
        """
        # The types of differences of dates may be inferred.
        ours, theirs = (
            {replace(r, difference=None) if hasattr(r, "difference") else r for r in schema.rules}
            for schema in (self, declared)
        )
        has_all = not len(declared) or set(self.names) == set(declared.names)
        return has_all and ours == theirs and all(self[n].resolves(k) for n, k in declared.columns)

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
            {name: column.with_even_knots() for name, column in self.columns if column.takes_knots}
        )

    def conform(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return rows within the schema, as synthetic rows are.

        Numbers and dates beyond the bounds are put at the next bound, and categories that are not
        listed become `other`. A model that learnt from synthetic rows is to see real rows so: of
        rare categories and far values, it knows nothing else.

        Parameters
        ----------
        table : DataFrame
            Some or all columns of the schema, in a frame of any library and in the types that
            synthetic rows have; numbers and dates are not read from texts. Other columns stay.

        Returns
        -------
        DataFrame
            A frame of the same library.

        Raises
        ------
        ValueError
            If the schema leaves bounds or categories open.

        Examples
        --------
        >>> import pandas as pd
        >>> from skdpgen import Category, Number, Schema
        >>> age, job = Number(0, 90, decimals=0), Category(["nurse"], other="other")
        >>> schema = Schema({"age": age, "job": job})
        >>> schema.conform(pd.DataFrame({"age": [30, 99], "job": ["pilot", "nurse"]}))
           age    job
        0   30  other
        1   90  nurse
        """
        check_resolved(self)
        if not isinstance(table, pd.DataFrame):
            cells, container, _ = adapt(table)
            return container.give(self.conform(cells))
        found = {name: self[name].conform(table[name]) for name in self if name in table}
        return table.assign(**found)

    def share_obeying(self, table: pd.DataFrame) -> pd.Series:
        """Return the share of the rows of a table that obey each rule.

        Parameters
        ----------
        table : DataFrame
            Synthetic or public rows, of pandas or another library. **The shares of private rows are
            private, too.**

        Returns
        -------
        Series
            Indexed by the rules.
        """
        cells: Any = adapt(table).data
        values = {n: self[n].to_values(cells[n]) for rule in self.rules for n in rule.names}
        shares = [rule.bind(self)(values).mean() for rule in self.rules]
        return pd.Series(shares, index=pd.Index(self.rules, dtype=object, tupleize_cols=False))

    @property
    def names(self):
        """Names of the columns, in order."""
        return tuple(name for name, _ in self.columns)

    @property
    def undeclared(self):
        """Names of the learned columns whose bounds or categories are not declared."""
        return tuple(name for name, column in self.learned.items() if column.is_open)

    @property
    def derived_names(self):
        """Names of the columns that are computed, not learned."""
        return tuple(rule.column for rule in self.rules if isinstance(rule, Derived))

    @property
    def differences(self):
        """The orders whose differences are learned like columns, by the names of these."""
        return self._orders

    def list_advice(self):
        """Return how to declare each column that is learned but is none of the table, by name."""
        return {
            name: "declare Ordered({!r}, {!r}, difference=Number(0, 30, decimals=0))".format(
                *rule.names
            )
            for name, rule in self.differences.items()
        }

    @property
    def learned(self):
        """Types of the learned columns and differences by name; other columns are made."""
        derived = self.derived_names
        return {
            name: column
            for name, column in self._types.items()
            if name not in derived and not column.is_generated
        }

    def add_differences(self, table):
        """Return a table of cells with the learned differences of its columns."""
        found = {name: rule.subtract(table, self) for name, rule in self.differences.items()}
        return table.assign(**found) if found else table

    def __getitem__(self, name):
        try:
            return self._types[name]
        except (KeyError, TypeError):  # TypeError: not hashable
            raise KeyError(f"no column {name!r} among {list(self.names)}") from None

    def __iter__(self):
        return iter(self.names)

    def __len__(self):
        return len(self.columns)

    def _repr_html_(self):
        from .._html import make_table

        types = ((name, type(column).__name__, repr(column)) for name, column in self.columns)
        rows = ((name, text, shown[len(text) + 1 : -1]) for name, text, shown in types)
        head = ["Column", "Type", "Public facts"]
        return make_table("Schema", head, rows, map(repr, self.rules), "Rules")

    def __repr__(self):
        lines = "".join(f"    {name!r}: {column!r},\n" for name, column in self.columns)
        rules = "".join(f"    {rule!r},\n" for rule in self.rules)
        return f"Schema({{\n{lines}}}{f', rules=[{chr(10)}{rules}]' if rules else ''})"


def check_resolved(schema):
    """Raise an error if a schema does not declare all bounds and categories."""
    if schema.undeclared:
        raise ValueError(
            f"The schema does not declare the bounds or categories of {list(schema.undeclared)}. "
            "Declare them, as Number(lower, upper) or Category([...]), from public knowledge; or "
            "pass the schema to a generator, which infers them at a cost."
        )


def _parse_column(name, given):
    """Return the column that a schema declares, and name it in errors."""
    if not isinstance(name, str) or not name or not is_writable(name):
        raise ValueError(
            f"Names of columns must be non-empty strings; got {name!r}. Rename it, as with "
            "X.columns = X.columns.map(str)."
        )
    return explain(partial(parse, given, TYPES), f"Column {name!r}")


def _of_dtype(name, dtype):
    """Return the undeclared column that the dtype of a column shows."""
    check_dtype(dtype, f"Column {name!r}", f"X[{name!r}]")
    dtype = read_dtype(dtype)
    missing = not (isinstance(dtype, np.dtype) and dtype.kind in "biu")
    found = (cls.of_dtype(dtype, missing) for cls in TYPES.values())
    return next((column for column in found if column is not None), Category(missing=missing))


def _of_public(name, column, n_knots):
    """Return the column that describes one of a public table."""
    missing = bool(column.isna().any())

    def describe():
        for cls in TYPES.values():
            found = cls.of_public(column, missing, n_knots)
            if found is not None:
                return found
        raise ValueError(f"its values, of dtype {column.dtype}, are of no type or of several.")

    remedy = "Drop it (--drop), or declare it with declared={...}."
    return explain(describe, f"Column {name!r} cannot be described from the sample", remedy)


def _list_names(names):
    return [names] if isinstance(names, str) else list(check_list("names", names))


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
