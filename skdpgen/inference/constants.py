# SPDX-License-Identifier: BSD-3-Clause
"""Constants of estimates."""

from dataclasses import dataclass


@dataclass(frozen=True)
class InferenceConstants:
    """Constants of estimates; all are set by hand, on the populations of benchmarks."""

    # Synthetic rows on which statistics are evaluated: their errors cancel, to first order.
    n_rows: int = 3_000
    # Rows whose influence is computed: so many for each feature, within these limits.
    rows_per_feature: int = 3
    probes: tuple[int, int] = (600, 6_000)
    # Most features that the influence is projected on.
    max_features: int = 3_000
    # Weight of rows of the schema in the projection: small, as they may be unlike any record.
    schema_weight: float = 0.1
    # Weight of the explained part relative to noise: so large that no bias is traded for less
    # noise.
    trade: float = 4.0
    # Largest bias by a misfit, in standard errors, that an interval allows for.
    most_bias: float = 0.5
    # Attempts to change a statistic by other values of a column, drawn from so many rows: few,
    # so that extremes change as well.
    n_values: tuple[int, ...] = (200, 20, 2)
    # Rows at which interactions are measured.
    n_corners: int = 60
    # Distances beyond an inferred bound, in widths of the range; rows whose cells move there; and
    # rounding errors of influences, relative to the value.
    beyond: tuple[float, ...] = (0.125, 1.0, 16.0)
    n_moved: int = 60
    rounding: float = 1e-9
    # Smoothness: copies of a row that change a statistic like one copy, up to this relative error,
    # and the rows that are tried: any, and those with the largest influence, of which only few
    # copies are small changes.
    copies: tuple[int, ...] = (5, 25)
    smooth: float = 0.2
    n_smooth: int = 30
    n_largest: int = 5
    # Largest relative change of a statistic if each row is repeated: unbiased variances of n_rows
    # rows change by 0.02 %, sums by 100 %.
    repeated: float = 0.01


CONSTANTS = InferenceConstants()
