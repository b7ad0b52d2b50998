# SPDX-License-Identifier: BSD-3-Clause
"""Warnings and errors of the package; none of their messages holds a private value."""

import sys
import warnings
from typing import Any
from weakref import WeakKeyDictionary

from ._process.muting import is_muted


class PrivacyLeakWarning(UserWarning):
    """The guarantee does not cover something that was computed from private rows."""


class FitQualityWarning(UserWarning):
    """Public sizes or released values suggest that a fit is poor."""


# Exceptions that end a program; any other may be raised by the code of a private cell, also those
# that are no `Exception`, as the panics of Rust libraries.
INTERRUPTS = KeyboardInterrupt, SystemExit, GeneratorExit


class PublicError(Exception):
    """An error whose message states public facts only, even where private rows are read."""


class PublicTypeError(PublicError, TypeError):
    """A `PublicError` that is a `TypeError`."""


class PublicValueError(PublicError, ValueError):
    """A `PublicError` that is a `ValueError`."""


class PublicRuntimeError(PublicError, RuntimeError):
    """A `PublicError` that is a `RuntimeError`."""


class PlanError(PublicRuntimeError):
    """A release is not part of the plan, which is fixed before the first release."""


class BudgetExceededError(PublicRuntimeError):
    """A plan costs more than the budget."""


class SpentError(PublicRuntimeError):
    """A fit failed after its first release; the message states the releases and their cost.

    Errors that keep their type, such as a `KeyboardInterrupt`, have a note with the cost, and the
    same attributes.

    Attributes
    ----------
    certificate : Certificate or None
        Certificate of the releases; None in a run of a search, which has a price of its own.
    release : PublishedRelease or None
        The released values, for `skdpgen.releases.from_release`, if they are kept.
    advice : str
        The end of the message, on how to go on from them.
    """

    certificate: Any = None
    release: Any = None
    advice: str = ""


class EndOfFit(BaseException):
    """Raised to end a fit on purpose, as in audits: nothing has failed, and no cost is reported."""


class TableError(PublicValueError):
    """A table does not match its schema; the message quotes names, dtypes and the schema only."""


def warn_of_seed():
    """Warn, at the line that called the package, that noise follows from a seed."""
    _warn_of_leak(
        "The noise follows from a seed (random_state, or --seed): whoever holds or guesses it can "
        "recompute the noise and take it away. This is for experiments, and protects nobody; for a "
        "release leave random_state=None."
    )


def warn_of_search():
    """Warn if a search or a cross-validation of scikit-learn makes the fit.

    Only the calling code is looked at. A comparison of the rows with those of earlier fits would
    itself be an exact answer about records, which no ε covers.
    """
    if any(name.startswith("sklearn.model_selection.") for name in list_callers()):
        _warn_of_leak(
            "A search or cross-validation makes several fits, and privacy_ states the cost of one: "
            "fits on the same rows add up. Search on public rows, or open a PrivacyBudget, which "
            "is charged for all fits."
        )


def _iter_frames(frame):
    """Yield a frame and those of its callers."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def list_callers():
    """Return the names of the modules on the stack, the innermost first."""
    return [frame.f_globals.get("__name__", "") for frame in _iter_frames(sys._getframe(1))]


def find_callers(cls: type) -> list:
    """Return the objects of a class whose methods are on the stack, the innermost first."""
    callers = (frame.f_locals.get("self") for frame in _iter_frames(sys._getframe(1)))
    return list({id(caller): caller for caller in callers if isinstance(caller, cls)}.values())


def warn_of_index(X, persons):
    """Warn of levels of an index with names, unless these identify persons: names are public."""
    used = {*X.columns, getattr(persons, "name", None), None}
    if names := [repr(name) for name in X.index.names if name not in used]:
        warn_caller(
            f"The index of X ({', '.join(names)}) is no column, and so not learned: give "
            "X.reset_index() if it is data, X.reset_index(drop=True) if not.",
            FitQualityWarning,
        )


def _warn_of_leak(message):
    warn_caller(message, PrivacyLeakWarning)


# Warnings that searches have shown, by an object that lives as long as a search.
_shown: WeakKeyDictionary[Any, set] = WeakKeyDictionary()


def _find_search():
    """Return an object that lives as long as the search of scikit-learn around this call."""
    found = None
    for frame in _iter_frames(sys._getframe(1)):
        if frame.f_globals.get("__name__", "").startswith("sklearn.model_selection."):
            from joblib import Parallel  # loads NumPy, which no help on the command line needs

            found = next((x for x in frame.f_locals.values() if isinstance(x, Parallel)), found)
    return found


def warn_caller(message: object, category: type[Warning]):
    """Raise a warning, which holds a text or a `Message`, at the line that called the package.

    In a search of scikit-learn, equal warnings are raised once.
    """
    # Python's own registry forgets them: scikit-learn changes the filters around each fit.
    search, key = _find_search(), (category, str(message))
    shown = set() if search is None else _shown.setdefault(search, set())
    if key in shown or is_muted(category):
        return
    # The depth of decorators and context managers below `fit` differs between estimators.
    inside = (__name__.partition(".")[0], "contextlib", "joblib", "sklearn")
    outside = (i for i, name in enumerate(list_callers(), 1) if name.split(".")[0] not in inside)
    warnings.warn(category(message), stacklevel=max(2, next(outside, 2)))
    # Last: a warning that was raised as an error is raised again.
    shown.add(key)
