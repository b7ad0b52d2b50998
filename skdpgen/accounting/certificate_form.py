# SPDX-License-Identifier: BSD-3-Clause
"""JSON form of certificates: their members, types and ranges."""

import json
import math
from typing import Any

from dp_accounting import DpEvent

from .accountants import ACCOUNTANTS, RELATIONS
from .event_types import event_from_dict, event_to_dict
from .events import reveals_nothing
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

# Other documents in JSON must not be read as a certificate by chance.
_STATEMENT = "differential privacy"
# JSON has no infinity.
_INFINITE = "inf"
_FINITE = number("a number of at least 0", lambda given: given >= 0)
_PRICE = Member(
    f"{_FINITE.what} or {_INFINITE!r}", lambda given: _FINITE.allows(given) or given == _INFINITE
)
_REQUIRED = {
    "statement": constant(_STATEMENT),
    "epsilon": _PRICE,
    "delta": number("a number in (0, 1)", lambda given: 0 < given < 1),
    "relation": choice(*RELATIONS),
    "accountant": choice(*ACCOUNTANTS),
    "reproducible": FLAG,
    "local": FLAG,
    "releases": Member("a list", lambda given: type(given) is list),
    "assumptions": list_of(TEXT),
}
_RECORDS = {"n_records": optional(whole())}
_PERSONS = {"unit": constant("person"), "max_rows": whole(), "n_persons": optional(whole())}
_DIGEST = hexadecimal(32)
_DIGESTS = list_of(_DIGEST)
_OPTIONAL = {"mu": _PRICE, "rho": _PRICE, "digest": _DIGEST, "engine": TEXT, "made_by": ANY}
_MADE_BY = {"estimator": TEXT, "version": TEXT, "date": DATE, "parameters": ANY}


def write_form(certificate: Any) -> str:
    """Return a `Certificate` as JSON."""
    unit: dict[str, Any] = {"n_records": certificate.n_records}
    if certificate.max_rows is not None:
        unit = {"unit": "person", "max_rows": certificate.max_rows}
        unit["n_persons"] = certificate.n_records
    known = {
        # Members that are None are left out: null would have to be explained.
        name: value if value != math.inf else _INFINITE
        for name in ("epsilon", "mu", "rho", "digest", "engine")
        if (value := getattr(certificate, name)) is not None
    }
    provenance = certificate.provenance
    members = {
        "statement": _STATEMENT,
        "epsilon": known.pop("epsilon"),
        "delta": certificate.delta,
        "relation": certificate.relation,
        "accountant": certificate.accountant,
        "reproducible": certificate.reproducible,
        "local": certificate.local,
        **unit,
        **known,
        **({} if provenance is None else {"made_by": provenance.to_dict()}),
        "releases": [
            # That of one fit stands above.
            {"name": name, **event_to_dict(event)}
            | ({"digests": list(digests)} if digests and certificate.digest is None else {})
            for name, event, digests in certificate.entries
        ],
        "assumptions": list(certificate.assumptions),
    }
    return json.dumps(members, indent=2)


def read_form(text: str) -> dict[str, Any]:
    """Return the members of a certificate in JSON; all but events are checked.

    Raises
    ------
    ValueError
        If a member is missing, unknown, repeated, of a wrong type or out of its range; if the
        certificate is for records and for persons.
    """
    # JSON has no NaN or infinity; Python's parser would accept both.
    data = parse_json(text, "the text", parse_constant=refuse_constant)
    is_for_persons = isinstance(data, dict) and "unit" in data
    where = f"a certificate for {'persons' if is_for_persons else 'records'}"
    unit = _PERSONS if is_for_persons else _RECORDS
    check_members(data, where, _REQUIRED | unit, _OPTIONAL)
    if "made_by" in data:
        check_members(data["made_by"], "made_by", _MADE_BY)
        parameters = data["made_by"]["parameters"]
        if not isinstance(parameters, dict) or not all(
            map(TEXT.allows, [*parameters, *parameters.values()])
        ):
            raise ValueError(f"made_by must have an object as parameters, of {TEXT.what} each.")
    return data


def read_digests(data: dict[str, Any]) -> tuple:
    """Return the digests of each release: its own, or the one of all."""
    own = [release["digests"] for release in data["releases"] if "digests" in release]
    if not all(map(_DIGESTS.allows, own)) or (own and "digest" in data):
        raise ValueError(f"digests must be {_DIGESTS.what}, of each release or one of all.")
    shared = [data["digest"]] if "digest" in data else []
    return tuple(release.get("digests", shared) for release in data["releases"])


def read_event(release: Any) -> DpEvent:
    """Return the event of a named release, which must read records."""
    if not isinstance(release, dict) or not TEXT.allows(release.get("name")):
        raise ValueError(f"a release must have a name, which is {TEXT.what}.")
    own = ("name", "digests")
    event = event_from_dict({key: value for key, value in release.items() if key not in own})
    # An event that reads nothing would make a certificate of ε = 0 for whatever is added to it.
    if reveals_nothing(event):
        raise ValueError(f"{release['name']!r} releases nothing: {event}.")
    return event
