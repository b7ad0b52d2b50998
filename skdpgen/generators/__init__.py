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
    "DPAFGenerator": "._dpaf",
    "DPHistorySampler": "..histories.sampler",
    "DPSWFlowSampler": "._sliced_flow",
    "DPSinkhornGenerator": "._sinkhorn_generator",
    "DPSlicedWassersteinGenerator": "._sliced_wasserstein",
    "LDPEntropicGAN": "._ldp_entropic_gan",
}
__all__ = [
    "DPAFGenerator",
    "DPHistorySampler",
    "DPSWFlowSampler",
    "DPSinkhornGenerator",
    "DPSlicedWassersteinGenerator",
    "LDPEntropicGAN",
]
__getattr__, __dir__ = import_late(__name__, _HOMES)
