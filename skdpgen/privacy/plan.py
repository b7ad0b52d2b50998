"""The plan of a fit: its releases and their noise, fixed before the first of them."""

import math
from dataclasses import dataclass

from dp_accounting import GaussianDpEvent, NonPrivateDpEvent

from .accounting import ledger_epsilon
from .calibration import calibrate_gaussian, check_delta, check_epsilon
from .events import gaussian_event
from .exceptions import BudgetExceededError, PlanError

__all__ = ["Plan", "gaussian_plan"]


@dataclass(frozen=True)
class Plan:
    """What a curator may release, once each and in this order.

    Attributes
    ----------
    releases : tuple of (str, dp_accounting.DpEvent)
        Name and event of each release.
    epsilon, delta : float
        The budget, which the events together may not exceed.
    relation, accountant : str
        How they are priced.
    sigma : float or None
        Standard deviation of the noise, where there is one level to name.
    """

    releases: tuple
    epsilon: float
    delta: float
    relation: str = "zero_out"
    accountant: str = "pld"
    sigma: float | None = None

    def __post_init__(self):
        # A list could change after it was priced.
        object.__setattr__(self, "releases", tuple(map(tuple, self.releases)))
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        names = [name for name, _ in self.releases]
        if len(set(names)) < len(names):
            raise PlanError(f"Releases of a plan need different names; got {names}.")
        cost = ledger_epsilon(
            self.events, self.delta, accountant=self.accountant, relation=self.relation
        )
        if cost > self.epsilon * (1 + 1e-9):
            raise BudgetExceededError(
                f"The plan costs ε = {cost:g} at δ = {self.delta:g}, over its budget of "
                f"{self.epsilon:g}."
            )

    @property
    def events(self):
        """The planned events, in order."""
        return tuple(event for _, event in self.releases)

    def multiplier(self, name):
        """Return the noise multiplier of the Gaussian release called `name`; 0 for no noise."""
        event = dict(self.releases)[name]
        if isinstance(event, NonPrivateDpEvent):
            return 0.0
        if not isinstance(event, GaussianDpEvent):
            raise PlanError(f"{name!r} is planned as {event}, which is no plain Gaussian release.")
        return event.noise_multiplier


def gaussian_plan(shares, epsilon, delta, *, relation="zero_out", accountant="pld"):
    """Plan unsampled Gaussian releases that spend a budget together.

    Parameters
    ----------
    shares : dict of str to float
        For each release, by name, its share of the budget: a fraction of Σ s⁻². They sum to 1.
    epsilon, delta, relation, accountant
        As in `Plan`.

    Returns
    -------
    Plan
    """
    check_epsilon(epsilon)
    check_delta(delta)
    if any(share <= 0 for share in shares.values()) or not math.isclose(sum(shares.values()), 1):
        raise ValueError(f"Shares must be positive and sum to 1; got {shares}.")
    total = calibrate_gaussian(epsilon, delta, relation=relation, accountant=accountant)
    releases = tuple(
        (name, gaussian_event(total / math.sqrt(share))) for name, share in shares.items()
    )
    return Plan(releases, epsilon, delta, relation, accountant)
