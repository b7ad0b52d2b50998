"""Generators: one file per method."""

from ._sliced_flow import DPSWFlowSampler
from ._sliced_wasserstein import DPSlicedWassersteinGenerator

__all__ = ["DPSWFlowSampler", "DPSlicedWassersteinGenerator"]
