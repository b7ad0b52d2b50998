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
    "ExactMatrix": ".products",
    "SliceBasis": ".harmonics",
    "entropic_wasserstein": ".sinkhorn_losses",
    "pairwise_cost": ".sinkhorn_losses",
    "random_directions": ".directions",
    "sinkhorn_divergence": ".sinkhorn_losses",
    "sinkhorn_plan": ".sinkhorn",
    "slice_diameter": ".harmonics",
    "sliced_drift": ".flow",
    "sliced_wasserstein_distance": ".slices",
    "smoothed_sliced_wasserstein_distance": ".slices",
    "wasserstein_1d": ".slices",
}
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
__getattr__, __dir__ = import_late(__name__, _HOMES)
