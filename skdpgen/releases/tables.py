"""Releases of a table: two-way tables of all records, and of those of each level of a column."""

import math
from dataclasses import dataclass

import numpy as np

from .._parameters import parameters
from .._validation import check_size
from ..formats.columns import Date, Number
from ..privacy import LevelGroups, Tables, TablesMechanism
from .release import Release

# The release of tables by levels.
_BY_LEVEL = "two-way tables by level"
# With so many levels, a target's are all told apart, and no pooled tables are needed beside them:
# tables that are summed over L levels have √L of the noise.
_FEW_LEVELS = 3
# What pooled tables get beside others, and how many groups of levels there are at most then.
_POOLED_SHARE, _MOST_GROUPS = 0.3, 6
# So many records a column, in units of the noise, are of use; found on Adult.
_NEEDED = 10


@dataclass(frozen=True)
class ReleasedTables:
    """What was released of a table.

    Attributes
    ----------
    sizes : list of int
        Number of levels of each column.
    pooled : skdpgen.privacy.Tables or None
        Of all records.
    groups : skdpgen.privacy.LevelGroups or None
        How records were told apart.
    grouped : skdpgen.privacy.Tables or None
        Of the records in each group. It or `pooled` is there.
    """

    sizes: list
    pooled: Tables | None = None
    groups: LevelGroups | None = None
    grouped: Tables | None = None
    hard: bool = True

    @property
    def is_kept(self):
        """Which levels the tables of groups have: not those that are one group each."""
        is_kept = np.ones(sum(self.sizes), dtype=bool)
        if self.groups.are_single:
            is_kept[self.own] = False
        return is_kept

    @property
    def own(self):
        """The levels of the column by which records are told apart, a slice."""
        start = sum(self.sizes[: self.groups.column])
        return slice(start, start + self.sizes[self.groups.column])


@parameters
class TwoWayTables(Release):
    """The sketch of a table: for each pair of columns, how often their levels occur together.

    And how often each level occurs, with a weight that follows from the numbers of levels. This is
    what ``release="sketch"`` is where there is a schema.

    They are released for each level of the target apart, so that all three-way tables with it are
    known. A record has one level, so that this costs what tables of all records do. Where the
    target has many levels, is a number, or is not known, tables of all records come first, and say
    which levels are frequent enough to be told apart, and by which column.

    Parameters
    ----------
    pooled_share : float, default=1.0
        What tables of all records get of the budget, in [0, 1]; the rest is for those by level.
    """

    pooled_share: float = 1.0

    name = TablesMechanism.name

    @classmethod
    def of_table(cls, format):
        """Return the release of tables of a format, from public numbers only."""
        if len(format.schema) < 3:
            return cls()
        n_levels = math.inf if format.classes is None else len(format.classes)
        return cls(0.0 if 1 < n_levels <= _FEW_LEVELS else _POOLED_SHARE)

    def plan(self, terms):
        """Return the `Plan`, from public numbers only."""
        if terms.n_columns is not None:
            check_size("schema", terms.n_columns, terms.n_columns)
        sensitivity = TablesMechanism.sensitivity_of(terms.relation)
        shares = {self.name: self.pooled_share, _BY_LEVEL: 1 - self.pooled_share}
        *before, (name, _) = ((name, share) for name, share in shares.items() if share)
        return terms.plan_once(name, lambda plan: sensitivity, before)

    def count_needed(self, plan, terms, format):
        """Return at how many records that is so of two-way tables; found on Adult."""
        return math.ceil(_NEEDED * plan.sigma * len(format.schema))

    def run(self, curator, format):
        """Return the `ReleasedTables` of records of a format that leaves nothing open."""
        planned, sizes = dict(curator.plan.releases), format.block_sizes
        pooled = groups = grouped = None
        if self.name in planned:
            pooled = curator.release(TablesMechanism(sizes))
        if _BY_LEVEL in planned:
            needed = max(1.0, _NEEDED * curator.plan.sigma * len(sizes))
            groups = choose_groups(format, pooled, curator.n_records / needed)
            grouped = curator.release(TablesMechanism(sizes, groups, _BY_LEVEL))
        return ReleasedTables(sizes, pooled, groups, grouped, groups is None or not isinstance(format.schema[[n for n,_ in format.blocks][groups.column]], Number|Date))


def choose_groups(format, tables, n_affordable):
    """Choose by which levels records are told apart, from public numbers and a release.

    Parameters
    ----------
    format : TableFormat
    tables : skdpgen.privacy.Tables or None
        Of all records. None: all levels of the target are told apart.
    n_affordable : float
        How many groups of equal size could be learnt.

    Returns
    -------
    skdpgen.privacy.LevelGroups
        Of the target or, if there is none, of the column that depends most on the others.
    """
    names = [name for name, _ in format.blocks]
    label = format.kind.label if format.kind is not None else None
    column = _find_hub(tables) if label is None else names.index(label)
    n_levels = format.block_sizes[column]
    if tables is None:
        return LevelGroups(column, np.eye(n_levels, dtype=int))
    start = sum(format.block_sizes[:column])
    counts = np.clip(tables.count_levels()[0][start : start + n_levels], 0, None)
    most = int(np.clip(n_affordable, 2, _MOST_GROUPS))
    kind = format.schema[names[column]]
    if isinstance(kind, Number | Date):
        n_knots = n_levels - kind.missing
        group = _group_neighbours(counts[:n_knots], most)
        group = np.append(group, np.full(int(kind.missing), group.max() + 1))
    else:
        group = np.minimum(np.argsort(np.argsort(-counts, kind="stable")), most - 1)
    return LevelGroups(column, np.eye(group.max() + 1, dtype=int)[group])


def _group_neighbours(counts, most):
    """Return the groups of knots in order, of about as many records each."""
    before = np.cumsum(counts) - counts / 2
    group = np.floor(most * before / max(counts.sum(), 1e-9)).clip(0, most - 1)
    return np.unique(group, return_inverse=True)[1]


def _find_hub(tables):
    """Return the position of the column whose two-way tables are farthest from independence."""
    counts, _ = tables.count_levels()
    n_records = max(1.0, float(tables.count_records()[0]))
    blocks = np.split(counts, np.cumsum(tables.sizes)[:-1])
    strength = np.zeros(len(blocks))
    for c, first in enumerate(blocks):
        for d, second in enumerate(blocks[c + 1 :], c + 1):
            gap = tables.pair(c, d) - np.outer(first, second) / n_records
            # What noise alone would make is taken off.
            energy = np.square(gap).sum() - gap.size * tables.pairs_std**2
            strength[[c, d]] += max(0.0, energy)
    return int(strength.argmax())
