"""One budget for several fits on the same data."""

import itertools
import os
import threading

from dp_accounting import GaussianDpEvent
from joblib import parallel_config

from .accounting import check_relation, ledger_epsilon
from .calibration import check_delta, check_epsilon
from .events import ThresholdDpEvent, flatten
from .exceptions import BudgetExceededError

__all__ = ["PrivacyBudget"]

# The open budgets of this process, seen by every thread: a fit in a worker thread is charged too.
_open_budgets = []
_lock = threading.RLock()


class PrivacyBudget:
    """A budget (ε, δ) that every fit made inside ``with budget:`` is charged to.

    A fit that would overrun it is refused before anything is released. The budget is no parameter
    of any estimator, so cloning, pickling or searching over estimators cannot reset it.

    Parameters
    ----------
    epsilon, delta : float
        What all fits together may cost.
    relation : {"zero_out", "replace_one"}, default="zero_out"
        Which data sets are neighbours; fits under another relation are refused.

    Attributes
    ----------
    spent : float
        ε at `delta` of what was released so far.

    Notes
    -----
    Fits may be chosen one after the other, by what earlier ones gave: unsampled Gaussian releases,
    with thresholds or without, compose exactly under such adaptivity. Other events are refused, as
    are fits with an int `random_state`, which share noise. The budget belongs to this process:
    inside ``with budget:``
    joblib runs in threads by default; fits that are sent to other processes all the same are not
    seen. Scores of private rows are not charged either: they are reads outside of every ledger.
    A search turns a refused fit into a NaN score unless it has ``error_score="raise"``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpgen import DPSlicedWassersteinGenerator, PrivacyBudget
    >>> X = np.random.RandomState(0).normal(size=(50, 2))
    >>> budget = PrivacyBudget(epsilon=1.5, delta=1e-5)
    >>> with budget:
    ...     first = DPSlicedWassersteinGenerator(epsilon=1.0).fit(X)
    >>> bool(0.99 < budget.spent <= 1.0)
    True
    >>> with budget:
    ...     second = DPSlicedWassersteinGenerator(epsilon=1.4).fit(X)
    Traceback (most recent call last):
        ...
    skdpgen.privacy.exceptions.BudgetExceededError: ...
    """

    def __init__(self, epsilon, delta, *, relation="zero_out"):
        check_epsilon(epsilon)
        check_delta(delta)
        check_relation(relation)
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self._pid = os.getpid()
        self._charges = {}
        self._tickets = itertools.count()
        self._threading = []

    @property
    def spent(self):
        return self._cost(())

    def __enter__(self):
        with _lock:
            _open_budgets.append(self)
        self._threading.append(parallel_config(backend="threading"))
        self._threading[-1].__enter__()
        return self

    def __exit__(self, *exc_info):
        self._threading.pop().__exit__(*exc_info)
        with _lock:
            _open_budgets.remove(self)

    def __getstate__(self):
        raise TypeError("A PrivacyBudget cannot be copied or pickled: the copy could be spent too.")

    def _cost(self, events):
        charged = [event for charge in self._charges.values() for event in charge]
        return ledger_epsilon([*charged, *events], self.delta, relation=self.relation)

    def _reserve(self, plan, reproducible):
        """Charge a whole plan, or refuse it."""
        if os.getpid() != self._pid:
            raise BudgetExceededError(
                "A PrivacyBudget cannot be spent in a child process: its parent would not see it."
            )
        if reproducible:
            raise BudgetExceededError(
                "A PrivacyBudget refuses fits with a fixed random_state: fits that share a seed "
                "share noise. Set random_state=None."
            )
        if plan.relation != self.relation:
            raise BudgetExceededError(
                f"The budget is for relation={self.relation!r}; the fit has {plan.relation!r}."
            )
        known = GaussianDpEvent, ThresholdDpEvent
        if not all(isinstance(event, known) for event in flatten(plan.events)):
            raise BudgetExceededError(
                "A PrivacyBudget holds unsampled Gaussian releases only; the fit plans others."
            )
        cost = self._cost(plan.events)
        if cost > self.epsilon * (1 + 1e-9):
            raise BudgetExceededError(
                f"With this fit ε = {cost:g} at δ = {self.delta:g} would be spent, over the budget "
                f"of {self.epsilon:g}; {self.spent:g} is spent already."
            )
        ticket = next(self._tickets)
        self._charges[ticket] = tuple(plan.events)
        return ticket

    def _settle(self, ticket, events):
        """Replace what was reserved by what was released."""
        self._charges[ticket] = events


class Reservation:
    """What one fit has reserved in all budgets that are open."""

    def __init__(self, plan, reproducible):
        self._tickets = []
        with _lock:
            try:
                for budget in dict.fromkeys(_open_budgets):
                    self._tickets.append((budget, budget._reserve(plan, reproducible)))
            except BudgetExceededError:
                self.settle(())
                raise

    def settle(self, events):
        """Keep the charge for `events` only."""
        events = tuple(events)
        with _lock:
            for budget, ticket in self._tickets:
                budget._settle(ticket, events)
