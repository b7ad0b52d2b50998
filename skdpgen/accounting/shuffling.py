# SPDX-License-Identifier: BSD-3-Clause
"""Privacy amplification by shuffling of local releases."""

import math

import numpy as np
from scipy import stats
from scipy.optimize import brentq

# Largest number of groups of numbers of clones, which bounds the time; fewer make ε larger.
_MAX_GROUPS = 1000
# Probability of the tails of the number of clones that are charged to δ, relative to δ.
_TAIL_SHARE = 1e-4
# Bounds the rounding of binomial probabilities with large counts.
_ROUNDING = 1e-8


def shuffled_epsilon(local_epsilon: float, n_records: int, delta: float) -> float:
    """Return ε at `delta` of `n_records` shuffled releases, each of pure ε₀ = `local_epsilon`.

    Each record is randomised on its own by the same randomiser R. Let a record be x or x'. Every
    other record y has R(y) ≥ e^-ε₀·R(x) and R(y) ≥ e^-ε₀·R(x'), and so it answers, with a
    probability of e^-ε₀, as R(x) or R(x') would, by a fair coin: it is a clone. With ε₀ between
    them, R(x) and R(x') are mixtures of two laws, of weights w and 1-w, and 1-w and w, where w is
    e^ε₀/(e^ε₀ + 1); so a clone answers by either law with probability 1/2. After shuffling, x and
    x' differ only in the number of answers by each law. This is Theorem 3.2 of [1]_: with C clones
    of law Bin(n-1, e^-ε₀), A of law Bin(C, 1/2) and D a coin of probability w, δ(ε) is at most the
    hockey-stick divergence of (A + D, C - A + 1 - D) from (A + 1 - D, C - A + D). It has no
    condition on ε₀. It is computed numerically here; Theorem 3.1 bounds it in closed form.

    *Given C = c*, the first number is sufficient, since both sum to c + 1. Let b be the
    probabilities of Bin(c, 1/2). Their ratio b(m-1)/b(m) = m/(c-m+1) increases in m, and with it
    the likelihood ratio

        (w b(m-1) + (1-w) b(m)) / ((1-w) b(m-1) + w b(m)),

    so that the best event is that the number is at least some m, with a gain of
    (w - (1-w)e^ε)·b(m-1) - (e^ε - 1)·P(A ≥ m).

    *All rounding is upwards.* A release with more clones is a post-processing of one with fewer, as
    c is visible and clones can be added: so e^-ε₀ is rounded down, a group of neighbouring c counts
    as the smallest of them, and the probability of omitted c is added to δ. The result is at most
    ε₀.

    References
    ----------
    .. [1] Feldman, McMillan & Talwar, "Hiding Among the Clones", FOCS 2021.

    Examples
    --------
    >>> round(shuffled_epsilon(5.0, 400_000, 1e-6), 3)
    0.141
    """
    # Rounding of the given ε₀, upwards.
    epsilon_0 = local_epsilon * (1 + 1e-12)
    clones = _clones(epsilon_0, n_records, _TAIL_SHARE * delta)

    def excess(epsilon: float) -> float:
        return _divergence(epsilon, epsilon_0, *clones) - delta

    if epsilon_0 == 0 or excess(0.0) <= 0:
        return 0.0
    # Shuffled answers can never cost more than the answers themselves: post-processing.
    if excess(local_epsilon) >= 0:
        return local_epsilon
    epsilon = brentq(excess, 0.0, local_epsilon, xtol=1e-9, rtol=1e-9)
    while excess(epsilon) > 0:
        epsilon += 1e-9
    return min(epsilon, local_epsilon)


def _clones(
    epsilon_0: float, n_records: int, left_out: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return numbers of clones, their probabilities, and the probability of all other numbers."""
    law = stats.binom(n_records - 1, math.exp(-epsilon_0) * (1 - 1e-12))
    low, high = int(law.ppf(left_out / 2)), int(law.isf(left_out / 2))
    n_groups = min(high - low + 1, _MAX_GROUPS)
    edges = np.unique(np.linspace(low, high + 1, n_groups + 1).astype(np.int64))
    # `edges - 1`: probabilities of values below each edge.
    below = law.cdf(edges - 1)
    # Differences of the larger tail would lose digits.
    above = law.sf(edges - 1)
    masses = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
    return edges[:-1], masses, below[0] + above[-1]


def _divergence(
    epsilon: float, epsilon_0: float, clones: np.ndarray, masses: np.ndarray, left_out: float
) -> float:
    """Return the mean of the hockey-stick divergence over the number of clones."""
    if epsilon >= epsilon_0:
        return 0.0
    more, less = 1 / (1 + math.exp(-epsilon_0)), 1 / (1 + math.exp(epsilon_0))
    gain, loss = more - less * math.exp(epsilon), math.expm1(epsilon)
    # The best event begins where the likelihood ratio exceeds e^ε. It is optimal, so rounding its
    # edge has little effect.
    share = (more * math.exp(epsilon) - less) / (math.tanh(epsilon_0 / 2) * (1 + math.exp(epsilon)))
    first = np.clip(np.floor((clones + 1) * share) + 1, 0, clones + 1)
    own = gain * stats.binom.pmf(first - 1, clones, 0.5)
    deltas = np.maximum(own - loss * stats.binom.sf(first - 1, clones, 0.5), 0) + _ROUNDING * own
    # A number of clones cannot reveal more than the record's own answer does.
    return float(masses @ np.minimum(deltas, gain)) + left_out
