# SPDX-License-Identifier: BSD-3-Clause
"""How useful synthetic data are: scores, a report, displays."""

from ._curves import PrivacyProfileDisplay, UtilityCurveDisplay
from ._displays import MarginalsDisplay, PairwiseDisplay, SyntheticSamplesDisplay
from ._distances import frechet_distance
from ._downstream import train_on_synthetic_score
from ._report import Report, report

__all__ = [
    "MarginalsDisplay",
    "PairwiseDisplay",
    "PrivacyProfileDisplay",
    "Report",
    "SyntheticSamplesDisplay",
    "UtilityCurveDisplay",
    "frechet_distance",
    "report",
    "train_on_synthetic_score",
]
