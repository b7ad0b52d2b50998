# SPDX-License-Identifier: BSD-3-Clause
"""Grids on which the values of undeclared numbers are counted."""

import math
from dataclasses import dataclass, replace

import numpy as np

from ...saving.registry import savable
from ..blocks import knot_weights
from ..columns import Number
from ..columns.number import N_KNOTS
from ..schema import Schema
from .densities import Histogram
from .location import NEARLY_ALL, find_cells, find_clusters, read_locations, read_value
from .point_masses import ValueCounts, with_candidates
from .ranges import find_clear, quantile_knots

# Fewest and most knots of the second, finer grid.
FEWEST_FINE, MOST_FINE = 16, 128
# Share of values outside of the cells of nearly all values that is too small to keep their grid.
_FEW_OUTSIDE = 0.003
# Values beside a point mass are more than noise if they are so many deviations, fewer beside zero,
# and so large a share of all that it is no error of floats. All are set by hand; that of zero is
# the best of 0.3, 1 and 2 on held-out rows of Adult (1,000 rows to fit).
_SIGNAL, _SIGNAL_OF_ZERO, _FLOATS = 2.0, 1.0, 1e-4


@dataclass(frozen=True)
class Ranged:
    """Histogram of a column on a grid, and the grid of its next histogram.

    Attributes
    ----------
    kind : Number
        The column, with the knots of the next grid.
    knots, counts : ndarray
        Noisy counts near knots, without point masses.
    std : float
        Standard deviation of their noise.
    atoms : list
        Inferred point masses.
    n_values : float
        Number of other values.
    counted : ValueCounts, default=None
        The counts of the wide grid.
    located : tuple of float, default=None
        The least range, if nearly all values are in few cells of a wide grid.
    apart : tuple of (float, float), default=()
        Cells with other values that stand apart.
    """

    kind: Number
    knots: np.ndarray
    counts: np.ndarray
    std: float
    atoms: list
    n_values: float
    counted: ValueCounts | None = None
    located: tuple | None = None
    apart: tuple = ()

    @classmethod
    def of(cls, counted, declared):
        """Return the wide grid of a column, with all values but point masses."""
        atoms = counted.find_atoms(declared)
        counts, n_values = counted.without(atoms, is_wide=True)
        return cls(counted.kind, counted.knots, counts, counted.std, atoms, n_values, counted)

    @property
    def is_wide(self):
        """Whether values are to be counted on the wide grid again, which resolved no range."""
        return self.counted is not None and self.kind is self.counted.kind

    def within(self, lower, upper):
        """Return the part of the grid from one of its knots to another."""
        where = (lower <= self.knots) & (self.knots <= upper)
        return replace(self, knots=self.knots[where], counts=self.counts[where])

    def around(self, lower, upper):
        """Return the histogram of the part that covers a range, in a list; none of one knot."""
        first = max(np.searchsorted(self.knots, lower, side="right") - 1, 0)
        where = slice(first, np.searchsorted(self.knots, upper) + 1)
        part = Histogram(self.knots[where], self.counts[where], self.std)
        return [part] * (len(part.knots) > 1)

    def find_cells(self):
        """Return the ends of the few cells that hold nearly all values, or None."""
        cells = find_cells(self.knots, self.counts, self.std, self.n_values)
        return None if cells is None else tuple(self.knots[list(cells)].tolist())

    def find_clusters(self):
        """Return the ends of cells with values that stand apart, those of `find_cells` first."""
        cells = find_clusters(self.knots, self.counts, self.std, self.n_values)
        return [tuple(self.knots[list(pair)].tolist()) for pair in cells]

    def drop_ends(self, declared):
        """Return the grid without values at ends where no bound is declared, if these are many.

        They are infinite, or beyond the grid: a range that reaches them resolves nothing.
        """
        is_open = np.array([declared.lower is None, declared.upper is None])
        clear = find_clear(self.std, 2) + _FEW_OUTSIDE * self.n_values
        ends = np.array([0, -1])[is_open & (self.counts[[0, -1]] > clear)]
        counts = self.counts.copy()
        counts[ends] = 0
        n_values = max(self.n_values - self.counts[ends].sum(), 0.0)
        return replace(self, counts=counts, n_values=n_values) if len(ends) else self

    def count_within(self, lower, upper):
        """Return the noisy number of values near the knots from one to another."""
        return float(self.within(lower, upper).counts.sum())

    def take_atom(self, value, lower, upper):
        """Return the grid without a cluster all of whose values equal one, a new point mass."""
        is_near = (lower <= self.knots) & (self.knots <= upper)
        return replace(
            self,
            counts=np.where(is_near, 0.0, self.counts),
            atoms=[*self.atoms, value],
            n_values=max(self.n_values - self.counts[is_near].sum(), 0.0),
        )

    def refine(self, cells, knots, counts, std):
        """Return the grid with finer knots in place of some cells.

        Knots outside of these stay if their counts are more than noise, and so do cells apart.
        """
        is_outside = (self.knots < cells[0]) | (self.knots > cells[1])
        located = [knots[0], knots[-1]]
        clear = find_clear(self.std * math.sqrt(is_outside.sum()), 1) + _FEW_OUTSIDE * self.n_values
        if self.apart or self.counts[is_outside].sum() > clear:
            order = np.argsort(knots := np.r_[self.knots[is_outside], knots])
            counts = np.r_[self.counts[is_outside], counts][order]
            knots, std = knots[order], max(std, self.std)
            located += [end for ends in self.apart for end in ends]
        located = min(located), max(located)
        return replace(self, knots=knots, counts=counts, std=std, located=located)

    def without(self, atoms):
        """Return the grid, with nothing at the knots around point masses that were found since."""
        new = np.array([a for a in atoms if a not in self.atoms], dtype=np.float64)
        new = new[(self.knots[0] <= new) & (new <= self.knots[-1])]
        is_near = (knot_weights(new, self.knots) > 0).any(axis=0)
        return self.knots, np.where(is_near, 0.0, self.counts), self.std


@savable
@dataclass(frozen=True)
class Histograms:
    """Released counts of the values of numbers and dates on fine grids.

    Attributes
    ----------
    schema : Schema
        The columns, with a knot at each point of the grid.
    counts : ndarray of shape (n_levels,)
        Noisy numbers of records near the knots of all columns, as `TableEncoder` orders them.
    std : float
        Standard deviation of their noise.
    """

    schema: Schema
    counts: np.ndarray
    std: float


def widen(kind, n_per_octave, frequent=()):
    """Return a type for the first look at an open column; declared bounds are kept."""
    if not kind.has_knots:
        return replace(kind, categories=[kind.other])
    number, knots = kind.to_number(), kind.wide_knots(n_per_octave)
    lower = -np.inf if number.lower is None else number.lower
    upper = np.inf if number.upper is None else number.upper
    if lower >= knots[-1] or upper <= knots[0]:
        raise ValueError(
            f"Open bounds are looked for within ±{knots[-1]:g}, and {kind} starts beyond that; "
            "declare both bounds, or give the column in larger units."
        )
    wide = with_knots(replace(number, n_knots=None, scale=None), knots)
    return with_candidates(wide, kind, frequent)


def read_clusters(ranged, counted, std, unit, find_range):
    """Return a grid without clusters that are one value, and finer where all others are.

    Parameters
    ----------
    ranged : Ranged
    counted : dict of (float, float) to ndarray
        The located counts of each cluster.
    std : float
        Standard deviation of their noise.
    unit : float or None
        Values are multiples of it.
    find_range : callable
        Returns the range that a grid shows, and whether it is resolved.
    """
    apart = list(counted)
    # The smallest first: the last values stay, as a range is theirs.
    for cells, counts in reversed(counted.items()):
        value = read_value(counts, std, ranged.count_within(*cells), *cells, unit)
        if value is not None:
            rest = ranged.take_atom(int(value) if unit == 1 else value, *cells)
            if find_range(rest)[1]:
                ranged, apart = rest, [other for other in apart if other != cells]

    def is_apart(other):
        """Whether cells have few values, further from the range of others than it is wide."""
        if ranged.count_within(*other) > ranged.n_values / 2:
            return False
        (lower, upper), is_resolved = find_range(ranged.take_atom(0.0, *other))
        return is_resolved and max(other[0] - upper, lower - other[1]) > upper - lower

    cells = ranged.find_cells()
    apart = tuple(other for other in apart if other != cells and is_apart(other))
    ranged = replace(ranged, apart=apart)
    if cells in counted:
        knots, counts = read_locations(counted[cells], std, ranged.n_values, *cells, unit)
        if knots is not None:
            ranged = ranged.refine(cells, knots, counts, std)
    return ranged


def find_hidden(others, unit, find_range, is_target=False):
    """Return the knots of a wide grid in a range, and whether it is resolved.

    Parameters
    ----------
    others : Ranged
        The grid, without point masses.
    unit, find_range
        As in `read_clusters`.
    is_target : bool, default=False
        Whether the column is the target, whose few values may be classes.
    """
    (lower, upper), is_resolved = find_range(others)
    n_atoms, counted = len(others.atoms), others.counted
    noise = counted.std * math.sqrt(n_atoms + counted.kind.missing)
    # Beside zero, there mostly are amounts; beside another value, or several, seldom.
    signal = _SIGNAL if is_target or others.atoms != [0] else _SIGNAL_OF_ZERO
    least = signal * noise if n_atoms == 1 else find_clear(noise, 1)
    if not is_resolved and others.n_values <= least + _FLOATS * counted.n_values:
        # Nothing shows beside point masses: the range is that of these.
        if n_atoms > 1:
            ends = np.sort(others.atoms)[[0, -1]]
            return quantile_knots(ends, np.zeros(2), 0.0, N_KNOTS, unit, is_rest=True), True
        counts, n_values = counted.without([], is_wide=True)
        (lower, upper), is_resolved = find_range(replace(others, counts=counts, n_values=n_values))
    return others.within(lower, upper).knots, is_resolved


def is_unresolved(knots, counts, std, n_values, unit):
    """Return whether nearly all values are between two of three or more knots, and can be apart."""
    if n_values < find_clear(std, len(counts)):
        return False
    pairs = counts[:-1] + counts[1:]
    best = int(pairs.argmax())
    least = NEARLY_ALL * n_values + find_clear(math.sqrt(2) * std, len(pairs))
    is_one = pairs[best] >= least > 0 and len(knots) > 2
    return is_one and (unit is None or knots[best + 1] - knots[best] > N_KNOTS * unit)


def unit_of(kind):
    """Return how far values of a column are apart, or None."""
    decimals = kind.decimals
    return None if decimals is None else 10.0**-decimals


def refine_number(kind, n_knots, n_per_octave, frequent=()):
    """Return a number with many knots, even ones and those of the wide grid."""
    number = kind.to_number()
    even = np.linspace(number.lower, number.upper, n_knots)
    knots = np.union1d(even, kind.wide_knots(n_per_octave))
    return with_candidates(with_knots(number, knots), kind, frequent)


def with_knots(kind, knots, *, is_fine=False):
    """Return a number with these knots, within the bounds that are declared; no point masses.

    A declared scale is kept, unless it `is_fine`: a grid to count by.
    """
    kind = replace(kind, atoms=None)
    # Integers beyond int64 would stay objects.
    knots = np.asarray(knots, dtype=np.float64)
    knots = knots if kind.decimals is None else np.round(knots, kind.decimals) + 0.0
    number = int if kind.decimals == 0 else float
    lower, upper = (
        number(found) if declared is None else declared
        for declared, found in zip((kind.lower, kind.upper), knots[[0, -1]], strict=True)
    )
    inner = map(number, np.unique(knots[(lower < knots) & (knots < upper)]))
    knots = [lower, *inner, upper]
    if kind.scale is not None and not is_fine:
        is_signed = kind.scale == "log" and lower < 0 < upper
        scale = "symlog" if is_signed else kind.scale
        return replace(kind, lower=lower, upper=upper, scale=scale)
    return replace(kind, lower=lower, upper=upper, n_knots=None, scale=None, knots=knots)
