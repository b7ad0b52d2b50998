# SPDX-License-Identifier: BSD-3-Clause
"""How claims are audited: mechanisms run again and again, and what their outcomes show."""

from dp_accounting import NonPrivateDpEvent

from ..accounting.events import split_sampling
from ..mechanisms.local import LocalLabelsMechanism, LocalRowsMechanism
from .gaussian import GaussianAudit
from .local import LabelsAudit, RowsAudit


def audit_release(mechanism, source, event, relation, **how):
    """Return a `ReleaseAudit`, or None for a release without noise, of which nothing is claimed.

    Parameters are those of `WhiteBox`.
    """
    kind = GaussianAudit
    if isinstance(mechanism, LocalLabelsMechanism):
        kind = LabelsAudit
    elif isinstance(mechanism, LocalRowsMechanism):
        kind = RowsAudit
    if isinstance(split_sampling(event)[0], NonPrivateDpEvent):
        return None
    return kind(mechanism, source, event, relation, **how).audit()
