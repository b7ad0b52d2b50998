# SPDX-License-Identifier: BSD-3-Clause
"""Torch modules: generator networks, discriminators, encoders and autoencoders."""

from typing import TYPE_CHECKING

from .._lazy import import_late

if TYPE_CHECKING:
    from .encoders import ENCODERS
    from .generators import GENERATORS

_HOMES = {
    "ENCODERS": ".encoders",
    "GENERATORS": ".generators",
}
__all__ = [
    "ENCODERS",
    "GENERATORS",
]
__getattr__, __dir__ = import_late(__name__, _HOMES)
