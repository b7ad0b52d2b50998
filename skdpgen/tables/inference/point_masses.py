# SPDX-License-Identifier: BSD-3-Clause
"""Private inference of point masses from noisy counts."""

from dataclasses import dataclass, replace

import numpy as np

from ..blocks import knot_weights
from ..columns.number import N_KNOTS
from .ranges import find_clear

# An atom has this share of a column, and so many times what a smooth density would bring there.
_LEAST_SHARE, _MORE_THAN_BESIDE = 0.003, 3.0


def with_candidates(kind, declared, found=()):
    """Return a closed number with all that may be point masses, or those that are declared.

    Parameters
    ----------
    kind : Number
    declared : Number or Date
        As it is in the schema, where bounds may be open.
    found : list of float
        Atoms that were found before. They may be beyond the bounds.
    """
    number = declared.to_number()
    atoms = number.atoms
    if atoms is None:
        bounds = [bound for bound in (number.lower, number.upper) if bound is not None]
        inside = [value for value in declared.candidates if kind.lower <= value <= kind.upper]
        atoms = dict.fromkeys([*found, *inside, *bounds])
    return with_atoms(kind, atoms)


def with_atoms(kind, atoms):
    """Return a number with atoms; where all of few values have knots, only with those beyond."""
    beyond = [atom for atom in atoms if not kind.lower <= atom <= kind.upper]
    is_few = kind.n_values - (len(atoms) - len(beyond)) <= N_KNOTS
    if is_few and len(kind.positions) == kind.n_values:
        atoms = beyond
    return replace(kind, atoms=list(atoms) or None)


@dataclass(frozen=True)
class Counted:
    """Noisy counts of the values of a column: near knots, and at atoms beside them.

    Parameters
    ----------
    kind : Number
        Closed.
    counts : ndarray
        Near knots, then at atoms, then of missing values, if there may be such.
    std : float
        Standard deviation of their noise.
    n_records : int

    Attributes
    ----------
    knots : ndarray
    n_values : float
        Number of records, without what the count of missing values says.
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
        # Knots that atoms replaced are there again.
        knots = np.union1d(positions, self.kind.knots or ())
        spread = np.zeros(len(knots))
        spread[np.searchsorted(knots, positions)] = near
        for name, value in {
            "knots": knots,
            "n_values": self.n_records - missing.sum().clip(0, self.n_records),
            "_atoms": np.array(atoms, dtype=np.float64),
            "_near": spread,
            "_at_atoms": at_atoms,
        }.items():
            object.__setattr__(self, name, value)

    def find_atoms(self, declared):
        """Return those values that clearly many records share, or those that are declared."""
        if not len(self._atoms) or declared.atoms is not None:
            return list(declared.atoms or ())
        unit = 0.0 if self.kind.decimals is None else 10.0**-self.kind.decimals
        before = np.searchsorted(self.knots, self._atoms)
        after = np.searchsorted(self.knots, self._atoms, side="right")
        counts, is_knot = self._near.copy(), before < after
        counts[before[is_knot]] += self._at_atoms[is_knot]
        widths = np.convolve(np.diff(self.knots), [0.5, 0.5])
        widths[[0, -1]] += unit / 2  # the first and the last value are a unit wide, too
        # Beyond the knots there is nothing: what is there was found before, and ranges are without.
        density = np.pad(counts.clip(0) / widths, 1)
        is_beyond = (self._atoms < self.knots[0]) | (self._atoms > self.knots[-1])
        beside = unit * np.maximum(density[before], density[after + 1]) * ~is_beyond
        least = max(_LEAST_SHARE * self.n_values, find_clear(self.std, len(beside)))
        is_atom = self._at_atoms - _MORE_THAN_BESIDE * beside > least
        return [a for a, is_found in zip(self.kind.atoms, is_atom, strict=True) if is_found]

    def find_shared(self, n_knots):
        """Return the values among knots that hold the share of a knot, and most of what is near.

        So do 40 hours a week. They are told from the values beside them where knots are a unit
        apart.

        Parameters
        ----------
        n_knots : int
            How many knots the column gets.

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
        is_shared = self._near[inner] - _MORE_THAN_BESIDE * beside > least
        shared = self.knots[inner[is_shared]]
        return (shared.astype(np.int64) if self.kind.decimals == 0 else shared).tolist()

    def without(self, atoms):
        """Return the counts near knots without those of atoms, and how many values they are of.

        The counts of other values are shared by the knots around them.
        """
        is_left, is_free = ~np.isin(self._atoms, atoms), ~np.isin(self.knots, atoms)
        # Numbers without `decimals` have other values arbitrarily near.
        is_free |= self.kind.decimals is None
        counts = self._near * is_free + self._at_atoms[is_left] @ knot_weights(
            self._atoms[is_left], self.knots
        )
        n_atoms = self._at_atoms[~is_left].sum() + self._near[~is_free].sum()
        return counts, max(self.n_values - n_atoms, 0.0)
