# SPDX-License-Identifier: BSD-3-Clause
"""Checks for authors of estimators that sample."""

from .estimator_checks import check_generator, yield_checks

__all__ = ["check_generator", "yield_checks"]
