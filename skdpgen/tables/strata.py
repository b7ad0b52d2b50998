# SPDX-License-Identifier: BSD-3-Clause
"""Targets by whose levels, or halves, tables are stratified."""

from dataclasses import dataclass

import numpy as np

from .columns import Date, Number, Ordinal
from .columns.number import N_KNOTS

# Most levels of a target by which tables are stratified. Sums over L strata have √L times the
# noise, which outweighs the benefit of more strata (measured on Adult).
_MOST_STRATA = 3


@dataclass(frozen=True)
class Halves:
    """Halves of the records by a numeric target: below its middle knot, and from it on.

    They are levels of a further column of codes, a function of the target. Like the levels of any
    other column they stratify tables, and the target is in the tables of each half.

    Attributes
    ----------
    column : int
        Position of the target.
    levels : slice
        Its levels, among those of all columns.
    is_upper : ndarray of bool of shape (n_levels of the target,)
        Levels from the middle knot on; see `of`.
    """

    column: int
    levels: slice
    is_upper: np.ndarray

    @classmethod
    def of(cls, column, block):
        """Return the halves of a column by its block."""
        middle = block.knots[len(block.knots) // 2]
        return cls(column, block.where, np.array([*block.knots, *block.atoms]) >= middle)

    def append(self, codes):
        """Return codes of records with a further column: 1 in the upper half, 0 in the lower."""
        codes_of_target = codes[:, self.column]
        is_known = ~np.isnan(codes_of_target)
        half = np.where(is_known, 0.0, np.nan)
        half[is_known] = self.is_upper[codes_of_target[is_known].astype(int)]
        return np.column_stack([codes, half])

    def extend(self, impossible):
        """Return the impossible pairs of levels with those of each half, as the last two levels."""
        below, above = ~self.is_upper, self.is_upper.copy()
        # Targets below the middle knot have weight on it, too.
        above[np.argmax(above)] = False
        extended = np.pad(impossible, (0, 2))
        for half, absent in zip((-2, -1), (above, below), strict=True):
            extended[half, self.levels] = extended[self.levels, half] = absent
        return extended


def has_halves(target):
    """Return whether a target has a knot near its median.

    Inferred knots are quantiles. Nobody knows which of evenly spaced ones is near the median.
    """
    if not getattr(target, "has_knots", False) or target.is_open:
        return False
    number = target.to_number()
    return number.knots is not None and len(number.positions) > 2


def may_stratify(learned, target):
    """Return whether tables can be stratified by a target of these columns once all is inferred."""
    is_alone = target is None or len(learned) < 2
    return not is_alone and (
        target.is_open
        or getattr(target, "takes_knots", False)
        or has_few_levels(target)
        or has_halves(target)
    )


def may_be_class(target):
    """Return whether tables can be stratified by the levels of a target once all is inferred.

    A float is a number; an integer with few values is a class, and that is private until then.
    """
    if target is None or isinstance(target, Date):
        return False
    if target.is_open:
        return getattr(target, "decimals", 0) == 0
    return has_few_levels(target)


def has_few_levels(target):
    """Return whether tables are stratified by the levels of a target."""
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
