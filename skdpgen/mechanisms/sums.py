# SPDX-License-Identifier: BSD-3-Clause
"""Noisy sums over all records, and noisy counts of categories."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from dp_accounting import DpEvent, NonPrivateDpEvent
from scipy.stats import norm

from ..accounting.events import ThresholdDpEvent
from ..data.names import count_names
from ..data.record_functions import RecordFunction, check_function
from ..exceptions import PlanError
from ..saving.registry import savable
from ..transport.harmonics import N_STEPS, SliceBasis, slice_diameter
from .base import (
    GRID_BITS,
    MARGIN,
    FixedSensitivity,
    Measurement,
    Mechanism,
    NoisySum,
    SumMechanism,
    check_radius,
    clip_rows,
    to_grid,
)

# Slices whose values are computed at once, so that they stay in the cache.
_SLICES = 128
# Sums of up to 2^13 whole numbers of 10 or 11 bits are exact in the 24 bits of a float.
_ROWS, _LOWER_BITS = 2**13, 10
# Most values of a slice for which there is a table of all angles.
_MOST_TABULATED = 128
# c² / k of a slice sketch: the share of ρ for the counts, relative to the sums; set by hand.
_COUNT_SHARE = 0.02
# Share of ρ for the number of rows of persons; set by hand.
_ROWS_SHARE = 0.01


class GaussianSumMechanism(SumMechanism):
    """The sum of a vector-valued function of the rows, each vector clipped to a radius.

    Parameters
    ----------
    function : RecordFunction
        Maps rows (n, d) to vectors (n, p). A row for which it fails contributes nothing. Its values
        are clipped and rounded row by row. If it has matrix products, the last digits of a row's
        values may depend on the batch context: then the contribution follows from the row and its
        position among the records, which come in blocks of a fixed size and order.
    radius : float
        Each vector is scaled down to at most this norm.
    name : str, default="Gaussian sum"
        Name of the release.

    Examples
    --------
    >>> from skdpgen.privacy import GaussianSumMechanism, RecordFunction
    >>> GaussianSumMechanism(RecordFunction(abs), 0.5).sensitivity("replace_one")
    1.0
    """

    def __init__(self, function: RecordFunction, radius: float, name: str = "Gaussian sum") -> None:
        check_function(function, RecordFunction, type(self).__name__)
        check_radius("radius", radius)
        self.function = function
        self.radius = radius
        self.name = name

    def sensitivity(self, relation: str) -> float:
        """Return the sensitivity; see `Mechanism.sensitivity`."""
        return {"zero_out": 1, "replace_one": 2}[relation] * self.radius

    def _grid_bits(self, n_records):
        # The grid is as fine relative to the radius as it is to 1.
        return GRID_BITS - math.ceil(math.log2(self.radius))

    def _block_sum(self, rows, membership, scale):
        # Doubles, since norms of long float32 vectors come out too small.
        vectors = self.function.on(rows).double().nan_to_num(0.0, 0.0, 0.0)
        vectors = to_grid(clip_rows(vectors, self.radius), scale)
        # A null record has membership 0 in all classes.
        return (membership.sum(1) @ vectors).long()


class WeightSumMechanism(FixedSensitivity, SumMechanism):
    """The sum of encoded rows, negative entries of which count as 0.

    The curator bounds the norms of rows by 1. No product of non-negative rows is negative, so that
    two of them are at most √2 apart.

    Parameters
    ----------
    name : str
        Name of the release.
    """

    sensitivities: ClassVar = {"zero_out": 1.0, "replace_one": math.sqrt(2)}

    def __init__(self, name: str) -> None:
        self.name = name

    def _block_sum(self, rows, membership, scale):
        return (membership.sum(1) @ to_grid(rows.double().clamp(min=0), scale)).long()


class CovarianceMechanism(FixedSensitivity, SumMechanism):
    """The second moments Σ xxᵀ of rows in the unit ball (Analyze Gauss).

    The vector (x_i², √2·x_i·x_j for i < j) has norm ‖x‖² ≤ 1. Two of them are at most √2 apart,
    since ‖xxᵀ - yyᵀ‖² = ‖x‖⁴ + ‖y‖⁴ - 2⟨x, y⟩².

    References
    ----------
    Dwork, Talwar, Thakurta & Zhang, "Analyze Gauss", STOC 2014.
    """

    name = "second moments"
    sensitivities: ClassVar = {"zero_out": 1.0, "replace_one": math.sqrt(2)}

    def _grid_bits(self, n_records):
        # Products of two whole numbers, n of them, stay below 2^62.
        return min(2 * GRID_BITS, 62 - n_records.bit_length()) // 2 * 2

    def _block_sum(self, rows, membership, scale):
        # A grid whose square is that of the scale, or twice as coarse.
        half = math.sqrt(2.0 ** (math.log2(scale) // 2 * 2))
        whole = to_grid(rows, half) * membership.sum(1)[:, None]
        # The factor is 1, or 2 where the noise has made the exponent odd.
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


@savable
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
    def class_shares(self) -> np.ndarray:
        """Noisy frequencies of the classes; equal ones if no count is positive."""
        counts = np.maximum(self.counts, 0)
        # Public post-processing: without a positive count nothing is known of the classes.
        return (counts if counts.any() else np.ones_like(counts)) / (counts.sum() or len(counts))


class SliceSketchMechanism(SumMechanism):
    """Per class, sums of bounded basis functions of the projections on public directions.

    Each slice contributes a vector of norm 1, so a record contributes one of norm √k to its class,
    for any d and any number of harmonics and classes. A constant coordinate of weight c counts the
    class. A null record contributes nothing: the sensitivity is √(k + c²). Replacing a record
    within a class changes no count, and the sums by at most a√k, where a is the diameter of a slice
    (`slice_diameter`): all harmonics depend on one angle, and cannot all be opposite. Across
    classes the bound is √(2(k + c²)).

    Whole numbers keep these bounds. Truncation shortens vectors, but a difference of two grows by
    up to a unit in each of its 2Bk coordinates, √k·√(2B) in norm. So values are shortened
    beforehand by the factor 1 - √(2B) / (a·scale), and by `MARGIN`, which exceeds the rounding
    error of floating point in a slice (`SliceBasis.harmonics`).

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

    def __init__(
        self, basis: SliceBasis, n_classes: int = 1, encode: RecordFunction | None = None
    ) -> None:
        if encode is not None:
            check_function(encode, RecordFunction, type(self).__name__)
        self.basis = basis
        self.n_classes = n_classes
        self.encode = encode
        self._table: tuple[float, torch.Tensor] | None = None

    @staticmethod
    def sensitivity_of(
        n_projections: int, n_harmonics: int, n_classes: int, relation: str
    ) -> float:
        """Return the sensitivity, which does not depend on directions and ranges."""
        # The count has its weight inside of the same vector, and no release of its own.
        k, c2 = n_projections, _COUNT_SHARE * n_projections
        if relation == "zero_out":
            return math.sqrt(k + c2)
        across = math.sqrt(2 * (k + c2)) if n_classes > 1 else 0.0
        return max(slice_diameter(n_harmonics) * math.sqrt(k), across)

    def sensitivity(self, relation: str) -> float:
        """Return the sensitivity; see `Mechanism.sensitivity`."""
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
        angles, n_values = self.basis.angles(rows), 2 * len(self.basis.weights)
        # A table of all angles pays if there are more angles in a block than in the table.
        if n_values <= _MOST_TABULATED and angles.numel() >= N_STEPS:
            sums = self._sum_by_table(angles, membership, scale)
        else:
            parts = angles.split(_SLICES, dim=1)
            sums = torch.cat([membership.T @ self._values(part, scale) for part in parts], dim=3)
            sums = sums.long().movedim(2, 0).flatten(1)
        # Rounded down: the weight of the count must not exceed its bound.
        count = membership.sum(0)[:, None].long() * math.floor(self._count_weight * scale)
        return torch.cat([sums, count], dim=1)

    def _values(self, angles, scale):
        """Return the whole numbers of harmonics of angles (n, k), as doubles (B, 2, n, k)."""
        factors = scale * (1 - MARGIN) * self._shortening(scale) * self.basis.weights.double()
        return self.basis.harmonics(angles).mul_(factors[:, None, None, None]).trunc_()

    def _sum_by_table(self, angles, membership, scale):
        """Return the sums of each class, (n_classes, 2·B·k), by a table of all angles.

        Whole numbers are split in two parts of so few bits that sums of floats are exact: torch
        adds up rows of a table of floats ten times as fast as those of one of doubles.
        """
        # Kept over blocks: scale and basis do not change within a release.
        if self._table is None or self._table[0] != scale:
            values = self._values(torch.arange(N_STEPS, device=angles.device)[:, None], scale)
            upper = values.div(2.0**_LOWER_BITS).floor()
            parts = torch.cat([upper, values - upper * 2.0**_LOWER_BITS], dim=1)
            self._table = scale, parts[..., 0].flatten(0, 1).T.float().contiguous()
        parts = zip(angles.split(_ROWS), membership.split(_ROWS), strict=True)
        return sum(self._sum_rows(*part) for part in parts)

    def _sum_rows(self, angles, membership):
        # Sorted by class, absent rows last: the rows of a class are neighbours.
        order = torch.where(membership.any(1), membership.argmax(1), self.n_classes).argsort()
        present, counts = order[: int(membership.sum())], membership.sum(0).int()
        # Whole rows are picked before they are transposed: numbers one by one take twice as long.
        positions = (angles & (N_STEPS - 1))[present].T.contiguous()
        starts = torch.arange(len(positions), device=angles.device)[:, None] * len(present)
        starts = (starts + counts.cumsum(0) - counts).int()
        bags = positions.flatten(), self._table[1], starts.flatten()
        sums = torch.nn.functional.embedding_bag(*bags, mode="sum").double()
        # The shape is (k, n_classes, B, 2 parts, 2).
        upper, lower = sums.view(*starts.shape, -1, 2, 2).unbind(3)
        return upper.mul_(2.0**_LOWER_BITS).add_(lower).permute(1, 2, 3, 0).flatten(1).long()

    def _shortening(self, scale):
        """Return the factor that keeps differences within their bound; see above."""
        growth = math.sqrt(2 * len(self.basis.weights)) / scale
        # Never negative: on a grid that is too coarse everything becomes 0, which is safe.
        return max(0.0, 1 - growth / self.basis.diameter)

    def _present(self, noisy, measured):
        std = measured.context
        return Sketch(
            sums=noisy[:, :-1],
            counts=noisy[:, -1] / self._count_weight,
            sums_std=std,
            counts_std=std / self._count_weight,
        )


class RowCountMechanism(FixedSensitivity, Mechanism):
    """The number of rows of persons in sums: at most M of each, which is not public.

    It does not depend on the values of the rows.
    """

    name = "row count"
    is_sum = True
    # Replacing a row by another does not change their number.
    sensitivities: ClassVar = {"zero_out": 1.0, "replace_one": 0.0}

    def _measure(self, source, event, relation, noise):
        std = self._find_std(source, event, relation)
        n_rows = source.add_up(_count_rows)
        # The grid is 1: a count is whole already.
        return Measurement(np.array([n_rows]), 1.0, std, context=std)

    def _present(self, noisy, measured):
        return NoisySum(noisy, std=measured.context)


def _count_rows(source):
    return source.count_rows()


def count_rows_by(max_rows: int | None) -> dict[str, float]:
    """Return the name of the release of the number of rows, and its share of ρ, if it is needed.

    With one row for each person, the number of rows is that of the persons, which is public.
    """
    return {RowCountMechanism.name: _ROWS_SHARE} if max_rows not in (None, 1) else {}


class ClassCountsMechanism(FixedSensitivity, SumMechanism):
    """The number of records of each public class. A record belongs to at most one of them."""

    name = "class counts"
    sensitivities: ClassVar = {"zero_out": 1.0, "replace_one": math.sqrt(2)}

    def _block_sum(self, rows, membership, scale):
        # A membership is 0 or 1, so each record adds one whole multiple of the grid.
        return membership.sum(0).long() * round(scale)


class CategoryCountsMechanism(Mechanism):
    """Noisy counts of the frequent categories of some columns.

    Categories need not be known beforehand: a noisy count is released if it exceeds a threshold.
    Categories of a single record exceed it with a probability of at most the event's δ', over all
    columns. A record adds w_c, which is 1 unless stated, to one count of each column c: the
    sensitivity is √(Σ w_c²), or √2 times as much if the record is replaced. A person with M rows
    can be the only one with M categories of a column, and adds up to M w_c to a count: the
    threshold is higher by (M - 1) w_c, and holds for M times as many counts.

    Parameters
    ----------
    columns : dict of str to int
        Names of the columns, and their positions among the cells. Cells with a value are counted
        in their canonical form.
    weights : dict of str to int, default=None
        w_c of columns whose counts get less noise: 1 / w_c of that of others.

    References
    ----------
    Korolova, Kenthapadi, Mishra & Ntoulas, "Releasing Search Queries and Clicks Privately", 2009;
    Wilson et al., "Differentially Private SQL with Bounded User Contribution", 2020.
    """

    name = "category counts"
    is_sum = True
    count_cells = staticmethod(count_names)

    def __init__(self, columns: dict[str, int], weights: dict[str, int] | None = None) -> None:
        self.columns = columns
        self.weights = dict.fromkeys(columns, 1)
        self.weights |= {name: w for name, w in (weights or {}).items() if name in columns}

    def sensitivity(self, relation: str) -> float:
        """Return the sensitivity; see `Mechanism.sensitivity`."""
        energy = sum(weight**2 for weight in self.weights.values())
        return math.sqrt({"zero_out": 1, "replace_one": 2}[relation] * energy)

    def check(self, event: DpEvent) -> None:
        """Raise a `PlanError` unless the event is that of a threshold; see `Mechanism.check`."""
        is_threshold = isinstance(event, ThresholdDpEvent) and event.delta > 0
        if not (is_threshold or isinstance(event, NonPrivateDpEvent)):
            raise PlanError(f"{self.name!r} is a release by a threshold; it is planned as {event}.")

    def _measure(self, source, event, relation, noise):
        counts = source.add_up(self._count)
        # The order must not depend on that of the records.
        keys = sorted(counts, key=self._sort_key)
        std = self._find_std(source, event, relation)
        weights = np.array([self.weights[name] for name, _ in keys], dtype=np.int64)
        # At ε = inf there is no noise, and every category passes.
        thresholds, most = 0 * weights, source.max_rows or 1
        if std > 0:
            # most + noise passes if the noise, before rounding, exceeds its quantile.
            quantile = float(norm.isf(event.delta / (most * len(self.columns))))
            thresholds = most * weights + 1 + math.ceil(std * quantile * (1 + 1e-6))
        exact = weights * np.array([counts[key] for key in keys], dtype=np.int64)
        return Measurement(exact, 1.0, std, context=(keys, thresholds.tolist()))

    def _count(self, source):
        """Count pairs of a column and a category."""
        counts = Counter()
        for cells, membership in source.cells(self.name):
            # Null records have no categories.
            cells = cells[membership.sum(1).bool().numpy()]
            for name, position in self.columns.items():
                of_column = self.count_cells(cells[:, position].tolist())
                counts.update({(name, key): count for key, count in of_column.items()})
        return counts

    def _sort_key(self, pair):
        name, key = pair
        return self.columns[name], key

    def _present(self, noisy, measured):
        passed = {name: {} for name in self.columns}
        for (name, key), threshold, count in zip(*measured.context, noisy.tolist(), strict=True):
            if count > threshold:
                passed[name][key] = count / self.weights[name]
        return passed
