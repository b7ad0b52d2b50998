# SPDX-License-Identifier: BSD-3-Clause
"""Taking records from users: what is public is checked, and cells are not looked at.

Shapes, dtypes and names are public. Whether a cell is as it should be is private: it is found out
behind the curator's door, after the plan was reserved, and record by record. No message quotes a
value.
"""

import contextlib
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Complex, Real

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionDtype
from pandas.api.types import is_string_dtype
from scipy import sparse
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    column_or_1d,
    validate_data,
)

from .._muting import muted, raised
from ..accounting.sharing import Sharing
from ..engines.partitioned import PartitionedTable
from ..exceptions import FitQualityWarning, PrivacyLeakWarning, TableError
from .cells import CellReader, find_alike, find_levels
from .chunks import TableChunks
from .persons import NO_IDENTIFIER, UNKNOWN_COLUMN, Persons, check_beside
from .record_functions import call_quietly
from .tensors import as_array
from .texts import is_writable

# Integers with more values than this are rather numbers, which inferred classes would publish.
_MAX_INFERRED = 100
# What pandas calls labels that can all be looked up.
_PLAIN = {"string", "bytes", "integer", "floating", "mixed-integer-float", "boolean", "empty"}
# What to do with cells that are no numbers.
_TABLES = (
    "Give a generator of tables a DataFrame with schema='private', by which column types, bounds "
    "and categories are inferred and paid for, or with schema=Schema(...); else make cells numbers "
    "first, by public rules (pandas.to_numeric, or an encoder fitted on public categories)."
)


# What `pandas.read_csv` makes of a cell by default has one canonical form; nothing more is known.
_READ_ALIKE = (
    "the function of chunks gives of each record what follows from that record alone, but for what "
    "pandas.read_csv chooses by default: its options for numbers, booleans and dates may read a "
    "cell by those beside it, and so may identifiers from 2^53 on that are no texts"
)


@dataclass(frozen=True, eq=False)
class Records:
    """Private records on their way from a user to a curator, and what is public of them.

    Attributes
    ----------
    n_records : int
        How many there are or, if rows are of persons, how many of these: what is public.
    n_columns : int or None
        Columns of the rows; None for chunks.
    classes : ndarray or None
        The labels that there may be; None where there are none.
    is_inferred : bool
        Whether the classes were found in the labels.
    has_number : bool
        Whether there are numbers beside the rows.
    has_objects : bool
        Whether no dtype says that cells are numbers, as they are to be.
    reader : CellReader or None
        Brings the cells of a table into canonical form; None for arrays of numbers.
    max_rows : int or None
        How many rows of a person count; None for records.
    sharing : Sharing or None
        How several owners share the noise, if they hold the rows.
    has_reader_dtypes : bool
        Whether a function gave chunks, of which a reader chose the dtypes.
    """

    n_records: int
    n_columns: int | None
    classes: np.ndarray | None
    is_inferred: bool
    has_number: bool
    has_objects: bool
    reader: CellReader | None
    max_rows: int | None
    sharing: Sharing | None
    has_reader_dtypes: bool
    _held: list = field(repr=False)

    @classmethod
    def of(
        cls,
        X,
        y=None,
        classes=None,
        is_inferred=False,
        *,
        n_rows=None,
        reader=None,
        persons=None,
        max_rows=None,
        has_reader_dtypes=False,
    ):
        """Hold rows, or a function that gives chunks of them; labels or numbers; and persons."""
        if not isinstance(persons, Persons):
            n_rows = len(X) if n_rows is None else n_rows
            if persons is not None:
                persons = Persons(persons)
                persons.check_length(n_rows)
        return cls(
            n_records=n_rows if persons is None else persons.n_persons,
            n_columns=None if callable(X) else X.shape[1],
            classes=classes,
            is_inferred=is_inferred,
            has_number=y is not None and classes is None,
            has_objects=reader is None and X.dtype == object,
            reader=reader,
            max_rows=max_rows,
            sharing=X.sharing if isinstance(X, PartitionedTable) else None,
            has_reader_dtypes=has_reader_dtypes,
            _held=[(X, y, persons)],
        )

    def __getstate__(self):
        raise TypeError("Private records cannot be pickled or copied.")

    @property
    def n_classes(self) -> int:
        """Number of classes; 1 where there are none."""
        return 1 if self.classes is None else len(self.classes)

    def release_ownership(self):
        """Return rows, labels and persons, once; from then on they are not held here."""
        return self._held.pop()

    def cover(self, plan):
        """Return a plan of releases of these records: less local, or with noise in shares."""
        if self.sharing is not None:
            plan = self.sharing.cover(plan)
        # Somebody saw all labels before any owner could noise one.
        return replace(plan, local=plan.local and not self.is_inferred)

    def list_assumptions(self, strict):
        """List what a certificate rests on because of what the records are."""
        inferred = ("the set of classes, inferred from y, is public",) * self.is_inferred
        shared = () if self.sharing is None else self.sharing.assumptions
        alike = (_READ_ALIKE,) * self.has_reader_dtypes
        return (*shared, *inferred, *alike, *list_refusals(strict, self.has_objects))


def list_refusals(strict, has_objects=False):
    """List what a certificate rests on where a fit may refuse rows for what is in them."""
    if not (strict or has_objects):
        return ()
    valid = "every record is valid: with strict=True others"
    if not strict:
        valid = "all cells of X, which is of dtype object, are numbers: others"
    return (f"{valid} are refused, and whether a fit was refused is outside of ε",)


def pop_persons(X, persons):
    """Return a table without the column that `persons` is the name of, and that column.

    Anything else is handed back as it is.
    """
    if isinstance(X, PartitionedTable | TableChunks):
        if persons is None:
            return X, None
        if not isinstance(persons, str):
            raise ValueError(
                "Rows of chunks, and of a Dask or Spark table, have no positions: persons must be "
                "the name of the column that says whose each row is."
            )
        return X.of_persons(persons), None
    if not isinstance(persons, str):
        return X, persons
    if persons not in getattr(X, "columns", ()):
        raise ValueError(UNKNOWN_COLUMN)
    return X.drop(columns=persons), X[persons]


def take_records(estimator, X, y=None, classes=None, *, are_numbers=False, **whose):
    """Check what is public of rows, and of labels beside them, and return `Records`.

    Whose they are is said as in `Records.of`.
    """
    check_beside(X, whose.get("persons"))
    X = take_rows(estimator, X)
    labels = take_labels(y, len(X), classes, are_numbers=are_numbers)
    return Records.of(X, *labels, **whose)


def take_rows(estimator, X, *, reset=True):
    """Check what is public of X, as scikit-learn does.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        float32 or float64; float64 for other numbers. No copy where none is needed. Of object
        where a dtype does not say that cells are numbers: see `parse_rows`.
    """
    dtypes, X = [np.float64, np.float32], as_array(X)
    if isinstance(X, list | tuple):
        X = _as_objects(X)
    if not sparse.issparse(X) and not _refuse_by_dtype(X):
        dtypes = object
    # Of numbers that are too large for the dtype.
    with muted(RuntimeWarning):
        return validate_data(
            estimator, X, reset=reset, dtype=dtypes, ensure_min_samples=1, ensure_all_finite=False
        )


def _as_objects(rows):
    """Return a list of rows as an array of objects; what NumPy would choose depends on cells."""
    rows = [list(r) if isinstance(r, list | tuple | np.ndarray) else r for r in rows]
    widths = {len(r) if isinstance(r, list) else None for r in rows}
    if len(widths) != 1 or None in widths:
        return _column_of_objects(rows)
    cells = np.empty((len(rows), *widths), dtype=object)
    for i, row in enumerate(rows):
        cells[i] = _column_of_objects(row)
    return cells


def _column_of_objects(cells):
    """Return a list as a 1-dimensional array, whatever is in it."""
    column = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):
        column[i] = cell
    return column


def parse_rows(X):
    """Turn cells of dtype object into numbers; those that are too large for a float become NaN.

    Raises
    ------
    ValueError, TypeError
        If a cell is no number. This depends on private cells, which are not quoted.
    """
    if X.dtype.kind not in "OUS":
        return X
    parsed = call_quietly(_parse_at_once, X)
    if parsed is not None:
        return parsed
    with muted():
        return np.array([[_parse_cell(cell) for cell in row] for row in X], dtype=np.float64)


def _parse_at_once(X):
    with raised():
        return X.astype(np.float64)


def _parse_cell(cell):
    refused = TypeError
    try:
        if not isinstance(cell, Complex) or isinstance(cell, Real):
            return np.nan if cell is None or cell is pd.NA else float(cell)
    except OverflowError:
        return np.nan
    except ValueError:
        refused = ValueError
    except Exception:
        pass
    # Raised here, so that it carries no other error, which may quote the cell.
    raise refused(
        "X holds cells that are not numbers: an argument must be a string that is a number, or a "
        f"number. {_TABLES}"
    )


def read_rows(estimator, X, *, reset=True):
    """Check X, and each of its cells, as scikit-learn does, but without quoting cells.

    For what users map or compare outside of the ledger: whether it raises depends on the cells.
    """
    X = parse_rows(take_rows(estimator, X, reset=reset))
    if not np.isfinite(X).all():
        raise ValueError(
            "Input X contains NaN or infinity, or a value too large for its dtype; fill them by a "
            "public rule, such as a constant, or drop those rows. An imputer that was fitted on "
            "private rows would be a further release, which no ε covers."
        )
    return X


def first_chunk(X):
    """Return the first chunk of a table in parts, or the table itself.

    Tables of an engine give one without rows, of which names and dtypes are public.
    """
    return X.head if isinstance(X, PartitionedTable | TableChunks) else X


def read_table(estimator, X, y, label, codec, *, reset=True, **whose):
    """Take the cells of a table, with the label beside them, in the order of the schema.

    Nothing is looked at but names, sizes and dtypes: whether cells are as declared is found when
    they are encoded.

    Returns
    -------
    Records
        Their rows are cells of dtype object, (n_samples, n_columns), or chunks of such cells.
    """

    def read(table):
        codec.check_columns(table)
        return table[list(codec.schema)].to_numpy(dtype=object)

    head = first_chunk(X)
    if not reset and isinstance(head, pd.DataFrame):
        _check_feature_names(estimator, head, reset=False)
    check_beside(head, whose.get("persons"))
    is_in_parts = isinstance(X, PartitionedTable | TableChunks)
    if is_in_parts:
        if y is not None:
            raise ValueError("Chunks of a table hold all of its columns; give target, not y.")
        codec.check_columns(head)
    if isinstance(X, PartitionedTable):
        codec.check_dtypes(head, are_stated=X.states_dtypes)
        n_rows, cells = X.n_units, X.map(read)
        if not n_rows and X.person_column is not None:
            raise ValueError(NO_IDENTIFIER)
    elif is_in_parts:
        cells, n_rows = partial(_read_chunks, X, read), None
        if X.person_column is None:
            n_rows = sum(map(len, X()))
        else:
            whose["persons"] = Persons(X.persons)
    else:
        table = X
        if y is not None:
            # Lists have no dtype: what NumPy would choose depends on the labels.
            y = _column_of_objects(y) if isinstance(y, list | tuple) else y
            y = column_or_1d(y, warn=True)
            _check_length(y, len(X))
            # pandas would choose a dtype by what is in it, if all of it are dates.
            dtype = object if y.dtype == object else None
            table = X.assign(**{label: pd.Series(y, index=X.index, dtype=dtype)})
        cells, n_rows = read(table), len(X)
        codec.check_dtypes(table)
    if n_rows == 0:
        raise TableError("The table has no rows.")
    if reset:
        _check_feature_names(estimator, head, reset=True)
    _check_n_features(estimator, head, reset=reset)
    stated = _list_stated_texts(X, head if is_in_parts else table)
    return Records.of(
        cells,
        n_rows=n_rows,
        reader=codec.make_reader(stated),
        has_reader_dtypes=isinstance(X, TableChunks) and not X.states_dtypes,
        **whose,
    )


def _read_chunks(X, read):
    if X.person_column is None:
        return map(read, X())
    return ((read(table), None, persons) for table, persons in X.with_persons())


def _list_stated_texts(X, head):
    """Return the columns that hold texts whatever the cells are, and None for already parsed ones.

    A column of objects is none: readers that see rows in parts leave texts in one and numbers in
    another.
    """
    if getattr(X, "are_parsed", False):
        return None
    if not getattr(X, "states_dtypes", True):
        return ()
    return tuple(name for name, dtype in head.dtypes.items() if _is_of_texts(dtype))


def _is_of_texts(dtype):
    """Whether a dtype, or that of the categories, holds texts alone, which objects need not."""
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    return is_string_dtype(dtype) and isinstance(dtype, ExtensionDtype)


def take_labels(y, n_samples, classes=None, *, are_numbers=False):
    """Decide by its dtype whether `y` is classes or a number, and check what is public of it.

    A list has none: it is numbers with `are_numbers`, and otherwise what is in it.

    Returns
    -------
    y : ndarray of shape (n_samples,) or None
    classes : ndarray or None
        The declared classes, or those found in `y`, sorted; None for numbers.
    inferred : bool
        Whether the classes were found in `y`.
    """
    if y is None:
        if classes is not None:
            raise ValueError("classes were given, but y is None; pass the labels to fit.")
        return None, None, False
    is_categorical = isinstance(getattr(y, "dtype", None), pd.CategoricalDtype)
    if are_numbers and classes is None and isinstance(y, list | tuple):
        y = np.array([call_quietly(float, cell) for cell in y], dtype=np.float64)
    y = _as_labels(y, classes is not None)
    if y.dtype.kind not in "iubfOSU":
        raise ValueError(f"y must be labels or numbers; got dtype {y.dtype}.")
    y = column_or_1d(y, warn=True)
    _check_length(y, n_samples)
    if classes is not None:
        classes = _classes_for(check_classes(classes), y.dtype)
        if y.dtype == object and (alike := find_alike(classes.tolist())) is not None:
            raise ValueError(
                f"classes has {alike[0]!r} and {alike[1]!r}, which readers of files may turn into "
                "the same label. Give y with the dtype of its labels, or declare one of them."
            )
        return y, classes, False
    if y.dtype.kind == "f" and not is_categorical:
        if not are_numbers:
            warnings.warn(
                f"y has dtype {y.dtype} and is taken for numbers. If it holds labels, pass "
                "classes=[...]; if numbers, y_bounds=(lower, upper).",
                FitQualityWarning,
                stacklevel=5,
            )
        return y.astype(np.float64), None, False
    warnings.warn(
        "The classes were inferred from y and are treated as public: ε does not cover which "
        "labels occur. Pass classes=[...] to declare them.",
        PrivacyLeakWarning,
        stacklevel=5,
    )
    found = None
    with contextlib.suppress(Exception):
        found = np.unique(y[~pd.isna(y)])
        found = np.array(found.tolist()) if found.dtype == object else found
    if found is None:
        raise ValueError("y mixes labels of different types; use one type.")
    if len(found) == 0:
        raise ValueError("Input y contains NaN or missing values only.")
    if len(found) > _MAX_INFERRED:
        raise ValueError(
            f"y holds more than {_MAX_INFERRED} different labels. If it is a number, convert it to "
            "float; if it is classes, declare them with classes=[...]."
        )
    return y, found, True


def _check_length(y, n_rows):
    """Refuse labels of another number than rows, which is not told: it may not be public."""
    if len(y) != n_rows:
        raise ValueError(
            "y must have one entry for each row of X: inconsistent numbers of samples."
        )


def _as_labels(y, are_declared):
    """Return labels as an array.

    For lists, and for values that may be missing, NumPy would choose a dtype by what is in them.
    """
    y = as_array(y)
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, ExtensionDtype):
        is_float = dtype.kind == "f"
        return y.to_numpy(np.float64, na_value=np.nan) if is_float else np.array(y, dtype=object)
    if are_declared and isinstance(y, list | tuple):
        return _column_of_objects(y)
    labels = call_quietly(np.asarray, y)
    if labels is None:
        raise ValueError("y must be labels or numbers: it holds what is neither.")
    return _native(labels)


def check_classes(classes):
    """Check declared labels, and return them as an array."""
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise ValueError(f"classes must be a list of labels; got {classes!r}.")
    listed = list(classes)
    if not all(map(is_writable, listed)):
        raise ValueError("classes must be texts that UTF-8 can write, with no half of a pair.")
    classes = _native(np.asarray(listed))
    if pd.isna(classes).any():
        raise ValueError("classes holds missing values.")
    if classes.dtype.kind == "U" and not all(isinstance(label, str) for label in listed):
        raise ValueError("classes mixes labels of different types; use one type.")
    if classes.ndim != 1 or len(classes) == 0 or len(pd.unique(classes)) < len(classes):
        raise ValueError("classes must be a 1-dimensional list of distinct labels.")
    return classes


def _native(labels):
    """Return labels in this machine's byte order, and floats of a usual size, for pandas."""
    dtype = labels.dtype.newbyteorder("=")
    if dtype.kind == "f" and dtype.itemsize not in (4, 8):
        dtype = np.float64
    return labels.astype(dtype, copy=False)


def _classes_for(classes, dtype):
    """Return declared classes for labels of a dtype; refuse them if it can hold none of them."""
    are_texts = [kind in "US" for kind in (dtype.kind, classes.dtype.kind)]
    if "O" not in (dtype.kind, classes.dtype.kind) and are_texts[0] != are_texts[1]:
        # Names no dtype: its width is that of the longest label.
        what = {True: "texts", False: "numbers"}
        raise ValueError(
            f"y holds {what[are_texts[0]]}, and classes are {what[are_texts[1]]}: declare labels "
            "in the type that they have in y."
        )
    if dtype.kind in "iuf" and classes.dtype.kind in "iuf":
        # Labels are handed back in the dtype that they came in.
        same = classes.astype(dtype)
        classes = same if (same == classes).all() else classes
    return classes


def look_up(labels, levels):
    """Return the position of each label among the levels, or -1; each is looked at on its own."""
    kinds = {labels.dtype.kind, levels.dtype.kind if isinstance(levels, np.ndarray) else "O"}
    if not kinds & set("ObUS"):
        return pd.Index(levels).get_indexer(labels.astype(np.float64) if "f" in kinds else labels)
    return find_levels(labels.astype(object), tuple(np.asarray(levels, dtype=object).tolist()))


def _refuse_by_dtype(X):
    """Raise, in our words, where scikit-learn's or NumPy's message would quote the data.

    Returns
    -------
    bool
        Whether dtypes say that all cells are numbers.
    """
    ndim = X.ndim if hasattr(X, "ndim") else np.asanyarray(X).ndim
    if ndim != 2:
        raise ValueError(
            f"Expected 2D array, got an array with {ndim} dimensions instead. Reshape your data: "
            "X.reshape(-1, 1) for a single feature, X.reshape(1, -1) for a single sample."
        )
    dtypes = list(X.dtypes) if hasattr(X, "dtypes") and hasattr(X, "columns") else []
    if dtypes and len(set(X.columns)) < len(dtypes):
        raise ValueError("X has several columns of the same name.")
    names, dtypes = (X.columns, dtypes) if dtypes else ([None], [np.asanyarray(X).dtype])
    kinds = [getattr(dtype, "kind", "O") for dtype in dtypes]
    if "c" in kinds:
        raise ValueError("Complex data not supported; X must be real.")
    wrong = [
        name
        for name, dtype in zip(names, dtypes, strict=True)
        if _says_no_number(dtype, name is not None)
    ]
    if wrong:
        columns = [name for name in wrong if name is not None]
        where = f" (non-numeric columns: {columns})" if columns else ""
        raise ValueError(f"X holds cells that are not numbers{where}. {_TABLES}")
    return set(kinds) <= set("iufb")


def _says_no_number(dtype, is_column):
    """Whether a dtype says that its cells are no numbers.

    The columns of a table have a dtype each, and numbers one of their own; an array of objects has
    one for all of its cells.
    """
    return getattr(dtype, "kind", "O") in ("USmMO" if is_column else "USmM")
