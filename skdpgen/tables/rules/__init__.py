# SPDX-License-Identifier: BSD-3-Clause
"""Constraints on synthetic rows."""
