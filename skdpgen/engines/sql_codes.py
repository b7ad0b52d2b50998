# SPDX-License-Identifier: BSD-3-Clause
"""Codes of the cells of declared columns, as expressions of SQL in the dialect of DuckDB.

They equal those in memory: levels are found by comparisons with literals, and numbers take the
operations of `CodeScale` on doubles, in the same order.
"""

import re
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..data.cells import CellReader, FrameCells, as_frame, read_cell
from ..data.dtypes import list_text_columns
from ..data.texts import PLAIN
from ..tables.columns.date import DATE_CODES
from ..tables.encoder import TableEncoder

# Types of Arrow that SQL reads as they are read in memory: doubles hold 15 digits exactly.
_NUMBER = r"u?int\d+|float|double|decimal\d+\((\d|1[0-5]), \d+\)|decimal\d+\(\d+, 0\)"
_DATE = r"date.*|timestamp\[(?P<unit>s|ms|us)\]"
_TEXT = r"(large_)?string|dictionary<values=string.*"
# What `str.strip` removes.
_BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001))))
# NaN is missing, and greater than infinity or not comparable.
_INFINITE = "CAST('inf' AS DOUBLE)"
# Numbers up to this are read as 0.
_SMALL = np.nextafter(np.finfo(np.float64).tiny, 0)


class ColumnCode(NamedTuple):
    """A cell, a text or a double; its code by that cell's name; whether it has one, and a level."""

    cell: str
    code: str
    present: str = "TRUE"
    is_whole: bool = True


def write_codes(format, table) -> list[ColumnCode]:
    """Return the codes of the columns of a resolved format; the i-th cell is named ``x{i}``."""
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
    is_text = re.fullmatch(_TEXT, held)
    if is_text:
        # Texts that an ENUM has not cannot be compared with it.
        cell, levels = f"CAST({cell} AS VARCHAR)", getattr(column, "words", None) or column.levels
        texts = dict.fromkeys(text for t in map(str, levels) for text in (t, t.strip()))
        keys = pd.Series(list(texts), dtype="str")
    else:
        is_word = held == "bool" and isinstance(column.levels[0], str)
        types = "" if is_word else f"bool|{_NUMBER}"
        _check(block, held, types, "DOUBLE, or a text, or declare Boolean")
        cell = f"CAST({cell} AS INTEGER)" if held == "bool" else cell
        cell, write = f"CAST({cell} AS DOUBLE)", write_double
        read = (read_cell(v, PLAIN) if isinstance(v, str) else v for v in column.levels)
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
    code = match(x, keys, other)
    is_known = f"{x} IS NOT NULL" if is_text else f"{x} <= {_INFINITE}"
    code = f"CASE WHEN {is_known} THEN {code} ELSE {absent} END"
    return ColumnCode(cell, code, "TRUE" if column.missing else f"{code} IS NOT NULL")


def _write_knots(block, held, x, reader):
    cell, column = _quote(block.name, '"'), block.column_type
    if column.is_date:
        _check(block, held, "" if column.zone else _DATE, "TIMESTAMP, and declare no zone")
        cell = _write_units(cell, block, re.fullmatch(_DATE, held)["unit"] or "D")
    else:
        _check(block, held, _NUMBER, "DOUBLE, or DECIMAL of at most 15 digits")
    points, codes = block.scale.numbers, block.scale.codes
    cases = list(_list_atoms(block, x))
    for sign, end in zip(("<", ">="), points[[0, -1]], strict=True):
        cases.append(f"{x} {sign} {write_double(end)} THEN {write_double(block.scale.encode(end))}")
    # Some databases fail where a double underflows or overflows: cells are compared before they
    # are computed with. A fraction below 2^-55 has no weight.
    for (lower, upper), ends in zip(pairwise(points), pairwise(codes), strict=True):
        # As `locate_between`, and then the map to codes.
        nearest, start = lower + (upper - lower) * 2.0**-55, write_double(ends[0])
        if nearest > lower:
            cases.append(f"{x} < {write_double(nearest)} THEN {start}")
        width, gap = write_double(upper - lower), write_double(ends[1] - ends[0])
        inner = f"{start} + ({x} - {write_double(lower)}) / {width} * {gap}"
        cases.append(f"{x} < {write_double(upper)} THEN {inner}")
    is_number = f"{x} <= {_INFINITE}"
    code = f"CASE WHEN {is_number} THEN CASE {' '.join(f'WHEN {case}' for case in cases)} END"
    code += f" ELSE {block.n_levels if column.missing else 'NULL'} END"
    present = "TRUE" if column.missing else is_number
    return ColumnCode(f"CAST({cell} AS DOUBLE)", code, present, is_whole=False)


def _list_atoms(block, x):
    """Yield the cases of numbers that count as point masses, once rounded and clipped."""
    codes = dict(zip(block.atoms, range(len(block.knots), block.n_levels), strict=True))
    for atom, code in codes.items():
        ends = [-_SMALL, _SMALL] if atom == 0 else [atom, atom]
        if block.decimals is not None:
            ends = _find_rounded(round(atom * block.values.unit), block.values.unit)
        first, last = map(write_double, ends)
        yield f"{x} >= {first} AND {x} <= {last} THEN {code}"
    for sign, bound in zip("<>", (block.number.lower, block.number.upper), strict=True):
        if bound in codes:
            yield f"{x} {sign} {write_double(bound)} THEN {codes[bound]}"


def _find_rounded(step, unit):
    """Return the first and the last double whose product with a unit is rounded to a step."""
    ends = []
    for edge, find in ((step - 0.5, min), (step + 0.5, max)):
        near = ((np.array(edge / unit)).view(np.int64) + np.arange(-8, 9)).view(np.float64)
        ends.append(find(near[np.round(near * unit) == step]))
    return ends


def _write_units(cell, block, held):
    """Return the units since 1970 of a date, clipped to those that count and one more."""
    unit, values = block.column_type.unit, (block.number.lower, block.number.upper, *block.atoms)
    first, last = int(min(values)), int(max(values))
    start, stop = (np.datetime64(n, DATE_CODES[unit]).astype("M8[us]") for n in (first, last + 1))
    # Clipped as it is held, since a cast of a date that is far away may fail.
    above = (stop + np.timedelta64(1, held) - 1).astype(f"M8[{held}]")
    below, above = _quote(str((start - 1).astype(f"M8[{held}]"))), _quote(str(above))
    cases = f"WHEN {cell} < {below} THEN {below} WHEN {cell} > {above} THEN {above}"
    date = f"DATE_TRUNC('{unit}', CAST(CASE {cases} ELSE {cell} END AS TIMESTAMP))"
    return f"DATE_DIFF('{unit}', CAST('{start.astype('M8[ms]')}' AS TIMESTAMP), {date}) + {first}"


def _check(block, held, types, what):
    if not re.fullmatch(types, held):
        raise ValueError(
            f"Column {block.name!r} is of type {held}, which SQL may not read as it is read in "
            f"memory: give a view that casts it to {what}."
        )
