# SPDX-License-Identifier: BSD-3-Clause
"""Schemas, column types and rules of tables."""

from .columns.identifiers import Identifier
from .columns.types import Boolean, Category, Date, Number, Ordinal, Unknown
from .rules.rules import Combinations, Derived, Implies, Ordered, Unique
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
]
