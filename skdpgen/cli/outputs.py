# SPDX-License-Identifier: BSD-3-Clause
"""Output of commands: files checked before anything is read, complete or absent; warnings."""

import contextlib
import os
import shutil
import signal
import stat
import sys
import tempfile
import textwrap
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..exceptions import FitQualityWarning
from ..messages import COMMAND_LINE, write

# Width of a line of a message on a terminal, at most.
_WIDTH = 100
# How names of temporary files and folders begin.
_PREFIX = ".skdpgen-"
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


def check_outputs(outputs: Mapping[str, str | None], inputs: Mapping[str, str | None]) -> None:
    """Raise ValueError for outputs that cannot be written, or equal an input or each other.

    Both are paths by the names of their options.
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
        # Two outputs must differ, too.
        read[option] = path


def check_input(path: str | os.PathLike) -> None:
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


def print_message(message: object, kind: str = "warning") -> None:
    """Print a message on one line; on a terminal in several, in which options stay whole."""
    lines = [f"skdpgen: {kind}: {message}"]
    if sys.stderr.isatty():
        lines = textwrap.wrap(lines[0], _WIDTH, break_long_words=False, break_on_hyphens=False)
    print("\n  ".join(lines), file=sys.stderr)


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Print warnings of this package without the line of code that caused them."""

    def show(message: Any, category, *args, **kwargs):
        if category.__module__.partition(".")[0] == __name__.partition(".")[0]:
            print_message(write(message, COMMAND_LINE))
        else:
            show_other(message, category, *args, **kwargs)

    show_other = warnings.showwarning
    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def collected_warnings() -> Iterator[list[Warning]]:
    """Yield the list of warnings, each once, those of privacy first; print them before an error."""
    found: dict[str, Warning] = {}
    listed: list[Warning] = []

    def collect(message: Any, category, *args, **kwargs):
        if issubclass(category, UserWarning):
            found.setdefault(str(message), category(write(message, COMMAND_LINE)))
        else:  # of libraries, to their users
            show_other(message, category, *args, **kwargs)

    show_other = warnings.showwarning
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = collect
        try:
            yield listed
        # Warnings say why a run failed; they must not get lost with it.
        except BaseException:
            for message in found.values():
                print_message(message)
            raise
    # Warnings of a weaker guarantee come before those of bad rows.
    listed += sorted(found.values(), key=lambda message: isinstance(message, FitQualityWarning))


def _check_output(option: str, path: str) -> None:
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    _check_writable(f"{option} {path}", folder)
    if os.path.isdir(target):
        raise ValueError(f"{option} {path} is a folder; name a file in it.")
    if os.path.lexists(target):
        if not os.path.isfile(target):
            raise ValueError(f"{option} {path} is a device, a pipe or a broken link; name a file.")
        if not os.access(target, os.W_OK):
            raise ValueError(f"{option} {path} is read-only.")


def _check_writable(what: str, folder: str) -> None:
    if not os.path.isdir(folder):
        raise ValueError(f"{what}: there is no folder {folder}.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"{what}: the folder {folder} cannot be written to.")


def _is_same(path: str, other: str) -> bool:
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    # Hard links have different paths.
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)


def check_folder(option: str, path: str) -> None:
    """Raise ValueError unless a path is a new folder, or an empty one, that can be written."""
    target = os.path.realpath(path)
    _check_writable(f"{option} {path}", os.path.dirname(target))
    if os.path.isdir(target):
        _check_writable(f"{option} {path}", target)
        if os.listdir(target):
            raise ValueError(
                f"{option} {path} holds files already. Name a new folder: each release has its "
                "certificate, and all of them count."
            )
    elif os.path.lexists(target):
        raise ValueError(f"{option} {path} is no folder; name a new one.")


def check_space(path: str, n_cells: int) -> None:
    """Raise ValueError if a disk has no room for cells of texts, of at least two bytes each."""
    needed, free = 2 * n_cells, shutil.disk_usage(os.path.dirname(os.path.realpath(path))).free
    if needed > free:
        raise ValueError(
            f"{path} needs at least {needed / 1e6:,.0f} MB, and its disk has {free / 1e6:,.0f} MB "
            "left. Ask for fewer rows by --n-rows, or name another --output."
        )


@contextlib.contextmanager
def filled_folder(path: str, commit: Callable[[], None] = lambda: None) -> Iterator[Path]:
    """Yield a temporary folder, whose files are moved to `path` if no error is raised.

    Each file is there in full or not at all, even if the process is killed. `commit` is called
    before the first is in place.
    """
    target = os.path.realpath(path)
    # Beside the target, since a rename is atomic within one file system only.
    temporary = Path(tempfile.mkdtemp(dir=os.path.dirname(target), prefix=_PREFIX))
    try:
        yield temporary
        files = sorted(temporary.iterdir())
        for file in files:
            _flush(str(file))
        commit()
        os.makedirs(target, exist_ok=True)
        for file in files:
            os.replace(file, os.path.join(target, file.name))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def replaced(
    paths: Iterable[str], commit: Callable[[], None] = lambda: None
) -> Iterator[list[str]]:
    """Yield temporary files beside `paths`, which replace them, in order, if no error is raised.

    Links are followed. Existing files keep their modes, and new ones have those of the umask.
    `commit` is called before the first of them is replaced.
    """
    targets = [os.path.realpath(path) for path in paths]
    temporary: list[str] = []
    try:
        for target in targets:
            handle, name = tempfile.mkstemp(dir=os.path.dirname(target), prefix=_PREFIX)
            os.close(handle)
            temporary.append(name)
        yield temporary
        for name, target in zip(temporary, targets, strict=True):
            # To the disk before the rename, or a crash could leave an empty file under the final
            # name.
            _flush(name)
            os.chmod(name, _mode_of(target, 0o666))
        commit()
        for name, target in zip(temporary, targets, strict=True):
            os.replace(name, target)
    finally:
        for name in temporary:
            # Those that were renamed are gone.
            Path(name).unlink(missing_ok=True)


def _mode_of(target: str, new: int) -> int:
    with contextlib.suppress(FileNotFoundError):
        return stat.S_IMODE(os.stat(target).st_mode)
    # The umask can only be read by setting it.
    umask = os.umask(0)
    os.umask(umask)
    return new & ~umask


def _flush(name: str) -> None:
    """Write a file to the disk, before it replaces another."""
    with open(name, "rb+") as file:
        os.fsync(file.fileno())


class Interrupted(KeyboardInterrupt):
    """Raised by a signal, of this number, that ends the process."""

    def __init__(self, number: int, message: str = "interrupted.") -> None:
        super().__init__(message)
        self.number = number


@contextlib.contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Raise `Interrupted` on a signal that ends the process, unless the signal is ignored.

    Later signals are ignored, so that none interrupts the clean-up. Call the function that is
    yielded before what must complete: it ignores all signals until the end of the context.
    """
    # Python allows signal handlers in the main thread only.
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    before = {n: signal.getsignal(n) for n in numbers}
    # Ignored signals stay ignored, as under nohup. None stands for handlers that C code has set.
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
