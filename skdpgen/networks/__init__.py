"""Torch modules: generator networks and autoencoders."""

from .autoencoders import SphericalAutoencoder, infer_image_shape, make_autoencoder
from .generators import GENERATORS, build, find_factory

__all__ = [
    "GENERATORS",
    "SphericalAutoencoder",
    "build",
    "find_factory",
    "infer_image_shape",
    "make_autoencoder",
]
