"""Calling public functions of rows on private ones: quietly, and record by record if they fail.

A function of rows maps each row on its own. What it says of private rows, by errors or warnings,
goes no further. Whether it fails is decided record by record: were one record to take others with
it, the failure would be a statement about all of them, which no sensitivity bounds.
"""

import warnings

import numpy as np
import torch

__all__ = ["PulledBack", "by_record", "call_quietly", "find_width"]


def call_quietly(function, *args):
    """Apply a public function to private rows; None if it fails.

    What it says of them, by errors or warnings, is dropped.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args)
        except Exception:
            return None


def find_width(function, blocks, width=None):
    """Return how many numbers a function gives for a record, from a public one of zeros.

    Raises
    ------
    ValueError
        If they are not so many as they should be, or the function fails on zeros: for any records.
    """
    given, error = None, None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = _as_rows(function(*(_zeros_like(block[:1]) for block in blocks)), 1, width)
    except Exception as raised:
        error = raised
    if given is None:
        wanted = "a row" if width is None else f"{width} numbers"
        raise ValueError(
            f"A function of rows must give {wanted} for each; on a public row of zeros it does not."
        ) from error
    return given.shape[1]


def by_record(result, function, blocks, width):
    """Return the rows that a function gave for a block of records, NaN where it fails.

    Parameters
    ----------
    result : array, tensor or None
        What it gave for the whole block; None if it failed.
    function : callable
        Gives the rows of `blocks`. Unless `result` is one row for each record, it is applied to
        one record at a time: the record in its place, and zeros in all others, since the rounding
        of floating-point numbers may depend on the shape.
    blocks : sequence of arrays or tensors
        What is mapped, with an entry for each record.
    width : int
        Numbers of a row.

    Returns
    -------
    tensor of shape (n_records, width)
    """
    n = len(blocks[0])
    rows = _as_rows(result, n, width)
    if rows is not None:
        return rows
    given = None
    for i in range(n):
        alone = _as_rows(call_quietly(function, *(_alone(block, i) for block in blocks)), n, width)
        if alone is not None:
            given = torch.full_like(alone.detach(), torch.nan) if given is None else given
            given[i] = alone[i].detach()
    return torch.full((n, width), torch.nan, device=blocks[0].device) if given is None else given


class PulledBack:
    """What a function with a vector-Jacobian product gives for a block of records.

    Parameters
    ----------
    function : callable
        Maps blocks to ``(features, pull)``: a row for each record, and a function that maps
        cotangents at these to products, each record on its own.
    blocks : sequence of tensors
        What is mapped, with an entry for each record.
    n_features : int
        Numbers of a row of features.

    Attributes
    ----------
    features : tensor of shape (n_records, n_features)
        NaN where the function fails.
    """

    def __init__(self, function, blocks, n_features):
        self._function, self._blocks = function, blocks
        called = call_quietly(lambda: tuple(function(*blocks)))
        result, self._pull = called or (None, None)
        self.features = by_record(result, lambda *alone: function(*alone)[0], blocks, n_features)

    def products(self, cotangents, n_products):
        """Return the products with cotangents, NaN where the function fails."""

        def pull_alone(cotangents, *alone):
            return self._function(*alone)[1](cotangents)

        result = call_quietly(self._pull, cotangents)
        return by_record(result, pull_alone, (cotangents, *self._blocks), n_products)


def _as_rows(result, n, width):
    """Return `result` as a tensor, or None if it is not `n` rows of so many numbers."""
    if result is not None and not isinstance(result, torch.Tensor):
        result = call_quietly(lambda: torch.tensor(np.asarray(result, dtype=np.float64)))
    if result is None or result.ndim != 2 or len(result) != n:
        return None
    return result if width in (None, result.shape[1]) else None


def _zeros_like(block):
    return torch.zeros_like(block) if isinstance(block, torch.Tensor) else np.zeros_like(block)


def _alone(block, i):
    alone = _zeros_like(block)
    alone[i] = block[i]
    return alone
