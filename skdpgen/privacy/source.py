"""Reading private rows: all of them in blocks, or a few by their positions."""

import math

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from .exceptions import PlanError, TableError
from .mechanisms import clip_rows

__all__ = ["RecordSource"]

# Rows are read in blocks of this size however they arrive, so that memory does not grow with n
# and chunked rows give the same sums, to the bit, as rows in memory.
_BLOCK = 256


class RecordSource:
    """Private rows as mechanisms see them: in the unit ball, with the class of each.

    Everything is read and checked once on construction. What mechanisms get is
    ``(rows, membership)``: tensors of shape (n, n_columns) and (n, n_classes). `membership` is 1
    where a row belongs to a class (one column where there are no classes) and all 0 for a null
    record. A few get cells as they are in place of rows.

    Parameters
    ----------
    X, y, classes, prepare, clip_norm, null, device, verbose
        As in `Curator`.

    Attributes
    ----------
    n_records, n_classes : int
    prepare : callable or None
        May be exchanged between releases.
    """

    def __init__(self, X, y, *, classes, prepare, clip_norm, null, device, verbose):
        # Squares of much smaller norms underflow, and with them the clip.
        if not 1e-100 <= clip_norm < math.inf:
            raise ValueError(
                f"clip_norm must be positive and finite (at least 1e-100); got {clip_norm!r}."
            )
        self._clip_norm = clip_norm
        self._device = device
        self._verbose = verbose
        self._classes = None if classes is None else pd.Index(classes)
        self.n_classes = 1 if classes is None else len(self._classes)
        self.prepare = prepare
        self._null = None if null is None else torch.as_tensor(np.array(null))
        if self._null is not None and (self._null.dtype != torch.bool or self._null.ndim != 1):
            raise ValueError("null must be a 1-dimensional array of bool.")
        self._arrays = None if callable(X) else (X, y)
        self._chunks = X if callable(X) else lambda: iter([(X, y)])
        self.n_records = sum(len(self._prepared_rows(X, y)[0]) for X, y in self._batches())
        if self.n_records == 0:
            raise ValueError("X holds no rows.")
        if self._null is not None and len(self._null) != self.n_records:
            raise ValueError("null must have one entry per record.")

    def blocks(self, name):
        """Yield all records in blocks, behind a progress bar called `name` when verbose."""
        for X, y, positions in self._read(name):
            yield self._finish(*self._prepared_rows(X, y), positions)

    def cells(self, name):
        """Yield all records like `blocks`, with their cells, an array, in place of the rows."""
        for X, y, positions in self._read(name):
            yield X, self._membership(self._codes(X, y), positions)

    def _read(self, name):
        start = 0
        progress = tqdm(
            self._batches(),
            desc=name,
            total=-(-self.n_records // _BLOCK),
            disable=not self._verbose,
        )
        for X, y in progress:
            positions = torch.arange(start, start + len(X))
            start += len(X)
            if start > self.n_records:
                break
            yield X, y, positions
        if start != self.n_records:
            raise ValueError(
                "The chunks held another number of rows than before; a function that gives them "
                "must return a fresh iterator over the same rows at each call."
            )

    def take(self, positions):
        """Return the records at an array of positions, of which there is at least one."""
        if self._arrays is None:
            raise PlanError(
                "Releases from samples of the rows need them in memory or memory-mapped; chunks "
                "cannot be read at random."
            )
        X, y = _checked_arrays(*self._arrays)
        prepared = self._prepared_rows(X[positions], None if y is None else y[positions])
        return self._finish(*prepared, torch.as_tensor(positions))

    def _finish(self, rows, codes, positions):
        rows = clip_rows(rows.to(self._device), self._clip_norm) / self._clip_norm
        return rows, self._membership(codes, positions).to(self._device)

    def _membership(self, codes, positions):
        membership = torch.zeros(len(codes), self.n_classes, dtype=torch.float64)
        membership[torch.arange(len(codes)), codes] = 1
        if self._null is not None:
            membership[self._null[positions]] = 0
        return membership

    def _batches(self):
        chunks = self._chunks()
        if not hasattr(chunks, "__next__"):
            raise TypeError("A function that yields chunks must return a fresh iterator.")
        pairs = (chunk if isinstance(chunk, tuple) else (chunk, None) for chunk in chunks)
        return _rebatch((_checked_arrays(X, y) for X, y in pairs), _BLOCK)

    def _codes(self, X, y):
        """Return the position of each record's label in `classes`."""
        if self._classes is None:
            return torch.zeros(len(X), dtype=torch.int64)
        codes = self._classes.get_indexer(y)
        if (codes < 0).any():
            raise ValueError("y holds labels that are not among the given classes.")
        return torch.as_tensor(codes)

    def _prepared_rows(self, X, y):
        """Return rows after the public map, with the positions of their labels in `classes`."""
        codes = self._codes(X, y)
        rows = self._apply(X, y if self._classes is None else None)
        if not torch.isfinite(rows).all():
            raise ValueError(
                "Rows are NaN or infinite, or the encoder makes them so; impute or drop them."
            )
        return rows, codes

    def _apply(self, X, numbers):
        """Apply the public map; what it raises may quote private values and goes no further."""
        if self.prepare is None:
            return torch.tensor(X, dtype=torch.float64)
        try:
            rows = np.asarray(self.prepare(X, numbers), dtype=np.float64)
        except TableError:
            raise
        except Exception:
            rows = None
        if rows is None or rows.ndim != 2 or len(rows) != len(X):
            raise ValueError(
                "The encoder failed on the rows of X; its message is withheld, since it may quote "
                "them. Try it on public rows."
            )
        return torch.tensor(rows)


def _checked_arrays(X, y):
    X, y = np.asanyarray(X), None if y is None else np.asanyarray(y)
    if X.ndim != 2 or (y is not None and len(y) != len(X)):
        raise ValueError("X must be 2-dimensional, with one label per row in y.")
    return X, y


def _rebatch(chunks, size):
    """Cut chunks of any sizes into blocks of `size` rows and a last, shorter one."""
    held_X, held_y, held = [], [], 0
    for X, y in chunks:
        start = 0
        while start < len(X):
            stop = min(len(X), start + size - held)
            held_X.append(X[start:stop])
            held_y.append(None if y is None else y[start:stop])
            held += stop - start
            start = stop
            if held == size:
                yield _join(held_X, held_y)
                held_X, held_y, held = [], [], 0
    if held:
        yield _join(held_X, held_y)


def _join(Xs, ys):
    if len(Xs) == 1:
        return Xs[0], ys[0]
    return np.concatenate(Xs), None if ys[0] is None else np.concatenate(ys)
