# SPDX-License-Identifier: BSD-3-Clause
"""Released counts of a table, beside the counts of its synthetic rows in the same levels."""

from itertools import combinations

import numpy as np
import pandas as pd
import torch

from ..learners.marginals import Marginals
from ..mechanisms.codes import HatBasis
from ..mechanisms.two_way import Tables
from ..quality import MOVED
from ..releases.published import open_release
from ..tables.encoder import TableEncoder
from ..tables.evidence import PairCounts
from ..tables.format import TableFormat
from ._columns import as_numbers
from ._verdicts import CONSTANTS

# Synthetic rows that are counted: a report takes seconds for tables of any size.
_MOST_ROWS = 20_000


def compare_released(release, synthetic: pd.DataFrame) -> dict | None:
    """Compare released counts with those of synthetic rows; both are shares. None for arrays.

    ``n_records``: the noisy number of records. ``columns``: for each, its ``levels``, or the
    ``values`` of knots and point masses, of which ``n_knots`` come first; the shares ``released``
    and ``synthetic``; ``margin``, which the noise on a share exceeds with a probability of 5 %;
    and, for numbers, ``mean`` and ``total`` with their margins. ``pairs``, the worst first: both
    tables, and ``beyond_noise``, by how much more they differ than noise explains.
    """
    published = open_release(release)
    format, tables = published.format, published.main
    if not isinstance(format, TableFormat) or not isinstance(tables, Tables):
        return None
    counted = PairCounts(format, tables)
    rows = synthetic[list(format.schema)][:_MOST_ROWS]
    codes = TableEncoder(format.schema).encode_cells(rows)
    is_known = ~np.isnan(codes).any(axis=1)
    if not is_known.any():
        return None
    rows = format.schema.add_differences(rows)
    weights = HatBasis(torch.from_numpy(codes[is_known]), format.block_sizes).to_dense().numpy()
    n = max(1.0, counted.n_records)
    found = Marginals.of(format.match_rows(tables), n, *format.find_masks())
    counts = np.where(found.is_empty, 0.0, found.counts)
    columns = [
        describe(block, rows[block.name][is_known], weights, counts, found.std, n)
        for block in counted.blocks
    ]
    pairs = []
    for first, second in combinations(counted.blocks, 2):
        joint, std = counted.of(first, second)
        made = weights[:, first.where].T @ weights[:, second.where] / len(weights)
        pairs.append(compare_pair(first.name, second.name, joint / n, made, std / n, len(weights)))
    pairs.sort(key=lambda pair: -pair["beyond_noise"])
    return {"n_records": n, "columns": columns, "pairs": pairs}


def compare_pair(first, second, released, made, noise: float, n_made: int) -> dict:
    """Return the shares of two columns as released, with noise, and of so many synthetic rows."""
    # By errors of the noise, and of drawing so many rows.
    expected = MOVED * np.sqrt(noise**2 + made / n_made).sum()
    gap = np.abs(released - made).sum() / 2 - expected
    pair = {"first": str(first), "second": str(second), "beyond_noise": gap}
    return pair | {"released": released, "synthetic": made, "margin": CONSTANTS.confident * noise}


def describe(block, cells: pd.Series, weights, counts, std, n: float) -> dict:
    """Return the shares of a column and, of cells that are numbers, means and totals."""
    weights, counts, noise = weights[:, block.where], counts[block.where], std[block.where.start]
    column, shares = block.column_type, counts / n
    described = {
        "column": str(block.name),
        "released": shares,
        "synthetic": weights.mean(axis=0),
        "margin": CONSTANTS.confident * noise / n,
    }
    missing = ["missing"] * column.missing
    if not column.has_knots:
        return described | {"levels": [*map(str, column.levels), *missing]}
    values = np.concatenate([block.knots, np.asarray(block.atoms, float)])
    described |= {"n_knots": len(block.knots), "levels": missing, "is_date": not column.is_number}
    if not column.is_number:
        dates = column.decode(values, np.zeros(len(values), dtype=bool))
        return described | {"values": as_numbers(pd.Series(dates))}
    described["values"] = values
    numbers = as_numbers(cells)
    if numbers is None:
        return described
    # The mean number near each knot: between breakpoints it is not the knot.
    weights, counts = weights[:, : len(values)], counts[: len(values)]
    sums = weights.sum(axis=0)
    near = np.divide(np.nan_to_num(numbers) @ weights, sums, out=values.copy(), where=sums > 0)
    total, present = counts @ near, max(1.0, counts.sum())
    mean = total / present
    used = noise * (counts != 0)
    return described | {
        "mean": mean,
        "mean_margin": CONSTANTS.confident * float(np.linalg.norm(used * (near - mean))) / present,
        "synthetic_mean": float(np.nanmean(numbers)),
        "total": total,
        "total_margin": CONSTANTS.confident * float(np.linalg.norm(used * near)),
    }
