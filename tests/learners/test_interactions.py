"""Three-way tables of columns that pairs do not explain."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from skdpgen import (
    Boolean,
    Category,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    Number,
    Schema,
)
from skdpgen.learners.interactions import count_groups, find_triples, join_levels, with_pairs_of
from skdpgen.learners.tables import three_way_gap
from skdpgen.mechanisms.three_way import ThreeWayTables
from skdpgen.privacy import preview

from .test_levels import random_tables

BITS = Schema({name: Boolean() for name in "abcd"})
ALL_TABLES = ("two-way tables", "interactions", "three-way tables")


def make_bits(n=3000, seed=0, is_parity=True):
    bits = np.random.default_rng(seed).random((n, 4)) < 0.5
    if is_parity:
        bits[:, 3] = bits[:, 0] ^ bits[:, 2]
    return pd.DataFrame(bits, columns=list("abcd"))


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        (DPSWFlowSampler, {"n_particles": 500, "n_steps": 400}),
        (DPSlicedWassersteinGenerator, {"batch_size": 500, "n_steps": 150}),
    ],
)
def test_what_no_pair_shows_is_learnt(kind, sizes):
    """All pairs of columns are independent, and no column is the target."""
    generator = kind(epsilon=10.0, schema=BITS, random_state=0, **sizes)
    made = generator.fit(make_bits()).sample(2000)
    assert ((made["a"] ^ made["c"]) == made["d"]).mean() > 0.75
    assert ((made["a"] ^ made["b"]) == made["d"]).mean() == pytest.approx(0.5, abs=0.06)
    assert np.abs(made.corr().to_numpy() - np.eye(4)).max() < 0.1


def test_what_is_spent_does_not_follow_from_the_rows():
    generators = [
        DPSWFlowSampler(epsilon=5.0, schema=BITS, random_state=0, n_steps=50).fit(
            make_bits(is_parity=is_parity)
        )
        for is_parity in (True, False)
    ]
    # Nothing stands out in the second table, and training does not go on.
    assert len(generators[0].loss_curve_) > len(generators[1].loss_curve_)
    for generator in generators:
        assert generator.privacy_.releases == ALL_TABLES
    assert generators[0].epsilon_ == generators[1].epsilon_


@pytest.mark.parametrize(
    ("schema", "target", "n", "seeks"),
    [
        (BITS, None, 3000, True),
        (BITS, "d", 3000, False),  # told apart by it
        (BITS, None, 40, False),  # all would be noise
        (Schema({name: Boolean() for name in "ab"}), None, 3000, False),
        (Schema({f"c{i}": Boolean() for i in range(50)}), None, 20_000, False),  # too many
        (Schema({**BITS, "d": Category(list("vwxyz"))}), "d", 3000, True),
        (Schema({**BITS, "d": Category()}), "d", 3000, False),  # may have few levels
        (Schema({**BITS, "d": Number(0, 1)}), "d", 3000, True),
    ],
)
def test_where_triples_are_sought(schema, target, n, seeks):
    generator = DPSlicedWassersteinGenerator(epsilon=3.0, schema=schema)
    table = pd.DataFrame({name: [True, False] for name in schema})
    if isinstance(schema["a"] if "a" in schema else None, Boolean) and "d" in schema:
        table["d"] = {Category: ["v", "w"], Number: [0.0, 1.0]}.get(
            type(schema["d"]), [True, False]
        )
    table = pd.concat([table] * (n // 2), ignore_index=True)
    assert set(ALL_TABLES[1:] if seeks else ()) == set(
        preview(generator, table, target=target).releases
    ) & set(ALL_TABLES[1:])


def test_levels_are_joined_by_how_frequent_they_are():
    counts = np.array([10, 10, 60, 10, 10, 50, 0, 50, 5, 5, 7, -3, 9.0])
    sizes, is_ordered = [5, 3, 2, 1, 2], [True, False, False, False, True]
    public = np.random.default_rng(0)
    joined = [groups.numpy() for groups in join_levels(counts, sizes, 2, is_ordered, public)]
    assert [groups.shape for groups in joined] == [(5, 2), (3, 2), (2, 2), (1, 1), (2, 2)]
    for groups in joined:
        assert (groups.sum(axis=1) == 1).all()
        assert (groups.sum(axis=0) > 0).all()
    # At the median, in the order of levels.
    assert joined[0].argmax(axis=1).tolist() in ([0, 0, 0, 1, 1], [0, 0, 1, 1, 1])
    assert (joined[2] == np.eye(2)).all()
    # Levels at the end that no record has are in the last group.
    assert join_levels(np.array([1e18, 0, 0, 0]), [4], 2, [True], public)[0][:, 1].sum() == 3
    fine = join_levels(np.full(12, 5.0), [12], 4, [True], public)[0]
    assert fine.argmax(1).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_groups_are_fewer_where_there_is_more_noise():
    assert count_groups(1000, 0.0) == 10
    assert count_groups(8 * 27 * 10, 10.0) == 3
    assert count_groups(100, 1e6) == 2


def interactions_of(gaps, std=1.0):
    signs = (torch.tensor([[-1.0], [1.0]]).double(),) * 4
    triples = ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3))
    return ThreeWayTables(signs, triples, tuple(np.full((1, 1, 1), gap) for gap in gaps), std)


def test_triples_that_stand_out_are_found():
    made = torch.full((1000, 8), 0.5).double()  # all interactions are 0

    def find(gaps, std=1.0, of_interactions=1.0, n_records=10_000):
        interactions = interactions_of(gaps, of_interactions)
        return find_triples(interactions, [2] * 4, made, n_records, std)

    assert find([0, -9000, 0, 5000]) == [(0, 1, 3), (1, 2, 3)]
    assert find([10, 20, -30, 5]) == []
    # One that is much, but may be chance or noise; or less than a table would show.
    assert find([3000, 0, 0, 0]) == [(0, 1, 2)]
    assert find([3000, 0, 0, 0], of_interactions=800) == []
    assert find([3000, 0, 0, 0], std=400) == []
    assert find([9000, 8000, 7000, 6000], std=700) == [(0, 1, 2), (0, 1, 3)]
    # One that pairs explain.
    made[:, 1::2], made[:, ::2] = 1, 0
    assert find([10_000] * 4) == []


def test_pairs_of_rows_take_the_place_of_released_ones():
    tables, rng = random_tables([2, 3, 2]), np.random.default_rng(0)
    made = torch.tensor(rng.random((50, 7)))
    found = with_pairs_of(made, tables, 200.0)
    expected = 200 * (made[:, 2:5].T @ made[:, 5:]).numpy() / 50
    assert found.pair(1, 2) == pytest.approx(expected)
    assert found.pairs_std == 0
    assert (found.columns == tables.columns).all()


def test_the_gap_of_a_three_way_table():
    rng = np.random.default_rng(0)
    rows = torch.tensor(rng.random((40, 5)))
    joined = [(slice(0, 2), torch.eye(2).double())] + [
        (slice(start, start + 1), torch.tensor([[sign]]).double())
        for start, sign in ((2, 1), (4, -1))
    ]
    table = torch.tensor(rng.random((2, 1, 1)))
    expected = [
        -(rows[:, level] * rows[:, 2] * rows[:, 4]).mean() - table[level, 0, 0] for level in (0, 1)
    ]
    found = three_way_gap(rows, rows, joined, table)
    assert found.item() == pytest.approx(sum(gap.item() ** 2 for gap in expected))
    assert math.isfinite(found)
