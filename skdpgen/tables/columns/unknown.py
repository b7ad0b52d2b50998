# SPDX-License-Identifier: BSD-3-Clause
"""Columns of undeclared type."""

from dataclasses import dataclass

from ...curator.texts import MISSING_TEXTS, TextStyle
from ...registry import savable
from .base import Column


@savable
@dataclass(frozen=True, repr=False)
class Unknown(Column, TextStyle):
    """A column of which nothing is known, not even whether it holds numbers or texts.

    What it is has to be found and paid for by a generator: a boolean, a number, a date, or a
    category. Cells may be texts or values of Python. They may be missing, and those that are not
    of the kind that is found become so.

    Numbers may have a sign of a currency before or after them.

    Parameters
    ----------
    decimal : str, default="."
        What comes before the decimals of a number.
    thousands : str, default=None
        What may stand between groups of three digits, such as ``","``.
    date_format : str, default=None
        Of dates, such as ``"%m/%d/%Y"``. None: ISO 8601, as in ``2020-01-31``.
    expected : {None, "number", "integer", "boolean", "date"}, default=None
        What the cells are said to be. The fit stops where noisy counts show that many are not,
        when no more than these counts is spent.

    Raises
    ------
    ValueError
        If a parameter makes no sense.

    Examples
    --------
    >>> from skdpgen import Unknown
    >>> Unknown()
    Unknown()
    """

    is_open = missing = is_unknown = True
    dtype_codes = "SO"

    def describe_mismatch(self, dtype):
        """Return what cells of a dtype are instead, and what to do."""
        advice = "their dtype says what they are: see Schema.from_dtypes"
        return f"are no texts (dtype {dtype})", advice

    def parse(self, cells, style):
        """Return the texts, None where they stand for missing values."""
        return cells.map(lambda c: None if c in MISSING_TEXTS else c).astype(object)
