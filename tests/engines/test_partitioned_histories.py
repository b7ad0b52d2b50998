"""Persons with histories in partitions and in chunks: sums are those of two tables in memory."""

import contextlib

import numpy as np
import pandas as pd
import pytest

from skdpgen import Category, Number, Schema
from skdpgen.generators import DPHistorySampler
from skdpgen.histories import records as histories
from skdpgen.histories.history_format import HistoryFormat
from skdpgen.privacy import FitQualityWarning, PrivacyBudget, TableFile

from .conftest import HISTORIES, Parts, check_same_histories, cut, make_histories

pytestmark = pytest.mark.filterwarnings("ignore")

STOPS = [([0, 1, 30], [0, 1, 1, 200]), (range(0, 60, 7), range(0, 240, 35))]


@pytest.mark.parametrize("schemas", [HISTORIES, None, {"visits": HISTORIES["visits"]}])
def test_partitions_give_what_the_tables_give(schemas):
    tables = make_histories()
    if schemas and len(schemas) == 1:  # keys alone are a table of persons
        tables["patients"] = tables["patients"][["patient"]]
    parts = (
        {name: cut(table, *at) for (name, table), at in zip(tables.items(), stops, strict=True)}
        for stops in STOPS
    )
    check_same_histories(tables, "parts", *parts, schemas=schemas)


def test_chunks_and_files_give_what_the_tables_give(monkeypatch, tmp_path):
    monkeypatch.setattr(histories, "_SLICE", 20)
    tables, chunks, files = make_histories(), {}, {}
    for name, table in tables.items():
        chunks[name] = lambda t=table: (t[i : i + 9] for i in range(0, len(t), 9))
        table.to_parquet(tmp_path / f"{name}.parquet")
        files[name] = TableFile(tmp_path / f"{name}.parquet")
    sampler = DPHistorySampler(
        9.0, 1e-5, schemas=HISTORIES, max_rows_per_person=3, n_steps=3, random_state=0
    )
    # One of them may be in memory.
    digests = {
        sampler.fit(given, persons="patient", order=order).privacy_.digest
        for order in ("day", None)
        for given in (tables, chunks, files, tables | {"visits": chunks["visits"]})
    }
    assert len(digests) == 2


@pytest.mark.catches(
    "curator.dataset:Dataset._hold",
    "self.n_records == 0 and not self._may_be_empty",
    "self.n_records == 0",
    param="memory-none",
)
@pytest.mark.parametrize("left", ["one", "nobody's", "none", "another's"])
@pytest.mark.parametrize("form", ["memory", "chunks", "parts"])
def test_whether_anybody_has_rows_is_private(left, form):
    """Without the rows of one person, a fit goes on as with them, and costs the same."""
    tables = make_histories()
    visits = tables["visits"].iloc[:1]
    if left in ("nobody's", "another's"):
        identifier = None if left == "nobody's" else "zzz"
        visits = visits.assign(patient=pd.Series([identifier], visits.index, dtype=object))
    tables["visits"] = visits.iloc[:0] if left == "none" else visits
    if form == "chunks":
        tables = {name: lambda t=table: iter([t]) for name, table in tables.items()}
    if form == "parts":
        tables = {name: cut(table) for name, table in tables.items()}
    sampler = DPHistorySampler(
        8.9, 1e-5, schemas=HISTORIES, max_rows_per_person=3, n_steps=1, n_particles=50
    )
    with PrivacyBudget(9.0, 1e-5) as budget, contextlib.suppress(ValueError):
        sampler.fit(tables, persons="patient", order="day")
    assert budget.spent > 7
    assert sampler.privacy_.n_records == 60


@pytest.mark.catches(
    "curator.dataset:Dataset._hold", "self.n_records == 0 and not self._may_be_empty", "False"
)
def test_tables_without_persons_are_refused():
    tables = make_histories()
    for name in ("patients", "visits"):
        nobody = tables[name].assign(patient=None)
        is_refused = name == "patients"
        for form in (nobody, nobody[:0], lambda t=nobody: iter([t]), cut(nobody)):
            others = {k: cut(t) if isinstance(form, Parts) else t for k, t in tables.items()}
            with contextlib.ExitStack() as stack:
                if is_refused:
                    stack.enter_context(pytest.raises(ValueError, match=r"no identifier|no rows"))
                HistoryFormat.open(others | {name: form}, HISTORIES, "patient", "day", 3)


# --- which rows count ----------------------------------------------------------------------------

PERSONS = pd.DataFrame({"id": [7, 8, 9], "sex": list("fmx")})
SCHEMAS = {
    "a": Schema({"sex": Category(["f", "m", "x"])}),
    "b": Schema({"code": Category(["1", "2", "3"]), "day": Number(0, 9)}),
}


def open_cells(tables):
    """Return the cells of all persons, of whom two rows count."""
    return HistoryFormat.open(tables, SCHEMAS, "id", "day", 2)[1].release_ownership()[0]


def list_terms(persons, rows, max_rows=2):
    """Return the canonical cells of all persons in partitions, sorted."""
    tables = {"a": persons, "b": rows}
    format, dataset = HistoryFormat.open(tables, SCHEMAS, "id", "day", max_rows)
    parts, reader = dataset.release_ownership()[0], dataset.reader

    def show(cells):
        cells = reader(cells[:])
        return [
            (format.encode_histories(cells)[i].tolist(), len(cells[i, -1]))
            for i in range(len(cells))
        ]

    # The sum of lists is a list of all.
    return sorted(parts.add_up(show))


@pytest.mark.catches(
    "histories.records:_sort_by_content",
    "np.lexsort([content, *keys[::-1]])",
    "np.lexsort(keys[::-1])",
)
def test_rows_of_one_order_do_not_depend_on_partitions():
    """They follow from the cells of the person."""
    rows = pd.DataFrame(
        {"id": [7, 8] * 9, "code": [1, 2, 3, 1, 2, 3] * 3, "day": [1.0] * 10 + [0.0] * 8}
    )
    twice = pd.concat([PERSONS, PERSONS.assign(sex=list("mxf"))])
    found = {
        str(list_terms(cut(mixed(twice, i), 1, 3), cut(mixed(rows, i), i, i + 5))) for i in range(8)
    }
    assert len(found) == 1


def mixed(table, seed):
    return table.sample(frac=1, random_state=seed)


@pytest.mark.catches(
    "histories.records:_sort_by_content",
    "hash_rows(reader(cells[is_equal.to_numpy()]))",
    "hash_rows(cells[is_equal.to_numpy()])",
    param="?",
)
@pytest.mark.parametrize("cell", ["?", "x9", "2020-01-01", None])
def test_one_cell_changes_nothing_for_others_of_its_partition(cell):
    """The dtype of a partition depends on all of its cells, and rows of one order on theirs."""
    rows = pd.DataFrame({"id": [7] * 6 + [9], "code": [1, 2, 3, 3, 2, 1, 2], "day": 1.0})
    terms = [
        # The first cell is that of the person.
        [term for term in list_terms(cut(PERSONS), cut(table)) if term[0][0] < 2]
        for table in (rows, rows.assign(code=[*rows["code"].astype(str)[:6], cell]))
    ]
    assert len(terms[0]) == 2
    assert terms[0] == terms[1]


@pytest.mark.catches(
    "histories.records:_find_first", "is_first = rank < limit", "is_first = rank >= 0"
)
def test_no_more_rows_of_a_person_count_however_many_partitions_hold_them():
    rows = pd.DataFrame({"id": [7] * 50 + [8], "code": 1, "day": np.arange(51) / 10})
    for stops in ([], range(0, 51, 4)):
        n_rows = [n for _, n in list_terms(cut(PERSONS, 1, 2), cut(mixed(rows, 0), *stops))]
        # One more than M shows that there are more.
        assert sorted(n_rows) == [0, 1, 3]


@pytest.mark.catches("histories.records:_hold_events", "max(len(kept[0]), _SLICE)", "np.inf")
def test_chunks_are_held_up_to_the_rows_that_count(monkeypatch):
    monkeypatch.setattr(histories, "_SLICE", 10)
    held = []
    find_first = histories._find_first

    def spy(keys, limit):
        held.append(len(keys[0]))
        return find_first(keys, limit)

    monkeypatch.setattr(histories, "_find_first", spy)
    rows = pd.DataFrame({"id": [7, 8] * 500, "code": 1, "day": np.arange(1000) % 10})
    given = {"a": PERSONS, "b": lambda: (rows[i : i + 5] for i in range(0, 1000, 5))}
    cells = open_cells(given)
    assert [len(history) for history in cells[:][:, -1]] == [3, 3, 0]
    assert max(held) <= 2 * 10 + 6


@pytest.mark.catches("histories.records:_hold_persons", "codes[first[codes] > 0] = -1", "pass")
def test_the_first_row_of_a_person_in_chunks_counts():
    rows = pd.DataFrame({"id": [7], "code": 1, "day": 1.0})
    given = {"a": lambda: iter([PERSONS, PERSONS.assign(sex="m")]), "b": rows}
    cells = open_cells(given)
    assert cells[:][:, 0].tolist() == ["f", "m", "x"]


@pytest.mark.catches(
    "histories.records:_hold_events",
    "codes = owners.find_codes(identifiers, set())",
    "codes = np.maximum(owners.find_codes(identifiers, set()), 0)",
)
def test_a_later_reading_cannot_add_persons_or_rows():
    persons = [PERSONS]
    rows = pd.DataFrame({"id": [7, 99, 9], "code": 1, "day": 1.0})
    given = {"a": lambda: iter(persons), "b": lambda: iter([rows])}
    cells = open_cells(given)
    persons[:] = [PERSONS.assign(id=[7, 99, 99])]
    with pytest.warns(FitQualityWarning, match="3 persons at first and 2") as caught:
        read = cells[:]
    assert len(caught) == 1
    # Nothing is known of the one who is gone, but rows in the other table.
    assert read[:, 0].tolist() == ["f", None, None]
    assert [len(history) for history in read[:, -1]] == [1, 0, 1]


# --- what is refused -----------------------------------------------------------------------------


class Closed(Parts):
    def _iter_partitions(self):
        raise AssertionError("A row was read.")

    def _add_up(self, function):
        raise AssertionError("A row was read.")


@pytest.mark.parametrize(
    ("change", "order", "match"),
    [
        (lambda table: table, "day", "Both tables must be of one engine.*'visits': none"),
        (lambda table: Closed([table]), None, "Rows of an engine have no order"),
    ],
)
def test_impossible_fits_are_refused_before_a_row_is_read(change, order, match):
    tables = make_histories()
    given = {"patients": Closed([tables["patients"]]), "visits": change(tables["visits"])}
    with pytest.raises(ValueError, match=match):
        DPHistorySampler(1.0).fit(given, persons="patient", order=order)
