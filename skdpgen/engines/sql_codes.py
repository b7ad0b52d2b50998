# SPDX-License-Identifier: BSD-3-Clause
"""Codes of the cells of declared columns, as expressions of SQL that equal those in memory.

Levels are found by comparisons with literals alone. Numbers take the operations of `CodeScale`, on
doubles and in the same order. Statements are written in the dialect of DuckDB.
"""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..data.cells import CellReader, FrameCells, as_frame, read_cell
from ..data.dtypes import list_text_columns
from ..data.texts import PLAIN
from ..tables.blocks import KnotBlock
from ..tables.columns.date import DATE_CODES
from ..tables.encoder import TableEncoder

# Digits of decimals that doubles hold exactly, so that a cast rounds once.
_EXACT_DIGITS = 15
# What `str.strip` removes.
_BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001))))


@dataclass(frozen=True)
class ColumnCode:
    """The code of a column of a table.

    Attributes
    ----------
    cell : str
        The cell as a text, a boolean, or a double: a number, or units of a date.
    code : str
        The code, by the name of that cell; NULL for an absent record.
    is_whole : bool
        Whether codes are levels.
    """

    cell: str
    code: str
    is_whole: bool


def write_codes(format, table) -> list[ColumnCode]:
    """Return the codes of the columns of a resolved format; the i-th cell is called ``x{i}``.

    Parameters
    ----------
    format : TableFormat
    table : Warehouse
        Its `types` are those of Arrow.

    Raises
    ------
    ValueError
        If SQL would round the cells of a type otherwise.
    """
    reader, names = format.make_reader(list_text_columns(table, table.head)), list(format.schema)
    columns: list[ColumnCode] = []
    for block in TableEncoder(format.schema).make_blocks():
        at, held = names.index(block.name), str(table.types.field(block.name).type)
        own = CellReader((reader.styles[at],), (reader.levels[at],))
        write = _write_knots if block.column_type.has_knots else _write_levels
        columns.append(write(block, held, f"x{len(columns)}", own))
    if format.halves is not None:
        upper = ", ".join(map(str, np.flatnonzero(format.halves.is_upper)))
        code = f"FLOOR({columns[format.halves.column].code})"
        columns.append(ColumnCode("NULL", f"CASE WHEN {code} IN ({upper}) THEN 1 ELSE 0 END", True))
    return columns


def write_double(number: float) -> str:
    """Return the literal of a double; 0.1 alone would be a decimal."""
    return f"CAST('{float(number)!r}' AS DOUBLE)"


def quote(name: str, mark: str = "'") -> str:
    """Return the literal of a text or, with the other mark, a name."""
    return mark + name.replace(mark, 2 * mark) + mark


def _write_levels(block, held, x, reader):
    column, cell = block.column_type, quote(block.name, '"')
    absent = str(block.n_levels) if column.missing else "NULL"
    other = absent if column.other is None else str(column.levels.index(column.other))
    is_text = held in ("string", "large_string") or held.startswith("dictionary<values=string")
    if is_text:
        # Texts that an ENUM has not cannot be compared with it.
        cell, write = f"CAST({cell} AS VARCHAR)", quote
        texts = map(str, getattr(column, "words", None) or column.levels)
        keys = pd.Series([*dict.fromkeys(k for t in texts for k in (t, t.strip()))], dtype="str")
    elif held == "bool":
        keys, write = pd.Series([False, True], dtype="boolean"), str
    else:
        _check_number(block.name, held)
        cell, write = f"CAST({cell} AS DOUBLE)", write_double
        read = (read_cell(v, PLAIN) if isinstance(v, str) else v for v in column.levels)
        keys = pd.Series([float(v) for v in read if isinstance(v, int | float)], dtype="float64")

    def write_cases(cell, keys, spelled, other):
        codes = block.encode_cells(as_frame(reader(FrameCells(spelled.to_frame()))).iloc[:, 0], strict=False)
        cases = [
            f"WHEN {write(key)} THEN {'NULL' if np.isnan(code) else int(code)}"
            for key, code in zip(keys, codes, strict=True)
        ]
        return f"CASE {cell} {' '.join(cases)} ELSE {other} END" if cases else other

    if is_text:
        # Blanks are no part of numbers and words, but of other texts.
        other = write_cases(f"TRIM({x}, {quote(_BLANKS)})", keys, " " + keys, other)
    code = write_cases(x, keys, keys, other)
    return ColumnCode(cell, f"CASE WHEN {x} IS NULL THEN {absent} ELSE {code} END", True)


def _write_knots(block, held, x, reader):
    cell, column = quote(block.name, '"'), block.column_type
    if column.is_date:
        if not held.startswith(("date", "timestamp")) or "tz" in held or column.zone:
            _refuse(block.name, held, "a TIMESTAMP without time zone, and declare no zone")
        cell = _write_units(f"CAST({cell} AS TIMESTAMP)" if "date" in held else cell, block)
    else:
        _check_number(block.name, held)
    absent = str(block.n_levels) if column.missing else "NULL"
    points, codes = block.scale.numbers, block.scale.codes
    first, last = map(write_double, points[[0, -1]])
    ends = map(write_double, block.scale.encode(points[[0, -1]]))
    cases = [*_list_atoms(block, x)]
    cases += [f"{x} {sign} {end} THEN {code}" for sign, end, code in zip("<>", (first, last), ends)]
    for i in range(len(points) - 1):
        # As `locate_between`, and then the map to codes.
        lower, width = write_double(points[i]), write_double(points[i + 1] - points[i])
        start, gap = write_double(codes[i]), write_double(codes[i + 1] - codes[i])
        is_last = i == len(points) - 2
        below = "TRUE" if is_last else f"{x} < {write_double(points[i + 1])}"
        cases.append(f"{below} THEN {start} + ({x} - {lower}) / {width} * {gap}")
    written = " ".join(f"WHEN {case}" for case in cases)
    # NaN is missing, and greater than all numbers or not comparable.
    code = f"CASE WHEN {x} <= {write_double(np.inf)} THEN CASE {written} END ELSE {absent} END"
    return ColumnCode(f"CAST({cell} AS DOUBLE)", code, False)


def _list_atoms(block, x):
    """Yield the cases of point masses: each has an interval of numbers."""
    # That of a point mass at a bound includes what is clipped to it, but no other point mass.
    bounds = block.number.lower, block.number.upper
    for atom in sorted(block.atoms, key=lambda atom: atom in bounds):
        code = len(block.knots) + block.atoms.index(atom)
        below, above = (_find_end(block, float(atom), sign) for sign in (-1, 1))
        yield f"{x} BETWEEN {write_double(below)} AND {write_double(above)} THEN {code}"


def _find_end(block, atom, sign):
    """Return the last number below or above a point mass that counts as it."""
    number = KnotBlock(block.name, block.number, 0)
    code = len(block.knots) + block.atoms.index(atom)

    def is_inside(value):
        return number.encode_cells(pd.Series([value]), strict=False)[0] == code

    step = max(1.0, abs(atom)) if block.decimals is None else 10.0**-block.decimals
    inside, outside = atom, atom + sign * step
    if is_inside(outside):
        return sign * np.inf
    while (middle := (inside + outside) / 2) not in (inside, outside):
        inside, outside = (middle, outside) if is_inside(middle) else (inside, middle)
    return inside


def _write_units(cell, block):
    """Return the units since 1970 of a date: one more than the last that counts, beyond it."""
    unit = block.column_type.unit
    values = block.number.lower, block.number.upper, *block.atoms
    first, last = int(min(values)), int(max(values))
    date = f"DATE_TRUNC('{unit}', {cell})"
    from_date, to_date = (
        f"CAST('{np.datetime64(end, DATE_CODES[unit]).astype('M8[ms]')}' AS TIMESTAMP)"
        for end in (first, last)
    )
    units = f"DATE_DIFF('{unit}', {from_date}, {date}) + {first}"
    return (
        f"CASE WHEN {date} < {from_date} THEN {first - 1} WHEN {date} > {to_date} "
        f"THEN {last + 1} ELSE {units} END"
    )


def _check_number(name, held):
    decimal = re.fullmatch(r"decimal\d+\((\d+), (\d+)\)", held)
    is_rough = decimal and int(decimal[1]) > _EXACT_DIGITS and int(decimal[2])
    if is_rough or not (decimal or re.fullmatch(r"u?int\d+|float|double", held)):
        _refuse(name, held, f"DOUBLE, or DECIMAL of at most {_EXACT_DIGITS} digits, or a text")


def _refuse(name, held, what):
    raise ValueError(
        f"Column {name!r} is of type {held}, which SQL may not read as cells in memory are read. "
        f"Give a view that casts it to {what}."
    )
