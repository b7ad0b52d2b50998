# SPDX-License-Identifier: BSD-3-Clause
"""Evidence in released two-way tables: rules that are broken, and point masses that coincide."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from ..messages import Message
from ..quality import warn_of_fit
from .encoder import TableEncoder


@dataclass(frozen=True)
class EvidenceConstants:
    """Constants of evidence; all are set by hand."""

    # Many records break a rule if their number exceeds this share by so many deviations of noise.
    much_broken: float = 0.05
    clear: float = 4.0
    # Levels coincide if the records that have both are nearer to all that have either one than to
    # what independence gives, by this share of the difference.
    least_common: float = 0.5


CONSTANTS = EvidenceConstants()


class PairCounts:
    """Released counts of all pairs of levels of two columns.

    Parameters
    ----------
    format : TableFormat
        A resolved one.
    tables : Tables
        As released.
    """

    def __init__(self, format, tables):
        self.blocks = TableEncoder(format.schema).make_blocks()
        self.n_records = float(np.sum(tables.count_records()[0]))
        self._tables, self._by, self._names = tables, None, [b.name for b in self.blocks]
        if tables.by is not None and format.halves is None:
            self._by = self._names.pop(format.by)

    def of(self, first, second):
        """Return the counts of the levels of two blocks, and the standard deviation of noise."""
        if first.name == self._by:
            counts, std = self._tables.count_levels()
            found, noise = (part[..., self._find_levels(second)] for part in (counts, std))
            return found, noise[0]
        if second.name == self._by or self._names.index(first.name) > self._names.index(
            second.name
        ):
            counts, std = self.of(second, first)
            return counts.T, std
        counts = self._tables.pair(*(self._names.index(block.name) for block in (first, second)))
        if counts.ndim == 2:
            return counts, self._tables.pairs_std
        return counts.sum(0), self._tables.pairs_std * math.sqrt(len(counts))

    def of_levels(self, block):
        """Return the counts of the levels of a block by which no records are stratified."""
        counts = self._tables.count_levels()[0][..., self._find_levels(block)]
        return counts.reshape(-1, counts.shape[-1]).sum(0)

    def _find_levels(self, block):
        position = self._names.index(block.name)
        start = sum(self._tables.sizes[:position])
        return slice(start, start + self._tables.sizes[position])


def warn_of_broken(format, tables):
    """Warn of rules that many records break, by released tables."""
    counted = PairCounts(format, tables)
    for rule, share in find_broken(format.schema, counted).items():
        warn_of_fit(
            Message(
                "By released counts, at most {share:.0%} of the records obey {rule:.100}: "
                "synthetic rows all do, which turns shares over. Correct the rule if names are "
                "swapped or levels left out, or drop it.",
                {"share": 1 - share, "rule": _show(rule)},
            )
        )


def find_broken(schema, counted):
    """Return the least share of the records that break a rule, for rules that many break."""
    from .rules.feasibility import list_excluded  # not every table has rules

    broken: dict = {}
    for rule in schema.rules:
        for first, second, cells in list_excluded(rule, counted.blocks):
            counts, std = counted.of(first, second)
            # Of fewer cells, the sum has less noise.
            is_few = 2 * cells.sum() <= cells.size
            n_broken = counts[cells].sum() if is_few else counted.n_records - counts[~cells].sum()
            noise = std * math.sqrt(min(cells.sum(), cells.size - cells.sum()))
            if n_broken > CONSTANTS.much_broken * counted.n_records + CONSTANTS.clear * noise:
                broken[rule] = max(broken.get(rule, 0.0), n_broken / counted.n_records)
    return {rule: min(share, 1.0) for rule, share in broken.items()}


def _show(rule):
    # Inferred differences are no part of what was declared.
    return repr(replace(rule, difference=None) if hasattr(rule, "difference") else rule)


def find_coincident(format, tables, counts):
    """Return groups of point masses, or missing values, that the same records have.

    Rows of weights draw them apart: zeros of all parts of a sum, and of the sum, would be lost.

    Parameters
    ----------
    format : TableFormat
    tables : Tables
    counts : ndarray of shape (n_levels,)
        Noisy number of records with each level.

    Returns
    -------
    tuple of tuple of (str, int, float)
        Names of columns, their levels, and shares of the records relative to the mean of a group.
    """
    masses: dict = {}
    for block in TableEncoder(format.schema).make_blocks():
        values = [*getattr(block, "atoms", ()), *[None] * block.column_type.missing]
        first = block.n_levels - len(values) + block.column_type.missing
        for level, value in enumerate(values, first):
            masses.setdefault(value, []).append((block, level))
    counted, groups = PairCounts(format, tables), []

    def compare(one, other):
        """Return the excess of records with both over independence, the most, and the noise."""
        (first, i), (second, j) = one, other
        pair, std = counted.of(first, second)
        numbers = counts[[first.where.start + i, second.where.start + j]]
        expected = numbers.prod() / counted.n_records
        return pair[i, j] - expected, numbers.max() - expected, std

    for found in masses.values():
        pairs = np.zeros((3, len(found), len(found)))
        for i, j in itertools.combinations(range(len(found)), 2):
            pairs[:, i, j] = pairs[:, j, i] = compare(found[i], found[j])
        left = list(range(len(found)))
        while len(left) > 1:
            group = left
            while len(group) > 1:
                excess, most, std = pairs[:, group][:, :, group]
                gaps = excess.sum(0) - CONSTANTS.least_common * most.sum(0)
                if gaps.min() > 0:
                    break
                group = [i for i in group if i != group[gaps.argmin()]]
            if len(group) > 1 and excess.sum() / 2 > CONSTANTS.clear * np.sqrt((std**2).sum() / 2):
                shares = np.array([counts[found[i][0].where.start + found[i][1]] for i in group])
                # Differences within noise are none.
                is_even = np.ptp(shares) <= CONSTANTS.clear * std.max()
                shares = np.where(is_even, 1.0, shares.clip(1) / shares.clip(1).mean())
                named = zip(group, shares.tolist(), strict=True)
                groups.append(tuple((found[i][0].name, found[i][1], x) for i, x in named))
            left = [i for i in left if i not in group]
    return tuple(groups)
