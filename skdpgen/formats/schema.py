"""A schema: the public kinds of all columns of a table."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api.types import (
    infer_dtype,
    is_bool_dtype,
    is_datetime64_any_dtype,
    is_integer_dtype,
    is_numeric_dtype,
    is_object_dtype,
)

from .._html import make_table
from .cells import read_dates, read_numbers
from .column import find_repeated
from .columns import MAX_UNITS, Boolean, Category, Date, Number, Ordinal, Unknown
from .identifiers import Identifier

# A public sample with more different values than this holds names or texts rather than categories.
_MAX_INFERRED = 100
_KINDS = {
    kind.__name__.lower(): kind
    for kind in (Number, Category, Ordinal, Boolean, Date, Identifier, Unknown)
}


@dataclass(frozen=True, repr=False)
class Schema(Mapping):
    """What is public about the columns of a table: their names, kinds, bounds and levels.

    Schemas do not change; they can be compared, hashed and pickled, and used as a mapping of names
    to kinds. Bounds and levels have to be known from elsewhere, such as a codebook: those that
    were found in private rows would publish something about them.

    Parameters
    ----------
    columns : dict of str to Number, Category, Ordinal, Boolean, Date, Identifier, Unknown or dict
        The kind of each column, in order. A dict holds its parameters, and as ``"type"`` its name
        in lower case.

    Attributes
    ----------
    columns : tuple of (str, kind)
    names : tuple of str
    open_names : tuple of str
        Names of the columns whose bounds or categories are not known.

    Raises
    ------
    ValueError
        If there are no columns, or one is not described as it should be.

    Examples
    --------
    >>> from skdpgen import Category, Number, Schema
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
    """

    columns: tuple

    def __post_init__(self):
        if not isinstance(self.columns, Mapping):
            raise ValueError(
                "columns must be a dict of names to kinds, such as {'age': Number(17, 90)}; got "
                f"{type(self.columns).__name__}."
            )
        if not self.columns:
            raise ValueError("A schema needs at least one column.")
        columns = tuple((name, _read_kind(name, kind)) for name, kind in self.columns.items())
        object.__setattr__(self, "columns", columns)

    @classmethod
    def from_json(cls, path_or_text):
        """Read a schema from a JSON file or a JSON text.

        Parameters
        ----------
        path_or_text : str or path
            The text, which begins with a brace, or the name of a file in UTF-8. It holds an object
            of objects, such as ``{"age": {"type": "number", "lower": 17, "upper": 90}}``.

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
            text = Path(text).read_text(encoding="utf-8")
        try:
            columns = json.loads(text, object_pairs_hook=_dict_of_distinct)
        except json.JSONDecodeError as error:
            raise ValueError(f"The schema is not valid JSON: {error}.") from None
        return cls(columns)

    @classmethod
    def from_public(cls, frame, *, declared=None, n_knots=None):
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
        declared : dict of str to kind, default=None
            Columns to describe in this way instead; see `Schema`.
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
        if not isinstance(frame, pd.DataFrame):
            raise ValueError(f"frame must be a DataFrame; got {type(frame).__name__}.")
        if not frame.columns.is_unique:
            raise ValueError("frame has several columns of the same name; rename them.")
        declared = dict(declared or {})
        unknown = [name for name in declared if name not in frame.columns]
        if unknown:
            raise ValueError(f"declared names columns that frame does not have: {unknown}.")
        return cls(
            {
                name: declared[name] if name in declared else _describe(name, frame[name], n_knots)
                for name in frame.columns
            }
        )

    @classmethod
    def from_dtypes(cls, dtypes, *, declared=None):
        """Declare the columns of a private table by their dtypes alone; no cell is looked at.

        Bounds and categories are left open, those of categorical dtypes too: in a private table
        they are data. A generator that is given the schema pays for finding them. Of strings and
        objects it also finds whether they are numbers, booleans, dates or categories; of numbers,
        how many decimals they have; and of dates, whether they have times. Values may be missing
        wherever the dtype can hold such.

        Parameters
        ----------
        dtypes : Series or dict of str to dtype
            Of each column, such as ``frame.dtypes``.
        declared : Schema or dict, default=None
            Kinds of columns of which more is public.

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
        kinds = {name: _kind_of_dtype(dtype) for name, dtype in dtypes.items()}
        return cls({**kinds, **(declared or {})})

    def to_dict(self):
        """Return the schema as a dict of dicts, without what is at its default.

        Returns
        -------
        dict
        """
        return {name: kind.to_dict() for name, kind in self.columns}

    def to_json(self, path=None):
        """Return the schema as JSON text, and write it to a file if one is given.

        Parameters
        ----------
        path : str or path, default=None
            Where to write it to, in UTF-8.

        Returns
        -------
        str
        """
        lines = [
            f"  {json.dumps(name, ensure_ascii=False)}: {json.dumps(kind, ensure_ascii=False)}"
            for name, kind in self.to_dict().items()
        ]
        text = "{\n" + ",\n".join(lines) + "\n}\n"
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def select(self, names):
        """Return the schema of some columns.

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
        """
        return Schema({name: self[name] for name in _list_names(names)})

    def drop(self, names):
        """Return the schema without some columns.

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
        """
        dropped = self.select(names)
        return Schema({name: kind for name, kind in self.columns if name not in dropped})

    def with_even_knots(self):
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
        return Schema(
            {
                name: replace(kind, scale="linear") if kind.takes_knots else kind
                for name, kind in self.columns
            }
        )

    @property
    def names(self):
        """Names of the columns, in order."""
        return tuple(name for name, _ in self.columns)

    @property
    def open_names(self):
        """Names of the columns whose bounds or categories are not known."""
        return tuple(name for name, kind in self.columns if kind.is_open)

    def __getitem__(self, name):
        for known, kind in self.columns:
            if known == name:
                return kind
        raise KeyError(f"no column {name!r} among {list(self.names)}")

    def __iter__(self):
        return iter(self.names)

    def __len__(self):
        return len(self.columns)

    def _repr_html_(self):
        rows = ((n, type(kind).__name__, _show_parameters(kind)) for n, kind in self.columns)
        return make_table("Schema", ["Column", "Kind", "What is public of it"], rows)

    def __repr__(self):
        lines = "".join(f"    {name!r}: {kind!r},\n" for name, kind in self.columns)
        return f"Schema({{\n{lines}}})"


def _show_parameters(kind):
    """Return the parameters of a kind, as its repr has them."""
    return repr(kind).removeprefix(type(kind).__name__)[1:-1]


def _kind_of_dtype(dtype):
    missing = not (isinstance(dtype, np.dtype) and dtype.kind in "biu")
    if is_bool_dtype(dtype):
        return Boolean(missing)
    if is_numeric_dtype(dtype):
        return Number(decimals=0 if is_integer_dtype(dtype) else None, missing=missing)
    if is_datetime64_any_dtype(dtype):
        return Date(unit=None, missing=missing, zone=_zone_of(dtype))
    is_unknown = isinstance(dtype, pd.StringDtype) or is_object_dtype(dtype)
    return Unknown() if is_unknown else Category(missing=missing)


def _zone_of(dtype):
    return str(dtype.tz) if isinstance(dtype, pd.DatetimeTZDtype) else None


def _describe(name, column, n_knots):
    """Return the kind of a column of a public table."""
    missing = bool(column.isna().any())
    try:
        if isinstance(column.dtype, pd.CategoricalDtype):
            kind = Ordinal if column.dtype.ordered else Category
            return kind(column.dtype.categories.tolist(), missing=missing)
        inferred = infer_dtype(column, skipna=True)
        if inferred == "boolean":
            return Boolean(missing)
        if inferred == "string":
            found = sorted(column.dropna().unique())
            if len(found) > _MAX_INFERRED:
                raise ValueError(f"it has more than {_MAX_INFERRED} different values.")
            return Category(found, missing=missing)
        zone = _zone_of(column.dtype)
        found, dates = read_numbers(column)[1], read_dates(column, zone)[1]
        if not np.isnan(found).any() and np.isfinite(found).any():
            found = found[np.isfinite(found)]
            decimals = _count_decimals(found)
            lower, upper = (int(b) if decimals == 0 else float(b) for b in _extremes(found))
            return Number(lower, upper, decimals, n_knots=n_knots, missing=missing)
        if len(dates) and not np.isnat(dates).any():
            unit = "day" if (dates == dates.astype("M8[D]")).all() else "second"
            return Date(*_extremes(dates), unit, n_knots=n_knots or 16, missing=missing, zone=zone)
        raise ValueError(f"its values, of dtype {column.dtype}, are of no kind or of several.")
    except ValueError as error:
        reason = str(error)
    raise ValueError(
        f"Column {name!r} cannot be described from the sample: {reason} Declare it with "
        "declared={...}, or drop it."
    )


def _extremes(values):
    if values.min() == values.max():
        raise ValueError("it has one value only.")
    return values.min(), values.max()


def _count_decimals(values):
    """Return how many decimals suffice, or None for more than 6."""
    for decimals in range(7):
        if np.abs(values).max() * 10.0**decimals > MAX_UNITS:
            return None
        if (np.round(values, decimals) == values).all():
            return decimals
    return None


def _read_kind(name, kind):
    """Return the kind that a schema gives to a column, and name the column in errors."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"Names of columns must be non-empty strings; got {name!r}. Rename it.")
    if type(kind) in _KINDS.values():
        return kind
    try:
        if not isinstance(kind, Mapping):
            kinds = [kind.__name__ for kind in _KINDS.values()]
            raise ValueError(f"it must be one of {kinds} or a dict; got {kind!r}.")
        return _kind_of_dict(kind)
    except ValueError as error:
        reason = str(error)
    raise ValueError(f"Column {name!r}: {reason}")


def _kind_of_dict(spec):
    given = dict(spec)
    name = given.pop("type", None)
    if not isinstance(name, str) or name not in _KINDS:
        raise ValueError(f"its 'type' must be one of {list(_KINDS)}; got {name!r}.")
    known = fields(_KINDS[name])
    unknown = [key for key in given if key not in [field.name for field in known]]
    if unknown:
        raise ValueError(
            f"a {name} has no {unknown}; it may have {[field.name for field in known]}."
        )
    lacking = [f.name for f in known if f.default is MISSING and f.name not in given]
    if lacking:
        raise ValueError(f"{name} needs {lacking}.")
    return _KINDS[name](**given)


def _dict_of_distinct(pairs):
    repeated = find_repeated(name for name, _ in pairs)
    if repeated:
        raise ValueError(f"The schema has {repeated} more than once; keep one of each.")
    return dict(pairs)


def _list_names(names):
    return [names] if isinstance(names, str) else list(names)
