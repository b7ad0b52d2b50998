# SPDX-License-Identifier: BSD-3-Clause
"""What the kinds of columns share, and checks of what they are given."""

import contextlib
import datetime
import math
import sys
from collections import Counter
from dataclasses import MISSING, fields

import numpy as np
import pandas as pd

from ...curator.texts import is_writable

DATE_CODES = {"day": "D", "second": "s"}


class Column:
    """What the kinds of columns share: a short repr, and the way to a dict."""

    # Whether something has to be found before the column can be encoded, or encoded well.
    is_open = takes_knots = False

    def to_dict(self):
        """Return the column as a dict, without what is at its default.

        Returns
        -------
        dict
        """
        given = {k: list(v) if isinstance(v, tuple) else v for k, v in self._given().items()}
        return {"type": type(self).__name__.lower(), **given}

    def __repr__(self):
        given = ", ".join(f"{name}={value!r}" for name, value in self._given().items())
        return f"{type(self).__name__}({given})"

    def _given(self):
        values = ((field, getattr(self, field.name)) for field in fields(self))
        return {field.name: value for field, value in values if value != field.default}

    def _set(self, **values):
        """Put checked values in place of those that were given."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


def plain(value):
    """Turn scalars of NumPy into those of Python, which JSON knows."""
    return value.item() if isinstance(value, np.generic) else value


def check_list(name, values):
    """Refuse strings, and sets, whose order changes from run to run."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    if not isinstance(values, list | tuple):
        raise ValueError(f"{name} must be a list; got {values!r}.")
    return values


def check_labels(labels):
    labels = tuple(plain(label) for label in check_list("categories", labels))
    if not labels:
        raise ValueError("categories must not be empty.")
    for label in labels:
        if not isinstance(label, str | int | float) or (
            isinstance(label, float) and not math.isfinite(label)
        ):
            raise ValueError(
                f"categories must be strings or finite numbers; got {label!r}. Missing values are "
                "declared with missing=True."
            )
        if not is_writable(label):
            raise ValueError(f"categories must be texts that UTF-8 can write; got {label!r}.")
    if len({isinstance(label, str) for label in labels}) > 1:
        raise ValueError("categories must be all strings or all numbers.")
    repeated = find_repeated(labels)
    if repeated:
        raise ValueError(f"categories must be different; got {repeated} more than once.")
    return labels


def check_number(name, value):
    value = plain(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not abs(value) <= sys.float_info.max:
        raise ValueError(f"{name} must be a finite number; got {value!r}.")
    return value


def check_numbers(name, values):
    return tuple(check_number(name, value) for value in check_list(name, values))


def check_whole(name, value, lowest, highest=None):
    value = plain(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or value < lowest or (highest is not None and value > highest):
        upto = "" if highest is None else f" and at most {highest}"
        raise ValueError(f"{name} must be a whole number, at least {lowest}{upto}; got {value!r}.")
    return value


def check_flag(missing):
    if not isinstance(missing, bool):
        raise ValueError(f"missing must be True or False; got {missing!r}.")


def check_date(name, value, unit):
    """Return a bound as datetime64 of the unit."""
    given = value
    if isinstance(value, np.datetime64):
        value = value.astype("M8[us]").item()
    elif isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = datetime.datetime.fromisoformat(value)
    if not isinstance(value, datetime.date) or pd.isna(value) or getattr(value, "tzinfo", None):
        raise ValueError(
            f"{name} must be a date without time zone, such as '2020-01-31' or "
            f"'2020-01-31T12:00:00'; got {given!r}."
        )
    exact = np.datetime64(value, "us")
    rounded = exact.astype(f"M8[{DATE_CODES[unit]}]")
    if rounded != exact:
        raise ValueError(f"{name} must be a whole {unit}; got {given!r}.")
    return rounded


def check_zone(zone):
    if isinstance(zone, str):
        with contextlib.suppress(Exception):
            return pd.DatetimeTZDtype("s", zone)
    raise ValueError(f"zone must be the name of a time zone, such as 'UTC'; got {zone!r}.")


def find_repeated(values):
    return [value for value, count in Counter(values).items() if count > 1]


def read_dict(spec, classes):
    """Return what a dict describes, of the class that its ``"type"`` names."""
    given = dict(spec)
    name = given.pop("type", None)
    if not isinstance(name, str) or name not in classes:
        raise ValueError(f"its 'type' must be one of {list(classes)}; got {name!r}.")
    known = fields(classes[name])
    unknown = [key for key in given if key not in [field.name for field in known]]
    if unknown:
        raise ValueError(
            f"a {name} has no {unknown}; it may have {[field.name for field in known]}."
        )
    lacking = [f.name for f in known if f.default is MISSING and f.name not in given]
    if lacking:
        raise ValueError(f"{name} needs {lacking}.")
    return classes[name](**given)
