# SPDX-License-Identifier: BSD-3-Clause
"""Optimal transport on tensors: one-dimensional slices, and entropic plans and losses."""

from typing import TYPE_CHECKING

from .._lazy import import_late

if TYPE_CHECKING:
    from .directions import random_directions
    from .flow import sliced_drift
    from .harmonics import SliceBasis, slice_diameter
    from .products import ExactMatrix
    from .sinkhorn import sinkhorn_plan
    from .sinkhorn_losses import entropic_wasserstein, pairwise_cost, sinkhorn_divergence
    from .slices import (
        sliced_wasserstein_distance,
        smoothed_sliced_wasserstein_distance,
        wasserstein_1d,
    )

_HOMES = {
    ".directions": "random_directions",
    ".flow": "sliced_drift",
    ".harmonics": "SliceBasis slice_diameter",
    ".products": "ExactMatrix",
    ".sinkhorn": "sinkhorn_plan",
    ".sinkhorn_losses": "entropic_wasserstein pairwise_cost sinkhorn_divergence",
    ".slices": "sliced_wasserstein_distance smoothed_sliced_wasserstein_distance wasserstein_1d",
}
__getattr__, __dir__, __all__ = import_late(__name__, _HOMES)
