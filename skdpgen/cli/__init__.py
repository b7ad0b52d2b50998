# SPDX-License-Identifier: BSD-3-Clause
"""Command line: parser, commands, tables and outputs.

Only `parser` is imported before the arguments are parsed, so that ``--help`` is fast.
"""
