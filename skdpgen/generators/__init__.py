# SPDX-License-Identifier: BSD-3-Clause
"""Generators of synthetic data, one file per method."""

from ..histories.sampler import DPHistorySampler
from ._dpaf import DPAFDiscriminator, DPAFGenerator
from ._ldp_entropic_gan import LDPEntropicGAN
from ._sinkhorn_generator import DPSinkhornGenerator
from ._sliced_flow import DPSWFlowSampler
from ._sliced_wasserstein import DPSlicedWassersteinGenerator

__all__ = [
    "DPAFDiscriminator",
    "DPAFGenerator",
    "DPHistorySampler",
    "DPSWFlowSampler",
    "DPSinkhornGenerator",
    "DPSlicedWassersteinGenerator",
    "LDPEntropicGAN",
]
