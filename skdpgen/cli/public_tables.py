# SPDX-License-Identifier: BSD-3-Clause
"""Public tables from the options of a command."""

from argparse import Namespace
from collections.abc import Mapping

import pandas as pd

from ..engines.files import find_form
from ..tables.columns import Unknown
from ..tables.columns.texts import parse_cells
from ..tables.public_tables import read_public as read_columns
from ..tables.schema import Schema
from .tables import check_table, list_given, open_table, read_style, read_styles


def read_public(
    options: Namespace, schema: Schema | None = None, known: Mapping | None = None
) -> pd.DataFrame:
    """Read a public table; without a schema, columns have the type of nearly all of their cells.

    `known` is how the texts of columns are written.
    """
    check_table(options)
    file = open_table(options, lambda texts: texts)
    file.names()
    frame = pd.concat(list(file()), ignore_index=True)
    first = list_given(options)[0]
    if frame.empty:
        raise ValueError(f"{first} has no rows below its column names.")
    if find_form(first) == "Parquet":
        return frame
    styles = dict.fromkeys(frame, read_style(options))
    styles |= read_styles(getattr(options, "schema", None)) if known is None else known
    declared = {name: column for name, column in (schema or {}).items() if name in frame}
    types = {**dict.fromkeys(frame, Unknown()), **declared}
    parsed = {n: parse_cells(frame[[n]], types, styles[n])[n].infer_objects() for n in frame}
    read = read_columns(pd.DataFrame({n: parsed[n] for n in frame if n not in declared}), styles)
    return pd.DataFrame({**parsed, **read})
