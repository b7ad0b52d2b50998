# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private generative models by optimal transport, as scikit-learn estimators."""

from importlib import import_module
from typing import TYPE_CHECKING

from ._version import __version__

if TYPE_CHECKING:
    from .accounting.budget import PrivacyBudget
    from .adaptation import DPSWDDomainAdapter
    from .encoders import PrivatePCA
    from .generators import (
        DPAFGenerator,
        DPSinkhornGenerator,
        DPSlicedWassersteinGenerator,
        DPSWFlowSampler,
        LDPEntropicGAN,
    )
    from .losses import EntropicWasserstein, SemiDebiasedSinkhorn, SinkhornDivergence, Wasserstein
    from .preprocessing import DPPCA, LocalPrivatizer
    from .releases import ForwardAggregates, LocalNoise, SampledGradients, SlicedRows, SliceSketch
    from .serialization import load
    from .tables import (
        Boolean,
        Category,
        Combinations,
        Date,
        Derived,
        Identifier,
        Implies,
        Number,
        Ordered,
        Ordinal,
        Schema,
        Unique,
        Unknown,
    )

__all__ = [
    "DPPCA",
    "Boolean",
    "Category",
    "Combinations",
    "DPAFGenerator",
    "DPSWDDomainAdapter",
    "DPSWFlowSampler",
    "DPSinkhornGenerator",
    "DPSlicedWassersteinGenerator",
    "Date",
    "Derived",
    "EntropicWasserstein",
    "ForwardAggregates",
    "Identifier",
    "Implies",
    "LDPEntropicGAN",
    "LocalNoise",
    "LocalPrivatizer",
    "Number",
    "Ordered",
    "Ordinal",
    "PrivacyBudget",
    "PrivatePCA",
    "SampledGradients",
    "Schema",
    "SemiDebiasedSinkhorn",
    "SinkhornDivergence",
    "SliceSketch",
    "SlicedRows",
    "Unique",
    "Unknown",
    "Wasserstein",
    "__version__",
    "load",
]

# Modules that define these names.
HOMES = (
    "tables",
    "accounting.budget",
    "encoders",
    "losses",
    "releases",
    "preprocessing",
    "generators",
    "adaptation",
    "serialization",
)

# Modules of engines, by the top-level package of their tables. Each is imported with the first
# such table, and registers a class by `skdpgen.curator.tables.register_engine`.
ENGINES = {"dask": "skdpgen.engines.dask", "pyspark": "skdpgen.engines.spark"}


def __getattr__(name):
    """Import what is asked for once it is: torch takes seconds, and ``--help`` needs none of it."""
    if name in __all__:
        homes = (import_module(f"{__name__}.{home}") for home in HOMES)
        value = next(getattr(home, name) for home in homes if hasattr(home, name))
        globals()[name] = value
        return value
    if not name.startswith("_"):
        module = f"{__name__}.{name}"
        try:
            return import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    homes = {home.partition(".")[0] for home in HOMES}
    return sorted({*globals(), *__all__, *homes, "privacy"})
