# SPDX-License-Identifier: BSD-3-Clause
"""The form of a certificate in JSON: its members, their types and their ranges."""

from typing import Any

from .accountants import ACCOUNTANTS, RELATIONS
from .strict_json import (
    ANY,
    DATE,
    FLAG,
    TEXT,
    Member,
    check_members,
    choice,
    constant,
    hexadecimal,
    list_of,
    number,
    optional,
    parse_json,
    refuse_constant,
    whole,
)

STATEMENT = "differential privacy"
# JSON has no infinity.
INFINITE = "inf"
_FINITE = number("a number of at least 0", lambda given: given >= 0)
_PRICE = Member(
    f"{_FINITE.what} or {INFINITE!r}", lambda given: _FINITE.allows(given) or given == INFINITE
)
_REQUIRED = {
    "statement": constant(STATEMENT),
    "epsilon": _PRICE,
    "delta": number("a number in (0, 1)", lambda given: 0 < given < 1),
    "relation": choice(*RELATIONS),
    "accountant": choice(*ACCOUNTANTS),
    "reproducible": FLAG,
    "local": FLAG,
    "releases": Member("a list", lambda given: type(given) is list),
    "assumptions": list_of(TEXT),
}
_OF_RECORDS = {"n_records": optional(whole())}
_OF_PERSONS = {
    "unit": constant("person"),
    "max_rows": whole(),
    "n_persons": optional(whole()),
}
_OPTIONAL = {
    "mu": _PRICE,
    "rho": _PRICE,
    "digest": hexadecimal(32),
    "engine": TEXT,
    "made_by": ANY,
}
_MADE_BY = {"estimator": TEXT, "version": TEXT, "date": DATE, "parameters": ANY}


def read_form(text: str) -> dict[str, Any]:
    """Return the members of a certificate in JSON, whose form is checked; events are not.

    Raises
    ------
    ValueError
        If a member is missing, unknown, there twice, of another type or out of its range; if it is
        for records and for persons.
    """
    data = parse_json(text, "the text", parse_constant=refuse_constant)
    is_for_persons = isinstance(data, dict) and "unit" in data
    where = f"a certificate for {'persons' if is_for_persons else 'records'}"
    unit = _OF_PERSONS if is_for_persons else _OF_RECORDS
    check_members(data, where, _REQUIRED | unit, _OPTIONAL)
    if "made_by" in data:
        check_members(data["made_by"], "made_by", _MADE_BY)
        parameters = data["made_by"]["parameters"]
        if not isinstance(parameters, dict) or not all(map(TEXT.allows, _texts_of(parameters))):
            raise ValueError(f"made_by must have an object as parameters, of {TEXT.what} each.")
    return data


def _texts_of(parameters: dict[str, Any]) -> list[Any]:
    return [*parameters, *parameters.values()]
