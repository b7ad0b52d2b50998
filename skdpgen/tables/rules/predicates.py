# SPDX-License-Identifier: BSD-3-Clause
"""Predicates on columns, for rules and conditions."""

import datetime
from collections.abc import Mapping

import numpy as np
import pandas as pd

from ..blocks import KnotBlock, LevelBlock
from ..columns.base import check_list, find_repeated, plain
from .conditions import make_condition


def all_hold(conditions, values):
    """Return whether all conditions hold, for each row of values by column name."""
    return np.all([c.holds(values[name]) for name, c in conditions.items()], axis=0)


def find_bounds(kind):
    """Return the bounds of numbers or dates, in their units; infinite if undeclared."""
    if kind.is_open:
        return -np.inf, np.inf
    values = np.append(kind.positions[[0, -1]], kind.to_number().atoms or ())
    return values.min(), values.max()


def bind(name, kind, values):
    """Return the condition that a column has one of some values."""
    block = (KnotBlock if kind.has_knots else LevelBlock)(name, kind, 0)
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
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return None
    if isinstance(value, np.datetime64):
        return str(value)
    return value.isoformat() if isinstance(value, datetime.date) else plain(value)


def format_range(ends):
    return dict(zip(("lower", "upper"), ends, strict=True))


def format_predicate(predicate, write_range):
    """Return a parsed predicate as a dict, for its repr or for JSON."""
    shown = {}
    for name, values in predicate:
        listed = [write_range(v) if isinstance(v, tuple) else v for v in values]
        shown[name] = listed[0] if len(listed) == 1 else listed
    return shown


def check_declared(name, kind):
    if kind.is_generated or kind.is_open:
        raise ValueError(f"{name!r} must be declared with its bounds or categories; it is {kind}.")


def check_names(columns):
    columns = tuple(check_list("columns", columns))
    repeated = find_repeated(columns)
    if not columns or repeated:
        raise ValueError(f"columns must be different names, at least one; got {list(columns)}.")
    return columns
