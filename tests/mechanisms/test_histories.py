"""Tables of persons with several rows: sensitivities, noise, exact sums."""

import itertools
import math

import numpy as np
import pytest

from skdpgen.histories.mechanism import HistorySizes, LinkTables
from skdpgen.histories.release import count_tables

from .common import Blocks, assert_variance
from .test_tables import encoded, release

M = 4
# Two columns of a person and the number of rows; three columns of a row, and a calendar.
SIZES = HistorySizes((3, 5, M + 2), (4, 2, 3), M, (3,))
MECHANISMS = {mechanism.name: mechanism for mechanism in SIZES.make_mechanisms()}


def make_persons(numbers, rng, *, alike=False, whole=True):
    """Persons with given numbers of rows, which are all different or all alike."""
    n = len(numbers)
    persons, rows = (
        rng.random((n, *shape, len(sizes))) * (np.array(sizes) - 1)
        for shape, sizes in (((), SIZES.persons[:-1]), ((M,), SIZES.rows + SIZES.calendars))
    )
    if whole:
        persons, rows = np.rint(persons), np.rint(rows)
    if alike:
        rows[:] = rows[:, :1]
    return np.column_stack([persons, numbers, rows.reshape(n, -1)])


def vector(mechanism, person):
    """A release as the vector whose norm the sensitivity bounds."""
    released = release(mechanism, Blocks(person[None]))
    cells = [released.cells]
    if not isinstance(released, LinkTables):
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
    apart[1, :2], apart[1, 3:] = np.array([2, 4]), np.tile([3, 1, 2, 2], M)
    return np.vstack([*parts, extreme, apart])


@pytest.mark.catches(
    "histories.mechanism:HistorySizes.list_rows",
    "1 / n_rows[person]",
    "1 / n_rows[person] ** 0.5",
    param="row tables",
)
@pytest.mark.catches(
    "mechanisms.two_way:TablesMechanism._add_products",
    "rows if shares is None else to_integers(basis, shares)",
    "rows",
    param="row tables",
)
@pytest.mark.catches(
    "histories.mechanism:LinkTablesMechanism._add_products",
    "to_grid(w * s, scale)",
    "to_grid(w, scale)",
    param="person-row tables",
)
@pytest.mark.catches(
    "histories.mechanism:HistorySizes.list_steps",
    "1 / n_steps[is_step.nonzero()[:, 0]]",
    "1 / n_steps[is_step.nonzero()[:, 0]] ** 0.5",
    param="step tables",
)
@pytest.mark.catches(
    "histories.mechanism:HistorySizes.list_rows",
    "numbers < n_rows[:, None]",
    "numbers <= n_rows[:, None]",
    param="row tables",
)
@pytest.mark.catches(
    "histories.mechanism:LinkTablesMechanism.records",
    "math.sqrt(len(self.left) * len(self.right))",
    "math.sqrt(len(self.left))",
    param="step tables",
)
@pytest.mark.parametrize("name", MECHANISMS)
def test_sensitivity(name):
    """Persons have M rows that are alike, or not, or fewer, or more, or none."""
    mechanism = MECHANISMS[name]
    vectors = np.array([vector(mechanism, person) for person in make_cases()])
    norms = np.linalg.norm(vectors, axis=1)
    assert 0.999 < norms.max() <= mechanism.sensitivity("zero_out") == 1
    apart = max(np.linalg.norm(a - b) for a, b in itertools.combinations(vectors, 2))
    bound = mechanism.sensitivity("replace_one")
    assert bound == math.sqrt(2)
    # Two persons with one row each agree in its number.
    assert 0.95 * bound < apart <= bound


def find_expected(persons):
    """The tables by their definition: of row, person, person-row, time and step tables."""
    person_codes, numbers = persons[:, :3], persons[:, 2].clip(0, M).astype(int)
    rows = persons[:, 3:].reshape(len(persons), M, -1)
    own = np.hstack(encoded(person_codes, SIZES.persons))
    within = links = times = steps = 0.0
    sizes, n = (*SIZES.rows, *SIZES.times), sum(SIZES.rows)
    for i, number in enumerate(numbers):
        numbered = np.column_stack([rows[i, :number], np.arange(number)])
        weights = np.hstack(encoded(numbered, sizes))
        plain, first = weights[:, :n], weights[:1, :n]
        if number:
            within = within + plain.T @ plain / number
            times = times + plain.T @ weights[:, n:] / number
            links = links + np.outer(own[i], np.hstack([plain, weights[:, -M:]]).mean(0))
        if number > 1:
            before = np.hstack([plain[:-1], first.repeat(number - 1, axis=0)])
            steps = steps + before.T @ plain[1:] / (number - 1)
    return dict(zip(MECHANISMS, (within, own.T @ own, links, times, steps), strict=True))


@pytest.mark.catches(
    "histories.mechanism:LinkTablesMechanism._add_products",
    "codes[membership.sum(1) > 0]",
    "codes",
    param="step tables",
)
@pytest.mark.parametrize("name", MECHANISMS)
def test_releases_without_noise(name):
    rng = np.random.default_rng(0)
    persons = make_persons(rng.integers(0, M + 2, 300), rng, whole=False)
    mechanism = MECHANISMS[name]
    released = release(mechanism, Blocks(persons[:100], persons[100:130], persons[130:]))
    expected = find_expected(persons)[name]
    assert released.pairs_std == 0
    if isinstance(released, LinkTables):
        assert released.cells == pytest.approx(expected, abs=0.05)
    else:
        edges = np.cumsum([0, *released.sizes])
        blocks = [slice(*pair) for pair in itertools.pairwise(edges)]
        for (c, first), (d, second) in itertools.combinations(enumerate(blocks), 2):
            assert released.pair(c, d) == pytest.approx(expected[first, second], abs=0.05)
        # The sums of the levels of each column, from its pairs with all levels of another one.
        others = [blocks[-1]] * (len(blocks) - 1) + blocks[:1]
        sums = [expected[own, other].sum(1) for own, other in zip(blocks, others, strict=True)]
        assert released.columns == pytest.approx(released.weight * np.concatenate(sums), abs=0.05)
    # In any order, and in any pieces, to the bit; nothing follows from codes beyond the number.
    persons[:, 3:].reshape(len(persons), M, -1)[np.arange(M) >= persons[:, 2:3]] = 7e7
    again = release(mechanism, Blocks(persons[::-1].copy()))
    assert (again.cells == released.cells).all()
    assert not release(mechanism, Blocks(persons, absent=True)).cells.any()


@pytest.mark.catches(
    "histories.mechanism:LinkTablesMechanism.postprocess",
    "LinkTables(noisy * self.records, measured.context * self.records)",
    "LinkTables(noisy * self.records, measured.context)",
    param="zero_out",
)
@pytest.mark.catches(
    "histories.release:count_tables",
    "2.0 * n_rows * (n_calendars + 1)",
    "2.0 * n_rows * n_calendars",
    param="zero_out",
)
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_cells_of_all_tables_have_the_noise_of_the_budget_split_by_their_number(relation):
    (person,), total = make_persons([M], np.random.default_rng(0)), 5.0
    shares = count_tables(2, 3, 1)
    n_tables = sum(shares.values())
    unit = {"zero_out": 1, "replace_one": math.sqrt(2) / 2}[relation]
    for name, mechanism in MECHANISMS.items():
        multiplier = total / math.sqrt(shares[name] / n_tables)
        exact = release(mechanism, Blocks(person[None])).cells
        noisy = [
            release(mechanism, Blocks(person[None]), multiplier, relation, seed)
            for seed in range(30)
        ]
        expected = total * math.sqrt(n_tables) * unit
        # Tables of times have two shares each.
        expected /= math.sqrt(1 + (name == "time tables"))
        if not isinstance(noisy[0], LinkTables):
            # One-way tables of columns with few levels weigh less.
            expected *= mechanism.records / len(noisy[0].sizes)
        assert noisy[0].pairs_std == pytest.approx(expected)
        assert_variance([tables.cells - exact for tables in noisy], noisy[0].pairs_std)
