# SPDX-License-Identifier: BSD-3-Clause
"""Checks for authors of estimators that sample."""

from .estimator_checks import check_generator, validate_network, yield_checks

__all__ = ["check_generator", "validate_network", "yield_checks"]
