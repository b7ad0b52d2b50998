# SPDX-License-Identifier: BSD-3-Clause
"""Bounds on deviations, means and shares that hold with confidence, and tests of noise."""

import math

import numpy as np
from scipy import stats


def deviation_above(values, alpha):
    """Return what the standard deviation of normal numbers is below, but with probability alpha."""
    values = np.asarray(values)
    if np.ptp(values) <= 1e-12 * np.max(np.abs(values)):
        return 0.0  # they are equal, but for rounding
    squares = np.square(values - np.mean(values)).sum()
    return math.sqrt(squares / stats.chi2.ppf(alpha, len(values) - 1))


def deviation_below(values, alpha):
    """Return what the standard deviation of normal numbers is above, but with probability alpha."""
    values = np.asarray(values)
    squares = np.square(values - np.mean(values)).sum()
    return math.sqrt(squares / stats.chi2.isf(alpha, len(values) - 1))


def mean_below(values, alpha):
    """Return what the mean of many numbers is above, but with about probability alpha."""
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    return max(0.0, np.mean(values) - stats.norm.isf(alpha) * error)


def share_below(n_found, n, alpha):
    """Return what a probability is above, of which n trials found some (Clopper and Pearson)."""
    return 0.0 if n_found == 0 else float(stats.beta.ppf(alpha, n_found, n - n_found + 1))


def share_above(n_found, n, alpha):
    """Return what a probability is below, of which n trials found some (Clopper and Pearson)."""
    return 1.0 if n_found == n else float(stats.beta.isf(alpha, n_found + 1, n - n_found))


def normality(*samples):
    """Return a p-value that all samples are normal, by their skewness and kurtosis.

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


def equal_scale(sums, degrees):
    """Return a p-value that independent numbers each have the same scale in two groups of rows.

    They are compared one by one, by F-tests, and all together, by Fisher's combination of these.

    Parameters
    ----------
    sums : pair of ndarray of shape (n,)
        For each number, a χ² variable times its scale: squares of normal numbers, added up.
    degrees : pair of int
        Their degrees of freedom.
    """
    is_random = (sums[0] > 0) | (sums[1] > 0)
    one, other = (total[is_random] / n for total, n in zip(sums, degrees, strict=True))
    if not len(one):
        return 1.0
    with np.errstate(divide="ignore"):
        ratios = one / other
        tails = np.stack([stats.f.cdf(ratios, *degrees), stats.f.sf(ratios, *degrees)])
        together = stats.chi2.sf(-2 * np.log(tails).sum(axis=1), 2 * len(ratios))
    # Two ways, and two sides of each.
    return float(min(1.0, 4 * min(len(ratios) * tails.min(), together.min())))


def standardize(*groups):
    """Return the numbers of all groups, each group with a mean of 0 and a deviation of 1."""
    return np.concatenate([(group - np.mean(group)) / (np.std(group) or 1) for group in groups])


class Lags:
    """Correlations of numbers that are some places apart, of many rows of independent ones.

    Numbers that share their noise with those of another class, block or run are correlated at
    the lag between these.

    Parameters
    ----------
    n : int
        Numbers of a row.
    """

    def __init__(self, n):
        self._n, self._n_rows, self._sums = n, 0, 0.0

    def add(self, row):
        # Padded by nothing: each number has another one at each lag, around the end.
        self._sums = self._sums + np.abs(np.fft.rfft(row)) ** 2
        self._n_rows += 1

    def p_value(self):
        """Return a p-value that no two numbers are correlated."""
        if self._n < 2 or self._n_rows == 0:
            return 1.0
        products = np.fft.irfft(self._sums, self._n)
        if products[0] == 0:
            return 1.0
        lags = np.arange(1, self._n // 2 + 1)
        # Where it is half a turn, each pair is met twice.
        errors = np.sqrt(np.where(2 * lags == self._n, 2.0, 1.0) / (self._n * self._n_rows))
        largest = np.max(np.abs(products[lags] / products[0]) / errors)
        return float(min(1.0, 2 * len(lags) * stats.norm.sf(largest)))


def find_equal(rows, tolerance):
    """Return pairs of columns that are the same, up to a sign, in all rows.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        Numbers of standard deviation 1.
    tolerance : float
        By which equal ones differ.

    Returns
    -------
    ndarray of int of shape (n_pairs, 2)
    """
    sizes = np.abs(rows)
    # Equal ones stand side by side in order of size.
    order = np.argsort(sizes[0])
    pairs = np.stack([order[:-1], order[1:]], axis=1)
    for row in sizes:
        pairs = pairs[np.abs(row[pairs[:, 0]] - row[pairs[:, 1]]) <= tolerance]
    return pairs
