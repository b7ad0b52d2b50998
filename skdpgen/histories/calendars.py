# SPDX-License-Identifier: BSD-3-Clause
"""Calendars of an order: the months, weekdays and hours in which the rows of a person are.

Released are the tables of the columns of rows with the cells of calendars. Rows are learned without
a season, as if each were in any cell; a Markov kernel for each cell moves their levels when dates
are known. It is the monotone map from the distribution of a column to that in the cell, or, of
levels without an order, that which changes the fewest. So a curve is kept by construction, and what
persons have in common with themselves over time is learned apart from it.
"""

from itertools import pairwise

import numpy as np

from ..quality import WITHIN_NOISE
from ..tables.blocks import to_probabilities
from ..tables.columns.heaps import CYCLES, DAYS, find_cells
from ..tables.encoder import TableEncoder
from .shrinkage import TIME_RATE, list_waves, make_cycles, make_waves, shrink

# Numbers of cells of a calendar, and days of each.
CALENDARS = {"months": (12, DAYS["month"])} | {name: cycle[:2] for name, cycle in CYCLES.items()}
# Least share of dates that are not rounded to longer steps than a cell; as of their heaps.
_MIN_SHARE = 0.02


def list_calendars(order):
    """Return the calendars of which an order has several cells, by its released properties.

    Before it is resolved, an order that may be a date is expected to have months.

    Examples
    --------
    >>> from skdpgen import Date
    >>> list_calendars(Date("2020-01-01", "2020-12-31"))
    ['months', 'weekdays']
    """
    if order is None or not (order.is_date or order.is_unknown):
        return []
    if order.is_unknown or order.is_open:
        return ["months"]
    number, unit = order.to_number(), order.units_per_day
    longer = {
        name: sum(share for step, share in order.heaps or () if DAYS[step] > days)
        for name, (_, days) in CALENDARS.items()
    }
    return [
        name
        for name, (_, days) in CALENDARS.items()
        if (number.upper - number.lower) / unit >= 2 * days >= 2 / unit
        and longer[name] <= 1 - _MIN_SHARE
    ]


def count_cells(order):
    """Return the numbers of cells of the calendars of an order; the last of each has no date."""
    return tuple(CALENDARS[name][0] + 1 for name in list_calendars(order))


def find_times(order, units):
    """Return the cells of dates, in units of their column and NaN for missing ones.

    Returns
    -------
    ndarray of int of shape (*units.shape, n_calendars)
    """
    names, is_missing = list_calendars(order), np.isnan(units)
    found = np.empty((*units.shape, len(names)), dtype=np.int64)
    dates = order.to_dates(np.nan_to_num(units)) if names else None
    for i, name in enumerate(names):
        is_cycle = name in CYCLES
        cells = find_cells(dates, name) if is_cycle else dates.astype("M8[M]").astype(int) % 12
        found[..., i] = np.where(is_missing, CALENDARS[name][0], cells)
    return found


def count_times(cells, std, history):
    """Return the numbers of rows in the cells of calendars, and by number, and their noise.

    Each column's table counts the rows of a cell, and the fewer levels, the less noise.
    """
    precisions = 1 / np.array(history.rows)
    weights = np.repeat(precisions / precisions.sum(), history.rows)
    return weights @ cells, std / precisions.sum() ** 0.5


def make_kernels(times, marginals, format):
    """Return the kernels of the columns of rows in the cells of calendars.

    They are arrays of shape (n_cells, n_levels, n_levels), by calendar and column; None where
    levels stay, as those of gaps, from which dates follow.
    """
    history, found, std = format.history_sizes, [], times.pairs_std
    (_, columns, _), alone = list_waves(format, marginals), make_waves(np.ones(1), 0)
    starts, ends = (np.cumsum((0, *sizes)) for sizes in (history.rows, history.calendars))
    all_counts, count_std = count_times(times.cells, std, history)
    blocks = TableEncoder(format.table.schema).make_blocks()[-len(columns) :]
    for first, last in pairwise(ends):
        tables, counts = times.cells[:, first:last], all_counts[first:last]
        mean, cells = counts[:-1].mean(), make_cycles(last - first - 1)
        counts = mean + shrink((counts - mean)[None], count_std, alone, cells, TIME_RATE)[0][0]
        counts[counts <= WITHIN_NOISE * count_std] = np.inf
        kernels = []
        for (start, end), block, column in zip(pairwise(starts), blocks, columns, strict=True):
            table = tables[start:end].T
            excess = table - table.sum(axis=1, keepdims=True) * column.shares
            if found:
                # How rows with dates differ from others is in the kernels of the first calendar.
                excess[:-1] -= excess[:-1].mean(0)
                excess[-1] = 0
            excess = shrink(excess, std, cells, column, TIME_RATE)[0]
            # Dates follow from gaps, the last column.
            if end == starts[-1] or not excess.any():
                kernels.append(None)
                continue
            in_cells = column.shares + excess / counts[:, None]
            dated = table[:-1, -1].sum()
            if block.column_type.missing and dated <= WITHIN_NOISE * std * np.sqrt(len(table) - 1):
                # Only rows without a date lack the column.
                in_cells[:-1, -1] = 0
            n_ordered = np.count_nonzero(column.bands < len(column.bands))
            in_cells = to_probabilities(in_cells)
            kernels.append(np.stack([_couple(column.shares, own, n_ordered) for own in in_cells]))
        found.append(kernels)
    return found


def _couple(first, second, n_ordered):
    """Return the kernel from a distribution to another that moves levels the least.

    The first `n_ordered` levels are in order, and all of them are one of the other levels.
    """
    parts = [np.r_[x[:n_ordered].sum(), x[n_ordered:]] for x in (first, second)]
    kept = np.minimum(*parts)
    lacking = parts[1] - kept
    moved = np.outer(parts[0] - kept, lacking / max(lacking.sum(), 1e-12)) + np.diag(kept)
    kernel = np.zeros((len(first), len(second)))
    kernel[n_ordered:, n_ordered:] = moved[1:, 1:]
    if n_ordered:
        own = [to_probabilities(x[None, :n_ordered])[0] for x in (first, second)]
        kernel[:n_ordered, n_ordered:] = np.outer(own[0], moved[0, 1:])
        kernel[n_ordered:, :n_ordered] = np.outer(moved[1:, 0], own[1])
        ends = [np.cumsum(x) for x in own]
        below = np.minimum(*np.ix_(*(np.r_[0, end] for end in ends)))
        shared = np.diff(np.diff(below, axis=0), axis=1).clip(0)
        kernel[:n_ordered, :n_ordered] = moved[0, 0] * shared
    # Levels that nobody has stay.
    return to_probabilities(np.where(first[:, None] > 0, kernel, np.eye(len(first))))
