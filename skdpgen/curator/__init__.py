# SPDX-License-Identifier: BSD-3-Clause
"""The curator: the only code that reads private rows."""
