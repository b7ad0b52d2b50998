# SPDX-License-Identifier: BSD-3-Clause
"""Private tables in files, which are read in chunks."""

import codecs
import glob
from collections import Counter
from pathlib import Path

import pandas as pd

from .._muting import muted
from ..curator.texts import read_text
from ..exceptions import TableError
from .partitioned import READERS

_CHUNK_ROWS = 50_000


class TableFile:
    """A private table in a CSV or Parquet file; a call returns a fresh iterator over its chunks.

    Names of columns are public, and so is the form of a CSV file: its encoding, and that no row is
    longer than the first line. Whatever is wrong with the file is said without quoting it.

    Parameters
    ----------
    path : str or path
        A .parquet file, which needs pyarrow, or several with the same columns, as
        ``"folder/*.parquet"``; or else a CSV file with a header.
    parse : callable, default=None
        A public map from chunks of a CSV file, all of texts, to chunks of values. None: texts stay,
        and are read as what a schema declares.
    has_header : bool, default=None
        Whether the first line of a CSV file names the columns, and so is public. None: unless it
        looks like a record, with numbers or dates; such a file is refused.
    sep, encoding : str
        Of a CSV file: what separates its cells, and how its characters are written.
    drop : sequence of str, default=()
        Names of columns to leave out.
    person_column : str, default=None
        The column that says whose each row is. It is not among the names, and chunks of a CSV file
        have it as texts.
    """

    states_dtypes = True

    def __init__(
        self,
        path,
        parse=None,
        has_header=None,
        *,
        sep=",",
        encoding="utf-8",
        drop=(),
        person_column=None,
    ):
        self._path = Path(path)
        self._parse = parse
        self._has_header = has_header
        # A mark of the byte order is no part of the first name.
        is_utf8 = codecs.lookup(encoding).name == "utf-8"
        self._encoding = encoding
        self._options = {
            "sep": sep,
            "dtype": str,
            "keep_default_na": False,
            "encoding": "utf-8-sig" if is_utf8 else encoding,
        }
        self._person_column, self._drop = person_column, list(drop)

    @property
    def _is_parquet(self):
        return self._path.suffix.lower() == ".parquet"

    def __call__(self):
        chunks = (chunk.drop(columns=self._drop) for chunk in self._read_chunks())
        return self._withhold(map(self._parse, chunks) if self.are_parsed else chunks)

    @property
    def are_parsed(self):
        """Whether texts are read as what is declared, by `parse`."""
        return not self._is_parquet and self._parse is not None

    def _read_chunks(self):
        return self._read_parquet() if self._is_parquet else self._read_csv()

    def names(self):
        """Return the names of the columns: of a CSV file its first line, without outer spaces."""
        if self._is_parquet:
            return list(self.dtypes())
        return self._keep(self._read(self._read_names))

    def dtypes(self):
        """Return the dtype of each column of a Parquet file, which states them.

        A CSV file states none; what its cells look like is for a release to tell.
        """
        dtypes = self._read(self._read_dtypes)
        return {name: dtypes[name] for name in self._keep(list(dtypes))}

    def _read(self, read):
        return next(self._withhold(read() for _ in range(1)))

    def _keep(self, names):
        """Return the names of columns that are not to be left out."""
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
        return dict(schema.empty_table().to_pandas(types_mapper=_nullable_dtypes().get).dtypes)

    def _read_parquet(self):
        from pyarrow.parquet import ParquetFile

        for path in list_files(self._path):
            with ParquetFile(path) as file:
                for batch in file.iter_batches(_CHUNK_ROWS):
                    yield batch.to_pandas(types_mapper=_nullable_dtypes().get)

    def on_engine(self, engine):
        """Return the rows of Parquet files, and whose they are, as a table of an engine."""
        paths = list(map(str, list_files(self._path)))
        return READERS[engine](paths, self._drop)

    def _read_csv(self):
        names = self._read_names()
        with pd.read_csv(self._path, chunksize=_CHUNK_ROWS, **self._options) as chunks:
            for chunk in chunks:
                # Where the first row has more cells than the header, they become an index.
                if not isinstance(chunk.index, pd.RangeIndex):
                    raise pd.errors.ParserError
                yield chunk.set_axis(names, axis=1)

    def _read_names(self):
        """Return the names in the first line; refuse what cannot be such, as it is a record."""
        if not codecs.lookup(self._encoding).name.startswith(("utf-16", "utf-32")):
            self._check_marks()
        first = pd.read_csv(self._path, header=None, nrows=1, **self._options)
        names = [str(cell).strip() for cell in first.to_numpy(dtype=object)[0]]
        where = f"The first line of {self._path}"
        if not self._has_header:
            self._check_separator(names, where)
            if any(name and read_text(name)[0] != "text" for name in names):
                raise TableError(
                    f"{where} looks like a record rather than names of columns, which are public: "
                    "it has numbers or dates. Write names above it; or, if these are the names, "
                    "say so by --header yes."
                )
        if "" in names or len(set(names)) < len(names):
            # Names quoted here could be cells.
            positions = [i + 1 for i, name in enumerate(names) if not name]
            repeated = Counter(names)
            positions += [i + 1 for i, name in enumerate(names) if name and repeated[name] > 1]
            raise TableError(
                f"{where} has blank or equal cells, at {_list(positions)}, and so does not name "
                "the columns: give each a name of its own. If the table was written by pandas, "
                "write it with index=False."
            )
        return names

    def _check_marks(self):
        with self._path.open("rb") as file:
            start = file.readline(1000)
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in start:
            raise TableError(
                f"{self._path} seems to be in UTF-16; say so by --encoding utf-16, or save it as "
                "UTF-8."
            )

    def _check_separator(self, names, where):
        """Refuse names that hold another separator, at least one each."""
        for other, name in _SEPARATORS.items():
            if other != self._options["sep"] and sum(n.count(other) for n in names) >= len(names):
                raise TableError(
                    f"{where} holds as many {name} as cells: they seem to be what separates cells. "
                    f"Say so by --sep {other!r}; or, if these are the names, by --header yes."
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
                raise TableError(f"{self._path} is no {self._describe()}.")
            if chunk is None:
                return
            yield chunk

    def _describe(self):
        if self._is_parquet:
            return "Parquet file"
        return (
            f"CSV file in {self._encoding.upper()} with a header, and no row longer than that. If "
            "it is written otherwise, say so by --encoding, such as latin-1, and --sep"
        )


def list_files(path):
    """Return the files that a path, or a pattern as ``"folder/*.parquet"``, names, in order."""
    path = Path(path)
    if path.exists() or not glob.has_magic(path.name):
        return [path]
    return sorted(path.parent.glob(path.name))


# What cells are separated by, as a rule.
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}


def _list(positions):
    return "position " + ", ".join(map(str, positions))


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
