"""From a ledger of events to ε(δ), and from a budget to a noise level.

Three accountants read the same events. ``"pld"`` composes privacy loss distributions and is the
tightest; ``"rdp"`` uses Rényi moments in closed form; ``"autodp"`` hands the same moments to the
autodp library, as a check of sampling, composition and conversion. Each refuses events that it
does not know, and ``inf`` is what an unbounded loss costs.
"""

import math
import numbers
from fractions import Fraction
from functools import reduce

import numpy as np
from autodp.autodp_core import Mechanism
from autodp.mechanism_zoo import ExactGaussianMechanism
from autodp.transformer_zoo import AmplificationBySampling, Composition
from dp_accounting import (
    GaussianDpEvent,
    NeighboringRelation,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    PrivacyAccountant,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    get_epsilon_gaussian,
)
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots_fixed_gap
from dp_accounting.rdp.rdp_privacy_accountant import compute_delta, compute_epsilon
from scipy.optimize import brentq
from scipy.special import gammaln, log_ndtr, logsumexp, ndtr

from .directions import (
    SensitivityLaw,
    check_shape,
    log_mgf,
    sensitivity_bound,
    sensitivity_law,
    table4_bound,
)
from .events import SlicedGaussianDpEvent, flatten, total_gaussian_multiplier

__all__ = [
    "ACCOUNTANTS",
    "RELATIONS",
    "calibrate",
    "calibrate_sliced_gaussian",
    "ledger_delta",
    "ledger_epsilon",
    "sliced_gaussian_epsilon",
]

# A record is replaced by a null record that counts as absent, or by any other record. Multipliers
# are relative to the sensitivity under the relation in force, so the relation changes the price
# of an event only where the sampling interacts with it.
RELATIONS = {
    "zero_out": NeighboringRelation.REPLACE_SPECIAL,
    "replace_one": NeighboringRelation.REPLACE_ONE,
}


# Profiles δ(ε) of one step ----------------------------------------------------------------------
# Each takes an array of ε and μ, the largest change of the mean in units of σ.


def gaussian_delta(epsilon, mu):
    """Profile of the Gaussian mechanism (Balle & Wang 2018, equation 6)."""
    epsilon = np.asarray(epsilon, dtype=float)
    if mu == 0:
        return np.maximum(0.0, -np.expm1(epsilon))
    log_first = log_ndtr(mu / 2 - epsilon / mu)
    log_second = np.minimum(epsilon + log_ndtr(-mu / 2 - epsilon / mu), log_first)
    return np.exp(log_first) * -np.expm1(log_second - log_first)


def _amplified(epsilon, mu, rate):
    """q·δ_Gauss(log(1 + (e^ε - 1)/q), μ), for ε > log(1-q)."""
    return rate * gaussian_delta(np.log1p(np.expm1(epsilon) / rate), mu)


def _remove_profile(epsilon, mu, rate):
    """Profile of (1-q)N(0,1) + qN(μ,1) against N(0,1)."""
    delta = -np.expm1(epsilon)
    above = epsilon > math.log1p(-rate)
    delta[above] = _amplified(epsilon[above], mu, rate)
    return delta


def _replace_profile(epsilon, mu, rate):
    """Profile, for ε ≥ 0, of (1-q)N(0,1) + qN(r,1) against (1-q)N(0,1) + qN(-r,1), r = μ/2.

    The pair dominates every two rows of norm at most r: among events S with N(0,1)(S) = s, the
    half-line maximises N(a,1)(S) and minimises N(b,1)(S) at once, with a = r and b = -r.
    """
    r = mu / 2
    # Likelihood ratio e^ε at x: log u = ε/2 + arcsinh(B), u = exp(rx), in the log domain.
    with np.errstate(divide="ignore"):
        log_sinh = epsilon / 2 + np.log(-np.expm1(-epsilon)) - math.log(2)
    log_b = math.log1p(-rate) + log_sinh - math.log(rate) + r * r / 2
    x = (epsilon / 2 + np.logaddexp(log_b, np.logaddexp(2 * log_b, 0) / 2)) / r
    absent = -(1 - rate) * ndtr(-x) * np.expm1(epsilon)
    return absent + rate * (ndtr(r - x) - np.exp(epsilon + log_ndtr(-x - r)))


def _swap(profile):
    """Turn the profile of (P, Q) into that of (Q, P): 1 - e^ε + e^ε·δ(-ε)."""
    return lambda epsilon, *args: -np.expm1(epsilon) + np.exp(epsilon) * profile(-epsilon, *args)


def _symmetric(profile):
    """Use `profile` for ε ≥ 0 in both directions (Zhu, Dong & Wang 2022)."""

    def symmetric(epsilon, *args):
        delta = profile(np.abs(epsilon), *args)
        return np.where(epsilon >= 0, delta, -np.expm1(epsilon) + np.exp(epsilon) * delta)

    return symmetric


def _pmf(profile, law, noise_multiplier, step, low, high):
    """Average `profile(ε, μ)` over the law of H and discretise it pessimistically.

    The average is exact: U is public and independent of the rows, so that δ is a mean over U.
    """
    first, last = math.floor(low / step), math.ceil(high / step)
    epsilon = np.arange(first, last + 1) * step
    # 1e-15 covers the rounding of the profiles.
    delta = np.full(epsilon.shape, law.infinity + 1e-15)
    for value, weight in zip(law.values, law.weights, strict=True):
        delta += weight * profile(epsilon, math.sqrt(value) / noise_multiplier)
    delta = np.minimum.accumulate(np.clip(delta, 0.0, 1.0))
    return create_pmf_pessimistic_connect_dots_fixed_gap(step, first, last, delta)


# Leaf events ------------------------------------------------------------------------------------


def _split(event):
    """Split a leaf event into its base, its sampling rate and the kind of sampling."""
    if isinstance(event, PoissonSampledDpEvent):
        base, rate, sampling = event.event, event.sampling_probability, "poisson"
    elif isinstance(event, SampledWithoutReplacementDpEvent):
        base, sampling = event.event, "fixed"
        rate = event.sample_size / event.source_dataset_size
    else:
        base, rate, sampling = event, 1.0, "none"
    return base, rate, "none" if rate == 1 else sampling


def _law_of(base):
    if isinstance(base, GaussianDpEvent):
        return SensitivityLaw(np.ones(1), np.ones(1), 0.0)
    return sensitivity_law(base.n_features, base.n_projections, base.orthogonal)


def _law_of_larger(law):
    """Dominate the larger of two H that may depend on each other in any way (union bound)."""
    tail = np.minimum(1.0, 2 * (np.cumsum(law.weights[::-1])[::-1] + law.infinity))
    infinity = min(1.0, 2 * law.infinity)
    return SensitivityLaw(law.values, -np.diff(np.r_[tail, infinity]), infinity)


def _largest_loss(event):
    """Return a privacy loss that a step exceeds with negligible probability."""
    base, rate, sampling = _split(event)
    mu = math.sqrt(_law_of(base).values[-1]) / base.noise_multiplier
    loss = mu * mu / 2 + 9 * mu
    if sampling == "none":
        return loss
    return float(np.logaddexp(math.log1p(-rate), math.log(rate) + loss))


def _pld_of(event, relation, step):
    """Return the privacy loss distribution of a leaf event, on a grid of `step`."""
    base, rate, sampling = _split(event)
    law = _law_of(base)
    high = _largest_loss(event)

    def pmf(profile, law=law, low=-high, high=high):
        return _pmf(profile, law, base.noise_multiplier, step, low, high)

    def at_rate(profile):
        return lambda epsilon, mu: profile(epsilon, mu, rate)

    if sampling == "none":
        pmfs = [pmf(gaussian_delta)]
    elif sampling == "fixed":
        pmfs = [pmf(_symmetric(at_rate(_amplified)))]
    elif relation == "replace_one":
        pmfs = [pmf(_symmetric(at_rate(_replace_profile)), _law_of_larger(law))]
    else:
        edge = -math.log1p(-rate)
        remove = at_rate(_remove_profile)
        pmfs = [pmf(remove, low=-edge), pmf(_swap(remove), high=edge)]
    return privacy_loss_distribution.PrivacyLossDistribution(*pmfs)


# Orders of the Rényi moments; sampled events have them at whole orders up to 256, with linear
# interpolation of the convex (α-1)·D_α between them.
_MAX_SAMPLED_ORDER = 256
_ORDERS = np.unique(
    np.r_[
        1 + np.geomspace(1e-2, 1, 25),
        np.linspace(2, 20, 73),
        np.arange(21, _MAX_SAMPLED_ORDER + 1),
        2.0 ** np.arange(9, 19),
    ]
)


def _log_moment(base, orders):
    """(α-1)·D_α of an unsampled release: log E exp(α(α-1)H / (2σ²))."""
    t = orders * (orders - 1) / (2 * base.noise_multiplier**2)
    if isinstance(base, GaussianDpEvent):
        return t
    return log_mgf(t, base.n_features, base.n_projections, base.orthogonal)


def _sampled_log_moment(base, rate, sampling):
    """(α-1)·D_α at α = 0, 1, ..., 256 of a sampled release.

    Poisson sampling: the closed form, which holds for the mixture over H as for each H. Fixed
    size: Wang, Balle & Kasiviswanathan 2019, Theorem 9.
    """
    j = np.arange(_MAX_SAMPLED_ORDER + 1.0)
    log_comb = gammaln(j[:, None] + 1) - gammaln(j + 1) - gammaln(np.maximum(j[:, None] - j, 0) + 1)
    log_comb[j[:, None] < j] = -np.inf
    moment = _log_moment(base, j)
    if sampling == "poisson":
        stay_out = np.maximum(j[:, None] - j, 0) * math.log1p(-rate)
        return logsumexp(log_comb + stay_out + j * math.log(rate) + moment, axis=1)
    terms = j * math.log(rate) + log_comb + moment + math.log(2)
    second = moment[2]
    terms[:, 2] += min(math.log(2) + math.log(-math.expm1(-second)), 0.0)
    terms[:, 0], terms[:, 1] = 0.0, -np.inf
    return logsumexp(terms, axis=1)


def _rdp_of(event, orders):
    """D_α of one leaf event at `orders` > 1; inf where no bound is computed."""
    base, rate, sampling = _split(event)
    if sampling == "none":
        return _log_moment(base, orders) / (orders - 1)
    moment = _sampled_log_moment(base, rate, sampling)
    whole = np.arange(1, _MAX_SAMPLED_ORDER + 1)
    return np.interp(orders, whole, moment[1:], right=np.inf) / (orders - 1)


# Accountants ------------------------------------------------------------------------------------


class _LedgerAccountant(PrivacyAccountant):
    """Collects leaf events; subclasses price them."""

    def __init__(self, relation="zero_out"):
        super().__init__(RELATIONS[relation])
        self.relation = relation
        self._leaves = {}

    def _maybe_compose(self, event, count, do_compose):
        leaves = flatten([event])
        for leaf in leaves:
            if reason := self._refusal(leaf):
                return self.CompositionErrorDetails(leaf, reason)
        if do_compose:
            for leaf, times in leaves.items():
                self._leaves[leaf] = self._leaves.get(leaf, 0) + times * count
        return None

    def _refusal(self, leaf):
        """Say why `leaf` cannot be priced, or return None."""
        if isinstance(leaf, NonPrivateDpEvent):
            return None
        base, _, sampling = _split(leaf)
        if not isinstance(base, (GaussianDpEvent, SlicedGaussianDpEvent)):
            return f"events of type {type(base).__name__} are not known"
        if sampling == "fixed" and self.relation != "replace_one":
            return "fixed-size sampling is accounted under relation='replace_one' only"
        return None

    def get_epsilon(self, target_delta):
        """Return the smallest ε that the accountant proves at `target_delta`."""
        if any(map(_unbounded, self._leaves)):
            return math.inf
        return max(0.0, float(self._epsilon(target_delta))) if self._leaves else 0.0

    def get_delta(self, target_epsilon):
        """Return the smallest δ that the accountant proves at `target_epsilon`."""
        if any(map(_unbounded, self._leaves)):
            return 1.0
        return min(1.0, float(self._delta(target_epsilon))) if self._leaves else 0.0


def _unbounded(leaf):
    return isinstance(leaf, NonPrivateDpEvent) or _split(leaf)[0].noise_multiplier == 0


class PLDAccountant(_LedgerAccountant):
    """Privacy loss distributions; unsampled Gaussians are pooled, and alone they are exact."""

    def _pooled(self):
        """Return the leaves with all unsampled Gaussians as one."""
        leaves = {e: n for e, n in self._leaves.items() if not isinstance(e, GaussianDpEvent)}
        multiplier = total_gaussian_multiplier(self._leaves)
        if math.isfinite(multiplier):
            leaves[GaussianDpEvent(multiplier)] = 1
        return leaves, multiplier

    def _pld(self, leaves):
        # The grid's error, about step²/8 a repetition, adds up; all leaves share one grid.
        step = max(1e-4, min(1e-3, math.sqrt(0.016 / sum(leaves.values()))))
        step = max(step, *(_largest_loss(event) / 50_000 for event in leaves))
        plds = (_pld_of(e, self.relation, step).self_compose(n) for e, n in leaves.items())
        return reduce(lambda x, y: x.compose(y), plds)

    def _epsilon(self, delta):
        leaves, multiplier = self._pooled()
        if len(leaves) == 1 and math.isfinite(multiplier):
            return get_epsilon_gaussian(multiplier, delta)
        return self._pld(leaves).get_epsilon_for_delta(delta)

    def _delta(self, epsilon):
        leaves, multiplier = self._pooled()
        if len(leaves) == 1 and math.isfinite(multiplier):
            return gaussian_delta(epsilon, 1 / multiplier)
        return self._pld(leaves).get_delta_for_epsilon(epsilon)


class RDPAccountant(_LedgerAccountant):
    """Rényi moments in closed form."""

    def _refusal(self, leaf):
        reason = super()._refusal(leaf)
        if reason is None and not isinstance(leaf, NonPrivateDpEvent):
            if _split(leaf)[2] == "poisson" and self.relation == "replace_one":
                reason = "Poisson sampling under replace_one has no closed form; use 'pld'"
        return reason

    def rdp(self, orders=_ORDERS):
        """Return D_α of the whole ledger at `orders`, an array of orders above 1."""
        parts = (count * _rdp_of(event, orders) for event, count in self._leaves.items())
        return sum(parts, np.zeros_like(orders))

    def _epsilon(self, delta):
        return compute_epsilon(_ORDERS, self.rdp(), delta)[0]

    def _delta(self, epsilon):
        return compute_delta(_ORDERS, self.rdp(), epsilon)[0]


class AutodpAccountant(RDPAccountant):
    """The same moments, sampled, composed and converted by the autodp library."""

    def _mechanism(self):
        pooled = total_gaussian_multiplier(self._leaves)
        parts = [(_autodp_mechanism(e), n) for e, n in self._leaves.items()]
        if all(isinstance(e, GaussianDpEvent) for e in self._leaves):
            parts = [(ExactGaussianMechanism(pooled), 1)]
        mechanisms, counts = zip(*parts, strict=True)
        if counts == (1,):
            return mechanisms[0]
        return Composition()(list(mechanisms), list(counts))

    def _epsilon(self, delta):
        return self._mechanism().get_approxDP(delta)

    def _delta(self, epsilon):
        # autodp gives ε(δ), which falls in δ: bisect, and keep the safe side.
        mechanism = self._mechanism()
        low, high = -700.0, 0.0
        while high - low > 1e-6:
            middle = (low + high) / 2
            if mechanism.get_approxDP(math.exp(middle)) > epsilon:
                low = middle
            else:
                high = middle
        return math.exp(high)


def _autodp_mechanism(event):
    base, rate, sampling = _split(event)
    mechanism = Mechanism()
    mechanism.propagate_updates(
        lambda order: math.inf if np.isinf(order) else float(_rdp_of(base, np.array([order]))[0]),
        "RDP",
    )
    if sampling == "none":
        return mechanism
    poisson = sampling == "poisson"
    mechanism.neighboring = "add_remove" if poisson else "replace_one"
    amplify = AmplificationBySampling(PoissonSampling=poisson)
    return amplify(mechanism, rate, improved_bound_flag=poisson)


ACCOUNTANTS = {"pld": PLDAccountant, "rdp": RDPAccountant, "autodp": AutodpAccountant}


def ledger_epsilon(events, delta, *, accountant="pld", relation="zero_out"):
    """Return ε at `delta` of a sequence of events."""
    return _fill(events, accountant, relation).get_epsilon(delta)


def ledger_delta(events, epsilon, *, accountant="pld", relation="zero_out"):
    """Return δ at `epsilon` of a sequence of events."""
    return _fill(events, accountant, relation).get_delta(epsilon)


def _fill(events, accountant, relation):
    if accountant not in ACCOUNTANTS:
        raise ValueError(f"accountant must be one of {list(ACCOUNTANTS)}; got {accountant!r}.")
    if relation not in RELATIONS:
        raise ValueError(f"relation must be one of {list(RELATIONS)}; got {relation!r}.")
    filled = ACCOUNTANTS[accountant](relation)
    for event in events:
        filled.compose(event)
    return filled


# Calibration ------------------------------------------------------------------------------------


def calibrate(epsilon_of, epsilon, *, guess=1.0, rtol=1e-4):
    """Return the smallest noise level, within `rtol`, that stays within the budget.

    Parameters
    ----------
    epsilon_of : callable
        ε as a decreasing function of the noise level.
    epsilon : float
        The budget. The result never costs more.
    guess : float, default=1.0
        Where to start.
    rtol : float, default=1e-4
        Relative precision of the noise level.
    """

    def excess(log_level):
        return min(epsilon_of(math.exp(log_level)), 1e6) - epsilon

    low = high = math.log(guess)
    width = 0.1
    while excess(high) > 0:
        low, high, width = high, high + width, 2 * width
        if width > 64:
            raise ValueError("No noise level meets the budget; is delta positive?")
    while excess(low) <= 0:
        low, high, width = low - width, low, 2 * width
        if width > 64:
            raise ValueError("Any noise level meets the budget; is delta below 1?")
    level = brentq(excess, low, high, xtol=rtol / 2)
    while excess(level) > 0:
        level += rtol / 2
    return math.exp(level)


def calibrate_gaussian(epsilon, delta, *, accountant="pld", relation="zero_out"):
    """Return the total noise multiplier of unsampled Gaussian releases at (ε, δ).

    Shares of the budget are fractions of Σ s⁻²: a release with share p of it has the multiplier
    s / √p, and all of them together cost exactly what one release at s costs.
    """
    if math.isinf(epsilon):
        return 0.0

    def epsilon_of(multiplier):
        event = [GaussianDpEvent(multiplier)]
        return ledger_epsilon(event, delta, accountant=accountant, relation=relation)

    return calibrate(epsilon_of, epsilon, rtol=1e-7)


def sliced_gaussian_epsilon(
    sigma,
    delta,
    *,
    n_features,
    n_projections,
    sampling_rate=1.0,
    n_steps=1,
    method="pld",
    orthogonal=False,
    relation="zero_out",
    sampling="poisson",
):
    """Return ε of `n_steps` sliced Gaussian releases XU + V.

    At each step a fresh U is drawn, rows are sampled, and each projected row gets noise of
    standard deviation `sigma` per unit of ‖z‖, the largest change of a row: the radius of the
    rows under ``relation="zero_out"``, their diameter under ``"replace_one"``.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise over ‖z‖; 0 gives ``inf``.
    delta : float
        Target δ in (0, 1).
    n_features, n_projections : int
        U is n_features × n_projections.
    sampling_rate : float, default=1.0
        Probability, or share, with which a record takes part in a step.
    n_steps : int, default=1
        Number of releases.
    method : {"pld", "rdp", "bernstein", "clt"}, default="pld"
        ``"pld"`` and ``"rdp"`` average over the exact law of the directions. ``"bernstein"`` and
        ``"clt"`` are those of Table 4 in [1]_, for comparison: a bound on H that holds with
        probability 1 - δ/2 is charged once for all steps, and Rényi moments are converted as in
        Proposition 1. As in that table, the variance term of ``"bernstein"`` counts the
        directions twice, which is larger than Lemma 2 (`sensitivity_bound`) asks for.
        ``"clt"`` proves nothing, and warns.
    orthogonal : bool, default=False
        Haar-orthonormal blocks of directions rather than iid ones (``"pld"``, ``"rdp"`` only).
    relation : {"zero_out", "replace_one"}, default="zero_out"
        Which data sets are neighbours.
    sampling : {"poisson", "fixed"}, default="poisson"
        Independent coins, or a fixed number of rows without replacement (``"replace_one"`` only).

    Returns
    -------
    float

    References
    ----------
    .. [1] Rakotomamonjy & Ralaivola, "Differentially Private Sliced Wasserstein Distance",
       ICML 2021.

    Examples
    --------
    >>> eps = sliced_gaussian_epsilon(
    ...     0.65, 1e-5, n_features=784, n_projections=1000, sampling_rate=1 / 600, n_steps=60_000
    ... )
    >>> 9.5 < eps < 10
    True
    """
    check_delta(delta)
    return _sliced_epsilon_function(
        delta,
        n_features=n_features,
        n_projections=n_projections,
        sampling_rate=sampling_rate,
        n_steps=n_steps,
        method=method,
        orthogonal=orthogonal,
        relation=relation,
        sampling=sampling,
    )(sigma)


def calibrate_sliced_gaussian(
    epsilon,
    delta,
    *,
    n_features,
    n_projections,
    sampling_rate=1.0,
    n_steps=1,
    method="pld",
    orthogonal=False,
    relation="zero_out",
    sampling="poisson",
):
    """Return the least noise of `n_steps` sliced Gaussian releases within (ε, δ).

    Parameters
    ----------
    epsilon : float
        The budget; ``inf`` gives 0.
    delta, n_features, n_projections, sampling_rate, n_steps, method, orthogonal, relation, sampling
        As in `sliced_gaussian_epsilon`, with which the result never costs more than `epsilon`.

    Returns
    -------
    float
        σ per unit of ‖z‖: multiply it by the radius of the rows (``"zero_out"``) or their
        diameter (``"replace_one"``).

    Examples
    --------
    >>> sigma = calibrate_sliced_gaussian(1.0, 1e-5, n_features=64, n_projections=32)
    >>> 2.5 < sigma < 3.0
    True
    """
    check_epsilon(epsilon)
    check_delta(delta)
    if math.isinf(epsilon):
        return 0.0
    options = dict(
        n_features=n_features,
        n_projections=n_projections,
        sampling_rate=sampling_rate,
        n_steps=n_steps,
        orthogonal=orthogonal,
        relation=relation,
        sampling=sampling,
    )
    epsilon_of = _sliced_epsilon_function(delta, method=method, **options)
    guess = math.sqrt(n_projections / n_features)
    if method == "pld":
        # The closed form is cheap and close. Where it is missing, a pair of rows at opposite ends
        # of the diameter costs about what one row at its middle costs.
        missing = relation == "replace_one" and sampling == "poisson"
        if missing:
            options["relation"] = "zero_out"
        rdp = _sliced_epsilon_function(delta, method="rdp", **options)
        guess = calibrate(rdp, epsilon, guess=guess, rtol=1e-3) * (0.55 if missing else 1.0)
    return calibrate(epsilon_of, epsilon, guess=guess)


def _sliced_epsilon_function(
    delta,
    *,
    n_features,
    n_projections,
    sampling_rate,
    n_steps,
    method,
    orthogonal,
    relation,
    sampling,
):
    """Check the arguments and return ε as a function of σ per unit of ‖z‖."""
    n_features, n_projections = check_shape(n_features, n_projections)
    if not 0 < sampling_rate <= 1:
        raise ValueError(f"sampling_rate must be in (0, 1]; got {sampling_rate}.")
    if int(n_steps) != n_steps or n_steps < 1:
        raise ValueError(f"n_steps must be a whole number of at least 1; got {n_steps}.")
    if sampling not in ("poisson", "fixed"):
        raise ValueError(f"sampling must be 'poisson' or 'fixed'; got {sampling!r}.")

    def repeat(event):
        if sampling_rate < 1 and sampling == "poisson":
            event = PoissonSampledDpEvent(sampling_rate, event)
        elif sampling_rate < 1:
            share = Fraction(sampling_rate).limit_denominator(10**9)
            event = SampledWithoutReplacementDpEvent(share.denominator, share.numerator, event)
        return SelfComposedDpEvent(event, int(n_steps))

    if method in ("pld", "rdp"):

        def epsilon_of(sigma):
            event = SlicedGaussianDpEvent(sigma, n_features, n_projections, orthogonal)
            return ledger_epsilon([repeat(event)], delta, accountant=method, relation=relation)

    elif method in ("bernstein", "clt"):
        if orthogonal:
            raise ValueError(f"method={method!r} is for iid directions; set orthogonal=False.")
        if method == "bernstein":
            bound = table4_bound(n_features, n_projections, delta / 2)
        else:
            bound = sensitivity_bound(n_features, n_projections, delta / 2, kind="clt")

        def epsilon_of(sigma):
            event = GaussianDpEvent(sigma / math.sqrt(bound))
            rdp = _fill([repeat(event)], "rdp", relation).rdp()
            return np.min(rdp + math.log(2 / delta) / (_ORDERS - 1))

    else:
        methods = ["pld", "rdp", "bernstein", "clt"]
        raise ValueError(f"method must be one of {methods}; got {method!r}.")
    return lambda sigma: float(epsilon_of(sigma)) if sigma > 0 else math.inf


def check_epsilon(epsilon):
    """Refuse what is no privacy budget."""
    if not isinstance(epsilon, numbers.Real) or math.isnan(epsilon) or epsilon <= 0:
        raise ValueError(f"epsilon must be a positive number, or inf for no noise; got {epsilon!r}.")


def check_delta(delta):
    """Refuse what is no δ, or one that Gaussian noise cannot meet."""
    if not isinstance(delta, numbers.Real) or not 0 < delta < 1:
        raise ValueError(f"delta must be a number in (0, 1); got {delta!r}.")
