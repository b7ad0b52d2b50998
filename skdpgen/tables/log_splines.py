# SPDX-License-Identifier: BSD-3-Clause
"""Smoothest densities with given weights of knots, by penalized logarithmic splines."""

import functools
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BSpline, PchipInterpolator
from scipy.special import softmax

from ..histograms.grids import knot_weights
from ..quality import MOVED
from .columns.values import CodeScale


@dataclass(frozen=True)
class SplineConstants:
    """Constants of logarithmic splines; all are set by hand."""

    # Weights of the penalty among which the evidence decides, the smoothest first.
    penalties: tuple = tuple(10.0**k for k in range(7, -5, -1))
    # Order of the penalized differences. Third differences of the logarithm of a normal density are
    # 0, and so are those of a log-normal one if knots grow geometrically.
    order: int = 3
    # Most B-splines in an interval between knots, and in all; and points in an interval.
    per_interval: int = 4
    most: int = 128
    n_points: int = 16
    # Largest number of values with masses of their own.
    few_values: int = 512
    # Least standard deviation of a share.
    least_std: float = 1e-4
    # Most Newton steps for a penalty; they end at a gain in log posterior density below this.
    n_steps: int = 30
    least_gain: float = 1e-2
    # Total variation of two smooth densities of the same mass and mean, if all is between two
    # knots: of a log-normal density, σ = 1, from the exponential one. See `expect_error`.
    unseen: float = 0.13


CONSTANTS = SplineConstants()


def smooth_density(scale, shares, std, unit=None, atoms=()):
    """Estimate the density of numbers from the noisy means of their weights in the hat basis.

    The logarithm of the density is a cubic spline in a smooth coordinate that interpolates the
    codes. Least squares, weighted by the noise, are penalized by third differences of its
    coefficients. The weight of the penalty has the largest evidence, in the Laplace approximation.

    Parameters
    ----------
    scale : CodeScale
        Codes of numbers, from the first knot, at code 0, to the last.
    shares : ndarray of shape (n_knots,)
        Mean weights of the knots, which sum to 1.
    std : float
        Standard deviation of the noise on a share.
    unit : float, default=None
        Values are whole multiples of it, to which numbers are rounded. If there are few, each has a
        mass of its own.
    atoms : sequence of float, default=()
        Point masses among the multiples of the unit: they get no mass here.

    Returns
    -------
    points : ndarray of shape (n_points,)
        Increasing, from the first knot to the last.
    masses : ndarray of shape (n_points - 1,)
        Masses between the points; they sum to 1.
    error : float
        Expected total variation from the true density: that of the posterior, over all penalties,
        and of what no weight shows of the mass between two knots. Over little mass a density hardly
        bends, so that a share p there has an error of p² of that of all.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpgen.tables.columns.values import CodeScale
    >>> scale = CodeScale.of_knots(np.array([0.0, 1.0, 2.0]))
    >>> points, masses, error = smooth_density(scale, np.array([0.25, 0.5, 0.25]), std=1e-3)
    >>> bool(np.abs(masses - 1 / 32).max() < 1e-3), round(error, 2)
    (True, 0.05)
    """
    last = len(shares) - 1
    lower, upper = scale.numbers[[0, -1]]
    n_values = np.inf if unit is None else 1 + round((upper - lower) / unit)
    if n_values <= CONSTANTS.few_values:
        middles = np.linspace(lower, upper, n_values)
        if len(atoms):
            middles = middles[abs(middles[:, None] - np.array(atoms)).min(axis=1) > unit / 2]
        points = np.r_[lower, (middles[1:] + middles[:-1]) / 2, upper]
        widths = np.ones(len(middles))
    else:
        points = scale.decode(np.arange(last * CONSTANTS.n_points + 1) / CONSTANTS.n_points)
        middles, widths = (points[1:] + points[:-1]) / 2, np.diff(points)
    per_interval = int(np.clip(CONSTANTS.most // last, 1, CONSTANTS.per_interval))
    ends = np.arange(-3, last * per_interval + 4) / per_interval
    inside = PchipInterpolator(scale.numbers, scale.codes)(middles).clip(0, last * (1 - 1e-12))
    std = max(std, CONSTANTS.least_std)
    model = _LogSpline(
        knot_weights(scale.encode(middles), np.arange(last + 1.0)).T / std,
        BSpline.design_matrix(inside, ends, 3).toarray(),
        widths / widths.sum(),
        shares / std,
    )
    masses, error = model.fit(min(CONSTANTS.order, last))
    between = np.histogram(scale.encode(middles), np.arange(last + 1), weights=masses)[0]
    return points, masses, min(1.0, error + CONSTANTS.unseen * float((between**3).sum()))


@functools.lru_cache
def expect_error(n_knots, std):
    """Return the error of a normal density on even knots from -4σ to 4σ; see `smooth_density`."""
    numbers = np.linspace(-4, 4, 1001)
    masses, knots = np.exp(-(numbers**2) / 2), np.linspace(-4, 4, n_knots)
    shares = masses @ knot_weights(numbers, knots) / masses.sum()
    return smooth_density(CodeScale.of_knots(knots), shares, std)[2]


class _LogSpline:
    """Fit of masses ∝ widths · exp(basis · coefficients) to noisy linear functions of them.

    Parameters
    ----------
    weights : ndarray of shape (n_shares, n_masses)
    basis : ndarray of shape (n_masses, n_coefficients)
    widths : ndarray of shape (n_masses,)
    shares : ndarray of shape (n_shares,)
        ``weights @ masses`` with noise of variance 1.
    """

    def __init__(self, weights, basis, widths, shares):
        self._weights, self._basis, self._widths, self._shares = weights, basis, widths, shares

    def fit(self, order):
        """Return the masses at the penalty with the largest evidence, and their expected error."""
        size = self._basis.shape[1]
        differences = np.diff(np.eye(size), order, axis=0)
        self._roughness = differences.T @ differences
        spline, found = np.zeros(size), []
        # Each penalty starts at the coefficients of the one before.
        for penalty in CONSTANTS.penalties:
            spline, loss, masses, curvature, slopes = self._minimize(spline, penalty)
            # A ridge, since masses do not depend on the mean of the coefficients.
            curvature = curvature + 1e-9 * np.trace(curvature) / size * np.eye(size)
            evidence = (size - order) * np.log(penalty) - np.linalg.slogdet(curvature)[1]
            variances = (slopes @ np.linalg.inv(curvature) * slopes).sum(axis=1).clip(0)
            found.append((evidence / 2 - loss, masses, MOVED * np.sqrt(variances).sum()))
        evidence, masses, errors = zip(*found, strict=True)
        return masses[np.argmax(evidence)], float(softmax(evidence) @ errors)

    def _evaluate(self, spline, penalty):
        """Return the loss, masses, Gauss-Newton matrix, slopes of masses and negative gradient."""
        logs = self._basis @ spline
        masses = self._widths * np.exp(logs - logs.max())
        masses = masses / masses.sum()
        rest = self._shares - self._weights @ masses
        loss = (rest @ rest + penalty * spline @ self._roughness @ spline) / 2
        slopes = masses[:, None] * (self._basis - masses @ self._basis)
        seen = self._weights @ slopes
        matrix = seen.T @ seen + penalty * self._roughness
        return loss, masses, matrix, slopes, seen.T @ rest - penalty * self._roughness @ spline

    def _minimize(self, spline, penalty):
        """Return the spline of least loss, and what `_evaluate` returns but the gradient."""
        # Steps of Levenberg and Marquardt.
        found, damping, n_steps = self._evaluate(spline, penalty), 1e-6, 0
        while n_steps < CONSTANTS.n_steps and damping <= 1e6:
            loss, _, matrix, _, descent = found
            ridge = damping * (np.trace(matrix) / len(spline)) * np.eye(len(spline))
            moved = spline + np.linalg.solve(matrix + ridge, descent)
            after = self._evaluate(moved, penalty)
            if not after[0] <= loss:
                damping *= 10
                continue
            spline, found, damping, n_steps = moved, after, max(damping / 10, 1e-9), n_steps + 1
            if loss - after[0] < CONSTANTS.least_gain:
                break
        return spline, *found[:4]
