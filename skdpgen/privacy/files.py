"""Private tables in files, which are read in chunks."""

from pathlib import Path

import pandas as pd

from .exceptions import TableError

__all__ = ["TableFile"]

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
    """

    def __init__(self, path, parse):
        self._path = Path(path)
        self._parse = parse

    @property
    def has_dtypes(self):
        """Whether the file says of what type its columns are."""
        return self._path.suffix == ".parquet"

    def __call__(self):
        return self._read_parquet() if self.has_dtypes else self._read_csv()

    def _read_parquet(self):
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        try:
            with ParquetFile(self._path) as file:
                for batch in file.iter_batches(_CHUNK_ROWS):
                    yield batch.to_pandas()
        except ArrowException:
            raise TableError(f"{self._path} is no Parquet file that can be read.") from None

    def _read_csv(self):
        try:
            chunks = pd.read_csv(
                self._path,
                dtype=str,
                keep_default_na=False,
                encoding="utf-8",
                index_col=False,
                chunksize=_CHUNK_ROWS,
            )
            with chunks:
                for chunk in chunks:
                    yield self._parse(chunk)
        except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError):
            raise TableError(
                f"{self._path} is no CSV file in UTF-8 with a header and as many cells in each row."
            ) from None
