# SPDX-License-Identifier: BSD-3-Clause
"""Inferred ranges of columns that have an order."""

from dataclasses import replace

import numpy as np

from ..rules.ordered import Ordered, list_ordered


def reconcile_orders(schema, kinds):
    """Widen inferred ranges that contradict orders: noise may find any range.

    Parameters
    ----------
    schema : Schema
        As declared.
    kinds : dict of str to Column
        As inferred.

    Returns
    -------
    dict of str to Column
    """
    for first, last in list_ordered(schema.rules):
        rule, pair = Ordered(first, last), (kinds[first], kinds[last])
        if not all(kind.has_knots and not kind.is_open for kind in pair):
            continue
        number, other = (kind.to_number() for kind in pair)
        if rule.to_common(first, number.lower, kinds) < rule.to_common(last, other.upper, kinds):
            continue
        units = pair[1].units_per_day / pair[0].units_per_day
        if schema[last].upper is None:
            kinds = kinds | {last: _extend(pair[1], upper=number.upper * units)}
        elif schema[first].lower is None:
            kinds = kinds | {first: _extend(pair[0], lower=other.lower / units)}
    return kinds


def _extend(kind, *, lower=None, upper=None):
    """Return a column with a wider range, and no values in what is added."""
    number = kind.to_number()
    ends = (number.lower if lower is None else lower, number.upper if upper is None else upper)
    if number.decimals is not None:
        ends = np.round(ends, number.decimals).tolist()
    if number.decimals == 0:
        ends = [int(end) for end in ends]
    knots = number.knots and sorted({*number.knots, *ends})
    return kind.from_number(replace(number, lower=ends[0], upper=ends[1], knots=knots))
