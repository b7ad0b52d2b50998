# SPDX-License-Identifier: BSD-3-Clause
"""Checks of single parameters: choices, numbers, array sizes and file names."""

import contextlib
import math
import numbers
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

# Squares of numbers up to this are finite in float32, the precision of learners.
_LARGEST = 1e15
# Entries of an array, at most: 2 GiB of doubles.
_MOST_ENTRIES = 2**28

# Most columns that one message names.
MAX_NAMES = 6


def is_one_of(value: object, choices: Iterable) -> bool:
    """Return whether a value is among strings, numbers or None; arrays never are.

    Examples
    --------
    >>> import numpy as np
    >>> is_one_of("log", ("linear", "log")), is_one_of(np.array(["log"]), ("linear", "log"))
    (True, False)
    """
    # An unhashable value is in no dict; an array equals none of the choices as a whole.
    return isinstance(value, str | int | None) and value in choices


def check_choice(name: str, value: object, choices: Iterable) -> None:
    """Raise a ValueError if a value is not among `choices`."""
    if not is_one_of(value, choices):
        raise ValueError(f"{name} must be one of {list(choices)}; got {value!r}.")


def check_number(
    name: str,
    value: Any,
    *,
    whole: bool = False,
    optional: bool = False,
    zero: bool = False,
    most: float = _LARGEST,
) -> None:
    """Raise a ValueError if a value is no finite (whole) number above 0, or from 0 on.

    Parameters
    ----------
    name : str
        The parameter's name, for the message.
    value : object
    whole : bool, default=False
        Whether the number must be an integer.
    optional : bool, default=False
        Whether None is allowed.
    zero : bool, default=False
        Whether 0 is allowed.
    most : float, default=1e15
        The largest number allowed.
    """
    if optional and value is None:
        return
    cls = numbers.Integral if whole else numbers.Real
    is_number = isinstance(value, cls) and not isinstance(value, bool)
    if not (is_number and 0 <= value < math.inf and (zero or value > 0)):
        noun = "whole number" if whole else "number"
        what = f"a {noun} of at least 0" if zero else f"a positive {noun}"
        raise ValueError(f"{name} must be {what}{' or None' if optional else ''}; got {value!r}.")
    if value > most:
        raise ValueError(f"{name} must be at most {most:g}; got {value!r}.")


def check_size(name: str, *shape: int) -> None:
    """Raise a ValueError for an array that memory cannot hold, before anything is released."""
    if math.prod(shape) > _MOST_ENTRIES:
        raise ValueError(
            f"{name} is too large: it takes an array of {' × '.join(map(str, shape))} numbers, "
            f"and {_MOST_ENTRIES:,} are the most."
        )


# What errors of objects that are tried say.
_FAILS = "fails on made-up rows, before anything is spent"


@contextlib.contextmanager
def tried(name: str, advice: str = "") -> Iterator[None]:
    """Restate errors of a user's object that is tried on made-up rows, before anything is spent.

    Parameters
    ----------
    name : str
        The parameter that holds the object. Messages that begin with it are kept.
    advice : str, default=""
        A further sentence, on what is needed.
    """
    try:
        yield
    except Exception as error:
        if str(error).startswith(name) or _FAILS in str(error):
            raise
        cls = TypeError if isinstance(error, TypeError) else ValueError
        text = f"{name} {_FAILS}: {type(error).__name__}: {error}"
        raise cls(f"{text}. {advice}" if advice else text) from error


# Declarations: functions ``check(name, value)`` of a parameter, for `Checked`.


def positive(**options) -> Callable:
    """Declare a positive number, by the options of `check_number`."""
    return lambda name, value: check_number(name, value, **options)


def whole(**options) -> Callable:
    """Declare a positive whole number."""
    return positive(whole=True, **options)


def in_range(**options) -> Callable:
    """Declare a number of at least 0."""
    return positive(zero=True, **options)


def one_of(*choices) -> Callable:
    """Declare one of several strings, or None."""
    return lambda name, value: check_choice(name, value, choices)


def factory_of(names: Iterable) -> Callable:
    """Declare one of several strings, or a callable that makes what they name."""

    def check(name, value):
        if isinstance(value, str):
            check_choice(name, value, names)
        elif hasattr(value, "named_parameters") and not isinstance(value, type):
            raise ValueError(
                f"{name} must be a factory, and not a module, since its sizes follow from the "
                f"data: give {name}=lambda n_inputs, n_outputs: module."
            )
        elif not callable(value):
            raise ValueError(f"{name} must be one of {list(names)} or a factory; got {value!r}.")

    return check


def budget_share(name: str, value: Any) -> None:
    """Declare a share of a budget, in (0, 1)."""
    check_number(name, value)
    if value >= 1:
        raise ValueError(f"{name} must be in (0, 1); got {value!r}.")


def radius(name: str, value: object) -> None:
    """Declare ``"auto"`` or a positive number."""
    if not is_one_of(value, ("auto",)):
        check_number(name, value, most=math.inf)


def flag(name: str, value: object) -> None:
    """Declare True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}.")


def as_path(path: object) -> Path:
    """Return the name of a file as a path; a number would be a file descriptor of the caller."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the name of a file; got {path!r}.")
    try:
        is_name = b"\0" not in str(path).encode()
    except UnicodeEncodeError:
        is_name = False
    if not is_name:
        raise ValueError(f"path must be a name that a file can have; got {path!r}.")
    return Path(path)


def read_file(path: object) -> str:
    """Return the text of a file in UTF-8."""
    try:
        return as_path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        pass
    raise ValueError(f"{path} is no text in UTF-8.")


def list_names(names: list[str]) -> str:
    """Return the first names of a list, and how many more there are.

    Examples
    --------
    >>> list_names(list("abcdefgh"))
    'a, b, c, d, e, f, and 2 more'
    """
    shown = names[:MAX_NAMES]
    if len(names) > MAX_NAMES:
        shown.append(f"and {len(names) - MAX_NAMES} more")
    return ", ".join(shown)
