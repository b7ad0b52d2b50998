# SPDX-License-Identifier: BSD-3-Clause
"""Types and values of single cells of text files, each parsed on its own."""

import contextlib
import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..checks import is_one_of
from ..registry import savable

# Stand for cells that are declared to be missing, such as -999: one for each of the first words of
# a column. They are for private use, so that no text has them.
MARKS = tuple("\ue0d0\ue0d1\ue0d2\ue0d3")
# Texts that mean a missing value, unless they are declared as categories: those that
# `pandas.read_csv` reads as missing by default.
MISSING_TEXTS = frozenset(
    {
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
        *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
        *MARKS,
    }
)
# Those that are no category in a frame: blanks, and what `astype(str)` makes of missing floats. NA
# may be a country, and None an answer.
BLANK_TEXTS = frozenset({"", "nan", "NaN", *MARKS})
# Texts that people write in place of a number or date: dashes, dots and the like, the errors of
# spreadsheets, and words. In a column of texts each is a text like others.
_PLACEHOLDER = re.compile(
    r"[-–—.?*_/~]+|#[A-Z0-9/]+[!?]?|n\.?/?a\.?|nan|nil|null|none|missing|unknown|undefined|"
    r"no data|not (?:available|applicable|known|recorded)",
    re.IGNORECASE,
)

# Spellings of booleans where a column is declared to hold them.
BOOLEANS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
BOOLEANS |= {"t": True, "f": False, "y": True, "n": False}

# ISO 8601, extended or basic: 2020-01-31T12:30:15.5Z, 20200131T123015+0100.
_DATE = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}(?=T))"
    r"(?:[ T](?P<hour>[0-9]{2}):?(?P<minute>[0-9]{2})(?::?(?P<second>[0-9]{2})"
    r"(?:[.,](?P<fraction>[0-9]{1,6})[0-9]*)?)?"
    r" ?(?:(?P<utc>Z|z|UTC|GMT)|(?P<hours>[+-][0-9]{2})(?::?(?P<minutes>[0-9]{2}))?)?)?"
)
# How the names of months begin, in five languages.
_MONTH = (
    r"(?:jan|ene|feb|fév|mar|mär|mrz|apr|abr|avr|may|mai|jun|jui|jul|aug|ago|aoû|sep|oct|okt|nov|"
    r"dec|dez|déc|dic)[^\W\d_]*"
)
# Parts of dates that can be no other part.
_DAY, _LATE, _MONTHS, _YEAR = "[0-3]?[0-9]", "(?:1[3-9]|2[0-9]|3[01])", "[01]?[0-9]", "[0-9]{4}"
# Patterns of texts that are no values of a column type, by what they look like.
LOOKS = {
    "dates as %d.%m.%Y": re.compile(rf"{_DAY}\.{_MONTHS}\.{_YEAR}"),
    "dates as %d/%m/%Y": re.compile(f"{_LATE}/{_MONTHS}/{_YEAR}"),
    "dates as %m/%d/%Y": re.compile(f"{_MONTHS}/{_LATE}/{_YEAR}"),
    "dates as %Y/%m/%d": re.compile(f"{_YEAR}/{_MONTHS}/{_DAY}"),
    # Times of day, and durations as pandas, SQL and ISO 8601 write them.
    "times": re.compile(
        r"(?:-?[0-9]+ days?,? ?)?[+-]?[0-9]{1,4}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?"
        r"(?: ?[AaPp]\.?[Mm]\.?)?"
        r"|-?[0-9]+ days?|-?P(?:[0-9.]+[YMWD])*T(?:[0-9.]+[HMS])+"
    ),
    # 31.1.2020, 2020/01/31 12:30, 31-Jan-20, January 31, 2020.
    "dates": re.compile(
        r"(?:[0-3]?[0-9]([./-])[0-3]?[0-9]\1(?:[0-9]{4}|[0-9]{2})"
        r"|[0-9]{4}([./-])[01]?[0-9]\2[0-3]?[0-9]"
        rf"|[0-9]{{1,2}}\.?[ -]?{_MONTH}\.?,?[ -]?(?:[0-9]{{4}}|[0-9]{{2}})"
        rf"|{_MONTH}\.? [0-9]{{1,2}},? [0-9]{{4}})"
        r"(?:[T ,]+[0-9]{1,2}:[0-9:.]+(?: ?[ap]m)?)?",
        re.IGNORECASE,
    ),
    "numbers as 1 000": re.compile(
        r"[+-]?[1-9][0-9]{0,2}([ \u00a0\u202f])[0-9]{3}(?:\1[0-9]{3})*(?:[.,][0-9]+)?"
    ),
    "numbers as 1'000": re.compile(
        r"[+-]?[1-9][0-9]{0,2}(['’])[0-9]{3}(?:\1[0-9]{3})*(?:[.,][0-9]+)?"
    ),
    # With other signs.
    "numbers": re.compile(r"[0-9]+(?:[.,][0-9]+)?-|[−–][0-9]+(?:[.,][0-9]+)?"),
    "quantities": re.compile(
        r"[+-]?[0-9]+(?:[.,][0-9]+)? ?(?:[kmµn]?g|[kcmµn]?m[²³23]?|[mcdh]?l|lbs?|oz|ft|in|mi|"
        r"km/h|mph|°[CF]?|[kM]?W|[km]?V|k?cal|mmHg|bpm|mg/dl|mmol/l|"
        r"ms|s|sec|min|h|hrs?|hours?|days?|weeks?|months?|years?|yrs?)",
        re.IGNORECASE,
    ),
}
# Types of a cell. Digits after a leading zero are a code rather than a number. Numbers with commas
# have a decimal comma, or groups of three digits, or may have either, and those with several points
# are written as those with a decimal comma; "limit" is a bound that a measurement could not cross,
# such as "<0.5". Those of `LOOKS` are no values of a column type.
TEXT_KINDS = (
    *("whole", "number", "decimal comma", "grouped", "comma", "limit"),
    *("boolean", "date", "zoned date", *LOOKS, "text", "missing"),
)
_LIMIT = re.compile("(?:<=|>=|[<>≤≥])(.+)")
# Signs of currencies, and the codes of those that are written with amounts most often.
_CURRENCY = (
    "(?:[$€£¥₹₩₽₺₫₪₱₴₦₵₡₲₸฿﷼]|kr|zł|Kč|Ft|R\\$|"
    "AED|ARS|AUD|BGN|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|EUR|GBP|HKD|HUF|IDR|ILS|INR|ISK|JPY|KES|"
    "KRW|MAD|MXN|MYR|NGN|NOK|NZD|PEN|PHP|PKR|PLN|QAR|RON|RSD|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|"
    "VND|ZAR)"
)
# How missing values, times of dates, and numbers are written, by what each stands for: parentheses
# of negative numbers, exponents, groups of three digits, zeros at the end of the decimals; and the
# sign of an amount, or a plus.
_SPACES = " \u00a0\u202f"  # plain, no-break, narrow no-break
_GROUPS, _AROUND = f"[1-9][0-9]{{0,2}}(?:[.,'’{_SPACES}][0-9]{{3}})+", "[^0-9.,]{0,5}"
_AMOUNTS = [(sign, gap) for sign in "$€£¥%" for gap in ("", " ")]
_AMOUNTS += [(code, " ") for code in ("EUR", "USD", "GBP", "CHF", "kr", "zł")]
_SIGNS = [(sign, gap, re.escape(sign), f"[{_SPACES}]" if gap else "") for sign, gap in _AMOUNTS]
_FORMS = {
    "(1)": "(?<=[(]).*(?=[)])",
    "1E5": "[0-9.,]+E[+-]?[0-9]+",
    "1e5": "[0-9.,]+e[+-]?[0-9]+",
    "1,230": "[1-9][0-9]{0,2}[.,][0-9]{2}0",
    "1,000": f"{_GROUPS}(?:[.,][0-9]*[1-9])?",
    "1,000.50": f"{_GROUPS}[.,][0-9]*0",
    ".5": "[.,][0-9]+",
    "1.0": "[0-9]+[.,]0",
    "1.50": "[0-9]+[.,][0-9]+0",
    "1.5": "[0-9]+[.,][0-9]",
    "1.25": "[0-9]+[.,][0-9]*",
    "1": "[0-9]+",
}
WAYS = {
    "missing": {w: re.escape(w) for w in (*sorted(MISSING_TEXTS), "-", ".", "?")},
    "dates": {
        "D": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
        " ": "[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:.*",
        "TZ": "[0-9]{4}-?[0-9]{2}-?[0-9]{2}T[0-9:.,]+Z",
        "T": "[0-9]{4}-?[0-9]{2}-?[0-9]{2}T[0-9].*",
    },
    "numbers": {way: f"{_AROUND}(?:{form}){_AROUND}" for way, form in _FORMS.items()},
    "signs": {
        **{f"{s}{gap}{{}}": f"[(+-]?{sign}{space}-?[0-9.,].*" for s, gap, sign, space in _SIGNS},
        **{f"{{}}{gap}{s}": f".*[0-9.,)]{space}{sign}[)]?" for s, gap, sign, space in _SIGNS},
        "+{}": "[+][0-9.,].*",
    },
}
# A cell is written in at most one way of each part.
_PARTS = [
    {k: p for what in part for k, p in WAYS[what].items()}
    for part in (("missing", "dates", "numbers"), ("signs",))
]
WAY_PARTS = [list(part) for part in _PARTS]
_PATTERNS = [
    re.compile("|".join(f"(?P<w{i}>{p})" for i, p in enumerate(part.values()))) for part in _PARTS
]
# Declared types of cells.
_EXPECTED = ("number", "integer", "boolean", "date")
# Unpaired surrogates.
_HALVES = re.compile("[\ud800-\udfff]")


@savable
@dataclass(frozen=True, repr=False)
class TextStyle:
    """The public style of numbers and dates in a column of texts.

    Numbers may have a currency sign or code, or a percent sign, which is dropped. Amounts in
    parentheses are negative.

    Parameters
    ----------
    decimal : str, default="."
        The decimal separator.
    thousands : str, default=None
        The separator that may stand between groups of three digits, such as ``","``.
    date_format : str, default=None
        Format of dates, such as ``"%m/%d/%Y"``. Texts of this format are dates, even if they could
        be numbers. None: ISO 8601, as in ``2020-01-31``.
    expected : {None, "number", "integer", "boolean", "date"}, default=None
        The declared type of the cells. With it, ``yes``, ``no``, ``1`` and ``0`` are booleans,
        numbers may have leading zeros, and 31.0 is an integer.
    is_file : bool, default=False
        Whether cells are of a file, where texts that pandas reads as missing are no categories.
    written : sequence of str, default=()
        How texts are written, apart from this: of `WAYS`, the most frequent ones of each part
        first. It says nothing of how they are read.

    Raises
    ------
    ValueError
        If two separators are equal, or the format of dates loses the day, month or year.
    """

    decimal: str = "."
    thousands: str | None = None
    date_format: str | None = None
    expected: str | None = None
    is_file: bool = False
    written: Sequence[str] = ()

    def __post_init__(self):
        object.__setattr__(self, "written", tuple(self.written))
        for name in ("decimal", "thousands"):
            # `thousands` may be None, `decimal` may not.
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

    def find_way(self, what: str) -> str | None:
        """Return the most frequent way in which `what`, a key of `WAYS`, is written, if known."""
        return next((way for way in self.written if way in WAYS[what]), None)

    @property
    def has_python_numbers(self) -> bool:
        """Whether numbers are written as in Python, apart from currency signs."""
        return (self.decimal, self.thousands) == (".", None)

    @property
    def is_as_in_python(self) -> bool:
        """Whether numbers and dates are written as in Python and ISO 8601."""
        return self.has_python_numbers and self.date_format is None

    def plain_number(self, text: str) -> str | None:
        """Return a number as Python writes it, or None if the text is no number."""
        leads = self.expected in ("number", "integer")
        pattern = _number_pattern(self.decimal, self.thousands, leads)
        # Accountants write negative amounts in parentheses.
        is_negative = text.startswith("(") and text.endswith(")")
        match = pattern.fullmatch(text[1:-1] if is_negative else text)
        if match is None:
            return None
        signs = "-" * is_negative + match["sign"] + (match["inner"] or "")
        if len(signs) > 1:
            return None
        # Separators of thousands are dropped; the pattern has checked that they stand where they
        # may.
        whole = re.sub("[^0-9]", "", match["whole"] or "")
        fraction = match["fraction"] if match["fraction"] is not None else match["only"]
        fraction = "" if fraction is None else f".{fraction}"
        return f"{signs}{whole}{fraction}{match['exponent'] or ''}"

    def read_date(self, text: str) -> datetime.datetime | None:
        """Parse a date without a time zone, or return None if the text is none."""
        with contextlib.suppress(ValueError, OverflowError):
            if self.date_format is not None:
                return datetime.datetime.strptime(text, self.date_format)
            date = read_iso_date(text)
            return date if date is not None and date.tzinfo is None else None
        return None


PLAIN = TextStyle()
# 1.234,50 and 1,234.50.
COMMA_STYLES = TextStyle(decimal=",", thousands="."), TextStyle(thousands=",")


def read_iso_date(text: str) -> datetime.datetime | None:
    """Parse a date in ISO 8601, with its time zone if it has one; None if the text is none."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    part = match.groupdict("00")
    # fromisoformat of Python 3.10 takes the extended form only.
    day = part["day"] if "-" in part["day"] else re.sub("(....)(..)(..)", r"\1-\2-\3", part["day"])
    zone = "+00:00" if match["utc"] else ""
    if match["hours"]:
        zone = f"{part['hours']}:{part['minutes']}"
    fraction = part["fraction"].ljust(6, "0")
    with contextlib.suppress(ValueError):
        return datetime.datetime.fromisoformat(
            f"{day}T{part['hour']}:{part['minute']}:{part['second']}.{fraction}{zone}"
        )
    return None


def is_placeholder(text: str) -> bool:
    """Whether a text is what people write in place of a number or date.

    Examples
    --------
    >>> is_placeholder(" - "), is_placeholder("unknown"), is_placeholder("+")
    (True, True, False)
    """
    return _PLACEHOLDER.fullmatch(text.strip()) is not None


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
    # A declared format decides before all guesses.
    has_format = style.date_format is not None
    if has_format or style.expected == "date":
        date = style.read_date(text) if has_format else read_iso_date(text)
        if date is not None:
            return "date" if date.tzinfo is None else "zoned date", date
        if style.expected == "date":
            return "text", text
    number = style.plain_number(text)
    # 1e999 is a number to the pattern, and infinite as a float: it stays a text.
    if number is not None and math.isfinite(float(number)):
        digits = number.lstrip("+-")
        if style.expected == "integer":
            digits = re.sub(r"\.0*$", "", digits)
        # Fifteen digits are exact in a float.
        is_whole = digits.isdigit() and len(digits) <= 15
        return "whole" if is_whole else "number", float(number)
    if text.lower() in ("true", "false"):
        return "boolean", text.lower() == "true"
    date = None if has_format else read_iso_date(text)
    if date is not None:
        return "date" if date.tzinfo is None else "zoned date", date
    return _guess(text, style), text


def find_way(cell, part: int = 0, is_file: bool = True) -> int:
    """Return the position in `WAY_PARTS[part]` of how a text is written, or -1; None is <NA>.

    Beside files, readers may turn each text of a missing value into None, but for empty ones.
    """
    text = cell.strip() if isinstance(cell, str) else cell
    is_text = isinstance(text, str)
    if text is None or (is_text and text and not is_file and text in MISSING_TEXTS):
        text, is_text = "<NA>", True
    match = _PATTERNS[part].fullmatch(text) if is_text else None
    return -1 if match is None else int(str(match.lastgroup)[1:])


def _guess(text, style):
    """Return what a text looks like that cannot be read in its style."""
    limit = _LIMIT.fullmatch(text)
    if limit is not None and style.plain_number(limit[1].strip()) is not None:
        return "limit"
    for look, pattern in LOOKS.items():
        if pattern.fullmatch(text):
            return look
    has_separators = "," in text or text.count(".") > (style.decimal == ".")
    if style.thousands is None and has_separators:
        is_decimal, is_grouped = (other.plain_number(text) is not None for other in COMMA_STYLES)
        if style.decimal == ",":
            return "grouped" if is_decimal else "text"
        if is_decimal or is_grouped:
            both = is_decimal and is_grouped
            return "comma" if both else "decimal comma" if is_decimal else "grouped"
    return "text"


@lru_cache
def _number_pattern(decimal, thousands, leads):
    point, spaces = re.escape(decimal), f"[{_SPACES}]?"
    whole = "[0-9]+" if leads else "(?:0|[1-9][0-9]*)"
    if thousands is not None:
        between = f"[{_SPACES}]" if thousands in _SPACES else re.escape(thousands)
        whole = f"(?:[1-9][0-9]{{0,2}}(?:{between}[0-9]{{3}})+|{whole})"
    return re.compile(
        rf"(?P<sign>[+-]?)(?:{_CURRENCY}{spaces}(?P<inner>-?))?"
        rf"(?:(?P<whole>{whole})(?:{point}(?P<fraction>[0-9]*))?|{point}(?P<only>[0-9]+))"
        rf"(?P<exponent>[eE][+-]?[0-9]+)?(?:{spaces}(?:{_CURRENCY}|%))?"
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
