# SPDX-License-Identifier: BSD-3-Clause
"""A release of a table: tables of two columns, of three where the target or the rows ask for it."""

import math

from ..curator.record_functions import RecordFunction
from ..mechanisms.tables import TablesMechanism, count_cells
from ..mechanisms.three_way import ThreeWayMechanism
from ..tables.format import FEW_LEVELS
from .release import Release

# Cells of tables, at most, and the memory that one takes until it is released.
_MOST_CELLS, _BYTES_OF_A_CELL = 2**27, 30
# What interactions of three columns, and three-way tables, get of the budget where they are sought.
_INTERACTIONS_SHARE, _THREE_WAY_SHARE = 0.03, 0.07
# They are not sought where noise of so many standard deviations could be taken for one of half the
# records, or where there are more triples or levels than this, which take long.
_CLEAR, _MOST_TRIPLES, _MOST_LEVELS = 4, 10_000, 1_000


class TwoWayTables(Release):
    """The sketch of a table: for each pair of columns, how often their levels occur together.

    And how often each level occurs, with a weight that follows from the numbers of levels. This is
    what ``release="sketch"`` is where there is a schema.

    If the target has at most three levels, they are released for each of these apart, so that all
    three-way tables with the target are known. A record has one level, so that this costs no more.

    Otherwise a tenth of the budget goes to *three-way tables* of those columns that pairs do not
    explain, as a ⊕ b = c is not: for all triples, one noisy number says by how much records are
    off what was learnt of pairs, and tables of those that stand out are released. That is so for at
    most 10,000 triples of 1,000 levels in all, and where the noise would let half of the records be
    seen.
    """

    is_sum = True
    name = TablesMechanism.name
    interactions, three_way = "interactions", "three-way tables"

    def plan(self, terms, format):
        """Return the `Plan`, from public numbers only."""

        def sensitivity(plan, relation):
            return self.sensitivity(relation, terms.n_classes)

        plan, n_triples = None, math.comb(len(format.schema.learnt), 3)
        n_levels = 0 if format.schema.open_names else sum(format.block_sizes)
        is_small = 0 < n_triples <= _MOST_TRIPLES and n_levels <= _MOST_LEVELS
        if is_small and not _may_tell_apart(format):
            others = {
                self.interactions: _INTERACTIONS_SHARE,
                self.three_way: _THREE_WAY_SHARE,
            }
            sought = terms.plan_once({self.name: 1 - sum(others.values()), **others}, sensitivity)
            noise = math.sqrt(n_triples) * _deviation(sought, self.interactions, True)
            if _CLEAR * noise <= terms.n_samples / 2:
                plan = sought
        plan = plan or terms.plan_once({self.name: 1.0}, sensitivity)
        if not format.schema.open_names:
            _check_size(plan, format.block_sizes)
        return plan

    def sensitivity(self, relation, n_classes):
        return TablesMechanism.sensitivity_of(relation)

    def min_samples(self, plan, terms, format):
        """Return at how many records that is so of two-way tables; found on Adult.

        Where there are tables for each level of the target, each takes as many. Levels that are to
        be found are two, at the least.
        """
        has_parts = len(format.schema.learnt) > 1 and _may_tell_apart(format)
        n_parts = max(2, len(format.levels_of_target)) if has_parts else 1
        return math.ceil(10 * plan.sigma * len(format.schema) * n_parts)

    def run(self, curator, format):
        """Release the `Tables` of a format that leaves nothing open."""
        names = [name for name, _ in format.blocks]
        by = names.index(format.kind.label) if format.tells_apart else None
        curator.encode_cells_by(RecordFunction(format.encode_cells))
        return _leave_out(curator.release(TablesMechanism(format.block_sizes, by)), format)

    def seeks(self, plan):
        """Return whether a plan has three-way tables."""
        return self.three_way in dict(plan.releases)

    def run_interactions(self, curator, signs, triples):
        """Release the sums of products of three signs, as `ThreeWayTables`."""
        return curator.release(ThreeWayMechanism(self.interactions, signs, triples))

    def three_way_std(self, plan):
        """Return the standard deviation of the noise on three-way tables, if one is released."""
        return _deviation(plan, self.three_way, False)

    def run_three_way(self, curator, format, groups, triples):
        """Release the `ThreeWayTables` of groups of levels of triples of columns."""
        tables = curator.release(ThreeWayMechanism(self.three_way, groups, triples))
        return _leave_out(tables, format)


def _leave_out(tables, format):
    """Return tables without noise on what the rules leave out."""
    if not format.schema.rules:
        return tables
    return tables.without_impossible(format.find_impossible())


def _may_tell_apart(format):
    """Return whether records may be told apart by the target, which may still be open."""
    target = None if format.kind is None else format.schema.get(format.kind.label)
    if target is not None and target.is_unknown:
        return True
    n_levels = len(getattr(target, "levels", ()))
    return 1 < n_levels <= FEW_LEVELS or (n_levels > 0 and target.is_open)


def _deviation(plan, name, is_signed):
    bound = plan.bound(lambda relation: ThreeWayMechanism.sensitivity_of(relation, is_signed))
    return plan.multiplier(name) * bound


def _check_size(plan, sizes):
    if (n_cells := count_cells(sizes)) > _MOST_CELLS:
        noise = TablesMechanism.noise_on_cells(plan.sigma, len(sizes))
        raise ValueError(
            f"The schema is too large for two-way tables: its {len(sizes):,} columns of "
            f"{sum(sizes):,} levels have {n_cells:,} cells, and {_MOST_CELLS:,} are the most. They "
            f"would take {n_cells * _BYTES_OF_A_CELL / 2**30:,.0f} GiB of memory, and there would "
            f"be noise of about ±{noise:,.0f} records on each. Drop columns, merge several into "
            "one, or declare fewer levels and knots."
        )
