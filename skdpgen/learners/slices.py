# SPDX-License-Identifier: BSD-3-Clause
"""Training on released slices of rows, step by step."""

from typing import Any

import numpy as np
import torch
from torch import nn

from ..mechanisms.sampled import ProjectedRows, SlicedRowsMechanism
from ..transport.slices import wasserstein_1d
from .interface import Sampler
from .rows import RowNetwork
from .training import ClassShares, Training, run_steps

# Weight of the second moments relative to the slices; set by hand.
_MOMENTS_WEIGHT = 3.0


def fit_to_slices(
    rows: RowNetwork,
    released: Any,
    *,
    learning_rate: float,
    generator: torch.Generator,
    verbose: int = 0,
) -> Sampler:
    """Train a network by the smoothed sliced distance to fresh releases of projected rows.

    Each step makes one of `SlicedReleases`, and generates as many rows as records are expected in
    it. Generated rows are joined with their classes, projected, padded and noised as records are.
    The loss is the mean W₂² over the slices of each class, summed over the classes: Algorithm 1 of
    the paper of `DPSlicedWassersteinGenerator`. The noise hides the variance of projections far
    more than their mean. Where principal components were released, the second moments of the rows
    are known, and are matched as well. Adam's rate follows a warm-up and a linear decay to 0.
    """
    mechanism, batch_size = released.mechanism, released.batch_size
    moments = None if rows.components is None else rows.scale.square().diag()
    training = Training(rows, learning_rate)
    shares, size = SlicedClassShares(mechanism, batch_size), max(2, batch_size)

    def draw_classes(shares):
        return torch.multinomial(torch.as_tensor(shares), size, True, generator=generator)

    def take_step(rate):
        slices = released.make()
        classes = draw_classes(shares.update(slices))
        generated = rows(rows.draw(classes, generator))
        real = torch.as_tensor(slices.values, dtype=generated.dtype, device=rows.scale.device)
        projected = _project(generated, classes, mechanism, slices, generator)
        loss = wasserstein_1d(projected, real).sum() / real.shape[1]
        if moments is not None:
            gap = moments_gap(generated, moments).sum()
            loss = loss + _MOMENTS_WEIGHT / len(slices.directions) * gap
        return training.step(loss, rate)

    losses = run_steps(take_step, released.n_steps, verbose=verbose)
    released.means.warn()
    classes = draw_classes(shares.mean)
    averaged = training.finish(lambda: rows.draw(classes, generator))
    return Sampler(averaged, losses, shares.mean)


def moments_gap(rows: torch.Tensor, moments: torch.Tensor) -> torch.Tensor:
    """Estimate the squared differences between the second moments of rows and given ones.

    The product of two independent estimates has no bias from their variance.
    """
    half = len(rows) // 2
    first, second = (
        part.T @ part / half - moments for part in (rows[:half], rows[half : 2 * half])
    )
    return first * second


class SlicedClassShares(ClassShares):
    """Shares of the classes among records, estimated from releases of sliced rows.

    `batch_size` is the expected number of records of a release.
    """

    def __init__(self, mechanism: SlicedRowsMechanism, batch_size: int) -> None:
        super().__init__(mechanism.n_classes)
        self._mechanism = mechanism
        self._batch_size = batch_size

    def update(self, released: ProjectedRows) -> np.ndarray:
        """Add a release, and return the updated shares."""
        (d, k), n_slots = released.directions.shape, released.values.shape[2]
        # The variance of the noise, and that of sampling the records.
        variance = (released.std * n_slots / self._batch_size / self._mechanism.label_weight) ** 2
        variance = variance * d / k / n_slots + 0.25 / self._batch_size
        estimate = self._mechanism.class_shares(released) * n_slots / self._batch_size
        self.add(estimate, variance)
        return self.mean


def _project(rows, classes, mechanism, released, generator):
    """Project, pad and noise generated rows as the mechanism does with records."""
    n_classes, _, n_slots = released.values.shape
    classes = classes[:n_slots]
    one_hot = nn.functional.one_hot(classes, n_classes).to(rows)
    joined = mechanism.join(rows[:n_slots], one_hot)
    projected = one_hot.T.unsqueeze(1) * (released.directions.to(rows).T @ joined.T)
    noise = torch.randn(released.values.shape, generator=generator, dtype=rows.dtype)
    padded = nn.functional.pad(projected, (0, n_slots - len(classes)))
    return padded + noise.to(rows.device) * released.std
