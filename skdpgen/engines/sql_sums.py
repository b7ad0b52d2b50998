# SPDX-License-Identifier: BSD-3-Clause
"""Sums of whole numbers of records as statements of SQL, in the dialect of DuckDB.

The operations on doubles are those of the mechanisms, in the same order.
"""

import itertools
import math
from collections.abc import Callable

import numpy as np

from ..mechanisms.base import MARGIN
from ..mechanisms.codes import Refinement
from ..mechanisms.two_way import TablesMechanism, select_cells
from .sql_codes import ColumnCode, write_double

# Sums in a row of a result: databases limit its columns.
_MOST_SUMS = 1_000


def write_sum(
    mechanism, half: float, columns: list[ColumnCode], table: str
) -> tuple[str, Callable[[np.ndarray], np.ndarray]]:
    """Return the statement of the sum of a mechanism, and what reads its result.

    The sorted result begins with -1 and the number of rows of the table; the function takes the
    other rows.

    Parameters
    ----------
    mechanism : ProductMechanism
    half : float
        1 over the step of the grid of factors.
    columns : list of ColumnCode
    table : str
    """
    refinement = getattr(mechanism, "refinement", Refinement.none([1] * len(columns)))
    bins = [*zip(refinement.n_parts, refinement.n_knots, refinement.n_bins, strict=True)]
    are_whole = [c.is_whole or n > 0 for c, (*_, n) in zip(columns, bins, strict=True)]
    write = _write_two_way if isinstance(mechanism, TablesMechanism) else _write_multi_way
    factors, selects, read = write(mechanism, half, are_whole)
    present = " AND ".join(column.present for column in columns)
    views = {
        "cells": (table, (f"{column.cell} AS x{i}" for i, column in enumerate(columns))),
        # A select computes few codes, but asks for all whether the record has one.
        "codes": (
            f"cells WHERE {present}",
            (f"{column.code} AS c{i}" for i, column in enumerate(columns)),
        ),
        "refined": ("codes", itertools.starmap(_refine, enumerate(bins))),
        "levels": (
            "refined",
            (
                f"CAST(FLOOR(r{i}) AS INTEGER) AS l{i}, r{i} - FLOOR(r{i}) AS f{i}"
                for i in range(len(columns))
            ),
        ),
        "factors": ("levels", factors),
    }
    written = ", ".join(
        f"{name} AS NOT MATERIALIZED (SELECT {', '.join(selected)} FROM {source})"
        for name, (source, selected) in views.items()
    )
    selects = [(["-1", "COUNT(*)"], table), *((n, f"factors{by}") for n, by in selects)]
    width = max(len(numbers) for numbers, _ in selects)
    union = " UNION ALL ".join(
        f"SELECT {', '.join([*numbers, *['0'] * (width - len(numbers))])} FROM {source}"
        for numbers, source in selects
    )
    return f"WITH {written} {union}", read


def _refine(i, bins):
    """Return a code among bins; see `Refinement.refine`."""
    n_parts, n_knots, n_bins = bins
    if not n_bins:
        return f"c{i} AS r{i}"
    bin_, other = f"LEAST(FLOOR(c{i} * {n_parts}), {n_bins - 1})", f"c{i} - {n_knots} + {n_bins}"
    return f"CASE WHEN c{i} <= {n_knots - 1} THEN {bin_} ELSE {other} END AS r{i}"


def _write_two_way(mechanism, half, are_whole):
    """Return the weights of levels, a ``GROUP BY`` for each table, and the reader.

    A row of the result has the number of a table, two levels, that of the strata, and the sums of
    products of the weights of these levels and of the next ones.
    """
    scale, kept, sizes = half / math.sqrt(mechanism.records), mechanism.kept, mechanism.sizes
    scale, n = scale * (1 - MARGIN), sum(sizes)
    factors, selects = [], []
    for i, is_whole in enumerate(are_whole):
        for name, weight, whole in (("a", f"(1 - f{i})", math.floor(scale)), ("b", f"f{i}", 0)):
            number = whole if is_whole else f"FLOOR({weight} * {write_double(scale)})"
            factors.append(f"CAST({number} AS BIGINT) AS {name}{i}")
        factors.append(f"l{i}")
    tables = [(c,) for c in kept] + list(itertools.combinations(kept, 2))
    strata = [f"l{c}" for c in range(len(are_whole)) if c not in kept]
    for number, table in enumerate(tables):
        levels = [f"l{c}" for c in table]
        products = map(" * ".join, itertools.product(*((f"a{c}", f"b{c}") for c in table)))
        keys = [*levels, *["0"] * (2 - len(levels)), *(strata or ["0"])]
        sums = (f"CAST(SUM({product}) AS BIGINT)" for product in products)
        selects.append(([str(number), *keys, *sums], f" GROUP BY {', '.join(levels + strata)}"))

    def read(rows):
        starts = dict(zip(kept, np.cumsum([0, *sizes]).tolist(), strict=False))
        n_strata = 1 if mechanism.by is None else mechanism.by.stop - mechanism.by.start
        # The last column is that of one-way tables. Sums beyond a last level are 0.
        total = np.zeros((n_strata, n + 1, n + 1), dtype=np.int64)
        for number, (column, *others) in enumerate(tables):
            _, first, second, stratum, *sums = rows[rows[:, 0] == number].T
            at = starts[others[0]] if others else n
            following = itertools.product((0, 1), repeat=1 + len(others))
            for (i, *j), found in zip(following, sums, strict=False):
                np.add.at(total, (stratum, starts[column] + first + i, at + second + sum(j)), found)
        one_way = total[:, :n, n] * mechanism.find_one_way(half)
        cells = np.hstack([select_cells(total[:, :n, :n], sizes), one_way])
        return cells[0] if mechanism.by is None else cells

    return factors, selects, read


def _write_multi_way(mechanism, half, are_whole):
    """Return the weights of groups of levels, the sum of each cell, and the reader."""
    names: dict = {}
    factors, sums, scale = [], [], write_double(half * (1 - MARGIN))
    divisor = write_double(math.sqrt(len(mechanism.products)))
    for factor in itertools.chain(*mechanism.products):
        column, groups = factor
        if (column, id(groups)) in names:
            continue
        names[column, id(groups)] = [f"m{len(factors) + g}" for g in range(groups.shape[1])]
        for signs in groups.int().T.tolist():
            # As `HatBasis.join`; the last level has no next one.
            cases = " ".join(
                f"WHEN {level} THEN "
                + (f"{s}" if are_whole[column] else f"{s} * (1 - f{column}) + {t} * f{column}")
                for level, (s, t) in enumerate(itertools.pairwise([*signs, 0]))
            )
            factors.append(f"CASE l{column} {cases} END AS m{len(factors)}")
    for product in mechanism.products:
        middle = (len(product) + 1) // 2
        for cell in itertools.product(*(names[c, id(groups)] for c, groups in product)):
            left = f"{' * '.join(cell[:middle])} / {divisor} * {scale}"
            right = f"{' * '.join(cell[middle:])} * {scale}"
            whole = " * ".join(f"CAST(TRUNC({part}) AS BIGINT)" for part in (left, right))
            sums.append(f"COALESCE(CAST(SUM({whole}) AS BIGINT), 0)")
    starts = range(0, len(sums), _MOST_SUMS)
    selects = [([str(start), *sums[start : start + _MOST_SUMS]], "") for start in starts]
    return factors, selects, lambda rows: rows[:, 1:].ravel()[: len(sums)]
