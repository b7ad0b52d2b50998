# SPDX-License-Identifier: BSD-3-Clause
"""Public tables, whose cells are read as those of private tables are."""

import numpy as np
import pandas as pd
from pandas.api.types import is_object_dtype

from ..data.cells import read_column
from ..data.names import map_cells, name_cell
from ..data.texts import PLAIN
from .columns.texts import parse_column
from .discovery.type_inference import COUNTED, encode_column, find_types


def read_public(table, styles=None):
    """Read the texts and objects of a public table as those of private ones are read.

    Types follow from exact counts by the rule that is used for noisy ones. Texts of categories
    stay; cells that are not of the type of their column become missing.

    Parameters
    ----------
    table : DataFrame
    styles : dict of str to TextStyle, default=None
        How texts are written, where it is known. Default: as `Unknown` has it.
    """
    known, cells, counts = styles or {}, {}, []
    unknown = {
        name: known.get(name, PLAIN)
        for name, dtype in table.dtypes.items()
        if is_object_dtype(dtype) or isinstance(dtype, pd.StringDtype)
    }
    for name, style in unknown.items():
        # Cells of objects are those of Python.
        is_object = is_object_dtype(table[name])
        cells[name] = read_column(table[name], style) if is_object else table[name]
        counts.append(np.bincount(encode_column(cells[name], style), minlength=len(COUNTED)))
    counts = np.reshape(counts, (-1, len(COUNTED))).astype(np.float64)
    types, styles, _ = find_types(unknown, counts, 0.0, len(table))
    for name, style in styles.items():
        # Words of booleans, which are open there, are not needed: their cells are read as values.
        held = types[name].cell_types or types[name].example().cell_types
        if held is not None:
            parsed = read_column(parse_column(cells[name], held, style), style)
            is_boolean = isinstance(parsed.dtype, pd.CategoricalDtype)
            cells[name] = parsed.astype(object) if is_boolean else parsed
        elif is_object_dtype(table[name]):
            cells[name] = pd.Series(map_cells(name_cell, cells[name]), dtype=object)
    return table.assign(**{name: column.array for name, column in cells.items()})
