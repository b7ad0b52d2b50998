# SPDX-License-Identifier: BSD-3-Clause
"""Table of the events, relations, privacy units and places that go together in one fit.

Plans, curators and certificates all read it: `verify` refuses what no fit makes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dp_accounting import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.dp_event import RepeatAndSelectDpEvent

from .events import (
    DiameterGaussianDpEvent,
    SlicedGaussianDpEvent,
    ThresholdDpEvent,
)


@dataclass(frozen=True)
class Release:
    """Terms that a release can be made under.

    Attributes
    ----------
    what : str
        The release, in a message.
    needs_replace_one : bool
        Whether ``relation="zero_out"`` is excluded.
    for_persons : bool
        Whether the unit can be a person, with several rows: a sum of M rows changes by at most M
        times as much as one of 1 row, while M rows are in a sample, or chosen, more often than one.
    by_engine : bool
        Whether the workers of an engine can add it up, where rows are stored.
    local : bool
        Whether it can be local: the noise of each record on its own.
    """

    what: str
    needs_replace_one: bool = False
    for_persons: bool = False
    by_engine: bool = False
    local: bool = False


_SUM = Release("a sum", for_persons=True, by_engine=True, local=True)
_SAMPLE = Release("a release of samples or of single rows")
_RANDOMISED = Release("a randomised record", needs_replace_one=True, local=True)
TABLE = {
    GaussianDpEvent: _SUM,
    NonPrivateDpEvent: _SUM,
    ThresholdDpEvent: Release("a threshold", for_persons=True, by_engine=True),
    DiameterGaussianDpEvent: _SAMPLE,
    SlicedGaussianDpEvent: _SAMPLE,
    PoissonSampledDpEvent: _SAMPLE,
    SampledWithoutReplacementDpEvent: Release("a sample of fixed size", needs_replace_one=True),
    LaplaceDpEvent: _RANDOMISED,
    RandomizedResponseDpEvent: _RANDOMISED,
    RepeatAndSelectDpEvent: Release("a private search"),
}


def find_conflict(
    events: Iterable[DpEvent],
    relation: str,
    local: bool,
    max_rows: int | None,
    engine: str | None,
) -> str | None:
    """Return why releases cannot be those of one fit, or of several composed ones, or None.

    Parameters
    ----------
    events : iterable of DpEvent
    relation : {"zero_out", "replace_one"}
    local : bool
        Whether each record was noised on its own.
    max_rows : int or None
        Largest number of rows of a person. None: the unit is a record.
    engine : str or None
        Engine that summed the rows of one of the fits.

    Returns
    -------
    str or None
    """
    # Events of other types have no price.
    releases = [TABLE[type(leaf)] for leaf in _list_leaves(events) if type(leaf) in TABLE]

    def wrong(name: str, expected: bool = True) -> list[str]:
        return [one.what for one in releases if getattr(one, name) != expected]

    if local and relation != "replace_one":
        return "Local releases need relation='replace_one'."
    if local and max_rows is not None:
        return "Local releases are of records; set max_rows=None."
    if local and engine is not None:
        return "Local releases noise each record before anybody sums it; set engine=None."
    if local and (others := wrong("local")):
        return f"Local releases noise each record; {others[0]} does not."
    if relation != "replace_one" and (others := wrong("needs_replace_one", False)):
        return f"{others[0].capitalize()} needs relation='replace_one'."
    if max_rows is not None and (others := wrong("for_persons")):
        return f"{others[0].capitalize()} is for records, not for persons with their rows."
    # Other fits of a composition may have held their rows in memory.
    if engine is not None and releases and len(wrong("by_engine")) == len(releases):
        return f"An engine adds up rows, and cannot make {releases[0].what}."
    return None


def _list_leaves(events: Iterable[DpEvent]) -> Iterator[DpEvent]:
    """Yield the events of single releases in compositions."""
    for event in events:
        if isinstance(event, ComposedDpEvent):
            yield from _list_leaves(event.events)
        elif isinstance(event, SelfComposedDpEvent):
            yield from _list_leaves([event.event])
        else:
            yield event
