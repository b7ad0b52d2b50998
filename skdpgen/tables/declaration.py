# SPDX-License-Identifier: BSD-3-Clause
"""Declarations of columns and rules: checked parameters, which dicts and JSON hold."""

import math
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, fields

import numpy as np

from ..checks import list_names
from ..data.texts import is_writable


class Declaration:
    """Base of frozen dataclasses that users write, or read from JSON."""

    def to_dict(self):
        """Return the parameters that are not at their defaults, and the type, for JSON."""
        return {"type": type(self).__name__.lower(), **self._given(is_json=True)}

    def __repr__(self):
        return self._write(self._given())

    def _write(self, given):
        given = ", ".join(f"{name}={value!r}" for name, value in given.items())
        return f"{type(self).__name__}({given})"

    def _given(self, *, is_json=False):
        values = ((field, getattr(self, field.name)) for field in fields(self))
        return {f.name: self._show(value, is_json) for f, value in values if value != f.default}

    def _show(self, value, is_json):
        if is_json and isinstance(value, Declaration):
            return value.to_dict()
        return list(value) if is_json and isinstance(value, tuple) else value

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


def check_labels(labels, name="categories"):
    labels = tuple(plain(label) for label in check_list(name, labels))
    if not labels:
        raise ValueError(f"{name} must not be empty.")
    for label in labels:
        # Types that JSON can write, and that compare by value.
        if not isinstance(label, str | int | float) or (
            isinstance(label, float) and not math.isfinite(label)
        ):
            raise ValueError(
                f"{name} must be strings or finite numbers; got {label!r}. Missing values are "
                "declared with missing=True."
            )
        if not is_writable(label):
            raise ValueError(f"{name} must be texts that UTF-8 can write; got {label!r}.")
    # A text "1" and a number 1 would be the same in a file of texts.
    if len({isinstance(label, str) for label in labels}) > 1:
        raise ValueError(f"{name} must be all strings or all numbers.")
    repeated = find_repeated(labels)
    if repeated:
        raise ValueError(f"{name} must be different; got {repeated} more than once.")
    return labels


def check_number(name, value):
    value = plain(value)
    # True is an int in Python, and no number of a schema.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not abs(value) <= sys.float_info.max:
        raise ValueError(f"{name} must be a finite number; got {value!r}.")
    # Values are floats: a whole number that none of them equals becomes the nearest one.
    return value if float(value) == value else float(value)


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


def find_repeated(values):
    return [value for value, count in Counter(values).items() if count > 1]


def explain(make, failure, remedy=""):
    """Return what a function makes; an error says what failed, why, and what to do.

    It has no context: what it came from may quote cells.
    """
    try:
        return make()
    except ValueError as error:
        reason = str(error)
    raise ValueError(f"{failure}: {reason} {remedy}".rstrip())


def suggest(unknown, known):
    """Return a question for the known names that are nearest to unknown ones, or an empty text.

    Examples
    --------
    >>> suggest(["uper"], ["lower", "upper"])
    " Is 'upper' meant?"
    """
    from difflib import get_close_matches  # for errors alone

    near = [match for name in unknown for match in get_close_matches(str(name), list(known), 1)]
    return f" Is {list_names([*map(repr, near)])} meant?" if near else ""


def check_keys(given, known, owner):
    """Raise ValueError if a dict has keys that its owner does not know; name the nearest ones."""
    if unknown := [key for key in given if key not in known]:
        nearest = suggest(unknown, known)
        raise ValueError(f"{owner} has no {unknown}; it may have {list(known)}.{nearest}")


def parse(given, classes):
    """Return a declaration, or that of a dict with the name of its class as ``"type"``."""
    if type(given) in classes.values():
        return given
    if not isinstance(given, Mapping):
        names = [cls.__name__ for cls in classes.values()]
        raise ValueError(f"it must be one of {names} or a dict; got {given!r}.")
    given = dict(given)
    name = given.pop("type", None)
    if not isinstance(name, str) or name not in classes:
        nearest = suggest([name], classes)
        raise ValueError(f"its 'type' must be one of {list(classes)}; got {name!r}.{nearest}")
    known = {field.name: field for field in fields(classes[name])}
    check_keys(given, known, f"a {name}")
    lacking = [n for n, field in known.items() if field.default is MISSING and n not in given]
    if lacking:
        raise ValueError(f"{name} needs {lacking}.")
    return classes[name](**given)
