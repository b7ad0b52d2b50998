# SPDX-License-Identifier: BSD-3-Clause
"""Public names of accounting, mechanisms, the curator and audits."""

from typing import TYPE_CHECKING

from ._lazy import import_late
from .accounting.accountants import ledger_delta, ledger_epsilon
from .accounting.budget import PrivacyBudget
from .accounting.calibration import calibrate_gaussian, calibrate_noise
from .accounting.certificate import Certificate
from .accounting.composition import compose
from .accounting.directions import sensitivity_law
from .accounting.events import (
    DegradedGaussianDpEvent,
    DiameterGaussianDpEvent,
    SlicedGaussianDpEvent,
    ThresholdDpEvent,
)
from .accounting.plan import Plan, Terms, gaussian_plan, repeated_plan
from .accounting.previews import preview
from .accounting.selection import select_best, selection_plan
from .accounting.verification import sign, verify
from .curator.curator import Curator
from .data.record_functions import BatchFunction, PullingFunction, RecordFunction
from .exceptions import (
    BudgetExceededError,
    FitQualityWarning,
    PlanError,
    PrivacyLeakWarning,
    SpentError,
    TableError,
)
from .mechanisms.aggregates import ForwardAggregateMechanism
from .mechanisms.base import SumMechanism
from .mechanisms.categories import CategoryCountsMechanism
from .mechanisms.gradients import ClippedGradientMechanism
from .mechanisms.local import LocalLabelsMechanism, LocalRowsMechanism, local_plan
from .mechanisms.multi_way import MultiWayMechanism
from .mechanisms.noise import NoiseSource
from .mechanisms.sampled import SampledMechanism, SlicedRowsMechanism
from .mechanisms.sums import (
    ClassCountsMechanism,
    CovarianceMechanism,
    GaussianSumMechanism,
    SliceSketchMechanism,
)
from .mechanisms.two_way import TablesMechanism

if TYPE_CHECKING:
    from .auditing.fits import FitAudit, audit_fit
    from .auditing.mechanism_audit import ReleaseAudit
    from .auditing.releases import AuditReport, audit
    from .engines.files import TableFile
    from .evaluation._forecasts import preview_tables
    from .generators._schema_inference import InferredSchema, infer_schema
    from .mechanisms.laplace import LaplaceSumMechanism

# Names of modules that no fit needs; they are imported on first use.
_LEAVES = {
    "..auditing.fits": "FitAudit audit_fit",
    "..auditing.mechanism_audit": "ReleaseAudit",
    "..auditing.releases": "AuditReport audit",
    "..engines.files": "TableFile",
    "..evaluation._forecasts": "preview_tables",
    "..generators._schema_inference": "InferredSchema infer_schema",
    "..mechanisms.laplace": "LaplaceSumMechanism",
}

__all__ = [  # noqa: RUF022
    # Certificates and budgets.
    "Certificate",
    "InferredSchema",
    "PrivacyBudget",
    "compose",
    "infer_schema",
    "preview",
    "preview_tables",
    "sign",
    "verify",
    # Errors and warnings.
    "BudgetExceededError",
    "FitQualityWarning",
    "PlanError",
    "PrivacyLeakWarning",
    "SpentError",
    "TableError",
    # Audits.
    "AuditReport",
    "FitAudit",
    "ReleaseAudit",
    "audit",
    "audit_fit",
    # Files.
    "TableFile",
    # Calibration and composition.
    "calibrate_gaussian",
    "calibrate_noise",
    "ledger_delta",
    "ledger_epsilon",
    "sensitivity_law",
    # Events.
    "DegradedGaussianDpEvent",
    "DiameterGaussianDpEvent",
    "SlicedGaussianDpEvent",
    "ThresholdDpEvent",
    # Plans.
    "Plan",
    "Terms",
    "gaussian_plan",
    "local_plan",
    "repeated_plan",
    "select_best",
    "selection_plan",
    # Access to private rows.
    "BatchFunction",
    "Curator",
    "NoiseSource",
    "PullingFunction",
    "RecordFunction",
    # Mechanisms.
    "CategoryCountsMechanism",
    "ClassCountsMechanism",
    "ClippedGradientMechanism",
    "CovarianceMechanism",
    "ForwardAggregateMechanism",
    "GaussianSumMechanism",
    "LaplaceSumMechanism",
    "LocalLabelsMechanism",
    "LocalRowsMechanism",
    "SampledMechanism",
    "SliceSketchMechanism",
    "SlicedRowsMechanism",
    "SumMechanism",
    "TablesMechanism",
    "MultiWayMechanism",
]


__getattr__, *_ = import_late(__name__, _LEAVES)
