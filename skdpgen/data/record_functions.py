# SPDX-License-Identifier: BSD-3-Clause
"""Public functions of private rows: their contract, and calls that withhold errors and warnings.

Such functions may be defined anywhere, and are called in this package only. Their errors and
warnings may quote private rows and are dropped. Failures are isolated record by record: if one
record made others fail, the failure would be a statement about all of them, which no sensitivity
bounds.
"""

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch

from .._process.muting import muted
from ..exceptions import INTERRUPTS, PublicValueError, TableError


@contextlib.contextmanager
def clears_frames() -> Iterator[None]:
    """Clear the local variables of frames in tracebacks of errors that are raised inside.

    A traceback keeps the variables of all its frames, private rows among them, for whoever shows or
    stores it. Line numbers are kept.
    """
    # An error that is being handled already belongs to the caller, and its frames do, too.
    handled = sys.exc_info()[1]
    try:
        yield
    except BaseException as error:
        _clear_frames(error, handled)
        raise


def _clear_frames(error, handled):
    """Clear the frames of an error, of its causes and contexts, up to an error handled outside."""
    while error is not None and error is not handled:
        traceback.clear_frames(error.__traceback__)
        # Both are followed: `from None` hides a context but keeps it.
        error = error.__cause__ or error.__context__


class drops_errors:
    """Drop what is raised inside, unless it ends the program.

    An error of a cell's own code would be a statement about a record.
    """

    def __enter__(self):
        return self

    def __exit__(self, cls, error, frames):
        return cls is not None and not issubclass(cls, INTERRUPTS)


def call_quietly(function: Callable, *args):
    """Apply a public function to private values; None if it fails.

    Its errors and warnings are dropped.
    """
    with muted(), drops_errors():
        return function(*args)


def iter_quietly(
    make: Callable[[], Iterable], harmless: tuple, describe: Callable[..., str]
) -> Iterator:
    """Yield the items of ``make()``, whose errors and warnings may quote private cells.

    Warnings are suppressed. The generator closes the source at the end, or when it is closed.
    Errors of `harmless` types quote no cell, and are re-raised; `describe` maps any other to the
    message of the TableError that replaces it.
    """
    with contextlib.ExitStack() as opened:
        items, message = None, None
        while message is None:
            try:
                with muted():
                    if items is None:
                        source = make()
                        if hasattr(source, "close"):
                            opened.callback(call_quietly, source.close)
                        items = iter(source)
                    item = next(items)
            except StopIteration:
                return
            except (*harmless, *INTERRUPTS):
                raise
            except BaseException as error:
                message = describe(error)
            else:
                yield item
    # Raised here, so that it carries no other error.
    raise TableError(message)


def describe_failure(
    error, what="The function that gives the chunks of X", *, names_file: bool = True
) -> str:
    """Describe an error of a source without its message; the file of one record has no name."""
    failure = type(error).__name__
    if isinstance(error, OSError) and error.errno is not None:
        # The system's text for the number: an error's own text may quote anything.
        failure = f"{failure}: {os.strerror(error.errno)}"
        failure += f", {error.filename}" * names_file
    return (
        f"{what} failed ({failure}). Its message is withheld, as it may quote rows: call it "
        "yourself to read it."
    )


class _PublicFunction:
    def __init__(self, function: Callable):
        if not callable(function):
            raise TypeError(f"{type(self).__name__} takes a function; got {function!r}.")
        self._function = function


class RecordFunction(_PublicFunction):
    """A public function of rows that curators and mechanisms may apply to private ones.

    Its author promises that the function

    - is public: it depends on private rows through releases only;
    - maps each row on its own, independently of other rows, to as many numbers as it maps a public
      row of zeros to;
    - neither keeps nor reports its input.

    Its errors and warnings are dropped. A record for which it fails counts as absent, and no other
    does.

    Parameters
    ----------
    function : callable
        Maps one or several arrays or tensors, with an entry for each of n records, to rows (n, p).
        Arrays of dtype object hold cells of any type.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpgen.privacy import RecordFunction
    >>> RecordFunction(lambda rows: 1 / rows[:, :1]).on(np.array([[2.0, 3.0]]))
    tensor([[0.5000]], dtype=torch.float64)
    """

    def __init__(self, function: Callable):
        super().__init__(function)
        self._widths: dict[tuple, int] = {}

    def width_on(self, *blocks, expected: int | None = None) -> int:
        """Return the number of values of the function for records of the shapes of blocks.

        Parameters
        ----------
        *blocks : array, tensor or None
            Their shapes are used, and no values.
        expected : int, default=None
            The number that is required.

        Raises
        ------
        ValueError
            If it is not the expected number, or the function fails on a public row of zeros.
        """
        # Widths are kept: asking once a shape is enough, and a function could be slow.
        shapes = tuple(None if block is None else block.shape[1:] for block in blocks)
        given, error = self._widths.get(shapes), None
        if given is None:
            try:
                # Its own warnings on zeros concern no record, but would confuse.
                with muted():
                    rows = _as_rows(self._rows(*(_zeros_like(block, 1) for block in blocks)), 1)
            except Exception as raised:
                rows, error = None, raised
            # Outside of the handler, so that the error below is raised from it and not during it.
            if rows is not None:
                given = self._widths[shapes] = rows.shape[1]
        if given is None or expected not in (None, given):
            wanted = "a row" if expected is None else f"{expected} numbers"
            raise PublicValueError(
                f"A function of rows must give {wanted} for each; on a public row of zeros it does "
                "not."
            ) from error
        return given

    def on(self, *blocks, width: int | None = None) -> torch.Tensor:
        """Apply the function to private records.

        Parameters
        ----------
        *blocks : array, tensor or None
            With an entry for each record; None is passed on.
        width : int, default=None
            Numbers of a row, if known; see `width_on`.

        Returns
        -------
        tensor of shape (n_records, width)
            NaN where the function fails.
        """
        # Known before private rows are touched, from a public row of zeros.
        width = self.width_on(*blocks, expected=width)
        return _by_record(call_quietly(self._rows, *blocks), self._rows, blocks, width)

    def after(self, select: Callable) -> "RecordFunction":
        """Return the function of some of the columns: of what `select` maps the first block to."""
        return RecordFunction(lambda block, *others: self._function(select(block), *others))

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

    def with_products(self, *blocks, width: int | None = None) -> tuple[torch.Tensor, Callable]:
        """Apply the function to private records.

        Returns
        -------
        rows : tensor of shape (n_records, width)
            NaN where the function fails.
        products : callable
            ``products(cotangents, n_products)`` gives a tensor of shape (n_records, n_products),
            NaN where the function fails.
        """
        width = self.width_on(*blocks, expected=width)
        # One call for rows and products: the forward pass is the expensive part.
        rows, pull = call_quietly(self._call, *blocks) or (None, None)

        def pull_alone(cotangents, *alone):
            return self._call(*alone)[1](cotangents)

        def products(cotangents, n_products):
            result = call_quietly(pull, cotangents)
            return _by_record(result, pull_alone, (cotangents, *blocks), n_products)

        return _by_record(rows, self._rows, blocks, width), products

    def _call(self, *blocks):
        rows, pull = self._function(*blocks)
        return rows, pull

    def _rows(self, *blocks):
        return self._call(*blocks)[0]


class BatchFunction(_PublicFunction):
    """A public function of a batch of rows as a whole.

    Only the norm of its value bounds the influence of a record. It is public and keeps nothing,
    like a `RecordFunction`, and its errors and warnings are dropped.

    Parameters
    ----------
    function : callable
        Maps tensors, with an entry for each record, to a tensor of public shape.
    """

    def on(self, *blocks, shape: tuple) -> torch.Tensor:
        """Return the function's value, a float64 tensor of a shape; zeros if it fails."""
        value = call_quietly(lambda: torch.as_tensor(self._function(*blocks)).detach().double())
        # A failed batch function has value 0, which any bound on its norm allows.
        is_valid = value is not None and value.shape == shape
        return value if is_valid else torch.zeros(shape, dtype=torch.float64)


def check_function(function, cls: type, owner: str) -> None:
    """Refuse a bare callable, whose author has promised nothing."""
    if not isinstance(function, cls):
        raise TypeError(
            f"{owner} takes a {cls.__name__}, which states the promises for a "
            f"function of private rows; got {type(function).__name__}. Write "
            f"{cls.__name__}(function)."
        )


def _by_record(result, function, blocks, width):
    """Return a function's result for all records, if it has a row for each.

    Otherwise apply the function to one record at a time: the record at its position, and zeros at
    all others, since the rounding of floating-point numbers may depend on the shape.
    """
    n, device = len(blocks[0]), getattr(blocks[0], "device", None)
    rows = _as_rows(result, n, width)
    if rows is not None:
        return rows
    # Cells of a frame are read as objects.
    blocks = [b if b is None or isinstance(b, torch.Tensor) else np.asanyarray(b) for b in blocks]
    given = None
    for i in range(n):
        alone = _as_rows(call_quietly(function, *(_alone(block, i) for block in blocks)), n, width)
        # All records keep their positions: only the failed ones become NaN.
        if alone is not None:
            given = torch.full_like(alone.detach(), torch.nan) if given is None else given
            given[i] = alone[i].detach()
    return torch.full((n, width), torch.nan, device=device) if given is None else given


def _as_rows(result, n, width=None):
    """Return `result` as a tensor, or None if its shape is not (n, width)."""
    if result is not None and not isinstance(result, torch.Tensor):
        # A copy: the function may return a view of its input.
        result = call_quietly(lambda: torch.tensor(np.asarray(result, dtype=np.float64)))
    elif result is not None and not result.is_floating_point():
        result = result.double()  # integers have no NaN
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
