# SPDX-License-Identifier: BSD-3-Clause
"""Inferred bounds, merged categories and clipped cells: the limits of estimates."""

import numpy as np

from ..checks import list_names
from ..exceptions import FitQualityWarning, warn_caller
from ..quality import CAUSES, WITHIN_NOISE, Finding, Findings
from ..tables.quality import find_clipped
from .projection import Features

# Findings of a fit that are told anew, from released counts, where they concern a statistic.
_TOLD = {"beyond", "range unresolved", "cut", "tail", "other", "at bound", "clipped"}


class Limits:
    """The limits of what a release tells of some columns.

    Values beyond the bounds of a column count as the bound. If a bound was inferred, the noise may
    hide values beyond it, and nothing limits how far they reach.
    """

    def __init__(self, model, columns):
        self._model, self._names = model, columns
        self._blocks = [b for b in model.encoder.make_blocks() if b.name in columns]

    def find_open(self, statistic, probes):
        """Return whether values beyond inferred bounds move a statistic down, up; their columns.

        Probes have the other cells beside such a value.
        """
        moves, columns = np.zeros((2, len(statistic.names)), dtype=bool), []
        for block in self._blocks:
            ends = self._model.find_inferred_ends(block)
            tables = [self._model.move(probes, block, end) for end in ends]
            found = [statistic.find_moves(*pair, self._names) for pair in tables]
            columns += [block.name] * bool(np.any(found))
            moves = np.any([moves, *found], axis=0)
        return *moves, columns

    def warn(self):
        """Warn of columns with merged, clipped or lost cells, by released counts."""
        model, merged, clipped, found = self._model, {}, {}, Findings()
        if model.count_std:
            text = (
                f"About {1 - model.n_records / model.n_given:.0%} of the records count as absent: "
                "estimates are of the others. Compare the declared types and categories with how "
                "cells are written."
            )
            found.add(Finding("fit", None, text))
        for block in self._blocks:
            name, column_type = block.name, block.column_type
            features = Features(model.tables, model.format, [name])
            inferred = model.inferred.get(name, ())
            counts, std = features.sums, features.std
            if "categories" in inferred and column_type.other is not None:
                at = column_type.levels.index(column_type.other)
                if counts[at] > WITHIN_NOISE * std[at]:
                    merged[name] = f"{counts[at] / model.n_records:.0%} {column_type.other!r}"
            ends = {"lower", "upper"}.difference(inferred) if column_type.has_knots else ()
            given = counts, std, inferred
            if at := [end for end in sorted(ends) if find_clipped(column_type, end, *given)]:
                clipped[name] = " and ".join(f"at {getattr(column_type, end)}" for end in at)
        found.add(*(Finding("other", name, detail) for name, detail in merged.items()))
        found.add(*(Finding("clipped", name, detail) for name, detail in clipped.items()))
        for name, finding in self._list_findings().items():
            code, _, detail = finding.partition(": ")
            if code in CAUSES.keys() - _TOLD:
                found.add(Finding(code, name, detail))
        found.warn()

    def warn_of_open(self, values, columns):
        """Warn that intervals of some values are open, as bounds of columns were inferred."""
        findings = self._list_findings()
        shown = [repr(n) + (f" ({findings[n]})" if n in findings else "") for n in columns]
        warn_caller(
            f"The intervals of {list_names([repr(v) for v in values])} are open: the noise may "
            f"hide values of columns {list_names(shown)} beyond their inferred bounds, which count "
            "as the bounds, or as absent or missing if a column has levels. Declare the bounds, as "
            "Number(lower, upper) or Date(lower, upper), or the levels, as Category([0, 1]).",
            FitQualityWarning,
        )

    def _list_findings(self):
        """Return the findings of the fit on the columns, by name."""
        report = getattr(self._model.generator, "schema_report_", None)
        found = {} if report is None else report.get("finding", {})
        return {b.name: found[b.name] for b in self._blocks if isinstance(found.get(b.name), str)}
