# SPDX-License-Identifier: BSD-3-Clause
"""State of the process: forks, warnings and defaults of libraries."""
