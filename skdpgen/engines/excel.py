# SPDX-License-Identifier: BSD-3-Clause
"""Rows of Excel workbooks, whose cells are read each on its own."""

import datetime
from collections.abc import Iterator
from pathlib import Path

from ..exceptions import TableError

# Values of formulas that fail.
_ERRORS = frozenset(["#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A"])


def iter_rows(path: Path, sheet: str | None) -> Iterator[list]:
    """Yield the rows of a sheet, without empty ones, and without empty cells at their end.

    pandas chooses the dtype of a column by all of its cells. Here a cell depends on itself alone:
    it is a text, a number, a boolean, a date, or None; other values, such as times, become texts.

    Parameters
    ----------
    path : Path
    sheet : str or None
        The name of a sheet; names are public. None: the only one that is visible.
    """
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise ImportError("Excel files need openpyxl: pip install 'skdpgen[excel]'.") from None
    book = load_workbook(path, read_only=True, data_only=True, keep_links=False)
    try:
        found = _find_sheet(book, path, sheet)
        # Some programs state dimensions that are too small.
        found.reset_dimensions()
        for row in found.iter_rows(values_only=True):
            cells = [_read_cell(cell) for cell in row]
            while cells and cells[-1] is None:
                cells.pop()
            if cells:
                yield cells
    finally:
        book.close()


def _find_sheet(book, path, sheet):
    sheets = {found.title: found for found in book.worksheets}
    if sheet is not None:
        if sheet not in sheets:
            raise TableError(f"{path} has no sheet {sheet!r}; it has {list(sheets)}.")
        return sheets[sheet]
    visible = [name for name, found in sheets.items() if found.sheet_state == "visible"]
    if len(visible) != 1:
        raise TableError(
            f"{path} has several sheets, {visible}; name one by --sheet, or sheet=... in Python."
        )
    return sheets[visible[0]]


def _read_cell(cell):
    if isinstance(cell, str):
        return None if cell in _ERRORS or not cell.strip() else cell
    if cell is None or isinstance(cell, bool | int | float | datetime.datetime):
        return cell
    return str(cell)
