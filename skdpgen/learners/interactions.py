# SPDX-License-Identifier: BSD-3-Clause
"""Training on a table: on its pairs of columns, then on triples with strong interactions."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch

from ..mechanisms.noise import NoiseSource
from ..mechanisms.tables import Tables, own_and_later, tables_with_later
from ..mechanisms.three_way import ThreeWayTables
from .marginals import Marginals, read_tables
from .table_rows import StratifiedRows, TableRows
from .tables import fit_to_release, fit_to_tables


@dataclass(frozen=True)
class InteractionConstants:
    """Constants of the search for interactions; all are set by hand."""

    # An interaction is significant beyond so many standard deviations of chance,
    clear: float = 4.0
    # and relevant from this share of the records: the total variation of a table is then wrong by
    # at least half of it.
    relevant: float = 0.05
    # Generated rows with which released interactions are compared.
    n_rows: int = 20_000
    # Largest number of three-way tables.
    n_triples: int = 20
    # Mean number of records in a cell, in standard deviations of its noise.
    cell: float = 8.0


CONSTANTS = InteractionConstants()


def fit_to_table(
    release, curator, format, make_rows: Callable, noise: NoiseSource, **training
) -> tuple[TableRows | StratifiedRows, list[float], pd.DataFrame]:
    """Make the planned releases of a table, and train rows until they match, up to the noise.

    Rows that match the released pairs predict how often signs of three columns agree. Triples whose
    released interaction differs from the prediction get a three-way table, and training goes on.

    Parameters
    ----------
    release : TwoWayTables
    curator : Curator
        It is closed after the last release.
    format : TableFormat
        A resolved format.
    make_rows, **training
        As in `fit_to_tables`.
    noise : NoiseSource

    Returns
    -------
    rows : TableRows or StratifiedRows
    losses : list of float
    report : DataFrame
        From `read_tables`.
    """
    tables = release.run(curator, format)
    has_triples = release.has_three_way(curator.plan)
    if not has_triples:
        curator.close()
    marginals, report = read_tables(tables, format, curator.n_rows)
    training |= {"device": curator.device, "generator": noise.torch_generator()}
    rows, losses = fit_to_release(make_rows, tables, marginals, **training)
    if not has_triples:
        return rows, losses, report
    generated = draw_rows(rows, training["generator"])
    three_way = release_three_way(
        release, curator, format, generated, tables.sizes, marginals, noise.public_generator()
    )
    curator.close()
    if three_way is not None:
        # The learnt pairs are the targets: training on released ones would fit their noise.
        tables = with_pairs_of(generated, tables, marginals.n_records)
        training["n_steps"] = -(-training["n_steps"] // 2)
        rows, more = fit_to_tables(
            lambda *_: rows, [tables], [marginals], three_way=three_way, **training
        )
        losses += more
    return rows, losses, report


def release_three_way(
    release,
    curator,
    format,
    generated: torch.Tensor,
    sizes: Sequence[int],
    marginals: Marginals,
    public: np.random.Generator,
) -> ThreeWayTables | None:
    """Release interactions, and three-way tables of the significant ones.

    Parameters
    ----------
    release, curator, format
        As in `fit_to_table`.
    generated : tensor of shape (n_rows, n_levels)
        Probabilities of levels that match the released pairs.
    sizes : sequence of int
        Numbers of levels of the columns.
    marginals : Marginals
    public : numpy.random.Generator

    Returns
    -------
    ThreeWayTables or None
        None if no interaction is significant.
    """
    n_records, std = marginals.n_records, release.three_way_std(curator.plan)
    every = list(itertools.combinations(range(len(sizes)), 3))
    halves = join_levels(marginals.counts, sizes, 2, format.is_ordered, public)
    signs = [half @ torch.tensor([[-1.0], [1.0]]).to(half)[: half.shape[1]] for half in halves]
    interactions = release.run_interactions(curator, signs, every)
    triples = find_triples(interactions, sizes, generated, n_records, std)
    # The spent budget must not depend on the records: all that is planned is released.
    chosen = triples or every[:1]
    n_groups = count_groups(n_records, std * math.sqrt(len(chosen)))
    groups = join_levels(marginals.counts, sizes, n_groups, format.is_ordered, public)
    three_way = release.run_three_way(curator, format, groups, chosen)
    return three_way if triples else None


def count_groups(n_records: float, std: float) -> int:
    """Return the number of groups of levels, given the standard deviation of noise on a cell."""
    return max(2, round((n_records / max(CONSTANTS.cell * std, 1)) ** (1 / 3)))


def join_levels(
    counts: np.ndarray,
    sizes: Sequence[int],
    n_groups: int,
    is_ordered: Sequence[bool],
    public: np.random.Generator,
) -> list[torch.Tensor]:
    """Join the levels of each column in groups of about equal counts.

    Ordered levels are joined in their order, others in random order.

    Parameters
    ----------
    counts : ndarray of shape (n_levels,)
        Noisy numbers of records.
    sizes : sequence of int
        Numbers of levels of the columns.
    n_groups : int
        Number of groups of each column, at least 2; a column with no more levels keeps them.
    is_ordered : sequence of bool
        Whether the levels of a column are ordered.
    public : numpy.random.Generator

    Returns
    -------
    list of tensor of shape (n_levels, n_groups)
        The one-hot group of each level, for each column.
    """
    joined, starts = [], np.cumsum(sizes)[:-1]
    for its_counts, has_order in zip(np.split(counts, starts), is_ordered, strict=True):
        size = len(its_counts)
        group = order = np.arange(size)
        if size > n_groups:
            order = order if has_order else public.permutation(size)
            shares = np.maximum(its_counts[order], 1e-9)
            # By the middle of each level; the first and the last are always separate.
            group = (shares.cumsum() - shares / 2) / shares.sum() * n_groups
            # The middle of a level without records can be the end itself.
            group = np.minimum(group.astype(int), n_groups - 1)
            group[0], group[-1] = 0, n_groups - 1
        groups = np.zeros((size, min(size, n_groups)))
        groups[order, group] = 1
        joined.append(torch.tensor(groups))
    return joined


@torch.no_grad()
def draw_rows(rows, generator: torch.Generator) -> torch.Tensor:
    """Draw rows of probabilities, of shape (n_rows, n_levels), to estimate interactions."""
    return rows(rows.draw([CONSTANTS.n_rows], generator)).double().cpu()


def with_pairs_of(generated: torch.Tensor, tables: Tables, n_records: float) -> Tables:
    """Return tables whose pairs are those of generated rows, without noise."""
    cells = np.zeros(tables.cells.shape)
    slices = zip(own_and_later(tables.sizes), tables_with_later(cells, tables.sizes), strict=True)
    for (own, later), table in slices:
        table += (generated[:, own].T @ generated[:, later]).numpy()
    return replace(tables, cells=cells * (n_records / len(generated)), pairs_std=0.0)


def find_triples(
    interactions: ThreeWayTables,
    sizes: Sequence[int],
    generated: torch.Tensor,
    n_records: float,
    std: float,
) -> list[tuple[int, int, int]]:
    """Return the triples of columns whose tables are worth their noise, the strongest first.

    An interaction of signs is a signed sum of the eight cells of a table of two groups of levels
    for each column. It is worth a table if it exceeds the noise of the table. All tables share a
    budget: each of K tables has √K times the noise.

    Parameters
    ----------
    interactions : skdpgen.mechanisms.three_way.ThreeWayTables
        Sums of products of signs, of triples of columns.
    sizes : sequence of int
        Numbers of levels of the columns.
    generated : tensor of shape (n_rows, n_levels)
        Probabilities of levels that match the released pairs.
    n_records : float
    std : float
        Standard deviation of the noise on the cells of one three-way table.

    Returns
    -------
    list of (int, int, int)
    """
    parts = zip(generated.split(sizes, dim=1), interactions.maps, strict=True)
    signed = torch.hstack([part @ signs for part, signs in parts])
    first, second, third = torch.tensor(interactions.triples).T
    products = signed[:, first] * signed[:, second] * signed[:, third]
    released = np.concatenate(interactions.cells).ravel()
    gaps = np.abs(released - n_records * products.mean(0).numpy())
    # The noise, and the sampling errors of the records and of the generated rows.
    chance = math.sqrt(interactions.std**2 + n_records + n_records**2 / len(generated))
    least = max(CONSTANTS.clear * chance, CONSTANTS.relevant * n_records)
    order = np.argsort(-gaps)[: CONSTANTS.n_triples]
    n_worth = (gaps[order] > 8 * std * np.sqrt(np.arange(len(order)) + 1)).cumprod().sum()
    return [interactions.triples[i] for i in order[:n_worth] if gaps[i] > least]
