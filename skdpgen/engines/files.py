# SPDX-License-Identifier: BSD-3-Clause
"""CSV and Parquet files as private tables in chunks."""

import codecs
import glob
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path

import pandas as pd

from ..curator.containers import find_pandas_dtype, read_frame
from ..curator.tables import PartitionedTable, iter_quietly
from ..curator.texts import read_text
from ..exceptions import TableError

# Rows per chunk, which bounds the memory that reading takes.
_CHUNK_ROWS = 50_000
# The usual separators of cells, with their names in messages.
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}


class TableFile:
    """A private table in a CSV or Parquet file; a call returns a fresh iterator over its chunks.

    Column names are public, and so is the form of a CSV file: its encoding, and that no row is
    longer than the first line. Errors quote no cell.

    Parameters
    ----------
    path : str or path
        A .parquet file, which needs pyarrow, or several with the same columns, as
        ``"folder/*.parquet"``; otherwise a CSV file with a header.
    parse : callable, default=None
        A public map from chunks of a CSV file, all of texts, to chunks of values. None: texts stay,
        and are parsed as the schema declares.
    has_header : bool, default=None
        Whether the first line of a CSV file holds the column names, and so is public. None: unless
        it looks like a record, with numbers or dates; such a file is refused.
    sep, encoding : str
        The separator of cells and the encoding of a CSV file.
    drop : sequence of str, default=()
        Names of columns to leave out.
    person_column : str, default=None
        The column that identifies the person of each row. `names` leaves it out, and chunks of a
        CSV file hold it as texts.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from skdpgen.privacy import TableFile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pd.DataFrame({"age": [31, 62]}).to_csv(f"{folder}/ages.csv", index=False)
    ...     TableFile(f"{folder}/ages.csv").names()
    ['age']
    """

    states_dtypes = True

    def __init__(
        self,
        path: str | PathLike,
        parse: Callable | None = None,
        has_header: bool | None = None,
        *,
        sep: str = ",",
        encoding: str = "utf-8",
        drop: Sequence[str] = (),
        person_column: str | None = None,
    ):
        self._path = Path(path)
        self._parse = parse
        self._has_header = has_header
        # A byte order mark is no part of the first name.
        is_utf8 = codecs.lookup(encoding).name == "utf-8"
        self._encoding = encoding
        self._options: dict = {
            "sep": sep,
            "dtype": str,
            "keep_default_na": False,
            "encoding": "utf-8-sig" if is_utf8 else encoding,
        }
        self._person_column, self._drop = person_column, list(drop)

    @property
    def _is_parquet(self):
        return self._path.suffix.lower() == ".parquet"

    def __call__(self) -> Iterator[pd.DataFrame]:
        read = self._read_parquet if self._is_parquet else self._read_csv
        chunks = (chunk.drop(columns=self._drop) for chunk in read())
        parse = None if self._is_parquet else self._parse
        return self._withhold(lambda: chunks if parse is None else map(parse, chunks))

    @property
    def are_parsed(self) -> bool:
        """Whether `parse` parses texts as the schema declares."""
        return not self._is_parquet and self._parse is not None

    def names(self) -> list[str]:
        """Return the column names: in a CSV file its first line, without surrounding spaces."""
        if self._is_parquet:
            return list(self.dtypes())
        return self._keep(next(self._withhold(lambda: [self._read_names()])))

    def dtypes(self) -> dict:
        """Return the dtype of each column of a Parquet file, which states them.

        A CSV file states none; a release must infer the types of its cells.
        """
        dtypes = next(self._withhold(lambda: [self._read_dtypes()]))
        return {name: dtypes[name] for name in self._keep(list(dtypes))}

    def on_engine(self, engine: str) -> PartitionedTable:
        """Return Parquet files as the table of an engine, a module of this package."""
        paths = list(map(str, list_files(self._path)))
        return import_module(f"{__package__}.{engine}").read_parquet(paths, self._drop)

    def _keep(self, names):
        """Return the names of columns that are neither left out nor identify persons."""
        if self._person_column is not None and self._person_column not in names:
            raise TableError(
                f"There is no column {self._person_column!r} of persons among {names}."
            )
        lacking = [name for name in self._drop if name not in names]
        if lacking:
            raise TableError(f"There are no columns {lacking} to drop, among {names}.")
        return [name for name in names if name not in (*self._drop, self._person_column)]

    def _read_dtypes(self):
        from pyarrow.parquet import read_schema

        first, *others = list_files(self._path)
        schema = read_schema(first)
        for other in others:
            if not read_schema(other).equals(schema):
                raise TableError(f"{other} has other columns, or of other types, than {first}.")
        head = schema.empty_table().to_pandas(types_mapper=find_pandas_dtype)
        return dict(read_frame(head).dtypes)

    def _read_parquet(self):
        from pyarrow.parquet import ParquetFile

        for path in list_files(self._path):
            with ParquetFile(path) as file:
                for batch in file.iter_batches(_CHUNK_ROWS):
                    yield batch.to_pandas(types_mapper=find_pandas_dtype)

    def _read_csv(self):
        names = self._read_names()
        with pd.read_csv(self._path, chunksize=_CHUNK_ROWS, **self._options) as chunks:
            for chunk in chunks:
                # Where the first row has more cells than the header, pandas makes an index of them.
                if not isinstance(chunk.index, pd.RangeIndex):
                    raise pd.errors.ParserError
                yield chunk.set_axis(names, axis=1)

    def _read_names(self):
        """Return the names in the first line; refuse a line that looks like a record."""
        if not codecs.lookup(self._encoding).name.startswith(("utf-16", "utf-32")):
            self._check_encoding()
        first = pd.read_csv(self._path, header=None, nrows=1, **self._options)
        names = [str(cell).strip() for cell in first.to_numpy(dtype=object)[0]]
        where = f"The first line of {self._path}"
        if not self._has_header:
            self._check_separator(names, where)
            if any(name and read_text(name)[0] != "text" for name in names):
                raise TableError(
                    f"{where} looks like a record rather than column names, which are public: "
                    "it has numbers or dates. Write names above it; or, if these are the names, "
                    "say so by --header yes."
                )
        counts = Counter(names)
        # Positions only: names quoted here could be cells.
        blank = [i + 1 for i, name in enumerate(names) if not name]
        repeated = [i + 1 for i, name in enumerate(names) if name and counts[name] > 1]
        if blank or repeated:
            positions = ", ".join(map(str, blank + repeated))
            raise TableError(
                f"{where} has blank or equal cells, at position {positions}, and so does not name "
                "the columns: give each a name of its own. If the table was written by pandas, "
                "write it with index=False."
            )
        return names

    def _check_encoding(self):
        with self._path.open("rb") as file:
            start = file.readline(1000)
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in start:
            raise TableError(
                f"{self._path} seems to be in UTF-16; say so by --encoding utf-16, or save it as "
                "UTF-8."
            )

    def _check_separator(self, names, where):
        """Refuse names that contain another separator, at least one each."""
        for other, word in _SEPARATORS.items():
            if other != self._options["sep"] and sum(n.count(other) for n in names) >= len(names):
                raise TableError(
                    f"{where} holds as many {word} as cells: they seem to be what separates cells. "
                    f"Say so by --sep {other!r}; or, if these are the names, by --header yes."
                )

    def _withhold(self, make):
        """Iterate over ``make()``; errors of readers may quote private cells, and are replaced."""
        form = "Parquet file"
        if not self._is_parquet:
            form = (
                f"CSV file in {self._encoding.upper()} with a header, and no row longer than that. "
                "If it is written otherwise, say so by --encoding, such as latin-1, and --sep"
            )
        harmless = (ImportError, OSError, TableError)
        return iter_quietly(make, harmless, lambda error: f"{self._path} is no {form}.")


def list_files(path: str | PathLike) -> list[Path]:
    """Return the files of a path, or of a pattern as ``"folder/*.parquet"``, in order."""
    path = Path(path)
    if path.exists() or not glob.has_magic(path.name):
        return [path]
    return sorted(path.parent.glob(path.name))
