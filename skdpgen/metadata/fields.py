# SPDX-License-Identifier: BSD-3-Clause
"""Fields of a metadata document, and the columns that they declare."""

import contextlib
import datetime
import math
import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any

import pandas as pd

from ..data.texts import BOOLEANS, MISSING_TEXTS
from ..histograms.grids import MAX_UNITS
from ..tables.columns import Boolean, Category, Date, Identifier, Number, Ordinal, Unknown


class Type(str, Enum):
    """Type of a field, if its document states it."""

    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    DATETIME = "datetime"
    TEXT = "text"


_EXPECTED = {
    Type.INTEGER: "integer",
    Type.NUMBER: "number",
    Type.DATE: "date",
    Type.DATETIME: "date",
}
# Formats of dates that are read without being stated.
_ISO = ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f")
# Those of milliseconds.
_DIGITS = 3
# Regular expressions of texts with one number of a fixed width, and of a choice of texts.
_NUMBERED = re.compile(r"\^?([\w /-]*)(?:\[0-9\]|\\d)\{(\d+)\}([\w /-]*)\$?")
_CHOICE = re.compile(r"\^?(\()?(?:\?:)?([\w /-]+(?:\|[\w /-]+)+)(?(1)\))\$?")


@dataclass
class Field:
    """Statements of a document about a column.

    Attributes
    ----------
    name : str
    type : Type or None
    lower, upper : object
        Bounds as the document writes them.
    decimals : int or None
    categories : list or None
    is_ordered : bool
        Whether the categories have an order.
    missing : bool
        Whether values may be missing.
    is_key, is_unique : bool
        Whether the column is the primary key, or has no value twice.
    is_identifier : bool
        Whether the column identifies something, such as a person.
    template : str or None
        How a number is written in an identifier.
    is_random : bool
        Whether identifiers are random keys.
    style : dict
        How numbers or dates are written, if not by default: parameters of `TextStyle`.
    zone : str or None
    digits : int
        Digits of fractions of seconds.
    dropped : list of str
        Constraints that no column can express.
    problem : str or None
        Why the field cannot be read.
    """

    name: str
    type: Type | None = None
    lower: Any = None
    upper: Any = None
    decimals: int | None = None
    categories: list | None = None
    is_ordered: bool = False
    missing: bool = True
    is_key: bool = False
    is_unique: bool = False
    is_identifier: bool = False
    template: str | None = None
    is_random: bool = False
    style: dict = field(default_factory=dict)
    zone: str | None = None
    digits: int = 0
    dropped: list = field(default_factory=list)
    problem: str | None = None

    def limit(self, lower=None, upper=None, *, is_exclusive: bool = False) -> None:
        """Narrow the bounds; an exclusive one becomes the next value where there is one."""
        for name, bound, choose in (("lower", lower, max), ("upper", upper, min)):
            if bound is None:
                continue
            if is_exclusive:
                bound = self._exclude(bound, name)
            known = getattr(self, name)
            if known is not None:
                # The last one counts if bounds do not compare, as texts of no number.
                with contextlib.suppress(TypeError, InvalidOperation):
                    bound = choose(known, bound, key=_sort_key)
            setattr(self, name, bound)

    def limit_by(self, constraints: dict) -> None:
        """Take the bounds out of constraints in the keywords of JSON Schema or XML Schema."""
        for end, name in (("min", "lower"), ("max", "upper")):
            inclusive = (f"{end}imum", f"{end}Inclusive")
            for keyword in (*inclusive, f"{end}Exclusive", f"exclusive{end.title()}imum"):
                if keyword in constraints:
                    is_exclusive = keyword not in inclusive
                    self.limit(**{name: constraints.pop(keyword)}, is_exclusive=is_exclusive)

    def _exclude(self, bound, name):
        decimals = 0 if self.type == Type.INTEGER else self.decimals
        if self.type in (Type.INTEGER, Type.NUMBER) and decimals is not None:
            number, step = Decimal(str(bound)), Decimal(1).scaleb(-decimals)
            return number + step if name == "lower" else number - step
        self.dropped.append(f"that its {name} bound {bound!r} is exclusive")
        return bound

    def drop(self, keyword: str, value: object = None) -> None:
        """Note a constraint that no column can express."""
        self.dropped.append(keyword if value is None else f"{keyword} {_cut(value)}")

    def match(self, pattern: object, keyword: str = "pattern") -> None:
        """Read a regular expression: a template, a choice of texts, or else a lost constraint."""
        text = str(pattern)
        if (numbered := _NUMBERED.fullmatch(text)) and "{" not in numbered[1] + numbered[3]:
            self.template = f"{numbered[1]}{{:0{numbered[2]}d}}{numbered[3]}"
            if not self.is_identifier:
                # Forgotten where the column turns out to be an identifier.
                self.drop(keyword, pattern)
        elif (
            self.type == Type.TEXT
            and self.categories is None
            and (found := _CHOICE.fullmatch(text))
        ):
            self.categories = found[2].split("|")
        else:
            self.drop(keyword, pattern)

    def name_booleans(self, true: list, false: list) -> None:
        """Read how booleans are written: a category where a Boolean would not read it."""
        known = all(BOOLEANS.get(str(text).strip().lower()) is True for text in true)
        if known and all(BOOLEANS.get(str(text).strip().lower()) is False for text in false):
            return
        self.type, self.categories = Type.TEXT, [*map(str, false), *map(str, true)]
        self.drop("that it is a boolean, as it is written")

    def mark_missing(self, texts: list) -> None:
        """Read what stands for missing values; note texts that would be read as values."""
        # Others are read as missing anyway, if they are no value of the type.
        codes = [text for text in map(str, texts) if text.strip() not in MISSING_TEXTS]
        if self.type in (Type.INTEGER, Type.NUMBER):
            codes = [code for code in codes if _is_number(code)]
        elif self.type == Type.BOOLEAN:
            codes = [code for code in codes if code.strip().lower() in BOOLEANS]
        elif self.type in (Type.DATE, Type.DATETIME) or self.categories is not None:
            codes = []
        if codes:
            self.drop(f"that {', '.join(map(repr, codes))} stand for missing values")


@dataclass
class Description:
    """Statements of a document about a table.

    Attributes
    ----------
    fields : list of Field
    unique : list of tuple of str
        Columns that no two rows have the same values in.
    ordered : list of (str, str, bool)
        Columns of which the first is at most the second, and whether they are never equal.
    dropped : list of str
        Constraints of the table that no schema can express.
    """

    fields: list
    unique: list = field(default_factory=list)
    ordered: list = field(default_factory=list)
    dropped: list = field(default_factory=list)

    def get(self, name: str) -> Field | None:
        """Return the field of a name."""
        return next((field for field in self.fields if field.name == name), None)

    def drop_of(self, names, keyword: str) -> None:
        """Note a constraint on some columns."""
        for name in names:
            found = self.get(name)
            if found is None:
                self.dropped.append(f"{keyword} of {name!r}")
            else:
                found.drop(keyword)

    def set_unique(self, names) -> None:
        """Read that no two rows have the same values in one or several columns."""
        found = self.get(names[0]) if len(names) == 1 else None
        if found is not None:
            found.is_unique = True
        elif names:
            self.unique.append(tuple(names))

    def set_key(self, names) -> None:
        """Read a primary key of one or several columns."""
        known = [found for found in map(self.get, names) if found is not None]
        for found in known:
            found.missing = False
        if len(known) == 1:
            known[0].is_key = known[0].is_unique = True
        elif known:
            self.unique.append(tuple(names))


def write_template(template: str | None) -> str | None:
    """Return the regular expression that `Field.match` reads as a template; None if it is none."""
    head, _, rest = (template or "").partition("{:0")
    width, _, tail = rest.partition("d}")
    return f"{head}[0-9]{{{width}}}{tail}" if width.isdigit() else None


def as_list(value: object) -> list:
    """Return a value as a list, an absent one as an empty list."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def make_column(field: Field):
    """Return the column that a field declares, and note in the field what is lost.

    Raises
    ------
    ValueError
        If it declares none.
    """
    if field.problem is not None:
        raise ValueError(field.problem)
    if _is_identifier(field):
        return _make_identifier(field)
    if field.type == Type.BOOLEAN:
        if field.categories is not None:
            field.drop("the values", field.categories)
        return Boolean(field.missing)
    if field.categories is not None:
        return _make_category(field)
    if field.style:
        return _make_unknown(field)
    if field.type in (Type.INTEGER, Type.NUMBER):
        return _make_number(field)
    if field.type in (Type.DATE, Type.DATETIME):
        return _make_date(field)
    _drop_bounds(field)
    return Category(missing=field.missing) if field.type == Type.TEXT else Unknown()


def _is_identifier(field):
    if field.is_identifier or field.is_random:
        return True
    # Numbers between two bounds, and categories, are values that rows share nothing else of.
    is_plain = field.type in (Type.INTEGER, Type.TEXT) and field.categories is None
    is_open = field.is_key or field.lower is None or field.upper is None
    return field.is_unique and is_plain and is_open


def _make_identifier(field):
    if field.is_random:
        field.template = None
        if not field.is_unique:
            field.drop("that its UUIDs may repeat (they are all different)")
        return Identifier(random=True)
    if field.template is not None:
        field.dropped = [text for text in field.dropped if not text.startswith("pattern ")]
    start = 1
    if field.type == Type.INTEGER and field.lower is not None:
        number = math.ceil(_as_number(field.lower))
        # A bound of 0 is that of an unsigned type.
        if 1 <= number <= 2**62:
            start, field.lower = number, None
    _drop_bounds(field)
    return Identifier(start, field.template)


def _make_category(field):
    levels = [level for level in field.categories if level is not None]
    missing = field.missing or len(levels) < len(field.categories)
    # True equals 1 in Python, so that booleans among categories become texts.
    if any(isinstance(level, bool) for level in levels):
        levels = [str(level) if isinstance(level, bool) else level for level in levels]
    if field.type in (Type.INTEGER, Type.NUMBER) and all(
        isinstance(level, str) for level in levels
    ):
        levels = [_plain(level) for level in levels]
    if field.type == Type.TEXT:
        levels = [level if isinstance(level, str) else str(level) for level in levels]
    # In a file an empty text is a missing cell.
    if "" in levels and len(levels) > 1:
        levels, missing = [level for level in levels if level != ""], True
    _drop_bounds(field)
    if field.is_ordered:
        return Ordinal(levels, missing)
    return Category(levels, missing=missing)


def _make_unknown(field):
    """Return an undeclared column, which alone says how its texts are written."""
    _drop_bounds(field)
    if field.decimals is not None:
        field.drop("its decimals", field.decimals)
    if not field.missing:
        field.drop("required")
    return Unknown(**field.style, expected=_EXPECTED.get(field.type))


def _make_number(field):
    decimals = 0 if field.type == Type.INTEGER else field.decimals
    lower, upper = (
        _round_bound(field, name, decimals, to)
        for name, to in (("lower", math.ceil), ("upper", math.floor))
    )
    return Number(lower, upper, decimals, missing=field.missing)


def _round_bound(field, name, decimals, to):
    bound = getattr(field, name)
    if bound is None:
        return None
    number = _as_number(bound)
    # An infinite bound bounds nothing.
    if math.isinf(number):
        return None
    if abs(number) * 10.0 ** (decimals or 0) > MAX_UNITS:
        field.drop(f"its {name} bound", bound)
        return None
    if decimals is not None:
        # Inwards: a value with so many decimals cannot be nearer to the bound.
        exact = Decimal(str(bound)) if not isinstance(bound, Decimal) else bound
        number = _plain(Decimal(to(exact.scaleb(decimals))).scaleb(-decimals))
    return int(number) if number == int(number) else float(number)


def _make_date(field):
    if field.digits > _DIGITS:
        field.drop("fractions of seconds finer than", "milliseconds")
    unit = "millisecond" if field.digits else "second"
    unit = "day" if field.type == Type.DATE else unit
    lower, upper = (_read_date(field, name) for name in ("lower", "upper"))
    return Date(lower, upper, unit, missing=field.missing, zone=field.zone)


def _read_date(field, name):
    """Return a bound as a text without time zone; a stated one becomes that of the column."""
    bound = getattr(field, name)
    if bound is None:
        return None
    # Python 3.10 reads neither the Z of UTC nor more than six digits of a second.
    text = re.sub(r"[zZ]$", "+00:00", str(bound).strip())
    text = re.sub(r"(\.\d{6})\d+", r"\1", text)
    try:
        date = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"its {name} bound must be a date in ISO 8601; got {bound!r}.") from None
    if date.tzinfo is not None:
        field.zone = field.zone or ("UTC" if field.type == Type.DATETIME else None)
        if field.zone is not None:
            date = pd.Timestamp(date).tz_convert(field.zone).to_pydatetime()
        date = date.replace(tzinfo=None)
    if field.type == Type.DATE:
        return str(date.date())
    is_fine = bool(field.digits and date.microsecond)
    return date.isoformat(timespec="milliseconds" if is_fine else "seconds")


def _drop_bounds(field):
    for name, keyword in (("lower", "minimum"), ("upper", "maximum")):
        if getattr(field, name) is not None:
            field.drop(keyword, _show(getattr(field, name)))


def set_date_format(field: Field, date_format: str) -> None:
    """Read a format of `strptime`; nothing is noted for one of ISO 8601."""
    field.type = Type.DATETIME if re.search("%[HIMSTXcf]", date_format) else Type.DATE
    # Python's six digits say nothing of how many there are.
    field.digits = _DIGITS * ("%f" in date_format)
    plain = date_format.replace("%F", "%Y-%m-%d").replace("%T", "%H:%M:%S").replace("T", " ")
    without_zone = plain.removesuffix("Z").removesuffix("%z").rstrip()
    if without_zone in _ISO:
        if without_zone != plain:
            field.zone = field.zone or "UTC"
        return
    try:
        Unknown(date_format=date_format)
    except ValueError:
        field.type = Type.TEXT
        field.drop(f"that it is a date in the format {date_format!r} (it is read as a category)")
    else:
        field.style["date_format"] = date_format


def _as_number(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"its bounds must be numbers; got {value!r}.") from None


def _is_number(text):
    with contextlib.suppress(ValueError):
        return math.isfinite(float(text))
    return False


def _plain(value):
    """Return a number as an int if it is whole, else as a float."""
    number = _as_number(value)
    return int(number) if number == int(number) else number


def _sort_key(bound):
    if isinstance(bound, str):
        return Decimal(bound) if _is_number(bound) else bound
    return Decimal(str(bound))


def _show(value):
    return str(value) if isinstance(value, Decimal) else value


def _cut(value):
    text = repr(value) if isinstance(value, list | dict) else str(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
