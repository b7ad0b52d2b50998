# SPDX-License-Identifier: BSD-3-Clause
"""Storage of a budget's charges, in memory or in a file that outlives the process.

A file is an SQLite database. Each change is one transaction, which locks the file before it reads,
and is on disk when it returns (``synchronous=FULL``). Each transaction opens a connection of its
own, so that no connection is carried through a fork.
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

# Seconds to wait for the lock. Each process holds it for one short transaction.
_TIMEOUT = 60
_TABLES = [
    "CREATE TABLE budget (terms TEXT NOT NULL, place TEXT NOT NULL, is_closed INTEGER NOT NULL)",
    "CREATE TABLE charges (ticket INTEGER PRIMARY KEY AUTOINCREMENT, events TEXT NOT NULL, "
    "delta REAL NOT NULL, is_for_persons INTEGER NOT NULL, stream TEXT)",
]


@dataclass(frozen=True)
class Charge:
    """Charge for one fit.

    Attributes
    ----------
    events : tuple of dp_accounting.DpEvent
        Reserved events, and released ones after the fit.
    delta : float
        Target δ of the plan.
    is_for_persons : bool
        Whether the privacy unit is a person.
    stream : str or None
        Name of the stream whose updates are all paid for.
    """

    events: tuple
    delta: float
    is_for_persons: bool
    stream: str | None = None


class MemoryStore:
    """Charges in the memory of one process."""

    def __init__(self) -> None:
        self._charges: dict[int, Charge] = {}
        self._tickets = itertools.count()
        # A forked copy of this object would be charged in vain.
        self._pid = os.getpid()

    def read(self) -> list[Charge]:
        """Return the charges, in order."""
        return list(self._charges.values())

    def add(self, decide: Callable[[list[Charge]], Charge | None]) -> int | None:
        """Add the charge that ``decide(charges)`` returns, if any; return its ticket."""
        if os.getpid() != self._pid:
            raise BudgetExceededError(
                "A PrivacyBudget without a path cannot be spent in a child process: its parent "
                "would not see the charge. Give it a path."
            )
        charge = decide(self.read())
        if charge is None:
            return None
        ticket = next(self._tickets)
        self._charges[ticket] = charge
        # No charge is ever removed: one without releases keeps an empty list of events.
        return ticket

    def settle(self, ticket: int, events: Iterable[DpEvent]) -> None:
        """Replace the reserved events by the released ones."""
        self._charges[ticket] = replace(self._charges[ticket], events=tuple(events))


class FileStore:
    """Charges in a file, shared by all processes that open it.

    Parameters
    ----------
    path : str or path
        File, which is created if it does not exist.
    terms : dict
        Parameters of the budget. An existing file must have the same.

    Attributes
    ----------
    path : Path
        Absolute path of the file.
    """

    def __init__(self, path: str | PathLike, terms: dict[str, Any]) -> None:
        # An absolute path: the working folder may change before the next charge.
        self.path = Path(path).absolute()
        if not self.path.exists():
            self._create(terms)
        stored, inode = read_terms(self.path)
        if stored != terms:
            raise ValueError(
                f"{self.path} is a budget of {_show(stored)}, not of {_show(terms)}: set these "
                "parameters, or another path."
            )
        # A copy of the file starts with the charges of the original: both together could be spent
        # twice.
        if inode != _find_inode(self.path):
            warnings.warn(
                f"{self.path} was copied, restored or moved, and charges to another copy are "
                "missing here. Keep one copy, and delete the others.",
                PrivacyLeakWarning,
                stacklevel=4,
            )

    def read(self) -> list[Charge]:
        """Return the charges, in order."""
        with _transaction(self.path) as database:
            return _read_charges(database)

    def add(self, decide: Callable[[list[Charge]], Charge | None]) -> int | None:
        """Add the charge that ``decide(charges)`` returns, if any; return its ticket."""
        with _transaction(self.path) as database:
            if _is_closed(database):
                raise BudgetExceededError(f"The budget in {self.path} is closed.")
            charge = decide(_read_charges(database))
            if charge is None:
                return None
            # Events rather than an ε: fits are composed again with each new one, under their joint
            # δ.
            row = (_write(charge.events), charge.delta, charge.is_for_persons, charge.stream)
            added = database.execute(
                "INSERT INTO charges (events, delta, is_for_persons, stream) VALUES (?, ?, ?, ?)",
                row,
            )
            return int(added.lastrowid or 0)

    def settle(self, ticket: int, events: Iterable[DpEvent]) -> None:
        """Replace the reserved events by the released ones; warn if the file cannot be written."""
        try:
            with _transaction(self.path) as database:
                database.execute(
                    "UPDATE charges SET events = ? WHERE ticket = ?", (_write(events), ticket)
                )
        except OSError as error:
            # The reservation is at least the cost of the releases, so it may stay.
            warnings.warn(
                f"{error} The whole plan of the fit stays charged.", RuntimeWarning, stacklevel=4
            )

    @property
    def is_closed(self) -> bool:
        """Whether the file refuses further charges."""
        with _transaction(self.path) as database:
            return _is_closed(database)

    def close(self) -> None:
        """Refuse all further charges, permanently."""
        with _transaction(self.path) as database:
            database.execute("UPDATE budget SET is_closed = 1")

    def _create(self, terms: dict[str, Any]) -> None:
        """Create the file atomically, unless another process is faster."""
        # Written under another name and then linked: no process ever sees a file without its terms.
        with tempfile.TemporaryDirectory(dir=self.path.parent) as folder:
            draft = Path(folder, self.path.name)
            draft.touch()
            inode = _find_inode(draft)
            with _transaction(draft) as database:
                for statement in _TABLES:
                    database.execute(statement)
                database.execute("INSERT INTO budget VALUES (?, ?, 0)", (json.dumps(terms), inode))
            with contextlib.suppress(FileExistsError):
                os.link(draft, self.path)
        with contextlib.suppress(OSError):  # Not all systems can open folders.
            # The link itself survives a crash only after the folder is written to disk.
            descriptor = os.open(self.path.parent, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


def read_terms(path: str | PathLike) -> tuple[dict[str, Any], str]:
    """Return the parameters of a stored budget, and the inode at which it was created."""
    with _transaction(Path(path).absolute()) as database:
        terms, inode = database.execute("SELECT terms, place FROM budget").fetchone()
    return json.loads(terms), inode


@contextlib.contextmanager
def _transaction(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield the locked database; commit all changes, or none after an error."""
    # mode=rw does not create a missing file: earlier charges would be lost.
    uri = path.as_uri() + "?mode=rw"
    try:
        with contextlib.closing(
            sqlite3.connect(uri, uri=True, timeout=_TIMEOUT, isolation_level=None)
        ) as database:
            database.execute("PRAGMA synchronous=FULL")
            # Not at the first write: two processes that read the same sum could each add a charge
            # to it.
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")
    except sqlite3.Error as error:
        # Closing a connection rolls back uncommitted changes.
        raise OSError(f"The budget in {path} can be neither read nor charged ({error}).") from error


def _find_inode(path: Path) -> str:
    status = path.stat()
    return f"{status.st_dev}:{status.st_ino}"


def _read_charges(database: sqlite3.Connection) -> list[Charge]:
    rows = database.execute(
        "SELECT events, delta, is_for_persons, stream FROM charges ORDER BY ticket"
    ).fetchall()
    return [
        Charge(_read(events), delta, bool(flag), stream) for events, delta, flag, stream in rows
    ]


def _is_closed(database: sqlite3.Connection) -> bool:
    return bool(database.execute("SELECT is_closed FROM budget").fetchone()[0])


def _write(events: Iterable[DpEvent]) -> str:
    return json.dumps([event_to_dict(event) for event in events])


def _read(text: str) -> tuple[DpEvent, ...]:
    return tuple(event_from_dict(data) for data in json.loads(text))


def _show(terms: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in terms.items())
