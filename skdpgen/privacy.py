# SPDX-License-Identifier: BSD-3-Clause
"""Public names of accounting, mechanisms, the curator and audits."""

from .accounting.accountants import ledger_delta, ledger_epsilon
from .accounting.budget import PrivacyBudget
from .accounting.calibration import (
    calibrate_gaussian,
    calibrate_sliced_gaussian,
    sliced_gaussian_epsilon,
)
from .accounting.certificate import Certificate, compose
from .accounting.directions import SensitivityLaw, sensitivity_bound, sensitivity_law
from .accounting.events import (
    DiameterGaussianDpEvent,
    SharedGaussianDpEvent,
    SlicedGaussianDpEvent,
    ThresholdDpEvent,
)
from .accounting.plan import Plan, gaussian_plan, repeated_plan
from .accounting.previews import preview
from .accounting.selection import select_best, selection_plan
from .accounting.signatures import sign
from .accounting.verification import verify
from .audit.base import ReleaseAudit
from .audit.fits import FitAudit, audit_fit
from .audit.releases import AuditReport, audit
from .curator.curator import Curator
from .curator.record_functions import BatchFunction, PullingFunction, RecordFunction
from .engines.files import TableFile
from .exceptions import (
    BudgetExceededError,
    FitQualityWarning,
    PlanError,
    PrivacyLeakWarning,
    SpentError,
    TableError,
)
from .federated.fit import FederatedFit
from .federated.secure_aggregation import Aggregator, Client, MaskedUpdate
from .federated.sharing import Sharing
from .mechanisms.aggregates import ForwardAggregateMechanism, NoisyAggregate
from .mechanisms.base import SumMechanism
from .mechanisms.gradients import ClassCountsMechanism, ClippedGradientMechanism, NoisyGradient
from .mechanisms.local import (
    LocalLabelsMechanism,
    LocalRowsMechanism,
    NoisedLabels,
    NoisedRows,
    local_plan,
)
from .mechanisms.noise import NoiseSource
from .mechanisms.sampled import ProjectedRows, SampledMechanism, SlicedRowsMechanism
from .mechanisms.sums import (
    CategoryCountsMechanism,
    CovarianceMechanism,
    GaussianSumMechanism,
    Sketch,
    SliceSketchMechanism,
)
from .mechanisms.tables import Tables, TablesMechanism
from .mechanisms.three_way import ThreeWayMechanism, ThreeWayTables

__all__ = [
    "Aggregator",
    "AuditReport",
    "BatchFunction",
    "BudgetExceededError",
    "CategoryCountsMechanism",
    "Certificate",
    "ClassCountsMechanism",
    "Client",
    "ClippedGradientMechanism",
    "CovarianceMechanism",
    "Curator",
    "DiameterGaussianDpEvent",
    "FederatedFit",
    "FitAudit",
    "FitQualityWarning",
    "ForwardAggregateMechanism",
    "GaussianSumMechanism",
    "LocalLabelsMechanism",
    "LocalRowsMechanism",
    "MaskedUpdate",
    "NoiseSource",
    "NoisedLabels",
    "NoisedRows",
    "NoisyAggregate",
    "NoisyGradient",
    "Plan",
    "PlanError",
    "PrivacyBudget",
    "PrivacyLeakWarning",
    "ProjectedRows",
    "PullingFunction",
    "RecordFunction",
    "ReleaseAudit",
    "SampledMechanism",
    "SensitivityLaw",
    "SharedGaussianDpEvent",
    "Sharing",
    "Sketch",
    "SliceSketchMechanism",
    "SlicedGaussianDpEvent",
    "SlicedRowsMechanism",
    "SpentError",
    "SumMechanism",
    "TableError",
    "TableFile",
    "Tables",
    "TablesMechanism",
    "ThreeWayMechanism",
    "ThreeWayTables",
    "ThresholdDpEvent",
    "audit",
    "audit_fit",
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
    "sign",
    "sliced_gaussian_epsilon",
    "verify",
]
