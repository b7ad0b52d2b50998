# SPDX-License-Identifier: BSD-3-Clause
"""Torch modules: generator networks, discriminators and encoders."""

from typing import TYPE_CHECKING

from .._lazy import import_late

if TYPE_CHECKING:
    from .discriminators import Discriminator, default_layers
    from .encoders import ENCODERS, build_encoder
    from .generators import GENERATORS, build, find_factory, mirror, seeded

_HOMES = {
    ".discriminators": "Discriminator default_layers",
    ".encoders": "ENCODERS build_encoder",
    ".generators": "GENERATORS build find_factory mirror seeded",
}
__getattr__, __dir__, __all__ = import_late(__name__, _HOMES)
