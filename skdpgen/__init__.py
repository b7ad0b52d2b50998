"""Differentially private generative models by optimal transport, as scikit-learn estimators."""

from ._saving import load
from ._version import __version__
from .adaptation import DPSWDDomainAdapter
from .encoders import PrivatePCA
from .formats import Boolean, Category, Date, Identifier, Number, Ordinal, Schema, Unknown
from .generators import (
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    LDPEntropicGAN,
)
from .losses import EntropicWasserstein, SemiDebiasedSinkhorn, SinkhornDivergence, Wasserstein
from .preprocessing import DPPCA, LocalPrivatizer
from .privacy import PrivacyBudget
from .releases import ForwardAggregates, LocalNoise, SampledGradients, SlicedRows, SliceSketch

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
    "EntropicWasserstein",
    "ForwardAggregates",
    "Identifier",
    "LDPEntropicGAN",
    "LocalNoise",
    "LocalPrivatizer",
    "Number",
    "Ordinal",
    "PrivacyBudget",
    "PrivatePCA",
    "SampledGradients",
    "Schema",
    "SemiDebiasedSinkhorn",
    "SinkhornDivergence",
    "SliceSketch",
    "SlicedRows",
    "Unknown",
    "Wasserstein",
    "__version__",
    "load",
]
