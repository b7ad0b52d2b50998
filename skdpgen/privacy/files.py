"""Private tables in files, which are read in chunks."""

import contextlib
import datetime
import math
import re
from pathlib import Path

import pandas as pd

from ..exceptions import TableError
from .record_functions import muted

# Cells of a CSV file that stand for missing values, unless they are declared as categories.
MISSING_TEXTS = {"", "NA", "N/A", "NaN", "nan", "null", "None", "NULL"}

# What a cell of a CSV file can be. Digits after a zero are a code rather than a number.
TEXT_KINDS = ("whole", "number", "boolean", "date", "text", "missing")
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]{0,14})")
_NUMBER = re.compile(r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2})?)?")

_CHUNK_ROWS = 50_000


class TableFile:
    """A private table in a CSV or Parquet file; a call returns a fresh iterator over its chunks.

    Whatever is wrong with the file is said without quoting it.

    Parameters
    ----------
    path : str or path
        A .parquet file, which needs pyarrow, or else a CSV file in UTF-8 with a header.
    parse : callable
        A public map from chunks of a CSV file, all of texts, to chunks of values.
    has_header : bool, default=None
        Whether the first line of a CSV file names the columns, and so is public. None: unless it
        looks like a record, with numbers, dates, empty or equal cells; such a file is refused.
    """

    def __init__(self, path, parse, has_header=None):
        self._path = Path(path)
        self._parse = parse
        self._has_header = has_header

    @property
    def _is_parquet(self):
        return self._path.suffix == ".parquet"

    def __call__(self):
        chunks = self._read_parquet() if self._is_parquet else map(self._parse, self._read_csv())
        return self._withhold(chunks)

    def names(self):
        """Return the names of the columns of a CSV file: its first line."""
        return next(iter(self._withhold(self._read_csv()))).columns.tolist()

    def dtypes(self):
        """Return the dtype of each column of a Parquet file, which states them.

        A CSV file states none; what its cells look like is for a release to tell.
        """
        from pyarrow.parquet import read_schema

        empty = read_schema(self._path).empty_table()
        return dict(empty.to_pandas(types_mapper=_nullable_dtypes().get).dtypes)

    def _read_parquet(self):
        from pyarrow.parquet import ParquetFile

        with ParquetFile(self._path) as file:
            for batch in file.iter_batches(_CHUNK_ROWS):
                yield batch.to_pandas(types_mapper=_nullable_dtypes().get)

    def _read_csv(self):
        if not self._has_header:
            self._check_header()
        with pd.read_csv(
            self._path, dtype=str, keep_default_na=False, encoding="utf-8", chunksize=_CHUNK_ROWS
        ) as chunks:
            for chunk in chunks:
                # Where the first row has more cells than the header, they become an index.
                if not isinstance(chunk.index, pd.RangeIndex):
                    raise pd.errors.ParserError
                yield chunk

    def _check_header(self):
        """Refuse a first line that looks like a record, whose cells would become names."""
        first = pd.read_csv(
            self._path, dtype=str, keep_default_na=False, encoding="utf-8", header=None, nrows=1
        )
        cells = first.to_numpy(dtype=object)[0].tolist()
        if len(set(cells)) < len(cells) or any(read_text(cell)[0] != "text" for cell in cells):
            raise TableError(
                f"The first line of {self._path} looks like a record rather than names of columns, "
                "which are public: it has numbers, dates, empty or equal cells. Write names above "
                "it; or, if these are the names, say so by --header yes."
            )

    def _withhold(self, chunks):
        """Yield chunks; what readers raise or warn of may quote private cells, and is dropped."""
        while True:
            chunk, failed = None, False
            try:
                with muted():
                    chunk = next(chunks, None)
            except (ImportError, OSError, TableError):
                raise
            except Exception:
                failed = True
            if failed:
                kind = "Parquet file" if self._is_parquet else _CSV
                raise TableError(f"{self._path} is no {kind}.")
            if chunk is None:
                return
            yield chunk


def _nullable_dtypes():
    """Return pandas' dtypes for those of Arrow, of which no value is changed where others miss."""
    import pyarrow as pa

    # Whether values are missing is not in a file's schema.
    nullable = {pa.bool_(): pd.BooleanDtype()}
    for bits in (8, 16, 32, 64):
        for name in (f"int{bits}", f"uint{bits}"):
            dtype = name.replace("uint", "UInt").replace("int", "Int")
            nullable[getattr(pa, name)()] = pd.api.types.pandas_dtype(dtype)
    return nullable


def read_text(text):
    """Return the kind of a text, one of `TEXT_KINDS`, and its value.

    It is a function of this text alone: what a cell is does not depend on others.

    Examples
    --------
    >>> read_text("12"), read_text("1.5"), read_text("012"), read_text("TRUE")
    (('whole', 12.0), ('number', 1.5), ('text', '012'), ('boolean', True))
    """
    text = text.strip()
    if text in MISSING_TEXTS:
        return "missing", None
    if _WHOLE.fullmatch(text):
        return "whole", float(text)
    if _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return "number", float(text)
    if text.lower() in ("true", "false"):
        return "boolean", text.lower() == "true"
    if _DATE.fullmatch(text):
        with contextlib.suppress(ValueError):
            return "date", datetime.datetime.fromisoformat(text)
    return "text", text


_CSV = "CSV file in UTF-8 with a header, and no row longer than that"
