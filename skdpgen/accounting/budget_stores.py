# SPDX-License-Identifier: BSD-3-Clause
"""Storage of a budget's charges, in memory or in a file that outlives the process.

A file is an SQLite database. Each change is one transaction, which locks the file before it reads,
and is on disk when it returns (``synchronous=FULL``). Each transaction opens a connection of its
own, so that no connection is carried through a fork.

The number of changes is stored in the database and, after each commit, in a second file beside it:
a database that was restored from an earlier copy has a smaller number. A process that is killed
between the two writes leaves the larger number in the database, which is not taken for a restore.
"""

import contextlib
import itertools
import json
import os
import sqlite3
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from dp_accounting import DpEvent

from ..exceptions import BudgetExceededError, PrivacyLeakWarning, warn_caller
from .event_types import event_from_dict, event_to_dict

# Seconds to wait for the lock. Each process holds it for one short transaction.
_TIMEOUT = 60
_TABLES = [
    "CREATE TABLE budget (terms TEXT NOT NULL, place TEXT NOT NULL, is_closed INTEGER NOT NULL, "
    "n_changes INTEGER NOT NULL)",
    "CREATE TABLE charges (ticket INTEGER PRIMARY KEY AUTOINCREMENT, events TEXT NOT NULL, "
    "delta REAL NOT NULL, is_for_persons INTEGER NOT NULL, digest TEXT)",
]


@dataclass(frozen=True)
class Charge:
    """Charge for one fit."""

    # Reserved events; after the fit, the released ones. A charge without any is kept, too.
    events: tuple
    # Target δ of the plan.
    delta: float
    # Whether the privacy unit is a person.
    is_for_persons: bool
    # Digest of the released numbers, once they are known. An update of a stream that follows them
    # takes over this charge at no cost.
    digest: str | None = None


# Takes the charges by their tickets. Returns the ticket of the charge to replace, or None for a new
# one; the charge to store; and the charge to settle for if nothing is released.
Decide = Callable[[dict[int, Charge]], tuple[int | None, Charge, Charge]]


class MemoryStore:
    """Charges in the memory of one process."""

    def __init__(self) -> None:
        self._charges: dict[int, Charge] = {}
        self._tickets = itertools.count()
        # The parent would not see charges to a forked copy.
        self._pid = os.getpid()

    def read(self) -> list[Charge]:
        """Return the charges, in order."""
        return list(self._charges.values())

    def add(self, decide: Decide) -> tuple[int, Charge]:
        """Store the charge that `decide` returns; return its ticket, and what `decide` keeps."""
        if os.getpid() != self._pid:
            raise BudgetExceededError(
                "A PrivacyBudget without a path cannot be spent in a child process: its parent "
                "would not see the charge. Give it a path."
            )
        ticket, charge, unused = decide(self._charges)
        ticket = next(self._tickets) if ticket is None else ticket
        self._charges[ticket] = charge
        return ticket, unused

    def settle(self, ticket: int, charge: Charge) -> None:
        """Replace the reserved charge by that for what was released."""
        self._charges[ticket] = charge


class FileStore:
    """Charges in a file, shared by all processes that open it.

    The file is created if it does not exist; an existing one must have the same terms, the
    parameters of the budget. Its `path` is absolute.
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
        self._inode, self._is_warned = inode, False
        with _transaction(self.path) as database:
            self._warn_of_copies(database)

    def _warn_of_copies(self, database: sqlite3.Connection) -> None:
        """Warn, once, if the file is a copy, or restored: charges to another may be missing."""
        is_only = self._inode == _find_inode(self.path) and not _is_restored(database, self.path)
        if not (is_only or self._is_warned):
            self._is_warned = True
            warn_caller(
                f"{self.path} was copied, restored or moved: charges to another copy may be "
                "missing here. Keep one copy, and delete the others.",
                PrivacyLeakWarning,
            )

    def read(self) -> list[Charge]:
        """Return the charges, in order."""
        with _transaction(self.path) as database:
            return list(_read_charges(database).values())

    def add(self, decide: Decide) -> tuple[int, Charge]:
        """Store the charge that `decide` returns; return its ticket, and what `decide` keeps."""
        with _transaction(self.path) as database:
            if _is_closed(database):
                raise BudgetExceededError(f"The budget in {self.path} is closed.")
            self._warn_of_copies(database)
            ticket, charge, unused = decide(_read_charges(database))
            return _write_charge(database, ticket, charge), unused

    def settle(self, ticket: int, charge: Charge) -> None:
        """Replace the reserved charge; warn if the file cannot be written."""
        try:
            with _transaction(self.path) as database:
                _write_charge(database, ticket, charge)
        except OSError as error:
            # The reservation costs at least as much as the releases, so it can stay.
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
        # Write under another name, then link: no process ever sees a file without its terms.
        with tempfile.TemporaryDirectory(dir=self.path.parent) as folder:
            draft = Path(folder, self.path.name)
            draft.touch()
            inode = _find_inode(draft)
            with _transaction(draft) as database:
                for statement in _TABLES:
                    database.execute(statement)
                # A deleted budget of this name may have left a count, which must be exceeded.
                row = (json.dumps(terms), inode, _read_count(self.path) + 1)
                database.execute("INSERT INTO budget VALUES (?, ?, 0, ?)", row)
            with contextlib.suppress(FileExistsError):
                os.link(draft, self.path)
        with contextlib.suppress(OSError):  # Not all systems can open folders.
            # The link itself survives a crash only after the folder is written to disk.
            descriptor = os.open(self.path.parent, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


def read_terms(path: str | PathLike) -> tuple[dict[str, Any], str]:
    """Return the parameters of a stored budget, and the device and inode of its creation."""
    with _transaction(Path(path).absolute()) as database:
        terms, inode = database.execute("SELECT terms, place FROM budget").fetchone()
    stored = json.loads(terms)
    # All budgets of versions that did not store this were adaptive.
    stored.setdefault("adaptive", True)
    return stored, inode


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
            # Lock before reading, not at the first write: two processes that read the same sum
            # could each add a charge to it.
            database.execute("BEGIN IMMEDIATE")
            yield database
            # Do not count changes of a restored file, so that every process still warns of it.
            is_counted = database.total_changes and not _is_restored(database, path)
            if is_counted:
                database.execute("UPDATE budget SET n_changes = n_changes + 1")
            database.execute("COMMIT")
            if is_counted:
                # Lock again, so that the larger of two numbers is written last. The charge is
                # committed, so errors do not matter here.
                with contextlib.suppress(sqlite3.Error):
                    database.execute("BEGIN IMMEDIATE")
                    _write_count(path, _count_changes(database))
    except sqlite3.Error as error:
        # Closing a connection rolls back uncommitted changes.
        raise OSError(f"The budget in {path} can be neither read nor charged ({error}).") from error


def _count_changes(database: sqlite3.Connection) -> int:
    return int(database.execute("SELECT n_changes FROM budget").fetchone()[0])


def _is_restored(database: sqlite3.Connection, path: Path) -> bool:
    return _count_changes(database) < _read_count(path)


def _read_count(path: Path) -> int:
    """Return the number of changes in the file beside a budget, or 0."""
    with contextlib.suppress(OSError, ValueError):
        return int(Path(f"{path}-count").read_text())
    return 0


def _write_count(path: Path, n_changes: int) -> None:
    # A full disk must not undo a charge. No need to truncate: counts grow, and so overwrite all.
    with contextlib.suppress(OSError):
        descriptor = os.open(f"{path}-count", os.O_WRONLY | os.O_CREAT, 0o666)
        os.write(descriptor, str(n_changes).encode())
        os.close(descriptor)


def _find_inode(path: Path) -> str:
    status = path.stat()
    return f"{status.st_dev}:{status.st_ino}"


def _read_charges(database: sqlite3.Connection) -> dict[int, Charge]:
    """Return the charges by their tickets, in order."""
    rows = database.execute(
        "SELECT ticket, events, delta, is_for_persons, digest FROM charges ORDER BY ticket"
    ).fetchall()
    return {
        ticket: Charge(_read(events), delta, bool(flag), digest)
        for ticket, events, delta, flag, digest in rows
    }


def _write_charge(database: sqlite3.Connection, ticket: int | None, charge: Charge) -> int:
    """Store a charge, under a new ticket if it is None; return the ticket."""
    # Store events rather than an ε: each new fit is composed with all others, under a joint δ.
    row = (ticket, _write(charge.events), charge.delta, charge.is_for_persons, charge.digest)
    return database.execute("REPLACE INTO charges VALUES (?, ?, ?, ?, ?)", row).lastrowid or 0


def _is_closed(database: sqlite3.Connection) -> bool:
    return bool(database.execute("SELECT is_closed FROM budget").fetchone()[0])


def _write(events: Iterable[DpEvent]) -> str:
    return json.dumps([event_to_dict(event) for event in events])


def _read(text: str) -> tuple[DpEvent, ...]:
    return tuple(event_from_dict(data) for data in json.loads(text))


def _show(terms: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in terms.items())
