# SPDX-License-Identifier: BSD-3-Clause
"""Effect of truncated tails on the mean of a column, from noisy counts."""

import numpy as np
from scipy.stats import norm

from .ranges import spread_counts

# Shares below the quantiles that a lognormal tail has; set by hand. Values in two groups have no
# tail although one of the two ratios of quantiles is large: the smaller one decides.
_SHARES = 0.5, 0.8, 0.95
# Least share of a mean whose loss is told: the tails of exponential columns, of which all shows,
# seem to lose less. Set by hand.
LEAST_LOSS = 0.08


def estimate_loss(knots, counts, std):
    """Return by how much the mean of a column is nearer to zero because its tail does not show.

    The tail is that of a lognormal distribution with the quantiles that were counted. It is
    compared with what of the counts is more than noise.

    Parameters
    ----------
    knots, counts : ndarray of shape (n_knots,)
        Noisy counts near knots, without point masses.
    std : float
        Standard deviation of their noise.

    Returns
    -------
    float
        The share of the mean that is lost, in [0, 1]; 0 for numbers of both signs.
    """
    if knots[0] < 0 < knots[-1]:
        return 0.0
    if knots[0] < 0:
        knots, counts = -knots[::-1], counts[::-1]
    points, masses = spread_counts(knots, counts, std)
    if not masses.sum() > 0:
        return 0.0
    masses = masses / masses.sum()
    quantiles = np.interp(_SHARES, np.r_[0, np.cumsum(masses)], points)
    scores = norm.ppf(_SHARES)
    if not 0 < quantiles[0] < quantiles[1] < quantiles[2]:
        return 0.0
    scale = (np.diff(np.log(quantiles)) / np.diff(scores)).min()
    location = np.log(quantiles[1]) - scale * scores[1]
    # E max(X - q, 0) of a lognormal X, and of the counts.
    mean, end = np.exp(location + scale**2 / 2), (np.log(quantiles[2]) - location) / scale
    expected = mean * norm.sf(end - scale) - quantiles[2] * norm.sf(end)
    middles = (points[1:] + points[:-1]) / 2
    counted = masses @ (middles - quantiles[2]).clip(0)
    loss = max(expected - counted, 0.0)
    return float(loss / (loss + masses @ middles))
