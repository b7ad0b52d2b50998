"""A release of a table: its two-way tables, of all records or of each level of the target."""

import math

from ..privacy import TablesMechanism
from ..privacy.mechanisms.tables import count_cells
from .release import Release

# A target of so few levels tells records apart: tables that are added up over L levels have √L of
# the noise, and with more of them what is gained is lost (found on Adult).
_FEW_LEVELS = 3
# Cells of tables, at most, and the memory that one takes until it is released.
_MOST_CELLS, _BYTES_OF_A_CELL = 2**27, 30


class TwoWayTables(Release):
    """The sketch of a table: for each pair of columns, how often their levels occur together.

    And how often each level occurs, with a weight that follows from the numbers of levels. This is
    what ``release="sketch"`` is where there is a schema.

    If the target has at most three levels, they are released for each of these apart, so that all
    three-way tables with the target are known. A record has one level, so that this costs no more.
    """

    takes_persons = True
    name = TablesMechanism.name
    _sizes = None

    def of(self, format):
        """Return the release of tables of a format, whose numbers of levels may be open."""
        release = TwoWayTables()
        release._sizes = None if format.schema.open_names else format.block_sizes
        return release

    def plan(self, terms):
        """Return the `Plan`, from public numbers only."""
        sensitivity = TablesMechanism.sensitivity_of
        plan = terms.plan_once(self.name, lambda plan, relation: sensitivity(relation))
        if self._sizes is not None and (n_cells := count_cells(self._sizes)) > _MOST_CELLS:
            noise = plan.sigma * len(self._sizes) / math.sqrt(2)
            raise ValueError(
                f"The schema is too large for two-way tables: its {len(self._sizes):,} columns of "
                f"{sum(self._sizes):,} levels have {n_cells:,} cells, and {_MOST_CELLS:,} are the "
                f"most. They would take {n_cells * _BYTES_OF_A_CELL / 2**30:,.0f} GiB of memory, "
                f"and there would be noise of about ±{noise:,.0f} records on each. Drop columns, "
                "merge several into one, or declare fewer levels and knots."
            )
        return plan

    def count_needed(self, plan, terms, format):
        """Return at how many records that is so of two-way tables; found on Adult."""
        return math.ceil(10 * plan.sigma * len(format.schema))

    def run(self, curator, format):
        """Release the `Tables` of a format that leaves nothing open."""
        names = [name for name, _ in format.blocks]
        is_told_apart = len(names) > 1 and 1 < len(format.levels_of_target) <= _FEW_LEVELS
        by = names.index(format.kind.label) if is_told_apart else None
        tables = curator.release(TablesMechanism(format.block_sizes, by))
        if not format.schema.rules:
            return tables
        return tables.without_impossible(format.find_impossible())
