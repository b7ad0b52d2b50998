# SPDX-License-Identifier: BSD-3-Clause
"""Privacy accountants: ε(δ) of a ledger of events.

Three accountants read the same events. ``"pld"`` composes privacy loss distributions and is the
tightest; ``"rdp"`` uses Rényi moments; ``"autodp"`` passes the same moments to the autodp library,
to cross-check sampling, composition and conversion. Each raises UnsupportedEventError for events
that it does not support. An unbounded loss costs ε = ``inf``.
"""

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from dp_accounting import (
    DpEvent,
    GaussianDpEvent,
    NeighboringRelation,
    NonPrivateDpEvent,
    PrivacyAccountant,
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
RELATIONS = {
    "zero_out": NeighboringRelation.REPLACE_SPECIAL,
    "replace_one": NeighboringRelation.REPLACE_ONE,
}


class _LedgerAccountant(PrivacyAccountant):
    """Base of accountants: collects leaf events, which subclasses price.

    Thresholds are charged to δ, and a little to ε: see `ThresholdDpEvent`. Pure releases (Laplace
    noise, randomised response) add their ε to the cost of all others at any δ. This is basic
    composition, which is exact if all releases are pure and δ is 0. Beside other releases,
    ``"pld"`` composes their loss distributions, too, which is tight.
    """

    # Whether private selection, the best of a random number of runs, is supported.
    _supports_selection = False
    # Whether pure releases can be composed with others, rather than added.
    _composes_pure = False

    def __init__(self, relation: str = "zero_out") -> None:
        super().__init__(RELATIONS[relation])
        self.relation = relation
        # With multipliers over the sensitivity: see `over_sensitivity`.
        self._leaves: dict[DpEvent, int] = {}
        self._threshold_delta = 0.0
        self._threshold_epsilon = 0.0
        self._pure_epsilon = 0.0
        self._pure: dict[DpEvent, int] = {}

    # dp-accounting's extension point: None says that the event is supported.
    def _maybe_compose(
        self, event: DpEvent, count: int, do_compose: bool
    ) -> PrivacyAccountant.CompositionErrorDetails | None:
        leaves = flatten([event])
        for leaf in leaves:
            if reason := find_unsupported(leaf, self.relation, self._supports_selection):
                return self.CompositionErrorDetails(leaf, reason)
        if do_compose:
            for leaf, times in leaves.items():
                leaf = over_sensitivity(leaf, self.relation)
                # The Gaussian part stays in the ledger and is composed with all others; only δ' and
                # -log(1 - δ') add up. log1p keeps the digits of a small δ'.
                if isinstance(leaf, ThresholdDpEvent):
                    self._threshold_delta += times * count * leaf.delta
                    self._threshold_epsilon -= times * count * math.log1p(-leaf.delta)
                    leaf = GaussianDpEvent(leaf.noise_multiplier)
                if (pure := pure_epsilon(leaf)) is not None:
                    self._pure_epsilon += times * count * pure
                    if pure > 0:
                        self._pure[leaf] = self._pure.get(leaf, 0) + times * count
                elif not reveals_nothing(leaf):
                    self._leaves[leaf] = self._leaves.get(leaf, 0) + times * count
        return None

    def get_epsilon(self, target_delta: float) -> float:
        """Return the smallest ε that the accountant proves at `target_delta`."""
        # No noise first: it must cost ε = inf at any δ, even one that a threshold uses up.
        if any(map(_has_no_noise, self._leaves)) or math.isinf(self._pure_epsilon):
            return math.inf
        # A δ that the thresholds use up proves nothing about the rest, whatever its noise.
        target_delta -= self._threshold_delta
        if target_delta <= 0 < self._threshold_delta:
            return math.inf
        beside = self._threshold_epsilon + self._pure_epsilon
        if not self._leaves:
            return beside
        # Any: mypy takes classes for unhashable.
        accountant: Any = type(self)

        def price(leaves: dict[DpEvent, int], beside: float) -> float:
            # A failed search must never certify a budget: NaN counts as no guarantee. Grids may
            # also give a negative ε, which would pay for the releases beside it.
            epsilon = _epsilon_of(accountant, self.relation, tuple(leaves.items()), target_delta)
            return math.inf if math.isnan(epsilon) else max(0.0, epsilon) + beside

        epsilon = price(self._leaves, beside)
        # Both are upper bounds, so the smaller one is. With many pure releases their tight
        # composition wins; with few, the rounding of the grid costs more than it gains.
        if self._pure and self._composes_pure:
            together = {**self._leaves, **self._pure}
            epsilon = min(epsilon, price(together, self._threshold_epsilon))
        return epsilon

    def get_delta(self, target_epsilon: float) -> float:
        """Return the smallest δ that the accountant proves at `target_epsilon`."""
        if any(map(_has_no_noise, self._leaves)):
            return 1.0
        if math.isinf(self._pure_epsilon):
            return 1.0

        def price(leaves: dict[DpEvent, int], beside: float) -> float:
            # δ decreases in ε, so a smaller ε is safe; larger ones overflow.
            epsilon = min(target_epsilon - beside, 500.0)
            if epsilon < 0:
                return 1.0
            ledger = type(self)(self.relation)
            ledger._leaves.update(leaves)
            delta = float(ledger._delta(epsilon)) if leaves else 0.0
            return 1.0 if math.isnan(delta) else min(1.0, delta + self._threshold_delta)

        delta = price(self._leaves, self._threshold_epsilon + self._pure_epsilon)
        if self._pure and self._leaves and self._composes_pure:
            together = {**self._leaves, **self._pure}
            delta = min(delta, price(together, self._threshold_epsilon))
        return delta


@lru_cache(maxsize=256)
def _epsilon_of(
    accountant: type["_LedgerAccountant"],
    relation: str,
    leaves: tuple[tuple[DpEvent, int], ...],
    delta: float,
) -> float:
    """Price leaves; cached, since a fit prices the same ones to plan, release and certify."""
    ledger = accountant(relation)
    ledger._leaves.update(leaves)
    return float(ledger._epsilon(delta))


def _has_no_noise(leaf: DpEvent) -> bool:
    """Return whether a leaf event has an unbounded privacy loss."""
    if isinstance(leaf, RepeatAndSelectDpEvent):
        return any(map(_has_no_noise, flatten([leaf.event])))
    return isinstance(leaf, NonPrivateDpEvent) or split_sampling(leaf)[0].noise_multiplier == 0


class PLDAccountant(_LedgerAccountant):
    """Accountant by privacy loss distributions.

    Unsampled Gaussians are pooled into one. A ledger of these alone is priced exactly.
    """

    _composes_pure = True

    def _pooled(self) -> tuple[dict[DpEvent, int], float]:
        """Return the leaves with all unsampled Gaussians pooled, and the pooled multiplier."""
        leaves = {e: n for e, n in self._leaves.items() if not isinstance(e, GaussianDpEvent)}
        multiplier = total_gaussian_multiplier(self._leaves)
        if math.isfinite(multiplier):
            leaves[GaussianDpEvent(multiplier)] = 1
        return leaves, multiplier

    def _epsilon(self, delta: float) -> float:
        leaves, multiplier = self._pooled()
        if list(leaves) == [GaussianDpEvent(multiplier)]:
            # dp-accounting finds the root to within 1e-12.
            with np.errstate(divide="ignore"):
                # The margin is ten times that: ε stays an upper bound.
                return get_epsilon_gaussian(multiplier, delta) + 1e-11
        # The range of such losses would need a step so wide that moments are tighter.
        if max(map(largest_loss, leaves)) > LOSS_GRID.max_loss:
            return self._moments().get_epsilon(delta)
        # Charging a little of δ to an infinite loss keeps grids short.
        n_steps = sum(leaves.values())
        chance = max(NEGLIGIBLE, LOSS_GRID.tail_share * delta / n_steps)
        composed = compose_losses(self.relation, tuple(leaves.items()), chance)
        epsilon = invert_losses(composed, delta)
        # Below the rounding of the grid its δ cannot fall, however large ε is. Moments have no
        # floor.
        if delta < LOSS_GRID.resolution * n_steps:
            epsilon = min(epsilon, self._moments().get_epsilon(delta))
        return epsilon

    def _delta(self, epsilon: float) -> float:
        leaves, multiplier = self._pooled()
        # No grid: the profile of one Gaussian is in closed form.
        if list(leaves) == [GaussianDpEvent(multiplier)]:
            return float(gaussian_delta(np.array(epsilon), 1 / multiplier))
        if max(map(largest_loss, leaves)) > LOSS_GRID.max_loss:
            return self._moments().get_delta(epsilon)
        delta = compose_losses(self.relation, tuple(leaves.items())).get_delta_for_epsilon(epsilon)
        if delta < LOSS_GRID.resolution * sum(leaves.values()):
            delta = min(delta, self._moments().get_delta(epsilon))
        return delta

    def _moments(self) -> "RDPAccountant":
        """Return the same ledger under Rényi moments, where grids do not reach."""
        moments = RDPAccountant(self.relation)
        # Leaves are not pooled first: moments add up without rounding.
        moments._leaves.update(self._leaves)
        return moments


class RDPAccountant(_LedgerAccountant):
    """Accountant by Rényi moments."""

    _supports_selection = True

    def rdp(self, orders: np.ndarray = ORDERS) -> np.ndarray:
        """Return the Rényi divergence D_α of the whole ledger.

        Parameters
        ----------
        orders : ndarray of shape (n_orders,)
            Orders α > 1.

        Returns
        -------
        ndarray of shape (n_orders,)
        """
        # Divergences of one order add up under adaptive composition.
        parts = (
            count * rdp_of(event, self.relation, orders) for event, count in self._leaves.items()
        )
        return sum(parts, np.zeros_like(orders))

    def _epsilon(self, delta: float) -> float:
        return compute_epsilon(ORDERS, self.rdp(), delta)[0]

    def _delta(self, epsilon: float) -> float:
        return compute_delta(ORDERS, self.rdp(), epsilon)[0]


class AutodpAccountant(RDPAccountant):
    """Accountant by the autodp library, from the Rényi moments of unsampled events."""

    _supports_selection = False

    def _mechanism(self) -> Any:
        # Imported here, since it takes a second and is rarely used.
        from autodp.mechanism_zoo import ExactGaussianMechanism
        from autodp.transformer_zoo import Composition

        pooled = total_gaussian_multiplier(self._leaves)
        parts = [(_autodp_mechanism(e, self.relation), n) for e, n in self._leaves.items()]
        # Its Rényi moments would lose what the analytic profile of a Gaussian gives.
        if all(isinstance(e, GaussianDpEvent) for e in self._leaves):
            parts = [(ExactGaussianMechanism(pooled), 1)]
        mechanisms, counts = zip(*parts, strict=True)
        if counts == (1,):
            return mechanisms[0]
        return Composition()(list(mechanisms), list(counts))

    def _epsilon(self, delta: float) -> float:
        # autodp's search divides by zero.
        with np.errstate(all="ignore"):
            return self._mechanism().get_approxDP(delta)

    def _delta(self, epsilon: float) -> float:
        # autodp gives ε(δ), which decreases in δ: bisect, and keep the upper bound.
        # e^-700 is near the least positive double; δ below is reported as this bound.
        low, high = -700.0, 0.0
        while high - low > 1e-6:
            middle = (low + high) / 2
            if self._epsilon(math.exp(middle)) > epsilon:
                low = middle
            else:
                high = middle
        return math.exp(high)


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


ACCOUNTANTS = {"pld": PLDAccountant, "rdp": RDPAccountant, "autodp": AutodpAccountant}


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
    return fill_ledger(events, accountant, relation).get_epsilon(delta)


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
    return fill_ledger(events, accountant, relation).get_delta(epsilon)


def is_covered(events: Iterable[DpEvent], bound: DpEvent, relation: str) -> bool:
    """Return whether the Rényi moments of events are at most those of `bound`, at all orders."""
    # Both are ledgers of the same accountant, so that orders match.
    covered, covering = (fill_ledger(part, "rdp", relation) for part in (events, [bound]))
    if any(map(_has_no_noise, covering._leaves)):
        return True
    # Thresholds and pure releases are charged beside the moments, which then do not bound them.
    if (
        covered._threshold_delta
        or covered._pure_epsilon
        or any(map(_has_no_noise, covered._leaves))
    ):
        return False
    return bool(np.all(covered.rdp() <= covering.rdp()))


def fill_ledger(events: Iterable[DpEvent], accountant: str, relation: str) -> Any:
    """Return an accountant that has composed all events."""
    check_choice("accountant", accountant, ACCOUNTANTS)
    check_relation(relation)
    ledger = ACCOUNTANTS[accountant](relation)
    for event in check_events(events):
        ledger.compose(event)
    return ledger


def check_relation(relation: str) -> None:
    """Raise ValueError if `relation` is not a neighbouring relation."""
    check_choice("relation", relation, RELATIONS)
