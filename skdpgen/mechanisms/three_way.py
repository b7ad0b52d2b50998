# SPDX-License-Identifier: BSD-3-Clause
"""Three-way contingency tables, and interactions of three columns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..registry import savable
from .base import to_grid
from .codes import HatBasis
from .tables import CONSTANTS, ProductMechanism, own_and_later


@savable
@dataclass(frozen=True)
class ThreeWayTables:
    """Released three-way tables, in records.

    Attributes
    ----------
    maps : tuple of tensor of shape (n_levels, n_groups)
        The group of each level of each column, or its sign.
    triples : tuple of (int, int, int)
        Positions of the columns of each table.
    cells : tuple of ndarray of shape (n_groups, n_groups, n_groups)
        For three groups of levels, the noisy number of records with a level of each; for signs,
        of shape (1, 1, 1), the noisy sum of the products of three signs.
    std : float
        Standard deviation of the noise.
    """

    maps: tuple[torch.Tensor, ...]
    triples: tuple[tuple[int, int, int], ...]
    cells: tuple[np.ndarray, ...]
    std: float

    def without_impossible(self, impossible: np.ndarray) -> "ThreeWayTables":
        """Return the tables with 0 in place of noise in cells that public rules exclude.

        Parameters
        ----------
        impossible : ndarray of bool of shape (n_levels, n_levels), symmetric
            Pairs of levels that no record has.
        """
        slices = [own for own, _ in own_and_later([len(groups) for groups in self.maps])]

        def possible(c, d):
            pairs = ~impossible[slices[c], slices[d]]
            return self.maps[c].numpy().T @ pairs @ self.maps[d].numpy() > 0

        cells = tuple(
            np.where(
                possible(a, b)[:, :, None] & possible(a, c)[:, None] & possible(b, c), table, 0.0
            )
            for (a, b, c), table in zip(self.triples, self.cells, strict=True)
        )
        return replace(self, cells=cells)


class ThreeWayMechanism(ProductMechanism):
    """Three-way tables of some triples of columns.

    A record has non-negative weights of the levels of each column, which sum to 1 (see `HatBasis`).
    A public map M_c merges levels into groups, or gives them signs. It maps the weights to b_c,
    whose absolute values sum to at most 1, so that its norm is at most 1. For K triples (c, d, e)
    of columns, a record contributes all b_c ⊗ b_d ⊗ b_e, divided by √K. This vector has norm at
    most 1, as each of the K products has norm ‖b_c‖·‖b_d‖·‖b_e‖ ≤ 1. Two such vectors are at most 2
    apart, or √2 if no map has a negative entry, as then no product is negative.

    *Integer arithmetic.* b_c ⊗ b_d / √K and b_e are rounded towards zero before multiplication. So
    each product is at most its exact value, with the same sign or 0, and all bounds hold.

    Parameters
    ----------
    name : str
        Name of the release.
    maps : sequence of tensor of shape (n_levels, n_groups)
        For each column: each level has at most one 1 or -1, and 0 otherwise.
    triples : sequence of (int, int, int)
        Positions of different columns.
    """

    def __init__(
        self, name: str, maps: Sequence[torch.Tensor], triples: Sequence[tuple[int, int, int]]
    ) -> None:
        self.name = name
        self.maps = tuple(maps)
        self.triples = tuple(map(tuple, triples))
        if not self.triples or any(len(set(triple)) < 3 for triple in self.triples):
            raise ValueError("triples must hold at least one, of three different columns each.")
        if any((groups.abs().sum(1) > 1).any() for groups in self.maps):
            raise ValueError("maps must have at most one 1 or -1 for each level, and 0 otherwise.")

    @staticmethod
    def sensitivity_of(relation: str, is_signed: bool) -> float:
        """Return the sensitivity, in units of √K records."""
        diameter = 2.0 if is_signed else math.sqrt(2)
        return {"zero_out": 1.0, "replace_one": diameter}[relation]

    def sensitivity(self, relation: str) -> float:
        """Return the sensitivity; see `Mechanism.sensitivity`."""
        is_signed = any((groups < 0).any() for groups in self.maps)
        return self.sensitivity_of(relation, is_signed)

    @property
    def _shapes(self):
        widths = [groups.shape[1] for groups in self.maps]
        return [tuple(widths[c] for c in triple) for triple in self.triples]

    def _add_up(self, half, source):
        total = [np.zeros(shape, dtype=np.int64) for shape in self._shapes]
        products = self._group_by_first()
        n_rows = CONSTANTS.batch_size(max(width for *_, width in products))
        sizes = [len(groups) for groups in self.maps]
        for codes, membership in source.codes(self.name, n_rows):
            basis = HatBasis(codes[membership.sum(1) > 0], sizes)
            columns = [basis.join(c, groups) for c, groups in enumerate(self.maps)]
            integers = [to_grid(column, half) for column in columns]
            shares = [column / math.sqrt(len(self.triples)) for column in columns]
            for c, seconds, thirds, blocks, _ in products:
                pairs = columns[c][:, :, None] * torch.hstack([shares[d] for d in seconds])[:, None]
                right = torch.hstack([integers[e] for e in thirds])
                product = to_grid(pairs.flatten(1), half).T @ right
                product = product.long().cpu().numpy().reshape(*pairs.shape[1:], -1)
                for i, block in blocks:
                    total[i] += product[block]
        return np.concatenate([table.ravel() for table in total])

    def _group_by_first(self):
        """Return the matrix products that yield the tables, one for each first column.

        Returns
        -------
        list of (first, seconds, thirds, blocks, width)
            The columns of the factors; for each table, its index among the triples and its block of
            the product; and the number of columns of the left factor.
        """
        products = []
        for first in dict.fromkeys(c for c, _, _ in self.triples):
            tables = [(i, *rest) for i, (c, *rest) in enumerate(self.triples) if c == first]
            _, *others = zip(*tables, strict=True)
            seconds, thirds = (list(dict.fromkeys(columns)) for columns in others)
            second, third = self._find_slices(seconds), self._find_slices(thirds)
            blocks = [(i, (slice(None), second[d], third[e])) for i, d, e in tables]
            width = self.maps[first].shape[1] * max(block.stop for block in second.values())
            products.append((first, seconds, thirds, blocks, width))
        return products

    def _find_slices(self, columns):
        """Return the slice of each column in the concatenated groups."""
        widths = [self.maps[c].shape[1] for c in columns]
        return dict(zip(columns, (own for own, _ in own_and_later(widths)), strict=True))

    def _present(self, noisy, measured):
        std, shapes = measured.context, self._shapes
        records = math.sqrt(len(self.triples))
        parts = np.split(noisy * records, np.cumsum([math.prod(shape) for shape in shapes])[:-1])
        cells = tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
        return ThreeWayTables(self.maps, self.triples, cells, std * records)
