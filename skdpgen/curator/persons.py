# SPDX-License-Identifier: BSD-3-Clause
"""Whose rows are whose: persons are counted, and of each so many rows are chosen.

What is public of identifiers is how many different ones there are, and nothing else: not which, nor
how many rows each has, nor how many rows have none.
"""

import copy
import datetime
import numbers
import re
from fractions import Fraction
from functools import partial
from hashlib import blake2b

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from .cells import name_cell, read_cell
from .record_functions import call_quietly
from .tensors import as_array
from .texts import MISSING_TEXTS, PLAIN

UNKNOWN_COLUMN = "persons is a text that is the name of no column of X."
NO_IDENTIFIER = "persons holds no identifier: all are missing."
# Texts that readers take for whole numbers; they hold more digits than floats do.
_WHOLE = re.compile(r"\s*([+-]?)0*(\d+)(\.0*)?\s*", re.ASCII)


class Persons:
    """The persons whose rows are curated, by an identifier for each row.

    Identifiers are told apart by their canonical form: 7, 7.0, "7" and "007" are one. A row without
    one counts as absent: one that is missing or blank, that is no identifier, as a list, or a float
    from 2^53 on (of 32 bits: from 2^24 on), which stands for several.

    Parameters
    ----------
    persons : array-like of shape (n_rows,), or callable
        A function returns a fresh iterator over such arrays.

    Attributes
    ----------
    n_persons : int
        How many there are, which is public.
    n_rows : int
        How many rows there are, which is private.
    codes : ndarray of int of shape (n_rows,)
        The number of each row's person, -1 for nobody.
    names : list of str
        The canonical form of each person's identifier.

    Raises
    ------
    TypeError, ValueError
        If it is no array of identifiers, or there are none. None is quoted.
    """

    def __init__(self, persons):
        self._numbered, codes = {}, []
        for chunk in persons() if callable(persons) else [persons]:
            codes.append(self._find_codes(chunk, lambda name: len(self._numbered)))
        self.codes = np.concatenate(codes) if codes else np.zeros(0, dtype=np.int64)
        self.n_rows, self.n_persons = len(self.codes), len(self._numbered)
        self.names = list(self._numbered)
        if self.n_persons == 0:
            raise ValueError(NO_IDENTIFIER)

    def __getstate__(self):
        raise TypeError("Private identifiers cannot be pickled or copied.")

    def check_length(self, n_rows):
        """Refuse another number of identifiers than of rows; none of both is told."""
        if self.n_rows != n_rows:
            raise ValueError(
                "persons must hold one identifier for each row of X: it has another length."
            )

    def find_codes(self, persons, others):
        """Return the number of each row's person, -1 where it is nobody's or of an unknown one.

        Parameters
        ----------
        persons : array-like
        others : set of str
            The unknown ones are added to it.
        """

        def note(name):
            others.add(name)
            return -1

        return self._find_codes(persons, note)

    def _find_codes(self, persons, number):
        """Return codes; those of unknown names are what ``number(name)`` returns, if not -1."""
        found, names = _find_names(persons)
        of_names = np.full(len(names) + 1, -1)  # the last is that of rows without one
        for i, name in enumerate(map(_write_name, names)):
            if name is not None and name not in self._numbered and (code := number(name)) >= 0:
                self._numbered[name] = code
            of_names[i] = self._numbered.get(name, -1)
        return of_names[found]

    def choose(self, max_rows, key, blocks):
        """Return which rows count, of rows in memory; see `RowLimit`.

        Parameters
        ----------
        max_rows : int
        key : bytes
        blocks : sequence of (X, y)
            All rows, in the order of `codes`, and the labels of each or None.

        Returns
        -------
        ndarray of bool of shape (n_rows,)
        """
        stops = np.cumsum([len(X) for X, _ in blocks])[:-1]
        parts = np.split(self.codes, stops)
        read = [(X, y, codes) for (X, y), codes in zip(blocks, parts, strict=True)]
        reading = RowLimit(self, max_rows, key, read).start()
        return np.concatenate([reading.choose(*block) for block in read])


class RowLimit:
    """Which rows of each person count: at most M, however often and in any order they are read.

    Rows of persons who have more are chosen by a keyed hash of the person and the row, and of how
    many equal ones the person has. So each is as likely, and which are chosen follows from the
    person's rows alone, whatever their order. Rows are known by that hash and never by position: in
    a later reading no others of that person count. Any M rows of all other persons count.

    Parameters
    ----------
    persons : Persons
    max_rows : int
        M.
    key : bytes
        At most 64.
    blocks : iterable of (X, y, codes)
        All rows, the labels of each or None, and the numbers of their persons. They are read if a
        person has more than M rows.

    Attributes
    ----------
    n_rows : int
        How many rows count.
    """

    def __init__(self, persons, max_rows, key, blocks):
        sizes = np.bincount(persons.codes[persons.codes >= 0], minlength=persons.n_persons)
        self.n_rows = int(np.minimum(sizes, max_rows).sum())
        self.n_persons = persons.n_persons
        self._max_rows, self._key, self._names = max_rows, key, persons.names
        self._is_large = sizes > max_rows
        self._chosen = None
        if self._is_large.any():
            self._chosen = self._choose(blocks)

    def _choose(self, blocks):
        """Return how many rows of each hash count, of each person who has more than M."""
        found = [self.hash_large(*block) for block in blocks]
        person, hashes = (np.concatenate(parts) for parts in zip(*found, strict=True))
        rows = pd.DataFrame({"person": person, "hash": hashes})
        copies = rows.groupby(["person", "hash"]).cumcount()
        drawn = (_hash(self._key, b"%d %d" % both) for both in zip(hashes, copies, strict=True))
        order = np.argsort(_as_hashes(drawn), kind="stable")
        rank = rows.iloc[order].groupby("person").cumcount()
        return rows.loc[rank.index[rank < self._max_rows]].value_counts()

    def hash_large(self, X, y, codes):
        """Return the person, and a keyed hash, of each row of persons who have more than M."""
        here = np.flatnonzero(self.find_large(codes))
        written = _write_rows(X[here], None if y is None else y[here])
        names = (_encode(self._names[code]) for code in codes[here])
        return codes[here], _as_hashes(map(partial(_hash, self._key), names, written))

    def find_large(self, codes):
        """Return which rows are of persons who have more than M."""
        return (codes >= 0) & self._is_large[codes]

    def start(self):
        """Return a `Reading`: what counts in one reading of all rows."""
        return Reading(self, np.full(self.n_persons, self._max_rows), self._chosen)


class Reading:
    """One reading of all rows: what was counted of each person so far.

    Attributes
    ----------
    others : set of str
        Persons who were not there in the first reading. None of their rows count.
    """

    def __init__(self, limit, left, chosen):
        self._limit, self._left = limit, left
        self._index = None if chosen is None else chosen.index
        self._left_of_chosen = None if chosen is None else chosen.to_numpy().copy()
        self._seen, self.others = np.zeros(limit.n_persons, dtype=bool), set()

    @property
    def n_persons(self):
        """How many persons there were, which is public."""
        return int(self._seen.sum()) + len(self.others)

    def choose(self, X, y, codes):
        """Return which of the next rows count."""
        chosen = codes >= 0
        self._seen[codes[chosen]] = True
        large = self._limit.find_large(codes)
        if large.any():
            keys = pd.MultiIndex.from_arrays(self._limit.hash_large(X, y, codes))
            chosen[large] = _take(self._left_of_chosen, self._index.get_indexer(keys))
        chosen[chosen] = _take(self._left, codes[chosen])
        return chosen


def _take(left, places):
    """Return which of some places can be taken, -1 never, and count down what is left of each."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    # How many before a place are the same.
    n_before = np.empty(len(places), dtype=np.int64)
    n_before[order] = np.arange(len(places)) - np.searchsorted(ordered, ordered)
    taken = (places >= 0) & (n_before < left[places])
    np.subtract.at(left, places[taken], 1)
    return taken


def check_beside(X, persons):
    """Refuse persons that are a column of X, or in another order than its rows."""
    name = getattr(persons, "name", None)
    if name is not None and name in getattr(X, "columns", ()):
        raise ValueError(
            f"persons is the column {name!r} of X, and identifiers are no data: say "
            f"persons={name!r}, or X.drop(columns={name!r})."
        )
    index, other = getattr(X, "index", None), getattr(persons, "index", None)
    if not (isinstance(index, pd.Index) and isinstance(other, pd.Index)):
        return
    if len(index) != len(other) or index.equals(other):
        return
    # Some indexes cannot be compared.
    apart = call_quietly(index.symmetric_difference, other, None, False)
    if apart is not None and not len(apart):
        raise ValueError(
            "persons has the index of X in another order, and rows are taken by position: each "
            "would be another person's. Give persons.loc[X.index]."
        )


def _find_names(persons):
    """Return where each identifier is among the different ones, -1 for missing, and those."""
    persons = as_array(persons)
    if isinstance(persons, str) or not hasattr(persons, "__len__"):
        raise TypeError(
            "persons must hold one identifier for each row, as table['patient'] does; got "
            f"{type(persons).__name__}."
        )
    if getattr(persons, "ndim", 1) != 1 or hasattr(persons, "columns"):
        raise ValueError("persons must be 1-dimensional: one identifier for each row of X.")
    if not isinstance(persons, np.ndarray | pd.Series | pd.Index | ExtensionArray):
        # What NumPy would make of a list depends on what is in it.
        persons = _as_objects(list(persons))
    found = call_quietly(pd.factorize, persons)
    if found is None:
        # Some cells cannot be compared: they are no identifiers, which concerns their rows alone.
        listed = [name if _is_identifier(name) else None for name in persons.tolist()]
        found = pd.factorize(_as_objects(listed))
    different = found[1]
    return found[0], _list_cells(pd.Series(different) if different.dtype.kind == "M" else different)


def _list_cells(cells):
    """Return cells as a list, in which floats of less than 64 bits show what they are."""
    dtype = cells.dtype.categories.dtype if hasattr(cells.dtype, "categories") else cells.dtype
    dtype = getattr(dtype, "numpy_dtype", dtype)
    if dtype.kind == "f" and dtype.itemsize < 8:
        return list(pd.Series(cells).to_numpy(dtype, na_value=np.nan))
    return cells.tolist()


def _as_objects(listed):
    objects = np.empty(len(listed), dtype=object)
    for i, cell in enumerate(listed):
        objects[i] = cell
    return objects


def _is_identifier(name):
    """Whether equal ones are of one person: not, if it is not even equal to its copy."""
    if isinstance(name, str | numbers.Real):
        return True
    copied = call_quietly(copy.copy, name)
    return bool(call_quietly(lambda: copied == name and hash(copied) == hash(name)))


def _write_name(name):
    """Write an identifier in canonical form, such as 7 for 7.0, "7" and "007"; None for none."""
    if isinstance(name, str):
        text = str.strip(name)
        if text in MISSING_TEXTS:
            return None
        if whole := _WHOLE.fullmatch(text):
            return f"-{whole[2]}" if whole[1] == "-" and whole[2] != "0" else whole[2]
        name = read_cell(text, PLAIN)
        if isinstance(name, str) or (isinstance(name, float) and not _is_exact(name)):
            return repr(text)
    if type(name) is int and abs(name) < 2**64:
        return str(name)  # Python refuses to write very long ones
    if name is None or name is pd.NA or name is pd.NaT or not _is_identifier(name):
        return None
    return _write_float(name) if type(name) is float else call_quietly(_write_other, name)


def _write_float(number):
    # Readers make floats of whole numbers: beyond this, of several the same.
    if not _is_exact(number):
        return None
    number = float(number)
    return str(int(number)) if number.is_integer() else str(Fraction(number))


def _is_exact(number):
    """Whether a float of any size is no rounded whole number."""
    n_bits = np.finfo(type(number)).nmant + 1
    return abs(float(number)) < 2.0 ** min(n_bits, 53)


def _write_other(name):
    if isinstance(name, tuple):
        return repr(tuple(map(_write_name, name)))
    if isinstance(name, bool | np.bool_):
        return str(int(name))
    if isinstance(name, float | np.floating):
        return _write_float(name)
    if isinstance(name, numbers.Number):
        # Complex ones are no fractions.
        fraction = call_quietly(Fraction, name)
        return None if name != name else str(name if fraction is None else fraction)
    date = read_cell(name, PLAIN)
    return name_cell(date) if isinstance(date, datetime.datetime) else str(name)


def hash_persons(persons):
    """Return a whole number for each identifier, the same for equal ones; None for none.

    Each is looked at on its own.
    """
    names = map(_write_name, _list_cells(persons))
    return [None if name is None else _hash(b"", _encode(name)) >> 1 for name in names]


def _write_rows(X, y):
    """Write rows down with their labels, equal ones alike; each is looked at on its own."""
    if X.dtype == object:
        cells = X.tolist()
        rows = call_quietly(lambda: list(map(_write_cells, cells)))
        rows = [call_quietly(_write_cells, row) or b"" for row in cells] if rows is None else rows
    else:
        rows = [row.tobytes() for row in X]
    if y is not None:
        rows = [row + _write_cells([label]) for row, label in zip(rows, y.tolist(), strict=True)]
    return rows


def _write_cells(cells):
    return _encode(",".join(map(_write_cell, cells)))


def _write_cell(cell):
    """Write a cell down; engines differ in how they hold whole numbers, and what is missing."""
    if isinstance(cell, float):
        return repr(int(cell)) if cell.is_integer() else repr(float(cell))
    return "nan" if cell is None or cell is pd.NA or cell is pd.NaT else repr(cell)


def _as_hashes(hashes):
    return np.fromiter(hashes, dtype=np.uint64)


def _encode(text):
    return text.encode("utf-8", "surrogatepass")


def _hash(key, *parts):
    hashed = blake2b(key=key, digest_size=8)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little") + part)
    return int.from_bytes(hashed.digest(), "little")
