# SPDX-License-Identifier: BSD-3-Clause
"""The kinds that columns of a table may have."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...checks import is_one_of
from ...curator.texts import TextStyle
from ...registry import savable
from .base import (
    DATE_CODES,
    Column,
    check_date,
    check_flag,
    check_labels,
    check_number,
    check_numbers,
    check_whole,
    check_zone,
    find_repeated,
    plain,
)
from .values import Values, place_knots, tidy_knots

# Numbers with decimals have fewer units than this, or float64 could not tell them apart after
# a few operations.
MAX_UNITS = 1e14
# So many knots has a number for which no number of them is declared.
N_KNOTS = 16


@dataclass(frozen=True, repr=False)
class Number(Column):
    """A column of numbers between public bounds.

    Parameters
    ----------
    lower, upper : float, default=None
        Bounds, to which values are clipped. None: not known, and to be found and paid for by a
        generator with ``schema="private"``; others refuse the column.
    decimals : int, default=None
        Synthetic values are rounded to so many decimals; 0 for whole numbers, None to leave them.
    n_knots : int, default=None
        Number of knots, between which densities are told apart no further. Knots are values, so
        that there are fewer where there are fewer values. None: a generator finds knots near
        quantiles, at most about 16, and pays for it; where nobody does, there are 16 even ones.
    scale : {"linear", "log", "symlog"}, default=None
        Spacing of public knots: even; even in log(1 + value - lower), for a long upper tail; or in
        sign(value) · log(1 + abs(value) / u), for tails on both sides of 0, which is then a knot:
        u is 1, or a thousandth of the larger bound if that is less, but at least a step of
        `decimals`. None: even, unless knots are found.
    knots : list of float, default=None
        Increasing public knots from `lower` to `upper`, in place of `n_knots` and `scale`.
    atoms : list of float, default=None
        Values that many records share, such as 0, or that stand for something else, such as -999;
        also beyond the bounds. Each has a weight of its own beside those of the knots. Cells that
        have it, but for rounding to `decimals`, are told from all others. None: they are found
        where knots are; elsewhere there are none.
    cuts : list of float, default=None
        Increasing values between knots. Those between a knot and the next part what is there in
        about equal shares: values are drawn, and weigh, by these, not by their distance from the
        knots. None: they are found where knots are; elsewhere there are none. A generator that
        finds them knows more of the shape, and draws by that; a schema does not hold it.
    missing : bool, default=False
        Whether values may be missing.

    Attributes
    ----------
    positions : ndarray of shape (n_positions,)
        The knots. Of numbers with `decimals` no atom is a knot, but the values beside it are.

    Raises
    ------
    ValueError
        If a parameter makes no sense.

    Examples
    --------
    >>> from skdpgen import Number
    >>> Number(0, 100, n_knots=5).positions
    array([  0.,  25.,  50.,  75., 100.])
    >>> Number(-50, 1000, decimals=0, n_knots=5, scale="symlog", atoms=[0]).positions
    array([ -50.,   -1.,    1.,    9.,   99., 1000.])
    """

    lower: float | None = None
    upper: float | None = None
    decimals: int | None = None
    n_knots: int | None = None
    scale: str | None = None
    knots: Sequence | None = None
    atoms: Sequence | None = None
    cuts: Sequence | None = None
    missing: bool = False

    def __post_init__(self):
        decimals = self.decimals
        if decimals is not None:
            decimals = check_whole("decimals", decimals, 0, 15)
        n_knots = self.n_knots
        if n_knots is not None:
            n_knots = check_whole("n_knots", n_knots, 2)
        if not is_one_of(self.scale, (None, "linear", "log", "symlog")):
            raise ValueError(f"scale must be 'linear', 'log' or 'symlog'; got {self.scale!r}.")
        check_flag(self.missing)
        lower, upper = (
            None if bound is None else check_number(name, bound)
            for name, bound in (("lower", self.lower), ("upper", self.upper))
        )
        knots = self.knots
        if knots is not None:
            knots = check_numbers("knots", knots)
            if (n_knots, self.scale) != (None, None):
                raise ValueError("give either knots, or n_knots and scale.")
            if knots[:1] + knots[-1:] != (lower, upper):
                raise ValueError("knots must begin with lower and end with upper.")
            _check_increasing("knots", knots)
        atoms = self.atoms
        if atoms is not None:
            atoms = check_numbers("atoms", atoms)
            if find_repeated(atoms):
                raise ValueError(f"atoms must be different; got {find_repeated(atoms)} again.")
        cuts = self.cuts
        if cuts is not None:
            cuts = check_numbers("cuts", cuts)
            _check_increasing("cuts", cuts)
        self._set(
            lower=lower,
            upper=upper,
            decimals=decimals,
            n_knots=n_knots,
            knots=knots,
            atoms=atoms,
            cuts=cuts,
        )
        if decimals is not None:
            self._check_decimals((*(knots or (lower, upper)), *(atoms or ())))
        if not self.is_open:
            self._check_bounds()
        elif self.cuts:
            raise ValueError("cuts are of a number whose bounds are declared, too.")

    def _check_bounds(self):
        lower, upper = self.lower, self.upper
        if not lower < upper:
            raise ValueError(f"lower must be below upper; got {lower!r} and {upper!r}.")
        if not math.isfinite(float(upper) - float(lower)):
            raise ValueError(f"bounds are too far apart; got {lower!r} and {upper!r}.")
        if self.scale == "log" and lower < 0 < upper:
            raise ValueError(
                f"scale='log' is for numbers of one sign; got bounds {lower!r} and {upper!r}. Use "
                "scale='symlog' for tails on both sides of 0; a special value such as -1 is one "
                "of atoms=[-1], and may be beyond the bounds."
            )
        if self.atoms and len(self.positions) < 2:
            raise ValueError(
                f"between {lower!r} and {upper!r} there are too few values beside the atoms "
                f"{self.atoms!r}; leave these out, as each of few values has a knot."
            )
        if self.cuts and not (lower < self.cuts[0] and self.cuts[-1] < upper):
            raise ValueError("cuts must be between the bounds.")
        if common := set(self.cuts or ()) & set(self.positions.tolist()):
            raise ValueError(f"cuts must not be knots; {sorted(common)} are both.")

    @property
    def is_open(self):
        """Whether a bound is not known."""
        return self.lower is None or self.upper is None

    @property
    def takes_knots(self):
        """Whether the bounds are known, and knots are to be found: none are declared."""
        declared = (self.n_knots, self.scale, self.knots, self.cuts)
        if self.is_open or declared != (None, None, None, None):
            return False
        return self.n_values > N_KNOTS

    @property
    def n_values(self):
        """How many values there are between the bounds."""
        if self.decimals is None:
            return math.inf
        return 1 + round((self.upper - self.lower) * 10.0**self.decimals)

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
                    f"bounds, knots and atoms must have at most the given number of decimals, "
                    f"{self.decimals}; got {value!r}."
                )

    @property
    def positions(self):
        """Where the knots are."""
        if self.knots is not None:
            knots = np.array(self.knots, dtype=np.float64)
        else:
            n_knots = self.n_knots or N_KNOTS
            knots = place_knots(self.lower, self.upper, n_knots, self.scale, self.decimals)
        if not self.atoms:
            return knots
        knots = Values(self.decimals, self.atoms).around(knots)
        return knots[(self.lower <= knots) & (knots <= self.upper)]


def _check_increasing(name, numbers):
    if not all(a < b for a, b in pairwise(numbers)):
        raise ValueError(f"{name} must increase.")


@dataclass(frozen=True, repr=False)
class Category(Column):
    """A column of unordered categories.

    Parameters
    ----------
    categories : list of str or of numbers, default=None
        All values that may occur, in the type that they have in the table. None: not known, and
        to be found and paid for by a generator with ``schema="private"``; others refuse the column.
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

    categories: Sequence | None = None
    other: object = None
    missing: bool = False

    def __post_init__(self):
        categories, other = self.categories, plain(self.other)
        if categories is None:
            other = "other" if other is None else other
        else:
            categories = check_labels(categories)
        if other is not None:
            check_labels([other])
        self._set(categories=categories, other=other)
        check_labels(self.levels)
        check_flag(self.missing)

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
class Ordinal(Column):
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

    categories: Sequence
    missing: bool = False

    def __post_init__(self):
        self._set(categories=check_labels(self.categories))
        check_flag(self.missing)

    @property
    def levels(self):
        """All values that synthetic rows have."""
        return self.categories


@dataclass(frozen=True, repr=False)
class Boolean(Column):
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
        check_flag(self.missing)

    @property
    def levels(self):
        """All values that synthetic rows have."""
        return (False, True)


@dataclass(frozen=True, repr=False)
class Date(Column):
    """A column of dates, or of dates with times, between public bounds.

    Parameters
    ----------
    lower, upper : str, date or datetime, default=None
        Bounds, to which values are clipped, such as ``"2020-01-31"`` or
        ``"2020-01-31T12:00:00"``. A day without a time stands for its first second. None: not
        known, and to be found and paid for by a generator with ``schema="private"``; others refuse
        the column.
    unit : {"day", "second"}, default="day"
        What values are rounded down to. None, where bounds are not known: to be found with them.
    n_knots : int, default=16
        Number of knots, between which densities are told apart no further. Knots are values, so
        that there are fewer where there are fewer values.
    missing : bool, default=False
        Whether values may be missing.
    zone : str, default=None
        Name of the time zone that all values have, such as ``"Europe/Vienna"``, in which bounds
        are read. None: they have none.

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
    unit: str | None = "day"
    n_knots: int = 16
    missing: bool = False
    zone: str | None = None

    def __post_init__(self):
        if not is_one_of(self.unit, ("day", "second", *([None] if self.is_open else []))):
            raise ValueError(
                f"unit must be 'day' or 'second', or None with open bounds; got {self.unit!r}."
            )
        if self.zone is not None:
            check_zone(self.zone)
        n_knots = check_whole("n_knots", self.n_knots, 2)
        check_flag(self.missing)
        lower, upper = (
            None if bound is None else str(check_date(name, bound, self.unit or "second"))
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
        return tidy_knots(np.linspace(first, last, self.n_knots), first, last, 0)

    @property
    def is_open(self):
        """Whether a bound is not known."""
        return self.lower is None or self.upper is None

    def _bounds(self):
        """Return the bounds in units since 1970."""
        dates = np.array([self.lower, self.upper], dtype=f"M8[{DATE_CODES[self.unit]}]")
        return dates.astype(np.float64)


@savable
@dataclass(frozen=True, repr=False)
class Unknown(Column, TextStyle):
    """A column of which nothing is known, not even whether it holds numbers or texts.

    What it is has to be found and paid for by a generator: a boolean, a number, a date, or a
    category. Cells may be texts or values of Python. They may be missing, and those that are not
    of the kind that is found become so.

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
