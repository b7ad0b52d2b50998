# SPDX-License-Identifier: BSD-3-Clause
"""Schemas, column types and rules of tables."""

from .._lazy import import_late
from .columns import Boolean, Category, Date, Identifier, Number, Ordinal, Unknown
from .rules.rules import Combinations, Derived, Implies, Ordered, Unique
from .sampling import sample_from_schema
from .schema import Schema

__all__ = [
    "Boolean",
    "Category",
    "Combinations",
    "Date",
    "Derived",
    "Identifier",
    "Implies",
    "Number",
    "Ordered",
    "Ordinal",
    "Schema",
    "Unique",
    "Unknown",
    "sample_from_schema",
    "suggest_rules",
]
__getattr__, *_ = import_late(__name__, {".suggestions": "suggest_rules"})
