"""Private tables in files, which are read in chunks."""

from pathlib import Path

import pandas as pd

from .exceptions import TableError

__all__ = ["MISSING_TEXTS", "TableFile"]

# Cells of a CSV file that stand for missing values, unless they are declared as categories.
MISSING_TEXTS = {"", "NA", "N/A", "NaN", "nan", "null", "None", "NULL"}

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
    def _is_parquet(self):
        return self._path.suffix == ".parquet"

    def __call__(self):
        chunks = self._read_parquet() if self._is_parquet else map(self._parse, self._read_csv())
        return self._withhold(chunks)

    def dtypes(self):
        """Return the dtype of each column, which is taken to be public.

        A Parquet file states them. Those of a CSV file are found by reading it: boolean for true
        and false, Int64, float64, datetime64[s] for dates in ISO form, else object.
        """
        if self._is_parquet:
            return self._parquet_dtypes()
        fitting, has_cells = {}, set()
        for chunk in self._withhold(self._read_csv()):
            for name, cells in chunk.items():
                cells = cells.str.strip()
                cells = cells[~cells.isin(MISSING_TEXTS)].drop_duplicates()
                if len(cells):
                    has_cells.add(name)
                candidates = fitting.get(name, list(_DTYPES))
                fitting[name] = [dtype for dtype in candidates if _DTYPES[dtype](cells)]
        # A column without cells fits everything.
        return {
            name: pd.api.types.pandas_dtype([*candidates * (name in has_cells), "object"][0])
            for name, candidates in fitting.items()
        }

    def _parquet_dtypes(self):
        import pyarrow as pa
        from pyarrow.parquet import read_schema

        # Whether values are missing is not in the file's schema.
        nullable = {pa.bool_(): pd.BooleanDtype()}
        for bits in (8, 16, 32, 64):
            for name in (f"int{bits}", f"uint{bits}"):
                dtype = name.replace("uint", "UInt").replace("int", "Int")
                nullable[getattr(pa, name)()] = pd.api.types.pandas_dtype(dtype)
        empty = read_schema(self._path).empty_table()
        return dict(empty.to_pandas(types_mapper=nullable.get).dtypes)

    def _read_parquet(self):
        from pyarrow.parquet import ParquetFile

        with ParquetFile(self._path) as file:
            for batch in file.iter_batches(_CHUNK_ROWS):
                yield batch.to_pandas()

    def _read_csv(self):
        with pd.read_csv(
            self._path, dtype=str, keep_default_na=False, encoding="utf-8", chunksize=_CHUNK_ROWS
        ) as chunks:
            for chunk in chunks:
                # Where the first row has more cells than the header, they become an index.
                if not isinstance(chunk.index, pd.RangeIndex):
                    raise pd.errors.ParserError
                yield chunk

    def _withhold(self, chunks):
        """Yield chunks; what readers raise may hold private bytes, and goes no further."""
        while True:
            chunk, failed = None, False
            try:
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


def _is_whole(cells):
    numbers = pd.to_numeric(cells, errors="coerce")
    return (numbers % 1 == 0).all() and not cells.str.contains(".", regex=False).any()


def _is_date(cells):
    try:
        return pd.to_datetime(cells, errors="coerce", format="ISO8601").notna().all()
    except ValueError:  # of several time zones
        return False


_CSV = "CSV file in UTF-8 with a header, and no row longer than that"
# From the narrowest; whether distinct texts are values of it.
_DTYPES = {
    "boolean": lambda cells: cells.str.lower().isin(["true", "false"]).all(),
    "Int64": _is_whole,
    "float64": lambda cells: pd.to_numeric(cells, errors="coerce").notna().all(),
    "datetime64[s]": _is_date,
}
