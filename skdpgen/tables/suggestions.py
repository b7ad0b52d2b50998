# SPDX-License-Identifier: BSD-3-Clause
"""Rules that released two-way tables suggest, at no privacy cost."""

import itertools
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..histograms.ranges import find_clear
from .evidence import PairCounts
from .rules.rules import Combinations, Derived


@dataclass(frozen=True)
class SuggestionConstants:
    """Constants of suggestions; all are set by hand."""

    # Levels determine others if so many records have the most frequent pairs, of all and of those
    # that are not at the most frequent level; and most levels of a column.
    determined: float = 0.9
    informed: float = 0.8
    most_levels: int = 100
    # Parts of a sum: most of them, least rank correlations with it and shares of its mean, and the
    # largest differences of the mean and of these quantiles.
    most_parts: int = 6
    correlation: float = 0.5
    least_part: float = 0.05
    difference: float = 0.08
    quantiles: tuple = (0.5, 0.75)


CONSTANTS = SuggestionConstants()


def suggest_rules(source) -> list:
    """Suggest rules that released counts agree with.

    Whether they hold is for people to say who know the data: counts of pairs show no sums, and
    synthetic rows obey the rules of a schema in full.

    Parameters
    ----------
    source : str, path, PublishedRelease or fitted generator
        The release of a table, or its file.

    Returns
    -------
    list of Combinations or Derived
        ``rule.to_dict()`` is what a schema file takes.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen import DPSWFlowSampler
    >>> from skdpgen.tables import suggest_rules
    >>> table = pd.DataFrame({"code": ["A1", "B2"] * 500, "name": ["one", "two"] * 500})
    >>> suggest_rules(DPSWFlowSampler(3.0, n_steps=2).fit(table))
    [Combinations(columns=['code', 'name'], rows=[['A1', 'one'], ['B2', 'two']])]
    """
    from ..releases.published import open_release

    published = open_release(source)
    counted, known = PairCounts(published.format, published.main), published.format.schema.rules
    found = [*_find_combinations(counted), *_find_sums(counted)]
    ruled = [set(rule.names) for rule in known]
    return [rule for rule in found if set(rule.names) not in ruled]


def _find_combinations(counted):
    """Yield lists of the levels of two columns of which either determines the other."""
    levels = [b for b in counted.blocks if 1 < len(b.column_type.levels) <= CONSTANTS.most_levels]
    for first, second in itertools.combinations(levels, 2):
        counts, std = counted.of(first, second)
        if not (_determines(counts, std) and _determines(counts.T, std)):
            continue
        names = [(*block.column_type.levels, None) for block in (first, second)]
        # Missing values and other levels may be none.
        spare = [{None, block.column_type.other} for block in (first, second)]
        pairs = {*enumerate(counts.argmax(1).tolist())}
        pairs |= {(i, j) for j, i in enumerate(counts.argmax(0).tolist())}
        rows = [
            [names[0][i], names[1][j]]
            for i, j in sorted(pairs)
            if counts[i, j] > find_clear(std, counts.size)
            or not (names[0][i] in spare[0] or names[1][j] in spare[1])
        ]
        yield Combinations([first.name, second.name], rows)


def _determines(counts, std):
    """Return whether the row of a table of counts determines the column."""
    most = counts.max(1).sum() / counts.sum()
    # Of columns that are mostly the same, any row tells that; and the rest may be noise alone.
    largest = counts.sum(0).max() / counts.sum()
    is_informed = most - largest > CONSTANTS.informed * (1 - largest)
    is_clear = (1 - largest) * counts.sum() > find_clear(std * counts.size**0.5, 1)
    return most > CONSTANTS.determined and is_informed and is_clear


def _find_sums(counted):
    """Yield columns that are the sums of others, by their means and correlations."""
    numbers = [b for b in counted.blocks if b.column_type.is_number]
    if len(numbers) < 3:
        return
    values = {
        b.name: np.array([*b.knots, *b.atoms, *[0.0] * b.column_type.missing], dtype=np.float64)
        for b in numbers
    }
    means, zeros, ranks, quantiles = {}, {}, {}, {}
    for block in numbers:
        name, counts = block.name, np.atleast_2d(counted.of_levels(block)[0]).sum(0).clip(0)
        shares = counts / max(counts.sum(), 1.0)
        order = np.argsort(values[name], kind="stable")
        middles = np.cumsum(shares[order]) - shares[order] / 2
        rank = np.empty(len(order))
        rank[order] = middles - 0.5
        # Values that many share have one rank: their standard deviation is less than √(1/12).
        ranks[name] = rank / max(np.sqrt(shares @ rank**2), 1e-9)
        means[name] = shares @ values[name]
        quantiles[name] = partial(np.interp, xp=middles, fp=values[name][order])
        zeros[name] = shares[values[name] == 0].sum()
    parts_of: dict = {}
    # The largest first: a part of a sum is seldom a sum itself.
    for total in sorted(numbers, key=lambda block: -means[block.name]):
        mean, related = means[total.name], {}
        if any(total.name in parts for parts in parts_of.values()):
            continue
        for part in numbers:
            if CONSTANTS.least_part * mean < means[part.name] < mean:
                # Of ranks: noise on the few large values would hide the covariance of numbers.
                product = ranks[total.name] @ counted.of(total, part)[0] @ ranks[part.name]
                related[part.name] = product / counted.n_records
        parts = [n for n in related if related[n] > CONSTANTS.correlation]
        parts = sorted(parts, key=related.__getitem__)[-CONSTANTS.most_parts :]
        # Quantiles of what is not zero: nearly all of a sum of amounts may be.
        at = zeros[total.name] + (1 - zeros[total.name]) * np.array(CONSTANTS.quantiles)
        sizes = {name: np.r_[means[name], quantiles[name](at)] for name in (total.name, *parts)}
        sums = {
            chosen: np.abs(sum(sizes[n] for n in chosen) / sizes[total.name] - 1).max()
            for size in range(2, len(parts) + 1)
            for chosen in itertools.combinations(parts, size)
        }
        best = min(sums, key=sums.__getitem__, default=())
        if best and sums[best] < CONSTANTS.difference:
            parts_of[total.name] = [b.name for b in numbers if b.name in best]
    for name, parts in parts_of.items():
        yield Derived(name, " + ".join(f"`{part}`" for part in parts))
