# SPDX-License-Identifier: BSD-3-Clause
"""Public tables from the options of a command."""

from argparse import Namespace

import pandas as pd

from ..data.names import name_cell
from ..data.texts import MISSING_TEXTS, TextStyle
from ..tables.columns.texts import parse_cells, read_cell
from ..tables.schema import Schema
from .outputs import is_parquet
from .tables import check_table, list_given, open_table, read_style, read_styles


def read_public(options: Namespace, schema: Schema | None = None) -> pd.DataFrame:
    """Read a public table; without a schema, columns have the type of all of their cells."""
    check_table(options)
    file = open_table(options, lambda texts: texts)
    file.names()
    frame = pd.concat(list(file()), ignore_index=True)
    first = list_given(options)[0]
    if frame.empty:
        raise ValueError(f"{first} has no rows below its column names.")
    if is_parquet(first):
        return frame
    path = getattr(options, "schema", None)
    styles = dict.fromkeys(frame, read_style(options)) | read_styles(path)
    return pd.DataFrame(
        {
            name: _parse_public(frame[name], styles[name])
            if schema is None or name not in schema
            # Dates get their dtype: as objects they would be compared as texts.
            else parse_cells(frame[[name]], schema, styles[name])[name].infer_objects()
            for name in frame
        }
    )


def _parse_public(cells: pd.Series, style: TextStyle) -> pd.Series:
    types, values = zip(*(read_cell(cell, style) for cell in cells), strict=True)
    known = set(types) - {"missing"}
    if known and known <= {"whole", "number"}:
        return pd.Series(values, dtype="float64")
    if known == {"date"}:
        return pd.Series(values, dtype="datetime64[us]")
    if known == {"boolean"}:
        return pd.Series(values, dtype=object)
    texts = cells.map(lambda cell: cell.strip() if isinstance(cell, str) else name_cell(cell))
    return texts.astype(object).where(~texts.isin(MISSING_TEXTS), None)
