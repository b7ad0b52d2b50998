# SPDX-License-Identifier: BSD-3-Clause
"""Releases: specifications of the mechanisms that read private rows, passed as `release`.

A release plans its mechanisms and their noise from public numbers only, and requests them from the
curator. Learners are fitted to the results.
"""

from typing import TYPE_CHECKING

from .._lazy import import_late

if TYPE_CHECKING:
    from .forward_aggregates import ForwardAggregates
    from .local_noise import LocalNoise
    from .merging import merge
    from .published import PublishedRelease, from_release
    from .release import Release
    from .sampled_gradients import SampledGradients
    from .sketches import SliceSketch
    from .sliced_rows import SlicedRows
    from .two_way_tables import TwoWayTables

_HOMES = {
    "ForwardAggregates": ".forward_aggregates",
    "LocalNoise": ".local_noise",
    "PublishedRelease": ".published",
    "Release": ".release",
    "SampledGradients": ".sampled_gradients",
    "SliceSketch": ".sketches",
    "SlicedRows": ".sliced_rows",
    "TwoWayTables": ".two_way_tables",
    "from_release": ".published",
    "merge": ".merging",
}
__all__ = [
    "ForwardAggregates",
    "LocalNoise",
    "PublishedRelease",
    "Release",
    "SampledGradients",
    "SliceSketch",
    "SlicedRows",
    "TwoWayTables",
    "from_release",
    "merge",
]
__getattr__, __dir__ = import_late(__name__, _HOMES)
