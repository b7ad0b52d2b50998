# SPDX-License-Identifier: BSD-3-Clause
"""Columns of undeclared type."""

from dataclasses import dataclass

import pandas as pd
from pandas.api.types import is_object_dtype

from ...data.texts import TextStyle
from ...registry import savable
from .category import Category
from .column_type import ColumnType

# Categories of made-up records, by the declared type of the cells.
_EXAMPLES = {
    None: ("a", "1", "2"),
    "number": ("1", "2.5", "3"),
    "integer": ("1", "2", "3"),
    "date": ("2020-02-29", "2021-06-30"),
    "boolean": ("true", "false"),
}


@savable
@dataclass(frozen=True, repr=False)
class Unknown(ColumnType, TextStyle):
    """A column of undeclared type.

    A generator infers, at a cost, whether it is a boolean, a number, a date or a category. Cells
    may be texts or values of Python. Cells that do not have the inferred type become missing.

    Texts come back as texts; those in memory that are declared to be written otherwise than in
    Python come back as the numbers and dates they stand for.

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
    is_file, written
        As generators infer them, in the `TextStyle` of a column.

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
    # Fields that say how their texts are written, and those that say nothing.
    forms = ("styled", None)

    @classmethod
    def of_dtype(cls, dtype, missing):
        is_text = isinstance(dtype, pd.StringDtype) or is_object_dtype(dtype)
        return cls() if is_text else None

    @classmethod
    def of_field(cls, field):
        field.drop_bounds()
        if not field.style:
            return cls()
        if field.decimals is not None:
            field.drop("its decimals", field.decimals)
        if not field.missing:
            field.drop("required")
        expected = {"datetime": "date", "string": None}.get(field.type, field.type)
        return cls(**field.style, expected=expected)

    def to_field(self):
        style = self._given()
        form = style.pop("expected", None)
        return {"type": "datetime" if "date_format" in style else form, "style": style}

    def example(self):
        return Category(_EXAMPLES[self.expected])

    def describe_mismatch(self, dtype):
        """Return the fault of cells of another dtype, and the remedy, for an error."""
        advice = "their dtype says what they are: see Schema.from_dtypes"
        return f"are no texts (dtype {dtype})", advice

    def parse(self, cells, style):
        """Return the texts, which say how missing values are written, too."""
        return cells.astype(object)
