# SPDX-License-Identifier: BSD-3-Clause
"""Two tables that belong together: persons, and their rows in order."""
