"""Cells that are easy to find again, and a search for them in whatever may tell of them."""

import datetime
import struct
import types
from pathlib import Path

import numpy as np
import pandas as pd
import torch

TEXT = "Zq7Smith"
NUMBER = 31415.926535897
WHOLE = 27182818
DATE = datetime.datetime(1987, 6, 5, 4, 3, 2)

_TEXTS = (TEXT, "31415.92", "3.1415926e", "27182818", "2.7182818e", "1987-06-05", "1987, 6, 5")
_BYTES = (
    *(text.encode() for text in _TEXTS),
    TEXT.encode("utf-16-le"),
    TEXT.encode("utf-32-le"),
    struct.pack("<d", NUMBER),
    struct.pack("<f", NUMBER),
    struct.pack("<d", WHOLE),
    struct.pack("<q", WHOLE),
)


def find_in_text(text):
    """Return the secrets that a text, or bytes, tell."""
    known = _BYTES if isinstance(text, bytes) else _TEXTS
    return [secret for secret in known if secret in text]


def find_in_error(error, given):
    """Return where an error, or one that it was raised from or during, tells a secret.

    By its texts, or by what the frames of its traceback keep beside the objects that were given.
    """
    found, seen = [], set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        name = type(error).__name__
        told = [str(error), *map(_show, (error.args, vars(error)))]
        # Attributes that are not among arguments, such as the text that could not be encoded.
        told += [_show(getattr(error, part)) for part in ("object", "doc") if hasattr(error, part)]
        found += [f"{name}: {secret}" for secret in find_in_text("\n".join(told))]
        trace = error.__traceback__
        while trace is not None:
            frame, trace = trace.tb_frame, trace.tb_next
            if Path(__file__).parent in Path(frame.f_code.co_filename).parents:
                continue
            where = f"{name}: {frame.f_code.co_qualname}"
            for local, value in list(frame.f_locals.items()):
                if _holds(value, given):
                    found.append(f"{where} keeps {local}")
        error = error.__cause__ or error.__context__
    return found


def _holds(value, given, depth=6):
    """Whether an object tells a secret, and is none of those that were given."""
    if any(value is own for own in given) or depth == 0:
        return False
    if isinstance(value, list | tuple | set):
        return any(_holds(part, given, depth - 1) for part in list(value)[:50])
    if isinstance(value, dict):
        return any(_holds(part, given, depth - 1) for part in list(value.values())[:50])
    if isinstance(value, types.ModuleType | types.FunctionType | type):
        return False
    if isinstance(value, str | bytes | int | float | complex | np.ndarray | np.generic):
        return bool(find_in_text(_show(value)))
    if isinstance(value, pd.DataFrame | pd.Series | pd.Index | torch.Tensor):
        return bool(find_in_text(_show(value)))
    if type(value).__module__.startswith("skdpgen"):
        return any(_holds(part, given, depth - 1) for part in vars(value).values())
    return False


def _show(value):
    if isinstance(value, str | bytes):
        return value
    with np.printoptions(threshold=100_000, precision=12):
        if isinstance(value, pd.DataFrame | pd.Series | pd.Index):
            value = np.asarray(value, dtype=object)
        if isinstance(value, np.ndarray | torch.Tensor):
            value = value.tolist()
        try:
            return repr(value)
        except Exception:
            return ""
