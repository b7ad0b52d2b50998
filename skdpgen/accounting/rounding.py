# SPDX-License-Identifier: BSD-3-Clause
"""How ε, δ and other numbers are read and printed: never as more than asked, or less than spent."""

import contextlib
import math
import numbers
from collections.abc import Iterator
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from sklearn.base import BaseEstimator

# Significant digits of printed ε and δ.
_DIGITS = 4


def at_most(number: Any) -> float:
    """Return the largest float that is not above a number of any type.

    Arithmetic with a narrower type would round to it: a price of 1 + 7e-9 is no more than 1 in
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
    # Python compares floats with whole numbers and fractions exactly.
    return nearest if nearest <= number else math.nextafter(nearest, -math.inf)


@contextlib.contextmanager
def plain_numbers(estimator: BaseEstimator) -> Iterator[None]:
    """Let an estimator's parameters be Python's own numbers inside, and as they were outside.

    What follows from a parameter, such as noise, is then computed in doubles, whatever its type,
    and can be written down.
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
    """Return a number as one of Python's own, and other values as they are."""
    if isinstance(value, tuple):
        return tuple(map(plain, value)) if type(value) is tuple else value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else at_most(value)


def show(number: float) -> str:
    """Return ε or δ as it is printed: with four digits, rounded up.

    Examples
    --------
    >>> show(0.92631), show(1e-5), show(3.0), show(float("inf"))
    ('0.9264', '1e-05', '3', 'inf')
    """
    if math.isinf(number):
        return "inf"
    # From the shortest digits that give the float: 1e-5 is no more than that.
    rounded = Context(_DIGITS, ROUND_CEILING).create_decimal(Decimal(repr(float(number))))
    return f"{float(rounded):.{_DIGITS}g}"
