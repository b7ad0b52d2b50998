# SPDX-License-Identifier: BSD-3-Clause
"""Adapters of tables in files and in engines, one file each; `skdpgen.ENGINES` lists engines."""
