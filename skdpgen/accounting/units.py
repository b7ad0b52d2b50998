# SPDX-License-Identifier: BSD-3-Clause
"""Whom a guarantee is for: a record or, where several rows are of one, a person."""

from collections.abc import Callable, Iterable

# What a certificate for records rests on, and one for persons in its place.
ONE_RECORD = "one person has one record"
_ONE_IDENTIFIER = "one person has one identifier"
_UNLIKE = "identifiers of two persons do not read alike, as 7, 7.0, '7' and '007' do"

_RECORD = {
    "zero_out": "one record is replaced by a null record, which counts as absent",
    "replace_one": "one record is replaced by any other",
}
_PERSON = {
    "zero_out": "all rows of one person are replaced by null records, which count as absent",
    "replace_one": "all rows of one person are replaced by those of any other",
}


def unit_sensitivity(
    sensitivity: Callable[[str], float], relation: str, max_rows: int | None = None
) -> float:
    """Return how far a sum over records moves between neighbours.

    Of a person at most M rows are in a sum. Where they are left out, it moves by at most M times
    what one record does. Where they are replaced by those of another person, who may have more of
    them or less, each is replaced by another one, or by none, or is one more.

    Parameters
    ----------
    sensitivity : callable
        Of a relation: how far it moves if one record is left out, or replaced by another.
    relation : {"zero_out", "replace_one"}
    max_rows : int, default=None
        M; None for records, of which each is a unit by itself.

    Examples
    --------
    >>> unit_sensitivity({"zero_out": 1.0, "replace_one": 1.5}.get, "replace_one", 4)
    6.0
    """
    if max_rows is None:
        return sensitivity(relation)
    return max_rows * max(sensitivity(relation), sensitivity("zero_out"))


def equivalent_records(n_units: int, max_rows: int | None = None) -> int:
    """Return how many records move sums by as little, for their noise, as so many persons."""
    return max(1, n_units // (max_rows or 1))


def describe_n_rows(n_units: int, max_rows: int | None = None) -> str:
    """Say how many rows there are, of which no more is public."""
    if max_rows is None:
        return f"{n_units:,}"
    return f"{n_units * max_rows:,} at most, of {n_units:,} persons"


def unit_assumptions(assumptions: Iterable[str], max_rows: int | None = None) -> tuple[str, ...]:
    """Return what a certificate rests on; of one for persons, no more that they have one record."""
    if max_rows is None:
        return tuple(assumptions)
    of_persons = {ONE_RECORD: (_ONE_IDENTIFIER, _UNLIKE)}
    return tuple(a for assumed in assumptions for a in of_persons.get(assumed, (assumed,)))


def check_unit(assumptions: Iterable[str], max_rows: int | None = None) -> None:
    """Refuse assumptions that are those of the other unit."""
    others = _ONE_IDENTIFIER if max_rows is None else ONE_RECORD
    if others in assumptions:
        unit = "records" if max_rows is None else "persons"
        raise ValueError(f"a certificate for {unit} does not rest on it that {others}.")


def describe_unit(
    relation: str, max_rows: int | None = None, n_units: int | None = None
) -> list[str]:
    """List what a certificate says of units, line by line."""
    number = "" if n_units is None else f", {n_units:,},"
    if max_rows is None:
        return [
            "Unit: record, which is one row with its label.",
            f"Neighbours ({relation}): {_RECORD[relation]}; the number of records{number} is "
            "public.",
        ]
    return [
        f"Unit: person, with all their rows (at most {max_rows} of them are used).",
        f"Neighbours ({relation}): {_PERSON[relation]}; the number of persons{number} is public, "
        "and that of rows is not.",
    ]
