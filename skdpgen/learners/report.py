# SPDX-License-Identifier: BSD-3-Clause
"""What released tables say of each column, before anything is learnt from them."""

import numpy as np

from ..quality import find_signal, warn_of_absent, warn_of_levels, warn_of_noise, warn_of_table
from ..tables.report import describe
from .levels import Levels


def read_tables(tables, format, n_records):
    """Count the levels of columns, describe the columns, and warn where little came out.

    Parameters
    ----------
    tables : skdpgen.mechanisms.tables.Tables
    format : TableFormat
        That leaves nothing open.
    n_records : int
        Number of records.

    Returns
    -------
    levels : Levels
    report : DataFrame
        From `describe`.
    """
    present, std = tables.count_records()
    # Those of several parts add up.
    share, std = np.sum(present) / n_records, std * np.size(present) ** 0.5 / n_records
    if warn_of_absent(share, std):
        n_records *= max(share, std, 1 / n_records)
    levels = Levels.of(tables, n_records, format.is_spare)
    counts = np.where(levels.is_empty, 0, levels.counts)
    report = describe(format.schema, counts, levels.std, n_records)
    blocks = dict(format.blocks)
    warn_of_table(
        report,
        format.schema,
        format.kind.label,
        {name: levels.counts[where] for name, where in blocks.items()},
        {name: levels.std[where.start] for name, where in blocks.items()},
    )
    if tables.cells.size:
        is_noise = warn_of_noise(find_signal(tables.cells, tables.pairs_std), "two-way tables")
        if tables.by is not None and not is_noise:
            signals = [find_signal(cells, tables.pairs_std) for cells in tables.cells]
            label = format.kind.label
            other = getattr(format.schema[label], "other", None)
            warn_of_levels(signals, present, label, format.levels_of_target, other)
    return levels, report
