"""Several rows of a person: how many count, how far they move sums, and what nobody learns."""

import datetime
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import pairwise, permutations

import numpy as np
import pandas as pd
import pytest
import torch
from dp_accounting import GaussianDpEvent
from scipy.stats import norm

from skdpgen.accounting.accountants import RELATIONS
from skdpgen.accounting.units import unit_sensitivity
from skdpgen.arrays.discovery import make_box
from skdpgen.curator.persons import Persons, RowLimit, hash_persons
from skdpgen.data.containers import as_objects
from skdpgen.mechanisms.base import SumMechanism
from skdpgen.mechanisms.codes import Refinement
from skdpgen.mechanisms.sums import RowCountMechanism, WeightSumMechanism
from skdpgen.privacy import (
    CategoryCountsMechanism,
    ClassCountsMechanism,
    CovarianceMechanism,
    Curator,
    ForwardAggregateMechanism,
    GaussianSumMechanism,
    MultiWayMechanism,
    NoiseSource,
    Plan,
    PlanError,
    PrivacyBudget,
    PullingFunction,
    RecordFunction,
    SliceSketchMechanism,
    TablesMechanism,
    ThresholdDpEvent,
    gaussian_plan,
)
from skdpgen.testing.common import assert_not_quoted
from skdpgen.transport import SliceBasis

KEY = bytes(32)
SECRET = "Smith-271828"
MULTIPLIER, DELTA = 2.0, 1e-3


class AlwaysOne(SumMechanism):
    """Counts: nothing moves if a record is replaced by another, and a record is still one less."""

    name = "always one"

    def sensitivity(self, relation):
        return {"zero_out": 1.0, "replace_one": 0.0}[relation]

    def _block_sum(self, rows, membership, scale):
        return membership.sum().long()[None] * round(scale)


def _same(rows):
    return rows


def _basis():
    directions = torch.tensor([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8]])
    return SliceBasis(directions, torch.ones(3), 3)


MECHANISMS = {
    "sum": lambda: GaussianSumMechanism(RecordFunction(_same), 0.7),
    "weights": lambda: WeightSumMechanism("weights"),
    "second moments": CovarianceMechanism,
    "slice sketch": lambda: SliceSketchMechanism(_basis()),
    "slice sketch of classes": lambda: SliceSketchMechanism(_basis(), 2),
    "class counts": ClassCountsMechanism,
    "two-way tables": lambda: TablesMechanism([2, 2]),
    "row count": RowCountMechanism,
    "always one": AlwaysOne,
}
# At opposite ends of what may come, in two classes.
ROWS = np.array([[1, 0], [-1, 0], [0, 1], [0.6, 0.8], [0, -1], [5, 5], [0, 0]], dtype=np.float64)


def open_curator(X, persons, *, y=None, relation="zero_out", max_rows=3, chunks=None, **options):
    plan = gaussian_plan({"sum": 1.0}, 1.0, 1e-5, relation=relation)
    classes = None if y is None else [0, 1]
    if chunks is not None:
        parts, cuts = (X, y, np.array([*persons, None], dtype=object)[:-1]), [0, *chunks, len(X)]
        cut = [tuple(p if p is None else p[a:b] for p in parts) for a, b in pairwise(cuts)]
        X, y, persons = lambda: iter(cut), None, Persons(lambda: iter([c[2] for c in cut]))
    return Curator(
        X,
        y,
        persons=persons,
        plan=Plan(plan.releases, 1.0, 1e-5, relation, max_rows=max_rows),
        noise=NoiseSource(0),
        classes=classes,
        **options,
    )


def choose_rows(persons, max_rows, key, X, y, cut):
    """Return which rows count, read in two blocks."""
    persons = Persons(persons)
    parts = [slice(cut), slice(cut, None)]
    blocks = [(X[part], None if y is None else y[part], persons.codes[part]) for part in parts]
    reading = RowLimit(persons, max_rows, key, blocks).start()
    return np.concatenate([reading.choose(*block) for block in blocks])


def choose(persons, max_rows, key=KEY, rows=None):
    """Return which rows count, of rows that are all different if they are not given."""
    n = len(persons() if callable(persons) else persons) if rows is None else 0
    rows = np.arange(n)[:, None] if rows is None else np.asarray(rows)
    cut = len(rows) // 3
    return choose_rows(persons, max_rows, key, rows, None, cut)


def measure(mechanism, curator, relation):
    # Over the sensitivity: if persons are replaced, a multiplier is relative to half of that.
    event = GaussianDpEvent(MULTIPLIER * {"zero_out": 1, "replace_one": 2}[relation])
    if isinstance(mechanism, TablesMechanism | MultiWayMechanism):
        curator.encode_cells_by(RecordFunction(lambda rows, y: rows))
    return mechanism.query(curator._source, event, relation, NoiseSource(0))


def in_noise(measured):
    """Return exact numbers in units of their noise; of those without noise of their own, none."""
    std = np.broadcast_to(measured.std * measured.scale, measured.exact.shape)
    return (measured.exact[std > 0] / std[std > 0]).ravel()


def with_person(rows, labels, place=4):
    """Return records of others, with those of one person in between, in several places."""
    others = np.tile([[0.3, -0.2], [-0.5, 0.1]], (5, 1))
    whose = ["a", "b", "c", "a", "b", "d", "e", "a", "e", None]
    X = np.r_[others[:place], rows[::2], others[place:], rows[1::2]]
    of_others = np.arange(len(others)) % 2
    y = np.r_[of_others[:place], labels[::2], of_others[place:], labels[1::2]]
    persons = [*whose[:place], *[SECRET] * len(rows[::2]), *whose[place:]]
    return X, y.astype(int), [*persons, *[SECRET] * len(rows[1::2])]


def list_persons(max_rows):
    """Rows of one person: equal ones, different ones, few, and none that count."""
    for row in ROWS:
        for n, label in [(1, 0), (max_rows + 5, 0), (max_rows + 5, 1)]:
            yield np.tile(row, (n, 1)), np.full(n, label)
    yield ROWS, np.arange(len(ROWS)) % 2
    yield ROWS[::-1], np.zeros(len(ROWS))
    yield np.full((max_rows + 2, 2), np.nan), np.zeros(max_rows + 2)


@pytest.mark.catches(
    "accounting.units:unit_sensitivity",
    'max_rows * max(sensitivity(relation), sensitivity("zero_out"))',
    'max(sensitivity(relation), sensitivity("zero_out"))',
    param="sum-zero_out-4",
)
@pytest.mark.catches(
    "accounting.units:unit_sensitivity",
    'max(sensitivity(relation), sensitivity("zero_out"))',
    "sensitivity(relation)",
    param="always one-replace_one-4",
)
@pytest.mark.catches(
    "curator.batches:RecordSource._limit_persons",
    "left_out if self._null is None else self._null | left_out",
    "self._null",
    param="class counts-zero_out-1",
)
@pytest.mark.parametrize(
    ("relation", "max_rows"),
    [
        ("zero_out", 1),
        ("replace_one", 4),
        pytest.param("zero_out", 4, marks=pytest.mark.slow),
        pytest.param("replace_one", 1, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_person_moves_sums_by_no_more_than_is_claimed(name, relation, max_rows):
    mechanism = MECHANISMS[name]()
    has_classes = getattr(mechanism, "n_classes", 1) > 1 or name == "class counts"
    moved = []
    for i, (rows, labels) in enumerate(list_persons(max_rows)):
        X, y, persons = with_person(rows, labels)
        options = {"relation": relation, "max_rows": max_rows, "y": y if has_classes else None}
        # Sums are the same however rows arrive.
        chunks = [[], None, [1, 5, 6]][i % 3]
        curator = open_curator(X, persons, chunks=chunks, **options)
        moved.append(in_noise(measure(mechanism, curator, relation)))
    absent = with_person(rows, labels)
    null = np.array([person == SECRET for person in absent[2]])
    options["y"] = absent[1] if has_classes else None
    without = open_curator(absent[0], absent[2], null=null, **options)
    without = in_noise(measure(mechanism, without, relation))
    pairs = [(some, without) for some in moved]
    if relation == "replace_one":
        pairs += [(a, b) for i, a in enumerate(moved) for b in moved[:i]]
    largest = max(np.linalg.norm(a - b) for a, b in pairs)
    # In units of the noise the sensitivity is 1 over the multiplier.
    assert largest <= 1 / MULTIPLIER
    assert largest >= 0.6 / MULTIPLIER


@pytest.mark.catches(
    "curator.batches:RecordSource._read_records",
    "self._null[start:stop]",
    "self._null[: len(X)]",
    param="None",
)
@pytest.mark.parametrize("chunks", [None, [100, 101, 700]])
def test_rows_are_bounded_over_all_blocks_and_chunks(chunks):
    persons = (np.arange(900) % 90).astype(float)
    persons[450:] = persons[450:][::-1]
    persons[::10] = np.nan
    curator = open_curator(np.ones((900, 1)), persons, max_rows=2, chunks=chunks)
    measured = measure(AlwaysOne(), curator, "zero_out")
    counted = np.unique(persons[~np.isnan(persons)], return_counts=True)[1].clip(max=2).sum()
    assert measured.exact.item() / measured.scale == counted
    assert measure(RowCountMechanism(), curator, "zero_out").exact.item() == counted


LEVELS = [(c, torch.eye(2).double()) for c in range(3)]
SIGNS = [(c, torch.tensor([[-1.0], [1.0]]).double()) for c in range(3)]
TABLES = {
    "two-way": lambda: TablesMechanism([2, 2, 2]),
    "two-way, by level": lambda: TablesMechanism([2, 2, 2], 0),
    "three-way": lambda: MultiWayMechanism("three", Refinement.none([2] * 3), [LEVELS]),
    "interactions": lambda: MultiWayMechanism("three", Refinement.none([2] * 3), [SIGNS]),
}


@pytest.mark.parametrize("tables", TABLES)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("max_rows", [1, 3])
def test_a_person_moves_tables_by_no_more_than_is_claimed(max_rows, relation, tables):
    """The tables are those of three columns of two levels each."""
    mechanism = TABLES[tables]()
    cases = [np.tile([0.0, 0, 0], (n, 1)) for n in (1, max_rows + 5)]
    cases += [np.tile([1.0, 1, 1], (max_rows + 5, 1))]
    cases += [np.array([[0.0, 0, 0], [1, 0, 1], [0, 1, 1], [1, 1, 0]])]
    measured = []
    for rows in [*cases, cases[0] * np.nan]:
        X = np.r_[rows[::2], np.tile([0, 1, 0], (6, 1)), rows[1::2]]
        persons = [*["me"] * len(rows[::2]), *[1, 2, 3, 3, 3, 3], *["me"] * len(rows[1::2])]
        curator = open_curator(X, persons, relation=relation, max_rows=max_rows)
        measured.append(in_noise(measure(mechanism, curator, relation)))
    pairs = [(some, measured[-1]) for some in measured[:-1]]
    if relation == "replace_one":
        pairs += [(a, b) for i, a in enumerate(measured) for b in measured[:i]]
    largest = max(np.linalg.norm(a - b) for a, b in pairs)
    assert 0.95 / MULTIPLIER < largest <= 1 / MULTIPLIER


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("max_rows", [1, 4])
def test_a_person_moves_counts_for_ranges_by_no_more_than_is_claimed(max_rows, relation):
    """Weights of knots, by which bounds are found."""
    format = make_box(20, 2, 1.0, relation)
    mechanism = WeightSumMechanism("weights")
    measured = []
    for value in (1.0, -256.0, np.nan):
        X = np.r_[np.full((max_rows + 5, 2), value), np.zeros((4, 2))]
        persons = [*["me"] * (max_rows + 5), 1, 2, 2, 3]
        encode = RecordFunction(format.encode)
        options = {"relation": relation, "max_rows": max_rows, "prepare": encode}
        curator = open_curator(X, persons, **options)
        measured.append(in_noise(measure(mechanism, curator, relation)))
    moved = [np.linalg.norm(measured[0] - measured[2])]
    if relation == "replace_one":
        moved += [np.linalg.norm(measured[0] - measured[1])]
    assert 0.95 / MULTIPLIER < max(moved) <= 1 / MULTIPLIER


def test_replacing_costs_at_least_what_leaving_out_does():
    """A person may have a row more than the other, even where all rows are alike."""
    mechanism = AlwaysOne()
    assert unit_sensitivity(mechanism.sensitivity, "replace_one", 3) == 3
    assert unit_sensitivity(mechanism.sensitivity, "replace_one") == 0
    assert unit_sensitivity({"zero_out": 1, "replace_one": 2}.get, "replace_one", 3) == 6
    assert unit_sensitivity({"zero_out": 1, "replace_one": 2}.get, "zero_out", 3) == 3


@pytest.mark.parametrize("relation", RELATIONS)
def test_at_one_row_claims_are_those_of_rows(relation):
    for name in set(MECHANISMS) - {"row count", "always one"}:
        mechanism = MECHANISMS[name]()
        change = unit_sensitivity(mechanism.sensitivity, relation, 1)
        assert change == mechanism.sensitivity(relation)


# --- categories ----------------------------------------------------------------------------------


def count_categories(cells, persons, max_rows, noise, columns, relation="zero_out", std=2.0):
    event = ThresholdDpEvent(std, DELTA)
    plan = Plan((("category counts", event),), math.inf, 1e-2, relation, max_rows=max_rows)
    curator = Curator(
        np.array(cells, dtype=object),
        persons=persons,
        plan=plan,
        noise=noise,
        prepare=RecordFunction(lambda X, y: np.zeros((len(X), 1))),
        cells=True,
    )
    with curator:
        return curator.release(CategoryCountsMechanism(columns))


@pytest.mark.catches(
    "mechanisms.categories:CategoryCountsMechanism.query",
    "most * weights + 1",
    "weights + 1",
    param="6-columns0-zero_out",
)
@pytest.mark.catches(
    "mechanisms.categories:CategoryCountsMechanism.query",
    "most * len(self.columns)",
    "len(self.columns)",
    param="6-columns1-zero_out",
)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("columns", [{"a": 0}, {"a": 0, "b": 1}])
@pytest.mark.parametrize("max_rows", [1, 2, 6])
def test_cells_of_one_person_alone_pass_as_rarely_as_stated(max_rows, columns, relation):
    """By the tail of the noise: the smallest that lifts a category above the threshold."""

    class Given(NoiseSource):
        def rounded_gaussian(self, scale):
            self.std = scale
            return np.full(scale.shape, self.given)

    noise = Given(0)
    cells = [["own", "too"]] * (max_rows + 5)

    def passes(given):
        noise.given = given
        found = count_categories(cells, ["me"] * len(cells), max_rows, noise, columns, relation)
        return any(found.values())

    least = next(given for given in range(1000) if passes(given))
    std = noise.std.ravel()[0]
    change = max_rows * math.sqrt(len(columns) * (1 + (relation == "replace_one")))
    assert std == pytest.approx(2.0 * change / {"zero_out": 1, "replace_one": 2}[relation])
    # As many categories as a person has rows, in each column.
    share = DELTA / (max_rows * len(columns))
    assert norm.sf((least - 0.5) / std) <= share
    assert norm.sf((least - 3.5) / std) > share


def test_categories_are_counted_in_rows_that_count():
    class Silent(NoiseSource):
        def rounded_gaussian(self, scale):
            return np.zeros(scale.shape, dtype=np.int64)

    cells = [["x"]] * 40 + [["y"]] * 30 + [["z"]] * 40
    persons = [*range(40), *["me"] * 30, *[np.nan] * 40]
    found = count_categories(cells, persons, 2, Silent(0), {"a": 0}, std=0.5)
    assert found == {"a": {"x": 40}}


# --- which rows count ----------------------------------------------------------------------------


@pytest.mark.catches(
    "curator.persons:Persons._encode",
    "np.full(len(names) + 1, -1)",
    "np.zeros(len(names) + 1, dtype=np.int64)",
)
def test_so_many_rows_of_each_count_and_none_that_is_nobodys():
    rng = np.random.RandomState(0)
    persons = rng.randint(50, size=1000).astype(float)
    persons[::7] = np.nan
    for max_rows in (1, 3, 15, 100):
        chosen = choose(persons, max_rows)
        assert not chosen[np.isnan(persons)].any()
        for person in range(50):
            own = persons == person
            assert chosen[own].sum() == min(max_rows, own.sum())


def test_rows_are_chosen_by_a_key_that_is_secret():
    persons = np.repeat(np.arange(30), 20)
    chosen = [choose(persons, 2, bytes([i]) * 32) for i in (0, 0, 1)]
    assert (chosen[0] == chosen[1]).all()
    assert (chosen[0] != chosen[2]).any()
    # Two fits with fresh noise; the seed of a reproducible one.
    assert NoiseSource().key() != NoiseSource().key()
    assert NoiseSource(3).key() == NoiseSource(3).key()


@pytest.mark.catches(
    "curator.curator:Curator.__init__", "noise.key() if has_persons else None", "bytes(32)"
)
def test_each_fit_chooses_with_a_key_of_its_own():
    X, persons = np.arange(60.0)[:, None], ["me"] * 60
    plan = Plan((("sum", GaussianDpEvent(9.0)),), 1.0, 1e-5, max_rows=3)
    counted = set()
    for _ in range(3):
        with Curator(X, persons=persons, plan=plan, noise=NoiseSource()) as curator:
            counted.add(tuple(np.flatnonzero(~curator._source._null.numpy()).tolist()))
    assert {len(rows) for rows in counted} == {3}
    assert len(counted) > 1


@pytest.mark.catches(
    "curator.persons:RowLimit.hash_rows",
    "map(partial(_hash, self._key), names, written)",
    "(len(row) for row in written)",
)
def test_each_row_is_as_likely_to_count():
    persons = np.repeat(np.arange(3000), 5)
    chosen = choose(persons, 2).reshape(3000, 5)
    assert np.abs(chosen.mean(axis=0) - 0.4).max() < 5 * math.sqrt(0.24 / 3000)


@pytest.mark.catches(
    "curator.persons:RowLimit._choose",
    'rows.groupby(["person", "hash"]).cumcount()',
    'rows.groupby(["person", "hash"]).cumcount() * 0',
)
def test_equal_rows_are_as_likely_to_count_as_others():
    """Each person has nine equal rows, and another one."""
    persons = np.repeat(np.arange(3000), 10)
    for rows in (np.arange(30000) % 10 == 4, np.array(["a", "b"])[np.arange(30000) % 10 // 9]):
        rows = rows.astype(object if rows.dtype.kind == "U" else float)[:, None]
        chosen = choose(persons, 2, rows=rows)
        assert (chosen.reshape(3000, 10).sum(axis=1) == 2).all()
        other = rows[:, 0] == (1.0 if rows.dtype == float else "b")
        assert abs(chosen[other].mean() - 0.2) < 5 * math.sqrt(0.16 / 3000)


@pytest.mark.catches(
    "curator.persons:RowLimit.hash_rows",
    "_write_rows(X[here], None if y is None else y[here])",
    '[b"%d" % i for i in range(len(here))]',
)
@pytest.mark.parametrize("has_labels", [False, True])
@pytest.mark.parametrize("cells", [False, True])
def test_which_rows_count_follows_from_the_rows_of_that_person_alone(cells, has_labels):
    """In any order, among the rows of whoever there is."""
    rng = np.random.RandomState(1)
    persons = np.array(["me"] * 9 + rng.randint(6, size=200).tolist(), dtype=object)
    X = np.r_[rng.randint(3, size=(9, 2)), rng.randint(9, size=(200, 2))].astype(float)
    X = X.astype(object) if cells else X
    y = np.arange(209) % 3
    found = set()
    for order in (np.arange(9), np.arange(209), rng.permutation(209), rng.permutation(209)):
        rows, labels = X[order], y[order] if has_labels else None
        chosen = choose_rows(persons[order], 3, KEY, rows, labels, len(rows))
        for person in set(persons):
            own = chosen & (persons[order] == person)
            written = zip(X[order[own]].tolist(), y[order[own]] * has_labels, strict=True)
            found.add((str(person), tuple(sorted(map(str, written)))))
    assert {len(rows) for _, rows in found} - {0} == {3}
    assert len([rows for _, rows in found if rows]) == 7


@pytest.mark.catches(
    "curator.persons:_hash", "blake2b(key=key, digest_size=8)", "blake2b(key=key, digest_size=2)"
)
def test_unlike_rows_have_unlike_hashes():
    """Hashes have 64 bits: two of 5,000 are the same with a chance of 7e-13."""
    persons, rows = Persons([1] * 5000), np.arange(5000.0)[:, None]
    limit = RowLimit(persons, 1, KEY, [(rows, None, persons.codes)])
    _, hashes = limit.hash_rows(rows, None, persons.codes)
    assert len(np.unique(hashes)) == 5000
    bits = (hashes[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    # Each of them is 1 half of the time, to eight standard errors.
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 4 / np.sqrt(5000)


@pytest.mark.catches("curator.persons:Persons.find_codes", "return -1", "return 0")
def test_persons_who_come_later_are_nobody():
    persons, others = Persons(["a", "b"]), set()
    assert persons.find_codes(["b", "c", "a", None, "c"], others).tolist() == [1, -1, 0, -1, -1]
    assert persons.find_codes(["c", "b"], others).tolist() == [-1, 1]
    assert (others, persons.names) == ({repr("c")}, [repr("a"), repr("b")])


@pytest.mark.catches(
    "curator.persons:RowLimit.__init__", "sizes > max_rows", "sizes > max_rows + 1", param="1"
)
@pytest.mark.parametrize("max_rows", [1, 2, 5])
def test_no_row_counts_because_it_comes_first(max_rows):
    """However few more rows a person has than count."""
    for n_rows in range(max_rows + 1, max_rows + 4):
        rows = np.arange(float(n_rows))[:, None]
        found = set()
        for key in range(9):
            chosen = [
                order[choose([1] * n_rows, max_rows, bytes([key]) * 32, rows[order])]
                for order in (np.arange(n_rows), np.arange(n_rows)[::-1])
            ]
            assert sorted(chosen[0]) == sorted(chosen[1])
            found.add(tuple(sorted(chosen[0])))
        assert len(found) > 1


def test_cells_are_the_same_however_an_engine_holds_them():
    cells = [
        [[1, None, "a"], [2, 0.5, "b"], [1, None, "a"], [7, 2, "c"]],
        [[1.0, np.nan, "a"], [2.0, 0.5, "b"], [np.float64(1), pd.NaT, "a"], [7, 2.0, "c"]],
    ]
    for i in range(20):
        key = bytes([i]) * 32
        chosen = [choose([1] * 4, 2, key, np.array(c, dtype=object)) for c in cells]
        assert (chosen[0] == chosen[1]).all()


def test_a_cell_that_cannot_be_written_changes_nothing_for_others():
    class Mute:
        def __repr__(self):
            raise RuntimeError(SECRET)

    rows = np.array([[i, str(i)] for i in range(20)] + [[1, Mute()]] * 5, dtype=object)
    chosen = choose(["a"] * 20 + ["b"] * 5, 3, rows=rows)
    assert chosen[20:].sum() == 3
    assert (chosen[:20] == choose(["a"] * 20, 3, rows=rows[:20])).all()


@pytest.mark.catches(
    "curator.persons:Persons.__init__",
    "self._encode(chunk, lambda name: len(self._codes))",
    "(self._codes.clear(), self._encode(chunk, lambda name: len(self._codes)))[1]",
)
def test_chunks_of_identifiers_are_the_same_as_all_of_them():
    rng = np.random.RandomState(2)
    persons = rng.choice(["a", "b", "c", "d"], size=100)
    chunks = lambda: iter([persons[:1], persons[1:60], pd.Series(persons[60:])])  # noqa: E731
    rows = np.arange(100.0)[:, None]
    assert (choose(chunks, 4, rows=rows) == choose(persons, 4, rows=rows)).all()
    assert Persons(chunks).n_persons == 4


@pytest.mark.parametrize(
    "persons",
    [
        ["a", None, "b", "a"],
        [1, np.nan, 2.5, True],
        np.array([7.0, np.nan, 8.0, 7.0]),
        np.array(["a", "", "b", "a"]),
        np.array(["a", " NA", "b ", "a "]),
        pd.Series(["a", pd.NA, "b", "a"], index=[9, 9, 1, 0], dtype="string"),
        pd.Series([1, None, 2, 1], dtype="Int64"),
        pd.Series(["a", None, "b", "a"], dtype="category"),
        pd.Categorical(["a", None, "b", "a"], categories=["z", "a", "b"]),
        pd.to_datetime(["2020-01-01", None, "2021-01-01", "2020-01-01"]),
        [("a", 1), None, ("b", 1), ("a", 1)],
    ],
)
def test_identifiers_of_any_kind_are_taken_by_position(persons):
    found = Persons(persons)
    assert found.n_persons == 2
    chosen = choose(persons, 1)
    assert chosen.tolist()[1:3] == [False, True]
    assert chosen[0] != chosen[3]


@pytest.mark.catches(
    "curator.persons:_write_name",
    'f"-{whole[2]}" if whole[1] == "-" and whole[2] != "0" else whole[2]',
    "whole[2]",
)
@pytest.mark.catches("curator.persons:_write_other", "int(name)", "name")
@pytest.mark.parametrize("beside", [[], [None], ["Smith"], [0.25]])
@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("7", [7, 7.0, "7", "007", " 7 ", "7.0", np.int8(7), np.float32(7), Decimal(7)]),
        ("1553", [1553, "1553", "1553.0", "1553,0", "1,553", "01553,", "\ufeff1553", "1,553.0"]),
        ("-7", [-7, -7.0, "-7", "-007", " -7", "-7.0", np.int8(-7), Decimal(-7)]),
        ("1", [1, True, np.True_, 1.0, "1", "True", "true"]),
        ("0", [0, False, -0.0, "-0", "00", "False"]),
        ("1/2", [0.5, "0.5", ".5", "5e-1", np.float32(0.5), Decimal("0.5"), Fraction(1, 2)]),
        ("9007199254740993", [2**53 + 1, "9007199254740993", np.int64(2**53 + 1)]),
        ("'A7'", ["A7", " A7 ", np.str_("A7")]),
        (
            "2020-01-02",
            [
                datetime.date(2020, 1, 2),
                datetime.datetime(2020, 1, 2),
                pd.Timestamp("2020-01-02"),
                np.datetime64("2020-01-02"),
                np.datetime64("2020-01-02", "ns"),
                "2020-01-02",
                "2020-01-02 00:00",
            ],
        ),
        (
            "2020-01-02 02:04:00+00:00",
            [
                pd.Timestamp("2020-01-02T03:04", tz="Europe/Vienna"),
                datetime.datetime(2020, 1, 2, 2, 4, tzinfo=datetime.timezone.utc),
                "2020-01-02T02:04Z",
                "2020-01-02 03:04+01:00",
            ],
        ),
    ],
)
def test_forms_of_one_identifier_are_one_person(name, forms, beside):
    """In whatever container, and beside whatever others; what it is, numbers or dates, is kept."""
    containers = [list, partial(np.array, dtype=object), pd.Series, pd.Categorical]
    containers += [] if beside else [np.array, pd.array]
    chunks = [make([form, *beside]) for form in forms for make in containers]
    names = Persons(lambda: iter(chunks)).names
    assert names == [name, *Persons([name, *beside]).names[1:]]
    assert Persons([*forms, *beside]).names == names


@pytest.mark.parametrize(
    ("persons", "error", "message"),
    [
        ("patient", TypeError, "must hold one identifier for each row"),
        (7, TypeError, "must hold one identifier for each row"),
        ([[SECRET], [SECRET]], ValueError, "holds no identifier"),
        (np.array([[1, 2]]), ValueError, "must be 1-dimensional"),
        (np.array(3), ValueError, "must be 1-dimensional"),
        (pd.DataFrame({"a": [1]}), ValueError, "must be 1-dimensional"),
        ([None, np.nan, "", "NA"], ValueError, "holds no identifier"),
        ([1e17, 2e17], ValueError, r"floats from 2\*\*53 on"),
        (lambda: iter([]), ValueError, "holds no identifier"),
    ],
)
def test_invalid_identifiers_are_refused_without_a_word_of_them(persons, error, message):
    with pytest.raises(error, match=message) as raised:
        Persons(persons)
    assert_not_quoted(raised.value, SECRET)


def test_identifiers_are_not_copied():
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(Persons([1, 2]))


def test_another_number_of_identifiers_is_refused_and_no_number_told():
    with pytest.raises(ValueError, match="has another length") as raised:
        open_curator(np.zeros((7, 2)), [1] * 9)
    assert not any(digit in str(raised.value) for digit in "79")


# --- the curator ---------------------------------------------------------------------------------


def test_plans_for_persons_need_persons_and_the_other_way_round():
    plan = gaussian_plan({"sum": 1.0}, 1.0, 1e-5)
    for_persons = Plan(plan.releases, 1.0, 1e-5, max_rows=2)
    for given, persons in [(plan, [1, 2]), (for_persons, None)]:
        with pytest.raises(PlanError, match="A plan for persons needs persons"):
            Curator(np.zeros((2, 2)), persons=persons, plan=given, noise=NoiseSource(0))


@pytest.mark.catches(
    "curator.curator:Curator._release",
    "self.plan.max_rows is not None and not mechanism.is_sum",
    "self.plan.max_rows is None and not mechanism",
)
def test_releases_that_are_no_sum_are_refused_before_a_row_is_read():
    reads = []

    def chunks():
        reads.append(1)
        return iter([np.zeros((4, 2))])

    plan = Plan((("forward aggregate", GaussianDpEvent(9.0)),), 1.0, 1e-5, max_rows=2)
    curator = Curator(chunks, persons=[1, 1, 2, 3], plan=plan, noise=NoiseSource(0))
    before = len(reads)
    pull = PullingFunction(lambda rows, membership: (rows, lambda cotangents: rows))
    with pytest.raises(PlanError, match="no sum over records: it is not for persons"):
        curator.release(ForwardAggregateMechanism(pull, 2))
    assert len(reads) == before
    assert curator.certificate().events == ()


@pytest.mark.catches(
    "curator.batches:RecordSource._count_persons", "n_persons * self.max_rows", "self._n_rows"
)
def test_public_facts_follow_from_persons_alone():
    scales = set()
    for n_rows in (1, 9, 700):
        persons = ["a", "b", *["c"] * n_rows, *[None] * n_rows]
        curator = open_curator(np.zeros((len(persons), 2)), persons, max_rows=4)
        source = curator._source
        assert (curator.n_records, curator.n_rows, source.n_records) == (3, 3, 12)
        assert curator.certificate().n_records == 3
        mechanisms = CovarianceMechanism(), TablesMechanism([1, 1])
        scales.add(tuple(measure(m, curator, "zero_out").scale for m in mechanisms))
    # The grid, which is seen in what is released, is for so many records as there may be.
    assert len(scales) == 1


def test_the_grid_has_room_for_all_rows_that_may_count():
    X = np.ones((4, 1))
    scales = [
        measure(CovarianceMechanism(), open_curator(X, [1, 1, 2, 3], max_rows=m), "zero_out").scale
        for m in (1, 2**20, 2**30)
    ]
    assert scales[0] > scales[1] > scales[2]


@pytest.mark.catches(
    "curator.batches:RecordSource._read", "self.max_rows is None", "True", param="5000"
)
@pytest.mark.parametrize("n_rows", [3, 5000])
def test_progress_does_not_tell_how_many_rows_there_are(n_rows, capsys):
    persons = ["a", *["b"] * n_rows]
    curator = open_curator(np.zeros((n_rows + 1, 2)), persons, verbose=1)
    total = GaussianSumMechanism(RecordFunction(_same), 1.0, "sum")
    curator.release(total)
    shown = capsys.readouterr().err
    assert "1/1" in shown
    assert "0/1" in shown
    assert "/20" not in shown
    assert "2/" not in shown


@pytest.mark.catches(
    "curator.curator:Curator.count_rows",
    "self.release(mechanism).value.item",
    "self._source.count_rows",
)
def test_the_number_of_rows_is_noised_and_kept_within_what_is_possible():
    persons = np.repeat(np.arange(400), 6)
    event = GaussianDpEvent(10.0)
    plan = Plan((("row count", event),), 1.0, 1e-2, max_rows=3)
    found = []
    for seed in range(60):
        noise = NoiseSource(seed)  # chance alone would fail once in some hundred runs
        with Curator(np.zeros((2400, 1)), persons=persons, plan=plan, noise=noise) as c:
            c.count_rows(RowCountMechanism())
            found.append(c.n_rows)
            assert c.certificate().releases == ("row count",)
    # All have three rows that count, which is the most.
    assert max(found) == 1200
    below = np.array([n for n in found if n < 1200])
    assert 0.3 < len(below) / 60 < 0.7
    # Half a normal law of deviation 3 · 10.
    assert 15 < np.sqrt(np.mean((1200 - below) ** 2)) < 50


def test_a_budget_is_for_records_or_for_persons():
    plan = gaussian_plan({"a": 1.0}, 0.1, 1e-6)
    for_persons = Plan(plan.releases, 0.1, 1e-6, max_rows=2)
    X, open_ = np.zeros((2, 1)), partial(Curator, noise=NoiseSource())
    with PrivacyBudget(5.0, 1e-5):
        open_(X, persons=[1, 2], plan=for_persons).close()
        open_(X, persons=[1, 1], plan=for_persons).close()
        with pytest.raises(Exception, match="all be for records, or all for persons"):
            open_(X, plan=plan)


@pytest.mark.catches(
    "curator.persons:_write_name",
    "name is None or name is pd.NA or name is pd.NaT or not _is_identifier(name)",
    "name is None or name is pd.NA or name is pd.NaT",
    param="objects",
)
@pytest.mark.parametrize("kind", ["objects", "tensors"])
def test_cells_unequal_to_their_copies_are_no_identifiers(kind):
    persons = [object()] * 4 if kind == "objects" else list(torch.zeros(4))
    with pytest.raises(ValueError, match="no identifier"):
        Persons(persons)
    assert Persons([*persons, "a"]).n_persons == 1
    assert Persons(torch.tensor([1, 1, 2])).n_persons == 2
    assert Persons([pd.Timestamp("2020-01-01"), ("a", 1), ("a", 1), b"x"]).n_persons == 3


class Unhashed(int):
    __hash__ = None


class Failing(str):
    def __hash__(self):
        raise ValueError(SECRET)


# Python takes many of these for equal that are not the same person, or nobody's.
IDENTIFIERS = [
    *(7, 7.0, "7", True, np.True_, 2**53, 2.0**53, 2**53 + 2, 2.0**53 + 2, np.int8(7), -0.0, 0),
    *(np.float32(2**24), 2**24, np.float16(2048), 2048, np.float32(0.1), 0.1, 10**30, 1e30),
    *(Decimal(7), Decimal(2**53), Decimal("1e30"), Fraction(1, 2), 0.5, 2**64, 2.0**64),
    *((1, 2), (1.0, 2), (2**53, 1), (2.0**53, 1), "a", np.str_("a"), b"a", ("a",)),
    *(complex(7), complex(2**53), frozenset([1]), frozenset([True]), range(1), range(0, 1, 5)),
    *(pd.Timestamp("2020-01-01"), datetime.date(2020, 1, 1), np.datetime64("2020-01-01")),
    *(np.timedelta64(5), Unhashed(7), Failing("a"), [7], None, np.nan, Decimal("sNaN"), object()),
]


@pytest.mark.catches("data.cells:factorize", "are_exact(cells.tolist())", "True")
@pytest.mark.parametrize("pair", [(2**53, 2.0**53), (2.0**53, 2**53)])
def test_a_float_that_equals_a_large_number_is_nobody(pair):
    """Python takes them for equal, and the float may stand for other whole numbers."""
    expected = [
        None if type(name) is float else hash_persons(as_objects([name]))[0] for name in pair
    ]
    assert hash_persons(as_objects(["x", *pair]))[1:] == expected


def test_identifiers_are_the_same_whatever_is_beside_them():
    alone = [hash_persons(as_objects([cell]))[0] for cell in IDENTIFIERS]
    for i, j in permutations(range(len(IDENTIFIERS)), 2):
        persons = as_objects(["x", IDENTIFIERS[i], IDENTIFIERS[j]])
        first, second = Persons(persons).codes[1:].tolist()
        assert hash_persons(persons)[1:] == [alone[i], alone[j]]
        assert [first < 0, second < 0] == [alone[i] is None, alone[j] is None]
        assert (first == second) == (alone[i] == alone[j])
    assert None not in (alone[5], alone[16])
    assert alone[6] is alone[14] is None


@pytest.mark.catches(
    "curator.persons:_is_identifier",
    "any(type(name) is known for known in (str, int, float, bool))",
    "isinstance(name, str | numbers.Real)",
    param="7",
)
@pytest.mark.parametrize(
    "cell", [np.timedelta64(5), Unhashed(7), [1], Decimal("1e10000000")], ids=repr
)
def test_cells_that_have_no_name_are_nobodys(cell):
    """They end no fit, which others could see."""
    assert Persons(as_objects([7, cell, "b", cell])).codes.tolist() == [0, -1, 1, -1]
    assert Persons([7, cell]).n_persons == 1


@pytest.mark.parametrize("zone", [None, "Europe/Vienna"])
def test_dates_that_python_has_not_are_persons(zone):
    days = pd.Series(np.array([1, 5_000_000, 1], dtype="M8[D]").astype("M8[s]"))
    persons = [days if zone is None else days.dt.tz_localize("UTC").dt.tz_convert(zone)]
    if zone is None:
        pa = pytest.importorskip("pyarrow")
        persons.append(pa.array([1, 5_000_000, 1], pa.int32()).cast(pa.date32()))
    names = [Persons(column).names for column in persons]
    assert [Persons(column).codes.tolist() for column in persons] == [[0, 1, 0]] * len(persons)
    assert names == [names[0]] * len(names)


@pytest.mark.catches(
    "curator.persons:_write_float",
    """
    if not _is_exact(number):
        return None
    """,
    "pass",
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_that_may_be_rounded_are_nobodys(dtype):
    """Whatever holds them: the first number that two whole ones become belongs to neither."""
    first = 2 ** (np.finfo(dtype).nmant + 1)
    floats = np.array([first - 2, first - 1, first, first + 1, first + 2], dtype=dtype)
    listed = as_objects(list(floats))
    for persons in (floats, listed, pd.Series(floats), pd.Series(floats).astype("category")):
        assert Persons(persons).codes.tolist() == [0, 1, -1, -1, -1]
        assert [h is None for h in hash_persons(pd.Series(persons))] == [False] * 2 + [True] * 3
    nullable = pd.Series([*floats, None], dtype=f"Float{np.finfo(dtype).bits}")
    assert Persons(nullable).codes.tolist() == [0, 1, -1, -1, -1, -1]
    assert sum(h is not None for h in hash_persons(nullable)) == 2
