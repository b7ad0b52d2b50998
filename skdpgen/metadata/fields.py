# SPDX-License-Identifier: BSD-3-Clause
"""The form of all metadata formats: fields, and what holds of several of them."""

import contextlib
import datetime
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

import pandas as pd

from ..data.texts import BOOLEANS, HAS_TIME, MISSING_TEXTS
from ..histograms.grids import MAX_UNITS
from ..tables.columns import TYPES, Unknown

_NUMBERS, _DATES = ("integer", "number"), ("date", "datetime")
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
    type : {"integer", "number", "boolean", "date", "datetime", "string"} or None
        If it is stated, as in Frictionless Table Schema; or the type of cells of a column type.
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
    words : list or None
        How False and True are written, if it is not as by default.
    style : dict
        How numbers or dates are written, if not by default: parameters of `TextStyle`.
    zone : str or None
    digits : int
        Digits of fractions of seconds.
    pattern : str or None
        The constraint from which the template was read.
    dropped : list of str
        Constraints that no column can express.
    problem : str or None
        Why the field cannot be read.
    """

    name: str
    type: str | None = None
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
    words: Any = None
    style: dict = field(default_factory=dict)
    zone: str | None = None
    digits: int = 0
    pattern: str | None = None
    dropped: list = field(default_factory=list)
    problem: str | None = None

    @property
    def form(self):
        """The form that a column type lists in its `forms`, to be that of the field."""
        if self.is_random or self._is_identifier():
            return "identifier"
        if self.type != "boolean" and self.categories is not None:
            return "ordinal" if self.is_ordered else "category"
        return "styled" if self.type != "boolean" and self.style else self.type

    def _is_identifier(self):
        # Numbers between two bounds, and categories, are values that rows share nothing else of.
        is_plain = self.type in ("integer", "string") and self.categories is None
        is_open = self.is_key or self.lower is None or self.upper is None
        return self.is_identifier or (self.is_unique and is_plain and is_open)

    def set_type(self, type: str) -> None:
        """Read a type that few column types hold, and whose cells are texts otherwise."""
        self.type = type
        if not any(type in cls.forms for cls in TYPES.values()):
            self.type = "string"
            self.drop(f"that it is of type {type} (it is read as a category)")

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

    def _exclude(self, bound, name):
        decimals = 0 if self.type == "integer" else self.decimals
        if self.type in _NUMBERS and decimals is not None:
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
            self.pattern = f"{keyword} {_cut(pattern)}"
        elif (
            self.type == "string" and self.categories is None and (found := _CHOICE.fullmatch(text))
        ):
            self.categories = found[2].split("|")
        else:
            self.drop(keyword, pattern)

    def name_booleans(self, true: list, false: list) -> None:
        """Read how booleans are written: a category where there are several new words."""
        if len(true) == len(false) == 1:
            self.words = [str(false[0]), str(true[0])]
            return
        known = all(BOOLEANS.get(str(text).strip().lower()) is True for text in true)
        if known and all(BOOLEANS.get(str(text).strip().lower()) is False for text in false):
            return
        self.type, self.categories = "string", [*map(str, false), *map(str, true)]
        self.drop("that it is a boolean, as it is written")

    def mark_missing(self, texts: list) -> None:
        """Read what stands for missing values; note texts that would be read as values."""
        # Others are read as missing anyway, if they are no value of the type.
        codes = [text for text in map(str, texts) if text.strip() not in MISSING_TEXTS]
        if self.type in _NUMBERS:
            codes = [code for code in codes if _is_number(code)]
        elif self.type == "boolean":
            codes = [code for code in codes if code.strip().lower() in BOOLEANS]
        elif self.type in _DATES or self.categories is not None:
            codes = []
        if codes:
            self.drop(f"that {', '.join(map(repr, codes))} stand for missing values")

    def drop_bounds(self) -> None:
        """Note bounds of a column that has none."""
        for bound, keyword in ((self.lower, "minimum"), (self.upper, "maximum")):
            if bound is not None:
                self.drop(keyword, str(bound))

    def read_number(self, end: str) -> float:
        """Return a bound as a float."""
        bound = getattr(self, end)
        try:
            return float(bound)
        except (TypeError, ValueError):
            raise ValueError(f"its bounds must be numbers; got {bound!r}.") from None

    def round_bound(self, end: str, decimals: int | None):
        """Return a bound of numbers of so many decimals; None for one that bounds nothing."""
        bound = getattr(self, end)
        number = math.inf if bound is None else self.read_number(end)
        if math.isinf(number):
            return None
        if abs(number) * 10.0 ** (decimals or 0) > MAX_UNITS:
            self.drop(f"its {end} bound", bound)
            return None
        if decimals is not None:
            # Inwards: a value with so many decimals cannot be nearer to the bound.
            exact = bound if isinstance(bound, Decimal) else Decimal(str(bound))
            to = math.ceil if end == "lower" else math.floor
            number = float(Decimal(to(exact.scaleb(decimals))).scaleb(-decimals))
        return int(number) if number == int(number) else number

    def read_date(self, end: str) -> str | None:
        """Return a bound as a text without time zone; a stated one becomes that of the column."""
        bound = getattr(self, end)
        if bound is None:
            return None
        # Python 3.10 reads neither the Z of UTC nor more than six digits of a second.
        text = re.sub(r"[zZ]$", "+00:00", str(bound).strip())
        text = re.sub(r"(\.\d{6})\d+", r"\1", text)
        try:
            date = datetime.datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(
                f"its {end} bound must be a date in ISO 8601; got {bound!r}."
            ) from None
        if date.tzinfo is not None:
            self.zone = self.zone or ("UTC" if self.type == "datetime" else None)
            if self.zone is not None:
                date = pd.Timestamp(date).tz_convert(self.zone).to_pydatetime()
            date = date.replace(tzinfo=None)
        if self.type == "date":
            return str(date.date())
        is_fine = bool(self.digits and date.microsecond)
        return date.isoformat(timespec="milliseconds" if is_fine else "seconds")

    def read_levels(self) -> tuple[list | None, bool]:
        """Return the categories, None if they are not known, and whether cells may be missing."""
        if self.categories is None:
            return None, self.missing
        levels = [level for level in self.categories if level is not None]
        missing = self.missing or len(levels) < len(self.categories)
        # True equals 1 in Python, so that booleans among categories become texts.
        levels = [str(level) if isinstance(level, bool) else level for level in levels]
        if self.type in _NUMBERS and all(isinstance(level, str) for level in levels):
            levels = [_read_number(level) for level in levels]
        if self.type == "string":
            levels = list(map(str, levels))
        # In a file an empty text is a missing cell.
        if "" in levels and len(levels) > 1:
            levels, missing = [level for level in levels if level != ""], True
        return levels, missing

    def set_date_format(self, date_format: str) -> None:
        """Read a format of `strptime`; nothing is noted for one of ISO 8601."""
        self.type = "datetime" if HAS_TIME.search(date_format) else "date"
        # Python's six digits say nothing of how many there are.
        self.digits = _DIGITS * ("%f" in date_format)
        plain = date_format.replace("%F", "%Y-%m-%d").replace("%T", "%H:%M:%S").replace("T", " ")
        without_zone = plain.removesuffix("Z").removesuffix("%z").rstrip()
        if without_zone in _ISO:
            if without_zone != plain:
                self.zone = self.zone or "UTC"
            return
        try:
            Unknown(date_format=date_format)
        except ValueError:
            self.type = "string"
            self.drop(f"that it is a date in the format {date_format!r} (it is read as a category)")
        else:
            self.style["date_format"] = date_format

    def make_column(self):
        """Return the column that the field declares, and note what is lost."""
        if self.problem is not None:
            raise ValueError(self.problem)
        form = self.form
        if self.pattern is not None and form != "identifier":
            self.drop(self.pattern)
        if form in _DATES and self.digits > _DIGITS:
            self.drop("fractions of seconds finer than", "milliseconds")
        return next(cls for cls in TYPES.values() if form in cls.forms).of_field(self)


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


def list_fields(schema) -> list[Field]:
    """Return fields that declare the columns of a schema, as far as fields can."""
    return [
        Field(name, missing=column.missing, **column.to_field()) for name, column in schema.items()
    ]


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


def choose_table(names: Iterable[str], table: str | None) -> str:
    """Return the table that is asked for, or the only one."""
    listed = list(names)
    if table is None and len(listed) == 1:
        return listed[0]
    if not listed:
        raise ValueError("The metadata describes no table.")
    if table is None:
        raise ValueError(
            f"The metadata describes several tables, {listed}; choose one by table=..., or leave "
            "one in the document."
        )
    if table not in listed:
        raise ValueError(f"The metadata has no table {table!r}; it describes {listed}.")
    return table


def _is_number(text):
    with contextlib.suppress(ValueError):
        return math.isfinite(float(text))
    return False


def _read_number(text):
    """Return a level as an int if it is whole, else as a float."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"its categories must be numbers; got {text!r}.") from None
    return int(number) if number == int(number) else number


def _sort_key(bound):
    if isinstance(bound, str):
        return Decimal(bound) if _is_number(bound) else bound
    return Decimal(str(bound))


def _cut(value):
    text = repr(value) if isinstance(value, list | dict) else str(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
