# SPDX-License-Identifier: BSD-3-Clause
"""What is released once: noisy sums over all records, and counts of categories."""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import torch
from dp_accounting import NonPrivateDpEvent
from scipy.stats import norm

from ..accounting.events import ThresholdDpEvent, plain_multiplier
from ..curator.cells import name_cell
from ..curator.record_functions import RecordFunction, check_function
from ..exceptions import PlanError
from ..transport import slice_diameter
from .base import (
    GRID_BITS,
    MARGIN,
    Measurement,
    Mechanism,
    NoisySum,
    SumMechanism,
    check_radius,
    clip_rows,
    to_grid,
)

# Slices whose values are computed at once: they stay in the cache.
_SLICES = 128
# c² / k of a slice sketch: what the counts get of the budget, relative to the sums.
_COUNT_SHARE = 0.02
# What the number of rows gets of the budget, where it is not known.
_ROWS_SHARE = 0.01


class GaussianSumMechanism(SumMechanism):
    """The sum of a vector-valued function of the rows, each vector clipped to a radius.

    Parameters
    ----------
    function : RecordFunction
        Maps rows (n, d) to vectors (n, p). A row for which it fails adds nothing. What it gives is
        clipped and rounded row by row. If it has matrix products,
        it may itself give other last digits for a row in other company, or in another place: then
        what is added follows from the row and its place among the records, which are given in
        blocks of a fixed size and order.
    radius : float
        Each vector is scaled down to at most this norm.
    name : str, default="Gaussian sum"
        Name of the release.
    nonnegative : bool, default=False
        Whether negative numbers become 0. Two such vectors are at most √2·radius apart.
    """

    def __init__(self, function, radius, name="Gaussian sum", *, nonnegative=False):
        check_function(function, RecordFunction, type(self).__name__)
        check_radius("radius", radius)
        self.function = function
        self.radius = radius
        self.name = name
        self.nonnegative = nonnegative

    def sensitivity(self, relation):
        apart = math.sqrt(2) if self.nonnegative else 2
        return {"zero_out": 1, "replace_one": apart}[relation] * self.radius

    def _grid_bits(self, n_records):
        return GRID_BITS - math.ceil(math.log2(self.radius))

    def _block_sum(self, rows, membership, scale):
        # Doubles, since norms of long float32 vectors come out too small.
        vectors = self.function.on(rows).double().nan_to_num(0.0, 0.0, 0.0)
        if self.nonnegative:
            vectors = vectors.clamp(min=0)
        vectors = to_grid(clip_rows(vectors, self.radius), scale)
        return (membership.sum(1) @ vectors).long()


class CovarianceMechanism(SumMechanism):
    """The second moments Σ xxᵀ of rows in the unit ball (Analyze Gauss).

    The vector (x_i², √2·x_i·x_j for i < j) has norm ‖x‖² ≤ 1. Two of them are at most √2 apart,
    since ‖xxᵀ - yyᵀ‖² = ‖x‖⁴ + ‖y‖⁴ - 2⟨x, y⟩².

    References
    ----------
    Dwork, Talwar, Thakurta & Zhang, "Analyze Gauss", STOC 2014.
    """

    name = "second moments"

    @staticmethod
    def sensitivity_of(relation):
        """Return the sensitivity, which does not depend on the number of columns."""
        return {"zero_out": 1.0, "replace_one": math.sqrt(2)}[relation]

    def sensitivity(self, relation):
        return self.sensitivity_of(relation)

    def _grid_bits(self, n_records):
        # Products of two whole numbers, n of them, stay below 2^62.
        return min(2 * GRID_BITS, 62 - n_records.bit_length()) // 2 * 2

    def _block_sum(self, rows, membership, scale):
        half = math.sqrt(2.0 ** (math.log2(scale) // 2 * 2))
        whole = to_grid(rows, half) * membership.sum(1)[:, None]
        return (whole.T @ whole).long() * round(scale / half**2)

    def _noise_shape(self, total):
        # One draw for each pair i < j: entry (i, j) of the matrix is 1/√2 of the vector's.
        shape = np.triu(np.full(total.shape, math.sqrt(0.5)), 1)
        np.fill_diagonal(shape, 1.0)
        return shape

    def _present(self, noisy, measured):
        # The noise is drawn for the upper triangle: mirror it.
        mirrored = np.triu(noisy) + np.triu(noisy, 1).T
        return NoisySum(mirrored, std=measured.context)


@dataclass(frozen=True)
class Sketch:
    """A released slice sketch.

    Attributes
    ----------
    sums : ndarray of shape (n_classes, n_values)
        Noisy sums of the basis functions over each class.
    counts : ndarray of shape (n_classes,)
        Noisy numbers of records.
    sums_std, counts_std : float
        Standard deviations of their noise.
    """

    sums: np.ndarray
    counts: np.ndarray
    sums_std: float
    counts_std: float

    @property
    def class_shares(self):
        """Noisy frequencies of the classes; equal ones if no count is positive."""
        counts = np.maximum(self.counts, 0)
        return (counts if counts.any() else np.ones_like(counts)) / (counts.sum() or len(counts))


class SliceSketchMechanism(SumMechanism):
    """Per class, sums of bounded basis functions of the projections on public directions.

    Each slice adds a vector of norm 1, so a record adds one of norm √k, to its own class, whatever
    d, the number of harmonics and of classes. A constant coordinate of weight c counts the class.
    A null record adds nothing: sensitivity √(k + c²). Replacing a record within a class moves no
    count, and the sums by at most a√k, where a is the diameter of a slice (`slice_diameter`):
    harmonics are bound to one angle, and cannot all be opposite. Across classes it is √(2(k + c²)).

    Whole numbers keep these bounds. Truncation shortens vectors, but a difference of two grows by
    up to a unit in each of its 2Bk coordinates, √k·√(2B) in norm. So values are shortened
    beforehand by the factor 1 - √(2B) / (a·scale), and by the margin of all, which is larger than
    what floating point adds to a slice (`SliceBasis.harmonics`).

    Parameters
    ----------
    basis : skdpgen.transport.SliceBasis
        The public basis functions.
    n_classes : int, default=1
        Number of classes.
    encode : RecordFunction, default=None
        A map of the rows, applied before the basis.
    """

    name = "slice sketch"

    def __init__(self, basis, n_classes=1, encode=None):
        if encode is not None:
            check_function(encode, RecordFunction, type(self).__name__)
        self.basis = basis
        self.n_classes = n_classes
        self.encode = encode

    @staticmethod
    def sensitivity_of(n_projections, n_harmonics, n_classes, relation):
        """Return the sensitivity, which does not depend on directions and ranges."""
        k, c2 = n_projections, _COUNT_SHARE * n_projections
        if relation == "zero_out":
            return math.sqrt(k + c2)
        across = math.sqrt(2 * (k + c2)) if n_classes > 1 else 0.0
        return max(slice_diameter(n_harmonics) * math.sqrt(k), across)

    def sensitivity(self, relation):
        basis = self.basis
        return self.sensitivity_of(
            basis.n_projections, len(basis.weights), self.n_classes, relation
        )

    @property
    def _count_weight(self):
        return math.sqrt(_COUNT_SHARE * self.basis.n_projections)

    def _block_sum(self, rows, membership, scale):
        if self.encode is not None:
            rows = self.encode.on(rows, width=len(self.basis.frequencies))
        factors = scale * (1 - MARGIN) * self._shortening(scale) * self.basis.weights.double()
        factors, sums = factors[:, None, None, None], []
        for angles in self.basis.angles(rows).split(_SLICES, dim=1):
            values = self.basis.harmonics(angles).mul_(factors).trunc_()
            sums.append((membership.T @ values).long())
        sums = torch.cat(sums, dim=3).movedim(2, 0).flatten(1)
        count = membership.sum(0)[:, None].long() * math.floor(self._count_weight * scale)
        return torch.cat([sums, count], dim=1)

    def _shortening(self, scale):
        """Return what keeps differences within their bound: see above."""
        growth = math.sqrt(2 * len(self.basis.weights)) / scale
        return max(0.0, 1 - growth / self.basis.diameter)

    def _present(self, noisy, measured):
        std = measured.context
        return Sketch(
            sums=noisy[:, :-1],
            counts=noisy[:, -1] / self._count_weight,
            sums_std=std,
            counts_std=std / self._count_weight,
        )


class RowCountMechanism(Mechanism):
    """How many rows of persons there are in sums: at most M of each, which is not public.

    No row is read for it.
    """

    name = "row count"
    is_sum = True

    def sensitivity(self, relation):
        # A row that is replaced by another is still one.
        return {"zero_out": 1.0, "replace_one": 0.0}[relation]

    def check(self, event):
        plain_multiplier(event)

    def _measure(self, source, event, relation, noise):
        std = self._find_std(source, event, relation)
        n_rows = source.add_up(_count_rows)
        return Measurement(np.array([n_rows]), 1.0, std, context=std)

    def _present(self, noisy, measured):
        return NoisySum(noisy, std=measured.context)


def _count_rows(source):
    return source.count_rows()


def count_rows_by(max_rows):
    """Return what is to be released, and its share, to know the number of rows that count."""
    # Of one for each person, there are as many as persons.
    return {RowCountMechanism.name: _ROWS_SHARE} if max_rows not in (None, 1) else {}


class CategoryCountsMechanism(Mechanism):
    """How often each category of some columns occurs, of those that occur often.

    Categories need not be known beforehand: a noisy count is released if it passes a threshold,
    which what a single record holds does with a probability of at most the event's δ', over all
    columns. A record adds 1 to one count of each of m columns: sensitivity √m, or √(2m) if it is
    replaced by another. A person with M rows may alone hold M categories of a column, and add M to
    a count: the threshold is higher by that, for M times as many counts.

    Parameters
    ----------
    columns : dict of str to int
        Their names, and their positions among the cells. Cells with a value are counted, as they
        are written down in canonical form.

    References
    ----------
    Korolova, Kenthapadi, Mishra & Ntoulas, "Releasing Search Queries and Clicks Privately", 2009;
    Wilson et al., "Differentially Private SQL with Bounded User Contribution", 2020.
    """

    name = "category counts"
    is_sum = True

    def __init__(self, columns):
        self.columns = columns

    def sensitivity(self, relation):
        return math.sqrt({"zero_out": 1, "replace_one": 2}[relation] * len(self.columns))

    def check(self, event):
        is_threshold = isinstance(event, ThresholdDpEvent) and event.delta > 0
        if not (is_threshold or isinstance(event, NonPrivateDpEvent)):
            raise PlanError(f"{event} is no release by a threshold.")

    def _measure(self, source, event, relation, noise):
        counts = source.add_up(self._count)
        # In an order that does not depend on that of the records.
        keys = sorted(counts, key=self._sort_key)
        std = self._find_std(source, event, relation)
        threshold, most = 0, source.max_rows or 1
        if std > 0:
            # most + noise passes if the noise, before it was rounded, is beyond its quantile.
            quantile = float(norm.isf(event.delta / (most * len(self.columns))))
            threshold = most + 1 + math.ceil(std * quantile * (1 + 1e-6))
        exact = np.array([counts[key] for key in keys], dtype=np.int64)
        return Measurement(exact, 1.0, std, context=(keys, threshold))

    def _count(self, source):
        """Count pairs of a column and a category."""
        counts = Counter()
        for cells, membership in source.cells(self.name):
            cells = cells[membership.sum(1).bool().numpy()]
            for name, position in self.columns.items():
                keys = map(name_cell, cells[:, position].tolist())
                counts.update((name, key) for key in keys if key is not None)
        return counts

    def _sort_key(self, pair):
        name, key = pair
        return self.columns[name], key

    def _present(self, noisy, measured):
        keys, threshold = measured.context
        passed = {name: {} for name in self.columns}
        for (name, key), count in zip(keys, noisy.tolist(), strict=True):
            if count > threshold:
                passed[name][key] = count
        return passed
