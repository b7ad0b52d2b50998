# SPDX-License-Identifier: BSD-3-Clause
"""Private inference of decimals of numbers and of times of dates."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ...histograms.ranges import find_clear
from ...quality import warn_of_columns
from ..columns import Category
from ..columns.heaps import DECIMALS_OF, MOST_DECIMALS, STEP_OF, find_heaps
from ..columns.number import FITTING_SHARE
from ..encoder import TableEncoder
from ..schema import Schema

# The release.
DECIMALS = "decimals"
# A cell has one of the levels of `heaps`, or none.
_COUNTED = (*map(str, range(len(DECIMALS_OF))), "more", "zero", "date", "missing")
_DATE = _COUNTED.index("date")


def list_rough(schema):
    """Return the names of open columns of which it is not known how fine they are."""
    # Differences are as fine as their columns.
    opened = {*schema.undeclared, *schema.dates}
    return tuple(n for n in schema if n in opened and schema[n].is_rough)


def list_counted(schema):
    """Return the names of open numbers and dates, whose levels are counted."""
    opened = {*schema.undeclared, *schema.dates}
    return tuple(n for n in schema if n in opened and schema[n].level_decimals)


def encode_decimals(table, schema):
    """Encode the cells of numbers and dates by their levels, each on its own.

    One of m weights of 1/√m is at each column's count: a vector of norm 1 without negative numbers,
    as that of the types of cells.
    """
    names = list_counted(schema)
    counted = table[list(names)].copy()
    for name in names:
        present, levels = schema[name].encode_levels(table[name])
        codes = np.full(len(present), -1)
        codes[present] = levels
        codes[codes < 0] = len(_COUNTED) - 1
        counted[name] = pd.Categorical.from_codes(codes, _COUNTED)
    return encode_levels(counted, _COUNTED)


def encode_levels(table, levels):
    """Encode cells that are all among the same levels, each as a weight of 1/√m at its own."""
    return TableEncoder(Schema(dict.fromkeys(table, Category(levels)))).encode(table)


def find_decimals(schema, levels):
    """Return a schema with the decimals and units that released counts show.

    The fewest decimals are taken that nearly all cells fit, if these are clearly more than the
    others, and none of the others' counts is clear of noise by itself. Where noise hides it,
    numbers are left as they are, and dates have times.

    Parameters
    ----------
    schema : Schema
    levels : dict of str to LevelCounts
    """
    found, too_fine = {}, []
    for name, counted in levels.items():
        decimals = np.array(schema[name].level_decimals)
        chosen = _choose_decimals(counted.counts[: len(decimals)], decimals, counted.std)
        if schema[name].is_rough:
            found[name] = schema[name].with_decimals(chosen)
            if schema[name].is_date and chosen == decimals[-1]:
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
        is_small = others <= (1 - FITTING_SHARE) * self.counts.sum() + 2 * noise
        return bool(is_small and dates - others > find_clear(noise, 1))

    @property
    def are_round(self):
        """Whether most numbers are multiples of 10, of which identifiers are a tenth."""
        is_round = STEP_OF % 10 == 0
        return bool(self.counts[: len(STEP_OF)][is_round].sum() > self.counts.sum() / 2)

    def with_heaps(self, column, masses):
        """Return a column with heaps, from the counts of all values but point masses.

        Parameters
        ----------
        column : Number or Date
            With bounds and knots.
        masses : dict of float to float
            Noisy counts of the point masses; of dates, in units since 1970.
        """
        if column.heaps is not None:
            return column
        counts, values = self.counts.copy(), np.array(list(masses), dtype=np.float64)
        if column.is_date:
            # The finest unit stands for finer times.
            finest = len(column.level_decimals) - 2
            counts[finest] += counts[finest + 1]
        np.subtract.at(counts, column.find_levels(values), np.array(list(masses.values())))
        found = find_heaps(column, counts, self.std, find_clear(1.0, len(counts)))
        return replace(column, heaps=found) if found else column


def _choose_decimals(counts, decimals_of, std):
    """Return how many decimals suffice, or None."""
    total, noise = counts.sum(), 2 * std
    # The noise of a sum would hide one clear count, as that of prices in .99.
    most = max((1 - FITTING_SHARE) * total, find_clear(std, len(counts)))
    for decimals in range(MOST_DECIMALS + 1):
        fits = decimals_of <= decimals
        fitting, rest = counts[fits].sum(), counts[~fits].sum()
        is_small = rest <= (1 - FITTING_SHARE) * total + noise * math.sqrt((~fits).sum())
        is_small &= counts[~fits].max(initial=0) <= most
        if is_small and fitting - rest > noise * math.sqrt(len(counts)):
            return decimals
    return None
