"""Differentially private generative models by optimal transport, as scikit-learn estimators."""

from ._version import __version__
from .adaptation import DPSWDDomainAdapter
from .generators import (
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    LDPEntropicGAN,
)
from .preprocessing import DPPCA, LocalPrivatizer
from .privacy import PrivacyBudget

__all__ = [
    "DPPCA",
    "DPAFGenerator",
    "DPSWDDomainAdapter",
    "DPSWFlowSampler",
    "DPSinkhornGenerator",
    "DPSlicedWassersteinGenerator",
    "LDPEntropicGAN",
    "LocalPrivatizer",
    "PrivacyBudget",
    "__version__",
]
