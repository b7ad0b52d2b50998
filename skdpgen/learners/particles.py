# SPDX-License-Identifier: BSD-3-Clause
"""Particles moved towards a slice sketch, or along the flow of released slices."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from ..data.rows import clip_rows
from ..mechanisms.sampled import ProjectedRows, SlicedRowsMechanism
from ..mechanisms.sums import Sketch
from ..registry import savable
from ..transport.flow import sliced_drift
from ..transport.harmonics import SliceBasis
from .sketch import SliceCycle, read_sketch
from .slices import SlicedClassShares
from .table_rows import draw_in_rounds
from .training import Descent, descend_to_noise, run_steps


@dataclass(frozen=True)
class ParticleConstants:
    """Constants of particles; all are set by hand."""

    # Slices of a sketch in a step.
    n_slices: int = 500
    # Jitter of sampled particles and of starts, in standard deviations.
    jitter: float = 0.1
    # Least share of a class for which zeros are padded.
    least_share: float = 1e-3
    # Largest scale of the residual noise, in units of the range of a feature.
    largest_residual: float = 0.5


CONSTANTS = ParticleConstants()


@savable
class Particles:
    """Encoded rows of each class, from which `sample` draws similar rows.

    Parameters
    ----------
    rows : tensor of shape (n_classes, m, n_encoded)
    components : PrincipalComponents, default=None
        The linear encoder, if there is one.
    shares : ndarray of shape (n_classes,), default=None
        Shares of the classes. None: no residual noise.
    top : float, default=None
        Upper bound of each decoded feature; the lower one is 0. None: no residual noise.
    """

    def __init__(self, rows: torch.Tensor, components=None, shares=None, top=None) -> None:
        self.rows = rows.cpu()
        self.components = None if components is None else components.cpu()
        self._top, self._residual = top, 0.0
        if components is not None and shares is not None and top is not None:
            self._residual = self._find_residual(shares)

    @torch.no_grad()
    def sample(self, classes: torch.Tensor, generator: torch.Generator) -> np.ndarray:
        """Sample a row in the unit ball for each of `classes`, of shape (n, n_columns).

        This is the smoothed bootstrap: the particles of a class are drawn in random order,
        repeatedly, with a jitter of a tenth of their standard deviations, and shrunk to their mean
        so that variances do not change.

        Bounded features get residual noise, as in probabilistic principal component analysis [1]_:
        outside of the components, with the energy that these leave out. Half of the rows have none,
        the others a uniformly distributed scale, which falls to 0 at the bounds. Without noise rows
        lie in a plane, and classifiers of many layers learn that images are smooth.

        References
        ----------
        .. [1] M. E. Tipping, C. M. Bishop, "Probabilistic principal component analysis", Journal of
           the Royal Statistical Society B, 1999.
        """
        drawn = torch.empty(len(classes), self.rows.shape[2], dtype=self.rows.dtype)
        for code in classes.unique():
            chosen, rows = classes == code, self.rows[code]
            n = int(chosen.sum())
            order = draw_in_rounds(len(rows), n, generator)
            noise = torch.randn(n, rows.shape[1], generator=generator, dtype=rows.dtype)
            mean, std = rows.mean(0), rows.std(0, correction=0)
            moved = rows[order] - mean + CONSTANTS.jitter * std * noise
            drawn[chosen] = mean + moved / math.sqrt(1 + CONSTANTS.jitter**2)
        if self.components is not None:
            drawn = self.components.decode(drawn)
            if self._residual:
                scales = 2 * torch.rand(len(drawn), 1, generator=generator) - 1
                noise = torch.randn(drawn.shape, generator=generator) * self._room(drawn)
                # Along components, particles have all of the spread.
                noise -= noise @ self.components.axes @ self.components.axes.T
                drawn += (self._residual * self._top) * scales.relu() * noise
        return drawn.double().numpy()

    def _room(self, drawn):
        """Return 2 √(x (1 - x)) of features x in [0, 1]: 1 in the middle, and 0 at the bounds."""
        unit = (drawn / self._top).clamp(0, 1)
        return 2 * (unit * (1 - unit)).sqrt()

    def _find_residual(self, shares):
        """Return the largest scale of the residual noise, by the energy that decoded rows lack."""
        lacking, room = self.components.energy, 0.0
        for rows, share in zip(self.rows, shares.tolist(), strict=True):
            decoded = self.components.decode(rows)
            lacking -= share * float(decoded.clamp(0, self._top).square().sum(1).mean())
            room += share * float((self._top * self._room(decoded)).square().sum(1).mean())
        # A scale that is 0 half of the time and else uniform on [0, a] has a mean square of a² / 6.
        square = 6 * max(lacking, 0.0) / max(room, torch.finfo(torch.float32).tiny)
        return min(CONSTANTS.largest_residual, math.sqrt(square))


def draw_starts(
    n_classes: int,
    n_particles: int,
    std: torch.Tensor,
    rows: torch.Tensor | None,
    generator: torch.Generator,
) -> torch.Tensor:
    """Draw the starts (n_classes, n_particles, n_encoded) of the particles of each class.

    They are Gaussian noise of standard deviations `std`, or public rows with jitter, in random
    order, repeatedly.
    """
    normals = torch.randn(n_classes, n_particles, len(std), generator=generator).to(std)
    if rows is None:
        return std * normals
    order = [draw_in_rounds(len(rows), n_particles, generator) for _ in range(n_classes)]
    rows = rows.to(std)
    jitter = CONSTANTS.jitter * rows.std(0, correction=0)
    return rows[torch.stack(order).to(std.device)] + jitter * normals


def fit_particles_to_sketch(
    basis: SliceBasis,
    sketch: Sketch,
    starts: torch.Tensor,
    std: torch.Tensor,
    scale: torch.Tensor | float,
    *,
    n_steps: int,
    learning_rate: float,
    generator: torch.Generator,
    verbose: int = 0,
    n_expected: float | None = None,
) -> tuple[torch.Tensor, list[float]]:
    """Move particles until they have the sketch, up to the noise of the sketch.

    Returns the particles, and the distance to the noisy sketch at each step, of the class with the
    most steps.

    Parameters
    ----------
    starts : tensor of shape (n_classes, m, n_encoded)
    std : tensor of shape (n_encoded,)
        Approximate standard deviations of encoded rows.
    scale : tensor of shape (n_encoded,) or float
        Factor that maps encoded rows to the unit ball. Particles are clipped to the ball, since
        harmonics are periodic and would attract particles far outside of it.
    n_steps : int
        The largest number of steps for each class.
    learning_rate : float
        For Adam, in units of the mean standard deviation.
    """
    means, weights, noise_energy = read_sketch(basis, sketch)
    noise_energy = noise_energy / weights.cpu().numpy()
    one = torch.ones(1, dtype=basis.dtype, device=std.device)
    moved: list[torch.Tensor] = []
    longest: list[float] = []
    for start, mean, noise in zip(starts, means, noise_energy, strict=True):
        rows = start.clone().requires_grad_(True)
        slices = SliceCycle(basis, mean[None], CONSTANTS.n_slices, generator)

        def loss(rows=rows, slices=slices):
            with torch.no_grad():
                rows.copy_(clip_rows(rows * scale, 1.0) / scale)
            part, target = next(slices)
            return part.squared_distance(rows[None], target, one, unbiased=False)

        descent = Descent([rows], learning_rate * float(std.mean()))
        losses = descend_to_noise(descent, loss, noise, n_steps, verbose, n_expected)
        moved.append(rows.detach())
        longest = max(longest, losses, key=len)
    return torch.stack(moved), longest


@torch.no_grad()
def flow_along_slices(
    starts: torch.Tensor,
    mechanism: SlicedRowsMechanism,
    releases: Iterator[ProjectedRows],
    *,
    step_sizes: Sequence[float],
    diffusion: float,
    batch_size: int,
    n_directions: int | None = None,
    generator: torch.Generator,
    verbose: int = 0,
) -> tuple[torch.Tensor, np.ndarray, list[float]]:
    """Move particles by the flow of the smoothed sliced distance to released rows.

    One step of Euler and Maruyama is x ← x + h·v(x) + √(2λh)·z: equation 18 of the paper of
    `DPSWFlowSampler`. The particles' projections are padded and noised as those of records are.
    Returns the particles, the estimated shares of the classes, and the mean square of the drift at
    each step.

    Parameters
    ----------
    starts : tensor of shape (n_classes, m, n_encoded)
    releases : iterator of ProjectedRows
        One for each step; the same object again where rows were released once.
    step_sizes, diffusion
        h of each step, and λ.
    batch_size : int
        Expected records of a release.
    n_directions : int, default=None
        Number of released directions in a step, drawn anew for each step. None: all.
    """
    rows, (n_classes, m, n_encoded) = starts.clone(), starts.shape
    labels = torch.eye(n_classes).to(rows).repeat_interleave(m, 0)
    shares, last = SlicedClassShares(mechanism, batch_size), None

    def take_step(step_size):
        nonlocal rows, last
        released = next(releases)
        if released is not last:
            shares.update(released)
        last, share = released, shares.mean
        directions, real = released.directions.to(rows), torch.as_tensor(released.values).to(rows)
        if n_directions is not None:
            chosen = torch.randperm(directions.shape[1], generator=generator)[:n_directions]
            directions, real = directions[:, chosen], real[:, chosen]
        joined = mechanism.join(rows.flatten(0, 1), labels).unflatten(0, (n_classes, m))
        drift = torch.empty_like(rows)
        for code in range(n_classes):
            source, target = _smooth(
                directions.T @ joined[code].T,
                real[code],
                share[code] * batch_size / real.shape[2],
                released.std,
                generator,
            )
            moved = sliced_drift(joined[code], directions, source, target)
            drift[code] = moved[:, :n_encoded] / mechanism.row_weight
        normals = torch.randn(rows.shape, generator=generator).to(rows)
        rows = rows + step_size * drift + math.sqrt(2 * diffusion * step_size) * normals
        # Records are clipped, too.
        rows = clip_rows(rows.flatten(0, 1), 1.0).view_as(rows)
        return drift.square().sum(-1).mean()

    losses = run_steps(
        take_step, len(step_sizes), lambda *_: step_sizes, label="flow", verbose=verbose
    )
    return rows, shares.mean, losses


def _smooth(projected, real, share, std, generator):
    """Return projections of particles, padded and noised as records are, and released ones.

    Slots without a record of the class hold zeros and noise, and particles are padded by zeros
    in proportion. Without noise these slots are dropped instead.
    """
    if std == 0:
        return projected, real[:, real.any(0)] if real.any() else real
    n_zeros = round(projected.shape[1] * max(0.0, 1 / max(share, CONSTANTS.least_share) - 1))
    padded = nn.functional.pad(projected, (0, n_zeros))
    noise = torch.randn(padded.shape, generator=generator).to(padded)
    return padded + std * noise, real
