# SPDX-License-Identifier: BSD-3-Clause
"""Federated fits by secure aggregation with distributed noise (experimental)."""
