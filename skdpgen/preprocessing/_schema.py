"""What is public about the columns of a table: their kinds, bounds and levels."""

import contextlib
import datetime
import decimal
import json
import math
import numbers
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

__all__ = ["Boolean", "Category", "Date", "Number", "Ordinal", "Schema", "Unknown"]

# Numbers with decimals have fewer units than this, or float64 could not tell them apart after
# a few operations.
MAX_UNITS = 1e14

# A public sample with more different values than this holds names or texts rather than categories.
_MAX_INFERRED = 100

# What pandas calls cells that are all numbers.
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")

DATE_CODES = {"day": "D", "second": "s"}


class _Column:
    """What the kinds of columns share: a short repr, and the way to a dict."""

    # Whether something has to be found before the column can be encoded.
    is_open = False

    def to_dict(self):
        """Return the column as a dict, without what is at its default.

        Returns
        -------
        dict
        """
        given = {k: list(v) if isinstance(v, tuple) else v for k, v in self._given().items()}
        return {"type": type(self).__name__.lower(), **given}

    def __repr__(self):
        given = ", ".join(f"{name}={value!r}" for name, value in self._given().items())
        return f"{type(self).__name__}({given})"

    def _given(self):
        values = ((field, getattr(self, field.name)) for field in fields(self))
        return {field.name: value for field, value in values if value != field.default}

    def _set(self, **values):
        """Put checked values in place of those that were given."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, repr=False)
class Number(_Column):
    """A column of numbers between public bounds.

    Parameters
    ----------
    lower, upper : float, default=None
        Bounds, to which values are clipped. None: not known, and to be found and paid for by a
        generator with ``infer="private"``; others refuse the column.
    decimals : int, default=None
        Synthetic values are rounded to so many decimals; 0 for whole numbers, None to leave them.
    n_knots : int, default=16
        Number of knots, between which densities are told apart no further. Knots are values, so
        that there are fewer where there are fewer values.
    scale : {"linear", "log"}, default="linear"
        Spacing of the knots: even, or even in log(1 + value - lower), for a long upper tail.
    knots : list of float, default=None
        Increasing public knots from `lower` to `upper`, in place of `n_knots` and `scale`.
    missing : bool, default=False
        Whether values may be missing.

    Attributes
    ----------
    positions : ndarray of shape (n_positions,)
        The knots.

    Raises
    ------
    ValueError
        If a parameter makes no sense.

    Examples
    --------
    >>> from skdpgen.preprocessing import Number
    >>> Number(0, 100, n_knots=5).positions
    array([  0.,  25.,  50.,  75., 100.])
    """

    lower: float | None = None
    upper: float | None = None
    decimals: int | None = None
    n_knots: int = 16
    scale: str = "linear"
    knots: tuple | None = None
    missing: bool = False

    def __post_init__(self):
        decimals = self.decimals
        if decimals is not None:
            decimals = _check_whole("decimals", decimals, 0, 15)
        n_knots = _check_whole("n_knots", self.n_knots, 2)
        if self.scale not in ("linear", "log"):
            raise ValueError(f"scale must be 'linear' or 'log'; got {self.scale!r}.")
        _check_flag(self.missing)
        lower, upper = (
            None if bound is None else _check_number(name, bound)
            for name, bound in (("lower", self.lower), ("upper", self.upper))
        )
        knots = self.knots
        if knots is not None:
            knots = tuple(_check_number("knots", knot) for knot in _check_list("knots", knots))
            if (n_knots, self.scale) != (16, "linear"):
                raise ValueError("give either knots, or n_knots and scale.")
            if knots[:1] + knots[-1:] != (lower, upper):
                raise ValueError("knots must begin with lower and end with upper.")
            if not all(a < b for a, b in pairwise(knots)):
                raise ValueError("knots must increase.")
        self._set(lower=lower, upper=upper, decimals=decimals, n_knots=n_knots, knots=knots)
        if not self.is_open:
            if not lower < upper:
                raise ValueError(f"lower must be below upper; got {lower!r} and {upper!r}.")
            if not math.isfinite(float(upper) - float(lower)):
                raise ValueError(f"bounds are too far apart; got {lower!r} and {upper!r}.")
        if decimals is not None:
            self._check_decimals(knots or (lower, upper))

    @property
    def is_open(self):
        """Whether a bound is not known."""
        return self.lower is None or self.upper is None

    def _check_decimals(self, values):
        for value in values:
            if value is None:
                continue
            if abs(value) * 10.0**self.decimals > MAX_UNITS:
                raise ValueError(
                    f"{value!r} is too large for decimals={self.decimals}: floats hold about 14 "
                    "digits; use fewer decimals, or None."
                )
            if round(value, self.decimals) != value:
                raise ValueError(
                    f"bounds and knots must have at most the given number of decimals, "
                    f"{self.decimals}; got {value!r}."
                )

    @property
    def positions(self):
        """Where the knots are."""
        if self.knots is not None:
            return np.array(self.knots, dtype=np.float64)
        if self.scale == "linear":
            knots = np.linspace(self.lower, self.upper, self.n_knots)
        else:
            reach = float(self.upper) - self.lower
            knots = self.lower + np.expm1(np.linspace(0, np.log1p(reach), self.n_knots))
        return _tidy_knots(knots, self.lower, self.upper, self.decimals)


@dataclass(frozen=True, repr=False)
class Category(_Column):
    """A column of unordered categories.

    Parameters
    ----------
    categories : list of str or of numbers, default=None
        All values that may occur, in the type that they have in the table. None: not known, and
        to be found and paid for by a generator with ``infer="private"``; others refuse the column.
    other : str or number, default=None
        A category, listed or new, for values that are not listed. Without it they are refused.
        Where categories are not known it is ``"other"``, unless it is given.
    missing : bool, default=False
        Whether values may be missing.

    Attributes
    ----------
    levels : tuple
        The categories, and `other` if it is new.

    Raises
    ------
    ValueError
        If there are no categories, or some are equal, missing or of different types.

    Examples
    --------
    >>> from skdpgen.preprocessing import Category
    >>> Category(["cat", "dog"], other="another animal").levels
    ('cat', 'dog', 'another animal')
    """

    categories: tuple | None = None
    other: object = None
    missing: bool = False

    def __post_init__(self):
        categories, other = self.categories, _plain(self.other)
        if categories is None:
            other = "other" if other is None else other
        else:
            categories = _check_labels(categories)
        self._set(categories=categories, other=other)
        _check_labels(self.levels)
        _check_flag(self.missing)

    @property
    def is_open(self):
        """Whether the categories are not known."""
        return self.categories is None

    @property
    def levels(self):
        """All values that synthetic rows have."""
        known = self.categories or ()
        is_new = self.other is not None and self.other not in known
        return known + (self.other,) * is_new


@dataclass(frozen=True, repr=False)
class Ordinal(_Column):
    """A column of ordered categories.

    Parameters
    ----------
    categories : list of str or of numbers
        All values that may occur, from the lowest to the highest, in the type that they have in
        the table.
    missing : bool, default=False
        Whether values may be missing.

    Attributes
    ----------
    levels : tuple
        The categories.

    Raises
    ------
    ValueError
        If there are no categories, or some are equal, missing or of different types.

    Examples
    --------
    >>> from skdpgen.preprocessing import Ordinal
    >>> Ordinal(["low", "medium", "high"])
    Ordinal(categories=('low', 'medium', 'high'))
    """

    categories: tuple
    missing: bool = False

    def __post_init__(self):
        self._set(categories=_check_labels(self.categories))
        _check_flag(self.missing)

    @property
    def levels(self):
        """All values that synthetic rows have."""
        return self.categories


@dataclass(frozen=True, repr=False)
class Boolean(_Column):
    """A column of True and False, which may be written as 1 and 0.

    Parameters
    ----------
    missing : bool, default=False
        Whether values may be missing.

    Attributes
    ----------
    levels : tuple
        False and True.

    Raises
    ------
    ValueError
        If `missing` is not a bool.

    Examples
    --------
    >>> from skdpgen.preprocessing import Boolean
    >>> Boolean(missing=True)
    Boolean(missing=True)
    """

    missing: bool = False

    def __post_init__(self):
        _check_flag(self.missing)

    @property
    def levels(self):
        """All values that synthetic rows have."""
        return (False, True)


@dataclass(frozen=True, repr=False)
class Date(_Column):
    """A column of dates, or of dates with times, without time zone, between public bounds.

    Parameters
    ----------
    lower, upper : str, date or datetime, default=None
        Bounds, to which values are clipped, such as ``"2020-01-31"`` or
        ``"2020-01-31T12:00:00"``. A day without a time stands for its first second. None: not
        known, and to be found and paid for by a generator with ``infer="private"``; others refuse
        the column.
    unit : {"day", "second"}, default="day"
        What values are rounded down to.
    n_knots : int, default=16
        Number of knots, between which densities are told apart no further. Knots are values, so
        that there are fewer where there are fewer values.
    missing : bool, default=False
        Whether values may be missing.

    Attributes
    ----------
    positions : ndarray of shape (n_positions,)
        The knots, in units since 1970.

    Raises
    ------
    ValueError
        If a parameter makes no sense.

    Examples
    --------
    >>> from skdpgen.preprocessing import Date
    >>> Date("2020-01-01", "2020-12-31", n_knots=3).positions
    array([18262., 18444., 18627.])
    """

    lower: str | None = None
    upper: str | None = None
    unit: str = "day"
    n_knots: int = 16
    missing: bool = False

    def __post_init__(self):
        if self.unit not in ("day", "second"):
            raise ValueError(f"unit must be 'day' or 'second'; got {self.unit!r}.")
        n_knots = _check_whole("n_knots", self.n_knots, 2)
        _check_flag(self.missing)
        lower, upper = (
            None if bound is None else str(_check_date(name, bound, self.unit))
            for name, bound in (("lower", self.lower), ("upper", self.upper))
        )
        self._set(lower=lower, upper=upper, n_knots=n_knots)
        if self.is_open:
            return
        first, last = self._bounds()
        if not first < last:
            raise ValueError(f"lower must be before upper; got {lower!r} and {upper!r}.")

    @property
    def positions(self):
        """Where the knots are."""
        first, last = self._bounds()
        return _tidy_knots(np.linspace(first, last, self.n_knots), first, last, 0)

    @property
    def is_open(self):
        """Whether a bound is not known."""
        return self.lower is None or self.upper is None

    def _bounds(self):
        """Return the bounds in units since 1970."""
        dates = np.array([self.lower, self.upper], dtype=f"M8[{DATE_CODES[self.unit]}]")
        return dates.astype(np.float64)


@dataclass(frozen=True, repr=False)
class Unknown(_Column):
    """A column of texts of which nothing is known, not even whether they are numbers.

    What it is has to be found and paid for by a generator with ``infer="private"``: a boolean, a
    number, a date, or a category. Values may be missing, and those that are not of the kind that
    is found become so.

    Examples
    --------
    >>> from skdpgen.preprocessing import Unknown
    >>> Unknown()
    Unknown()
    """

    # Not even its kind is known.
    is_open = True
    missing = True


_KINDS = {
    kind.__name__.lower(): kind for kind in (Number, Category, Ordinal, Boolean, Date, Unknown)
}


@dataclass(frozen=True, repr=False)
class Schema(Mapping):
    """What is public about the columns of a table: their names, kinds, bounds and levels.

    Schemas do not change; they can be compared, hashed and pickled, and used as a mapping of names
    to kinds. Bounds and levels have to be known from elsewhere, such as a codebook: those that
    were found in private rows would publish something about them.

    Parameters
    ----------
    columns : dict of str to Number, Category, Ordinal, Boolean, Date, Unknown or dict
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
    >>> from skdpgen.preprocessing import Category, Number, Schema
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
    def from_public(cls, frame, *, declared=None, n_knots=16):
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
        n_knots : int, default=16
            Of each number and date that is not declared.

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
        >>> from skdpgen.preprocessing import Schema
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

    def __repr__(self):
        lines = "".join(f"    {name!r}: {kind!r},\n" for name, kind in self.columns)
        return f"Schema({{\n{lines}}})"


def read_numbers(column):
    """Read a column of numbers, which may be of any dtype, each cell on its own.

    Returns
    -------
    present : ndarray of bool of shape (n,)
    numbers : ndarray of shape (n_present,)
        NaN for a cell that is no number, or that is too large for a float.
    """
    if getattr(column.dtype, "kind", "O") in "iuf":
        values = column.to_numpy(np.float64, na_value=np.nan)
    else:
        values = column.to_numpy()
    present = ~pd.isna(values)
    values = values[present]
    if infer_dtype(values, skipna=False) in _NUMBERS or not len(values):
        # Some Python numbers are too large for a float.
        with contextlib.suppress(Exception):
            return present, values.astype(np.float64)
    return present, np.array([_read_number(value) for value in values], dtype=np.float64)


def _read_number(value):
    is_number = isinstance(value, numbers.Real | decimal.Decimal)
    if is_number and not isinstance(value, bool | np.bool_ | np.timedelta64):
        with contextlib.suppress(Exception):
            return float(value)
    return np.nan


def read_dates(column):
    """Read a column of dates without time zone, which may be of dtype object, each on its own.

    Returns
    -------
    present : ndarray of bool of shape (n,)
    dates : ndarray of datetime64[s] of shape (n_present,)
        Rounded down; NaT for a cell that is no such date.
    """
    values = column.to_numpy()
    present = ~pd.isna(values)
    values = values[present]
    if values.dtype.kind == "M":
        return present, values.astype("M8[s]")
    has_zones = any(getattr(value, "tzinfo", None) is not None for value in values)
    if infer_dtype(values, skipna=False) in ("date", "datetime") and not has_zones:
        with contextlib.suppress(Exception):
            return present, values.astype("M8[us]").astype("M8[s]")
    return present, np.array([_read_date(value) for value in values], dtype="M8[s]")


def _read_date(value):
    is_date = isinstance(value, datetime.date | np.datetime64)
    if is_date and getattr(value, "tzinfo", None) is None:
        with contextlib.suppress(Exception):
            return np.datetime64(value, "us").astype("M8[s]")
    return np.datetime64("NaT")


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
        found, dates = read_numbers(column)[1], read_dates(column)[1]
        if not np.isnan(found).any() and np.isfinite(found).any():
            found = found[np.isfinite(found)]
            decimals = _count_decimals(found)
            lower, upper = (int(b) if decimals == 0 else float(b) for b in _extremes(found))
            return Number(lower, upper, decimals, n_knots=n_knots, missing=missing)
        if len(dates) and not np.isnat(dates).any():
            unit = "day" if (dates == dates.astype("M8[D]")).all() else "second"
            return Date(*_extremes(dates), unit, n_knots=n_knots, missing=missing)
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
    repeated = _repeated(name for name, _ in pairs)
    if repeated:
        raise ValueError(f"The schema has {repeated} more than once; keep one of each.")
    return dict(pairs)


def _repeated(values):
    return [value for value, count in Counter(values).items() if count > 1]


def _list_names(names):
    return [names] if isinstance(names, str) else list(names)


def _tidy_knots(knots, lower, upper, decimals):
    """Make the outer knots the bounds, and all knots values of which none is repeated."""
    knots[[0, -1]] = lower, upper
    return np.unique(knots if decimals is None else np.round(knots, decimals) + 0.0)


def _plain(value):
    """Turn scalars of NumPy into those of Python, which JSON knows."""
    return value.item() if isinstance(value, np.generic) else value


def _check_list(name, values):
    """Refuse strings, and sets, whose order changes from run to run."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    if not isinstance(values, list | tuple):
        raise ValueError(f"{name} must be a list; got {values!r}.")
    return values


def _check_labels(labels):
    labels = tuple(_plain(label) for label in _check_list("categories", labels))
    if not labels:
        raise ValueError("categories must not be empty.")
    for label in labels:
        if not isinstance(label, str | int | float) or (
            isinstance(label, float) and not math.isfinite(label)
        ):
            raise ValueError(
                f"categories must be strings or finite numbers; got {label!r}. Missing values are "
                "declared with missing=True."
            )
    if len({isinstance(label, str) for label in labels}) > 1:
        raise ValueError("categories must be all strings or all numbers.")
    repeated = _repeated(labels)
    if repeated:
        raise ValueError(f"categories must be different; got {repeated} more than once.")
    return labels


def _check_number(name, value):
    value = _plain(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not abs(value) <= sys.float_info.max:
        raise ValueError(f"{name} must be a finite number; got {value!r}.")
    return value


def _check_whole(name, value, lowest, highest=None):
    value = _plain(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or value < lowest or (highest is not None and value > highest):
        upto = "" if highest is None else f" and at most {highest}"
        raise ValueError(f"{name} must be a whole number, at least {lowest}{upto}; got {value!r}.")
    return value


def _check_flag(missing):
    if not isinstance(missing, bool):
        raise ValueError(f"missing must be True or False; got {missing!r}.")


def _check_date(name, value, unit):
    """Return a bound as datetime64 of the unit."""
    given = value
    if isinstance(value, np.datetime64):
        value = value.astype("M8[us]").item()
    elif isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = datetime.datetime.fromisoformat(value)
    if not isinstance(value, datetime.date) or pd.isna(value) or getattr(value, "tzinfo", None):
        raise ValueError(
            f"{name} must be a date without time zone, such as '2020-01-31' or "
            f"'2020-01-31T12:00:00'; got {given!r}."
        )
    exact = np.datetime64(value, "us")
    rounded = exact.astype(f"M8[{DATE_CODES[unit]}]")
    if rounded != exact:
        raise ValueError(f"{name} must be a whole {unit}; got {given!r}.")
    return rounded
