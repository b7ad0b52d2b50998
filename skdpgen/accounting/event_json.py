# SPDX-License-Identifier: BSD-3-Clause
"""JSON form of events: a fixed list of types, and the ranges of their parameters."""

from typing import Any

from dp_accounting import DpEvent

from .event_types import KNOWN, PARAMETERS, list_parameters
from .strict_json import check_members


def event_to_dict(event: DpEvent) -> dict[str, Any]:
    """Return `event` as a dict that JSON can hold."""
    name = type(event).__name__
    # A subclass under the same name would lose what it adds.
    if KNOWN.get(name) is not type(event):
        raise TypeError(f"Events of type {name} cannot be serialised.")
    fields = {}
    for field in list_parameters(type(event)):
        value = getattr(event, field)
        if isinstance(value, DpEvent):
            value = event_to_dict(value)
        elif isinstance(value, (list, tuple)):
            value = [event_to_dict(part) for part in value]
        fields[field] = value
    return {"type": name, **fields}


def event_from_dict(data: Any) -> DpEvent:
    """Return the event of a dict from `event_to_dict`.

    Only a fixed list of event types is supported; nothing is imported by name.

    Raises
    ------
    ValueError
        If a member is missing, unknown, of a wrong type or out of its range.
    """
    if not isinstance(data, dict):
        raise ValueError(f"An event must be a JSON object; got {data!r:.60}.")
    fields = dict(data)
    name = fields.pop("type", None)
    if not isinstance(name, str) or name not in KNOWN:
        raise ValueError(f"Unknown event {name!r:.60}; known are {sorted(KNOWN)}.")
    # All parameters are required: a default that changes later must not change an old event.
    required = {field: PARAMETERS[field] for field in list_parameters(KNOWN[name])}
    check_members(fields, name, required)
    if "event" in fields:
        fields["event"] = event_from_dict(fields["event"])
    if "events" in fields:
        fields["events"] = [event_from_dict(part) for part in fields["events"]]
    return KNOWN[name](**fields)
