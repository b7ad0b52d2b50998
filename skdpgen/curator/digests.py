# SPDX-License-Identifier: BSD-3-Clause
"""Digests of what was released, by which one release is told from another."""

import hashlib
from dataclasses import fields, is_dataclass

import numpy as np
import torch


class Digest:
    """BLAKE2b of released dataclasses, one after the other."""

    def __init__(self):
        self._hash = hashlib.blake2b(digest_size=32)

    def add(self, released):
        """Go on with a release."""
        for part in _parts(released):
            self._hash.update(len(part).to_bytes(8, "big") + part)

    def __str__(self):
        return self._hash.hexdigest()


def _parts(value):
    """Give the bytes of all numbers in a released value, in one order."""
    if is_dataclass(value):
        for field in fields(value):
            yield field.name.encode()
            yield from _parts(getattr(value, field.name))
    elif isinstance(value, np.ndarray | torch.Tensor):
        array = np.asarray(value.cpu() if isinstance(value, torch.Tensor) else value)
        yield f"{array.dtype.str} {array.shape}".encode()
        yield np.ascontiguousarray(array).tobytes()
    elif isinstance(value, dict):
        for key in sorted(value, key=repr):
            yield from _parts((key, value[key]))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _parts(item)
    else:
        yield repr(value).encode()
