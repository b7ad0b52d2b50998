# SPDX-License-Identifier: BSD-3-Clause
"""What is fitted to releases. Learners see no private row."""

__all__ = []
