# SPDX-License-Identifier: BSD-3-Clause
"""Targets by whose levels tables are stratified."""

from .columns import Date, Number, Ordinal
from .columns.number import N_KNOTS

# Most levels of a target by which tables are stratified. Sums over L strata have √L times the
# noise, which outweighs the benefit of more strata (measured on Adult).
_MOST_STRATA = 3


def can_stratify(learned, target):
    """Return whether tables are stratified by a target of this type, beside other columns."""
    return len(learned) > 1 and _has_few_levels(target)


def may_stratify(target):
    """Return whether tables can be stratified by a target once all is inferred.

    A float is a number; an integer with few values is a class, and that is private until then.
    """
    if target is None or isinstance(target, Date):
        return False
    if target.is_open:
        return getattr(target, "decimals", 0) == 0
    return _has_few_levels(target)


def _has_few_levels(target):
    return 1 < len(getattr(target, "levels", ())) <= _MOST_STRATA


def as_classes(kind, present=None):
    """Return integers with few values as ordered classes, other columns as they are.

    Parameters
    ----------
    kind : Column
    present : set of float, default=None
        Values with counts above noise. None: all values are classes.
    """
    if not isinstance(kind, Number) or kind.decimals != 0 or kind.n_values > N_KNOTS:
        return kind
    values = {*range(int(kind.lower), int(kind.upper) + 1), *(kind.atoms or ())}
    values = sorted(int(v) for v in (values if present is None else present & values))
    return Ordinal(values, kind.missing) if values else kind
