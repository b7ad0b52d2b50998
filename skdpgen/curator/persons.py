# SPDX-License-Identifier: BSD-3-Clause
"""Person-level privacy: canonical identifiers, and the limit of rows that count for each person.

The number of different identifiers is public. Private are which they are, how many rows each has,
and how many rows have none.
"""

import copy
import datetime
import numbers
import operator
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from hashlib import blake2b

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from .._process.muting import muted
from ..data.cells import as_objects, factorize, read_cell
from ..data.containers import adapt_column
from ..data.labels import check_order
from ..data.names import name_cell
from ..data.record_functions import call_quietly
from ..data.texts import MISSING_TEXTS, PLAIN

UNKNOWN_COLUMN = "persons is a text that is the name of no column of X."
NO_IDENTIFIER = (
    "persons holds no identifier: all are missing, lists or the like, or floats from 2**53 on, "
    "which stand for several whole numbers each. Give texts or integers."
)
# Texts that readers take for whole numbers; they hold more digits than floats do. Where decimals
# have a comma, 7 is written as 7,0 beside a missing one; elsewhere commas part thousands.
_WHOLE = re.compile(r"([+-]?)0*(\d+)(\.0*|,0{0,2})?", re.ASCII)
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.0*)?", re.ASCII)
_DIGITS = 4300  # of the longest number that Python writes


class Persons:
    """The persons whose rows are curated, by an identifier for each row.

    Identifiers are equal if their canonical forms are: 7, 7.0, "7", "007" and "7,0" are one. A row
    counts as absent if its identifier is missing, blank or invalid: a list, for example, or a float
    from 2^53 on (of 32 bits: from 2^24 on), which stands for several whole numbers.

    Parameters
    ----------
    persons : array-like of shape (n_rows,), or callable
        A function returns a fresh iterator over such arrays.
    may_be_none : bool, default=False
        Whether there may be no person.

    Attributes
    ----------
    n_persons : int
        Number of different identifiers, which is public.
    n_rows : int
        Number of rows, which is private.
    codes : ndarray of int of shape (n_rows,)
        The number of each row's person; -1 without an identifier.
    names : list of str
        The canonical form of each person's identifier.

    Raises
    ------
    TypeError, ValueError
        If it is no array of identifiers, or there are none. None is quoted.

    Examples
    --------
    >>> Persons([7, "007", None, "b"]).codes.tolist()
    [0, 0, -1, 1]
    """

    def __init__(self, persons, *, may_be_none: bool = False):
        self._codes: dict[str, int] = {}
        chunks = persons() if callable(persons) else [persons]
        codes = [self._encode(chunk, lambda name: len(self._codes)) for chunk in chunks]
        self.codes = np.concatenate(codes) if codes else np.zeros(0, dtype=np.int64)
        self.n_rows, self.n_persons = len(self.codes), len(self._codes)
        self.names = list(self._codes)
        if self.n_persons == 0 and not may_be_none:
            raise ValueError(NO_IDENTIFIER)

    def __getstate__(self):
        raise TypeError("Private identifiers cannot be pickled or copied.")

    def check_length(self, n_rows: int) -> None:
        """Refuse another number of identifiers than of rows; the message quotes neither.

        Raises
        ------
        ValueError
        """
        if self.n_rows != n_rows:
            raise ValueError(
                "persons must hold one identifier for each row of X: it has another length."
            )

    def find_codes(self, persons, unknown: set[str]) -> np.ndarray:
        """Return the code of each row's person, -1 without an identifier or for a new person.

        Parameters
        ----------
        persons : array-like of shape (n_rows,)
        unknown : set of str
            New persons are added to it.
        """

        def add(name):
            unknown.add(name)
            return -1

        return self._encode(persons, add)

    def _encode(self, persons, make_code):
        """Return codes; ``make_code(name)`` gives that of a new name, -1 for none."""
        positions, names = _factorize(persons)
        codes = np.full(len(names) + 1, -1)  # the last is that of rows without an identifier
        for i, name in enumerate(names):
            if name is not None and name not in self._codes and (code := make_code(name)) >= 0:
                self._codes[name] = code
            codes[i] = self._codes.get(name, -1)
        return codes[positions]


class RowLimit:
    """The rows of each person that count: at most M, however often and in any order they are read.

    Rows of a person who has more are chosen by a keyed hash of the person, the row, and its rank
    among equal rows. So each is equally likely, and the choice depends on the person's rows alone,
    not on their order. Rows are identified by that hash and never by position: in a later reading
    no other rows of that person count. For all other persons any M rows count.

    Parameters
    ----------
    persons : Persons
    max_rows : int
        M.
    key : bytes
        At most 64.
    blocks : iterable of (X, y, codes)
        All rows, the labels of each or None, and the codes of their persons. They are read if a
        person has more than M rows.

    Attributes
    ----------
    n_rows : int
        Number of rows that count.
    """

    def __init__(self, persons: Persons, max_rows: int, key: bytes, blocks: Iterable):
        # Codes of -1 belong to nobody; bincount would refuse them.
        sizes = np.bincount(persons.codes[persons.codes >= 0], minlength=persons.n_persons)
        # Only this sum is released, and with noise; sizes of single persons never are.
        self.n_rows = int(np.minimum(sizes, max_rows).sum())
        self.n_persons, self.max_rows = persons.n_persons, max_rows
        self._key, self._names = key, persons.names
        self._has_more = sizes > max_rows
        # If nobody has more than M rows, no row need be hashed.
        self.chosen = self._choose(blocks) if self._has_more.any() else None

    def _choose(self, blocks):
        """Return how many rows of each hash count, for each person who has more than M."""
        hashed = [self.hash_rows(*block) for block in blocks]
        person, hashes = (np.concatenate(parts) for parts in zip(*hashed, strict=True))
        rows = pd.DataFrame({"person": person, "hash": hashes})
        # Equal rows of a person have one hash. Their rank among equals makes them different.
        copies = rows.groupby(["person", "hash"]).cumcount()
        # Hashed again with the key: the order of hashes of equal rows must not follow the order of
        # rows.
        drawn = (_hash(self._key, b"%d %d" % both) for both in zip(hashes, copies, strict=True))
        # Stable, so that a tie, which has a chance of 2^-64, is broken alike in each run.
        order = np.argsort(_to_uint64(drawn), kind="stable")
        rank = rows.iloc[order].groupby("person").cumcount()
        return rows.loc[rank.index[rank < self.max_rows]].value_counts()

    def hash_rows(self, X, y, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Hash the rows of persons who have more than M.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
        y : array of shape (n_rows,) or None
        codes : ndarray of int of shape (n_rows,)
            The codes of their persons.

        Returns
        -------
        persons : ndarray of int of shape (n_hashed,)
        hashes : ndarray of uint64 of shape (n_hashed,)
        """
        here = np.flatnonzero(self.has_more(codes))
        # Rows of other persons are not serialised, which takes most of the time.
        written = _write_rows(X[here], None if y is None else y[here])
        names = (_to_bytes(self._names[code]) for code in codes[here])
        return codes[here], _to_uint64(map(partial(_hash, self._key), names, written))

    def has_more(self, codes: np.ndarray) -> np.ndarray:
        """Return which rows are of persons who have more than M."""
        return (codes >= 0) & self._has_more[codes]

    def start(self) -> "Reading":
        """Return a `Reading`, which counts the rows of one reading."""
        return Reading(self)


class Reading:
    """One reading of all rows: how many may still count of each person.

    Attributes
    ----------
    unknown : set of str
        Persons who were not there in the first reading. None of their rows count.
    """

    def __init__(self, limit: RowLimit):
        # Counts go down as rows are read, so that a person never exceeds M in any reading.
        self._limit = limit
        self._n_left = np.full(limit.n_persons, limit.max_rows)
        if limit.chosen is not None:
            self._index, self._n_chosen = limit.chosen.index, limit.chosen.to_numpy().copy()
        self._is_present = np.zeros(limit.n_persons, dtype=bool)
        self.unknown: set[str] = set()

    @property
    def n_persons(self) -> int:
        """Number of persons in this reading, which is public."""
        return int(self._is_present.sum()) + len(self.unknown)

    def choose(self, X, y, codes: np.ndarray) -> np.ndarray:
        """Choose which of the next rows count.

        Parameters
        ----------
        X, y, codes
            As in `RowLimit.hash_rows`.

        Returns
        -------
        ndarray of bool of shape (n_rows,)
        """
        # Unknown persons, and rows without an identifier, have the code -1.
        counts = codes >= 0
        self._is_present[codes[counts]] = True
        has_more = self._limit.has_more(codes)
        if has_more.any():
            keys = pd.MultiIndex.from_arrays(self._limit.hash_rows(X, y, codes))
            counts[has_more] = _take(self._n_chosen, self._index.get_indexer(keys))
        # After the choice by hash, for all persons: it alone bounds what one person adds to a sum.
        counts[counts] = _take(self._n_left, codes[counts])
        return counts


def _take(n_left, positions):
    """Return which entries find something left at their position, -1 never, and count it down."""
    order = np.argsort(positions, kind="stable")
    ordered = positions[order]
    # The number of equal positions before each.
    n_before = np.empty(len(positions), dtype=np.int64)
    n_before[order] = np.arange(len(positions)) - np.searchsorted(ordered, ordered)
    # -1 would index the last entry, so it is excluded first.
    is_taken = (positions >= 0) & (n_before < n_left[positions])
    np.subtract.at(n_left, positions[is_taken], 1)
    return is_taken


def check_persons(X, persons) -> None:
    """Refuse identifiers that are a column of X, or in another order than its rows.

    Parameters
    ----------
    X : array-like or DataFrame
    persons : array-like or None

    Raises
    ------
    ValueError
        For a Series that is a column of X, or has the labels of its index in another order.
    """
    name = getattr(persons, "name", None)
    if name is not None and name in getattr(X, "columns", ()):
        raise ValueError(
            f"persons is the column {name!r} of X, and identifiers are no data: say "
            f"persons={name!r}, or X.drop(columns={name!r})."
        )
    check_order(X, persons, "persons", "another person's")


def _factorize(persons):
    """Return names of the identifiers, and each row's position among them, -1 for missing.

    Some names may be None, and some equal.
    """
    persons = adapt_column(persons).data
    if isinstance(persons, str) or not hasattr(persons, "__len__"):
        raise TypeError(
            "persons must hold one identifier for each row, as table['patient'] does; got "
            f"{type(persons).__name__}."
        )
    if getattr(persons, "ndim", 1) != 1 or hasattr(persons, "columns"):
        raise ValueError("persons must be 1-dimensional: one identifier for each row of X.")
    if not isinstance(persons, np.ndarray | pd.Series | pd.Index | ExtensionArray):
        persons = as_objects(list(persons))
    column = pd.Series(persons, dtype=object if persons.dtype == object else None)
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        # Nobody has an identifier that a dtype lists and no row has.
        column, dtype = column.cat.remove_unused_categories(), dtype.categories.dtype
    dtype = getattr(dtype, "numpy_dtype", dtype)
    with muted():
        if dtype.kind == "f":
            # Whole numbers that are rounded in few bits are so in more.
            numbers = column.to_numpy(np.float64, na_value=np.nan)
            column = pd.Series(np.where(np.abs(numbers) < _find_end(dtype.type), numbers, np.nan))
        positions, cells = factorize(column)
        names = list(map(_write_name, cells.tolist()))
    return np.arange(len(names)) if positions is None else positions, names


def _is_identifier(name):
    """Whether a value identifies a person: at least it must equal its own copy."""
    # By identity: types, too, may have users' code.
    if any(type(name) is known for known in (str, int, float, bool)):
        return True
    copied = call_quietly(copy.copy, name)
    return call_quietly(lambda: bool(copied == name) and hash(copied) == hash(name)) is True


def _write_name(name):
    """Return the canonical form of an identifier, "7" for 7.0, "7" and "007"; None if invalid."""
    # By the type alone: all attributes may be users' code.
    if issubclass(type(name), str):
        # A byte order mark begins the first cell of some files.
        text = str.strip(name).lstrip("\ufeff")
        if text in MISSING_TEXTS:
            return None
        plain = text.replace(",", "") if _GROUPED.fullmatch(text) else text
        if whole := _WHOLE.fullmatch(plain):
            # Minus zero is zero.
            return f"-{whole[2]}" if whole[1] == "-" and whole[2] != "0" else whole[2]
        name = read_cell(text, PLAIN)
        if isinstance(name, str) or (isinstance(name, float) and not _is_exact(name)):
            # A text that is no number is written with quotes, so that it equals no number's
            # canonical form.
            return repr(text)
    if type(name) is int and abs(name) < 2**64:
        return str(name)  # Python refuses to write very long ones
    if name is None or name is pd.NA or name is pd.NaT or not _is_identifier(name):
        return None
    return _write_float(name) if type(name) is float else call_quietly(_write_other, name)


def _write_float(number):
    # Readers make floats of whole numbers: large ones become equal.
    if not _is_exact(number):
        return None
    number = float(number)
    # A fraction is exact for every float, where a decimal text could equal another one's.
    return str(int(number)) if number.is_integer() else str(Fraction(number))


def _is_exact(number):
    """Whether a float of any width can be no rounded whole number."""
    return abs(float(number)) < _find_end(type(number))


def _find_end(cls):
    """Return the number from which floats of a type are rounded."""
    return 2.0 ** min(np.finfo(cls).nmant + 1, 53)


def _write_other(name):
    if isinstance(name, tuple):
        return repr(tuple(map(_write_name, name)))
    if isinstance(name, bool | np.bool_):
        return str(int(name))
    if isinstance(name, float | np.floating):
        return _write_float(name)
    if isinstance(name, Decimal) and max(abs(name.adjusted()), abs(name.as_tuple()[2])) > _DIGITS:
        return None  # its whole number takes seconds
    if isinstance(name, numbers.Number):
        # Complex ones are no fractions.
        fraction = call_quietly(Fraction, name)
        return None if name != name else str(name if fraction is None else fraction)
    date = read_cell(name, PLAIN)
    return name_cell(date) if isinstance(date, datetime.datetime) else str.__str__(str(name))


def hash_persons(persons) -> list[int | None]:
    """Return a whole number for each identifier, equal for equal ones; None if it is invalid.

    Each is hashed on its own.
    """
    positions, names = _factorize(persons)
    hashes = [None if name is None else hash_name(name) for name in names]
    return [hashes[i] if i >= 0 else None for i in positions.tolist()]


def hash_rows(cells) -> np.ndarray:
    """Return a whole number for each row of cells, equal for equal ones, each on its own."""
    return _to_uint64(map(partial(_hash, b""), _write_rows(cells, None)))


def hash_name(name: str) -> int:
    """Return a whole number for the canonical form of an identifier; see `hash_persons`."""
    # The last bit is dropped: engines hold signed 64-bit integers.
    return _hash(b"", _to_bytes(name)) >> 1


def _write_rows(X, y):
    """Serialize rows with their labels, each on its own: equal rows become equal bytes."""
    X = np.asarray(X)
    is_plain = X.dtype != object
    rows = [row.tobytes() for row in X] if is_plain else _write_each(X.tolist())
    if y is not None:
        rows = list(map(operator.add, rows, _write_each([[label] for label in y.tolist()])))
    return rows


def _write_each(rows):
    written = call_quietly(lambda: list(map(_write_cells, rows)))
    # One row that fails must not change how others are written.
    return [call_quietly(_write_cells, row) or b"" for row in rows] if written is None else written


def _write_cells(cells):
    return _to_bytes(",".join(map(_write_cell, cells)))


def _write_cell(cell):
    """Serialize a cell: engines differ in how they hold whole numbers and missing cells."""
    if isinstance(cell, float):
        # 1 and 1.0 are the same cell to engines that hold a column with missing cells as floats.
        return repr(int(cell)) if cell.is_integer() else repr(float(cell))
    return "nan" if cell is None or cell is pd.NA or cell is pd.NaT else repr(cell)


def _to_uint64(hashes):
    return np.fromiter(hashes, dtype=np.uint64)


def _to_bytes(text):
    return text.encode("utf-8", "surrogatepass")


def _hash(key, *parts):
    hashed = blake2b(key=key, digest_size=8)
    # With its length, so that ("ab", "c") and ("a", "bc") have different hashes.
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little") + part)
    return int.from_bytes(hashed.digest(), "little")
