# SPDX-License-Identifier: BSD-3-Clause
"""What the command line is made of. Only `parser` is imported before it is known what is asked."""
