# SPDX-License-Identifier: BSD-3-Clause
"""Distributions of H, the squared sensitivity of a random projection.

A record changes a row by z, and the squared norm of the projected change is H = ‖zᵀU‖², where U is
drawn after z, freshly and independently. For unit z, the distribution of H is

- for k iid uniform unit columns: that of a sum of k iid Beta(1/2, (d-1)/2) (Rakotomamonjy &
  Ralaivola 2021, Lemma 1);
- for stacked Haar bases, k = m·d + r: that of m + Beta(r/2, (d-r)/2), with the same mean k/d and a
  smaller variance.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.special import log_ndtr, logsumexp

from ..checks import check_number, flag

# Largest number of rows and of columns of U.
MAX_SIZE = 10**7
# Values of H of smaller tail probabilities move no δ that can be resolved.
_RARE = 1e-17


class SensitivityLaw(NamedTuple):
    """Discrete distribution that stochastically dominates H / ‖z‖²."""

    # Shape (n_values,): support and probabilities.
    values: np.ndarray
    weights: np.ndarray
    # Remaining probability, which counts as an infinite sensitivity.
    infinity: float


def sensitivity_law(
    n_features: int, n_projections: int, orthogonal: bool = False, n_values: int = 60
) -> SensitivityLaw:
    """Discretise the distribution of H / ‖z‖² upwards, to about `n_values` values.

    All rounding is upwards, and a release with smaller H is a post-processing of one with larger
    H, so a privacy profile that is averaged over the result bounds the true one.

    Parameters
    ----------
    n_features, n_projections : int
        U is n_features × n_projections.
    orthogonal : bool, default=False
        Whether U stacks Haar-distributed orthonormal blocks.
    n_values : int, default=60
        Approximate size of the support.

    Returns
    -------
    SensitivityLaw

    Examples
    --------
    >>> law = sensitivity_law(784, 200)
    >>> mean = law.values @ law.weights
    >>> bool(200 / 784 < mean < 1.01 * 200 / 784)
    True
    """
    check_number("n_features", n_features, whole=True, most=MAX_SIZE)
    check_number("n_projections", n_projections, whole=True, most=MAX_SIZE)
    flag("orthogonal", orthogonal)
    check_number("n_values", n_values, whole=True, most=10**6)
    return _sensitivity_law(int(n_features), int(n_projections), bool(orthogonal), int(n_values))


@lru_cache(maxsize=64)
def _sensitivity_law(d: int, k: int, orthogonal: bool, n_values: int) -> SensitivityLaw:
    if d == 1:
        # In one dimension each direction is ±1, so H = k.
        return SensitivityLaw(np.array([float(k)]), np.ones(1), 0.0)
    if orthogonal:
        blocks, rest = divmod(k, d)
        if rest == 0:
            # Whole bases preserve norms, so H is constant.
            return SensitivityLaw(np.array([float(blocks)]), np.ones(1), 0.0)
        law = stats.beta(rest / 2, (d - rest) / 2)
        return _quantile_law(law, blocks, n_values)
    if k == 1:
        return _quantile_law(stats.beta(0.5, (d - 1) / 2), 0, n_values)
    return _coarsen(*_beta_sum(d, k), n_values)


def split_law(law: SensitivityLaw, noise_multiplier: float, n_values: int = 60) -> SensitivityLaw:
    """Move a distribution of H to about `n_values` of its values without raising its average.

    A value between two that are kept is split between them such that the mean of
    u(H) = Φ(√H / (2s)) is kept, with s the noise multiplier. The profile δ of a Gaussian release is
    convex in u at each ε, so that its average bounds the former one. With h = H/s², δ has the
    derivative φ(√h/2 - ε/√h) / (2√h), whose logarithm has the derivative
    ε²/(2h²) - 1/8 - 1/(2h): least at ε = 0, where δ is 2u - 1. It stays convex

    - where H is increased by a constant or multiplied by c < 1: -1/8 - 1/(2h) is then larger;
    - with sampling: of a removed or added record, and of any two of three releases, δ is a linear
      function of that of a Gaussian release at another ε;
    - for a sampled record that is replaced, with r = √h/2 and means ±r of rate q: δ has the
      derivative q(φ(r-x) + e^ε φ(r+x)) in r, at the x with likelihood ratio e^ε. Over that of u,
      this is 2q e^(ε/2) e^(-x²/2) cosh(y), y = rx - ε/2, which increases in r: since
      sinh(y) = (1/q - 1) sinh(ε/2) e^(r²/2), its logarithm has the derivative
      (x² - xr tanh(y) + r² tanh²(y)) / r ≥ 0;
    - for the larger of two dependent H by the union bound, which averages the upper half: the
      least over c of f(c) + 2E max(f(H) - f(c), 0), which does not decrease.
    """
    values, weights, infinity = law
    if values.size <= n_values:
        return law
    # Even steps of √H; the rarest values are all kept.
    tails = np.cumsum(weights[::-1])[::-1]
    rare = min(int(np.sum(tails >= _RARE)), values.size - 1)
    roots = np.linspace(math.sqrt(values[0]), math.sqrt(values[rare]), n_values)
    kept = np.r_[np.searchsorted(values[:rare], roots**2), range(rare, values.size)]
    kept = np.unique(kept)
    everything = np.arange(values.size)
    upper = np.searchsorted(kept, everything)
    lower = np.maximum(upper - 1, 0)
    log_u = log_ndtr(-np.sqrt(values) / (2 * noise_multiplier))
    at_lower, at_upper = log_u[kept[lower]], log_u[kept[upper]]
    with np.errstate(divide="ignore", invalid="ignore"):
        width = -np.expm1(at_upper - at_lower)
        # The margins cover the rounding of `log_ndtr`.
        share = -np.expm1(log_u - at_lower) / width + 1e-9 + 1e-15 * (1 - at_upper) / width
    # Without a width of its own, as under very much noise, a value is rounded up.
    share = np.where((everything == kept[upper]) | ~(share < 1), 1.0, share)
    total = np.bincount(upper, share * weights, kept.size)
    total += np.bincount(lower, (1 - share) * weights, kept.size)
    return SensitivityLaw(values[kept], total, infinity)


def log_mgf(
    t: np.ndarray, n_features: int, n_projections: int, orthogonal: bool = False
) -> np.ndarray:
    """Return log E exp(t H / ‖z‖²), or an upper bound, at each t ≥ 0; see `sensitivity_law`."""
    d, k = n_features, n_projections
    t = np.asarray(t, dtype=float)
    # H = k, exactly.
    if d == 1:
        return k * t
    if not orthogonal:
        return k * _log_hyp1f1(0.5, d / 2, t)
    blocks, rest = divmod(k, d)
    partial = _log_hyp1f1(rest / 2, d / 2, t) if rest else 0.0
    return blocks * t + partial


def _log_hyp1f1(a: float, b: float, t: np.ndarray) -> np.ndarray:
    """Return an upper bound on log ₁F₁(a; b; t) for 0 < a < b, t ≥ 0, tight to rounding.

    All terms of the series are positive, so it is summed in the log domain. From term 2t on they
    decrease at least geometrically by 1/2, so the last term bounds the remainder. For large t,
    where the series is too long to sum, it is bounded by exp(t), since it is E exp(tY) for Y ≤ 1;
    and, for t < b, by (1 - t/b)^-a: term by term, since (b)_n ≥ b^n.
    """
    t = np.asarray(t, dtype=float)
    cap = max(2000.0, min(4 * b, 20_000.0))
    short = t <= cap
    with np.errstate(divide="ignore", invalid="ignore"):
        # The factor covers the rounding of log1p.
        result = np.where(t < b, np.minimum(t, -a * np.log1p(-t / b) * (1 + 1e-12)), t)
    if short.any():
        n_terms = int(2 * t[short].max()) + 64
        n = np.arange(n_terms + 1.0)
        ratios = (a + n[:-1]) / ((b + n[:-1]) * n[1:])
        coefficients = np.cumsum(np.r_[0.0, np.log(ratios)])
        with np.errstate(divide="ignore", invalid="ignore"):
            log_t = np.log(t[short])
            terms = coefficients + np.where(n == 0, 0.0, n * log_t[:, None])
        total = np.logaddexp(logsumexp(terms, axis=1), terms[:, -1])
        # The slack covers the rounding of the sums.
        result[short] = np.minimum(total * (1 + 1e-9) + 1e-12, t[short])
    return result


def _n_tail(n_values: int) -> int:
    """Return the number of levels in the upper tail, which is finer than the rest."""
    return max(15, n_values // 4)


def _quantile_law(law: Any, offset: int, n_values: int) -> SensitivityLaw:
    """Discretise a continuous distribution upwards at its quantiles, finer in the upper tail."""
    # The last piece is rounded up to 1, the end of the support, so no mass remains. In many
    # dimensions 1 is far from all other values, so this piece must be extremely unlikely.
    n_tail = _n_tail(n_values)
    far = 10.0 ** -np.r_[np.linspace(2, 16, n_tail), 19, 23, 30, 50, 100]
    tails = np.unique(np.r_[np.linspace(1, 0, n_values + 1)[1:-1], far])[::-1]
    # A margin covers the rounding of the quantiles. Where isf fails in the tail, 1 is safe.
    values = law.isf(tails) * (1 + 1e-9)
    values = np.where(law.sf(values) <= tails, np.minimum(values, 1.0), 1.0)
    weights = -np.diff(np.r_[1.0, tails, 0.0])
    return SensitivityLaw(offset + np.r_[values, 1.0], weights, 0.0)


def _beta_sum(d: int, k: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the distribution of a sum of k iid Beta(1/2, (d-1)/2), each rounded up on a grid.

    The Chernoff bound on the tail beyond the grid also covers the wrap-around of the Fourier
    transform. Mass that the rounding of the transforms may lose is added to the last point. Returns
    edges, their masses, and that of the tail.
    """
    # The grid ends 14 standard deviations above the mean; mass beyond it is bounded, and charged.
    variance = k * 2 * (d - 1) / (d * d * (d + 2))
    top = min(1.005 * k, 1.01 * k / d + 14 * math.sqrt(variance) + 80 / d)
    step = max(1 / (200 * d), top / 2**20)
    edges = np.arange(math.ceil(top / step) + 2) * step
    # The mass of each cell is put at its upper edge.
    masses = np.diff(stats.beta(0.5, (d - 1) / 2).cdf(np.minimum(edges, 1.0)), prepend=0.0)

    transform = np.fft.rfft(masses)
    total = np.maximum(np.fft.irfft(transform**k, edges.size), 0.0)
    rounding = 4 * np.finfo(float).eps * math.log2(edges.size)
    total[-1] += rounding * edges.size * (k + 1) * np.mean(np.abs(transform) ** (k - 1))

    # Rounding up adds at most a step to each term.
    t = np.geomspace(1e-3, 1e4, 200) * d
    # Chernoff's bound holds at each t, so any set of them is valid.
    tail = np.min(k * _log_hyp1f1(0.5, d / 2, t) - t * (edges[-1] - k * step))
    return edges, total, math.exp(min(tail, 0.0))


def _coarsen(edges: np.ndarray, masses: np.ndarray, lost: float, n_values: int) -> SensitivityLaw:
    """Merge neighbouring grid points upwards into about `n_values` points."""
    # Rounded up to the last point of a group; the tail keeps its own levels, as δ is small.
    cumulative = np.cumsum(masses)
    levels = np.r_[
        np.linspace(0, cumulative[-1], n_values + 1)[1:],
        cumulative[-1] - 10.0 ** -np.linspace(2, 14, _n_tail(n_values)),
    ]
    last = np.searchsorted(cumulative, levels[levels > 0])
    last = np.unique(np.minimum(np.r_[last, masses.size - 1], masses.size - 1))
    return SensitivityLaw(edges[last], np.diff(np.r_[0.0, cumulative[last]]), lost)
