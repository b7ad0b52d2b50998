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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pandas as pd
from pandas.api.types import is_object_dtype

from .._process.muting import muted
from ..registry import savable
from .dtypes import is_date
from .record_functions import call_quietly, drops_errors
from .texts import BLANK_TEXTS, BOOLEANS, MISSING_TEXTS, TextStyle

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
_UTC = id(datetime.timezone.utc)
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
    """Cells of a frame by position. `numpy.asarray` gives objects, which take far more memory."""

    ndim, dtype = 2, np.dtype(object)

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self.shape = frame.shape

    @classmethod
    def concatenate(cls, parts: Sequence["FrameCells"]) -> "FrameCells":
        """Return the cells of all parts."""
        frames = [part.frame for part in parts]
        joined = {j: _concatenate([f.iloc[:, j] for f in frames]) for j in range(parts[0].shape[1])}
        return cls(_make_frame(joined, sum(map(len, frames)), frames[0].columns))

    def __len__(self) -> int:
        return len(self.frame)

    def __getitem__(self, rows) -> "FrameCells":
        frame = self.frame.iloc[rows]
        # Rows are known by position.
        frame.index = pd.RangeIndex(len(frame))
        return FrameCells(frame)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        cells = np.empty(self.shape, dtype=object)
        with muted():
            for j in range(self.shape[1]):
                cells[:, j] = list_cells(self.frame.iloc[:, j])
        return cells

    def copy(self) -> "FrameCells":
        """Return the cells in memory of their own."""
        return FrameCells(self.frame.copy())


def as_frame(cells, names: Sequence | None = None) -> pd.DataFrame:
    """Return cells, `FrameCells` or an array of objects, as a frame."""
    if isinstance(cells, FrameCells):
        return cells.frame
    columns = {j: find_dtype(cells[:, j]) for j in range(cells.shape[1])}
    return _make_frame(columns, len(cells), range(len(columns)) if names is None else names)


def _make_frame(columns, n_rows, names):
    frame = pd.DataFrame(columns, pd.RangeIndex(n_rows), copy=False)
    frame.columns = names
    return frame


def _concatenate(columns):
    if len({column.dtype for column in columns}) == 1:
        return pd.concat(columns, ignore_index=True)
    return pd.Series(np.concatenate(list(map(list_cells, columns))), dtype=object)


def list_cells(column: pd.Series) -> np.ndarray:
    """Return the cells of a column as objects, each on its own; None for those without one.

    Dates become those of Python, which take a tenth of the time of those of pandas.
    """
    if _holds_dates(column.dtype):
        read = _read_dates(column)
        dates = read.to_numpy("M8[us]").astype(object)
        if isinstance(read.dtype, pd.DatetimeTZDtype):
            dates = as_objects(d and d.replace(tzinfo=datetime.timezone.utc) for d in dates)
        return dates
    cells = call_quietly(column.to_numpy, object)
    if cells is None:
        # One cell that is no object of Python must not change others.
        cells = as_objects(call_quietly(column.iloc.__getitem__, i) for i in range(len(column)))
    return cells


def as_objects(cells: Iterable) -> np.ndarray:
    """Return a list as a 1-dimensional array of objects, whatever its cells are."""
    return np.fromiter(cells, dtype=object)


def _holds_dates(dtype):
    is_plain = isinstance(dtype, np.dtype) and dtype.kind == "M"
    return is_plain or isinstance(dtype, pd.DatetimeTZDtype) or is_date(dtype)


def clip_years(dates: np.ndarray, unit: str = "us") -> np.ndarray:
    """Return dates of NumPy in a unit, clipped to the years that Python has."""
    years = dates.astype("M8[Y]")
    is_early, is_late = years < _FIRST_YEAR, years > _LAST_YEAR
    # NumPy converts none of them if one overflows.
    dates = np.where(is_early | is_late, np.datetime64("NaT", "Y"), dates).astype(f"M8[{unit}]")
    dates = np.where(is_early, np.datetime64(_FIRST, "us").astype(dates.dtype), dates)
    return np.where(is_late, np.datetime64(_LAST, "us").astype(dates.dtype), dates)


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
    >>> np.asarray(reader(np.array([["07", "07"], [7, "a"]], dtype=object))).tolist()
    [[7.0, '07'], [7.0, 'a']]
    """

    styles: tuple[TextStyle | None, ...]
    levels: tuple[tuple, ...]

    def __call__(self, cells) -> FrameCells:
        """Return cells, `FrameCells` or an array of objects, in canonical form."""
        frame = as_frame(cells)
        read = {}
        with muted():
            for j, (style, levels) in enumerate(zip(self.styles, self.levels, strict=True)):
                # A column of unknown categories may have any but blanks.
                is_open = style is not None and style.expected is None and not levels
                missing = BLANK_TEXTS if is_open else MISSING_TEXTS.difference(levels)
                read[j] = read_column(frame.iloc[:, j], style, missing)
        return FrameCells(_make_frame(read, len(frame), frame.columns))


def read_column(
    column: pd.Series, style: TextStyle | None, missing: frozenset = frozenset()
) -> pd.Series:
    """Return the canonical form of the cells of a column.

    A dtype that says what all cells are is read without Python objects, and equal texts and
    categories once. The dtype of the result follows from all of its cells: numbers are float64 with
    NaN for missing ones, dates datetime64[us], and all others categories or, where booleans equal
    numbers, objects. The value of each follows from that cell alone.

    Parameters
    ----------
    column : Series
    style : TextStyle or None
        How texts are written, and what the column is declared to be. None: cells stay unchanged.
    missing : frozenset of str
        Texts that become missing.
    """
    dtype = column.dtype
    if _holds_dates(dtype):
        return _read_dates(column)
    if dtype.kind in "iuf":
        if style is None:
            return column
        column = _read_dtype_of_numbers(column)
        if style.date_format is None and style.expected in (None, "number", "integer"):
            return column
    codes, cells = factorize(column)
    if style is not None:
        cells = read_cells(cells, style, missing)
    read = find_dtype(cells)
    return read if codes is None else _take(read, codes)


def factorize(column: pd.Series) -> tuple[np.ndarray | None, np.ndarray]:
    """Return the distinct cells of a column, as objects, and where each row's is among them.

    Returns
    -------
    codes : ndarray of int of shape (n,) or None
        -1 for missing cells. None: cells are all listed, as equal ones may differ, such as 1 and
        True, or a date in two zones.
    cells : ndarray of object
    """
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        codes, cells = column.cat.codes.to_numpy(), dtype.categories
        if len(cells) > len(codes):
            # A block has few of the categories of a table.
            used, codes = np.unique(codes, return_inverse=True)
            n_missing = int(len(used) > 0 and used[0] < 0)
            codes, cells = codes - n_missing, cells[used[n_missing:]]
        return codes, list_cells(pd.Series(cells))
    if is_object_dtype(dtype) or (isinstance(dtype, pd.ArrowDtype) and not is_date(dtype)):
        cells = list_cells(column)
        if not are_exact(cells.tolist()):
            return None, cells
        return pd.factorize(cells)
    codes, cells = pd.factorize(column)
    return codes, list_cells(pd.Series(cells))


def are_exact(cells: Iterable) -> bool:
    """Whether equal cells are the same: all are texts, whole numbers or None."""
    # By identity: types, too, may have users' code.
    return all(type(cell) is str or type(cell) is int or cell is None for cell in cells)


def _read_dates(column):
    """Return dates in microseconds, in UTC if they have a time zone, of the years of Python."""
    has_zone = isinstance(column.dtype, pd.DatetimeTZDtype)
    column = column.dt.tz_convert(None) if has_zone else column
    if is_date(column.dtype):
        import pyarrow as pa

        dates = pa.array(column).to_numpy(zero_copy_only=False)
    else:
        dates = column.to_numpy()
    read = pd.Series(clip_years(dates))
    return read.dt.tz_localize("UTC") if has_zone else read


def _read_dtype_of_numbers(column):
    """Return numbers, of which whole ones beyond 2^53 are what readers of their texts make."""
    numbers = column.to_numpy(np.float64, na_value=np.nan, copy=True) + 0.0  # no negative zero
    if column.dtype.kind != "f":
        is_large = np.abs(numbers) >= _LARGEST_EXACT
        if is_large.any():
            numbers[is_large] = read_numbers(list(map(str, column[is_large].tolist())))
    return pd.Series(numbers)


def find_dtype(cells: np.ndarray) -> pd.Series:
    """Return an array of objects as a column of the dtype that all of them have, or categories.

    It stays an array of objects where equal cells may differ, such as 1 and True.
    """
    types = call_quietly(set, map(type, cells.tolist()))
    types = {object} if types is None else types - {type(None)}
    if types <= {float}:
        return pd.Series(cells.astype(np.float64))
    zones = set()
    if datetime.datetime in types:
        zones = {id(cell.tzinfo) for cell in cells if type(cell) is datetime.datetime}
    if types == {datetime.datetime} and zones == {id(None)}:
        return pd.Series(cells.astype("M8[us]"))
    if types == {datetime.datetime} and zones == {_UTC}:
        naive = [cell and cell.replace(tzinfo=None) for cell in cells]
        return pd.Series(np.array(naive, dtype="M8[us]")).dt.tz_localize("UTC")
    is_exact = types <= {*_PLAIN_TYPES, _Object} and zones <= {id(None), _UTC}
    if not is_exact or len(types & {bool, int, float}) > 1:
        return pd.Series(cells, dtype=object)
    codes, found = pd.factorize(cells)
    return pd.Series(pd.Categorical.from_codes(codes, pd.Index(found, dtype=object)))


def _take(column, codes):
    """Return the cells of a column at positions; a missing one at -1."""
    return pd.Series(column.array.take(codes, allow_fill=True))


def read_cells(cells: np.ndarray, style: TextStyle, missing: frozenset = frozenset()) -> np.ndarray:
    """Return the canonical form of cells.

    A cell that cannot be read is None, and one that no column type holds is `OBJECT`.
    """
    listed = cells.tolist()
    types = call_quietly(set, map(type, listed))
    if types is None or not types <= _PLAIN_TYPES:
        # Types, too, may have users' code.
        with muted():
            listed = list(map(_convert_quietly, listed))
        types = set(map(type, listed))
    # The most frequent case: numbers in a column of numbers are canonical but for their type.
    if types <= {int, float} and style.expected in (None, "number") and style.date_format is None:
        plain = call_quietly(as_objects(listed).astype, np.float64)
        if plain is not None and (int not in types or np.nanmax(np.abs(plain)) < _LARGEST_EXACT):
            # Adding 0.0 turns -0.0 into 0.0, which readers of whole numbers make of "-0".
            return (plain + 0.0).astype(object)
    # Equal texts, and large whole numbers, are parsed once and at once.
    texts = {cell for cell in listed if type(cell) is str}
    known: dict = dict(zip(texts, _read_texts(list(texts), style), strict=True))
    # Missing codes win over readings as text, unless they are declared as levels.
    known |= dict.fromkeys(texts & missing)
    large = {c for c in listed if type(c) is int and _LARGEST_EXACT <= abs(c) < 2**64}
    read = read_numbers(list(map(str, large))).tolist()
    known |= {c: _expect(number, style) for c, number in zip(large, read, strict=True)}
    with muted():
        return as_objects(
            known[c] if type(c) is str or (type(c) is int and c in known) else _read_other(c, style)
            for c in listed
        )


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
        return None if np.isnat(cell) else clip_years(cell).item()
    return OBJECT


def read_cell(cell, style: TextStyle):
    """Return the canonical form of a single cell.

    Examples
    --------
    >>> from skdpgen.data.texts import PLAIN
    >>> read_cell("07", PLAIN), read_cell(True, PLAIN), read_cell("2020-01-31", PLAIN)
    (7.0, True, datetime.datetime(2020, 1, 31, 0, 0))
    """
    return read_cells(as_objects([cell]), style)[0]


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
    # First, as a declared format says what digits of such a column mean.
    if (date := style.read_date(stripped)) is not None:
        return _in_utc(date)
    if not math.isnan(number):
        return number
    return {"true": True, "false": False}.get(stripped.lower(), text)


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
