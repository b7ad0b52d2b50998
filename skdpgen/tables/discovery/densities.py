# SPDX-License-Identifier: BSD-3-Clause
"""Smooth densities of numeric columns from one or more noisy histograms, by post-processing."""

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import nnls

from ...saving.registry import savable
from ..blocks import knot_weights
from ..columns.values import CodeScale
from .ranges import find_clear, spread_counts


@dataclass(frozen=True)
class DensityConstants:
    """Constants of densities; all are set by hand."""

    # Fewest and most bins, and points of a bin at which the weights of knots are averaged.
    min_bins: int = 64
    max_bins: int = 128
    n_points: int = 8
    # Order of the differences that are penalized: a parabola has none.
    order: int = 3
    # Weights of the penalty among which the evidence decides.
    penalties: tuple = tuple(10.0**k for k in range(-6, 7))
    # Least standard deviation of a count, relative to the average one.
    min_std: float = 1e-3


CONSTANTS = DensityConstants()


@savable
@dataclass(frozen=True)
class Histogram:
    """Noisy counts of values in the hat basis on the codes of knots.

    Attributes
    ----------
    knots, counts : ndarray of shape (n_knots,)
    std : float
        Standard deviation of the noise on a count.
    cuts : sequence of float, default=()
        Breakpoints between knots.
    """

    knots: np.ndarray
    counts: np.ndarray
    std: float
    cuts: Sequence = ()

    @property
    def scale(self):
        """The map between numbers and codes."""
        return CodeScale(self.knots, self.cuts)

    def weigh(self, numbers):
        """Return the weights of numbers at the knots, which are the last axis."""
        return knot_weights(self.scale.encode(numbers), np.arange(len(self.counts)))

    def spread(self):
        """Return codes, and the masses between these as encoders draw them."""
        return spread_counts(np.arange(len(self.counts), dtype=float), self.counts, self.std)


def estimate_density(histograms, lower, upper, unit=None):
    """Estimate the masses of bins by penalized weighted least squares.

    The histograms are independent, and weighted by their precision. The penalty is that of third
    differences of the masses of bins that are equal in arsinh((x - median) / (IQR / 2)), so that
    the estimate follows location and scale; its weight has the largest evidence, as in a Gaussian
    model with this prior. No mass is negative, and the density falls in tails whose counts
    may be noise: such a count at a far end would move the mean.

    Parameters
    ----------
    histograms : list of Histogram
        The last one has a knot wherever values are.
    lower, upper : float
        Values outside are at these bounds.
    unit : float, default=None
        Values are whole multiples of it. If there are few, each has a mass of its own.

    Returns
    -------
    points : ndarray of shape (n_bins + 1,)
        Increasing: the edges of bins.
    masses : ndarray of shape (n_bins,)
    """
    last, order = histograms[-1], CONSTANTS.order
    if last.std == 0:
        # An exact histogram needs no prior, nor another one.
        codes, masses = last.spread()
        return last.scale.decode(codes), masses
    total = max(last.counts.sum(), 1.0)
    n_values = math.inf if unit is None else 1 + round((upper - lower) / unit)
    is_few = n_values <= CONSTANTS.max_bins
    if is_few:
        values = np.linspace(lower, upper, n_values)
        middles = values[:, None]
    else:
        n_bins = int(np.clip(2 * len(last.counts), CONSTANTS.min_bins, CONSTANTS.max_bins))
        fine = _place_bins(last, lower, upper, n_bins * CONSTANTS.n_points)
        middles = ((fine[1:] + fine[:-1]) / 2).reshape(n_bins, CONSTANTS.n_points)
        points = fine[:: CONSTANTS.n_points]
    n_bins, weights, counts = len(middles), [], []
    for part in histograms:
        std = max(part.std, CONSTANTS.min_std * total / len(part.counts))
        weights.append(part.weigh(middles).mean(axis=1).T / std)
        counts.append(part.counts / std)
    weights, counts = np.vstack(weights), np.concatenate(counts)
    roughness = np.diff(np.eye(n_bins), min(order, n_bins - 1), axis=0) * (n_bins / total)
    penalties = np.array(CONSTANTS.penalties)
    penalty = penalties[_evidence(weights, counts, roughness, penalties).argmax()]
    weights = np.vstack([weights, math.sqrt(penalty) * roughness])
    masses = _solve(weights, np.r_[counts, np.zeros(len(roughness))])
    if is_few:
        # Values are drawn between each other, and then rounded.
        return spread_counts(values, masses, 0.0)
    return points, _order_tails(points, masses, histograms)


def _order_tails(points, masses, histograms):
    """Return masses whose density falls in both tails, beyond all neighbours with clear counts."""
    found = [ends for part in histograms for ends in _find_clear(part)]
    if not found:
        return masses
    first, last = min(end for end, _ in found), max(start for _, start in found)
    first, last, widths = min(first, last), max(first, last), np.diff(points)
    masses = masses.copy()
    for is_tail, sign in ((points[1:] <= first, 1), (points[:-1] >= last, -1)):
        density = sign * np.sort(sign * masses[is_tail] / widths[is_tail])
        total = density @ widths[is_tail]
        if total > 0:
            masses[is_tail] = density * widths[is_tail] * (masses[is_tail].sum() / total)
    return masses


def _find_clear(histogram):
    """Yield, for each length, where neighbours with a clear count end first and begin last."""
    below, n = np.r_[0, np.cumsum(histogram.counts)], len(histogram.counts)
    lengths = 2 ** np.arange(n.bit_length())
    clear = find_clear(histogram.std, n * len(lengths))
    for length in lengths:
        starts = np.flatnonzero(below[length:] - below[:-length] > clear * length**0.5)
        if len(starts):
            yield histogram.knots[starts[0] + length - 1], histogram.knots[starts[-1]]


def _solve(weights, counts):
    """Return the non-negative solution of least squares; never raise, as the budget is spent."""
    with contextlib.suppress(RuntimeError):
        return nnls(weights, counts, maxiter=100 * weights.shape[1])[0]
    return np.linalg.lstsq(weights, counts)[0].clip(0)


def _place_bins(histogram, lower, upper, n_points):
    """Return the edges of bins of equal width in the coordinate of the density."""
    codes, masses = histogram.spread()
    points, cumulative = histogram.scale.decode(codes), np.r_[0, np.cumsum(masses)]
    quantiles = np.interp(np.array([0.25, 0.5, 0.75]) * cumulative[-1], cumulative, points)
    scale = max((quantiles[2] - quantiles[0]) / 2, 1e-6 * (upper - lower))
    ends = np.arcsinh((np.array([lower, upper]) - quantiles[1]) / scale)
    points = quantiles[1] + scale * np.sinh(np.linspace(*ends, n_points + 1))
    points[[0, -1]] = lower, upper
    return points


def _evidence(weights, counts, roughness, penalties):
    """Return the log evidence of a Gaussian model for each penalty, but for a constant."""
    data, prior = weights.T @ weights, roughness.T @ roughness
    # Both are about as large, so that one basis, in which both are diagonal, serves all penalties.
    scale = np.trace(data) / np.trace(prior)
    both = data + scale * prior
    # Where nothing is counted, only the penalty decides.
    both += 1e-12 * np.trace(both) / len(both) * np.eye(len(both))
    shares, vectors = eigh(data, both)
    shares = shares.clip(0, 1)
    values = shares + (penalties / scale)[:, None] * (1 - shares)
    values = values.clip(1e-300)
    explained = ((vectors.T @ (weights.T @ counts)) ** 2 / values).sum(axis=1)
    return 0.5 * (explained - np.log(values).sum(axis=1) + len(roughness) * np.log(penalties))
