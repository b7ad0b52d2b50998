# SPDX-License-Identifier: BSD-3-Clause
"""Empirical-Bayes estimates of two-way tables, each judged by its own noise.

Training stops within the noise of all tables together, which hides what a single one shows clearly.
A table that independent columns explain is shrunk to theirs. A table with cells that are clearly
empty, as that of a code and its name, is denoised by a prior on the ratios of its cells to those of
independent columns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from ..mechanisms.two_way import Tables, own_and_later, tables_with_later
from ..tables.blocks import find_power, share_between_knots
from .marginals import Marginals


@dataclass(frozen=True)
class DependenceConstants:
    """Constants of the estimates; all are set by hand."""

    # Chance that a table of independent columns, and that all together, count as dependent; and
    # least share of the noise that a shrunk table is taken to have.
    dependent_rate: float = 0.05
    least_share: float = 0.1
    # Ratios of the records of a cell to those of independent columns, and the largest of an empty
    # cell.
    ratios: tuple[float, ...] = (
        *(0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 3, 5, 8, 13, 21, 34, 55, 90),
    )
    empty: float = 0.1
    # Largest chance that a cell that counts as empty is not: its local false discovery rate. And
    # least number of records that independent columns would have in such cells, in standard
    # deviations of the noise.
    empty_rate: float = 0.5
    least_records: float = 10.0
    # Records by which empty cells are pulled below 0, in standard deviations of the noise. Else
    # each keeps some, and there are many of them.
    pull: float = 5.0
    # Iterations of expectation maximization, and of iterative proportional fitting.
    n_iterations: int = 30


CONSTANTS = DependenceConstants()


def list_pairs(sizes: Sequence[int]) -> Iterator[tuple[int, slice, slice, slice]]:
    """Yield the first of each two columns, both slices of levels, and where their table is.

    The last slice selects the table in that of the first column from `tables_with_later`.
    """
    owns = [own for own, _ in own_and_later(sizes)]
    for c, own in enumerate(owns):
        for other in owns[c + 1 :]:
            yield c, own, other, slice(other.start - own.stop, other.stop - own.stop)


def shrink_to_independence(
    tables: list[Tables], marginals: list[Marginals]
) -> tuple[list[Tables], np.ndarray]:
    """Shrink tables without clear dependence to independence, by the rule of James and Stein [1]_.

    None is shrunk if they depend together.

    Parameters
    ----------
    tables : list of Tables
        The tables of each stratum.
    marginals : list of Marginals

    Returns
    -------
    tables : list of Tables
    shares : ndarray of shape (n_strata, n_cells)
        The share of the noise that each cell keeps; 1 in tables that are not shrunk.

    References
    ----------
    .. [1] B. Efron, C. Morris, "Stein's Estimation Rule and Its Competitors — An Empirical Bayes
       Approach", Journal of the American Statistical Association, 1973.
    """
    cells, sizes = np.stack([stratum.cells for stratum in tables]), tables[0].sizes
    # Errors of less than a record do not matter.
    shares, std = np.ones_like(cells), max(tables[0].pairs_std, 1.0)
    found, views = [], [tables_with_later(part, sizes) for part in (cells, shares)]
    for c, own, other, at in list_pairs(sizes):
        table, share = (view[c][..., at] for view in views)
        expected = np.stack([_expect(stratum, own, other) for stratum in marginals])
        # A cell of exactly 0 is excluded by a rule.
        gaps = np.where(table != 0, table - expected, 0) / std
        n_cells = np.count_nonzero(table, axis=(1, 2))
        # Strata may tell together what none of them tells alone.
        together = (gaps.sum(0) ** 2).sum() / len(gaps)
        found.append((table, share, gaps, n_cells, [*(gaps**2).sum((1, 2)), together]))
    if not found:
        return tables, shares
    n_all = np.array([[*n_cells, n_cells.max()] for *_, n_cells, _ in found])
    all_energies = np.array([energies for *_, energies in found])
    chances = stats.chi2.sf(all_energies, n_all).min(1) * n_all.shape[1]
    is_unclear = chances >= CONSTANTS.dependent_rate
    # Many tables may tell together what none of them tells alone.
    energy, n_cells = (array[is_unclear, :-1].sum() for array in (all_energies, n_all))
    if stats.chi2.sf(energy, n_cells) < CONSTANTS.dependent_rate:
        return tables, shares
    for (table, share, gaps, n_cells, energies), unclear in zip(found, is_unclear, strict=True):
        if unclear:
            kept = 1 - np.maximum(n_cells - 2, 0) / np.maximum(energies[:-1], 1e-9)
            kept = np.maximum(kept, 0)[:, None, None]
            table -= (1 - kept) * gaps * std
            share[:] = np.maximum(kept, CONSTANTS.least_share)
    return [
        replace(stratum, cells=part, counted=stratum.count_records())
        for stratum, part in zip(tables, cells, strict=True)
    ], shares


def estimate_with_empty(tables: Tables, marginal: Marginals, shares: np.ndarray) -> np.ndarray:
    """Return the estimated cells of tables with clearly empty cells, and NaN for other tables.

    The ratios of a table have a discrete prior, estimated from its cells. Cells are empty by their
    local false discovery rates. The others are posterior means, scaled to the marginals.

    Parameters
    ----------
    tables : Tables
        The released tables of a stratum.
    marginal : Marginals
    shares : ndarray of shape (n_cells,)
        From `shrink_to_independence`: tables that were shrunk are left out.

    Returns
    -------
    ndarray of shape (n_cells,)
        Empty cells are less than 0.
    """
    estimated, std = np.full_like(tables.cells, np.nan), max(tables.pairs_std, 1.0)
    parts = (tables.cells, shares, estimated)
    views = [tables_with_later(part, tables.sizes) for part in parts]
    for c, own, other, at in list_pairs(tables.sizes):
        table, share, found = (view[c][:, at] for view in views)
        if (share < 1).any():
            continue
        mean, is_empty = _estimate_cells(table, _expect(marginal, own, other), std)
        if is_empty.any():
            mean = _fit_to_marginals(mean, *_find_shares(marginal, own, other))
            found[:] = np.where(is_empty, -CONSTANTS.pull * std, mean * marginal.n_records)
    return estimated


def _expect(marginal, own, other):
    """Return the table of independent columns."""
    return np.outer(*_find_shares(marginal, own, other)) * marginal.n_records


def _find_shares(marginal, *columns):
    """Return the shares of the levels of columns; levels that nobody has keep half a record."""
    counts = [np.maximum(marginal.counts[levels], 0.5) for levels in columns]
    return [part / part.sum() for part in counts]


def _estimate_cells(table, expected, std):
    """Return posterior means, with 0 in empty cells, and which cells are empty."""
    ratios = np.array(CONSTANTS.ratios)
    # No cell has more records than its row or column.
    most = np.minimum(expected.sum(1)[:, None], expected.sum(0))
    means = np.minimum(expected[..., None] * ratios, most[..., None])
    # Ratios lie anywhere between those of the prior: cells far above the noise stay as they are.
    spread = (expected[..., None] * np.gradient(ratios)) ** 2 / 12
    spread[..., ratios <= CONSTANTS.empty] = 0
    variance, residual = std**2 + spread, table[..., None] - means
    log_likelihood = -(residual**2 / variance + np.log(variance)) / 2
    likelihood = np.exp(log_likelihood - log_likelihood.max(-1, keepdims=True))
    prior = uniform = np.full(len(ratios), 1 / len(ratios))
    for _ in range(CONSTANTS.n_iterations):
        weights = likelihood * prior
        weights /= weights.sum(-1, keepdims=True)
        prior = (weights.sum((0, 1)) + uniform) / (table.size + 1)
    # Rules exclude cells of exactly 0.
    is_empty = weights[..., ratios > CONSTANTS.empty].sum(-1) < CONSTANTS.empty_rate
    is_empty &= table != 0
    if expected[is_empty].sum() < CONSTANTS.least_records * std:
        is_empty[:] = False
    estimates = means + residual * spread / variance
    return np.where(is_empty, 0, (weights * estimates).sum(-1).clip(0)), is_empty


def _fit_to_marginals(table, row, col):
    """Return the table with given sums of rows and columns, by iterative proportional fitting."""
    table = np.maximum(table, 1e-9)
    for _ in range(CONSTANTS.n_iterations):
        table = table * (row / table.sum(1))[:, None]
        table = table * (col / table.sum(0))
    return table


def list_own_tables(
    estimated: np.ndarray, sizes: Sequence[int], marginal: Marginals
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the tables of numbers with themselves, where they depend on other numbers.

    A value has the weights of two neighbouring knots, whose mean product follows from the density
    between these. Rows that match pairs alone have other values: at a knot, or around several.

    Parameters
    ----------
    estimated : ndarray of shape (n_cells,)
        From `estimate_with_empty`.
    sizes : sequence of int
    marginal : Marginals

    Yields
    ------
    own : slice
        The levels of the column.
    table : ndarray
        Shares of the records.
    """
    is_number = marginal.is_knot | marginal.is_far
    owns: dict[int, slice] = {}
    view = tables_with_later(estimated, sizes)
    for c, own, other, at in list_pairs(sizes):
        has_numbers = is_number[own].any() and is_number[other].any()
        if has_numbers and not np.isnan(view[c][:, at]).any():
            owns |= {own.start: own, other.start: other}
    for own in owns.values():
        knots, shares = is_number[own], marginal.counts[own].clip(0) / marginal.n_records
        left, right = (part[0] for part in share_between_knots(shares[knots][None]))
        power, codes = find_power(left, right), np.flatnonzero(knots)
        # The mean of x (1 - x), by the density between two knots.
        product = (left + right) * (1 / (1 + power) - 1 / (1 + 2 * power))
        table = np.zeros((len(shares), len(shares)))
        table[codes[:-1], codes[1:]] = table[codes[1:], codes[:-1]] = product
        table[np.diag_indices(len(shares))] = shares - table.sum(1)
        yield own, table
