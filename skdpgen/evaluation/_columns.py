# SPDX-License-Identifier: BSD-3-Clause
"""Columns of one or two tables, encoded by common levels so that their marginals compare."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from ..curator.containers import as_array

# Numbers have 10 bins and categories 30 levels, as many as a bar chart can show.
_N_BINS = 10
_MOST_LEVELS = 30
# Bins divide this range of quantiles evenly, so that outliers do not stretch them.
_QUANTILES = (0.01, 0.99)
_MISSING, _OTHERS = "missing", "all others"


@dataclass(frozen=True)
class EncodedColumn:
    """Column of synthetic rows, and of reference rows if there are any.

    Attributes
    ----------
    name : str
    levels : tuple of str
        Names of the codes.
    synthetic, reference : ndarray of int, or None
        The position in `levels` of each cell.
    numbers : tuple of ndarrays or None
        The cells of both tables as floats, for numbers and dates.
    """

    name: str
    levels: tuple[str, ...]
    synthetic: np.ndarray
    reference: np.ndarray | None
    numbers: tuple[np.ndarray, ...] | None

    def shares(self, codes: np.ndarray) -> np.ndarray:
        """Return the share of each level."""
        return np.bincount(codes, minlength=len(self.levels)) / len(codes)


def as_table(X, y=None) -> pd.DataFrame:
    """Return rows, with labels as a last column, as a DataFrame."""
    X = as_array(X)
    if not isinstance(X, pd.DataFrame):
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"Rows must be a matrix or a DataFrame; got shape {X.shape}.")
        X = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    if y is not None:
        name = getattr(y, "name", None) or "y"
        X = X.assign(**{str(name): np.asarray(y)})
    return X.reset_index(drop=True)


def encode_columns(
    synthetic: pd.DataFrame, reference: pd.DataFrame | None = None
) -> list[EncodedColumn]:
    """Encode the columns of one or two tables by common levels.

    Levels and bins are those of the reference, if there is one. A column is numeric if it is in
    both tables; booleans are levels. Cells of other columns are compared as texts.

    Parameters
    ----------
    synthetic : DataFrame
    reference : DataFrame, default=None
        A table with the same columns.

    Returns
    -------
    list of EncodedColumn
    """
    check_tables(synthetic, reference)
    return [
        _encode(str(name), [table[name] for table in (synthetic, reference) if table is not None])
        for name in synthetic
    ]


def check_tables(synthetic: pd.DataFrame, reference: pd.DataFrame | None = None) -> None:
    """Raise ValueError for tables with fewer than 2 rows, or with different columns."""
    for name, table in (("synthetic", synthetic), ("reference", reference)):
        if table is None:
            continue
        if not isinstance(table, pd.DataFrame):
            raise ValueError(f"{name} must be a DataFrame; got {type(table).__name__}.")
        if len(table) < 2 or not len(table.columns) or not table.columns.is_unique:
            raise ValueError(f"{name} needs at least 2 rows, and columns with unique names.")
    if reference is not None and set(reference.columns) != set(synthetic.columns):
        unmatched = sorted(map(str, set(reference.columns) ^ set(synthetic.columns)))
        raise ValueError(
            f"synthetic and reference must have the same columns; in one of them only: {unmatched}."
        )


def as_numbers(column: pd.Series) -> np.ndarray | None:
    """Return numbers or dates as floats, NaN for missing; None for other columns."""
    if isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(column):
        return None
    if pd.api.types.is_datetime64_any_dtype(column):
        days = pd.to_datetime(column, utc=True).dt.tz_localize(None).to_numpy().astype("M8[s]")
        return np.where(np.isnat(days), np.nan, days.astype(np.float64))
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(np.float64, na_value=np.nan)
    return None


def as_texts(column: pd.Series) -> np.ndarray:
    """Return cells as texts, None for missing."""
    texts = np.empty(len(column), dtype=object)
    texts[:] = [
        None if is_missing else str(cell)
        for cell, is_missing in zip(column, column.isna(), strict=True)
    ]
    return texts


def plain_frame(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of floats and texts."""
    plain = {}
    for name in table:
        numbers = as_numbers(table[name])
        plain[name] = as_texts(table[name]) if numbers is None else numbers
    return pd.DataFrame(plain)


def _encode(name: str, tables: Sequence[pd.Series]) -> EncodedColumn:
    parsed = [as_numbers(column) for column in tables]
    numbers = tuple(part for part in parsed if part is not None)
    is_numeric = len(numbers) == len(tables)
    if not is_numeric:
        codes, levels = _encode_texts([as_texts(column) for column in tables])
    else:
        is_date = pd.api.types.is_datetime64_any_dtype(tables[-1])
        codes, levels = _encode_numbers(numbers, is_date)
    if any((code < 0).any() for code in codes):
        codes = [np.where(code < 0, len(levels), code) for code in codes]
        levels = [*levels, _MISSING]
    reference = codes[1] if len(codes) > 1 else None
    return EncodedColumn(name, tuple(levels), codes[0], reference, numbers if is_numeric else None)


def _encode_texts(tables: Sequence[np.ndarray]) -> tuple[list[np.ndarray], list[str]]:
    """Return codes of texts, -1 for missing, and the levels, the most frequent first."""
    levels = list(pd.Series(tables[-1]).value_counts().index[:_MOST_LEVELS])
    positions = {level: i for i, level in enumerate(levels)} | {None: -1}
    codes = [np.array([positions.get(c, len(levels)) for c in table]) for table in tables]
    if any((code == len(levels)).any() for code in codes):
        levels.append(_OTHERS)
    return codes, levels


def _encode_numbers(
    tables: Sequence[np.ndarray], is_date: bool
) -> tuple[list[np.ndarray], list[str]]:
    """Return codes of numbers, -1 for missing, and bins or, if there are few, values."""
    known = tables[-1][np.isfinite(tables[-1])]
    values = np.unique(known)
    if len(values) <= _N_BINS:
        # Each number is encoded as the nearest value.
        breaks = (values[1:] + values[:-1]) / 2
        levels = [_show(value, is_date) for value in values] or ["none"]
    else:
        low, high = np.quantile(known, _QUANTILES)
        if low == high:  # nearly all numbers are equal
            low, high = values[[0, -1]]
        edges = np.linspace(low, high, _N_BINS + 1)
        # Bins of integers have integer edges, if each is at least 1 wide.
        if np.array_equal(values, np.round(values)) and high - low >= _N_BINS:
            edges = np.unique(np.round(edges))
        breaks = edges[1:-1]
        shown = [_show(edge, is_date) for edge in breaks]
        between = [f"{a} to {b}" for a, b in pairwise(shown)]
        levels = [f"below {shown[0]}", *between, f"from {shown[-1]}"]
    codes = [
        np.where(np.isnan(table), -1, np.searchsorted(breaks, table, side="right"))
        for table in tables
    ]
    return codes, levels


def _show(number: float, is_date: bool) -> str:
    if is_date:
        return str(np.datetime64(int(number), "s"))[:10]
    return f"{number:.4g}" if abs(number) < 1000 else f"{number:,.0f}"
