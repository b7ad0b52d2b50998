# SPDX-License-Identifier: BSD-3-Clause
"""Generators behind the interfaces of other libraries, which are imported with each module."""
