# SPDX-License-Identifier: BSD-3-Clause
"""Two-way contingency tables: noisy counts of pairs of levels, for all pairs of columns."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import sparse

from ..registry import savable
from .base import GRID_BITS, FixedSensitivity, Measurement, SumMechanism, grid_scale, to_grid
from .codes import HatBasis


@dataclass(frozen=True)
class TablesConstants:
    """Constants of sums of products; all are set by hand."""

    # Most levels of dense rows: with more, products of sparse arrays are faster.
    max_dense: int = 400
    # Most rows of a batch, and numbers in it. Sums over so many grid points are exact in float64.
    max_rows: int = 2**13
    max_numbers: int = 2**22

    def batch_size(self, n_columns: int) -> int:
        """Return the number of rows of a batch, for rows of so many numbers."""
        return max(1, min(self.max_rows, self.max_numbers // n_columns))


CONSTANTS = TablesConstants()
# Released whole numbers of tables are below 2^49, but for noise.
MOST_BITS = 49


def own_and_later(sizes: Sequence[int]) -> list[tuple[slice, slice]]:
    """Return the slices of each column's levels, and of the levels of all later columns."""
    ends = np.cumsum(sizes).tolist()
    return [
        (slice(end - size, end), slice(end, ends[-1]))
        for size, end in zip(sizes, ends, strict=True)
    ]


def tables_with_later(cells: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    """Return, for each column, its tables with all later columns, side by side.

    They are views of the cells (..., n_cells), which are those of each level's tables with all
    later columns, level by level.
    """
    later = sum(sizes) - np.cumsum(sizes)
    shapes = list(zip(sizes, later.tolist(), strict=True))
    ends = np.cumsum([0, *map(math.prod, shapes)])
    return [
        cells[..., start:stop].reshape(*cells.shape[:-1], *shape)
        for start, stop, shape in zip(ends[:-1], ends[1:], shapes, strict=True)
    ]


def select_cells(products: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Return the cells of all two-way tables, in the order of `tables_with_later`.

    `products` has an entry for each two levels, (..., n_levels, n_levels).
    """
    column = np.repeat(np.arange(len(sizes)), sizes)
    return products[..., column[:, None] < column]


def count_cells(sizes: Sequence[int]) -> int:
    """Return the number of cells of the tables of all pairs of columns."""
    return (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2


@savable
@dataclass(frozen=True)
class Tables:
    """Released two-way and one-way tables, in records.

    If records are stratified by the levels of a column, each stratum has tables of the other
    columns.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of levels of the columns.
    cells : ndarray of shape (n_cells,) or (n_strata, n_cells)
        For two levels of different columns, the noisy number of records with both, in the order
        of `tables_with_later`; see `pair`.
    columns : ndarray of shape (n_levels,) or (n_strata, n_levels)
        For each level, the noisy number of records with it, times `weight`.
    weight : float
        w, in [0, 1]; see `one_way_weight`.
    pairs_std, columns_std : float
        Standard deviations of their noise, the first 1/√2 of the second.
    by : slice, default=None
        The levels by which records are stratified, among all levels.
    counted : tuple of (float or ndarray of shape (n_strata,), float), default=None
        The result of `count_records` before cells were set to 0: records that break a rule are
        missing from the cells since then.
    """

    sizes: tuple[int, ...]
    cells: np.ndarray
    columns: np.ndarray
    weight: float
    pairs_std: float
    columns_std: float
    by: slice | None = None
    counted: tuple[Any, float] | None = None

    @property
    def with_later(self) -> list[np.ndarray]:
        """For each column, its tables with all later columns, side by side."""
        return tables_with_later(self.cells, self.sizes)

    def pair(self, c: int, d: int) -> np.ndarray:
        """Return the table of columns c and d, of shape (..., n_levels of c, n_levels of d)."""
        if c > d:
            return np.swapaxes(self.pair(d, c), -1, -2)
        start = sum(self.sizes[c + 1 : d])
        return self.with_later[c][..., start : start + self.sizes[d]]

    def stratum(self, i: int) -> "Tables":
        """Return the tables of the i-th stratum."""
        counts, std = self.count_records()
        cells, columns = self.cells[i], self.columns[i]
        return replace(self, cells=cells, columns=columns, by=None, counted=(counts[i], std))

    def without_impossible(self, impossible: np.ndarray) -> "Tables":
        """Return the tables with 0 in place of noise in cells that public rules exclude.

        Parameters
        ----------
        impossible : ndarray of bool of shape (n_levels, n_levels), symmetric
            Pairs of levels that no record has, including the levels of `by`.
        """
        kept = np.ones(len(impossible), dtype=bool)
        if self.by is not None:
            # The column of the strata has no table of its own here.
            kept[self.by] = False
        among = impossible[kept][:, kept]
        alone = np.zeros(sum(self.sizes), dtype=bool)
        if self.by is not None:
            alone = impossible[self.by][:, kept]
        cells = select_cells(among | alone[..., :, None] | alone[..., None, :], self.sizes)
        return replace(
            self,
            cells=np.where(cells, 0.0, self.cells),
            columns=np.where(alone, 0.0, self.columns),
            # Counted before cells become 0: afterwards their noise would be missing from the sum.
            counted=self.count_records(),
        )

    def count_levels(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the minimum-variance one-way tables that the release implies.

        Each row sum of a two-way table also counts a level, with a variance proportional to the
        number of its cells. The mean of all counts, weighted by their precisions, has the least
        variance.

        Returns
        -------
        counts : ndarray of shape (..., n_levels)
        std : ndarray of shape (n_levels,)
            Standard deviations of their noise.
        """
        by_level = np.repeat(_row_precisions(self.sizes), self.sizes)
        total = np.repeat(level_precisions(self.sizes, self.weight), self.sizes)
        counts = self.weight * self.columns
        for (own, later), table in zip(own_and_later(self.sizes), self.with_later, strict=True):
            counts[..., own] += table @ by_level[later]
            counts[..., later] += by_level[own] @ table
        return counts / total, self.columns_std / np.sqrt(total)

    def count_records(self) -> tuple[Any, float]:
        """Return the minimum-variance number of records that the release implies.

        The sum of each table counts them, with a variance proportional to the number of its cells.
        The mean of all sums, weighted by their precisions, has the least variance.

        Returns
        -------
        counts : float or ndarray of shape (n_strata,)
        std : float
            Standard deviation of their noise.
        """
        if self.counted is not None:
            return self.counted
        # The precision of the sum of a two-way table is the product of those of its columns.
        precisions = 1 / np.asarray(self.sizes)
        by_level = np.repeat(precisions, self.sizes)
        n_pairs = (precisions.sum() ** 2 - (precisions**2).sum()) / 2
        total = n_pairs + self.weight**2 * precisions.sum() / 2
        counts = self.weight / 2 * self.columns @ by_level
        for (own, later), table in zip(own_and_later(self.sizes), self.with_later, strict=True):
            counts += table @ by_level[later] @ by_level[own]
        return counts / total, self.columns_std / math.sqrt(2 * total)


def _row_precisions(sizes: Sequence[int]) -> np.ndarray:
    """Return the precisions of row sums over columns, relative to a one-way table of weight 1."""
    return 2 / np.asarray(sizes)


def level_precisions(sizes: Sequence[int], weight: float) -> np.ndarray:
    """Return the precision of the counts of each column's levels; see `Tables.count_levels`."""
    precisions = _row_precisions(sizes)
    return weight**2 + precisions.sum() - precisions


class ProductMechanism(SumMechanism):
    """A sum of products of two factors, which are rounded to integer multiples of a grid step."""

    @abstractmethod
    def _add_products(self, half, source):
        """Return the sum over a source, for factors on a grid of step 1/`half`."""

    def _find_scale(self, std, n_records):
        # The sum of n products of two integers stays below 2^62.
        bits = min(2 * GRID_BITS, 62 - n_records.bit_length())
        # A power of 4: its root is the inverse step of the grid of factors.
        return 4.0 ** (math.log2(grid_scale(std, bits)) // 2)

    def _add_up(self, scale, source):
        half = math.sqrt(scale)
        if source.database is not None:
            return source.database.add_products(self, half)
        return self._add_products(half, source)


class TablesMechanism(FixedSensitivity, ProductMechanism):
    """All two-way tables, and each column's one-way table.

    A record has a code in each of m columns. Its weights b_c of the levels of column c are
    non-negative, with ‖b_c‖ ≤ 1 (see `HatBasis`). Σ b_c b_dᵀ is the two-way table of
    columns c and d, and Σ b_c a one-way table. The vector v that a record contributes holds all
    √2·b_c b_dᵀ for c < d, and w·b_c for each c, divided by N = √(m(m - 1 + w²)). N² times its
    squared norm is

        Σ_{c≠d} ‖b_c‖² ‖b_d‖² + w² Σ ‖b_c‖² ≤ m(m - 1) + w² m = N².

    So its norm is at most 1, and the noise on a cell of a two-way table is that of N/√2 records;
    second moments, which include each column's table with itself, would need m/√2. All entries are
    non-negative, so two such vectors are at most √2 apart.

    *Strata.* Records can be stratified by a column, which is then excluded from v: m, w and N refer
    to the other columns. A record contributes b_l·v for each level l of that column, with weight
    b_l: for a category, v to the tables of its level. As ‖b ⊗ v‖ = ‖b‖·‖v‖ ≤ 1, and all entries are
    non-negative, both bounds hold for any number of levels.

    *Integer arithmetic.* The factors b_l·b_c and b_c, and that of one-way tables, are rounded
    towards zero before multiplication. So each product is at most its exact value and at least 0,
    and both bounds hold.

    The release is the sum of v/√2, so that all numbers get the same noise.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of levels of the columns.
    by : int, default=None
        Position of the column by whose levels records are stratified.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of levels of the columns in the tables.
    weight : float
        w; see `one_way_weight`.
    """

    name = "two-way tables"
    sensitivities: ClassVar = {"zero_out": 1.0, "replace_one": math.sqrt(2)}
    divisor = math.sqrt(2)

    def __init__(self, sizes: Sequence[int], by: int | None = None) -> None:
        if by is not None and not (0 <= by < len(sizes) and len(sizes) > 1):
            raise ValueError(f"by must be one of several columns; got {by} of {len(sizes)}.")
        self.all_sizes, self._by = tuple(sizes), by
        self.by = None if by is None else own_and_later(sizes)[by][0]
        self.kept = [c for c in range(len(sizes)) if c != by]
        self.sizes = tuple(sizes[c] for c in self.kept)
        self.weight = one_way_weight(self.sizes)

    @staticmethod
    def noise_on_cells(sigma: float, n_columns: int) -> float:
        """Return a bound on the noise on a cell, in records: N ≤ m for m columns.

        Parameters
        ----------
        sigma : float
            Standard deviation of the noise on the sum, to which a record adds a vector of norm 1.
        n_columns : int
        """
        return sigma * n_columns / math.sqrt(2)

    @property
    def records(self) -> float:
        """N, the number of records in one unit of the sensitivity."""
        m = len(self.sizes)
        return math.sqrt(m * (m - 1 + self.weight**2))

    def query(self, source, event, relation, noise):
        measured = super().query(source, event, relation, noise)
        # A record adds at most 1/N. Of whole numbers below 2^49 the four roundings of `postprocess`
        # and `restore` move none by half a step, so that these are known from the tables.
        largest = math.ceil(math.log2(max(1.0, source.n_records * measured.scale / self.records)))
        return replace(measured, n_dropped=max(0, largest - MOST_BITS))

    def _add_products(self, half, source):
        n_levels = sum(self.sizes)
        n_strata = () if self.by is None else (self.all_sizes[self._by],)
        total = np.zeros((*n_strata, count_cells(self.sizes) + n_levels), dtype=np.int64)
        is_sparse = n_levels > CONSTANTS.max_dense
        n_rows = CONSTANTS.max_rows if is_sparse else CONSTANTS.batch_size(n_levels)

        def to_integers(basis, share=1.0):
            """Return b_c, times a share, over √N, in units of the grid."""
            scale = half / math.sqrt(self.records)
            convert = basis.to_sparse if is_sparse else basis.to_dense
            return convert(lambda weights: to_grid(weights * share, scale))

        for codes, membership in source.codes(self.name, self._count_at_once(n_rows)):
            codes, shares = self._list_rows(codes[membership.sum(1) > 0])
            if self.by is None:
                basis = HatBasis(codes, self.sizes)
                rows = to_integers(basis)
                self._add(total, rows if shares is None else to_integers(basis, shares), rows, half)
                continue
            strata = HatBasis(codes, self.all_sizes)
            for level, stratum in enumerate(total):
                share = strata.weight_of(self._by, level)
                has = share > 0
                basis = HatBasis(codes[has][:, self.kept], self.sizes)
                self._add(stratum, to_integers(basis, share[has, None]), to_integers(basis), half)
        return total

    def _count_at_once(self, n_rows):
        """Return the number of records of a batch, of which there are at most so many rows."""
        return n_rows

    def _list_rows(self, codes):
        """Return the rows of records, and their shares of a record, (n, 1), or None for one each.

        The shares of a record must be non-negative and sum to at most 1.
        """
        return codes, None

    def _add(self, total, shared, rows, half):
        """Add products of integers; `shared` are `rows` times the share of a stratum."""
        n_levels = sum(self.sizes)
        total[-n_levels:] += _to_array(shared.sum(0)) * self.find_one_way(half)
        tables = tables_with_later(total, self.sizes)
        for (own, later), table in zip(own_and_later(self.sizes), tables, strict=True):
            product = shared[:, own].T @ rows[:, later]
            if sparse.issparse(product):
                product = product.tocoo()
                table[product.coords] += product.data
            else:
                table += _to_array(product)

    def find_one_way(self, half: float) -> int:
        """Return the second factor of one-way tables, in units of the grid."""
        return math.floor(half * self.weight / math.sqrt(2 * self.records))

    def restore(self, tables: Tables, measured: Measurement) -> np.ndarray:
        """Return the noisy whole numbers of which `postprocess` made these tables, to the bit."""
        noisy = np.concatenate([tables.cells, tables.columns / math.sqrt(2)], axis=-1)
        noisy = np.rint(noisy / self.records * measured.released_scale)
        again = self.postprocess(noisy / measured.released_scale, measured)
        names = [field.name for field in fields(tables)]
        if not all(np.array_equal(getattr(tables, n), getattr(again, n)) for n in names):
            raise ValueError("The tables are not those of the mechanism in their plan.")
        return noisy.astype(np.int64)

    def postprocess(self, noisy, measured):
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


def _to_array(numbers):
    return numbers.long().cpu().numpy() if isinstance(numbers, torch.Tensor) else numbers


def one_way_weight(sizes: Sequence[int]) -> float:
    """Return the weight w of one-way tables relative to two-way tables.

    A larger weight increases the noise on two-way tables, whose cells have the variance
    N²/2 = m(m - 1 + w²)/2, in units of the multiplier. Counts of the levels of column c come from
    its one-way table, with variance N²/w², and from the row sums of its tables with columns d of
    L_d levels, with variance N²·L_d/2: combined, N²/(w² + p_c) with p_c = Σ_{d≠c} 2/L_d. The
    product of both variances is minimal at w² = m - 1 - 2·p_c. The result is this value for the
    column with the least p_c, clipped to [0, 1]. It is 1 except for few columns or few levels, and
    0 if row sums are nearly as precise. A single column has only its one-way table.
    """
    n_columns = len(sizes)
    if n_columns == 1:
        return 1.0
    precisions = _row_precisions(sizes)
    from_pairs = precisions.sum() - precisions.max()
    return math.sqrt(min(1.0, max(0.0, n_columns - 1 - 2 * from_pairs)))
