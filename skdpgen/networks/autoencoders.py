# SPDX-License-Identifier: BSD-3-Clause
"""Autoencoders of images and other features in [0, 1], with codes on the unit sphere.

Rows are flat; images are channels first.
"""

import itertools

import torch
from torch import nn

from ..registry import savable


@savable
class SphericalAutoencoder(nn.Module):
    """Autoencoder whose codes are normalised to the unit sphere.

    Parameters
    ----------
    encoder : torch.nn.Module
        Maps rows (n, n_features) to codes (n, n_components) of any norm.
    decoder : torch.nn.Module
        Maps codes of norm 1 to rows in [0, 1].
    """

    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def encode(self, rows):
        """Map rows to codes of norm 1."""
        return nn.functional.normalize(self.encoder(rows), dim=1)

    def decode(self, codes):
        """Map codes of any norm to rows."""
        return self.decoder(nn.functional.normalize(codes, dim=1))

    def forward(self, rows):
        return self.decode(self.encode(rows))


def make_autoencoder(n_features, n_components, image_shape=None):
    """Make an autoencoder for images of a shape, or for rows that are no images.

    Parameters
    ----------
    n_features, n_components : int
    image_shape : tuple of (channels, height, width), default=None
        Sides from 8 to 64 pixels. None: a multilayer perceptron.

    Returns
    -------
    SphericalAutoencoder
    """
    if image_shape is None:
        return _make_mlp(n_features, n_components)
    if min(image_shape[1:]) < 8 or max(image_shape) > 64:
        raise ValueError(f"Images must have sides of 8 to 64 pixels; got {image_shape[1:]}.")
    make = _make_conv64 if max(image_shape) > 32 else _make_conv32
    # Convolutions on CPUs are much faster in this memory format.
    return make(image_shape, n_components).to(memory_format=torch.channels_last)


def infer_image_shape(n_features):
    """Return the image shape of a common number of features, or None."""
    return {784: (1, 28, 28), 1024: (1, 32, 32), 12288: (3, 64, 64)}.get(n_features)


def _make_mlp(n_features, n_components):
    """Make a multilayer perceptron with one hidden layer of 256 units on each side."""
    return SphericalAutoencoder(
        nn.Sequential(nn.Linear(n_features, 256), nn.ReLU(), nn.Linear(256, n_components)),
        nn.Sequential(
            nn.Linear(n_components, 256), nn.ReLU(), nn.Linear(256, n_features), nn.Sigmoid()
        ),
    )


def _make_conv32(image_shape, n_components):
    """Make the network of Sebag et al. for MNIST (appendix C.2): 32×32, or smaller with padding.

    Their second convolution is printed with a kernel of 4, stride 2 and no padding, which takes
    32×32 to 15×15, but the decoder starts at 16×16. A kernel of 2 gives that, as in the decoder's
    own layer of stride 2, and in the design that they took over.
    """
    n_channels, margins = image_shape[0], _find_margins(image_shape, 32)
    encoder = nn.Sequential(
        nn.Unflatten(1, image_shape),
        nn.ZeroPad2d(margins),
        nn.Conv2d(n_channels, 3, 3, 1, 1),
        nn.ReLU(),
        # Stride 2 halves the sides to 16.
        nn.Conv2d(3, 32, 2, 2, 0),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, 1, 1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, 1, 1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 16 * 16, n_components),
    )
    decoder = nn.Sequential(
        nn.Linear(n_components, 32 * 16 * 16),
        nn.ReLU(),
        nn.Unflatten(1, (32, 16, 16)),
        nn.Conv2d(32, 32, 3, 1, 1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, 1, 1),
        nn.ReLU(),
        nn.ConvTranspose2d(32, 32, 2, 2, 0),
        nn.ReLU(),
        nn.Conv2d(32, n_channels, 3, 1, 1),
        nn.Sigmoid(),
        # A negative margin crops: the counterpart of the padding of the encoder.
        nn.ZeroPad2d([-margin for margin in margins]),
        nn.Flatten(),
    )
    return SphericalAutoencoder(encoder, decoder)


def _find_margins(image_shape, side):
    """Return the margins at the left, the right, the top and the bottom of images in a square."""
    height, width = image_shape[1:]
    sides = [(side - width) // 2, (side - width + 1) // 2]
    return [*sides, (side - height) // 2, (side - height + 1) // 2]


def _make_conv64(image_shape, n_components):
    """Make the network of Sebag et al. for 64×64 faces, or smaller with padding, after DCGAN.

    It is that of their appendix C.2. The four transposed convolutions of its decoder lead to 32×32;
    a fifth leads to the image.
    """
    widths = [64, 128, 256, 512]
    margins = _find_margins(image_shape, 64)
    layers = [nn.Unflatten(1, image_shape), nn.ZeroPad2d(margins)]
    layers.append(nn.Conv2d(image_shape[0], 64, 3, 1, 1))
    for width, wider in itertools.pairwise(widths):
        layers += [nn.LeakyReLU(0.2), nn.Conv2d(width, wider, 4, 2, 1)]
    layers += [nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(512 * 8 * 8, n_components)]
    encoder = nn.Sequential(*layers)
    # The first layer maps a pixel to 4×4; each of the others doubles the sides.
    layers, stride, padding = [nn.Unflatten(1, (n_components, 1, 1))], 1, 0
    for wider, width in itertools.pairwise([n_components, *widths[::-1]]):
        layers += [
            nn.ConvTranspose2d(wider, width, 4, stride, padding),
            nn.LeakyReLU(0.2),
            nn.BatchNorm2d(width),
        ]
        stride, padding = 2, 1
    layers += [nn.ConvTranspose2d(64, image_shape[0], 4, 2, 1), nn.Sigmoid()]
    layers += [nn.ZeroPad2d([-margin for margin in margins]), nn.Flatten()]
    return SphericalAutoencoder(encoder, nn.Sequential(*layers))
