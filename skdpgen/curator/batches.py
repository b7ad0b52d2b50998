# SPDX-License-Identifier: BSD-3-Clause
"""Private records as mechanisms read them: all of them in blocks, or a few by their positions."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from ..data.cells import FrameCells
from ..data.record_functions import RecordFunction, check_function
from ..data.rows import clip_rows
from ..exceptions import PlanError, PublicTypeError, PublicValueError
from ..quality import warn_of_other_persons
from .chunks import Partitions
from .persons import Persons, RowLimit

Block = tuple[torch.Tensor, torch.Tensor]

# Rows in memory per slice from which blocks are cut.
_SLICE = 2**13
# Rows per block, however they arrive: memory does not grow with n, and chunks give the same sums,
# to the bit, as rows in memory.
_BLOCK = 256
# Rows per block of cells, whose codes do not depend on the block: larger blocks take less time.
_CELLS_BLOCK = 2**13
# Rows per block of cells that are counted: most cells of columns of categories are equal.
_COUNTED_BLOCK = 2**15
# Rows per block on an accelerator, where calls take longer than arithmetic.
_ACCELERATOR_BLOCK = 2**11
OTHER_ROWS = (
    "The chunks or partitions held another number of rows, or of persons, than before; whatever "
    "gives them must give the same rows each time, as a fresh iterator where it is a function."
)


class RecordSource:
    """Private records for mechanisms: rows in the unit ball, and the class of each.

    Mechanisms get blocks ``(rows, membership)``: tensors of shape (n, n_columns) and
    (n, n_classes). `membership` is 1 where a row belongs to a class (one column where there are no
    classes), and all 0 for a null record. Records are null that were declared so, and bad ones:
    those with a label that is not among the classes, with a row that is not finite, or for which
    the public map fails. This is decided for each record on its own, and neither their identities
    nor their number are reported. A few mechanisms get cells in place of rows.

    Parameters
    ----------
    X, y, classes, prepare, cells, clip_norm, null, persons, refuse, device, verbose
        As in `Curator`.
    max_rows : int or None
        With `persons`, rows of each that count; all others are null records. Without them, it is
        the largest weight of a record that is a person with several rows.
    key : bytes or None
        Secret key that chooses which of them count.

    Attributes
    ----------
    n_units : int
        Number of records or, with persons, of these: what is public.
    n_records : int
        Largest possible number of records that are not null, from public numbers.
    n_classes : int
        Number of classes, 1 where there are none.
    """

    def __init__(
        self,
        X,
        y,
        *,
        classes,
        prepare: RecordFunction | None,
        cells,
        clip_norm: float | None,
        null=None,
        persons: Persons | None = None,
        max_rows: int | None = None,
        key: bytes | None = None,
        refuse: Callable | None = None,
        device="cpu",
        verbose: int = 0,
    ):
        self.max_rows = max_rows
        self._has_cells, self._reader = bool(cells), cells if callable(cells) else None
        self._refuse, self._verbose = refuse, verbose
        self._device = torch.device(device)
        self._classes = None if classes is None else np.asarray(classes)
        self.n_classes = 1 if self._classes is None else len(self._classes)
        # A copy: a caller who changed the array later would change which records count.
        self._null = None if null is None else torch.as_tensor(np.array(null))
        if self._null is not None and (self._null.dtype != torch.bool or self._null.ndim != 1):
            raise ValueError("null must be a 1-dimensional array of bool.")
        self._persons, self._key = persons, key
        self._limit: RowLimit | None = None
        self._partitions = X if isinstance(X, Partitions) else None
        # What adds up products of records in the place of this process.
        self.database = X if hasattr(X, "add_products") and null is None else None
        is_held = not callable(X) and self._partitions is None
        self._arrays = self._check_arrays(X, y) if is_held else None
        self._chunks = X if callable(X) else self._slice_arrays
        self._n_persons_read: set[int] = set()
        has_persons = persons is not None or getattr(X, "person_column", None) is not None
        # Two readings may give the rows of persons in different orders.
        if null is not None and self._arrays is None and has_persons:
            raise ValueError("null is by position, which rows of persons in chunks have not.")
        if self._arrays is not None:
            self._check_count(len(self._arrays[0]))
        self.prepare(prepare, clip_norm)

    def open(self) -> None:
        """Read the rows for the first time: errors from here on may depend on them."""
        if self._arrays is not None:
            # Cells are read once: each release reads what is held here.
            self._arrays, self._reader = self._parse(*self._arrays), None
        elif self._partitions is not None and self._partitions.person_column is not None:
            self._count_persons(self._partitions.n_units)
        elif self._partitions is not None:
            self._check_count(self._partitions.n_units)
        elif self._persons is not None:
            self._count_persons(self._persons.n_persons)
        else:
            self._check_count(sum(len(X) for X, _, _ in self._batches()))
        if self._persons is not None:
            self._limit_persons()
        if self._refuse is not None:
            self._refuse_bad()

    def _check_count(self, n_rows):
        self._n_rows = self.n_units = self.n_records = n_rows
        if n_rows == 0:
            raise PublicValueError("X holds no rows.")
        if self._null is not None and len(self._null) != n_rows:
            raise PublicValueError("null must have one entry per record.")
        if self._persons is not None:
            self._persons.check_length(n_rows)
            self._count_persons(self._persons.n_persons)

    def _count_persons(self, n_persons):
        self.n_units, self.n_records = n_persons, n_persons * self.max_rows

    def _limit_persons(self):
        """Make all but `max_rows` rows of each person null: the one place that bounds them."""
        limit = RowLimit(self._persons, self.max_rows, self._key, self._iter_with_persons())
        if self._arrays is None:
            self._limit = limit
            return
        reading = limit.start()
        chosen = [reading.choose(*block) for block in self._iter_with_persons()]
        left_out = ~torch.as_tensor(np.concatenate(chosen))
        self._null = left_out if self._null is None else self._null | left_out
        self._persons = self._key = None  # no longer needed

    def _iter_with_persons(self):
        """Yield blocks of rows, labels and the codes of their persons."""
        start = 0
        for X, y, codes in self._batches():
            if self._arrays is not None:
                codes = self._persons.codes[start : start + len(X)]
            start += len(X)
            yield X, y, codes

    def count_rows(self) -> int:
        """Count the records that are neither declared null nor beyond the limit of a person."""
        if self._limit is not None:
            return self._limit.n_rows
        return self._n_rows - (0 if self._null is None else int(self._null.sum()))

    def prepare(self, function: RecordFunction | None, clip_norm: float | None) -> None:
        """Replace the public map of the rows, which is tried on zeros, and their radius.

        A radius of None says that the map returns codes, which are in no ball.
        """
        # Squares of much smaller norms underflow, and with them the clip.
        if clip_norm is not None and not 1e-100 <= clip_norm < math.inf:
            raise PublicValueError(
                f"clip_norm must be positive and finite (at least 1e-100); got {clip_norm!r}."
            )
        self._clip_norm = clip_norm
        if function is not None:
            check_function(function, RecordFunction, "Curator")
        self._prepare = function
        if function is not None and self._arrays is not None and not self._has_cells:
            X, y = self._arrays
            # Before anything is reserved, and about no record: rows of zeros.
            function.width_on(*self._to_map(np.zeros((1, X.shape[1])), y))

    def parse_cells(self, function: Callable) -> None:
        """Replace cells by what a public function makes of them, each on its own.

        Those in memory are replaced once, and those of chunks in each reading.

        Parameters
        ----------
        function : callable
            Maps `FrameCells`, or an array of objects, to one of these. It raises for no cell.
        """
        if self._arrays is not None:
            self._arrays = function(self._arrays[0]), self._arrays[1]
        else:
            self._reader = partial(_read_and_parse, self._reader, function)
            if self._limit is not None:
                # Rows are known by a hash of their cells, which are others from here on.
                self._limit_persons()

    def encode_cells_by(self, function: RecordFunction) -> None:
        """Replace records by their codes in the columns of a table.

        Those in memory are encoded once, since codes take less memory and time than cells.
        """
        self.prepare(function, None)
        if self._arrays is not None:
            blocks = [self._map_rows(X, y) for X, y, _ in self._batches(_CELLS_BLOCK)]
            # NaN marks records that are not finite: `_map_rows` finds them again.
            codes = [rows.masked_fill(~is_finite[:, None], torch.nan) for rows, is_finite in blocks]
            self._arrays = torch.cat(codes).cpu().numpy(), self._arrays[1]
            self._has_cells, self._reader, self._prepare = False, None, None

    def add_up(self, function: Callable):
        """Return a sum of whole numbers over all records, which is made where they are.

        Parameters
        ----------
        function : callable
            Maps a `RecordSource` of some of the records to their sum. It may be sent to workers: it
            must contain nothing that may not leave this process, such as the noise.
        """
        # Null records are known by their positions in this process.
        if self._partitions is None or self._null is not None or self.database is not None:
            return function(self)
        parameters = {
            "classes": self._classes,
            "prepare": self._prepare,
            "cells": self._reader or self._has_cells,
            "clip_norm": self._clip_norm,
            "max_rows": self.max_rows,
            "key": self._key,
        }
        total = self._partitions.add_up(partial(_add_up_part, function, parameters))
        # An engine reads its sources anew for each sum.
        if not total or total.n_units != self.n_units:
            raise PublicValueError(OTHER_ROWS)
        return total.value

    def blocks(self, name: str, size: int = _BLOCK) -> Iterator[Block]:
        """Yield all records in blocks, with a progress bar when verbose.

        Parameters
        ----------
        name : str
            That of the release, for the progress bar.
        size : int, default=256
            Records in a block, at least 1,024 if they are cells; the last one may have fewer.
        """
        for X, y, null in self._read(name, size):
            yield self._finish(X, y, null)

    def codes(self, name: str, size: int = _BLOCK) -> Iterator[Block]:
        """Yield all records like `blocks`, with their codes in place of rows of the unit ball."""
        if self._clip_norm is not None:
            # A radius belongs to rows; codes are bounded by their encoding.
            raise PlanError("The records were not encoded as codes of a table.")
        for X, y, null in self._read(name, size):
            rows, membership = self._encode(X, y, null)
            yield rows.to(self._device), membership.to(self._device)

    def cells(self, name: str) -> Iterator[tuple[np.ndarray, torch.Tensor]]:
        """Yield all records like `blocks`, with an array of their cells in place of rows."""
        for X, y, null in self._read(name, _COUNTED_BLOCK):
            classes = self._find_classes(X, y)
            yield X, self._membership(classes, classes >= 0, null)

    def _read(self, name, size):
        """Yield blocks of rows, labels, and whether each record is null; None for none."""
        if self._has_cells:
            size = max(size, _CELLS_BLOCK)
        if self._device.type != "cpu":
            size = max(size, _ACCELERATOR_BLOCK)
        # The number of rows of persons, and so of blocks, is private: then the bar has one step.
        is_public = self.max_rows is None
        total = -(-self._n_rows // size) if is_public else 1
        with tqdm(desc=f"reading rows: {name}", total=total, disable=not self._verbose) as progress:
            read = self._read_records if self._limit is None else self._read_persons
            for block in read(size):
                yield block
                progress.update(is_public)
            progress.update(not is_public)

    def _read_records(self, size):
        start = 0
        for X, y, _ in self._batches(size):
            stop = start + len(X)
            if stop > self._n_rows:
                # Rows beyond the public number have no place in a sum that was planned for it.
                start = stop
                break
            yield X, y, None if self._null is None else self._null[start:stop]
            start = stop
        if start != self._n_rows:
            raise PublicValueError(OTHER_ROWS)

    def _read_persons(self, size):
        reading = self._limit.start()
        for X, y, codes in self._batches(size, reading.unknown):
            yield X, y, torch.as_tensor(~reading.choose(X, y, codes))
        self._n_persons_read.add(reading.n_persons)

    def warn_of_changes(self) -> None:
        """Warn if a reading had another number of persons than the first; it is public."""
        others = self._n_persons_read - {self.n_units}
        if others:
            warn_of_other_persons(self.n_units, others.pop())

    def take(self, positions: np.ndarray) -> Block:
        """Return the records at some positions, in memory.

        Parameters
        ----------
        positions : ndarray of int of shape (n,)
            At least one.

        Returns
        -------
        rows : tensor of shape (n, n_columns)
        membership : tensor of shape (n, n_classes)

        Raises
        ------
        PlanError
            If the rows come in chunks or partitions.
        """
        if self._arrays is None:
            raise PlanError(
                "Releases from samples of the rows need them in one place, in memory or "
                "memory-mapped; chunks and partitions cannot be read at random."
            )
        X, y = self._arrays
        y = None if y is None else y[positions]
        null = None if self._null is None else self._null[torch.as_tensor(positions)]
        return self._finish(X[positions], y, null)

    def _finish(self, X, y, null):
        """Return a block of rows in the unit ball, and the membership."""
        if self._clip_norm is None:
            raise PlanError("The records were encoded as codes of a table, and are in no ball.")
        rows, membership = self._encode(X, y, null)
        rows = clip_rows(rows.to(self._device), self._clip_norm)
        if self._clip_norm != 1:
            rows = rows / self._clip_norm
        return rows, membership.to(self._device)

    def _encode(self, X, y, null):
        """Return rows after the public map, 0 for those of null records, and the membership."""
        classes, (rows, is_finite) = self._find_classes(X, y), self._map_rows(X, y)
        is_present = (classes >= 0) & is_finite
        # A NaN must not enter a sum, not even with a membership of 0: 0 * NaN is NaN.
        if not is_present.all():
            rows = rows.masked_fill(~is_present[:, None], 0.0)
        return rows, self._membership(classes, is_present, null)

    def _membership(self, classes, is_present, null):
        membership = torch.zeros(len(classes), self.n_classes, dtype=torch.float64)
        # Index -1, of no class, marks the last column, which the next line clears.
        membership[torch.arange(len(classes)), classes] = 1
        membership[~is_present] = 0
        if null is not None:
            membership[null] = 0
        return membership

    def _refuse_bad(self):
        """Raise if any record is bad; that depends on the rows, but the message quotes none."""
        for X, y, _ in self._batches():
            self._refuse(X, y)
            if (self._find_classes(X, y) < 0).any():
                raise PublicValueError("y holds labels that are not among the given classes.")
            if not self._map_rows(X, y)[1].all():
                raise PublicValueError(
                    "X or y holds NaN or infinity, or the encoder makes such rows. With "
                    "strict=False they count as absent; or fill them by a public rule, such as a "
                    "constant. An imputer fitted on private rows would be a release of its own, "
                    "which this ε does not cover."
                )

    def _slice_arrays(self):
        if isinstance(self._arrays[0], FrameCells):
            return iter([self._arrays])
        X, y = self._arrays
        slices = (slice(start, start + _SLICE) for start in range(0, len(X), _SLICE))
        return ((X[rows], None if y is None else y[rows]) for rows in slices)

    def _batches(self, size=_BLOCK, unknown=None):
        """Yield rows, labels and, in chunks of rows of persons, the codes of these.

        Persons who were not there in the first reading are added to the set `unknown`.
        """
        chunks = self._chunks()
        if not hasattr(chunks, "__next__"):
            raise PublicTypeError("A function that yields chunks must return a fresh iterator.")
        unknown = set() if unknown is None else unknown
        return cut_blocks((self._parse_chunk(chunk, unknown) for chunk in chunks), size)

    def _parse_chunk(self, chunk, unknown):
        chunk = chunk if isinstance(chunk, tuple) else (chunk,)
        X, y, persons = (*chunk, None, None)[:3]
        X, y = self._parse(*self._check_arrays(X, y))
        if (persons is not None) != (self._arrays is None and self._persons is not None):
            raise PublicValueError("Chunks hold identifiers where a plan is for persons.")
        if persons is not None:
            persons = self._persons.find_codes(persons, unknown)
            if len(persons) != len(X):
                raise PublicValueError("persons must hold one identifier for each row of a chunk.")
        return X, y, persons

    def _check_arrays(self, X, y):
        X = X if isinstance(X, FrameCells) else np.asanyarray(X)
        y = None if y is None else np.asanyarray(y)
        if X.ndim != 2 or (y is not None and len(y) != len(X)):
            raise PublicValueError("X must be 2-dimensional, with one label per row in y.")
        if y is None and self._classes is not None:
            raise PublicValueError("There are classes, but no labels in y.")
        return X, y

    def _parse(self, X, y):
        if self._has_cells:
            return (X if self._reader is None else self._reader(X[:])), y
        if X.dtype.kind in "OUS":
            from ..data.inputs import parse_rows

            X = parse_rows(X)
        return X, y

    def _find_classes(self, X, y):
        """Return the position of each record's label in `classes`, or -1."""
        if self._classes is None:
            return torch.zeros(len(X), dtype=torch.int64)
        from ..data.inputs import encode_labels

        return torch.as_tensor(encode_labels(y, self._classes))

    def _map_rows(self, X, y):
        """Return rows after the public map, and whether they are finite, before it and after."""
        is_finite = np.ones(len(X), dtype=bool)
        if self._prepare is None:
            # A copy: torch would share memory with the private rows, and a map could change them.
            rows = torch.tensor(X, dtype=torch.float64)
        else:
            blocks = self._to_map(X, y)
            for i, block in enumerate(blocks):
                if block is not None and block.dtype.kind == "f":
                    # The map could clip infinite numbers, or fail for them: it gets zeros.
                    is_number = np.isfinite(block)
                    is_finite &= is_number.reshape(len(X), -1).all(axis=1)
                    blocks[i] = block if is_number.all() else np.where(is_number, block, 0)
            rows = self._prepare.on(*blocks).detach().double()
        # NumPy's is several times faster than torch's.
        is_finite &= np.isfinite(rows.cpu().numpy()).all(axis=1)
        return rows, torch.as_tensor(is_finite)

    def _to_map(self, X, y):
        """Return the arguments of the public map: X, and y if it is numbers rather than labels."""
        return [X, None if y is None or self._classes is not None else y[: len(X)]]


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


def _join(blocks):
    if len(blocks) == 1:
        return blocks[0]
    return [None if part[0] is None else _concatenate(part) for part in zip(*blocks, strict=True)]


def _concatenate(parts):
    own = getattr(parts[0], "concatenate", None)
    return np.concatenate(parts) if own is None else own(parts)


def _read_and_parse(reader, function, cells):
    return function(cells if reader is None else reader(cells))


@dataclass
class _Counted:
    """A sum, and the number of records or persons in it."""

    value: Any
    n_units: int

    def __add__(self, other):
        return _Counted(self.value + other.value, self.n_units + other.n_units)


def _add_up_part(function, parameters, rows, persons=None):
    """Return the sum over a partition, which holds all rows of the persons in it."""
    persons = None if persons is None else Persons(persons)
    part = RecordSource(rows, None, persons=persons, **parameters)
    part.open()
    return _Counted(function(part), part.n_units)
