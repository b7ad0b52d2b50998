# SPDX-License-Identifier: BSD-3-Clause
"""Types of events: the ranges of their parameters, which types one fit can combine, and their JSON.

Accountants refuse unpriced events, plans and certificates combinations that no fit makes, and
readers of files all types that are not `KNOWN`.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
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

from .directions import MAX_SIZE
from .events import (
    MAX_COUNT,
    DegradedGaussianDpEvent,
    DiameterGaussianDpEvent,
    SlicedGaussianDpEvent,
    ThresholdDpEvent,
    flatten,
    pure_epsilon,
    split_sampling,
)
from .strict_json import ANY, FLAG, Member, check_members, number, whole


@dataclass(frozen=True)
class EventType:
    """Terms under which releases of one type of event can be made."""

    # The release, in a message.
    what: str
    # Whether relation="zero_out" is excluded.
    needs_replace_one: bool = False
    # Whether the unit can be a person with up to M rows. They change a sum by at most M times as
    # much as one row does, but are also sampled, or selected, more often than one row.
    for_persons: bool = False
    # Whether an engine's workers can compute it, where the rows are stored.
    by_engine: bool = False
    # Whether it can be local: each record is noised on its own.
    local: bool = False


_SUM = EventType("a sum", for_persons=True, by_engine=True, local=True)
_SAMPLE = EventType("a release of samples or of single rows")
_RANDOMISED = EventType("a randomised record", needs_replace_one=True, local=True)
RELEASES = {
    GaussianDpEvent: _SUM,
    NonPrivateDpEvent: _SUM,
    DegradedGaussianDpEvent: EventType("added noise", for_persons=True, by_engine=True),
    ThresholdDpEvent: EventType("a threshold", for_persons=True, by_engine=True),
    DiameterGaussianDpEvent: _SAMPLE,
    SlicedGaussianDpEvent: _SAMPLE,
    PoissonSampledDpEvent: _SAMPLE,
    SampledWithoutReplacementDpEvent: EventType("a sample of fixed size", needs_replace_one=True),
    LaplaceDpEvent: _SUM,
    RandomizedResponseDpEvent: _RANDOMISED,
    RepeatAndSelectDpEvent: EventType("a private search"),
}
# Only these can be read from a file, which must not choose arbitrary classes.
KNOWN = {
    cls.__name__: cls for cls in (*RELEASES, ComposedDpEvent, NoOpDpEvent, SelfComposedDpEvent)
}
_SAMPLED = GaussianDpEvent, DiameterGaussianDpEvent, SlicedGaussianDpEvent

# Largest mean number of runs of a search, and largest shape of its distribution: up to these, its
# probabilities do not leave the range of a float.
_MAX_RUNS, _MAX_SHAPE = 1e6, 10
_PROBABILITY = number("a number in [0, 1]", lambda given: 0 <= given <= 1)
_SIZE = whole(most=MAX_SIZE)
# Smaller or larger multipliers would leave the range of a float in accounting.
_FINITE_NOISE = number("", lambda given: given == 0 or 1e-9 <= given <= 1e100)
# Ranges of the parameters of events, by name.
PARAMETERS = {
    "noise_multiplier": Member(
        "0, infinity, or a number from 1e-9 to 1e100",
        lambda given: given == math.inf or _FINITE_NOISE.allows(given),
    ),
    "noise_parameter": _PROBABILITY,
    "num_buckets": whole(),
    "sampling_probability": _PROBABILITY,
    "source_dataset_size": whole(),
    "sample_size": whole(0),
    "count": whole(most=MAX_COUNT),
    "n_features": _SIZE,
    "n_projections": _SIZE,
    "orthogonal": FLAG,
    "n_classes": whole(),
    "beside": number("a number of at least 0", lambda given: given >= 0),
    "delta": number("a number in [0, 1)", lambda given: 0 <= given < 1),
    "mean": number(f"a number from 1 to {_MAX_RUNS:g}", lambda given: 1 <= given <= _MAX_RUNS),
    "shape": number(f"a number from 0 to {_MAX_SHAPE}", lambda given: 0 <= given <= _MAX_SHAPE),
    "event": ANY,
    "events": Member("a list", lambda given: isinstance(given, list | tuple)),
}


def list_parameters(cls: type[DpEvent]) -> list[str]:
    """Return the names of the parameters of a type of event."""
    return [field.name for field in attrs.fields(cls)]


def find_unsupported(leaf: DpEvent, relation: str, supports_selection: bool) -> str | None:
    """Return why a leaf event, from `flatten`, has no price, or None if it has one."""
    cls = type(leaf)
    inner = getattr(leaf, "event", None)
    is_sample = isinstance(leaf, PoissonSampledDpEvent | SampledWithoutReplacementDpEvent)
    if cls not in RELEASES:
        return f"events of type {cls.__name__} are not known here"
    if is_sample and type(inner) not in _SAMPLED:
        name = type(inner).__name__
        return f"samples with a {name} are not known here; plan the {name} for all records"
    for event in [leaf, inner] if is_sample else [leaf]:
        for name in list_parameters(type(event)):
            value, member = getattr(event, name), PARAMETERS[name]
            if not member.allows(value):
                return f"{type(event).__name__} must have {member.what} as {name}; got {value!r}"
    if RELEASES[cls].needs_replace_one and relation != "replace_one":
        return f"{RELEASES[cls].what} needs relation='replace_one'"
    base = split_sampling(leaf)[0]
    if isinstance(base, SlicedGaussianDpEvent) and base.beside > 0 and base.n_classes > 1:
        return "a release beside sliced rows is supported for one class only"
    if isinstance(leaf, RepeatAndSelectDpEvent):
        return _check_selection(leaf, relation, supports_selection)
    return None


def _check_selection(leaf: DpEvent, relation: str, supports_selection: bool) -> str | None:
    if not supports_selection:
        return "private selection is supported by accountant='rdp' only"
    for part in flatten([leaf.event]):
        # The accountant prices a run by the Rényi divergences of its Gaussian releases only.
        unknown = RepeatAndSelectDpEvent, ThresholdDpEvent
        if isinstance(part, unknown) or pure_epsilon(part) is not None:
            return f"private selection over runs of {type(part).__name__} is not known"
        if reason := find_unsupported(part, relation, supports_selection):
            return reason
    return None


def find_conflict(
    events: Iterable[DpEvent],
    relation: str,
    local: bool,
    max_rows: int | None,
    engine: str | None,
) -> str | None:
    """Return why no fit, or composition of fits, makes these releases, or None if one can.

    `local`: each record was noised on its own. `max_rows`: those of a person, or None for records.
    `engine` summed the rows of one of the fits.
    """
    # Accountants refuse other types of events.
    releases = [RELEASES[type(leaf)] for leaf in flatten(events) if type(leaf) in RELEASES]

    def list_unlike(name: str, expected: bool = True) -> list[str]:
        return [one.what for one in releases if getattr(one, name) != expected]

    if local and relation != "replace_one":
        return "Local releases need relation='replace_one'."
    if local and max_rows is not None:
        return "Local releases are of records; set max_rows=None."
    if local and engine is not None:
        return "Local releases noise each record before anybody sums it; set engine=None."
    if local and (others := list_unlike("local")):
        return f"Local releases noise each record; {others[0]} does not."
    if relation != "replace_one" and (others := list_unlike("needs_replace_one", False)):
        return f"{others[0].capitalize()} needs relation='replace_one'."
    if max_rows is not None and (others := list_unlike("for_persons")):
        return f"{others[0].capitalize()} is for records, not for persons with their rows."
    # Other fits of a composition may have held their rows in memory.
    if engine is not None and releases and len(list_unlike("by_engine")) == len(releases):
        return f"An engine adds up rows, and cannot make {releases[0].what}."
    return None


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
