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

from ..exceptions import TableError
from .containers import Adapted, Container, adapt, adapt_images, is_image
from .labels import Label
from .record_functions import describe_failure, iter_quietly

# An item may be a file of its own, which is named after a person.
_describe = partial(describe_failure, names_file=False)
# Items of a dataset that are read at once.
_BATCH = 256


def read_dataset(data, y=None) -> tuple[Adapted, object]:
    """Return the records of a torch Dataset or DataLoader, in the dataset's order, and labels.

    Raises ValueError for a loader that would not read each record once, and for labels beside
    those of the dataset.
    """
    # Without workers, of which each would read all of an iterable dataset, and with a generator of
    # its own: loaders draw from the global one.
    if isinstance(data, DataLoader):
        _check_loader(data)
        collate = partial(_as_fields, collate=data.collate_fn)
        read = partial(DataLoader, data.dataset, data.batch_size, collate_fn=collate)
    else:
        read = partial(DataLoader, data, _BATCH, collate_fn=_collate)
    describe = partial(_describe, what="The reading of an item of X")
    parts = list(_iter_parts(partial(read, generator=torch.Generator()), describe))
    if not parts or (parts[0][1] is not None and y is not None):
        raise ValueError("X must be a dataset of records, and hold labels only if y is None.")
    X, labels = parts[0]
    # Items that are arrays or tensors come back as one.
    library = {"tensors": "torch", "arrays": "numpy"}.get(X.container.library, X.container.library)
    if labels is not None:
        y = np.concatenate([_read_labels(labels) for _, labels in parts])
        is_tensor = y.dtype.kind in "iufb" and library.startswith("torch")
        y = torch.as_tensor(y) if is_tensor else y
    rows = np.concatenate([X.data for X, _ in parts])
    return Adapted(rows, Container(library), X.dtypes), y


def describe_chunks(call: Callable, classes) -> tuple:
    """Count the records of the chunks of arrays, X or (X, y), that a call gives.

    Returns zeros in place of X and y, the container, the dtypes, the facts of labels, and a
    function of flat chunks.
    """
    read = partial(_iter_parts, partial(_call, call), _describe)
    n_rows, last = 0, None
    for last in read():
        n_rows += len(last[0].data)
    if last is None:
        raise TableError("There are no chunks of X.")
    (X, labels), y, label = last, None, None
    if labels is not None:
        y, label = np.zeros(n_rows, _read_labels(labels).dtype), Label.of(labels)
        if classes is None and y.dtype.kind != "f":
            raise ValueError("Labels come in chunks: declare classes=[...].")
    shape = X.data.shape[1:]

    def read_rows():
        for part, labels in read():
            rows = part.data.reshape(len(part.data), math.prod(shape))
            yield rows, None if labels is None else _read_labels(labels)

    # These zeros take no memory.
    X_zeros = np.broadcast_to(np.float32(0), (n_rows, *shape))
    return X_zeros, y, X.container, X.dtypes, label, read_rows


def _read_labels(labels):
    return np.asarray(adapt(labels).data)


def _call(call):
    chunks = call()
    if isinstance(chunks, DataLoader):
        # Each worker would read all of an iterable dataset.
        _check_loader(chunks, n_workers=chunks.num_workers)
        return map(_as_fields, chunks)
    return chunks


def _iter_parts(make: Callable, describe: Callable) -> Iterator[tuple]:
    """Yield arrays, as `adapt` returns them, and labels as given or None; see `iter_quietly`."""
    first = None
    for batch in iter_quietly(make, (TableError,), describe):
        is_pair = isinstance(batch, tuple | list) and len(batch) <= 2 and not is_image(batch[-1])
        rows, labels = (*batch, None)[:2] if is_pair else (batch, None)
        X = adapt_images(rows) if isinstance(rows, list) else adapt(rows)
        if not isinstance(X.data, np.ndarray) or X.data.dtype.kind not in "iufb" or X.data.ndim < 2:
            raise TableError(
                f"Parts of X must be arrays, or pairs of arrays and labels; got "
                f"{type(rows).__name__}. For tables leave bounds and classes at their defaults."
            )
        facts = X.container, X.data.dtype, X.data.shape[1:], labels is None
        first = first or facts
        if facts != first or (labels is not None and len(labels) != len(X.data)):
            raise TableError("Parts of X must have one shape and dtype, and one label a record.")
        yield X, labels


def _as_fields(batch, collate=lambda batch: batch):
    """Return a batch of a loader, whose lists hold fields of records and not images."""
    batch = collate(batch)
    return (batch[0], None) if isinstance(batch, list | tuple) and len(batch) == 1 else batch


def _collate(items):
    pairs = [item if isinstance(item, tuple | list) else (item,) for item in items]
    if len(pairs[0]) > 2:
        raise TableError("Items of X must be a record, or a record and its label.")
    return [list(part) for part in zip(*pairs, strict=True)]


def _check_loader(loader, n_workers=0):
    """Raise a TableError for a loader that does not read each record once."""
    sampler, is_iterable = loader.sampler, isinstance(loader.dataset, IterableDataset)
    reads_all = (is_iterable and not n_workers) or (
        type(sampler) in (SequentialSampler, RandomSampler)
        and not getattr(sampler, "replacement", False)
        and len(sampler) == len(loader.dataset)
    )
    if not reads_all or loader.drop_last or type(loader.batch_sampler) is not BatchSampler:
        raise TableError(
            "X is a DataLoader that may not read each record once, by its sampler, drop_last, "
            "batch_size or num_workers: give the dataset, as fit(loader.dataset)."
        )
