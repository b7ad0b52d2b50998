# SPDX-License-Identifier: BSD-3-Clause
"""Blocks of equal sizes, cut from chunks of any sizes: sums do not depend on how rows arrive."""

from collections.abc import Iterable, Iterator

import numpy as np

# Rows in memory per slice from which blocks are cut.
_SLICE = 2**13


def cut_blocks(chunks: Iterable, size: int) -> Iterator[list]:
    """Cut chunks of any sizes, tuples of arrays, into blocks of `size` rows and a last one."""
    held, n_held = [], 0
    for chunk in chunks:
        start = 0
        while start < len(chunk[0]):
            stop = min(len(chunk[0]), start + size - n_held)
            block = [None if part is None else part[start:stop] for part in chunk]
            n_held += stop - start
            start = stop
            if n_held < size:
                # Sources may write the next chunk where this one is.
                block = [None if part is None else part.copy() for part in block]
            held.append(block)
            if n_held == size:
                yield _join(held)
                held, n_held = [], 0
    if held:
        yield _join(held)


def slice_arrays(X, y) -> Iterator[tuple]:
    """Yield slices of rows and labels in memory; labels may be None."""
    for start in range(0, len(X), _SLICE):
        rows = slice(start, start + _SLICE)
        yield X[rows], None if y is None else y[rows]


def _join(blocks):
    if len(blocks) == 1:
        return blocks[0]
    return [None if part[0] is None else _concatenate(part) for part in zip(*blocks, strict=True)]


def _concatenate(parts):
    own = getattr(parts[0], "concatenate", None)
    return np.concatenate(parts) if own is None else own(parts)
