# SPDX-License-Identifier: BSD-3-Clause
"""Columns of one or two tables, encoded by common levels so that their marginals compare."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from sklearn.utils import check_array

from .._process.muting import muted
from ..data.containers import as_array, find_record_shape
from ..data.inputs import read_array
from ..data.names import map_cells, name_cell
from ..tables.public_tables import read_public

# Numbers with more values are binned; categories have 30 levels, as many as a chart can show.
_MOST_VALUES, _N_BINS, _MOST_LEVELS = 16, 10, 30
# A point of a table's quantile function for each of so many probabilities: both tables weigh alike.
_PROBABILITIES = np.linspace(0, 1, 1001)
# The outermost bins hold all values beyond these quantiles, so that charts have no long tails.
_QUANTILES = (0.01, 0.99)
_MISSING, _OTHERS = "missing", "all others"


@dataclass(frozen=True)
class EncodedColumn:
    """Column of synthetic rows, and of reference rows if there are any."""

    name: str
    # Names of the codes.
    levels: tuple[str, ...]
    # The position in `levels` of each cell.
    synthetic: np.ndarray
    reference: np.ndarray | None
    # Codes of both tables in which no categories are merged.
    exact: tuple[np.ndarray, ...]
    # The cells of both tables as floats, for numbers and dates.
    numbers: tuple[np.ndarray, ...] | None = None
    # The range of each of the first levels, for numbers that are binned. A point mass has a range
    # of width 0.
    bins: tuple[tuple[float, float], ...] | None = None
    # Whether numbers are seconds since 1970.
    is_date: bool = False

    def shares(self, codes: np.ndarray) -> np.ndarray:
        """Return the share of each level."""
        return np.bincount(codes, minlength=len(self.levels)) / len(codes)


def read_alike(X, Y, names: tuple[str, str], **options) -> tuple:
    """Return public rows or images of one shape as matrices, and the shape of a record or None.

    Flat rows beside images are in the order of these. `options` are those of `check_array`.
    """
    parts = [read_array(part) for part in (X, Y)]
    shapes = [find_record_shape(part) for part in parts]
    # Images have as many numbers with channels first and last.
    if len({tuple(n for n in shape if n > 1) for shape in shapes if shape is not None}) > 1:
        raise ValueError(f"{' and '.join(names)} must be images of one shape; got {shapes}.")
    for i, shape in enumerate(shapes):
        if shape is not None:
            parts[i] = parts[i].reshape(len(parts[i]), math.prod(shape))
    # scikit-learn's message would quote rows.
    if min(map(np.ndim, parts)) < 2:
        raise ValueError(f"{' and '.join(names)} must be rows; got {[*map(np.shape, parts)]}.")
    first, second = (
        check_array(rows, input_name=name, **options)
        for rows, name in zip(parts, names, strict=True)
    )
    widths = first.shape[1], second.shape[1]
    if widths[0] != widths[1]:
        raise ValueError(f"{' and '.join(names)} must have equally many columns; got {widths}.")
    return first, second, shapes[0] or shapes[1]


def as_table(X) -> pd.DataFrame:
    """Return rows as a DataFrame, whose texts and objects are read as a fit reads them."""
    X = as_array(X)
    if not isinstance(X, pd.DataFrame):
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"Rows must be a matrix or a DataFrame; got shape {X.shape}.")
        X = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    X = X.reset_index(drop=True)
    with muted():
        return read_public(X) if X.columns.is_unique else X


def encode_columns(
    synthetic: pd.DataFrame,
    reference: pd.DataFrame | None = None,
    orders: Mapping[str, Sequence] | None = None,
) -> list[EncodedColumn]:
    """Encode the columns of one or two tables, see `check_tables`, by common levels.

    Both tables share levels and bins, so that values of one table only are not hidden.
    A column is numeric if it is in both tables; booleans are levels. Cells of other columns are
    compared as texts, in the order of their levels in `orders` or of an ordered categorical.
    """
    tables = [table for table in (synthetic, reference) if table is not None]
    return [
        _encode(str(name), [table[name] for table in tables], (orders or {}).get(name))
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
            "synthetic and reference must have the same columns; drop these, which are in one of "
            f"them only: {unmatched}."
        )


def as_numbers(column: pd.Series) -> np.ndarray | None:
    """Return numbers or dates as floats, NaN for missing; None for other columns."""
    # Categories of numbers, and booleans, are compared by level.
    if isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(column):
        return None
    if pd.api.types.is_datetime64_any_dtype(column):
        # Seconds since 1970: dates of different resolutions and time zones become comparable.
        days = pd.to_datetime(column, utc=True).dt.tz_localize(None).to_numpy().astype("M8[s]")
        return np.where(np.isnat(days), np.nan, days.astype(np.float64))
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(np.float64, na_value=np.nan)
    return None


def as_texts(column: pd.Series) -> np.ndarray:
    """Return the names of cells as categories, None for missing."""
    names = map_cells(lambda cell: name_cell(cell) or str(cell), column)
    names[column.isna().to_numpy()] = None
    return names


def plain_frames(*tables: pd.DataFrame) -> list[pd.DataFrame]:
    """Return tables of floats and texts; a column has floats if it has numbers in all of them."""
    plain: list[dict] = [{} for _ in tables]
    for name in tables[0]:
        numbers = [as_numbers(table[name]) for table in tables]
        is_numeric = all(part is not None for part in numbers)
        for table, part, cells in zip(tables, numbers, plain, strict=True):
            cells[name] = part if is_numeric else as_texts(table[name])
    return [pd.DataFrame(cells) for cells in plain]


def _encode(name: str, tables: Sequence[pd.Series], order: Sequence | None) -> EncodedColumn:
    parsed = [as_numbers(column) for column in tables]
    numbers = tuple(part for part in parsed if part is not None)
    is_numeric = len(numbers) == len(tables)
    is_date = is_numeric and pd.api.types.is_datetime64_any_dtype(tables[-1])
    bins = None
    if is_numeric:
        codes, levels, bins = _encode_numbers(numbers, is_date)
        exact = codes
    else:
        dtype = tables[-1].dtype
        # The reference's order, if there is a reference: it is the real table.
        if order is None and isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
            order = dtype.categories
        codes, exact, levels = _encode_texts([as_texts(column) for column in tables], order)
    if any((code < 0).any() for code in codes):
        codes = [np.where(code < 0, len(levels), code) for code in codes]
        levels = [*levels, _MISSING]
    reference = codes[1] if len(codes) > 1 else None
    return EncodedColumn(
        name,
        tuple(levels),
        codes[0],
        reference,
        tuple(exact),
        numbers if is_numeric else None,
        bins,
        is_date,
    )


def _encode_texts(
    tables: Sequence[np.ndarray], order: Sequence | None
) -> tuple[list[np.ndarray], list[np.ndarray], list[str]]:
    """Return codes of texts, -1 for missing, and the levels, the most frequent first.

    The frequency of a level is its larger share of both tables. Rare levels are merged in the
    first codes, and not in the second.
    """
    shares = [pd.Series(table).value_counts(normalize=True) for table in tables]
    # By the larger of both shares, so that a level that one table lacks is shown as well. The sort
    # is stable, so that charts do not change between runs.
    largest = pd.concat(shares, axis=1).max(axis=1).sort_values(ascending=False, kind="stable")
    exact = [pd.Index(largest.index).get_indexer(pd.Index(table)) for table in tables]
    exact = [np.where(pd.isna(table), -1, code) for table, code in zip(tables, exact, strict=True)]
    levels = list(largest.index[:_MOST_LEVELS])
    if order is not None:
        ranks = {str(level): i for i, level in enumerate(order)}
        levels.sort(key=lambda level: ranks.get(level, len(ranks)))
    # The last entry is that of missing cells, whose code -1 indexes it.
    positions = np.full(len(largest) + 1, len(levels))
    positions[largest.index.get_indexer(levels)] = np.arange(len(levels))
    positions[-1] = -1
    codes = [positions[code] for code in exact]
    if len(largest) > len(levels):
        levels.append(_OTHERS)
    return codes, exact, levels


def _encode_numbers(
    tables: Sequence[np.ndarray], is_date: bool
) -> tuple[list[np.ndarray], list[str], tuple[tuple[float, float], ...] | None]:
    """Return codes of numbers, -1 for missing, levels, and bins, if there are many values.

    Values with a larger share of both tables than an average bin are point masses, and levels of
    their own. Bins have about equal shares of all others.
    """
    known = [table[np.isfinite(table)] for table in tables]
    values = np.unique(np.concatenate(known))
    if len(values) <= _MOST_VALUES:
        # Infinite numbers are encoded as the nearest value.
        breaks = (values[1:] + values[:-1]) / 2
        levels, bins = [_show(value, is_date) for value in values] or ["none"], None
    else:
        points = np.concatenate(
            [np.quantile(t, _PROBABILITIES, method="inverted_cdf") for t in known if len(t)]
        )
        values, n_equal = np.unique(points, return_counts=True)
        masses = values[n_equal > len(points) / _N_BINS]
        # Other values have bins of their own, or else a large point mass would leave one for all.
        others = points[~np.isin(points, masses)]
        probabilities = np.linspace(*_QUANTILES, _N_BINS + 1)
        edges = others[:0]
        if len(others):
            edges = np.unique(np.quantile(others, probabilities, method="inverted_cdf"))
        inner, edges = edges[1:-1], np.union1d(edges, masses)
        # A point mass is a bin from its value to the next float.
        breaks = np.unique([*inner, *masses, *np.nextafter(masses, np.inf)])
        # The outermost bins end at the quantiles; their codes hold all values beyond.
        bounds = [min(edges[0], breaks[0]), *breaks, max(edges[-1], breaks[-1])]
        bins = [(a, a if b == np.nextafter(a, np.inf) else b) for a, b in pairwise(bounds)]
        levels = [_name_bin(bin, masses, is_date) for bin in bins]
        levels[0] = f"below {_show(breaks[0], is_date)}"
        below = np.nextafter(breaks[-1], -np.inf)
        ends = ("over", below) if below in masses else ("from", breaks[-1])
        levels[-1] = f"{ends[0]} {_show(ends[1], is_date)}"
    codes = [
        np.where(np.isnan(table), -1, np.searchsorted(breaks, table, side="right"))
        for table in tables
    ]
    if bins is None:
        return codes, levels, None
    # Ranges without values, beside point masses, are no levels.
    used = np.unique(np.concatenate([[-1], *codes]))[1:]
    codes = [np.where(code < 0, -1, np.searchsorted(used, code)) for code in codes]
    return codes, [levels[i] for i in used], tuple(bins[i] for i in used)


def _name_bin(bin: tuple[float, float], masses: np.ndarray, is_date: bool) -> str:
    low, high = bin
    if low == high:
        return _show(low, is_date)
    below = np.nextafter(low, -np.inf)
    start = f"over {_show(below, is_date)}" if below in masses else _show(low, is_date)
    return f"{start} to {_show(high, is_date)}"


def _show(number: float, is_date: bool) -> str:
    if is_date:
        return str(np.datetime64(int(number), "s"))[:10]
    return f"{number:.4g}" if abs(number) < 1000 else f"{number:,.0f}"
