"""The only rooms that see private rows: the curator, its mechanisms, and the accounting."""

from .accounting import ledger_delta, ledger_epsilon
from .aggregate_mechanisms import ForwardAggregate, NoisyAggregate
from .budget import PrivacyBudget
from .calibration import calibrate_gaussian, calibrate_sliced_gaussian, sliced_gaussian_epsilon
from .certificate import Certificate, compose, preview, verify
from .curator import Curator
from .directions import SensitivityLaw, sensitivity_bound, sensitivity_law
from .events import DiameterGaussianDpEvent, SlicedGaussianDpEvent, ThresholdDpEvent
from .exceptions import (
    BudgetExceededError,
    FitQualityWarning,
    PlanError,
    PrivacyLeakWarning,
    SpentError,
    TableError,
)
from .files import TableFile
from .gradient_mechanisms import ClassCounts, ClippedGradient, NoisyGradient
from .local_mechanisms import LocalLabels, LocalRows, NoisedLabels, NoisedRows, local_plan
from .mechanisms import (
    CategoryCounts,
    GaussianSum,
    NoisyCovariance,
    NoisyTables,
    Sketch,
    SliceSketch,
    SumMechanism,
    Tables,
)
from .noise import NoiseSource
from .plan import Plan, gaussian_plan, repeated_plan
from .sampled_mechanisms import ProjectedRows, SampledMechanism, SlicedRows
from .selection import select_best, selection_plan

__all__ = [
    "BudgetExceededError",
    "CategoryCounts",
    "Certificate",
    "ClassCounts",
    "ClippedGradient",
    "Curator",
    "DiameterGaussianDpEvent",
    "FitQualityWarning",
    "ForwardAggregate",
    "GaussianSum",
    "LocalLabels",
    "LocalRows",
    "NoiseSource",
    "NoisedLabels",
    "NoisedRows",
    "NoisyAggregate",
    "NoisyCovariance",
    "NoisyGradient",
    "NoisyTables",
    "Plan",
    "PlanError",
    "PrivacyBudget",
    "PrivacyLeakWarning",
    "ProjectedRows",
    "SampledMechanism",
    "SensitivityLaw",
    "Sketch",
    "SliceSketch",
    "SlicedGaussianDpEvent",
    "SlicedRows",
    "SpentError",
    "SumMechanism",
    "TableError",
    "TableFile",
    "Tables",
    "ThresholdDpEvent",
    "calibrate_gaussian",
    "calibrate_sliced_gaussian",
    "compose",
    "gaussian_plan",
    "ledger_delta",
    "ledger_epsilon",
    "local_plan",
    "preview",
    "repeated_plan",
    "select_best",
    "selection_plan",
    "sensitivity_bound",
    "sensitivity_law",
    "sliced_gaussian_epsilon",
    "verify",
]
