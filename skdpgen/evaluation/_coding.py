# SPDX-License-Identifier: BSD-3-Clause
"""Columns of two tables, cut into the same levels, so that shares of rows can be compared."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

# Numbers are cut into so many ranges, and of categories the most frequent are told apart.
_N_RANGES = 10
_MOST_LEVELS = 30
# Even ranges are between these quantiles; what is outside is in the outermost.
_QUANTILES = (0.01, 0.99)
_MISSING, _OTHERS = "missing", "all others"


@dataclass(frozen=True)
class CodedColumn:
    """A column of synthetic rows, and of reference rows if there are any.

    Attributes
    ----------
    name : str
    levels : tuple of str
        What the codes stand for.
    synthetic, reference : ndarray of int, or None
        The position in `levels` of each cell.
    numbers : tuple of ndarrays or None
        Of numbers and dates, the cells of both, as floats; else None.
    """

    name: str
    levels: tuple
    synthetic: np.ndarray
    reference: np.ndarray | None
    numbers: tuple | None

    @property
    def is_number(self):
        return self.numbers is not None

    def shares(self, codes):
        """Return the share of each level."""
        return np.bincount(codes, minlength=len(self.levels)) / len(codes)

    def select(self, synthetic, reference):
        """Return the column with other codes of both, among the same levels."""
        return CodedColumn(self.name, self.levels, synthetic, reference, None)


def as_table(X, y=None):
    """Return rows, and labels beside them, as one DataFrame."""
    if not isinstance(X, pd.DataFrame):
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"Rows must be a matrix or a DataFrame; got shape {X.shape}.")
        X = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    if y is not None:
        name = getattr(y, "name", None) or "y"
        X = X.assign(**{str(name): np.asarray(y)})
    return X.reset_index(drop=True)


def code_columns(synthetic, reference=None):
    """Cut the columns of one or two tables into levels.

    Levels and ranges are those of the reference, if there is one. A column is of numbers if it is
    in both tables; booleans are levels. Cells of other columns are compared as texts.

    Parameters
    ----------
    synthetic : DataFrame
    reference : DataFrame, default=None
        With the same columns.

    Returns
    -------
    list of CodedColumn
    """
    check_tables(synthetic, reference)
    return [
        _code(name, synthetic[name], None if reference is None else reference[name])
        for name in synthetic
    ]


def check_tables(synthetic, reference=None):
    """Refuse tables without rows, or with different columns."""
    for what, table in (("synthetic", synthetic), ("reference", reference)):
        if table is None:
            continue
        if not isinstance(table, pd.DataFrame):
            raise ValueError(f"{what} must be a DataFrame; got {type(table).__name__}.")
        if len(table) < 2 or not len(table.columns) or not table.columns.is_unique:
            raise ValueError(f"{what} needs at least 2 rows, and columns of different names.")
    if reference is not None and set(reference.columns) != set(synthetic.columns):
        both = set(reference.columns) ^ set(synthetic.columns)
        raise ValueError(
            "synthetic and reference must have the same columns; in one of them only: "
            f"{sorted(map(str, both))}."
        )


def as_numbers(column):
    """Return numbers or dates as floats, NaN for missing; None for what is neither."""
    if isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(column):
        return None
    if pd.api.types.is_datetime64_any_dtype(column):
        days = pd.to_datetime(column, utc=True).dt.tz_localize(None).to_numpy().astype("M8[s]")
        return np.where(np.isnat(days), np.nan, days.astype(np.float64))
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(np.float64, na_value=np.nan)
    return None


def as_texts(column):
    """Return cells as texts, None for missing."""
    texts = np.empty(len(column), dtype=object)
    texts[:] = [
        None if is_missing else str(cell)
        for cell, is_missing in zip(column, column.isna(), strict=True)
    ]
    return texts


def _code(name, *columns):
    name = str(name)
    tables = [column for column in columns if column is not None]
    numbers = [as_numbers(column) for column in tables]
    if any(part is None for part in numbers):
        codes, levels, numbers = *_code_texts([as_texts(column) for column in tables]), None
    else:
        is_date = pd.api.types.is_datetime64_any_dtype(tables[-1])
        codes, levels = _code_numbers(numbers, is_date)
    is_missing = [code < 0 for code in codes]
    if any(missing.any() for missing in is_missing):
        codes = [np.where(code < 0, len(levels), code) for code in codes]
        levels = (*levels, _MISSING)
    reference = codes[1] if len(codes) > 1 else None
    return CodedColumn(name, tuple(levels), codes[0], reference, numbers and tuple(numbers))


def _code_texts(tables):
    """Return positions of texts, -1 for missing, and levels, the most frequent first."""
    counts = pd.Series(tables[-1]).value_counts()
    levels = [*counts.index[:_MOST_LEVELS]]
    positions = {level: i for i, level in enumerate(levels)} | {None: -1}
    codes = [np.array([positions.get(c, len(levels)) for c in table]) for table in tables]
    if any((code == len(levels)).any() for code in codes):
        levels.append(_OTHERS)
    return codes, levels


def _code_numbers(tables, is_date):
    """Return positions of numbers, -1 for missing, and ranges or values."""
    known = tables[-1][np.isfinite(tables[-1])]
    values = np.unique(known)
    if len(values) <= _N_RANGES:
        # Of each number, the nearest that occurs.
        cuts = (values[1:] + values[:-1]) / 2
        levels = [_show(value, is_date) for value in values] or ["none"]
    else:
        low, high = np.quantile(known, _QUANTILES)
        if low == high:
            low, high = values[[0, -1]]
        edges = np.linspace(low, high, _N_RANGES + 1)
        if np.array_equal(values, np.round(values)) and high - low >= _N_RANGES:
            edges = np.unique(np.round(edges))
        cuts = edges[1:-1]
        shown = [_show(edge, is_date) for edge in cuts]
        between = [f"{a} to {b}" for a, b in pairwise(shown)]
        levels = [f"below {shown[0]}", *between, f"from {shown[-1]}"]
    codes = [np.searchsorted(cuts, table, side="right") for table in tables]
    return [np.where(np.isnan(t), -1, c) for t, c in zip(tables, codes, strict=True)], levels


def _show(number, is_date):
    if is_date:
        return str(np.datetime64(int(number), "s"))[:10]
    return f"{number:.4g}" if abs(number) < 1000 else f"{number:,.0f}"
