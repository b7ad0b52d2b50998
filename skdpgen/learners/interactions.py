# SPDX-License-Identifier: BSD-3-Clause
"""A learner of tables: of pairs of columns first, and of triples that pairs do not explain."""

import itertools
import math
from dataclasses import replace

import numpy as np
import torch

from ..mechanisms.tables import own_and_later, tables_with_later
from .report import read_tables
from .tables import fit_to_release, fit_to_tables

# Interactions stand out by so many standard deviations of what chance makes of them, and by so much
# of the records: half of it is the total variation, at least, by which a table is off.
_CLEAR, _MUCH = 4, 0.05
# Rows by which those of what was learnt are judged.
_N_ROWS = 20_000
# Three-way tables at most; and what a cell has of the records, on average, in units of its noise.
_MOST, _CELL = 20, 8


def fit_to_table(release, curator, format, make_rows, noise, **training):
    """Make the planned releases of a table, and train rows until they have them, but for noise.

    Rows that have the released pairs say how often signs of three columns should agree. Triples
    for which the released interactions say otherwise get tables of their own, and training goes on.

    Parameters
    ----------
    release : TwoWayTables
    curator : Curator
        It is closed as soon as nothing more is released.
    format : TableFormat
        That leaves nothing open.
    make_rows, **training
        As in `fit_to_tables`.
    noise : NoiseSource

    Returns
    -------
    rows : TableRows or RowsByLevel
    losses : list of float
    report : DataFrame
        From `read_tables`.
    """
    tables = release.run(curator, format)
    seeks = release.seeks(curator.plan)
    if not seeks:
        curator.close()
    levels, report = read_tables(tables, format, curator.n_rows)
    training |= {"device": curator.device, "generator": noise.torch_generator()}
    rows, losses = fit_to_release(make_rows, tables, levels, **training)
    if not seeks:
        return rows, losses, report
    made = draw(rows, training["generator"])
    three_way = release_three_way(
        release, curator, format, made, tables.sizes, levels, noise.public_generator()
    )
    curator.close()
    if three_way is not None:
        # Pairs stay as they were learnt: to go on with the released ones would be to learn noise.
        tables = with_pairs_of(made, tables, levels.n_records)
        training["n_steps"] = -(-training["n_steps"] // 2)
        rows, more = fit_to_tables(
            lambda *_: rows, [tables], [levels], three_way=three_way, **training
        )
        losses += more
    return rows, losses, report


def release_three_way(release, curator, format, made, sizes, levels, public):
    """Release interactions, and the tables of those triples that stand out.

    Parameters
    ----------
    release, curator, format
        As in `fit_to_table`.
    made : tensor of shape (n_rows, n_levels)
        Probabilities of levels that have the released pairs.
    sizes : sequence of int
        Numbers of levels of the columns.
    levels : Levels
    public : numpy.random.Generator

    Returns
    -------
    ThreeWayTables or None
        None if no triple stands out.
    """
    n_records, std = levels.n_records, release.three_way_std(curator.plan)
    every = list(itertools.combinations(range(len(sizes)), 3))
    halves = join_levels(levels.counts, sizes, 2, format.is_ordered, public)
    signs = [half @ torch.tensor([[-1.0], [1.0]]).to(half)[: half.shape[1]] for half in halves]
    interactions = release.run_interactions(curator, signs, every)
    triples = find_triples(interactions, sizes, made, n_records, std)
    # What a fit claims to have spent may not follow from the rows: all that is planned is released.
    chosen = triples or every[:1]
    n_groups = count_groups(n_records, std * math.sqrt(len(chosen)))
    groups = join_levels(levels.counts, sizes, n_groups, format.is_ordered, public)
    three_way = release.run_three_way(curator, format, groups, chosen)
    return three_way if triples else None


def count_groups(n_records, std):
    """Return in how many groups levels are joined, for noise of a standard deviation on a cell."""
    return max(2, round((n_records / max(_CELL * std, 1)) ** (1 / 3)))


def join_levels(counts, sizes, n_groups, is_ordered, public):
    """Join the levels of each column in groups, of about as many records each.

    Levels that have an order are joined in it, others in random order.

    Parameters
    ----------
    counts : ndarray of shape (n_levels,)
        Noisy numbers of records.
    sizes : sequence of int
        Numbers of levels of the columns.
    n_groups : int
        Of each column, at least 2; one that has no more levels is left as it is.
    is_ordered : sequence of bool
        Whether levels of a column have an order.
    public : numpy.random.Generator

    Returns
    -------
    list of tensor of shape (n_levels, n_groups)
        For each column, with a 1 for each level in its group.
    """
    joined, starts = [], np.cumsum(sizes)[:-1]
    for of_column, has_order in zip(np.split(counts, starts), is_ordered, strict=True):
        size = len(of_column)
        group = order = np.arange(size)
        if size > n_groups:
            order = order if has_order else public.permutation(size)
            shares = np.maximum(of_column[order], 1e-9)
            # By the middle of each level; the first and the last are always apart.
            group = (shares.cumsum() - shares / 2) / shares.sum() * n_groups
            # The middle of a level without records may be the very end.
            group = np.minimum(group.astype(int), n_groups - 1)
            group[0], group[-1] = 0, n_groups - 1
        groups = np.zeros((size, min(size, n_groups)))
        groups[order, group] = 1
        joined.append(torch.tensor(groups))
    return joined


@torch.no_grad()
def draw(rows, generator):
    """Draw many rows of those that were learnt."""
    return rows(rows.draw([_N_ROWS], generator)).double().cpu()


def with_pairs_of(made, tables, n_records):
    """Return tables whose pairs are those of generated rows, which have no noise."""
    cells = np.zeros(tables.cells.shape)
    places = zip(own_and_later(tables.sizes), tables_with_later(cells, tables.sizes), strict=True)
    for (own, later), table in places:
        table += (made[:, own].T @ made[:, later]).numpy()
    return replace(tables, cells=cells * (n_records / len(made)), pairs_std=0.0)


def find_triples(interactions, sizes, made, n_records, std):
    """Return the triples of columns whose tables are worth their noise, the clearest first.

    An interaction of signs is one number made of the eight cells of a table of two groups of levels
    each. It is worth a table if it is above the noise that this would have. All tables together
    share a budget: for K of them each has √K of the noise.

    Parameters
    ----------
    interactions : skdpgen.mechanisms.three_way.ThreeWayTables
        Sums of products of signs, of triples of columns.
    sizes : sequence of int
        Numbers of levels of the columns.
    made : tensor of shape (n_rows, n_levels)
        Probabilities of levels that have the released pairs.
    n_records : float
    std : float
        Standard deviation of the noise on the cells of one three-way table.

    Returns
    -------
    list of (int, int, int)
    """
    parts = zip(made.split(sizes, dim=1), interactions.maps, strict=True)
    signed = torch.hstack([part @ signs for part, signs in parts])
    first, second, third = torch.tensor(interactions.triples).T
    products = signed[:, first] * signed[:, second] * signed[:, third]
    released = np.concatenate(interactions.cells).ravel()
    gaps = np.abs(released - n_records * products.mean(0).numpy())
    # Beside the noise: a sample of so many records, and of so many rows.
    chance = math.sqrt(interactions.std**2 + n_records + n_records**2 / len(made))
    least = max(_CLEAR * chance, _MUCH * n_records)
    order = np.argsort(-gaps)[:_MOST]
    n_worth = (gaps[order] > 8 * std * np.sqrt(np.arange(len(order)) + 1)).cumprod().sum()
    return [interactions.triples[i] for i in order[:n_worth] if gaps[i] > least]
