# SPDX-License-Identifier: BSD-3-Clause
"""Released tables as targets of training: squared distances of generated rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..mechanisms.multi_way import multiply_rows
from ..mechanisms.two_way import own_and_later

# Most levels of neighbouring columns whose tables are compared in one matrix product; by hand.
_N_JOINED = 64


@dataclass(frozen=True)
class TablesTarget:
    """The tables of a stratum, as shares of its records: targets of the training."""

    # From `join_narrow_tables`, as tensors.
    pairs: list
    # Shape (n_levels,).
    columns: torch.Tensor
    # Weight of one-way tables.
    weight: float
    # Share of the stratum among all records, by which gaps are weighted, since the counts of all
    # strata have the same noise.
    share: float
    # Expected contribution of the noise to the gap.
    noise_energy: float

    @classmethod
    def of(cls, tables, n_records, share, device, noise=1.0):
        """`noise`: the shares of the noise that cells keep."""

        def as_tensor(array):
            return torch.tensor(array, dtype=torch.float32, device=device)

        pairs = [
            (*slices, as_tensor(table / n_records), as_tensor(is_pair))
            for *slices, table, is_pair in join_narrow_tables(tables.with_later, tables.sizes)
        ]
        # The gap counts each cell of a pair twice. Cells that rules exclude have no noise.
        noise_energy = 2 * tables.pairs_std**2 * ((tables.cells != 0) * noise).sum()
        noise_energy += tables.columns_std**2 * np.count_nonzero(tables.columns)
        noise_energy *= (share / n_records) ** 2
        return cls(pairs, as_tensor(tables.columns / n_records), tables.weight, share, noise_energy)

    def add(self, own, table):
        """Add the table of a column with itself, of shares: a target of exact gaps alone."""
        table = torch.tensor(table).to(self.columns)
        self.pairs.append((own, own, table, torch.ones_like(table)))

    def gap(self, first, second):
        """Estimate the squared distance to the tables of rows, from two independent samples."""
        one_way = [self.weight * half.mean(0) - self.columns for half in (first, second)]
        gap = 2 * TablesGap.apply(first, second, self.pairs) + one_way[0] @ one_way[1]
        return self.share**2 * gap


@dataclass(frozen=True)
class SubsetsTarget:
    """The multi-way tables of a stratum, as shares of its records: targets of the training."""

    # For each table, its columns, each with a map from levels to groups, and the shares.
    products: list
    # Numbers of levels of the columns of rows.
    sizes: list
    # Precision of the tables, relative to that of one-way tables.
    weight: float
    # As in `TablesTarget`.
    share: float

    @classmethod
    def of(cls, multi_way, stratum, sizes, tables, n_records, share, device):
        std, by = multi_way.std, multi_way.by
        columns = [c for c in range(len(multi_way.refinement.sizes)) if c != by]
        place = {column: i for i, column in enumerate(columns)}
        weight = (tables.columns_std / std) ** 2 if std > 0 else 1.0
        products = []
        for factors, cells in zip(multi_way.products, multi_way.cells, strict=True):
            table = cells if by is None else cells[..., stratum]
            products.append(
                (
                    [(place[c], m.to(device, torch.float32)) for c, m in factors if c != by],
                    torch.tensor(table / n_records, dtype=torch.float32, device=device).flatten(),
                )
            )
        return cls(products, list(sizes), weight, share)

    def gap(self, first, second):
        """Estimate the squared distance to the tables of rows, from two independent samples."""
        tables = self._tables_of(_list_samples(first, second))
        differences = [
            found - table for found, (_, table) in zip(tables, self.products, strict=True)
        ]
        return self.share**2 * self.weight * sum(d[0] @ d[-1] for d in differences)

    def moved_to(self, rows):
        """Return the tables of generated rows as a target."""
        tables = self._tables_of((rows,))
        products = [(f, found[0]) for found, (f, _) in zip(tables, self.products, strict=True)]
        return replace(self, products=products)

    def _tables_of(self, samples):
        # One operation on all samples, and one slice of a column, take half of the time of many.
        columns = torch.stack(samples).split(self.sizes, dim=2)
        return [multi_way_table(columns, factors) for factors, _ in self.products]


def _list_samples(first, second):
    """Return two samples, or one if they are the same rows, whose tables are computed once."""
    return (first,) if second is first else (first, second)


class TablesGap(torch.autograd.Function):
    """Estimate of the squared differences between the two-way tables of rows and given tables.

    The product of two independent estimates has no bias from their variance. The table of a column
    with itself is excluded, as a column is not independent of itself given the code. The forward
    pass also computes the gradient, block by block, to save memory.
    """

    @staticmethod
    def forward(ctx, first, second, tables):
        """Return the estimate for two independent samples (n_rows, n_levels) of the same size.

        For the same rows twice it is that of their exact tables. Tables are from
        `join_narrow_tables`.
        """
        samples = _list_samples(first, second)
        parts = [rows / len(rows) for rows in samples]
        gap, gradients = first.new_zeros(()), [torch.zeros_like(part) for part in parts]
        for own, later, table, is_pair in tables:
            differences = [
                torch.addmm(table, rows[:, own].T, part[:, later], beta=-1).mul_(is_pair)
                for rows, part in zip(samples, parts, strict=True)
            ]
            gap += (differences[0] * differences[-1]).sum()
            for part, gradient, other in zip(parts, gradients, differences[::-1], strict=True):
                gradient[:, own].addmm_(part[:, later], other.T)
                gradient[:, later].addmm_(part[:, own], other)
        ctx.save_for_backward(gradients[0], gradients[-1])
        return gap

    @staticmethod
    def backward(ctx, slope):
        return *(slope * gradient for gradient in ctx.saved_tensors), None


def multi_way_table(columns: Sequence[torch.Tensor], factors: Sequence[tuple]) -> torch.Tensor:
    """Return a multi-way table of each of several samples, of shape (n_samples, n_cells).

    Columns are tensors (n_samples, n_rows, n_levels). Each factor is a column of the table, with
    the map from its levels to groups. Cells are shares of the rows.
    """
    left, *others = (columns[c] @ groups for c, groups in factors)
    for right in others[:-1]:
        left = multiply_rows(left, right)
    found = left.mT @ others[-1] if others else left.sum(1)
    return found.flatten(1) / left.shape[1]


def join_narrow_tables(tables: list[np.ndarray], sizes: Sequence[int]) -> Iterator[tuple]:
    """Concatenate tables of neighbouring columns: few large products are faster than many small.

    For each column, `tables` has its tables with all later columns, side by side.

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
        while end < len(sizes) and sum(sizes[c : end + 1]) <= _N_JOINED:
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
