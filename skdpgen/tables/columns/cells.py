# SPDX-License-Identifier: BSD-3-Clause
"""Reading of numeric and date cells, each on its own, for any dtype."""

import datetime
import decimal
import numbers
from functools import partial

import numpy as np
import pandas as pd

from ...data.cells import clip_years, factorize
from ...data.record_functions import call_quietly, drops_errors

# Quotients by smaller floats overflow.
_SMALLEST = np.finfo(np.float64).tiny


def find_present(values):
    """Return where cells are not missing; signalling NaNs of decimals are present."""
    missing = call_quietly(pd.isna, values)
    if missing is None:
        scalars = (pd.api.types.is_scalar(value) and value for value in values)
        missing = np.array([bool(call_quietly(pd.isna, value)) for value in scalars])
    return ~np.asarray(missing)


def read_numbers(column):
    """Read a column of numbers, which may be of any dtype, each cell on its own.

    Returns
    -------
    present : ndarray of bool of shape (n,)
    numbers : ndarray of shape (n_present,)
        NaN for a cell that is no number, or that is too large for a float; 0 for one that is so
        small that its reciprocal is.
    """
    if getattr(column.dtype, "kind", "O") in "iuf":
        values = column.to_numpy(np.float64, na_value=np.nan)
        present = find_present(values)
        numbers = values[present]
    else:
        present, numbers = _read_each(read_number, column, np.float64)
    return present, np.where(np.abs(numbers) < _SMALLEST, 0.0, numbers)


def _read_each(read, column, dtype):
    """Return which cells are present, and what `read` makes of these; equal ones are read once."""
    codes, cells = factorize(column)
    present = find_present(cells)
    values = np.array([read(cell) for cell in cells[present]], dtype=dtype)
    if codes is None:
        return present, values
    # The last one is that of missing cells.
    found = np.zeros(len(cells) + 1, dtype=dtype)
    found[:-1][present] = values
    present = np.append(present, False)[codes]
    return present, found[codes[present]]


def read_number(value):
    """Return a cell as a float; NaN if it is no number."""
    with drops_errors():
        is_number = isinstance(value, numbers.Real | decimal.Decimal)
        if is_number and not isinstance(value, bool | np.bool_ | np.timedelta64):
            return float(value)
    return np.nan


def read_dates(column, zone=None, unit="ms"):
    """Read a column of dates, which may be of dtype object, each on its own.

    Parameters
    ----------
    column : Series
    zone : str, default=None
        Where dates have a time zone, that in which they are read; those without are local times of
        it. None: those with one are none.
    unit : str, default="ms"
        NumPy's code of the unit to which they are rounded down.
    """
    has_zone = isinstance(column.dtype, pd.DatetimeTZDtype)
    if has_zone and zone is not None:
        # It fails for all if one date is of a year that Python has not in that zone.
        local = call_quietly(lambda: column.dt.tz_convert(zone).dt.tz_localize(None))
    else:
        local = column if isinstance(column.dtype, np.dtype) and column.dtype.kind == "M" else None
    if local is None:
        read = read_date if zone is None else partial(_read_in_zone, zone=zone)
        present, dates = _read_each(read, column, "M8[us]")
    else:
        present = find_present(local)
        dates = local.to_numpy()[present]
    return present, clip_years(dates, unit)


def _read_in_zone(value, zone):
    # One by one: of several, pandas chooses a unit by all of them.
    with drops_errors():
        if getattr(value, "tzinfo", None) is not None:
            date = pd.Timestamp(value).tz_convert(zone).tz_localize(None)
            return date.to_datetime64().astype("M8[us]")
        return read_date(value)
    return np.datetime64("NaT", "us")


def read_date(value):
    """Return a cell as datetime64[us]; NaT if it is no date without time zone."""
    is_date = isinstance(value, datetime.date | np.datetime64)
    if is_date and getattr(value, "tzinfo", None) is None:
        with drops_errors():
            return np.datetime64(value, "us")
    return np.datetime64("NaT", "us")
