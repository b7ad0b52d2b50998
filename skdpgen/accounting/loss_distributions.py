# SPDX-License-Identifier: BSD-3-Clause
"""Privacy loss distributions of events, sampled or not, and their composition on one grid.

A privacy profile maps an array of ε, and the largest change μ of the mean in units of the noise, to
δ.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

import numpy as np
from dp_accounting import DpEvent, LaplaceDpEvent
from dp_accounting.pld.pld_pmf import PLDPmf, create_pmf_pessimistic_connect_dots_fixed_gap
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from scipy.special import log_ndtr, ndtr, ndtri

from .directions import SensitivityLaw, sensitivity_law, split_law
from .events import SlicedGaussianDpEvent, compares_any_two, pure_epsilon, split_sampling

# Maps ε, μ and, for a sampled release, the rate to δ.
Profile = Callable[..., np.ndarray]

# e^ε leaves the range of a float from 709 on; its 1 is beyond the digits of doubles from 37 on.
_FAR = 500.0
# A probability far below the rounding of sums of about 1.
NEGLIGIBLE = 1e-19


@dataclass(frozen=True)
class LossGrid:
    """Constants of the grids on which ``"pld"`` composes privacy losses."""

    # Losses that are small beside the step vary more on the grid than they do, by up to step²/4:
    # an eighth of their standard deviation adds at most 1/256 to their variance.
    step_per_std: float = 0.125
    # The error of a grid is about step²/8 a repetition and adds up: 0.016 bounds it by 0.002.
    max_squared_step: float = 0.016
    max_step: float = 1e-3
    min_step: float = 1e-6
    # Points on one side of 0, which bounds memory and time.
    max_points: int = 50_000
    # Share of δ that is charged at once for losses beyond the grid.
    tail_share: float = 1e-4
    # Rounding of profiles and Fourier transforms costs 1e-15 a step. It is visible from about a
    # hundred times that.
    resolution: float = 1e-13
    # The step of a grid of `max_points` for larger losses exceeds 2.
    max_loss: float = 1e5
    # exp of an ε beyond it leaves the range of a float in dp-accounting's inversion.
    max_inverted: float = 500.0


LOSS_GRID = LossGrid()


def gaussian_delta(epsilon: np.ndarray, mu: float) -> np.ndarray:
    """Return the profile of the Gaussian mechanism (Balle & Wang 2018, equation 6)."""
    epsilon = np.asarray(epsilon, dtype=float)
    if mu == 0:
        return np.maximum(0.0, -np.expm1(epsilon))
    log_first = log_ndtr(mu / 2 - epsilon / mu)
    log_second = np.minimum(epsilon + log_ndtr(-mu / 2 - epsilon / mu), log_first)
    return np.exp(log_first) * -np.expm1(log_second - log_first)


def _amplified(epsilon: np.ndarray, mu: float, rate: float) -> np.ndarray:
    """Return q·δ_Gauss(log(1 + (e^ε - 1)/q), μ), for ε > log(1-q)."""
    with np.errstate(over="ignore"):
        inner = np.log1p(np.expm1(epsilon) / rate)
    inner = np.where(epsilon < _FAR, inner, epsilon - math.log(rate))
    return rate * gaussian_delta(inner, mu)


def _remove_profile(epsilon: np.ndarray, mu: float, rate: float) -> np.ndarray:
    """Return the profile of (1-q)N(0,1) + qN(μ,1) against N(0,1)."""
    above = epsilon > math.log1p(-rate)
    delta = -np.expm1(np.where(above, 0.0, epsilon))
    delta[above] = _amplified(epsilon[above], mu, rate)
    return delta


def _replace_profile(epsilon: np.ndarray, mu: float, rate: float) -> np.ndarray:
    """Return the profile of (1-q)N(0,1) + qN(r,1) against (1-q)N(0,1) + qN(-r,1), r = μ/2, ε ≥ 0.

    The pair dominates every two rows of norm at most r: among events S with N(0,1)(S) = s, the
    half-line maximises N(a,1)(S) and minimises N(b,1)(S) at once, with a = r and b = -r.
    """
    r = mu / 2
    # Likelihood ratio e^ε at x: log u = ε/2 + arcsinh(B), u = exp(rx), in the log domain.
    with np.errstate(divide="ignore"):
        log_sinh = epsilon / 2 + np.log(-np.expm1(-epsilon)) - math.log(2)
    log_b = math.log1p(-rate) + log_sinh - math.log(rate) + r * r / 2
    x = (epsilon / 2 + np.logaddexp(log_b, np.logaddexp(2 * log_b, 0) / 2)) / r
    with np.errstate(over="ignore", invalid="ignore"):
        absent = -(1 - rate) * ndtr(-x) * np.expm1(epsilon)
    absent = np.where(epsilon < _FAR, absent, -(1 - rate) * np.exp(epsilon + log_ndtr(-x)))
    return absent + rate * (ndtr(r - x) - np.exp(epsilon + log_ndtr(-x - r)))


def _swap(profile: Profile) -> Profile:
    """Return the profile of (Q, P) from that of (P, Q): 1 - e^ε + e^ε·δ(-ε)."""
    return lambda epsilon, *args: -np.expm1(epsilon) + np.exp(epsilon) * profile(-epsilon, *args)


def _symmetric(profile: Profile) -> Profile:
    """Use `profile` for ε ≥ 0 in both directions (Zhu, Dong & Wang 2022).

    With q·δ_Gauss(log(1 + (e^ε - 1)/q), μ), this dominates every pair (1-q)A + qB and (1-q)A + qC
    such that no two of A, B and C are further apart than μ, and so one sampled step that replaces
    a record: A is the release without it, given all other coins, and B and C are those with it and
    with the other. Let γ be 1 + (e^ε - 1)/q and β = e^ε/γ, which is at most 1. Then

        (1-q)A + qB - e^ε ((1-q)A + qC) = q (B - γ ((1-β)A + βC)),

    since γβq = e^ε q, and γ(1-β)q = γq - e^ε q = (e^ε - 1)(1-q). The hockey-stick divergence of B
    from (1-β)A + βC is, at any γ, at most the same mean of those from A and from C (Balle, Barthe
    & Gaboardi 2018, Theorem 2), which are at most that of two Gaussians μ apart. With B and C
    exchanged this bounds negative ε, by 1 - e^ε + e^ε·δ(-ε). Both together are the profile of a
    pair, which composes adaptively: as a function of e^ε it is convex on both sides of 1, and at 1
    its slope rises by (1-q)(1 - 2Φ(-μ/2)) ≥ 0. The average over H of such profiles is one, too.
    """

    def symmetric(epsilon: np.ndarray, *args: float) -> np.ndarray:
        delta = profile(np.abs(epsilon), *args)
        below = np.minimum(epsilon, 0)
        return np.where(epsilon >= 0, delta, -np.expm1(below) + np.exp(below) * delta)

    return symmetric


def _average(
    profile: Profile, epsilon: np.ndarray, law: SensitivityLaw, noise_multiplier: float
) -> np.ndarray:
    """Return the mean of `profile(ε, μ)` over the distribution of H.

    It is exact: U is public and independent of the rows, so δ is a mean over U.
    """
    # 1e-15 covers the rounding of the profiles. Far out that of ε, in its logarithms, is larger.
    delta = law.infinity + np.where(np.abs(epsilon) < _FAR, 1e-15, 1e-15 * np.abs(epsilon))
    for value, weight in zip(law.values, law.weights, strict=True):
        delta += weight * profile(epsilon, math.sqrt(value) / noise_multiplier)
    return delta


def _pure_profile(event: DpEvent) -> Profile:
    """Return the profile, for ε ≥ 0, of the pair that dominates a release of pure ε.

    Randomised response gives the label itself with probability a, and any other with b < a: its
    profile is a - b e^ε. Laplace noise on one number that changes by the whole sensitivity, of a
    loss of at most Δ, has 1 - e^((ε-Δ)/2). It dominates changes of several numbers, of losses of at
    most Δ_i with ΣΔ_i = Δ: any ε in [0, Δ] is a sum of ε_i in [0, Δ_i], at which number i has
    δ_i = 1 - e^((ε_i-Δ_i)/2), and together they have at most 1 - Π(1-δ_i) = 1 - e^((ε-Δ)/2) at ε.
    """
    if isinstance(event, LaplaceDpEvent):
        return lambda epsilon: -np.expm1(np.minimum(epsilon - 1 / event.noise_multiplier, 0) / 2)
    other = event.noise_parameter / event.num_buckets
    own = 1 - event.noise_parameter + other
    return lambda epsilon: np.maximum(own - other * np.exp(epsilon), 0)


def _pmf(
    profile: Callable[[np.ndarray], np.ndarray], step: float, low: float, high: float
) -> PLDPmf:
    """Return a pessimistic discretisation of the profile that dominates all neighbours."""
    # Rounded outwards, so that the grid holds both ends.
    first, last = math.floor(low / step), math.ceil(high / step)
    delta = profile(np.arange(first, last + 1) * step)
    # A profile decreases in ε; rounding may break that, and the discretisation needs it.
    delta = np.minimum.accumulate(np.clip(delta, 0.0, 1.0))
    return create_pmf_pessimistic_connect_dots_fixed_gap(step, first, last, delta)


def _law_of(base: DpEvent) -> SensitivityLaw:
    """Return the distribution of the squared sensitivity H of a base event."""
    if not isinstance(base, SlicedGaussianDpEvent):
        return SensitivityLaw(np.ones(1), np.ones(1), 0.0)
    # Fine, since values are rounded up; then on few values, since profiles are averaged over them.
    law = sensitivity_law(base.n_features, base.n_projections, base.orthogonal, n_values=5000)
    law = split_law(law, base.noise_multiplier)
    return law._replace(values=law.values + base.beside)


def _laws_of_change(base: DpEvent, relation: str) -> list[SensitivityLaw]:
    """Return the distributions of H, one for each type of neighbours.

    A record that is replaced by one of another class changes two rows, each by at most half of the
    largest change of one row of one class: H is at most half of the larger of two.
    """
    law = _law_of(base)
    if relation == "replace_one" and isinstance(base, SlicedGaussianDpEvent):
        law = law._replace(values=law.values + base.rounding)
    if relation == "zero_out" or getattr(base, "n_classes", 1) == 1:
        return [law]
    larger = _law_of_larger(law)
    return [law, larger._replace(values=larger.values / 2)]


def _law_of_larger(law: SensitivityLaw) -> SensitivityLaw:
    """Return a bound on the distribution of the larger of two dependent H, by the union bound."""
    # The union bound may exceed 1.
    tail = np.minimum(1.0, 2 * (np.cumsum(law.weights[::-1])[::-1] + law.infinity))
    infinity = min(1.0, 2 * law.infinity)
    return SensitivityLaw(law.values, -np.diff(np.r_[tail, infinity]), infinity)


def largest_loss(event: DpEvent, chance: float = NEGLIGIBLE) -> float:
    """Return a privacy loss that a step exceeds with a probability of about `chance`.

    Larger losses count as infinite, so an inexact result is safe.
    """
    if (pure := pure_epsilon(event)) is not None:
        return pure
    base, rate, sampling = split_sampling(event)
    # The record is in a step with probability `rate` only.
    chance = min(chance / rate, 0.01)
    law = _law_of(base)
    beyond = np.cumsum(law.weights[::-1])[::-1] - law.weights
    mu = math.sqrt(law.values[np.argmax(beyond <= chance)]) / base.noise_multiplier
    loss = mu * mu / 2 - ndtri(chance) * mu
    if sampling == "none":
        return loss
    return float(np.logaddexp(math.log1p(-rate), math.log(rate) + loss))


def loss_std(event: DpEvent) -> float:
    """Return the standard deviation of the likelihood ratio, about that of the privacy loss."""
    if (pure := pure_epsilon(event)) is not None:
        # Capped: only the choice of the grid's step depends on it.
        return math.expm1(min(pure, 50.0))
    base, rate, _ = split_sampling(event)
    law = _law_of(base)
    variance = law.values @ law.weights / base.noise_multiplier**2
    return rate * math.sqrt(math.expm1(min(variance, 100.0)))


def pld_of(
    event: DpEvent, relation: str, step: float, chance: float = NEGLIGIBLE
) -> PrivacyLossDistribution:
    """Return the privacy loss distribution of a leaf event, on a grid of `step`.

    The largest losses, of a probability of about `chance`, count as infinite.
    """
    high = largest_loss(event, chance)
    if pure_epsilon(event) is not None:
        profile_of_pure = _symmetric(_pure_profile(event))
        # 1e-15 covers the rounding of the profile, as in `_average`.
        return PrivacyLossDistribution(
            _pmf(lambda epsilon: profile_of_pure(epsilon) + 1e-15, step, -high, high)
        )
    base, rate, sampling = split_sampling(event)
    laws = _laws_of_change(base, relation)

    def pmf(
        profile: Profile,
        laws: Sequence[SensitivityLaw] = laws,
        low: float = -high,
        high: float = high,
    ) -> PLDPmf:
        def largest(epsilon: np.ndarray) -> np.ndarray:
            averages = [_average(profile, epsilon, law, base.noise_multiplier) for law in laws]
            return np.max(averages, axis=0)

        return _pmf(largest, step, low, high)

    def at_rate(profile: Profile) -> Profile:
        return lambda epsilon, mu: profile(epsilon, mu, rate)

    if sampling == "none":
        pmfs = [pmf(gaussian_delta)]
    elif sampling == "fixed" or compares_any_two(base, relation):
        pmfs = [pmf(_symmetric(at_rate(_amplified)))]
    elif relation == "replace_one":
        # The old record and the new one meet the same directions: the larger H bounds both.
        pmfs = [pmf(_symmetric(at_rate(_replace_profile)), [_law_of_larger(_law_of(base))])]
    else:
        # (1-q)A + qB is at least (1-q)A: on that side the loss ends at -log(1-q), or at losses that
        # no record has, under much noise.
        edge = min(-math.log1p(-rate), high)
        remove = at_rate(_remove_profile)
        pmfs = [pmf(remove, low=-edge), pmf(_swap(remove), high=edge)]
    return PrivacyLossDistribution(*pmfs)


@lru_cache(maxsize=2)
def compose_losses(
    relation: str, leaves: tuple[tuple[DpEvent, int], ...], chance: float = NEGLIGIBLE
) -> PrivacyLossDistribution:
    """Return the composed loss distribution of leaves; cached, since curves reuse it."""
    # All leaves share one grid.
    largest = max(largest_loss(leaf, chance) for leaf, _ in leaves)
    n_steps = sum(n for _, n in leaves)
    std = math.sqrt(sum(n * loss_std(e) ** 2 for e, n in leaves) / n_steps)
    step = min(
        LOSS_GRID.max_step,
        math.sqrt(LOSS_GRID.max_squared_step / n_steps),
        max(LOSS_GRID.step_per_std * std, LOSS_GRID.min_step),
    )
    step = max(step, largest / LOSS_GRID.max_points)
    plds = (pld_of(e, relation, step, chance).self_compose(n) for e, n in leaves)
    return reduce(lambda x, y: x.compose(y), plds)


def invert_losses(composed: PrivacyLossDistribution, delta: float) -> float:
    """Return an upper bound on the smallest ε of a loss distribution at δ, tight to rounding."""
    epsilon = float(composed.get_epsilon_for_delta(delta))
    if not LOSS_GRID.max_inverted < epsilon < math.inf:
        return epsilon
    # δ at an ε has differences of losses in its exponents, which do not leave the range.
    low, high = 0.0, epsilon
    while composed.get_delta_for_epsilon(high) > delta:
        low, high = high, 1.01 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if composed.get_delta_for_epsilon(middle) > delta:
            low = middle
        else:
            high = middle
    return high
