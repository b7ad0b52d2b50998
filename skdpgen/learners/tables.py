# SPDX-License-Identifier: BSD-3-Clause
"""A learner: a network, or particles, that have the released two-way tables of columns."""

from dataclasses import dataclass, replace

import numpy as np
import torch

from ..mechanisms.tables import own_and_later
from .levels import Levels
from .table_rows import RowsByLevel
from .training import WINDOW, Training, descend_to_noise

# Levels of columns whose tables are matched at once.
_NARROW = 64
# What the batches of a part have of a batch, at the least.
_LEAST_BATCH = 0.25

# How often shares of levels are compared with released ones, each time by the rows of a batch for
# every so many steps of the training.
_N_ROUNDS, _STEPS = 6, 16
# In units of their noise, what is matched are counts above this.
_CLEAR = 4


def fit_to_release(make_rows, tables, levels, **training):
    """Train rows until they have the released tables, but for their noise.

    Where records are told apart by the level of a column, the rows of each level are a part.

    Parameters
    ----------
    make_rows, **training
        As in `fit_to_tables`.
    tables : skdpgen.mechanisms.tables.Tables
    levels : Levels
        What the tables say of each level.

    Returns
    -------
    rows : TableRows or RowsByLevel
    losses : list of float
    """
    if tables.by is None:
        return fit_to_tables(make_rows, [tables], [levels], **training)
    counts, std = tables.count_records()
    counts = np.maximum(counts, max(std, 1.0))
    parts = [tables.of_part(part) for part in range(len(counts))]
    # What is empty is told best by all records together.
    is_empty = np.delete(levels.is_empty, tables.by)
    of_parts = [
        replace(Levels.of(part, count, False), is_empty=is_empty)
        for part, count in zip(parts, counts, strict=True)
    ]
    rows, losses = fit_to_tables(make_rows, parts, of_parts, **training)
    return RowsByLevel(rows, counts / counts.sum(), tables.by.start).eval(), losses


@torch.inference_mode(False)
@torch.enable_grad()
def fit_to_tables(
    make_rows,
    tables,
    levels,
    *,
    n_steps,
    batch_size,
    learning_rate,
    generator,
    device,
    three_way=None,
    verbose=0,
):
    """Train until the tables of all pairs of columns are those released, but for noise.

    One-way tables are matched, too. All differences weigh by how little noise there is on them.

    Parameters
    ----------
    make_rows : callable
        Gives the `TableRows` to be trained, from the shares of the parts among the records, the
        sizes of the columns and noisy marginals of shape (n_parts, n_levels).
    tables : list of skdpgen.mechanisms.tables.Tables
        The released tables of each part of the records.
    levels : list of Levels
        What the tables of each part say of each level.
    n_steps, batch_size : int
        Largest number of steps; generated rows a step.
    learning_rate : float
        Of Adam, after a warm-up and before a linear decay.
    device : torch.device
        Where to train.
    three_way : skdpgen.mechanisms.three_way.ThreeWayTables, default=None
        Tables of some triples of columns, which are matched, too, if there is one part.
    generator, verbose
        As in `fit_to_sketch`.

    Returns
    -------
    rows : TableRows
        With averaged weights, on the CPU and in evaluation mode.
    losses : list of float
        At each step, the estimated squared distance between generated and noisy tables.
    """
    counts = np.array([of_part.n_records for of_part in levels])
    shares = counts / counts.sum()
    targets = [
        _PartOfTables.of(part, of_part, share, device)
        for part, of_part, share in zip(tables, levels, shares, strict=True)
    ]
    noise_energy = sum(part.noise_energy for part in targets)
    triples = []
    if three_way is not None:
        triples, its_energy = _read_three_way(three_way, tables[0], counts[0], device)
        noise_energy += its_energy
    marginals = np.stack([of_part.counts / of_part.n_records for of_part in levels])
    marginals = torch.tensor(marginals.clip(0, 1), dtype=torch.float32, device=device)
    rows = make_rows(shares.tolist(), tables[0].sizes, marginals).to(device)
    rows.forbid(levels[0].is_empty)
    training = Training(rows, learning_rate, memory=0.99)
    # Of each part, two halves.
    sizes = [2 * max(1, round(max(share, _LEAST_BATCH) * batch_size) // 2) for share in shares]

    noise_energies = torch.tensor([part.noise_energy for part in targets], device=device)
    seen = []

    def loss():
        made = rows(rows.draw(sizes, generator)).split(sizes)
        gaps = torch.stack(
            [target.find_gap(*part.chunk(2)) for part, target in zip(made, targets, strict=True)]
        )
        gap = sum_unless_near(gaps, noise_energies, seen)
        for joined, table, weight in triples:
            gap = gap + weight * three_way_gap(*made[0].chunk(2), joined, table)
        return gap

    losses = descend_to_noise(training, loss, noise_energy, n_steps, verbose)
    rows = training.finish(lambda: rows.draw(sizes, generator))
    match_columns(rows, levels, (1 + len(losses) // _STEPS) * [sizes], generator)
    return rows, losses


@dataclass(frozen=True)
class _PartOfTables:
    """The tables of a part of the records, in shares of it, as rows are compared with them.

    Attributes
    ----------
    pairs : list of tuple
        From `join_narrow`, as tensors.
    columns : tensor of shape (n_levels,)
    weight : float
        Of one-way tables.
    share : float
        Of the part among all records: noise is the same on the counts of all parts.
    noise_energy : float
        What noise adds to the gap, on average.
    """

    pairs: list
    columns: torch.Tensor
    weight: float
    share: float
    noise_energy: float

    @classmethod
    def of(cls, tables, levels, share, device):
        n_records = levels.n_records

        def as_tensor(array):
            return torch.tensor(array, dtype=torch.float32, device=device)

        pairs = [
            (*where, as_tensor(table / n_records), as_tensor(is_pair))
            for *where, table, is_pair in join_narrow(tables.with_later, tables.sizes)
        ]
        # Each cell of a pair counts twice.
        noise_energy = 2 * tables.pairs_std**2 * tables.cells.size
        noise_energy += tables.columns_std**2 * tables.columns.size
        noise_energy *= (share / n_records) ** 2
        return cls(pairs, as_tensor(tables.columns / n_records), tables.weight, share, noise_energy)

    def find_gap(self, first, second):
        """Estimate the squared distance of the tables of rows, of which there are two halves."""
        one_way = [self.weight * half.mean(0) - self.columns for half in (first, second)]
        gap = 2 * TablesGap.apply(first, second, self.pairs) + one_way[0] @ one_way[1]
        return self.share**2 * gap


def sum_unless_near(gaps, noise_energies, seen):
    """Return the sum of the gaps of parts, without the gradient of those that are near enough.

    Those are at the energy of their noise, over the last steps. A part whose tables are mostly
    noise would learn that while others still learn. Where all parts are near, all go on.

    Parameters
    ----------
    gaps, noise_energies : tensor of shape (n_parts,)
    seen : list of tensor of shape (n_parts,)
        The gaps of the steps before, to which these are added.
    """
    is_far = torch.ones_like(gaps, dtype=torch.bool)
    if len(seen) >= WINDOW:
        is_far = torch.stack(seen[-WINDOW:]).mean(0) > noise_energies
    seen.append(gaps.detach())
    if not is_far.any():
        return gaps.sum()
    return torch.where(is_far, gaps, gaps.detach()).sum()


def _read_three_way(three_way, tables, n_records, device):
    """Return what `three_way_gap` takes of each table, with its weight, and their noise energy."""
    places, std = [own for own, _ in own_and_later(tables.sizes)], tables.columns_std
    weight = (std / three_way.std) ** 2 if three_way.std > 0 else 1.0
    triples = [
        (
            [(places[c], three_way.maps[c].to(device, torch.float32)) for c in triple],
            torch.tensor(table / n_records, dtype=torch.float32, device=device),
            weight,
        )
        for triple, table in zip(three_way.triples, three_way.cells, strict=True)
    ]
    return triples, (std / n_records) ** 2 * sum(table.size for table in three_way.cells)


@torch.no_grad()
def match_columns(rows, levels, sizes, generator):
    """Shift logits until levels are as frequent as they were released.

    Training ends within the noise of all tables. That of columns alone is far less, and the mean of
    an amount follows from the shares of few levels.

    Parameters
    ----------
    rows : TableRows
    levels : list of Levels
        Of each part.
    sizes : list of list of int
        How many rows of each part batches have, by whose mean it is judged.
    generator : torch.Generator
    """
    # Of rare ones, noise would be matched, and only where it is positive.
    shares = [
        np.where(part.counts > _CLEAR * part.std, part.counts, 0) / part.n_records
        for part in levels
    ]
    shares = torch.as_tensor(np.stack(shares))
    for n_before in range(_N_ROUNDS):
        made = 0
        for counts in sizes:
            parts = rows(rows.draw(counts, generator)).double().split(counts)
            made = made + torch.stack([part.mean(0) for part in parts]) / len(sizes)
        # Each round less, so that the last ones average over what is drawn.
        change = (shares / made).log() / (n_before + 1) ** 0.5
        rows.shift(change.where((shares > 0) & (made > 0), 0).clamp(-1, 1).to(rows.offset))


class TablesGap(torch.autograd.Function):
    """Estimates the squared differences between the two-way tables of rows and given ones.

    The product of two independent estimates has no bias from their variance. A column is not
    independent of itself, given the code: its own table is left out. The gradient is made beside
    the estimate, block by block, as no other is wanted.
    """

    @staticmethod
    def forward(ctx, first, second, tables):
        """Return the estimate.

        Parameters
        ----------
        first, second : tensor of shape (n_rows, n_levels)
            Rows that are independent of each other, as many in both.
        tables : list of tuple
            From `join_narrow`.
        """
        parts = first / len(first), second / len(second)
        gap, gradients = first.new_zeros(()), [torch.zeros_like(part) for part in parts]
        for own, later, table, is_pair in tables:
            differences = [
                torch.addmm(table, rows[:, own].T, part[:, later], beta=-1).mul_(is_pair)
                for rows, part in zip((first, second), parts, strict=True)
            ]
            gap += (differences[0] * differences[1]).sum()
            for part, gradient, other in zip(parts, gradients, differences[::-1], strict=True):
                gradient[:, own].addmm_(part[:, later], other.T)
                gradient[:, later].addmm_(part[:, own], other)
        ctx.save_for_backward(*gradients)
        return gap

    @staticmethod
    def backward(ctx, of_gap):
        return *(of_gap * gradient for gradient in ctx.saved_tensors), None


def three_way_gap(first, second, joined, table):
    """Estimate the squared differences between a three-way table of rows and a given one.

    Parameters
    ----------
    first, second : tensor of shape (n_rows, n_levels)
        Rows that are independent of each other.
    joined : sequence of (slice, tensor)
        For three columns, where their levels are, and the map that joins them in groups.
    table : tensor
        Shares of the records.
    """
    differences = [
        torch.einsum("ni,nj,nk->ijk", *(rows[:, own] @ groups for own, groups in joined))
        / len(rows)
        - table
        for rows in (first, second)
    ]
    return (differences[0] * differences[1]).sum()


def join_narrow(tables, sizes):
    """Join the tables of neighbouring columns, as few large products are faster than many small.

    Parameters
    ----------
    tables : list of ndarray
        For each column, its tables with all later columns, side by side.
    sizes : sequence of int
        Numbers of levels of the columns.

    Yields
    ------
    own, later : slice
        Levels of one or more columns, and all that come after those of the first.
    table, is_pair : ndarray
        Their tables, and 1 where these have a cell.
    """
    places, c = own_and_later(sizes), 0
    while c < len(sizes):
        end = c + 1
        while end < len(sizes) and sum(sizes[c : end + 1]) <= _NARROW:
            end += 1
        own = slice(places[c][0].start, places[end - 1][0].stop)
        later = places[c][1]
        table, is_pair = np.zeros((2, own.stop - own.start, later.stop - later.start))
        for (its, others), cells in zip(places[c:end], tables[c:end], strict=True):
            where = (
                slice(its.start - own.start, its.stop - own.start),
                slice(others.start - later.start, None),
            )
            table[where], is_pair[where] = cells, 1
        yield own, later, table, is_pair
        c = end
