"""Multi-way tables of columns that pairs do not explain."""

import itertools
import pickle

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
from skdpgen.learners.interactions import (
    find_subsets,
    halve_levels,
    list_products,
    predict_interactions,
)
from skdpgen.learners.table_rows import TableParticles
from skdpgen.learners.table_targets import SubsetsTarget
from skdpgen.privacy import preview

BITS = Schema({name: Boolean() for name in "abcd"})
ALL_TABLES = ("two-way tables", "interactions", "multi-way tables")


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
def test_interactions_that_no_pair_shows_are_learnt(kind, sizes):
    """All pairs of columns are independent, and no column is the target."""
    generator = kind(epsilon=10.0, schema=BITS, random_state=0, **sizes)
    made = generator.fit(make_bits()).sample(2000)
    assert ((made["a"] ^ made["c"]) == made["d"]).mean() > 0.75
    assert ((made["a"] ^ made["b"]) == made["d"]).mean() == pytest.approx(0.5, abs=0.06)
    assert np.abs(made.corr().to_numpy() - np.eye(4)).max() < 0.1


def test_numbers_with_a_knot_for_each_value_keep_their_shares():
    """Bins between knots would merge 0 and 1."""
    bits = make_bits(4000).astype(int)
    bits["a"] = (np.random.default_rng(1).random(len(bits)) < 0.35).astype(int)
    bits["d"] = bits["a"] ^ bits["c"]
    generator = DPSWFlowSampler(epsilon=50.0, random_state=0, n_particles=500, n_steps=400)
    made = generator.fit(bits).sample(4000)
    assert generator.schema_report_["interactions"]["a"] == "a × c × d"
    for name in bits:
        real, found = (frame[name].value_counts(normalize=True) for frame in (bits, made))
        assert real.sub(found, fill_value=0).abs().max() < 0.03


@pytest.mark.catches(
    "learners.interactions:InteractionSearch.run",
    "chosen = found or candidates[:1]",
    """
    if not (chosen := found):
        return [], None, self.format
    """,
)
def test_spending_does_not_follow_from_the_rows():
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
        (BITS, "d", 3000, True),
        (BITS, None, 40, False),  # all would be noise
        (Schema({name: Boolean() for name in "ab"}), None, 3000, False),
        (Schema({f"c{i}": Boolean() for i in range(50)}), None, 20_000, False),  # too many
        (Schema({**BITS, "d": Category(list("vwxyz"))}), "d", 3000, True),
        (Schema({**BITS, "d": Category()}), "d", 3000, True),
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


def test_levels_are_halved_by_how_frequent_they_are():
    counts = np.array([10, 10, 60, 10, 10, 50, 0, 50, 5, 5, 7, -3, 9.0])
    sizes, is_ordered = [5, 3, 2, 1, 2], [True, False, False, False, True]
    public = np.random.default_rng(0)
    halved = [signs[:, 0].tolist() for signs in halve_levels(counts, sizes, is_ordered, public)]
    assert [len(signs) for signs in halved] == sizes
    assert all(set(signs) == {-1, 1} for signs in halved if len(signs) > 1)
    # At the median, in the order of levels.
    assert halved[0] in ([-1, -1, -1, 1, 1], [-1, -1, 1, 1, 1])
    assert halved[2:4] == [[-1, 1], [-1]]
    # Levels at the end that no record has are in the upper half.
    assert halve_levels(np.array([1e18, 0, 0, 0]), [4], [True], public)[0].sum() == 2


SUBSETS = [*itertools.combinations(range(4), 3), (0, 1, 2, 3)]


def find(gaps, std=1.0, table_std=1.0, is_stratified=False, predicted=0.0):
    released = np.array(gaps, dtype=float).reshape(len(gaps), -1)
    counts = np.full(released.shape[1], 10_000 / released.shape[1])
    predicted = np.full(released.shape, predicted)
    subsets = SUBSETS[: len(gaps)]
    return find_subsets(
        released, predicted, counts, std, subsets, table_std, is_stratified=is_stratified
    )


def test_subsets_that_stand_out_are_found():
    assert find([0, -9000, 0, 5000, 0]) == [(0, 1, 3), (1, 2, 3)]
    assert find([10, 20, -30, 5, 10]) == []
    # One that is much, but may be chance or noise; or less than a table would show.
    assert find([3000, 0, 0, 0, 0]) == [(0, 1, 2)]
    assert find([3000, 0, 0, 0, 0], std=1000) == []
    assert find([3000, 0, 0, 0, 0], table_std=400) == []
    assert find([9000, 8000, 7000, 6000], table_std=340) == [(0, 1, 2), (0, 1, 3)]
    # One that pairs explain; and a larger subset, unless a smaller one has it.
    assert find([9000] * 5, predicted=0.9) == []
    assert find([0, 0, 0, 0, 9000]) == [(0, 1, 2, 3)]
    assert find([0, 9000, 0, 0, 9000]) == [(0, 1, 3)]


def test_interactions_that_pairs_imply_are_not_sought():
    """Rows blur what pairs imply by up to a factor of 3; and no sum exceeds the records."""
    assert find([9000], predicted=0.31) == []
    assert find([9000], predicted=0.2) == [(0, 1, 2)]
    assert find([-9000], predicted=0.31) == [(0, 1, 2)]
    assert find([2000], predicted=0.31) == [(0, 1, 2)]  # less than implied
    # Beyond 2.6 standard deviations of the noise, a sum over 10,000 records is significant.
    assert find([10_000], std=4500) == find([90_000], std=4500) == []
    assert find([10_000], std=3000) == find([90_000], std=3000) == [(0, 1, 2)]


@pytest.mark.parametrize(
    ("is_parity", "options", "said"),
    [
        (True, {}, "columns: a × c × d"),
        (False, {}, "columns: none"),
        (True, {"release": "pairs"}, "columns: not sought"),
    ],
)
def test_verbose_fits_say_which_interactions_they_kept(is_parity, options, said, capfd):
    sampler = DPSWFlowSampler(
        epsilon=10.0, schema=BITS, random_state=0, n_steps=60, verbose=1, **options
    )
    sampler.fit(make_bits(is_parity=is_parity))
    out, err = capfd.readouterr()
    assert f"interactions of three or more {said}\n" in err
    assert out == ""


def test_pairs_are_refined_where_they_differ_much_by_the_target():
    """Stratified tables hold the interactions of two columns with the target."""
    gaps = [[4000, -4000], [4000, 4000], [500, -500], [0, 0]]
    assert find(gaps, is_stratified=True) == [(0, 1, 2)]
    assert find([*gaps[1:], [0, 0], [600, -600]], is_stratified=True) == [(0, 1, 2, 3)]


def test_false_alarms_are_rare():
    """The probability of any among a thousand subsets is at most 0.01; here of 100 times."""
    rng, counts = np.random.default_rng(0), np.array([5000.0, 5000.0])
    subsets = list(itertools.combinations(range(12), 4))
    found = [
        find_subsets(
            500 * rng.normal(size=(len(subsets), 2)),
            np.zeros((len(subsets), 2)),
            counts,
            500.0,
            subsets,
            1.0,
            is_stratified=True,
        )
        for _ in range(100)
    ]
    # More than 5 of 100 have a probability below 0.001.
    assert sum(map(bool, found)) <= 5


def test_predictions_are_mean_products_of_signs():
    start = torch.tensor([[0.9, 0.1, 0.2, 0.8, 0.5, 0.5]])
    rows = TableParticles([3], torch.Generator().manual_seed(0), [2, 2, 2], start)
    signs = [torch.tensor([[-1.0], [1.0]]).double()] * 3
    subsets = [(0, 1), (0, 1, 2)]
    found = predict_interactions(rows, [2] * 3, None, signs, subsets, torch.Generator())
    blocks = rows(torch.arange(3)).detach().numpy().reshape(3, 3, 2) @ [-1, 1]
    expected = [blocks[:, :2].prod(1).mean(), blocks.prod(1).mean()]
    assert found[:, 0] == pytest.approx(expected, abs=1e-3)


def test_tables_of_a_subset_have_the_levels_of_each_column():
    signs = [torch.ones(size, 1) for size in (5, 2, 3, 2)]
    products = list_products([(0, 1, 2, 3), (1, 3)], 3, (5, 2, 3, 2), signs)
    assert [[c for c, _ in factors] for factors in products] == [[0, 1, 2, 3], [2, 0, 1, 3], [1, 3]]
    assert [[m.shape[1] for _, m in factors] for factors in products] == [
        [5, 1, 1, 2],
        [3, 1, 1, 2],
        [2, 2],
    ]


def test_the_gap_of_multi_way_tables():
    """Against sums of squares; and of two samples, the product of their differences."""
    rng = np.random.default_rng(0)
    first, second = torch.tensor(rng.random((2, 40, 5)))
    joined = [(0, torch.eye(2).double())] + [
        (c, torch.tensor([[sign]]).double()) for c, sign in ((1, 1), (2, 1), (3, -1))
    ]
    expected, products, sizes = 0, [], [2, 1, 1, 1]
    for n_factors in (1, 2, 3):
        table = torch.tensor(rng.random(2))
        products.append((joined[:n_factors], table))
        differences = [
            torch.stack([(rows[:, i] * rows[:, 2 : n_factors + 1].prod(1)).mean() for i in (0, 1)])
            - table
            for rows in (first, second)
        ]
        expected += differences[0] @ differences[1]
        target = SubsetsTarget([products[-1]], sizes, 1.0, 1.0)
        exact = differences[0] @ differences[0]
        assert target.gap(first, first).item() == pytest.approx(exact.item())
    target = SubsetsTarget(products, sizes, 50.0, 0.5)
    assert target.gap(first, second).item() == pytest.approx(50 / 4 * expected.item())


def make_product(n=4000):
    """A target that is the sign of the product of three numbers, none of which is declared."""
    x = np.random.default_rng(0).uniform(-1, 1, (n, 3))
    table = pd.DataFrame(x, columns=["a", "b", "c"])
    return table.assign(y=np.where(x.prod(1) > 0, "yes", "no"))


def test_numbers_get_finer_knots_where_they_interact():
    sampler = DPSWFlowSampler(4.0, random_state=0, n_particles=1000, n_steps=200)
    sampler.fit(make_product(), target="y")
    assert (sampler.schema_report_["interactions"] == "a × b × c × y").all()
    for name in "abc":
        assert len(sampler.schema_[name].positions) > sampler.schema_report_["n_levels"][name]
    made = sampler.sample(2000)
    is_same = (made[["a", "b", "c"]].prod(axis=1) > 0) == (made["y"] == "yes")
    assert is_same.mean() > 0.8
    again = pickle.loads(pickle.dumps(sampler))
    pd.testing.assert_frame_equal(again.sample(20), sampler.sample(20))
