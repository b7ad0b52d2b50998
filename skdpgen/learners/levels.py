# SPDX-License-Identifier: BSD-3-Clause
"""How many records have each level of each column of a table, by what was released."""

from dataclasses import dataclass

import numpy as np

from ..quality import WITHIN_NOISE


@dataclass(frozen=True)
class Levels:
    """How many records have each level of each column, by released tables.

    Attributes
    ----------
    counts, std : ndarray of shape (n_levels,)
        Noisy numbers, and standard deviations of their noise.
    n_records : float
        Number of records that they are of.
    is_empty : ndarray of bool of shape (n_levels,)
        Levels that no record is taken to have: spare ones, whose counts are within noise of 0.
    """

    counts: np.ndarray
    std: np.ndarray
    n_records: float
    is_empty: np.ndarray

    @classmethod
    def of(cls, tables, n_records, is_spare):
        """Count levels; those of all records, if there are tables for each level of a column.

        Parameters
        ----------
        tables : skdpgen.mechanisms.tables.Tables
        n_records : float
        is_spare : ndarray of bool of shape (n_levels,)
            Levels that stand for what is not told apart, as missing values do. One that is the
            most frequent of its column is not taken for empty.
        """
        counts, std = tables.count_levels()
        sizes = tables.sizes
        if tables.by is not None:
            n_parts, at = len(counts), tables.by.start
            of_parts, std_of_parts = tables.count_records()
            counts = np.insert(counts.sum(axis=0), at, of_parts)
            std = np.insert(std * n_parts**0.5, at, np.full(n_parts, std_of_parts))
            before = int(np.searchsorted(np.cumsum(sizes), at, side="right"))
            sizes = (*sizes[:before], n_parts, *sizes[before:])
        starts = np.cumsum(sizes)[:-1]
        largest = np.repeat([block.max() for block in np.split(counts, starts)], sizes)
        is_empty = (counts <= WITHIN_NOISE * std) & (counts < largest) & is_spare
        return cls(counts, std, n_records, is_empty)
