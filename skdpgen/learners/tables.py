# SPDX-License-Identifier: BSD-3-Clause
"""Training of networks or particles on released two-way contingency tables."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..mechanisms.multi_way import MultiWayTables, multiply_rows
from ..mechanisms.tables import Tables, own_and_later
from .marginals import Marginals
from .table_rows import StratifiedRows, TableRows
from .training import CONSTANTS as TRAINING
from .training import Training, descend_to_noise, enables_gradients


@dataclass(frozen=True)
class TableConstants:
    """Constants of training on tables; all are set by hand."""

    # Most levels of neighbouring columns whose tables are compared in one matrix product.
    n_joined: int = 64
    # Least share of a stratum in a batch.
    least_batch: float = 0.25
    # Rounds of the final matching of marginals, and most batches of a round, one for so many steps
    # of training.
    n_rounds: int = 6
    most_batches: int = 16
    steps_per_batch: int = 16
    # Counts are matched if they exceed this number of standard deviations of their noise.
    clear: float = 4.0


CONSTANTS = TableConstants()


def fit_to_release(
    make_rows: Callable,
    tables: Tables,
    marginals: Marginals,
    *,
    multi_way: MultiWayTables | None = None,
    **training,
) -> tuple[TableRows | StratifiedRows, list[float]]:
    """Train rows to match the released tables, up to the noise.

    Parameters
    ----------
    make_rows, **training
        As in `fit_to_tables`.
    tables : skdpgen.mechanisms.tables.Tables
        Tables of all records, or stratified tables.
    marginals : Marginals
        From the same tables.
    multi_way : skdpgen.mechanisms.multi_way.MultiWayTables, default=None
        Tables of some subsets of columns; if records are stratified, with their stratum as the last
        factor.

    Returns
    -------
    rows : TableRows or StratifiedRows
    losses : list of float
    """
    if tables.by is None:
        return fit_to_tables(make_rows, [tables], [marginals], multi_way=multi_way, **training)
    counts, std = tables.count_records()
    counts = np.maximum(counts, max(std, 1.0))
    strata = [tables.stratum(i) for i in range(len(counts))]
    # Pooled counts have the best signal-to-noise ratio for the detection of empty levels.
    is_empty, is_knot = (
        np.delete(mask, tables.by) for mask in (marginals.is_empty, marginals.is_knot)
    )
    strata_marginals = [
        replace(Marginals.of(stratum, count, False, is_knot), is_empty=is_empty)
        for stratum, count in zip(strata, counts, strict=True)
    ]
    start = tables.by.start
    if multi_way is not None:
        start = sum(multi_way.refinement.knot_sizes[: multi_way.by])
    rows, losses = fit_to_tables(
        make_rows, strata, strata_marginals, multi_way=multi_way, **training
    )
    return StratifiedRows(rows, counts / counts.sum(), start).eval(), losses


@enables_gradients
def fit_to_tables(
    make_rows: Callable,
    tables: list[Tables],
    marginals: list[Marginals],
    *,
    n_steps: int,
    batch_size: int,
    learning_rate: float,
    generator: torch.Generator,
    device: torch.device,
    multi_way: MultiWayTables | None = None,
    verbose: int = 0,
) -> tuple[TableRows, list[float]]:
    """Train rows to match the released one-way and two-way tables, up to the noise.

    The loss weights differences by the precision of the noise.

    Parameters
    ----------
    make_rows : callable
        Returns the `TableRows` to train, for the shares of the strata, the sizes of the columns and
        noisy marginals of shape (n_strata, n_levels).
    tables : list of skdpgen.mechanisms.tables.Tables
        The released tables of each stratum of the records.
    marginals : list of Marginals
        The marginals of each stratum.
    n_steps, batch_size : int
        Largest number of steps, and number of generated rows in a step.
    learning_rate : float
        Learning rate of Adam, between a warm-up and a linear decay.
    device : torch.device
        Where training runs.
    multi_way : skdpgen.mechanisms.multi_way.MultiWayTables, default=None
        As in `fit_to_release`. Rows then have the finer levels of these tables.
    generator, verbose
        As in `fit_to_sketch`.

    Returns
    -------
    rows : TableRows
        With averaged weights, on the CPU and in evaluation mode.
    losses : list of float
        At each step, the estimated squared distance between generated and noisy tables.
    """
    counts = np.array([stratum.n_records for stratum in marginals])
    shares = counts / counts.sum()
    targets = [_Target.of(*args, device) for args in zip(tables, marginals, shares, strict=True)]
    noise_energies = [target.noise_energy for target in targets]
    sizes, coarsen, subsets = tables[0].sizes, None, []
    if multi_way is not None:
        refinement = multi_way.refinement.without(multi_way.by)
        sizes, coarsen = refinement.fine_sizes, refinement.to_coarse()
        marginals = [stratum.refined(coarsen.numpy()) for stratum in marginals]
        coarsen = coarsen.to(device, torch.float32)
        subsets = [
            _SubsetsTarget.of(multi_way, i, sizes, *args, device)
            for i, args in enumerate(zip(tables, counts, shares, strict=True))
        ]
        noise_energies += [0.0] * len(subsets)
    frequencies = np.stack([stratum.starts for stratum in marginals])
    starts = torch.tensor(frequencies, dtype=torch.float32, device=device)
    rows = make_rows(shares.tolist(), sizes, starts).to(device)
    rows.forbid(marginals[0].is_empty)
    training = Training(rows, learning_rate, memory=0.99)
    least = CONSTANTS.least_batch
    half = [max(1, round(max(share, least) * batch_size) // 2) for share in shares]
    batch = [2 * size for size in half]
    energies = torch.tensor(noise_energies, device=device)
    history: list[torch.Tensor] = []

    def loss():
        drawn = rows(rows.draw_pair(half, generator))
        levels = drawn if coarsen is None else drawn @ coarsen
        gaps = []
        for parts, samples in ((targets, levels), (subsets, drawn)):
            pairs = zip(*(sample.split(half) for sample in samples.chunk(2)), strict=True)
            gaps += [part.gap(*pair) for part, pair in zip(parts, pairs, strict=False)]
        return hold_at_noise(torch.stack(gaps), energies, history)

    descend_to_noise(training, loss, energies, n_steps, verbose)
    losses = torch.stack(history).sum(1).tolist()
    rows = training.finish(lambda: rows.draw(batch, generator))
    if multi_way is not None:
        rows.to_knots = refinement.to_knots().float()
    n_batches = min(CONSTANTS.most_batches, 1 + len(losses) // CONSTANTS.steps_per_batch)
    match_marginals(rows, marginals, n_batches * [batch], generator)
    return rows, losses


@dataclass(frozen=True)
class _Target:
    """The tables of a stratum, as shares of its records: targets of the training.

    Attributes
    ----------
    pairs : list of tuple
        From `join_narrow_tables`, as tensors.
    columns : tensor of shape (n_levels,)
    weight : float
        Weight of one-way tables.
    share : float
        Share of the stratum among all records, by which gaps are weighted, since the counts of all
        strata have the same noise.
    noise_energy : float
        Expected contribution of the noise to the gap.
    """

    pairs: list
    columns: torch.Tensor
    weight: float
    share: float
    noise_energy: float

    @classmethod
    def of(cls, tables, marginals, share, device):
        n_records = marginals.n_records

        def as_tensor(array):
            return torch.tensor(array, dtype=torch.float32, device=device)

        pairs = [
            (*slices, as_tensor(table / n_records), as_tensor(is_pair))
            for *slices, table, is_pair in join_narrow_tables(tables.with_later, tables.sizes)
        ]
        # The gap counts each cell of a pair twice.
        noise_energy = 2 * tables.pairs_std**2 * tables.cells.size
        noise_energy += tables.columns_std**2 * tables.columns.size
        noise_energy *= (share / n_records) ** 2
        return cls(pairs, as_tensor(tables.columns / n_records), tables.weight, share, noise_energy)

    def gap(self, first, second):
        """Estimate the squared distance to the tables of rows, from two independent samples."""
        one_way = [self.weight * half.mean(0) - self.columns for half in (first, second)]
        gap = 2 * TablesGap.apply(first, second, self.pairs) + one_way[0] @ one_way[1]
        return self.share**2 * gap


def hold_at_noise(
    gaps: torch.Tensor, noise_energies: torch.Tensor, history: list[torch.Tensor]
) -> torch.Tensor:
    """Return the gaps of all parts, with gradients of those above the noise only.

    A part is at its noise if its mean gap over the last steps is at most its noise energy. With
    gradients it would overfit the noise while other parts still learn. If all parts are at their
    noise, all have gradients.

    Parameters
    ----------
    gaps, noise_energies : tensor of shape (n_parts,)
    history : list of tensor of shape (n_parts,)
        The gaps of earlier steps; the function appends these.
    """
    is_above = torch.ones_like(gaps, dtype=torch.bool)
    if len(history) >= TRAINING.window:
        is_above = torch.stack(history[-TRAINING.window :]).mean(0) > noise_energies
    history.append(gaps.detach())
    return torch.where(is_above | ~is_above.any(), gaps, gaps.detach())


@dataclass(frozen=True)
class _SubsetsTarget:
    """The multi-way tables of a stratum, as shares of its records: targets of the training.

    Attributes
    ----------
    products : list of (list of (slice, tensor), tensor)
        For each table, the slice of the levels of each column and their map, and the shares.
    weight : float
        Precision of the tables, relative to that of one-way tables.
    share, noise_energy : float
        As in `_Target`.
    """

    products: list
    weight: float
    share: float
    noise_energy: float

    @classmethod
    def of(cls, multi_way, stratum, sizes, tables, n_records, share, device):
        std, by = multi_way.std, multi_way.by
        columns = [c for c in range(len(multi_way.refinement.sizes)) if c != by]
        where = dict(zip(columns, (own for own, _ in own_and_later(sizes)), strict=True))
        weight = (tables.columns_std / std) ** 2 if std > 0 else 1.0
        products, n_cells = [], 0
        for factors, cells in zip(multi_way.products, multi_way.cells, strict=True):
            table = cells if by is None else cells[..., stratum]
            n_cells += table.size
            products.append(
                (
                    [(where[c], m.to(device, torch.float32)) for c, m in factors if c != by],
                    torch.tensor(table / n_records, dtype=torch.float32, device=device).flatten(),
                )
            )
        noise_energy = weight * n_cells * (share * std / n_records) ** 2
        return cls(products, weight, share, noise_energy)

    def gap(self, first, second):
        """Estimate the squared distance to the tables of rows, from two independent samples."""
        gaps = [multi_way_gap(first, second, *product) for product in self.products]
        return self.share**2 * self.weight * sum(gaps)


@torch.no_grad()
def match_marginals(
    rows: TableRows,
    marginals: list[Marginals],
    batches: list[list[int]],
    generator: torch.Generator,
) -> None:
    """Shift logits until generated rows match the released marginals.

    Training stops within the noise of all tables. Marginals have far less noise, and the mean of a
    numeric column depends on the shares of a few levels.

    Parameters
    ----------
    rows : TableRows
        Changed in place.
    marginals : list of Marginals
        The marginals of each stratum.
    batches : list of list of int
        Numbers of rows of each stratum in each batch of a round.
    generator : torch.Generator
    """
    # Rare levels are excluded: of their noise, only positive values could be matched.
    targets = [
        np.where(stratum.counts > CONSTANTS.clear * stratum.std, stratum.counts, 0)
        / stratum.n_records
        for stratum in marginals
    ]
    shares = torch.as_tensor(np.stack(targets))
    for n_before in range(CONSTANTS.n_rounds):
        generated = torch.zeros_like(shares)
        for sizes in batches:
            strata = rows(rows.draw(sizes, generator)).double().split(sizes)
            generated = generated + torch.stack([part.mean(0) for part in strata]) / len(batches)
        # Smaller steps in later rounds average over the sampling error of batches.
        change = (shares / generated).log() / (n_before + 1) ** 0.5
        is_matched = (shares > 0) & (generated > 0)
        rows.shift(change.where(is_matched, 0).clamp(-1, 1).to(rows.offset))


class TablesGap(torch.autograd.Function):
    """Estimate of the squared differences between the two-way tables of rows and given tables.

    The product of two independent estimates has no bias from their variance. The table of a column
    with itself is excluded, as a column is not independent of itself given the code. The forward
    pass also computes the gradient, block by block, to save memory.
    """

    @staticmethod
    def forward(ctx, first, second, tables):
        """Return the estimate.

        Parameters
        ----------
        first, second : tensor of shape (n_rows, n_levels)
            Independent rows, the same number in both.
        tables : list of tuple
            From `join_narrow_tables`.
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
    def backward(ctx, slope):
        return *(slope * gradient for gradient in ctx.saved_tensors), None


def multi_way_gap(
    first: torch.Tensor, second: torch.Tensor, joined: Sequence[tuple], table: torch.Tensor
) -> torch.Tensor:
    """Estimate the squared differences between a multi-way table of rows and a given one.

    Parameters
    ----------
    first, second : tensor of shape (n_rows, n_levels)
        Independent rows.
    joined : sequence of (slice, tensor)
        For each column, the slice of its levels, and the map from levels to groups.
    table : tensor of shape (n_cells,)
        Shares of the records.
    """
    differences = []
    for rows in (first, second):
        (own, groups), *others = joined
        left = rows[:, own] @ groups
        for column, its_groups in others[:-1]:
            left = multiply_rows(left, rows[:, column] @ its_groups)
        last, its_groups = joined[-1]
        found = left.T @ (rows[:, last] @ its_groups) if others else left.sum(0)
        differences.append(found.flatten() / len(rows) - table)
    return differences[0] @ differences[1]


def join_narrow_tables(tables: list[np.ndarray], sizes: Sequence[int]) -> Iterator[tuple]:
    """Concatenate tables of neighbouring columns: few large products are faster than many small.

    Parameters
    ----------
    tables : list of ndarray
        For each column, its tables with all later columns, side by side.
    sizes : sequence of int
        Numbers of levels of the columns.

    Yields
    ------
    own, later : slice
        Levels of one or more columns, and the levels of all columns after the first of them.
    table, is_pair : ndarray
        Their tables, and 1 where these have a cell.
    """
    slices, c = own_and_later(sizes), 0
    while c < len(sizes):
        end = c + 1
        while end < len(sizes) and sum(sizes[c : end + 1]) <= CONSTANTS.n_joined:
            end += 1
        own = slice(slices[c][0].start, slices[end - 1][0].stop)
        later = slices[c][1]
        table, is_pair = np.zeros((2, own.stop - own.start, later.stop - later.start))
        for (first, others), cells in zip(slices[c:end], tables[c:end], strict=True):
            block = (
                slice(first.start - own.start, first.stop - own.start),
                slice(others.start - later.start, None),
            )
            table[block], is_pair[block] = cells, 1
        yield own, later, table, is_pair
        c = end
