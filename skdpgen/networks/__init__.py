# SPDX-License-Identifier: BSD-3-Clause
"""Torch modules: generator networks, discriminators, encoders and autoencoders."""

from .autoencoders import SphericalAutoencoder, infer_image_shape, make_autoencoder
from .discriminators import Discriminator, default_layers, infer_square_shape
from .encoders import ENCODERS, build_encoder
from .generators import GENERATORS, build, find_factory, mirror, seeded

__all__ = [
    "ENCODERS",
    "GENERATORS",
    "Discriminator",
    "SphericalAutoencoder",
    "build",
    "build_encoder",
    "default_layers",
    "find_factory",
    "infer_image_shape",
    "infer_square_shape",
    "make_autoencoder",
    "mirror",
    "seeded",
]
