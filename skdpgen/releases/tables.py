# SPDX-License-Identifier: BSD-3-Clause
"""Release of two-way contingency tables, and of three-way tables of strong interactions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..accounting.plan import Plan, Terms
from ..curator.record_functions import RecordFunction
from ..mechanisms.tables import Tables, TablesMechanism, count_cells
from ..mechanisms.three_way import ThreeWayMechanism, ThreeWayTables
from ..tables.strata import may_stratify
from .release import Release


@dataclass(frozen=True)
class TableDefaults:
    """Constants of `TwoWayTables`. Those without a source are set by hand."""

    # Largest number of cells, and bytes of memory per cell during a release.
    max_cells: int = 2**27
    cell_bytes: int = 30
    # Shares of ρ for interactions of three columns, and for three-way tables.
    interactions_share: float = 0.03
    three_way_share: float = 0.07
    # Three-way tables are planned if half of the records exceed so many standard deviations of the
    # noise on an interaction, and up to these numbers of triples and levels, for reasons of time.
    clear: float = 4.0
    max_triples: int = 10_000
    max_levels: int = 1_000
    # Records for useful results, per column and standard deviation of a count; tuned on Adult.
    min_samples: float = 10.0


DEFAULTS = TableDefaults()


class TwoWayTables(Release):
    """The sketch of a table: noisy counts of all pairs of levels of different columns.

    It includes one-way tables, with a weight that depends on the numbers of levels. For a table,
    ``release="sketch"`` resolves to this release.

    If the target has at most three levels, the tables are stratified by it. They then determine all
    three-way tables with the target, at no cost: each record is in one stratum.

    Otherwise a tenth of the budget is for *three-way tables* of columns whose interactions pairs do
    not explain, such as a ⊕ b = c. One noisy number for each triple measures the deviation of the
    records from the prediction of the pairs, and tables of significant triples are released. The
    plan includes them for at most 10,000 triples and 1,000 levels in all, if the noise on an
    interaction is small relative to half of the records.
    """

    is_sum = True
    name = TablesMechanism.name
    interactions, three_way = "interactions", "three-way tables"

    def plan(self, terms: Terms, format) -> Plan:
        """Return the `Plan`; see `Release.plan`."""

        def sensitivity(plan, relation):
            return self.sensitivity(relation, terms.n_classes)

        plan, n_triples = None, math.comb(len(format.schema.learned), 3)
        n_levels = 0 if format.schema.undeclared else sum(format.block_sizes)
        is_small = 0 < n_triples <= DEFAULTS.max_triples and n_levels <= DEFAULTS.max_levels
        if is_small and not may_stratify(format.target):
            others = {
                self.interactions: DEFAULTS.interactions_share,
                self.three_way: DEFAULTS.three_way_share,
            }
            larger = terms.plan_once({self.name: 1 - sum(others.values()), **others}, sensitivity)
            noise = math.sqrt(n_triples) * _three_way_std(larger, self.interactions, True)
            if DEFAULTS.clear * noise <= terms.n_samples / 2:
                plan = larger
        plan = plan or terms.plan_once({self.name: 1.0}, sensitivity)
        if not format.schema.undeclared:
            _check_size(plan, format.block_sizes)
        return plan

    def sensitivity(self, relation: str, n_classes: int) -> float:
        """Return the sensitivity of two-way tables; see `Release.sensitivity`."""
        return TablesMechanism.sensitivity_of(relation)

    def min_samples(self, plan: Plan, terms: Terms, format) -> int:
        """Return the number of records for useful results; see `Release.min_samples`.

        Each stratum needs the same number. A target with undeclared levels has at least two.
        """
        has_strata = len(format.schema.learned) > 1 and may_stratify(format.target)
        n_strata = max(2, len(format.levels_of_target)) if has_strata else 1
        return math.ceil(DEFAULTS.min_samples * plan.sigma * len(format.schema) * n_strata)

    def run(self, curator, format) -> Tables:
        """Release the `Tables` of a resolved format."""
        names = [name for name, _ in format.blocks]
        by = names.index(format.kind.label) if format.is_stratified else None
        curator.encode_cells_by(RecordFunction(format.encode_cells))
        return _without_impossible(curator.release(TablesMechanism(format.block_sizes, by)), format)

    def has_three_way(self, plan: Plan) -> bool:
        """Return whether a plan has three-way tables."""
        return self.three_way in dict(plan.releases)

    def run_interactions(
        self, curator, signs: Sequence[torch.Tensor], triples: Sequence[tuple[int, int, int]]
    ) -> ThreeWayTables:
        """Release the sums of products of three signs, as `ThreeWayTables`."""
        return curator.release(ThreeWayMechanism(self.interactions, signs, triples))

    def three_way_std(self, plan: Plan) -> float:
        """Return the standard deviation of the noise on a single three-way table."""
        return _three_way_std(plan, self.three_way, False)

    def run_three_way(
        self,
        curator,
        format,
        groups: Sequence[torch.Tensor],
        triples: Sequence[tuple[int, int, int]],
    ) -> ThreeWayTables:
        """Release the `ThreeWayTables` of groups of levels of triples of columns."""
        tables = curator.release(ThreeWayMechanism(self.three_way, groups, triples))
        return _without_impossible(tables, format)


def _without_impossible(tables, format):
    """Return tables with 0 in cells that the rules of the schema exclude."""
    if not format.schema.rules:
        return tables
    return tables.without_impossible(format.find_impossible())


def _three_way_std(plan, name, is_signed):
    bound = plan.bound(lambda relation: ThreeWayMechanism.sensitivity_of(relation, is_signed))
    return plan.multiplier(name) * bound


def _check_size(plan, sizes):
    if (n_cells := count_cells(sizes)) > DEFAULTS.max_cells:
        noise = TablesMechanism.noise_on_cells(plan.sigma, len(sizes))
        raise ValueError(
            f"The schema is too large for two-way tables: its {len(sizes):,} columns of "
            f"{sum(sizes):,} levels have {n_cells:,} cells, more than {DEFAULTS.max_cells:,}, with "
            f"{n_cells * DEFAULTS.cell_bytes / 2**30:,.0f} GiB of memory and noise of about "
            f"±{noise:,.0f} records on each. Drop columns, merge several into one, or declare "
            "fewer levels and knots."
        )
