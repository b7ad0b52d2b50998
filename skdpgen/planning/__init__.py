# SPDX-License-Identifier: BSD-3-Clause
"""Plans of fits, from public numbers only, and their rehearsal."""
