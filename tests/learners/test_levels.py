"""Tables for each level of the target: what is learnt of them."""

import math
import warnings
from dataclasses import replace

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
from skdpgen.learners import tables as _table_learner
from skdpgen.learners.marginals import Marginals
from skdpgen.learners.table_rows import StratifiedRows, TableNetwork, TableParticles
from skdpgen.learners.tables import fit_to_tables
from skdpgen.mechanisms.codes import Refinement
from skdpgen.mechanisms.two_way import Tables, count_cells
from skdpgen.privacy import TablesMechanism
from skdpgen.tables.format import TableFormat

SCHEMA = Schema({"a": Boolean(), "target": Boolean(), "b": Boolean()})


def make_exclusive_or(n=2000, share=0.5):
    rng = np.random.default_rng(0)
    a, b = rng.random((2, n)) < share
    return pd.DataFrame({"a": a, "target": a ^ b, "b": b})


def random_tables(sizes, by=None, seed=0):
    """Tables of no records in particular."""
    rng, mechanism = np.random.default_rng(seed), TablesMechanism(sizes, by)
    lead = () if by is None else (sizes[by],)
    return Tables(
        mechanism.sizes,
        rng.random((*lead, count_cells(mechanism.sizes))),
        rng.random((*lead, sum(mechanism.sizes))),
        mechanism.weight,
        2.0,
        math.sqrt(8),
        mechanism.by,
    )


@pytest.mark.parametrize(
    "kind",
    [DPSWFlowSampler, pytest.param(DPSlicedWassersteinGenerator, marks=pytest.mark.slow)],
)
def test_three_way_tables_with_the_target_are_learnt(kind):
    """All pairs of columns are independent: two-way tables of all records would show nothing."""
    table = make_exclusive_or()
    generator = kind(epsilon=20.0, schema=SCHEMA, random_state=0, n_steps=300)
    made = generator.fit(table, target="target").sample(2000)
    assert ((made["a"] ^ made["b"]) == made["target"]).mean() > 0.9
    assert made["a"].mean() == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize(("n_rare", "warns"), [(30, True), (600, False)])
def test_a_rare_level_whose_tables_are_noise_is_warned_of(n_rare, warns):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((2000, 10)) < 0.5, columns=list("abcdefghij"))
    table["y"] = np.arange(2000) < n_rare
    schema = Schema(dict.fromkeys(table, Boolean()))
    sampler = DPSWFlowSampler(1.0, schema=schema, random_state=0, n_steps=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sampler.fit(table, target="y")
    said = [str(w.message) for w in caught if "hardly better than chance" in str(w.message)]
    assert len(said) == warns
    assert all("'y' at True (about " in message for message in said)


def test_levels_are_as_frequent_as_they_were():
    table = make_exclusive_or(share=0.1)
    generator = DPSWFlowSampler(epsilon=math.inf, schema=SCHEMA, random_state=0, n_steps=5)
    made = generator.fit(table, target="target").sample(5000)
    # As near to the shares as it goes.
    assert made["target"].mean() == pytest.approx(table["target"].mean(), abs=2 / 5000)


@pytest.mark.parametrize("kind", [DPSlicedWassersteinGenerator, DPSWFlowSampler])
def test_a_target_has_no_other_classes_than_those_that_show(kind):
    """Classifiers would learn a class that is mere noise; rare classes that show are `other`."""
    frame = pd.DataFrame({"a": np.arange(1000) % 3, "target": ["yes", "no", "no", "no"] * 250})
    for n_rare, expected in ((0, {"yes", "no"}), (60, {"yes", "no", "other"})):
        frame.loc[: n_rare - 1, "target"] = [f"rare {i}" for i in range(n_rare)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            generator = kind(1.0, 1e-6, schema="auto", random_state=0, n_steps=2)
            generator.fit(frame, target="target")
        assert set(generator.sample(5000)["target"]) == expected
        assert set(generator.classes_) == expected
        assert len(generator.sample(y=generator.classes_)) == len(expected)
    # Rare classes of before are clear of noise; the level of these can be asked for.
    assert generator.sample(y=["other"] * 3)["target"].tolist() == ["other"] * 3


def test_the_target_is_put_where_it_was():
    start = torch.tensor([[1.0, 0, 0, 1.0, 0], [0, 1.0, 0, 1.0, 0]])
    parts = TableParticles([3, 2], torch.Generator(), [2, 3], start)
    # The first level of the first column in one part, the second in the other.
    parts.logits.data[:] = 0
    parts.logits.data[:3, 0] = parts.logits.data[3:, 1] = 100
    parts.forbid([False, False, True, False, True])
    rows = StratifiedRows(parts, np.array([0.25, 0.75]), 2)
    made = rows.sample(torch.zeros(8), torch.Generator().manual_seed(0)) * math.sqrt(3)
    assert made[:, 5] == pytest.approx(1)
    assert (made[:, [4, 6]] == 0).all()
    assert sorted(made[:, 3].round(6)) == [0] * 2 + [1] * 6
    assert made[:, 2] == pytest.approx(1 - made[:, 3])
    assert made[:, 0] == pytest.approx(made[:, 2])
    assert made[:, 1] == pytest.approx(made[:, 3])
    # In random order: not those of one part first.
    assert made[:, 2].argmax() > 0


@pytest.mark.parametrize("has_network", [True, False])
def test_few_rows_may_lack_a_level(has_network):
    start = torch.full((2, 2), 0.5)
    if has_network:
        parts = TableNetwork(torch.nn.Linear(5, 2), 3, [2], start)
    else:
        parts = TableParticles([3, 2], torch.Generator(), [2], start)
    rows, generator = StratifiedRows(parts, np.array([0.01, 0.99]), 0), torch.Generator()
    for n_rows in (1, 2, 5):
        made = rows.sample(torch.zeros(n_rows), generator.manual_seed(0))
        assert made.shape == (n_rows, 4)
        assert (made[:, 0] == 0).all()


def test_particles_of_a_rare_level_are_learnt():
    """A fit tries a few rows of what it learnt: of a rare level, there may be none among them."""
    table = pd.DataFrame({"a": [True, False] * 200, "target": [True] * 396 + [False] * 4})
    schema = Schema({"a": Boolean(), "target": Boolean()})
    generator = DPSWFlowSampler(epsilon=math.inf, schema=schema, random_state=0, n_steps=2)
    made = generator.fit(table, target="target").sample(400)
    assert made["target"].mean() == pytest.approx(0.99, abs=1 / 400)
    assert len(generator.sample(1)) == 1


def test_the_two_samples_of_a_loss_are_independent():
    """Two samples of 5 of 10 particles share 2.5 on average; halves of all 10 share none."""
    start, generator = torch.full((2, 4), 0.5), torch.Generator().manual_seed(0)
    rows = TableParticles([10, 6], generator, [2, 2], start)
    shared = []
    for _ in range(300):
        first, second = rows.draw_pair([5, 2], generator).chunk(2)
        for codes in (first, second):
            assert (codes < 10).tolist() == 5 * [True] + 2 * [False]
            assert len(set(codes.tolist())) == 7
        shared.append(len(set(first[:5].tolist()) & set(second[:5].tolist())))
    # Hypergeometric: a variance of 25/36; 6 standard errors.
    assert np.mean(shared) == pytest.approx(2.5, abs=6 * math.sqrt(25 / 36 / 300))


def test_parts_differ_in_a_network_by_what_they_are_told():
    """Codes say which part a row is of: by the network, and by how frequent levels are."""
    torch.manual_seed(0)
    start = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    rows = TableNetwork(torch.nn.Linear(5, 2), 3, [2], start)
    codes = rows.draw([2, 3], torch.Generator().manual_seed(0))
    assert codes[:, 3:].tolist() == [[1, 0]] * 2 + [[0, 1]] * 3
    expected = (rows.network(codes) + start[[0, 0, 1, 1, 1]].log()).softmax(1)
    torch.testing.assert_close(rows(codes), expected)
    rows.shift(torch.tensor([[0.0, 0.0], [0.0, 1.0]]))
    assert (rows(codes)[2:, 1] > expected[2:, 1]).all()
    torch.testing.assert_close(rows(codes)[:2], expected[:2])


@pytest.mark.parametrize("by", [0, 1, 2])
def test_levels_of_all_records_are_counted(by):
    """From exact tables of each level follow the counts of all of them."""
    sizes, rng = [3, 2, 4], np.random.default_rng(1)
    codes = np.column_stack([rng.integers(size, size=200) for size in sizes])
    blocks = [np.eye(size)[code] for size, code in zip(sizes, codes.T, strict=True)]
    expected = np.hstack(blocks).sum(axis=0)
    others = np.hstack(blocks[:by] + blocks[by + 1 :])
    mechanism = TablesMechanism(sizes, by)
    column = np.repeat([0, 1], mechanism.sizes)
    parts = [others[codes[:, by] == level] for level in range(sizes[by])]
    tables = Tables(
        mechanism.sizes,
        np.stack([(part.T @ part)[column[:, None] < column] for part in parts]),
        np.stack([mechanism.weight * part.sum(axis=0) for part in parts]),
        mechanism.weight,
        0.5,
        math.sqrt(0.5),
        mechanism.by,
    )
    levels = Marginals.of(tables, 200, False)
    assert levels.counts == pytest.approx(expected)
    assert (levels.std > 0).all()
    alone = Marginals.of(tables.stratum(0), 200, False)
    rest = np.delete(levels.std, range(*mechanism.by.indices(sum(sizes))))
    assert rest == pytest.approx(alone.std * math.sqrt(sizes[by]))


def test_knots_start_with_some_records_whatever_the_noise():
    schema = Schema({"a": Number(0, 90, knots=[0, 30, 60, 90], atoms=[-1]), "b": Boolean()})
    is_knot = TableFormat(schema).find_masks()[1]
    assert is_knot.tolist() == [True] * 4 + [False] * 3
    counts = np.array([50.0, -20, 3, 40, -20, 3, 40])
    levels = Marginals(counts, np.full(7, 20.0), 100.0, np.zeros(7, dtype=bool), is_knot)
    assert levels.starts == pytest.approx([0.5, 0.05, 0.05, 0.4, 0, 0.03, 0.4])
    # Two bins between two knots; the last levels are as they were.
    coarsen = Refinement((5, 2), (4, 0), (2, 0)).to_coarse().numpy()
    assert levels.refined(coarsen).is_knot.tolist() == [True] * 6 + [False] * 3
    # Far out, noise would outweigh all other values.
    far = Schema({"a": Number(-9, 100, knots=[-9, 0, 1, 2, 3, 20, 100])})
    assert TableFormat(far).find_masks()[1].tolist() == [True] * 5 + [False] * 2


def test_amounts_that_noise_hides_are_not_all_at_one_knot():
    """A twentieth of 300 records are amounts, within the noise on both knots."""
    amounts = pd.DataFrame({"a": [0.0] * 285 + [10.0, 40, 90] * 5, "b": [True, False, True] * 100})
    schema = Schema({"a": Number(0, 100, decimals=0, knots=[0, 100], atoms=[0]), "b": Boolean()})
    for seed in range(5):
        sampler = DPSWFlowSampler(1.0, schema=schema, random_state=seed, n_steps=50)
        made = sampler.fit(amounts).sample(5000)["a"]
        assert (made > 5).any()


@pytest.mark.parametrize("by", [None, 1])
def test_impossible_cells_are_put_to_zero(by):
    sizes = [2, 2, 3]
    tables, impossible = random_tables(sizes, by), np.zeros((7, 7), dtype=bool)
    # The first level of the first column with the last one of the last; and the first of the
    # second column with the second of the last.
    impossible[0, 6] = impossible[6, 0] = impossible[2, 5] = impossible[5, 2] = True
    found = tables.without_impossible(impossible)
    if by is None:
        assert found.pair(0, 2)[0, 2] == 0
        assert found.pair(1, 2)[0, 1] == 0
        assert (found.cells == 0).sum() == 2
        assert (found.columns == tables.columns).all()
        return
    assert (found.pair(0, 1)[:, 0, 2] == 0).all()
    assert (found.stratum(0).pair(0, 1)[:, 1] == 0).all()
    assert found.columns[0, 3] == 0
    assert (found.cells == 0).sum() == 4
    assert (found.columns == 0).sum() == 1


@pytest.mark.parametrize(
    ("kind", "n_parts"),
    [
        (Boolean(), 2),
        (Category(["a", "b", "c"]), 3),
        (Category(["a", "b", "c", "d"]), 4),
        (Category(["a"]), None),
        (Number(0, 1, n_knots=2), None),
    ],
)
def test_targets_of_few_levels_tell_records_apart(kind, n_parts):
    values = [0.0, 1.0] if isinstance(kind, Number) else list(kind.levels)
    table = pd.DataFrame({"target": (values * 200)[:200], "a": [True, False] * 100})
    schema = Schema({"target": kind, "a": Boolean()})
    generator = DPSWFlowSampler(epsilon=20.0, schema=schema, random_state=0, n_steps=2)
    rows = generator.fit(table, target="target")._rows
    assert (len(rows.shares) if isinstance(rows, StratifiedRows) else None) == n_parts
    assert generator.privacy_.releases == (TablesMechanism.name,)
    assert not isinstance(generator.fit(table)._rows, StratifiedRows)


def test_strata_of_noise_have_no_part_in_training(monkeypatch):
    """A level that hardly occurs would keep training from its end: nothing explains its noise."""
    seen = {}

    def spy(training, loss, noise_energies, n_steps, verbose):
        seen["energies"], seen["n_losses"] = noise_energies.tolist(), len(loss())
        return []

    def draw_pair(rows, half, generator):
        seen["half"] = half
        return TableParticles.draw_pair(rows, half, generator)

    monkeypatch.setattr(_table_learner, "descend_to_noise", spy)
    particles = type("Particles", (TableParticles,), {"draw_pair": draw_pair})
    generator = torch.Generator().manual_seed(0)
    tables = [random_tables((3, 2)) for _ in range(3)]
    # Counted are about 3 records in the second one, with noise of 2.3.
    counts = (900.0, 3.0, 100.0)
    tables = [replace(table, counted=(n, 2.3)) for table, n in zip(tables, counts, strict=True)]
    strata = [Marginals.of(part, n, False) for part, n in zip(tables, counts, strict=True)]
    monkeypatch.setattr(_table_learner, "match_clear", lambda *_: None)
    fit_to_tables(
        lambda shares, sizes, starts: particles([50, 50, 50], generator, sizes, starts),
        tables,
        strata,
        n_steps=1,
        batch_size=80,
        learning_rate=0.1,
        generator=generator,
        device=torch.device("cpu"),
    )
    assert np.isfinite(seen["energies"]).tolist() == [True, True]
    assert seen["n_losses"] == 2
    assert seen["half"] == [36, 1, 10]
