# SPDX-License-Identifier: BSD-3-Clause
"""Rényi moments of one event: unsampled, sampled, or private selection.

Log-moments are (α-1)·D_α, with D_α the Rényi divergence of order α.
"""

import math
from functools import lru_cache

import attrs
import numpy as np
from dp_accounting import DpEvent
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from scipy.optimize import brentq
from scipy.special import gammaln, log_ndtr, logsumexp, ndtr

from .directions import log_mgf
from .events import SlicedGaussianDpEvent, compares_any_two, flatten, split_sampling

# Orders of the Rényi moments. Those of sampled events are computed at whole orders up to 256 and,
# of Gaussian noise on Poisson samples, at `_FRACTIONAL` ones; the convex (α-1)·D_α is interpolated
# linearly between them.
_MAX_SAMPLED_ORDER = 256
ORDERS = np.unique(
    np.r_[
        1 + np.geomspace(1e-2, 1, 25),
        np.linspace(2, 8, 61),
        np.linspace(8, 20, 49),
        np.arange(21, _MAX_SAMPLED_ORDER + 1),
        2.0 ** np.arange(9, 19),
    ]
)
_FRACTIONAL = ORDERS[ORDERS <= 20]
_SAMPLED_ORDERS = np.union1d(np.arange(_MAX_SAMPLED_ORDER + 1), _FRACTIONAL)
# Bounds the rounding of the sums over a sampled step.
_ROUNDING = 1e-10
# Smallest noise multipliers for quadrature, at few whole orders and at fractional ones: the grid
# would be too long below.
_MIN_INTEGRATED, _MIN_FRACTIONAL = 0.01, 0.2


def _log_moment(base: DpEvent, orders: np.ndarray, relation: str) -> np.ndarray:
    """Return (α-1)·D_α of an unsampled release: log E exp(α(α-1)H / (2σ²))."""
    t = orders * (orders - 1) / (2 * base.noise_multiplier**2)
    if not isinstance(base, SlicedGaussianDpEvent):
        return t
    # Rounding of projected rows can enlarge the difference of two of them, not one row.
    beside = base.beside + (base.rounding if relation == "replace_one" else 0.0)
    return log_mgf(t, base.n_features, base.n_projections, base.orthogonal) + t * beside


@lru_cache(maxsize=64)
def _sampled_log_moment(base: DpEvent, rate: float, sampling: str, relation: str) -> np.ndarray:
    """Return (α-1)·D_α of a sampled release at `_SAMPLED_ORDERS`.

    Poisson sampling under ``zero_out`` has a closed form, which holds for the mixture over H as for
    each H. Otherwise the pair is P = (1-q)A + qB and Q = (1-q)A + qC. No two of A, B and C are
    further apart than two records are: so joint convexity bounds the moment, and, with slices, so
    does the bound of Wang, Balle & Kasiviswanathan 2019, Theorem 9. Both are averages of moments
    of single pairs; so they hold for averages over H, and, by the inequality of Cauchy and
    Schwarz, for records of two classes. Other bounds depend on the sampling.
    """
    orders = np.arange(_MAX_SAMPLED_ORDER + 1.0)
    is_sliced = isinstance(base, SlicedGaussianDpEvent)
    is_pair = sampling == "poisson" and not compares_any_two(base, relation)
    # All of these are bounds, so the smallest one is.
    bounds = []
    if is_pair and relation == "zero_out":
        bounds.append(_mixture_log_moment(base, rate, _MAX_SAMPLED_ORDER))
    else:
        moment = _log_moment(base, orders, relation)
        bounds.append(np.logaddexp(math.log1p(-rate), math.log(rate) + moment))
    if is_pair and relation == "replace_one":
        bounds.append(_replace_log_moment(base, rate))
    elif not is_pair and is_sliced:
        bounds.append(_wang_log_moment(moment, rate))
    elif not is_pair:
        bounds.append(_any_two_log_moment(1 / base.noise_multiplier, rate))
    # Linear interpolation of a convex function lies above it.
    bounds = [np.interp(_SAMPLED_ORDERS, orders, bound) for bound in bounds]
    if is_pair and not is_sliced and base.noise_multiplier > _MIN_INTEGRATED:
        bounds.append(_integrated_log_moment(base, rate, relation))
    return np.min(bounds, axis=0)


def _log_binomials(n_orders: int) -> np.ndarray:
    """Return log C(α, j) for whole α and j up to `n_orders`; -inf where j > α."""
    j = np.arange(n_orders + 1.0)
    # `maximum` avoids the poles of gammaln; the next line masks these entries.
    result = gammaln(j[:, None] + 1) - gammaln(j + 1) - gammaln(np.maximum(j[:, None] - j, 0) + 1)
    result[j[:, None] < j] = -np.inf
    return result


def _expand(log_terms: np.ndarray, rate: float) -> np.ndarray:
    """Return log Σ_j C(α,j) (1-q)^(α-j) q^j·exp(log_terms[j]) for each α."""
    j = np.arange(len(log_terms))
    stay_out = np.maximum(j[:, None] - j, 0) * math.log1p(-rate)
    log_terms = stay_out + j * math.log(rate) + log_terms
    return logsumexp(_log_binomials(len(j) - 1) + log_terms, axis=1)


def _mixture_log_moment(base: DpEvent, rate: float, largest: int) -> np.ndarray:
    """Return log E_A((1-q) + q·B/A)^α at α = 0, 1, ..., `largest`; B is A with one more record."""
    return _expand(_log_moment(base, np.arange(largest + 1.0), "zero_out"), rate)


def _wang_log_moment(moment: np.ndarray, rate: float) -> np.ndarray:
    """Return the bound of Wang, Balle & Kasiviswanathan 2019, Theorem 9, from unsampled moments."""
    j = np.arange(len(moment))
    terms = j * math.log(rate) + _log_binomials(len(j) - 1) + moment + math.log(2)
    # Theorem 9 has a sharper term at order 2: min(4(e^ε(2) - 1), 2e^ε(2)).
    terms[:, 2] += min(math.log(2) + math.log(-math.expm1(-moment[2])), 0.0)
    # Orders 0 and 1: log 1, and no first-order term.
    terms[:, 0], terms[:, 1] = 0.0, -np.inf
    return logsumexp(terms, axis=1)


def _any_two_log_moment(mu: float, rate: float) -> np.ndarray:
    """Return log-moments of the pair if no two of A, B and C are further apart than μ.

    Its profile is h(γ) = q·E(L - u)₊ for γ ≥ 1, at u = 1 + (γ-1)/q, with L the likelihood ratio
    of two Gaussians μ apart and the mean that of the lower one; below 1 it is 1 - γ + γ·h(1/γ)
    (see `loss_distributions`). A moment is an integral of the profile,
    1 + α(α-1)∫γ^(α-2)·(h(γ) - (1-γ)₊)dγ over all γ ≥ 0, so that of a dominating pair is larger.
    Here it is 1 + E[X^α + X^(1-α) - 2 - q(L-1); L ≥ 1], with X = 1 + q(L-1). Powers of L have
    E[L^j; L ≥ 1] = exp(j(j-1)μ²/2)·Φ((j - 1/2)μ). X^(1-α) is convex in L: between two points it
    is at most its chord.
    """
    j = np.arange(_MAX_SAMPLED_ORDER + 1.0)
    above = j * (j - 1) * mu**2 / 2 + log_ndtr((j - 0.5) * mu)
    chance, mean = np.exp(above[:2])

    width = 0.02
    x = mu / 2 + width * np.arange(600)
    log_l = mu * (x - mu / 2)
    log_x = np.logaddexp(math.log1p(-rate), math.log(rate) + log_l)
    values = np.exp(np.minimum(1 - j[:, None], 0) * log_x)
    masses = -np.diff(ndtr(-x), append=0.0)
    # How far towards its upper end the mean of L in a piece is; beyond the last point, at it.
    means = -np.diff(ndtr(mu - x), append=0.0) * np.exp(-log_l)
    shares = np.zeros_like(x)
    # expm1 overflows beyond; then all mass stays at the lower ends, where values are largest.
    if mu * width < 500:
        shares[:-1] = np.clip((means - masses)[:-1] / math.expm1(mu * width), 0, masses[:-1])
    inverse = values @ masses + np.diff(values, append=0.0) @ shares

    positive = np.logaddexp(_expand(above, rate), np.log1p(inverse))
    negative = 2 * chance + rate * (mean - chance)
    return np.maximum(positive + np.log1p(-negative * np.exp(-positive)), 0.0)


def _replace_log_moment(base: DpEvent, rate: float) -> np.ndarray:
    """Return log-moments of a replaced record, where each adds at most half the diameter.

    Hölder's inequality separates them: with p = (2α-1)/α,
    E_A[(P/A)^α·(Q/A)^(1-α)] ≤ E_A[(P/A)^(2α-1)]^(1/p) · E_A[(A/Q)^(2α-1)]^(1-1/p). The first is
    a moment of the mixture against A, and so is the second, of A against the mixture, at order 2α:
    it is at most that of the mixture against A (Mironov, Talwar & Zhang 2019, Theorem 5). For
    weak steps this is exact to second order. The means may be taken over the directions, too: the
    two records may be of any classes, and their H may depend on each other in any way.
    """
    # Half the diameter: either record alone against none.
    half = attrs.evolve(base, noise_multiplier=2 * base.noise_multiplier)
    alone = _mixture_log_moment(half, rate, 2 * _MAX_SAMPLED_ORDER)
    alpha = np.arange(1, _MAX_SAMPLED_ORDER + 1)
    bound = (alpha * alone[2 * alpha - 1] + (alpha - 1) * alone[2 * alpha]) / (2 * alpha - 1)
    return np.r_[0.0, bound]


def _integrated_log_moment(base: DpEvent, rate: float, relation: str) -> np.ndarray:
    """Return log-moments of (1-q)N(0,1) + qN(r,1) against Q by quadrature, at `_SAMPLED_ORDERS`.

    Under ``zero_out`` r is 1/s, and Q is N(0,1). Under ``replace_one`` r is 1/(2s), and Q is
    (1-q)N(0,1) + qN(-r,1): the pair dominates every pair of replaced records (see
    `loss_distributions`). With a(x) = 1-q + q·exp(rx - r²/2), and b(x) = 1 or a(-x), the moment is
    ∫f for f = φ·a^α·b^(1-α). In the strip |Im x| ≤ w, where w ≤ π/(2r),
    |f(x + iy)| ≤ exp(w²/2)·φ(x)·a(x)^α·(1-q)^(1-α), since cos(ry) ≥ 0; the integral M of this is
    one of ``zero_out``. So the trapezoidal rule of step h errs by 2M / (exp(2πw/h) - 1) at most
    (Trefethen & Weideman 2014, Theorem 5.1), which is added, as is the truncation error: below -14
    and above 2αr + 14 terms are at most φ(14)·(1-q)^(1-α). Log-moments are convex, so they are
    interpolated between the orders at which they are computed.
    """
    is_replaced = relation == "replace_one"
    r = (0.5 if is_replaced else 1.0) / base.noise_multiplier
    # Whole orders under ``zero_out`` have a closed form.
    largest = int(min(_MAX_SAMPLED_ORDER, max(2, 200 / r))) if is_replaced else 2
    alpha = np.rint(np.geomspace(2, largest, 48))
    if base.noise_multiplier > _MIN_FRACTIONAL:
        alpha = np.append(alpha, _FRACTIONAL)
    alpha = np.unique(alpha)
    width = min(math.pi / (2 * r), 8.0)
    # With this step the error of the rule is e^-45 times M.
    exponent = 45 + width**2 / 2
    step = 2 * math.pi * width / exponent
    x = np.arange(-14, 2 * alpha[-1] * r + 14 + step, step)
    log_a, log_b = (
        np.logaddexp(math.log1p(-rate), math.log(rate) + sign * r * x - r * r / 2)
        for sign in (1, -1)
    )
    log_phi = -x * x / 2 + math.log(step / math.sqrt(2 * math.pi))
    log_f = log_phi + alpha[:, None] * log_a
    total = alone = logsumexp(log_f, axis=1)
    if is_replaced:
        total = logsumexp(log_f + (1 - alpha[:, None]) * log_b, axis=1)
    # 2.1 covers the 2 and the -1 of the error's formula, and that of the sum for M; e^-90 exceeds
    # the terms that are cut off.
    error = np.logaddexp(math.log(2.1) - 45 + alone, -90.0)
    total = np.logaddexp(total, is_replaced * (1 - alpha) * math.log1p(-rate) + error)
    return np.interp(_SAMPLED_ORDERS, np.r_[1, alpha], np.r_[0.0, total], right=np.inf)


def rdp_of(event: DpEvent, relation: str, orders: np.ndarray) -> np.ndarray:
    """Return the Rényi divergence D_α of one leaf event, at increasing orders α > 1.

    It is inf where no bound is computed.
    """
    if isinstance(event, RepeatAndSelectDpEvent):
        return _selected(event, relation, orders)
    base, rate, sampling = split_sampling(event)
    if sampling == "none":
        return _log_moment(base, orders, relation) / (orders - 1)
    moment = _sampled_log_moment(base, rate, sampling, relation) + _ROUNDING
    return np.interp(orders, _SAMPLED_ORDERS, moment, right=np.inf) / (orders - 1)


def _selected(event: DpEvent, relation: str, orders: np.ndarray) -> np.ndarray:
    """Return D_α of the best of a random number of runs: Papernot & Steinke 2022, Theorem 2.

    The theorem holds for any second order, and moments increase with the first order.
    """
    run = sum(count * rdp_of(e, relation, orders) for e, count in flatten([event.event]).items())
    halting = run_halting_probability(event.mean, event.shape)
    second = np.min((1 - 1 / orders) * run - math.log(halting) / orders)
    bound = run + math.log(event.mean) / (orders - 1) + (1 + event.shape) * second
    # A Rényi divergence increases with its order, so a bound at a larger order holds at smaller
    # ones.
    return np.minimum.accumulate(bound[::-1])[::-1]


def run_halting_probability(mean: float, shape: float) -> float:
    """Return the halting probability γ of the number of runs of a private selection.

    The number of runs is at least 1, of the truncated negative binomial distribution of Papernot &
    Steinke (ICLR 2022, Definition 1), with shape η ≥ 0: geometric for η = 1, logarithmic for η = 0.
    Its mean is η (1 - γ) / (γ (1 - γ^η)), and its probabilities p_k ∝ (1 - γ)^k Γ(k + η) / k! have
    p_1 = η (1 - γ) / (γ^-η - 1).

    Examples
    --------
    >>> run_halting_probability(10.0, 1.0)
    0.1
    """
    if mean == 1:
        return 1.0
    if shape == 1:
        return 1 / mean
    log_mean = math.log(mean)

    def excess(u: float) -> float:
        # γ = e^-u. The mean increases in u and in the shape, and is at least e^(u/2).
        return math.log(math.expm1(u) / _over(-math.expm1(-shape * u), shape, u)) - log_mean

    return math.exp(-brentq(excess, 1e-12 * log_mean, 2 * log_mean, xtol=1e-15, rtol=1e-14))


def number_of_runs(uniform: float, mean: float, shape: float) -> int:
    """Return the quantile of the number of runs at a uniform number in [0, 1)."""
    halting = run_halting_probability(mean, shape)
    if halting == 1:
        return 1
    u = -math.log(halting)
    n_runs, chance = 1, (1 - halting) / _over(math.expm1(shape * u), shape, u)
    # Rounded probabilities may sum to less than 1.
    while uniform >= chance > 0:
        uniform -= chance
        chance *= (1 - halting) * (n_runs + shape) / (n_runs + 1)
        n_runs += 1
    return n_runs


def _over(value: float, shape: float, limit: float) -> float:
    """Return value / shape, which tends to `limit` where the shape is 0."""
    return value / shape if shape > 0 else limit
