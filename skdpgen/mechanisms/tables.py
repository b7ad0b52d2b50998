# SPDX-License-Identifier: BSD-3-Clause
"""What is released of tables: for all pairs of columns, how often their levels occur together."""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from scipy import sparse

from ..accounting.events import plain_multiplier
from .base import GRID_BITS, Measurement, Mechanism, grid_scale, to_grid
from .codes import HatBasis

# Rows with more levels are multiplied as sparse ones.
_WIDE = 400
# Rows, and numbers of them, that are read at once: sums over so many are exact in doubles.
MOST_ROWS, MOST_NUMBERS = 2**13, 2**22


def own_and_later(sizes):
    """Return two slices of the levels for each column: its own, and those of all later columns."""
    ends = np.cumsum(sizes).tolist()
    return [
        (slice(end - size, end), slice(end, ends[-1]))
        for size, end in zip(sizes, ends, strict=True)
    ]


def tables_with_later(cells, sizes):
    """Return, for each column, its tables with all later columns, side by side.

    Parameters
    ----------
    cells : ndarray of shape (..., n_cells)
        Level by level, those of its tables with all later columns.
    sizes : sequence of int
        Numbers of levels of the columns.

    Returns
    -------
    list of ndarray of shape (..., n_levels of the column, n_levels of all later ones)
        Views of the cells.
    """
    later = sum(sizes) - np.cumsum(sizes)
    shapes = list(zip(sizes, later.tolist(), strict=True))
    ends = np.cumsum([0, *map(math.prod, shapes)])
    return [
        cells[..., start:stop].reshape(*cells.shape[:-1], *shape)
        for start, stop, shape in zip(ends[:-1], ends[1:], shapes, strict=True)
    ]


def half_grid(std, n_records):
    """Return 1 over the step of a grid whose products have noise of a standard deviation."""
    # Products of two whole numbers, n of them, stay below 2^62.
    bits = min(2 * GRID_BITS, 62 - n_records.bit_length())
    return 2.0 ** (math.log2(grid_scale(std, bits)) // 2)


def count_cells(sizes):
    """Return the number of cells of the tables of all pairs of columns."""
    return (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2


@dataclass(frozen=True)
class Tables:
    """Released two-way and one-way tables, in records.

    If records are told apart by the level of a column, there are as many tables as it has levels,
    and it has none itself.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of levels of the columns.
    cells : ndarray of shape (n_cells,) or (n_parts, n_cells)
        For two levels of different columns, the noisy number of records that have both. Level by
        level, they are those of its tables with all later columns; see `with_later` and `pair`.
    columns : ndarray of shape (n_levels,) or (n_parts, n_levels)
        For each level, the noisy number of records that have it, times `weight`.
    weight : float
        w, in [0, 1]; see `one_way_weight`.
    pairs_std, columns_std : float
        Standard deviations of their noise, the first 1/√2 of the second.
    by : slice, default=None
        Where the levels by which records are told apart are among all levels.
    """

    sizes: tuple
    cells: np.ndarray
    columns: np.ndarray
    weight: float
    pairs_std: float
    columns_std: float
    by: slice | None = None

    @property
    def with_later(self):
        """For each column, its tables with all later columns, side by side."""
        return tables_with_later(self.cells, self.sizes)

    def pair(self, c, d):
        """Return the table of columns c < d, of shape (..., n_levels of c, n_levels of d)."""
        start = sum(self.sizes[c + 1 : d])
        return self.with_later[c][..., start : start + self.sizes[d]]

    def to_matrix(self):
        """Return all of few levels, (..., n_levels, n_levels), with 0 within a column."""
        matrix = np.zeros((*self.cells.shape[:-1], sum(self.sizes), sum(self.sizes)))
        for (own, later), table in zip(own_and_later(self.sizes), self.with_later, strict=True):
            matrix[..., own, later] = table
        return matrix + matrix.swapaxes(-1, -2)

    def of_part(self, part):
        """Return the tables of the records of one level."""
        return replace(self, cells=self.cells[part], columns=self.columns[part], by=None)

    def without_impossible(self, impossible):
        """Return the tables with 0 in place of noise where it is public that no record is.

        Parameters
        ----------
        impossible : ndarray of bool, symmetric
            Of all levels, those of `by` included, which no record has together.
        """
        kept = np.ones(len(impossible), dtype=bool)
        if self.by is not None:
            kept[self.by] = False
        column = np.repeat(np.arange(len(self.sizes)), self.sizes)
        among = impossible[kept][:, kept]
        alone = np.zeros(sum(self.sizes), dtype=bool)
        if self.by is not None:
            alone = impossible[self.by][:, kept]
        cells = (among | alone[..., :, None] | alone[..., None, :])[..., column[:, None] < column]
        return replace(
            self,
            cells=np.where(cells, 0.0, self.cells),
            columns=np.where(alone, 0.0, self.columns),
        )

    def count_levels(self):
        """Return the noisy one-way tables that one-way and two-way tables give together.

        Each row sum of a two-way table is the count of a level, too; its variance is by the number
        of its cells. The mean of all, weighted by their precisions, has the least noise.

        Returns
        -------
        counts : ndarray of shape (..., n_levels)
        std : ndarray of shape (n_levels,)
            Standard deviations of their noise.
        """
        # Of a row sum, relative to a one-way table of weight 1.
        precisions = 2 / np.asarray(self.sizes)
        of_level = np.repeat(precisions, self.sizes)
        total = self.weight**2 + precisions.sum() - of_level
        counts = self.weight * self.columns
        for (own, later), table in zip(own_and_later(self.sizes), self.with_later, strict=True):
            counts[..., own] += table @ of_level[later]
            counts[..., later] += of_level[own] @ table
        return counts / total, self.columns_std / np.sqrt(total)

    def count_records(self):
        """Return the noisy number of the records in the tables, and its standard deviation."""
        n_columns = len(self.sizes)
        if n_columns == 1:
            std = math.sqrt(self.sizes[0]) * self.columns_std / self.weight
            return self.columns.sum(axis=-1) / self.weight, std
        n_tables = n_columns * (n_columns - 1) / 2
        std = math.sqrt(self.cells.shape[-1]) * self.pairs_std
        return self.cells.sum(axis=-1) / n_tables, std / n_tables


class TablesMechanism(Mechanism):
    """All two-way tables, and each column's one-way table.

    A record has a place in each of m columns, and b_c are the weights of the levels of column c
    that stand for it: not negative, with ‖b_c‖ ≤ 1 (see `Hats`). Σ b_c b_dᵀ is the two-way table of
    columns c and d, and Σ b_c a one-way table. The vector v that a record adds holds all
    √2·b_c b_dᵀ for c < d, and w·b_c for each c, divided by N = √(m(m - 1 + w²)). N² times its
    squared norm is

        Σ_{c≠d} ‖b_c‖² ‖b_d‖² + w² Σ ‖b_c‖² ≤ m(m - 1) + w² m = N².

    So its norm is at most 1, and the noise on a cell of a two-way table is that of N/√2 records;
    the second moments, which hold each column's table with itself, would need m/√2. No number is
    negative, so that two such vectors are at most √2 apart.

    *By a column.* Records may be told apart by a column, which is then left out of v: m, w and N
    are those of the others. A record adds b_l·v for each level l of that column, of weight b_l: for
    a category, v to the tables of its level. As ‖b ⊗ v‖ = ‖b‖·‖v‖ ≤ 1, and nothing is negative,
    both bounds hold however many levels there are.

    *Whole numbers.* What is multiplied, b_l·b_c and b_c, and the factor of one-way tables, is
    rounded towards zero before: each product is then at most what it was, and at least 0. Both
    bounds stay.

    What is summed is v/√2, so that all numbers get the same noise.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of levels of the columns.
    by : int, default=None
        Position of a column by whose levels records are told apart.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of levels of the columns that are in the tables.
    weight : float
        w; see `one_way_weight`.
    """

    name = "two-way tables"
    is_sum = True

    def __init__(self, sizes, by=None):
        if by is not None and not (0 <= by < len(sizes) and len(sizes) > 1):
            raise ValueError(f"by must be one of several columns; got {by} of {len(sizes)}.")
        self._all_sizes, self._by = tuple(sizes), by
        self.by = None if by is None else own_and_later(sizes)[by][0]
        self._kept = [c for c in range(len(sizes)) if c != by]
        self.sizes = tuple(sizes[c] for c in self._kept)
        self.weight = one_way_weight(self.sizes)

    @staticmethod
    def sensitivity_of(relation):
        """Return the sensitivity, which does not depend on the columns."""
        return {"zero_out": 1.0, "replace_one": math.sqrt(2)}[relation]

    @staticmethod
    def noise_on_cells(sigma, n_columns):
        """Return what the noise on a cell is at most, in records: N ≤ m for m columns.

        Parameters
        ----------
        sigma : float
            Standard deviation of the noise, of which a record adds a vector of norm 1.
        n_columns : int
        """
        return sigma * n_columns / math.sqrt(2)

    def sensitivity(self, relation):
        return self.sensitivity_of(relation)

    @property
    def records(self):
        """N, which is how many records the unit of the sensitivity is."""
        m = len(self.sizes)
        return math.sqrt(m * (m - 1 + self.weight**2))

    def check(self, event):
        plain_multiplier(event)

    def _measure(self, source, event, relation, noise):
        std = self._find_std(source, event, relation) / math.sqrt(2)
        half = half_grid(std, source.n_records)
        total = source.add_up(partial(self._add_up, half))
        return Measurement(total, half**2, std, context=std)

    def _add_up(self, half, source):
        n_levels, n_parts = sum(self.sizes), () if self.by is None else (self._all_sizes[self._by],)
        total = np.zeros((*n_parts, count_cells(self.sizes) + n_levels), dtype=np.int64)
        is_wide = n_levels > _WIDE
        n_rows = MOST_ROWS if is_wide else max(1, min(MOST_ROWS, MOST_NUMBERS // n_levels))

        def spread(hats, share=1.0):
            """Return b_c, times a share, over √N, in units of the grid."""
            to_whole = partial(to_grid, scale=half / math.sqrt(self.records))
            whole = hats.spread_thinly if is_wide else hats.spread
            return whole(lambda weights: to_whole(weights * share))

        for places, membership in source.codes(self.name, n_rows):
            places = places[membership.sum(1) > 0]
            hats = HatBasis(places[:, self._kept], self.sizes)
            if self.by is None:
                whole = spread(hats)
                self._add(total, whole, whole, half)
                continue
            parts = HatBasis(places, self._all_sizes)
            for level, part in enumerate(total):
                share = parts.weight_of(self._by, level)
                has = share > 0
                hats = HatBasis(places[has][:, self._kept], self.sizes)
                self._add(part, spread(hats, share[has, None]), spread(hats), half)
        return total

    def _add(self, total, shared, rows, half):
        """Add what rows make, of whole numbers, of which those on one side are shares."""
        n_levels = sum(self.sizes)
        one_way = math.floor(half * self.weight / math.sqrt(2 * self.records))
        total[-n_levels:] += _to_whole(shared.sum(0)) * one_way
        tables = tables_with_later(total, self.sizes)
        for (own, later), table in zip(own_and_later(self.sizes), tables, strict=True):
            product = shared[:, own].T @ rows[:, later]
            if sparse.issparse(product):
                product = product.tocoo()
                table[product.coords] += product.data
            else:
                table += _to_whole(product)

    def _present(self, noisy, measured):
        noisy *= self.records
        cells, columns = np.split(noisy, [-sum(self.sizes)], axis=-1)
        std = measured.context * self.records
        return Tables(
            sizes=self.sizes,
            cells=cells,
            columns=columns * math.sqrt(2),
            weight=self.weight,
            pairs_std=std,
            columns_std=std * math.sqrt(2),
            by=self.by,
        )


def _to_whole(numbers):
    return numbers.long().cpu().numpy() if isinstance(numbers, torch.Tensor) else numbers


def one_way_weight(sizes):
    """Return by how much one-way tables weigh against two-way tables, where all are released.

    The more they weigh, the less of the budget is left for two-way tables, whose cells have a
    variance of N²/2 = m(m - 1 + w²)/2, in units of the multiplier. For the one-way table of column
    c there are its own one, of variance N²/w², and the row sums of its tables with columns d, of
    N²·L_d/2 for L_d levels: combined, N²/(w² + p_c) with p_c = Σ_{d≠c} 2/L_d. The product of both
    variances is least at w² = m - 1 - 2·p_c. That is taken for the column whose p_c is least, in
    [0, 1]: 1 but for few columns or few levels, and 0 where row sums are nearly as good. A column
    that is alone has its one-way table only.
    """
    n_columns = len(sizes)
    if n_columns == 1:
        return 1.0
    precisions = 2 / np.asarray(sizes)
    from_pairs = precisions.sum() - precisions.max()
    return math.sqrt(min(1.0, max(0.0, n_columns - 1 - 2 * from_pairs)))
