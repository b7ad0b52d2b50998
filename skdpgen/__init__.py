"""Differentially private generative models by optimal transport, as scikit-learn estimators."""

from ._version import __version__
from .accounting.budget import PrivacyBudget
from .adaptation import DPSWDDomainAdapter
from .formats import Boolean, Category, Date, Number, Ordinal, Schema, Unknown
from .generators import (
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    LDPEntropicGAN,
)
from .preprocessing import DPPCA, LocalPrivatizer

__all__ = [
    "DPPCA",
    "Boolean",
    "Category",
    "DPAFGenerator",
    "DPSWDDomainAdapter",
    "DPSWFlowSampler",
    "DPSinkhornGenerator",
    "DPSlicedWassersteinGenerator",
    "Date",
    "LDPEntropicGAN",
    "LocalPrivatizer",
    "Number",
    "Ordinal",
    "PrivacyBudget",
    "Schema",
    "Unknown",
    "__version__",
]
