"""Functions of chunks: readings that differ, persons across them, and errors that quote rows."""

import io
import traceback
import warnings
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from skdpgen import Boolean, DPSWFlowSampler, Identifier, Number, PrivacyBudget, Schema
from skdpgen.curator.curator import intercept_releases
from skdpgen.curator.persons import Persons, RowLimit
from skdpgen.exceptions import FitQualityWarning, SpentError, TableError
from skdpgen.privacy import Curator, NoiseSource, TableFile, gaussian_plan
from skdpgen.testing.common import assert_not_quoted

SECRET = "Smith-271828"
SCHEMA = Schema({"age": Number(0, 120, n_knots=9), "ill": Boolean()})
KEY = bytes(32)
N_ROWS = 100


def make_visits():
    """Return 200 persons of one row each, and one of a hundred."""
    rng = np.random.RandomState(0)
    return pd.DataFrame(
        {
            "patient": ["me"] * N_ROWS + [f"p{i}" for i in range(200)],
            "age": np.r_[np.full(N_ROWS, 90.0), rng.randint(18, 60, 200)],
            "ill": [True] * N_ROWS + [False] * 200,
        }
    )


def fit(read, *, epsilon=2.0, max_rows=1, persons="patient"):
    """Fit to a function of the number of the reading."""
    calls = []

    def chunks():
        calls.append(1)
        return iter(read(len(calls)))

    sampler = DPSWFlowSampler(epsilon, 1e-5, schema=SCHEMA, n_steps=1)
    return sampler.set_params(max_rows_per_person=max_rows).fit(chunks, persons=persons)


def measure(fit):
    """Return the exact numbers of each release of a fit, in units of its sensitivity."""
    found = {}

    def watch(curator, mechanism, release):
        of = type(mechanism)
        run = of.query

        def measuring(self, source, event, relation, noise):
            measured = run(self, source, event, relation, noise)
            unit = np.asarray(measured.std) * measured.scale / event.noise_multiplier
            found[self.name] = (measured.exact / unit).ravel()
            return measured

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(of, "query", measuring)
            return release(mechanism)

    with intercept_releases(watch):
        fit()
    return found


ORDERS = {
    "same": lambda table, reading: [table[:150], table[150:]],
    "shuffled": lambda table, reading: [table.sample(frac=1, random_state=reading)],
    "turned": lambda table, reading: [table if reading < 4 else table[::-1]],
    "in other chunks": lambda table, reading: [table[: 30 * reading], table[30 * reading :]],
    "repeated": lambda table, reading: [table] * min(reading, 4),
    "more of one": lambda table, reading: [table, table[: 40 * (reading > 3)]],
    "fewer": lambda table, reading: [table[: 300 - 5 * (reading > 3)]],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("order", ORDERS)
def test_a_person_of_many_rows_moves_sums_within_the_claim(order, max_rows):
    """However the source gives its rows in later readings."""
    visits, found = make_visits(), []
    absent = visits.assign(ill=visits["ill"].where(visits["patient"] != "me", None))
    for table in (visits, absent):
        read = lambda reading, table=table: ORDERS[order](table, reading)  # noqa: E731
        found.append(measure(lambda read=read: fit(read, max_rows=max_rows)))
    assert found[0].keys() == found[1].keys()
    moved = {name: np.linalg.norm(found[0][name] - found[1][name]) for name in found[0]}
    assert max(moved.values()) <= 1 + 1e-6
    assert moved["two-way tables"] > 0.9, "The person of many rows was not seen."


@pytest.mark.catches(
    "tables.format:_style_of",
    """
    if is_stated:
        return None
    """,
    """
    if is_stated or type(column).__name__ == "Identifier":
        return None
    """,
)
def test_a_cell_of_an_identifier_chooses_no_rows_of_others():
    """Beside a text, readers leave the identifiers of all other rows as they are written."""
    rng, found = np.random.RandomState(0), []
    visits = pd.DataFrame(
        {
            "patient": [f"p{i % 50}" for i in range(N_ROWS)],
            "visit": [f"{i:05}" for i in range(N_ROWS)],
            "age": rng.randint(18, 90, N_ROWS),
            "ill": rng.randint(2, size=N_ROWS).astype(bool),
        }
    )
    sampler = DPSWFlowSampler(schema=SCHEMA.replace({"visit": Identifier()}), n_steps=1)
    for cell in ("00007", "?"):
        visits.loc[7, "visit"] = cell
        text = visits.to_csv(index=False)
        read = lambda text=text: pd.read_csv(io.StringIO(text), chunksize=50)  # noqa: E731
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(NoiseSource, "key", lambda self: KEY)
            found.append(measure(lambda read=read: sampler.fit(read, persons="patient")))
    moved = [np.linalg.norm(found[0][name] - found[1][name]) for name in found[0]]
    # Another of the patient's own two rows may count.
    assert max(moved) <= 2**0.5 + 1e-6


@pytest.mark.catches("curator.batches:cut_blocks", "n_held < size", "False")
@pytest.mark.parametrize("size", [1, 10, 300])
@pytest.mark.parametrize("has_persons", [False, True])
def test_a_source_may_write_each_chunk_where_the_last_one_was(has_persons, size):
    rng = np.random.RandomState(0)
    X, y = rng.uniform(-0.1, 0.1, (600, 2)), rng.randint(2, size=600)
    whose = np.arange(600)

    def chunks():
        buffers = np.empty((size, 2)), np.empty(size, dtype=int), np.empty(size, dtype=int)
        for start in range(0, len(X), size):
            for buffer, values in zip(buffers, (X, y, whose), strict=True):
                buffer[:] = values[start : start + size]
            yield buffers[: 3 if has_persons else 2]

    max_rows = 1 if has_persons else None
    plan = replace(gaussian_plan({"sum": 1.0}, 1.0, 1e-5), max_rows=max_rows)
    persons = Persons(lambda: (chunk[2] for chunk in chunks())) if has_persons else None
    curator = Curator(chunks, plan=plan, persons=persons, noise=NoiseSource(0), classes=[0, 1])
    blocks = list(curator._source.blocks("sum"))
    np.testing.assert_array_equal(np.concatenate([rows for rows, _ in blocks]), X)
    np.testing.assert_array_equal(np.concatenate([m.argmax(axis=1) for _, m in blocks]), y)


@pytest.mark.catches(
    "curator.persons:Reading.choose", "counts[counts] = _take(self._n_left, codes[counts])", "pass"
)
@pytest.mark.catches(
    "curator.persons:_take",
    "(positions >= 0) & (n_before < n_left[positions])",
    "n_before < n_left[positions]",
)
@pytest.mark.catches(
    "curator.persons:_take", "np.subtract.at(n_left, positions[is_taken], 1)", "pass"
)
@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc-"), st.integers(0, 3)), min_size=1, max_size=40),
    st.lists(st.tuples(st.sampled_from("abcd-"), st.integers(0, 4)), max_size=60),
    st.integers(1, 3),
)
def test_later_readings_count_no_more_of_anybody(first, later, max_rows):
    def cut(rows):
        X = np.array([[cell] for _, cell in rows], dtype=object).reshape(-1, 1)
        return X, [None if name == "-" else name for name, _ in rows]

    X, whose = cut(first)
    assume(any(whose))
    persons = Persons(whose)
    limit = RowLimit(persons, max_rows, KEY, [(X, None, persons.codes)])
    held = []
    for rows in (first, first[::-1], later):
        X, whose = cut(rows)
        others, reading = set(), limit.start()
        codes = persons.find_codes(whose, others)
        half = len(X) // 2
        chosen = np.r_[
            reading.choose(X[:half], None, codes[:half]),
            reading.choose(X[half:], None, codes[half:]),
        ]
        counted = Counter(np.array(whose, dtype=object)[chosen].tolist())
        assert all(counted[name] <= max_rows for name in counted)
        assert None not in counted
        assert not others & set(counted)
        if rows is not later:
            # In another order just the same rows count.
            assert chosen.sum() == limit.n_rows
            held.append(Counter(zip(np.array(whose)[chosen], X[chosen, 0], strict=True)))
    assert held[0] == held[1]


def test_other_persons_in_a_later_reading_are_told_by_their_number():
    visits = make_visits()
    new = visits.assign(patient=visits["patient"].where(visits["patient"] == "me", "q7"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(lambda reading: [visits if reading < 4 else new])
    told = [str(warning.message) for warning in caught]
    assert any("gave 201 persons at first and 2 in a later" in message for message in told)


@pytest.mark.parametrize("order", ["same", "shuffled", "turned", "more of one", "repeated"])
def test_nothing_is_told_of_how_many_rows_persons_have(order):
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitQualityWarning)
        warnings.filterwarnings("ignore", "DPSWFlowSampler", FitQualityWarning)
        warnings.filterwarnings("ignore", "Columns 'ill' are constant", FitQualityWarning)
        fit(lambda reading: ORDERS[order](make_visits(), reading))


def test_records_that_change_their_number_stop_the_fit():
    table = make_visits().drop(columns="patient")
    with pytest.raises((ValueError, SpentError), match="another number of rows"):
        fit(lambda reading: [table[: 300 - (reading > 4)]], persons=None)


class Unlike:
    """An object that equals nothing."""

    def __eq__(self, other):
        raise ValueError(SECRET)

    __hash__ = None


@pytest.mark.parametrize(
    "cell",
    [
        *([SECRET], {SECRET: 1}, Unlike(), object(), np.nan, "NA", pd.NaT),
        *(1e300, float("inf"), 2.0**53, -(2.0**53), 10**5000),
    ],
    ids=lambda cell: type(cell).__name__,
)
def test_invalid_identifiers_concern_their_row_alone(cell):
    visits = make_visits()
    whose = visits.pop("patient").tolist()
    found = []
    for first in (None, cell):
        budget = PrivacyBudget(9.0, 1e-4)
        with budget:
            sampler = DPSWFlowSampler(1.0, 1e-5, schema=SCHEMA, n_steps=1)
            found.append(sampler.fit(visits, persons=[*whose[:-1], first]).privacy_.n_records)
        assert budget.spent > 0
    assert found == [200, 200]


@pytest.mark.catches(
    "data.labels:check_order", "difference is not None and not len(difference)", "False"
)
@pytest.mark.parametrize("has_same_labels", [True, False])
def test_persons_in_another_order_of_the_index_are_refused(has_same_labels):
    visits = make_visits()
    whose = visits.pop("patient")[::-1]
    if not has_same_labels:
        # By position, as everywhere in scikit-learn.
        whose = whose.reset_index(drop=True).set_axis(range(1000, 1300))
    refused = pytest.raises(ValueError, match=r"in another order.*persons\.loc\[X\.index\]")
    with refused if has_same_labels else nullcontext():
        DPSWFlowSampler(1.0, 1e-5, schema=SCHEMA, n_steps=1).fit(visits, persons=whose)


@pytest.mark.catches(
    "curator.dataset:Dataset.__init__", 'check_order(X, y, "y")', "pass", param="True-private-True"
)
@pytest.mark.parametrize("has_same_labels", [True, False])
@pytest.mark.parametrize("schema", ["private", None])
@pytest.mark.parametrize("is_frame", [True, False])
def test_labels_in_another_order_of_the_index_are_refused(has_same_labels, schema, is_frame):
    visits = make_visits()[["age"]]
    ward = pd.Series(np.arange(300) % 2, visits.index, name="ward")[::-1]
    y = ward if has_same_labels else ward.set_axis(range(1000, 1300))
    model = DPSWFlowSampler(1.0, 1e-3, schema=schema, bounds=None if schema else (0, 100))
    refused = pytest.raises(
        ValueError, match=r"^y has the index.*another order.*y\.loc\[X\.index\]"
    )
    with refused if has_same_labels else nullcontext():
        model.set_params(n_steps=1).fit(visits, y.to_frame() if is_frame else y)


def test_persons_in_another_order_are_refused_where_a_label_is_missing():
    index = [*map(float, range(299)), np.nan]
    visits = make_visits().set_axis(index)
    whose = visits.pop("patient")
    with pytest.raises(ValueError, match="in another order"):
        DPSWFlowSampler(1.0, 1e-5, schema=SCHEMA, n_steps=1).fit(visits, persons=whose[::-1])


OTHER_CHUNKS = {
    "lacking": (lambda t: t.drop(columns="age"), r"lacks \['age'\]"),
    "more": (lambda t: t.assign(ward="A"), r"has \['ward'\] more"),
    "renamed": (
        lambda t: t.rename(columns={"age": "Age"}),
        r"lacks \['age'\] and has \['Age'\] more",
    ),
    "repeated": (lambda t: pd.concat([t, t[["age"]]], axis=1), r"has \['age'\] more"),
    "no table": (lambda t: 5, "Chunks of X must be tables; got int"),
}


@pytest.mark.parametrize("persons", [None, "patient"])
@pytest.mark.parametrize("kind", OTHER_CHUNKS)
def test_other_columns_of_a_later_chunk_are_refused_for_nothing(kind, persons):
    change, match = OTHER_CHUNKS[kind]
    visits = make_visits() if persons else make_visits().drop(columns="patient")
    chunks = [visits[:100], visits[100:200], change(visits[200:])]
    with PrivacyBudget(9.0, 1e-4) as budget, pytest.raises(TableError, match=match):
        fit(lambda _: chunks, persons=persons)
    assert budget.spent == 0


def test_columns_of_chunks_may_be_in_any_order():
    visits = make_visits()
    fit(lambda _: [visits[:100], visits[100:].iloc[:, ::-1]])


class Panic(BaseException):
    """As panics of Rust libraries, which are no `Exception`."""


@pytest.mark.catches(
    "data.record_functions:iter_quietly", "BaseException", "Exception", param="None-later"
)
@pytest.mark.catches(
    "data.record_functions:describe_failure",
    "os.strerror(error.errno)",
    "error.strerror",
    param="patient-called",
)
@pytest.mark.catches("data.record_functions:describe_failure", "type(error).__name__", "str(error)")
@pytest.mark.parametrize("when", ["called", "first", "later", "warned"])
@pytest.mark.parametrize("persons", [None, "patient"])
def test_errors_of_a_function_of_chunks_are_withheld(when, persons):
    table = make_visits()
    table = table if persons else table.drop(columns="patient")

    def chunks():
        if when == "first":
            raise ValueError(SECRET)
        yield table[:100]
        if when == "warned":
            warnings.warn(SECRET, stacklevel=1)
        if when == "later":
            raise Panic(SECRET)
        yield table[100:]

    def called():
        raise OSError(2, SECRET, "visits.csv")

    sampler = DPSWFlowSampler(1.0, 1e-5, schema=SCHEMA, n_steps=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if when == "warned":
            sampler.fit(chunks, persons=persons)
        else:
            with pytest.raises((TableError, Panic)) as raised:
                sampler.fit(called if when == "called" else chunks, persons=persons)
            assert type(raised.value) is TableError
            assert "withheld, as it may quote rows" in str(raised.value)
            assert_not_quoted(raised.value, SECRET)
            shown = "".join(traceback.format_exception(raised.value))
            assert shown.count(SECRET) == 0
    assert not any(SECRET in str(warning.message) for warning in caught)


NO_CHUNKS = {
    "table": (lambda: make_visits(), "must return an iterator of tables.* returned DataFrame"),
    "columns": (lambda: {SECRET: [1.0]}, "it returned dict"),
    "text": (lambda: SECRET, "it returned str"),
    "nothing": (lambda: None, "it returned NoneType"),
    "arrays": (lambda: iter([np.zeros((9, 2))]), "Chunks of X must be tables; got ndarray"),
}


@pytest.mark.parametrize("name", NO_CHUNKS)
@pytest.mark.parametrize("schema", ["auto", "private"])
def test_functions_that_give_no_chunks_are_refused_for_nothing(name, schema):
    function, match = NO_CHUNKS[name]
    with PrivacyBudget(1.0, 1e-5) as budget, pytest.raises(ValueError, match=match) as raised:
        DPSWFlowSampler(1.0, 1e-5, schema=schema, n_steps=1).fit(function)
    assert budget.spent == 0
    assert_not_quoted(raised.value, SECRET)


def test_a_file_that_is_not_there_is_named():
    sampler = DPSWFlowSampler(1.0, 1e-5, schema=SCHEMA, n_steps=1)
    with pytest.raises(TableError, match=r"FileNotFoundError: No such file.*, none\.csv"):
        sampler.fit(lambda: pd.read_csv("none.csv", chunksize=9))
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        sampler.fit(TableFile("none.csv"))


def test_a_function_that_fails_after_a_release_says_what_was_spent():
    def read(reading):
        if reading > 3:
            raise ValueError(SECRET)
        return [make_visits().drop(columns="patient")]

    with pytest.raises((TableError, SpentError)) as raised:
        fit(read, persons=None)
    assert_not_quoted(raised.value, SECRET)


@pytest.mark.catches(
    "curator.dataset:Dataset.list_assumptions", "not self.has_public_dtypes", "False"
)
@pytest.mark.parametrize("persons", [None, "patient"])
def test_the_certificate_assumes_what_cannot_be_seen_of_a_function(persons, tmp_path):
    table = make_visits() if persons else make_visits().drop(columns="patient")
    table.to_csv(tmp_path / "visits.csv", index=False)
    sources = [(lambda: iter([table]), True), (table, False)]
    if persons is None:
        sources += [(TableFile(tmp_path / "visits.csv"), False)]
    for X, is_assumed in sources:
        sampler = DPSWFlowSampler(1.0, 1e-5, schema=SCHEMA, n_steps=1).fit(X, persons=persons)
        told = [text for text in sampler.privacy_.assumptions if "the function of chunks" in text]
        assert len(told) == is_assumed


def test_chunks_without_the_column_of_persons_are_refused():
    visits = make_visits()
    for parts in ([visits.drop(columns="patient")], [visits, visits.drop(columns="patient")]):
        with pytest.raises(TableError, match="no column 'patient' of persons"):
            fit(lambda reading, parts=parts: parts)


def test_files_are_closed_that_are_not_read_to_the_end(tmp_path):
    visits, opened = make_visits(), []
    visits.to_csv(tmp_path / "visits.csv", index=False)

    def chunks():
        opened.append(pd.read_csv(tmp_path / "visits.csv", chunksize=100))
        return opened[-1]

    DPSWFlowSampler(2.0, 1e-5, schema=SCHEMA, n_steps=1).fit(chunks, persons="patient")
    assert len(opened) > 2
    assert all(reader.handles.handle.closed for reader in opened)
