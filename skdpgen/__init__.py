"""Differentially private generative models by optimal transport, as scikit-learn estimators."""

from ._version import __version__
from .generators import DPSlicedWassersteinGenerator, DPSWFlowSampler
from .preprocessing import DPPCA
from .privacy import PrivacyBudget

__all__ = [
    "DPPCA",
    "DPSWFlowSampler",
    "DPSlicedWassersteinGenerator",
    "PrivacyBudget",
    "__version__",
]
