# SPDX-License-Identifier: BSD-3-Clause
"""Errors after a release: they state the price of the whole, once."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

from ..exceptions import BudgetExceededError, PlanError, SpentError, TableError
from .budget import is_search_run
from .certificate import Certificate
from .composition import compose
from .plan import Plan
from .rounding import show

# What callers tell apart; all other errors become a `SpentError`.
_KINDS = BudgetExceededError, PlanError, TableError, TypeError, ValueError


@contextlib.contextmanager
def report_spent_on_error(certificate: Callable[[], Certificate]) -> Iterator[None]:
    """Raise a `SpentError` for an error inside, after a release, that says what was spent.

    The errors are those of learning from releases, which hold nothing private. A run of a search
    leaves the price to the search, which alone knows it.

    Parameters
    ----------
    certificate : callable
        Returns the `Certificate` of what was released until then.
    """
    try:
        yield
    except (BudgetExceededError, PlanError, SpentError, TableError):
        raise
    except (ArithmeticError, MemoryError, RuntimeError, ValueError) as error:
        spent = certificate()
        if not spent.events:
            raise
        price = (
            f" Until then ε = {show(spent.epsilon)} at δ = {show(spent.delta)} was spent, on: "
            f"{', '.join(spent.releases)}."
        )
        raise SpentError(str(error) + price * (not is_search_run())) from error


@contextlib.contextmanager
def report_reserved_on_error(plan: Plan) -> Iterator[None]:
    """Let errors that rows raise as they are read say that the reservation stays.

    Such an error may follow from private cells. Errors that are no refusals come from where chunks
    do. A run of a search leaves the price to the search.
    """
    try:
        yield
        return
    except Exception as error:
        restated = restate_with_price(
            error, "As this may follow from private cells, all of the fit is charged", plan
        )
    # Raised here, so that it carries no other error.
    raise restated


@contextlib.contextmanager
def report_finished_fits_on_error(certificates: Sequence[Certificate]) -> Iterator[None]:
    """Let an error of one of several fits say what those that have finished have spent together.

    Parameters
    ----------
    certificates : list of Certificate
        Those of the fits that have finished.
    """
    try:
        yield
    except Exception as error:
        if not certificates:
            raise
        spent = compose(*certificates)
        raise _restate(
            error,
            f"{error} The {len(certificates)} fits that have finished spent "
            f"ε = {show(spent.epsilon)} at δ = {show(spent.delta)} together, which adds to that.",
        ) from error


def restate_with_price(error: Exception, reason: str, plan: Plan) -> Exception:
    """Return an error of the same kind that states the price of a plan, unless a search will."""
    price = f" {reason}: ε = {show(plan.epsilon)} at δ = {show(plan.delta)}."
    return _restate(error, str(error) + price * (not is_search_run()))


def _restate(error: Exception, said: str) -> Exception:
    kind = next((kind for kind in _KINDS if isinstance(error, kind)), SpentError)
    return kind(said)
