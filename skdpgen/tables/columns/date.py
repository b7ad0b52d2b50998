# SPDX-License-Identifier: BSD-3-Clause
"""Columns of dates and times."""

import contextlib
import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ...checks import is_one_of
from ...data.dtypes import is_date
from ...histograms.grids import FINEST
from ..declaration import check_flag, check_list, check_numbers
from .cells import read_dates
from .column_type import CONVERT, KnotColumn, get_dtype_code
from .heaps import CYCLES, DATE_STEPS, DAYS, expect_dates, find_cells, find_date_levels, snap_dates
from .number import N_KNOTS, Number, check_heaps, find_extremes

DATE_CODES = {"day": "D", "hour": "h", "minute": "m", "second": "s", "millisecond": "ms"}
_UNITS = {0: "day", 1: "hour", 2: "minute", 3: "second", 4: "millisecond", 5: "millisecond"}
_PER_DAY = {"day": 1, "hour": 24, "minute": 1440, "second": 86_400, "millisecond": 86_400_000}
# Years of dates that Python knows. Nearly all dates are in the inner years, whose grid has cells of
# a quarter at the finest; cells further out have 25 years.
_FIRST, _LAST = np.datetime64("0001-01-01", "s"), np.datetime64("9999-12-31T23:59:59", "s")
_INNER, _N_QUARTERS, _N_OUTER = ("1900-01-01", "2100-01-01"), 800, 400
# Dates that encode missing information, or no end: those of Excel, Unix, SQL, SAS, pandas, and
# the first and last days of years that hardly any record is in.
_CANDIDATES = (
    *("0001-01-01", "1111-11-11", "1753-01-01", "1899-12-30", "1900-01-01", "1901-01-01"),
    *("1960-01-01", "1970-01-01", "1980-01-01", "1999-12-31", "2000-01-01", "2038-01-19"),
    *("2100-01-01", "2222-02-22", "2262-04-11", "9999-01-01"),
    *(f"{year}-01-01" for year in (1600, 1700, 1800, 1850, 2200, 2300, 2500, 3000)),
    *(f"{year}-12-31" for year in (1799, 1899, 2049, 2050, 2098, 2099, 2100, 2199, 2200, 2222)),
    *(f"{year}-12-31" for year in (2299, 2300, 2499, 2500, 2999, 3000, 3999, 4000, 9998, 9999)),
)


@dataclass(frozen=True, repr=False)
class Date(KnotColumn):
    """A column of dates, or of dates with times, between public bounds.

    Parameters
    ----------
    lower, upper : str, date or datetime, default=None
        Bounds, to which values are clipped, such as ``"2020-01-31"`` or
        ``"2020-01-31T12:00:00"``. A day without a time is whole: as `upper` it stands for its last
        unit, elsewhere for its first. None: a generator infers them, at a cost.
    unit : {"day", "hour", "minute", "second", "millisecond"}, default="day"
        Unit to which values are rounded down. None, with undeclared bounds: inferred with them.
    n_knots : int, default=None
        Number of evenly spaced knots: the resolution of the density. Knots are values, so there are
        fewer of them if there are fewer values. None: as in `Number`.
    knots, atoms, cuts : list of str, date or datetime, default=None
        Knots, point masses such as ``["9999-12-31"]``, and breakpoints, as in `Number`.
    heaps : list of (str, float), default=None
        Steps and shares, as in `Number`: ``[("month", 0.7)]`` moves 70 % of the dates to the first
        day of the next or last month. Steps are "year", "month", "month end", "week" (Mondays),
        "day", "hour", "half hour", "quarter hour", "10 minutes", "5 minutes", "minute", "second".
    hours, weekdays : list of float, default=None
        Shares of the hours of the day, 0 to 23, and of the weekdays, from Monday, among dates that
        no heap of a longer step has moved. Synthetic dates stay within their week. None: inferred
        together with the unit, where they clearly differ from equal ones; otherwise not changed.
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
    n_knots: int | None = None
    knots: Sequence | None = None
    atoms: Sequence | None = None
    cuts: Sequence | None = None
    missing: bool = False
    zone: str | None = None
    heaps: Sequence | None = None
    hours: Sequence | None = None
    weekdays: Sequence | None = None

    is_date = True
    expected_text = "date"
    # Dates with and without a zone are dates: those of the fewer ones are lost, and named.
    evidence = {
        "date": (("date",), ("date", "zoned date")),
        "zoned date": (("zoned date",), ("date", "zoned date")),
    }
    forms = ("date", "datetime")
    # Of the steps of dates, and of finer dates: an hour counts as one, a minute as two.
    level_decimals = (0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 3, 4, 5)

    def __post_init__(self):
        if not is_one_of(self.unit, (*DATE_CODES, *([None] if self.is_open else []))):
            raise ValueError(
                f"unit must be one of {list(DATE_CODES)}, or None with open bounds; got "
                f"{self.unit!r}."
            )
        if self.zone is not None:
            check_zone(self.zone)
        check_flag(self.missing)
        dates = {
            name: None if bound is None else str(self._check(name, bound, is_last=name == "upper"))
            for name, bound in (("lower", self.lower), ("upper", self.upper))
        }
        for name in ("knots", "atoms", "cuts"):
            values = getattr(self, name)
            if values is not None:
                values = check_list(name, values)
                values = tuple(str(self._check(name, value)) for value in values)
            dates[name] = values
        lower, upper = dates["lower"], dates["upper"]
        self._set(**dates)
        if not self.is_open and not self._to_units(lower) < self._to_units(upper):
            raise ValueError(f"lower must be before upper; got {lower!r} and {upper!r}.")
        self._set(n_knots=self.to_number().n_knots)
        self._set(heaps=check_heaps(self.heaps, 1, DATE_STEPS[:-1]))
        for name in CYCLES:
            if getattr(self, name) is not None:
                self._set(**{name: _check_shares(name, getattr(self, name))})
        if self.hours and self.unit == "day":
            raise ValueError("hours are of dates with times: declare a unit finer than a day.")

    @classmethod
    def of_dtype(cls, dtype, missing):
        if is_date(dtype):
            return cls(missing=True)
        if not pd.api.types.is_datetime64_any_dtype(dtype):
            return None
        return cls(unit=None, missing=missing, zone=_zone_of(dtype))

    @classmethod
    def of_public(cls, column, missing, n_knots):
        zone = _zone_of(column.dtype)
        dates = read_dates(column, zone)[1]
        is_categorical = isinstance(column.dtype, pd.CategoricalDtype)
        if is_categorical or not len(dates) or np.isnat(dates).any():
            return None
        units = ("day", "second", "millisecond")
        unit = next(u for u in units if (dates == dates.astype(f"M8[{DATE_CODES[u]}]")).all())
        return cls(*find_extremes(dates), unit, n_knots=n_knots, missing=missing, zone=zone)

    @classmethod
    def of_field(cls, field):
        unit = "millisecond" if field.digits else "second"
        unit = "day" if field.type == "date" else unit
        lower, upper = (field.read_date(end) for end in ("lower", "upper"))
        return cls(lower, upper, unit, missing=field.missing, zone=field.zone)

    def to_field(self):
        return {
            "type": "date" if self.unit == "day" else "datetime",
            "lower": self.lower,
            "upper": self.upper,
            "digits": 3 * (self.unit == "millisecond"),
            "zone": self.zone,
        }

    @classmethod
    def infer(cls, cells, counts, std):
        return cls(unit=None, missing=True, zone="UTC" if cells == "zoned date" else None)

    def example(self):
        return Date("2020-01-01", "2024-12-31") if self.is_open else self

    @property
    def cell_types(self):
        """The types of cells that are dates of the column."""
        return ("date",) if self.zone is None else ("zoned date",)

    def compares_with(self, other):
        return super().compares_with(other) and self.zone == other.zone

    @property
    def _known_unit(self):
        return self.unit or "second"

    def _check(self, name, value, *, is_last=False):
        return check_date(name, value, self._known_unit, is_last=is_last)

    def _to_units(self, date):
        """Return a date, or a tuple of dates, as whole units since 1970."""
        if date is None:
            return None
        return np.array(date, dtype=f"M8[{DATE_CODES[self._known_unit]}]").astype(np.int64).tolist()

    def to_number(self):
        """Return the column as one of units since 1970."""
        dates = ("lower", "upper", "knots", "atoms", "cuts")
        return Number(
            **{name: self._to_units(getattr(self, name)) for name in dates},
            decimals=0,
            n_knots=self.n_knots,
            missing=self.missing,
        )

    def from_number(self, number):
        """Return a column with the knots, point masses and breakpoints of one of units."""
        code = DATE_CODES[self._known_unit]

        def to_dates(units):
            if units is None:
                return None
            dates = np.array(units, dtype=np.float64).round().astype(np.int64).astype(f"M8[{code}]")
            return np.datetime_as_string(dates).tolist()

        names = ("lower", "upper", "knots", "atoms")
        dates = {name: to_dates(getattr(number, name)) for name in names}
        # Breakpoints are units, too, other than knots.
        cuts = np.setdiff1d(np.round(number.cuts or ()), number.positions if number.cuts else ())
        dates["cuts"] = to_dates(cuts) if len(cuts) else None
        n_knots = number.n_knots
        if number.scale is not None:
            n_knots = len(number.positions)
        return replace(self, unit=self._known_unit, n_knots=n_knots, **dates)

    def wide_knots(self, n_per_octave):
        """Return the knots, in units, of the grid for private inference of a range, or of knots.

        Declared bounds may be far from all values, as 9999-12-31: knots are then dense in inner
        years, and next to both bounds, as those of numbers are next to zero.
        """
        n_per_octave, near = (n_per_octave, []) if self.is_open else (FINEST, self._list_near())
        # Three grids, as a uniform one over all years would be too coarse where dates are.
        parts = (
            np.linspace(*map(float, self._to_units((first, last))), n_cells + 1)
            for first, last, n_cells in (
                (str(_FIRST), _INNER[0], _N_OUTER // 5),
                (*_INNER, _N_QUARTERS * n_per_octave // FINEST),
                (_INNER[1], str(_LAST), _N_OUTER * 4 // 5),
            )
        )
        return np.unique(np.round(np.concatenate([*parts, near])))

    def _list_near(self):
        """Return units at one day, two, four and so on from declared bounds."""
        lower, upper = self._to_units((self.lower, self.upper))
        days = (upper - lower) / self.units_per_day
        steps = self.units_per_day * 2.0 ** np.arange(max(math.ceil(math.log2(max(days, 1))), 0))
        return np.r_[lower + steps, upper - steps]

    @property
    def candidates(self):
        """Units of dates that often encode missing information."""
        return self._to_units(_CANDIDATES)

    @property
    def _held(self):
        """NumPy's dtype of dates: fractions of seconds are held for the finest unit only."""
        return "M8[ms]" if self._known_unit == "millisecond" else "M8[s]"

    def to_dates(self, units):
        """Return units since 1970 as dates."""
        return (
            units.astype(np.int64).astype(f"M8[{DATE_CODES[self._known_unit]}]").astype(self._held)
        )

    @property
    def is_rough(self):
        """Whether the unit is to be inferred."""
        return self.unit is None

    def with_decimals(self, decimals):
        """Return the column in the unit that inferred decimals say, unless bounds are finer."""
        with contextlib.suppress(ValueError):
            return replace(self, unit=_UNITS.get(decimals, "second"))
        return replace(self, unit="second")

    def find_levels(self, values):
        """Return the position of the coarsest step of which each date is a multiple."""
        return find_date_levels(self.to_dates(values))

    def encode_levels(self, column):
        # Rounded to what is declared, so that a time of New Year's Day is on it.
        present, dates = read_dates(column, self.zone, DATE_CODES.get(self.unit, "us"))
        return present, find_date_levels(dates), *(find_cells(dates, cycle) for cycle in CYCLES)

    def measure(self, step):
        """Return the length of a step of heaps, in units."""
        return DAYS[step] * self.units_per_day

    def snap(self, units, step):
        """Return the units of the multiples of a step that are next to those of dates."""
        dates = snap_dates(self.to_dates(units), step)
        return dates.astype(f"M8[{DATE_CODES[self._known_unit]}]").astype(np.float64)

    @property
    def cycles(self):
        return [
            (getattr(self, name), days * self.units_per_day, origin * self.units_per_day)
            for name, (_, days, origin) in CYCLES.items()
            if getattr(self, name)
        ]

    def expect_heaps(self):
        """Return steps, and the shares of levels among the multiples of each; see `find_heaps`."""
        return expect_dates(self.unit)

    def with_even_knots(self):
        """Return the column with evenly spaced knots."""
        return replace(self, n_knots=N_KNOTS)

    @property
    def units_per_day(self):
        """Number of units of a day."""
        return _PER_DAY[self._known_unit]

    def accepts(self, dtype):
        """Whether cells of a dtype may be dates, with a time zone if there is a `zone`."""
        code, has_zone = get_dtype_code(dtype), isinstance(dtype, pd.DatetimeTZDtype)
        return code == "O" or (code == "M" and has_zone == (self.zone is not None))

    def describe_mismatch(self, dtype):
        """Return the fault of cells of another dtype, and the remedy, for an error."""
        given = "without time zone" if self.zone is None else "with a time zone"
        advice = f"{CONVERT.format('to_datetime')}, or say by zone=... which time zone they have"
        return f"are no dates {given} (dtype {dtype})", advice

    def check_value(self, name, value, *, is_last=False):
        """Return the units of a date that a condition on the column `name` asks for."""
        if self.zone is not None and getattr(value, "tzinfo", None) is not None:
            # As synthetic cells are: the same moment by the clocks of the zone.
            value = pd.Timestamp(value).tz_convert(self.zone).tz_localize(None)
        date = self._check(f"what is asked for of {name!r}", value, is_last=is_last)
        return date.astype(np.float64)

    def encode(self, column):
        """Return which cells are present, and the units of these, NaN for other values."""
        present, dates = read_dates(column, self.zone)
        units = dates.astype(f"M8[{DATE_CODES[self._known_unit]}]").astype(np.float64)
        return present, np.where(np.isnat(dates), np.nan, units)

    def decode(self, numbers, missing):
        """Return the cells of synthetic units since 1970, in the column's dtype."""
        dates = self.to_dates(numbers)
        dates[missing] = np.datetime64("NaT", "s")
        if self.zone is None:
            return dates
        # Times that the clocks skip are moved on; of those that they show twice, the first counts.
        is_summer = np.ones(len(dates), dtype=bool)
        return pd.DatetimeIndex(dates).tz_localize(
            self.zone, ambiguous=is_summer, nonexistent="shift_forward"
        )

    def write(self, number):
        return super().write(number)[:10]

    def to_values(self, column):
        """Return cells as floats: units since 1970, NaN for missing values."""
        column = pd.Series(column)
        if self.zone is not None:
            # Local times of the zone, as those in which bounds are declared.
            column = column.dt.tz_localize(None)
        dates = column.to_numpy().astype("M8[ms]")
        # Fractions of a unit, so that times within a day keep their place.
        units = dates.astype(np.float64) / (_PER_DAY["millisecond"] // self.units_per_day)
        return np.where(np.isnat(dates), np.nan, units)


def _check_shares(name, shares):
    shares, n_cells = check_numbers(name, shares), CYCLES[name][0]
    if len(shares) != n_cells or min(shares) < 0 or abs(sum(shares) - 1) > 1e-3:
        raise ValueError(f"{name} must be {n_cells} shares that sum to 1; got {list(shares)}.")
    return shares


def check_date(name, value, unit, *, is_last=False):
    """Return a bound as datetime64 of the unit; of a day without a time, the last unit if asked."""
    given = value
    if isinstance(value, np.datetime64):
        # A date if the unit is a day, else a date with a time.
        is_day = np.datetime_data(value.dtype)[0] == "D"
        value = value.astype("M8[D]" if is_day else "M8[us]").item()
    elif isinstance(value, str):
        for cls in (datetime.datetime, datetime.date):
            with contextlib.suppress(ValueError):
                value = cls.fromisoformat(given)
    if not isinstance(value, datetime.date) or pd.isna(value) or getattr(value, "tzinfo", None):
        raise ValueError(
            f"{name} must be a date without time zone, such as '2020-01-31' or "
            f"'2020-01-31T12:00:00'; got {given!r}."
        )
    exact, code = np.datetime64(value, "us"), f"M8[{DATE_CODES[unit]}]"
    if is_last and not isinstance(value, datetime.datetime):
        next_day = exact.astype("M8[D]") + np.timedelta64(1, "D")
        return next_day.astype(code) - np.timedelta64(1, DATE_CODES[unit])
    rounded = exact.astype(code)
    if rounded != exact:
        raise ValueError(f"{name} must be a whole {unit}; got {given!r}.")
    return rounded


def _zone_of(dtype):
    return str(dtype.tz) if isinstance(dtype, pd.DatetimeTZDtype) else None


def check_zone(zone):
    if isinstance(zone, str):
        with contextlib.suppress(Exception):
            return pd.DatetimeTZDtype("s", zone)
    raise ValueError(f"zone must be the name of a time zone, such as 'UTC'; got {zone!r}.")
