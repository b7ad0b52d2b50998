# SPDX-License-Identifier: BSD-3-Clause
"""Parsing of text cells by a schema."""

import datetime
import math
from functools import partial

import numpy as np
import pandas as pd

from ...data.cells import FrameCells, as_frame, as_objects, find_dtype
from ...data.names import map_cells, name_cell
from ...data.record_functions import drops_errors
from ...data.texts import BLANK_TEXTS, PLAIN, read_text
from ...histograms.grids import MAX_UNITS
from .cells import find_present, read_date, read_number


def parse_cells(frame, schema, style=PLAIN):
    """Turn cells into values of the types that a schema declares, each on its own.

    Empty cells, NA and the like are missing values, unless they are levels. A cell that is no
    value of its column stays, which the encoder treats as invalid.

    Parameters
    ----------
    frame : DataFrame of object
        Texts, or cells of a spreadsheet.
    schema : Schema
        Other columns stay as they are.
    style : TextStyle, default=PLAIN
        How numbers and dates are written. Undeclared columns have their own.

    Returns
    -------
    DataFrame of object
    """
    parsed = {}
    for name, column in frame.items():
        cells = [cell.strip() if isinstance(cell, str) else cell for cell in column.tolist()]
        column = pd.Series(cells, index=column.index, dtype=object)
        parsed[name] = schema[name].parse(column, style) if name in schema else column
    return pd.DataFrame(parsed, index=frame.index)


def parse_inferred(table, schema, styles):
    """Turn the texts of columns of inferred types into values, each cell on its own.

    Parameters
    ----------
    table : DataFrame
    schema : Schema
        With the inferred types.
    styles : dict of str to TextStyle
        The columns, and how they are written.

    Returns
    -------
    DataFrame
    """
    parsed = {
        name: parse_column(table[name], schema[name].cell_types, style)
        for name, style in styles.items()
        if name in schema
    }
    return table.assign(**parsed) if parsed else table


def parse_private(cells, schema, styles):
    """Parse private cells, `FrameCells` or an array of objects, as `parse_inferred` does."""
    return FrameCells(parse_inferred(as_frame(cells, list(schema)), schema, styles))


def parse_column(column, types, style):
    """Return the cells of a column that are of some types, others missing; see `read_cell`."""
    found = find_types_of_dtype(column)
    if found is None or types is None:
        return find_dtype(map_cells(partial(_parse_cell, types=types, style=style), column))
    return column.where(np.isin(found, types))


def find_types_of_dtype(column):
    """Return the types of the cells of a column of numbers or dates; None for other dtypes.

    See `read_cell`.
    """
    if column.dtype == np.float64:
        is_whole = (column == np.round(column)) & (np.abs(column) < MAX_UNITS)
        return np.where(is_whole, "whole", np.where(np.isfinite(column), "number", "missing"))
    is_zoned = isinstance(column.dtype, pd.DatetimeTZDtype)
    if is_zoned or column.dtype.kind == "M":
        return np.where(column.isna(), "missing", "zoned date" if is_zoned else "date")
    return None


def _parse_cell(cell, types, style):
    with drops_errors():
        found, value = read_cell(cell, style)
        if types is not None:
            return value if found in types else None
        return None if is_blank(cell) else name_cell(cell)
    return None


def is_blank(cell):
    """Whether a text is no category; the others are, since NA may be a country."""
    return isinstance(cell, str) and cell.strip() in BLANK_TEXTS


def read_cell(cell, style=PLAIN):
    """Return the type of a cell of an undeclared column, and its value.

    The cell is a text, or a value of Python or NumPy; the type of any other is "object". The
    result is a function of this cell alone.

    Examples
    --------
    >>> read_cell("1.5"), read_cell(1.5), read_cell(3), read_cell(True), read_cell([3])
    (('number', 1.5), ('number', 1.5), ('whole', 3.0), ('boolean', True), ('object', None))
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
    if isinstance(cell, datetime.datetime) and cell is not pd.NaT and cell.tzinfo is not None:
        return "zoned date", cell
    if not np.isnat(date):
        return "date", date.item()
    is_missing = math.isinf(number) or not find_present(as_objects([cell]))[0]
    return "missing" if is_missing else "object", None
