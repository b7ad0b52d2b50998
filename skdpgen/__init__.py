# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private generative models by optimal transport, as scikit-learn estimators."""

from importlib import import_module
from typing import TYPE_CHECKING

from ._process import forking as forking  # registers hooks of forked children
from ._version import __version__ as __version__

if TYPE_CHECKING:
    from .accounting.budget import PrivacyBudget
    from .accounting.composition import compose
    from .accounting.previews import preview
    from .accounting.verification import verify
    from .adaptation import DPSWDDomainAdapter
    from .auditing.releases import audit
    from .generators import (
        DPAFGenerator,
        DPSinkhornGenerator,
        DPSlicedWassersteinGenerator,
        DPSWFlowSampler,
        LDPEntropicGAN,
    )
    from .saving.serialization import load
    from .tables import Boolean, Category, Date, Identifier, Number, Ordinal, Schema, Unknown

__all__ = [
    "Boolean",
    "Category",
    "DPAFGenerator",
    "DPSWDDomainAdapter",
    "DPSWFlowSampler",
    "DPSinkhornGenerator",
    "DPSlicedWassersteinGenerator",
    "Date",
    "Identifier",
    "LDPEntropicGAN",
    "Number",
    "Ordinal",
    "PrivacyBudget",
    "Schema",
    "Unknown",
    "audit",
    "compose",
    "load",
    "preview",
    "verify",
]

# Where public names are defined.
_DEFINED = {
    "PrivacyBudget": "accounting.budget",
    "audit": "auditing.releases",
    "compose": "accounting.composition",
    "load": "saving.serialization",
    "preview": "accounting.previews",
    "verify": "accounting.verification",
    "DPSWDDomainAdapter": "adaptation",
}
_DEFINED |= dict.fromkeys(("DPAFGenerator", "DPSWFlowSampler", "DPSinkhornGenerator"), "generators")
_DEFINED |= dict.fromkeys(("DPSlicedWassersteinGenerator", "LDPEntropicGAN"), "generators")
# Modules whose other public names can be imported from here, too, and hold savable classes.
HOMES = (
    "tables",
    "generators",
    "adaptation",
    "releases",
    "losses",
    "encoders",
    "preprocessing",
    "streams",
)

# Modules and classes of engines, by the top-level package of their tables; imported with the first.
ENGINES = {
    "dask": ("skdpgen.engines.dask", "DaskTable"),
    "pyspark": ("skdpgen.engines.spark", "SparkTable"),
}


def __getattr__(name):
    """Import a name on first use: torch takes seconds, and ``--help`` needs none of it."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in __all__:
        module = f"{__name__}.{name}"
        try:
            return import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
    for home in (_DEFINED[name],) if name in _DEFINED else HOMES:
        module = import_module(f"{__name__}.{home}")
        if name in _DEFINED or name in module.__all__:
            value = globals()[name] = getattr(module, name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*__all__, "__version__"])
