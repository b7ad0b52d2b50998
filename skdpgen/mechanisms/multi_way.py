# SPDX-License-Identifier: BSD-3-Clause
"""Multi-way contingency tables, and interactions, of chosen subsets of columns."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import torch

from ..registry import savable
from .base import to_grid
from .codes import HatBasis, Refinement
from .two_way import CONSTANTS, ProductMechanism, own_and_later

# A column, and its map from levels to groups, of shape (n_levels, n_groups).
Factor = tuple[int, torch.Tensor]


@savable
@dataclass(frozen=True)
class MultiWayTables:
    """Released multi-way tables, in records."""

    # The levels of the columns.
    refinement: Refinement
    # The factors of each table: a column, and the group of each of its levels, or its sign.
    products: tuple[tuple[Factor, ...], ...]
    # Of each table, the noisy number of records with a level of each group; for
    # signs, of which a factor has one group, the noisy sum of their products.
    cells: tuple[np.ndarray, ...]
    # Standard deviation of the noise.
    std: float
    # The column by which records are stratified: the last factor of each table.
    by: int | None = None

    def without_impossible(self, impossible: np.ndarray) -> "MultiWayTables":
        """Return the tables with 0 in place of noise in cells that public rules exclude.

        The matrix marks pairs of levels that no record has, before refinement.
        """
        slices = [own for own, _ in own_and_later(self.refinement.sizes)]
        coarsen = self.refinement.to_coarse().numpy()
        fine = [own for own, _ in own_and_later(self.refinement.fine_sizes)]

        def find_levels(column, groups):
            """Return which levels are in which group."""
            return coarsen[fine[column], slices[column]].T @ np.abs(groups.numpy()) > 0

        cells = []
        for factors, table in zip(self.products, self.cells, strict=True):
            levels = [find_levels(*factor) for factor in factors]
            for (i, c), (j, d) in itertools.combinations(enumerate(c for c, _ in factors), 2):
                pairs = ~impossible[slices[c], slices[d]]
                is_possible = levels[i].T.astype(int) @ pairs @ levels[j] > 0
                others = [k for k in range(table.ndim) if k not in (i, j)]
                table = np.where(np.expand_dims(is_possible, others), table, 0.0)
            cells.append(table)
        return replace(self, cells=tuple(cells))


class MultiWayMechanism(ProductMechanism):
    """Contingency tables of some subsets of columns, of any numbers of columns.

    A record has non-negative weights of the levels of each column, which sum to 1 (see `HatBasis`).
    A public map M merges levels into groups, or gives them signs. It maps the weights of a column
    to a factor b, whose absolute values sum to at most 1, so that its norm is at most 1. For K
    products of factors of different columns, a record contributes all b₁ ⊗ … ⊗ b_k, divided by √K.
    This vector has norm at most 1, as each of the K products has norm ‖b₁‖·…·‖b_k‖ ≤ 1. Two such
    vectors are at most 2 apart, or √2 if no map has a negative entry, as then no product is
    negative. Both bounds hold for any k, and for products of different k together.

    *Integer arithmetic.* A product is that of two parts, of the first and of the last factors. The
    first part, divided by √K, and the last part are rounded towards zero before they are
    multiplied. So each product is at most its exact value, with the same sign or 0, and all bounds
    hold.

    Parameters
    ----------
    name : str
        Name of the release.
    refinement : Refinement
        The levels of all columns.
    products : sequence of sequence of (int, tensor of shape (n_levels, n_groups))
        At least two factors of each product: different columns, and their maps, in which each level
        has at most one 1 or -1, and 0 otherwise.
    """

    def __init__(
        self, name: str, refinement: Refinement, products: Sequence[Sequence[Factor]]
    ) -> None:
        self.name, self.refinement = name, refinement
        self.products = tuple(map(tuple, products))
        columns = [[c for c, _ in factors] for factors in self.products]
        if not columns or any(len(set(some)) < max(2, len(some)) for some in columns):
            raise ValueError("products must hold at least one, of two or more different columns.")
        if any((groups.abs().sum(1) > 1).any() for groups in self._list_maps()):
            raise ValueError("maps must have at most one 1 or -1 for each level, and 0 otherwise.")

    @staticmethod
    def sensitivity_of(relation: str, is_signed: bool) -> float:
        """Return the sensitivity, in units of √K records."""
        diameter = 2.0 if is_signed else math.sqrt(2)
        return {"zero_out": 1.0, "replace_one": diameter}[relation]

    def sensitivity(self, relation: str) -> float:
        """Return the sensitivity; see `Mechanism.sensitivity`."""
        is_signed = any((groups < 0).any() for groups in self._list_maps())
        return self.sensitivity_of(relation, is_signed)

    def _list_maps(self):
        # Thousands of products share few maps.
        return {id(groups): groups for factors in self.products for _, groups in factors}.values()

    @property
    def _shapes(self):
        return [tuple(groups.shape[1] for _, groups in factors) for factors in self.products]

    def _add_products(self, half, source):
        total = [np.zeros(math.prod(shape), dtype=np.int64) for shape in self._shapes]
        matched, width = self._match_parts()
        n_rows = CONSTANTS.batch_size(width)
        divisor = math.sqrt(len(self.products))
        for codes, membership in source.codes(self.name, n_rows):
            codes = self.refinement.refine(codes[membership.sum(1) > 0])
            basis = HatBasis(codes, self.refinement.fine_sizes)
            known: dict = {}

            def multiply(factors, basis=basis, known=known):
                """Return the products of the weights of factors, of shape (n, n_cells)."""
                return reduce(multiply_rows, (_join(basis, factor, known) for factor in factors))

            lasts: dict = {}
            for first, others in matched:
                for key, last, _ in others:
                    if key not in lasts:
                        lasts[key] = to_grid(multiply(last), half)
                left = to_grid(multiply(first) / divisor, half)
                right = torch.hstack([lasts[key] for key, *_ in others])
                product = (left.T @ right).long().cpu().numpy()
                start = 0
                for key, _, places in others:
                    part = product[:, start : (start := start + lasts[key].shape[1])].ravel()
                    for i in places:
                        total[i] += part
        return np.concatenate(total)

    def _match_parts(self):
        """Return the distinct first parts of the products, each with its last parts.

        Last parts have a key, factors, and the positions of their products. Beside them the number
        of columns that all last parts have together, and a first part.
        """
        matched: dict = {}
        for i, factors in enumerate(self.products):
            middle = (len(factors) + 1) // 2
            first, last = factors[:middle], factors[middle:]
            _, others = matched.setdefault(_key(first), (first, {}))
            others.setdefault(_key(last), (last, []))[1].append(i)
        firsts = max(_count_cells(first) for first, _ in matched.values())
        lasts = {key: last for _, others in matched.values() for key, (last, _) in others.items()}
        width = firsts + sum(map(_count_cells, lasts.values()))
        listed = [
            (first, [(key, *other) for key, other in others.items()])
            for first, others in matched.values()
        ]
        return listed, width

    def postprocess(self, noisy, measured):
        std, shapes = measured.context, self._shapes
        records = math.sqrt(len(self.products))
        parts = np.split(noisy * records, np.cumsum([math.prod(shape) for shape in shapes])[:-1])
        cells = tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
        return MultiWayTables(self.refinement, self.products, cells, std * records)


def _key(factors):
    return tuple((c, id(groups)) for c, groups in factors)


def _count_cells(factors):
    return math.prod(groups.shape[1] for _, groups in factors)


def _join(basis, factor, known):
    key = _key([factor])
    if key not in known:
        known[key] = basis.join(*factor)
    return known[key]


def multiply_rows(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return the products of all numbers of a row with all of another: (..., width · width)."""
    return (left[..., None] * right[..., None, :]).flatten(-2)
