"""Warnings and errors of the privacy rooms. None of them ever carries a private value."""


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
