# SPDX-License-Identifier: BSD-3-Clause
"""Privacy units: a record, or a person with all their rows."""

from collections.abc import Callable, Iterable

# Assumption of a certificate for records, and the ones that replace it for persons.
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
    """Return the sensitivity of a sum over records under the privacy unit.

    At most M rows of a person enter a sum. If they are left out, the sum changes by at most M times
    the change of one record. If they are replaced by those of another person, who may have more or
    fewer rows, each row is replaced by another one, or by none, or is added.

    `sensitivity` is the change of the sum as a function of the relation, if one record is left out
    (``"zero_out"``), or replaced by another (``"replace_one"``); `max_rows` is M, or None for
    records.

    Examples
    --------
    >>> unit_sensitivity({"zero_out": 1.0, "replace_one": 1.5}.get, "replace_one", 4)
    6.0
    """
    if max_rows is None:
        return sensitivity(relation)
    return max_rows * max(sensitivity(relation), sensitivity("zero_out"))


def equivalent_records(n_units: int, max_rows: int | None = None) -> int:
    """Return the number of records whose sums have the signal-to-noise ratio of these persons'."""
    return max(1, n_units // (max_rows or 1))


def describe_n_rows(n_units: int, max_rows: int | None = None) -> str:
    """Return the public number of rows as text, an upper bound for persons."""
    if max_rows is None:
        return f"{n_units:,}"
    at_most = f"{n_units * max_rows:,} at most, of " if max_rows > 1 else ""
    return f"{at_most}{n_units:,} persons"


def unit_assumptions(assumptions: Iterable[str], max_rows: int | None = None) -> tuple[str, ...]:
    """Return the assumptions of a certificate for its unit.

    For persons, the assumption that each has one record is replaced by those on identifiers.
    """
    if max_rows is None:
        # Two identifiers of one person would split their rows, and double what they reveal.
        return tuple(assumptions)
    replaced = {ONE_RECORD: (_ONE_IDENTIFIER, _UNLIKE)}
    return tuple(a for assumed in assumptions for a in replaced.get(assumed, (assumed,)))


def check_unit(assumptions: Iterable[str], max_rows: int | None = None) -> None:
    """Raise ValueError if an assumption belongs to the other unit."""
    others = _ONE_IDENTIFIER if max_rows is None else ONE_RECORD
    if others in assumptions:
        unit = "records" if max_rows is None else "persons"
        raise ValueError(f"a certificate for {unit} must not assume that {others}.")


def describe_unit(
    relation: str, max_rows: int | None = None, n_units: int | None = None
) -> list[str]:
    """Return the lines of the printed certificate on its unit and neighbouring relation."""
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
