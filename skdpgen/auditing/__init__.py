# SPDX-License-Identifier: BSD-3-Clause
"""Privacy audits: lower bounds on ε, with confidence, from repeated runs of mechanisms and fits."""

from .fits import FitAudit, audit_fit
from .mechanism_audit import ReleaseAudit
from .releases import AuditReport, audit

__all__ = ["AuditReport", "FitAudit", "ReleaseAudit", "audit", "audit_fit"]
