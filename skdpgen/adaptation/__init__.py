# SPDX-License-Identifier: BSD-3-Clause
"""Domain adaptation from a public, labelled source to a private, unlabelled target."""

from ._domain_adapter import DPSWDDomainAdapter
from ._domain_classifier import DPSWDDomainClassifier
from ._domains import Whole
from ._private_search import PrivateSearch, get_scorer, reverse_validation_score

__all__ = [
    "DPSWDDomainAdapter",
    "DPSWDDomainClassifier",
    "PrivateSearch",
    "Whole",
    "get_scorer",
    "reverse_validation_score",
]
