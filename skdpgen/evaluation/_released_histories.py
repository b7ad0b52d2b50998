# SPDX-License-Identifier: BSD-3-Clause
"""Releases of histories, as reports on both synthetic tables need them."""

from dataclasses import replace

from .._process.muting import muted
from ..histories.learner import find_undated, read_tables
from ..histories.schema import Elapsed
from ..tables.rules.rules import Unique
from ..tables.schema import Schema
from ._histories import join_histories


class ReleasedHistories:
    """A release of `DPHistorySampler`, and what a report on both of its tables needs of it.

    Parameters
    ----------
    published : PublishedRelease
    """

    def __init__(self, published):
        self._values, self._n = [*published.values[published.n_inferred :]], published.n_samples
        has_undated = find_undated(self._values, published.format)
        self._format = replace(published.format, has_undated=has_undated)

    def join(self, tables):
        """Return both tables as one; see `join_histories`."""
        return join_histories(tables, persons=self._format.key, order=self._format.order)

    @property
    def schema(self):
        """The schema of joined rows, with the rules of both tables and across them."""
        schema, own = self._format.table.schema, {*self._format.person_names}
        rules = [
            rule
            for rule in schema.rules
            # A person is in several rows.
            if not (
                isinstance(rule, Elapsed) or (isinstance(rule, Unique) and own >= {*rule.names})
            )
        ]
        gap = f"{self._format.names[1]} gap"
        return Schema({name: c for name, c in schema.items() if name != gap}, rules)

    @property
    def schema_report(self):
        """The report on the columns."""
        with muted():
            return read_tables(self._values, self._format, self._n)[1]
