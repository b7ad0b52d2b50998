# SPDX-License-Identifier: BSD-3-Clause
"""Whose rows are whose: persons are counted, and of each so many rows are chosen.

What is public of identifiers is how many different ones there are, and nothing else: not which, nor
how many rows each has, nor how many rows have none.
"""

import copy
import numbers
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from .record_functions import call_quietly
from .tensors import as_array
from .texts import MISSING_TEXTS


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
                -1 if name in MISSING_TEXTS else numbered.setdefault(name, len(numbered))
                for name in names
            ]
            # The last is that of rows without one, whose position is -1.
            codes.append(np.array([*of_names, -1], dtype=np.int64)[found])
        self._codes = np.concatenate(codes) if codes else np.zeros(0, dtype=np.int64)
        self._names = list(numbered)
        self.n_persons = len(numbered)
        if self.n_persons == 0:
            raise ValueError("persons holds no identifier: all are missing.")

    def __getstate__(self):
        raise TypeError("Private identifiers cannot be pickled or copied.")

    def check_length(self, n_rows):
        """Refuse another number of identifiers than of rows; none of both is told."""
        if len(self._codes) != n_rows:
            raise ValueError(
                "persons must hold one identifier for each row of X: it has another length."
            )

    def choose(self, max_rows, key):
        """Choose which rows count: of each person at most `max_rows`.

        Which of them is by a keyed hash of the person and of the number of the row among theirs:
        it follows from the person's rows alone, and is the same for whoever has the key.

        Parameters
        ----------
        max_rows : int
        key : bytes
            At most 64.

        Returns
        -------
        ndarray of bool of shape (n_rows,)
        """
        chosen = self._codes >= 0
        sizes = np.bincount(self._codes[chosen], minlength=self.n_persons)
        too_many = np.flatnonzero(chosen & (sizes > max_rows)[self._codes])
        in_order = too_many[np.argsort(self._codes[too_many], kind="stable")]
        codes = self._codes[in_order]
        for start, stop in pairwise(np.flatnonzero(np.diff(codes, prepend=-1, append=-1))):
            person = blake2b(_to_bytes(self._names[codes[start]]), key=key, digest_size=16)
            hashes = [_hash(person, number) for number in range(stop - start)]
            by_hash = sorted(range(stop - start), key=hashes.__getitem__)
            chosen[in_order[start:stop][by_hash[max_rows:]]] = False
        return chosen


def check_beside(X, persons):
    """Refuse persons that are a column of X: nothing is learnt of identifiers."""
    name = getattr(persons, "name", None)
    if name is not None and name in getattr(X, "columns", ()):
        raise ValueError(
            f"persons is the column {name!r} of X, and identifiers are no data: give "
            f"X.drop(columns={name!r})."
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
    return found[0], [n.strip() if isinstance(n, str) else n for n in found[1].tolist()]


def _is_identifier(name):
    """Whether equal ones are of one person: not, if it is not even equal to its copy."""
    if isinstance(name, str | numbers.Real):
        return True
    copied = call_quietly(copy.copy, name)
    return bool(call_quietly(lambda: copied == name and hash(copied) == hash(name)))


def _hash(person, number):
    row = person.copy()
    row.update(b"\0" + number.to_bytes(8, "little"))
    return row.digest()


def _to_bytes(name):
    """Write an identifier down; equal numbers are one, such as 1, 1.0 and True."""
    if isinstance(name, numbers.Real) and name == call_quietly(int, name):
        name = int(name)
    return (call_quietly(repr, name) or "").encode("utf-8", "surrogatepass")
