"""Domain adaptation from public, labelled rows to private, unlabelled ones."""

from ._domain_adapter import DPSWDDomainAdapter
from ._domain_classifier import DPSWDDomainClassifier
from ._domains import Whole, split_domains
from ._private_search import private_search, reverse_validation_score

__all__ = [
    "DPSWDDomainAdapter",
    "DPSWDDomainClassifier",
    "Whole",
    "private_search",
    "reverse_validation_score",
    "split_domains",
]
