# SPDX-License-Identifier: BSD-3-Clause
"""Mechanisms: noisy releases of records, and exact samplers of their noise."""
