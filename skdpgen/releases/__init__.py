# SPDX-License-Identifier: BSD-3-Clause
"""What leaves the data, and when: what users pass as `release`.

A release says what is planned and priced, from public numbers only, and asks the curator for it.
What is then fitted to it is the estimator's.
"""

from .forward_aggregates import ForwardAggregates
from .local_noise import LocalNoise
from .sampled_gradients import SampledGradients
from .sketches import SliceSketch
from .sliced_rows import SlicedRows
from .tables import TwoWayTables

__all__ = [
    "ForwardAggregates",
    "LocalNoise",
    "SampledGradients",
    "SliceSketch",
    "SlicedRows",
    "TwoWayTables",
]
