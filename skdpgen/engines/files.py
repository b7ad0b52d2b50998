# SPDX-License-Identifier: BSD-3-Clause
"""CSV, Excel, JSON Lines and Parquet files as private tables in chunks."""

import codecs
import csv
import glob
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import islice
from os import PathLike
from pathlib import Path

import pandas as pd

from ..data.cells import as_objects, read_cells
from ..data.dtypes import read_arrow_table
from ..data.names import map_distinct, name_cell
from ..data.record_functions import iter_quietly
from ..data.texts import MARKS, PLAIN, read_text
from ..exceptions import TableError
from .excel import iter_rows
from .partitioned import PartitionedTable

# Rows per chunk, which bounds the memory that reading takes.
_CHUNK_ROWS = 50_000
# Most characters of the first line in which a separator is sought.
_MOST_HEADER = 1_000_000
# How files of gzip, zip, bzip2, xz, Zstandard and old spreadsheets begin.
_COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"\xd0\xcf")
# The columns in which pandas writes an index without a name to a Parquet file.
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")
# Forms of files, by their suffix.
FORMS = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "CSV"),
    **dict.fromkeys((".jsonl", ".ndjson"), "JSON"),
    ".parquet": "Parquet",
    ".xlsx": "Excel",
}
# What a file must be that cannot be read, by its form.
_NEEDED = {
    "CSV": "CSV file in {encoding} with a header, and no row longer than that. If it is written "
    "otherwise, say so by --encoding, such as latin-1, and --sep",
    "JSON": "file of JSON Lines: one object a line, with the names that the first one has",
    "Parquet": "Parquet file",
    "Excel": "Excel file (.xlsx) with a header, and no row longer than that",
}
# The usual separators of cells, with their names in messages.
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}


class TableFile:
    """A private table in files; a call returns a fresh iterator over its chunks.

    Column names are public, and so is the form of a CSV, Excel or JSON file: its encoding or its
    sheets, that no row has more cells than the first line, and that none is a list or an object.
    Errors quote no cell.

    Parameters
    ----------
    path : str or path, or list of these
        A .parquet file, which needs pyarrow; an .xlsx file, which needs openpyxl; JSON Lines, as
        .jsonl or .ndjson, one object a line; otherwise a CSV file with a header. Several files with
        the same columns, in a list or as ``"folder/*.csv"``, are one table.
    parse : callable, default=None
        A public map from chunks of a CSV file, all of texts, or of an Excel or JSON file, of texts
        and other values, to chunks of values. None: texts stay, and are parsed as the schema
        declares.
    has_header : bool, default=None
        Whether the first line of a CSV or Excel file holds the column names, and so is public.
        None: unless it looks like a record, with numbers or dates; such a file is refused.
    sep : str, default=None
        The separator of cells of a CSV file. None: the usual one that the first line has most.
    encoding : str, default="utf-8"
        The encoding of a CSV file.
    drop : sequence of str, default=()
        Names of columns to leave out.
    person_column : str, default=None
        The column that identifies the person of each row. `names` leaves it out, and chunks of a
        CSV file hold it as texts.
    sheet : str, default=None
        The sheet of an Excel file that holds the table. None: the only one that is visible.
    na_values : sequence, or dict of str to sequence, default=()
        Texts and numbers that mean a missing value, beside those of `pandas.read_csv`: in all
        columns but that of persons, or by column, where None stands for all of these. -999 is
        -999.0, too.

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
    # Whether cells that are declared to be missing become `MARKS`, by which their words come back,
    # rather than empty.
    has_marks = False

    def __init__(
        self,
        path: str | PathLike | Sequence[str | PathLike],
        parse: Callable | None = None,
        has_header: bool | None = None,
        *,
        sep: str | None = None,
        encoding: str = "utf-8",
        drop: Sequence[str] = (),
        person_column: str | None = None,
        sheet: str | None = None,
        na_values: Sequence | Mapping[str, Sequence] = (),
    ):
        self._given = path
        self._path = _list_paths(path)[0]
        self._sheet = sheet
        self._parse = parse
        self._has_header = has_header
        # A byte order mark is no part of the first name.
        is_utf8 = codecs.lookup(encoding).name == "utf-8"
        self._encoding = encoding
        self._sep = sep
        self._options: dict = {
            "dtype": str,
            "keep_default_na": False,
            "encoding": "utf-8-sig" if is_utf8 else encoding,
        }
        self._person_column, self._drop = person_column, list(drop)
        self._na_values = _read_markers(na_values)
        self._form = find_form(self._path)
        self._is_parquet = self._form == "Parquet"
        if self._na_values and self._is_parquet:
            raise ValueError(
                "na_values are for CSV, Excel and JSON files; a Parquet file states which cells "
                "are missing."
            )

    def __call__(self) -> Iterator[pd.DataFrame]:
        read = self._read_parquet if self._is_parquet else self._read_texts
        chunks = (self._mark_missing(chunk.drop(columns=self._drop)) for chunk in read())
        parse = None if self._is_parquet else self._parse
        return self._withhold(lambda: chunks if parse is None else map(parse, chunks))

    @property
    def sep(self) -> str:
        """The separator of cells: the given one, or the one that the first line shows."""
        if self._sep is None:
            # The names of columns are public, and so is their separator.
            self._sep = _find_separator(self._list_files()[0], self._options["encoding"])
        return self._sep

    @property
    def dialect(self) -> dict:
        """The encoding, line end and quotes of a CSV file, by its first line, which holds names."""
        path, encoding = self._list_files()[0], self._encoding
        with path.open(encoding=encoding, errors="replace", newline="") as file:
            line = file.readline(_MOST_HEADER)
        names = line.lstrip("\ufeff").strip()
        has_quotes = re.fullmatch(f'"[^"]*"(?:{re.escape(self.sep)}"[^"]*")*', names)
        return {
            "encoding": "utf-8-sig" if line.startswith("\ufeff") else encoding,
            "line_end": line[len(line.rstrip("\r\n")) :] or "\n",
            "quoting": csv.QUOTE_ALL if has_quotes else csv.QUOTE_MINIMAL,
        }

    @property
    def has_fixed_dtypes(self) -> bool:
        """Whether all chunks have the same dtypes, in which samples come back."""
        return self._is_parquet

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

    def stated_dtypes(self) -> dict:
        """Return `dtypes`, or those of Arrow where pandas would write another one."""
        import pyarrow as pa

        held, dtypes = self._read_schema(), self.dtypes()
        written = pa.Schema.from_pandas(_read_arrow(held.empty_table()), preserve_index=False)
        types = {n: (held.field(n).type, written.field(n).type) for n in dtypes}
        return {n: dtypes[n] if a == b else pd.ArrowDtype(a) for n, (a, b) in types.items()}

    def on_engine(self, engine: str) -> PartitionedTable:
        """Return Parquet files as the table of an engine, a module of this package."""
        paths = list(map(str, self._list_files()))
        drop = [*self._drop, *filter(_UNNAMED_INDEX.fullmatch, self._read_schema().names)]
        return import_module(f"{__package__}.{engine}").read_parquet(paths, drop)

    def _keep(self, names):
        """Return the names of columns that are neither left out nor identify persons."""
        if self._person_column is not None and self._person_column not in names:
            raise TableError(
                f"There is no column {self._person_column!r} of persons among {names}."
            )
        lacking = [name for name in self._drop if name not in names]
        if lacking:
            raise TableError(f"There are no columns {lacking} to drop, among {names}.")
        unknown = [name for name in self._na_values if name not in (None, *names)]
        if unknown:
            raise TableError(f"na_values names {unknown}, which are no columns; there are {names}.")
        return [name for name in names if name not in (*self._drop, self._person_column)]

    def _mark_missing(self, chunk):
        """Return a chunk without the cells that mean missing values, decided for each on its own.

        Such texts become empty, or `MARKS`, and such cells of spreadsheets None.
        """
        for name in list(chunk) if self._na_values else ():
            everywhere = self._na_values.get(None, []) if name != self._person_column else []
            keys = dict.fromkeys([*self._na_values.get(name, []), *everywhere])
            marks = {key: MARKS[min(i, len(MARKS) - 1)] for i, key in enumerate(keys)}
            found = pd.Series(map(marks.get, _name_cells(chunk[name])), chunk.index, dtype=object)
            empty = "" if self._form == "CSV" else None
            chunk[name] = chunk[name].mask(found.notna(), found if self.has_marks else empty)
        return chunk

    def _read_dtypes(self):
        return dict(_read_arrow(self._read_schema().empty_table()).dtypes)

    def _read_schema(self):
        from pyarrow.parquet import read_schema

        first, *others = self._list_files()
        schema = read_schema(first)
        for other in others:
            if not read_schema(other).equals(schema):
                raise TableError(f"{other} has other columns, or of other types, than {first}.")
        return schema

    def _read_parquet(self):
        from pyarrow.parquet import ParquetFile

        for path in self._list_files():
            with ParquetFile(path) as file:
                for batch in file.iter_batches(_CHUNK_ROWS):
                    yield _read_arrow(batch)

    def _read_texts(self):
        """Yield the chunks of files of other forms, with the columns in the order of the first."""
        names = self._read_names()
        for path in self._list_files():
            # The names of other files may be in another order.
            own = self._read_names_of(path)
            read = {"Excel": self._read_excel, "JSON": self._read_json}
            for chunk in read.get(self._form, self._read_csv)(path, own):
                yield chunk if own == names else chunk[names]

    def _read_csv(self, path, names):
        with pd.read_csv(path, sep=self.sep, chunksize=_CHUNK_ROWS, **self._options) as chunks:
            for chunk in chunks:
                # Where the first row has more cells than the header, pandas makes an index of them.
                if not isinstance(chunk.index, pd.RangeIndex):
                    raise pd.errors.ParserError
                yield chunk.set_axis(names, axis=1)

    def _read_json(self, path, names):
        rows = _iter_objects(path)
        while read := list(islice(rows, _CHUNK_ROWS)):
            if not all(row.keys() <= {*names} for row in read):
                raise ValueError
            # Of object dtype, as a cell must not depend on others.
            chunk = pd.DataFrame(read, columns=names, dtype=object)
            for name in chunk.columns.difference(self._drop):
                if chunk[name].map(type).isin([dict, list]).any():
                    raise TableError(
                        f"{path} has lists or objects in column {name!r}, which no column type "
                        "holds: give a column for each part, or --drop it."
                    )
            yield chunk

    def _read_excel(self, path, names):
        rows = iter_rows(path, self._sheet)
        next(rows)
        make_frame = partial(pd.DataFrame, columns=names, dtype=object)
        chunk: list = []
        for row in rows:
            if len(row) > len(names):
                raise pd.errors.ParserError
            chunk.append(row + [None] * (len(names) - len(row)))
            if len(chunk) == _CHUNK_ROWS:
                yield make_frame(chunk)
                chunk = []
        yield make_frame(chunk)

    def _list_files(self):
        files = list_files(self._given)
        if not files:
            raise FileNotFoundError(f"There are no files {self._path}.")
        return files

    def _read_names(self):
        """Return the names in the first line of the first file; the others have the same."""
        first, *others = self._list_files()
        names = self._read_names_of(first)
        for other in others:
            if sorted(self._read_names_of(other)) != sorted(names):
                raise TableError(f"{other} has other columns than {first}.")
        return names

    def _read_names_of(self, path):
        """Return the names in the first line; refuse a line that looks like a record."""
        if self._form == "JSON":
            names = list(next(_iter_objects(path), {}))
        elif self._form == "Excel":
            cells = next(iter_rows(path, self._sheet), [])
            names = [(name_cell(cell) or "").strip() for cell in cells]
            if not names:
                raise pd.errors.EmptyDataError
        else:
            # Zeros are usual in these encodings; in others they show that a file is no text.
            if not codecs.lookup(self._encoding).name.startswith(("utf-16", "utf-32")):
                self._check_encoding(path)
            first = pd.read_csv(path, header=None, nrows=1, sep=self.sep, **self._options)
            names = [str(cell).strip() for cell in first.to_numpy(dtype=object)[0]]
        where = f"The first line of {path}"
        if not self._has_header and self._form != "JSON":
            if self._form == "CSV":
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

    def _check_encoding(self, path):
        with path.open("rb") as file:
            start = file.readline(1000)
        if start.startswith(_COMPRESSED):
            raise TableError(f"{path} is compressed, or no text: unpack it, or save it as CSV.")
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in start:
            raise TableError(
                f"{path} seems to be in UTF-16; say so by --encoding utf-16, or save it as UTF-8."
            )

    def _check_separator(self, names, where):
        """Refuse names that contain another separator, at least one each."""
        for other, word in _SEPARATORS.items():
            if other != self.sep and sum(n.count(other) for n in names) >= len(names):
                raise TableError(
                    f"{where} holds as many {word} as cells: they seem to be what separates cells. "
                    f"Say so by --sep {other!r}; or, if these are the names, by --header yes."
                )

    def _withhold(self, make):
        """Iterate over ``make()``; errors of readers may quote private cells, and are replaced."""
        form = _NEEDED[self._form].format(encoding=self._encoding.upper())
        harmless = (ImportError, OSError, TableError)
        return iter_quietly(make, harmless, lambda error: f"{self._path} is no {form}.")


def find_form(path: str | PathLike) -> str:
    """Return the form of a file by its suffix: "CSV", "Excel", "JSON" or "Parquet"."""
    return FORMS.get(Path(path).suffix.lower(), "CSV")


def _iter_objects(path):
    """Yield the objects of JSON Lines, whose cells are read each on its own; pandas rounds some."""
    with path.open(encoding="utf-8-sig") as lines:
        for row in map(json.loads, filter(str.strip, lines)):
            if type(row) is not dict:
                raise ValueError
            yield row


def _read_markers(na_values):
    """Return the keys of cells that mean missing values, by column; None stands for all."""
    by_column = na_values if isinstance(na_values, Mapping) else {None: na_values}
    for values in by_column.values():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise ValueError(f"na_values must be a list, or a dict of lists; got {na_values!r}.")
    markers = {
        name: _name_cells(pd.Series([*values], dtype=object)) for name, values in by_column.items()
    }
    return {name: keys for name, keys in markers.items() if keys}


def _name_cells(column):
    """Return a key of each cell, equal for all spellings of a number."""

    def name(cells):
        stripped = as_objects(c.strip() if isinstance(c, str) else c for c in cells.tolist())
        # Numbers equal booleans.
        return ((type(cell) is bool, cell) for cell in read_cells(stripped, PLAIN).tolist())

    return map_distinct(name, column).tolist()


def _read_arrow(data):
    """Return the columns of Arrow's data; an index of pandas is one if it has a name."""
    frame = read_arrow_table(data)
    return frame.drop(columns=list(filter(_UNNAMED_INDEX.fullmatch, frame)))


def _find_separator(path: Path, encoding: str) -> str:
    """Return the usual separator that is most frequent in the first line, outside of quotes."""
    with path.open(encoding=encoding, errors="replace") as file:
        line = re.sub('"[^"]*"', "", file.readline(_MOST_HEADER))
    return max(",", *_SEPARATORS, key=line.count)


def list_files(path: str | PathLike | Sequence[str | PathLike]) -> list[Path]:
    """Return the files of a path, of a pattern as ``"folder/*.parquet"``, or of a list of these.

    Files of a pattern are in order.

    Raises
    ------
    ValueError
        If a file is named twice: its records would contribute twice, beyond the sensitivity.
    """
    files: list[Path] = []
    for given in _list_paths(path):
        is_pattern = glob.has_magic(given.name) and not given.exists()
        files += sorted(given.parent.glob(given.name)) if is_pattern else [given]
    seen: dict = {}
    for file in files:
        # Links have other paths.
        status = os.stat(file) if file.exists() else None
        key = file if status is None else (status.st_dev, status.st_ino)
        if key in seen:
            raise ValueError(
                f"{seen[key]} and {file} are the same file, whose rows would count twice; name it "
                "once."
            )
        seen[key] = file
    return files


def _list_paths(path) -> list[Path]:
    paths = [path] if isinstance(path, str | PathLike) else list(path)
    if not paths:
        raise ValueError("path must name at least one file; got an empty list.")
    return [Path(given) for given in paths]
