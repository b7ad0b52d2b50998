# SPDX-License-Identifier: BSD-3-Clause
"""Canonical form of private cells: a function of each cell alone, whatever container held it.

Readers choose the dtype of a column by all cells that they read at once: `pandas.read_csv` turns
``07`` into 7 where a chunk holds whole numbers only, into 7.0 beside a missing one, and into the
text "07" beside a single ``?``. If these forms had different values, one record would change the
contributions of all others to a sum, and no sensitivity would bound that. So a text is parsed as
any value that a reader could have made of it, and all forms of a cell become the same value.
"""

import datetime
import enum
import math
import numbers
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pandas as pd

from .._process.muting import muted
from ..saving.registry import savable
from .dtypes import is_date
from .record_functions import call_quietly, drops_errors
from .texts import BLANK_TEXTS, BOOLEANS, MISSING_TEXTS, TextStyle, read_iso_date

# Cells that are read as texts.
_WRITTEN = (uuid.UUID, datetime.time, datetime.timedelta)
# Texts that readers parse as numbers, with leading zeros or surrounding spaces.
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_INFINITE = re.compile(r"\s*([+-]?)inf(inity)?\s*", re.ASCII | re.IGNORECASE)
# Whole numbers below this are exact as floats.
_LARGEST_EXACT = 2**53
# Python's first and last dates, for those that it has not; in seconds, as any container has them.
_FIRST, _LAST = datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59)
_FIRST_YEAR, _LAST_YEAR = np.datetime64("0001", "Y"), np.datetime64("9999", "Y")
# Whole numbers that readers could have made of a year.
_YEARS = (1000, 9999)
# Types of cells whose methods are Python's; time zones of dates may be users' code.
_PLAIN_TYPES = {str, int, float, bool, datetime.datetime, type(None)}


class _Object:
    """Stands for objects that no column type holds, whose methods nobody is to call."""

    def __repr__(self):
        return "OBJECT"


OBJECT = _Object()


class FrameCells:
    """Cells of a frame, of which slices are arrays of objects: these take far more memory.

    Parameters
    ----------
    frame : DataFrame
    """

    ndim = 2

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame
        self.shape = frame.shape

    def __len__(self) -> int:
        return len(self._frame)

    def __getitem__(self, rows) -> np.ndarray:
        frame = self._frame.iloc[rows]
        cells = np.empty(frame.shape, dtype=object)
        # Dates have forms of their own, and conversions of Arrow fail for all cells of a column.
        kinds = [isinstance(t, pd.ArrowDtype) or t.kind == "M" for t in frame.dtypes]
        is_own = np.array(kinds, dtype=bool)
        with muted():
            cells[:, ~is_own] = frame.iloc[:, np.flatnonzero(~is_own)].to_numpy(dtype=object)
            for j in np.flatnonzero(is_own):
                cells[:, j] = list_cells(frame.iloc[:, j])
        return cells


def list_cells(column: pd.Series) -> np.ndarray:
    """Return the cells of a column as objects, each on its own; None for those without one.

    Dates become those of Python, which take a tenth of the time of those of pandas.
    """
    zone = None
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column, zone = column.dt.tz_convert(None), datetime.timezone.utc
    if is_date(column.dtype):
        import pyarrow as pa

        column = pa.array(column)
        dates = column.to_numpy(zero_copy_only=False)
    elif isinstance(column.dtype, np.dtype) and column.dtype.kind == "M":
        dates = column.to_numpy()
    else:
        cells = call_quietly(column.to_numpy, object)
        # One cell that is no object of Python must not change others.
        each = (call_quietly(column.iloc.__getitem__, i) for i in range(len(column)))
        return np.fromiter(each, dtype=object) if cells is None else cells
    dates = _as_python(dates).astype(object)
    if zone is not None:
        dates = np.fromiter((d and d.replace(tzinfo=zone) for d in dates), dtype=object)
    return dates


def _as_python(dates):
    """Return dates of NumPy in microseconds, of the years that Python has."""
    years = dates.astype("M8[Y]")
    dates = np.where(years < _FIRST_YEAR, np.datetime64(_FIRST), dates.astype("M8[us]"))
    return np.where(years > _LAST_YEAR, np.datetime64(_LAST), dates)


@savable
@dataclass(frozen=True)
class CellReader:
    """Maps the cells of a table to their canonical form, each on its own.

    Parameters
    ----------
    styles : tuple of TextStyle or None
        How texts are written in each column; ``expected`` is the declared type of the column.
        None: the container states that the column holds texts, which stay unchanged.
    levels : tuple of tuples
        The declared categories of each column, which are texts even if they look missing.

    Examples
    --------
    >>> from skdpgen.data.texts import PLAIN
    >>> reader = CellReader((PLAIN, None), ((), ()))
    >>> reader(np.array([["07", "07"], [7, "a"]], dtype=object)).tolist()
    [[7.0, '07'], [7.0, 'a']]
    """

    styles: tuple[TextStyle | None, ...]
    levels: tuple[tuple, ...]

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        """Return cells, an array of objects of shape (n, n_columns), in canonical form."""
        # Only cells that a reader changes are copied.
        cells = cells if all(style is None for style in self.styles) else cells.copy()
        for j, style in enumerate(self.styles):
            if style is not None:
                # A column of unknown categories may have any but blanks.
                is_open = style.expected is None and not self.levels[j]
                missing = BLANK_TEXTS if is_open else MISSING_TEXTS.difference(self.levels[j])
                cells[:, j] = read_column(cells[:, j], style, missing)
        return cells


def read_column(
    column: np.ndarray, style: TextStyle, missing: frozenset = frozenset()
) -> np.ndarray:
    """Return the canonical form of the cells of a column.

    A cell that cannot be read is None, and one that no column type holds is `OBJECT`.

    Parameters
    ----------
    column : ndarray of object of shape (n,)
    style : TextStyle
        How texts are written, and what the column is declared to be.
    missing : frozenset of str
        Texts that become None.

    Returns
    -------
    ndarray of object of shape (n,)
    """
    listed = column.tolist()
    types = call_quietly(set, map(type, listed))
    if types is None:
        # Types, too, may have users' code.
        with muted():
            listed = list(map(_convert_quietly, listed))
        column, types = np.fromiter(listed, dtype=object), set(map(type, listed))
    elif not types <= _PLAIN_TYPES:
        with muted():
            listed = [c if type(c) in _PLAIN_TYPES else _convert_quietly(c) for c in listed]
        column, types = np.fromiter(listed, dtype=object), set(map(type, listed))
    # The most frequent case: numbers in a column of numbers are canonical but for their type.
    if types <= {int, float} and style.expected in (None, "number") and style.date_format is None:
        plain = call_quietly(column.astype, np.float64)
        if plain is not None and (int not in types or np.nanmax(np.abs(plain)) < _LARGEST_EXACT):
            # Adding 0.0 turns -0.0 into 0.0, which readers of whole numbers make of "-0".
            return (plain + 0.0).astype(object)
    # Dates without a time zone are canonical.
    if types <= {datetime.datetime, type(None)} and style.expected in (None, "date"):
        if all(cell is None or cell.tzinfo is None for cell in listed):
            return column
    # Equal texts are parsed once: columns repeat few texts many times.
    texts = {cell for cell in listed if type(cell) is str}
    of_texts = dict(zip(texts, _read_texts(list(texts), style), strict=True))
    # Missing codes win over readings as text, unless they are declared as levels.
    of_texts |= dict.fromkeys(texts & missing)
    if types == {str}:
        return np.fromiter((of_texts[cell] for cell in listed), dtype=object)
    large = {c for c in listed if type(c) is int and _LARGEST_EXACT <= abs(c) < 2**64}
    read = read_numbers([str(cell) for cell in large]).tolist()
    known = of_texts | {c: _expect(x, style) for c, x in zip(large, read, strict=True)}
    with muted():
        read = (
            known[c]
            if type(c) is str or (large and type(c) is int and c in large)
            else _read_other(c, style)
            for c in listed
        )
        return np.fromiter(read, dtype=object)


def _convert_quietly(cell):
    with drops_errors():
        return _convert(cell)
    return None


def _convert(cell):
    """Return a cell as one of `_PLAIN_TYPES`, or `OBJECT`.

    By its type alone, since all of its attributes may be users' code.
    """
    cls = type(cell)
    if cls in _PLAIN_TYPES:
        return cell
    if issubclass(cls, enum.Enum):
        is_value = issubclass(cls, int | float) or type(cell.value) is str
        return _convert(cell.value if is_value else cell.name)
    if issubclass(cls, str):
        return str.__str__(cell)
    if cell is pd.NA or cell is pd.NaT:
        return None
    if issubclass(cls, np.timedelta64):
        return None if np.isnat(cell) else str(cell.astype("m8[us]").item())
    if issubclass(cls, _WRITTEN):
        return str.__str__(str(cell))
    if issubclass(cls, np.bool_):
        return bool(cell)
    if issubclass(cls, int | np.integer):
        return int(cell)
    if issubclass(cls, numbers.Real | Decimal):
        return float(cell)
    if issubclass(cls, datetime.date):
        return _read_date(cell)
    if issubclass(cls, np.datetime64):
        return None if np.isnat(cell) else _as_python(cell).item()
    return OBJECT


def read_cell(cell, style: TextStyle):
    """Return the canonical form of a single cell.

    Examples
    --------
    >>> from skdpgen.data.texts import PLAIN
    >>> read_cell("07", PLAIN), read_cell(True, PLAIN), read_cell("2020-01-31", PLAIN)
    (7.0, True, datetime.datetime(2020, 1, 31, 0, 0))
    """
    return read_column(np.fromiter([cell], dtype=object), style)[0]


def _read_texts(texts, style):
    """Parse texts as numbers, booleans or dates; all others stay texts."""
    # Readers with options for numbers accept leading zeros, too.
    of_numbers, is_plain = replace(style, expected="number"), style.has_python_numbers
    plain = texts if is_plain else [of_numbers.plain_number(t.strip()) or "" for t in texts]
    numbers_read = read_numbers(plain)
    if is_plain and style.expected in ("number", "integer"):
        # Amounts with a currency or percent sign, or in parentheses, are numbers if declared so.
        left = np.flatnonzero(np.isnan(numbers_read)).tolist()
        numbers_read[left] = read_numbers(
            [style.plain_number(texts[i].strip()) or "" for i in left]
        )
    return [
        _expect(_read_text(text, number, style), style)
        for text, number in zip(texts, numbers_read.tolist(), strict=True)
    ]


def _read_text(text, number, style):
    stripped = text.strip()
    if style.date_format is not None and (date := style.read_date(stripped)) is not None:
        # A declared format comes first: it says what digits of such a column mean.
        return date
    if not math.isnan(number):
        return number
    if stripped.lower() in ("true", "false"):
        return stripped.lower() == "true"
    date = read_iso_date(stripped) if style.date_format is None else None
    return text if date is None else _in_utc(date)


def read_numbers(texts: Sequence[str]) -> np.ndarray:
    """Parse numbers that are written as Python writes them; NaN for other texts.

    The parser is that of `pandas.read_csv`, whose last digit can differ from Python's.
    """
    values = np.full(len(texts), np.nan)
    is_number = np.array([_NUMBER.fullmatch(text) is not None for text in texts], dtype=bool)
    if is_number.any():
        # The fraction at the end makes pandas parse all of them as floats.
        listed = [*np.array(texts, dtype=object)[is_number], "0.5"]
        values[is_number] = pd.to_numeric(np.array(listed, dtype=object), errors="coerce")[:-1]
    for i in np.flatnonzero(~is_number).tolist():
        if infinite := _INFINITE.fullmatch(texts[i]):
            values[i] = -math.inf if infinite[1] == "-" else math.inf
    return values + 0.0  # no negative zero


def _read_other(cell, style):
    with drops_errors():
        return _expect(_read_value(cell), style)
    return None


def _read_value(cell):
    """Return the canonical form of a cell of one of `_PLAIN_TYPES` that is no text."""
    if type(cell) is int:
        # Readers make floats of whole numbers beside a missing cell.
        is_large = abs(cell) >= _LARGEST_EXACT
        return float(read_numbers([str(cell)])[0] if is_large else cell)
    if type(cell) is float:
        return cell + 0.0
    return _in_utc(cell) if type(cell) is datetime.datetime else cell


def _read_date(cell):
    """Return the date of a cell as one of Python, next to it if it is of a year beyond."""
    if isinstance(cell, pd.Timestamp):
        # Its year in UTC decides, as in columns with a time zone.
        cell = cell if cell.tzinfo is None else cell.tz_convert("UTC")
        if 1 <= cell.year <= 9999:
            return cell.to_pydatetime(warn=False)
        return (_FIRST if cell.year < 1 else _LAST).replace(tzinfo=cell.tzinfo)
    if type(cell) is datetime.datetime:
        return cell
    names = ("hour", "minute", "second", "microsecond", "tzinfo", "fold")
    times = {n: getattr(cell, n) for n in names} if isinstance(cell, datetime.datetime) else {}
    return datetime.datetime(cell.year, cell.month, cell.day, **times)


def _in_utc(date):
    """Convert a date with a time zone to UTC; the next date of Python's if it has no such year."""
    if date.tzinfo is None:
        return date
    try:
        return date.astimezone(datetime.timezone.utc)
    except OverflowError:
        return (_FIRST if date.year == 1 else _LAST).replace(tzinfo=datetime.timezone.utc)


def _expect(value, style):
    """Convert a canonical cell to the declared type of its column, where possible."""
    if style.expected == "boolean":
        return _as_boolean(value)
    is_whole = type(value) is float and math.isfinite(value) and value == int(value)
    if is_whole and style.expected == "date" and style.date_format is None:
        # Readers parse years, and days without separators, as numbers or as dates.
        if _YEARS[0] <= value <= _YEARS[1]:
            return datetime.datetime(int(value), 1, 1)
        return call_quietly(datetime.datetime.strptime, str(int(value)), "%Y%m%d") or value
    if is_whole and style.date_format is not None:
        # A format of digits only, such as %Y%m%d: leading zeros were lost when it was read as a
        # number.
        width = len(datetime.datetime(2003, 12, 31).strftime(style.date_format))
        return style.read_date(str(int(value)).zfill(width)) or value
    return value


def _as_boolean(value):
    if type(value) is float and value in (0, 1):
        return bool(value)
    return BOOLEANS.get(value.strip().lower(), value) if isinstance(value, str) else value
