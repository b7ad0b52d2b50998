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
    from .published import PublishedRelease
    from .refitting import from_release
    from .release import Release
    from .sampled_gradients import SampledGradients
    from .sketches import SliceSketch
    from .sliced_rows import SlicedRows
    from .two_way_tables import TwoWayTables

_HOMES = {
    ".forward_aggregates": "ForwardAggregates",
    ".local_noise": "LocalNoise",
    ".merging": "merge",
    ".published": "PublishedRelease",
    ".refitting": "from_release",
    ".release": "Release",
    ".sampled_gradients": "SampledGradients",
    ".sketches": "SliceSketch",
    ".sliced_rows": "SlicedRows",
    ".two_way_tables": "TwoWayTables",
}
__getattr__, __dir__, __all__ = import_late(__name__, _HOMES)
