# SPDX-License-Identifier: BSD-3-Clause
"""Schema of two tables side by side, in which dates are learned relative to an order."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..registry import savable
from ..tables.columns import Number
from ..tables.declaration import parse
from ..tables.rules.ordered import list_differences
from ..tables.rules.rule import Rule
from ..tables.rules.rules import RULES
from ..tables.schema import Schema


@dataclass(frozen=True, repr=False)
class Elapsed(Rule):
    """A date that is not learned itself, but the days to it from the order of the same row.

    It constrains nothing. Columns of undeclared type are learned as they are, until released
    counts show that both hold dates.

    Parameters
    ----------
    order, date : str
        Names of the columns.
    difference : Number, default=None
        Column type of the days. None: it is inferred.
    """

    order: str
    date: str
    difference: Number | None = None

    def __post_init__(self):
        if self.difference is not None:
            self._set(difference=parse(self.difference, {"number": Number}))

    @property
    def names(self):
        return self.order, self.date

    @property
    def name(self):
        """Name of the learned column."""
        return f"{self.date} since {self.order}"

    def find_difference(self, types):
        """Return the column type of the days, or None if not both columns hold dates."""
        pair = [types[name] for name in self.names]
        if not (pair[0].is_date and pair[0].compares_with(pair[1])):
            return None
        is_whole = all(column.unit == "day" for column in pair)
        found = self.difference or Number(decimals=0 if is_whole else None)
        # Rows have an order, or are left out.
        return replace(found, missing=pair[1].missing)

    def subtract(self, table, types):
        """Return the days of cells, each row on its own: an array, NaN for missing values."""
        days = np.full((2, len(table)), np.nan)
        for row, name in zip(days, self.names, strict=True):
            present, units = types[name].encode(table[name])
            row[present] = units / types[name].units_per_day
        return days[1] - days[0]


@savable
class JoinedSchema(Schema):
    """Columns of persons, the order, and other columns of rows, in this order.

    The difference of two columns follows the later one, so that the weights of persons stand before
    those of rows.
    """

    _rule_types: ClassVar = RULES | {"elapsed": Elapsed}

    def _list_differences(self, types):
        elapsed = [rule for rule in self.rules if isinstance(rule, Elapsed)]
        found = {rule.name: (rule, rule.find_difference(types)) for rule in elapsed}
        found = {name: pair for name, pair in found.items() if pair[1] is not None}
        # Orders of these dates follow from the days.
        dates = {rule.date for rule, _ in found.values()}
        others = [r for r in self.rules if r not in elapsed and not dates.intersection(r.names)]
        return found | list_differences(others, types)

    def _arrange(self, types, found):
        arranged, left = {}, dict(found)
        for name, column in types.items():
            arranged[name] = column
            ready = [key for key, (rule, _) in left.items() if arranged.keys() >= {*rule.names}]
            arranged |= {key: left.pop(key)[1] for key in ready}
        return arranged

    @property
    def dates(self):
        """Names of the dates that are learned relative to the order."""
        return [rule.date for rule in self.differences.values() if isinstance(rule, Elapsed)]

    @property
    def derived_names(self):
        return (*super().derived_names, *self.dates)
