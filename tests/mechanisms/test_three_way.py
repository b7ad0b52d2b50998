"""Tables of three columns: sensitivities, noise, exact sums."""

import itertools
import math

import numpy as np
import pytest
import torch
from dp_accounting import PoissonSampledDpEvent

from skdpgen.accounting.events import gaussian_event
from skdpgen.mechanisms.three_way import ThreeWayTables
from skdpgen.privacy import PlanError, ThreeWayMechanism

from .test_tables import Blocks, any_places, encoded, encoded_places, release

SIZES = [3, 2, 4, 3]
TRIPLES = [(0, 1, 2), (0, 2, 3), (1, 2, 3)]
# Levels as they are; joined in two groups; signs of two groups.
WHOLE = [torch.eye(size).double() for size in SIZES]
GROUPS = [torch.eye(2).double()[[0] + [1] * (size - 1)] for size in SIZES]
SIGNS = [groups @ torch.tensor([[-1.0], [1.0]]).double() for groups in GROUPS]
MAPS = {
    "levels": WHOLE,
    "groups": GROUPS,
    "signs": SIGNS,
    # One column alone has a negative number: the first one, or the last one.
    "signs first": [SIGNS[0], *WHOLE[1:]],
    "signs last": [*GROUPS[:3], SIGNS[3]],
}


def vector(mechanism, row):
    """A release as the vector whose norm the sensitivity bounds."""
    released = release(mechanism, Blocks(row[None]))
    parts = np.concatenate([cells.ravel() for cells in released.cells])
    return parts / math.sqrt(len(mechanism.triples))


@pytest.mark.parametrize("maps", MAPS)
def test_sensitivity(maps):
    mechanism = ThreeWayMechanism("three", MAPS[maps], TRIPLES)
    rows = any_places(SIZES, np.random.default_rng(0))
    rows = np.vstack([rows, encoded_places(SIZES, np.random.default_rng(1), 40, between=[2])])
    vectors = np.array([vector(mechanism, row) for row in rows])
    norms = np.linalg.norm(vectors, axis=1)
    # Of what encoders make: just 1, so that no noise is wasted.
    assert 0.999 < norms.max() <= mechanism.sensitivity("zero_out") == 1
    apart = max(np.linalg.norm(a - b) for a, b in itertools.combinations(vectors, 2))
    bound = mechanism.sensitivity("replace_one")
    assert bound == (2 if "signs" in maps else math.sqrt(2))
    # Where some products have no sign, they are further apart than without signs, and less than 2.
    reached = math.sqrt(2) if maps.startswith("signs ") else 0.999 * bound
    assert reached < apart <= bound


@pytest.mark.parametrize("maps", MAPS)
def test_what_is_released_without_noise(maps):
    rows = encoded_places(SIZES, np.random.default_rng(0), 300, between=[2])
    mechanism = ThreeWayMechanism("three", MAPS[maps], TRIPLES)
    released = release(mechanism, Blocks(rows[:100], rows[100:130], rows[130:]))
    blocks = zip(encoded(rows, SIZES), MAPS[maps], strict=True)
    joined = [block @ groups.numpy() for block, groups in blocks]
    for triple, cells in zip(TRIPLES, released.cells, strict=True):
        expected = np.einsum("ni,nj,nk->ijk", *(joined[c] for c in triple))
        assert cells.shape == expected.shape
        assert cells == pytest.approx(expected, abs=0.05)
    assert released.std == 0
    # In any order, and in any pieces, to the bit.
    again = release(mechanism, Blocks(rows[::-1].copy()))
    for cells, other in zip(released.cells, again.cells, strict=True):
        assert (cells == other).all()
    absent = release(mechanism, Blocks(rows, absent=True))
    assert all((cells == 0).all() for cells in absent.cells)


def test_noise_is_that_of_all_tables_together():
    rows = encoded_places(SIZES, np.random.default_rng(0), 50)
    mechanism = ThreeWayMechanism("three", WHOLE, TRIPLES)
    exact = np.concatenate([cells.ravel() for cells in release(mechanism, Blocks(rows)).cells])
    for relation, apart in (("zero_out", 1), ("replace_one", math.sqrt(2))):
        noisy = [release(mechanism, Blocks(rows), 5.0, relation, seed) for seed in range(20)]
        found = [np.concatenate([cells.ravel() for cells in tables.cells]) for tables in noisy]
        assert noisy[0].std == pytest.approx(5 * math.sqrt(3) * apart)
        assert np.std(found - exact) == pytest.approx(noisy[0].std, rel=0.06)


@pytest.mark.parametrize("triples", [[], [(0, 1, 1)], [(0, 1, 2), (3, 3, 3)]])
def test_triples_that_are_none(triples):
    with pytest.raises(ValueError, match="three different columns"):
        ThreeWayMechanism("three", WHOLE, triples)


@pytest.mark.parametrize("wrong", [2.0, -2.0])
def test_maps_that_would_move_sums_further(wrong):
    maps = [*WHOLE[:3], wrong * WHOLE[3]]
    with pytest.raises(ValueError, match="one 1 or -1"):
        ThreeWayMechanism("three", maps, TRIPLES)


def test_what_rules_leave_out_is_zero():
    """A group is left out where all of its levels are."""
    impossible = np.zeros((12, 12), dtype=bool)
    # The first level of the first column, with the first and the second one of the third.
    for level in (5, 6):
        impossible[0, level] = impossible[level, 0] = True
    cells = tuple(np.ones([MAPS["levels"][c].shape[1] for c in triple]) for triple in TRIPLES)
    found = ThreeWayTables(tuple(WHOLE), tuple(TRIPLES), cells, 1.0).without_impossible(impossible)
    assert (found.cells[0][0, :, :2] == 0).all()
    assert (found.cells[1][0, :2] == 0).all()
    assert [int((table == 0).sum()) for table in found.cells] == [4, 6, 0]
    # Joined, the first group of the third column is its first level, and its second is not all.
    joined = tuple(np.ones((2, 2, 2)) for _ in TRIPLES)
    tables = ThreeWayTables(tuple(GROUPS), tuple(TRIPLES), joined, 1.0)
    found = tables.without_impossible(impossible)
    assert (found.cells[0][0, :, 0] == 0).all()
    assert [int((table == 0).sum()) for table in found.cells] == [2, 2, 0]


def test_the_event_is_a_plain_one():
    mechanism = ThreeWayMechanism("three", WHOLE, TRIPLES)
    mechanism.check(gaussian_event(2.0))
    with pytest.raises(PlanError):
        mechanism.check(PoissonSampledDpEvent(0.1, gaussian_event(2.0)))
