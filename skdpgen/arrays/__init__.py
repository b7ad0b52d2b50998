# SPDX-License-Identifier: BSD-3-Clause
"""Formats of arrays: bounds, balls and their private inference."""
