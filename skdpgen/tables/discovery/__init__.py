# SPDX-License-Identifier: BSD-3-Clause
"""Private inference of column types, ranges and categories."""
