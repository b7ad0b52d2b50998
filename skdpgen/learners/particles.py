# SPDX-License-Identifier: BSD-3-Clause
"""Learners: particles that are moved until they have a slice sketch, or by the flow of slices.

They see releases only, never rows.
"""

import math

import torch
from torch import nn
from tqdm import tqdm

from ..mechanisms.base import clip_rows
from ..registry import savable
from ..transport import sliced_drift
from .sketch import read_sketch
from .slices import ClassShares
from .table_rows import draw_in_rounds
from .training import Descent, descend_to_noise

# Slices of a sketch that a step looks at, drawn anew for each step.
_SLICES = 500
# Jitter of drawn particles and of starts, in standard deviations.
_JITTER = 0.1


@savable
class Particles:
    """Encoded rows of each class, and rows like them.

    Parameters
    ----------
    rows : tensor of shape (n_classes, m, n_encoded)
    components : PrincipalComponents, default=None
        The linear encoder, if there is one.
    """

    def __init__(self, rows, components=None):
        self.rows = rows.cpu()
        self.components = None if components is None else components.cpu()

    @torch.no_grad()
    def sample(self, classes, generator):
        """Return rows in the unit ball's units, an array of shape (n, n_columns).

        The smoothed bootstrap: the particles of a class are drawn in random order, again and
        again, with a jitter of a tenth of their standard deviations, and shrunk to their mean so
        that variances stay as they are.
        """
        drawn = torch.empty(len(classes), self.rows.shape[2], dtype=self.rows.dtype)
        for code in classes.unique():
            chosen, rows = classes == code, self.rows[code]
            n = int(chosen.sum())
            order = draw_in_rounds(len(rows), n, generator)
            noise = torch.randn(n, rows.shape[1], generator=generator, dtype=rows.dtype)
            mean, std = rows.mean(0), rows.std(0, correction=0)
            moved = rows[order] - mean + _JITTER * std * noise
            drawn[chosen] = mean + moved / math.sqrt(1 + _JITTER**2)
        if self.components is not None:
            drawn = self.components.decode(drawn)
        return drawn.double().numpy()


def draw_starts(n_classes, n_particles, spread, rows, generator):
    """Draw where the particles of each class start: from noise of a spread, or from public rows.

    Rows are drawn in random order, again and again, each time with a jitter of a tenth of their
    standard deviations.

    Returns
    -------
    tensor of shape (n_classes, n_particles, n_encoded)
    """
    normals = torch.randn(n_classes, n_particles, len(spread), generator=generator).to(spread)
    if rows is None:
        return spread * normals
    order = [draw_in_rounds(len(rows), n_particles, generator) for _ in range(n_classes)]
    rows = rows.to(spread)
    jitter = _JITTER * rows.std(0, correction=0)
    return rows[torch.stack(order).to(spread.device)] + jitter * normals


@torch.inference_mode(False)
@torch.enable_grad()
def fit_particles_to_sketch(
    basis, sketch, starts, spread, scale, *, n_steps, learning_rate, generator, verbose=0
):
    """Move particles until they have the sketch, up to the sketch's noise.

    Parameters
    ----------
    basis : SliceBasis
    sketch : skdpgen.mechanisms.sums.Sketch
    starts : tensor of shape (n_classes, m, n_encoded)
    spread : tensor of shape (n_encoded,)
        Standard deviations of encoded rows, about.
    scale : tensor of shape (n_encoded,) or float
        What encoded rows are multiplied by to be in the unit ball. Particles stay there, too: far
        outside of it harmonics come round again.
    n_steps : int
        The largest number of steps for each class.
    learning_rate : float
        Of Adam, in units of the mean spread.
    generator, verbose
        As in `fit_to_sketch`.

    Returns
    -------
    particles : tensor of shape (n_classes, m, n_encoded)
    losses : list of float
        The distance to the noisy sketch at each step of the class that took most.
    """
    means, weights, noise_energy = read_sketch(basis, sketch)
    noise_energy = noise_energy / weights.cpu().numpy()
    one, k = torch.ones(1, dtype=basis.dtype, device=spread.device), basis.n_projections
    moved, losses = [], []
    for start, mean, noise in zip(starts, means, noise_energy, strict=True):
        rows = start.clone().requires_grad_(True)

        def loss(rows=rows, mean=mean):
            with torch.no_grad():
                rows.copy_(clip_rows(rows * scale, 1.0) / scale)
            slices = torch.randperm(k, generator=generator)[:_SLICES].to(spread.device)
            return basis.subset(slices).squared_distance(
                rows[None], mean[None, ..., slices], one, unbiased=False
            )

        descent = Descent([rows], learning_rate * float(spread.mean()))
        made = descend_to_noise(descent, loss, noise, n_steps, verbose)
        moved.append(rows.detach())
        losses = max(losses, made, key=len)
    return torch.stack(moved), losses


@torch.no_grad()
def flow_along_slices(
    starts,
    mechanism,
    releases,
    *,
    step_sizes,
    diffusion,
    batch_size,
    n_directions=None,
    generator,
    verbose=0,
):
    """Move particles by the flow of the smoothed sliced distance to released rows.

    One step of Euler and Maruyama is x ← x + h·v(x) + √(2λh)·z: equation 18 of [1]_. The
    particles' projections are padded and noised as those of records are.

    Parameters
    ----------
    starts : tensor of shape (n_classes, m, n_encoded)
    mechanism : SlicedRowsMechanism
        What is released.
    releases : iterator of ProjectedRows
        One for each step; the same again where nothing new is released.
    step_sizes : list of float
        h of each step.
    diffusion : float
        λ.
    batch_size : int
        Expected records a release.
    n_directions : int, default=None
        How many of the released directions a step looks at, drawn anew each time. None: all.
    generator, verbose
        As in `fit_to_sketch`.

    Returns
    -------
    particles : tensor of shape (n_classes, m, n_encoded)
    shares : ndarray of shape (n_classes,)
        Estimated shares of the classes.
    losses : list of float
        At each step, the mean square of the drift.

    References
    ----------
    .. [1] Sebag et al., "Differentially Private Gradient Flow based on the Sliced Wasserstein
       Distance", 2023.
    """
    rows, (n_classes, m, _) = starts.clone(), starts.shape
    labels = torch.eye(n_classes).to(rows).repeat_interleave(m, 0)
    shares, losses, seen = ClassShares(mechanism, batch_size), [], None
    scale = mechanism.row_weight
    for step_size, released in zip(
        tqdm(step_sizes, desc="flow", disable=not verbose), releases, strict=False
    ):
        if released is not seen:
            seen, share = released, shares.update(released)
        directions, real = released.directions.to(rows), torch.as_tensor(released.values).to(rows)
        if n_directions is not None:
            chosen = torch.randperm(directions.shape[1], generator=generator)[:n_directions]
            directions, real = directions[:, chosen], real[:, chosen]
        joined = mechanism.join(rows.flatten(0, 1), labels).unflatten(0, (n_classes, m))
        drift = torch.empty_like(rows)
        for code in range(n_classes):
            source, target = _as_released(
                directions.T @ joined[code].T,
                real[code],
                share[code] * batch_size / real.shape[2],
                released.std,
                generator,
            )
            moved = sliced_drift(joined[code], directions, source, target)
            drift[code] = moved[:, : rows.shape[2]] / scale
        normals = torch.randn(rows.shape, generator=generator).to(rows)
        rows = rows + step_size * drift + math.sqrt(2 * diffusion * step_size) * normals
        # As records are.
        rows = clip_rows(rows.flatten(0, 1), 1.0).view_as(rows)
        losses.append(drift.square().sum(-1).mean().item())
    return rows, shares.mean, losses


def _as_released(projected, real, share, std, generator):
    """Return samples of what would be released of particles, and of what was released.

    What is not of the class is a zero with noise, for which particles have zeros, too. Without
    noise zeros are just left out.
    """
    if std == 0:
        return projected, real[:, real.any(0)] if real.any() else real
    n_zeros = round(projected.shape[1] * max(0.0, 1 / max(share, 1e-3) - 1))
    padded = nn.functional.pad(projected, (0, n_zeros))
    noise = torch.randn(padded.shape, generator=generator).to(padded)
    return padded + std * noise, real
