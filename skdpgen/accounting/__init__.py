# SPDX-License-Identifier: BSD-3-Clause
"""Privacy accounting: events, accountants, calibration, plans, certificates and budgets.

It uses public numbers only, and never reads rows.
"""

__all__ = []
