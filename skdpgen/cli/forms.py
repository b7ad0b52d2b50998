# SPDX-License-Identifier: BSD-3-Clause
"""Synthetic tables in the form of the private one: format, separator, encoding and numbers."""

import contextlib
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..data.texts import PLAIN, TextStyle
from ..tables.schema import Schema

# First characters of what spreadsheets run as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
# How dates are written that are in these units.
_DATE_FORMATS = {"day": "%Y-%m-%d", "hour": "%Y-%m-%d %H:%M", "minute": "%Y-%m-%d %H:%M"}
# Most rows of a sheet below its first one, columns, and characters of a cell.
_MOST_OF_SHEET, _MOST_COLUMNS, _LONGEST = 2**20 - 1, 2**14, 2**15 - 1
# Sheets have no dates before, and 15 digits of a number.
_FIRST_YEAR, _LARGEST = 1900, 10**15


@dataclass(frozen=True)
class Form:
    """Form of a table in a file.

    Attributes
    ----------
    suffix : str
        Suffix of the file, which says its format.
    sep, encoding : str
        Those of a CSV file.
    styles : dict of str to TextStyle
        How numbers and dates of columns are written in a CSV file.
    has_groups : bool
        Whether groups of three digits are separated by declaration, and not as counts show: then
        those of numbers with decimals are, as years, for one, have none.
    escapes : bool
        Whether to write an apostrophe before texts of a CSV file that begin like a formula.
    """

    suffix: str
    sep: str = ","
    encoding: str = "utf-8"
    styles: Mapping[str, TextStyle] = field(default_factory=dict)
    has_groups: bool = False
    escapes: bool = False

    @property
    def is_csv(self) -> bool:
        """Whether rows are written as texts."""
        return self.suffix not in (".parquet", ".xlsx")

    def with_units(self, schema: Schema) -> "Form":
        """Return the form in which dates have no more digits than their units."""
        formats = {
            name: _DATE_FORMATS.get(getattr(c, "unit", None) or "") for name, c in schema.items()
        }
        styles = {
            name: replace(style, date_format=formats[name])
            for name, style in self.styles.items()
            if formats.get(name) and style.date_format is None
        }
        return replace(self, styles={**self.styles, **styles})

    def check(self, schema: Schema, n_rows: int) -> None:
        """Raise ValueError if rows of a schema cannot be written."""
        if self.escapes and not self.is_csv:
            raise ValueError(f"--escape-formulas is for CSV files; got a {self.suffix} file.")
        if self.suffix == ".xlsx" and n_rows > _MOST_OF_SHEET:
            raise ValueError(
                f"{n_rows:,} rows are more than a sheet holds, {_MOST_OF_SHEET:,}. Ask for fewer "
                "by --n-rows, or give the table as a CSV or Parquet file."
            )
        if self.suffix == ".xlsx" and len(schema) > _MOST_COLUMNS:
            raise ValueError(
                f"{len(schema):,} columns are more than a sheet holds, {_MOST_COLUMNS:,}. Give the "
                "table as a CSV or Parquet file."
            )
        # Before the fit, since an error in writing would come after the budget is spent.
        cells = {
            name: column.make_extremes()
            for name, column in schema.items()
            if not (column.is_open or column.is_generated)
        }
        # All at once, which takes less time than to find the column that fails.
        if not self._can_write(cells):
            for name, column in cells.items():
                self._try(name, column)

    def _can_write(self, cells: Mapping[str, Any]) -> bool:
        longest = max(map(len, cells.values()), default=0)
        frame = {n: pd.Series(c).take(np.arange(longest) % len(c)).array for n, c in cells.items()}
        with contextlib.suppress(Exception), tempfile.TemporaryDirectory() as folder:
            self.write([pd.DataFrame(frame)], Path(folder) / "tried")
            return True
        return False

    def _try(self, name: str, cells: Any) -> None:
        """Raise ValueError if cells of a column cannot be written."""
        try:
            with tempfile.TemporaryDirectory() as folder:
                self.write([pd.DataFrame({name: cells})], Path(folder) / "tried")
        except (LookupError, UnicodeError):
            raise ValueError(
                f"--encoding {self.encoding} cannot write all categories of column {name!r}. "
                "Save the table as UTF-8."
            ) from None
        except Exception as error:
            raise ValueError(
                f"A {self.suffix} file cannot hold column {name!r} as it is declared: {error} "
                "Declare it otherwise, or give the table as a CSV file."
            ) from error

    def write(self, pieces: Iterable[pd.DataFrame], path: Path) -> None:
        """Write pieces of a table, at least one, to a file."""
        write = {".parquet": _write_parquet, ".xlsx": _write_excel}.get(self.suffix)
        if write is not None:
            write(pieces, path)
            return
        # newline="": the writer of CSV sets line ends itself, on Windows as well.
        with path.open("w", encoding=self.encoding, newline="") as file:
            for i, piece in enumerate(pieces):
                # Piece by piece, so that memory does not grow with the number of rows.
                texts = piece.assign(**{name: self._as_texts(piece[name]) for name in piece})
                texts = escape_formulas(texts) if self.escapes else texts
                texts.to_csv(file, sep=self.sep, index=False, header=i == 0, lineterminator="\n")

    def describe(self, resource: dict) -> dict:
        """Return a resource of a data package that says how its file is written."""
        if not self.is_csv:
            return resource
        for spec in resource["schema"]["fields"]:
            name = spec["name"]
            style = self.styles.get(name, PLAIN)
            if spec["type"] in ("number", "integer") and not style.has_python_numbers:
                groups = self._find_groups(style, "f")
                spec |= {"decimalChar": style.decimal} | ({"groupChar": groups} if groups else {})
            elif spec["type"] in ("date", "datetime") and style.date_format is not None:
                spec["format"] = style.date_format
            elif spec["type"] == "datetime":
                # As pandas writes them.
                spec["format"] = "%Y-%m-%d %H:%M:%S" + "%z" * ("tz" in spec)
        return resource | {"encoding": self.encoding, "dialect": {"delimiter": self.sep}}

    def _as_texts(self, column: pd.Series) -> pd.Series:
        """Return numbers and dates as texts, where they are written otherwise than by default."""
        style = self.styles.get(column.name, PLAIN)
        kind = getattr(column.dtype, "kind", "O")
        if kind in "iuf" and not style.has_python_numbers:
            signs = str.maketrans({",": self._find_groups(style, kind), ".": style.decimal})
            # The shortest text that reads back as the same number.
            return column.map(lambda x: f"{x:,}".translate(signs), na_action="ignore")
        if kind == "M" and style.date_format is not None:
            return column.dt.strftime(style.date_format)
        return column

    def _find_groups(self, style: TextStyle, kind: str) -> str:
        """Return what separates groups of digits in numbers of a kind of dtype, or an empty text.

        Counts tell groups from none, but beside decimal commas.
        """
        is_grouped = kind == "f" if self.has_groups else style.decimal == PLAIN.decimal
        return (style.thousands or "") if is_grouped else ""


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
