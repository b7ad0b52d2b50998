# SPDX-License-Identifier: BSD-3-Clause
"""Predicates on columns, for rules and conditions."""

import datetime
from collections.abc import Mapping

import numpy as np

from ..blocks import KnotBlock, LevelBlock
from ..declaration import check_list, find_repeated, plain
from .conditions import is_missing, make_condition


def all_hold(conditions, values):
    """Return whether all conditions hold, for each row of values by column name."""
    return np.all([c.holds(values[name]) for name, c in conditions.items()], axis=0)


def bind(name, declared, values):
    """Return the condition that a column has one of some values."""
    block = (KnotBlock if declared.has_knots else LevelBlock)(name, declared, 0)
    return make_condition(block, list(values))


def parse_predicate(side, predicate):
    """Return a predicate as a tuple of pairs (column name, alternative values).

    Parameters
    ----------
    side : str
        Name of the parameter, for errors.
    predicate : dict, or tuple as it is returned
    """
    if isinstance(predicate, tuple) and predicate and isinstance(predicate[0], tuple):
        predicate = {name: list(values) for name, values in predicate}
    if not isinstance(predicate, Mapping) or not predicate:
        raise ValueError(
            f"{side} must be a dict of column names to values, such as {{'insured': 'no'}}; "
            f"got {predicate!r}."
        )
    parsed = []
    for name, values in predicate.items():
        listed = values if isinstance(values, list | np.ndarray) else [values]
        parsed.append((name, tuple(map(_parse_value, listed))))
    return tuple(parsed)


def _parse_value(value):
    """Return a level or number as a Python scalar, or a range as a tuple."""
    if isinstance(value, Mapping):
        if set(value) != {"lower", "upper"}:
            raise ValueError(f"A range must have 'lower' and 'upper'; got {value}.")
        value = (value["lower"], value["upper"])
    return tuple(map(to_scalar, value)) if isinstance(value, tuple) else to_scalar(value)


def to_scalar(value):
    """Return a value as a scalar that JSON can hold; None if it is missing."""
    if is_missing(value):
        return None
    if isinstance(value, np.datetime64):
        return str(value)
    return value.isoformat() if isinstance(value, datetime.date) else plain(value)


def format_predicate(predicate, is_json):
    """Return a parsed predicate as a dict, for its repr or for JSON, where ranges are dicts."""

    def show(value):
        is_range = is_json and isinstance(value, tuple)
        return dict(zip(("lower", "upper"), value, strict=True)) if is_range else value

    shown = {}
    for name, values in predicate:
        listed = list(map(show, values))
        shown[name] = listed[0] if len(listed) == 1 else listed
    return shown


def check_declared(name, declared):
    if declared.is_generated or declared.is_open:
        raise ValueError(
            f"{name!r} must be declared with its bounds or categories; it is {declared}."
        )


def check_names(columns):
    columns = tuple(check_list("columns", columns))
    repeated = find_repeated(columns)
    if not columns or repeated:
        raise ValueError(f"columns must be different names, at least one; got {list(columns)}.")
    return columns
