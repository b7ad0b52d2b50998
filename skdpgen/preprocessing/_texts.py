"""From the texts of a CSV file to values, as a schema says."""

import contextlib

import pandas as pd

from ..privacy.exceptions import TableError
from ..privacy.files import MISSING_TEXTS
from ._schema import Boolean, Date, Number

__all__ = ["parse_texts"]

_BOOLEANS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
_WANTED = {Number: "numbers", Date: "dates (YYYY-MM-DD)", Boolean: "true or false"}


def parse_texts(frame, schema):
    """Turn columns of texts into values of the kinds that a schema declares.

    Empty cells, NA and the like are missing values, unless they are levels.

    Parameters
    ----------
    frame : DataFrame of str
    schema : Schema
        Other columns stay as they are.

    Returns
    -------
    DataFrame

    Raises
    ------
    TableError
        If a column holds other values; none is quoted.
    """
    return pd.DataFrame(
        {
            name: _parse(column, name, schema[name]) if name in schema else column
            for name, column in frame.items()
        }
    )


def _parse(cells, name, kind):
    cells = cells.str.strip()
    if type(kind) not in _WANTED:
        if kind.is_open and not isinstance(kind.other, str):
            return _parse(cells, name, Number(0, 1))
        # Levels come in their own type, which may be that of numbers.
        levels = {str(level): level for level in kind.levels}
        return cells.map(lambda c: levels.get(c, None if c in MISSING_TEXTS else c)).astype(object)
    present = ~cells.isin(MISSING_TEXTS)
    if isinstance(kind, Number):
        values = pd.to_numeric(cells.where(present), errors="coerce")
    elif isinstance(kind, Date):
        values = _parse_dates(cells.where(present))
    else:
        values = cells.str.lower().map(_BOOLEANS).where(present)
    if (values.isna() & present).any():
        raise TableError(f"Column {name!r} holds cells that are not {_WANTED[type(kind)]}.")
    return values.astype(object).where(present, None) if isinstance(kind, Boolean) else values


def _parse_dates(cells):
    """Parse dates; all become missing where they are of several time zones."""
    with contextlib.suppress(ValueError):
        return pd.to_datetime(cells, errors="coerce", format="ISO8601")
    return pd.Series(pd.NaT, index=cells.index)
