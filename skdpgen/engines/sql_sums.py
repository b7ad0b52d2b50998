# SPDX-License-Identifier: BSD-3-Clause
"""Sums of mechanisms as statements of SQL, in the dialect of DuckDB: whole numbers of each record.

The operations on doubles are those of the mechanisms, in the same order.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..mechanisms.base import MARGIN
from ..mechanisms.codes import Refinement
from ..mechanisms.two_way import TablesMechanism, select_cells
from .sql_codes import ColumnCode, write_double

# Sums in a row of a result: databases limit its columns.
_MOST_SUMS = 1_000


class ProductSums(ABC):
    """The statement of a sum of products of whole numbers.

    Parameters
    ----------
    mechanism : ProductMechanism
    half : float
        1 over the step of the grid of factors.
    columns : list of ColumnCode
    """

    def __init__(self, mechanism: Any, half: float, columns: list[ColumnCode]):
        self._mechanism, self._half, self._columns = mechanism, half, columns
        none = Refinement.none([1] * len(columns))
        self._refinement: Refinement = getattr(mechanism, "refinement", none)

    @staticmethod
    def of(mechanism, half: float, columns: list[ColumnCode]) -> "ProductSums":
        """Return the statement of a mechanism."""
        is_two_way = isinstance(mechanism, TablesMechanism)
        return (TwoWaySums if is_two_way else MultiWaySums)(mechanism, half, columns)

    @abstractmethod
    def _write_factors(self) -> str:
        """Return the factors of a record, which the view of these selects."""

    @abstractmethod
    def _list_selects(self) -> Iterator[tuple[list[str], str]]:
        """Yield the numbers of rows of the result, and by what they are grouped."""

    @abstractmethod
    def read(self, rows: np.ndarray) -> np.ndarray:
        """Return the sum, from the sorted rows of the result but the first."""

    def write(self, table: str) -> str:
        """Return the statement; the first row of its result is -1 and the number of rows."""
        numbered = list(enumerate(self._columns))
        # A record without one of its codes is absent.
        present = " AND ".join(f"c{i} IS NOT NULL" for i, _ in numbered)
        views = {
            "cells": [f"{column.cell} AS x{i}" for i, column in numbered],
            "codes": [f"{column.code} AS c{i}" for i, column in numbered],
            "records": [f"{self._refine(i)} AS r{i}" for i, _ in numbered],
            "levels": [
                f"CAST(FLOOR(r{i}) AS INTEGER) AS l{i}, r{i} - FLOOR(r{i}) AS f{i}"
                for i, _ in numbered
            ],
            "factors": [self._write_factors()],
        }
        sources = [f"{table} AS t", "cells", f"codes WHERE {present}", "records", "levels"]
        written = ", ".join(
            f"{name} AS NOT MATERIALIZED (SELECT {', '.join(selected)} FROM {source})"
            for (name, selected), source in zip(views.items(), sources, strict=True)
        )
        selects = [(["-1", "COUNT(*)"], f"{table} AS t")]
        selects += [(numbers, f"factors{by}") for numbers, by in self._list_selects()]
        width = max(len(numbers) for numbers, _ in selects)
        union = " UNION ALL ".join(
            f"SELECT {', '.join([*numbers, *['0'] * (width - len(numbers))])} FROM {source}"
            for numbers, source in selects
        )
        return f"WITH {written} {union}"

    def _refine(self, i):
        """Return a code among bins; see `Refinement.refine`."""
        refinement = self._refinement
        n_parts, n_knots, n_bins = (
            n[i] for n in (refinement.n_parts, refinement.n_knots, refinement.n_bins)
        )
        bins = f"LEAST(FLOOR(c{i} * {n_parts}), {n_bins - 1})"
        others = f"c{i} - {n_knots} + {n_bins}"
        return f"CASE WHEN c{i} <= {n_knots - 1} THEN {bins} ELSE {others} END" if n_bins else f"c{i}"

    def _is_whole(self, i):
        return self._columns[i].is_whole or self._refinement.n_bins[i] > 0


class TwoWaySums(ProductSums):
    """Two-way and one-way tables, each by a ``GROUP BY``; see `TablesMechanism`.

    A row of the result has the number of a table, two levels, that of the strata, and the sums of
    products of the weights of these levels and of the next ones.
    """

    def __init__(self, mechanism, half, columns):
        super().__init__(mechanism, half, columns)
        kept = mechanism.kept
        self._tables = [(c,) for c in kept] + list(itertools.combinations(kept, 2))
        self._strata = [f"l{c}" for c in range(len(columns)) if c not in kept]

    def _write_factors(self):
        scale, factors = self._half / math.sqrt(self._mechanism.records) * (1 - MARGIN), []
        for i in range(len(self._columns)):
            own, following = (
                f"CAST(FLOOR({weight} * {write_double(scale)}) AS BIGINT)"
                for weight in (f"(1 - f{i})", f"f{i}")
            )
            if self._is_whole(i):
                own, following = f"CAST({math.floor(scale)} AS BIGINT)", "CAST(0 AS BIGINT)"
            factors.append(f"l{i}, {own} AS a{i}, {following} AS b{i}")
        return ", ".join(factors)

    def _list_selects(self):
        for number, columns in enumerate(self._tables):
            levels = [f"l{c}" for c in columns]
            products = itertools.product(*((f"a{c}", f"b{c}") for c in columns))
            sums = [f"CAST(SUM({' * '.join(factors)}) AS BIGINT)" for factors in products]
            keys = [*levels, *["0"] * (2 - len(levels)), *(self._strata or ["0"])]
            yield [str(number), *keys, *sums], f" GROUP BY {', '.join(levels + self._strata)}"

    def read(self, rows):
        mechanism, sizes, n = self._mechanism, self._mechanism.sizes, sum(self._mechanism.sizes)
        starts = dict(zip(mechanism.kept, np.cumsum([0, *sizes]).tolist(), strict=False))
        n_strata = 1 if mechanism.by is None else mechanism.by.stop - mechanism.by.start
        # The last column is that of one-way tables. Sums beyond the last level are 0.
        total = np.zeros((n_strata, n + 1, n + 1), dtype=np.int64)
        for number, columns in enumerate(self._tables):
            _, first, second, strata, *sums = rows[rows[:, 0] == number].T
            first, second = first + starts[columns[0]], second + starts.get((*columns, n)[1], n)
            following = itertools.product((0, 1), repeat=len(columns))
            for (i, *j), found in zip(following, sums, strict=False):
                np.add.at(total, (strata, first + i, second + sum(j)), found)
        one_way = total[:, :n, n] * mechanism.find_one_way(self._half)
        found = np.hstack([select_cells(total[:, :n, :n], sizes), one_way])
        return found[0] if mechanism.by is None else found


class MultiWaySums(ProductSums):
    """Multi-way tables and interactions, a sum for each cell; see `MultiWayMechanism`."""

    def _write_factors(self):
        self._names: dict = {}
        for column, groups in itertools.chain(*self._mechanism.products):
            for group in range(groups.shape[1]):
                name = f"m{len(self._names)}"
                self._names.setdefault((column, id(groups), group), (name, groups[:, group]))
        factors = (
            f"{self._join(column, signs.int().tolist())} AS {name}"
            for (column, *_), (name, signs) in self._names.items()
        )
        return ", ".join(factors)

    def _join(self, i, signs):
        """Return the weight of a group of levels; see `HatBasis.join`."""
        cases: dict = {}
        for level, (own, following) in enumerate(itertools.pairwise([*signs, signs[-1]])):
            joined = str(own) if self._is_whole(i) else f"{own} * (1 - f{i}) + {following} * f{i}"
            cases.setdefault(joined, []).append(str(level))
        written = (f"WHEN l{i} IN ({', '.join(levels)}) THEN {j}" for j, levels in cases.items())
        return f"CASE {' '.join(written)} END"

    def _list_selects(self):
        products, scale = self._mechanism.products, write_double(self._half * (1 - MARGIN))
        divisor, sums = write_double(math.sqrt(len(products))), []
        for factors in products:
            groups = (
                [self._names[c, id(groups), g][0] for g in range(groups.shape[1])]
                for c, groups in factors
            )
            middle = (len(factors) + 1) // 2
            for names in itertools.product(*groups):
                left, right = (" * ".join(part) for part in (names[:middle], names[middle:]))
                parts = f"{left} / {divisor} * {scale}", f"{right} * {scale}"
                written = " * ".join(f"CAST(TRUNC({part}) AS BIGINT)" for part in parts)
                sums.append(f"COALESCE(CAST(SUM({written}) AS BIGINT), 0)")
        for start in range(0, len(sums), _MOST_SUMS):
            yield [str(start), *sums[start : start + _MOST_SUMS]], ""

    def read(self, rows):
        shapes = (math.prod(g.shape[1] for _, g in f) for f in self._mechanism.products)
        return rows[:, 1:].ravel()[: sum(shapes)]
