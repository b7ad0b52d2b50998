# SPDX-License-Identifier: BSD-3-Clause
"""Orders of synthetic rows, and dates relative to them, that obey rules."""

import numpy as np

from ..tables.columns.values import Values
from ..tables.rules.ordered import list_ordered


def add_gaps(first, gaps, person, column):
    """Return the orders of rows, in units of their column.

    Parameters
    ----------
    first : ndarray of shape (n_rows,)
        The order of the first row of each row's person.
    gaps : ndarray of shape (n_rows,)
        Gaps since the row before, in days for dates, NaN for first rows.
    person : ndarray of int of shape (n_rows,)
        The persons of rows, one after the other.
    column : Number or Date
    """
    is_first = np.diff(person, prepend=-1) > 0
    total = np.cumsum(np.where(is_first, 0, np.nan_to_num(gaps).clip(0)))
    total -= total[is_first][np.cumsum(is_first) - 1]
    values = first + total * getattr(column, "units_per_day", 1)
    return values if column.decimals is None else np.round(values, column.decimals)


def add_days(order, days, order_column, column):
    """Return the dates that are some days after the orders of rows, in units of their column."""
    # Units are whole: a sum that is short of one by rounding stands for it.
    return np.floor((order / order_column.units_per_day + days) * column.units_per_day + 1e-6)


def obey_orders(values, movable, rules, types):
    """Return values within their bounds, moved as little as orders demand.

    Parameters
    ----------
    values : dict of str to ndarray of shape (n_rows,)
        By column, in units, NaN for missing ones.
    movable : list of str
        Columns that may be moved; others obey the rules among them.
    rules : list of Ordered
    types : dict of str to ColumnType

    Returns
    -------
    dict of str to ndarray of shape (n_rows,)
        The movable columns.
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
