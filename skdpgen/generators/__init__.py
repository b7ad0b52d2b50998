# SPDX-License-Identifier: BSD-3-Clause
"""Generators of synthetic data, one file per method."""

from typing import TYPE_CHECKING

from .._lazy import import_late

if TYPE_CHECKING:
    from ._dpaf import DPAFGenerator
    from ._ldp_entropic_gan import LDPEntropicGAN
    from ._sinkhorn_generator import DPSinkhornGenerator
    from ._sliced_flow import DPSWFlowSampler
    from ._sliced_wasserstein import DPSlicedWassersteinGenerator

_HOMES = {
    "._dpaf": "DPAFGenerator",
    "..histories.sampler": "DPHistorySampler",
    "._ldp_entropic_gan": "LDPEntropicGAN",
    "._sinkhorn_generator": "DPSinkhornGenerator",
    "._sliced_flow": "DPSWFlowSampler",
    "._sliced_wasserstein": "DPSlicedWassersteinGenerator",
}
__getattr__, __dir__, __all__ = import_late(__name__, _HOMES)
