# SPDX-License-Identifier: BSD-3-Clause
"""JSON form of events: a fixed list of types, and the ranges of their parameters."""

from typing import Any

import attrs
from dp_accounting import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.dp_event import RepeatAndSelectDpEvent

from .events import (
    MAX_COUNT,
    DiameterGaussianDpEvent,
    SlicedGaussianDpEvent,
    ThresholdDpEvent,
)
from .strict_json import ANY, FLAG, Member, check_members, number, whole

# Nothing else can be loaded: a file must not choose which class is constructed.
_KNOWN = {
    cls.__name__: cls
    for cls in (
        ComposedDpEvent,
        DiameterGaussianDpEvent,
        GaussianDpEvent,
        LaplaceDpEvent,
        NoOpDpEvent,
        NonPrivateDpEvent,
        PoissonSampledDpEvent,
        RandomizedResponseDpEvent,
        RepeatAndSelectDpEvent,
        SampledWithoutReplacementDpEvent,
        SelfComposedDpEvent,
        SlicedGaussianDpEvent,
        ThresholdDpEvent,
    )
}

# Ranges of the events' parameters in JSON, by name. No noise costs ε = inf. Infinite noise is
# excluded, since such an event would release nothing.
_RATE = number("a number in (0, 1]", lambda given: 0 < given <= 1)
_MEMBERS = {
    "noise_multiplier": number(
        "0 or a number from 1e-9 to 1e100", lambda given: given == 0 or 1e-9 <= given <= 1e100
    ),
    "noise_parameter": number("a number in [0, 1]", lambda given: 0 <= given <= 1),
    "num_buckets": whole(),
    "sampling_probability": _RATE,
    "source_dataset_size": whole(),
    "sample_size": whole(),
    "count": whole(most=MAX_COUNT),
    "n_features": whole(),
    "n_projections": whole(),
    "orthogonal": FLAG,
    "n_classes": whole(),
    "beside": number("a number of at least 0", lambda given: given >= 0),
    "delta": number("a number in [0, 1)", lambda given: 0 <= given < 1),
    "mean": number("a number of at least 1", lambda given: given >= 1),
    "shape": number("a number of at least 0", lambda given: given >= 0),
    "event": ANY,
    "events": Member("a list", lambda given: type(given) is list),
}


def event_to_dict(event: DpEvent) -> dict[str, Any]:
    """Return `event` as a dict that JSON can hold."""
    name = type(event).__name__
    # A subclass under the same name would lose what it adds.
    if _KNOWN.get(name) is not type(event):
        raise TypeError(f"Events of type {name} cannot be serialised.")
    fields = {}
    for field in (f.name for f in attrs.fields(type(event))):
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
    if not isinstance(name, str) or name not in _KNOWN:
        raise ValueError(f"Unknown event {name!r:.60}; known are {sorted(_KNOWN)}.")
    # All parameters are required: a default that changes later must not change an old event.
    required = {field.name: _MEMBERS[field.name] for field in attrs.fields(_KNOWN[name])}
    check_members(fields, name, required)
    if "event" in fields:
        fields["event"] = event_from_dict(fields["event"])
    if "events" in fields:
        fields["events"] = [event_from_dict(part) for part in fields["events"]]
    return _KNOWN[name](**fields)
