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

    A record's weights of a column are non-negative, with norm at most 1 (see `HatBasis`), so that
    they are a row of non-negative entries in the unit ball. They are added up from codes: at most
    two of a column's weights are positive, however many levels it has.

    Parameters
    ----------
    name : str
        Name of the release.
    sizes : sequence of int
        Numbers of levels of the columns.
    """

    def __init__(self, name: str, sizes: Sequence[int]) -> None:
        super().__init__(name)
        self.sizes = tuple(sizes)

    def _add_up(self, scale, source):
        total = torch.zeros(sum(self.sizes), dtype=torch.int64)
        for codes, membership in source.codes(self.name):
            basis = HatBasis(codes[membership.sum(1) > 0], self.sizes)
            for levels, weights in basis.list_weights():
                whole = to_grid(weights / math.sqrt(len(self.sizes)), scale).long()
                total.index_add_(0, levels.flatten().cpu(), whole.flatten().cpu())
        return total.numpy()
