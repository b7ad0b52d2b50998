"""Whom a guarantee is for: what is said of records is not said of persons."""

import pytest

from skdpgen.accounting.units import (
    ONE_RECORD,
    check_unit,
    describe_n_rows,
    describe_unit,
    equivalent_records,
    unit_assumptions,
    unit_sensitivity,
)


@pytest.mark.catches(
    "accounting.units:unit_assumptions", "(_ONE_IDENTIFIER, _UNLIKE)", "(_ONE_IDENTIFIER,)"
)
def test_assumptions_of_a_certificate_for_persons():
    given = ("bounds are public", ONE_RECORD, "every record is valid")
    assert unit_assumptions(given) == given
    of_persons = unit_assumptions(given, 3)
    assert of_persons == (
        "bounds are public",
        "one person has one identifier",
        "identifiers of two persons do not read alike, as 7, 7.0, '7' and '007' do",
        "every record is valid",
    )
    check_unit(given)
    check_unit(of_persons, 3)
    for assumptions, max_rows in ((given, 3), (of_persons, None)):
        with pytest.raises(ValueError, match="must not assume that one person has one"):
            check_unit(assumptions, max_rows)


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize("max_rows", [None, 1, 4])
def test_description_of_a_unit(relation, max_rows):
    said = " ".join(describe_unit(relation, max_rows, 1234))
    assert "1,234" in said
    assert relation in said
    assert ("all their rows" in said) == ("that of rows is not" in said) == (max_rows is not None)
    assert (f"at most {max_rows} of them" in said) == (max_rows is not None)
    assert ("any other" in said) == (relation == "replace_one")
    assert "1,234" not in " ".join(describe_unit(relation, max_rows))


@pytest.mark.parametrize("alone", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("apart", [0.0, 0.5, 1.0, 2.0])
def test_a_person_moves_a_sum_by_that_of_all_of_their_rows(apart, alone):
    """Each row is left out, or replaced by one of another person or by none."""
    sensitivity = {"zero_out": alone, "replace_one": apart}.get
    for relation, change in (("zero_out", alone), ("replace_one", max(apart, alone))):
        assert unit_sensitivity(sensitivity, relation) == sensitivity(relation)
        assert [unit_sensitivity(sensitivity, relation, m) for m in (1, 2, 7)] == [
            m * change for m in (1, 2, 7)
        ]


def test_numbers_of_rows_follow_from_persons():
    assert [equivalent_records(10, m) for m in (None, 1, 3, 100)] == [10, 10, 3, 1]
    assert describe_n_rows(1200) == "1,200"
    assert describe_n_rows(1200, 3) == "3,600 at most, of 1,200 persons"
