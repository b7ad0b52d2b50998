"""Rényi moments of one event, sampled, selected or plain, in closed form."""

import math
from functools import lru_cache

import numpy as np
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from scipy.special import gammaln, logsumexp

from .directions import log_mgf
from .events import SlicedGaussianDpEvent, flatten, split_sampling
from .repetitions import halting_probability

__all__ = ["ORDERS", "rdp_of"]

# Orders of the Rényi moments; sampled events have them at whole orders up to 256, with linear
# interpolation of the convex (α-1)·D_α between them.
_MAX_SAMPLED_ORDER = 256
ORDERS = np.unique(
    np.r_[
        1 + np.geomspace(1e-2, 1, 25),
        np.linspace(2, 20, 73),
        np.arange(21, _MAX_SAMPLED_ORDER + 1),
        2.0 ** np.arange(9, 19),
    ]
)
# Covers the rounding of the sums over a sampled step.
_ROUNDING = 1e-10


def _log_moment(base, orders):
    """(α-1)·D_α of an unsampled release: log E exp(α(α-1)H / (2σ²))."""
    t = orders * (orders - 1) / (2 * base.noise_multiplier**2)
    if not isinstance(base, SlicedGaussianDpEvent):
        return t
    return log_mgf(t, base.n_features, base.n_projections, base.orthogonal) + t * base.beside


@lru_cache(maxsize=64)
def _sampled_log_moment(base, rate, sampling, relation):
    """(α-1)·D_α at α = 0, 1, ..., 256 of a sampled release.

    Poisson sampling under ``zero_out``: the closed form, which holds for the mixture over H as for
    each H. Otherwise the pair is (1-q)A + qB and (1-q)A + qC, and no two of A, B and C are further
    apart than two records are, with Poisson sampling as with a fixed size: the smaller of Wang,
    Balle & Kasiviswanathan 2019, Theorem 9, and of joint convexity. Both are averages of moments
    of single pairs; so they hold for averages over H, and, by the inequality of Cauchy and
    Schwarz, for records of two classes.
    """
    j = np.arange(_MAX_SAMPLED_ORDER + 1.0)
    log_comb = gammaln(j[:, None] + 1) - gammaln(j + 1) - gammaln(np.maximum(j[:, None] - j, 0) + 1)
    log_comb[j[:, None] < j] = -np.inf
    moment = _log_moment(base, j)
    if sampling == "poisson" and relation == "zero_out":
        stay_out = np.maximum(j[:, None] - j, 0) * math.log1p(-rate)
        return logsumexp(log_comb + stay_out + j * math.log(rate) + moment, axis=1)
    terms = j * math.log(rate) + log_comb + moment + math.log(2)
    second = moment[2]
    terms[:, 2] += min(math.log(2) + math.log(-math.expm1(-second)), 0.0)
    terms[:, 0], terms[:, 1] = 0.0, -np.inf
    convexity = np.logaddexp(math.log1p(-rate), math.log(rate) + moment)
    return np.minimum(logsumexp(terms, axis=1), convexity)


def rdp_of(event, relation, orders):
    """D_α of one leaf event at increasing `orders` > 1; inf where no bound is computed."""
    if isinstance(event, RepeatAndSelectDpEvent):
        return _selected(event, relation, orders)
    base, rate, sampling = split_sampling(event)
    if sampling == "none":
        return _log_moment(base, orders) / (orders - 1)
    moment = _sampled_log_moment(base, rate, sampling, relation) + _ROUNDING
    whole = np.arange(1, _MAX_SAMPLED_ORDER + 1)
    return np.interp(orders, whole, moment[1:], right=np.inf) / (orders - 1)


def _selected(event, relation, orders):
    """D_α of the best of a random number of runs: Papernot & Steinke 2022, Theorem 2.

    It holds for any order in its second place, and moments grow with the order in the first.
    """
    run = sum(count * rdp_of(e, relation, orders) for e, count in flatten([event.event]).items())
    halting = halting_probability(event.mean, event.shape)
    second = np.min((1 - 1 / orders) * run - math.log(halting) / orders)
    bound = run + math.log(event.mean) / (orders - 1) + (1 + event.shape) * second
    return np.minimum.accumulate(bound[::-1])[::-1]
