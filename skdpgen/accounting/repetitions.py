# SPDX-License-Identifier: BSD-3-Clause
"""How often a mechanism runs of which only the best outcome is told.

The number of runs is at least 1, of the truncated negative binomial law of Papernot & Steinke
(ICLR 2022, Definition 1), with shape η ≥ 0 and halting probability γ: geometric for η = 1,
logarithmic for η = 0. Its chances p_k ∝ (1 - γ)^k Γ(k + η) / k! have p_1 = η (1 - γ) / (γ^-η - 1).
"""

import math

from scipy.optimize import brentq


def halting_probability(mean, shape):
    """Return γ of the law with a mean of at least 1, η (1 - γ) / (γ (1 - γ^η))."""
    if mean == 1:
        return 1.0
    if shape == 1:
        return 1 / mean
    log_mean = math.log(mean)

    def excess(u):
        # At γ = e^-u; it grows in u, and in the shape, from at least e^(u/2).
        return math.log(math.expm1(u) / _over(-math.expm1(-shape * u), shape, u)) - log_mean

    return math.exp(-brentq(excess, 1e-12 * log_mean, 2 * log_mean, xtol=1e-15, rtol=1e-14))


def number_of_runs(uniform, mean, shape):
    """Return the number of runs for a uniform number in [0, 1): the quantile at it."""
    halting = halting_probability(mean, shape)
    if halting == 1:
        return 1
    u = -math.log(halting)
    n_runs, chance = 1, (1 - halting) / _over(math.expm1(shape * u), shape, u)
    # Rounding could leave a little beyond the sum of all chances.
    while uniform >= chance > 0:
        uniform -= chance
        chance *= (1 - halting) * (n_runs + shape) / (n_runs + 1)
        n_runs += 1
    return n_runs


def _over(value, shape, limit):
    """Return value / shape, which tends to `limit` where the shape is 0."""
    return value / shape if shape > 0 else limit
