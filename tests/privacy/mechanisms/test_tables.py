"""Two-way tables, of all records and of groups of them: sensitivities, noise, exact sums."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from skdpgen.accounting.events import gaussian_event
from skdpgen.privacy import Curator, NoiseSource, Plan, RecordFunction, TablesMechanism
from skdpgen.privacy.mechanisms import tables as _tables
from skdpgen.privacy.mechanisms.tables import count_cells, one_way_weight

# Columns, and that by which records are told apart.
TABLES = {
    "all records": ([9, 7, 8], None),
    "by level": ([3, 4, 5], 1),
    "by level, of two columns": ([2, 6], 0),
    "by level, of four columns": ([3, 2, 2, 2], 0),
    "by level, at the end": ([6, 5, 2], 2),
}


class Blocks:
    """A source of rows that are given in blocks; some are absent."""

    def __init__(self, *blocks, absent=False):
        self._blocks = blocks
        self._absent = absent
        self.n_records, self.max_rows = sum(map(len, blocks)), None

    def add_up(self, function):
        return function(self)

    def blocks(self, name, size):
        for block in self._blocks:
            membership = torch.full((len(block), 1), 1.0 - self._absent, dtype=torch.float64)
            yield torch.as_tensor(block), membership


def release(mechanism, source, multiplier=0.0, relation="zero_out", seed=0):
    event = gaussian_event(multiplier)
    return mechanism.run(source, event, relation=relation, noise=NoiseSource(seed))


def vector(mechanism, *rows):
    """A release as the vector whose norm the sensitivity bounds."""
    released = release(mechanism, Blocks(*(row[None] for row in rows)))
    parts = [math.sqrt(2) * released.cells, released.columns]
    return np.concatenate(parts, axis=-1).ravel() / mechanism.records


def unit_rows(sizes, rng):
    """Rows that a mechanism may get: of one block, of equal ones, of one sign and of both."""
    starts, m = np.cumsum([0, *sizes[:-1]]), len(sizes)
    rows = rng.normal(size=(100, sum(sizes))) * rng.random((100, sum(sizes))) ** 4
    rows[:30] = np.abs(rows[:30])
    rows[30:40] = 0
    rows[30 + np.arange(m), starts] = 1  # one block
    rows[36, starts] = rows[37, starts + 1] = rows[38, starts + np.array(sizes) - 1] = 1
    rows[35, starts] = 1
    rows[35, 0] = math.sqrt(1.5)  # a third in the first block
    rows[39] = rows[36] * np.where(np.arange(sum(sizes)) == 0, -1, 1)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-9)


def encoded_rows(sizes, rng, n, between=()):
    """Rows as encoders make them: a level of each column, or two neighbours of some."""
    blocks = []
    for c, size in enumerate(sizes):
        codes = rng.integers(size - (c in between), size=n)
        block = np.eye(size)[codes]
        if c in between:
            share = rng.random((n, 1))
            block = (1 - share) * block + share * np.eye(size)[codes + 1]
        blocks.append(block)
    return np.hstack(blocks) / math.sqrt(len(sizes))


# --- sensitivity -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sizes", [[6, 6], [9, 7, 8], [3, 2, 4, 3], [40, 20, 5, 5, 2]], ids=lambda sizes: len(sizes)
)
def test_sensitivity(sizes):
    assert_sensitivity(TablesMechanism(sizes), unit_rows(sizes, np.random.default_rng(0)))


@pytest.mark.parametrize("name", TABLES)
def test_sensitivity_by_level(name):
    sizes, by = TABLES[name]
    rng = np.random.default_rng(0)
    rows = [unit_rows(sizes, rng)]
    for between in ((), range(len(sizes)), [0]):
        rows.append(encoded_rows(sizes, rng, 20, between))
    assert_sensitivity(TablesMechanism(sizes, by), np.vstack(rows))


def assert_sensitivity(mechanism, rows):
    """Bounds hold and are reached."""
    vectors = np.stack([vector(mechanism, row) for row in rows])
    assert (vectors >= 0).all()
    norms = np.linalg.norm(vectors, axis=1)
    assert 0.9999 < norms.max() <= mechanism.sensitivity("zero_out") == 1
    apart = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    assert 0.9999 * math.sqrt(2) < apart.max() <= mechanism.sensitivity("replace_one")
    assert mechanism.sensitivity("replace_one") == math.sqrt(2)


@pytest.mark.parametrize("name", TABLES)
def test_sensitivity_against_an_adversary(name):
    """Rows that climb to where they change most, from random ones; and pairs of them."""
    sizes, by = TABLES[name]
    mechanism, rng = TablesMechanism(sizes, by), np.random.default_rng(1)
    rows = rng.random((2, sum(sizes))) - 0.2
    best = {"zero_out": 0.0, "replace_one": 0.0}
    for step in range(400):
        tried = rows + rng.normal(size=rows.shape) * (rng.random(rows.shape) < 0.3) * 0.5
        tried /= np.linalg.norm(tried, axis=1, keepdims=True)
        one, other = (vector(mechanism, row) for row in tried)
        change = {
            "zero_out": np.linalg.norm(one),
            "replace_one": np.linalg.norm(one - other),
        }
        for relation, norm in change.items():
            assert norm <= mechanism.sensitivity(relation)
        relation = list(best)[step >= 200]
        if change[relation] > best[relation]:
            best[relation], rows = change[relation], tried
    assert min(best.values()) > 0.5


@pytest.mark.parametrize("name", TABLES)
def test_an_absent_record_adds_nothing(name):
    sizes, by = TABLES[name]
    rows = encoded_rows(sizes, np.random.default_rng(0), 5)
    released = release(TablesMechanism(sizes, by), Blocks(rows, absent=True))
    assert not released.cells.any()
    assert not released.columns.any()


@pytest.mark.parametrize(
    ("sizes", "squared"),
    [
        ([7], 1),
        ([10, 10], 0.6),
        ([5, 5, 5], 0.4),
        ([2, 100], 0.96),
        ([2, 2, 2, 2], 0),
        ([16, 9, 12, 7, 15, 2], 1),
        ([1, 1], 0),
    ],
)
def test_weight_of_one_way_tables(sizes, squared):
    """It has the least product of variances: of two-way cells, and of the worst one-way table."""
    assert one_way_weight(sizes) ** 2 == pytest.approx(squared)
    m, candidates = len(sizes), np.linspace(0, 1, 1001)[1:]
    # Row sums of a table have the noise of all of its cells in the row.
    precisions = [[1 / (0.5 * L) for j, L in enumerate(sizes) if j != i] for i in range(m)]
    products = [
        (m - 1 + w2) * max((m - 1 + w2) / (w2 + sum(others)) for others in precisions)
        for w2 in candidates
    ]
    if m > 1:
        assert candidates[np.argmin(products)] == pytest.approx(squared, abs=0.0015)


# --- noise ---------------------------------------------------------------------------------------


def assert_variance(values, std):
    values = np.ravel(values) / std
    low, high = stats.chi2(values.size).ppf([1e-5, 1 - 1e-5])
    assert low < (values**2).sum() < high
    assert high / low < 2  # else no factor of √2 would show


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize("multiplier", [0.01, 5.0, 1e6])
@pytest.mark.parametrize(
    ("name", "records"),
    # w² is 3 - 1 - 2·(2/8 + 2/9), cut off at 1; and 2 - 1 - 2·2/5.
    [("all records", 3), ("by level", math.sqrt(2 * 1.2)), ("by level, of two columns", 1)],
)
def test_noise(name, records, multiplier, relation):
    sizes, by = TABLES[name]
    mechanism, empty = TablesMechanism(sizes, by), Blocks(np.zeros((1, sum(sizes))))
    releases = [release(mechanism, empty, multiplier, relation, seed) for seed in range(200)]
    std = multiplier * records * mechanism.sensitivity(relation)
    if releases[0].cells.size:
        assert_variance([released.cells for released in releases], std / math.sqrt(2))
    assert_variance([released.columns for released in releases], std)
    stated = releases[0].pairs_std, releases[0].columns_std
    assert stated == pytest.approx((std / math.sqrt(2), std))


# --- sums ----------------------------------------------------------------------------------------


def expected_tables(sizes, rows, by=None):
    """What NumPy makes of rows, a level at a time: the tables of all pairs, and of columns."""
    blocks = np.split(rows * math.sqrt(len(sizes)), np.cumsum(sizes)[:-1], axis=1)
    shares = [np.ones(len(rows))] if by is None else blocks.pop(by).T
    for share in shares:
        pairs = {
            (c, d): (share[:, None] * blocks[c]).T @ blocks[d]
            for d in range(len(blocks))
            for c in range(d)
        }
        yield pairs, [(share[:, None] * block).sum(axis=0) for block in blocks]


@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_tables_are_those_of_the_records(name, is_wide, monkeypatch):
    monkeypatch.setattr(_tables, "_WIDE", 0 if is_wide else math.inf)
    sizes, by = TABLES[name]
    rows = encoded_rows(sizes, np.random.default_rng(0), 300, between=range(1, len(sizes)))
    mechanism = TablesMechanism(sizes, by)
    released = release(mechanism, Blocks(rows[:200], rows[200:]))
    assert released.sizes == mechanism.sizes
    assert released.weight == mechanism.weight == one_way_weight(mechanism.sizes)
    lead = () if by is None else (sizes[by],)
    assert released.cells.shape == (*lead, count_cells(mechanism.sizes))
    assert released.columns.shape == (*lead, sum(mechanism.sizes))
    matrix = released.to_matrix()
    assert (matrix == matrix.swapaxes(-1, -2)).all()
    ends = np.cumsum([0, *mechanism.sizes])
    for g, (pairs, columns) in enumerate(expected_tables(sizes, rows, by)):
        at = () if by is None else (g,)
        for (c, d), pair in pairs.items():
            assert released.pair(c, d)[at] == pytest.approx(pair, abs=0.01)
            square = matrix[(*at, slice(*ends[c : c + 2]), slice(*ends[d : d + 2]))]
            assert (square == released.pair(c, d)[at]).all()
        one_way = mechanism.weight * np.concatenate(columns)
        assert released.columns[at] == pytest.approx(one_way, abs=0.01)


def test_tables_by_level_add_up_to_those_of_all_records():
    sizes, rng = [4, 5, 3], np.random.default_rng(0)
    rows = encoded_rows(sizes, rng, 400, between=[1, 2])
    whole = release(TablesMechanism(sizes), Blocks(rows))
    parts = release(TablesMechanism(sizes, 1), Blocks(rows))
    assert parts.sizes == (4, 3)
    assert parts.by == slice(4, 9)
    assert parts.pair(0, 1).sum(axis=0) == pytest.approx(whole.pair(0, 2), abs=0.02)
    assert parts.of_part(2).pair(0, 1) == pytest.approx(parts.pair(0, 1)[2])


@pytest.mark.parametrize("multiplier", [0.0, 2.0])
@pytest.mark.parametrize("name", TABLES)
def test_sums_depend_neither_on_order_nor_on_blocks_nor_on_how_they_are_made(
    name, multiplier, monkeypatch
):
    sizes, by = TABLES[name]
    mechanism, rng = TablesMechanism(sizes, by), np.random.default_rng(0)
    rows = np.vstack([encoded_rows(sizes, rng, 200, [0]), unit_rows(sizes, rng)])
    rng.shuffle(rows)
    expected = release(mechanism, Blocks(rows), multiplier)
    for wide, cuts in ((math.inf, [1, 2, 80]), (0, []), (0, [33, 66, 99])):
        monkeypatch.setattr(_tables, "_WIDE", wide)
        rng.shuffle(rows)
        found = release(mechanism, Blocks(*np.split(rows, cuts)), multiplier)
        assert (found.cells == expected.cells).all()
        assert (found.columns == expected.columns).all()


def test_chunks_give_the_sums_of_rows_in_memory():
    sizes, made = [300, 500], []
    codes = np.random.default_rng(0).random((12_000, 2)) * sizes

    def encode(codes, y):
        blocks = [np.eye(size)[c.astype(int)] for size, c in zip(sizes, codes.T, strict=True)]
        return np.hstack(blocks) / math.sqrt(2)

    for X in (codes, lambda: iter(np.split(codes, [1, 5000, 5300]))):
        plan = Plan(((TablesMechanism.name, gaussian_event(1.0)),), 10.0, 1e-5)
        with Curator(X, plan=plan, noise=NoiseSource(0), prepare=RecordFunction(encode)) as curator:
            made.append(curator.release(TablesMechanism(sizes)))
    assert (made[0].cells == made[1].cells).all()
    assert (made[0].columns == made[1].columns).all()


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(("sizes", "by"), [([2, 3], -1), ([2, 3], 2), ([3], 0)])
def test_columns_that_are_not_one_of_several(sizes, by):
    with pytest.raises(ValueError, match="one of several columns"):
        TablesMechanism(sizes, by)
