# SPDX-License-Identifier: BSD-3-Clause
"""Private inference of decimals of numbers and of times of dates."""

import math
from dataclasses import dataclass, replace

import numpy as np

from ...histograms.ranges import find_clear
from ...quality import warn_of_columns
from ..columns.heaps import CYCLES, DECIMALS_OF, MOST_DECIMALS, STEP_OF, find_cycle, find_heaps
from ..columns.number import FITTING_SHARE

# The release.
DECIMALS = "decimals"
# A cell has one of the levels of `heaps`, or none.
_COUNTED = (*map(str, range(len(DECIMALS_OF))), "more", "zero", "date", "missing")
_DATE = _COUNTED.index("date")
# Numbers of counts and squared weights of a number, and of a date, by `is_date`: of its level, and
# of its cell of each cycle, or none. The level has half, as it shows the unit.
_PARTS = {
    False: ((len(_COUNTED), 1.0),),
    True: ((len(_COUNTED), 0.5), *((n_cells + 1, 0.25) for n_cells, *_ in CYCLES.values())),
}


def list_rough(schema):
    """Return the names of open columns of which it is not known how fine they are."""
    # Differences are as fine as their columns.
    opened = {*schema.undeclared, *schema.dates}
    return tuple(n for n in schema if n in opened and schema[n].is_rough)


def list_counted(schema):
    """Return the names of open numbers and dates, and of dates whose knots are inferred."""
    opened = {*schema.undeclared, *schema.dates}
    opened |= {n for n, column in schema.learned.items() if column.is_date and column.takes_knots}
    return tuple(n for n in schema if n in opened and schema[n].level_decimals)


def encode_decimals(table, schema):
    """Encode the cells of numbers and dates by their levels, each on its own.

    One of m weights of 1/√m is at each column's count: a vector of norm 1 without negative numbers,
    as that of the types of cells. A date has one of 1/√(2m) at its level, and of 1/√(4m) at its
    hour and its weekday each.
    """
    names, encoded = list_counted(schema), []
    for name in names:
        present, *found = schema[name].encode_levels(table[name])
        for levels, (size, weight) in zip(found, _PARTS[schema[name].is_date], strict=True):
            codes = np.full(len(present), -1)
            codes[present] = levels
            encoded.append(encode_levels(codes, size, weight / len(names)))
    return np.hstack(encoded)


def encode_levels(codes, n_levels, weight):
    """Encode codes of cells, -1 for the last level, as vectors of this squared norm."""
    return np.eye(n_levels)[codes] * math.sqrt(weight)


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
        counts, std = counted.counts[: len(decimals)], counted.std
        chosen = _choose_decimals(counts, decimals, std)
        if counted.hours is not None and counts[decimals > 0].max() <= find_clear(std, len(counts)):
            # Days have one hour, which has less noise than the sum of many levels.
            cells = np.array([counted.hours[0], counted.hours[1:].sum()])
            chosen = 0 if _choose_decimals(cells, np.arange(2), 2 * std) == 0 else chosen
        if schema[name].is_rough:
            found[name] = schema[name].with_decimals(chosen)
            if schema[name].is_date and chosen == decimals[-1]:
                too_fine.append(name)
    warn_of_columns("fractions", too_fine)
    return schema.replace(found)


def read_levels(schema, noisy, n_rows):
    """Return the `LevelCounts` of columns, from the noisy sum of `encode_decimals`."""
    names, found, left = list_counted(schema), {}, noisy.value
    for name in names:
        sizes, weights = np.transpose(_PARTS[schema[name].is_date])
        units = np.sqrt(len(names) / weights)
        *parts, left = np.split(left, np.cumsum(sizes).astype(int))
        levels, *cycles = (part * unit for part, unit in zip(parts, units, strict=True))
        # Each row has one cell of a cycle, or none.
        cycles = [(cells + (n_rows - cells.sum()) / len(cells))[:-1] for cells in cycles]
        found[name] = LevelCounts(levels[:-1], noisy.std * units[0], *cycles)
    return found


@dataclass(frozen=True)
class LevelCounts:
    """Noisy numbers of values by the coarsest step of which each is a multiple; see `find_levels`.

    Attributes
    ----------
    counts : ndarray of shape (n_levels,)
    std : float
    hours, weekdays : ndarray of shape (24,) and (7,), default=None
        Noisy numbers of dates by hour and weekday.
    """

    counts: np.ndarray
    std: float
    hours: np.ndarray | None = None
    weekdays: np.ndarray | None = None

    @property
    def are_dates(self):
        """Whether numbers are dates such as 20240131, but for few."""
        dates, noise = self.counts[_DATE], self.std * math.sqrt(len(self.counts))
        others = self.counts.sum() - dates
        is_small = others <= (1 - FITTING_SHARE) * self.counts.sum() + 2 * noise
        return bool(is_small and dates - others > find_clear(noise, 1))

    @property
    def hides_hours(self):
        """Whether noise would hide that half of the dates are at other hours than by chance."""
        if self.hours is None:
            return False
        n_cells = len(self.hours)
        noise = math.sqrt(2 * n_cells) / 2 * self.std
        return bool(find_clear(noise, n_cells**2 // 2) > self.hours.sum() / 4)

    @property
    def are_round(self):
        """Whether most numbers are multiples of 10, of which identifiers are a tenth."""
        is_round = STEP_OF % 10 == 0
        return bool(self.counts[: len(STEP_OF)][is_round].sum() > self.counts.sum() / 2)

    def with_heaps(self, column, masses):
        """Return a column with heaps and cycles, from the counts of all values but point masses.

        Parameters
        ----------
        column : Number or Date
            With bounds and knots.
        masses : dict of float to float
            Noisy counts of the point masses; of dates, in units since 1970.
        """
        counts, values = self.counts.copy(), np.array(list(masses), dtype=np.float64)
        if column.is_date:
            # The finest unit stands for finer times.
            finest = len(column.level_decimals) - 2
            counts[finest] += counts[finest + 1]
        if column.heaps is None:
            np.subtract.at(counts, column.find_levels(values), np.array(list(masses.values())))
            found = find_heaps(column, counts, self.std, find_clear(1.0, len(counts)))
            column = replace(column, heaps=found) if found else column
        for cycle in CYCLES if column.is_date else ():
            if getattr(column, cycle) is None:
                std = self.std * math.sqrt(2)  # half of the squared weight
                found = find_cycle(column, cycle, getattr(self, cycle), masses, std)
                column = column if found is None else replace(column, **{cycle: found})
        return column


def _choose_decimals(counts, decimals_of, std):
    """Return how many decimals suffice, or None."""
    total, noise = counts.sum(), 2 * std
    # The noise of a sum would hide one clear count, as that of prices in .99.
    clear = find_clear(std, len(counts))
    most = max((1 - FITTING_SHARE) * total, clear)
    for decimals in range(MOST_DECIMALS + 1):
        fits = decimals_of <= decimals
        fitting, rest = counts[fits].sum(), counts[~fits].sum()
        is_small = rest <= (1 - FITTING_SHARE) * total + noise * math.sqrt((~fits).sum())
        is_small &= counts[~fits].max(initial=0) <= most
        is_shown = fitting - rest > noise * math.sqrt(len(counts)) or counts[fits].max() > clear
        if is_small and is_shown:
            return decimals
    return None
