# SPDX-License-Identifier: BSD-3-Clause
"""Data augmentation of images."""

import math

import torch
from torch import nn


def affine(rows: torch.Tensor, generator: torch.Generator, strength: float = 0.25) -> torch.Tensor:
    """Rotate, scale, shear and shift each square grey image slightly at random.

    Parameters
    ----------
    rows : tensor of shape (n, side²)
    generator : torch.Generator
    strength : float, default=0.25
        Largest change: relative for sizes, in radians for angles and shears, in quarters of the
        image for shifts.

    Returns
    -------
    tensor of shape (n, side²)
    """
    n, side = len(rows), math.isqrt(rows.shape[1])
    if side**2 != rows.shape[1]:
        raise ValueError(f"'affine' is for square grey images; rows have {rows.shape[1]} features.")
    draws = strength * (2 * torch.rand(n, 6, generator=generator) - 1).to(rows)
    turn, shear, width, height, across, down = draws.T
    width, height = 1 + width, 1 + height
    first = [width * turn.cos(), shear - width * turn.sin(), across / 2]
    second = [height * turn.sin(), height * turn.cos(), down / 2]
    maps = torch.stack([torch.stack(first, 1), torch.stack(second, 1)], 1)
    images = rows.view(n, 1, side, side)
    grid = nn.functional.affine_grid(maps, list(images.shape), align_corners=False)
    return nn.functional.grid_sample(images, grid, align_corners=False).flatten(1)


AUGMENTATIONS = {"affine": affine}
