# SPDX-License-Identifier: BSD-3-Clause
"""Estimates and confidence intervals from released tables."""

from .estimates import estimate, estimate_quantiles

__all__ = ["estimate", "estimate_quantiles"]
