# SPDX-License-Identifier: BSD-3-Clause
"""Warnings of array columns at their bounds, by released values: their units may be wrong."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from scipy import stats

from ..data.record_functions import call_quietly
from ..quality import LEAST_SIGNAL, WITHIN_NOISE, find_signal, warn_of_columns, warn_of_fit
from .box import BoxFormat

# Mean distances from a bound, as shares of the range: the largest at which a column counts as at a
# bound, and the largest that counts as none even without noise. Set by hand.
_NEAR, _NEGLIGIBLE = 0.05, 0.005
# Probability that noise hides a distance of more than `_NEAR`, over all columns.
_FALSE_RATE = 1e-4
# Gauss-Newton steps, after which means of columns no longer move.
_N_STEPS = 10


def are_near(distances, std):
    """Return which mean distances from a bound are negligible, or zero up to noise.

    Distances and their noise are shares of the range. The probability that any distance of more
    than a twentieth passes is at most 1e-4 (Bonferroni).
    """
    sizes, quantile = np.abs(distances), stats.norm.isf(_FALSE_RATE / np.size(distances))
    is_negligible = sizes <= np.maximum(WITHIN_NOISE * std, _NEGLIGIBLE)
    return is_negligible & (sizes + quantile * std <= _NEAR)


def warn_of_bounds(format, near: Sequence[np.ndarray]):
    """Warn of columns whose values are at their lower, or upper, bounds, as two masks say.

    The masks may be of the last columns alone.
    """
    n_columns = len(near[0])
    rows = zip(format.column_names, *format.column_bounds, strict=True)
    found = {
        name: f"{bound:g}"
        for (name, *ends), *flags in zip([*rows][-n_columns:], *near, strict=True)
        for bound, is_near in zip(ends, flags, strict=True)
        if is_near
    }
    warn_of_columns("units", found)


def warn_of_means(
    format, means: np.ndarray, covariance: np.ndarray, corners: Sequence = (None, None)
):
    """Warn of columns whose released means are at a bound.

    Sparse columns are mostly 0: at lower bounds of 0 only all columns together give a warning.

    Means are of rows that were scaled down to the radius, as shares of the ranges, with the
    covariance of their noise; they may be of the last columns alone. `corners` are the means, and
    norms, if all columns are at their lower, or upper, bounds; None: not considered.
    """
    std, is_elsewhere = np.sqrt(covariance.diagonal()), format.column_bounds[0][-len(means) :] != 0
    # Rows within bounds have a norm of at most 1, so none is scaled by less than the radius.
    least = format.clip_norm
    near = [are_near(means / least, std / least) & is_elsewhere, are_near(means - 1, std)]
    for i, corner in enumerate(corners):
        if corner is not None:
            distance, mean_std = np.mean(means - corner), math.sqrt(covariance.mean())
            near[i] |= are_near(distance / least, mean_std / least)
    warn_of_bounds(format, near)


def warn_of_moments(format, moments, n_records: int):
    """Warn of columns that are at a bound by the second moments of rows in the unit ball.

    Let x be a column, as shares of its range in [0, 1]. Then E[x²] ≤ E[x], so E[x²] near 1 shows
    the upper bound; and E[x] ≤ √E[x²] (Jensen), so a small E[x²] shows the lower one.
    """
    if _has_plain_columns(format):
        unit = n_records * (format.unit / format.clip_norm) ** 2
        squares, std = moments.value.diagonal() / unit, moments.std / unit
        least, is_elsewhere = _NEAR * format.clip_norm**2, format.column_bounds[0] != 0
        small = are_near(squares / least, std / least) & is_elsewhere
        small |= are_near(squares.mean() / least, std / least / math.sqrt(len(squares)))
        warn_of_bounds(format, [small, are_near(squares - 1, std)])


def warn_of_radius(format, moments, n_records):
    """Warn if nearly all rows are as long as a declared radius, by the trace of second moments."""
    distance = 1 - np.trace(moments.value) / n_records
    is_free = format.bounds is None or format.clip_norm < 1
    if is_free and are_near(distance, moments.std * math.sqrt(format.n_columns) / n_records):
        warn_of_fit(
            f"Nearly all rows have a norm of clip_norm={format.clip_norm:g} or more, by released "
            "values, and are scaled down to it. Declare a larger clip_norm, unless all rows are "
            "meant to have that norm."
        )


def warn_of_norms(format, counts, std, n_records):
    """Warn of rows whose columns are all at a bound, by counts near the least and greatest norm."""
    if _has_plain_columns(format):
        ends = are_near(1 - counts[[0, -1]] / n_records, std / n_records)
        _warn_of_rows(format, ends)


def warn_of_sketch_units(format, components, basis, sketch, n_records: int):
    """Warn of columns that are at a bound by a slice sketch.

    The phase of the first harmonic on a slice is about the mean projection, so least squares give
    the means of columns. Rows are all at one point if their sums are those of its harmonics. With
    fewer components than columns, the sketch does not show columns.
    """
    is_noise = find_signal(sketch.sums, sketch.sums_std) < LEAST_SIGNAL
    if is_noise or not isinstance(format, BoxFormat) or format.bounds is None:
        return
    frequencies = basis.frequencies.double().cpu()
    if components is not None:
        axes = (components.axes / components.scale).double().cpu()
        frequencies = axes @ frequencies
        if axes.shape[0] > axes.shape[1]:
            return
    k, std = basis.n_projections, sketch.sums_std * math.sqrt(len(sketch.sums))
    sums = torch.as_tensor(sketch.sums.sum(axis=0)).view(-1, 2, k)
    scale = format.unit / format.clip_norm
    means, covariance = _find_means(frequencies.numpy() * scale, sums[0].numpy(), std)
    if format.encoder is not None and format.has_number:
        # Columns of an encoder have no bounds.
        return warn_of_means(format, means[-1:], covariance[-1:, -1:])
    corners = _find_corners(format)
    are_there = [
        are_near(
            1 - _sum_at(torch.as_tensor(corner) @ frequencies, basis, sums) / n_records,
            std / math.sqrt(k) / n_records,
        )
        for corner in corners
    ]
    if format.encoder is not None:
        return _warn_of_rows(format, are_there)
    corners = zip(corners, are_there, strict=True)
    corners = [corner / scale if is_there else None for corner, is_there in corners]
    warn_of_means(format, means, covariance, corners)


def warn_of_noised_rows(format, rows: np.ndarray, std: float):
    """Warn of columns that are at a bound by rows with local noise, in units of the radius."""
    if format.bounds is not None:
        X, y = format.invert(rows.mean(axis=0)[None] * format.radius)
        lower, upper = format.column_bounds
        X = format.images.arrange(X)
        means = (np.column_stack([X, *([y] * format.has_number)])[0] - lower) / (upper - lower)
        # Numbers in bounds are mapped to [-1, 1] before they are divided by the radius.
        variance = (std * format.radius / 2) ** 2 / len(rows)
        warn_of_means(format, means, variance * np.eye(len(means)), corners=(0.0, None))


class SlicedMeans:
    """Least-squares means of columns over releases of sliced rows, all with the same noise.

    Columns of components have no bounds. `batch_size` is the expected number of records of a
    release.
    """

    def __init__(self, format, mechanism, components, batch_size, n_records):
        self.is_plain = components is None and _has_plain_columns(format)
        self.format, self.mechanism = format, mechanism
        self.batch_size, self.is_sampled = batch_size, batch_size < n_records
        n_features, self.n_steps = mechanism.n_features, 0
        self.normal, self.sums = np.zeros((n_features, n_features)), np.zeros(n_features)
        self.variance = 0.0

    def add(self, released):
        """Add a release, and return it."""
        directions = released.directions.cpu().numpy()
        n_classes, _, n_slots = released.values.shape
        self.normal += directions @ directions.T
        self.sums += directions @ released.values.sum(axis=(0, 2)) / self.batch_size
        self.variance = n_classes * n_slots * (released.std / self.batch_size) ** 2
        self.n_steps += 1
        return released

    def warn(self):
        """Warn of columns that are at a bound."""
        # Fewer directions than columns do not determine means.
        if not self.is_plain or np.linalg.matrix_rank(self.normal) < len(self.normal):
            return
        n_columns = self.mechanism.n_columns
        scale = self.mechanism.row_weight * self.format.unit / self.format.clip_norm
        means = np.linalg.solve(self.normal, self.sums)[:n_columns] / scale
        noise = np.linalg.inv(self.normal)[:n_columns, :n_columns] * self.variance / scale**2
        sampling = self.is_sampled / (self.batch_size * self.n_steps)  # variances are at most 1
        warn_of_means(self.format, means, noise + sampling * np.eye(n_columns))


def _warn_of_rows(format, are_there):
    """Warn of rows whose columns are all at their lower, or all at their upper, bounds."""
    warn_of_bounds(format, np.tile(np.array(are_there)[:, None], len(format.column_names)))


def _has_plain_columns(format):
    """Return whether the columns of rows are those of X and y, within bounds."""
    return isinstance(format, BoxFormat) and format.encoder is None and format.bounds is not None


def _find_corners(format):
    """Return the rows in the unit ball of the lower and of the upper bounds of all columns."""
    ends = format.bounds
    if format.encoder is None:
        ends = format.column_bounds
        format = BoxFormat(len(ends[0]), bounds=ends, clip_norm=format.clip_norm)
    rows = call_quietly(format.encode, np.array(ends))
    if rows is None:
        return np.full((2, format.n_columns), np.inf)  # an encoder need not map bounds
    rows = rows / format.clip_norm
    return rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))


def _sum_at(angles, basis, sums):
    """Return the projection of sums on those of a row: the number of rows, if all equal it."""
    weights = basis.weights.double().cpu()[:, None]
    phases = torch.arange(1.0, len(weights) + 1, dtype=torch.float64)[:, None] * angles
    values = torch.stack([weights * phases.cos(), weights * phases.sin()], dim=1)
    return float((values * sums).sum() / basis.n_projections)


def _find_means(frequencies, first, std):
    """Return means of columns by sums of first harmonics, and the covariance of their noise."""
    sums, means = first[0] + 1j * first[1], np.zeros(len(frequencies))
    weighted = frequencies * (np.abs(sums) / max(std, 1e-12 * np.abs(sums).max())) ** 2
    inverse = np.linalg.pinv(weighted @ frequencies.T)
    for _ in range(_N_STEPS):
        # Phases are known up to whole turns: take those nearest to the last means.
        rest = np.angle(sums * np.exp(-1j * (means @ frequencies)))
        means = means + inverse @ weighted @ rest
    # Fewer slices than columns do not determine means.
    return means, inverse if frequencies.shape[1] >= len(frequencies) else np.diag(means + np.inf)
