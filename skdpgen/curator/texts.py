# SPDX-License-Identifier: BSD-3-Clause
"""Types and values of single cells of text files, each parsed on its own."""

import contextlib
import datetime
import math
import re
from dataclasses import dataclass
from functools import lru_cache

from .._choices import is_one_of

# Texts that mean a missing value, unless they are declared as categories: the common ones of R,
# SQL, Python and pandas.
MISSING_TEXTS = {"", "NA", "N/A", "NaN", "nan", "null", "None", "NULL"}

# Types of a cell. Digits after a leading zero are a code rather than a number.
TEXT_KINDS = ("whole", "number", "boolean", "date", "text", "missing")
# Spellings of booleans where a column is declared to hold them.
BOOLEANS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}

_DATE = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[ T]([0-9]{2}:[0-9]{2})(:[0-9]{2})?(?:\.([0-9]{1,6})[0-9]*)?"
    r"(?:(Z)|([+-][0-9]{2})(?::?([0-9]{2}))?)?)?"
)
# Declared types of cells.
_EXPECTED = ("number", "integer", "boolean", "date")
# Unpaired surrogates.
_HALVES = re.compile("[\ud800-\udfff]")
# Spaces that separate thousands: plain, no-break, narrow no-break.
_SPACES = " \u00a0\u202f"


@dataclass(frozen=True, repr=False)
class TextStyle:
    """The public style of numbers and dates in a column of texts.

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
        The declared type of the cells. With it, ``yes``, ``no``, ``1`` and ``0`` are booleans,
        numbers may have leading zeros, and 31.0 is an integer.

    Raises
    ------
    ValueError
        If two separators are equal, or the format of dates loses the day, month or year.
    """

    decimal: str = "."
    thousands: str | None = None
    date_format: str | None = None
    expected: str | None = None

    def __post_init__(self):
        for name in ("decimal", "thousands"):
            value = getattr(self, name)
            if name == "thousands" and value is None:
                continue
            if not isinstance(value, str) or len(value) != 1 or value.isalnum() or value in "+-":
                raise ValueError(f"{name} must be a character such as '.' or ','; got {value!r}.")
        if self.decimal == self.thousands or self.decimal.isspace():
            raise ValueError("decimal and thousands must be different, and decimal no space.")
        if not is_one_of(self.expected, (None, *_EXPECTED)):
            raise ValueError(f"expected must be None or one of {_EXPECTED}; got {self.expected!r}.")
        if self.date_format is not None:
            _check_date_format(self.date_format)

    @property
    def has_python_numbers(self) -> bool:
        """Whether numbers are written as in Python, apart from currency signs."""
        return (self.decimal, self.thousands) == (".", None)

    def plain_number(self, text: str) -> str | None:
        """Return a number as Python writes it, or None if the text is no number."""
        leads = self.expected in ("number", "integer")
        match = _number_pattern(self.decimal, self.thousands, leads).fullmatch(text)
        if match is None:
            return None
        whole = re.sub("[^0-9]", "", match["whole"] or "")
        fraction = match["fraction"] if match["fraction"] is not None else match["only"]
        fraction = "" if fraction is None else f".{fraction}"
        return f"{match['sign']}{whole}{fraction}{match['exponent'] or ''}"

    def read_date(self, text: str) -> datetime.datetime | None:
        """Parse a date without a time zone, or return None if the text is none."""
        with contextlib.suppress(ValueError, OverflowError):
            if self.date_format is not None:
                return datetime.datetime.strptime(text, self.date_format)
            date = read_iso_date(text)
            return date if date is not None and date.tzinfo is None else None
        return None


PLAIN = TextStyle()


def read_iso_date(text: str) -> datetime.datetime | None:
    """Parse a date in ISO 8601, with its time zone if it has one; None if the text is none."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    day, minute, second, fraction, utc, hours, minutes = match.groups()
    time = "" if minute is None else f"T{minute}{second or ':00'}.{(fraction or '0').ljust(6, '0')}"
    zone = "+00:00" if utc else f"{hours}:{minutes or '00'}" if hours else ""
    with contextlib.suppress(ValueError):
        return datetime.datetime.fromisoformat(f"{day}{time}{zone}")
    return None


def is_writable(value) -> bool:
    """Whether a value is no text, or one that UTF-8 can encode: without an unpaired surrogate."""
    return not isinstance(value, str) or not _HALVES.search(value)


def read_text(text: str, style: TextStyle = PLAIN) -> tuple[str, object]:
    """Return the type of a text, one of `TEXT_KINDS`, and its value, from this text alone.

    Examples
    --------
    >>> read_text("12"), read_text("1.5"), read_text("012"), read_text("TRUE")
    (('whole', 12.0), ('number', 1.5), ('text', '012'), ('boolean', True))
    >>> read_text("1.234,50 €", TextStyle(decimal=",", thousands="."))
    ('number', 1234.5)
    """
    text = text.strip()
    if text in MISSING_TEXTS:
        return "missing", None
    if style.expected == "boolean":
        value = BOOLEANS.get(text.lower())
        return ("text", text) if value is None else ("boolean", value)
    number = style.plain_number(text)
    if number is not None and math.isfinite(float(number)):
        digits = number.lstrip("+-")
        if style.expected == "integer":
            digits = re.sub(r"\.0*$", "", digits)
        is_whole = digits.isdigit() and len(digits) <= 15
        return "whole" if is_whole else "number", float(number)
    if text.lower() in ("true", "false"):
        return "boolean", text.lower() == "true"
    date = style.read_date(text)
    return ("text", text) if date is None else ("date", date)


@lru_cache
def _number_pattern(decimal, thousands, leads):
    point, sign = re.escape(decimal), "[$€£¥]"
    whole = "[0-9]+" if leads else "(?:0|[1-9][0-9]*)"
    if thousands is not None:
        between = f"[{_SPACES}]" if thousands in _SPACES else re.escape(thousands)
        whole = f"(?:[1-9][0-9]{{0,2}}(?:{between}[0-9]{{3}})+|{whole})"
    return re.compile(
        rf"(?P<sign>[+-]?)(?:{sign}[{_SPACES}]?)?"
        rf"(?:(?P<whole>{whole})(?:{point}(?P<fraction>[0-9]*))?|{point}(?P<only>[0-9]+))"
        rf"(?P<exponent>[eE][+-]?[0-9]+)?(?:[{_SPACES}]?{sign})?"
    )


def _check_date_format(date_format):
    # Parts of this date are all different.
    day = datetime.datetime(2003, 12, 31)
    is_read = False
    with contextlib.suppress(ValueError, TypeError):
        is_read = datetime.datetime.strptime(day.strftime(date_format), date_format) == day
    if not is_read or "%z" in date_format:
        raise ValueError(
            "date_format must contain day, month and year, and no time zone, such as '%m/%d/%Y'; "
            f"got {date_format!r}."
        )
