"""Tables of several columns: sensitivities, noise, exact sums."""

import itertools
import math

import numpy as np
import pytest
import torch
from dp_accounting import PoissonSampledDpEvent

from skdpgen.accounting.events import gaussian_event
from skdpgen.mechanisms.codes import HatBasis, Refinement
from skdpgen.mechanisms.multi_way import MultiWayTables
from skdpgen.privacy import MultiWayMechanism, PlanError

from .common import Blocks
from .test_tables import any_places, encoded, encoded_places, release

SIZES = (3, 2, 4, 3)
NONE = Refinement.none(SIZES)
# Two and three bins between knots, of which a column has all, and another one but the last.
BINS = Refinement(SIZES, (3, 0, 3, 0), (2, 0, 3, 0))
SUBSETS = [(0, 1), (0, 1, 2), (0, 2, 3), (1, 2, 3), (0, 1, 2, 3)]


def make_maps(sizes):
    """Levels as they are; joined in two groups; signs of two groups."""
    whole = [torch.eye(size).double() for size in sizes]
    groups = [torch.eye(2).double()[[0] + [1] * (size - 1)] for size in sizes]
    signs = [group @ torch.tensor([[-1.0], [1.0]]).double() for group in groups]
    return {
        "levels": whole,
        "groups": groups,
        "signs": signs,
        # One column alone has a negative number: the first one, or the last one.
        "signs first": [signs[0], *whole[1:]],
        "signs last": [*groups[:3], signs[3]],
    }


MAPS = make_maps(SIZES)


def make_mechanism(maps, refinement=NONE, subsets=SUBSETS):
    maps = make_maps(refinement.fine_sizes)[maps]
    products = [[(c, maps[c]) for c in subset] for subset in subsets]
    return MultiWayMechanism("subsets", refinement, products)


def vector(mechanism, row):
    """A release as the vector whose norm the sensitivity bounds."""
    released = release(mechanism, Blocks(row[None]))
    parts = np.concatenate([cells.ravel() for cells in released.cells])
    return parts / math.sqrt(len(mechanism.products))


@pytest.mark.catches(
    "mechanisms.multi_way:MultiWayMechanism.sensitivity", "any", "all", param="signs first-levels"
)
@pytest.mark.catches(
    "mechanisms.multi_way:MultiWayMechanism._add_products",
    "divisor = math.sqrt(len(self.products))",
    "divisor = len(self.products) ** 0.25",
    param="levels-levels",
)
@pytest.mark.parametrize("refinement", [NONE, BINS], ids=["levels", "bins"])
@pytest.mark.parametrize("maps", MAPS)
def test_sensitivity(maps, refinement):
    mechanism = make_mechanism(maps, refinement)
    rows = any_places(SIZES, np.random.default_rng(0))
    rows = np.vstack([rows, encoded_places(SIZES, np.random.default_rng(1), 40, between=[2])])
    vectors = np.array([vector(mechanism, row) for row in rows])
    norms = np.linalg.norm(vectors, axis=1)
    # Rows that encoders make have a norm of just 1, so that no noise is wasted.
    assert 0.999 < norms.max() <= mechanism.sensitivity("zero_out") == 1
    apart = max(np.linalg.norm(a - b) for a, b in itertools.combinations(vectors, 2))
    bound = mechanism.sensitivity("replace_one")
    assert bound == (2 if "signs" in maps else math.sqrt(2))
    # Products of different numbers of signs are opposite for some subsets only.
    reached = math.sqrt(2) if "signs" in maps else 0.999 * bound
    assert reached < apart <= bound


@pytest.mark.catches(
    "mechanisms.multi_way:MultiWayMechanism.sensitivity_of",
    "2.0 if is_signed else math.sqrt(2)",
    "math.sqrt(2)",
)
def test_signs_of_one_subset_reach_the_bound():
    mechanism = make_mechanism("signs", subsets=[(0, 1, 2)])
    apart = vector(mechanism, np.zeros(4)) - vector(mechanism, np.array([1.0, 0, 0, 0]))
    assert 1.999 < np.linalg.norm(apart) <= mechanism.sensitivity("replace_one")


@pytest.mark.catches(
    "mechanisms.multi_way:MultiWayMechanism._add_products",
    "self.refinement.refine(codes[membership.sum(1) > 0])",
    "self.refinement.refine(codes)",
    param="levels",
)
@pytest.mark.catches("mechanisms.codes:HatBasis.join", "floor + 1", "floor + 2", param="levels")
@pytest.mark.parametrize("maps", MAPS)
def test_releases_without_noise(maps):
    rows = encoded_places(SIZES, np.random.default_rng(0), 300, between=[2])
    mechanism = make_mechanism(maps)
    released = release(mechanism, Blocks(rows[:100], rows[100:130], rows[130:]))
    blocks = zip(encoded(rows, SIZES), MAPS[maps], strict=True)
    joined = [block @ groups.numpy() for block, groups in blocks]
    for subset, cells in zip(SUBSETS, released.cells, strict=True):
        letters = "ijkl"[: len(subset)]
        expected = np.einsum(
            ",".join(f"n{letter}" for letter in letters) + "->" + letters,
            *(joined[c] for c in subset),
        )
        assert cells.shape == expected.shape
        assert cells == pytest.approx(expected, abs=0.05)
    assert released.std == 0
    # In any order, and in any pieces, to the bit.
    again = release(mechanism, Blocks(rows[::-1].copy()))
    for cells, other in zip(released.cells, again.cells, strict=True):
        assert (cells == other).all()
    absent = release(mechanism, Blocks(rows, absent=True))
    assert all((cells == 0).all() for cells in absent.cells)


@pytest.mark.catches("mechanisms.multi_way:MultiWayMechanism.postprocess", "std * records", "std")
def test_noise_is_that_of_all_tables_together():
    rows = encoded_places(SIZES, np.random.default_rng(0), 50)
    mechanism = make_mechanism("levels", subsets=SUBSETS[1:4])
    exact = np.concatenate([cells.ravel() for cells in release(mechanism, Blocks(rows)).cells])
    for relation, apart in (("zero_out", 1), ("replace_one", math.sqrt(2) / 2)):
        noisy = [release(mechanism, Blocks(rows), 5.0, relation, seed) for seed in range(20)]
        found = [np.concatenate([cells.ravel() for cells in tables.cells]) for tables in noisy]
        assert noisy[0].std == pytest.approx(5 * math.sqrt(3) * apart)
        assert np.std(found - exact) == pytest.approx(noisy[0].std, rel=0.06)


@pytest.mark.parametrize("subsets", [[], [(0, 1, 1)], [(0, 1, 2), (3, 3, 3)], [(0,)]])
def test_subsets_that_are_none(subsets):
    with pytest.raises(ValueError, match="two or more different columns"):
        make_mechanism("levels", subsets=subsets)


@pytest.mark.catches(
    "mechanisms.multi_way:MultiWayMechanism.__init__",
    "groups.abs().sum(1) > 1",
    "groups.sum(1) > 2",
)
@pytest.mark.parametrize("wrong", [2.0, -2.0])
def test_maps_that_would_move_sums_further(wrong):
    maps = [*MAPS["levels"][:3], wrong * MAPS["levels"][3]]
    with pytest.raises(ValueError, match="one 1 or -1"):
        MultiWayMechanism("three", NONE, [[(c, maps[c]) for c in (0, 1, 3)]])


def test_cells_that_rules_leave_out_are_zero():
    """A group is left out where all of its levels are."""
    impossible = np.zeros((12, 12), dtype=bool)
    # The first level of the first column, with the first and the second one of the third.
    for level in (5, 6):
        impossible[0, level] = impossible[level, 0] = True

    def find(maps):
        mechanism = make_mechanism(maps, subsets=[(0, 1, 2), (0, 2, 3), (1, 2, 3)])
        cells = tuple(map(np.ones, mechanism._shapes))
        tables = MultiWayTables(NONE, mechanism.products, cells, 1.0)
        return tables.without_impossible(impossible).cells

    found = find("levels")
    assert (found[0][0, :, :2] == 0).all()
    assert (found[1][0, :2] == 0).all()
    assert [int((table == 0).sum()) for table in found] == [4, 6, 0]
    # Joined, the first group of the third column is its first level, and its second is not all.
    found = find("groups")
    assert (found[0][0, :, 0] == 0).all()
    assert [int((table == 0).sum()) for table in found] == [2, 2, 0]


def test_bins_are_between_knots():
    codes = torch.tensor([[0.0, 1, 0.1, 2], [2, 0, 1.99, 0], [0.5, 0, 2.0, 0], [1.2, 0, 3.0, 0]])
    refined = BINS.refine(codes.double())
    assert refined.tolist() == [[0, 1, 0, 2], [3, 0, 5, 0], [1, 0, 5, 0], [2, 0, 6, 0]]
    assert BINS.fine_sizes == (4, 2, 7, 3)
    assert BINS.knot_sizes == (5, 2, 8, 3)
    # Evenly spread over bins, records have these weights of levels, and of the edges of bins.
    spread = (torch.arange(400, dtype=torch.float64)[:, None] + 0.5) / 200
    weights = HatBasis(spread, [3]).to_dense().reshape(4, 100, 3).mean(1)
    assert BINS.to_coarse()[:4, :3].numpy() == pytest.approx(weights.numpy())
    weights = HatBasis(2 * spread, [5]).to_dense().reshape(4, 100, 5).mean(1)
    assert BINS.to_knots()[:4, :5].numpy() == pytest.approx(weights.numpy())
    for columns, sizes in ((BINS.to_coarse(), SIZES), (BINS.to_knots(), BINS.knot_sizes)):
        assert columns.shape == (16, sum(sizes))
        assert (columns.sum(1) == 1).all()
    assert (NONE.to_coarse() == torch.eye(12)).all()
    assert BINS.without(0).fine_sizes == (2, 7, 3)


def test_the_event_is_a_plain_one():
    mechanism = make_mechanism("levels")
    mechanism.check(gaussian_event(2.0))
    with pytest.raises(PlanError):
        mechanism.check(PoissonSampledDpEvent(0.1, gaussian_event(2.0)))
