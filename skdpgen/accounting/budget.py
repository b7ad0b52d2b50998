# SPDX-License-Identifier: BSD-3-Clause
"""Privacy budgets shared by several fits on the same data."""

import contextlib
import itertools
import json
import math
import numbers
import os
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import NoReturn

from dp_accounting import DpEvent, GaussianDpEvent
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from joblib import parallel_config

from ..checks import flag
from ..exceptions import BudgetExceededError
from .accountants import check_relation, is_covered, ledger_epsilon
from .budget_stores import Charge, FileStore, MemoryStore, read_terms
from .calibration import check_delta, check_epsilon
from .events import (
    ThresholdDpEvent,
    flatten,
    gaussian_event,
    is_pure,
    plain_multiplier,
    repeat,
    threshold_delta,
)
from .plan import Plan
from .rounding import at_most, show

# Open budgets of this process, shared by its threads: a fit in a worker thread is charged too.
_open_budgets: "list[PrivacyBudget]" = []
_lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    # Otherwise a child could wait for ever for a lock that another thread of its parent held.
    # The lock is held across the fork, so that neither process copies a half-written list.
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )
# Environment variable from which new processes read the paths of open budgets.
_VARIABLE = "SKDPGEN_BUDGETS"
# Paths of budgets that were open in the parent when this process was started.
_inherited = tuple(json.loads(os.environ.get(_VARIABLE, "[]")))
# Run of a search in this thread, which the search has paid for.
_paid_run: "ContextVar[PaidRun | None]" = ContextVar("paid run", default=None)


class PrivacyBudget:
    """Budget (ε, δ) that is charged for every fit inside ``with budget:``.

    A fit that would exceed it raises BudgetExceededError before anything is released. The budget is
    not a parameter of estimators, so cloning, pickling or searching over estimators cannot reset
    it.

    Parameters
    ----------
    epsilon, delta : float
        Largest total cost of all fits.
    relation : {"zero_out", "replace_one"}, default="zero_out"
        Neighbouring relation; fits under another relation raise BudgetExceededError.
    threshold_delta : float, default=0.0
        Part of δ that is reserved for releases by a threshold, which infer the categories of
        undeclared columns. Each such fit needs a tenth of its δ. Nothing else can use it.
    adaptive : bool, default=True
        True: the terms of a fit may depend on the results of earlier fits. False: the number of
        fits, and the ε, δ, sampling and steps of each, are fixed before the first one. Then all
        types of releases compose by privacy loss distributions, in any order.
    path : str or path, default=None
        File that stores the charges, so that they outlive the process and several processes can
        share them. It is created if it does not exist; an existing file must have the same terms.

    Attributes
    ----------
    spent : float
        ε at `delta` of all releases so far.

    Notes
    -----
    If `adaptive`, unsampled Gaussian releases compose exactly. Fits with other releases (samples,
    projected rows, local noise, private searches) must come before them; each is charged its own ε
    and δ, which add up. Thresholds add their δ', which is reserved beforehand. Any other order
    would let an adaptive choice between two types of release cost up to twice δ.

    Otherwise only private searches are charged their own ε and δ, and no failed fit is given back
    what it has not released. Nothing checks that the fits were fixed beforehand.

    An int `random_state` raises BudgetExceededError: such fits share noise. Scores on private rows
    are not charged.

    All threads of the process are charged. In the thread that opens the budget, joblib uses
    threads by default. Fits in *other processes* are charged only if the budget has a `path`, and
    depending on when the process was started: a process that was started inside ``with budget:``
    is charged as long as it runs, even after the block has ended; a process that was started
    before is never charged. This applies to each worker that joblib (loky) keeps and reuses, and
    to multiprocessing's fork server, whose start counts for all processes that it forks. Without a
    `path`, fits in forked children raise BudgetExceededError, and those in other processes are
    missed.

    With a `path`, the plan of a fit is stored on disk before a row is read; if the process is
    killed, the whole plan counts as spent. Nothing prevents copying, restoring or deleting the
    file: only those who may spend it should be able to write it. A file that was copied to another
    place, or restored from an earlier copy, gives a `PrivacyLeakWarning`, unless ``<path>-count``
    beside it was restored, too. Either all fits are for records, or all are for persons,
    with any number of rows each. A grid search scores a refused fit as NaN unless it has
    ``error_score="raise"``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpgen import DPSlicedWassersteinGenerator, PrivacyBudget
    >>> X = np.random.RandomState(0).normal(size=(50, 2))
    >>> budget = PrivacyBudget(epsilon=1.5, delta=1e-5)
    >>> with budget:
    ...     first = DPSlicedWassersteinGenerator(1.0, n_steps=5).fit(X)
    >>> budget
    <PrivacyBudget: ε = 1 of 1.5 is spent at δ = 1e-05 (zero_out)>
    >>> with budget:
    ...     second = DPSlicedWassersteinGenerator(1.4, n_steps=5).fit(X)
    Traceback (most recent call last):
        ...
    skdpgen.exceptions.BudgetExceededError: ...
    """

    epsilon: float
    delta: float
    relation: str
    threshold_delta: float
    adaptive: bool

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        relation: str = "zero_out",
        threshold_delta: float = 0.0,
        adaptive: bool = True,
        path: str | PathLike | None = None,
    ) -> None:
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        if not isinstance(threshold_delta, numbers.Real) or not 0 <= threshold_delta < delta:
            raise ValueError(f"threshold_delta must be in [0, delta); got {threshold_delta!r}.")
        check_relation(relation)
        flag("adaptive", adaptive)
        if threshold_delta and not adaptive:
            raise ValueError("adaptive=False prices thresholds as all else; set threshold_delta=0.")
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.threshold_delta = at_most(threshold_delta)
        self.adaptive = bool(adaptive)
        names = ("epsilon", "delta", "relation", "threshold_delta", "adaptive")
        terms = {name: getattr(self, name) for name in names}
        self._store: MemoryStore | FileStore = (
            MemoryStore() if path is None else FileStore(path, terms)
        )
        self._configs: list[_ThreadingConfig] = []

    @classmethod
    def from_file(cls, path: str | PathLike) -> "PrivacyBudget":
        """Return the budget that is stored in a file."""
        return cls(**read_terms(path)[0], path=path)

    @property
    def path(self) -> Path | None:
        """File that stores the charges, or None."""
        return self._store.path if isinstance(self._store, FileStore) else None

    @property
    def is_closed(self) -> bool:
        """Whether the budget refuses further charges."""
        return isinstance(self._store, FileStore) and self._store.is_closed

    def close(self) -> None:
        """Refuse all further charges, permanently; the budget must have a `path`."""
        if not isinstance(self._store, FileStore):
            raise ValueError("Only a budget with a path can be closed.")
        self._store.close()

    @property
    def spent(self) -> float:
        return self._cost(self._store.read())

    def __enter__(self) -> "PrivacyBudget":
        with _lock:
            _open_budgets.append(self)
            _tell_processes()
            self._configs.append(_ThreadingConfig())
        return self

    def __exit__(self, *exc_info: object) -> None:
        with _lock:
            _open_budgets.remove(self)
            _tell_processes()
            # One that this thread entered, if any: a budget may be open in several threads.
            config = max(self._configs, key=lambda config: config in _configs.entered)
            self._configs.remove(config)
        config.close()

    def __repr__(self) -> str:
        return f"<PrivacyBudget: {self._describe()}>"

    def _repr_html_(self) -> str:
        from .._html import make_table

        rows = []
        # `_describe` reports a file that cannot be read.
        with contextlib.suppress(OSError):
            rows = [
                (i, event, "person" if charge.is_for_persons else "record")
                for i, charge in enumerate(self._store.read(), 1)
                for event in charge.events
            ]
        return make_table(f"Budget: {self._describe()}.", ["Fit", "Event", "Unit"], rows)

    def _describe(self) -> str:
        """Return the terms, the cost so far and the file as text."""
        try:
            spent, closed = show(self.spent), "; closed" * self.is_closed
        except OSError as error:
            spent, closed = "unknown", f"; {error}"
        place = "" if self.path is None else f", in {self.path}"
        return (
            f"ε = {spent} of {show(self.epsilon)} is spent at δ = {show(self.delta)} "
            f"({self.relation}{', fits fixed beforehand' * (not self.adaptive)}){place}{closed}"
        )

    def __getstate__(self) -> NoReturn:
        raise TypeError("A PrivacyBudget cannot be copied or pickled: the copy could be spent too.")

    def _is_apart(self, events: Iterable[DpEvent]) -> bool:
        """Return whether a fit is charged its own ε and δ, rather than composed with others."""
        return not _is_gaussian(events) if self.adaptive else _has_search(events)

    def _cost(self, charges: Sequence[Charge]) -> float:
        """Return ε of charges: those apart at their own δ, all others at the remaining δ."""
        cost, left = 0.0, self.delta - self.threshold_delta
        together: list[DpEvent] = []
        for charge in charges:
            if not self._is_apart(charge.events):
                together += charge.events
                continue
            delta = _own_delta(charge)
            accountant = "rdp" if _has_search(charge.events) else "pld"
            # Basic composition adds both pairs (ε, δ).
            left -= delta
            cost += ledger_epsilon(
                charge.events, delta, accountant=accountant, relation=self.relation
            )
        if self.adaptive:
            # A threshold's δ' is charged in full by `threshold_delta` below; here only its Gaussian
            # counts.
            together = [
                repeat(gaussian_event(plain_multiplier(event)), count)
                for event, count in flatten(together).items()
            ]
        # Sums of δ round: nothing was overspent by 1e-9 of it.
        if left < -1e-9 * self.delta or (left <= 0 and together):
            return math.inf
        if together:
            cost += ledger_epsilon(together, left, relation=self.relation)
        # All of threshold_delta is charged from the first fit on: the price of a fit must not
        # depend on thresholds of fits to come.
        return cost - math.log1p(-self.threshold_delta) if any(c.events for c in charges) else 0.0

    def _check_thresholds(self, charges: Sequence[Charge]) -> None:
        composed = [charge.events for charge in charges if not self._is_apart(charge.events)]
        total = threshold_delta(itertools.chain.from_iterable(composed))
        if self.adaptive and total > self.threshold_delta * (1 + 1e-9):
            raise BudgetExceededError(
                f"With this fit releases by a threshold would take {show(total)} of δ; the budget "
                f"sets aside threshold_delta={show(self.threshold_delta)} for them. Make a budget "
                f"with threshold_delta={show(max(total, self.delta / 10))} or more "
                "(--threshold-delta), or declare the categories of all columns."
            )

    def _reserve(self, plan: Plan, reproducible: bool) -> tuple[int, Charge]:
        """Charge a whole plan, or claim the charge of the update that it follows; or raise.

        Returns a ticket, and the charge that stays if nothing is released.
        """
        if reproducible:
            raise BudgetExceededError(
                "A PrivacyBudget refuses fits with a fixed random_state: fits that share a seed "
                "share noise. Set random_state=None."
            )
        if plan.relation != self.relation:
            raise BudgetExceededError(
                f"The budget is for relation={self.relation!r}; the fit has {plan.relation!r}."
            )
        charge = Charge(tuple(plan.events), plan.delta, plan.max_rows is not None)

        def decide(charges: dict[int, Charge]) -> tuple[int | None, Charge, Charge]:
            for ticket, paid in charges.items():
                # The claimed charge loses its digest: nobody else can follow the same update.
                if plan.follows is not None and paid == replace(charge, digest=plan.follows):
                    return ticket, charge, paid
            self._check(charge, list(charges.values()))
            return None, charge, replace(charge, events=())

        # Decided in the store's transaction: two fits cannot both see the last of the budget.
        return self._store.add(decide)

    def _check(self, charge: Charge, charges: Sequence[Charge]) -> None:
        """Raise a BudgetExceededError if a charge does not fit beside others."""
        # A person's rows are many records: the two kinds of guarantee have no common price.
        if any(charge.is_for_persons != other.is_for_persons for other in charges):
            raise BudgetExceededError(
                "The fits of a PrivacyBudget must all be for records, or all for persons: give "
                "persons=... to all of them, or to none."
            )
        is_late = any(c.events and not self._is_apart(c.events) for c in charges)
        if self.adaptive and is_late and self._is_apart(charge.events):
            raise BudgetExceededError(
                "A PrivacyBudget takes unsampled Gaussian releases last, and some are charged "
                "already; the fit plans others. Make such fits first, or set adaptive=False if the "
                "terms of all fits are fixed beforehand."
            )
        together = [*charges, charge]
        self._check_thresholds(together)
        # Sums of δ round, here and in the cost.
        own = (1 - 1e-9) * sum(_own_delta(c) for c in together if self._is_apart(c.events))
        if own > self.delta - self.threshold_delta:
            raise BudgetExceededError(
                f"With this fit δ = {show(own)} would be spent on fits that are charged their own "
                f"ε and δ, over the budget of {show(self.delta - self.threshold_delta)}. Give each "
                "a smaller delta, or set adaptive=False if the terms of all are fixed beforehand."
            )
        cost = self._cost(together)
        # Calibration ends within 1e-12 of the budget, and the sum of several fits within rounding
        # of it.
        if cost > self.epsilon * (1 + 1e-9):
            aside = f", and {show(self.threshold_delta)} of δ is set aside for inferred categories"
            raise BudgetExceededError(
                f"With this fit ε = {show(cost)} at δ = {show(self.delta)} would be spent, over "
                f"the budget of {show(self.epsilon)}; {show(self._cost(charges))} is spent already"
                f"{aside * (self.threshold_delta > 0)}. Give the fit a smaller epsilon."
            )

    def _settle(self, ticket: int, charge: Charge, planned: tuple[DpEvent, ...]) -> None:
        """Replace a reserved charge by that for what was released, or for the whole plan."""
        # The end of a fit may follow from its releases: to spend the rest is an adaptive choice.
        if charge.events and not (self.adaptive and _is_gaussian(planned)):
            charge = replace(charge, events=planned)
        self._store.settle(ticket, charge)


def _is_gaussian(events: Iterable[DpEvent]) -> bool:
    """Return whether all events are unsampled Gaussian releases, plain or by a threshold."""
    return all(isinstance(event, GaussianDpEvent | ThresholdDpEvent) for event in flatten(events))


def _own_delta(charge: Charge) -> float:
    """Return the δ at which a charge holds on its own."""
    return 0.0 if is_pure(charge.events) else charge.delta


def _has_search(events: Iterable[DpEvent]) -> bool:
    """Return whether a private search is among events."""
    return any(isinstance(event, RepeatAndSelectDpEvent) for event in flatten(events))


class _Configs(threading.local):
    """joblib configurations that budgets have entered in this thread, in order."""

    def __init__(self) -> None:
        self.entered: list[_ThreadingConfig] = []


# Each thread has its own, as with joblib's configuration.
_configs = _Configs()


class _ThreadingConfig:
    """Configuration that makes threads the default of joblib in this thread until it is closed.

    joblib restores the configuration that was there before. So one that is closed before others
    that were entered later stays until these are closed, too.
    """

    def __init__(self) -> None:
        self._config, self._is_closed = parallel_config(backend="threading"), False
        _configs.entered.append(self)

    def close(self) -> None:
        self._is_closed = True
        while _configs.entered and _configs.entered[-1]._is_closed:
            _configs.entered.pop()._config.unregister()


def _tell_processes() -> None:
    """Publish the paths of open budgets to processes that are started from now on."""
    opened = [str(budget.path) for budget in _open_budgets if budget.path is not None]
    if paths := list(dict.fromkeys([*_inherited, *opened])):
        os.environ[_VARIABLE] = json.dumps(paths)
    else:
        os.environ.pop(_VARIABLE, None)


def find_open_budgets() -> list[PrivacyBudget]:
    """Return the distinct budgets that a fit is charged to."""
    budgets = list(dict.fromkeys(_open_budgets))
    known = {str(budget.path) for budget in budgets}
    # A budget that is open here as well as in the parent is charged once.
    return budgets + [PrivacyBudget.from_file(path) for path in _inherited if path not in known]


def is_search_run() -> bool:
    """Return whether fits in this thread are runs of a search, which pays for them."""
    return _paid_run.get() is not None


class PaidRun:
    """One run of a search, which replaces the open budgets in this thread.

    The search has paid for all its runs, at the price of one event for each. Runs may differ, but
    none may plan more than this event: the price of a search follows from the Rényi moments of a
    run, and those of the event bound them at all orders. Events that were `released` are all
    planned ones until the run is settled.
    """

    def __init__(self, event: DpEvent, relation: str) -> None:
        self._event, self._relation = event, relation
        self._is_planned = False
        self.released: tuple[DpEvent, ...] = ()

    def __enter__(self) -> "PaidRun":
        self._token = _paid_run.set(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _paid_run.reset(self._token)

    def _reserve(self, plan: Plan, reproducible: bool) -> tuple[int, Charge]:
        if self._is_planned:
            raise BudgetExceededError("A run of a search must be one fit, and no more.")
        if plan.relation != self._relation:
            raise BudgetExceededError(
                f"The search is for relation={self._relation!r}; a run has {plan.relation!r}."
            )
        # Compared by Rényi moments, not by ε at one δ: the price of a search uses all orders.
        if not is_covered(plan.events, self._event, self._relation):
            raise BudgetExceededError(
                "A run of the search plans to release more than what the search has paid for."
            )
        self._is_planned = True
        self.released = plan.events
        # There is one fit in a run, so its ticket needs no number.
        return 0, Charge((), plan.delta, False)

    def _settle(self, ticket: int, charge: Charge, planned: tuple[DpEvent, ...]) -> None:
        self.released = charge.events


class PublicRun(PaidRun):
    """A fit to public rows in this thread, which no budget pays for."""

    def __init__(self) -> None:
        self.released = ()

    def _reserve(self, plan: Plan, reproducible: bool) -> tuple[int, Charge]:
        return 0, Charge((), plan.delta, False)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Put off signals that have a handler of Python, such as Ctrl-C, to the end of the context."""
    # Handlers run, and can be set, in the main thread only.
    is_main = threading.current_thread() is threading.main_thread()
    numbers = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]
    handlers = {n: signal.getsignal(n) for n in numbers if is_main}
    handlers = {n: handler for n, handler in handlers.items() if callable(handler)}
    received = []
    try:
        for number in handlers:
            signal.signal(number, lambda number, frame: received.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for number in received:
        signal.raise_signal(number)


class Reservation:
    """Reservation of one fit in all open budgets, or in the search that runs it.

    Attributes
    ----------
    is_charged : bool
        Whether anything pays for the fit.
    """

    def __init__(self, plan: Plan, reproducible: bool) -> None:
        self._tickets: list[tuple[PrivacyBudget | PaidRun, int, Charge]] = []
        paid = _paid_run.get()
        self._planned = plan.events
        with _lock:
            try:
                # Nobody could release a charge again whose ticket is lost.
                with _uninterrupted():
                    for budget in [paid] if paid else find_open_budgets():
                        self._tickets.append((budget, *budget._reserve(plan, reproducible)))
            except BaseException:
                # Either all open budgets are charged or none: those that had been are released
                # again.
                self.settle(())
                raise
        self.is_charged = bool(self._tickets)

    def settle(self, events: Iterable[DpEvent], digest: str | None = None) -> None:
        """Reduce the charge to that for `events`, once, if the budget gives the rest back.

        Without a digest of what was released no update can follow it.
        """
        events = tuple(events)
        with _lock, _uninterrupted():
            while self._tickets:
                budget, ticket, left = self._tickets.pop()
                spent = replace(left, events=events, digest=digest) if events else left
                budget._settle(ticket, spent, self._planned)
