# SPDX-License-Identifier: BSD-3-Clause
"""Moments of numbers in released tables: which are clear of noise, and how rows match them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler
from skdpgen.learners import tables as _table_learner
from skdpgen.learners.marginals import Marginals
from skdpgen.learners.moments import find_clear_moments, make_polynomials
from skdpgen.learners.table_rows import TableNetwork, TableParticles
from skdpgen.learners.table_targets import SubsetsTarget
from skdpgen.learners.tables import match_clear
from skdpgen.learners.training import minimize_exactly
from skdpgen.mechanisms.two_way import (
    Tables,
    count_cells,
    one_way_weight,
    select_cells,
    tables_with_later,
)

SIZES = (6, 5, 4)


def plant(moments):
    """Cells of two columns of numbers, of 6 and 5 knots, with these moments of degrees 1 and 2."""
    is_knot = np.ones(6, dtype=bool)
    first, second = make_polynomials(is_knot), make_polynomials(is_knot[:5])
    return (first @ np.reshape(moments, (2, 2)) @ second.T).reshape(1, 30)


def find(cells, std=1.0, rate=0.01):
    return find_clear_moments(cells, (6, 5), np.ones(11, dtype=bool), std, rate)


def test_noise_alone_is_taken_for_a_moment_at_the_rate():
    noise = np.random.default_rng(0).normal(size=(2000, 1, 30))
    assert np.mean([find(cells, rate=0.05).any() for cells in noise]) == pytest.approx(
        0.05, abs=0.015
    )


def test_clear_moments_are_found_as_they_are():
    noisy = plant([20.0, 0.0, 0.0, -15.0]) + np.random.default_rng(0).normal(size=(200, 30))
    found = np.concatenate([find(cells[None]) for cells in noisy])
    assert np.abs(found.mean(0) - plant([20.0, 0.0, 0.0, -15.0])).max() < 0.15
    # The noise of the two moments is left, and that of 28 other directions is not.
    assert ((found - found.mean(0)) ** 2).sum(1).mean() == pytest.approx(2, abs=0.3)


def test_clear_moments_have_the_unit_of_the_noise():
    noisy = plant([30.0, 0.0, 0.0, 0.0]) + np.random.default_rng(0).normal(size=(1, 30))
    found = find(noisy)
    assert found.any()
    np.testing.assert_allclose(find(5 * noisy, std=5.0), 5 * found)
    assert not find(noisy, std=12.0).any()


@pytest.mark.parametrize(("others", "is_found"), [(0.0, False), (20.0, True)])
def test_the_rate_is_among_the_moments_that_are_found(others, is_found):
    """Beside clear moments a further one may be less clear: its error counts less."""
    # Alone of four, 3 has a chance of .0108, and of .0027 beside three that are clear.
    found = find(plant([3.0, others, others, others]))
    assert (found @ plant([1.0, 0.0, 0.0, 0.0])[0] > 2.9) == is_found


def test_each_pair_of_columns_is_searched_alone():
    """A moment of one pair in one stratum is found there, and nowhere else."""
    rng, is_knot = np.random.default_rng(0), np.ones(15, dtype=bool)
    cells = rng.normal(size=(2, count_cells(SIZES)))
    planted = 25 * np.outer(
        make_polynomials(is_knot[:6])[:, 0], make_polynomials(is_knot[:4])[:, 1]
    )
    tables_with_later(cells[1], SIZES)[0][:, 5:] += planted
    found = find_clear_moments(cells, SIZES, is_knot, 1.0, 0.01)
    assert not found[0].any()
    first, second, _ = tables_with_later(found[1], SIZES)
    assert not first[:, :5].any()
    assert not second.any()
    assert np.abs(first[:, 5:] - planted).max() < 1.5


def test_more_tables_ask_for_clearer_moments():
    """The rate is that of all tables together."""
    cells = plant([4.2, 0.0, 0.0, 0.0])
    assert find(cells).any()
    assert not find(np.vstack([cells, np.zeros((300, 30))])).any()


def test_only_moments_of_numbers_are_searched():
    """A correlation of which each cell is within its noise is found."""
    is_knot = np.r_[np.ones(16, dtype=bool), False, np.ones(16, dtype=bool)]
    line = make_polynomials(is_knot[:17])[:, 0], make_polynomials(is_knot[17:])[:, 0]
    cells = 9 * np.outer(*line).reshape(1, -1)
    assert np.abs(cells).max() < 2
    np.testing.assert_allclose(find_clear_moments(cells, (17, 16), is_knot, 1.0, 0.01), cells)
    nothing = np.zeros(33, dtype=bool)
    assert not find_clear_moments(100 * cells, (17, 16), nothing, 1.0, 0.01).any()


@pytest.mark.parametrize(("n_knots", "n_polynomials"), [(0, 0), (1, 0), (2, 1), (3, 2), (9, 2)])
def test_polynomials_of_knots(n_knots, n_polynomials):
    is_knot = np.r_[False, np.ones(n_knots, dtype=bool), False]
    found = make_polynomials(is_knot)
    assert found.shape == (n_knots + 2, n_polynomials)
    np.testing.assert_allclose(found.T @ found, np.eye(n_polynomials), atol=1e-12)
    np.testing.assert_allclose(found.sum(0), 0, atol=1e-12)
    assert not found[~is_knot].any()
    expected = np.arange(n_knots + 2.0)[:, None] ** np.arange(n_polynomials + 1)
    expected[~is_knot] = 0
    span = np.c_[is_knot.astype(float), found]
    np.testing.assert_allclose(span @ np.linalg.lstsq(span, expected)[0], expected, atol=1e-9)


def make_rows(kind, generator, sizes=SIZES, n_strata=2):
    marginals = torch.cat([torch.full((n_strata, size), 1 / size) for size in sizes], dim=1)
    if kind == "particles":
        return TableParticles(n_strata * [300], generator, list(sizes), marginals)
    n_inputs = TableNetwork.count_inputs(3, n_strata)
    network = torch.nn.Sequential(
        torch.nn.Linear(n_inputs, 60), torch.nn.ReLU(), torch.nn.Linear(60, sum(sizes))
    )
    return TableNetwork(network, 3, list(sizes), marginals)


def tables_of(rows, sizes, n_records, std):
    """The tables of each stratum of rows, as if they had been released with noise."""
    codes = rows.draw(rows.n_codes, torch.Generator().manual_seed(0))
    with torch.no_grad():
        parts = rows(codes).double().split(rows.n_codes)
    weight = one_way_weight(sizes)
    return [
        Tables(
            sizes,
            select_cells((n_records * part.T @ part / len(part)).numpy(), sizes),
            weight * n_records * part.mean(0).numpy(),
            weight,
            std,
            std * 2**0.5,
        )
        for part in parts
    ]


@pytest.mark.parametrize("kind", ["particles", "network"])
def test_rows_change_where_a_moment_is_clear(kind):
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    rows = make_rows(kind, generator)
    before = tables_of(rows, SIZES, 1000.0, 2.0)
    cells = before[1].cells.copy()
    line = np.outer(np.arange(6) - 2.5, np.arange(5) - 2)
    tables_with_later(cells, SIZES)[0][:, :5] += 6 * line
    released = [before[0], replace(before[1], cells=cells)]
    match_clear(rows, released, marginals_of(2), [], None, generator)
    after = tables_of(rows, SIZES, 1000.0, 2.0)
    gaps = [
        np.sum((table.cells - wanted.cells) ** 2)
        for table, wanted in zip(after, released, strict=True)
    ]
    start = np.sum((before[1].cells - released[1].cells) ** 2)
    assert sum(gaps) < (0.05 if kind == "particles" else 0.5) * start
    # One-way tables are held.
    for table, old in zip(after, before, strict=True):
        np.testing.assert_allclose(table.columns, old.columns, atol=4.0)


def marginals_of(n_strata):
    return n_strata * [
        Marginals(np.zeros(15), np.zeros(15), 1000.0, np.zeros(15, dtype=bool), np.ones(15) > 0)
    ]


def test_rows_within_the_noise_stay_as_they_are():
    generator = torch.Generator().manual_seed(0)
    rows = make_rows("particles", generator)
    before = rows.logits.detach().clone()
    rng = np.random.default_rng(0)
    released = [
        replace(table, cells=table.cells + rng.normal(0, 2, table.cells.shape))
        for table in tables_of(rows, SIZES, 1000.0, 2.0)
    ]
    match_clear(rows, released, marginals_of(2), [], None, generator)
    assert torch.equal(rows.logits, before)


def test_multi_way_tables_are_held():
    """A table of three columns, which pairs do not determine, changes less with its target."""
    changes = []
    for is_held in (False, True):
        generator = torch.Generator().manual_seed(0)
        rows = make_rows("particles", generator, n_strata=1)
        released = tables_of(rows, SIZES, 1000.0, 2.0)[0]
        cells = released.cells.copy()
        line = np.outer(np.arange(6) - 2.5, np.arange(5) - 2)
        tables_with_later(cells, SIZES)[0][:, :5] += 6 * line
        moved = replace(released, cells=cells)
        factors = [(c, torch.eye(size)) for c, size in enumerate(SIZES)]
        target = SubsetsTarget([(factors, torch.zeros(120))], SIZES, 50.0, 1.0)
        held = target.moved_to(rows(torch.arange(300)).detach())
        match_clear(rows, [moved], marginals_of(1), [target] * is_held, None, generator)
        found = rows(torch.arange(300)).detach()
        changes.append(held.gap(found, found).item())
    assert changes[1] < 0.7 * changes[0]


def test_an_exact_loss_is_minimised():
    """Least squares, against the normal equations."""
    rng = torch.Generator().manual_seed(0)
    x, y = torch.randn(50, 4, generator=rng), torch.randn(50, 2, generator=rng)
    model = torch.nn.Linear(4, 2)
    minimize_exactly(model, lambda: (model(x) - y).square().mean(), 200)
    expected = torch.linalg.lstsq(torch.cat([x, torch.ones(50, 1)], 1), y).solution.T
    found = torch.cat([model.weight, model.bias[:, None]], 1)
    torch.testing.assert_close(found.detach(), expected, atol=1e-3, rtol=1e-3)
    # Each parameter is pickled with all of its storage.
    sizes = [parameter.untyped_storage().nbytes() for parameter in model.parameters()]
    assert sizes == [4 * parameter.numel() for parameter in model.parameters()]


@pytest.mark.parametrize(
    "generator",
    [DPSWFlowSampler, pytest.param(DPSlicedWassersteinGenerator, marks=pytest.mark.slow)],
)
def test_correlations_of_default_fits(monkeypatch, generator):
    """Training alone stops within the noise of all cells, and leaves correlations too small."""
    x = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 5000)
    table = pd.DataFrame(np.c_[x, np.random.default_rng(1).normal(size=(5000, 3))]).add_prefix("x")
    correlations = {}
    for is_matched in (True, False):
        with monkeypatch.context() as patch:
            if not is_matched:
                patch.setattr(_table_learner, "match_clear", lambda *_: None)
            fitted = generator(3.0, 1e-5, random_state=0).fit(table)
        correlations[is_matched] = fitted.sample(5000)[["x0", "x1"]].corr().iloc[0, 1]
    assert correlations[True] > max(0.75, correlations[False] + 0.03)
