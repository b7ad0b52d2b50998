# SPDX-License-Identifier: BSD-3-Clause
"""Noisy counts of the levels of columns, from codes."""

import math
from collections.abc import Sequence

import torch

from .base import to_grid
from .codes import HatBasis
from .sums import WeightSumMechanism


class LevelCountsMechanism(WeightSumMechanism):
    """The sum of the weights of the levels of m columns in the hat basis, divided by √m.

    A record's weights of a column are non-negative and sum to 1 (see `HatBasis`), also where levels
    share a count. So they are a row of non-negative entries in the unit ball. They are added up
    from codes: at most two of a column's weights are positive, however many levels it has.

    Parameters
    ----------
    name : str
        Name of the release.
    sizes : sequence of int
        Numbers of levels of the columns.
    places : sequence of int, default=None
        Position of the count of each level in the sum; -1: it is not counted. Levels of different
        columns have different counts. None: each level has its own.
    """

    def __init__(
        self, name: str, sizes: Sequence[int], places: Sequence[int] | None = None
    ) -> None:
        super().__init__(name)
        self.sizes = tuple(sizes)
        self.places = torch.as_tensor(range(sum(self.sizes)) if places is None else places)
        counted = [{*part.tolist()} - {-1} for part in self.places.split(self.sizes)]
        if sum(map(len, counted)) > len(set().union(*counted)):
            raise ValueError("Levels of different columns share a count.")

    def _add_up(self, scale, source):
        # The last entry is that of levels that are not counted.
        total = torch.zeros(2 + int(self.places.max()), dtype=torch.int64)
        for codes, membership in source.codes(self.name):
            basis = HatBasis(codes[membership.sum(1) > 0], self.sizes)
            for levels, weights in basis.list_weights():
                whole = to_grid(weights / math.sqrt(len(self.sizes)), scale).long()
                places = self.places[levels.flatten().cpu()] % len(total)
                total.index_add_(0, places, whole.flatten().cpu())
        return total[:-1].numpy()
