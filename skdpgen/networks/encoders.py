# SPDX-License-Identifier: BSD-3-Clause
"""Networks that make representations of rows, and heads that classify these.

A factory maps the number of columns of a row and that of the representation (None: the network's
own) to a module.
"""

import torch
from torch import nn

from .generators import make_and_try, seeded


def mlp(n_inputs, n_components=None):
    """Two layers of ReLU units, 100 and 50, as Rakotomamonjy & Ralaivola 2021 have for Office."""
    return nn.Sequential(
        nn.Linear(n_inputs, 100), nn.ReLU(), nn.Linear(100, n_components or 50), nn.ReLU()
    )


def conv28(n_inputs, n_components=None):
    """28×28 grey images: the two 5×5 convolutions of Rakotomamonjy & Ralaivola 2021 for digits.

    32 filters, ReLU and a 2×2 maximum; 20 filters and a sigmoid. That makes 1280 numbers; a linear
    layer maps them to `n_components`, if given.
    """
    if n_inputs != 784:
        raise ValueError(f"network='conv28' is for images of 784 pixels; X has {n_inputs}.")
    layers = [
        nn.Unflatten(1, (1, 28, 28)),
        nn.Conv2d(1, 32, 5),
        # Either order gives the same; this one leaves ReLU a quarter of the numbers.
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(32, 20, 5),
        nn.Sigmoid(),
        nn.Flatten(),
    ]
    if n_components:
        layers.append(nn.Linear(1280, n_components))
    # Much faster on CPUs.
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)


def make_head(n_components, n_classes):
    """Classify by a hidden layer of 100 units."""
    return nn.Sequential(nn.Linear(n_components, 100), nn.ReLU(), nn.Linear(100, n_classes))


# What reads images as they are, rather than columns of equal scale.
conv28.unit_input = True
ENCODERS = {"mlp": mlp, "conv28": conv28}


def build_encoder(factory, n_inputs, n_components, n_classes, seed):
    """Call a factory of encoders with a seed; return the network, a head on it, and its width."""
    with seeded(seed):
        network, shape = make_and_try(factory, n_inputs, n_components)
        if len(shape) != 2 or shape[0] != 2:
            raise ValueError(f"The network maps {(2, n_inputs)} numbers to {shape}, not to rows.")
        return network, make_head(shape[1], n_classes), shape[1]
