# SPDX-License-Identifier: BSD-3-Clause
"""James-Stein estimates of noisy two-way tables, in waves over the levels of both columns.

A season, or a correlation, is in few long waves over ordered levels, and noise in all of them.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from ..tables.encoder import TableEncoder

# Chances that a group of waves of mere noise is not shrunk to 0: in tables of columns with each
# other, and with times, of which one wave moves all persons alike. Of 0.1, 0.5 and 0.9, by seed 0
# of run_histories_calendar.py and run_histories.py.
TABLE_RATE, TIME_RATE = 0.9, 0.1


class Waves(NamedTuple):
    """Shares of levels, an orthonormal basis over these, (n_levels, n_waves), and bands of waves.

    Waves of one band are about as long as each other, and are shrunk together.
    """

    shares: np.ndarray
    basis: np.ndarray
    bands: np.ndarray


def make_waves(shares: np.ndarray, n_ordered: int) -> Waves:
    """Return waves over the ranks of the first levels; all others are one band."""
    own, numbers = shares[:n_ordered], np.arange(n_ordered)
    ranks = (np.cumsum(own) - own / 2) / max(own.sum(), 1e-12)
    basis, bands = np.eye(len(shares)), np.full(len(shares), len(shares))
    waves = np.cos(np.pi * numbers * ranks[:, None]) * own[:, None]
    basis[:n_ordered, :n_ordered] = np.linalg.qr(waves)[0]
    bands[:n_ordered] = _find_bands(numbers)
    return Waves(shares, basis, bands)


def make_cycles(n_cells: int) -> Waves:
    """Return waves over the cells of a calendar, and one of a last cell, without a date."""
    waves = np.fft.rfft(np.eye(n_cells))
    numbers, waves = np.tile(np.arange(waves.shape[1]), 2), np.hstack([waves.real, waves.imag])
    norms = np.linalg.norm(waves, axis=0)
    is_wave = norms > 1e-9
    basis, bands = np.eye(n_cells + 1), np.full(n_cells + 1, n_cells)
    basis[:-1, :-1] = waves[:, is_wave] / norms[is_wave]
    bands[:-1] = _find_bands(numbers[is_wave])
    return Waves(np.ones(n_cells + 1), basis, bands)


def _find_bands(numbers):
    """Return the bands of numbers of waves: 0, 1, 2 to 3, 4 to 7, and so on."""
    return np.ceil(np.log2(numbers + 1)).astype(int)


def shrink(
    excess: np.ndarray, std: float, first: Waves, second: Waves, rate: float
) -> tuple[np.ndarray, float]:
    """Shrink the excess of a table over independence; return the cells of noise left, too."""
    # Nobody has levels without a share.
    excess = np.where(np.outer(first.shares, second.shares) > 0, excess, 0)
    waves = first.basis.T @ excess @ second.basis
    groups = np.add.outer(first.bands * (second.bands.max() + 1), second.bands)
    n_waves, energies = (
        np.bincount(groups.ravel(), x.ravel()) for x in (np.ones_like(waves), waves**2)
    )
    noise = chi2.isf(rate, n_waves.clip(1)) * std**2
    kept = 1 - (noise / energies.clip(1e-12)).clip(max=1)
    return first.basis @ (waves * kept[groups]) @ second.basis.T, float(kept @ n_waves)


def shrink_tables(
    cells: np.ndarray,
    mask: np.ndarray,
    std: float,
    left: list[Waves],
    right: list[Waves],
    rate: float = TABLE_RATE,
) -> tuple[np.ndarray, float]:
    """Return shrunk tables of columns with others where `mask` is 1, and the energy of noise left.

    The waves are those of the columns on either side.
    """
    cells, n_left = cells.copy(), 0.0
    ends, others = (np.cumsum([len(x.shares) for x in side])[:-1] for side in (left, right))
    for first, rows, of_rows in zip(left, np.split(cells, ends), np.split(mask, ends), strict=True):
        blocks = zip(np.split(rows, others, 1), np.split(of_rows, others, 1), strict=True)
        for second, (table, is_table) in zip(right, blocks, strict=True):
            if is_table.any():
                expected = table.sum() * np.outer(first.shares, second.shares)
                excess, n_more = shrink(table - expected, std, first, second, rate)
                table[:], n_left = expected + excess, n_left + n_more
    return cells, std**2 * n_left


def list_waves(format, marginals) -> tuple[list[Waves], list[Waves], Waves]:
    """Return the waves of the columns of persons, of those of rows, and of numbers in the order."""
    sizes, M, n = format.history_sizes, format.max_rows, len(format.history_sizes.persons)
    starts = np.where(marginals.is_empty, 0, marginals.starts)
    shares = np.split(starts, np.cumsum(sizes.persons + sizes.rows)[:-1])
    ordered = [
        block.n_levels if block.column_type.is_ordered else len(getattr(block, "knots", ()))
        for block in TableEncoder(format.table.schema).make_blocks()
    ]
    # The number of rows of a person is no column of the schema.
    ordered.insert(n - 1, M + 2)
    waves = [make_waves(s / max(s.sum(), 1e-12), k) for s, k in zip(shares, ordered, strict=True)]
    numbers = np.append(shares[n - 1][1:M], shares[n - 1][M:].sum()) / np.arange(1, M + 1)
    in_order = numbers[::-1].cumsum()[::-1]
    return waves[:n], waves[n:], make_waves(in_order / max(in_order.sum(), 1e-12), M)
