# SPDX-License-Identifier: BSD-3-Clause
"""Plans of fits: releases and their noise, fixed before the first release."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dp_accounting import ComposedDpEvent, DpEvent

from ..checks import check_number
from ..exceptions import BudgetExceededError, PlanError
from ..registry import savable
from .accountants import ledger_epsilon
from .calibration import calibrate_gaussian, calibrate_noise, check_delta, check_epsilon
from .event_types import find_conflict
from .events import (
    gaussian_event,
    is_pure,
    noise_unit,
    over_sensitivity,
    plain_multiplier,
    repeat,
    split_sampling,
    step_std,
)
from .rounding import show
from .units import unit_sensitivity

# Name of a release, the event of one step as a function of its multiplier, number of steps.
RepeatedRelease = tuple[str, Callable[[float], DpEvent], int]


@savable
@dataclass(frozen=True)
class Plan:
    """Planned releases of a fit, in order, whose cost is within the budget.

    A release makes it of public numbers, before a budget is charged or a row is read. The curator
    then makes these releases, in this order, and no others; learners ask for their noise by
    `multiplier`.

    Attributes
    ----------
    releases : tuple of (str, dp_accounting.DpEvent)
        Name and event of each release. A repeated release is planned as a `SelfComposedDpEvent` of
        one step.
    epsilon, delta : float
        The budget, which all events together must not exceed.
    relation, accountant : str
        Neighbouring relation and accountant of the price.
    sigma : float or None
        Standard deviation of the noise, if there is one level.
    local : bool
        Whether every release randomises each record on its own (local differential privacy).
    max_rows : int or None
        Largest number of rows of a person that are used, if the unit is a person. None: the unit
        is a record.
    max_weight : int or None
        Largest total weight of the rows of a person in a sum. None: each row weighs 1, so that it
        is `max_rows`.
    follows : str or None
        Digest of the update that this one of a stream follows: all updates share one plan, and a
        budget that was charged with that one is charged with nothing more, once.

    Raises
    ------
    BudgetExceededError
        If the releases cost more than the budget.
    PlanError
        If names are not distinct, or `max_rows` is less than 1; if no fit makes such releases for
        this unit, under this relation.
    """

    releases: tuple
    epsilon: float
    delta: float
    relation: str = "zero_out"
    accountant: str = "pld"
    sigma: float | None = None
    local: bool = False
    max_rows: int | None = None
    max_weight: int | None = None
    follows: str | None = None

    def __post_init__(self) -> None:
        # A list could change after it was priced.
        object.__setattr__(self, "releases", tuple(map(tuple, self.releases)))
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_delta(self.delta))
        names = [name for name, _ in self.releases]
        if len(set(names)) < len(names):
            raise PlanError(f"Releases of a plan must have distinct names; got {names}.")
        if self.max_rows is not None and not self.max_rows >= 1:
            raise PlanError(f"max_rows must be at least 1; got {self.max_rows!r}.")
        self.check_place(None)
        # Every plan is priced where it is made: no caller can construct one that exceeds its
        # budget.
        cost = ledger_epsilon(
            self.events, self.delta, accountant=self.accountant, relation=self.relation
        )
        if cost > self.epsilon:
            raise BudgetExceededError(
                f"The plan costs ε = {show(cost)} at δ = {show(self.delta)}, over its budget of "
                f"{show(self.epsilon)}."
            )

    def check_place(self, engine: str | None) -> None:
        """Raise a PlanError if no fit makes these releases together; see `find_conflict`."""
        terms = self.relation, self.local, self.max_rows, engine
        if conflict := find_conflict(self.events, *terms):
            raise PlanError(conflict)

    @property
    def events(self) -> tuple[DpEvent, ...]:
        """Planned events, in order."""
        return tuple(event for _, event in self.releases)

    @property
    def is_pure(self) -> bool:
        """Whether ε holds at δ = 0."""
        return is_pure(self.events)

    def multiplier(self, name: str) -> float:
        """Return the noise of the Gaussian release `name` over its sensitivity; 0 for no noise."""
        return plain_multiplier(over_sensitivity(dict(self.releases)[name], self.relation))

    @property
    def weight(self) -> int | None:
        """Largest total weight of the rows of a person in a sum; None for records."""
        return self.max_rows if self.max_weight is None else self.max_weight

    def bound(self, sensitivity: Callable[[str], float]) -> float:
        """Return the sensitivity of a sum between neighbours; see `unit_sensitivity`."""
        return unit_sensitivity(sensitivity, self.relation, self.weight)


@dataclass(frozen=True)
class Terms:
    """Terms of a plan: the budget and public numbers of the data.

    Attributes
    ----------
    epsilon, delta, relation, accountant
        As in `Plan`.
    n_samples, n_classes : int
        Number of records, or of persons, and number of classes.
    n_columns : int or None
        Number of encoded columns; None while columns are undeclared.
    shares, thresholds : dict
        Earlier releases, as in `gaussian_plan`.
    max_rows
        As in `Plan`.
    """

    epsilon: float
    delta: float
    relation: str
    accountant: str
    n_samples: int
    n_classes: int
    n_columns: int | None
    shares: dict = field(default_factory=dict)
    thresholds: dict = field(default_factory=dict)
    max_rows: int | None = None

    def check(self, plan: Plan) -> None:
        """Raise a PlanError if a plan is for more than these terms, or leaves out what is first."""
        first = [name for name, _ in plan.releases[: len(self.shares)]]
        kept = first, plan.relation, plan.accountant
        is_within = plan.epsilon <= self.epsilon and plan.delta <= self.delta
        if not is_within or kept != ([*self.shares], self.relation, self.accountant):
            raise PlanError(
                f"The plan is for ε = {show(plan.epsilon)}, δ = {show(plan.delta)}, {kept[1:]}, "
                f"after {first}; the terms are ε = {show(self.epsilon)}, δ = {show(self.delta)}, "
                f"{(self.relation, self.accountant)}, after {[*self.shares]}. Make it by "
                "terms.plan_once or terms.plan_steps."
            )

    @property
    def _priced(self) -> dict[str, Any]:
        return {
            "thresholds": self.thresholds,
            "relation": self.relation,
            "accountant": self.accountant,
        }

    def plan_once(
        self, shares: Mapping[str, float], sensitivity: Callable[[Plan, str], float]
    ) -> Plan:
        """Plan single Gaussian releases with the remaining budget.

        Parameters
        ----------
        shares : dict of str to float
            Share of the remaining ρ for each release. They must sum to 1.
        sensitivity : callable
            Sensitivity of the first release as a function of a plan and a relation.

        Returns
        -------
        Plan
        """
        # The first of the shares is the main release, whose σ is shown to users.
        left, name = 1 - sum(self.shares.values()), next(iter(shares))
        shares = self.shares | {name: left * share for name, share in shares.items()}
        plan = gaussian_plan(shares, self.epsilon, self.delta, **self._priced)
        plan = replace(plan, max_rows=self.max_rows)
        # The sensitivity can depend on the noise, as grids do: the plan is made first.
        bound = plan.bound(lambda relation: sensitivity(plan, relation))
        return replace(plan, sigma=plan.multiplier(name) * bound)

    def plan_steps(
        self,
        name: str,
        step: Callable[[float], DpEvent],
        n_steps: int,
        *,
        shares: Mapping[str, float] | None = None,
        before: Sequence[RepeatedRelease] = (),
        sensitivity: float,
    ) -> Plan:
        """Plan a repeated release with the remaining budget; see `repeated_plan`."""
        plan = repeated_plan(
            name,
            step,
            n_steps,
            self.epsilon,
            self.delta,
            shares={**self.shares, **(shares or {})},
            before=before,
            sensitivity=sensitivity,
            **self._priced,
        )
        if self.max_rows is None:
            return plan
        return replace(plan, max_rows=self.max_rows, sigma=(plan.sigma or 0.0) * self.max_rows)


def gaussian_plan(
    shares: Mapping[str, float],
    epsilon: float,
    delta: float,
    *,
    thresholds: Mapping[str, float] | None = None,
    relation: str = "zero_out",
    accountant: str = "pld",
) -> Plan:
    """Plan unsampled Gaussian releases that together spend a budget.

    Parameters
    ----------
    shares : dict of str to float
        Share of ρ for each release: a fraction of Σ s⁻². They must sum to 1.
    epsilon, delta, relation, accountant
        As in `Plan`.
    thresholds : dict of str to float, default=None
        δ' of each release by a threshold; see `ThresholdDpEvent`.

    Returns
    -------
    Plan
    """
    if not math.isclose(sum(shares.values()), 1):
        raise ValueError(f"Shares must sum to 1; got {shares}.")
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    releases = _gaussian_releases(shares, thresholds or {}, epsilon, delta, relation, accountant)
    return Plan(releases, epsilon, delta, relation, accountant)


def repeated_plan(
    name: str,
    step: Callable[[float], DpEvent],
    n_steps: int,
    epsilon: float,
    delta: float,
    *,
    shares: Mapping[str, float] | None = None,
    thresholds: Mapping[str, float] | None = None,
    before: Sequence[RepeatedRelease] = (),
    relation: str = "zero_out",
    accountant: str = "pld",
    sensitivity: float = 1.0,
) -> Plan:
    """Plan unsampled Gaussian releases, and then a repeated release with the remaining budget.

    Parameters
    ----------
    name : str
        Name of the repeated release.
    step : callable
        Event of one step as a function of its noise multiplier; see `ledger_epsilon`.
    n_steps : int
        Number of steps.
    epsilon, delta, relation, accountant
        As in `Plan`.
    shares : dict of str to float, default=None
        Share for each Gaussian release: a fraction of the Σ s⁻² that Gaussian releases alone could
        spend.
    thresholds : dict of str to float, default=None
        δ' of each release by a threshold.
    before : sequence of (name, step, n_steps), default=()
        Other repeated releases, between the two; they have the multiplier of the last one.
    sensitivity : float, default=1.0
        Sensitivity of a step of the repeated release, from which `Plan.sigma` follows.

    Returns
    -------
    Plan
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    check_number("n_steps", n_steps, whole=True)
    if shares and sum(shares.values()) >= 1:
        raise ValueError(
            f"Shares must sum to less than 1, or the rest is too small for {name!r}; got {shares}."
        )
    # First the releases whose share is fixed; what their noise leaves is found by the calibration
    # below.
    first = _gaussian_releases(shares or {}, thresholds or {}, epsilon, delta, relation, accountant)

    def releases_at(multiplier: float) -> tuple[tuple[str, DpEvent], ...]:
        repeated = (*before, (name, step, n_steps))
        return (*first, *((name, repeat(step(multiplier), n)) for name, step, n in repeated))

    def event_at(multiplier: float) -> DpEvent:
        return ComposedDpEvent([event for _, event in releases_at(multiplier)])

    # From noise of the size of the sensitivity.
    guess = noise_unit(split_sampling(step(1.0))[0], relation)
    terms = {"accountant": accountant, "relation": relation}
    multiplier = calibrate_noise(event_at, epsilon, delta, guess=guess, **terms)
    sigma = step_std(step(multiplier), sensitivity, relation)
    return Plan(releases_at(multiplier), epsilon, delta, relation, accountant, sigma)


def _gaussian_releases(
    shares: Mapping[str, float],
    thresholds: Mapping[str, float],
    epsilon: float,
    delta: float,
    relation: str,
    accountant: str,
) -> tuple[tuple[str, DpEvent], ...]:
    """Split the multiplier s that spends the budget: a share p of ρ has s / √p."""
    if any(not share > 0 for share in shares.values()):
        raise ValueError(f"Shares must be positive; got {shares}.")
    # Thresholds take their δ', and their part of ε, from the budget first: that of a single one
    # with all of δ', which is more than that of several, as a `PrivacyBudget` reserves it.
    slack = sum(thresholds.values())
    total = calibrate_gaussian(
        epsilon + math.log1p(-slack),
        delta - slack,
        relation=relation,
        accountant=accountant,
    )

    def releases_at(total: float) -> tuple[tuple[str, DpEvent], ...]:
        return tuple(
            (name, gaussian_event(total / math.sqrt(share), thresholds.get(name)))
            for name, share in shares.items()
        )

    def costs(total: float) -> float:
        events = [event for _, event in releases_at(total)]
        return ledger_epsilon(events, delta, accountant=accountant, relation=relation)

    # Rounding may make the parts cost more than the whole in the last digit.
    slack = 1e-12
    while costs(total) > epsilon:
        total, slack = total * (1 + slack), 2 * slack
    return releases_at(total)
