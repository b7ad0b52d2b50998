# SPDX-License-Identifier: BSD-3-Clause
"""Safe rounding of privacy parameters: budgets are rounded down, printed costs up."""

import contextlib
import math
import numbers
import re
from collections.abc import Iterator
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from sklearn.base import BaseEstimator

# Significant digits of printed ε and δ, a convention.
_DIGITS = 4


def at_most(number: Any) -> float:
    """Return the largest float that does not exceed a number of any type.

    Arithmetic with a narrower type would round to that type: a price of 1 + 7e-9 equals 1 in
    float32.

    Examples
    --------
    >>> from fractions import Fraction
    >>> at_most(Fraction(1, 10)) < Fraction(1, 10) < 0.1
    True
    """
    try:
        nearest = float(number)
    except OverflowError:
        nearest = math.inf
    # Python compares floats with ints and fractions exactly.
    return nearest if nearest <= number else math.nextafter(nearest, -math.inf)


@contextlib.contextmanager
def plain_numbers(estimator: BaseEstimator) -> Iterator[None]:
    """Convert an estimator's parameters to Python numbers within the context, then restore them.

    Noise and other results are then computed in doubles for any type of the parameters, and can be
    serialised.
    """
    given = estimator.get_params(deep=False)
    for name, value in given.items():
        setattr(estimator, name, plain(value))
    try:
        yield
    finally:
        for name, value in given.items():
            setattr(estimator, name, value)


def plain(value: Any) -> Any:
    """Return a number as a Python int or float, rounded down, and other values unchanged."""
    if isinstance(value, tuple):
        return tuple(map(plain, value)) if type(value) is tuple else value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else at_most(value)


def show(number: float) -> str:
    """Return ε or δ as printed text: four digits, rounded up.

    Examples
    --------
    >>> show(0.92631), show(1e-5), show(3.0), show(float("inf"))
    ('0.9264', '1e-05', '3', 'inf')
    """
    if math.isinf(number):
        return "inf"
    # repr gives the shortest digits of the float, so 1e-5 is not rounded up.
    rounded = Context(_DIGITS, ROUND_CEILING).create_decimal(Decimal(repr(float(number))))
    return f"{float(rounded):.{_DIGITS}g}"


def show_event(event: Any) -> str:
    """Return an event as printed text, whose numbers have four digits; its JSON has all.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent
    >>> show_event(GaussianDpEvent(17.259928539711225))
    'GaussianDpEvent(noise_multiplier=17.26)'
    """
    return re.sub(
        r"\d+\.\d{5,}(e[+-]?\d+)?", lambda found: f"{float(found[0]):.{_DIGITS}g}", str(event)
    )
