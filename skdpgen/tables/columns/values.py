# SPDX-License-Identifier: BSD-3-Clause
"""Grids of numeric values, and the scale of knots."""

import math

import numpy as np

# Numbers with decimals have fewer units than this: float64 holds 2^53, and a bit is for rounding.
MAX_UNITS = 2.0**52
# Numbers are looked for up to 2^64 on both sides of zero, as far as 64-bit integers go, and from
# 2^-60 on: knots beyond what a column holds cost a logarithm of their number only.
_OCTAVES = -60, 64
# The finest wide grid has so many knots in each octave.
FINEST = 8

# In symlog knots, what is linear around 0 is this share of the larger bound, but at most 1.
_LINEAR_SHARE = 1e-3


class Values:
    """The values that numbers are rounded to: all whole numbers of steps but those of atoms.

    Parameters
    ----------
    decimals : int or None
        How many decimals values have. None: any.
    atoms : sequence of float
        What is left out, as it has weights of its own.

    Attributes
    ----------
    unit : float or None
        Steps in 1.
    """

    def __init__(self, decimals, atoms=()):
        self.unit = None if decimals is None else 10.0**decimals
        self._left_out = () if decimals is None else sorted(round(a * self.unit) for a in atoms)

    def down(self, steps):
        """Return whole numbers of steps, or the next that is a value below those that are none."""
        for atom in reversed(self._left_out):
            steps = np.where(steps == atom, atom - 1, steps)
        return steps

    def up(self, steps):
        """Return whole numbers of steps, or the next that is a value above those that are none."""
        for atom in self._left_out:
            steps = np.where(steps == atom, atom + 1, steps)
        return steps

    def at_most(self, numbers):
        """Return the largest values that are at most as large as numbers."""
        if self.unit is None:
            return numbers
        # Up to the error of a product, which is no part of a step.
        return self.down(np.floor(np.round(numbers * self.unit, 4))) / self.unit

    def at_least(self, numbers):
        """Return the smallest values that are at least as large as numbers."""
        if self.unit is None:
            return numbers
        return self.up(np.ceil(np.round(numbers * self.unit, 4))) / self.unit

    def before(self, values):
        """Return the next values below."""
        if self.unit is None:
            return np.nextafter(values, -np.inf)
        return self.down(np.round(values * self.unit) - 1) / self.unit

    def after(self, values):
        """Return the next values above, between which and `values` numbers are rounded."""
        if self.unit is None:
            return values
        return self.up(np.round(values * self.unit) + 1) / self.unit

    def around(self, knots):
        """Return knots that are values: those that are none are replaced by both next to them."""
        if self.unit is None:
            return knots
        steps = np.round(knots * self.unit)
        knots = np.union1d(self.down(steps), self.up(steps)) / self.unit
        return knots + 0.0  # no negative zero

    def round_at_random(self, places, scale, random_state):
        """Return the numbers at places, rounded up or down so that mean places stay.

        Where knots, which are values, are at whole places, weights that stand for a place stay too.

        Parameters
        ----------
        places : ndarray of shape (n,)
        scale : PlaceScale
        random_state : RandomState or Generator of NumPy
        """
        numbers = scale.find_numbers(places)
        if self.unit is None:
            return numbers
        whole = np.floor(numbers * self.unit)
        below, above = self.down(whole) / self.unit, self.up(whole + 1) / self.unit
        first, last = scale.encode_cells(below), scale.encode_cells(above)
        is_up = random_state.uniform(size=len(numbers)) * (last - first) < places - first
        return np.where(is_up, above, below)


class PlaceScale:
    """Where numbers are between knots: the first is at the place 0, and the next ones at 1, 2, ...

    Parameters
    ----------
    knots : ndarray of shape (n_knots,)
        Increasing.
    cuts : sequence of float, default=()
        Increasing numbers between knots: those from one knot to the next part their way in equal
        shares. From one to the next, numbers go evenly.
    places : ndarray of shape (n_knots + n_cuts,), default=None
        Increasing places of knots and cuts, if they are elsewhere: the first is 0, and the last
        that of the last knot.

    Attributes
    ----------
    numbers : ndarray of shape (n_knots + n_cuts,)
        Knots and cuts.
    places : ndarray of the same shape

    Examples
    --------
    >>> scale = PlaceScale(np.array([0.0, 100.0]), [10])
    >>> scale.encode_cells([5, 10, 55])
    array([0.25, 0.5 , 0.75])
    >>> scale.find_numbers([0.25, 0.5, 0.75])
    array([ 5., 10., 55.])
    """

    def __init__(self, knots, cuts=(), places=None):
        self.numbers = np.union1d(knots, cuts)
        if places is None:
            at = np.searchsorted(self.numbers, knots)
            places = np.interp(np.arange(len(self.numbers)), at, np.arange(len(at)))
        self.places = places

    def encode_cells(self, numbers):
        """Return where numbers are; those beyond the knots are at the outermost."""
        return _carry(numbers, self.numbers, self.places)

    def find_numbers(self, places):
        """Return which numbers are at places."""
        return _carry(places, self.places, self.numbers)


def _carry(values, start, end):
    """Carry values from a grid to another, evenly between two knots."""
    left, share = find_between(values, start)
    return end[left] + share * (end[left + 1] - end[left])


def find_between(numbers, knots):
    """Return the knot to the left of each number, and how far it is on the way to the next."""
    numbers = np.clip(numbers, knots[0], knots[-1])
    left = np.searchsorted(knots[1:-1], numbers, side="right")
    return left, (numbers - knots[left]) / (knots[left + 1] - knots[left])


def place_knots(lower, upper, n_knots, scale, decimals):
    """Return knots from bound to bound that are even on a scale; see `Number`."""
    if scale == "symlog":
        knots = _place_on_both_sides(lower, upper, n_knots, decimals)
    elif scale == "log":
        knots = lower + np.expm1(np.linspace(0, np.log1p(float(upper) - lower), n_knots))
    else:
        knots = np.linspace(lower, upper, n_knots)
    return tidy_knots(knots, lower, upper, decimals)


def _place_on_both_sides(lower, upper, n_knots, decimals):
    bounds = np.array([lower, upper], dtype=np.float64)
    step = 0.0 if decimals is None else 10.0**-decimals
    linear = max(step, min(1.0, _LINEAR_SHARE * np.abs(bounds).max()))
    first, last = np.sign(bounds) * np.log1p(np.abs(bounds) / linear)
    places = np.linspace(first, last, n_knots)
    if first < 0 < last and n_knots > 2:
        # Even on either side of a knot at 0.
        zero = np.clip(round((n_knots - 1) * first / (first - last)), 1, n_knots - 2)
        places = np.interp(np.arange(n_knots), [0, zero, n_knots - 1], [first, 0, last])
    return np.sign(places) * linear * np.expm1(np.abs(places))


def tidy_knots(knots, lower, upper, decimals):
    """Make the outer knots the bounds, and all knots values of which none is repeated."""
    knots[[0, -1]] = lower, upper
    return np.unique(knots if decimals is None else np.round(knots, decimals) + 0.0)


def wide_knots(decimals=None, n_per_octave=FINEST):
    """Return the wide grid on which numbers are looked for: zero, and powers of 2 to both sides.

    Parameters
    ----------
    decimals : int, default=None
        Of the numbers: knots are rounded to them, those that become equal are one, and they end
        where floats hold no more of them.
    n_per_octave : int, default=8
        Knots from a power of 2 to the next.

    Returns
    -------
    knots : ndarray
        Increasing, from -2⁶⁴ to 2⁶⁴ at most.
    """
    first, last = _OCTAVES
    sizes = 2.0 ** (np.arange(first * n_per_octave, last * n_per_octave + 1) / n_per_octave)
    if decimals is not None:
        sizes = np.unique(np.round(sizes[sizes <= find_farthest(decimals)], decimals))
    return np.unique(np.r_[-sizes[::-1], 0, sizes]) + 0.0


def find_farthest(decimals):
    """Return the power of 2 up to which numbers of so many decimals are looked for."""
    if decimals is None:
        return 2.0 ** _OCTAVES[1]
    return 2.0 ** math.floor(math.log2(MAX_UNITS / 10.0**decimals))
