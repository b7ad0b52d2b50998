# SPDX-License-Identifier: BSD-3-Clause
"""Candidates for point masses from noisy counts of frequent values."""

import pandas as pd

from ...data.texts import PLAIN
from ...mechanisms.frequent_values import FrequentValuesMechanism
from ..columns.texts import read_cell
from ..columns.values import find_farthest
from .point_masses import CONSTANTS

# The release.
FREQUENT = FrequentValuesMechanism.name


def release_frequent(curator, schema, kinds, styles):
    """Release the frequent values of open numbers and dates.

    Parameters
    ----------
    curator : Curator
    schema : Schema
        Its columns are those of the cells.
    kinds : dict of str to Number or Date
        The columns, with the units in which they are counted.
    styles : dict of str to TextStyle
        How columns of texts are written.

    Returns
    -------
    dict of str to list of float
    """
    # At least one column is counted, since what is spent must not depend on the records.
    opened = {name: kind for name, kind in kinds.items() if kind.atoms is None}
    names = [name for name in schema.names if name in opened] or schema.names[:1]
    mechanism = FrequentValuesMechanism({name: schema.names.index(name) for name in names})
    counts = curator.release(mechanism)
    return {
        name: read_frequent(kinds[name], counts[name], styles.get(name, PLAIN))
        for name in names
        if name in kinds
    }


def read_frequent(kind, counts, style=PLAIN):
    """Return values of a column that may be point masses, the most frequent first.

    Parameters
    ----------
    kind : Number or Date
        As declared, perhaps without bounds.
    counts : dict of str to float
        Noisy counts of the names of cells.
    style : TextStyle, default=PLAIN
        How texts are written.

    Returns
    -------
    list of int or float
        Numbers, or units of dates, within the declared bounds.
    """
    number = kind.to_number()
    farthest = find_farthest(number.decimals)
    lower = -farthest if number.lower is None else number.lower
    upper = farthest if number.upper is None else number.upper
    names = sorted(sorted(counts), key=counts.get, reverse=True)
    cells = [read_cell(name, style)[1] for name in names]
    _, values = kind.encode(pd.Series(cells, dtype=object))
    found = [value for value in values.tolist() if lower <= value <= upper]
    if number.decimals is not None:
        found = [round(value, number.decimals or None) for value in found]
    return list(dict.fromkeys(found))[: CONSTANTS.most_frequent]
