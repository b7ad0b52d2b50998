# SPDX-License-Identifier: BSD-3-Clause
"""Targets by whose levels, or halves, tables are stratified."""

from dataclasses import dataclass

import numpy as np


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


def may_stratify(learned, target):
    """Return whether tables can be stratified by a target of these columns once all is inferred."""
    is_alone = target is None or len(learned) < 2
    return not is_alone and (
        target.is_open or target.takes_knots or target.has_few_levels or target.has_halves
    )
