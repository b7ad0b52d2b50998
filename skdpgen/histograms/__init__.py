# SPDX-License-Identifier: BSD-3-Clause
"""Noisy histograms of numbers, of arrays and of tables: grids, and the ranges that they show."""
