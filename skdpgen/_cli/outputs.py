# SPDX-License-Identifier: BSD-3-Clause
"""Output files: checked before anything is read, and replaced together or not at all."""

import contextlib
import os
import signal
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

# First characters of what spreadsheets run as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


def check_outputs(outputs: Mapping[str, str | None], inputs: Mapping[str, str | None]) -> None:
    """Raise ValueError for outputs that cannot be written, or equal an input or each other.

    Parameters
    ----------
    outputs, inputs : dict of str to str or None
        Paths by the names of their options.
    """
    given = {option: path for option, path in outputs.items() if path is not None}
    read = {option: path for option, path in inputs.items() if path is not None}
    for option, path in given.items():
        _check_output(option, path)
        for other, taken in read.items():
            if _is_same(path, taken):
                raise ValueError(
                    f"{option} {path} and {other} {taken} are the same file; write to another."
                )
        read[option] = path


def check_input(path: str) -> None:
    """Raise ValueError unless a path is a regular file, which can be read several times."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise ValueError(f"There is no file {path}.") from None
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is no regular file, and cannot be read several times.")


def check_suffix(path: str, suffixes: Sequence[str]) -> None:
    """Raise ValueError unless a path ends in one of the suffixes."""
    if Path(path).suffix.lower() not in suffixes:
        raise ValueError(
            f"{path} must end in {' or '.join(suffixes)}, which determines its format; got "
            f"{Path(path).suffix!r}."
        )


def is_parquet(path: str) -> bool:
    """Return whether a path ends in .parquet."""
    return Path(path).suffix.lower() == ".parquet"


def is_excel(path: str) -> bool:
    """Return whether a path ends in .xlsx."""
    return Path(path).suffix.lower() == ".xlsx"


def print_warning(message) -> None:
    """Print a warning on one line."""
    print(f"skdpgen: warning: {message}", file=sys.stderr)


def _check_output(option: str, path: str) -> None:
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise ValueError(f"{option} {path}: there is no folder {folder}.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"{option} {path}: the folder {folder} cannot be written to.")
    if os.path.isdir(target):
        raise ValueError(f"{option} {path} is a folder; name a file in it.")
    if os.path.lexists(target):
        if not os.path.isfile(target):
            raise ValueError(f"{option} {path} is a device, a pipe or a broken link; name a file.")
        if not os.access(target, os.W_OK):
            raise ValueError(f"{option} {path} is read-only.")


def _is_same(path: str, other: str) -> bool:
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    # Hard links have different paths.
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)


@contextlib.contextmanager
def replaced_together(
    paths: Iterable[str], commit: Callable[[], None] = lambda: None
) -> Iterator[list[str]]:
    """Yield temporary files beside `paths`, which replace them if no error is raised.

    Links are followed. Existing files keep their modes, and new ones have those of the umask.

    Parameters
    ----------
    paths : iterable of str
        They are replaced in this order, so that the last never exists without the others.
    commit : callable
        Called before the first of them is replaced.
    """
    targets = [os.path.realpath(path) for path in paths]
    temporary: list[str] = []
    try:
        for target in targets:
            temporary.append(_make_beside(target))
        yield temporary
        for name, target in zip(temporary, targets, strict=True):
            _flush(name)
            os.chmod(name, _mode_of(target))
        commit()
        _replace_all(temporary, targets)
    finally:
        for name in temporary:
            _remove(name)


def _replace_all(temporary: Sequence[str], targets: Sequence[str]) -> None:
    """Replace files by temporary ones; after an error, restore all of them.

    Several files cannot be replaced atomically. Existing ones are moved aside first, the last
    before the others, so that files of two runs are never side by side, even if the process is
    killed.
    """
    if len(targets) == 1:  # atomic
        os.replace(temporary[0], targets[0])
        return
    aside: list[tuple[str, str]] = []
    placed: list[str] = []
    try:
        for target in reversed(targets):
            if os.path.exists(target):
                aside.append((_make_beside(target), target))
                os.replace(target, aside[-1][0])
        for name, target in zip(temporary, targets, strict=True):
            placed.append(target)
            os.replace(name, target)
    except BaseException:
        for target in reversed(placed):
            _remove(target)
        for name, target in reversed(aside):
            if not os.path.exists(target):
                os.replace(name, target)
        raise
    finally:
        for name, _ in aside:
            _remove(name)


def _make_beside(target: str) -> str:
    handle, name = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".skdpgen-")
    os.close(handle)
    return name


def _mode_of(target: str) -> int:
    with contextlib.suppress(FileNotFoundError):
        return stat.S_IMODE(os.stat(target).st_mode)
    # The umask can only be read by setting it.
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _flush(name: str) -> None:
    """Write a file to the disk, before it replaces another."""
    with open(name, "rb+") as file:
        os.fsync(file.fileno())


def _remove(name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)


def write_table(pieces: Iterable[pd.DataFrame], path: str, output: str, escape: bool) -> None:
    """Write pieces of a table in the format of an output's suffix.

    Parameters
    ----------
    pieces : iterable of DataFrame
    path : str
        The (temporary) file to write.
    output : str
        The path of the output.
    escape : bool
        Whether to escape formulas in a CSV file.
    """
    if is_parquet(output):
        _write_parquet(pieces, path)
        return
    for i, piece in enumerate(pieces):
        piece = escape_formulas(piece) if escape else piece
        piece.to_csv(path, index=False, mode="a" if i else "w", header=i == 0)


def _write_parquet(pieces, path):
    from pyarrow import Table
    from pyarrow.parquet import ParquetWriter

    tables = (Table.from_pandas(piece, preserve_index=False) for piece in pieces)
    first = next(tables)
    with ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)


def escape_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with an apostrophe before texts and names that begin like a formula."""
    escaped = {_escape(name): column for name, column in frame.items()}
    for name, column in escaped.items():
        if getattr(column.dtype, "kind", "O") not in "iufbM":
            escaped[name] = column.astype(object).map(_escape)
    return pd.DataFrame(escaped)


def _escape(cell):
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


class Interrupted(KeyboardInterrupt):
    """Raised by a signal that ends the process.

    Parameters
    ----------
    number : int
        Number of the signal.
    message : str
    """

    def __init__(self, number: int, message: str = "interrupted.") -> None:
        super().__init__(message)
        self.number = number


@contextlib.contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Raise `Interrupted` on a signal that ends the process, unless the signal is ignored.

    Later signals are ignored, so that none interrupts the clean-up.

    Yields
    ------
    callable
        Ignores all signals until the end of the context. To be called before what must complete.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    before = {n: signal.getsignal(n) for n in numbers}
    before = {n: handler for n, handler in before.items() if handler not in (signal.SIG_IGN, None)}

    def ignore():
        for number in before:
            signal.signal(number, signal.SIG_IGN)

    def interrupt(number, frame):
        ignore()
        raise Interrupted(number)

    try:
        for number in before:
            signal.signal(number, interrupt)
        yield ignore
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
