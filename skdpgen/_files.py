# SPDX-License-Identifier: BSD-3-Clause
"""Names of files, and JSON texts in them, whoever wrote them."""

import json
import os
from pathlib import Path

from .curator.texts import is_writable


def as_path(path):
    """Return the name of a file as a path; a number would be an open file of somebody else's."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the name of a file; got {path!r}.")
    if "\0" in str(path) or not is_writable(str(path)):
        raise ValueError(f"path must be a name that a file can have; got {path!r}.")
    return Path(path)


def read_file(path):
    """Return the text of a file in UTF-8."""
    try:
        return as_path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        pass
    raise ValueError(f"{path} is no text in UTF-8.")


def parse(text, what, **options):
    """Return what a JSON text says; errors begin with what it is."""
    try:
        return json.loads(text, **options)
    except json.JSONDecodeError as error:
        reason = str(error)
    except RecursionError:
        reason = "it is nested too deeply"
    raise ValueError(f"{what} is not valid JSON: {reason}.")
