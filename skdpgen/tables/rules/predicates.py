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
    """Return where all of some conditions hold."""
    return np.all([c.holds(values[name]) for name, c in conditions.items()], axis=0)


def find_bounds(kind):
    """Return the bounds of numbers or dates, in their units; infinite ones where they are open."""
    if kind.is_open:
        return -np.inf, np.inf
    values = np.append(kind.positions[[0, -1]], kind.to_number().atoms or ())
    return values.min(), values.max()


def bind(name, kind, asked):
    block = (KnotBlock if kind.has_knots else LevelBlock)(name, kind, 0)
    return make_condition(block, list(asked))


def read_asked(side, asked):
    """Return what is asked of columns as pairs of a name and of the alternatives, in order."""
    if isinstance(asked, tuple) and asked and isinstance(asked[0], tuple):
        asked = {name: list(values) for name, values in asked}
    if not isinstance(asked, Mapping) or not asked:
        raise ValueError(
            f"{side} must be a dict of columns and of what they are, such as {{'insured': 'no'}}; "
            f"got {asked!r}."
        )
    read = []
    for name, values in asked.items():
        listed = values if isinstance(values, list | np.ndarray) else [values]
        read.append((name, tuple(map(_read_value, listed))))
    return tuple(read)


def _read_value(value):
    """Return a level or number as plain Python has it, or a range as a tuple."""
    if isinstance(value, Mapping):
        if set(value) != {"lower", "upper"}:
            raise ValueError(
                f"A range has 'lower' and 'upper', of which null is open; got {value}."
            )
        value = (value["lower"], value["upper"])
    return tuple(map(plain_value, value)) if isinstance(value, tuple) else plain_value(value)


def plain_value(value):
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return None
    if isinstance(value, np.datetime64):
        return str(value)
    return value.isoformat() if isinstance(value, datetime.date) else plain(value)


def show_range(ends):
    return dict(zip(("lower", "upper"), ends, strict=True))


def show_asked(sides, write_range):
    shown = {}
    for name, values in sides:
        listed = [write_range(v) if isinstance(v, tuple) else v for v in values]
        shown[name] = listed[0] if len(listed) == 1 else listed
    return shown


def check_declared(name, kind):
    if kind.is_generated or kind.is_open:
        raise ValueError(
            f"what {name!r} is must be declared for that, with its bounds or categories; it is "
            f"{kind!r}."
        )


def check_names(columns):
    columns = tuple(check_list("columns", columns))
    repeated = find_repeated(columns)
    if not columns or repeated:
        raise ValueError(f"columns must be different names, at least one; got {list(columns)}.")
    return columns
