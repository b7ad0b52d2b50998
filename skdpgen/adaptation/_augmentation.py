# SPDX-License-Identifier: BSD-3-Clause
"""Data augmentation of images."""

import torch
from torch import nn

# Largest change: relative for sizes, in radians for angles and shears, in quarters of the image for
# shifts. Set by hand.
_STRENGTH = 0.25


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
