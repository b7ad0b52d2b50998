# SPDX-License-Identifier: BSD-3-Clause
"""Values of a number of decimals, codes between knots, and the spacing of knots."""

from dataclasses import dataclass

import numpy as np

from ...histograms.grids import locate_between
from ...registry import savable

# Width of the linear part of symlog knots around 0, as a share of the larger bound; at most 1.
# Set by hand.
_LINEAR_SHARE = 1e-3


class Values:
    """The grid of values that numbers are rounded to: all multiples of a step but point masses.

    Parameters
    ----------
    decimals : int or None
        Number of decimals of the values. None: all floats are values.
    atoms : sequence of float, default=()
        Point masses, which have weights of their own and are excluded from the grid.

    Attributes
    ----------
    unit : float or None
        Number of steps in 1.
    """

    def __init__(self, decimals, atoms=()):
        self.unit = None if decimals is None else 10.0**decimals
        self._excluded = () if decimals is None else sorted(round(a * self.unit) for a in atoms)

    def down(self, steps):
        """Round multiples of a step, in steps, down to the next that is not excluded."""
        for excluded in reversed(self._excluded):
            steps = np.where(steps == excluded, excluded - 1, steps)
        return steps

    def up(self, steps):
        """Round multiples of a step, in steps, up to the next that is not excluded."""
        for excluded in self._excluded:
            steps = np.where(steps == excluded, excluded + 1, steps)
        return steps

    def at_most(self, numbers):
        """Round numbers down to values."""
        if self.unit is None:
            return numbers
        # Rounding to 4 digits removes the floating-point error of the product.
        return self.down(np.floor(np.round(numbers * self.unit, 4))) / self.unit

    def at_least(self, numbers):
        """Round numbers up to values."""
        if self.unit is None:
            return numbers
        return self.up(np.ceil(np.round(numbers * self.unit, 4))) / self.unit

    def before(self, values):
        """Return the largest values that are smaller than the given ones."""
        if self.unit is None:
            return np.nextafter(values, -np.inf)
        return self.down(np.round(values * self.unit) - 1) / self.unit

    def after(self, values):
        """Return the next larger values; without a grid, numbers are not rounded and stay."""
        if self.unit is None:
            return values
        return self.up(np.round(values * self.unit) + 1) / self.unit

    def around(self, knots):
        """Replace each knot that is no value by the two values next to it."""
        if self.unit is None:
            return knots
        steps = np.round(knots * self.unit)
        knots = np.union1d(self.down(steps), self.up(steps)) / self.unit
        return knots + 0.0  # no negative zero

    def round(self, codes, scale, to_nearest, random_state):
        """Decode codes and round the numbers.

        Parameters
        ----------
        codes : ndarray of shape (n,)
        scale : CodeScale
        to_nearest : bool or ndarray of bool of shape (n,)
            Whether a number is rounded to the nearest value. Otherwise it is rounded up or down at
            random, so that expected codes are unchanged and, if the knots, at integer codes, are
            values, the expected weights, too.
        random_state : RandomState or Generator of NumPy
        """
        numbers = scale.decode(codes)
        if self.unit is None:
            return numbers
        whole = np.floor(numbers * self.unit)
        below, above = self.down(whole) / self.unit, self.up(whole + 1) / self.unit
        first, last = scale.encode(below), scale.encode(above)
        is_up = random_state.uniform(size=len(numbers)) * (last - first) < codes - first
        return np.where(np.where(to_nearest, numbers > (below + above) / 2, is_up), above, below)


@savable
@dataclass(frozen=True)
class CodeScale:
    """The monotone map between numbers and codes, linear between its points.

    Attributes
    ----------
    numbers, codes : ndarray of shape (n_points,)
        Increasing.

    Examples
    --------
    >>> scale = CodeScale.of_knots(np.array([0.0, 100.0]), [10])
    >>> scale.encode([5, 10, 55])
    array([0.25, 0.5 , 0.75])
    >>> scale.decode([0.25, 0.5, 0.75])
    array([ 5., 10., 55.])
    """

    numbers: np.ndarray
    codes: np.ndarray

    @classmethod
    def of_knots(cls, knots, cuts=()):
        """Return the scale on which knots have the codes 0, 1, 2, ...

        Parameters
        ----------
        knots : ndarray of shape (n_knots,)
            Increasing.
        cuts : sequence of float, default=()
            Increasing breakpoints between knots. Those between two neighbouring knots have evenly
            spaced codes.
        """
        numbers = np.union1d(knots, cuts)
        at = np.searchsorted(numbers, knots)
        return cls(numbers, np.interp(np.arange(len(numbers)), at, np.arange(len(at))))

    def between(self, first, last):
        """Return the part between two codes, of which the first becomes 0."""
        inside = (first <= self.codes) & (self.codes <= last)
        return CodeScale(self.numbers[inside], self.codes[inside] - first)

    def encode(self, numbers):
        """Return the codes of numbers; numbers beyond the knots are clipped."""
        return _interpolate(numbers, self.numbers, self.codes)

    def decode(self, codes):
        """Return the numbers of codes."""
        return _interpolate(codes, self.codes, self.numbers)


def _interpolate(values, start, end):
    """Map values linearly from the intervals of a grid to those of another."""
    left, share = locate_between(values, start)
    return end[left] + share * (end[left + 1] - end[left])


def place_knots(lower, upper, n_knots, scale, decimals):
    """Return knots from bound to bound that are evenly spaced on a scale; see `Number`."""
    lower, upper = float(lower), float(upper)  # NumPy has no integers beyond 64 bits
    if scale == "symlog":
        knots = _place_symlog_knots(lower, upper, n_knots, decimals)
    elif scale == "log":
        knots = lower + np.expm1(np.linspace(0, np.log1p(upper - lower), n_knots))
    else:
        knots = np.linspace(lower, upper, n_knots)
    # Exactly, whatever rounding did to the outer ones.
    knots[[0, -1]] = lower, upper
    return np.unique(knots if decimals is None else np.round(knots, decimals) + 0.0)


def _place_symlog_knots(lower, upper, n_knots, decimals):
    bounds = np.array([lower, upper], dtype=np.float64)
    step = 0.0 if decimals is None else 10.0**-decimals
    linear = max(step, min(1.0, _LINEAR_SHARE * np.abs(bounds).max()))
    first, last = np.sign(bounds) * np.log1p(np.abs(bounds) / linear)
    logs = np.linspace(first, last, n_knots)
    if first < 0 < last and n_knots > 2:
        # One knot is at 0, and those on either side are evenly spaced.
        zero = np.clip(round((n_knots - 1) * first / (first - last)), 1, n_knots - 2)
        logs = np.interp(np.arange(n_knots), [0, zero, n_knots - 1], [first, 0, last])
    return np.sign(logs) * linear * np.expm1(np.abs(logs))
