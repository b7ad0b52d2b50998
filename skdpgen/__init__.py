"""Differentially private generative models by optimal transport, as scikit-learn estimators."""

from ._version import __version__
from .generators import DPSlicedWassersteinGenerator
from .privacy import PrivacyBudget

__all__ = ["DPSlicedWassersteinGenerator", "PrivacyBudget", "__version__"]
