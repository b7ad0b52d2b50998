# SPDX-License-Identifier: BSD-3-Clause
"""Public transformers: dimension reduction, private or learnt on public rows, and local noise."""

from ._autoencoder import Autoencoder
from ._dp_pca import DPPCA
from ._local_privatizer import LocalPrivatizer
from ._low_frequencies import LowFrequencies

__all__ = ["DPPCA", "Autoencoder", "LocalPrivatizer", "LowFrequencies"]
