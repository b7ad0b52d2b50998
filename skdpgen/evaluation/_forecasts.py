# SPDX-License-Identifier: BSD-3-Clause
"""Forecasts of the errors of released tables, from public numbers only."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import norm

from ..accounting.certificate import Certificate
from ..accounting.plan import Plan
from ..mechanisms.categories import CategoryCountsMechanism
from ..mechanisms.two_way import TablesMechanism, count_cells, level_precisions
from ..planning.few_rows import find_least_epsilon
from ..quality import LEAST_SIGNAL, MOVED
from ..releases.two_way_tables import TwoWayTables
from ..tables.columns.number import N_KNOTS
from ..tables.discovery.stages import CONSTANTS as STAGES
from ..tables.discovery.stages import COUNTS, count_knots, noise_on_counts
from ..tables.format import TableFormat
from ..tables.log_splines import expect_error
from ..tables.strata import may_stratify, strata_pay

# Verdicts on a table of counts, the best first, and the most noise of a good one, relative to its
# average count.
GOOD, ROUGH, NOISE = VERDICTS = "good", "rough", "noise"
GOOD_NOISE = 0.1


@dataclass(frozen=True)
class CountTable:
    """A released or planned table of counts, its expected error, and the verdict on it.

    Examples
    --------
    >>> [CountTable(10, noise, 1000).verdict for noise in (10, 11, 230)]
    ['good', 'rough', 'noise']
    """

    # Number of counts.
    n_levels: int
    # Standard deviation of the noise on each count, in records.
    noise: float
    n_records: float
    # Share of numbers that are expected elsewhere than in the table, also between knots.
    error: float = 0.0

    @property
    def n_moved(self) -> float:
        """Expected number of records that are elsewhere than in the table."""
        return min(self._relative_noise * MOVED, 1.0) * self.n_records

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        if self._relative_noise <= GOOD_NOISE:
            return GOOD
        # The signal-to-noise ratio of equal counts is below that of the warning after a fit.
        return NOISE if self._relative_noise > LEAST_SIGNAL**-0.5 else ROUGH

    @property
    def _relative_noise(self) -> float:
        """Noise on counts, relative to the average one, that moves as many records."""
        return max(self.n_levels * self.noise / self.n_records, self.error / MOVED)


@dataclass(frozen=True)
class ForecastConstants:
    """Constants of forecasts. Those without a source are set by hand."""

    # Seconds and bytes of a fit: to start; for each cell of the table, of which all rows are read
    # several times, but so many are held; and for each cell of all pairs, in training. Measured on
    # one core, in CPU seconds by particles; networks take about twice as long: Adult, 30,000 x 15,
    # 12 s; diabetes130, 81,000 x 47, 73 s. Memory: 6,000 x 4 takes 0.5 GB; hospital visits,
    # 3,000 x 11, 0.6 GB, 6,000 x 14, 0.7 GB, and 10,000 x 22, 1.4 GB.
    start_seconds: float = 6.0
    seconds_per_cell: float = 1.1e-5
    seconds_per_pair: float = 4e-4
    start_bytes: float = 4.8e8
    bytes_per_cell: float = 300.0
    bytes_per_pair: float = 1.2e4
    most_held: int = 100_000


CONSTANTS = ForecastConstants()


@dataclass(frozen=True)
class Forecast:
    """Expected errors and cost of a fit, from public numbers only.

    `tables` are those of `preview_tables`, and `certificate` is that of the planned releases.
    """

    certificate: Certificate
    # Number of rows from which on the fit is useful.
    min_samples: int
    # Number of records, or of persons, and of rows that may count at most.
    n_records: int
    n_expected: int
    tables: pd.DataFrame
    # Categories that are inferred have at least about so many rows; None if none are.
    least_count: float | None
    # Roughly what the fit takes of one core and of memory.
    seconds: float
    n_bytes: float
    # Returns about the smallest ε at which the fit is useful, or None.
    find_least_epsilon: Callable[[], float | None]

    @classmethod
    def of(cls, estimator, X, y=None, *, target=None, persons=None) -> "Forecast":
        """Return the forecast of ``estimator.fit(X, y, target=target, persons=persons)``."""
        format, fit_plan, certificate = estimator._plan_data(X, y, target, persons)
        if not isinstance(fit_plan.release, TwoWayTables):
            raise ValueError(
                f"X of a {type(estimator).__name__} is an array here, of which no tables are "
                "released: give a DataFrame, or a schema."
            )
        plan, n_units = fit_plan.plan, certificate.n_records or 0
        tables = measure_tables(format, plan.sigma, n_units, _count_knots(format, plan, n_units))
        n_levels = tables.loc[tables.index.get_level_values("other") == "", "levels"]
        n_pairs = count_cells(n_levels.astype(int).tolist())
        return cls(
            certificate,
            fit_plan.min_samples,
            n_units,
            n_units * (plan.max_rows or 1),
            tables,
            _find_least_count(format, plan),
            CONSTANTS.start_seconds
            + CONSTANTS.seconds_per_cell * n_units * len(n_levels)
            + CONSTANTS.seconds_per_pair * n_pairs,
            CONSTANTS.start_bytes
            + CONSTANTS.bytes_per_cell * min(n_units, CONSTANTS.most_held) * len(n_levels)
            + CONSTANTS.bytes_per_pair * n_pairs,
            partial(find_least_epsilon, estimator, plan, n_units, 1, format),
        )

    @property
    def most_levels(self) -> float:
        """Largest number of levels that a category can be inferred to have, with `other`."""
        if self.least_count is None:
            return math.inf
        # Half of the count, since noise can lift one that is below the threshold.
        return 1 + self.n_expected // max(1.0, self.least_count / 2)


def preview_tables(estimator, X, y=None, *, target=None, persons=None) -> pd.DataFrame:
    """Return how large the errors of a fit's tables are, before any private cell is read.

    Parameters
    ----------
    estimator : estimator
        An unfitted generator that releases two-way tables: see `TwoWayTables`.
    X, y, target, persons
        The arguments of `fit`.

    Returns
    -------
    DataFrame
        A row for each column, at ``(name, "")``, and for each pair of columns, with

        - ``levels``, the number of cells of the table, and ``is_known``, whether the schema
          declares them; else as many are assumed as a number gets;
        - ``noise``, the standard deviation of the noise on each count, in rows;
        - ``error``, the number of rows that are expected in other cells because of noise, or of a
          normal number, elsewhere between knots, and ``error_percent``, their percentage;
        - ``verdict``: ``"good"`` where the noise is at most 10 % of the average count, or moves as
          many rows, ``"noise"`` where it is above 224 %, and else ``"rough"``.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen import Boolean, DPSWFlowSampler, Number, Schema
    >>> from skdpgen.privacy import preview_tables
    >>> schema = Schema({"age": Number(0, 99, n_knots=10), "smoker": Boolean()})
    >>> table = pd.DataFrame({"age": [40] * 1000, "smoker": [True] * 1000})
    >>> preview_tables(DPSWFlowSampler(1.0, 1e-6, schema=schema), table)["verdict"].tolist()
    ['good', 'good', 'rough']
    """
    return Forecast.of(estimator, X, y, target=target, persons=persons).tables


def measure_tables(
    format: TableFormat, sigma: float, n_records: float, n_undeclared: int = N_KNOTS
) -> pd.DataFrame:
    """Return how large the errors of two-way tables are; see `preview_tables`.

    `sigma` is the noise on a sum to which a record adds a vector of norm 1, and `n_undeclared` the
    number of levels that is assumed of a column which is not declared.
    """
    learned = format.schema.learned
    sizes, is_known = zip(
        *(_count_levels(column, n_undeclared) for column in learned.values()), strict=True
    )
    names, label = list(learned), format.layout and format.layout.label
    by, is_class = None, format.has_class_target
    if may_stratify(learned, format.target):
        by = names.index(label) if is_class else len(names)
    if by is not None and is_class and is_known[by]:
        by = by if strata_pay(sizes, by, sigma, n_records) else None
    elif by is not None:
        # The halves, or the fewest levels, at which the noise on other columns is least.
        sizes = (*sizes[:by], 2, *sizes[by + 1 :])
    mechanism = TablesMechanism(sizes, by)
    kept = [name for i, name in enumerate(names) if i != by]
    unit = sigma * mechanism.records
    std = unit / np.sqrt(level_precisions(mechanism.sizes, mechanism.weight))
    n_strata = 1 if by is None else sizes[by]
    stds = {(name, ""): s * math.sqrt(n_strata) for name, s in zip(kept, std, strict=True)}
    for pair in combinations(kept, 2):
        stds[pair] = unit * math.sqrt(n_strata / 2)
    if by is not None and is_class:
        # Strata are counted by the sums of their columns, and its pairs are these columns.
        stds[(label, "")] = min(s * math.sqrt(k) for s, k in zip(std, mechanism.sizes, strict=True))
        stds |= {(label, name): s for name, s in zip(kept, std, strict=True)}
    size, known = dict(zip(names, sizes, strict=False)), dict(zip(names, is_known, strict=True))
    rows = []
    order = [(name, "") for name in names] + [pair for pair in stds if pair[1]]
    for first, other in order:
        noise, n_levels = stds[first, other], size[first] * (size[other] if other else 1)
        error, column = 0.0, learned[first]
        if not other and column.has_knots and n_levels < column.n_values:
            # Inferred knots are refined; finer ones have hardly an error between them.
            n_knots = min(n_levels - column.missing, 2 * N_KNOTS) if known[first] else N_KNOTS
            error = expect_error(n_knots, noise / n_records)
        counts = CountTable(n_levels, noise, n_records, error)
        rows.append(
            {
                "levels": counts.n_levels,
                "is_known": known[first] and known.get(other, True),
                "noise": counts.noise,
                "error": counts.n_moved,
                "error_percent": 100 * counts.n_moved / n_records,
                "verdict": counts.verdict,
            }
        )
    index = pd.MultiIndex.from_tuples(order, names=["column", "other"])
    return pd.DataFrame(rows, index=index)


def _count_levels(column, n_undeclared: int) -> tuple[int, bool]:
    """Return the number of levels of a column's table, and whether it is declared."""
    if column.is_open or column.takes_knots:
        return n_undeclared + column.missing, False
    return column.n_levels + column.missing, True


def _count_knots(format: TableFormat, plan: Plan, n_records: int) -> int:
    """Return how many knots of numbers a plan can pay for."""
    schema = format.schema
    # Without counts nothing shows how many knots pay off: the default is used.
    if COUNTS not in dict(plan.releases):
        return N_KNOTS
    std = noise_on_counts(plan, COUNTS, len(schema.undeclared or schema.learned))
    is_stratified = may_stratify(schema.learned, format.target)
    return count_knots(plan, len(schema.learned), n_records, std, is_stratified)


def _find_least_count(format: TableFormat, plan: Plan) -> float | None:
    """Return about how many rows a category must have to be inferred."""
    name = CategoryCountsMechanism.name
    event = dict(plan.releases).get(name)
    types = format.schema.learned.items()
    opened: dict = {c: 0 for c, column in types if column.is_open and not column.has_knots}
    if event is None or not opened:
        return None
    weights: dict = {format.layout and format.layout.label: STAGES.target_weight}
    mechanism = CategoryCountsMechanism(opened, weights)
    unit = plan.bound(mechanism.sensitivity) / min(mechanism.weights.values())
    std = plan.multiplier(name) * unit
    most = plan.max_rows or 1
    return most + std * float(norm.isf(event.delta / (most * len(opened)))) if std else 0.0
