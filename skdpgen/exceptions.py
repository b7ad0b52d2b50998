# SPDX-License-Identifier: BSD-3-Clause
"""Warnings and errors of the privacy rooms. None of them ever carries a private value."""

import sys
import warnings


class PrivacyLeakWarning(UserWarning):
    """Something that the guarantee does not cover was taken from private rows."""


class FitQualityWarning(UserWarning):
    """A fit may be worse than it looks: its sizes, or what was released, say so."""


class PlanError(RuntimeError):
    """A release was asked for that the plan, fixed before the first release, does not hold."""


class BudgetExceededError(RuntimeError):
    """A plan costs more than the budget that it was given."""


class SpentError(RuntimeError):
    """A fit failed after it had released something. The message says what that was, and cost."""


class TableError(ValueError):
    """A table does not fit its schema. The message quotes names, dtypes and the schema only."""


def warn_of_seed():
    """Warn of noise that follows from a seed, where the package was called."""
    frame, level = sys._getframe(), 1
    # Below `fit` there are decorators and context managers, more in some estimators than in others.
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
