# SPDX-License-Identifier: BSD-3-Clause
"""Schemas: the public description of a table."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
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
from .rules.feasibility import check_together
from .rules.rules import Derived, read_rules


@dataclass(frozen=True, repr=False)
class Schema(Mapping):
    """Public description of a table: names, types, bounds and levels of columns, and rules.

    Schemas do not change; they can be compared, hashed and pickled, and used as a mapping of names
    to kinds. Bounds and levels have to be known from elsewhere, such as a codebook: those that
    were found in private rows would publish something about them.

    Parameters
    ----------
    columns : dict of str to Number, Category, Ordinal, Boolean, Date, Identifier, Unknown or dict
        The kind of each column, in order. A dict holds its parameters, and as ``"type"`` its name
        in lower case.
    rules : list of Implies, Ordered, Derived, Unique, Combinations or dict, default=()
        What is known of all rows, and what synthetic rows obey. A dict holds the parameters of a
        rule, and as ``"type"`` its name in lower case.

    Attributes
    ----------
    columns : tuple of (str, kind)
    rules : tuple of Rule
    names : tuple of str
    open_names : tuple of str
        Names of the columns that are learnt whose bounds or categories are not known.
    derived_names : tuple of str
        Names of the columns that are computed, and not learnt.

    Raises
    ------
    ValueError
        If there are no columns, one is not described as it should be, or rules cannot be obeyed.

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

    columns: Any
    rules: Any = ()

    def __post_init__(self):
        if not isinstance(self.columns, Mapping):
            raise ValueError(
                "columns must be a dict of names to kinds, such as {'age': Number(17, 90)}; got "
                f"{type(self.columns).__name__}."
            )
        columns, rules = self.columns, self.rules
        if set(columns) == {"columns", "rules"} and isinstance(columns["rules"], list):
            # As `to_dict` writes it; no kind is a list.
            columns, rules = columns["columns"], [*columns["rules"], *rules]
        if not columns:
            raise ValueError("A schema needs at least one column.")
        columns = tuple((name, read_kind(name, kind)) for name, kind in columns.items())
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "_kinds", dict(columns))
        object.__setattr__(self, "rules", read_rules(rules, self._kinds))
        check_together(self.rules, self._kinds)

    @classmethod
    def from_json(cls, path_or_text: str | PathLike) -> "Schema":
        """Read a schema from a JSON file or a JSON text.

        Parameters
        ----------
        path_or_text : str or path
            The text, which begins with a brace, or the name of a file in UTF-8. It holds an object
            of objects, such as ``{"age": {"type": "number", "lower": 17, "upper": 90}}``; with
            rules, it is ``{"columns": {...}, "rules": [{"type": "unique", ...}, ...]}``.

        Returns
        -------
        Schema

        Raises
        ------
        ValueError
            If it is not JSON, names a column twice, or describes one as it should not.
        """
        text = path_or_text
        if not (isinstance(text, str) and text.lstrip().startswith("{")):
            text = read_file(text)
        return cls(parse_json(text, "The schema"))

    @classmethod
    def from_public(
        cls, frame: pd.DataFrame, *, declared: Mapping | None = None, n_knots: int | None = None
    ) -> "Schema":
        """Describe the columns of a PUBLIC table. Never give it private rows.

        The schema publishes what it finds: the smallest and largest values of a column, which
        categories occur, and whether values are missing. Use a public sample, synthetic rows, or
        a hand-made table of extreme rows. **The guarantee does not cover a schema that was made
        from private rows.**

        - Numbers get the bounds of the sample, and the decimals that are seen, up to 6: integers
          are whole numbers.
        - Dates get the bounds of the sample, by day if all are at midnight, else by second.
        - Columns of categorical dtype get their categories, in order if they are ordered. Strings
          get those that occur, of which there are at most 100.
        - Values may be missing where some are.

        Parameters
        ----------
        frame : DataFrame
            The public table.
        declared : Schema or dict of str to kind, default=None
            Columns to describe in this way instead. Rules of a schema are kept.
        n_knots : int, default=None
            Number of knots of each number and date that is not declared. None: as in `Number`.

        Returns
        -------
        Schema

        Raises
        ------
        ValueError
            If a column cannot be described from the sample, as it has one number only, no
            values, too many, or of several types.

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
        """Declare the columns of a private table by their dtypes alone; no cell is looked at.

        Bounds and categories are left open, those of categorical dtypes too: in a private table
        they are data. A generator that is given the schema pays for finding them. For strings and
        objects it also infers whether they are numbers, booleans, dates or categories; for numbers,
        how many decimals they have; and for dates, whether they have times. Values may be missing
        wherever the dtype can hold such.

        Parameters
        ----------
        dtypes : Series or dict of str to dtype
            Of each column, such as ``frame.dtypes``.
        declared : Schema or dict, default=None
            Kinds of columns of which more is public. Rules of a schema are kept.

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
            raise TypeError(f"dtypes must be those of a frame, or a dict; got {dtypes!r}.")
        kinds, rules = _split_declared(declared)
        found = {
            name: kinds[name] if name in kinds else kind_of_dtype(name, dtype)
            for name, dtype in dtypes.items()
        }
        return cls({**found, **kinds}, rules)

    def to_dict(self) -> dict:
        """Return the schema as a dict of dicts, without what is at its default.

        Returns
        -------
        dict
        """
        columns = {name: kind.to_dict() for name, kind in self.columns}
        if not self.rules:
            return columns
        return {"columns": columns, "rules": [rule.to_dict() for rule in self.rules]}

    def to_json(self, path: str | PathLike | None = None) -> str:
        """Return the schema as JSON text, and write it to a file if one is given.

        Parameters
        ----------
        path : str or path, default=None
            Where to write it to, in UTF-8.

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

    def select(self, names: Iterable[str]) -> "Schema":
        """Return the schema of some columns, with what rules say of these.

        An implication or a list of combinations is shortened to the columns that are left. A rule
        of which nothing is left is gone.

        Parameters
        ----------
        names : str or list of str
            Their names, in the order wanted.

        Returns
        -------
        Schema

        Raises
        ------
        KeyError
            If there is no such column.
        ValueError
            If a column is derived from one that is left out.
        """
        columns = {name: self[name] for name in _list_names(names)}
        rules = (rule.restrict(columns) for rule in self.rules)
        return Schema(columns, [rule for rule in rules if rule is not None])

    def drop(self, names: Iterable[str]) -> "Schema":
        """Return the schema without some columns; rules are as in `select`.

        Parameters
        ----------
        names : str or list of str
            Their names.

        Returns
        -------
        Schema

        Raises
        ------
        KeyError
            If there is no such column.
        ValueError
            If a column is derived from one that is dropped, and is not dropped.
        """
        dropped = {name: self[name] for name in _list_names(names)}
        return self.select([name for name in self if name not in dropped])

    def replace(self, kinds: Mapping) -> "Schema":
        """Return the schema with other kinds of some columns, and the same rules.

        Parameters
        ----------
        kinds : dict of str to kind

        Returns
        -------
        Schema
        """
        return Schema({**self, **kinds}, self.rules)

    def with_even_knots(self) -> "Schema":
        """Return the schema with even knots where a generator would find and pay for some.

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
            {name: replace(kind, scale="linear") for name, kind in self.columns if kind.takes_knots}
        )

    def share_obeying(self, table: pd.DataFrame) -> pd.Series:
        """Return which share of the rows of a table obeys each rule.

        Parameters
        ----------
        table : DataFrame
            Synthetic or public rows. **Of private rows, the shares are private, too.**

        Returns
        -------
        Series
            By the rules.
        """
        kinds = dict(self.columns)
        values = {
            name: kinds[name].to_values(table[name]) for rule in self.rules for name in rule.names
        }
        shares = [rule.bind(kinds)(values).mean() for rule in self.rules]
        return pd.Series(shares, index=pd.Index(self.rules, dtype=object, tupleize_cols=False))

    @property
    def names(self):
        """Names of the columns, in order."""
        return tuple(name for name, _ in self.columns)

    @property
    def open_names(self):
        """Names of the columns whose bounds or categories are not known."""
        derived = self.derived_names
        return tuple(name for name, kind in self.columns if kind.is_open and name not in derived)

    @property
    def derived_names(self):
        """Names of the columns that are computed, and not learnt."""
        return tuple(rule.column for rule in self.rules if isinstance(rule, Derived))

    @property
    def learnt(self):
        """Names and kinds of the columns that are learnt: none that are computed or made up."""
        made = self.derived_names
        return {
            name: kind for name, kind in self.columns if name not in made and not kind.is_generated
        }

    def __getitem__(self, name):
        try:
            return self._kinds[name]
        except (KeyError, TypeError):  # what cannot be hashed is no name either
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
    """Return what is declared of columns, a dict, and the rules."""
    if declared is None:
        return {}, ()
    if not isinstance(declared, Mapping):
        raise TypeError(f"declared must be a Schema or a dict of columns; got {declared!r}.")
    return dict(declared), getattr(declared, "rules", ())


def _show_parameters(kind):
    """Return the parameters of a kind, as its repr has them."""
    return repr(kind).removeprefix(type(kind).__name__)[1:-1]


def _dump(value):
    return json.dumps(value, ensure_ascii=False)


def _write_lines(lines, indent):
    return ",".join(f"\n{indent}{line}" for line in lines)


def _list_names(names):
    return [names] if isinstance(names, str) else list(check_list("names", names))
