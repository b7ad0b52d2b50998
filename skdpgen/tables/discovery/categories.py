# SPDX-License-Identifier: BSD-3-Clause
"""Categories from released names and their noisy counts."""

from dataclasses import replace

from ...data.names import name_cell
from ...data.texts import is_writable
from ...exceptions import TableError
from ..columns.cells import find_present
from ..columns.texts import read_cell

# Weight of the counts of the target's categories: no model can learn those that are lost. It costs
# eight other columns 15 % more noise; set by hand.
TARGET_WEIGHT = 2
# Most categories that are inferred for a column: the most frequent ones.
_MOST_LEVELS = 1000


def with_categories(kind, counts):
    """Return a category with the most frequent of those found, of the type of `other`.

    Texts that UTF-8 cannot write stay `other`: no schema holds them.
    """
    counts = {name: count for name, count in counts.items() if is_writable(name)}
    if not isinstance(kind.other, str):
        counts = _as_numbers(counts)
    found = sorted(sorted(counts, key=counts.get)[-_MOST_LEVELS:])
    return replace(kind, categories=found or [kind.other])


def _as_numbers(counts):
    """Return the counts of categories that are numbers."""
    read = {name: read_cell(name)[1] for name in counts}
    numbers = {name: value for name, value in read.items() if isinstance(value, bool | float)}
    return {
        int(value) if value == int(value) else value: counts[name]
        for name, value in numbers.items()
    }


def check_type(name, column, other):
    """Raise an error for categories of another type than `other`, of which all will be."""
    names = [name_cell(cell) for cell in column[find_present(column.to_numpy())]]
    if not isinstance(other, str):
        names = [name if name and _as_numbers({name: 1}) else None for name in names]
    if None in names:
        what = "strings; convert them" if isinstance(other, str) else "numbers"
        raise TableError(
            f"Column {name!r} holds categories that are not {what}. Declare it, with other=... of "
            "the type of its categories if these are to be found."
        )
