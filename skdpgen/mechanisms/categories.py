# SPDX-License-Identifier: BSD-3-Clause
"""Noisy counts of categories that are not known beforehand, by a threshold."""

import math
from collections import Counter

import numpy as np
from dp_accounting import DpEvent, NonPrivateDpEvent
from scipy.stats import norm

from ..accounting.events import ThresholdDpEvent
from ..data.cells import as_frame
from ..data.names import count_names, count_short_names
from ..exceptions import PlanError
from .base import Measurement, Mechanism


class CategoryCountsMechanism(Mechanism):
    """Noisy counts of the frequent categories of some columns.

    Categories need not be known beforehand: a noisy count is released if it exceeds a threshold.
    Categories of a single record exceed it with a probability of at most the event's δ', over all
    columns. A record adds w_c, which is 1 unless stated, to one count of each column c: the
    sensitivity is √(Σ w_c²), or √2 times as much if the record is replaced. A person with M rows
    can be the only one with M categories of a column, and adds up to M w_c to a count: the
    threshold is higher by (M - 1) w_c, and holds for M times as many counts.

    Parameters
    ----------
    columns : dict of str to int
        Names of the columns, and their positions among the cells. Cells with a value are counted
        in their canonical form.
    weights : dict of str to int, default=None
        w_c of columns whose counts get less noise: 1 / w_c of that of others.

    References
    ----------
    Korolova, Kenthapadi, Mishra & Ntoulas, "Releasing Search Queries and Clicks Privately", 2009;
    Wilson et al., "Differentially Private SQL with Bounded User Contribution", 2020.
    """

    name = "category counts"
    is_sum = True
    count_cells = staticmethod(count_names)

    def __init__(self, columns: dict[str, int], weights: dict[str, int] | None = None) -> None:
        self.columns = columns
        self.weights = dict.fromkeys(columns, 1)
        self.weights |= {name: w for name, w in (weights or {}).items() if name in columns}

    def sensitivity(self, relation: str) -> float:
        """Return the sensitivity; see `Mechanism.sensitivity`."""
        energy = sum(weight**2 for weight in self.weights.values())
        return math.sqrt({"zero_out": 1, "replace_one": 2}[relation] * energy)

    def check(self, event: DpEvent) -> None:
        """Raise a `PlanError` unless the event is that of a threshold; see `Mechanism.check`."""
        is_threshold = isinstance(event, ThresholdDpEvent) and event.delta > 0
        if not (is_threshold or isinstance(event, NonPrivateDpEvent)):
            raise PlanError(f"{self.name!r} is a release by a threshold; it is planned as {event}.")

    def query(self, source, event, relation, noise):
        counts = source.add_up(self._count)
        # The order must not depend on that of the records.
        keys = sorted(counts, key=self._sort_key)
        std = self._find_std(source, event, relation)
        weights = np.array([self.weights[name] for name, _ in keys], dtype=np.int64)
        # At ε = inf there is no noise, and every category passes.
        thresholds, most = 0 * weights, source.max_rows or 1
        if std > 0:
            # most + noise passes if the noise, before rounding, exceeds its quantile.
            quantile = float(norm.isf(event.delta / (most * len(self.columns))))
            thresholds = most * weights + 1 + math.ceil(std * quantile * (1 + 1e-6))
        exact = weights * np.array([counts[key] for key in keys], dtype=np.int64)
        return Measurement(exact, 1.0, std, context=(keys, thresholds.tolist()))

    def _count(self, source):
        """Count pairs of a column and a category."""
        counts = Counter()
        for cells, membership in source.cells(self.name):
            # Null records have no categories.
            frame = as_frame(cells[membership.sum(1).bool().numpy()])
            for name, position in self.columns.items():
                of_column = self.count_cells(frame.iloc[:, position])
                counts.update({(name, key): count for key, count in of_column.items()})
        return counts

    def _sort_key(self, pair):
        name, key = pair
        return self.columns[name], key

    def postprocess(self, noisy, measured):
        passed = {name: {} for name in self.columns}
        for (name, key), threshold, count in zip(*measured.context, noisy.tolist(), strict=True):
            if count > threshold:
                passed[name][key] = count / self.weights[name]
        return passed


class FrequentValuesMechanism(CategoryCountsMechanism):
    """Noisy counts of the values that many records share, of numbers and dates.

    These are counted like categories. Numbers with more digits than people write, and dates with a
    time, are not counted: hardly any two records share them, and all would have to be held in
    memory. As this follows from each cell alone, a record still adds 1 to at most one count of each
    column.
    """

    name = "frequent values"
    count_cells = staticmethod(count_short_names)
