# SPDX-License-Identifier: BSD-3-Clause
"""Private inference of decimals of numbers and of times of dates."""

import contextlib
import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ...histograms.grids import find_farthest
from ...histograms.ranges import find_clear
from ...quality import warn_of_columns
from ..encoder import TableEncoder
from ..schema import Schema
from . import Category, Date, Number
from .cells import read_dates, read_numbers
from .date import DATE_CODES
from .heaps import DECIMALS_OF, STEP_OF, STEPS, find_date_levels, find_heaps, find_levels

# The release.
DECIMALS = "decimals"
# Most decimals; a cell has one of the levels of `heaps`, and a date has so many by its unit.
_MOST_DECIMALS = 6
_COUNTED = (*map(str, range(len(DECIMALS_OF))), "more", "zero", "date", "missing")
_LEVEL_DECIMALS = np.array([*DECIMALS_OF, _MOST_DECIMALS + 1, 0, 0])
# Decimals of each step of dates; the last ones are those of finer dates.
_DATE_DECIMALS = np.array([0, 0, 0, 0, 0, 1, 2, 3, 4, 5])
_DATE, _MORE = _COUNTED.index("date"), _COUNTED.index("more")
_UNITS = {0: "day", 1: "hour", 2: "minute", 3: "second", 4: "millisecond", 5: "millisecond"}
_FINEST = len(_DATE_DECIMALS) - 2
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


def list_counted(schema):
    """Return the names of open numbers and dates, whose levels are counted."""
    opened = {*schema.undeclared, *schema.dates}
    return tuple(n for n in schema if n in opened and schema[n].has_knots)


def encode_decimals(table, schema):
    """Encode the cells of numbers and dates by their levels, each on its own.

    One of m weights of 1/√m is at each column's count: a vector of norm 1 without negative numbers,
    as that of the kinds of columns.
    """
    names = list_counted(schema)
    counted = table[list(names)].copy()
    for name in names:
        codes = _count(table[name], schema[name])
        codes[codes < 0] = len(_COUNTED) - 1
        counted[name] = pd.Categorical.from_codes(codes, _COUNTED)
    return encode_levels(counted, _COUNTED)


def encode_levels(table, levels):
    """Encode cells that are all among the same levels, each as a weight of 1/√m at its own."""
    return TableEncoder(Schema(dict.fromkeys(table, Category(levels)))).encode(table)


def _count(column, kind):
    """Return the position in `_COUNTED` of each cell."""
    codes = np.full(len(column), -1)
    if isinstance(kind, Date):
        # Rounded to what is declared, so that a time of New Year's Day is on it.
        present, dates = read_dates(column, kind.zone, DATE_CODES.get(kind.unit, "us"))
        codes[present] = find_date_levels(dates)
    else:
        present, numbers = read_numbers(column)
        numbers = numbers if kind.decimals is None else np.round(numbers, kind.decimals)
        levels = find_levels(numbers)
        if kind.decimals == 0:
            # Floats hold whole numbers further than they resolve fractions.
            levels[levels == _MORE] = STEPS.index(1)
        codes[present] = levels
    return codes


def find_decimals(schema, levels):
    """Return a schema with the decimals and units that released counts show.

    The fewest decimals are taken that nearly all cells fit, if these are clearly more than the
    others. Where noise hides it, numbers are left as they are, and dates have times.

    Parameters
    ----------
    schema : Schema
    levels : dict of str to LevelCounts
    """
    found, too_fine = {}, []
    for name, counted in levels.items():
        decimals = _DATE_DECIMALS if isinstance(schema[name], Date) else _LEVEL_DECIMALS
        chosen = _choose_decimals(counted.counts[: len(decimals)], decimals, counted.std)
        if _is_rough(schema[name]):
            found[name] = _refine(schema[name], chosen)
            if decimals is _DATE_DECIMALS and chosen == decimals[-1]:
                too_fine.append(name)
    warn_of_columns("fractions", too_fine)
    return schema.replace(found)


def read_levels(schema, noisy):
    """Return the `LevelCounts` of columns, from the noisy sum of `encode_decimals`."""
    names = list_counted(schema)
    unit = math.sqrt(len(names))
    counts = (noisy.value * unit).reshape(len(names), len(_COUNTED))
    return {
        n: LevelCounts(row[:-1], noisy.std * unit) for n, row in zip(names, counts, strict=True)
    }


@dataclass(frozen=True)
class LevelCounts:
    """Noisy numbers of values by the coarsest step of which each is a multiple; see `find_levels`.

    Attributes
    ----------
    counts : ndarray of shape (n_levels,)
    std : float
    """

    counts: np.ndarray
    std: float

    @property
    def are_dates(self):
        """Whether numbers are dates such as 20240131, but for few."""
        dates, noise = self.counts[_DATE], self.std * math.sqrt(len(self.counts))
        others = self.counts.sum() - dates
        is_small = others <= (1 - _FITTING_SHARE) * self.counts.sum() + 2 * noise
        return bool(is_small and dates - others > find_clear(noise, 1))

    @property
    def are_round(self):
        """Whether most numbers are multiples of 10, of which identifiers are a tenth."""
        is_round = STEP_OF % 10 == 0
        return bool(self.counts[: len(STEP_OF)][is_round].sum() > self.counts.sum() / 2)

    def with_heaps(self, kind, masses):
        """Return a column with heaps, from the counts of all values but point masses.

        Parameters
        ----------
        kind : Number or Date
            With bounds and knots.
        masses : dict of float to float
            Noisy counts of the point masses; of dates, in units since 1970.
        """
        if kind.heaps is not None:
            return kind
        counts, values = self.counts.copy(), np.array(list(masses), dtype=np.float64)
        if isinstance(kind, Date):
            levels = find_date_levels(kind.to_dates(values))
            # The finest unit stands for finer times.
            counts[_FINEST] += counts[_FINEST + 1]
        else:
            levels = find_levels(values)
        np.subtract.at(counts, levels, np.array(list(masses.values())))
        found = find_heaps(kind, counts, self.std, find_clear(1.0, len(counts)))
        return replace(kind, heaps=found) if found else kind


def _choose_decimals(counts, decimals_of, std):
    """Return how many decimals suffice, or None."""
    total, noise = counts.sum(), 2 * std
    for decimals in range(_MOST_DECIMALS + 1):
        fits = decimals_of <= decimals
        fitting, rest = counts[fits].sum(), counts[~fits].sum()
        is_small = rest <= (1 - _FITTING_SHARE) * total + noise * math.sqrt((~fits).sum())
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
