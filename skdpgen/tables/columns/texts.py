# SPDX-License-Identifier: BSD-3-Clause
"""From the texts of a CSV file to values, as a schema says."""

import math

import numpy as np
import pandas as pd

from ...curator.cells import name_cell
from ...curator.texts import BOOLEANS, MISSING_TEXTS, PLAIN, read_text
from .cells import read_date, read_number
from .identifiers import Identifier
from .types import MAX_UNITS, Boolean, Category, Date, Number, Unknown

# The end of a time that names its zone.
_ZONE = r"[T ].*(?:Z|[+-]\d\d(?::?\d\d)?)$"
# What texts a kind that was found takes; others become missing values.
FITTING = {Number: ("whole", "number"), Boolean: ("boolean",), Date: ("date",)}


def parse_texts(frame, schema, style=PLAIN):
    """Turn columns of texts into values of the kinds that a schema declares.

    Empty cells, NA and the like are missing values, unless they are levels. A cell that is no
    value of its column stays a text, which what reads it takes for none. Each cell is read on its
    own.

    Parameters
    ----------
    frame : DataFrame of str
    schema : Schema
        Other columns stay as they are.
    style : TextStyle, default=PLAIN
        How numbers and dates are written. Columns of which nothing is known have their own.

    Returns
    -------
    DataFrame
    """
    return pd.DataFrame(
        {
            name: _parse(column, schema[name], style) if name in schema else column
            for name, column in frame.items()
        }
    )


def parse_found(table, schema, styles):
    """Turn the texts of columns whose kinds were found into values, each cell on its own.

    Parameters
    ----------
    table : DataFrame
    schema : Schema
        With the kinds that were found.
    styles : dict of str to TextStyle
        The columns, and how they are written.

    Returns
    -------
    DataFrame
    """
    parsed = {
        name: pd.Series(
            [_parse_cell(cell, type(schema[name]), style) for cell in table[name]], dtype=object
        )
        for name, style in styles.items()
        if name in schema
    }
    return table.assign(**parsed) if parsed else table


def _parse_cell(cell, kind, style):
    found, value = read_cell(cell, style)
    if kind is Category:
        return None if found == "missing" else name_cell(cell)
    return value if found in FITTING[kind] else None


def read_cell(cell, style=PLAIN):
    """Return the kind of a cell of a column of which nothing is known, and its value.

    It is a text, or a value of Python or NumPy; what is neither counts as missing. It is a function
    of this cell alone.

    Examples
    --------
    >>> read_cell("1.5"), read_cell(1.5), read_cell(3), read_cell(True), read_cell([3])
    (('number', 1.5), ('number', 1.5), ('whole', 3.0), ('boolean', True), ('missing', None))
    """
    if isinstance(cell, str):
        return read_text(cell, style)
    if isinstance(cell, bool | np.bool_):
        return "boolean", bool(cell)
    number, date = read_number(cell), read_date(cell)
    if math.isfinite(number):
        # Beside a missing cell, readers make floats of whole numbers.
        is_whole = number == int(number) and abs(number) < MAX_UNITS
        return "whole" if is_whole else "number", number
    if getattr(cell, "tzinfo", None) is not None and cell is not pd.NaT:
        return "text", name_cell(cell)
    return ("missing", None) if np.isnat(date) else ("date", date.item())


def _parse(cells, kind, style):
    cells = cells.str.strip()
    if isinstance(kind, Identifier):
        return cells
    if isinstance(kind, Unknown):
        return cells.map(lambda c: None if c in MISSING_TEXTS else c).astype(object)
    if not isinstance(kind, Number | Date | Boolean):
        if kind.is_open and not isinstance(kind.other, str):
            return _parse(cells, Number(0, 1), style)
        # Levels come in their own type, which may be that of numbers.
        levels = {str(level): level for level in kind.levels}
        return cells.map(lambda c: levels.get(c, None if c in MISSING_TEXTS else c)).astype(object)
    present = ~cells.isin(MISSING_TEXTS)
    if isinstance(kind, Number):
        # As floats, whatever others are: integers of a chunk without missing cells would be exact.
        values = _parse_numbers(cells.where(present), style).astype("float64")
    elif isinstance(kind, Date):
        values = _parse_dates(cells.where(present), style, kind.zone)
    else:
        values = cells.str.lower().map(BOOLEANS).where(present)
    if isinstance(kind, Boolean):
        values = values.astype(object).where(present, None)
    is_text = values.isna() & present
    return values.astype(object).where(~is_text, cells) if is_text.any() else values


def _parse_numbers(cells, style):
    if not style.has_python_numbers:
        return pd.to_numeric(cells.map(style.plain_number, na_action="ignore"), errors="coerce")
    values = pd.to_numeric(cells, errors="coerce").astype("float64")
    left = cells[values.isna() & cells.notna()]
    if len(left):
        # Those with a currency.
        values[left.index] = pd.to_numeric(left.map(style.plain_number), errors="coerce")
    return values


def _parse_dates(cells, style, zone):
    if style.date_format is not None:
        dates = [style.read_date(cell) if isinstance(cell, str) else None for cell in cells]
        return pd.Series(dates, index=cells.index, dtype=object)
    has_zone = cells.str.contains(_ZONE, regex=True, na=False)
    cells = cells.where(has_zone if zone else ~has_zone)
    # Seconds in nanoseconds would narrow the years that others can be of.
    cells = cells.str.replace(r"(\.\d{6})\d+(?=$|Z|[+-])", r"\1", regex=True)
    return pd.to_datetime(cells, errors="coerce", format="ISO8601", utc=zone is not None)
