# SPDX-License-Identifier: BSD-3-Clause
"""Generator networks, which map latent codes and one-hot labels to rows.

A factory maps the numbers of inputs and outputs to a module. The attribute ``unit_output = True``
on the factory says that outputs are features in [0, 1], one per column of X (an image, flattened).
Otherwise outputs are encoded rows, as a release sees them.
"""

import contextlib
import copy
import itertools
import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch
from torch import nn

from .._process.isolation import seeded
from ..checks import tried
from ..registry import savable


@savable
class UpsampledConv2d(nn.Conv2d):
    """Upsampling ×2 (nearest) and a 5×5 convolution with padding 2, computed before upsampling.

    Each of the 4 outputs that an input pixel turns into sees 3×3 input pixels, with those of the
    5×5 weights added up that fall on the same one. So one 3×3 convolution to 4 times the channels
    gives the same result, many times faster.
    """

    def __init__(self, in_channels, out_channels):
        super().__init__(in_channels, out_channels, 5)
        # fold[f, i, j] = 1 where, for output f = 0, 1 of a pixel, tap j falls on its neighbour i.
        fold = torch.zeros(2, 3, 5)
        for f in range(2):
            for j in range(5):
                fold[f, (f + j - 2) // 2 + 1, j] = 1
        self.register_buffer("fold", fold, persistent=False)

    def forward(self, images):
        weight = torch.einsum("oiuv,fau,gbv->ofgiab", self.weight, self.fold, self.fold)
        weight = weight.reshape(4 * self.out_channels, self.in_channels, 3, 3)
        bias = self.bias.repeat_interleave(4)
        return nn.functional.pixel_shuffle(
            nn.functional.conv2d(images, weight, bias, padding=1), upscale_factor=2
        )


def mlp(n_inputs, n_outputs, width=256):
    """Make two hidden layers with batch normalisation, for encoded rows."""
    return nn.Sequential(
        nn.Linear(n_inputs, width),
        nn.BatchNorm1d(width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.BatchNorm1d(width),
        nn.ReLU(),
        nn.Linear(width, n_outputs),
    )


def conv28(n_inputs, n_outputs):
    """Make Table 3 of Rakotomamonjy & Ralaivola 2021, for 28×28 grey images (180,000 weights)."""
    if n_outputs != 784:
        raise ValueError(f"network='conv28' makes 784 features of 28×28 images; X has {n_outputs}.")
    return nn.Sequential(
        nn.Linear(n_inputs, 200),
        nn.BatchNorm1d(200),
        nn.ReLU(),
        nn.Linear(200, 784),
        nn.BatchNorm1d(784),
        nn.ReLU(),
        nn.Unflatten(1, (16, 7, 7)),
        UpsampledConv2d(16, 8),
        nn.ReLU(),
        UpsampledConv2d(8, 1),
        nn.Sigmoid(),
        nn.Flatten(),
    )


def mirror(image_shape: tuple[int, int, int]) -> Callable:
    """Return a factory of upsampling convolutions for images of any shape.

    Small maps are upsampled repeatedly by `UpsampledConv2d`, and cropped at the end; the number of
    maps is halved each time.
    """
    n_channels, height, width = image_shape
    widths, scale = [n_channels], 1
    while min(height, width) >= 8:
        height, width, scale = -(-height // 2), -(-width // 2), 2 * scale
        widths.insert(0, min(64, max(16, 2 * widths[0])))
    # A negative margin crops.
    margins = [0, image_shape[2] - scale * width, 0, image_shape[1] - scale * height]

    def make(n_inputs, n_outputs):
        size = widths[0] * height * width
        layers = [nn.Linear(n_inputs, 256), nn.BatchNorm1d(256), nn.ReLU()]
        layers += [nn.Linear(256, size), nn.BatchNorm1d(size)]
        layers += [nn.Unflatten(1, (widths[0], height, width))]
        for maps, fewer in itertools.pairwise(widths):
            layers += [nn.ReLU(), UpsampledConv2d(maps, fewer)]
        return nn.Sequential(*layers, nn.Sigmoid(), nn.ZeroPad2d(margins), nn.Flatten())

    # By the sigmoid, outputs are features in [0, 1].
    make.unit_output = True  # type: ignore[attr-defined]
    return make


conv28.unit_output = True  # type: ignore[attr-defined]
for name in ("unit_output", "takes_shape"):
    setattr(mirror, name, True)
GENERATORS: dict[str, Callable] = {"mlp": mlp, "conv": mirror, "conv28": conv28}


# Half of the width has the same utility on tables in half of the time.
TABLE_GENERATORS = {**GENERATORS, "mlp": partial(mlp, width=128)}


def find_factory(
    generator: str | Callable, factories: Mapping[str, Callable] = GENERATORS
) -> Callable:
    """Return the factory of a name; a factory is returned as it is."""
    return factories[generator] if isinstance(generator, str) else generator


def find_shaped(generator, images, factories: Mapping[str, Callable] = GENERATORS) -> Callable:
    """Return the factory of a name for images of an `ImageLayout`, or None, as `find_factory`."""
    factory = find_factory(generator, factories)
    if not getattr(factory, "takes_shape", False):
        return factory
    if images is None or images.image_shape is None:
        raise ValueError(
            f"network={generator!r} makes images: give image_shape=(channels, height, width), or X "
            "of that shape."
        )
    return factory(images.image_shape)


@contextlib.contextmanager
def rehearsing(name: str):
    """Try a user's object, whose draws must not change the global generators; see `tried`."""
    # The global one, from which functions of users may draw.
    state = np.random.get_state()  # noqa: NPY002
    try:
        with tried(name), seeded(0):
            yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


def build(factory: Callable, n_inputs: int, n_outputs: int, seed: int) -> nn.Module:
    """Return the seeded network of a factory, after checking its output shape."""
    with seeded(seed):
        network, shape = make_and_try(factory, n_inputs, n_outputs)
    if len(shape) > 2 and (shape[0], math.prod(shape[1:])) == (2, n_outputs):
        # Images become rows.
        network, shape = nn.Sequential(network, nn.Flatten()), (2, n_outputs)
    if shape != (2, n_outputs):
        raise ValueError(
            f"network maps codes of shape {(2, n_inputs)} to {shape}, not {(2, n_outputs)}."
        )
    return network


def make_and_try(
    factory: Callable, n_inputs: int, n_outputs: int | None
) -> tuple[nn.Module, tuple]:
    """Return a factory's network in evaluation mode, and its output shape for two rows."""
    if isinstance(factory, nn.Module):
        raise TypeError(
            "network must be a factory, which makes modules of given sizes, not a module: give "
            "network=lambda n_inputs, n_outputs: torch.nn.Linear(n_inputs, n_outputs), or a class."
        )
    network = factory(n_inputs, n_outputs)
    if not isinstance(network, nn.Module):
        raise TypeError(f"network must return a torch module; got {type(network)}.")
    # A factory may return the same module each time, which no fit may change.
    network = copy.deepcopy(network).float().eval()
    with torch.no_grad():
        made = network(torch.zeros(2, n_inputs, dtype=torch.float32))
    if not isinstance(made, torch.Tensor):
        raise TypeError(f"The module of network must return one tensor; got {type(made).__name__}.")
    return network, tuple(made.shape)
