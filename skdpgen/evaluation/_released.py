# SPDX-License-Identifier: BSD-3-Clause
"""Released counts of a table, beside the counts of its synthetic rows in the same levels."""

from itertools import combinations

import numpy as np
import pandas as pd
import torch

from ..learners.marginals import Marginals
from ..mechanisms.codes import HatBasis
from ..mechanisms.two_way import Tables, tables_with_later
from ..releases.published import open_release
from ..tables.encoder import TableEncoder
from ..tables.format import TableFormat
from ._columns import as_numbers
from ._verdicts import CONSTANTS

# Synthetic rows that are counted: a report takes seconds for tables of any size.
_MOST_ROWS = 20_000


def compare_released(release, synthetic: pd.DataFrame) -> dict | None:
    """Compare released counts with those of synthetic rows; both are shares.

    Parameters
    ----------
    release : PublishedRelease, Release, str or path
    synthetic : DataFrame

    Returns
    -------
    dict or None
        ``columns``: for each, its ``levels``, or the ``values`` of knots and point masses, of which
        ``n_knots`` come first; the shares ``released`` and ``synthetic``; ``margin``, which the
        noise on a share exceeds with a probability of 5 %; and, for numbers, ``mean`` and
        ``total`` with their margins. ``pairs``, the worst first: both tables, and ``beyond_noise``,
        by how much more they differ than noise explains. None for releases of arrays.
    """
    published = open_release(release)
    format, tables = published.format, published.main
    if not isinstance(format, TableFormat) or not isinstance(tables, Tables):
        return None
    tables = format.match_rows(tables)
    blocks = TableEncoder(format.schema).make_blocks()
    rows = synthetic[list(format.schema)][:_MOST_ROWS]
    codes = TableEncoder(format.schema).encode_cells(rows)
    is_known = ~np.isnan(codes).any(axis=1)
    if not is_known.any():
        return None
    rows = format.schema.add_differences(rows)
    weights = HatBasis(torch.from_numpy(codes[is_known]), format.block_sizes).to_dense().numpy()
    n = max(1.0, float(np.sum(tables.count_records()[0])))
    found = Marginals.of(tables, n, *format.find_masks())
    counts = np.where(found.is_empty, 0.0, found.counts)
    columns = [
        _describe(block, rows[block.name][is_known], weights, counts, found.std, n)
        for block in blocks
    ]
    joint, std = _join(tables, counts.size, format)
    pairs = []
    for first, second in combinations(blocks, 2):
        released = joint[first.where, second.where] / n
        made = weights[:, first.where].T @ weights[:, second.where] / len(weights)
        noise = std[first.where, second.where].max() / n
        # The mean of |x| / 2 for normal errors of the noise and of drawing so many rows.
        expected = np.sqrt(noise**2 + made / len(weights)).sum() / np.sqrt(2 * np.pi)
        gap = np.abs(released - made).sum() / 2 - expected
        pair = {"first": str(first.name), "second": str(second.name), "beyond_noise": gap}
        pairs.append(
            pair | {"released": released, "synthetic": made, "margin": CONSTANTS.confident * noise}
        )
    return {"columns": columns, "pairs": sorted(pairs, key=lambda pair: -pair["beyond_noise"])}


def _join(tables: Tables, size: int, format: TableFormat) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts of all two levels of different columns, and the noise on each."""
    n_strata = len(tables.cells) if tables.cells.ndim > 1 else 1
    cells = tables.cells.reshape(n_strata, -1).sum(axis=0)
    joint, std = np.zeros((size, size)), np.full((size, size), tables.pairs_std * n_strata**0.5)
    where = [block for _, block in format.blocks]
    if tables.by is not None:
        where.remove(tables.by)
        kept = np.concatenate([np.arange(size)[block] for block in where])
        by_level, by_std = tables.count_levels()
        for part, at in zip(by_level, range(size)[tables.by], strict=True):
            joint[at, kept] = joint[kept, at] = part
            std[at, kept] = std[kept, at] = by_std
    for c, later in enumerate(tables_with_later(cells, tables.sizes)):
        if after := [np.arange(size)[block] for block in where[c + 1 :]]:
            joint[where[c], np.concatenate(after)] = later
    return np.triu(joint) + np.triu(joint).T, std


def _describe(block, cells: pd.Series, weights, counts, std, n: float) -> dict:
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
