# SPDX-License-Identifier: BSD-3-Clause
"""Column types: encoding and decoding of cells."""
