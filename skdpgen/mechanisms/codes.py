# SPDX-License-Identifier: BSD-3-Clause
"""Codes of the records of a table, and their weights in the hat (linear B-spline) basis."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse

from ..registry import savable


class HatBasis:
    """Weights of the levels of each column: hat functions (linear B-splines) at the integers.

    A code in a column of L levels is clamped to [0, L - 1]. Level l has weight 1 at code l. A code
    l + s between two levels gives weight 1 - s to level l and s to level l + 1. So the weights of a
    column are non-negative and sum to 1, and the norm of their vector is at most 1.

    Parameters
    ----------
    codes : tensor of shape (n, n_columns)
    sizes : sequence of int
        Numbers of levels of the columns.

    Attributes
    ----------
    levels : tensor of int64 of shape (n, n_columns)
        The floor of the code in each column.
    fraction : tensor of shape (n, n_columns)
        s, the weight of the next level; 0 if there is none.

    Examples
    --------
    >>> import torch
    >>> HatBasis(torch.tensor([[1.25, 0.0]]), (3, 2)).to_dense()
    tensor([[0.0000, 0.7500, 0.2500, 1.0000, 0.0000]])
    """

    def __init__(self, codes: torch.Tensor, sizes: Sequence[int]) -> None:
        last = torch.as_tensor(sizes, dtype=codes.dtype, device=codes.device) - 1
        codes = codes.clamp(min=0).minimum(last)
        floor = codes.floor()
        self.sizes = tuple(sizes)
        self.levels, self.fraction = floor.long(), codes - floor

    def to_dense(self, convert: Callable | None = None) -> torch.Tensor:
        """Return the weights of all levels, of shape (n, n_levels).

        `convert` is applied to the weights that can be positive.
        """
        n, width = len(self.levels), sum(self.sizes)
        rows = torch.zeros(n, width, dtype=self.fraction.dtype, device=self.fraction.device)
        for levels, weights in self.list_weights(convert):
            rows.scatter_add_(1, levels, weights)
        return rows

    def to_sparse(self, convert: Callable | None = None) -> sparse.csc_array:
        """Return integer weights as a sparse array of int64, in CSC format; see `to_dense`."""
        n, width = len(self.levels), sum(self.sizes)
        parts = list(self.list_weights(convert))
        rows = np.concatenate([np.repeat(np.arange(n), part.shape[1]) for part, _ in parts])
        levels, weights = (
            torch.cat([part.flatten() for part in both]).long().cpu().numpy()
            for both in zip(*parts, strict=True)
        )
        return sparse.csc_array((weights, (rows, levels)), shape=(n, width))

    def weight_of(self, column: int, level: int) -> torch.Tensor:
        """Return the weight of a level of a column in each record, of shape (n,)."""
        floor, fraction = self.levels[:, column], self.fraction[:, column]
        upper = torch.where(floor == level - 1, fraction, 0.0)
        return torch.where(floor == level, 1 - fraction, upper)

    def join(self, column: int, groups: torch.Tensor) -> torch.Tensor:
        """Return weights of groups of levels, of shape (n, n_groups); see `MultiWayMechanism`."""
        floor, fraction = self.levels[:, column], self.fraction[:, column, None]
        groups = groups.to(fraction)
        joined = groups[floor] * (1 - fraction)
        # Codes of levels are whole: then the next level has no weight, and the product is saved.
        if fraction.any():
            joined += groups[(floor + 1).clamp(max=len(groups) - 1)] * fraction
        return joined

    def list_weights(
        self, convert: Callable | None = None
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield the weights that can be positive, at most one per column, for `to_dense`.

        Their levels, of the same shape, are indices among the levels of all columns.
        """
        starts = torch.as_tensor(np.cumsum([0, *self.sizes[:-1]]), device=self.levels.device)
        convert = convert or (lambda weights: weights)
        yield self.levels + starts, convert(1 - self.fraction)
        is_between = (self.fraction > 0).any(0)
        if is_between.any():
            levels, fraction = self.levels[:, is_between], self.fraction[:, is_between]
            # The last level has no next one, and its fraction is 0.
            yield levels + (fraction > 0) + starts[is_between], convert(fraction)


@savable
@dataclass(frozen=True)
class Refinement:
    """Bins of the codes of columns with knots: equal parts of the way from a knot to the next.

    A record is in one bin, which shows where interactions change sharply; hats would blur it.

    Examples
    --------
    >>> import torch
    >>> refinement = Refinement(sizes=(3,), n_knots=(2,), n_parts=(2,))
    >>> refinement.fine_sizes
    (3,)
    >>> refinement.refine(torch.tensor([[0.2], [0.75], [2.0]])).flatten().tolist()
    [0.0, 1.0, 2.0]
    >>> refinement.to_coarse().tolist()
    [[0.75, 0.25, 0.0], [0.25, 0.75, 0.0], [0.0, 0.0, 1.0]]
    >>> refinement.to_knots().tolist()
    [[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0]]
    """

    # Numbers of levels of the columns.
    sizes: tuple[int, ...]
    # How many of them are knots, which come first.
    n_knots: tuple[int, ...]
    # Number of bins between two knots; 0: the column keeps its levels.
    n_parts: tuple[int, ...]

    @classmethod
    def none(cls, sizes: Sequence[int]) -> "Refinement":
        """Return the refinement that leaves all columns as they are."""
        return cls(tuple(sizes), (0,) * len(sizes), (0,) * len(sizes))

    @property
    def n_bins(self) -> tuple[int, ...]:
        """Number of bins of each column; 0: it keeps its levels."""
        return tuple(
            p * (k - 1) if p else 0 for p, k in zip(self.n_parts, self.n_knots, strict=True)
        )

    @property
    def fine_sizes(self) -> tuple[int, ...]:
        """Numbers of bins and other levels of the columns."""
        parts = zip(self.sizes, self.n_knots, self.n_bins, strict=True)
        return tuple(size - n_knots + n_bins if n_bins else size for size, n_knots, n_bins in parts)

    @property
    def knot_sizes(self) -> tuple[int, ...]:
        """Numbers of knots at the edges of bins, and of other levels."""
        return tuple(
            size + (n_bins > 0) for size, n_bins in zip(self.fine_sizes, self.n_bins, strict=True)
        )

    def without(self, column: int | None) -> "Refinement":
        """Return the refinement of all columns but one."""
        kept = [c for c in range(len(self.sizes)) if c != column]
        return Refinement(
            *(tuple(n[c] for c in kept) for n in (self.sizes, self.n_knots, self.n_parts))
        )

    def refine(self, codes: torch.Tensor) -> torch.Tensor:
        """Return codes of records among bins and other levels; see `HatBasis`."""
        n_parts, n_knots, n_bins = (
            torch.as_tensor(numbers, dtype=codes.dtype, device=codes.device)
            for numbers in (self.n_parts, self.n_knots, self.n_bins)
        )
        bins = (codes * n_parts).floor().minimum(n_bins - 1)
        # Beyond the knots are point masses and missing values, which keep levels of their own.
        bins = torch.where(codes <= n_knots - 1, bins, codes - n_knots + n_bins)
        return torch.where(n_bins > 0, bins, codes)

    def to_coarse(self) -> torch.Tensor:
        """Return the mean weights of levels in each bin, of shape (n_fine_levels, n_levels)."""
        return self._map_bins(self.n_parts)

    def to_knots(self) -> torch.Tensor:
        """Return the mean weights, in each bin, of knots at the edges of all bins."""
        return self._map_bins([1] * len(self.sizes))

    def _map_bins(self, n_parts):
        """Return the mean weights in each bin of knots that are so many bins apart."""
        blocks = []
        for size, n_bins, n_knots, apart in zip(
            self.sizes, self.n_bins, self.n_knots, n_parts, strict=True
        ):
            block = torch.eye(size - n_knots if n_bins else size).double()
            if n_bins:
                edges = torch.arange(n_bins + 1, dtype=torch.float64)[:, None] / apart
                weights = HatBasis(edges, [n_bins // apart + 1]).to_dense()
                block = torch.block_diag((weights[:-1] + weights[1:]) / 2, block)
            blocks.append(block)
        return torch.block_diag(*blocks)
