# SPDX-License-Identifier: BSD-3-Clause
"""Schemas, column types and rules of tables."""

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
]
