"""Generators: one file per method."""

from ._sliced_wasserstein import DPSlicedWassersteinGenerator

__all__ = ["DPSlicedWassersteinGenerator"]
