# SPDX-License-Identifier: BSD-3-Clause
"""Errors during a fit that state its privacy cost, once."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from .._process.muting import muted
from ..exceptions import (
    INTERRUPTS,
    BudgetExceededError,
    EndOfFit,
    PlanError,
    PublicError,
    SpentError,
    TableError,
)
from .budget import is_search_run
from .certificate import Certificate
from .plan import Plan
from .rounding import show

# Types of errors after a release that state what was refused.
_DISTINCT = BudgetExceededError, PlanError, SpentError, TableError
# Types of errors that callers distinguish; all others become a `SpentError`.
_KINDS = BudgetExceededError, PlanError, TableError, TypeError, ValueError


def keep_nothing() -> tuple[Any, str]:
    """Return what `report_spent_on_error` takes for a fit whose released values are not kept."""
    return None, "The released values are not kept: another fit is charged anew."


def say_how_to_go_on(estimator: object) -> str:
    """Return what an error says of a `PublishedRelease` that is kept, for an unfitted estimator."""
    return (
        f"The release is kept: skdpgen.releases.from_release(error.release, {estimator!r}) learns "
        "from it at no cost."
    )


@contextlib.contextmanager
def report_spent_on_error(
    certificate: Callable[[], Certificate | None],
    keep: Callable[[], tuple[Any, str]] = keep_nothing,
) -> Iterator[None]:
    """State the cost so far in an error inside, if something was released, and what is kept.

    An `Exception` becomes a `SpentError`; others, such as a `KeyboardInterrupt`, and those that
    callers distinguish, keep their type and get a note. The error comes from learning from
    releases, which contain nothing private. In a run of a search both are omitted, since only the
    search knows the price, and nothing of a run is published.

    Parameters
    ----------
    certificate : callable
        Returns the `Certificate` of the releases so far, if there are any.
    keep : callable
        Returns the `PublishedRelease`, or None, and a sentence that says how to go on.
    """
    try:
        yield
    except EndOfFit:
        raise
    except BaseException as error:
        if getattr(error, "certificate", None) is not None:
            # A fit that is part of this one has stated its cost.
            add_note(error, keep()[1])
            raise
        spent = certificate()
        # Then the error is free, and stays as it is.
        if spent is None or not spent.events:
            raise
        kept: dict[str, Any] = {"certificate": None, "release": None}
        text = advice = ""
        if not is_search_run():
            release, advice = keep()
            kept = {"certificate": spent, "release": release}
            # Where rows could not be read, the error states the price of the whole plan.
            has_price = isinstance(error, SpentError | TableError)
            text = advice if has_price else f"{_describe(spent)} {advice}"
        if isinstance(error, _DISTINCT) or not isinstance(error, Exception):
            add_note(error, text)
            vars(error).update(kept)
            raise
        said = str(error)
        if not said or not isinstance(error, RuntimeError | ValueError):
            said = f"{type(error).__name__}: {said}".removesuffix(": ")
        if text and not said.endswith("."):
            said += "."
        restated = SpentError(f"{said} {text}".strip())
        vars(restated).update(kept, advice=advice)
        # contextlib takes a RuntimeError from StopIteration for one of its own, and drops it.
        raise restated from (None if isinstance(error, StopIteration) else error)


def _describe(spent: Certificate) -> str:
    return (
        f"Until then ε = {show(spent.epsilon)} at δ = {show(spent.delta)} was spent, on: "
        f"{', '.join(spent.releases)}."
    )


def add_note(error: BaseException, text: str) -> None:
    # `add_note` of Python 3.11.
    if text:
        error.__notes__ = [*getattr(error, "__notes__", ()), text]


def read_at_full_price(read: Callable, plan: Plan, kinds: tuple = _KINDS) -> Any:
    """Return the value of a function that reads private rows, and restate its errors.

    Such an error may follow from private cells, or from the source of chunks: the whole reservation
    is charged, and the message is withheld unless it states public facts only. A `PlanError`, which
    follows from the code, stays as it is. Warnings of NumPy, which follow from cells, are muted.

    The price of the plan is stated, but in a run of a search. Errors keep one of the types `kinds`,
    or become a `SpentError`, without the cause and the context of the original error.
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


def restate_with_price(
    error: Exception, reason: str, plan: Plan, kinds: tuple = _KINDS
) -> Exception:
    """Return an error of the same type that states the price of a plan, except in a search run."""
    price = " " + _price(reason, plan)
    return restate(error, str(error) + price * (not is_search_run()), kinds)


def note_price(error: BaseException, reason: str, plan: Plan) -> None:
    """Add the price of a plan to an error that is no `Exception`, except in a search run."""
    add_note(error, _price(reason, plan) * (not is_search_run()))


def _price(reason, plan):
    return f"{reason}: ε = {show(plan.epsilon)} at δ = {show(plan.delta)}."


def restate(error: Exception, message: str, kinds: tuple = _KINDS) -> Exception:
    """Return an error of the same type with another message; see `_KINDS`."""
    # Subclasses become the type that callers know: their attributes could hold private values.
    kind = next((kind for kind in kinds if isinstance(error, kind)), SpentError)
    return kind(message)
