# SPDX-License-Identifier: BSD-3-Clause
"""Column types, one file each. A new type is added to `TYPES`: see `ColumnType`."""

from .boolean import Boolean
from .category import Category, Ordinal
from .date import Date
from .identifier import Identifier
from .number import Number
from .unknown import Unknown

# Column types by their name in dicts and JSON. Public columns are of the first one that knows them.
TYPES = {
    cls.__name__.lower(): cls
    for cls in (Number, Category, Ordinal, Boolean, Date, Identifier, Unknown)
}
