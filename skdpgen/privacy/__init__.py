# SPDX-License-Identifier: BSD-3-Clause
"""The only room that sees private rows: the curator and its mechanisms. Accounting, re-exported."""

from ..accounting.accountants import ledger_delta, ledger_epsilon
from ..accounting.budget import PrivacyBudget
from ..accounting.calibration import (
    calibrate_gaussian,
    calibrate_sliced_gaussian,
    sliced_gaussian_epsilon,
)
from ..accounting.certificate import Certificate, compose
from ..accounting.directions import SensitivityLaw, sensitivity_bound, sensitivity_law
from ..accounting.events import (
    DiameterGaussianDpEvent,
    SharedGaussianDpEvent,
    SlicedGaussianDpEvent,
    ThresholdDpEvent,
)
from ..accounting.plan import Plan, gaussian_plan, repeated_plan
from ..accounting.previews import preview
from ..accounting.selection import select_best, selection_plan
from ..accounting.sharing import Sharing
from ..accounting.signatures import sign
from ..accounting.verification import verify
from ..exceptions import (
    BudgetExceededError,
    FitQualityWarning,
    PlanError,
    PrivacyLeakWarning,
    SpentError,
    TableError,
)
from .audit import AuditReport, audit
from .auditing.findings import ReleaseAudit
from .curator import Curator
from .files import TableFile
from .fit_audit import FitAudit, audit_fit
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
from .noise import NoiseSource
from .owners import Adder, Contribution, JointFit, Owner
from .record_functions import BatchFunction, PullingFunction, RecordFunction

__all__ = [
    "Adder",
    "AuditReport",
    "BatchFunction",
    "BudgetExceededError",
    "CategoryCountsMechanism",
    "Certificate",
    "ClassCountsMechanism",
    "ClippedGradientMechanism",
    "Contribution",
    "CovarianceMechanism",
    "Curator",
    "DiameterGaussianDpEvent",
    "FitAudit",
    "FitQualityWarning",
    "ForwardAggregateMechanism",
    "GaussianSumMechanism",
    "JointFit",
    "LocalLabelsMechanism",
    "LocalRowsMechanism",
    "NoiseSource",
    "NoisedLabels",
    "NoisedRows",
    "NoisyAggregate",
    "NoisyGradient",
    "Owner",
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
