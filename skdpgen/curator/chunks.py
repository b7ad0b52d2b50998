# SPDX-License-Identifier: BSD-3-Clause
"""Private tables that a function gives in chunks."""

import contextlib
import copy
import os
from functools import cached_property

import pandas as pd

from .._muting import muted
from ..exceptions import TableError
from .record_functions import call_quietly


class TableChunks:
    """A table in chunks, from a function that returns a fresh iterator over them at each call.

    Errors of the function are withheld, as they may quote rows. Nothing is kept by position between
    two calls, which may give the rows in different orders.

    Parameters
    ----------
    function : callable

    Attributes
    ----------
    states_dtypes : bool
        Whether dtypes follow from the source alone, as those that a Parquet file states; not those
        that a reader chooses by the cells of each chunk.
    are_parsed : bool
        Whether texts were already read as what the schema declares.
    person_column : str or None
        The column that says whose each row is. It is no data.
    """

    def __init__(self, function):
        self._function = function
        self.states_dtypes = getattr(function, "states_dtypes", False)
        self.are_parsed = getattr(function, "are_parsed", False)
        self.person_column = None

    def of_persons(self, column):
        """Return the table as one of persons, whose identifiers a column holds."""
        table = copy.copy(self)
        table.person_column = column
        return table

    @cached_property
    def head(self):
        """The first chunk without its rows: names of columns are public."""
        with contextlib.closing(self()) as chunks:
            table = next(chunks, None)
        if table is None:
            raise TableError("The table has no rows.")
        return table.iloc[:0] if isinstance(table, pd.DataFrame) else table

    def __call__(self):
        """Return a fresh iterator over the chunks that hold rows, without identifiers."""
        return (table for table, _ in self.with_persons())

    def with_persons(self):
        """Return a fresh iterator over pairs of a chunk and its identifiers, or None."""
        for chunk in self._withhold():
            if self.person_column is None or not isinstance(chunk, pd.DataFrame):
                yield chunk, None
            elif self.person_column not in chunk:
                raise TableError(f"A chunk has no column {self.person_column!r} of persons.")
            else:
                yield chunk.drop(columns=self.person_column), chunk[self.person_column]

    def persons(self):
        """Return a fresh iterator over chunks of identifiers."""
        return (persons for _, persons in self.with_persons())

    def _withhold(self):
        """Yield chunks, and close their source at the end, or where nobody reads on.

        Errors and warnings of the function may quote private cells.
        """
        with contextlib.ExitStack() as opened:
            yield from self._read_quietly(opened)

    def _read_quietly(self, opened):
        # What files raise quotes none.
        told = (ImportError, OSError, TableError) if self.states_dtypes else TableError
        chunks, kind = None, None
        while True:
            try:
                with muted():
                    if chunks is None:
                        source = self._function()
                        if hasattr(source, "close"):
                            opened.callback(call_quietly, source.close)
                        chunks = iter(source)
                    chunk = next(chunks)
            except StopIteration:
                return
            except told:
                raise
            except Exception as error:
                kind = type(error).__name__
                if isinstance(error, OSError) and error.errno is not None:
                    # The system's words, as those of an error may be anybody's.
                    kind = f"{kind}: {os.strerror(error.errno)}, {error.filename}"
            if kind is not None:
                raise TableError(
                    f"The function that gives the chunks of X failed ({kind}). Its message is "
                    "withheld, as it may quote rows: call the function yourself to read it."
                )
            # Readers may end with an empty chunk.
            if not isinstance(chunk, pd.DataFrame) or len(chunk):
                yield chunk
