# SPDX-License-Identifier: BSD-3-Clause
"""Where a budget keeps its charges: in memory, or in a file that outlives the process.

A file is an SQLite database. Each change is a transaction of its own, which takes the file's lock
before it reads, and is on the disk when it returns (``synchronous=FULL``). A connection lives as
long as a transaction, so that none is carried through a fork.
"""

import contextlib
import itertools
import json
import os
import sqlite3
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from dp_accounting import DpEvent

from ..exceptions import BudgetExceededError, PrivacyLeakWarning
from .event_json import event_from_dict, event_to_dict

# Seconds to wait for other processes.
_TIMEOUT = 60
_TABLES = [
    "CREATE TABLE budget (terms TEXT NOT NULL, place TEXT NOT NULL, is_closed INTEGER NOT NULL)",
    "CREATE TABLE charges (ticket INTEGER PRIMARY KEY AUTOINCREMENT, events TEXT NOT NULL, "
    "delta REAL NOT NULL, is_for_persons INTEGER NOT NULL)",
]


@dataclass(frozen=True)
class Charge:
    """What one fit is charged.

    Attributes
    ----------
    events : tuple of dp_accounting.DpEvent
        What it has released, or has reserved.
    delta : float
        Of its plan.
    is_for_persons : bool
        Whether its unit is a person.
    """

    events: tuple
    delta: float
    is_for_persons: bool


class MemoryStore:
    """Charges that are known to this process alone."""

    def __init__(self) -> None:
        self._charges = {}
        self._tickets = itertools.count()
        self._pid = os.getpid()

    def read(self) -> list[Charge]:
        """Return the charges, in order."""
        return list(self._charges.values())

    def add(self, decide: Callable[[list[Charge]], Charge]) -> int:
        """Add the charge that ``decide(charges)`` returns, if it does; return its ticket."""
        if os.getpid() != self._pid:
            raise BudgetExceededError(
                "A PrivacyBudget cannot be spent in a child process: its parent would not see it. "
                "One with a path can."
            )
        charge, ticket = decide(self.read()), next(self._tickets)
        self._charges[ticket] = charge
        return ticket

    def settle(self, ticket: int, events: Iterable[DpEvent]) -> None:
        """Put what was released in place of what was reserved."""
        self._charges[ticket] = replace(self._charges[ticket], events=events)


class FileStore:
    """Charges in a file, for all processes that open it.

    Parameters
    ----------
    path : str or path
    terms : dict
        Of the budget: a file that there is not is made with them, and one that there is must have
        them.

    Attributes
    ----------
    path : Path
    """

    def __init__(self, path: str | PathLike, terms: dict[str, Any]) -> None:
        self.path = Path(path).absolute()
        if not self.path.exists():
            self._make(terms)
        kept, place = read_terms(self.path)
        if kept != terms:
            raise ValueError(
                f"{self.path} is a budget of {_show(kept)}, not of {_show(terms)}: give what it "
                "was made with, or another path."
            )
        if place != _find_place(self.path):
            warnings.warn(
                f"{self.path} is not where it was made: it was copied, restored or moved. What is "
                "charged to another copy is not seen here. Keep one, and delete the others.",
                PrivacyLeakWarning,
                stacklevel=4,
            )

    def read(self) -> list[Charge]:
        """Return the charges, in order."""
        with _transaction(self.path) as database:
            return _read_charges(database)

    def add(self, decide: Callable[[list[Charge]], Charge]) -> int:
        """Add the charge that ``decide(charges)`` returns, if it does; return its ticket."""
        with _transaction(self.path) as database:
            if _is_closed(database):
                raise BudgetExceededError(f"The budget in {self.path} is closed.")
            charge = decide(_read_charges(database))
            row = (_write(charge.events), charge.delta, charge.is_for_persons)
            added = database.execute(
                "INSERT INTO charges (events, delta, is_for_persons) VALUES (?, ?, ?)", row
            )
            return added.lastrowid

    def settle(self, ticket: int, events: Iterable[DpEvent]) -> None:
        """Put what was released in place of what was reserved, or warn that it stays charged."""
        try:
            with _transaction(self.path) as database:
                database.execute(
                    "UPDATE charges SET events = ? WHERE ticket = ?", (_write(events), ticket)
                )
        except OSError as error:
            warnings.warn(
                f"{error} All that the fit had planned stays charged.", RuntimeWarning, stacklevel=4
            )

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be charged any more."""
        with _transaction(self.path) as database:
            return _is_closed(database)

    def close(self) -> None:
        """Let nothing be charged any more, for good."""
        with _transaction(self.path) as database:
            database.execute("UPDATE budget SET is_closed = 1")

    def _make(self, terms: dict[str, Any]) -> None:
        """Make a file at once, unless another process is faster."""
        with tempfile.TemporaryDirectory(dir=self.path.parent) as folder:
            made = Path(folder, self.path.name)
            made.touch()
            place = _find_place(made)
            with _transaction(made) as database:
                for statement in _TABLES:
                    database.execute(statement)
                database.execute("INSERT INTO budget VALUES (?, ?, 0)", (json.dumps(terms), place))
            with contextlib.suppress(FileExistsError):
                os.link(made, self.path)
        with contextlib.suppress(OSError):  # not on all systems
            folder = os.open(self.path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)


def read_terms(path: str | PathLike) -> tuple[dict[str, Any], str]:
    """Return the terms that a file was made with, and where it was then."""
    with _transaction(Path(path).absolute()) as database:
        terms, place = database.execute("SELECT terms, place FROM budget").fetchone()
    return json.loads(terms), place


@contextlib.contextmanager
def _transaction(path: str | PathLike) -> Iterator[sqlite3.Connection]:
    """Give a database, locked; keep all changes, or none if something is raised."""
    # A file that is gone is not made anew: what was spent would be forgotten.
    uri = path.as_uri() + "?mode=rw"
    try:
        with contextlib.closing(
            sqlite3.connect(uri, uri=True, timeout=_TIMEOUT, isolation_level=None)
        ) as database:
            database.execute("PRAGMA synchronous=FULL")
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")
    except sqlite3.Error as error:
        # A connection that is closed takes back what was not committed.
        raise OSError(f"The budget in {path} can be neither read nor charged ({error}).") from error


def _find_place(path: str | PathLike) -> str:
    status = path.stat()
    return f"{status.st_dev}:{status.st_ino}"


def _read_charges(database: sqlite3.Connection) -> list[Charge]:
    rows = database.execute("SELECT events, delta, is_for_persons FROM charges ORDER BY ticket")
    return [Charge(_read(events), delta, bool(flag)) for events, delta, flag in rows.fetchall()]


def _is_closed(database: sqlite3.Connection) -> bool:
    return bool(database.execute("SELECT is_closed FROM budget").fetchone()[0])


def _write(events: Iterable[DpEvent]) -> str:
    return json.dumps([event_to_dict(event) for event in events])


def _read(text: str) -> tuple[DpEvent, ...]:
    return tuple(event_from_dict(data) for data in json.loads(text))


def _show(terms: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in terms.items())
