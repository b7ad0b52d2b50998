"""Two-way tables, of all records and of groups of them: sensitivities, noise, exact sums."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from skdpgen.accounting.events import gaussian_event
from skdpgen.mechanisms import two_way as _tables
from skdpgen.mechanisms.codes import HatBasis
from skdpgen.mechanisms.two_way import Tables, count_cells, one_way_weight
from skdpgen.privacy import (
    Curator,
    GaussianSumMechanism,
    NoiseSource,
    Plan,
    PlanError,
    RecordFunction,
    TablesMechanism,
)

from .common import UNIT, Blocks, assert_variance

# Columns, and that by which records are told apart.
TABLES = {
    "all records": ([9, 7, 8], None),
    "by level": ([3, 4, 5], 1),
    "by level, of two columns": ([2, 6], 0),
    "by level, of four columns": ([3, 2, 2, 2], 0),
    "by level, at the end": ([6, 5, 2], 2),
    "one column": ([7], None),
}


def release(mechanism, source, multiplier=0.0, relation="zero_out", seed=0):
    event = gaussian_event(multiplier)
    return mechanism.run(source, event, relation=relation, noise=NoiseSource(seed))


def vector(mechanism, *rows):
    """A release as the vector whose norm the sensitivity bounds."""
    released = release(mechanism, Blocks(*(row[None] for row in rows)))
    parts = [math.sqrt(2) * released.cells, released.columns]
    return np.concatenate(parts, axis=-1).ravel() / mechanism.records


def any_places(sizes, rng, n=100):
    """Places that a mechanism may get: at levels, between them, and far outside of columns."""
    places = rng.random((n, len(sizes))) * (np.array(sizes) - 1)
    is_whole = rng.random(places.shape) < rng.random((n, 1))
    places[is_whole] = np.rint(places[is_whole])
    places[:3] = [[0], [1], [-1]]
    places[3] = 1e300
    places[4:9] = rng.normal(size=(5, len(sizes))) * 10
    return places


def encoded(places, sizes):
    """Weights of levels by their definition: hat functions, at places that are clamped."""
    blocks = []
    for place, size in zip(places.T, sizes, strict=True):
        apart = np.abs(np.clip(place, 0, size - 1)[:, None] - np.arange(size))
        blocks.append(np.maximum(1 - apart, 0))
    return blocks


def encoded_places(sizes, rng, n, between=()):
    """Places as encoders make them: at a level of each column, or between two of some."""
    columns = [
        rng.random(n) * (size - 1) if c in between else rng.integers(size, size=n)
        for c, size in enumerate(sizes)
    ]
    return np.column_stack(columns).astype(float)


# --- sensitivity -------------------------------------------------------------------------------


@pytest.mark.catches(
    "mechanisms.two_way:TablesMechanism",
    '{"zero_out": 1.0, "replace_one": math.sqrt(2)}',
    '{"zero_out": 1.0, "replace_one": 1.0}',
)
@pytest.mark.catches(
    "mechanisms.two_way:TablesMechanism.records", "m * (m - 1 + self.weight**2)", "m * (m - 1) or 1"
)
@pytest.mark.catches(
    "mechanisms.two_way:TablesMechanism._add_products", "half / math.sqrt(self.records)", "half"
)
@pytest.mark.catches(
    "mechanisms.two_way:TablesMechanism.find_one_way", "2 * self.records", "self.records"
)
@pytest.mark.catches(
    "mechanisms.codes:HatBasis.__init__",
    """
    codes = codes.clamp(min=0).minimum(last)
    floor = codes.floor()
    """,
    """
    codes = codes.minimum(last)
    floor = codes.clamp(min=0).floor()
    """,
)
@pytest.mark.parametrize(
    "sizes", [[6, 6], [9, 7, 8], [3, 2, 4, 3], [40, 20, 5, 5, 2]], ids=lambda sizes: len(sizes)
)
def test_sensitivity(sizes):
    assert_sensitivity(TablesMechanism(sizes), any_places(sizes, np.random.default_rng(0)))


@pytest.mark.catches(
    "mechanisms.two_way:TablesMechanism._add_products",
    "to_integers(basis, share[has, None])",
    "to_integers(basis)",
)
@pytest.mark.parametrize("name", TABLES)
def test_sensitivity_by_level(name):
    sizes, by = TABLES[name]
    assert_sensitivity(TablesMechanism(sizes, by), any_places(sizes, np.random.default_rng(0)))


def assert_sensitivity(mechanism, places):
    """Bounds hold and are reached."""
    vectors = np.stack([vector(mechanism, place) for place in places])
    assert (vectors >= 0).all()
    norms = np.linalg.norm(vectors, axis=1)
    assert 0.9999 < norms.max() <= mechanism.sensitivity("zero_out") == 1
    apart = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    assert 0.9999 * math.sqrt(2) < apart.max() <= mechanism.sensitivity("replace_one")
    assert mechanism.sensitivity("replace_one") == math.sqrt(2)


@pytest.mark.parametrize("sizes", [[5], [2, 1, 7]])
def test_weights_are_hat_functions_at_clamped_places(sizes):
    places = any_places(sizes, np.random.default_rng(2))
    hats, expected = HatBasis(torch.tensor(places), sizes), encoded(places, sizes)
    assert hats.to_dense() == pytest.approx(np.hstack(expected), abs=1e-12)
    for c, block in enumerate(expected):
        weights = [hats.weight_of(c, level) for level in range(sizes[c])]
        assert torch.stack(weights, 1) == pytest.approx(block, abs=1e-12)
        groups = torch.randn(sizes[c], 2, generator=torch.Generator().manual_seed(0)).double()
        assert hats.join(c, groups) == pytest.approx(block @ groups.numpy(), abs=1e-12)
    thin = hats.to_sparse(lambda weights: weights * 1000).toarray()
    assert thin.dtype == np.int64
    assert (thin == hats.to_dense(lambda weights: (weights * 1000).floor()).numpy()).all()


@pytest.mark.catches(
    "mechanisms.two_way:TablesMechanism._add_products", "codes[membership.sum(1) > 0]", "codes"
)
@pytest.mark.parametrize("name", TABLES)
def test_an_absent_record_adds_nothing(name):
    sizes, by = TABLES[name]
    places = encoded_places(sizes, np.random.default_rng(0), 5)
    released = release(TablesMechanism(sizes, by), Blocks(places, absent=True))
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


@pytest.mark.catches(
    "mechanisms.two_way:TablesMechanism.records", "len(self.sizes)", "len(self.all_sizes)"
)
@pytest.mark.catches(
    "mechanisms.two_way:TablesMechanism", "divisor = math.sqrt(2)", "divisor = 2.0"
)
@pytest.mark.parametrize(
    ("multiplier", "relation"), [(5.0, "zero_out"), (5.0, "replace_one"), (0.01, "zero_out")]
)
@pytest.mark.parametrize(
    ("name", "records"),
    # w² is 3 - 1 - 2·(2/8 + 2/9), cut off at 1; and 2 - 1 - 2·2/5.
    [("all records", 3), ("by level", math.sqrt(2 * 1.2)), ("by level, of two columns", 1)],
)
def test_noise(name, records, multiplier, relation):
    sizes, by = TABLES[name]
    mechanism, empty = TablesMechanism(sizes, by), Blocks(np.zeros((1, len(sizes))), absent=True)
    releases = [release(mechanism, empty, multiplier, relation, seed) for seed in range(200)]
    std = multiplier * UNIT[relation] * records * mechanism.sensitivity(relation)
    if releases[0].cells.size:
        assert_variance([released.cells for released in releases], std / math.sqrt(2))
    assert_variance([released.columns for released in releases], std)
    stated = releases[0].pairs_std, releases[0].columns_std
    assert stated == pytest.approx((std / math.sqrt(2), std))


# --- sums ----------------------------------------------------------------------------------------


def expected_tables(sizes, places, by=None):
    """Compute by NumPy, a level at a time, the tables of all pairs, and of columns."""
    blocks = encoded(places, sizes)
    shares = [np.ones(len(places))] if by is None else blocks.pop(by).T
    for share in shares:
        pairs = {
            (c, d): (share[:, None] * blocks[c]).T @ blocks[d]
            for d in range(len(blocks))
            for c in range(d)
        }
        yield pairs, [(share[:, None] * block).sum(axis=0) for block in blocks]


def set_max_dense(monkeypatch, max_dense):
    monkeypatch.setattr(_tables, "CONSTANTS", replace(_tables.CONSTANTS, max_dense=max_dense))


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_tables_are_those_of_the_records(name, is_sparse, monkeypatch):
    set_max_dense(monkeypatch, 0 if is_sparse else math.inf)
    sizes, by = TABLES[name]
    rows = encoded_places(sizes, np.random.default_rng(0), 300, between=range(1, len(sizes)))
    mechanism = TablesMechanism(sizes, by)
    released = release(mechanism, Blocks(rows[:200], rows[200:]))
    assert released.sizes == mechanism.sizes
    assert released.weight == mechanism.weight == one_way_weight(mechanism.sizes)
    lead = () if by is None else (sizes[by],)
    assert released.cells.shape == (*lead, count_cells(mechanism.sizes))
    assert released.columns.shape == (*lead, sum(mechanism.sizes))
    for g, (pairs, columns) in enumerate(expected_tables(sizes, rows, by)):
        at = () if by is None else (g,)
        for (c, d), pair in pairs.items():
            assert released.pair(c, d)[at] == pytest.approx(pair, abs=0.01)
        one_way = mechanism.weight * np.concatenate(columns)
        assert released.columns[at] == pytest.approx(one_way, abs=0.01)


def test_tables_by_level_add_up_to_those_of_all_records():
    sizes, rng = [4, 5, 3], np.random.default_rng(0)
    rows = encoded_places(sizes, rng, 400, between=[1, 2])
    whole = release(TablesMechanism(sizes), Blocks(rows))
    parts = release(TablesMechanism(sizes, 1), Blocks(rows))
    assert parts.sizes == (4, 3)
    assert parts.by == slice(4, 9)
    assert parts.pair(0, 1).sum(axis=0) == pytest.approx(whole.pair(0, 2), abs=0.02)
    assert parts.stratum(2).pair(0, 1) == pytest.approx(parts.pair(0, 1)[2])


@pytest.mark.parametrize("sizes", [(7,), (2, 2), (12, 5), (16, 2, 9, 17, 3)])
def test_records_are_counted_with_the_least_noise_of_all_tables(sizes):
    """The noise of the estimate, from its coefficients, is that of weights by precision."""
    n_cells, n_levels, weight = count_cells(sizes), sum(sizes), one_way_weight(sizes)
    # Each number of the release is 1 in one stratum, and 0 in all others.
    cells, columns = np.split(np.eye(n_cells + n_levels), [n_cells], axis=1)
    tables = Tables(sizes, cells, columns, weight, 3.0, 3.0 * math.sqrt(2))
    coefficients, std = tables.count_records()
    stds = np.repeat([3.0, 3.0 * math.sqrt(2)], [n_cells, n_levels])
    assert np.sqrt(np.square(coefficients * stds).sum()) == pytest.approx(std)
    # The variance of the sum of a table is that of a cell, times their number.
    variances = [9.0 * c * d for c, d in itertools.combinations(sizes, 2)]
    variances += [18.0 * c / weight**2 for c in sizes if weight]
    assert std == pytest.approx(sum(1 / variance for variance in variances) ** -0.5)
    assert std <= 1.000001 * min(variances) ** 0.5
    # Without bias: all records are in each table.
    of_records = [1.0 / math.prod(pair) for pair in itertools.combinations(sizes, 2)]
    exact = Tables(
        sizes, np.zeros(n_cells), np.repeat(weight / np.array(sizes), sizes), weight, 1, 1
    )
    for share, (c, d) in zip(of_records, itertools.combinations(range(len(sizes)), 2), strict=True):
        exact.pair(c, d)[:] = share
    assert exact.count_records()[0] == pytest.approx(1.0)


def test_the_count_of_records_does_not_lack_those_that_break_a_rule():
    sizes, rng = [2, 3, 4], np.random.default_rng(0)
    rows = encoded_places(sizes, rng, 300)
    impossible = np.zeros((9, 9), dtype=bool)
    impossible[2, 5:8] = impossible[5:8, 2] = True
    for by in (None, 0):
        released = release(TablesMechanism(sizes, by), Blocks(rows))
        found = released.without_impossible(impossible)
        assert found.cells.sum() < 0.95 * released.cells.sum()
        assert np.sum(found.count_records()[0]) == pytest.approx(300, abs=0.1)
        if by is not None:
            assert found.stratum(1).count_records()[0] == found.count_records()[0][1]


@pytest.mark.parametrize("multiplier", [0.0, 2.0])
@pytest.mark.parametrize("name", TABLES)
def test_sums_depend_neither_on_order_nor_on_blocks_nor_on_how_they_are_made(
    name, multiplier, monkeypatch
):
    sizes, by = TABLES[name]
    mechanism, rng = TablesMechanism(sizes, by), np.random.default_rng(0)
    rows = np.vstack([encoded_places(sizes, rng, 200, [0]), any_places(sizes, rng)])
    rng.shuffle(rows)
    expected = release(mechanism, Blocks(rows), multiplier)
    for max_dense, cuts in ((math.inf, [1, 2, 80]), (0, []), (0, [33, 66, 99])):
        set_max_dense(monkeypatch, max_dense)
        rng.shuffle(rows)
        found = release(mechanism, Blocks(*np.split(rows, cuts)), multiplier)
        assert (found.cells == expected.cells).all()
        assert (found.columns == expected.columns).all()


@pytest.mark.catches(
    "curator.batches:RecordSource.encode_cells_by",
    "rows.masked_fill(~is_finite[:, None], torch.nan)",
    "rows",
)
def test_chunks_give_the_sums_of_rows_in_memory():
    sizes, made = [300, 500], []
    codes = np.random.default_rng(0).random((12_000, 2)) * sizes
    codes[7] = np.nan

    for X in (codes, lambda: iter(np.split(codes, [1, 5000, 5300]))):
        plan = Plan(((TablesMechanism.name, gaussian_event(1.0)),), 10.0, 1e-5)
        with Curator(X, plan=plan, noise=NoiseSource(0)) as curator:
            curator.encode_cells_by(RecordFunction(lambda rows, y: rows - 1))
            made.append(curator.release(TablesMechanism(sizes)))
    assert (made[0].cells == made[1].cells).all()
    assert (made[0].columns == made[1].columns).all()


@pytest.mark.catches("curator.batches:RecordSource.codes", "self._clip_norm is not None", "False")
def test_codes_and_rows_of_the_unit_ball_are_not_taken_for_each_other():
    names, event = (TablesMechanism.name, "Gaussian sum"), gaussian_event(1.0)
    plan = Plan(tuple((name, event) for name in names), 10.0, 1e-5)
    curator = Curator(np.ones((9, 2)), plan=plan, noise=NoiseSource(0))
    with pytest.raises(PlanError, match="not encoded as codes"):
        curator.release(TablesMechanism([3, 4]))
    curator.encode_cells_by(RecordFunction(lambda rows, y: rows))
    with pytest.raises(PlanError, match="in no ball"):
        curator.release(GaussianSumMechanism(RecordFunction(lambda rows: rows), 1.0))
    with pytest.raises(PlanError, match="in no ball"):
        curator._source.take(np.arange(2))


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(("sizes", "by"), [([2, 3], -1), ([2, 3], 2), ([3], 0)])
def test_columns_that_are_not_one_of_several(sizes, by):
    with pytest.raises(ValueError, match="one of several columns"):
        TablesMechanism(sizes, by)
