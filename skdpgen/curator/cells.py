# SPDX-License-Identifier: BSD-3-Clause
"""Canonical form of private cells: a function of each cell alone, whatever container held it.

Readers choose the dtype of a column by all cells that they see at once: `pandas.read_csv` turns
``07`` into 7 where a chunk holds whole numbers only, into 7.0 beside a missing one, and into the
text "07" beside a single ``?``. If these were read differently, one record would change what all
others add to a sum, and no sensitivity would bound it. So a text is read as what a reader could
have made of it, and all forms of a cell become the same value.
"""

import contextlib
import datetime
import functools
import math
import numbers
import re
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from .._muting import muted
from .record_functions import call_quietly
from .texts import BOOLEANS, PLAIN, read_iso_date

# Texts that readers take for numbers, with zeros in front or spaces around them.
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_INFINITE = re.compile(r"\s*([+-]?)inf(inity)?\s*", re.ASCII | re.IGNORECASE)
# Floats tell whole numbers apart up to here.
_LARGEST_EXACT = 2**53
_YEARS = (1000, 9999)
# Texts that `pandas.read_csv` takes for missing cells; but not beside whole numbers of 64 bits.
MISSING = frozenset(
    {
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
        *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    }
)


@dataclass(frozen=True)
class CellReader:
    """Maps the cells of a table to their canonical form, each on its own.

    Parameters
    ----------
    styles : tuple of TextStyle or None
        How texts are written in each column; ``expected`` says what the column is declared to be.
        None: the container states that the column holds texts, and these stay as they are.
    levels : tuple of tuples
        The declared categories of each column, which are texts even if they look missing.
    """

    styles: tuple
    levels: tuple

    def __call__(self, cells):
        """Return cells, an array of objects of shape (n, n_columns), in canonical form."""
        read = {}
        for j, style in enumerate(self.styles):
            if style is not None:
                read[j] = read_column(cells[:, j], style, MISSING.difference(self.levels[j]))
        cells = cells.copy() if read else cells
        for j, column in read.items():
            cells[:, j] = column
        return cells


def read_column(column, style, missing=frozenset()):
    """Return the canonical form of an array of objects; None for texts that stand for missing."""
    listed = column.tolist()
    types = set(map(type, listed))
    if any(issubclass(kind, str) and kind is not str for kind in types):
        # Subclasses may refuse to be hashed.
        listed = [str.__str__(cell) if isinstance(cell, str) else cell for cell in listed]
    if types <= {int, float} and style.expected in (None, "number") and style.date_format is None:
        plain = call_quietly(column.astype, np.float64)
        if plain is not None and (int not in types or np.nanmax(np.abs(plain)) < _LARGEST_EXACT):
            return (plain + 0.0).astype(object)
    texts = {cell for cell in listed if isinstance(cell, str)}
    of_texts = dict(zip(texts, _read_texts(list(texts), style), strict=True))
    of_texts |= dict.fromkeys(texts & missing)
    read = np.empty(len(listed), dtype=object)
    if types == {str}:
        read[:] = [of_texts[cell] for cell in listed]
        return read
    with muted():
        for i, cell in enumerate(listed):
            read[i] = of_texts[cell] if isinstance(cell, str) else _read_other(cell, style)
    return read


def read_cell(cell, style):
    """Return the canonical form of a single cell."""
    column = np.empty(1, dtype=object)
    column[0] = cell
    return read_column(column, style)[0]


def _read_texts(texts, style):
    """Return what texts are read as: numbers, booleans or dates; all others stay texts."""
    # Readers that are told how numbers are written take zeros in front, too.
    of_numbers, is_plain = replace(style, expected="number"), style.has_python_numbers
    plain = texts if is_plain else [of_numbers.plain_number(t.strip()) or "" for t in texts]
    numbers_read = read_numbers(plain)
    return [
        _expect(_read_text(text, number, style), style)
        for text, number in zip(texts, numbers_read.tolist(), strict=True)
    ]


def _read_text(text, number, style):
    stripped = text.strip()
    if style.date_format is not None and (date := style.read_date(stripped)) is not None:
        return date
    if not math.isnan(number):
        return number
    if stripped.lower() in ("true", "false"):
        return stripped.lower() == "true"
    date = read_iso_date(stripped) if style.date_format is None else None
    date = None if date is None else _in_utc(date)
    return text if date is None else date


def read_numbers(texts):
    """Return numbers that are written as Python writes them, NaN for other texts.

    They are read by the parser of `pandas.read_csv`, whose last digit can differ from Python's.
    """
    values = np.full(len(texts), np.nan)
    is_number = np.array([_NUMBER.fullmatch(text) is not None for text in texts], dtype=bool)
    if is_number.any():
        # A number that is not whole has all of them read as floats.
        listed = [*np.array(texts, dtype=object)[is_number], "0.5"]
        values[is_number] = pd.to_numeric(np.array(listed, dtype=object), errors="coerce")[:-1]
    for i in np.flatnonzero(~is_number):
        if found := _INFINITE.fullmatch(texts[i]):
            values[i] = -math.inf if found[1] == "-" else math.inf
    return values + 0.0  # no negative zero


def _read_other(cell, style):
    value = None
    # Some cells refuse to be converted: they stay what they are.
    with contextlib.suppress(Exception):
        value = _read_value(cell)
    return _expect(cell if value is None else value, style)


def _read_value(cell):
    """Return a cell that is no text in canonical form; None if it is that already, or is none."""
    if isinstance(cell, bool | np.bool_):
        return bool(cell)
    if isinstance(cell, int | np.integer) and not isinstance(cell, np.timedelta64):
        # Beside a missing cell, readers make floats of whole numbers.
        if abs(int(cell)) >= _LARGEST_EXACT:
            return float(read_numbers([str(int(cell))])[0])
        return float(cell) + 0.0
    if isinstance(cell, float | np.floating):
        return float(cell) + 0.0
    if cell is pd.NaT:
        return None
    if isinstance(cell, pd.Timestamp):
        return _in_utc(cell.to_pydatetime(warn=False))
    if isinstance(cell, datetime.datetime):
        return _in_utc(cell)
    if isinstance(cell, datetime.date):
        return datetime.datetime(cell.year, cell.month, cell.day)
    if isinstance(cell, np.datetime64) and not np.isnat(cell):
        return cell.astype("M8[us]").item()
    return None


def _in_utc(date):
    """Return a date with a time zone as one in UTC, None beyond its years; others as they are."""
    if date.tzinfo is None:
        return date
    with contextlib.suppress(OverflowError):
        return date.astimezone(datetime.timezone.utc)
    return None


def _expect(value, style):
    """Return a canonical cell as what its column is declared to be, where it can be that."""
    if style.expected == "boolean":
        return _as_boolean(value)
    is_whole = type(value) is float and math.isfinite(value) and value == int(value)
    if is_whole and style.expected == "date" and style.date_format is None:
        # Readers take days without separators, and years, for numbers or for dates.
        if _YEARS[0] <= value <= _YEARS[1]:
            return datetime.datetime(int(value), 1, 1)
        return call_quietly(datetime.datetime.strptime, str(int(value)), "%Y%m%d") or value
    if is_whole and style.date_format is not None:
        width = len(datetime.datetime(2003, 12, 31).strftime(style.date_format))
        return style.read_date(str(int(value)).zfill(width)) or value
    return value


def _as_boolean(value):
    if type(value) is float and value in (0, 1):
        return bool(value)
    return BOOLEANS.get(value.strip().lower(), value) if isinstance(value, str) else value


def name_cell(value):
    """Write a canonical cell down, as a category is named; None for one without a value.

    Examples
    --------
    >>> name_cell(7.0), name_cell("07"), name_cell(True), name_cell(0.5)
    ('7', '07', 'True', '0.5')
    """
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, datetime.datetime) and value is not pd.NaT:
        has_time = value.tzinfo is not None or value.time() != datetime.time()
        return str(value if has_time else value.date())
    if isinstance(value, numbers.Real) and not isinstance(value, np.timedelta64):
        return call_quietly(_name_number, value)
    return None


def _name_number(value):
    if not math.isfinite(value):
        return None
    is_whole = value == int(value) and abs(value) < 1e15
    return str(int(value)) if is_whole else repr(float(value))


def find_levels(cells, levels):
    """Return the position of each cell among declared levels, or -1; each is looked at on its own.

    A cell is the level that equals it or, if there is none, the one of the same canonical form.

    Parameters
    ----------
    cells : ndarray of objects of shape (n,)
    levels : tuple
    """
    listed = cells.tolist()
    with muted():
        texts = {cell for cell in listed if type(cell) is str}
        of_texts = {text: _find_level(text, levels) for text in texts}
        found = [of_texts[c] if type(c) is str else _find_level(c, levels) for c in listed]
    return np.array(found, dtype=np.int64)


def _find_level(cell, levels):
    exact, named = _index_levels(levels)
    # Some cells refuse to be compared or converted: they are no level.
    with contextlib.suppress(Exception):
        if cell in exact:
            return exact[cell]
        return named.get(_find_key(cell, levels), -1)
    return -1


@functools.lru_cache(maxsize=256)
def _index_levels(levels):
    """Return the position of each level, and of the first one of each canonical form."""
    named = {_find_key(level, levels): i for i, level in reversed([*enumerate(levels)])}
    named.pop(None, None)
    return {level: i for i, level in enumerate(levels)}, named


def _find_key(cell, levels):
    """Return what cells of the same canonical form have in common; None where they have nothing."""
    value = read_cell(cell, PLAIN) if isinstance(cell, str) else cell
    if isinstance(levels[0], str):
        return name_cell(value)
    return float(value) if isinstance(value, numbers.Real | np.bool_) else None


def find_alike(levels):
    """Return two of levels that readers may turn into the same value, or None."""
    names = {}
    for level in levels:
        alike = names.setdefault(name_cell(read_cell(level, PLAIN)), level)
        if alike != level:
            return alike, level
    return None
