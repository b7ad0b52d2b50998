# SPDX-License-Identifier: BSD-3-Clause
"""Columns of dates and times."""

import contextlib
import datetime
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ...checks import is_one_of
from .base import CONVERT, Column, check_flag, check_whole, get_dtype_code
from .cells import read_dates
from .values import tidy_knots

DATE_CODES = {"day": "D", "second": "s"}
SECONDS_PER_DAY = 86_400
# The end of a time that names its zone.
_ZONE = r"[T ].*(?:Z|[+-]\d\d(?::?\d\d)?)$"


@dataclass(frozen=True, repr=False)
class Date(Column):
    """A column of dates, or of dates with times, between public bounds.

    Parameters
    ----------
    lower, upper : str, date or datetime, default=None
        Bounds, to which values are clipped, such as ``"2020-01-31"`` or
        ``"2020-01-31T12:00:00"``. A day without a time stands for its first second. None: a
        generator infers them, at a cost.
    unit : {"day", "second"}, default="day"
        Unit to which values are rounded down. None, with undeclared bounds: inferred with them.
    n_knots : int, default=16
        Number of knots: the resolution of the density. Knots are values, so there are fewer of them
        if there are fewer values.
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

    has_knots = is_dtype_inferred = True
    expected_text = "date"
    # Units are whole, and no value has a weight of its own.
    decimals, atoms, cuts = 0, (), ()

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

    @property
    def units_per_day(self):
        """Number of units of a day."""
        return SECONDS_PER_DAY if self.unit == "second" else 1

    def accepts(self, dtype):
        """Whether cells of a dtype may be dates, with a time zone if there is a `zone`."""
        code, has_zone = get_dtype_code(dtype), isinstance(dtype, pd.DatetimeTZDtype)
        return code == "O" or (code == "M" and has_zone == (self.zone is not None))

    def describe_mismatch(self, dtype):
        """Return what cells of a dtype are instead, and what to do."""
        given = "without time zone" if self.zone is None else "with a time zone"
        advice = f"{CONVERT.format('to_datetime')}, or say by zone=... which time zone they have"
        return f"are no dates {given} (dtype {dtype})", advice

    def check_value(self, name, value):
        """Return the units of a date that a condition on the column `name` asks for."""
        date = check_date(f"what is asked for of {name!r}", value, self.unit)
        return date.astype(np.float64)

    def read(self, column):
        """Return which cells are present, and the units of these, NaN for other values."""
        present, dates = read_dates(column, self.zone)
        units = dates.astype(f"M8[{DATE_CODES[self.unit]}]").astype(np.float64)
        return present, np.where(np.isnat(dates), np.nan, units)

    def make_cells(self, numbers, missing):
        """Return the cells of synthetic units since 1970, in the column's dtype."""
        units = numbers.astype(np.int64).astype(f"M8[{DATE_CODES[self.unit]}]")
        dates = units.astype("M8[s]")
        dates[missing] = np.datetime64("NaT")
        return dates if self.zone is None else _put_in_zone(dates, self.zone)

    def to_values(self, column):
        """Return cells as floats: units since 1970, NaN for missing values."""
        column = pd.Series(column)
        if self.zone is not None:
            column = column.dt.tz_localize(None)
        dates = column.to_numpy().astype("M8[s]")
        units = dates.astype(np.float64) * self.units_per_day / SECONDS_PER_DAY
        return np.where(np.isnat(dates), np.nan, units)

    def _parse_present(self, cells, style):
        return _parse_dates(cells, style, self.zone)


def check_date(name, value, unit):
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


def check_zone(zone):
    if isinstance(zone, str):
        with contextlib.suppress(Exception):
            return pd.DatetimeTZDtype("s", zone)
    raise ValueError(f"zone must be the name of a time zone, such as 'UTC'; got {zone!r}.")


def _put_in_zone(dates, zone):
    """Return dates by the clocks of a zone; those that were skipped there are moved on."""
    is_summer = np.ones(len(dates), dtype=bool)  # where the clocks show a time twice
    return pd.DatetimeIndex(dates).tz_localize(
        zone, ambiguous=is_summer, nonexistent="shift_forward"
    )


def _parse_dates(cells, style, zone):
    if style.date_format is not None:
        dates = [style.read_date(cell) if isinstance(cell, str) else None for cell in cells]
        return pd.Series(dates, index=cells.index, dtype=object)
    has_zone = cells.str.contains(_ZONE, regex=True, na=False)
    cells = cells.where(has_zone if zone else ~has_zone)
    # Seconds in nanoseconds would narrow the years that others can be of.
    cells = cells.str.replace(r"(\.\d{6})\d+(?=$|Z|[+-])", r"\1", regex=True)
    return pd.to_datetime(cells, errors="coerce", format="ISO8601", utc=zone is not None)
