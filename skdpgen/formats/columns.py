"""The kinds that columns of a table may have."""

import contextlib
import datetime
import math
import sys
from collections import Counter
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
import pandas as pd

from ..privacy.texts import TextStyle

# Numbers with decimals have fewer units than this, or float64 could not tell them apart after
# a few operations.
MAX_UNITS = 1e14
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
    >>> from skdpgen import Number
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
    >>> from skdpgen import Category
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
    >>> from skdpgen import Ordinal
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
    >>> from skdpgen import Boolean
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
    >>> from skdpgen import Date
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
class Unknown(_Column, TextStyle):
    """A column of texts of which nothing is known, not even whether they are numbers.

    What it is has to be found and paid for by a generator with ``infer="private"``: a boolean, a
    number, a date, or a category. Values may be missing, and those that are not of the kind that
    is found become so.

    Numbers may have a sign of a currency before or after them.

    Parameters
    ----------
    decimal : str, default="."
        What comes before the decimals of a number.
    thousands : str, default=None
        What may stand between groups of three digits, such as ``","``.
    date_format : str, default=None
        Of dates, such as ``"%m/%d/%Y"``. None: ISO 8601, as in ``2020-01-31``.
    expected : {None, "number", "integer", "boolean", "date"}, default=None
        What the cells are said to be. The fit stops where noisy counts show that many are not,
        when no more than these counts is spent.

    Raises
    ------
    ValueError
        If a parameter makes no sense.

    Examples
    --------
    >>> from skdpgen import Unknown
    >>> Unknown()
    Unknown()
    """

    # Not even its kind is known.
    is_open = True
    missing = True


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
    repeated = find_repeated(labels)
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


def find_repeated(values):
    return [value for value, count in Counter(values).items() if count > 1]
