# SPDX-License-Identifier: BSD-3-Clause
"""Parameters that are one of several texts."""


def is_one_of(value, choices):
    """Whether a value is among texts, numbers or None; what compares otherwise, as arrays, is not.

    Examples
    --------
    >>> import numpy as np
    >>> is_one_of("log", ("linear", "log")), is_one_of(np.array(["log"]), ("linear", "log"))
    (True, False)
    """
    # An unhashable value is in no dict; an array equals none of the choices as a whole.
    return isinstance(value, str | int | None) and value in choices


def check_choice(name, value, choices):
    """Refuse a value that is not among `choices`."""
    if not is_one_of(value, choices):
        raise ValueError(f"{name} must be one of {list(choices)}; got {value!r}.")
