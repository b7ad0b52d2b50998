# SPDX-License-Identifier: BSD-3-Clause
"""Marginals of the columns of a table, estimated from its released tables."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from ..mechanisms.two_way import Tables
from ..quality import WITHIN_NOISE, advise_on_columns, find_signal, warn_of_absent, warn_of_noise
from ..tables.quality import warn_of_levels, warn_of_table
from ..tables.report import describe

# Least count of a knot at the start, in standard deviations of its noise; 0.5 did as much on
# training rows of Adult. Positive noise, which is kept, has a mean of 0.4.
_LEAST_OF_KNOT = 0.25
# Prior probability that a stratum has its share of a number far out, and not none; by hand.
_HAS_SHARE = 0.75


@dataclass(frozen=True)
class Marginals:
    """The number of records with each level of each column, estimated from released tables."""

    # Shape (n_levels,): noisy counts, and standard deviations of their noise.
    counts: np.ndarray
    std: np.ndarray
    # Number of the counted records.
    n_records: float
    # Shape (n_levels,): spare levels whose counts are within noise of 0, which are taken to have no
    # record.
    is_empty: np.ndarray
    # Shape (n_levels,): knots but those far out, which are taken to have some records.
    is_knot: Any = False
    # Shape (n_levels,): numbers far out, whose noise would outweigh all others.
    is_far: Any = False

    def __post_init__(self):
        for name in ("is_knot", "is_far"):
            mask = np.broadcast_to(getattr(self, name), self.counts.shape)
            object.__setattr__(self, name, mask)

    @classmethod
    def of(
        cls,
        tables: Tables,
        n_records: float,
        is_optional: np.ndarray | bool,
        is_knot: np.ndarray | bool = False,
        is_far: np.ndarray | bool = False,
    ) -> "Marginals":
        """Estimate the marginals of all records; strata of the target are added up.

        Levels in `is_optional` may have no record, such as that of missing values. The most
        frequent level of a column is never taken to be empty.
        """
        counts, std = tables.count_levels()
        sizes = tables.sizes
        if counts.ndim > 1:
            n_parts = len(counts)
            counts, std = counts.sum(axis=0), std * n_parts**0.5
        if tables.by is not None:
            start = tables.by.start
            part_counts, part_std = tables.count_records()
            counts = np.insert(counts, start, part_counts)
            std = np.insert(std, start, np.full(n_parts, part_std))
            before = int(np.searchsorted(np.cumsum(sizes), start, side="right"))
            sizes = (*sizes[:before], n_parts, *sizes[before:])
        starts = np.cumsum(sizes)[:-1]
        largest = np.repeat([block.max() for block in np.split(counts, starts)], sizes)
        is_empty = (counts <= WITHIN_NOISE * std) & (counts < largest) & is_optional
        return cls(counts, std, n_records, is_empty, is_knot, is_far)

    def of_stratum(self, tables: Tables, by: slice | None, n_records: float) -> "Marginals":
        """Estimate the marginals of a stratum, whose tables lack the levels `by` of the strata.

        Empty levels are those of all records, whose counts have the best signal-to-noise ratio.
        Noise on numbers far out would outweigh all others, and they are often in one stratum alone:
        where the count is within noise, it is the posterior mean if the stratum has its share of
        the level, or else none of it.
        """
        kept = np.ones(len(self.counts), dtype=bool)
        kept[by or slice(0)] = False
        found = Marginals.of(tables, n_records, False, self.is_knot[kept])
        is_noise = self.is_far[kept] & (found.counts <= WITHIN_NOISE * found.std)
        share = self.counts[kept].clip(0) * n_records / self.n_records
        # Errors of less than a record do not matter.
        evidence = share * (found.counts - share / 2) / np.maximum(found.std, 1) ** 2
        expected = share * expit(logit(_HAS_SHARE) + evidence)
        counts = np.where(is_noise, expected, found.counts)
        return replace(found, counts=counts, is_empty=self.is_empty[kept])

    @property
    def starts(self) -> np.ndarray:
        """Shares of the levels at which learners start, of shape (n_levels,).

        Pairs of columns hardly move levels whose counts are noise. Without a knot's weight all
        values would be at the next knot, though noise hides only how far between both they are.
        """
        # A count of exactly 0 is of a level that the half of the target, or a rule, excludes.
        least = _LEAST_OF_KNOT * self.std * (self.is_knot & (self.counts != 0))
        return (np.maximum(self.counts, least) / self.n_records).clip(0, 1)

    def refined(self, coarsen: np.ndarray) -> "Marginals":
        """Return the marginals of finer levels, between which breakpoints share evenly.

        `coarsen`, of shape (n_fine_levels, n_levels), is that of `Refinement.to_coarse`.
        """
        spread = coarsen / coarsen.sum(0)
        is_empty = (coarsen[:, ~self.is_empty] == 0).all(1)
        is_knot, is_far = (
            np.any(coarsen[:, mask] > 0, axis=1) for mask in (self.is_knot, self.is_far)
        )
        counts, std = spread @ self.counts, spread @ self.std
        return Marginals(counts, std, self.n_records, is_empty, is_knot, is_far)


def read_tables(tables: Tables, format, n_records: int) -> tuple[Marginals, pd.DataFrame]:
    """Estimate the marginals, `describe` the columns of a resolved format, and warn of poor fit."""
    advise_on_columns(format.schema.list_advice())
    present, std = tables.count_records()
    # The variances of strata add up.
    share, std = np.sum(present) / n_records, std * np.size(present) ** 0.5 / n_records
    absent = warn_of_absent(share, std)
    if absent:
        n_records *= max(share, std, 1 / n_records)
    marginals = Marginals.of(tables, n_records, *format.find_masks())
    counts = np.where(marginals.is_empty, 0, marginals.counts)
    label, blocks = format.layout.label, dict(format.blocks)
    pair_std = _find_pair_std(tables, blocks, label)
    report = describe(
        format.schema, counts, marginals.std, n_records, pair_std, losses=format.losses
    )
    if absent == "all":
        return marginals, report
    is_noise = bool(tables.cells.size) and warn_of_noise(
        find_signal(tables.cells, tables.pairs_std), "two-way tables"
    )
    warn_of_table(
        report,
        format.schema,
        label,
        {name: marginals.counts[block] for name, block in blocks.items()},
        {name: marginals.std[block.start] for name, block in blocks.items()},
        format.inferred_parameters,
        has_absent=absent is not None,
    )
    if tables.cells.size and tables.by is not None and not is_noise:
        signals = [find_signal(cells, tables.pairs_std) for cells in tables.cells]
        other = getattr(format.schema[label], "other", None)
        warn_of_levels(signals, present, label, format.levels_of_target, other)
    return marginals, report


def _find_pair_std(tables, names, label) -> dict[str, float]:
    """Return the standard deviations of counts of a column's levels with those of another.

    A stratum of the target has one-way tables of its own, which count the pairs with the target.
    """
    if len(names) < 2:
        return {}
    n_strata = len(tables.cells) if tables.cells.ndim > 1 else 1
    among_others = tables.pairs_std * n_strata**0.5
    if tables.by is None:
        return dict.fromkeys(names, among_others)
    with_label = tables.count_levels()[1].max()
    if len(names) == 2:
        return dict.fromkeys(names, with_label)
    return dict.fromkeys(names, among_others) | {label: with_label}
