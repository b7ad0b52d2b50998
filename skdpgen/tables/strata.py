# SPDX-License-Identifier: BSD-3-Clause
"""Targets by whose levels, or halves, tables are stratified, and when strata pay."""

from dataclasses import dataclass

import numpy as np

from ..mechanisms.two_way import TablesMechanism, count_cells, level_precisions

# So many strata always pay: they cost other pairs a factor of at most √3 of noise.
_FEW = 3
# Largest number of cells of all strata, as of a release without strata.
_MAX_CELLS = 2**27


def strata_pay(sizes, by, sigma, n_records):
    """Return whether tables that are stratified by a column show how its levels differ.

    L strata give the tables of pairs with the target less noise, and add those of three columns
    with it; but tables of all records, which are their sums, have √L times the noise. They pay if
    one-way tables of a level, of n / L records spread evenly, exceed their noise.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of levels of all columns.
    by : int
        Position of the target among them.
    sigma : float
        Standard deviation of the noise on the sum, to which a record adds a vector of norm 1.
    n_records : float
        Public number of records, n.
    """
    n_strata, mechanism = sizes[by], TablesMechanism(sizes, by)
    others = mechanism.sizes
    if n_strata <= _FEW:
        return True
    if n_strata * (count_cells(others) + sum(others)) > _MAX_CELLS:
        return False
    counts = n_records / (n_strata * np.array(others))
    precisions = level_precisions(others, mechanism.weight)
    return bool(counts**2 @ precisions >= (sigma * mechanism.records) ** 2)


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
    return not is_alone and (target.may_be_class or target.takes_knots or target.has_halves)
