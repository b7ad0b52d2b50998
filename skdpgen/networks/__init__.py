"""Torch modules: generator networks, encoders and autoencoders."""

from .autoencoders import SphericalAutoencoder, infer_image_shape, make_autoencoder
from .encoders import ENCODERS, build_encoder, make_head
from .generators import GENERATORS, build, find_factory, make_seeded

__all__ = [
    "ENCODERS",
    "GENERATORS",
    "SphericalAutoencoder",
    "build",
    "build_encoder",
    "find_factory",
    "infer_image_shape",
    "make_autoencoder",
    "make_head",
    "make_seeded",
]
