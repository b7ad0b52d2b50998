# SPDX-License-Identifier: BSD-3-Clause
"""What can be released."""
