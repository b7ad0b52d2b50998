# SPDX-License-Identifier: BSD-3-Clause
"""Records of a table as places: where each is in each column, as one number."""

import numpy as np
import torch
from scipy import sparse


class HatBasis:
    """The weights of levels that stand for places: hat functions on whole numbers.

    A place is a number from 0 to L - 1 in a column of L levels, to which it is clamped. At a whole
    number l, level l has weight 1. Between two, both have a share: of l + s, level l has 1 - s and
    level l + 1 has s. So the weights of a column are not negative and sum to 1, whatever its place
    is; and the norm of the vector that they are is at most 1.

    Parameters
    ----------
    places : tensor of shape (n, n_columns)
    sizes : sequence of int
        Numbers of levels of the columns.

    Attributes
    ----------
    levels : tensor of int64 of shape (n, n_columns)
        In each column, the last level that is not beyond the place.
    share : tensor of shape (n, n_columns)
        s, the weight of the next one, which is 0 where there is none.
    """

    def __init__(self, places, sizes):
        last = torch.as_tensor(sizes, dtype=places.dtype, device=places.device) - 1
        places = places.clamp(min=0).minimum(last)
        floor = places.floor()
        self.sizes = tuple(sizes)
        self.levels, self.share = floor.long(), places - floor

    def spread(self, to_weights=None):
        """Return the weights of all levels, a tensor of shape (n, n_levels).

        ``to_weights`` is applied to those that are not 0.
        """
        n, width = len(self.levels), sum(self.sizes)
        rows = torch.zeros(n, width, dtype=self.share.dtype, device=self.share.device)
        for levels, weights in self._list_parts(to_weights):
            rows.scatter_add_(1, levels, weights)
        return rows

    def spread_thinly(self, to_weights=None):
        """Return the same as a sparse array of int64, by columns."""
        n, width = len(self.levels), sum(self.sizes)
        parts = list(self._list_parts(to_weights))
        of_row = np.concatenate([np.repeat(np.arange(n), part.shape[1]) for part, _ in parts])
        levels, weights = (
            torch.cat([part.flatten() for part in both]).long().cpu().numpy()
            for both in zip(*parts, strict=True)
        )
        return sparse.csc_array((weights, (of_row, levels)), shape=(n, width))

    def weight_of(self, column, level):
        """Return the weight of a level of a column in each record."""
        at, share = self.levels[:, column], self.share[:, column]
        return torch.where(at == level, 1 - share, torch.where(at == level - 1, share, 0.0))

    def join(self, column, groups):
        """Return weights of groups of levels, (n, n_groups); see `ThreeWayMechanism`."""
        at, share = self.levels[:, column], self.share[:, column, None]
        groups = groups.to(share)
        joined = groups[at] * (1 - share)
        if share.any():
            joined += groups[(at + 1).clamp(max=len(groups) - 1)] * share
        return joined

    def _list_parts(self, to_weights):
        """Yield levels, among those of all columns, and their weights, of one a column."""
        starts = torch.as_tensor(np.cumsum([0, *self.sizes[:-1]]), device=self.levels.device)
        to_weights = to_weights or (lambda weights: weights)
        yield self.levels + starts, to_weights(1 - self.share)
        is_between = (self.share > 0).any(0)
        if is_between.any():
            levels, share = self.levels[:, is_between], self.share[:, is_between]
            # Where there is no next level, its weight is 0.
            yield levels + (share > 0) + starts[is_between], to_weights(share)
