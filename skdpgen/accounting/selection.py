# SPDX-License-Identifier: BSD-3-Clause
"""Private selection: the best of a random number of runs of a mechanism is released."""

import itertools
import math
from collections.abc import Callable
from typing import Any

from dp_accounting import DpEvent
from dp_accounting.dp_event import RepeatAndSelectDpEvent

from .._process.muting import muted
from ..exceptions import PlanError
from .budget import PaidRun, Reservation
from .calibration import calibrate_noise, check_delta, check_epsilon
from .events import noise_unit
from .plan import Plan
from .spending import note_price, restate_with_price

_CHARGED = "All of the search is charged"


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
    """Plan a private search that spends a budget under the ``"rdp"`` accountant.

    Parameters
    ----------
    name : str
        Name of the search.
    run_at : callable
        Event that bounds every run, as a function of a noise multiplier.
    mean, shape : float
        Mean and shape of the number of runs: truncated negative binomial, geometric for shape 1.
    epsilon, delta, relation
        As in `Plan`.

    Returns
    -------
    Plan
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)

    def search_at(multiplier: float) -> DpEvent:
        return RepeatAndSelectDpEvent(run_at(multiplier), mean, shape)

    guess = noise_unit(run_at(1.0), relation)
    multiplier = calibrate_noise(
        search_at, epsilon, delta, accountant="rdp", relation=relation, guess=guess
    )
    return Plan(((name, search_at(multiplier)),), epsilon, delta, relation, "rdp")


def select_best(run: Callable[[], tuple[float, Any]], plan: Plan, noise: Any) -> tuple[float, Any]:
    """Run a mechanism a random number of times, and return the best outcome and its score.

    The price of the plan holds if the runs are independent and identically distributed. The caller
    must ensure this: each run draws its parameters anew from one distribution. A run is one fit in
    this thread; before it releases anything, its plan is checked against the planned event. The
    price also requires that nothing else is revealed: nothing of other runs is kept, warnings are
    silenced, and the number of runs is discarded. An error counts as the best of all outcomes, and
    so ends the search; it states the price of the search, never that of a run. Ties go to the first
    run, which is equally likely to be any of them.

    Parameters
    ----------
    run : callable
        Fits once, and returns a score and an outcome. Both must depend only on the releases of the
        fit and on public values.
    plan : Plan
        Plan from `selection_plan`, reserved once for all runs in every open `PrivacyBudget`.
    noise : NoiseSource
        Source of the number of runs.

    Returns
    -------
    score : float
        Highest score.
    outcome : object
        Outcome of that run.
    """
    # One release: a search inside of a larger plan has no price yet.
    ((_, event),) = plan.releases
    reservation = Reservation(plan, noise.reproducible)
    # Never None at the end: there is at least one run.
    best: Any = None
    result: Any = None
    released = False
    try:
        with muted():
            # No variable holds the number of runs, which must stay secret.
            for _ in itertools.repeat(None, noise.number_of_runs(event.mean, event.shape)):
                with PaidRun(event.event, plan.relation) as paid:
                    try:
                        result = run()
                    finally:
                        released = released or bool(paid.released)
                if not paid.released:
                    raise PlanError(
                        "A run of the search has released nothing that was seen in this thread."
                    )
                # Nothing compares greater than NaN: a first such score would win.
                if math.isnan(result[0]):
                    raise ValueError("A score of the search is nan.")
                if best is None or result[0] > best[0]:
                    best = result
    except BaseException as error:
        best = result = paid = None  # A traceback would reveal them.
        if released and isinstance(error, Exception):
            raise restate_with_price(error, _CHARGED, plan) from error
        if released:
            note_price(error, _CHARGED, plan)
        raise
    finally:
        # Nothing was revealed if no run had begun to release.
        reservation.settle(plan.events if released else ())
    return best
