# SPDX-License-Identifier: BSD-3-Clause
"""Optimal transport on tensors: one-dimensional slices, and entropic plans and losses."""

from .directions import random_directions
from .flow import sliced_drift
from .harmonics import SliceBasis, slice_diameter
from .products import ExactMatrix
from .sinkhorn import sinkhorn_plan
from .sinkhorn_losses import (
    entropic_wasserstein,
    pairwise_cost,
    sinkhorn_divergence,
)
from .slices import (
    sliced_wasserstein_distance,
    smoothed_sliced_wasserstein_distance,
    wasserstein_1d,
)

__all__ = [
    "ExactMatrix",
    "SliceBasis",
    "entropic_wasserstein",
    "pairwise_cost",
    "random_directions",
    "sinkhorn_divergence",
    "sinkhorn_plan",
    "slice_diameter",
    "sliced_drift",
    "sliced_wasserstein_distance",
    "smoothed_sliced_wasserstein_distance",
    "wasserstein_1d",
]
