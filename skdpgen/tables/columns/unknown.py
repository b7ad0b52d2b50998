# SPDX-License-Identifier: BSD-3-Clause
"""Columns of undeclared type."""

from dataclasses import dataclass

from ...data.texts import MISSING_TEXTS, TextStyle
from ...registry import savable
from .base import Column


@savable
@dataclass(frozen=True, repr=False)
class Unknown(Column, TextStyle):
    """A column of undeclared type.

    A generator infers, at a cost, whether it is a boolean, a number, a date or a category. Cells
    may be texts or values of Python. Cells that do not have the inferred type become missing.

    Numbers may have a currency sign before or after them.

    Parameters
    ----------
    decimal : str, default="."
        The decimal separator.
    thousands : str, default=None
        The separator that may stand between groups of three digits, such as ``","``.
    date_format : str, default=None
        Format of dates, such as ``"%m/%d/%Y"``. None: ISO 8601, as in ``2020-01-31``.
    expected : {None, "number", "integer", "boolean", "date"}, default=None
        The declared type of the cells. If noisy counts show that many have another one, the fit
        stops, and only these counts are spent.

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
        """Return the fault of cells of another dtype, and the remedy, for an error."""
        advice = "their dtype says what they are: see Schema.from_dtypes"
        return f"are no texts (dtype {dtype})", advice

    def parse(self, cells, style):
        """Return the texts, None where they stand for missing values."""
        return cells.map(lambda c: None if c in MISSING_TEXTS else c).astype(object)
