# SPDX-License-Identifier: BSD-3-Clause
"""Noisy counts of frequent values of numbers and dates."""

from ..data.names import count_short_names
from .sums import CategoryCountsMechanism


class FrequentValuesMechanism(CategoryCountsMechanism):
    """Noisy counts of the values that many records share, of numbers and dates.

    These are counted like categories. Numbers with more digits than people write, and dates with a
    time, are not counted: hardly any two records share them, and all would have to be held in
    memory. As this follows from each cell alone, a record still adds 1 to at most one count of each
    column.
    """

    name = "frequent values"
    count_cells = staticmethod(count_short_names)
