# SPDX-License-Identifier: BSD-3-Clause
"""Released tables in a form to publish: consistent counts with their noise, and a codebook.

A released table is split into its total, the deviations of both margins and the rest, as in an
analysis of variance. The unbiased estimates of least variance from all tables take the place of
total and margins. The noise of the parts is uncorrelated, so that their variances add up.
"""

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ..checks import budget_share
from ..mechanisms.two_way import Tables, own_and_later
from ..tables.encoder import TableEncoder
from ..tables.format import TableFormat

_MEANINGS = {
    "count": "Records with a level of each column, with noise; may be negative, or a fraction. "
    "Margins and totals agree: each is the weighted mean of all released tables that tell it.",
    "std": "Standard deviation of the noise, which is normal and has mean 0.",
    "lower, upper": "Ends of an interval that covers the count without noise with probability "
    "`interval`, for one count at a time. It is of the records at hand: sampling is not in it.",
    "from, to": "Where they differ, the count is a sum of weights, and not the number of records "
    "between them. A record has weight 1 at the level, and less towards both, where it is 0: "
    "linearly or, at `cuts` of the column, in equal steps; its weights sum to 1. So without noise, "
    "the records from one level to another are at least the sum of the counts strictly between "
    "them, and at most that with both. Records at levels without weights (`atoms`) come on top. "
    "Values beyond the first or last level count there.",
}


class Tabulation:
    """Counts of a `PublishedRelease` of tables, with intervals of a nominal level.

    Attributes
    ----------
    levels : dict of str to DataFrame
        The levels of each column, *value*, and *from* and *to* if they have weights.
    """

    def __init__(self, published: Any, level: float) -> None:
        budget_share("level", level)
        published.check()
        self._published, self._level = published, level
        if not (isinstance(published.format, TableFormat) and isinstance(published.main, Tables)):
            raise ValueError("Only releases of tables have counts: fit to a DataFrame.")
        self._tables = published.format.match_rows(published.main)
        blocks = TableEncoder(published.format.schema).make_blocks()
        self.levels = {block.name: _list_levels(block) for block in blocks}
        kept = [block.name for block in blocks if block.where != self._tables.by]
        self._places = {name: i for i, name in enumerate(kept)}

    def tabulate(self, names: Sequence, titles: Sequence | None = None) -> pd.DataFrame:
        """Return counts by the levels of columns; see `PublishedRelease.to_frame`."""
        if len({*names} & {*self.levels}) != len(names) or len(names) not in (1, 2):
            raise ValueError(f"columns must be one or two of {[*self.levels]}; got {[*names]}.")
        places = [self._places[name] for name in names if name in self._places]
        counts, variance = self._estimate(*places)
        if len(places) == len(names):
            counts, variance = counts.sum(0), variance * len(counts)
        elif names[0] in self._places:  # the strata are in the rows
            counts = counts.T
        labels = []
        for name, title, at in zip(names, titles or names, np.indices(counts.shape), strict=True):
            taken = self.levels[name].take(at.ravel()).reset_index(drop=True)
            labels.append(taken.set_axis([f"{title} {end}" for end in taken], axis=1))
            labels[-1] = labels[-1].rename(columns={f"{title} value": title})
        count, std = counts.ravel(), math.sqrt(variance)
        half = stats.norm.ppf((1 + self._level) / 2) * std
        return pd.DataFrame(
            {"count": count, "std": std, "lower": count - half, "upper": count + half},
            index=pd.MultiIndex.from_frame(pd.concat(labels, axis=1)),
        )

    def _estimate(self, *places: int) -> tuple[np.ndarray, float]:
        """Return the counts of each stratum and the variance of their noise; see the module."""
        tables, sizes = self._tables, [self._tables.sizes[place] for place in places]
        if not places:
            total, std = tables.count_records()
            return np.atleast_1d(total), std**2
        if len(places) == 1:
            own = own_and_later(tables.sizes)[places[0]][0]
            counts, std = (part[..., own] for part in tables.count_levels())
            margins, variance = [self._estimate()], std[0] ** 2
        else:
            counts, variance = tables.pair(*places), tables.pairs_std**2
            margins = [self._estimate(place) for place in places[::-1]]
            variance_of_total = self._estimate()[1]
        counts = counts.reshape(-1, *sizes)
        variance *= math.prod(1 - 1 / size for size in sizes)
        for axis, (margin, of_margin) in enumerate(margins, 1):
            # Equal parts bring the sums along an axis to those of the margin.
            gap = np.expand_dims(margin - counts.sum(axis), axis)
            counts = counts + gap / sizes[axis - 1]
            variance += of_margin / sizes[axis - 1] ** 2
        if len(places) == 2:  # which both margins count
            variance -= variance_of_total / math.prod(sizes) ** 2
        return counts, variance

    def describe(self) -> dict[str, Any]:
        """Return the codebook, which JSON can hold."""
        format, (total, variance) = self._published.format, self._estimate()
        return {
            "meanings": _MEANINGS,
            "interval": self._level,
            "total": {"count": total.sum(), "std": math.sqrt(variance * len(total))},
            "schema": json.loads(format.schema.to_json()),
            "inferred": {str(name): found for name, found in format.inferred_parameters.items()},
            "certificate": json.loads(self._published.certificate.to_json()),
        }


def _list_levels(block):
    column, numbers = block.column_type, {"value": np.arange(block.n_levels)}
    if column.has_knots:
        (knots, atoms), inner = (block.knots, block.atoms), block.has_inner
        numbers["value"] = np.append(knots, atoms)
        # Without a value between two knots, their weights are 0 or 1.
        if inner.any():
            before, after = np.where(inner, [knots[:-1], knots[1:]], [knots[1:], knots[:-1]])
            numbers["from"] = np.concatenate([knots[:1], before, atoms])
            numbers["to"] = np.concatenate([after, knots[-1:], atoms])
    missing = np.arange(block.n_levels + column.missing) == block.n_levels
    # The code of a missing value is not looked at.
    cells = {n: column.decode(np.resize(x, len(missing)), missing) for n, x in numbers.items()}
    return pd.DataFrame(cells).astype(object)
