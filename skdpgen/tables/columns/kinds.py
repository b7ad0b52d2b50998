# SPDX-License-Identifier: BSD-3-Clause
"""Column types from dicts, from public tables, and from dtypes."""

from collections.abc import Mapping

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

from ...data.dtypes import check_dtype, is_date, read_dtype
from ...data.texts import is_writable
from ...histograms.grids import MAX_UNITS
from . import TYPES, Boolean, Category, Date, Number, Ordinal, Unknown
from .base import read_dict
from .cells import read_dates, read_numbers
from .date import DATE_CODES

# A public sample with more different values than this holds names or texts rather than categories.
_MAX_INFERRED = 100


def parse_column(name, kind):
    """Return the kind that a schema gives to a column, and name the column in errors."""
    if not isinstance(name, str) or not name or not is_writable(name):
        raise ValueError(
            f"Names of columns must be non-empty strings; got {name!r}. Rename it, as with "
            "X.columns = X.columns.map(str)."
        )
    if type(kind) in TYPES.values():
        return kind
    try:
        if not isinstance(kind, Mapping):
            kinds = [kind.__name__ for kind in TYPES.values()]
            raise ValueError(f"it must be one of {kinds} or a dict; got {kind!r}.")
        return read_dict(kind, TYPES)
    except ValueError as error:
        reason = str(error)
    raise ValueError(f"Column {name!r}: {reason}")


def kind_of_dtype(name, dtype):
    """Return the column type that the dtype of a column shows; see `Schema.from_dtypes`."""
    check_dtype(dtype, f"Column {name!r}", f"X[{name!r}]")
    dtype = read_dtype(dtype)
    if is_date(dtype):
        return Date(missing=True)
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


def infer_public_column(name, column, n_knots):
    """Return the kind of a column of a public table."""
    missing = bool(column.isna().any())
    try:
        if isinstance(column.dtype, pd.CategoricalDtype):
            check_dtype(column.dtype, "it", f"frame[{name!r}]")
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
            units = ("day", "second", "millisecond")
            unit = next(u for u in units if (dates == dates.astype(f"M8[{DATE_CODES[u]}]")).all())
            return Date(*_extremes(dates), unit, n_knots=n_knots, missing=missing, zone=zone)
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
