# SPDX-License-Identifier: BSD-3-Clause
"""Private inference of point masses from noisy counts."""

from dataclasses import dataclass, replace

import numpy as np

from ..blocks import knot_weights
from ..columns.number import N_KNOTS
from .ranges import find_clear, find_widths


@dataclass(frozen=True)
class PointMassConstants:
    """Constants of the inference of point masses; all are set by hand."""

    # Least share of a point mass among the records of a column.
    min_share: float = 0.003
    # Least ratio of its count to what the density beside it predicts.
    min_ratio: float = 3.0
    # Most values of a column that are sought because many records share them.
    most_frequent: int = N_KNOTS


CONSTANTS = PointMassConstants()


def with_candidates(kind, declared, found=()):
    """Return a number with its declared point masses, or else all candidates in declared bounds.

    Parameters
    ----------
    kind : Number
        With bounds; dates are numbers of units here.
    declared : Number or Date
        The declared column, perhaps without bounds.
    found : list of float, default=()
        Point masses inferred before, also beyond the bounds.

    Returns
    -------
    Number
    """
    number = declared.to_number()
    atoms = number.atoms
    if atoms is None:
        bounds = [bound for bound in (number.lower, number.upper) if bound is not None]
        lower = -np.inf if number.lower is None else number.lower
        upper = np.inf if number.upper is None else number.upper
        inside = [value for value in declared.candidates if lower <= value <= upper]
        atoms = dict.fromkeys([*found, *inside, *bounds])
    return with_atoms(kind, atoms)


def with_atoms(kind, atoms):
    """Return a number with point masses.

    If a number has few values, each of which is a knot, only point masses beyond its bounds stay.
    """
    beyond = [atom for atom in atoms if not kind.lower <= atom <= kind.upper]
    is_few = kind.n_values - (len(atoms) - len(beyond)) <= N_KNOTS
    if is_few and len(kind.positions) == kind.n_values:
        atoms = beyond
    return replace(kind, atoms=list(atoms) or None)


@dataclass
class ValueCounts:
    """Noisy counts of the values of a column: near knots, and at point masses.

    Parameters
    ----------
    kind : Number
        With bounds.
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

    kind: object
    counts: np.ndarray
    std: float
    n_records: int

    def __post_init__(self):
        atoms = self.kind.atoms or ()
        positions = self.kind.positions
        near, at_atoms, missing = np.split(
            self.counts, [len(positions), len(positions) + len(atoms)]
        )
        # `positions` lacks the knots that are candidates for point masses: restore them.
        knots = np.union1d(positions, np.array(self.kind.knots or (), dtype=np.float64))
        near_knots = np.zeros(len(knots))
        near_knots[np.searchsorted(knots, positions)] = near
        self.knots = knots
        self.n_values = self.n_records - missing.sum().clip(0, self.n_records)
        self._atoms = np.array(atoms, dtype=np.float64)
        self._near, self._at_atoms = near_knots, at_atoms

    @property
    def at_atoms(self):
        """The noisy counts of the point masses, a dict."""
        return dict(zip(self.kind.atoms or (), self._at_atoms.tolist(), strict=True))

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
        unit = 0.0 if self.kind.decimals is None else 10.0**-self.kind.decimals
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
        beside = np.maximum(density[rows, before], density[rows, after + 1]) * unit * ~is_beyond
        at_atoms, std = self._at_atoms, np.full(len(beside), self.std)
        if earlier is not None:
            before = np.array([earlier.at_atoms.get(atom, np.nan) for atom in self._atoms])
            is_both, share = ~np.isnan(before), _precision_share(self.std, earlier.std)
            at_atoms = np.where(is_both, share * at_atoms + (1 - share) * before, at_atoms)
            std[is_both] *= np.sqrt(share)
        least = np.maximum(CONSTANTS.min_share * self.n_values, find_clear(std, len(beside)))
        is_atom = at_atoms - CONSTANTS.min_ratio * beside > least
        return [a for a, is_found in zip(self.kind.atoms, is_atom, strict=True) if is_found]

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
        if self.kind.decimals is None:
            return []
        is_next = np.isclose(np.diff(self.knots), 10.0**-self.kind.decimals)
        inner = 1 + np.flatnonzero(is_next[:-1] & is_next[1:])
        beside = np.maximum(self._near[inner - 1], self._near[inner + 1]).clip(0)
        least = max(self.n_values / n_knots, find_clear(self.std, len(inner)))
        is_shared = self._near[inner] - CONSTANTS.min_ratio * beside > least
        shared = self.knots[inner[is_shared]]
        return [int(x) if self.kind.decimals == 0 else x for x in shared.tolist()]

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
        is_free |= self.kind.decimals is None
        is_left &= (self._atoms >= self.knots[0]) & (self._atoms <= self.knots[-1])
        if is_wide:
            is_left &= self._at_atoms > find_clear(self.std, len(self._atoms))
        left = self._at_atoms[is_left] @ knot_weights(self._atoms[is_left], self.knots)
        counts = self._near * is_free + left
        n_atoms = self._at_atoms[np.isin(self._atoms, atoms)].sum() + self._near[~is_free].sum()
        return counts, max(self.n_values - n_atoms, 0.0)


def _precision_share(std, other):
    """Return the weight of a count beside another one of the same, by the precision of both."""
    variances = std**2, other**2
    return 1.0 if sum(variances) == 0 else variances[1] / sum(variances)
