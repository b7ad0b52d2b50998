# SPDX-License-Identifier: BSD-3-Clause
"""Names of canonical cells as categories, counts of these, and positions among declared levels."""

import datetime
import functools
import math
import numbers
import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from .._process.muting import muted
from .cells import as_objects, factorize, read_cell
from .record_functions import call_quietly, drops_errors
from .texts import PLAIN

# Most digits of the numbers that people write; of floats of 32 bits, fewer than they hold.
_DIGITS, _SINGLE_DIGITS = 9, 6
# Powers of 10 that are exact as floats.
_POWERS = np.array([float(f"1e{i}") for i in range(23)])
_MIDNIGHT = re.compile(r"00:00(:00(\.0+)?)?")


def name_cell(value) -> str | None:
    """Return the name of a canonical cell as a category; None for a missing cell.

    Examples
    --------
    >>> name_cell(7.0), name_cell("07"), name_cell(True), name_cell(0.5)
    ('7', '07', 'True', '0.5')
    """
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    # A date without a time is named without one: readers write both.
    if isinstance(value, datetime.datetime) and value is not pd.NaT:
        has_time = value.tzinfo is not None or value.time() != datetime.time()
        return str(value if has_time else value.date())
    if type(value) is float:
        return _name_number(value)
    if isinstance(value, numbers.Real) and not isinstance(value, np.timedelta64):
        return call_quietly(_name_number, value)
    return None


def map_cells(function: Callable, column: pd.Series) -> np.ndarray:
    """Apply a function to each cell of a column on its own, once to equal ones; see `factorize`.

    Missing cells are None.
    """
    return map_distinct(lambda cells: map(function, cells.tolist()), column)


def map_distinct(function: Callable, column: pd.Series) -> np.ndarray:
    """Return an object for each cell of a column, from those of an array of distinct cells."""
    codes, cells = factorize(column)
    if codes is None:
        return as_objects(function(cells))
    return as_objects(function(as_objects([*cells, None])))[codes]


def count_names(column: pd.Series) -> Counter:
    """Count the names of the cells of a column that have one; see `name_cell`."""
    return _count_names(*_count_cells(column))


def count_short_names(column: pd.Series) -> Counter:
    """Count the names that people write: no numbers with many digits, and no dates with a time.

    Examples
    --------
    >>> count_short_names(pd.Series([0.1, 1 / 3, 250_000, 0.1]))
    Counter({'0.1': 2, '250000': 1})
    """
    cells, sizes = _count_cells(column)
    if column.dtype != np.float64:
        counts = _count_names(cells, sizes)
        return Counter({name: count for name, count in counts.items() if _is_short(name)})
    is_short = _are_short(cells.astype(np.float64))
    return _count_names(cells[is_short], sizes[is_short])


def _count_cells(column):
    """Return the distinct cells of a column, and how often each occurs."""
    codes, cells = factorize(column)
    if codes is None:
        return cells, np.ones(len(cells), dtype=np.int64)
    sizes = np.bincount(codes[codes >= 0], minlength=len(cells))
    return cells[sizes > 0], sizes[sizes > 0]


def _count_names(cells, sizes):
    counts: Counter = Counter()
    for cell, size in zip(cells.tolist(), sizes.tolist(), strict=True):
        counts[name_cell(cell)] += size
    del counts[None]
    return counts


def _are_short(numbers):
    """Whether each number has few digits; as `_is_short` of its name, without writing most."""
    with np.errstate(all="ignore"):
        exponent = _DIGITS - 1 - np.floor(np.log10(np.abs(numbers)))
        size = np.abs(exponent)
        is_exact = size < len(_POWERS)
        power = np.where(is_exact, _POWERS[np.where(is_exact, size, 0).astype(int)], np.nan)
        digits = np.round(np.where(exponent >= 0, numbers * power, numbers / power))
        # Quotients and products of numbers that are exact are rounded as their texts are read.
        is_short = numbers == np.where(exponent >= 0, digits / power, digits * power)
        is_unclear = ~is_exact | (numbers == numbers.astype(np.float32))
    left = np.flatnonzero(np.isfinite(numbers) & is_unclear & ~is_short)
    is_short[left] = [_is_short(repr(number)) for number in numbers[left].tolist()]
    return is_short


def _is_short(name):
    """Whether a name is a number with few digits, a date without a time, or neither."""
    try:
        number = float(name)
    except ValueError:
        return ":" not in _MIDNIGHT.sub("", name)
    if math.isnan(number) or number == float(f"{number:.{_DIGITS}g}"):
        return True
    # Floats of 32 bits hold 7 digits; read as 64 bits, they have more.
    with np.errstate(all="ignore"):
        return number == float(np.float32(f"{number:.{_SINGLE_DIGITS}g}"))


def _name_number(value):
    if not math.isfinite(value):
        return None
    is_whole = value == int(value) and abs(value) < 1e15
    return str(int(value)) if is_whole else repr(float(value))


def encode_levels(column: pd.Series, levels: tuple) -> np.ndarray:
    """Return the position of each cell among declared levels, or -1, decided for each on its own.

    A cell has the level that equals it or, if there is none, that of the same canonical form.
    """
    exact, named = _index_levels(levels)

    def encode(cell):
        # Cells whose comparison or conversion fails have no level.
        with drops_errors():
            if cell in exact:
                return exact[cell]
            return named.get(_find_key(cell, levels), -1)
        return -1

    with muted():
        return map_cells(encode, column).astype(np.int64)


@functools.lru_cache(maxsize=256)
def _index_levels(levels):
    """Return the position of each level, and of the first one of each canonical form."""
    named = {_find_key(level, levels): i for i, level in reversed([*enumerate(levels)])}
    named.pop(None, None)
    return {level: i for i, level in enumerate(levels)}, named


def _find_key(cell, levels):
    """Return the key of a cell's canonical form, equal for equal ones; None if it has none."""
    value = read_cell(cell, PLAIN) if isinstance(cell, str) else cell
    if isinstance(levels[0], str):
        return name_cell(value)
    return float(value) if isinstance(value, numbers.Real | np.bool_) else None


def find_ambiguous(levels: Sequence) -> tuple | None:
    """Return two levels that readers may turn into the same value, or None.

    Examples
    --------
    >>> find_ambiguous(["7", "x", "07"])
    ('7', '07')
    """
    names: dict = {}
    for level in levels:
        other = names.setdefault(name_cell(read_cell(level, PLAIN)), level)
        if other != level:
            return other, level
    return None
