# SPDX-License-Identifier: BSD-3-Clause
"""Accountants: from a ledger of events to ε(δ).

Three of them read the same events. ``"pld"`` composes privacy loss distributions and is the
tightest; ``"rdp"`` uses Rényi moments; ``"autodp"`` hands the same moments to the autodp library,
as a check of sampling, composition and conversion. Each refuses events that it does not know, and
``inf`` is what an unbounded loss costs.
"""

import math
import numbers
from collections.abc import Callable, Iterable
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from dp_accounting import (
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NeighboringRelation,
    NonPrivateDpEvent,
    PrivacyAccountant,
    RandomizedResponseDpEvent,
    SelfComposedDpEvent,
    UnsupportedEventError,
    get_epsilon_gaussian,
)
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from dp_accounting.rdp.rdp_privacy_accountant import compute_delta, compute_epsilon

from .._choices import is_one_of
from .directions import check_shape
from .events import (
    DiameterGaussianDpEvent,
    SlicedGaussianDpEvent,
    ThresholdDpEvent,
    flatten,
    pure_epsilon,
    split_sampling,
    total_gaussian_multiplier,
)
from .loss_distributions import NEGLIGIBLE, gaussian_delta, largest_loss, loss_std, pld_of
from .moments import ORDERS, rdp_of

# A record is replaced by a null record that counts as absent, or by any other record. Multipliers
# are relative to the sensitivity under the relation in force, so the relation changes the price
# of an event only where the sampling interacts with it.
RELATIONS = {
    "zero_out": NeighboringRelation.REPLACE_SPECIAL,
    "replace_one": NeighboringRelation.REPLACE_ONE,
}

_GAUSSIANS = DiameterGaussianDpEvent, GaussianDpEvent, SlicedGaussianDpEvent

# A grid's step, over the spread of a loss.
_FINENESS = 0.125
# Share of δ that is charged at once, for losses beyond the grid.
_CHARGED = 1e-4
# Rounding of profiles and of Fourier transforms costs 1e-15 a step: a hundred times that is where
# it begins to show.
_RESOLUTION = 1e-13
# Beyond a loss of 500 in one step a grid of losses leaves the range of a float.
_MAX_LOSS = 500.0
# Runs of a search, in the mean, and the shape of their law: its chances stay floats up to here.
_MAX_RUNS, _MAX_SHAPE = 1e6, 10


class _LedgerAccountant(PrivacyAccountant):
    """Collects leaf events; subclasses price them.

    Thresholds are taken out of δ, and a little out of ε: see `ThresholdDpEvent`. Pure releases, of
    Laplace noise and of randomised response, add their ε to what all others cost at any δ: that is
    basic composition, which is exact where all releases are pure and δ is 0.
    """

    # Whether the best of a random number of runs has a price.
    _knows_selections = False

    def __init__(self, relation: str = "zero_out") -> None:
        super().__init__(RELATIONS[relation])
        self.relation = relation
        self._leaves = {}
        self._threshold_delta = 0.0
        self._threshold_epsilon = 0.0
        self._pure_epsilon = 0.0

    def _maybe_compose(
        self, event: DpEvent, count: int, do_compose: bool
    ) -> PrivacyAccountant.CompositionErrorDetails | None:
        leaves = flatten([event])
        for leaf in leaves:
            if reason := self._refusal(leaf):
                return self.CompositionErrorDetails(leaf, reason)
        if do_compose:
            for leaf, times in leaves.items():
                if isinstance(leaf, ThresholdDpEvent):
                    self._threshold_delta += times * count * leaf.delta
                    self._threshold_epsilon -= times * count * math.log1p(-leaf.delta)
                    leaf = GaussianDpEvent(leaf.noise_multiplier)
                if (pure := pure_epsilon(leaf)) is not None:
                    self._pure_epsilon += times * count * pure
                elif not _reveals_nothing(leaf):
                    self._leaves[leaf] = self._leaves.get(leaf, 0) + times * count
        return None

    def _refusal(self, leaf: DpEvent) -> str | None:
        """Say why `leaf` cannot be priced, or return None."""
        if isinstance(leaf, NonPrivateDpEvent):
            return None
        if isinstance(leaf, RandomizedResponseDpEvent):
            return self._refusal_of_response(leaf)
        if isinstance(leaf, RepeatAndSelectDpEvent):
            return self._refusal_of_selection(leaf)
        base, rate, sampling = split_sampling(leaf)
        if isinstance(leaf, ThresholdDpEvent):
            if not (_is_rate(leaf.delta) and leaf.delta < 1):
                return "the delta of a threshold is in [0, 1)"
        elif isinstance(base, LaplaceDpEvent):
            if sampling != "none":
                return "samples of Laplace releases are not known"
        elif not isinstance(base, _GAUSSIANS):
            return f"events of type {type(base).__name__} are not known"
        if not _is_multiplier(base.noise_multiplier):
            return "a noise multiplier is 0, infinite, or from 1e-9 to 1e100"
        if not _is_rate(rate):
            return "a sampling rate is in [0, 1]"
        if isinstance(base, SlicedGaussianDpEvent):
            check_shape(base.n_features, base.n_projections)
            if not isinstance(base.orthogonal, bool):
                return "orthogonal is True or False"
            if type(base.n_classes) is not int or base.n_classes < 1:
                return "n_classes is a whole number of at least 1"
            if not (_is_number(base.beside) and 0 <= base.beside < math.inf):
                return "beside is a number of at least 0"
            if base.beside > 0 and base.n_classes > 1:
                return "what is released beside sliced rows is accounted for one class only"
        if sampling == "fixed" and self.relation != "replace_one":
            return "fixed-size sampling is accounted under relation='replace_one' only"
        return None

    def _refusal_of_response(self, leaf: DpEvent) -> str | None:
        if self.relation != "replace_one":
            return "randomised response is accounted under relation='replace_one' only"
        if not _is_rate(leaf.noise_parameter):
            return "the noise parameter of randomised response is in [0, 1]"
        if type(leaf.num_buckets) is not int or leaf.num_buckets < 1:
            return "randomised response has a whole number of buckets"
        return None

    def _refusal_of_selection(self, leaf: DpEvent) -> str | None:
        if not self._knows_selections:
            return "the best of several runs is accounted by accountant='rdp' only"
        if not (_is_number(leaf.mean) and 1 <= leaf.mean <= _MAX_RUNS):
            return f"the mean number of runs is from 1 to {_MAX_RUNS:g}"
        if not (_is_number(leaf.shape) and 0 <= leaf.shape <= _MAX_SHAPE):
            return f"the shape of the number of runs is from 0 to {_MAX_SHAPE}"
        for part in flatten([leaf.event]):
            unknown = RepeatAndSelectDpEvent, ThresholdDpEvent
            if isinstance(part, unknown) or pure_epsilon(part) is not None:
                return f"the best of several runs of {type(part).__name__} is not known"
            if reason := self._refusal(part):
                return reason
        return None

    def get_epsilon(self, target_delta: float) -> float:
        """Return the smallest ε that the accountant proves at `target_delta`."""
        if any(map(_unbounded, self._leaves)) or math.isinf(self._pure_epsilon):
            return math.inf
        target_delta -= self._threshold_delta
        if target_delta <= 0 < self._threshold_delta:
            return math.inf
        beside = self._threshold_epsilon + self._pure_epsilon
        if not self._leaves:
            return beside
        epsilon = _epsilon_of(type(self), self.relation, tuple(self._leaves.items()), target_delta)
        return math.inf if math.isnan(epsilon) else max(0.0, epsilon) + beside

    def get_delta(self, target_epsilon: float) -> float:
        """Return the smallest δ that the accountant proves at `target_epsilon`."""
        if any(map(_unbounded, self._leaves)):
            return 1.0
        if math.isinf(self._pure_epsilon):
            return 1.0
        # δ falls in ε, so a smaller ε is safe; larger ones overflow.
        target_epsilon = target_epsilon - self._threshold_epsilon - self._pure_epsilon
        target_epsilon = min(target_epsilon, 500.0)
        if target_epsilon < 0:
            return 1.0
        delta = float(self._delta(target_epsilon)) if self._leaves else 0.0
        return 1.0 if math.isnan(delta) else min(1.0, delta + self._threshold_delta)


@lru_cache(maxsize=256)
def _epsilon_of(
    accountant: str, relation: str, leaves: tuple[tuple[DpEvent, int], ...], delta: float
) -> float:
    """Price leaves; a fit asks for the same price when it plans, releases and certifies."""
    filled = accountant(relation)
    filled._leaves.update(leaves)
    return float(filled._epsilon(delta))


def _unbounded(leaf: DpEvent) -> bool:
    if isinstance(leaf, RepeatAndSelectDpEvent):
        return any(map(_unbounded, flatten([leaf.event])))
    return isinstance(leaf, NonPrivateDpEvent) or split_sampling(leaf)[0].noise_multiplier == 0


def _is_multiplier(value: object) -> bool:
    # What is next to no noise, or to no information, would leave the range of a float.
    return _is_number(value) and (1e-9 <= value <= 1e100 or value in (0, math.inf))


def _is_rate(value: object) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _reveals_nothing(leaf: DpEvent) -> bool:
    if isinstance(leaf, (NonPrivateDpEvent, RepeatAndSelectDpEvent)):
        return False
    base, rate, _ = split_sampling(leaf)
    return rate == 0 or math.isinf(base.noise_multiplier)


@lru_cache(maxsize=2)
def _composed(
    relation: str, leaves: tuple[tuple[DpEvent, int], ...], chance: float = NEGLIGIBLE
) -> PrivacyLossDistribution:
    """Return the distribution of the loss of leaves together; a curve asks for one many times."""
    # The grid's error, about step²/8 a repetition, adds up; all leaves share one grid. Losses
    # that are small beside its step would vary more on it than they do: by up to step²/4.
    largest = max(largest_loss(leaf, chance) for leaf, _ in leaves)
    n_steps = sum(n for _, n in leaves)
    spread = math.sqrt(sum(n * loss_std(e) ** 2 for e, n in leaves) / n_steps)
    step = min(1e-3, math.sqrt(0.016 / n_steps), max(_FINENESS * spread, 1e-6))
    step = max(step, largest / 50_000)
    plds = (pld_of(e, relation, step, chance).self_compose(n) for e, n in leaves)
    return reduce(lambda x, y: x.compose(y), plds)


class PLDAccountant(_LedgerAccountant):
    """Privacy loss distributions; unsampled Gaussians are pooled, and alone they are exact."""

    def _pooled(self) -> tuple[dict[DpEvent, int], float]:
        """Return the leaves with all unsampled Gaussians as one."""
        leaves = {e: n for e, n in self._leaves.items() if not isinstance(e, GaussianDpEvent)}
        multiplier = total_gaussian_multiplier(self._leaves)
        if math.isfinite(multiplier):
            leaves[GaussianDpEvent(multiplier)] = 1
        return leaves, multiplier

    def _epsilon(self, delta: float) -> float:
        leaves, multiplier = self._pooled()
        if list(leaves) == [GaussianDpEvent(multiplier)]:
            # Its root is found to within 1e-12.
            with np.errstate(divide="ignore"):
                return get_epsilon_gaussian(multiplier, delta) + 1e-11
        if max(map(largest_loss, leaves)) > _MAX_LOSS:
            return self._from_moments(ledger_epsilon, delta)
        # What is charged to infinity at once, of δ, keeps grids short.
        n_steps = sum(leaves.values())
        chance = max(NEGLIGIBLE, _CHARGED * delta / n_steps)
        composed = _composed(self.relation, tuple(leaves.items()), chance)
        epsilon = composed.get_epsilon_for_delta(delta)
        if delta < _RESOLUTION * n_steps:
            epsilon = min(epsilon, self._from_moments(ledger_epsilon, delta))
        return epsilon

    def _delta(self, epsilon: float) -> float:
        leaves, multiplier = self._pooled()
        if list(leaves) == [GaussianDpEvent(multiplier)]:
            return gaussian_delta(epsilon, 1 / multiplier)
        if max(map(largest_loss, leaves)) > _MAX_LOSS:
            return self._from_moments(ledger_delta, epsilon, 1.0)
        delta = _composed(self.relation, tuple(leaves.items())).get_delta_for_epsilon(epsilon)
        if delta < _RESOLUTION * sum(leaves.values()):
            delta = min(delta, self._from_moments(ledger_delta, epsilon, 1.0))
        return delta

    def _from_moments(
        self, price: Callable[..., float], target: float, unknown: float = math.inf
    ) -> float:
        """Price by Rényi moments where grids do not reach; `unknown` if there are none."""
        events = [SelfComposedDpEvent(event, count) for event, count in self._leaves.items()]
        try:
            return price(events, target, accountant="rdp", relation=self.relation)
        except UnsupportedEventError:
            return unknown


class RDPAccountant(_LedgerAccountant):
    """Rényi moments."""

    _knows_selections = True

    def rdp(self, orders: np.ndarray = ORDERS) -> np.ndarray:
        """Return D_α of the whole ledger at `orders`, an array of orders above 1."""
        parts = (
            count * rdp_of(event, self.relation, orders) for event, count in self._leaves.items()
        )
        return sum(parts, np.zeros_like(orders))

    def _epsilon(self, delta: float) -> float:
        return compute_epsilon(ORDERS, self.rdp(), delta)[0]

    def _delta(self, epsilon: float) -> float:
        return compute_delta(ORDERS, self.rdp(), epsilon)[0]


class AutodpAccountant(RDPAccountant):
    """The same moments, sampled, composed and converted by the autodp library."""

    _knows_selections = False

    def _mechanism(self) -> Any:
        # Only here, since it takes a second, and few ask for it.
        from autodp.mechanism_zoo import ExactGaussianMechanism
        from autodp.transformer_zoo import Composition

        pooled = total_gaussian_multiplier(self._leaves)
        parts = [(_autodp_mechanism(e, self.relation), n) for e, n in self._leaves.items()]
        if all(isinstance(e, GaussianDpEvent) for e in self._leaves):
            parts = [(ExactGaussianMechanism(pooled), 1)]
        mechanisms, counts = zip(*parts, strict=True)
        if counts == (1,):
            return mechanisms[0]
        return Composition()(list(mechanisms), list(counts))

    def _epsilon(self, delta: float) -> float:
        # autodp's search divides by zero on its way.
        with np.errstate(all="ignore"):
            return self._mechanism().get_approxDP(delta)

    def _delta(self, epsilon: float) -> float:
        # autodp gives ε(δ), which falls in δ: bisect, and keep the safe side.
        low, high = -700.0, 0.0
        while high - low > 1e-6:
            middle = (low + high) / 2
            if self._epsilon(math.exp(middle)) > epsilon:
                low = middle
            else:
                high = middle
        return math.exp(high)


def _autodp_mechanism(event: DpEvent, relation: str) -> Any:
    from autodp.autodp_core import Mechanism
    from autodp.transformer_zoo import AmplificationBySampling

    base, rate, sampling = split_sampling(event)
    # autodp knows no Poisson sampling under replace_one: there it gets the moments of the sample.
    known = sampling if (sampling, relation) != ("poisson", "replace_one") else "none"
    described = event if known == "none" else base
    mechanism = Mechanism()
    mechanism.name, mechanism.params = "release", {}

    def moment(order: float) -> float:
        if np.isinf(order):
            return math.inf
        return float(rdp_of(described, relation, np.array([order]))[0])

    mechanism.propagate_updates(moment, "RDP")
    if known == "none":
        return mechanism
    poisson = known == "poisson"
    mechanism.neighboring = "add_remove" if poisson else "replace_one"
    amplify = AmplificationBySampling(PoissonSampling=poisson)
    return amplify(mechanism, rate, improved_bound_flag=poisson)


ACCOUNTANTS = {"pld": PLDAccountant, "rdp": RDPAccountant, "autodp": AutodpAccountant}


def ledger_epsilon(
    events: Iterable[DpEvent], delta: float, *, accountant: str = "pld", relation: str = "zero_out"
) -> float:
    """Return ε at `delta` of a sequence of events."""
    return fill_ledger(events, accountant, relation).get_epsilon(delta)


def ledger_delta(
    events: Iterable[DpEvent],
    epsilon: float,
    *,
    accountant: str = "pld",
    relation: str = "zero_out",
) -> float:
    """Return δ at `epsilon` of a sequence of events."""
    return fill_ledger(events, accountant, relation).get_delta(epsilon)


def is_covered(events: Iterable[DpEvent], bound: DpEvent, relation: str) -> bool:
    """Whether Rényi moments of events together are at most those of `bound`, at all orders."""
    covered, covering = (fill_ledger(part, "rdp", relation) for part in (events, [bound]))
    if any(map(_unbounded, covering._leaves)):
        return True
    if covered._threshold_delta or covered._pure_epsilon or any(map(_unbounded, covered._leaves)):
        return False
    return bool(np.all(covered.rdp() <= covering.rdp()))


def fill_ledger(events: Iterable[DpEvent], accountant: str, relation: str) -> _LedgerAccountant:
    if accountant not in ACCOUNTANTS:
        raise ValueError(f"accountant must be one of {list(ACCOUNTANTS)}; got {accountant!r}.")
    check_relation(relation)
    filled = ACCOUNTANTS[accountant](relation)
    for event in events:
        filled.compose(event)
    return filled


def check_relation(relation: str) -> None:
    """Refuse what is no neighbouring relation."""
    if not is_one_of(relation, RELATIONS):
        raise ValueError(f"relation must be one of {list(RELATIONS)}; got {relation!r}.")
