# SPDX-License-Identifier: BSD-3-Clause
"""What can be released: noisy sums over records of bounded vectors; and what all releases share.

Exactness. Floating-point sums depend on their order and can move by more than a record's share.
So what a record adds are whole multiples of a grid, which follow from that record and public
numbers alone, rounded towards zero, which shortens vectors and keeps their bound. In any order, in
any chunks, the sum is the same to the bit. The noise is an exact Gaussian G, rounded to the grid
(see `RoundedSampler`). For a whole number S, S + round(G) is round(S + G), as halves have
probability 0: a post-processing of the Gaussian mechanism, whose guarantee it has. Clamping, and
conversion to doubles, come after the noise.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from ..accounting.events import LEAST_SHARE, plain_multiplier
from ..accounting.units import unit_sensitivity
from ..exceptions import PlanError

# Vectors are shortened by this before they are rounded, which covers the rounding of float32
# arithmetic in their norms, and of harmonics.
MARGIN = 1e-5
# Finest grid, and the largest noise in units of it: both fit int64 and float64 with room.
GRID_BITS = 20
NOISE_BITS = 40


@dataclass(frozen=True)
class NoisySum:
    """A released sum.

    Attributes
    ----------
    value : ndarray
        The noisy sum.
    std : float
        Standard deviation of the noise, where the mechanism does not say otherwise.
    """

    value: np.ndarray
    std: float


@dataclass(frozen=True)
class Measurement:
    """What a mechanism is about to release: whole numbers on a grid, before their noise.

    Attributes
    ----------
    exact : ndarray of int64
        In units of 1/`scale`.
    scale : float
        1 over the grid's step.
    std : float or ndarray
        Standard deviations of the noise, which broadcast to the shape of `exact`.
    context : object
        What `_present` needs beside the noisy numbers.
    then : callable, default=None
        Takes the noisy numbers, and measures what they choose of the same records: it returns a
        `Measurement`, whose context is to keep of them what is released. All is one event.
    """

    exact: np.ndarray
    scale: float
    std: float | np.ndarray
    context: object = None
    then: Callable | None = None

    @property
    def grid_std(self):
        """Standard deviations of the noise of all numbers, in units of the grid."""
        return np.broadcast_to(self.std * self.scale, self.exact.shape)


class Mechanism(ABC):
    """A release. Noise is added here, in one place, to whatever is measured.

    Attributes
    ----------
    name : str
        The release's name in the plan and on the certificate.
    is_sum : bool
        Whether it is a sum over records, so that of persons it moves by a bound for each row.
    """

    name = "release"
    is_sum = False

    @abstractmethod
    def sensitivity(self, relation):
        """Return what noise multipliers are multiplied by to get the noise."""

    @abstractmethod
    def check(self, event):
        """Refuse an event that says something else than what `run` does, by a `PlanError`."""

    @abstractmethod
    def _measure(self, source, event, relation, noise):
        """Read records and return a `Measurement`."""

    @abstractmethod
    def _present(self, noisy, measured):
        """Return the release from the noisy numbers of the last measurement."""

    def _find_std(self, source, event, relation):
        """Return the deviation of the noise, where the event has a plain noise multiplier."""
        bound = unit_sensitivity(self.sensitivity, relation, source.max_rows)
        return plain_multiplier(event) * bound

    def run(self, source, event, *, relation, noise):
        """Read records from a `RecordSource` and return a dataclass of what is released."""
        measured = self._measure(source, event, relation, noise)
        while True:
            std = measured.grid_std
            noisy = noise.rounded_gaussian(std)
            noisy += measured.exact
            if measured.then is None:
                return self._present(noisy / measured.scale, measured)
            measured = measured.then(noisy / measured.scale)

    def make_share(self, source, event, *, relation, noise, n_shares):
        """Return the sum of one of several owners, with its share of the noise.

        Parameters
        ----------
        source : RecordSource
            Its own records; how many there are is told of those of all owners.
        n_shares : int
            So many shares are enough for the noise of the event.

        Returns
        -------
        ndarray of int64
            Whole numbers on the grid, which is the same for all owners.

        Raises
        ------
        PlanError
            If one release follows from another, and where the grid is too coarse for shares.
        """
        measured = self._measure(source, event, relation, noise)
        if measured.then is not None:
            raise PlanError(f"{self.name!r} is measured in turns, which has no shares.")
        # Rounded up: together they have no less than the event says.
        std = measured.grid_std * ((1 + 2.0**-50) / math.sqrt(n_shares))
        if (std[std > 0] < LEAST_SHARE).any():
            raise PlanError(
                f"{self.name!r} is on a grid of which a share of the noise has less than "
                f"{LEAST_SHARE:g} steps: sums of so little are not known to be as good as one."
            )
        share = noise.rounded_gaussian(std)
        # What gets no noise, as the mirrored half of a matrix, is told to nobody.
        share += np.where(std > 0, measured.exact, 0)
        return share

    def take_sum(self, source, event, *, relation, total):
        """Return the release from the sum of all owners' shares, of which `source` knows sizes."""
        measured = self._measure(source, event, relation, None)
        return self._present(total / measured.scale, measured)


class SumMechanism(Mechanism):
    """Σ f(record) + noise, for a bounded f.

    Records come in blocks ``(rows, membership)``, as `RecordSource` says; a null record, whose
    membership is all 0, must add nothing.
    """

    name = "sum"
    is_sum = True

    @abstractmethod
    def sensitivity(self, relation):
        """Return the largest change of the sum, in Euclidean norm, by one record."""

    @abstractmethod
    def _block_sum(self, rows, membership, scale):
        """Return the sum over a block in units of 1/`scale`: whole numbers, as an int64 tensor."""

    def _noise_shape(self, total):
        """Return each entry's noise, in units of multiplier × sensitivity."""
        return np.ones(total.shape)

    def _grid_bits(self, n_records):
        return GRID_BITS

    def check(self, event):
        plain_multiplier(event)

    def _measure(self, source, event, relation, noise):
        std = self._find_std(source, event, relation)
        scale = grid_scale(std, self._grid_bits(source.n_records))
        total = source.add_up(partial(self._add_up, scale))
        return Measurement(total, scale, std * self._noise_shape(total), context=std)

    def _add_up(self, scale, source):
        blocks = source.blocks(self.name)
        return sum(self._block_sum(*block, scale) for block in blocks).cpu().numpy()

    def _present(self, noisy, measured):
        return NoisySum(noisy, std=measured.context)


def grid_scale(std, bits=GRID_BITS):
    """Return 1 over the grid's step for noise of this standard deviation, at most 2^`bits`."""
    if std > 0:
        bits = min(bits, math.floor(NOISE_BITS - math.log2(std)))
    return 2.0**bits


def to_grid(vectors, scale):
    """Round vectors towards zero to whole multiples of 1/`scale`; what is no number becomes 0."""
    return (vectors * (scale * (1 - MARGIN))).trunc_().nan_to_num_(0.0, 0.0, 0.0).double()


def check_radius(name, radius):
    """Refuse a radius by which vectors cannot be clipped: squares of tiny norms underflow."""
    if not 1e-100 <= radius <= 1e100:
        raise ValueError(f"{name} must be in [1e-100, 1e100]; got {radius!r}.")


def clip_rows(rows, radius):
    """Scale each row down to norm at most `radius`; no row looks at another."""
    norms = sum_rows(rows.square()).clamp(min=radius**2).sqrt()
    # A pass over wide rows that would change no bit of them takes longer than to see that.
    return rows if (norms == radius).all() else rows * (radius / norms)


def sum_rows(values):
    """Add up each row, in an order that follows from its length alone: a function of that row."""
    while (n := values.shape[1]) > 1:
        folded = values[:, : n // 2] + values[:, n // 2 : n // 2 * 2]
        values = torch.cat([folded, values[:, -1:]], dim=1) if n % 2 else folded
    return values
