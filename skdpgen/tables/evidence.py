# SPDX-License-Identifier: BSD-3-Clause
"""Evidence in released two-way tables: rules that are broken, and point masses that coincide."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from ..mechanisms.two_way import own_and_later
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
    """Released counts of all pairs of levels of two columns, over all strata.

    Attributes
    ----------
    blocks : list of Block
    n_records : float
        Noisy number of the records.
    """

    def __init__(self, format, tables):
        self._tables = format.match_rows(tables)
        self.blocks = TableEncoder(format.schema).make_blocks()
        self.n_records = float(np.sum(tables.count_records()[0]))
        kept = [block for block in self.blocks if block.where != self._tables.by]
        self._positions = {block.name: i for i, block in enumerate(kept)}

    def of(self, first, second):
        """Return the counts of the levels of two blocks, and the standard deviation of noise."""
        if first.where == self._tables.by:
            counts, std = self.of_levels(second)
            return counts, std[0]
        if second.where == self._tables.by:
            counts, std = self.of(second, first)
            return counts.T, std
        counts = self._tables.pair(*(self._positions[block.name] for block in (first, second)))
        strata = counts.reshape(-1, *counts.shape[-2:])
        return strata.sum(0), self._tables.pairs_std * math.sqrt(len(strata))

    def of_levels(self, block):
        """Return the counts of the levels of a block in each stratum, and the noise on each."""
        sizes, position = self._tables.sizes, self._positions[block.name]
        own, _ = own_and_later(sizes)[position]
        return tuple(part[..., own] for part in self._tables.count_levels())


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


def find_coincident(format, tables, counts: np.ndarray) -> tuple[tuple[tuple, ...], ...]:
    """Return groups of point masses, or missing values, that the same records have.

    Rows of weights draw them apart: zeros of all parts of a sum, and of the sum, would be lost.
    A member has the name of its column, its level, from the last one on, since knots before it may
    become finer, and its share of the records relative to the mean of the group.
    """
    counted = PairCounts(format, tables)
    masses: dict = {}
    for block in counted.blocks:
        values = [*getattr(block, "atoms", ()), *[None] * block.column_type.missing]
        for level, value in enumerate(values, -len(values)):
            masses.setdefault(value, []).append((block, level))
    groups = []
    for found in masses.values():
        numbers = np.array([counts[block.where][level] for block, level in found])
        # The records with both beyond those by independence, their most, and the noise.
        excess, most, std = np.zeros((3, len(found), len(found)))
        for i, j in itertools.combinations(range(len(found)), 2):
            (first, at), (second, other) = found[i], found[j]
            pair, noise = counted.of(first, second)
            expected = numbers[i] * numbers[j] / counted.n_records
            excess[i, j] = excess[j, i] = pair[at, other] - expected
            most[i, j] = most[j, i] = max(numbers[i], numbers[j]) - expected
            std[i, j] = std[j, i] = noise
        left = list(range(len(found)))
        while len(left) > 1:
            group = _find_group(left, excess - CONSTANTS.least_common * most)
            among = np.ix_(group, group)
            noise = math.sqrt((std[among] ** 2).sum() / 2)
            if len(group) > 1 and excess[among].sum() / 2 > CONSTANTS.clear * noise:
                shares = numbers[group].clip(1)
                # Differences within noise are none.
                is_even = np.ptp(numbers[group]) <= CONSTANTS.clear * std[among].max()
                shares = np.ones(len(group)) if is_even else shares / shares.mean()
                members = zip(group, shares.tolist(), strict=True)
                groups.append(tuple((found[i][0].name, found[i][1], x) for i, x in members))
            left = [i for i in left if i not in group]
    return tuple(groups)


def _find_group(group, gaps):
    """Return the levels that are left once each has positive gaps to the others, in sum."""
    while len(group) > 1:
        sums = gaps[np.ix_(group, group)].sum(0)
        if sums.min() > 0:
            break
        group = [i for i in group if i != group[sums.argmin()]]
    return group
