# SPDX-License-Identifier: BSD-3-Clause
"""Public transformers: dimension reduction, private or learnt on public rows, and local noise."""

from typing import TYPE_CHECKING

from .._lazy import import_late

if TYPE_CHECKING:
    from ._dp_pca import DPPCA
    from ._local_privatizer import LocalPrivatizer
    from ._low_frequencies import LowFrequencies

_HOMES = {
    "._dp_pca": "DPPCA",
    "._local_privatizer": "LocalPrivatizer",
    "._low_frequencies": "LowFrequencies",
}
__getattr__, __dir__, __all__ = import_late(__name__, _HOMES)
