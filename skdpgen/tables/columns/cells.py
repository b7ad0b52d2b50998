# SPDX-License-Identifier: BSD-3-Clause
"""Reading of numeric and date cells, each on its own, for any dtype."""

import datetime
import decimal
import numbers
from functools import partial

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from ...data.cells import factorize
from ...data.record_functions import call_quietly, drops_errors

# Names that pandas gives to cells which are all numbers.
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
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
    present, numbers = _read_numbers(column)
    return present, np.where(np.abs(numbers) < _SMALLEST, 0.0, numbers)


def _read_categories(read, column):
    """Read each category of a column once."""
    codes, cells = factorize(column)
    present, values = read(pd.Series(cells, dtype=object))
    # The last one is that of missing cells.
    found = np.zeros(len(cells) + 1, dtype=values.dtype)
    found[:-1][present] = values
    present = np.append(present, False)[codes]
    return present, found[codes[present]]


def _read_numbers(column):
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _read_categories(_read_numbers, column)
    if getattr(column.dtype, "kind", "O") in "iuf":
        values = column.to_numpy(np.float64, na_value=np.nan)
    else:
        values = column.to_numpy()
    present = find_present(values)
    values = values[present]
    # A fast path for columns of one type, with the result of reading each cell on its own.
    if _infer(values) in _NUMBERS or not len(values):
        # Some Python numbers are too large for a float.
        with drops_errors():
            return present, values.astype(np.float64)
    return present, np.array([read_number(value) for value in values], dtype=np.float64)


def _infer(values):
    """Return what pandas calls cells; None where one of them lets it fail."""
    return call_quietly(infer_dtype, values, False)


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
        Where dates have a time zone, that in which they are read; those without are no dates then.
        None: those with one are none.
    unit : str, default="ms"
        NumPy's code of the unit to which they are rounded down.

    Returns
    -------
    present : ndarray of bool of shape (n,)
    dates : ndarray of datetime64 of shape (n_present,)
        NaT for a cell that is no such date.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _read_categories(partial(read_dates, zone=zone, unit=unit), column)
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return _read_zoned(column, zone, unit)
    values = column.to_numpy()
    present = find_present(values)
    values = values[present]
    if zone is not None:
        dates = [_read_in_zone(value, zone) for value in values]
        return present, np.array(dates, dtype="M8[us]").astype(f"M8[{unit}]")
    if values.dtype.kind == "M":
        return present, values.astype(f"M8[{unit}]")
    # Dates with and without a zone do not compare: a zone must be declared.
    has_zones = any(getattr(value, "tzinfo", None) is not None for value in values)
    if _infer(values) in ("date", "datetime") and not has_zones:
        with drops_errors():
            return present, values.astype("M8[us]").astype(f"M8[{unit}]")
    dates = [read_date(value) for value in values]
    return present, np.array(dates, dtype="M8[us]").astype(f"M8[{unit}]")


def _read_zoned(column, zone, unit):
    present = find_present(column)
    if zone is None:
        return present, np.full(present.sum(), "NaT", dtype=f"M8[{unit}]")
    dates = column[present].dt.tz_convert(zone).dt.tz_localize(None).to_numpy()
    return present, dates.astype("M8[us]").astype(f"M8[{unit}]")


def _read_in_zone(value, zone):
    # One by one: of several, pandas chooses a unit by all of them.
    with drops_errors():
        if value.tzinfo is not None:
            date = pd.Timestamp(value).tz_convert(zone).tz_localize(None)
            return date.to_datetime64().astype("M8[us]")
    return np.datetime64("NaT", "us")


def read_date(value):
    """Return a cell as datetime64[us]; NaT if it is no date without time zone."""
    is_date = isinstance(value, datetime.date | np.datetime64)
    if is_date and getattr(value, "tzinfo", None) is None:
        with drops_errors():
            return np.datetime64(value, "us")
    return np.datetime64("NaT", "us")
