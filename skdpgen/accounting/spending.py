# SPDX-License-Identifier: BSD-3-Clause
"""Errors during a fit that state its privacy cost, once."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._muting import muted
from ..exceptions import (
    INTERRUPTS,
    BudgetExceededError,
    PlanError,
    PublicError,
    SpentError,
    TableError,
)
from .budget import is_search_run
from .certificate import Certificate
from .composition import compose
from .plan import Plan
from .rounding import show

# Types of errors that callers distinguish; all others become a `SpentError`.
_KINDS = BudgetExceededError, PlanError, TableError, TypeError, ValueError


@contextlib.contextmanager
def report_spent_on_error(certificate: Callable[[], Certificate]) -> Iterator[None]:
    """Raise a `SpentError` with the cost so far for an error inside, if something was released.

    Such errors come from learning from releases, which contain nothing private. In a run of a
    search the price is omitted, since only the search knows it.

    Parameters
    ----------
    certificate : callable
        Returns the `Certificate` of the releases so far.
    """
    try:
        yield
    except (BudgetExceededError, PlanError, SpentError, TableError):
        raise
    except (ArithmeticError, MemoryError, RuntimeError, ValueError) as error:
        spent = certificate()
        # Then the error is free, and stays as it is.
        if not spent.events:
            raise
        price = (
            f" Until then ε = {show(spent.epsilon)} at δ = {show(spent.delta)} was spent, on: "
            f"{', '.join(spent.releases)}."
        )
        raise SpentError(str(error) + price * (not is_search_run())) from error


def read_at_full_price(read: Callable, plan: Plan, kinds: tuple = _KINDS) -> Any:
    """Return the value of a function that reads private rows, and restate its errors.

    Such an error may follow from private cells, or from the source of chunks: the whole reservation
    is charged, and the message is withheld unless it states public facts only. A `PlanError`, which
    follows from the code, stays as it is. Warnings of NumPy, which follow from cells, are muted.

    Parameters
    ----------
    read : callable
    plan : Plan
        Reserved plan. In a run of a search its price is omitted.
    kinds : tuple of type
        Types of errors that keep their type; all others become a `SpentError`.

    Raises
    ------
    Exception
        Without the cause and the context of the original error.
    """
    try:
        with muted(RuntimeWarning):
            return read()
    except (PlanError, *INTERRUPTS):
        raise
    except BaseException as error:
        if not isinstance(error, PublicError):
            error = SpentError(
                f"Private rows could not be read ({type(error).__name__}). The message is "
                "withheld, as it may quote rows: fit made-up rows of these types to read it."
            )
        reason = "As this may follow from private cells, all of the fit is charged"
        restated = restate_with_price(error, reason, plan, kinds)
    # Raised outside of except, and in no context manager, whose __exit__ would add the context.
    raise restated


@contextlib.contextmanager
def report_finished_fits_on_error(certificates: Sequence[Certificate]) -> Iterator[None]:
    """Add to an error of one of several fits the total cost of the finished ones.

    Parameters
    ----------
    certificates : list of Certificate
        Certificates of the finished fits.
    """
    try:
        yield
    except Exception as error:
        if not certificates:
            raise
        spent = compose(*certificates)
        raise restate(
            error,
            f"{error} The {len(certificates)} fits that have finished spent "
            f"ε = {show(spent.epsilon)} at δ = {show(spent.delta)} together, in addition.",
        ) from error


def restate_with_price(
    error: Exception, reason: str, plan: Plan, kinds: tuple = _KINDS
) -> Exception:
    """Return an error of the same type that states the price of a plan, except in a search run."""
    price = f" {reason}: ε = {show(plan.epsilon)} at δ = {show(plan.delta)}."
    return restate(error, str(error) + price * (not is_search_run()), kinds)


def restate(error: Exception, message: str, kinds: tuple = _KINDS) -> Exception:
    """Return an error of the same type with another message; see `_KINDS`."""
    # Subclasses become the type that callers know: their attributes could hold private values.
    kind = next((kind for kind in kinds if isinstance(error, kind)), SpentError)
    return kind(message)
