# SPDX-License-Identifier: BSD-3-Clause
"""Private inference of column types from noisy counts of cell types."""

import math
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from ...checks import list_names
from ...data.names import map_cells
from ...data.texts import COMMA_STYLES, LOOKS, TEXT_KINDS, WAY_PARTS, find_way, is_placeholder
from ...histograms.ranges import find_clear
from ...quality import warn_of_columns, warn_of_fit
from ..columns import TYPES, Category
from ..columns.cells import find_present
from ..columns.number import FITTING_SHARE
from ..columns.texts import find_types_of_dtype, read_cell
from .decimals import encode_levels

# Name of the release.
KINDS = "column kinds"
# Numbers with decimals, and dates, are measurements from this share on, whatever others are.
_MEASURED_SHARE = 0.5
# Digits after a zero, letters before digits, and whole numbers with a letter, which is no exponent
# unless it has a sign, are codes. A column that has clearly more than a few of these holds codes.
_CODE = re.compile(
    r"0[0-9]+|[A-Za-z]{1,3}[-.]?[0-9][0-9A-Za-z]*(?:[-./][0-9A-Za-z]+)*|[0-9]+[A-Za-z][0-9A-Za-z]*"
)
_FEW_CODES = 0.005
# Numbers of which the point may stand before decimals or before a group of three digits.
_POINT = re.compile("[^0-9.,]{0,5}[1-9][0-9]{0,2}[.][0-9]{3}[^0-9.,]{0,5}")
# Of numbers with decimals a tenth have fewer than three, unless zeros at the end are kept.
_FEW_SHORT = 0.05
COUNTED = (*TEXT_KINDS[:-1], "point", "code", "object", "missing")
# In units of the noise of their counts, so many rows tell types from each other.
FEW = 10
# Numbers of counts and squared weights of a cell: of its type, and of how it is written.
_PARTS = (len(COUNTED), 0.875), *((len(ways) + 1, 0.125 / len(WAY_PARTS)) for ways in WAY_PARTS)
# Numbers that have zeros at the end of some decimals, and not of others, are codes.
_MIXED = {"1.5", "1.50"}
_COMMAS = ("decimal comma", "grouped", "comma")
# The column type of each type of cells, and the types that it may hold, or that are measurements.
_CLASSES = {name: cls for cls in TYPES.values() for name in cls.evidence}
_FITTING = {name: cls.evidence[name][0] for name, cls in _CLASSES.items()}
_MEASURED = {name: cls.evidence[name][1] for name, cls in _CLASSES.items()}


def encode_types(table, styles):
    """Encode the cells of undeclared columns by their types, each on its own.

    Parameters
    ----------
    table : DataFrame
    styles : dict of str to Unknown
        How the texts of each column are written.
    """
    parts = []
    for name, style in styles.items():
        ways = (encode_ways(table[name], style, part) for part in range(len(WAY_PARTS)))
        found = encode_column(table[name], style), *ways
        for codes, (size, weight) in zip(found, _PARTS, strict=True):
            parts.append(encode_levels(codes, size, weight / len(styles)))
    return np.hstack(parts)


def encode_ways(column, style, part):
    """Return how each cell of a column is written, as its position in `WAY_PARTS[part]`, or -1."""
    # Whether a column is of numbers, or of objects, may follow from a single cell.
    found, missing = np.full(len(column), -1), ~find_present(column)
    if find_types_of_dtype(column) is None:
        find = partial(find_way, part=part, is_file=style.is_file)
        found = map_cells(find, column).astype(np.int64)
    return np.where(missing, find_way(None, part), found)


def read_types(unknown, released):
    """Return columns in the ways in which counts show that they are written; counts of types.

    Returns
    -------
    dict of str to Unknown
    counts : ndarray of shape (n_columns, n_types)
    std : float
    """
    sizes, weights = np.transpose(_PARTS)
    unit = math.sqrt(len(unknown) / weights[0])
    counts = released.value.reshape(len(unknown), -1)
    types, *parts = np.split(counts, np.cumsum(sizes[:-1]).astype(int), axis=1)
    least, found = find_clear(released.std, sum(part.size for part in parts)), {}
    for (name, column), *rows in zip(unknown.items(), *parts, strict=True):
        written = [
            ways[i]
            for ways, row in zip(WAY_PARTS, rows, strict=True)
            for i in np.argsort(-row[:-1])
            if row[i] > least
        ]
        found[name] = replace(column, written=written)
    return found, types * unit, released.std * unit


def encode_column(column, style):
    """Return the type of each cell of a column, as its position in `COUNTED`."""
    found = find_types_of_dtype(column)
    if found is None:
        found = map_cells(partial(_find_type, style=style), column)
    return pd.Categorical(found, COUNTED).codes


def _find_type(cell, style):
    found = read_cell(cell, style)[0]
    # Placeholders say nothing about the type of the others.
    if found == "text" and is_placeholder(cell):
        return "missing"
    may_be_code = found == "text" or (found in ("number", "whole") and style.expected is None)
    is_code = may_be_code and isinstance(cell, str) and _CODE.fullmatch(cell.strip())
    is_point = found == "number" and style.has_python_numbers and isinstance(cell, str)
    is_point = is_point and _POINT.fullmatch(cell.strip())
    return "code" if is_code else "point" if is_point else found


def find_types(unknown, counts, std, n_rows):
    """Return the column types that released counts show, and the style of their texts.

    `counts` are the noisy numbers of the cells of each type, in the order of `COUNTED`, a row for
    each column. The last result has, for columns of texts, the form of numbers or dates that most
    cells have, if it is not read.
    """
    if n_rows < FEW * std:
        warn_of_fit(
            f"The inferred types of columns {list_names([*map(repr, unknown)])} are hardly more "
            f"than chance: counts of {n_rows:.0f} rows have noise of ±{std:.0f}. Declare these."
        )
    found, styles, lost, objects, looks = {}, {}, {}, {}, {}
    least = find_clear(std, len(unknown))
    rows = counts[:, :-1].tolist()
    read = [
        _choose_style(style, dict(zip(COUNTED, row, strict=False)), least)
        for style, row in zip(unknown.values(), rows, strict=True)
    ]
    has_comma = any(style.decimal == "," for style in read)
    for (name, style), row, style_read in zip(unknown.items(), rows, read, strict=True):
        of_cells = dict(zip(COUNTED, row, strict=False))
        # They are of no type, and say nothing about that of the others.
        n_objects = of_cells.pop("object")
        if n_objects > least:
            objects[name] = f"{n_objects / max(sum(row), n_objects):.1%}"
        chosen = _choose_type(name, style, of_cells, std)
        if chosen == "number" and style.expected is None and _MIXED <= {*style.written}:
            chosen, looks[name] = "text", "look like codes, 1.10 beside 1.1"
        styles[name] = style_read
        if chosen in ("number", "integer") and _may_have_groups(style_read, of_cells, least):
            few = _FEW_SHORT * of_cells["point"] + least
            if has_comma or chosen == "integer" or of_cells["whole"] > few:
                styles[name] = replace(style, decimal=",", thousands=".")
            else:
                looks[name] = "look like numbers as 2.157"
        cls = _CLASSES.get(chosen, Category)
        found[name] = cls.infer(chosen, of_cells, std)
        if chosen == "zoned date" and style.find_way("dates") != "TZ":
            warn_of_columns("zones", [name])
        share = _share_lost(chosen, style, styles[name], of_cells, least)
        if share > 0:
            others = {"date": "zoned date", "zoned date": "date"}.get(chosen)
            lost[name] = f"{share:.1%}"
            if others and of_cells[others] > max(share * sum(row) / 2, least):
                lost[name] += ": dates with and without time zones"
        if look := _find_look(of_cells, least):
            looks[name] = f"look like {look}"
    warn_of_columns("objects", objects)
    warn_of_columns("other type", lost)
    return found, styles, looks


def _find_look(counts, least):
    """Return what most cells look like that are of no type, and the format of dates if it shows."""
    found: dict = {}
    for look in LOOKS:
        found.setdefault(look.split()[0], {})[look] = counts[look]
    best = max(found, key=lambda look: sum(found[look].values()))
    noise = least * math.sqrt(len(found[best]))
    if sum(found[best].values()) <= max(_MEASURED_SHARE * sum(counts.values()), noise):
        return None
    shown = max(found[best], key=found[best].__getitem__)
    return shown if counts[shown] > least else best


def _choose_type(name, style, counts, std):
    """Return what most cells of a column are, if nearly all fit it or it is measured; or a text.

    Counts have noise of standard deviation `std`; two of these are tolerated. A declared type is
    chosen, or an error is raised.
    """
    expected, total = style.expected, sum(counts.values())

    def count(types):
        return sum(counts[cells] for cells in types)

    # First, since codes with leading zeros are digits as well, and numbers would drop the zeros.
    if expected is None and counts["code"] > _FEW_CODES * total + 3 * std:
        return "text"
    chosen = expected
    if expected in (None, "date"):
        options = [t for t in _FITTING if t != "integer" and (expected is None or "date" in t)]
        chosen = max(options, key=lambda t: count(_FITTING[t]))
    fitting = count(_FITTING[chosen])
    noise = 2 * std * math.sqrt(len(counts) - len(_FITTING[chosen]))
    fits = total - fitting <= (1 - FITTING_SHARE) * total + noise
    if expected is not None:
        if fits:
            return chosen
        if expected == "boolean" and style.find_way("numbers") is None:
            return "text"  # words such as ja and nein, which come back as they are
        raise ValueError(
            f"Column {name!r} was said to be of type {expected!r}, and by the noisy counts that "
            "were released many of its cells are not. Say how its numbers or dates are written, "
            "or give it another type."
        )
    if chosen == "number" and counts["limit"] > FITTING_SHARE * fitting:
        return "text"  # bounds such as >70 are categories
    # The noise of several counts adds up: the largest one is the surest sign of few cells.
    largest = max(counts, key=counts.__getitem__)
    fits &= largest in _FITTING[chosen]
    is_measured = count(_MEASURED.get(chosen, ())) > _MEASURED_SHARE * total + noise
    return chosen if (fits or is_measured) and counts[largest] > 2 * std else "text"


def _choose_style(style, counts, least):
    """Return the style of numbers: with a decimal comma or with groups, as most that are clear.

    Beside decimal commas, others are none of groups, even if more numbers have a decimal point.
    """
    if not style.has_python_numbers:
        # Those with a declared comma may have groups, too.
        is_shown = counts["grouped"] > _FEW_CODES * sum(counts.values()) + least
        is_shown &= (style.decimal, style.thousands) == (",", None)
        return replace(style, thousands=".") if is_shown else style
    point, group = counts["number"], counts["grouped"]
    decimal, commas = counts["decimal comma"], sum(counts[cells] for cells in _COMMAS)
    # So few commas may be noise, or mistakes.
    if commas <= _FEW_CODES * sum(counts.values()):
        return style
    if decimal > group + least and decimal <= point:
        return style
    # If no comma shows what it is, all stand before three digits.
    chosen = COMMA_STYLES[0 if decimal > max(point, group) + least else 1]
    return replace(style, decimal=chosen.decimal, thousands=chosen.thousands)


def _may_have_groups(style, counts, least):
    """Whether all points of numbers may stand before three digits, as in 2.157 and 12.500."""
    is_short = counts["number"] > _FEW_SHORT * counts["point"]
    return style.has_python_numbers and counts["point"] > 4 * least and not is_short


def _share_lost(chosen, declared, style, counts, least):
    """Return which share of the cells is no value of a type, or 0 where that may be noise.

    Numbers with a decimal comma are none of a style with a decimal point, and conversely. The cells
    were counted in the declared style.

    One count is clear of noise from `least` on.
    """
    fitting = set(_FITTING.get(chosen, COUNTED))
    if chosen in _FITTING:
        is_comma = style.decimal != declared.decimal
        fitting -= {"limit", "number" if is_comma else "decimal comma"}
        fitting -= set(_COMMAS) if style.has_python_numbers else set()
    lost = [count for cells, count in counts.items() if cells not in fitting]
    return sum(lost) / sum(counts.values()) if sum(lost) > least * math.sqrt(len(lost)) else 0.0
