# SPDX-License-Identifier: BSD-3-Clause
"""Representation networks for domain adaptation, and classification heads.

A factory maps the number of columns of a row and that of the representation (None: the network's
default) to a module.
"""

from collections.abc import Callable

import torch
from torch import nn

from .generators import make_and_try, seeded


def mlp(n_inputs, n_components=None):
    """Make two ReLU layers of 100 and 50 units (Rakotomamonjy & Ralaivola 2021, for Office)."""
    return nn.Sequential(
        nn.Linear(n_inputs, 100), nn.ReLU(), nn.Linear(100, n_components or 50), nn.ReLU()
    )


def conv(image_shape):
    """Return a factory of the two 5×5 convolutions of Rakotomamonjy & Ralaivola 2021 for digits.

    32 filters, ReLU and 2×2 max pooling; 20 filters and a sigmoid. A linear layer maps the outputs,
    1280 for 28×28 grey digits, to `n_components`, if given. Smaller images are padded, and larger
    maps averaged.
    """
    n_channels, *sides = image_shape
    padding = 0 if min(sides) >= 28 else 2
    pooled = [min(8, side // 2) for side in sides]

    def make(n_inputs, n_components=None):
        layers = [
            nn.Unflatten(1, image_shape),
            nn.Conv2d(n_channels, 32, 5, padding=padding),
            # The order does not matter to the result; this one leaves ReLU a quarter of the work.
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(32, 20, 5, padding=padding),
            nn.Sigmoid(),
            nn.AdaptiveAvgPool2d(pooled),
            nn.Flatten(),
        ]
        if n_components:
            layers.append(nn.Linear(20 * pooled[0] * pooled[1], n_components))
        # Convolutions on CPUs are much faster in this memory format.
        return nn.Sequential(*layers).to(memory_format=torch.channels_last)

    return make


def conv28(n_inputs, n_components=None):
    """Make `conv` for 28×28 grey digits."""
    if n_inputs != 784:
        raise ValueError(f"network='conv28' is for images of 784 pixels; X has {n_inputs}.")
    return conv((1, 28, 28))(n_inputs, n_components)


# These networks read pixels in [0, 1] rather than standardised columns.
for factory in (conv28, conv):
    factory.unit_input = True  # type: ignore[attr-defined]
conv.takes_shape = True  # type: ignore[attr-defined]
ENCODERS: dict[str, Callable] = {"mlp": mlp, "conv": conv, "conv28": conv28}


def build_encoder(factory, n_inputs, n_components, n_classes, seed):
    """Call a factory of encoders with a seed; return the network, a head on it, and its width."""
    with seeded(seed):
        network, shape = make_and_try(factory, n_inputs, n_components)
        if len(shape) != 2 or shape[0] != 2:
            raise ValueError(f"network maps {(2, n_inputs)} numbers to {shape}, not to rows.")
        head = nn.Sequential(nn.Linear(shape[1], 100), nn.ReLU(), nn.Linear(100, n_classes))
        return network, head, shape[1]
