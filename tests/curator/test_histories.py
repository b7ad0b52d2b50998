"""Histories at the trust boundary: which rows count, in which order, and whose they are."""

import copy
import pickle
import warnings
from datetime import datetime

import numpy as np
import pandas as pd
import pytest

from skdpgen.histories.history_format import HistoryFormat

PERSONS = pd.DataFrame({"id": [7, 8, 9, 10], "sex": list("fmfm")})
ROWS = pd.DataFrame(
    {
        "id": [8, 7, 8, 7, 99, 7, 8, 7],
        "cost": [1, 2, 3, 4, 5, 6, 7, 8],
        "day": [5.0, 2.0, 1.0, 9.0, 1.0, 2.0, np.nan, 4.0],
    }
)


def open_tables(persons, rows, order="day", max_rows=3, schemas=None):
    return HistoryFormat.open({"a": persons, "b": rows}, schemas, "id", order, max_rows)


def read(persons, rows, order="day", max_rows=3):
    """The cells of all persons, as a curator gets them."""
    dataset = open_tables(persons, rows, order, max_rows)[1]
    return dataset.release_ownership()[0][:]


def list_histories(cells):
    return [history.tolist() for history in cells[:, -1]]


@pytest.mark.catches("histories.records:_read_tables", "known.get(name, -1)", "known.get(name, 0)")
@pytest.mark.catches(
    "histories.records:_find_gaps",
    "(rank > 0) & (form == np.roll(form, 1))",
    "form == np.roll(form, 1)",
)
def test_rows_are_those_of_the_person_in_order():
    """Equal orders keep that of the table, and a row without one comes last."""
    cells = read(PERSONS, ROWS, max_rows=4)
    assert cells[:, 0].tolist() == list("fmfm")
    assert list_histories(cells) == [
        [[2.0, 2, None], [2.0, 6, 0.0], [4.0, 8, 2.0], [9.0, 4, 5.0]],
        [[1.0, 3, None], [5.0, 1, 4.0], [pytest.approx(np.nan, nan_ok=True), 7, None]],
        [],
        [],
    ]


@pytest.mark.catches(
    "histories.records:_find_first", "is_first = rank < limit", "is_first = rank >= 0"
)
def test_one_row_more_than_count_is_given_and_no_others():
    rows = pd.DataFrame({"id": [7] * 50 + [8], "cost": range(51)})
    cells = read(PERSONS, rows, None, max_rows=3)
    assert list_histories(cells) == [[[0], [1], [2], [3]], [[50]], [], []]
    # The one row of inference is among those that count.
    assert cells[0, 1] in (0, 1, 2)
    assert cells[1:, 1].tolist() == [50, None, None]


def test_the_one_row_is_of_any_place():
    n = 300
    persons = pd.DataFrame({"id": range(n), "sex": "f"})
    rows = pd.DataFrame({"id": np.repeat(np.arange(n), 3), "cost": np.tile([0, 1, 2], n)})
    counts = np.bincount(read(persons, rows, None)[:, 1].astype(int), minlength=3)
    assert (counts > 70).all()


def test_orders_are_read_each_on_its_own():
    """One text among numbers, and texts of dates, change nothing for others."""
    dates = pd.DataFrame(
        {
            "id": [7, 7, 8, 8, 7],
            "cost": range(5),
            "day": ["2020-01-03", "2020-01-01", "x", "2020-02-01", "12"],
        }
    )
    assert list_histories(read(PERSONS, dates))[:2] == [
        [["12", 4, None], ["2020-01-01", 1, None], ["2020-01-03", 0, 2.0]],
        [["2020-02-01", 3, None], ["x", 2, None]],
    ]
    parsed = dates.assign(day=pd.to_datetime(dates["day"], errors="coerce"))
    gaps = [[row[2] for row in rows] for rows in list_histories(read(PERSONS, parsed))]
    assert gaps[:2] == [[None, 2.0, None], [None, None]]


@pytest.mark.catches(
    "histories.records:_find_gaps", 'np.errstate(all="ignore")', 'np.errstate(invalid="ignore")'
)
@pytest.mark.parametrize("order", [1.7e308, np.inf, np.nan, "1.7e308", datetime(9999, 12, 31)])
def test_no_order_makes_numpy_warn(order):
    """A warning would tell that such a cell is there."""
    rows = ROWS.assign(day=pd.Series([order, -1.7e308, -np.inf, *[order] * 5], dtype=object))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read(PERSONS, rows)
    assert not caught


@pytest.mark.catches(
    "histories.records:HistoryCells._joined",
    "hashes % used",
    "np.arange(len(used)).astype(np.uint64) % used",
    param="orphans",
)
@pytest.mark.parametrize("changed", ["removed", "others", "orphans"])
def test_terms_of_a_person_follow_from_that_person_alone(changed):
    rng = np.random.default_rng(0)
    persons = pd.DataFrame({"id": range(40), "sex": rng.choice(["f", "m"], 40)})
    rows = pd.DataFrame(
        {"id": rng.integers(0, 40, 200), "cost": rng.random(200), "day": rng.random(200)}
    )
    before = read(persons, rows)
    is_other = rows["id"] != 3
    if changed == "removed":
        rows = rows[is_other]
    elif changed == "others":
        rows = pd.concat([rows, pd.DataFrame({"id": [3] * 9, "cost": 1e300, "day": -1e300})])
    else:
        persons = persons[persons["id"] != 3]
        before = before[np.arange(40) != 3]
    after = read(persons, rows)
    for i, (first, second) in enumerate(zip(before, after, strict=True)):
        is_same = [str(cell) for cell in first] == [str(cell) for cell in second]
        assert is_same == (changed == "orphans" or i != 3)


@pytest.mark.catches(
    "histories.records:_read_tables",
    "np.array([*(known.get(name, -1) for name in members.names), -1])",
    "np.array([*(known.get(name, -1) for name in members.names), 0])",
)
def test_identifiers_have_one_form_and_the_first_row_of_a_person_counts():
    persons = pd.DataFrame({"id": ["007", "7", None, "b"], "sex": ["f", "m", "m", "f"]})
    rows = pd.DataFrame(
        {"id": pd.Series([7.0, np.nan, 7, "b"], dtype=object), "cost": [1, 2, 3, 4]}
    )
    cells = read(persons, rows, None)
    assert cells[:, 0].tolist() == ["f", "f"]
    assert list_histories(cells) == [[[1], [3]], [[4]]]


@pytest.mark.catches(
    "histories.records:HistoryCells.__getstate__",
    'raise TypeError("Private records cannot be pickled or copied.")',
    "return vars(self)",
)
def test_positions_and_slices_are_the_same():
    cells = open_tables(PERSONS, ROWS)[1].release_ownership()[0]
    whole = cells[:]
    for rows in (slice(1, 3), np.array([3, 0]), slice(2, 4)):
        assert [list(map(str, row)) for row in cells[rows]] == [
            list(map(str, row)) for row in whole[rows]
        ]
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            copied(cells)
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        pickle.dumps(open_tables(PERSONS, ROWS)[1])
