# SPDX-License-Identifier: BSD-3-Clause
"""What is released of three columns of a table: interactions of all, and tables of a few."""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from ..accounting.events import plain_multiplier
from .base import Measurement, Mechanism, to_grid
from .codes import HatBasis
from .tables import MOST_NUMBERS, MOST_ROWS, half_grid, own_and_later


@dataclass(frozen=True)
class ThreeWayTables:
    """Released three-way tables, in records.

    Attributes
    ----------
    maps : tuple of tensor of shape (n_levels, n_groups)
        How levels of each column were joined, or given a sign.
    triples : tuple of (int, int, int)
        Positions of the columns of each table.
    cells : tuple of ndarray of shape (n_groups, n_groups, n_groups)
        For three groups of levels, the noisy number of records that have a level of each; or, of
        signs, of shape (1, 1, 1), the noisy sum of the products of three signs.
    std : float
        Standard deviation of the noise.
    """

    maps: tuple
    triples: tuple
    cells: tuple
    std: float

    def without_impossible(self, impossible):
        """Return the tables with 0 in place of noise where it is public that no record is.

        Parameters
        ----------
        impossible : ndarray of bool, symmetric
            Of all levels, those that no record has together.
        """
        where = [own for own, _ in own_and_later([len(groups) for groups in self.maps])]

        def can_be(c, d):
            possible = ~impossible[where[c], where[d]]
            return self.maps[c].numpy().T @ possible @ self.maps[d].numpy() > 0

        cells = tuple(
            np.where(can_be(a, b)[:, :, None] & can_be(a, c)[:, None] & can_be(b, c), table, 0.0)
            for (a, b, c), table in zip(self.triples, self.cells, strict=True)
        )
        return replace(self, cells=cells)


class ThreeWayMechanism(Mechanism):
    """Tables of triples of columns.

    A record has a place in each column of a table, for which weights of its levels stand that are
    not negative and sum to 1 (see `Hats`). Levels are joined in groups, or given signs, by a public
    map M_c, which makes b_c of the weights: its absolute values sum to at most 1, so that its norm
    is at most 1. For K triples (c, d, e) of columns, a record adds all b_c ⊗ b_d ⊗ b_e, divided by
    √K: a vector of norm at most 1, as each of the K products has norm ‖b_c‖·‖b_d‖·‖b_e‖ ≤ 1. So two
    such vectors are at most 2 apart; √2 where no map has a negative number, as then no product has.

    *Whole numbers.* b_c ⊗ b_d / √K and b_e are rounded towards zero before they are multiplied:
    each product is then at most what it was, with its sign or 0. All bounds stay.

    Parameters
    ----------
    name : str
        Name of the release.
    maps : sequence of tensor of shape (n_levels, n_groups)
        For each column. Each level has one 1 or -1 at most, and is 0 otherwise.
    triples : sequence of (int, int, int)
        Positions of different columns.
    """

    is_sum = True

    def __init__(self, name, maps, triples):
        self.name = name
        self.maps = tuple(maps)
        self.triples = tuple(map(tuple, triples))
        if not self.triples or any(len(set(triple)) < 3 for triple in self.triples):
            raise ValueError("triples must hold at least one, of three different columns each.")
        if any((groups.abs().sum(1) > 1).any() for groups in self.maps):
            raise ValueError("maps must have one 1 or -1 a level, and 0 otherwise.")

    @staticmethod
    def sensitivity_of(relation, is_signed):
        """Return the sensitivity, in units of √K records."""
        apart = 2.0 if is_signed else math.sqrt(2)
        return {"zero_out": 1.0, "replace_one": apart}[relation]

    def sensitivity(self, relation):
        is_signed = any((groups < 0).any() for groups in self.maps)
        return self.sensitivity_of(relation, is_signed)

    def check(self, event):
        plain_multiplier(event)

    def _measure(self, source, event, relation, noise):
        std = self._find_std(source, event, relation)
        half = half_grid(std, source.n_records)
        total = source.add_up(partial(self._add_up, half))
        return Measurement(total, half**2, std, context=std)

    @property
    def _shapes(self):
        widths = [groups.shape[1] for groups in self.maps]
        return [tuple(widths[c] for c in triple) for triple in self.triples]

    def _add_up(self, half, source):
        total = [np.zeros(shape, dtype=np.int64) for shape in self._shapes]
        products = self._by_first()
        n_rows = max(1, min(MOST_ROWS, MOST_NUMBERS // max(width for *_, width in products)))
        sizes = [len(groups) for groups in self.maps]
        for places, membership in source.codes(self.name, n_rows):
            hats = HatBasis(places[membership.sum(1) > 0], sizes)
            columns = [hats.join(c, groups) for c, groups in enumerate(self.maps)]
            whole = [to_grid(column, half) for column in columns]
            shares = [column / math.sqrt(len(self.triples)) for column in columns]
            for c, seconds, thirds, places, _ in products:
                pairs = columns[c][:, :, None] * torch.hstack([shares[d] for d in seconds])[:, None]
                product = to_grid(pairs.flatten(1), half).T @ torch.hstack(
                    [whole[e] for e in thirds]
                )
                product = product.long().cpu().numpy().reshape(*pairs.shape[1:], -1)
                for i, place in places:
                    total[i] += product[place]
        return np.concatenate([table.ravel() for table in total])

    def _by_first(self):
        """Return the products of matrices that make the tables, one for each first column.

        Returns
        -------
        list of (first, seconds, thirds, places, width)
            The columns, of which there are three to a table; for each table its position among the
            triples, and its place in the product; and how many numbers a row has for pairs.
        """
        products = []
        for first in dict.fromkeys(c for c, _, _ in self.triples):
            tables = [(i, *rest) for i, (c, *rest) in enumerate(self.triples) if c == first]
            seconds, thirds = (
                list(dict.fromkeys(cs)) for cs in list(zip(*tables, strict=True))[1:]
            )
            second, third = self._side_by_side(seconds), self._side_by_side(thirds)
            places = [(i, (slice(None), second[d], third[e])) for i, d, e in tables]
            width = self.maps[first].shape[1] * max(where.stop for where in second.values())
            products.append((first, seconds, thirds, places, width))
        return products

    def _side_by_side(self, columns):
        """Return where each of some columns is among all of these, joined."""
        widths = [self.maps[c].shape[1] for c in columns]
        return dict(zip(columns, (own for own, _ in own_and_later(widths)), strict=True))

    def _present(self, noisy, measured):
        std, shapes = measured.context, self._shapes
        records = math.sqrt(len(self.triples))
        parts = np.split(noisy * records, np.cumsum([math.prod(shape) for shape in shapes])[:-1])
        cells = tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
        return ThreeWayTables(self.maps, self.triples, cells, std * records)
