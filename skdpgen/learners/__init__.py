# SPDX-License-Identifier: BSD-3-Clause
"""Learners of releases: they read no private row."""

__all__ = []
