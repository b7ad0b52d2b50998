# SPDX-License-Identifier: BSD-3-Clause
"""Strict validation of JSON: no repeated name, no unknown member, no value out of its range."""

import json
import math
import numbers
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any, NoReturn

# Longer values are cut in errors, to fit a line.
_MAX_CHARACTERS = 60
_LARGEST = sys.float_info.max


def parse_json(text: Any, what: str, **options: Any) -> Any:
    """Return the value of a JSON text; raise ValueError if an object repeats a name.

    A reader that takes the first of two members would see another value than one that takes the
    last. `what` names the text in errors; options are those of `json.loads`.
    """
    try:
        return json.loads(text, object_pairs_hook=_dict_of_distinct, **options)
    except RecursionError:
        pass
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} is not valid JSON: {error}") from None
    raise ValueError(f"{what} is not valid JSON: it is nested too deeply.")


def refuse_constant(name: str) -> NoReturn:
    """Raise ValueError for NaN and Infinity, which JSON excludes; a hook of `parse_json`."""
    raise ValueError(f"{name} is no number of JSON.")


def _dict_of_distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return members as a dict; raise ValueError if names repeat."""
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"an object has {repeated} more than once.")
    return members


@dataclass(frozen=True)
class Member:
    """Allowed values of a member of a JSON object."""

    # Description of the allowed values, for errors.
    what: str
    # Returns whether a value is allowed.
    allows: Callable


def check_members(
    data: Any, where: str, required: dict[str, Member], optional: dict[str, Member] | None = None
) -> None:
    """Raise ValueError if members of an object are missing, unknown or out of their range.

    `where` names the object in errors.
    """
    known = required | (optional or {})
    if not isinstance(data, dict):
        raise ValueError(f"{where} must be an object of JSON; got {_cut(data)}.")
    # Unknown members are refused: a reader of another version could take them for a promise.
    if unknown := data.keys() - known.keys():
        raise ValueError(f"{where} has unknown members: {_cut(sorted(unknown))}.")
    if missing := required.keys() - data.keys():
        raise ValueError(f"{where} lacks {sorted(missing)}.")
    for name, value in data.items():
        if not known[name].allows(value):
            raise ValueError(f"{where} must have {known[name].what} as {name}; got {_cut(value)}.")


def _cut(value: object) -> str:
    """Return the repr of a value, cut to fit a line."""
    text = repr(value)
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}..."


def constant(value: object) -> Member:
    """Return a member with one allowed value."""
    # True equals 1 in Python, so types are compared, too.
    return Member(repr(value), lambda given: type(given) is type(value) and given == value)


def choice(*values: str) -> Member:
    """Return a member with one of several strings."""
    return Member(f"one of {list(values)}", lambda given: type(given) is str and given in values)


def number(what: str, allows: Callable[[Any], bool]) -> Member:
    """Return a member with a finite double in a range; booleans are not numbers."""
    return Member(
        what, lambda given: _is_a(numbers.Real, given) and abs(given) <= _LARGEST and allows(given)
    )


def whole(least: int = 1, most: float = math.inf) -> Member:
    """Return a member with a whole number in a range."""
    what = f"a whole number of at least {least}"
    return Member(
        what if most == math.inf else f"{what} and at most {most}",
        lambda given: _is_a(numbers.Integral, given) and least <= given <= most,
    )


def optional(member: Member) -> Member:
    """Return a member that may also be null."""
    return Member(f"{member.what} or null", lambda given: given is None or member.allows(given))


def hexadecimal(n_bytes: int) -> Member:
    """Return a member with bytes in lower-case hexadecimal digits."""
    pattern = re.compile(f"[0-9a-f]{{{2 * n_bytes}}}")
    return Member(
        f"{2 * n_bytes} lower-case hexadecimal digits",
        lambda given: type(given) is str and pattern.fullmatch(given) is not None,
    )


def list_of(member: Member) -> Member:
    """Return a member with a list, each item of which `member` allows."""
    return Member(
        f"a list, of which each is {member.what}",
        lambda given: type(given) is list and all(map(member.allows, given)),
    )


def _is_a(cls: type, given: Any) -> bool:
    """Return whether a value is of a class of numbers; booleans are not numbers."""
    return isinstance(given, cls) and not isinstance(given, bool)


def _is_text(given: Any) -> bool:
    """Return whether a value is a string of printable characters, without spaces at its ends."""
    # Characters that a page or terminal hides or reorders could hide an edit.
    return type(given) is str and given.isprintable() and given == given.strip() != ""


def _is_date(given: Any) -> bool:
    """Return whether a value is an ISO 8601 date."""
    try:
        return date.fromisoformat(given).isoformat() == given
    except (TypeError, ValueError):
        return False


FLAG = Member("true or false", lambda given: type(given) is bool)
TEXT = Member("a text of visible signs, without spaces at its ends", _is_text)
DATE = Member("a date, as in 2026-01-31", _is_date)
ANY = Member("anything", lambda given: True)
