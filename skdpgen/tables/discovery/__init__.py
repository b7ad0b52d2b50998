# SPDX-License-Identifier: BSD-3-Clause
"""Private discovery of a schema: column types, ranges, knots and categories."""
