# SPDX-License-Identifier: BSD-3-Clause
"""Public functions that are applied to private rows: quietly, and record by record if they fail.

Such functions may be made anywhere, and are called in this room only. What they say of private
rows, by errors or warnings, goes no further. Whether one fails is decided record by record: were
one record to take others with it, the failure would be a statement about all of them, which no
sensitivity bounds.
"""

import contextlib
import sys
import traceback

import numpy as np
import torch

from .._muting import muted


@contextlib.contextmanager
def clears_frames():
    """Let errors keep nothing of private rows that the caller has not got.

    A traceback keeps the variables of all frames that it has come through, for whoever shows or
    stores it. Those of the frames below are cleared; the lines stay.
    """
    handled = sys.exc_info()[1]
    try:
        yield
    except BaseException as error:
        _clear_frames(error, handled)
        raise


def _clear_frames(error, handled):
    """Clear the frames of an error and those of what it was raised from, up to what is outside."""
    while error is not None and error is not handled:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def call_quietly(function, *args):
    """Apply a public function to what is private; None if it fails.

    What it says of that, by errors or warnings, is dropped.
    """
    with muted():
        try:
            return function(*args)
        except Exception:
            return None


class _PublicFunction:
    def __init__(self, function):
        if not callable(function):
            raise TypeError(f"{type(self).__name__} takes a function; got {function!r}.")
        self._function = function


class RecordFunction(_PublicFunction):
    """A public function of rows, as curators and mechanisms apply it to private ones.

    Whoever makes one promises that the function

    - is public: nothing in it follows from private rows, but by what was released;
    - maps each row on its own, whatever rows are around it, to as many numbers as it maps a row of
      zeros to, which is public and by which they are counted;
    - keeps nothing of what it sees, and tells it nowhere.

    Nothing that it raises or warns of leaves. A record for which it fails counts as absent, and no
    other does.

    Parameters
    ----------
    function : callable
        Maps one or several arrays or tensors, with an entry for each of n records, to rows (n, p).
        Of dtype object, they hold cells of any kind.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpgen.privacy import RecordFunction
    >>> RecordFunction(lambda rows: 1 / rows[:, :1]).on(np.array([[2.0, 3.0]]))
    tensor([[0.5000]], dtype=torch.float64)
    """

    def __init__(self, function):
        super().__init__(function)
        self._widths = {}

    def width_on(self, *blocks, expected=None):
        """Return how many numbers the function gives for a record that looks like those of blocks.

        Raises
        ------
        ValueError
            If these are not as many as expected, or the function fails on a public row of zeros:
            for any records.
        """
        shapes = tuple(None if block is None else block.shape[1:] for block in blocks)
        given, error = self._widths.get(shapes), None
        if given is None:
            try:
                with muted():
                    rows = _as_rows(self._rows(*(_zeros_like(block, 1) for block in blocks)), 1)
            except Exception as raised:
                rows, error = None, raised
            if rows is not None:
                given = self._widths[shapes] = rows.shape[1]
        if given is None or expected not in (None, given):
            wanted = "a row" if expected is None else f"{expected} numbers"
            raise ValueError(
                f"A function of rows must give {wanted} for each; on a public row of zeros it does "
                "not."
            ) from error
        return given

    def on(self, *blocks, width=None):
        """Apply the function to private records.

        Parameters
        ----------
        *blocks : array, tensor or None
            With an entry for each record; None is handed on.
        width : int, default=None
            Numbers of a row, where they are known; see `width_on`.

        Returns
        -------
        tensor of shape (n_records, width)
            NaN where the function fails.
        """
        width = self.width_on(*blocks, expected=width)
        return _by_record(call_quietly(self._rows, *blocks), self._rows, blocks, width)

    def _rows(self, *blocks):
        return self._function(*blocks)


class PullingFunction(RecordFunction):
    """A `RecordFunction` with vector-Jacobian products.

    Parameters
    ----------
    function : callable
        Maps tensors, with an entry for each of n records, to ``(rows, pull)``: rows (n, p), and a
        function that maps cotangents (n, p) to products (n, n_products), each record on its own.
    """

    def with_products(self, *blocks, width=None):
        """Apply the function to private records.

        Parameters
        ----------
        *blocks, width
            As in `on`.

        Returns
        -------
        rows : tensor of shape (n_records, width)
            NaN where the function fails.
        products : callable
            ``products(cotangents, n_products)`` gives a tensor of shape (n_records, n_products),
            NaN where the function fails.
        """
        width = self.width_on(*blocks, expected=width)
        rows, pull = call_quietly(self._call, *blocks) or (None, None)

        def pull_alone(cotangents, *alone):
            return self._call(*alone)[1](cotangents)

        def products(cotangents, n_products):
            found = call_quietly(pull, cotangents)
            return _by_record(found, pull_alone, (cotangents, *blocks), n_products)

        return _by_record(rows, self._rows, blocks, width), products

    def _call(self, *blocks):
        rows, pull = self._function(*blocks)
        return rows, pull

    def _rows(self, *blocks):
        return self._call(*blocks)[0]


class BatchFunction(_PublicFunction):
    """A public function of a sample of rows, which may follow all of them at once.

    Nothing bounds how it follows a record but the size of what it gives. It is public and keeps
    nothing, as a `RecordFunction`, and nothing that it raises or warns of leaves.

    Parameters
    ----------
    function : callable
        Maps tensors, with an entry for each record, to a tensor of public shape.
    """

    def on(self, *blocks, shape):
        """Return what the function gives, a float64 tensor of a shape; zeros if it fails."""
        found = call_quietly(lambda: torch.as_tensor(self._function(*blocks)).detach().double())
        is_good = found is not None and found.shape == shape
        return found if is_good else torch.zeros(shape, dtype=torch.float64)


def check_function(function, kind, owner):
    """Refuse a bare callable: nobody has promised what a function of private rows has to be."""
    if not isinstance(function, kind):
        raise TypeError(
            f"{owner} takes a {kind.__name__}, which says what is promised of a "
            f"function of private rows; got {type(function).__name__}. Write "
            f"{kind.__name__}(function)."
        )


def _by_record(result, function, blocks, width):
    """Return what a function gave for all records, if that is a row for each.

    Otherwise it is applied to one record at a time: the record in its place, and zeros in all
    others, since the rounding of floating-point numbers may depend on the shape.
    """
    n, device = len(blocks[0]), getattr(blocks[0], "device", None)
    rows = _as_rows(result, n, width)
    if rows is not None:
        return rows
    given = None
    for i in range(n):
        alone = _as_rows(call_quietly(function, *(_alone(block, i) for block in blocks)), n, width)
        if alone is not None:
            given = torch.full_like(alone.detach(), torch.nan) if given is None else given
            given[i] = alone[i].detach()
    return torch.full((n, width), torch.nan, device=device) if given is None else given


def _as_rows(result, n, width=None):
    """Return `result` as a tensor, or None if it is not `n` rows of so many numbers."""
    if result is not None and not isinstance(result, torch.Tensor):
        result = call_quietly(lambda: torch.tensor(np.asarray(result, dtype=np.float64)))
    elif result is not None and not result.is_floating_point():
        result = result.double()  # whole numbers know no NaN
    if result is None or result.ndim != 2 or len(result) != n:
        return None
    return result if width in (None, result.shape[1]) else None


def _zeros_like(block, n=None):
    if block is None:
        return None
    block = block[:n]
    return torch.zeros_like(block) if isinstance(block, torch.Tensor) else np.zeros_like(block)


def _alone(block, i):
    alone = _zeros_like(block)
    if alone is not None:
        alone[i] = block[i]
    return alone
