# SPDX-License-Identifier: BSD-3-Clause
"""Codes of the records of a table, and their weights in the hat (linear B-spline) basis."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from scipy import sparse


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

        Parameters
        ----------
        convert : callable, default=None
            A function that is applied to the weights that can be positive.
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
        """Return weights of groups of levels, of shape (n, n_groups); see `ThreeWayMechanism`."""
        floor, fraction = self.levels[:, column], self.fraction[:, column, None]
        groups = groups.to(fraction)
        joined = groups[floor] * (1 - fraction)
        if fraction.any():
            joined += groups[(floor + 1).clamp(max=len(groups) - 1)] * fraction
        return joined

    def list_weights(
        self, convert: Callable | None = None
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield the weights that can be positive, at most one per column, for `to_dense`.

        Yields
        ------
        levels : tensor of int64 of shape (n, n_some_columns)
            Indices among the levels of all columns.
        weights : tensor of that shape
        """
        starts = torch.as_tensor(np.cumsum([0, *self.sizes[:-1]]), device=self.levels.device)
        convert = convert or (lambda weights: weights)
        yield self.levels + starts, convert(1 - self.fraction)
        is_between = (self.fraction > 0).any(0)
        if is_between.any():
            levels, fraction = self.levels[:, is_between], self.fraction[:, is_between]
            # The last level has no next one, and its fraction is 0.
            yield levels + (fraction > 0) + starts[is_between], convert(fraction)
