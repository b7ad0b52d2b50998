# SPDX-License-Identifier: BSD-3-Clause
"""Public functions of one cell, frame or file."""
