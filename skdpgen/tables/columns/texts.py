# SPDX-License-Identifier: BSD-3-Clause
"""Parsing of text cells by a schema, and synthetic cells as texts."""

import datetime
import math
from functools import partial

import numpy as np
import pandas as pd

from ...data.cells import FrameCells, as_frame, as_objects, find_dtype
from ...data.names import map_cells, name_cell
from ...data.record_functions import drops_errors
from ...data.texts import BLANK_TEXTS, HAS_TIME, MISSING_TEXTS, PLAIN, WAYS, read_text
from ...histograms.grids import MAX_UNITS
from .cells import find_present, read_date, read_number

# How times of dates of a unit are written.
_CLOCKS = {"hour": "%H:%M", "minute": "%H:%M", "millisecond": "%H:%M:%S.%f"}


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
    """
    parsed = {}
    for name, column in frame.items():
        cells = [cell.strip() if isinstance(cell, str) else cell for cell in column.tolist()]
        column = pd.Series(cells, index=column.index, dtype=object)
        parsed[name] = schema[name].parse(column, style) if name in schema else column
    return pd.DataFrame(parsed, index=frame.index)


def parse_inferred(table, schema, styles):
    """Turn the texts of columns of inferred types into values, each cell on its own."""
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
        # NA may be a country.
        missing = MISSING_TEXTS if style.is_file else BLANK_TEXTS
        return None if isinstance(cell, str) and cell.strip() in missing else name_cell(cell)
    return None


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


def write_cells(column, column_type, style, *, are_texts=True):
    """Return synthetic cells as texts, numbers, dates and missing ones as those of a style.

    Unless all cells `are_texts`, those stay that were none by released counts.
    """
    kind, texts = getattr(column.dtype, "kind", "O"), column
    # A word that is a category in one column means a missing value in another.
    levels = getattr(column_type, "levels", ())
    words = (way for way in style.written if way in WAYS["missing"] and way not in levels)
    missing = next(words, "<NA>")
    what = "dates" if kind == "M" else "numbers"
    if column_type is None or not (are_texts or style.find_way(what)):
        pass
    elif kind in "iuf":
        write = partial(_write_number, kind=kind, decimals=column_type.decimals, style=style)
        codes, numbers = pd.factorize(column)
        listed = [*(write(number) for number in numbers), None]
        texts = pd.Series(as_objects(listed)[codes], column.index)
    elif kind == "M":
        date_format = find_date_format(column_type, style)
        texts = column.dt.strftime(date_format).str.replace(r"([.][0-9]{3})000", r"\1", regex=True)
        if date_format.endswith("%z"):
            texts = texts.str[:-2] + ":" + texts.str[-2:]
    return texts if missing == "<NA>" else texts.astype(object).where(column.notna(), missing)


def _write_number(number, kind, decimals, style):
    """Return a number as it is written; without a known way, as Python writes it."""
    way, sign, ways = style.find_way("numbers"), style.find_way("signs"), {*style.written}
    # With three decimals, those of a number below 1,000 are as many digits as a group.
    has_zeros = bool(ways & {"1.50", "1,000.50", *["1,230"] * (style.thousands is None)})
    has_groups = bool(ways & {"1,000", "1,230", "1,000.50"})
    is_fixed = has_zeros or (sign is not None and "1" not in ways)
    if ways & {"1E5", "1e5"}:
        text = np.format_float_scientific(abs(number), trim="0")
        text = text.upper() if "1E5" in ways else text
    elif is_fixed and decimals is not None:
        text = f"{abs(number):,.{max(decimals, 2 * has_zeros)}f}"
    elif way is not None and (kind != "f" or float(number).is_integer()):
        text = f"{abs(int(number)):,}" + ".0" * ("1.0" in ways)
    else:
        text = f"{abs(number):,}"
    text = text[1:] if ".5" in ways and text.startswith("0.") else text
    # Years, for one, have no groups; amounts of money do.
    is_grouped = has_groups or (way is None and (sign is not None or kind == "f"))
    signs = {",": (style.thousands or "") * is_grouped, ".": style.decimal}
    text = text.translate(str.maketrans(signs))
    is_negative = bool(number < 0)
    text = text if sign is None or (is_negative and sign == "+{}") else sign.format(text)
    return f"({text})" if is_negative and "(1)" in ways else "-" * is_negative + text


def find_date_format(column_type, style):
    """Return the format in which synthetic dates are written: with the digits of their unit."""
    way, unit, zone = style.find_way("dates"), column_type.unit, column_type.zone
    clock = _CLOCKS.get(unit, "%H:%M:%S")
    if style.date_format is not None:
        clock = clock.replace("%H", "%I") + " %p" if way == "TZ" else clock
        has_clock = unit != "day" and not HAS_TIME.search(style.date_format)
        return style.date_format + f" {clock}" * has_clock
    if unit == "day" and zone is None and way in (None, "D"):
        return "%Y-%m-%d"
    way = " " if way in (None, "D") else way
    offset = "" if zone is None else "Z" if (way, zone) == ("TZ", "UTC") else "%z"
    return f"%Y-%m-%d{way[0]}{clock}{offset}"
