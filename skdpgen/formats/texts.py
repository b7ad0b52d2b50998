"""From the texts of a CSV file to values, as a schema says."""

import math
import numbers

import numpy as np
import pandas as pd

from ..privacy.files import MISSING_TEXTS, read_text
from .cells import read_date, read_number
from .columns import MAX_UNITS, Boolean, Category, Date, Number, Unknown
from .identifiers import Identifier

_BOOLEANS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
# The end of a time that names its zone.
_ZONE = r"[T ].*(?:Z|[+-]\d\d(?::?\d\d)?)$"
# What texts a kind that was found takes; others become missing values.
_FITTING = {Number: ("whole", "number"), Boolean: ("boolean",), Date: ("date",)}


def parse_texts(frame, schema):
    """Turn columns of texts into values of the kinds that a schema declares.

    Empty cells, NA and the like are missing values, unless they are levels. A cell that is no
    value of its column stays a text, which what reads it takes for none. Each cell is read on its
    own.

    Parameters
    ----------
    frame : DataFrame of str
    schema : Schema
        Other columns stay as they are.

    Returns
    -------
    DataFrame
    """
    return pd.DataFrame(
        {
            name: _parse(column, schema[name]) if name in schema else column
            for name, column in frame.items()
        }
    )


def parse_found(table, schema, names):
    """Turn the texts of columns whose kinds were found into values, each cell on its own.

    Parameters
    ----------
    table : DataFrame
    schema : Schema
        With the kinds that were found.
    names : sequence of str
        The columns.

    Returns
    -------
    DataFrame
    """
    parsed = {
        name: pd.Series([_parse_cell(c, type(schema[name])) for c in table[name]], dtype=object)
        for name in names
        if name in schema
    }
    return table.assign(**parsed) if parsed else table


def _parse_cell(cell, kind):
    found, value = read_cell(cell)
    if kind is Category:
        return None if found == "missing" else str(cell)
    return value if found in _FITTING[kind] else None


def read_cell(cell):
    """Return the kind of a cell of a column of which nothing is known, and its value.

    It is a text, or a value of Python or NumPy; what is neither counts as missing. It is a function
    of this cell alone.

    Examples
    --------
    >>> read_cell("1.5"), read_cell(1.5), read_cell(3), read_cell(True), read_cell([3])
    (('number', 1.5), ('number', 1.5), ('whole', 3.0), ('boolean', True), ('missing', None))
    """
    if isinstance(cell, str):
        return read_text(cell)
    if isinstance(cell, bool | np.bool_):
        return "boolean", bool(cell)
    number, date = read_number(cell), read_date(cell)
    if math.isfinite(number):
        is_whole = isinstance(cell, numbers.Integral) and abs(number) < MAX_UNITS
        return "whole" if is_whole else "number", number
    return ("missing", None) if np.isnat(date) else ("date", date.item())


def _parse(cells, kind):
    cells = cells.str.strip()
    if isinstance(kind, Identifier):
        return cells
    if isinstance(kind, Unknown):
        return cells.map(lambda c: None if c in MISSING_TEXTS else c).astype(object)
    if not isinstance(kind, Number | Date | Boolean):
        if kind.is_open and not isinstance(kind.other, str):
            return _parse(cells, Number(0, 1))
        # Levels come in their own type, which may be that of numbers.
        levels = {str(level): level for level in kind.levels}
        return cells.map(lambda c: levels.get(c, None if c in MISSING_TEXTS else c)).astype(object)
    present = ~cells.isin(MISSING_TEXTS)
    if isinstance(kind, Number):
        # As floats, whatever others are: integers of a chunk without missing cells would be exact.
        values = pd.to_numeric(cells.where(present), errors="coerce").astype("float64")
    elif isinstance(kind, Date):
        has_zone = cells.str.contains(_ZONE, regex=True)
        is_read = present & (has_zone if kind.zone else ~has_zone)
        values = _parse_dates(cells.where(is_read), utc=kind.zone is not None)
    else:
        values = cells.str.lower().map(_BOOLEANS).where(present)
    if isinstance(kind, Boolean):
        values = values.astype(object).where(present, None)
    is_text = values.isna() & present
    return values.astype(object).where(~is_text, cells) if is_text.any() else values


def _parse_dates(cells, utc):
    # Seconds in nanoseconds would narrow the years that others can be of.
    cells = cells.str.replace(r"(\.\d{6})\d+$", r"\1", regex=True)
    return pd.to_datetime(cells, errors="coerce", format="ISO8601", utc=utc)
