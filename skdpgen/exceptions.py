# SPDX-License-Identifier: BSD-3-Clause
"""Warnings and errors of the package; none of their messages holds a private value."""

import sys
import warnings


class PrivacyLeakWarning(UserWarning):
    """The guarantee does not cover something that was computed from private rows."""


class FitQualityWarning(UserWarning):
    """Public sizes or released values suggest that a fit is poor."""


class PlanError(RuntimeError):
    """A release is not part of the plan, which is fixed before the first release."""


class BudgetExceededError(RuntimeError):
    """A plan costs more than the budget."""


class SpentError(RuntimeError):
    """A fit failed after its first release; the message states the releases and their cost."""


class TableError(ValueError):
    """A table does not match its schema; the message quotes names, dtypes and the schema only."""


def warn_of_seed():
    """Warn, at the line that called the package, that noise follows from a seed."""
    frame, level = sys._getframe(), 1
    # The depth of decorators and context managers below `fit` differs between estimators.
    inside = (__name__.partition(".")[0], "contextlib", "sklearn")
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in inside:
        frame, level = frame.f_back, level + 1
    warnings.warn(
        "The noise follows from a seed (random_state, or --seed): whoever holds or guesses it can "
        "recompute the noise and take it away. This is for experiments, and protects nobody; for a "
        "release leave random_state=None.",
        PrivacyLeakWarning,
        stacklevel=max(2, level),
    )
