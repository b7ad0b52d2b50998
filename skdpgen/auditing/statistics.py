# SPDX-License-Identifier: BSD-3-Clause
"""Confidence bounds on standard deviations, means and rates, and tests of noise."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats


def std_upper_bound(values, alpha: float) -> float:
    """Return an upper confidence bound on the standard deviation of normal values."""
    values = np.asarray(values)
    if np.ptp(values) <= 1e-12 * np.max(np.abs(values)):
        return 0.0  # equal up to rounding
    return math.sqrt(_sum_squares(values) / stats.chi2.ppf(alpha, len(values) - 1))


def std_lower_bound(values, alpha: float) -> float:
    """Return a lower confidence bound on the standard deviation of normal values."""
    values = np.asarray(values)
    return math.sqrt(_sum_squares(values) / stats.chi2.isf(alpha, len(values) - 1))


def _sum_squares(values: np.ndarray) -> float:
    return np.square(values - np.mean(values)).sum()


def mean_lower_bound(values, alpha: float) -> float:
    """Return an asymptotic lower confidence bound on a non-negative mean."""
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    return max(0.0, np.mean(values) - stats.norm.isf(alpha) * error)


def rate_lower_bound(n_successes: int, n: int, alpha: float) -> float:
    """Return the lower confidence bound of Clopper and Pearson on a probability."""
    if n_successes == 0:
        return 0.0
    return float(stats.beta.ppf(alpha, n_successes, n - n_successes + 1))


def rate_upper_bound(n_successes: int, n: int, alpha: float) -> float:
    """Return the upper confidence bound of Clopper and Pearson on a probability."""
    return (
        1.0 if n_successes == n else float(stats.beta.isf(alpha, n_successes + 1, n - n_successes))
    )


def normality_p_value(*samples: np.ndarray) -> float:
    """Return a p-value of the hypothesis that all samples are normal.

    References
    ----------
    D'Agostino & Pearson, "Tests for departure from normality", Biometrika 1973.
    """
    p_values = [
        float(np.nan_to_num(stats.normaltest(sample).pvalue))
        for sample in samples
        if np.std(sample)
    ]
    return min(1.0, len(p_values) * min(p_values, default=1.0))


def equal_scale_p_value(sums: Sequence[np.ndarray] | np.ndarray, degrees: Sequence[int]) -> float:
    """Return a p-value of the hypothesis that independent numbers have equal scales in two groups.

    F-tests compare them one by one, and Fisher's combination of these all together. For each number
    and group, there is a χ² variable times the scale, such as a sum of squares, with degrees of
    freedom.
    """
    is_random = (sums[0] > 0) | (sums[1] > 0)
    one, other = (total[is_random] / n for total, n in zip(sums, degrees, strict=True))
    if not len(one):
        return 1.0
    with np.errstate(divide="ignore"):
        ratios = one / other
        tails = np.stack([stats.f.cdf(ratios, *degrees), stats.f.sf(ratios, *degrees)])
        combined = stats.chi2.sf(-2 * np.log(tails).sum(axis=1), 2 * len(ratios))
    # Bonferroni: two tests, with two sides each.
    return float(min(1.0, 4 * min(len(ratios) * tails.min(), combined.min())))


def standardize(*groups: np.ndarray) -> np.ndarray:
    """Return the numbers of all groups, each group scaled to mean 0 and standard deviation 1."""
    return np.concatenate([(group - np.mean(group)) / (np.std(group) or 1) for group in groups])


class Autocorrelation:
    """Autocorrelation of the n numbers of a row, over many independent rows.

    Numbers that share their noise with those of another class, block or run are correlated at
    the lag between these.
    """

    def __init__(self, n: int) -> None:
        self._n, self._n_rows, self._sums = n, 0, np.zeros(n // 2 + 1)

    def add(self, row: np.ndarray) -> None:
        # Without padding, so that lags are circular and each number has a partner at each lag.
        self._sums = self._sums + np.abs(np.fft.rfft(row)) ** 2
        self._n_rows += 1

    def p_value(self) -> float:
        """Return a p-value of the hypothesis that no two numbers are correlated."""
        if self._n < 2 or self._n_rows == 0:
            return 1.0
        products = np.fft.irfft(self._sums, self._n)
        if products[0] == 0:
            return 1.0
        lags = np.arange(1, self._n // 2 + 1)
        # At a lag of half the row, each pair is counted twice.
        errors = np.sqrt(np.where(2 * lags == self._n, 2.0, 1.0) / (self._n * self._n_rows))
        largest = np.max(np.abs(products[lags] / products[0]) / errors)
        return float(min(1.0, 2 * len(lags) * stats.norm.sf(largest)))


def find_equal_columns(rows: np.ndarray, tolerance: float) -> np.ndarray:
    """Return pairs (n_pairs, 2) of columns that are equal, up to a sign, in all rows.

    Numbers have a standard deviation of 1.
    """
    sizes = np.abs(rows)
    # Equal columns are adjacent when sorted by size.
    order = np.argsort(sizes[0])
    pairs = np.stack([order[:-1], order[1:]], axis=1)
    for row in sizes:
        pairs = pairs[np.abs(row[pairs[:, 0]] - row[pairs[:, 1]]) <= tolerance]
    return pairs
