# SPDX-License-Identifier: BSD-3-Clause
"""Noisy sums over all records: of vectors, weights, moments, harmonics, labels and rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from ..data.record_functions import RecordFunction, check_function
from ..data.rows import clip_rows
from ..registry import savable
from ..transport.harmonics import N_STEPS, SliceBasis, slice_diameter
from .base import (
    GRID_BITS,
    MARGIN,
    FixedSensitivity,
    NoisySum,
    SumMechanism,
    check_radius,
    grid_scale,
    to_grid,
)
from .codes import HatBasis

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
    by_class : bool, default=False
        Whether there is a sum for the records of each class: a matrix (n_classes, p), to which a
        record adds in the row of its class.

    Examples
    --------
    >>> from skdpgen.privacy import GaussianSumMechanism, RecordFunction
    >>> GaussianSumMechanism(RecordFunction(abs), 0.5).sensitivity("replace_one")
    1.0
    """

    def __init__(
        self,
        function: RecordFunction,
        radius: float,
        name: str = "Gaussian sum",
        by_class: bool = False,
    ) -> None:
        check_function(function, RecordFunction, type(self).__name__)
        check_radius("radius", radius)
        self.function = function
        self.radius = radius
        self.name = name
        self.by_class = by_class

    def sensitivity(self, relation: str) -> float:
        """Return the sensitivity; see `Mechanism.sensitivity`."""
        return {"zero_out": 1, "replace_one": 2}[relation] * self.radius

    def _find_scale(self, std, n_records):
        # The grid is as fine relative to the radius as it is to 1.
        return grid_scale(std, GRID_BITS - math.ceil(math.log2(self.radius)))

    def _block_sum(self, rows, membership, scale):
        # Doubles, since norms of long float32 vectors come out too small.
        vectors = self.function.on(rows).double().nan_to_num(0.0, 0.0, 0.0)
        vectors = to_grid(self._clip(vectors), scale)
        # A null record has membership 0 in all classes.
        return ((membership.T if self.by_class else membership.sum(1)) @ vectors).long()

    def _clip(self, vectors):
        return clip_rows(vectors, self.radius)


class WeightSumMechanism(FixedSensitivity, SumMechanism):
    """The sum of encoded rows, negative entries of which count as 0.

    The curator bounds the norms of rows by 1. No product of non-negative rows is negative, so that
    two of them are at most √2 apart.
    """

    sensitivities: ClassVar = {"zero_out": 1.0, "replace_one": math.sqrt(2)}

    def __init__(self, name: str) -> None:
        self.name = name

    def _block_sum(self, rows, membership, scale):
        return (membership.sum(1) @ to_grid(rows.double().clamp(min=0), scale)).long()


class LevelCountsMechanism(WeightSumMechanism):
    """The sum of the weights of the levels of m columns in the hat basis, divided by √m.

    A record's weights of a column are non-negative and sum to 1 (see `HatBasis`), also where levels
    share a count. So they are a row of non-negative entries in the unit ball. They are added up
    from codes: at most two of a column's weights are positive, however many levels it has.

    Parameters
    ----------
    name : str
        Name of the release.
    sizes : sequence of int
        Numbers of levels of the columns.
    places : sequence of int, default=None
        Position of the count of each level in the sum; -1: it is not counted. Levels of different
        columns have different counts. None: each level has its own.
    """

    def __init__(
        self, name: str, sizes: Sequence[int], places: Sequence[int] | None = None
    ) -> None:
        super().__init__(name)
        self.sizes = tuple(sizes)
        self.places = torch.as_tensor(range(sum(self.sizes)) if places is None else places)
        counted = [{*part.tolist()} - {-1} for part in self.places.split(self.sizes)]
        if sum(map(len, counted)) > len(set().union(*counted)):
            raise ValueError("Levels of different columns share a count.")

    def _add_up(self, scale, source):
        # The last entry is that of levels that are not counted.
        total = torch.zeros(2 + int(self.places.max()), dtype=torch.int64)
        for codes, membership in source.codes(self.name):
            basis = HatBasis(codes[membership.sum(1) > 0], self.sizes)
            for levels, weights in basis.list_weights():
                whole = to_grid(weights / math.sqrt(len(self.sizes)), scale).long()
                places = self.places[levels.flatten().cpu()] % len(total)
                total.index_add_(0, places, whole.flatten().cpu())
        return total[:-1].numpy()


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

    def _find_scale(self, std, n_records):
        # Products of two whole numbers, n of them, stay below 2^62.
        return grid_scale(std, min(2 * GRID_BITS, 62 - n_records.bit_length()) // 2 * 2)

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

    def postprocess(self, noisy, measured):
        # The noise is drawn for the upper triangle: mirror it.
        mirrored = np.triu(noisy) + np.triu(noisy, 1).T
        return NoisySum(mirrored, std=measured.context)


@savable
@dataclass(frozen=True)
class Sketch:
    """A released slice sketch."""

    # Shape (n_classes, n_values): noisy sums of the basis functions over each class.
    sums: np.ndarray
    # Shape (n_classes,): noisy numbers of records.
    counts: np.ndarray
    # Standard deviations of their noise.
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

    def postprocess(self, noisy, measured):
        std = measured.context
        return Sketch(
            sums=noisy[:, :-1],
            counts=noisy[:, -1] / self._count_weight,
            sums_std=std,
            counts_std=std / self._count_weight,
        )


class RowCountMechanism(FixedSensitivity, SumMechanism):
    """The number of rows of persons in sums: at most M of each, which is not public.

    It does not depend on the values of the rows.
    """

    name = "row count"
    # Replacing a row by another does not change their number.
    sensitivities: ClassVar = {"zero_out": 1.0, "replace_one": 0.0}

    def _find_scale(self, std, n_records):
        return 1.0  # a count is whole already

    def _add_up(self, scale, source):
        return np.array([source.count_rows()])


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
