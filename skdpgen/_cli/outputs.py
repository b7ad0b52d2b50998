# SPDX-License-Identifier: BSD-3-Clause
"""Files that are written: checked before anything is read, and put in place all at once."""

import contextlib
import os
import stat
import tempfile
from pathlib import Path

# What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def check_outputs(outputs, inputs):
    """Refuse outputs that cannot be written, or would replace an input or each other.

    Parameters
    ----------
    outputs, inputs : dict of str to str or None
        The names of options, and their paths.
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


def check_input(path):
    """Refuse what is no regular file, which can be read several times."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise ValueError(f"There is no file {path}.") from None
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is no regular file, which could be read several times.")


def check_suffix(path, suffixes):
    """Refuse a file of another kind than those that can be read or written."""
    if Path(path).suffix.lower() not in suffixes:
        raise ValueError(
            f"{path} must end in {' or '.join(suffixes)}, which says what it is; got "
            f"{Path(path).suffix!r}."
        )


def is_parquet(path):
    return Path(path).suffix.lower() == ".parquet"


def _check_output(option, path):
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
            raise ValueError(f"{option} {path} is a device, a pipe or no file; name a file.")
        if not os.access(target, os.W_OK):
            raise ValueError(f"{option} {path} is read-only.")


def _is_same(path, other):
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    # Another name of the same file.
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)


@contextlib.contextmanager
def written_at_once(paths, begin=lambda: None):
    """Give temporary files beside `paths`, which replace them only if all goes well.

    They are put in place in order: so the last never is there without the others. Links are
    followed; files that were there keep their modes, and new ones have those of the umask. Before
    that, `begin` is called.
    """
    targets = [os.path.realpath(path) for path in paths]
    temporary = []
    try:
        for target in targets:
            temporary.append(_make_beside(target))
        yield temporary
        for name, target in zip(temporary, targets, strict=True):
            _flush(name)
            os.chmod(name, _mode_of(target))
        begin()
        _put_in_place(temporary, targets)
    finally:
        for name in temporary:
            _remove(name)


def _put_in_place(temporary, targets):
    """Replace files by temporary ones; if one of them fails, all is as it was.

    Several cannot be replaced at once. Those that were there are moved aside first, the last before
    the others, so that at no time, even if the process is killed, one is beside those of another
    run.
    """
    if len(targets) == 1:
        os.replace(temporary[0], targets[0])
        return
    aside, placed = [], []
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


def _make_beside(target):
    handle, name = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".skdpgen-")
    os.close(handle)
    return name


def _mode_of(target):
    with contextlib.suppress(FileNotFoundError):
        return stat.S_IMODE(os.stat(target).st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _flush(name):
    """Have a file on the disk before another is named after it."""
    with open(name, "rb+") as file:
        os.fsync(file.fileno())


def _remove(name):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)


def write_table(pieces, path, kind, escape):
    """Write pieces of a table as the kind of file that the name of an output says."""
    if is_parquet(kind):
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


def escape_formulas(frame):
    """Return a table, names too, with an apostrophe before texts that begin like a formula."""
    escaped = {_escape(name): column for name, column in frame.items()}
    for name, column in escaped.items():
        if getattr(column.dtype, "kind", "O") not in "iufbM":
            escaped[name] = column.astype(object).map(_escape)
    return type(frame)(escaped)


def _escape(cell):
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
