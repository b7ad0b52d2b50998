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


def dpswgen(n_inputs, n_outputs):
    """Make hidden layers of 256, 512 and 256 units."""
    return nn.Sequential(
        nn.Linear(n_inputs, 256),
        nn.ReLU(),
        nn.Linear(256, 512),
        nn.ReLU(),
        nn.Linear(512, 256),
        nn.ReLU(),
        nn.Linear(256, n_outputs),
    )


def conv28(n_inputs, n_outputs):
    """Make Table 3 of Rakotomamonjy & Ralaivola 2021, for 28×28 grey images (180,000 weights)."""
    _check_size("conv28", n_outputs, (1, 28, 28))
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


def conv64(n_inputs, n_outputs):
    """Make Table 5 of Rakotomamonjy & Ralaivola 2021, for 64×64 RGB images, channels first.

    The table gives a stride of 1 to every layer, with which 64×64 cannot be reached; strides of 2
    after the first layer do. Its Tanh is a sigmoid here, for features in [0, 1].
    """
    _check_size("conv64", n_outputs, (3, 64, 64))
    layers = [nn.Unflatten(1, (n_inputs, 1, 1))]
    widths = [n_inputs, 512, 256, 128, 64]
    for i, (width, wider) in enumerate(itertools.pairwise(widths)):
        stride, padding = (1, 0) if i == 0 else (2, 1)
        layers += [
            nn.ConvTranspose2d(width, wider, 4, stride, padding, bias=False),
            nn.BatchNorm2d(wider),
            nn.ReLU(),
        ]
    layers += [nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Sigmoid(), nn.Flatten()]
    return nn.Sequential(*layers)


@savable
class ResidualUp(nn.Module):
    """Upsampling ×2 and two 3×3 convolutions, beside a 1×1 convolution: a block of BigGAN."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.path = nn.Sequential(
            nn.BatchNorm2d(in_channels),
            nn.ReLU(),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(),
            nn.Conv2d(out_channels, out_channels, 3, padding=1),
        )
        # A 1×1 convolution commutes with the upsampling and is cheaper before it.
        self.shortcut = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, 1), nn.Upsample(scale_factor=2)
        )

    def forward(self, images):
        return self.path(images) + self.shortcut(images)


def dcgan28(n_inputs, n_outputs):
    """Make the four DCGAN layers of Cao et al. 2021, with 64 channels, for 28×28 grey images.

    About 50 times the work of ``"conv28"``. Outputs are in [0, 1] rather than [-1, 1].
    """
    _check_size("dcgan28", n_outputs, (1, 28, 28))
    return nn.Sequential(
        nn.Unflatten(1, (n_inputs, 1, 1)),
        nn.ConvTranspose2d(n_inputs, 256, 7, bias=False),
        nn.BatchNorm2d(256),
        nn.LeakyReLU(0.2),
        nn.ConvTranspose2d(256, 128, 4, 2, 1, bias=False),
        nn.BatchNorm2d(128),
        nn.LeakyReLU(0.2),
        nn.ConvTranspose2d(128, 64, 4, 2, 1, bias=False),
        nn.BatchNorm2d(64),
        nn.LeakyReLU(0.2),
        nn.Conv2d(64, 1, 3, padding=1),
        nn.Sigmoid(),
        nn.Flatten(),
    )


def resnet32(n_inputs, n_outputs):
    """Make the residual blocks of Cao et al. 2021 for faces: 32×32 RGB images, channels first.

    After BigGAN, with three blocks of 64 channels; codes enter at the first layer only.
    """
    _check_size("resnet32", n_outputs, (3, 32, 32))
    return nn.Sequential(
        nn.Linear(n_inputs, 64 * 4 * 4),
        nn.Unflatten(1, (64, 4, 4)),
        ResidualUp(64, 64),
        ResidualUp(64, 64),
        ResidualUp(64, 64),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.Conv2d(64, 3, 3, padding=1),
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


for factory in (conv28, conv64, dcgan28, resnet32):
    factory.unit_output = True  # type: ignore[attr-defined]
for name in ("unit_output", "takes_shape"):
    setattr(mirror, name, True)
GENERATORS: dict[str, Callable] = {
    "mlp": mlp,
    "dpswgen": dpswgen,
    "conv": mirror,
    "conv28": conv28,
    "conv64": conv64,
    "dcgan28": dcgan28,
    "resnet32": resnet32,
}


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


def _check_size(name, n_outputs, shape):
    size = shape[0] * shape[1] * shape[2]
    if n_outputs != size:
        raise ValueError(
            f"network={name!r} makes images of shape {shape}, {size} features; X has {n_outputs}."
        )
