# SPDX-License-Identifier: BSD-3-Clause
"""Release of two-way contingency tables, and of multi-way tables of strong interactions."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..accounting.plan import Plan, Terms
from ..checks import one_of, whole
from ..data.record_functions import RecordFunction
from ..mechanisms.codes import Refinement
from ..mechanisms.multi_way import Factor, MultiWayMechanism, MultiWayTables
from ..mechanisms.two_way import Tables, TablesMechanism, count_cells
from ..tables.strata import strata_pay
from .release import Release


@dataclass(frozen=True)
class TableDefaults:
    """Constants of `TwoWayTables`. Those without a source are set by hand."""

    # Largest number of cells, and bytes of memory per cell during a release.
    max_cells: int = 2**27
    cell_bytes: int = 30
    # Shares of ρ for interactions of several columns, and for multi-way tables.
    interactions_share: float = 0.03
    multi_way_share: float = 0.05
    # An order of interactions is measured if a share of the records exceeds so many standard
    # deviations of the noise, and up to these numbers of subsets and levels, for reasons of time.
    clear: float = 5.0
    detectable: float = 0.5
    max_subsets: int = 10_000
    max_levels: int = 1_000
    # Fewest columns of an interaction.
    least_order: int = 3
    # Records for useful results, per column and standard deviation of a count; tuned on Adult.
    min_samples: float = 10.0


DEFAULTS = TableDefaults()


@dataclass(eq=False, repr=False)
class TwoWayTables(Release):
    """The sketch of a table: noisy counts of all pairs of levels of different columns.

    It includes one-way tables, with a weight that depends on the numbers of levels. For a table,
    ``release="sketch"`` resolves to this release.

    If the target has levels, the tables are stratified by it. They then determine all three-way
    tables with the target, at no cost: each record is in one stratum. With more than three levels,
    tables are stratified only if the records of a level suffice to exceed the noise. A numeric
    target whose knots are inferred has two strata: the records below its middle knot, and the
    others.

    A share of 0.08 of the budget is for *multi-way tables* of columns whose interactions these
    tables do not explain, such as a ⊕ b = c. One noisy number for each subset of three to five
    columns measures the deviation of the records from the prediction of the pairs, and tables of
    significant subsets are released. The plan includes all subsets up to the largest number of
    columns at which the noise does not hide half of the records, at most 10,000 subsets and
    1,000 levels in all; and none if it hides three columns.

    Parameters
    ----------
    max_order : int, default=5
        Most columns of an interaction; 2: pairs alone are released, by one sum.
    strata : {"auto", "always", "never"}, default="auto"
        Whether tables are stratified by the levels of the target: by default, if it pays by a
        public rule on ε, the number of records and the numbers of levels. Releases to `merge` need
        the same strata, so data sets of unlike sizes should choose.
    """

    max_order: int = 5
    strata: str = "auto"

    _checks = {"max_order": whole(most=5), "strata": one_of("auto", "always", "never")}

    is_sum = is_transferable = True
    name, learner = TablesMechanism.name, "tables"
    interactions, multi_way = "interactions", "multi-way tables"

    def of(self, format) -> Release:
        """Return the release for data of a table; see `Release.of`."""
        if format.parameters.get("schema") is None:
            raise ValueError("TwoWayTables are for tables: give a DataFrame, or a schema.")
        return self

    def find_released(self, plan: Plan, names: Sequence[str]) -> Plan | None:
        """Return the plan of the first releases; see `Release.find_released`.

        Pairs are of use without interactions, which are searched for after training on the pairs.
        """
        released = super().find_released(plan, names)
        if released is not None or self.name not in names:
            return released
        return replace(plan, releases=plan.releases[: names.index(self.name) + 1])

    def plan(self, terms: Terms, format) -> Plan:
        """Return the `Plan`; see `Release.plan`."""

        def sensitivity(plan, relation):
            return self.sensitivity(relation, terms.n_classes)

        plan, n_columns = None, len(format.schema.learned)
        n_levels = 0 if format.schema.undeclared else sum(format.block_sizes)
        if n_levels <= DEFAULTS.max_levels:
            others = {
                self.interactions: DEFAULTS.interactions_share,
                self.multi_way: DEFAULTS.multi_way_share,
            }
            larger = terms.plan_once({self.name: 1 - sum(others.values()), **others}, sensitivity)
            is_stratified = self._has_strata(larger, terms.n_samples, format)
            if self._count_orders(larger, terms.n_samples, n_columns, is_stratified):
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

        Each class needs the same number. A target with undeclared levels has at least two.
        """
        has_strata = self._has_strata(plan, terms.n_samples, format)
        n_strata = max(2, len(format.levels_of_target)) if has_strata else 1
        return math.ceil(DEFAULTS.min_samples * (plan.sigma or 0.0) * len(format.schema) * n_strata)

    def run(self, curator, format) -> Tables:
        """Release the `Tables` of a resolved format."""
        curator.encode_cells_by(RecordFunction(format.encode_codes))
        by = self.find_strata(curator.plan, curator.n_records, format)
        tables = curator.release(TablesMechanism(format.code_sizes, by))
        if format.schema.rules:
            from ..tables.evidence import warn_of_broken  # not every table has rules

            warn_of_broken(format, tables)
        return format.match_rows(_without_impossible(tables, format))

    def find_strata(self, plan: Plan, n_records: float, format) -> int | None:
        """Return the position of the column of codes by which records are stratified, or None."""
        by, sizes = format.by, format.code_sizes
        if by is None or self.strata == "never":
            return None
        pays = self.strata == "always" or strata_pay(sizes, by, plan.sigma or 0.0, n_records)
        return by if pays else None

    def _has_strata(self, plan, n_records, format):
        """Return whether records are stratified by the levels of the target, as far as is known."""
        if len(format.schema.learned) < 2 or not format.has_class_target:
            return False
        return format.is_open or self.find_strata(plan, n_records, format) is not None

    def list_subsets(
        self, plan: Plan, n_records: float, n_columns: int, by: int | None
    ) -> list[tuple[int, ...]]:
        """List the subsets of columns whose interactions are released, by their size.

        The column `by`, by which records are stratified, is in each subset, as the last one.
        """
        others = [c for c in range(n_columns) if c != by]
        most = self._count_orders(plan, n_records, n_columns, by is not None)
        n_fixed = n_columns - len(others)
        return [
            chosen if by is None else (*chosen, by)
            for order in range(DEFAULTS.least_order, max(most, DEFAULTS.least_order) + 1)
            for chosen in itertools.combinations(others, order - n_fixed)
        ]

    def _count_orders(self, plan, n_records, n_columns, is_stratified):
        """Return the largest number of columns whose interactions show above noise, or 0."""
        bound, found, n_subsets = self.noise_on(plan, self.interactions), 0, 0
        for order in range(DEFAULTS.least_order, min(self.max_order, n_columns) + 1):
            n_subsets += math.comb(n_columns - is_stratified, order - is_stratified)
            noise = DEFAULTS.clear * math.sqrt(n_subsets) * bound
            if n_subsets > DEFAULTS.max_subsets or noise > DEFAULTS.detectable * n_records:
                break
            found = order
        return found

    def run_interactions(
        self, curator, refinement: Refinement, products: Sequence[Sequence[Factor]]
    ) -> MultiWayTables:
        """Release the sums of products of signs, as `MultiWayTables`."""
        return curator.release(MultiWayMechanism(self.interactions, refinement, products))

    def noise_on(self, plan: Plan, name: str) -> float:
        """Return the noise on a cell if `interactions`, or `multi_way`, were of one subset."""
        bound = plan.bound(lambda relation: MultiWayMechanism.sensitivity_of(relation, True))
        return plan.multiplier(name) * bound

    def run_multi_way(
        self, curator, format, refinement: Refinement, products: Sequence[Sequence[Factor]]
    ) -> MultiWayTables:
        """Release the `MultiWayTables` of groups of levels of subsets of columns."""
        tables = curator.release(MultiWayMechanism(self.multi_way, refinement, products))
        return _without_impossible(tables, format)


def _without_impossible(tables, format):
    """Return tables with 0 in cells that the rules of the schema, or the halves, exclude."""
    halves = format.halves
    if not format.schema.rules and halves is None:
        return tables
    impossible = format.find_impossible()
    return tables.without_impossible(impossible if halves is None else halves.extend(impossible))


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
