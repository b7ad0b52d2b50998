# SPDX-License-Identifier: BSD-3-Clause
"""Windows of neighbouring knots, and the most likely one where noise hides a range."""

import numpy as np
from scipy.special import softmax
from scipy.stats import norm

# Sizes of numbers in general: mean and deviation of their binary logarithm, and the share of those
# above zero. They choose a range that does not show above the noise; its ends are this quantile of
# their posterior distributions, outwards. All are set by hand, the last one on tables of 1,000 to
# 4,000 rows: a smaller range cuts amounts, and a larger one blows small counts up.
_USUAL_SIZE, _SIZES_VARY, _POSITIVE, _QUANTILE = 6.0, 6.0, 0.95, 0.65


def weigh_sizes(knots):
    """Return how usual numbers of the size of each knot of a wide grid are, up to a factor."""
    with np.errstate(divide="ignore"):
        octaves = np.log2(np.abs(knots))
    weights = np.where(knots == 0, 0.5, norm.pdf(octaves, _USUAL_SIZE, _SIZES_VARY))
    return weights * np.where(knots < 0, 1 - _POSITIVE, _POSITIVE)


def guess_range(counts, std, n_values, weights):
    """Return the first and the last knot of a range that noise hides.

    Values are spread evenly over one of the windows. Its prior weight is the geometric mean of
    those of its knots, and the likelihood of the counts is normal.
    """
    starts, ends = list_windows(len(counts))
    widths, sums = ends - starts + 1, sum_windows(counts, starts, ends)
    weights = np.ones(len(counts)) if weights is None else weights
    logits = sum_windows(np.log(weights), starts, ends) / widths
    if std > 0:
        n_values = sums.clip(0) if n_values is None else n_values
        logits += n_values * (sums - n_values / 2) / (widths * std**2)
    masses = softmax(logits)
    first, last = (np.cumsum(np.bincount(where, masses)) for where in (starts, ends))
    return np.searchsorted(first, 1 - _QUANTILE), np.searchsorted(last, _QUANTILE)


def list_windows(n_knots):
    """Return the first and the last knots of all windows of 1, 2, 4, ... knots."""
    widths = 2 ** np.arange(int(np.log2(n_knots)) + 1)
    starts = [np.arange(n_knots - width + 1) for width in widths]
    ends = [start + width - 1 for start, width in zip(starts, widths, strict=True)]
    return np.concatenate(starts), np.concatenate(ends)


def sum_windows(numbers, starts, ends):
    """Return the sums of numbers of knots over windows."""
    sums = np.r_[0, np.cumsum(numbers)]
    return sums[ends + 1] - sums[starts]
