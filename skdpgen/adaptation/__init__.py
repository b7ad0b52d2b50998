"""Domain adaptation from public, labelled rows to private, unlabelled ones."""

from ._domain_adapter import DPSWDDomainAdapter, DPSWDDomainClassifier
from ._domains import Whole, split_domains

__all__ = ["DPSWDDomainAdapter", "DPSWDDomainClassifier", "Whole", "split_domains"]
