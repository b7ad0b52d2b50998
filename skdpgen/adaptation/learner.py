# SPDX-License-Identifier: BSD-3-Clause
"""Domain adaptation: a representation in which two domains are alike, and a classifier on it.

The rows of the source are public. The target is given by synthetic rows.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from ..learners.training import Descent, linear_decay, run_steps
from ..transport.directions import random_directions
from ..transport.slices import wasserstein_1d

# The learning rate falls to 0 over the last half of the steps; set by hand.
_late_decay = partial(linear_decay, decay=0.5)
# Rate of the rise of the alignment's weight: Ganin et al., JMLR 2016, section 5.2.
_RAMP = 10.0
# Largest change of an image by augmentation: relative for sizes, in radians for angles and shears,
# in quarters of the image for shifts. Set by hand.
_STRENGTH = 0.25


def fit_adaptation(
    encoder: nn.Module,
    head: nn.Module,
    source: tuple[torch.Tensor, torch.Tensor],
    target: torch.Tensor | None = None,
    *,
    masked: torch.Tensor | None = None,
    align_weight: float = 0.0,
    class_align_weight: float = 0.0,
    n_projections: int = 200,
    n_steps: int,
    batch_size: int,
    learning_rate: float,
    augment: Callable | None = None,
    generator: torch.Generator,
    verbose: int = 0,
) -> list[float]:
    """Train an encoder and a head, in place, on source rows, and align them with the target.

    The loss is the head's cross-entropy on source rows, plus `align_weight` times the squared
    sliced Wasserstein distance between encoded batches of both domains (equation 7 of [1]_, in
    sums over coordinates), plus `class_align_weight` times the squared distance between the means
    of the classes in both, where classes of target rows are predicted by the head. The weight of
    the last two terms rises gradually, since early predictions are poor.

    Rows that represent the target may lack some features. Then the source rows in `masked` lack
    them, too: domains are compared by these, and the head learns from both.

    Source rows come with their classes. Without a target, of public rows that represent it, nothing
    is aligned. Each step takes `batch_size` rows of each domain, which ``augment(rows, generator)``
    changes at random. Adam's rate falls linearly to 0 over the second half. Returns the losses.

    References
    ----------
    .. [1] Rakotomamonjy & Ralaivola, "Differentially Private Sliced Wasserstein Distance", ICML
       2021.
    """
    descent = Descent([*encoder.parameters(), *head.parameters()], learning_rate, warm_up=1)
    sources = [*source] if masked is None else [*source, masked]
    step = 0

    def encode(rows):
        return encoder(rows if augment is None else augment(rows, generator))

    def take_step(rate):
        nonlocal step
        rows, labels, *others = _draw(batch_size, generator, *sources)
        encoded = encode(rows)
        loss = cross_entropy(head(encoded), labels)
        for part in others:
            encoded = encode(part)
            loss = loss + cross_entropy(head(encoded), labels)
        if target is not None:
            encoded_target = encode(*_draw(batch_size, generator, target))
            gap = align_weight * _sliced_gap(encoded, encoded_target, n_projections, generator)
            if class_align_weight:
                predicted = head(encoded_target).softmax(1).detach()
                gap = gap + class_align_weight * _class_gap(
                    encoded, labels, encoded_target, predicted
                )
            loss = loss + _ramp(step / n_steps) * gap
        step += 1
        return descent.step(loss, rate)

    return run_steps(take_step, n_steps, _late_decay, label="adaptation", verbose=verbose)


def _ramp(share):
    """Return the weight of alignment after a share of the steps, relative to the last."""
    return 2 / (1 + math.exp(-_RAMP * share)) - 1


def _draw(size, generator, *tensors):
    """Draw the same random rows of all tensors."""
    drawn = torch.randint(len(tensors[0]), (size,), generator=generator).to(tensors[0].device)
    return [tensor[drawn] for tensor in tensors]


def _sliced_gap(first, second, n_projections, generator):
    """Return d·SW₂², which, unlike SW₂², does not fall with the number of coordinates."""
    d = first.shape[1]
    # Orthonormal directions of a wide representation would take longer than the rest of a step.
    directions = random_directions(d, n_projections, orthogonal=False, generator=generator)
    directions = directions.to(first)
    return d * wasserstein_1d((first @ directions).T, (second @ directions).T).mean()


def _class_gap(first, labels, second, predicted):
    """Return the mean squared distance of the classes' means; a class needs a row in both."""
    n_classes = predicted.shape[1]
    members = nn.functional.one_hot(labels, n_classes).to(first)
    pairs = ((members, first), (predicted, second))
    means = [part.T @ rows / part.sum(0)[:, None].clamp(min=1) for part, rows in pairs]
    shared = (members.sum(0) >= 1) & (predicted.sum(0) >= 1)
    gaps = (means[0] - means[1]).square().sum(1)
    return (gaps * shared).sum() / n_classes


def affine(rows: torch.Tensor, generator: torch.Generator, shape: tuple) -> torch.Tensor:
    """Rotate, scale, shear and shift each image of a shape (channels, height, width) at random."""
    n = len(rows)
    draws = _STRENGTH * (2 * torch.rand(n, 6, generator=generator) - 1).to(rows)
    turn, shear, width, height, across, down = draws.T
    width, height = 1 + width, 1 + height
    first = [width * turn.cos(), shear - width * turn.sin(), across / 2]
    second = [height * turn.sin(), height * turn.cos(), down / 2]
    maps = torch.stack([torch.stack(first, 1), torch.stack(second, 1)], 1)
    images = rows.reshape(n, *shape)
    grid = nn.functional.affine_grid(maps, list(images.shape), align_corners=False)
    return nn.functional.grid_sample(images, grid, align_corners=False).flatten(1)


AUGMENTATIONS = {"affine": affine}
