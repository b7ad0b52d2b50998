# SPDX-License-Identifier: BSD-3-Clause
"""Whose rows are whose: persons are counted, and of each so many rows are chosen.

What is public of identifiers is how many different ones there are, and nothing else: not which, nor
how many rows each has, nor how many rows have none.
"""

import copy
import numbers
from fractions import Fraction
from functools import partial
from hashlib import blake2b

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from .record_functions import call_quietly
from .tensors import as_array
from .texts import MISSING_TEXTS

UNKNOWN_COLUMN = "persons is a text that is the name of no column of X."
NO_IDENTIFIER = "persons holds no identifier: all are missing."


class Persons:
    """The persons whose rows are curated, by an identifier for each row.

    Parameters
    ----------
    persons : array-like of shape (n_rows,), or callable
        Equal ones are of one person. A row without one, which is missing or blank, is nobody's.
        A function returns a fresh iterator over such arrays, which follow each other.

    Attributes
    ----------
    n_persons : int
        How many there are, which is public.

    Raises
    ------
    TypeError, ValueError
        If they are no identifiers, or there are none. None is quoted.
    """

    def __init__(self, persons):
        chunks = persons() if callable(persons) else [persons]
        numbered, codes = {}, []
        for chunk in chunks:
            found, names = _find_names(chunk)
            of_names = [
                -1 if name is None else numbered.setdefault(name, len(numbered))
                for name in map(_write_name, names)
            ]
            # The last is that of rows without one, whose position is -1.
            codes.append(np.array([*of_names, -1], dtype=np.int64)[found])
        self._codes = np.concatenate(codes) if codes else np.zeros(0, dtype=np.int64)
        self._names = list(numbered)
        self.n_persons = len(numbered)
        if self.n_persons == 0:
            raise ValueError(NO_IDENTIFIER)

    def __getstate__(self):
        raise TypeError("Private identifiers cannot be pickled or copied.")

    def check_length(self, n_rows):
        """Refuse another number of identifiers than of rows; none of both is told."""
        if len(self._codes) != n_rows:
            raise ValueError(
                "persons must hold one identifier for each row of X: it has another length."
            )

    def choose(self, max_rows, key, blocks):
        """Choose which rows count: of each person at most `max_rows`.

        Which of them is by a keyed hash of the person and the row, and of how many equal ones the
        person has before it. So each is as likely, and which are chosen follows from the person's
        rows alone, whatever their order: it is the same for whoever has the key.

        Parameters
        ----------
        max_rows : int
        key : bytes
            At most 64.
        blocks : iterable of (X, y)
            All rows, and the labels of each or None. They are read if a person has more than so
            many.

        Returns
        -------
        ndarray of bool of shape (n_rows,)
        """
        chosen = self._codes >= 0
        sizes = np.bincount(self._codes[chosen], minlength=self.n_persons)
        is_one_of_many = chosen & (sizes > max_rows)[self._codes]
        positions = np.flatnonzero(is_one_of_many)
        if len(positions):
            person = self._codes[positions]
            hashes = self._hash_rows(is_one_of_many, key, blocks)
            rows = pd.DataFrame({"person": person, "hash": hashes})
            copies = rows.groupby(["person", "hash"]).cumcount()
            rows["hash"] = _as_hashes(
                _hash(key, b"%d %d" % both) for both in zip(hashes, copies, strict=True)
            )
            rank = rows.sort_values("hash").groupby("person").cumcount().sort_index()
            chosen[positions[rank >= max_rows]] = False
        return chosen

    def _hash_rows(self, wanted, key, blocks):
        """Return a keyed hash of each of some rows, and of the person whose it is."""
        hashes, start = [], 0
        for X, y in blocks:
            stop = start + len(X)
            here = wanted[start:stop]
            written = _write_rows(X[here], None if y is None else y[here])
            names = (_encode(self._names[code]) for code in self._codes[start:stop][here])
            hashes += map(partial(_hash, key), names, written)
            start = stop
        return _as_hashes(hashes)


def check_beside(X, persons):
    """Refuse persons that are a column of X: nothing is learnt of identifiers."""
    name = getattr(persons, "name", None)
    if name is not None and name in getattr(X, "columns", ()):
        raise ValueError(
            f"persons is the column {name!r} of X, and identifiers are no data: say "
            f"persons={name!r}, or X.drop(columns={name!r})."
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
        listed, persons = list(persons), np.empty(len(persons), dtype=object)
        for i, person in enumerate(listed):
            persons[i] = person
    found = call_quietly(pd.factorize, persons)
    if found is None or not all(map(_is_identifier, found[1])):
        raise TypeError("persons holds what is no identifier: they are strings or numbers.")
    return found[0], found[1].tolist()


def _is_identifier(name):
    """Whether equal ones are of one person: not, if it is not even equal to its copy."""
    if isinstance(name, str | numbers.Real):
        return True
    copied = call_quietly(copy.copy, name)
    return bool(call_quietly(lambda: copied == name and hash(copied) == hash(name)))


def _write_name(name):
    """Write an identifier down, equal ones alike, such as 1, 1.0 and True; None for none."""
    if isinstance(name, str):
        name = str.strip(name)
        return None if name in MISSING_TEXTS else repr(name)
    if isinstance(name, float) and name.is_integer():
        name = int(name)
    if isinstance(name, int):
        return str(int(name))
    if name is None or name is pd.NA or name is pd.NaT or not _is_identifier(name):
        return None
    return call_quietly(_write_other, name)


def _write_other(name):
    if isinstance(name, tuple):
        return repr(tuple(map(_write_name, name)))
    if isinstance(name, numbers.Number):
        # Of what is not finite there is no fraction.
        name = None if name != name else call_quietly(Fraction, name) or name
    return None if name is None else str(name)


def hash_persons(persons):
    """Return a whole number for each identifier, the same for equal ones; None for none.

    Each is looked at on its own.
    """
    names = map(_write_name, persons.tolist())
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
