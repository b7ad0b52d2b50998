# SPDX-License-Identifier: BSD-3-Clause
"""Torch modules: generator networks, discriminators, encoders and autoencoders."""

from typing import TYPE_CHECKING

from .._lazy import import_late

if TYPE_CHECKING:
    from .autoencoders import SphericalAutoencoder, infer_image_shape, make_autoencoder
    from .discriminators import Discriminator, default_layers
    from .encoders import ENCODERS, build_encoder
    from .generators import GENERATORS, build, find_factory, mirror, seeded

_NAMES = {
    ".autoencoders": ("SphericalAutoencoder", "infer_image_shape", "make_autoencoder"),
    ".discriminators": ("Discriminator", "default_layers"),
    ".encoders": ("ENCODERS", "build_encoder"),
    ".generators": ("GENERATORS", "build", "find_factory", "mirror", "seeded"),
}
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
    "make_autoencoder",
    "mirror",
    "seeded",
]
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
__getattr__, __dir__ = import_late(__name__, _HOMES)
