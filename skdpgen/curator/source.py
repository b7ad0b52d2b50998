# SPDX-License-Identifier: BSD-3-Clause
"""Reading private rows: all of them in blocks, or a few by their positions."""

import math
import warnings
from functools import partial

import numpy as np
import torch
from tqdm import tqdm

from ..engines.partitioned import PartitionedTable
from ..exceptions import FitQualityWarning, PlanError
from ..mechanisms.base import clip_rows
from .persons import Persons, RowLimit
from .record_functions import RecordFunction, check_function
from .records import look_up, parse_rows

# Rows are read in blocks of this size however they arrive, so that memory does not grow with n
# and chunked rows give the same sums, to the bit, as rows in memory.
_BLOCK = 256
# So many are read at once where they become numbers, once.
_CELLS_AT_ONCE = 2**13


class RecordSource:
    """Private rows as mechanisms see them: in the unit ball, with the class of each.

    What mechanisms get is ``(rows, membership)``: tensors of shape (n, n_columns) and
    (n, n_classes). `membership` is 1 where a row belongs to a class (one column where there are no
    classes), and all 0 for a null record. Records are null that were declared so, and bad
    ones: with a label that is not among the classes, or with a row that is not finite, or for
    which the public map fails. That is decided for each record on its own, and nothing tells which
    or how many they are. A few mechanisms get cells as they are in place of rows.

    Parameters
    ----------
    X, y, classes, prepare, cells, clip_norm, null, persons, refuse, device, verbose
        As in `Curator`.
    max_rows : int or None
        With `persons`, rows of each that count; all others are null records.
    key : bytes or None
        By which it is decided which of them count.

    Attributes
    ----------
    n_units : int
        Number of records or, if there are persons, of these: what is public.
    n_records : int
        How many records there can be that are not null, which follows from what is public.
    n_classes : int
    """

    def __init__(
        self,
        X,
        y,
        *,
        classes,
        prepare,
        cells,
        clip_norm,
        null=None,
        persons=None,
        max_rows=None,
        key=None,
        refuse=None,
        device="cpu",
        verbose=0,
    ):
        self._has_cells = bool(cells)
        self._reader = cells if callable(cells) else None
        self._refuse = refuse
        self._device = device
        self._verbose = verbose
        self._classes = None if classes is None else np.asarray(classes)
        self.n_classes = 1 if classes is None else len(self._classes)
        self._null = None if null is None else torch.as_tensor(np.array(null))
        if self._null is not None and (self._null.dtype != torch.bool or self._null.ndim != 1):
            raise ValueError("null must be a 1-dimensional array of bool.")
        self.max_rows = max_rows
        self._persons, self._key, self._limit = persons, key, None
        self._arrays = None if callable(X) else self._check_arrays(X, y)
        self._chunks = X if callable(X) else lambda: iter([self._arrays])
        self._n_persons_read = set()
        self._is_partitioned = isinstance(X, PartitionedTable)
        self._has_gathered = self._is_partitioned and X.person_column is not None
        if null is not None and (self._has_gathered or (callable(X) and persons is not None)):
            raise ValueError("null is by position, which rows of persons in chunks have not.")
        if self._arrays is not None:
            self._check_count(len(self._arrays[0]))
        self.prepare(prepare, clip_norm)

    def open(self):
        """Read the rows for the first time: what fails from here on may follow from them."""
        if self._arrays is not None:
            self._arrays = self._parse(*self._arrays)
        elif self._has_gathered:
            self._count_persons(self._chunks.n_units)
        elif self._is_partitioned:
            self._check_count(self._chunks.n_units)
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
            raise ValueError("X holds no rows.")
        if self._null is not None and len(self._null) != n_rows:
            raise ValueError("null must have one entry per record.")
        if self._persons is not None:
            self._persons.check_length(n_rows)
            self._count_persons(self._persons.n_persons)

    def _count_persons(self, n_persons):
        self.n_units, self.n_records = n_persons, n_persons * self.max_rows

    def _limit_persons(self):
        """Take for null all rows but so many of each person: the one place where that is done."""
        limit = RowLimit(self._persons, self.max_rows, self._key, self._blocks_of_persons())
        if self._arrays is None:
            self._limit = limit
            return
        reading = limit.start()
        chosen = [reading.choose(*block) for block in self._blocks_of_persons()]
        left_out = ~torch.as_tensor(np.concatenate(chosen))
        self._null = left_out if self._null is None else self._null | left_out
        self._persons = self._key = None  # of no use any more

    def _blocks_of_persons(self):
        """Yield blocks of rows, labels and the numbers of their persons."""
        start = 0
        for X, y, codes in self._batches():
            if self._arrays is not None:
                codes = self._persons.codes[start : start + len(X)]
            start += len(X)
            yield X, y, codes

    def count_rows(self):
        """Return how many records here were not declared null, or left out of those of persons."""
        if self._limit is not None:
            return self._limit.n_rows
        return self._n_rows - (0 if self._null is None else int(self._null.sum()))

    def prepare(self, function, clip_norm):
        """Exchange the public map of the rows, which is tried on zeros, and their radius.

        A radius of None says that they are places, which are in no ball.
        """
        # Squares of much smaller norms underflow, and with them the clip.
        if clip_norm is not None and not 1e-100 <= clip_norm < math.inf:
            raise ValueError(
                f"clip_norm must be positive and finite (at least 1e-100); got {clip_norm!r}."
            )
        self._clip_norm = clip_norm
        if function is not None:
            check_function(function, RecordFunction, "Curator")
        self._prepare = function
        if function is not None and self._arrays is not None and not self._has_cells:
            X, y = self._arrays
            function.width_on(*self._to_map(np.zeros((1, X.shape[1])), y))

    def encode_cells_by(self, function):
        """Have records be their places in the columns of a table from now on, and nothing else.

        Those in memory are held as places, which takes less of it than cells do, and less time.
        """
        self.prepare(function, None)
        if self._arrays is not None:
            parts = [self._rows(X, y) for X, y, _ in self._batches(_CELLS_AT_ONCE)]
            places = [rows.masked_fill(~is_finite[:, None], torch.nan) for rows, is_finite in parts]
            self._arrays = torch.cat(places).cpu().numpy(), self._arrays[1]
            self._has_cells, self._reader, self._prepare = False, None, None

    def add_up(self, function):
        """Return a sum over all records, of whole numbers, which is made where they are.

        Parameters
        ----------
        function : callable
            Takes a `RecordSource` of some of the records, and returns their sum. What is not to
            leave this process is no part of it, as the noise.
        """
        # Which records are null is known by their positions here.
        if not self._is_partitioned or self._null is not None:
            return function(self)
        known = {
            "classes": self._classes,
            "prepare": self._prepare,
            "cells": self._reader or self._has_cells,
            "clip_norm": self._clip_norm,
            "max_rows": self.max_rows,
            "key": self._key,
        }
        return self._chunks.add_up(partial(_add_up_part, function, known))

    def run(self, mechanism, event, *, relation, noise):
        """Run a mechanism on the records. Those of several owners come with their noise."""
        how = {"relation": relation, "noise": noise}
        if self._is_partitioned:
            return self._chunks.run(mechanism, self, event, **how)
        return mechanism.run(self, event, **how)

    def blocks(self, name, size=_BLOCK):
        """Yield all records in blocks, behind a progress bar called `name` when verbose."""
        for X, y, null in self._read(name, size):
            yield self._finish(X, y, null)

    def places(self, name, size=_BLOCK):
        """Yield all records like `blocks`, with their places in place of rows of the unit ball."""
        if self._clip_norm is not None:
            raise PlanError("The records were not put in the places of a table.")
        for X, y, null in self._read(name, size):
            rows, membership = self._find_rows(X, y, null)
            yield rows.to(self._device), membership.to(self._device)

    def cells(self, name):
        """Yield all records like `blocks`, with their cells, an array, in place of the rows."""
        for X, y, null in self._read(name, _BLOCK):
            codes = self._codes(X, y)
            yield X, self._membership(codes, codes >= 0, null)

    def _read(self, name, size):
        """Yield blocks of rows, labels, and which records are null; None for none."""
        is_told = self.max_rows is None
        # Of persons, the number of blocks is not public: there is one step, which is all of them.
        total = -(-self._n_rows // size) if is_told else 1
        with tqdm(desc=name, total=total, disable=not self._verbose) as progress:
            limited = self._read_records if self._limit is None else self._read_persons
            for block in limited(size):
                yield block
                progress.update(is_told)
            progress.update(not is_told)

    def _read_records(self, size):
        start = 0
        for X, y, _ in self._batches(size):
            stop = start + len(X)
            if stop > self._n_rows:
                start = stop
                break
            yield X, y, None if self._null is None else self._null[start:stop]
            start = stop
        if start != self._n_rows:
            raise ValueError(
                "The chunks held another number of rows than before; a function that gives them "
                "must return a fresh iterator over the same rows at each call."
            )

    def _read_persons(self, size):
        reading = self._limit.start()
        for X, y, codes in self._batches(size, reading.others):
            yield X, y, torch.as_tensor(~reading.choose(X, y, codes))
        self._n_persons_read.add(reading.n_persons)

    def warn_of_changes(self):
        """Warn if a reading had other persons than the first; how many there are is public."""
        others = self._n_persons_read - {self.n_units}
        if others:
            warnings.warn(
                f"The function of chunks gave {self.n_units:,} persons at first and "
                f"{others.pop():,} in a later reading. Rows of persons who are new count as "
                "absent. Let it give the same rows at each call.",
                FitQualityWarning,
                stacklevel=2,
            )

    def take(self, positions):
        """Return the records at an array of positions, of which there is at least one."""
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
        if self._clip_norm is None:
            raise PlanError("The records were put in the places of a table, and are in no ball.")
        rows, membership = self._find_rows(X, y, null)
        rows = clip_rows(rows.to(self._device), self._clip_norm)
        if self._clip_norm != 1:
            rows = rows / self._clip_norm
        return rows, membership.to(self._device)

    def _find_rows(self, X, y, null):
        """Return rows after the public map, 0 for those of null records, and the membership."""
        codes, (rows, finite) = self._codes(X, y), self._rows(X, y)
        present = (codes >= 0) & finite
        if not present.all():
            rows = rows.masked_fill(~present[:, None], 0.0)
        return rows, self._membership(codes, present, null)

    def _membership(self, codes, present, null):
        membership = torch.zeros(len(codes), self.n_classes, dtype=torch.float64)
        membership[torch.arange(len(codes)), codes] = 1
        membership[~present] = 0
        if null is not None:
            membership[null] = 0
        return membership

    def _refuse_bad(self):
        """Raise if any record is bad; what is said follows from the rows, but quotes none."""
        for X, y, _ in self._batches():
            self._refuse(X, y)
            if (self._codes(X, y) < 0).any():
                raise ValueError("y holds labels that are not among the given classes.")
            if not self._rows(X, y)[1].all():
                raise ValueError(
                    "X or y holds NaN or infinity, or the encoder makes such rows. With "
                    "strict=False they count as absent; or fill them by a public rule, such as a "
                    "constant. An imputer fitted on private rows would be a release of its own, "
                    "which this ε does not cover."
                )

    def _batches(self, size=_BLOCK, others=None):
        """Yield rows, labels and, in chunks of rows of persons, the numbers of these."""
        chunks = self._chunks()
        if not hasattr(chunks, "__next__"):
            raise TypeError("A function that yields chunks must return a fresh iterator.")
        others = set() if others is None else others
        return _rebatch((self._parse_chunk(chunk, others) for chunk in chunks), size)

    def _parse_chunk(self, chunk, others):
        X, y, persons = (
            (*chunk, None, None)[:3] if isinstance(chunk, tuple) else (chunk, None, None)
        )
        X, y = self._parse(*self._check_arrays(X, y))
        if (persons is not None) != (self._arrays is None and self._persons is not None):
            raise ValueError("Chunks hold identifiers of persons where a plan is for persons.")
        if persons is not None:
            persons = self._persons.find_codes(persons, others)
            if len(persons) != len(X):
                raise ValueError("persons must hold one identifier for each row of a chunk.")
        return X, y, persons

    def _check_arrays(self, X, y):
        X, y = np.asanyarray(X), None if y is None else np.asanyarray(y)
        if X.ndim != 2 or (y is not None and len(y) != len(X)):
            raise ValueError("X must be 2-dimensional, with one label per row in y.")
        if y is None and self._classes is not None:
            raise ValueError("There are classes, but no labels in y.")
        return X, y

    def _parse(self, X, y):
        if not self._has_cells:
            return parse_rows(X), y
        return (X if self._reader is None else self._reader(X)), y

    def _codes(self, X, y):
        """Return the position of each record's label in `classes`, or -1."""
        if self._classes is None:
            return torch.zeros(len(X), dtype=torch.int64)
        return torch.as_tensor(look_up(y, self._classes))

    def _rows(self, X, y):
        """Return rows after the public map, and whether they are finite, before it and after."""
        if self._prepare is None:
            rows, finite = torch.tensor(X, dtype=torch.float64), np.ones(len(X), dtype=bool)
        else:
            blocks, finite = self._to_map(X, y), np.ones(len(X), dtype=bool)
            for i, block in enumerate(blocks):
                if block is not None and block.dtype.kind == "f":
                    # The map could clip what is not finite, or fail: it gets zeros.
                    is_number = np.isfinite(block)
                    finite &= is_number.reshape(len(X), -1).all(axis=1)
                    blocks[i] = block if is_number.all() else np.where(is_number, block, 0)
            rows = self._prepare.on(*blocks).detach().double()
        # NumPy's is several times faster than torch's.
        finite &= np.isfinite(rows.cpu().numpy()).all(axis=1)
        return rows, torch.as_tensor(finite)

    def _to_map(self, X, y):
        """Return what the public map is applied to: X, and y if it is numbers, but no labels."""
        return [X, None if y is None or self._classes is not None else y[: len(X)]]


def _add_up_part(function, known, rows, persons=None):
    """Return the sum over a partition, which holds all rows of the persons in it."""
    persons = None if persons is None else Persons(persons)
    part = RecordSource(rows, None, persons=persons, **known)
    part.open()
    return function(part)


def _rebatch(chunks, size):
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
    parts = zip(*blocks, strict=True)
    return [None if part[0] is None else np.concatenate(part) for part in parts]
