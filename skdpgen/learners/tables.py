# SPDX-License-Identifier: BSD-3-Clause
"""A learner: a network, or particles, that have the released two-way tables of columns."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from .._quality import WITHIN_NOISE
from ..privacy.mechanisms.tables import own_and_later
from .training import Training, descend_to_noise

# Levels of columns whose tables are matched at once.
_NARROW = 64

# How often shares of levels are compared with released ones, each time by the rows of a batch for
# every so many steps of the training.
_N_ROUNDS, _STEPS = 6, 16
# In units of their noise, what is matched are counts above this.
_CLEAR = 4


class SoftmaxBlocks(nn.Module):
    """Turns each block of columns into probabilities."""

    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes

    def forward(self, logits):
        return torch.cat([block.softmax(1) for block in logits.split(self.sizes, dim=1)], dim=1)


class TableRows(nn.Module):
    """Something that gives, for each column of a table, probabilities of its levels.

    Given the code, columns are independent: the mean product of two blocks of probabilities is the
    joint law of two columns.

    Parameters
    ----------
    sizes : list of int
        Number of levels of each column.
    marginals : tensor of shape (n_levels,)
        Probabilities to start from.
    """

    def __init__(self, sizes, marginals):
        super().__init__()
        self.blocks = SoftmaxBlocks(sizes)
        self.register_buffer("offset", marginals.clamp(min=1e-6).log())
        self.register_buffer("is_empty", None)

    def forbid(self, is_empty):
        """Give some levels a probability of exactly 0, from now on."""
        if np.any(is_empty):
            self.is_empty = torch.as_tensor(is_empty, device=self.offset.device)

    def to_probabilities(self, logits):
        """Turn logits into blocks of probabilities."""
        if self.is_empty is not None:
            logits = logits.masked_fill(self.is_empty, -torch.inf)
        return self.blocks(logits)

    @torch.no_grad()
    def sample(self, classes, generator):
        """Return a row for each of `classes`, as the encoder of tables makes them.

        Its blocks sum to 1/√(columns). Classes are one of the columns, and are not looked at.
        """
        rows = self(self.draw(len(classes), generator)).double().cpu().numpy()
        return rows / len(self.blocks.sizes) ** 0.5


class TableNetwork(TableRows):
    """A network from Gaussian codes to probabilities of levels.

    Parameters
    ----------
    network : torch.nn.Module
        Maps (n, latent_dim) codes to (n, n_levels).
    latent_dim : int
        Width of the Gaussian code.
    sizes, marginals
        As in `TableRows`.
    """

    def __init__(self, network, latent_dim, sizes, marginals):
        super().__init__(sizes, marginals)
        self.network = network
        self.latent_dim = latent_dim

    def forward(self, codes):
        """Map codes to blocks of probabilities."""
        return self.to_probabilities(self.network(codes) + self.offset)

    def shift(self, change):
        """Add a change to all logits."""
        self.offset += change

    def draw(self, n_rows, generator):
        """Draw codes; on the CPU, so that every device gets the same."""
        codes = torch.randn(n_rows, self.latent_dim, generator=generator, dtype=torch.float32)
        return codes.to(self.offset.device)


class TableParticles(TableRows):
    """Particles, each with its own probabilities of levels. Their codes are their positions.

    Parameters
    ----------
    n_particles : int
    generator : torch.Generator
        Where the particles' starts come from.
    sizes, marginals
        As in `TableRows`.
    """

    def __init__(self, n_particles, generator, sizes, marginals):
        super().__init__(sizes, marginals)
        noise = torch.randn(n_particles, len(marginals), generator=generator)
        self.logits = nn.Parameter(self.offset + noise.to(self.offset))

    def forward(self, codes):
        """Return the blocks of probabilities of particles."""
        return self.to_probabilities(self.logits[codes])

    def shift(self, change):
        """Add a change to all logits."""
        self.logits.data += change

    def draw(self, n_rows, generator):
        """Draw particles in random order, again and again if there are fewer."""
        return draw_in_rounds(len(self.logits), n_rows, generator).to(self.offset.device)


def draw_in_rounds(n_particles, n, generator):
    """Return `n` positions of particles: all in random order, again and again."""
    order = [torch.randperm(n_particles, generator=generator) for _ in range(-(-n // n_particles))]
    return torch.cat(order)[:n]


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
        Gives the `TableRows` to be trained, from the sizes of the columns and noisy marginals.
    tables : skdpgen.privacy.Tables
        The released tables.
    levels : Levels
        What the tables say of each level.
    n_steps, batch_size : int
        Largest number of steps; generated rows a step.
    learning_rate : float
        Of Adam, after a warm-up and before a linear decay.
    device : torch.device
        Where to train.
    three_way : skdpgen.privacy.ThreeWayTables, default=None
        Tables of some triples of columns, which are matched, too.
    generator, verbose
        As in `fit_to_sketch`.

    Returns
    -------
    rows : TableRows
        With averaged weights, on the CPU and in evaluation mode.
    losses : list of float
        At each step, the estimated squared distance between generated and noisy tables.
    """
    n_records, sizes = levels.n_records, tables.sizes
    std = tables.columns_std
    # Each cell of a pair counts twice.
    noise_energy = 2 * tables.pairs_std**2 * tables.cells.size + std**2 * tables.columns.size
    noise_energy /= n_records**2

    def as_tensor(array):
        return torch.tensor(array, dtype=torch.float32, device=device)

    pairs = [
        (*where, as_tensor(table / n_records), as_tensor(is_pair))
        for *where, table, is_pair in join_narrow(tables.with_later, sizes)
    ]
    columns = as_tensor(tables.columns / n_records)
    triples, weight = [], 1.0
    if three_way is not None:
        places = [own for own, _ in own_and_later(sizes)]
        triples = [
            (
                [(places[c], three_way.maps[c].to(device, torch.float32)) for c in triple],
                as_tensor(table / n_records),
            )
            for triple, table in zip(three_way.triples, three_way.cells, strict=True)
        ]
        noise_energy += (std / n_records) ** 2 * sum(table.size for table in three_way.cells)
        if three_way.std > 0:
            weight = (std / three_way.std) ** 2
    rows = make_rows(sizes, as_tensor(np.clip(levels.counts / n_records, 0, 1))).to(device)
    rows.forbid(levels.is_empty)
    training = Training(rows, learning_rate, memory=0.99)
    half = max(1, batch_size // 2)

    def loss():
        made = rows(rows.draw(2 * half, generator)).split(half)
        first, second = (tables.weight * part.mean(0) - columns for part in made)
        gap = 2 * TablesGap.apply(*made, pairs) + first @ second
        for joined, table in triples:
            gap = gap + weight * three_way_gap(*made, joined, table)
        return gap

    losses = descend_to_noise(training, loss, noise_energy, n_steps, verbose)
    rows = training.finish(lambda: rows.draw(2 * half, generator))
    match_columns(rows, levels, (1 + len(losses) // _STEPS) * [batch_size], generator)
    return rows, losses


@torch.no_grad()
def match_columns(rows, levels, sizes, generator):
    """Shift logits until levels are as frequent as they were released.

    Training ends within the noise of all tables. That of columns alone is far less, and the mean of
    an amount follows from the shares of few levels.

    Parameters
    ----------
    rows : TableRows
    levels : Levels
    sizes : list of int
        Of the batches by whose mean it is judged.
    generator : torch.Generator
    """
    # Of rare ones, noise would be matched, and only where it is positive.
    is_clear = levels.counts > _CLEAR * levels.std
    shares = torch.as_tensor(np.where(is_clear, levels.counts, 0) / levels.n_records)
    for n_before in range(_N_ROUNDS):
        parts = [rows(rows.draw(size, generator)).double().mean(0) for size in sizes]
        made = torch.stack(parts).mean(0)
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


@dataclass(frozen=True)
class Levels:
    """How many records have each level of each column, by released tables.

    Attributes
    ----------
    counts, std : ndarray of shape (n_levels,)
        Noisy numbers, and standard deviations of their noise.
    n_records : float
        Number of records that they are of.
    is_empty : ndarray of bool of shape (n_levels,)
        Levels that no record is taken to have: spare ones, whose counts are within noise of 0.
    """

    counts: np.ndarray
    std: np.ndarray
    n_records: float
    is_empty: np.ndarray

    @classmethod
    def of(cls, tables, n_records, is_spare):
        """Count levels; those of all records, if there are tables for each level of a column.

        Parameters
        ----------
        tables : skdpgen.privacy.Tables
        n_records : float
        is_spare : ndarray of bool of shape (n_levels,)
            Levels that stand for what is not told apart, as missing values do. One that is the
            most frequent of its column is not taken for empty.
        """
        counts, std = tables.count_levels()
        sizes = tables.sizes
        if tables.by is not None:
            n_parts, at = len(counts), tables.by.start
            of_parts, std_of_parts = tables.count_records()
            counts = np.insert(counts.sum(axis=0), at, of_parts)
            std = np.insert(std * n_parts**0.5, at, np.full(n_parts, std_of_parts))
            before = int(np.searchsorted(np.cumsum(sizes), at, side="right"))
            sizes = (*sizes[:before], n_parts, *sizes[before:])
        starts = np.cumsum(sizes)[:-1]
        largest = np.repeat([block.max() for block in np.split(counts, starts)], sizes)
        is_empty = (counts <= WITHIN_NOISE * std) & (counts < largest) & is_spare
        return cls(counts, std, n_records, is_empty)
