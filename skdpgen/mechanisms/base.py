# SPDX-License-Identifier: BSD-3-Clause
"""Mechanisms: noisy releases of records, and noisy sums of bounded vectors.

Exactness. Floating-point sums depend on their order and can change by more than the contribution of
a record. So a record contributes whole multiples of a grid, which follow from that record and
public numbers alone, rounded towards zero, which shortens vectors and keeps their bound. In any
order, in any chunks, the sum is the same to the bit. The noise is an exact Gaussian G, rounded to
the grid (see `RoundedSampler`). For a whole number S, S + round(G) is round(S + G), as halves have
probability 0: a post-processing of the Gaussian mechanism, whose guarantee it has. Clamping and
conversion to doubles come after the noise.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from dp_accounting import DpEvent

from ..accounting.events import plain_multiplier, step_std
from ..accounting.units import unit_sensitivity
from ..registry import savable
from .noise import NoiseSource

# Vectors are shortened by this before they are rounded, which covers the rounding of float32
# arithmetic in their norms, and of harmonics.
MARGIN = 1e-5
# Finest grid, and the largest noise in units of it: int64 and float64 hold both with room.
GRID_BITS = 20
NOISE_BITS = 40
# Radii whose squares neither underflow nor overflow a double.
_RADII = 1e-100, 1e100


@savable
@dataclass(frozen=True)
class NoisySum:
    """A released sum."""

    # The noisy sum.
    value: np.ndarray
    # Standard deviation of the noise, where the mechanism does not say otherwise.
    std: float


@dataclass(frozen=True)
class Measurement:
    """Whole numbers on a grid, before their noise."""

    # In units of 1/`scale`.
    exact: np.ndarray
    # 1 over the grid's step.
    scale: float
    # Scales of the noise, which broadcast to the shape of `exact`: standard deviations of Gaussian
    # noise, or scale parameters of Laplace noise.
    std: Any
    # Further arguments of `postprocess`.
    context: Any = None
    # Takes the noisy numbers and returns the next `Measurement` of the same records, whose context
    # holds the released part of these. All measurements are one event.
    then: Callable | None = None
    # Whether the noise is Laplace noise rather than Gaussian.
    is_laplace: bool = False
    # Rows of `exact` that are noised at once, since noise takes more memory than rows. None: all.
    block: int | None = None
    # Binary digits that are dropped from the noisy numbers, from a public count.
    n_dropped: int = 0

    @property
    def released_scale(self) -> float:
        """1 over the step of the grid of released numbers."""
        return math.ldexp(self.scale, -self.n_dropped)

    @property
    def grid_std(self) -> np.ndarray:
        """Scales of the noise of all numbers, in units of the grid."""
        return np.broadcast_to(self.std * self.scale, self.exact.shape)

    def add_noise(self, noise: NoiseSource) -> np.ndarray:
        """Return the noisy numbers. All additive noise of the library is drawn here."""
        draw = noise.rounded_laplace if self.is_laplace else noise.rounded_gaussian
        std, size = self.grid_std, self.block or len(self.exact) or 1
        # One block at a time: exact samplers take many words of memory for each number.
        parts = [draw(std[start : start + size]) for start in range(0, len(std) or 1, size)]
        noisy = np.concatenate(parts) if len(parts) > 1 else parts[0]
        noisy += self.exact
        return (noisy >> self.n_dropped) / self.released_scale


class Mechanism(ABC):
    """A differentially private release of records.

    *Contract.* A curator calls `check` with the planned event before it reads a record, and then
    `run`. `sensitivity` bounds how far neighbours move what `query` returns: in Euclidean norm,
    unless the mechanism has a `norm_order`. `query` reads the records of a `RecordSource` and
    returns whole numbers on a public grid, with the scale of their noise. Each record adds what
    follows from it and from public numbers; a null record adds nothing, and no record is kept.
    Noise is drawn in `Measurement.add_noise` alone. `postprocess` gets the noisy numbers and the
    public context of the measurement, and no record.

    Attributes
    ----------
    name : str
        The release's name in the plan and on the certificate.
    is_sum : bool
        Whether it is a sum over records, so that M rows of a person change it by at most M times
        the bound of a row.
    """

    name = "release"
    is_sum = False

    @abstractmethod
    def sensitivity(self, relation: str) -> float:
        """Return the sensitivity: the largest change of the release between neighbours."""

    def check(self, event: DpEvent) -> None:
        """Raise a `PlanError` if `run` does not implement an event."""
        plain_multiplier(event)

    @abstractmethod
    def query(self, source: Any, event: DpEvent, relation: str, noise: NoiseSource) -> Measurement:
        """Read records and return a `Measurement`, whose noise is that of the event."""

    @abstractmethod
    def postprocess(self, noisy: np.ndarray, measured: Measurement) -> Any:
        """Return the release, from the noisy numbers of the last measurement and its context."""

    def _find_std(self, source, event, relation):
        """Return the standard deviation of the noise for an event."""
        # For persons the bound is of all their rows that count.
        bound = unit_sensitivity(self.sensitivity, relation, source.max_rows)
        return step_std(event, bound, relation)

    def run(self, source, event: DpEvent, *, relation: str, noise: NoiseSource) -> Any:
        """Read records from a `RecordSource` and return a dataclass of the release."""
        measured = self.query(source, event, relation, noise)
        # The next measurement sees the noisy numbers only, so all of them together are one event.
        while True:
            noisy = measured.add_noise(noise)
            if measured.then is None:
                return self.postprocess(noisy, measured)
            measured = measured.then(noisy)


class FixedSensitivity:
    """A sensitivity that depends on nothing but the relation."""

    # By the name of the relation.
    sensitivities: ClassVar[dict[str, float]]

    @classmethod
    def sensitivity_of(cls, relation: str) -> float:
        """Return the sensitivity under a relation."""
        return cls.sensitivities[relation]

    def sensitivity(self, relation: str) -> float:
        """Return the sensitivity; see `Mechanism.sensitivity`."""
        return self.sensitivity_of(relation)


class SumMechanism(Mechanism):
    """A sum Σ f(record) of a bounded function, with Gaussian noise.

    Records come in blocks ``(rows, membership)``; see `RecordSource`. A null record, whose
    membership is all 0, must contribute nothing. `sensitivity` bounds the change of the sum by one
    record in Euclidean norm.
    """

    name = "sum"
    is_sum = True

    # Factor by which vectors, and the noise, are divided before they are added up.
    divisor = 1.0

    def _block_sum(self, rows, membership, scale):
        """Return the sum over a block in units of 1/`scale`: whole numbers, as an int64 tensor.

        Needed unless the mechanism reads other than rows, and has an `_add_up` of its own.
        """
        raise NotImplementedError

    def _noise_shape(self, total):
        """Return each entry's noise, in units of multiplier × sensitivity."""
        return np.ones(total.shape)

    def _find_scale(self, std, n_records):
        """Return 1 over the grid's step, for noise of this standard deviation."""
        return grid_scale(std)

    def query(self, source, event, relation, noise):
        std = self._find_std(source, event, relation) / self.divisor
        scale = self._find_scale(std, source.n_records)
        total = source.add_up(partial(self._add_up, scale))
        return Measurement(total, scale, std * self._noise_shape(total), context=std)

    def _add_up(self, scale, source):
        """Return the sum over a source in units of 1/`scale`, as an array of int64."""
        blocks = source.blocks(self.name)
        return sum(self._block_sum(*block, scale) for block in blocks).cpu().numpy()

    def postprocess(self, noisy, measured):
        return NoisySum(noisy, std=measured.context)


def grid_scale(std: float, bits: int = GRID_BITS) -> float:
    """Return 1 over the grid's step for noise of this standard deviation, at most 2^`bits`."""
    if std > 0:
        # Large noise coarsens the grid, so that noisy numbers keep within 2^40 steps or so.
        bits = min(bits, math.floor(NOISE_BITS - math.log2(std)))
    return 2.0**bits


def to_grid(vectors: torch.Tensor, scale: float) -> torch.Tensor:
    """Round vectors towards zero to whole multiples of 1/`scale`; NaN and infinity become 0."""
    return (vectors * (scale * (1 - MARGIN))).trunc_().nan_to_num_(0.0, 0.0, 0.0).double()


def check_radius(name: str, radius: float) -> None:
    """Raise a ValueError if squares of norms near a radius would underflow or overflow."""
    if not _RADII[0] <= radius <= _RADII[1]:
        raise ValueError(f"{name} must be in [{_RADII[0]}, {_RADII[1]}]; got {radius!r}.")
