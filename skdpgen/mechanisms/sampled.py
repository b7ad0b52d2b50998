# SPDX-License-Identifier: BSD-3-Clause
"""Releases of a random sample of the records, and noisy projections of single rows."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from dp_accounting import DpEvent
from scipy import stats

from ..accounting.events import SlicedGaussianDpEvent, split_sampling, step_std
from ..data.record_functions import RecordFunction, check_function
from ..data.rows import clip_rows
from ..exceptions import PlanError
from ..registry import savable
from ..transport.directions import random_directions
from .base import (
    FixedSensitivity,
    Measurement,
    Mechanism,
    grid_scale,
    to_grid,
)

# Probability with which a Poisson sample exceeds its slots, so that a step has no records; set by
# hand.
_OVERFLOW = 0.002


@lru_cache(maxsize=64)
def count_slots(n_records: int, rate: float) -> int:
    """Return the public number of slots of a Poisson sample, which is seldom too small."""
    return max(1, min(n_records, int(stats.binom.isf(_OVERFLOW, n_records, rate))))


class SampledMechanism(Mechanism):
    """A release of a fixed number of slots, to which sampled records are assigned at random.

    The event says how records are sampled: by independent coins (Poisson), a fixed number without
    replacement, or all. The release has the same shape and noise for any size of the sample: the
    shape would otherwise reveal the size of a Poisson sample, which amplification by sampling
    assumes to be hidden. If more records are drawn than there are slots, none joins. A null record
    is drawn, takes a slot and contributes nothing: two neighbours overflow together.

    Public maps get all slots, each at the same position, for any size of the sample, since the
    rounding of floating-point numbers may depend on both. An empty slot holds the first record as a
    member of no class.
    """

    @abstractmethod
    def _check_base(self, base, sampling):
        """Raise a `PlanError` if `query_batch` does not implement an unsampled event."""

    @abstractmethod
    def query_batch(self, rows, membership, base, relation, noise):
        """Return the `Measurement` of `rows`, one for each slot."""

    def check(self, event: DpEvent) -> None:
        """Raise a `PlanError` if `run` does not implement an event."""
        base, _, sampling = split_sampling(event)
        self._check_base(base, sampling)

    def query(self, source, event, relation, noise):
        base, rate, sampling = split_sampling(event)
        n_records = source.n_records
        if sampling == "poisson":
            n_slots = count_slots(n_records, rate)
            positions = noise.poisson_sample(n_records, rate)
            # Nobody joins: to leave out some of them would make inclusion depend on the others.
            if len(positions) > n_slots:
                positions = positions[:0]
        elif sampling == "fixed":
            # The rate is the event's: another number of records would be another event.
            if event.source_dataset_size != n_records:
                raise PlanError(
                    f"The plan samples from {event.source_dataset_size} records; there are "
                    f"{n_records}."
                )
            n_slots = event.sample_size
            positions = noise.fixed_sample(n_records, n_slots)
        else:
            n_slots = n_records
            positions = np.arange(n_records)
        # In the order of the records, a slot would tell which of them it can hold.
        slots = noise.fixed_sample(n_slots, len(positions))
        in_slots, joined = np.zeros(n_slots, dtype=np.int64), torch.zeros(n_slots, 1)
        in_slots[slots], joined[slots] = positions, 1.0
        rows, membership = source.take(in_slots)
        return self.query_batch(rows, membership * joined.to(membership), base, relation, noise)


@savable
@dataclass(frozen=True)
class ProjectedRows:
    """Released projections of rows."""

    # Shape (n_classes, n_projections, n_slots): for each class, the noisy projections of the slots,
    # each with a record of the class or zeros.
    values: np.ndarray
    # Shape (n_features, n_projections): the public directions.
    directions: torch.Tensor
    # Standard deviation of the noise.
    std: float


class SlicedRowsMechanism(FixedSensitivity, SampledMechanism):
    """Noisy projections of single rows on fresh random directions: XU + V.

    A row is joined with its label: (√(1-w²)·x, w·one-hot), of norm at most 1. It is projected in
    the block of its class, and is zero in those of other classes: these are slices of the joint
    distribution of x and y along directions that belong to one class each. Without noise, slices
    that mix classes would be as informative; but the noise hides how a row's projection depends on
    its label far more than the mean projection of a class.

    Projections are rounded towards zero. That lengthens no row, but two rows in one slot, under
    ``replace_one``, can become slightly further apart: the event's `rounding` accounts for it.

    Parameters
    ----------
    n_columns : int
        Columns of a row, after `encode`.
    n_classes : int, default=1
        Number of classes; 1: rows are projected as they are.
    encode : RecordFunction, default=None
        A map of the rows, applied first; its results are clipped to the unit ball.

    References
    ----------
    Rakotomamonjy & Ralaivola, "Differentially Private Sliced Wasserstein Distance", ICML 2021,
    Algorithm 1.
    """

    name = "sliced rows"
    # Bounds on the change of a row, before it is projected.
    sensitivities: ClassVar = {"zero_out": 1.0, "replace_one": 2.0}
    # w, the norm of the label's one-hot in a row of norm 1; set by hand.
    label_weight = 0.3

    def __init__(
        self,
        n_columns: int,
        n_classes: int = 1,
        encode: RecordFunction | None = None,
    ) -> None:
        if encode is not None:
            check_function(encode, RecordFunction, type(self).__name__)
        self.n_columns = n_columns
        self.n_classes = n_classes
        self.encode = encode

    @property
    def n_features(self) -> int:
        """Columns of a joined row."""
        return self.n_columns + (self.n_classes if self.n_classes > 1 else 0)

    @property
    def row_weight(self) -> float:
        """Factor of rows that are joined with their label."""
        return math.sqrt(1 - self.label_weight**2) if self.n_classes > 1 else 1.0

    def join(self, rows: torch.Tensor, membership: torch.Tensor) -> torch.Tensor:
        """Join rows in the unit ball (clipped to it) with the one-hot of their labels."""
        rows = clip_rows(rows, 1.0)
        if self.n_classes == 1:
            return rows
        label = self.label_weight * membership.to(rows.dtype)
        return torch.cat([self.row_weight * rows, label], dim=1)

    def class_shares(self, released: ProjectedRows) -> np.ndarray:
        """Estimate, without bias, the share of each class among the slots."""
        if self.n_classes == 1:
            return np.ones(1)
        directions = released.directions.numpy()
        d, k = directions.shape
        # The mean of U Uᵀ is (k/d)·I, so (d/k)·U estimates the label's coordinates; with at least d
        # directions, they are known.
        inverse = directions * (d / k) if k < d else np.linalg.pinv(directions.T)
        means = released.values.mean(axis=2)
        return np.einsum("ck,ck->c", inverse[-self.n_classes :], means) / self.label_weight

    def _check_base(self, base, sampling):
        expected = (self.n_features, self.n_classes, 0.0)
        if not isinstance(base, SlicedGaussianDpEvent) or expected != (
            base.n_features,
            base.n_classes,
            base.beside,
        ):
            raise PlanError(
                f"{self.name!r} projects rows of {expected[0]} columns and {expected[1]} classes; "
                f"it is planned as {base}."
            )

    def query(self, source, event, relation, noise):
        if source.n_classes != self.n_classes:
            raise PlanError(
                f"{self.name!r} is for {self.n_classes} classes; the rows have {source.n_classes}."
            )
        return super().query(source, event, relation, noise)

    def query_batch(self, rows, membership, base, relation, noise):
        # Fresh at each step, after the rows were fixed, as the event requires.
        directions = random_directions(
            base.n_features,
            base.n_projections,
            orthogonal=base.orthogonal,
            generator=noise.public_generator(),
            dtype=torch.float64,
        )
        std = step_std(base, self.sensitivity(relation), relation)
        scale = grid_scale(std)
        if self.encode is not None:
            rows = self.encode.on(rows, width=self.n_columns)
        joined = self.join(rows.double(), membership)
        projected = to_grid(directions.T.to(joined.device) @ joined.T, scale)
        # In the block of its class; null records and empty slots are in none.
        exact = (membership.T.unsqueeze(1) * projected).long().cpu().numpy()
        return Measurement(exact, scale, std, context=directions)

    def postprocess(self, noisy, measured):
        return ProjectedRows(noisy, measured.context, measured.std)


def sum_products(
    products: torch.Tensor, membership: torch.Tensor, radius: float, weight: float, scale: float
) -> np.ndarray:
    """Return the sum of records' clipped products, of norm at most `weight`, on the grid.

    Products are (n_slots, n_products). Slots without a class contribute nothing. Products are
    clipped to a radius, of which one has the norm `weight` in the release; `scale` is 1 over the
    grid's step.
    """
    whole = to_grid(bounded_rows(products, radius, weight), scale)
    return (membership.sum(1) @ whole).long().cpu().numpy()


def bounded_rows(values: torch.Tensor, radius: float, weight: float) -> torch.Tensor:
    """Clip rows to a radius, and scale them so that the radius becomes `weight`."""
    # In double precision, since norms of long float32 vectors are underestimated. A row that is not
    # finite becomes NaN or 0, and both are 0 on the grid; so does one that is so large that its
    # factor would be subnormal.
    norms = torch.linalg.vector_norm(values, dim=1, keepdim=True, dtype=torch.float64)
    factors = torch.where(norms < 1e30, weight / norms.clamp(min=radius), 0.0)
    return values.detach() * factors.to(values.dtype)
