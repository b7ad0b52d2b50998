# SPDX-License-Identifier: BSD-3-Clause
"""Release of two-way tables of persons and of their rows in order."""

import math
from dataclasses import dataclass, replace
from typing import Any

from ..accounting.certificate import Certificate
from ..accounting.plan import Plan, Terms
from ..data.record_functions import RecordFunction
from ..mechanisms.two_way import TablesMechanism
from ..releases.release import Release
from .mechanism import LINKS, PERSONS, ROWS, STEPS, TIMES

# Persons for useful results, per standard deviation of a count: with fewer, true rows that are
# dealt out at random among persons are nearer (found by `run_histories.py`, seeds 0 and 1).
_MIN_PERSONS = 90.0


@dataclass(eq=False, repr=False)
class HistoryTables(Release):
    """The tables of persons with histories: one sum over persons, in five parts.

    They are the two-way tables of the columns of persons, among them the number of rows; of the
    columns of rows; of each column of persons with each of rows and their number in the order; of
    each column of rows with this number and the cells of calendars; and of each column of a row,
    and of the first row, with each of the next row. Each person has one share of each. The budget
    is split by the number of tables, and those of times have two shares: each is the only one that
    shows its season.
    """

    is_sum = True
    name, learner = ROWS, "histories"

    def plan(self, terms: Terms, format) -> Plan:
        """Return the `Plan`; see `Release.plan`."""
        n_tables = count_tables(*format.n_blocks)
        total = sum(n_tables.values())
        shares = {name: n / total for name, n in n_tables.items()}
        plan = terms.plan_once(shares, lambda plan, relation: self.sensitivity(relation, 1))
        return replace(plan, max_rows=format.max_rows, max_weight=1)

    def sensitivity(self, relation: str, n_classes: int) -> float:
        """Return the sensitivity of each of the tables; see `Release.sensitivity`."""
        return TablesMechanism.sensitivity_of(relation)

    def find_sigma(self, certificate: Certificate, n_classes: int) -> float:
        """Return the standard deviation of the noise; see `Release.find_sigma`."""
        # The rows of a person have one share together.
        return super().find_sigma(replace(certificate, max_rows=1), n_classes)

    def min_samples(self, plan: Plan, terms: Terms, format) -> int:
        """Return the number of persons for useful results; see `Release.min_samples`."""
        noise = (plan.sigma or 0.0) * math.sqrt(count_tables(*format.n_blocks)[self.name])
        return math.ceil(_MIN_PERSONS * noise)

    def run(self, curator, format) -> list[Any]:
        """Release the tables of a resolved format: of rows, persons, both, times, and steps."""
        curator.encode_cells_by(RecordFunction(format.encode_histories))
        return [curator.release(mechanism) for mechanism in format.history_sizes.make_mechanisms()]


def count_tables(
    n_person_columns: int, n_row_columns: int, n_calendars: int = 0
) -> dict[str, float]:
    """Return the number of tables of each release, by name; a one-way table is half of one.

    Parameters
    ----------
    n_person_columns, n_row_columns : int
        Without the number of rows, and their numbers in the order.
    n_calendars : int, default=0
        Calendars of the order.
    """
    n_persons, n_rows = n_person_columns + 1, n_row_columns
    return {
        ROWS: n_rows**2 / 2,
        PERSONS: n_persons**2 / 2,
        LINKS: float(n_persons * (n_rows + 1)),
        TIMES: 2.0 * n_rows * (n_calendars + 1),
        STEPS: 2.0 * n_rows**2,
    }
