# SPDX-License-Identifier: BSD-3-Clause
"""Privacy accountants: ε(δ) of a ledger of events.

Three accountants read the same events. ``"pld"`` composes privacy loss distributions and is the
tightest; ``"rdp"`` uses Rényi moments; ``"autodp"`` passes the same moments to the autodp library,
to cross-check sampling, composition and conversion. Each raises UnsupportedEventError for events
that it does not support. An unbounded loss costs ε = ``inf``.
"""

import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from dp_accounting import (
    DpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    UnsupportedEventError,
    get_epsilon_gaussian,
)
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from dp_accounting.rdp.rdp_privacy_accountant import compute_delta, compute_epsilon

from ..checks import check_choice, check_number
from .event_types import find_unsupported
from .events import (
    ThresholdDpEvent,
    check_events,
    flatten,
    over_sensitivity,
    pure_epsilon,
    reveals_nothing,
    split_sampling,
    total_gaussian_multiplier,
)
from .loss_distributions import (
    LOSS_GRID,
    NEGLIGIBLE,
    compose_losses,
    gaussian_delta,
    invert_losses,
    largest_loss,
)
from .moments import ORDERS, rdp_of

# A record is replaced by a null record that counts as absent, or by any other record.
RELATIONS = ("zero_out", "replace_one")
# Leaf events, and how often each occurs.
Leaves = dict[DpEvent, int]


class PLDAccountant:
    """Accountant by privacy loss distributions.

    Unsampled Gaussians are pooled into one. A ledger of these alone is priced exactly. Leaves have
    multipliers over the sensitivity.

    Attributes
    ----------
    supports_selection : bool
        Whether private selection, the best of a random number of runs, is supported.
    composes_pure : bool
        Whether pure releases can be composed with others, rather than added.
    """

    supports_selection = False
    composes_pure = True

    def __init__(self, leaves: Leaves, relation: str) -> None:
        self.relation = relation
        self._leaves = {e: n for e, n in leaves.items() if not isinstance(e, GaussianDpEvent)}
        self._multiplier = total_gaussian_multiplier(leaves)
        # Moments of leaves that are not pooled: they add up without rounding.
        self._moments = RDPAccountant(leaves, relation)
        if math.isfinite(self._multiplier):
            self._leaves[GaussianDpEvent(self._multiplier)] = 1

    @property
    def _is_gaussian(self) -> bool:
        return list(self._leaves) == [GaussianDpEvent(self._multiplier)]

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε that is proved at δ."""
        if self._is_gaussian:
            # dp-accounting finds the root to within 1e-12.
            with np.errstate(divide="ignore"):
                # The margin is ten times that: ε stays an upper bound.
                return get_epsilon_gaussian(self._multiplier, delta) + 1e-11
        # The range of such losses would need a step so wide that moments are tighter.
        if max(map(largest_loss, self._leaves)) > LOSS_GRID.max_loss:
            return self._moments.epsilon(delta)
        # Charging a little of δ to an infinite loss keeps grids short.
        n_steps = sum(self._leaves.values())
        chance = max(NEGLIGIBLE, LOSS_GRID.tail_share * delta / n_steps)
        composed = compose_losses(self.relation, tuple(self._leaves.items()), chance)
        epsilon = invert_losses(composed, delta)
        # Below the rounding of the grid its δ cannot fall, however large ε is. Moments have no
        # floor.
        if delta < LOSS_GRID.resolution * n_steps:
            epsilon = min(epsilon, self._moments.epsilon(delta))
        return epsilon

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ that is proved at ε."""
        # No grid: the profile of one Gaussian is in closed form.
        if self._is_gaussian:
            return float(gaussian_delta(np.array(epsilon), 1 / self._multiplier))
        if max(map(largest_loss, self._leaves)) > LOSS_GRID.max_loss:
            return self._moments.delta(epsilon)
        composed = compose_losses(self.relation, tuple(self._leaves.items()))
        delta = composed.get_delta_for_epsilon(epsilon)
        if delta < LOSS_GRID.resolution * sum(self._leaves.values()):
            delta = min(delta, self._moments.delta(epsilon))
        return delta


class RDPAccountant:
    """Accountant by Rényi moments; see `PLDAccountant` for its interface."""

    supports_selection = True
    composes_pure = False

    def __init__(self, leaves: Leaves, relation: str) -> None:
        self.leaves, self.relation = leaves, relation

    def rdp(self) -> np.ndarray:
        """Return the Rényi divergence D_α of the whole ledger, at each of `ORDERS`."""
        # Divergences of one order add up under adaptive composition.
        parts = (n * rdp_of(event, self.relation, ORDERS) for event, n in self.leaves.items())
        return sum(parts, np.zeros_like(ORDERS))

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε that is proved at δ."""
        return compute_epsilon(ORDERS, self.rdp(), delta)[0]

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ that is proved at ε."""
        return compute_delta(ORDERS, self.rdp(), epsilon)[0]


class AutodpAccountant(RDPAccountant):
    """Accountant by the autodp library, from the Rényi moments of unsampled events."""

    supports_selection = False

    def _mechanism(self) -> Any:
        # Imported here, since it takes a second and is rarely used.
        try:
            from autodp.mechanism_zoo import ExactGaussianMechanism
            from autodp.transformer_zoo import Composition
        except ImportError:
            raise ImportError("accountant='autodp' needs pip install 'skdpgen[autodp]'.") from None

        pooled = total_gaussian_multiplier(self.leaves)
        parts = [(_autodp_mechanism(e, self.relation), n) for e, n in self.leaves.items()]
        # Its Rényi moments would lose what the analytic profile of a Gaussian gives.
        if all(isinstance(e, GaussianDpEvent) for e in self.leaves):
            parts = [(ExactGaussianMechanism(pooled), 1)]
        mechanisms, counts = zip(*parts, strict=True)
        if counts == (1,):
            return mechanisms[0]
        return Composition()(list(mechanisms), list(counts))

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε that is proved at δ."""
        # autodp's search divides by zero.
        with np.errstate(all="ignore"):
            return self._mechanism().get_approxDP(delta)

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ that is proved at ε."""
        # autodp gives ε(δ), which decreases in δ: bisect, and keep the upper bound.
        # e^-700 is near the least positive double; δ below is reported as this bound.
        low, high = -700.0, 0.0
        while high - low > 1e-6:
            middle = (low + high) / 2
            if self.epsilon(math.exp(middle)) > epsilon:
                low = middle
            else:
                high = middle
        return math.exp(high)


def _has_no_noise(leaf: DpEvent) -> bool:
    """Return whether a leaf event has an unbounded privacy loss."""
    if isinstance(leaf, RepeatAndSelectDpEvent):
        return any(map(_has_no_noise, flatten([leaf.event])))
    return isinstance(leaf, NonPrivateDpEvent) or split_sampling(leaf)[0].noise_multiplier == 0


def _autodp_mechanism(event: DpEvent, relation: str) -> Any:
    """Return a leaf event as a mechanism of autodp."""
    from autodp.autodp_core import Mechanism
    from autodp.transformer_zoo import AmplificationBySampling

    base, rate, sampling = split_sampling(event)
    # autodp supports no Poisson sampling under replace_one: it gets our moments of the sample.
    known = sampling if (sampling, relation) != ("poisson", "replace_one") else "none"
    described = event if known == "none" else base
    mechanism = Mechanism()
    mechanism.name, mechanism.params = "release", {}

    def moment(order: float) -> float:
        # autodp also asks for the order inf, at which Gaussian losses are unbounded.
        if np.isinf(order):
            return math.inf
        return float(rdp_of(described, relation, np.array([order]))[0])

    mechanism.propagate_updates(moment, "RDP")
    if known == "none":
        return mechanism
    poisson = known == "poisson"
    # Under zero_out a record is compared with its absence, which autodp calls add_remove.
    mechanism.neighboring = "add_remove" if poisson else "replace_one"
    amplify = AmplificationBySampling(PoissonSampling=poisson)
    return amplify(mechanism, rate, improved_bound_flag=poisson)


ACCOUNTANTS: dict[str, Any] = {
    "pld": PLDAccountant,
    "rdp": RDPAccountant,
    "autodp": AutodpAccountant,
}


class _Ledger:
    """Leaf events of releases, and what is charged beside their composition.

    Thresholds are charged to δ, and a little to ε: see `ThresholdDpEvent`. Pure releases (Laplace
    noise, randomised response) add their ε to the cost of all others at any δ. This is basic
    composition, which is exact if all releases are pure and δ is 0. Beside other releases,
    ``"pld"`` composes their loss distributions, too, which is tight.
    """

    def __init__(self, events: Iterable[DpEvent], accountant: str, relation: str) -> None:
        check_choice("accountant", accountant, ACCOUNTANTS)
        check_relation(relation)
        self._accountant, self._relation = ACCOUNTANTS[accountant], relation
        # With multipliers over the sensitivity: see `over_sensitivity`.
        self.leaves: Leaves = {}
        self._pure: Leaves = {}
        self.threshold_delta = self._threshold_epsilon = self.pure_epsilon = 0.0
        for leaf, count in flatten(check_events(events)).items():
            supports_selection = self._accountant.supports_selection
            if reason := find_unsupported(leaf, relation, supports_selection):
                raise UnsupportedEventError(f"{leaf} has no price: {reason}.")
            leaf = over_sensitivity(leaf, relation)
            # The Gaussian part stays in the ledger and is composed with all others; only δ' and
            # -log(1 - δ') add up. log1p keeps the digits of a small δ'.
            if isinstance(leaf, ThresholdDpEvent):
                self.threshold_delta += count * leaf.delta
                self._threshold_epsilon -= count * math.log1p(-leaf.delta)
                leaf = GaussianDpEvent(leaf.noise_multiplier)
            if (pure := pure_epsilon(leaf)) is not None:
                self.pure_epsilon += count * pure
                self._pure |= {leaf: count} if pure > 0 else {}
            elif not reveals_nothing(leaf):
                self.leaves[leaf] = self.leaves.get(leaf, 0) + count

    @property
    def has_no_noise(self) -> bool:
        """Whether the privacy loss of the ledger is unbounded."""
        return math.isinf(self.pure_epsilon) or any(map(_has_no_noise, self.leaves))

    def accountant(self) -> Any:
        """Return the accountant of the leaf events that are composed."""
        return self._accountant(self.leaves, self._relation)

    def _find_least(self, price: Callable[[Leaves, float], float]) -> float:
        """Return a price of the leaves and of ε beside them: the smaller of two upper bounds.

        With many pure releases their tight composition wins; with few, the rounding of the grid
        costs more than it gains.
        """
        least = price(self.leaves, self._threshold_epsilon + self.pure_epsilon)
        if self.leaves and self._pure and self._accountant.composes_pure:
            least = min(least, price({**self.leaves, **self._pure}, self._threshold_epsilon))
        return least

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε that the accountant proves at δ."""
        # A δ that the thresholds use up proves nothing about the rest, whatever its noise.
        delta -= self.threshold_delta
        if self.has_no_noise or delta <= 0 < self.threshold_delta:
            return math.inf

        def price(leaves: Leaves, beside: float) -> float:
            if not leaves:
                return beside
            # A failed search must never certify a budget: NaN counts as no guarantee. Grids may
            # also give a negative ε, which would pay for the releases beside it.
            epsilon = _epsilon_of(self._accountant, self._relation, tuple(leaves.items()), delta)
            return math.inf if math.isnan(epsilon) else max(0.0, epsilon) + beside

        return self._find_least(price)

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ that the accountant proves at ε."""
        if self.has_no_noise:
            return 1.0

        def price(leaves: Leaves, beside: float) -> float:
            # δ decreases in ε, so a smaller ε is safe; larger ones overflow.
            left = min(epsilon - beside, 500.0)
            if left < 0:
                return 1.0
            delta = float(self._accountant(leaves, self._relation).delta(left)) if leaves else 0.0
            return 1.0 if math.isnan(delta) else min(1.0, delta + self.threshold_delta)

        return self._find_least(price)


@lru_cache(maxsize=256)
def _epsilon_of(
    accountant: Any, relation: str, leaves: tuple[tuple[DpEvent, int], ...], delta: float
) -> float:
    """Price leaves; cached, since a fit prices the same ones to plan, release and certify."""
    return float(accountant(dict(leaves), relation).epsilon(delta))


def ledger_epsilon(
    events: Iterable[DpEvent], delta: float, *, accountant: str = "pld", relation: str = "zero_out"
) -> float:
    """Return the smallest ε that an accountant proves for events at `delta`.

    Parameters
    ----------
    events : iterable of dp_accounting.DpEvent
        Releases, in any order. A noise multiplier is, as in dp-accounting, the noise over the
        largest norm of one record's contribution: a `GaussianDpEvent` costs twice the μ under
        ``"replace_one"``, where the sensitivity is twice that norm.
    delta : float
        Target δ in [0, 1).
    accountant : {"pld", "rdp", "autodp"}, default="pld"
        Method of composition.
    relation : {"zero_out", "replace_one"}, default="zero_out"
        Neighbouring relation.

    Returns
    -------
    float

    Raises
    ------
    UnsupportedEventError
        If the accountant does not support an event.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent
    >>> round(ledger_epsilon([GaussianDpEvent(4.0)], 1e-5), 3)
    0.926
    >>> round(ledger_epsilon([GaussianDpEvent(8.0)], 1e-5, relation="replace_one"), 3)
    0.926
    """
    check_number("delta", delta, zero=True)
    if delta >= 1:
        raise ValueError(f"delta must be in [0, 1); got {delta!r}.")
    return _Ledger(events, accountant, relation).epsilon(delta)


def ledger_delta(
    events: Iterable[DpEvent],
    epsilon: float,
    *,
    accountant: str = "pld",
    relation: str = "zero_out",
) -> float:
    """Return the smallest δ that an accountant proves for events at `epsilon`.

    Parameters
    ----------
    events, accountant, relation
        As in `ledger_epsilon`.
    epsilon : float
        Target ε, at least 0.

    Returns
    -------
    float

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent
    >>> ledger_delta([GaussianDpEvent(4.0)], 2.0) < 1e-9
    True
    """
    if epsilon != math.inf:
        check_number("epsilon", epsilon, zero=True, most=math.inf)
    return _Ledger(events, accountant, relation).delta(epsilon)


def is_covered(events: Iterable[DpEvent], bound: DpEvent, relation: str) -> bool:
    """Return whether the Rényi moments of events are at most those of `bound`, at all orders."""
    # Both are ledgers of the same accountant, so that orders match.
    covered, covering = (_Ledger(part, "rdp", relation) for part in (events, [bound]))
    if covering.has_no_noise:
        return True
    # Thresholds and pure releases are charged beside the moments, which then do not bound them.
    if covered.threshold_delta or covered.pure_epsilon or covered.has_no_noise:
        return False
    return bool(np.all(covered.accountant().rdp() <= covering.accountant().rdp()))


def check_relation(relation: str) -> None:
    """Raise ValueError if `relation` is not a neighbouring relation."""
    check_choice("relation", relation, RELATIONS)
