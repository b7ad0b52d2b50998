# SPDX-License-Identifier: BSD-3-Clause
"""What is public of the data: columns, schemas, and the maps between rows and what is learnt."""

from .columns import Boolean, Category, Date, Number, Ordinal, Unknown
from .identifiers import Identifier
from .rules import Combinations, Derived, Implies, Ordered, Unique
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
