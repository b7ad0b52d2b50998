# SPDX-License-Identifier: BSD-3-Clause
"""Private inference of decimals of numbers and of times of dates."""

import contextlib
import math
from dataclasses import replace

import numpy as np

from ..encoder import TableEncoder
from ..schema import Schema
from . import Category, Date, Number
from .cells import read_dates, read_numbers
from .date import DATE_CODES
from .values import find_farthest

# The release.
DECIMALS = "decimals"
# A cell has the first of these that suffices. A date has the number of its unit.
_MOST_DECIMALS = 6
_COUNTED = (*(str(k) for k in range(_MOST_DECIMALS + 1)), "more", "missing")
_UNITS = {2: "minute", 1: "hour", 0: "day"}
# How much finer than its unit a float must be, so that its decimals are no accident.
_FINER = 0.1
# Least share of cells that fit, up to noise.
_FITTING_SHARE = 0.95


def list_rough(schema):
    """Return the names of open columns of which it is not known how fine they are."""
    # Differences are as fine as their columns.
    opened = {*schema.undeclared, *schema.dates}
    return tuple(n for n in schema if n in opened and _is_rough(schema[n]))


def _is_rough(kind):
    if isinstance(kind, Number):
        return kind.decimals is None
    return isinstance(kind, Date) and kind.unit is None


def encode_decimals(table, schema):
    """Encode the cells of rough columns by how many decimals they have, each on its own.

    One of m weights of 1/√m is at each column's count: a vector of norm 1 without negative numbers,
    as that of the kinds of columns.
    """
    names = list_rough(schema)
    counted = table[list(names)].copy()
    for name in names:
        counted[name] = np.array(_COUNTED, dtype=object)[_count(table[name], schema[name])]
    return encode_levels(counted, _COUNTED)


def encode_levels(table, levels):
    """Encode cells that are all among the same levels, each as a weight of 1/√m at its own."""
    return TableEncoder(Schema(dict.fromkeys(table, Category(levels)))).encode(table)


def _count(column, kind):
    """Return the position in `_COUNTED` of each cell."""
    codes = np.full(len(column), len(_COUNTED) - 1)
    if isinstance(kind, Date):
        present, dates = read_dates(column, kind.zone)
        is_known = ~np.isnat(dates)
        at_most = {k: dates == dates.astype(f"M8[{DATE_CODES[u]}]") for k, u in _UNITS.items()}
    else:
        present, numbers = read_numbers(column)
        is_known = np.isfinite(numbers)
        at_most = {k: _has_at_most(numbers, k) for k in range(_MOST_DECIMALS, -1, -1)}
    enough = np.where(is_known, len(_COUNTED) - 2, len(_COUNTED) - 1)
    for decimals, fits in at_most.items():
        enough[is_known & fits] = decimals
    codes[present] = enough
    return codes


def _has_at_most(numbers, decimals):
    """Return which numbers have so many decimals at most, as floats of 64 or of 32 bits."""
    unit, fits = 10.0**-decimals, np.zeros(len(numbers), dtype=bool)
    with np.errstate(all="ignore"):
        rounded, single = np.round(numbers, decimals), numbers.astype(np.float32)
        for given, held in ((numbers, rounded), (single, rounded.astype(np.float32))):
            # Where floats are hardly finer than the unit, any number is near a multiple of it.
            is_fine = np.spacing(np.abs(given)) <= _FINER * unit
            fits |= (given == numbers) & (given == held) & is_fine
    return fits


def find_decimals(schema, noisy):
    """Return a schema with the decimals and units that released counts show.

    The fewest decimals are taken that nearly all cells fit, if these are clearly more than the
    others. Where noise hides it, numbers are left as they are, and dates have times.

    Parameters
    ----------
    schema : Schema
    noisy : NoisySum
        The noisy sum of what `encode_decimals` gives.
    """
    names = list_rough(schema)
    unit = math.sqrt(len(names))
    counts = (noisy.value * unit).reshape(len(names), len(_COUNTED))
    found = {
        name: _refine(schema[name], _choose_decimals(row[:-1], noisy.std * unit))
        for name, row in zip(names, counts, strict=True)
    }
    return schema.replace(found)


def _choose_decimals(counts, std):
    """Return how many decimals suffice, or None."""
    total, noise = counts.sum(), 2 * std
    for decimals in range(_MOST_DECIMALS + 1):
        fitting, rest = counts[: decimals + 1].sum(), counts[decimals + 1 :].sum()
        is_small = rest <= (1 - _FITTING_SHARE) * total + noise * math.sqrt(
            len(counts) - decimals - 1
        )
        if is_small and fitting - rest > noise * math.sqrt(len(counts)):
            return decimals
    return None


def _is_within_reach(kind):
    """Whether an open bound can be inferred: numbers with decimals end earlier."""
    farthest = find_farthest(kind.decimals)
    lower, upper = (b or 0.0 for b in (kind.lower, kind.upper))
    return lower < farthest and upper > -farthest


def _refine(kind, decimals):
    """Return a number with so many decimals, or a date in the unit that they say."""
    # Bounds that are declared may be finer, or too far from zero for so many.
    with contextlib.suppress(ValueError):
        if isinstance(kind, Number):
            refined = replace(kind, decimals=decimals)
            return refined if _is_within_reach(refined) else kind
        return replace(kind, unit=_UNITS.get(decimals, "second"))
    return kind if isinstance(kind, Number) else replace(kind, unit="second")
