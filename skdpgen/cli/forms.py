# SPDX-License-Identifier: BSD-3-Clause
"""Synthetic tables in the form of the private one: format, separator, encoding and numbers."""

import contextlib
import csv
import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..data.texts import MARKS, PLAIN, TextStyle, read_text
from ..engines.files import FORMS
from ..tables.columns.texts import find_date_format, write_cells

# First characters of what spreadsheets run as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
# Most rows of a sheet below its first one, columns, and characters of a cell.
_MOST_ROWS, _MOST_COLUMNS, _LONGEST = 2**20 - 1, 2**14, 2**15 - 1
# Sheets have no dates before, and 15 digits of a number.
_FIRST_YEAR, _LARGEST = 1900, 10**15


@dataclass(frozen=True)
class Form:
    """Form of a table in a file.

    Attributes
    ----------
    suffix : str
        Suffix of the file, which says its format.
    sep, encoding, line_end : str
        Those of a CSV file.
    quoting : int
        That of a CSV file, of the module `csv`.
    styles : dict of str to TextStyle
        How numbers and dates of columns are written in a CSV file.
    schema : Schema
        The columns that are written in these styles.
    absent : dict of str or None to list of str
        Words that are declared to mean a missing value, by column; None for all.
    escapes : bool
        Whether to write an apostrophe before texts of a CSV file that begin like a formula.
    """

    suffix: str
    sep: str = ","
    encoding: str = "utf-8"
    line_end: str = "\n"
    quoting: int = csv.QUOTE_MINIMAL
    styles: Mapping[str, TextStyle] = field(default_factory=dict)
    schema: Mapping = field(default_factory=dict)
    absent: Mapping = field(default_factory=dict)
    escapes: bool = False

    @property
    def is_csv(self) -> bool:
        """Whether rows are written as texts."""
        return self._format == "CSV"

    @property
    def _format(self) -> str:
        return FORMS.get(self.suffix, "CSV")

    def check(self, n_rows: int) -> None:
        """Raise ValueError if rows of the schema cannot be written."""
        if self.escapes and not self.is_csv:
            raise ValueError(f"--escape-formulas is for CSV files; got a {self.suffix} file.")
        sizes = {"rows": (n_rows, _MOST_ROWS), "columns": (len(self.schema), _MOST_COLUMNS)}
        for what, (size, most) in sizes.items() if self.suffix == ".xlsx" else ():
            if size > most:
                raise ValueError(
                    f"{size:,} {what} are more than a sheet holds, {most:,}. Give the table as a "
                    "CSV or Parquet file, or ask for fewer rows by --n-rows."
                )
        # Before the fit, since an error in writing would come after the budget is spent.
        cells = {
            name: column.make_extremes()
            for name, column in self.schema.items()
            if not (column.is_open or column.is_generated)
        }
        # All at once, which takes less time than to find the column that fails.
        if self._find_fault(cells) is not None:
            for name, held in cells.items():
                if (error := self._find_fault({name: held})) is not None:
                    raise ValueError(
                        f"A {self.suffix} file in {self.encoding} cannot hold column {name!r} as "
                        f"it is declared: {error} Declare it otherwise, or give the table as a CSV "
                        "file in UTF-8."
                    ) from error

    def _find_fault(self, cells: Mapping[str, Any]) -> Exception | None:
        """Return the error that writing cells of columns raises, or None."""
        longest = max(map(len, cells.values()), default=0)
        frame = {n: pd.Series(c).take(np.arange(longest) % len(c)).array for n, c in cells.items()}
        try:
            with tempfile.TemporaryDirectory() as folder:
                self.write([pd.DataFrame(frame)], Path(folder) / "tried")
        except Exception as error:
            return error
        return None

    def write(self, pieces: Iterable[pd.DataFrame], path: Path) -> None:
        """Write pieces of a table, at least one, to a file."""
        write = {"Parquet": _write_parquet, "Excel": _write_excel, "JSON": _write_json}
        if not self.is_csv:
            is_typed = self._format == "Parquet"
            write[self._format](pieces if is_typed else map(self._as_texts, pieces), path)
            return
        # newline="": the writer of CSV sets line ends itself, on Windows as well.
        with path.open("w", encoding=self.encoding, newline="") as file:
            for i, piece in enumerate(pieces):
                # Piece by piece, so that memory does not grow with the number of rows.
                texts = self._as_texts(piece)
                texts = escape_formulas(texts) if self.escapes else texts
                form = {"sep": self.sep, "lineterminator": self.line_end, "quoting": self.quoting}
                texts.to_csv(file, header=i == 0, index=False, **form)

    def describe(self, resource: dict) -> dict:
        """Return a resource of a data package that says how its file is written."""
        if not self.is_csv:
            return resource
        for spec in resource["schema"]["fields"]:
            name = spec["name"]
            style = self.styles.get(name, PLAIN)
            if spec["type"] in ("number", "integer") and not style.has_python_numbers:
                groups = {"groupChar": style.thousands} if style.thousands else {}
                spec |= {"decimalChar": style.decimal} | groups
            elif spec["type"] in ("date", "datetime"):
                spec["format"] = find_date_format(self.schema[name], style)
                bounds = spec.get("constraints", {})
                for end in {"minimum", "maximum"} & {*bounds}:
                    # Validators read bounds as cells.
                    date = pd.Timestamp(bounds[end]).tz_localize(spec.get("tz"))
                    bounds[end] = date.strftime(spec["format"])
            if word := self._find_declared(name) or style.find_way("missing"):
                spec["missingValues"] = ["", word]
            if style.find_way("signs") or "(1)" in style.written:
                spec["bareNumber"] = False
        return resource | {"encoding": self.encoding, "dialect": {"delimiter": self.sep}}

    def _find_declared(self, name):
        """Return the declared word for missing values of a column, if that is how it has them."""
        style, words = self.styles.get(name, PLAIN), self.absent.get(name, [])
        way = style.find_way("missing")
        if way in MARKS:
            # Noise may show a mark that stands for no word.
            given = dict.fromkeys([*words, *self.absent.get(None, [])])
            return dict(zip(MARKS, given, strict=False)).get(way, "")
        return words[0] if words and not style.written else None

    def _as_texts(self, piece: pd.DataFrame) -> pd.DataFrame:
        """Return cells as texts, as those of the private table; spreadsheets hold others, too."""
        texts = {}
        for name, column in piece.items():
            style, column_type = self.styles.get(name, PLAIN), self.schema.get(name)
            # JSON has no dates.
            are_texts = self.is_csv or (self._format == "JSON" and column.dtype.kind == "M")
            texts[name] = write_cells(column, column_type, style, are_texts=are_texts)
            if (word := self._find_declared(name)) is not None:
                # Spreadsheets and JSON hold -999 as a number.
                number = read_text(word)[1]
                if isinstance(number, float) and not self.is_csv:
                    word = int(number) if number.is_integer() else number
                texts[name] = texts[name].astype(object).where(column.notna(), word)
            is_day = getattr(column_type, "unit", None) == "day"
            if is_day and not self.is_csv and texts[name].dtype.kind == "M":
                texts[name] = texts[name].dt.date
        return pd.DataFrame(texts)


def _write_parquet(pieces, path):
    from pyarrow import Table
    from pyarrow.parquet import ParquetWriter

    # Without the metadata of pandas, by which readers would choose nullable dtypes.
    tables = (
        Table.from_pandas(piece, preserve_index=False).replace_schema_metadata() for piece in pieces
    )
    # All pieces have the schema of the first one.
    first = next(tables)
    with ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)


def _write_json(pieces, path):
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for piece in pieces:
            # `to_json` rounds numbers to decimals.
            cells = piece.astype(object).where(piece.notna(), None)
            lines = (json.dumps(row, ensure_ascii=False) for row in cells.to_dict("records"))
            file.writelines(f"{line}\n" for line in lines)


def _write_excel(pieces, path):
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    # Streams rows to a file, rather than keep a cell object for each of them.
    book = Workbook(write_only=True)
    sheet = book.create_sheet()

    def make_cell(value):
        cell = WriteOnlyCell(sheet, _to_excel(value))
        if isinstance(value, str):
            # Otherwise texts that begin with = are formulas.
            cell.data_type = "s"
        return cell

    # Closed after an error, too, or openpyxl prints another.
    with contextlib.closing(sheet):
        for i, piece in enumerate(pieces):
            if i == 0:
                sheet.append([make_cell(str(name)) for name in piece])
            for row in piece.astype(object).itertuples(index=False):
                sheet.append(list(map(make_cell, row)))
    book.save(path)


def _to_excel(value):
    """Return a cell as a sheet can hold it: as a text, where it would change or be refused."""
    if pd.isna(value):
        return None
    if isinstance(value, pd.Timestamp) and (value.tzinfo is not None or value.year < _FIRST_YEAR):
        return str(value)
    if isinstance(value, int) and abs(value) > _LARGEST:
        return str(value)
    if isinstance(value, str) and len(value) > _LONGEST:
        raise ValueError(
            f"a cell holds at most {_LONGEST:,} characters, and one has {len(value):,}."
        )
    return value


def escape_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with an apostrophe before texts and names that begin like a formula."""
    escaped = {_escape(name): column for name, column in frame.items()}
    for name, column in escaped.items():
        # Numbers, dates and booleans cannot begin a formula; a minus sign of theirs is none.
        if getattr(column.dtype, "kind", "O") not in "iufbM":
            escaped[name] = column.astype(object).map(_escape)
    return pd.DataFrame(escaped)


def _escape(cell):
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
