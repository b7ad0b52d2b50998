"""Optimal transport on tensors: one-dimensional slices."""

from .harmonics import SliceBasis
from .slices import (
    random_directions,
    sliced_wasserstein_distance,
    smoothed_sliced_wasserstein_distance,
    wasserstein_1d,
)

__all__ = [
    "SliceBasis",
    "random_directions",
    "sliced_wasserstein_distance",
    "smoothed_sliced_wasserstein_distance",
    "wasserstein_1d",
]
