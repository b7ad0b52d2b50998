# SPDX-License-Identifier: BSD-3-Clause
"""Orders of synthetic rows, and dates relative to them, that obey rules."""

import numpy as np

from ..tables.columns.values import Values
from ..tables.rules.ordered import list_ordered


def add_gaps(first, gaps, person, column, random_state):
    """Return the orders of rows, in units of their column, with its steps and cycles.

    Gaps are drawn one by one. Those of persons whose rows would end beyond the range are shrunk, or
    many rows would be at its end.

    Parameters
    ----------
    first : ndarray of shape (n_rows,)
        The order of the first row of each row's person.
    gaps : ndarray of shape (n_rows,)
        Gaps since the row before, in days for dates, NaN for none.
    person : ndarray of int of shape (n_rows,)
        The persons of rows, one after the other.
    column : Number or Date
    random_state : Generator of NumPy
    """
    is_first = np.diff(person, prepend=-1) > 0
    rank = np.arange(len(person)) - np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    values = np.array(first, dtype=np.float64)
    moves = _find_steps(values, is_first, column, random_state)
    gaps = _shrink_gaps(first, gaps, is_first, column, random_state)
    for rows in np.split(np.argsort(rank, kind="stable"), np.cumsum(np.bincount(rank)))[1:-1]:
        before = values[rows - 1]
        moved = before + gaps[rows]
        if column.decimals is not None:
            moved = np.round(moved, column.decimals)
        for cycle in column.cycles:
            moved = np.maximum(_share_cells(moved, *cycle, random_state), before)
        moves[rows] = moves[rows - 1]
        for position, (*step, _) in enumerate(column.heaps or ()):
            is_moved = moves[rows] == position
            moved[is_moved] = column.snap(moved[is_moved], *step)
        values[rows] = moved
    return values


def _shrink_gaps(first, gaps, is_first, column, random_state):
    """Return gaps in units; if they leave the range, another one is left after the last row."""
    gaps = np.nan_to_num(gaps).clip(0) * getattr(column, "units_per_day", 1) * ~is_first
    starts, number = np.flatnonzero(is_first), np.cumsum(is_first) - 1
    sizes = np.bincount(number)
    left = gaps[starts + random_state.integers(sizes > 1, sizes)]
    total, room = np.bincount(number, gaps), (column.bounds[1] - first[starts]).clip(0)
    shrunk = np.where(total > room, room / np.maximum(total + left, 1e-12), 1.0)
    return gaps * shrunk[number]


def _find_steps(first, is_first, column, random_state):
    """Return the position of the heap that a person's orders are multiples of, -1 for none.

    Persons whose first order is one have all others on it, but for those that are by chance.
    """
    moves, uniform = np.full(len(first), -1), random_state.uniform(size=len(first))
    for position, (*step, share) in enumerate(column.heaps or ()):
        by_chance = (1 - share) / max(column.measure(*step), 1)
        is_on = is_first & (moves < 0) & (column.snap(first, *step) == first)
        moves[is_on & (uniform * (share + by_chance) < share)] = position
    return moves


def _share_cells(numbers, shares, width, origin, random_state):
    """Move as few numbers as need be, within the cycle, so that its cells have their shares."""
    cells = ((numbers - origin) // width % len(shares)).astype(np.int64)
    found = np.bincount(cells, minlength=len(shares)) / max(len(cells), 1)
    lacking = np.cumsum((shares - found).clip(0))
    is_kept = random_state.uniform(size=len(cells)) * found[cells] <= np.array(shares)[cells]
    drawn = np.searchsorted(lacking, random_state.uniform(0, lacking[-1], len(cells)), "right")
    moved = numbers + (drawn.clip(0, len(shares) - 1) - cells) * width
    return np.where(is_kept, numbers, moved)


def add_days(order, days, order_column, column):
    """Return the dates that are some days after the orders of rows, in units of their column."""
    # Units are whole: a sum that is short of one by rounding stands for it.
    return np.floor((order / order_column.units_per_day + days) * column.units_per_day + 1e-6)


def obey_orders(values, movable, rules, types):
    """Return values within their bounds, moved as little as orders demand.

    Values are in units, and NaN for missing ones. Only `movable` columns move, and are returned;
    others obey the rules among them.
    """
    above = [pair[1] for pair in list_ordered(rules)]
    ordered = sorted(movable, key=above.count)
    grids = {name: Values(types[name].decimals) for name in movable}
    obeying = {name: column for name, column in values.items() if name not in movable}
    most = dict(obeying)
    for name in reversed(ordered):
        limits = [
            grids[name].at_most(rule.find_limit(name, most[rule.upper], types))
            for rule in rules
            if rule.lower == name and rule.upper in most
        ]
        # NaN is no limit.
        most[name] = np.fmin.reduce([np.full(len(values[name]), types[name].bounds[1]), *limits])
    for name in ordered:
        column = np.maximum(values[name], types[name].bounds[0])
        for rule in rules:
            if rule.upper == name and rule.lower in obeying:
                limit = grids[name].at_least(rule.find_limit(name, obeying[rule.lower], types))
                column = np.where(limit > column, limit, column)
        obeying[name] = np.where(most[name] < column, most[name], column)
    return {name: obeying[name] for name in movable}
