# SPDX-License-Identifier: BSD-3-Clause
"""Dtypes of private columns: those of Arrow as pandas, their refusals, and samples in them."""

import operator
import re
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionDtype
from pandas.api.types import is_string_dtype

from ..exceptions import TableError
from .record_functions import call_quietly, drops_errors

# Arrow's types that have a nullable dtype of pandas.
_INTEGER, _FLOATS = re.compile(r"(u?)int(\d+)"), ("halffloat", "float", "double")
_TEXTS = ("string", "large_string", "string_view")
# Dtypes of cells that no column type holds, by how they begin; how to convert a column {}.
_CONVERSIONS = {
    "period": "{}.dt.to_timestamp()",
    "interval": "{}.astype(str)",
    "timedelta64": "{}.dt.total_seconds()",
    "duration": "{}.dt.total_seconds()",
    "time32": "{}.astype(str)",
    "time64": "{}.astype(str)",
    "complex": "{}.abs()",
}


def read_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with columns as `read_column` reads them."""
    # By position, since names of columns may repeat.
    columns = [frame.iloc[:, i] for i in range(frame.shape[1])]
    read = list(map(read_column, columns))
    if all(map(operator.is_, read, columns)):
        return frame
    # Labels of an index may be texts that cannot be read, and are not to be compared.
    rows = pd.RangeIndex(len(frame))
    made = pd.concat([column.set_axis(rows) for column in read], axis=1)
    made.index, made.columns = frame.index, frame.columns
    return made


def read_column(column: pd.Series) -> pd.Series:
    """Return a column in a dtype of pandas or NumPy that says what its cells are.

    Each cell is read on its own; texts that are not UTF-8, which Arrow holds, become missing.
    Sparse columns become dense, as do categories of booleans and dates, which have column types of
    their own, and dictionaries of Arrow with other cells than texts and numbers. Dates of Arrow,
    and what no column type holds, keep their dtypes.
    """
    dtype = column.dtype
    if isinstance(dtype, pd.SparseDtype):
        return column.sparse.to_dense()
    plain = _find_plain(dtype)
    if plain is not None:
        return read_column(column.astype(plain))
    if isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow":
        import pyarrow as pa

        held = pa.array(column)
        readable = _drop_unreadable(held)
        if readable is held:
            return column
        cells = pd.array(readable.to_pylist(), dtype=dtype)
    elif isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        # Arrow infers no type from an empty column, so it is stated.
        arrow_type = dtype.pyarrow_dtype
        read = pa.chunked_array([], arrow_type) if not len(column) else pa.array(column)
        if isinstance(find_pandas_dtype(arrow_type), pd.ArrowDtype):
            return column
        cells = read_arrow(read).array
    else:
        return column
    return pd.Series(cells, column.index, name=column.name)


def read_arrow_table(table) -> pd.DataFrame:
    """Return a table or batch of Arrow as a frame, with columns as `read_column` reads them."""
    columns = enumerate(map(read_arrow, table.columns))
    frame = pd.DataFrame(dict(columns), pd.RangeIndex(table.num_rows), copy=False)
    return frame.set_axis(table.schema.names, axis=1)


def read_arrow(cells) -> pd.Series:
    """Return cells of Arrow in the dtype that their type has in pandas.

    A dictionary's order and entries follow from other cells: unless it is declared to be ordered,
    categories are those that occur, sorted.
    """
    import pyarrow as pa

    arrow_type = cells.type
    if pa.types.is_dictionary(arrow_type):
        chunks = cells.chunks if isinstance(cells, pa.ChunkedArray) else [cells]
        held = arrow_type.value_type
        decoded = [chunk.dictionary_decode() for chunk in chunks]
        read = read_arrow(pa.chunked_array(decoded, held))
        if not (str(held) in (*_TEXTS, *_FLOATS[1:]) or _INTEGER.fullmatch(str(held))):
            return read
        dtype = pd.CategoricalDtype()
        if arrow_type.ordered:
            listed = read_arrow(pa.chunked_array([chunk.dictionary for chunk in chunks], held))
            dtype = pd.CategoricalDtype(listed.dropna().unique(), ordered=True)
        return read.astype(dtype)
    if pa.types.is_decimal(arrow_type):
        numbers = [np.nan if cell is None else float(cell) for cell in cells.to_pylist()]
        return pd.Series(numbers, dtype=np.float64)
    if str(arrow_type) in _TEXTS:
        cells = _drop_unreadable(cells)
    return cells.to_pandas(types_mapper=find_pandas_dtype)


def _drop_unreadable(texts):
    """Return texts of Arrow in which those that are not UTF-8 are missing, each decided alone."""
    import pyarrow as pa

    with drops_errors():
        texts.validate(full=True)
        return texts
    held = texts.cast(getattr(pa, str(texts.type).replace("string", "binary"))()).to_pylist()
    read = [None if text is None else call_quietly(text.decode) for text in held]
    return pa.array(read, texts.type)


def _find_plain(dtype):
    """Return the dtype of the cells of a categorical one, if these are booleans or dates."""
    if not isinstance(dtype, pd.CategoricalDtype) or dtype.categories is None:
        return None
    held = dtype.categories.dtype
    if isinstance(held, pd.DatetimeTZDtype) or held.kind == "M":
        return held
    # Cells may be missing.
    return pd.BooleanDtype() if held.kind == "b" else None


def hide_values(dtype):
    """Return the dtype without values of cells; None for one that consists of them.

    A categorical dtype holds private categories, a sparse one a cell, and a string dtype of NumPy
    the length of the longest text. Categories of dates become dates.

    Examples
    --------
    >>> hide_values(pd.SparseDtype("int64", 7)), hide_values(np.dtype("U9"))
    (Sparse[int64, 0], None)
    """
    if isinstance(dtype, pd.SparseDtype):
        # Zeros and missing values are what is left out of sparse columns, whatever their cells are.
        is_plain = pd.isna(dtype.fill_value) or dtype.fill_value == 0
        return pd.SparseDtype(dtype.subtype, *[dtype.fill_value] * bool(is_plain))
    plain = _find_plain(dtype)
    if plain is not None:
        is_boolean = isinstance(plain, pd.BooleanDtype)
        return pd.CategoricalDtype([False, True], dtype.ordered) if is_boolean else plain
    is_sized = isinstance(dtype, np.dtype) and dtype.kind in "US"
    return None if is_sized or isinstance(dtype, pd.CategoricalDtype) else dtype


def find_pandas_dtype(arrow_type):
    """Return the dtype of a column of an Arrow type; None for what Arrow chooses by the type alone.

    It does not depend on whether cells are missing.
    """
    name = str(arrow_type)
    if name == "bool":
        return pd.BooleanDtype()
    if name in _TEXTS:
        return pd.StringDtype()
    if match := _INTEGER.fullmatch(name):
        return pd.api.types.pandas_dtype(f"{match[1].upper()}Int{match[2]}")
    if name in _FLOATS or name.startswith(("timestamp", "dictionary", "decimal")):
        return None
    return pd.ArrowDtype(arrow_type)


def read_dtype(dtype):
    """Return the dtype of a column that `adapt` reads, from that which its container states.

    Examples
    --------
    >>> read_dtype(np.dtype("int8")), read_dtype(pd.Int8Dtype())
    (dtype('int8'), Int8Dtype())
    """
    return read_column(pd.Series([], dtype=dtype)).dtype


def is_date(dtype) -> bool:
    """Whether a dtype is that of Arrow's dates, which have no times."""
    return isinstance(dtype, pd.ArrowDtype) and str(dtype).startswith("date")


def check_dtype(dtype, what: str, column: str) -> None:
    """Refuse a column whose dtype says that no column type holds its cells, and say what to do.

    `what` is its name in the message, `column` that in Python.
    """
    if isinstance(dtype, pd.ArrowDtype) and str(dtype).startswith("dictionary"):
        dtype = pd.ArrowDtype(dtype.pyarrow_dtype.value_type)
    held = dtype
    if isinstance(dtype, pd.CategoricalDtype):
        held, column = getattr(dtype.categories, "dtype", None), f"{column}.cat"
    code = getattr(held, "kind", "O")
    is_other = isinstance(held, pd.PeriodDtype | pd.IntervalDtype) or code in "mcV"
    if isinstance(held, pd.ArrowDtype) and not is_date(held):
        # pandas reads unions not at all.
        read = call_quietly(read_dtype, held)
        is_other = is_other or read is None or isinstance(read, pd.ArrowDtype)
    if not is_other:
        return
    stated = str(held)
    begins = next((word for word in _CONVERSIONS if stated.lower().startswith(word)), None)
    conversion = None if begins is None else _CONVERSIONS[begins].format(column)
    if held is not dtype:
        stated, conversion = f"category of {held}", f"{column}.rename_categories(str)"
    # Lists, structs and the like have parts.
    advice = "convert it to texts or numbers, give a column for each part, or drop it"
    if conversion is not None:
        advice = f"convert it, in pandas as {conversion}"
    raise TableError(f"{what} has dtype {stated}, which no column type holds: {advice}.")


def write_arrow_type(dtype: pd.ArrowDtype) -> str:
    """Return a dtype of Arrow as text, without categories."""
    import pyarrow as pa

    # A schema of one field: Arrow serialises no type alone.
    return pa.schema([("", dtype.pyarrow_dtype)]).serialize().to_pybytes().hex()


def read_arrow_type(text: str) -> pd.ArrowDtype:
    """Return the dtype that `write_arrow_type` wrote."""
    import pyarrow as pa

    return pd.ArrowDtype(pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(text))).field(0).type)


def cast(column: pd.Series, dtype) -> pd.Series:
    """Return synthetic cells in a dtype; unchanged where that cannot hold them, or is None."""
    if dtype is None:
        return column
    made = call_quietly(
        _to_arrow if isinstance(dtype, pd.ArrowDtype) else _to_pandas, column, dtype
    )
    return column if made is None else made


def _to_pandas(column, dtype):
    made = column.astype(dtype)
    if made.dtype.kind in "iub" and (made != column).any():
        raise ValueError  # NumPy wraps numbers beyond its range around, and all texts are true
    return made


def _to_arrow(column, dtype):
    import pyarrow as pa

    arrow_type = dtype.pyarrow_dtype
    if pa.types.is_dictionary(arrow_type):
        # Arrow casts dictionaries to few types. Categories keep their order.
        coded = column.astype("category").cat
        listed = _to_arrow(pd.Series(coded.categories), pd.ArrowDtype(arrow_type.value_type))
        codes = pa.array(coded.codes, arrow_type.index_type, mask=(coded.codes < 0).to_numpy())
        cells = pa.DictionaryArray.from_arrays(codes, pa.array(listed), ordered=arrow_type.ordered)
    else:
        column = column.astype(object)
        if pa.types.is_decimal(arrow_type):
            places = max(arrow_type.scale, 0)
            # Decimal takes the text of a float; its exact binary value would have too many digits.
            column = column.map(lambda c: None if pd.isna(c) else Decimal(f"{c:.{places}f}"))
        cells = pa.array(column, from_pandas=True).cast(arrow_type)
    return pd.Series(pd.arrays.ArrowExtensionArray(cells), column.index, name=column.name)


def list_text_columns(X, head) -> Sequence[str] | None:
    """Return the columns that hold texts whatever the cells are; None if all are parsed already.

    Columns of objects are none of them: readers of parts leave texts in one and numbers in another.
    """
    if getattr(X, "are_parsed", False):
        return None
    if not getattr(X, "states_dtypes", True):
        return ()
    return tuple(name for name, dtype in head.dtypes.items() if is_text(dtype))


def is_text(dtype):
    """Whether a dtype, or that of its categories, holds texts only, unlike objects."""
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    if isinstance(dtype, pd.ArrowDtype):
        return str(dtype.pyarrow_dtype) in _TEXTS
    return is_string_dtype(dtype) and isinstance(dtype, ExtensionDtype)


def find_numpy_dtype(dtype):
    """Return NumPy's dtype of the cells of a nullable, Arrow's or sparse dtype."""
    return getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", dtype))


def find_held_range(dtype, lower=-np.inf, upper=np.inf):
    """Return the least and the greatest double within bounds that a dtype holds once rounded.

    The first is larger if there is none.

    Parameters
    ----------
    dtype : dtype
        NumPy's, or one of pandas.
    lower, upper : float or ndarray, default=-inf, inf

    Examples
    --------
    >>> [float(end) for end in find_held_range(np.dtype("int8"), 0.5)]
    [1.0, 127.0]
    >>> [float(end) for end in find_held_range(np.dtype("float16"), -1e6, 0.5)]
    [-65504.0, 0.5]
    """
    numbers, first, last = find_numpy_dtype(dtype), -np.inf, np.inf
    if isinstance(dtype, pd.ArrowDtype) and str(dtype).startswith("decimal"):
        held = dtype.pyarrow_dtype
        last = np.nextafter(10.0 ** (held.precision - held.scale), 0) - 10.0**-held.scale
        first = -last
    elif isinstance(numbers, np.dtype) and numbers.kind == "f":
        first, last = (float(end) for end in (np.finfo(numbers).min, np.finfo(numbers).max))
    elif isinstance(numbers, np.dtype) and numbers.kind in "iu":
        first, last = float(np.iinfo(numbers).min), np.nextafter(np.iinfo(numbers).max + 1.0, 0)
        lower, upper, last = np.ceil(lower), np.floor(upper), np.floor(last)
    return np.maximum(lower, first), np.minimum(upper, last)
