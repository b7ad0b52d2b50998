# SPDX-License-Identifier: BSD-3-Clause
"""Private inference of column types from noisy counts of cell types."""

import math
import re
import warnings

from ...curator.texts import TEXT_KINDS
from ...exceptions import FitQualityWarning
from ..inference.ranges import find_clear
from . import Boolean, Category, Date, Number
from .decimals import encode_levels
from .texts import FITTING, read_cell

# The release; and which share of the texts in a column is to fit its kind, but for noise.
KINDS, _FITTING_SHARE = "column kinds", 0.95
# Digits after a zero are codes. A column that has clearly more than a few of these holds codes.
_CODE, _FEW_CODES = re.compile(r"0[0-9]+"), 0.005
_COUNTED = (*TEXT_KINDS[:-1], "code", "missing")
# In units of the noise of their counts, so many rows tell kinds from each other.
_FEW = 10
# The kinds that a column may be said to be.
_SAID = {"number": Number, "integer": Number, "boolean": Boolean, "date": Date}


def encode_kinds(table, styles):
    """Encode the cells of columns of which nothing is known by their kinds, each on its own.

    Parameters
    ----------
    table : DataFrame
    styles : dict of str to Unknown
        How the texts of each column are written.
    """

    def read(column):
        return column.map(lambda cell: _find_kind(cell, styles[column.name]))

    return encode_levels(table.apply(read), _COUNTED)


def _find_kind(cell, style):
    kind, value = read_cell(cell, style)
    return "code" if kind == "text" and _CODE.fullmatch(value.strip()) else kind


def find_kinds(unknown, noisy, n_rows):
    """Return the kinds of columns that released counts show.

    Parameters
    ----------
    unknown : dict of str to Unknown
    noisy : NoisySum
        The noisy sum of what `encode_kinds` gives.
    n_rows : float
        What is known of the number of rows.

    Returns
    -------
    dict of str to object
    """
    unit = math.sqrt(len(unknown))
    counts, std = (noisy.value * unit).reshape(-1, len(_COUNTED))[:, :-1], noisy.std * unit
    if n_rows < _FEW * std:
        warnings.warn(
            f"The inferred types of {list(unknown)} are hardly more than chance, since counts of "
            f"{n_rows:.0f} rows have noise of ±{std:.0f}. Declare these columns.",
            FitQualityWarning,
            stacklevel=2,
        )
    found = {
        name: _choose_kind(name, kind.expected, row, std)
        for (name, kind), row in zip(unknown.items(), counts.tolist(), strict=True)
    }
    least = find_clear(std, len(found))
    shares = [
        _share_lost(type(kind), row, least)
        for kind, row in zip(found.values(), counts, strict=True)
    ]
    lost = [
        f"{name!r} ({share:.1%})" for name, share in zip(found, shares, strict=True) if share > 0
    ]
    if lost:
        warnings.warn(
            f"By noisy counts, columns hold cells that are not of the kind of the others: "
            f"{', '.join(lost)}. They count as missing, and in the target their records as absent. "
            "Declare these columns, as Category() if they hold codes.",
            FitQualityWarning,
            stacklevel=2,
        )
    return found


def _choose_kind(name, expected, counts, std):
    """Choose what is most of a column, if nearly all of it fits; else texts, which all fit.

    Counts have noise of standard deviation `std`; two of these are tolerated. A declared type is
    chosen, or an error is raised.
    """
    whole, number, boolean, date, text, code = counts
    total = sum(counts)
    if expected is None and code > _FEW_CODES * total + 3 * std:
        return Category(missing=True)
    text += code
    numbers = whole + number * (expected != "integer")
    fitting = {Category: text, Number: numbers, Boolean: boolean, Date: date}
    kind = _SAID.get(expected) or max(fitting, key=fitting.get)

    def is_small(part, of, n_counts):
        return part <= (1 - _FITTING_SHARE) * of + 2 * math.sqrt(n_counts) * std

    fits = is_small(total - fitting[kind], total, 4)
    if expected is None and not (fits and fitting[kind] > 2 * std):
        kind = Category
    elif not fits:
        raise ValueError(
            f"Column {name!r} was said to be of kind {expected!r}, and by the noisy counts that "
            "were released many of its cells are not. Say how its numbers or dates are written, "
            "or give it another kind."
        )
    if kind is Number and (expected == "integer" or is_small(number, whole + number, 1)):
        return Number(decimals=0, missing=True)
    return Date(unit=None, missing=True) if kind is Date else kind(missing=True)


def _share_lost(kind, counts, least):
    """Return which share of the cells is no value of a kind, or 0 where that may be noise.

    One count is clear of noise from `least` on.
    """
    is_lost = [name not in FITTING.get(kind, _COUNTED) for name in _COUNTED[:-1]]
    lost = counts[is_lost].sum()
    return lost / counts.sum() if lost > least * math.sqrt(sum(is_lost)) else 0.0
