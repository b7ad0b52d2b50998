# SPDX-License-Identifier: BSD-3-Clause
"""Adapters of tables in files and in engines, one file each; `skdpgen.ENGINES` lists engines."""

from .._lazy import import_late

__getattr__, __dir__, __all__ = import_late(__name__, {".warehouse": "Warehouse sql"})
