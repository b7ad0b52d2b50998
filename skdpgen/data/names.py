# SPDX-License-Identifier: BSD-3-Clause
"""Names of canonical cells as categories, counts of these, and positions among declared levels."""

import datetime
import functools
import math
import numbers
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd

from .._process.muting import muted
from .cells import read_cell
from .record_functions import call_quietly, drops_errors
from .texts import PLAIN

# Most digits of the numbers that people write; of floats of 32 bits, fewer than they hold.
_DIGITS, _SINGLE_DIGITS = 9, 6
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
    if isinstance(value, numbers.Real) and not isinstance(value, np.timedelta64):
        return call_quietly(_name_number, value)
    return None


def are_exact(cells: Iterable) -> bool:
    """Whether equal cells are the same: all are texts, whole numbers or None."""
    # By identity: types, too, may have users' code.
    return all(type(cell) is str or type(cell) is int or cell is None for cell in cells)


def map_cells(function: Callable, cells: list) -> list:
    """Apply a function to each cell on its own, once to equal texts or whole numbers.

    Other cells may be equal and differ, such as 0.0 and -0.0, or 1 and True.
    """
    is_exact = are_exact(cells)
    distinct = set(cells) if is_exact else {cell for cell in cells if are_exact([cell])}
    known = {cell: function(cell) for cell in distinct}
    if is_exact:  # without a loop of Python
        return list(map(known.__getitem__, cells))
    return [known[cell] if are_exact([cell]) else function(cell) for cell in cells]


def count_names(cells: list) -> Counter:
    """Count the names of cells that have one, see `name_cell`."""
    if set(map(type, cells)) <= {str, int, float, type(None)}:
        # Equal cells of these types have the same name.
        found = ((_name_plain(cell), count) for cell, count in Counter(cells).items())
    else:
        found = ((name_cell(cell), 1) for cell in cells)
    counts: Counter = Counter()
    for name, count in found:
        counts[name] += count
    del counts[None]
    return counts


def _name_plain(cell):
    # Floats cannot fail, and are many.
    return _name_number(cell) if type(cell) is float else name_cell(cell)


def count_short_names(cells: list) -> Counter:
    """Count the names that people write: no numbers with many digits, and no dates with a time.

    Examples
    --------
    >>> count_short_names([0.1, 1 / 3, 250_000, 0.1, "7 %"])
    Counter({'0.1': 2, '250000': 1, '7 %': 1})
    """
    counts = count_names(cells)
    return Counter({name: counts[name] for name in _select_short(list(counts))})


def _select_short(names):
    """Return names of numbers with few digits, of dates without a time, and of neither."""
    numbers = [_read_name(name) for name in names]
    # Floats of 32 bits hold 7 digits; read as 64 bits, they have more.
    with np.errstate(all="ignore"):
        singles = np.array([f"{x:.{_SINGLE_DIGITS}g}" for x in numbers], dtype=np.float32)
    for name, number, single in zip(names, numbers, singles.tolist(), strict=True):
        if math.isnan(number):
            is_short = ":" not in _MIDNIGHT.sub("", name)
        else:
            is_short = number in (float(f"{number:.{_DIGITS}g}"), single)
        if is_short:
            yield name


def _read_name(name):
    try:
        return float(name)
    except ValueError:
        return math.nan


def _name_number(value):
    if not math.isfinite(value):
        return None
    is_whole = value == int(value) and abs(value) < 1e15
    return str(int(value)) if is_whole else repr(float(value))


def encode_levels(cells: np.ndarray, levels: tuple) -> np.ndarray:
    """Return the position of each cell among declared levels, or -1, decided for each on its own.

    A cell has the level that equals it or, if there is none, that of the same canonical form.

    Parameters
    ----------
    cells : ndarray of objects of shape (n,)
    levels : tuple
    """
    with muted():
        codes = map_cells(functools.partial(_encode_level, levels=levels), cells.tolist())
    return np.array(codes, dtype=np.int64)


def _encode_level(cell, levels):
    exact, named = _index_levels(levels)
    # Cells whose comparison or conversion fails have no level.
    with drops_errors():
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
