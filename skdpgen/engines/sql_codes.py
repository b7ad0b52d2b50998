# SPDX-License-Identifier: BSD-3-Clause
"""Codes of the cells of declared columns, as expressions of SQL in the dialect of DuckDB.

They equal those in memory: levels are found by comparisons with literals, and numbers take the
operations of `CodeScale` on doubles, in the same order.
"""

import re
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..data.cells import CellReader, FrameCells, as_frame, read_cell
from ..data.dtypes import list_text_columns
from ..data.texts import PLAIN
from ..tables.columns.date import DATE_CODES
from ..tables.encoder import TableEncoder

# Digits of decimals that doubles hold exactly, so that a cast rounds once.
_EXACT_DIGITS = 15
# What `str.strip` removes.
_BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001))))
# Numbers up to this are read as 0.
_SMALL = np.nextafter(np.finfo(np.float64).tiny, 0)


class ColumnCode(NamedTuple):
    """A cell: a text, a boolean or a double; its code by the name of the cell, NULL for none.

    `present` tests whether there is a code; `is_whole` says that codes are levels.
    """

    cell: str
    code: str
    present: str = "TRUE"
    is_whole: bool = True


def write_codes(format, table) -> list[ColumnCode]:
    """Return the codes of the columns of a resolved format; the i-th cell is named ``x{i}``.

    Raises
    ------
    ValueError
        If SQL may read the cells of a type otherwise than they are read in memory.
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
        level = f"FLOOR({columns[format.halves.column].code})"
        columns.append(ColumnCode("NULL", f"CASE WHEN {level} IN ({upper}) THEN 1 ELSE 0 END"))
    return columns


def write_double(number: float) -> str:
    """Return the literal of a double; 0.1 alone would be a decimal."""
    return f"CAST('{float(number)!r}' AS DOUBLE)"


def _quote(text, mark="'"):
    return mark + text.replace(mark, 2 * mark) + mark


def _write_levels(block, held, x, reader):
    column, cell, write = block.column_type, _quote(block.name, '"'), _quote
    absent = str(block.n_levels) if column.missing else "NULL"
    other = absent if column.other is None else str(column.levels.index(column.other))
    is_text = held in ("string", "large_string") or held.startswith("dictionary<values=string")
    if is_text:
        # Texts that an ENUM has not cannot be compared with it.
        cell, levels = f"CAST({cell} AS VARCHAR)", getattr(column, "words", None) or column.levels
        keys = pd.Series(
            [*dict.fromkeys(k for t in map(str, levels) for k in (t, t.strip()))], dtype="str"
        )
    elif held == "bool":
        keys, write = pd.Series([False, True], dtype="boolean"), str
    else:
        _check_number(block.name, held)
        cell, write = f"CAST({cell} AS DOUBLE)", write_double
        read = (
            read_cell(level, PLAIN) if isinstance(level, str) else level for level in column.levels
        )
        keys = pd.Series([float(v) for v in read if isinstance(v, int | float)], dtype="float64")

    def match(cell, spelled, other):
        cells = as_frame(reader(FrameCells(spelled.to_frame()))).iloc[:, 0]
        codes = block.encode_cells(cells, strict=False)
        found = {write(k): int(c) for k, c in zip(keys, codes, strict=True) if not np.isnan(c)}
        cases = " ".join(f"WHEN {key} THEN {code}" for key, code in found.items())
        return f"CASE {cell} {cases} ELSE {other} END" if found else other

    if is_text:
        # Blanks around are no part of numbers and words, but of other texts.
        other = match(f"TRIM({x}, {_quote(_BLANKS)})", " " + keys, other)
    code = f"CASE WHEN {x} IS NULL THEN {absent} ELSE {match(x, keys, other)} END"
    # Nearly all cells are listed: that is found faster.
    listed = f"({x} IN ({', '.join(map(write, keys))}) OR {code} IS NOT NULL)"
    return ColumnCode(cell, code, "TRUE" if column.missing else listed)


def _write_knots(block, held, x, reader):
    cell, column = _quote(block.name, '"'), block.column_type
    if not column.is_date:
        _check_number(block.name, held)
    elif not held.startswith(("date", "timestamp")) or "tz" in held or column.zone:
        _refuse(block.name, held, "a TIMESTAMP without time zone, and declare no zone")
    else:
        cell = _write_units(f"CAST({cell} AS TIMESTAMP)" if "date" in held else cell, block)
    points, codes = block.scale.numbers, block.scale.codes
    cases = [*_list_atoms(block, x)]
    for sign, end in zip("<>", points[[0, -1]], strict=True):
        cases.append(f"{x} {sign} {write_double(end)} THEN {write_double(block.scale.encode(end))}")
    for i in range(len(points) - 1):
        # As `locate_between`, and then the map to codes.
        lower, width, start, gap = map(
            write_double, (points[i], points[i + 1] - points[i], codes[i], codes[i + 1] - codes[i])
        )
        cases.append(
            f"{x} {'<=' if i == len(points) - 2 else '<'} {write_double(points[i + 1])} "
            f"THEN {start} + ({x} - {lower}) / {width} * {gap}"
        )
    # NaN is missing, and greater than all numbers or not comparable.
    is_number, absent = (
        f"{x} <= {write_double(np.inf)}",
        block.n_levels if column.missing else "NULL",
    )
    code = " ".join(f"WHEN {case}" for case in cases)
    code = f"CASE WHEN {is_number} THEN CASE {code} END ELSE {absent} END"
    present = "TRUE" if column.missing else is_number
    return ColumnCode(f"CAST({cell} AS DOUBLE)", code, present, is_whole=False)


def _list_atoms(block, x):
    """Yield the cases of numbers that count as point masses, once rounded and clipped."""
    codes = dict(zip(block.atoms, range(len(block.knots), block.n_levels), strict=True))
    for atom, code in codes.items():
        unit, edge, sign = 1.0, 0.0 if atom else _SMALL, "="
        if block.decimals is not None:
            # Halves are rounded to even numbers.
            unit, edge = block.values.unit, 0.5
            sign = "" if round(atom * unit) % 2 else "="
        middle, scaled = (
            atom * unit if edge != 0.5 else round(atom * unit),
            f"{x} * {write_double(unit)}",
        )
        above, below = write_double(middle - edge), write_double(middle + edge)
        yield f"{scaled} >{sign} {above} AND {scaled} <{sign} {below} THEN {code}"
    for sign, bound in zip("<>", (block.number.lower, block.number.upper), strict=True):
        if bound in codes:
            yield f"{x} {sign} {write_double(bound)} THEN {codes[bound]}"


def _write_units(cell, block):
    """Return the units since 1970 of a date; beyond those that count, one before or after them."""
    unit, values = block.column_type.unit, (block.number.lower, block.number.upper, *block.atoms)
    first, last = int(min(values)), int(max(values))
    from_date, to_date = (
        f"CAST('{np.datetime64(end, DATE_CODES[unit]).astype('M8[ms]')}' AS TIMESTAMP)"
        for end in (first, last)
    )
    date = f"DATE_TRUNC('{unit}', {cell})"
    return (
        f"CASE WHEN {date} < {from_date} THEN {first - 1} WHEN {date} > {to_date} "
        f"THEN {last + 1} ELSE DATE_DIFF('{unit}', {from_date}, {date}) + {first} END"
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
