# SPDX-License-Identifier: BSD-3-Clause
"""Noisy counts of the values of a numeric column: near knots, and at point masses."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ...histograms.grids import find_farthest, find_widths, knot_weights
from ...histograms.ranges import find_clear
from ..columns import Number
from ..columns.number import N_KNOTS
from ..columns.texts import read_cell
from .densities import Histogram
from .locations import find_cells, find_clusters


@dataclass(frozen=True)
class CountConstants:
    """Constants of point masses and ranges; all are set by hand."""

    # Least share of a point mass among the records of a column.
    min_share: float = 0.003
    # Least ratio of its count to what the density beside it predicts.
    min_ratio: float = 3.0
    # The same of a large one between densities that differ by less than a ratio.
    large_share: float = 0.02
    large_ratio: float = 1.5
    even_ratio: float = 2.0
    # Most values of a column that are sought because many records share them.
    most_frequent: int = N_KNOTS
    # Share of values outside of the cells of nearly all values that is too small to keep their
    # grid.
    few_outside: float = 0.003


CONSTANTS = CountConstants()


@dataclass
class ValueCounts:
    """Noisy counts of the values of a column: near knots, and at point masses.

    Parameters
    ----------
    grid : Number
        The column type by which values were counted.
    counts : ndarray of shape (n_levels,)
        Near knots, then at point masses, then of missing values if there may be any.
    std : float
        Standard deviation of the noise.
    n_records : int

    Attributes
    ----------
    knots : ndarray of shape (n_knots,)
    n_values : float
        Noisy number of records without a missing value.
    """

    grid: Number
    counts: np.ndarray
    std: float
    n_records: int

    def __post_init__(self):
        atoms = self.grid.atoms or ()
        positions = self.grid.positions
        near, at_atoms, missing = np.split(
            self.counts, [len(positions), len(positions) + len(atoms)]
        )
        # `positions` lacks the knots that are candidates for point masses: restore them.
        knots = np.union1d(positions, np.array(self.grid.knots or (), dtype=np.float64))
        near_knots = np.zeros(len(knots))
        near_knots[np.searchsorted(knots, positions)] = near
        self.knots = knots
        self.n_values = self.n_records - missing.sum().clip(0, self.n_records)
        self._atoms = np.array(atoms, dtype=np.float64)
        self._near, self._at_atoms = near_knots, at_atoms

    @property
    def at_atoms(self):
        """The noisy counts of the point masses, a dict."""
        return dict(zip(self.grid.atoms or (), self._at_atoms.tolist(), strict=True))

    def count_at(self, atoms):
        """Return the noisy counts of point masses, candidates or knots: a dict."""
        near = dict(zip(self.knots.tolist(), self._near.tolist(), strict=True))
        return {atom: self.at_atoms.get(atom, near.get(atom, 0.0)) for atom in atoms}

    def average(self, other):
        """Return averages by precision with counts of the same values in another release."""
        share = _precision_share(self.std, other.std)
        counts = share * self.counts + (1 - share) * other.counts
        return replace(self, counts=counts, std=self.std * share**0.5)

    def find_atoms(self, declared, earlier=None):
        """Return the declared point masses, or else the candidates with clear counts.

        Parameters
        ----------
        declared : Number
        earlier : ValueCounts, default=None
            An earlier release, whose counts of candidates are averaged with these.

        Returns
        -------
        list of float
        """
        if not len(self._atoms) or declared.atoms is not None:
            return list(declared.atoms or ())
        unit = 0.0 if self.grid.decimals is None else 10.0**-self.grid.decimals
        before = np.searchsorted(self.knots, self._atoms)
        after = np.searchsorted(self.knots, self._atoms, side="right")
        is_beyond = (self._atoms < self.knots[0]) | (self._atoms > self.knots[-1])
        own = self._at_atoms[:, None] * knot_weights(self._atoms, self.knots)
        own[is_beyond] = 0
        widths = find_widths(self.knots)
        widths[[0, -1]] += unit / 2  # the intervals around the outer values are a unit wide, too
        # All values but those that equal a candidate, which may be many and all that there are.
        density = np.pad((self._near + own.sum(axis=0) - own).clip(0) / widths, ((0, 0), (1, 1)))
        rows = np.arange(len(own))
        # Point masses beyond the knots were inferred before; the density there is 0.
        sides = np.sort([density[rows, before], density[rows, after + 1]], axis=0)
        fewer, beside = sides * unit * ~is_beyond
        at_atoms, std = self._at_atoms, np.full(len(beside), self.std)
        if earlier is not None:
            before = np.array([earlier.at_atoms.get(atom, np.nan) for atom in self._atoms])
            is_both, share = ~np.isnan(before), _precision_share(self.std, earlier.std)
            at_atoms = np.where(is_both, share * at_atoms + (1 - share) * before, at_atoms)
            std[is_both] *= np.sqrt(share)
        clear = find_clear(std, len(beside))
        least = np.maximum(CONSTANTS.min_share * self.n_values, clear)
        is_atom = at_atoms - CONSTANTS.min_ratio * beside > least
        # Of many records, the density beside need not be so low where it is even.
        much = np.maximum(CONSTANTS.large_share * self.n_values, clear)
        is_even = beside <= CONSTANTS.even_ratio * fewer
        is_atom |= is_even & (at_atoms - CONSTANTS.large_ratio * beside > much)
        return [a for a, is_found in zip(self.grid.atoms, is_atom, strict=True) if is_found]

    def find_shared(self, n_knots):
        """Return the knots with at least the average count of a knot, far above their neighbours.

        An example is a working week of 40 hours. Only knots one unit apart from both neighbours
        are candidates: between others, other values contribute to the count.

        Parameters
        ----------
        n_knots : int
            Number of knots that the column will have.

        Returns
        -------
        list of int or float
        """
        if self.grid.decimals is None:
            return []
        is_next = np.isclose(np.diff(self.knots), 10.0**-self.grid.decimals)
        inner = 1 + np.flatnonzero(is_next[:-1] & is_next[1:])
        beside = np.maximum(self._near[inner - 1], self._near[inner + 1]).clip(0)
        least = max(self.n_values / n_knots, find_clear(self.std, len(inner)))
        is_shared = self._near[inner] - CONSTANTS.min_ratio * beside > least
        shared = self.knots[inner[is_shared]]
        return [int(x) if self.grid.decimals == 0 else x for x in shared.tolist()]

    def without(self, atoms, *, is_wide=False):
        """Return the counts near knots without point masses, and the number of values in them.

        The counts of rejected candidates go to the knots around them. Those beyond the knots, where
        no values are, go nowhere.

        Parameters
        ----------
        atoms : list of float
        is_wide : bool, default=False
            Whether the counts are to show a range. Then candidates whose counts may be noise go
            nowhere either: the noise of many would be taken for values.

        Returns
        -------
        counts : ndarray of shape (n_knots,)
        n_values : float
        """
        is_left, is_free = ~np.isin(self._atoms, atoms), ~np.isin(self.knots, atoms)
        # Without `decimals`, other values arbitrarily near contribute to the count of a knot.
        is_free |= self.grid.decimals is None
        is_left &= (self._atoms >= self.knots[0]) & (self._atoms <= self.knots[-1])
        if is_wide:
            is_left &= self._at_atoms > find_clear(self.std, len(self._atoms))
        left = self._at_atoms[is_left] @ knot_weights(self._atoms[is_left], self.knots)
        counts = self._near * is_free + left
        n_atoms = self._at_atoms[np.isin(self._atoms, atoms)].sum() + self._near[~is_free].sum()
        return counts, max(self.n_values - n_atoms, 0.0)


@dataclass(frozen=True)
class WideHistogram:
    """Histogram of a column without point masses: on the wide grid, finer where values are located.

    Attributes
    ----------
    knots, counts : ndarray
        Noisy counts near knots.
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
        return cls(counted.knots, counts, counted.std, atoms, n_values, counted)

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
        clear = find_clear(self.std, 2) + CONSTANTS.few_outside * self.n_values
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
        clear = (
            find_clear(self.std * math.sqrt(is_outside.sum()), 1)
            + CONSTANTS.few_outside * self.n_values
        )
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


def with_candidates(number, declared, found=()):
    """Return a number with its declared point masses, or else all candidates in declared bounds.

    Parameters
    ----------
    number : Number
        With bounds; dates are numbers of units here.
    declared : Number or Date
        The declared column, perhaps without bounds.
    found : list of float, default=()
        Point masses inferred before, also beyond the bounds.

    Returns
    -------
    Number
    """
    known = declared.to_number()
    atoms = known.atoms
    if atoms is None:
        bounds = [bound for bound in (known.lower, known.upper) if bound is not None]
        lower = -np.inf if known.lower is None else known.lower
        upper = np.inf if known.upper is None else known.upper
        inside = [value for value in declared.candidates if lower <= value <= upper]
        atoms = dict.fromkeys([*found, *inside, *bounds])
    return with_atoms(number, atoms)


def with_atoms(number, atoms):
    """Return a number with point masses.

    If a number has few values, each of which is a knot, only point masses beyond its bounds stay.
    """
    beyond = [atom for atom in atoms if not number.lower <= atom <= number.upper]
    is_few = number.n_values - (len(atoms) - len(beyond)) <= N_KNOTS
    if is_few and len(number.positions) == number.n_values:
        atoms = beyond
    return replace(number, atoms=list(atoms) or None)


def read_frequent(declared, counts):
    """Return values of a column that may be point masses, the most frequent first.

    Parameters
    ----------
    declared : Number or Date
        The column type, perhaps without bounds.
    counts : dict of str to float
        Noisy counts of the names of cells.

    Returns
    -------
    list of int or float
        Numbers, or units of dates, within the declared bounds.
    """
    number = declared.to_number()
    farthest = find_farthest(number.decimals)
    lower = -farthest if number.lower is None else number.lower
    upper = farthest if number.upper is None else number.upper
    names = sorted(sorted(counts), key=counts.get, reverse=True)
    cells = [read_cell(name)[1] for name in names]
    _, values = declared.encode(pd.Series(cells, dtype=object))
    found = [value for value in values.tolist() if lower <= value <= upper]
    if number.decimals is not None:
        found = [round(value, number.decimals or None) for value in found]
    return list(dict.fromkeys(found))[: CONSTANTS.most_frequent]


def _precision_share(std, other):
    """Return the weight of a count beside another one of the same, by the precision of both."""
    variances = std**2, other**2
    return 1.0 if sum(variances) == 0 else variances[1] / sum(variances)
