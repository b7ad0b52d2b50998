# SPDX-License-Identifier: BSD-3-Clause
"""Report on the columns of a fitted table, from public and released numbers."""

import numpy as np
import pandas as pd

from .encoder import TableEncoder


def describe(schema, counts=None, std=None, n_records=1.0, pair_std=None, losses=None):
    """Return the columns of a schema as a table, with the shares that released counts give.

    Parameters
    ----------
    schema : Schema
        That leaves nothing open.
    counts, std : ndarray of shape (n_levels,), default=None
        Released numbers of records with each level or near each knot, in the order of encoded
        rows, and standard deviations of their noise. None: none were released.
    n_records : float
        Number of records that they are of.
    pair_std : dict of str to float, default=None
        For each column, the standard deviation of the noise on a count of its levels with those of
        another column. If that of the target differs, all pairs with the target have it.
    losses : dict of str to float, default=None
        See `mean_low`.

    Returns
    -------
    DataFrame
        Indexed by the names of the columns: ``kind``; ``lower`` and ``upper``, the bounds;
        ``n_levels``, the number of levels, or of knots and atoms; ``share_other`` and
        ``share_missing``; ``share_lower`` and ``share_upper``, what is at the outermost knots;
        ``share_atoms``, what is at all atoms; ``noise`` and ``noise_pair``, the standard deviations
        of counts of the column, and of the column with another one, in records; ``mean_low``, the
        share by which the mean, and the total, of a number may be low where a tail is beyond the
        inferred bound: at most so much in 19 of 20 columns, NaN if not known; and, which a fit
        fills in, ``error``, the share of numbers or dates that are expected elsewhere than in the
        table, also between knots, ``interactions``, the subsets of columns whose tables were
        released, and ``finding``, the worst that it found.
    """
    where = dict(TableEncoder(schema).blocks)
    rows = {}
    for name, column in {**schema, **schema.learned}.items():
        row = rows[name] = {
            "kind": type(column).__name__.lower(),
            "lower": getattr(column, "lower", None),
            "upper": getattr(column, "upper", None),
        }
        if name not in where:
            continue
        block, has_knots = where[name], column.has_knots
        row["n_levels"] = block.stop - block.start - column.missing
        if not column.missing:
            row["share_missing"] = 0.0
        if counts is None:
            continue
        shares = np.clip(counts[block] / n_records, 0, 1)
        row["noise"] = std[block.start]
        row["noise_pair"] = (pair_std or {}).get(name)
        row["mean_low"] = (losses or {}).get(name)
        if column.missing:
            row["share_missing"] = shares[-1]
        if has_knots:
            knots, atoms = np.split(shares[: row["n_levels"]], [len(column.positions)])
            row["share_lower"], row["share_upper"] = knots[[0, -1]]
            row["share_atoms"] = atoms.sum()
        elif column.other is not None:
            row["share_other"] = shares[column.levels.index(column.other)]
    report = pd.DataFrame(list(rows.values()), index=list(rows), columns=list(DTYPES))
    return report.astype(DTYPES)


DTYPES = {
    "kind": object,
    "lower": object,
    "upper": object,
    "n_levels": "Int64",
    **dict.fromkeys(
        (
            "share_other",
            "share_missing",
            "share_lower",
            "share_upper",
            "share_atoms",
            "noise",
            "noise_pair",
            "error",
            "mean_low",
        ),
        "float64",
    ),
    "interactions": object,
    "finding": object,
}
