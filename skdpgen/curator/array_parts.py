# SPDX-License-Identifier: BSD-3-Clause
"""Arrays in parts: torch datasets, which are read once into memory, and functions of chunks."""

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
)

from ..data.containers import Adapted, Container, adapt, is_image
from ..data.lists import stack
from ..exceptions import TableError
from .chunks import TableInParts, describe_failure, iter_quietly

# Items of a dataset that are read at once.
_BATCH = 256


def read_dataset(data) -> tuple[Adapted, object]:
    """Read a torch Dataset, or that of a DataLoader, once and in order.

    Parameters
    ----------
    data : Dataset or DataLoader
        Of items X or (X, y). A loader may shuffle: records are read in the dataset's order.

    Returns
    -------
    X : Adapted
    y : array, tensor or None

    Raises
    ------
    ValueError
        For a loader that would not read each record once.
    TableError
        If an item cannot be read; the message of its error may quote it, and is withheld.
    """
    # Without workers, of which each would read all of an iterable dataset, and with a generator of
    # its own: loaders draw from the global one.
    if isinstance(data, DataLoader):
        _check_loader(data)
        read = partial(DataLoader, data.dataset, data.batch_size, collate_fn=data.collate_fn)
    else:
        read = partial(DataLoader, data, _BATCH, collate_fn=_collate)
    loader = read(generator=torch.Generator())
    parts = list(_iter_parts(lambda: loader, _describe_item))
    if not parts:
        raise ValueError("X is a dataset without records.")
    X, y = parts[0]
    # Items that are arrays or tensors come back as one.
    library = {"tensors": "torch", "arrays": "numpy"}.get(X.container.library, X.container.library)
    y = None if y is None else np.concatenate([y for _, y in parts])
    if y is not None and y.dtype.kind in "iufb" and library.startswith("torch"):
        y = torch.as_tensor(y)
    rows = np.concatenate([X.data for X, _ in parts])
    return Adapted(rows, Container(library), X.dtypes), y


class ArrayChunks:
    """Arrays in chunks, X or (X, y), from a function that returns a fresh iterator over them.

    The first reading counts the records.

    Parameters
    ----------
    table : TableInParts

    Attributes
    ----------
    container, dtypes
        See `adapt`.
    X, y : ndarray or None
        Zeros in place of all records and labels, which take no memory.
    """

    def __init__(self, table: TableInParts):
        self._table, n_rows = table, 0
        for X, y in self._read():
            n_rows, first, labels = n_rows + len(X.data), X, y
        if n_rows == 0:
            raise TableError("The chunks of X hold no rows.")
        self.container, self.dtypes = first.container, first.dtypes
        self.X = np.broadcast_to(np.float32(0), (n_rows, *first.data.shape[1:]))
        self.y = None if labels is None else np.zeros(n_rows, labels.dtype)

    def __call__(self) -> Iterator[tuple]:
        for X, y in self._read():
            yield X.data.reshape(len(X.data), math.prod(X.data.shape[1:])), y

    def _read(self):
        return _iter_parts(self._table.call, describe_failure)


def _iter_parts(make: Callable, describe: Callable) -> Iterator[tuple]:
    """Yield arrays, as `adapt` returns them, and labels or None; see `iter_quietly`."""
    first = None
    for batch in iter_quietly(make, (TableError,), describe):
        is_pair = isinstance(batch, tuple | list) and len(batch) <= 2 and not is_image(batch[-1])
        rows, labels = (*batch, None)[:2] if is_pair else (batch, None)
        X = stack(rows) if isinstance(rows, list) else adapt(rows)
        y = None if labels is None else np.asarray(adapt(labels).data)
        if not isinstance(X.data, np.ndarray) or X.data.dtype.kind not in "iufb" or X.data.ndim < 2:
            raise TableError(
                f"Parts of X must be arrays, or pairs of arrays and labels; got "
                f"{type(rows).__name__}. For tables leave bounds and classes at their defaults."
            )
        facts = X.container, X.data.dtype, X.data.shape[1:], y is None
        first = first or facts
        if facts != first or (y is not None and len(y) != len(X.data)):
            raise TableError("Parts of X must have one shape and dtype, and one label a record.")
        yield X, y


def _collate(items):
    pairs = (item if isinstance(item, tuple | list) else (item,) for item in items)
    return [list(part) for part in zip(*pairs, strict=True)]


def _check_loader(loader):
    """Raise a ValueError for a loader that does not read each record once."""
    sampler, is_iterable = loader.sampler, isinstance(loader.dataset, IterableDataset)
    reads_all = is_iterable or (
        type(sampler) in (SequentialSampler, RandomSampler)
        and not getattr(sampler, "replacement", False)
        and len(sampler) == len(loader.dataset)
    )
    if not reads_all or loader.drop_last or type(loader.batch_sampler) is not BatchSampler:
        raise ValueError(
            "X is a DataLoader that may not read each record once, by its sampler, drop_last or "
            "batch_size: give the dataset, as fit(loader.dataset)."
        )


def _describe_item(error):
    return (
        f"An item of X could not be read ({type(error).__name__}). The message is withheld, as it "
        "may quote records: read X yourself."
    )
