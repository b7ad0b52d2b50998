# SPDX-License-Identifier: BSD-3-Clause
"""Containers of private data: one adapter between the libraries of users, and pandas and NumPy.

Any table or column that Narwhals knows is read as a frame or Series of pandas, each cell on its
own, with dtypes that follow from the container's own. Names, dtypes and the container are public,
and samples come back in them. Categories that a dtype lists are not: they may be data.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import torch
from pandas.api.extensions import ExtensionArray, ExtensionDtype
from scipy import sparse

from .._process.muting import muted
from ..exceptions import TableError
from ..registry import savable
from .cells import as_objects
from .dtypes import read_arrow, read_arrow_table, read_column, read_frame
from .record_functions import call_quietly

# The floating dtypes that NumPy shares with torch.
_FLOATS = (torch.float16, torch.float32, torch.float64)


@savable
@dataclass(frozen=True)
class Container:
    """The container of a table or column, in which samples come back.

    `adapt` makes it of the type, and the names, of what is given to `fit`: it depends on no private
    cell. `give` is called with synthetic cells after `fit`, and keeps none.

    Parameters
    ----------
    library : str, default="numpy"
        ``"numpy"``, ``"torch"`` or a dtype of it that NumPy lacks, ``"pandas"``, ``"array"`` for an
        extension array of pandas, ``"records"`` for dicts and other records, ``"columns"`` for a
        dict of columns, a list of images, or the name of a library that Narwhals knows.
    columns_name : object, default=None
        The name of the index of a frame's columns.
    """

    library: str = "numpy"
    columns_name: object = None

    def give(self, data):
        """Return synthetic cells, a DataFrame or Series, in this container."""
        if self.library == "pandas":
            is_named = data.ndim == 2 and data.columns.nlevels == 1
            return data.rename_axis(columns=self.columns_name) if is_named else data
        if self.library.startswith(("numpy", "torch")):
            return self.give_array(data.to_numpy())
        if self.library == "array":
            return data.array
        if self.library in ("columns", "records"):
            cells = data.astype(object)
            cells = cells.where(cells.notna(), None)
            if self.library == "records":
                return cells.to_dict("records")
            # NumPy would choose a dtype by whether cells of nullable dtypes are missing.
            plain = {n for n, dtype in data.dtypes.items() if isinstance(dtype, np.dtype)}
            return {n: (c if n in plain else cells[n]).to_numpy() for n, c in data.items()}
        if data.ndim == 1:
            frame = nw.from_native(self._write(data.to_frame("column")), eager_only=True)
            column = frame[frame.columns[0]].alias(data.name or "")
            return column.to_native()
        return self._write(data)

    def give_array(self, array):
        """Return synthetic numbers, an array, in this container."""
        if self.library == "numpy":
            return array
        if self.library.startswith("torch"):
            dtype = getattr(torch, self.library.partition(".")[2], None)
            # Arrays of pandas are read-only.
            return torch.as_tensor(np.require(array, requirements="W"), dtype=dtype)
        if self.library in ("tensors", "arrays"):
            return list(torch.as_tensor(array) if self.library == "tensors" else array)
        from PIL import Image

        return [Image.fromarray(image) for image in array]

    def _write(self, frame):
        library = nw.Implementation.from_string(self.library)
        if library.is_pandas_like():
            return library.to_native_namespace().DataFrame(frame)
        import pyarrow as pa

        table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
        made = nw.from_arrow(table, backend=library)
        if not library.is_pyarrow():
            # Narwhals calls an ordered categorical an Enum.
            made = made.with_columns(
                nw.col(field.name).cast(nw.Enum(table[field.name].chunk(0).dictionary.to_pylist()))
                for field in table.schema
                if getattr(field.type, "ordered", False)
            )
        return made.to_native()


NUMPY, PANDAS = Container(), Container("pandas")


class Adapted(NamedTuple):
    """Data as pandas or NumPy holds them, and what their container states of them.

    Attributes
    ----------
    data : object
        A DataFrame, Series or array; data that no library knows as such are unchanged.
    container : Container
    dtypes : list
        Dtypes of a frame's columns, or that of an array or Series, as the container states them;
        those of other libraries as Arrow's. None where it states none.
    """

    data: object
    container: Container
    dtypes: list


def adapt(data) -> Adapted:
    """Return data as pandas or NumPy holds them; each cell is read on its own.

    Raises
    ------
    TypeError
        For sparse tensors.
    ValueError
        For structured arrays.
    TableError
        If a library cannot hand its cells over. No message quotes a cell.

    Examples
    --------
    >>> adapted = adapt([{"age": 31}, {"age": 62, "sex": "F"}])
    >>> adapted.data["sex"].tolist(), adapted.container.library
    ([None, 'F'], 'records')
    """
    if sparse.issparse(data):
        return Adapted(data, NUMPY, [data.dtype])
    if isinstance(data, list | tuple) and _has_records(data):
        return adapt_records(data)
    is_list = isinstance(data, list | tuple) or (
        isinstance(data, np.ndarray) and data.dtype == object and data.ndim == 1
    )
    if is_list and is_image(next(iter(data), None)):
        return adapt_images(data)
    if isinstance(data, Mapping):
        return _adapt_columns(data, "columns")
    if _is_pillow(data):
        # By Arrow's interface it would be one column.
        data = np.asarray(data)
    if not isinstance(data, np.ndarray | pd.DataFrame | pd.Series):
        table = _find_table(data)
        if table is not None:
            return _adapt_table(table)
    if isinstance(data, pd.DataFrame):
        container = Container("pandas", data.columns.name)
        return Adapted(read_frame(data), container, list(data.dtypes))
    if isinstance(data, pd.Series):
        return Adapted(read_column(data), PANDAS, [data.dtype])
    if isinstance(data, ExtensionArray):
        return Adapted(read_column(pd.Series(data)).array, Container("array"), [data.dtype])
    if isinstance(data, pd.Index) and isinstance(data.dtype, ExtensionDtype):
        return Adapted(pd.Index(read_column(pd.Series(data))), NUMPY, [data.dtype])
    if hasattr(data, "__arrow_c_array__"):
        import pyarrow as pa

        # NumPy's dtype would follow from whether cells are missing.
        cells = read_arrow(pa.array(data)).array
        return Adapted(cells, NUMPY, [cells.dtype])
    array = _to_array(data)
    dtype = getattr(data if isinstance(data, np.ndarray) else array, "dtype", None)
    # It may state a text of its own for missing ones.
    dtype = np.dtypes.StringDType() if getattr(dtype, "kind", "O") == "T" else dtype
    container = NUMPY
    if isinstance(data, torch.Tensor):
        container = Container("torch" if _is_shared(data) else str(data.dtype))
    return Adapted(array, container, [dtype])


def adapt_images(images) -> Adapted:
    """Return a list of arrays, tensors or images of Pillow as one array."""
    from .lists import stack

    array, library = stack(images, _to_array)
    return Adapted(array, Container(library), [array.dtype])


def find_record_shape(X) -> tuple | None:
    """Return the shape of a record of an array of three or four dimensions; None for other data."""
    return X.shape[1:] if isinstance(X, np.ndarray) and X.ndim in (3, 4) else None


def is_image(entry) -> bool:
    """Whether an entry of a list is an array or a tensor of several dimensions, or of Pillow."""
    is_array = issubclass(type(entry), np.ndarray | torch.Tensor)
    return (is_array and entry.ndim > 1) or _is_pillow(entry)


def _is_pillow(entry):
    return type(entry).__module__.partition(".")[0] == "PIL"


def adapt_column(data):
    """Return a column as `adapt` does; no entry of a list makes it a table."""
    is_list = isinstance(data, list | tuple)
    return Adapted(data, NUMPY, [None]) if is_list else adapt(data)


def adapt_records(data) -> Adapted:
    """Return a list of records as a frame.

    A name that a record lacks is missing in it, and an entry that is no record has no values. Names
    are sorted, as their order would be that of the first record.
    """
    records = [call_quietly(_read_record, record) or {} for record in data]
    found = dict.fromkeys(name for record in records for name in record)
    # Names are texts; where none is, the check of names says so.
    names = sorted(name for name in found if isinstance(name, str)) or list(found)
    # pandas would choose a dtype by all cells of a column.
    cells = {name: as_objects(record.get(name) for record in records) for name in names}
    columns = {name: pd.Series(column, dtype=object) for name, column in cells.items()}
    frame = pd.DataFrame(columns, index=pd.RangeIndex(len(records)))
    return Adapted(frame, Container("records"), [np.dtype(object)] * len(names))


def take_names(table: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return columns of records by public names; those that no record has are missing in all."""
    lacking = [name for name in names if name not in table.columns]
    return table.assign(**dict.fromkeys(lacking))[list(names)]


def as_array(data):
    """Return a tensor as an array, and a table or column of any library as pandas holds it.

    Other data are returned unchanged. Errors are those of `adapt`.

    Raises
    ------
    TypeError
        For a DataFrame with sparse columns only, too.
    """
    if isinstance(data, pd.DataFrame) and len(data.columns):
        # scikit-learn would make a sparse matrix, and fails for some dtypes.
        if all(isinstance(dtype, pd.SparseDtype) for dtype in data.dtypes):
            raise TypeError("Sparse columns are no array: X must be dense, as X.sparse.to_dense().")
    return adapt(data).data


# Arrays.


def _to_array(data):
    if isinstance(data, torch.Tensor):
        return _to_dense(data)
    if isinstance(data, np.ma.MaskedArray):
        # Cells that are masked are missing; whole numbers of one dimension may be labels.
        is_number = data.dtype.kind in ("f" if data.ndim == 1 else "iuf")
        # NumPy warns of numbers that are too large for the dtype.
        with muted(RuntimeWarning):
            cells = data.data.astype(np.float64 if is_number else object)
        # For None, `filled` would take "?".
        cells[np.ma.getmaskarray(data)] = np.nan if is_number else None
        return cells
    has_cells = hasattr(data, "__array__") or hasattr(data, "__array_interface__")
    if has_cells and not isinstance(data, np.ndarray | pd.Index):
        read = call_quietly(np.asarray, data)
        data = data if read is None else read
    if getattr(getattr(data, "dtype", None), "names", None):
        raise ValueError("Structured arrays have columns of their own: give pd.DataFrame(X).")
    # Few functions of NumPy take its own texts of any length.
    is_text = isinstance(data, np.ndarray) and data.dtype.kind == "T"
    return data.astype(object) if is_text else data


def _to_dense(tensor):
    if tensor.layout != torch.strided:
        raise TypeError("Sparse tensors are no arrays: X and y must be dense, as of to_dense().")
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    return (tensor if _is_shared(tensor) else tensor.float()).numpy()


def _is_shared(tensor):
    return tensor.dtype in _FLOATS or not tensor.is_floating_point()


# Tables.


def _read_record(record):
    """Return a mapping, a named tuple or an instance of a dataclass as a dict; None for others."""
    if isinstance(record, Mapping):
        return dict(record)
    if isinstance(record, tuple) and hasattr(record, "_asdict"):
        return dict(record._asdict())
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
    return None


def _has_records(data):
    """Whether the first entry of a list that may be a row is a record."""
    # All attributes of an entry may be users' code: one that fails is neither.
    are_records = (call_quietly(_is_record, entry) for entry in data)
    return next((is_record for is_record in are_records if is_record is not None), False)


def _is_record(entry):
    """Whether an entry is a record rather than a row; None if it is neither."""
    is_named = isinstance(entry, Mapping) or hasattr(entry, "_asdict")
    if is_named or (dataclasses.is_dataclass(entry) and not isinstance(entry, type)):
        return True
    return False if isinstance(entry, list | tuple | np.ndarray | pd.Series) else None


def _adapt_columns(columns, library):
    """Return a dict of columns; those of lists have no dtype."""
    read = {
        name: Adapted(as_objects(column), NUMPY, [np.dtype(object)])
        if isinstance(column, list | tuple)
        else adapt(column)
        for name, column in columns.items()
    }
    if any(getattr(column.data, "ndim", 0) != 1 for column in read.values()):
        # Names that are quoted here could be those of persons.
        raise ValueError(
            "X is a dict, which must hold a list or an array of cells for each column. Give "
            "pd.DataFrame(X), or a list of dicts for rows."
        )
    if len({len(column.data) for column in read.values()}) > 1:
        raise ValueError("The columns of X have different lengths.")
    data = pd.DataFrame({name: _make_series(column.data) for name, column in read.items()})
    return Adapted(data, Container(library), [column.dtypes[0] for column in read.values()])


def _make_series(cells):
    """Return cells as a Series, without the index of one, by which cells would be reordered."""
    cells = getattr(cells, "array", cells)
    # pandas would choose a dtype by the cells, if all of them are texts or dates.
    return pd.Series(cells, dtype=object if cells.dtype == object else None)


def _find_table(data):
    """Return a table or column of another library as Narwhals knows it; None for other data."""
    table = nw.from_native(data, pass_through=True, allow_series=True)
    if isinstance(table, nw.LazyFrame):
        table = _collect(table)
    elif not isinstance(table, nw.DataFrame | nw.Series) and hasattr(data, "__arrow_c_stream__"):
        table = nw.from_arrow(data, backend="pyarrow")
    return table if isinstance(table, nw.DataFrame | nw.Series) else None


def _adapt_table(table):
    container = Container(table.implementation.value)
    if table.implementation.is_pandas_like():
        frame = table.to_pandas()
        return adapt(frame)._replace(container=container)
    try:
        import pyarrow as pa
    except ImportError:
        raise ImportError(
            f"Data of {container.library} are read by Arrow: pip install pyarrow."
        ) from None
    cells = call_quietly(table.to_arrow)
    if cells is None:
        # Without rows, whether a column can be read follows from its dtype, which is public.
        lacking = [n for n in table.columns if call_quietly(table[[n]].head(0).to_arrow) is None]
        raise TableError(
            f"The cells of this {type(table.to_native()).__name__} could not be read as Arrow's"
            f"{f', by the dtypes of columns {lacking}' if lacking else ''}. "
            "Convert or drop columns of Python objects, and of types that Arrow lacks."
        )
    is_column = isinstance(table, nw.Series)
    if is_column:
        cells = pa.table({table.name: cells})
    dtypes = [pd.ArrowDtype(field.type) for field in cells.schema]
    frame = call_quietly(read_arrow_table, cells)
    if frame is None:
        raise TableError("The cells of a column are not of the type that Arrow states.")
    data = frame.iloc[:, 0] if is_column else frame
    return Adapted(data, container, dtypes)


def find_batches(data) -> Callable | None:
    """Return what reads batches of a query of Polars or DuckDB, or of a data set of Arrow."""
    # DuckDB renamed the second one.
    names = "collect_batches", "to_arrow_reader", "fetch_record_batch", "to_batches"
    is_query = type(data).__name__ in ("LazyFrame", "DuckDBPyRelation", "FileSystemDataset")
    return next((getattr(data, name) for name in names if is_query and hasattr(data, name)), None)


def _collect(query):
    library = query.implementation
    # Those that hold no rows themselves give a table of Arrow.
    made = call_quietly(query.collect, None if library.is_polars() else "pyarrow")
    if made is None:
        raise TableError(
            f"The query of {library.value} failed. Its message is withheld, as it may quote rows: "
            "collect it yourself to read it."
        )
    return made
