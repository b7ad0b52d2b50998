# SPDX-License-Identifier: BSD-3-Clause
"""Numbers only: events, accountants, calibration, plans, certificates and budgets. No rows."""

__all__ = []
