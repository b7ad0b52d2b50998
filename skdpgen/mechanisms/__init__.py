# SPDX-License-Identifier: BSD-3-Clause
"""Mechanisms: releases with noise, and exact samplers of that noise."""
