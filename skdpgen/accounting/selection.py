# SPDX-License-Identifier: BSD-3-Clause
"""Searches: a mechanism runs a random number of times, and only its best outcome is told."""

import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dp_accounting import DpEvent
from dp_accounting.dp_event import RepeatAndSelectDpEvent

from .._muting import muted
from ..exceptions import PlanError
from .accountants import ledger_epsilon
from .budget import PaidRun, Reservation

if TYPE_CHECKING:
    from ..mechanisms.noise import NoiseSource
from .calibration import calibrate_under, check_delta, check_epsilon
from .plan import Plan
from .spending import restate_with_price


def selection_plan(
    name: str,
    run_at: Callable[[float], DpEvent],
    mean: float,
    shape: float,
    epsilon: float,
    delta: float,
    *,
    relation: str = "zero_out",
) -> Plan:
    """Plan a search that spends a budget, as the ``"rdp"`` accountant prices it.

    Parameters
    ----------
    name : str
        The search.
    run_at : callable
        An event that covers every run, as a function of a noise multiplier.
    mean, shape : float
        Of the law of the number of runs: truncated negative binomial, geometric for shape 1.
    epsilon, delta, relation
        As in `Plan`.

    Returns
    -------
    Plan
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)

    def search_at(multiplier: float) -> DpEvent:
        return RepeatAndSelectDpEvent(run_at(multiplier), mean, shape)

    def epsilon_function(accountant: str) -> Callable[[float], float]:
        return lambda multiplier: ledger_epsilon(
            [search_at(multiplier)], delta, accountant=accountant, relation=relation
        )

    multiplier = calibrate_under("rdp", epsilon_function, epsilon)
    return Plan(((name, search_at(multiplier)),), epsilon, delta, relation, "rdp")


def select_best(
    run: Callable[[], tuple[float, Any]], plan: Plan, noise: "NoiseSource"
) -> tuple[float, Any]:
    """Run a mechanism a random number of times, and return the best outcome and its score.

    The price of the plan holds if the runs are alike and independent of each other, which is for
    the caller to see to: what differs between them, such as parameters, each draws anew from one
    law. A run is one fit, in this thread, and that it releases at most the planned event is checked
    before it does. It also takes that nothing else is told: of other runs nothing is kept, warnings
    are silenced, and how many there were is forgotten. An error counts as the best of all outcomes,
    and so ends the search; it states the price of the search, never that of a run. The first of
    equally good runs is taken, which is as likely to be one as another.

    Parameters
    ----------
    run : callable
        Fits once, and returns a score, and what it is of. Both follow from what the fit releases
        and from what is public.
    plan : Plan
        From `selection_plan`. It is reserved in every open `PrivacyBudget`, once for all runs.
    noise : NoiseSource
        Where the number of runs comes from.

    Returns
    -------
    score : float
    outcome : object
    """
    ((_, event),) = plan.releases
    reservation = Reservation(plan, noise.reproducible)
    best, found, released = None, None, False
    try:
        with muted():
            # No name is bound to how many there were, or will be.
            for _ in itertools.repeat(None, noise.number_of_runs(event.mean, event.shape)):
                with PaidRun(event.event, plan.relation) as paid:
                    try:
                        found = run()
                    finally:
                        released = released or bool(paid.released)
                if not paid.released:
                    raise PlanError("A run of the search has released nothing that was seen.")
                if math.isnan(found[0]):
                    raise ValueError("A score is nan.")
                if best is None or found[0] > best[0]:
                    best = found
    except BaseException as error:
        best = found = paid = None  # of which a traceback would tell
        if released and isinstance(error, Exception):
            raise restate_with_price(error, "All of the search is charged", plan) from error
        raise
    finally:
        reservation.settle(plan.events if released else ())
    return best
