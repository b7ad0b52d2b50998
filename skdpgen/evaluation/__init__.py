# SPDX-License-Identifier: BSD-3-Clause
"""Utility of synthetic data: scores and a report."""

from ._distances import wasserstein_distance
from ._histories import join_histories
from ._report import Report, report
from ._scores import train_on_synthetic_score

__all__ = [
    "Report",
    "join_histories",
    "report",
    "train_on_synthetic_score",
    "wasserstein_distance",
]
