# SPDX-License-Identifier: BSD-3-Clause
"""Releases: specifications of the mechanisms that read private rows, passed as `release`.

A release plans its mechanisms and their noise from public numbers only, and requests them from the
curator. Learners are fitted to the results.
"""

from .forward_aggregates import ForwardAggregates
from .local_noise import LocalNoise
from .published import PublishedRelease, from_release, merge
from .sampled_gradients import SampledGradients
from .sketches import SliceSketch
from .sliced_rows import SlicedRows
from .two_way_tables import TwoWayTables

__all__ = [
    "ForwardAggregates",
    "LocalNoise",
    "PublishedRelease",
    "SampledGradients",
    "SliceSketch",
    "SlicedRows",
    "TwoWayTables",
    "from_release",
    "merge",
]
