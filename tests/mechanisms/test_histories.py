"""Tables of persons with several rows: sensitivities, noise, exact sums."""

import itertools
import math

import numpy as np
import pytest
import torch

from skdpgen.histories.mechanism import (
    HistorySizes,
    LinkTables,
    PersonRowTablesMechanism,
    PersonTablesMechanism,
    RowTablesMechanism,
    StepTablesMechanism,
)
from skdpgen.histories.release import count_tables

from .common import Blocks, assert_variance
from .test_tables import encoded, release

M = 4
# Two columns of a person and the number of rows; three columns of a row.
SIZES = HistorySizes((3, 5, M + 2), (4, 2, 3), M)
MECHANISMS = [
    PersonTablesMechanism,
    RowTablesMechanism,
    PersonRowTablesMechanism,
    StepTablesMechanism,
]


def make_persons(numbers, rng, *, alike=False, whole=True):
    """Persons with given numbers of rows, which are all different or all alike."""
    n = len(numbers)
    persons, rows = (
        rng.random((n, *shape, len(sizes))) * (np.array(sizes) - 1)
        for shape, sizes in (((), SIZES.persons[:-1]), ((M,), SIZES.rows))
    )
    if whole:
        persons, rows = np.rint(persons), np.rint(rows)
    if alike:
        rows[:] = rows[:, :1]
    return np.column_stack([persons, numbers, rows.reshape(n, -1)])


def vector(mechanism, person):
    """A release as the vector whose norm the sensitivity bounds."""
    released = release(mechanism, Blocks(person[None]))
    cells = [released.cells] if isinstance(released, LinkTables) else []
    if not cells:
        cells = [math.sqrt(2) * released.cells, released.columns]
    return np.concatenate([part.ravel() for part in cells]) / mechanism.records


def make_cases():
    rng = np.random.default_rng(0)
    numbers = [*range(M + 2)] * 5
    parts = [
        make_persons(numbers, rng, alike=alike, whole=whole)
        for alike, whole in itertools.product((False, True), repeat=2)
    ]
    extreme = make_persons([M, 1], rng)
    # Codes far out of their columns, and rows that are as far apart as can be.
    extreme[0, 3:], extreme[1] = 1e300, -1e300
    apart = make_persons([M] * 2, rng)
    apart[0, 3:] = apart[0, :2] = 0
    apart[1, :2], apart[1, 3:] = np.array([2, 4]), np.tile([3, 1, 2], M)
    return np.vstack([*parts, extreme, apart])


@pytest.mark.parametrize("cls", MECHANISMS)
def test_sensitivity(cls):
    """Persons have M rows that are alike, or not, or fewer, or more, or none."""
    mechanism = cls(SIZES)
    vectors = np.array([vector(mechanism, person) for person in make_cases()])
    norms = np.linalg.norm(vectors, axis=1)
    assert 0.999 < norms.max() <= mechanism.sensitivity("zero_out") == 1
    apart = max(np.linalg.norm(a - b) for a, b in itertools.combinations(vectors, 2))
    bound = mechanism.sensitivity("replace_one")
    assert bound == math.sqrt(2)
    # Two persons with one row each agree in its number.
    assert 0.95 * bound < apart <= bound


@pytest.mark.parametrize("cls", MECHANISMS[1:])
def test_rows_that_are_alike_count_like_one(cls):
    """No weight of a row but 1/n bounds n equal rows, and wastes no noise on a single one."""
    mechanism, rng = cls(SIZES), np.random.default_rng(0)
    least = 2 if cls is StepTablesMechanism else 1
    for number in range(least, M + 2):
        (alike,) = make_persons([number], rng, alike=True)
        norm = np.linalg.norm(vector(mechanism, alike))
        # Their numbers in the order differ.
        assert norm == pytest.approx(1, abs=1e-3) or cls is not StepTablesMechanism
        assert norm <= 1
    for number in range(least):
        (nobody,) = make_persons([number], rng)
        assert not vector(mechanism, nobody).any()


def find_expected(persons):
    """The tables by their definition."""
    person_codes, numbers = persons[:, :3], persons[:, 2].clip(0, M).astype(int)
    rows = persons[:, 3:].reshape(len(persons), M, -1)
    own = np.hstack(encoded(person_codes, SIZES.persons))
    pairs, links, steps = own.T @ own, 0.0, 0.0
    within = 0.0
    for i, number in enumerate(numbers):
        numbered = np.column_stack([rows[i, :number], np.arange(number)])
        weights = np.hstack(encoded(numbered, SIZES.numbered_rows))
        if number:
            within = within + weights.T @ weights / number
            links = links + np.outer(own[i], weights.mean(0))
        if number > 1:
            plain = weights[:, : sum(SIZES.rows)]
            steps = steps + plain[:-1].T @ plain[1:] / (number - 1)
    return dict(zip(MECHANISMS, (pairs, within, links, steps), strict=True))


@pytest.mark.parametrize("cls", MECHANISMS)
def test_releases_without_noise(cls):
    rng = np.random.default_rng(0)
    persons = make_persons(rng.integers(0, M + 2, 300), rng, whole=False)
    mechanism = cls(SIZES)
    released = release(mechanism, Blocks(persons[:100], persons[100:130], persons[130:]))
    expected = find_expected(persons)[cls]
    if isinstance(released, LinkTables):
        assert released.cells == pytest.approx(expected, abs=0.05)
        assert released.std == 0
        found = released.cells
    else:
        edges = np.cumsum([0, *released.sizes])
        for c, d in itertools.combinations(range(len(released.sizes)), 2):
            block = expected[edges[c] : edges[c + 1], edges[d] : edges[d + 1]]
            assert released.pair(c, d) == pytest.approx(block, abs=0.05)
        sums = released.weight * diagonal(released, expected)
        assert released.columns == pytest.approx(sums, abs=0.05)
        found = released.cells
    # In any order, and in any pieces, to the bit; nothing follows from codes beyond the number.
    persons[:, 3:].reshape(len(persons), M, -1)[np.arange(M) >= persons[:, 2:3]] = 7e7
    again = release(mechanism, Blocks(persons[::-1].copy()))
    assert (again.cells == found).all()
    assert not release(mechanism, Blocks(persons, absent=True)).cells.any()


def diagonal(released, expected):
    """The sums of the levels of each column, from its pairs with all levels of another one."""
    edges = np.cumsum([0, *released.sizes])
    last, first = slice(*edges[-2:]), slice(*edges[:2])
    sums = [expected[slice(*edges[c : c + 2]), last].sum(1) for c in range(len(edges) - 2)]
    return np.concatenate([*sums, expected[first, last].sum(0)])


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_cells_of_all_tables_have_the_noise_of_the_budget_split_by_their_number(relation):
    (person,), total = make_persons([M], np.random.default_rng(0)), 5.0
    shares = count_tables(2, 3)
    n_tables = sum(shares.values())
    unit = {"zero_out": 1, "replace_one": math.sqrt(2) / 2}[relation]
    for cls in MECHANISMS:
        multiplier = total / math.sqrt(shares[cls.name] / n_tables)
        exact = release(cls(SIZES), Blocks(person[None])).cells
        noisy = [
            release(cls(SIZES), Blocks(person[None]), multiplier, relation, seed)
            for seed in range(30)
        ]
        std = getattr(noisy[0], "std", None) or noisy[0].pairs_std
        expected = total * math.sqrt(n_tables) * unit
        if isinstance(exact_sizes := getattr(noisy[0], "sizes", None), tuple):
            # One-way tables of columns with few levels weigh less.
            expected *= cls(SIZES).records / len(exact_sizes)
        assert std == pytest.approx(expected)
        assert_variance([tables.cells - exact for tables in noisy], std)


def test_more_rows_than_count_are_a_level_of_their_own():
    rng = np.random.default_rng(0)
    (person,) = make_persons([M + 1], rng)
    all_used = person.copy()
    all_used[2] = M
    for cls in MECHANISMS[1:]:
        if cls is not PersonRowTablesMechanism:
            first, second = (release(cls(SIZES), Blocks(p[None])).cells for p in (person, all_used))
            assert (first == second).all()
    columns = release(PersonTablesMechanism(SIZES), Blocks(person[None])).columns
    assert columns[-1] > 0 == columns[-2]


def test_codes_are_split():
    codes = torch.arange(3 + M * 3, dtype=torch.float64)[None]
    codes[0, 2] = 2
    rows, persons, shares = SIZES.list_rows(codes)
    assert rows.tolist() == [[3, 4, 5, 0], [6, 7, 8, 1]]
    assert persons.tolist() == [[0, 1, 2]] * 2
    assert shares.tolist() == [[0.5]] * 2
    before, after, shares = SIZES.list_steps(codes)
    assert (before.tolist(), after.tolist(), shares.tolist()) == ([[3, 4, 5]], [[6, 7, 8]], [[1]])
