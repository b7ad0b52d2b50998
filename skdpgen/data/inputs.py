# SPDX-License-Identifier: BSD-3-Clause
"""Validation of private arrays and labels by their shapes, dtypes and names.

These are public. Whether a cell is valid is private: the curator finds that out after it has
reserved the plan, for each record on its own. No message quotes a value.
"""

import math
from collections.abc import Iterable
from numbers import Complex, Real

import numpy as np
import pandas as pd
import torch
from pandas.api.extensions import ExtensionDtype
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import column_or_1d, validate_data

from .._process.muting import muted, raised
from ..exceptions import (
    INTERRUPTS,
    FitQualityWarning,
    PrivacyLeakWarning,
    PublicTypeError,
    PublicValueError,
    warn_caller,
)
from .cells import as_objects
from .containers import adapt_column, as_array, find_record_shape
from .dtypes import check_dtype
from .labels import check_length
from .names import encode_levels, find_ambiguous
from .record_functions import call_quietly, drops_errors
from .texts import is_writable

# Inferred classes are published. Integers with more values than this are rather numbers.
_MAX_INFERRED = 100
_USE_TABLES = (
    "Give a generator that takes tables a DataFrame and schema='private', which infers column "
    "types, bounds and categories and pays for that, or schema=Schema(...) with the public facts; "
    "otherwise convert them by public rules, such as pandas.to_numeric."
)


# Rows.


def check_rows(estimator: BaseEstimator, X, *, reset: bool = True) -> np.ndarray:
    """Check the shape, dtype and names of X, as scikit-learn does, without reading a cell.

    Parameters
    ----------
    estimator : estimator
        Gets ``n_features_in_`` and ``feature_names_in_``.
        Images also get ``record_shape_in_``, and are flattened.
    X : array-like or DataFrame of shape (n_samples, n_features), or images
    reset : bool, default=True
        Whether to set these attributes rather than compare with them.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        float32 or float64; float64 for other numbers; not copied where possible. Where the dtype
        does not say that all cells are numbers, of dtype object: see `parse_rows`.
    """
    X = flatten_images(estimator, X, reset=reset)
    # A list of lists is read cell by cell, like an array of objects.
    if isinstance(X, list | tuple) or (_is_of_objects(X) and X.ndim == 1):
        X = _list_to_objects(X)
    # Only where all cells are rows is it a shape; a single cell that is a list is no number.
    if _is_of_objects(X) and X.ndim == 2 and all(map(_is_nested, X.flat)):
        raise ValueError(_describe_shape("lists of several levels"))
    are_numbers = sparse.issparse(X) or _check_dtypes(X)
    dtypes = [np.float64, np.float32] if are_numbers else object
    # NumPy warns of numbers that are too large for the dtype.
    with muted(RuntimeWarning):
        return validate_data(
            estimator, X, reset=reset, dtype=dtypes, ensure_min_samples=1, ensure_all_finite=False
        )


def read_array(X):
    """Return the records of a torch Dataset or DataLoader, and other data as `as_array` does."""
    if isinstance(X, torch.utils.data.Dataset | torch.utils.data.DataLoader):
        from .array_parts import read_dataset

        X = read_dataset(X)[0].data
    return as_array(X)


def flatten_images(estimator: BaseEstimator, X, *, reset: bool):
    """Return images as rows, and other data as `read_array` does.

    The shape of a record is kept as ``record_shape_in_``; later images must have it.
    """
    X = read_array(X)
    shape = find_record_shape(X)
    if reset:
        vars(estimator).pop("record_shape_in_", None)
    if shape is None:
        return X
    declared = getattr(estimator, "image_shape", "auto")
    if reset:
        if isinstance(declared, str) and X.ndim == 3:
            from .lists import refuse_one_image

            refuse_one_image(X.shape)
        estimator.record_shape_in_ = shape
    known = getattr(estimator, "record_shape_in_", declared)
    if shape != tuple(known or ()):
        fitted = "rows" if isinstance(known, str | None) else f"records of shape {known}"
        raise ValueError(
            f"X holds records of shape {shape}, and fit was given {fitted}."
            f"{' X[None] is a single one.' if X.shape == known else ''}"
        )
    return X.reshape(len(X), math.prod(shape))


def _list_to_objects(rows):
    """Return a list of rows as an array of objects: NumPy would choose a dtype by the cells."""
    rows = [call_quietly(_list_cells, row) if _is_nested(row) else row for row in rows]
    widths = {len(row) if type(row) is list else None for row in rows}
    if len(widths) != 1 or None in widths:
        # Left to the check of shapes, which refuses it without quoting a cell.
        return as_objects(rows)
    return np.stack([as_objects(row) for row in rows])


def _list_cells(row):
    return list(np.asarray(row) if hasattr(row, "ndim") else row)


def _is_of_objects(X):
    return isinstance(X, np.ndarray) and X.dtype == object and X.size > 0


def _is_nested(cell):
    # By the type first: all attributes may be users' code.
    is_list = issubclass(type(cell), list | tuple)
    return is_list or call_quietly(lambda: bool(cell.ndim > 0)) is True


def _describe_shape(found, ndim=3):
    if ndim > 2:
        advice = "np.reshape(X, (len(X), -1)) makes one row of each record."
    else:
        advice = "X.reshape(-1, 1) for a single feature, X.reshape(1, -1) for a single sample."
    return f"Expected 2D array, got {found} instead. Reshape your data: {advice}"


def _check_dtypes(X):
    """Refuse shapes and dtypes for which a message of scikit-learn or NumPy would quote cells."""
    ndim = X.ndim if hasattr(X, "ndim") else np.asanyarray(X).ndim
    if ndim == 0:
        raise ValueError(
            f"X must be a table or an array; got {type(X).__name__}. Give a DataFrame, or rows of "
            "numbers."
        )
    if ndim != 2:
        raise ValueError(_describe_shape(f"an array with {ndim} dimensions", ndim))
    dtypes = list(X.dtypes) if hasattr(X, "dtypes") and hasattr(X, "columns") else []
    # Names are public, so this message may say more than those on cells.
    if dtypes and len(set(X.columns)) < len(dtypes):
        raise ValueError("X has several columns of the same name.")
    is_frame = bool(dtypes)
    names, dtypes = (X.columns, dtypes) if is_frame else ([None], [np.asanyarray(X).dtype])
    kinds = [getattr(dtype, "kind", "O") for dtype in dtypes]
    if "c" in kinds:
        raise ValueError("Complex data not supported; X must be real.")
    # A column of objects is not numeric; a whole array of objects may be.
    not_numeric = "USmMO" if is_frame else "USmM"
    wrong = [name for name, kind in zip(names, kinds, strict=True) if kind in not_numeric]
    if wrong and is_frame and not any(isinstance(name, str) for name in names):
        raise ValueError(
            f"X has columns without names, so it is taken for an array, but {wrong} hold no "
            "numbers. Name the columns, as with X.columns = X.columns.map(str)."
        )
    if wrong:
        where = f" (non-numeric columns: {wrong})" if is_frame else ""
        raise ValueError(f"X holds cells that are not numbers{where}. {_USE_TABLES}")
    return set(kinds) <= set("iufb")


def parse_rows(X: np.ndarray) -> np.ndarray:
    """Parse cells of dtype object as numbers; those that are too large for a float become NaN.

    Raises
    ------
    ValueError, TypeError
        If a cell is no number. This depends on private cells, which are not quoted.
    """
    if X.dtype.kind not in "OUS":
        return X
    # Fast path: one bad cell fails it for all, so that the slow path decides cell by cell.
    parsed = call_quietly(_parse_at_once, X)
    if parsed is not None:
        return parsed
    with muted():
        return np.array([[_parse_cell(cell) for cell in row] for row in X], dtype=np.float64)


def _parse_at_once(X):
    with raised():
        return X.astype(np.float64)


def _parse_cell(cell):
    error: type[Exception] = PublicTypeError
    try:
        if not isinstance(cell, Complex) or isinstance(cell, Real):
            return np.nan if cell is None or cell is pd.NA else float(cell)
    except OverflowError:
        return np.nan
    except ValueError:
        error = PublicValueError
    except INTERRUPTS:
        raise
    except BaseException:
        pass
    # Raised here, so that it carries no other error, which may quote the cell.
    raise error(
        "X holds cells that are not numbers: an argument must be a string that is a number, or a "
        f"number. {_USE_TABLES}"
    )


def read_rows(estimator: BaseEstimator, X, *, reset: bool = True) -> np.ndarray:
    """Check X and each of its cells, as scikit-learn does, but without quoting cells.

    This is for data that users map or compare outside of the ledger: whether it raises depends on
    the cells.

    Raises
    ------
    ValueError, TypeError
        If a cell is no finite number.
    """
    X = parse_rows(check_rows(estimator, X, reset=reset))
    if not np.isfinite(X).all():
        raise ValueError(
            "Input X contains NaN or infinity, or a value too large for its dtype; fill them by a "
            "public rule, such as a constant, or drop those rows. An imputer that was fitted on "
            "private rows would be a further release, which no ε covers."
        )
    return X


# Labels.


def check_labels(
    y, n_rows: int, classes=None, *, are_numbers: bool = False
) -> tuple[np.ndarray | None, np.ndarray | None, bool]:
    """Decide by the dtype of `y` whether it holds classes or numbers, and check its public facts.

    Parameters
    ----------
    y : array-like of shape (n_rows,) or None
    n_rows : int
        Rows of X. It may be private, and is not quoted.
    classes : array-like, default=None
        The declared labels. None: `y` holds numbers, or its labels are published.
    are_numbers : bool, default=False
        Whether a list, which has no dtype, holds numbers.

    Returns
    -------
    y : ndarray of shape (n_rows,) or None
    classes : ndarray or None
        The declared classes, or those that occur in `y`, sorted; None for numbers.
    is_inferred : bool
        Whether the classes were inferred from `y`.
    """
    if y is None:
        if classes is not None:
            raise ValueError("classes were given, but y is None; pass the labels to fit.")
        return None, None, False
    # A list has no dtype: whether it holds numbers follows from its cells.
    is_untyped = isinstance(y, list | tuple)
    is_categorical = isinstance(getattr(y, "dtype", None), pd.CategoricalDtype)
    # Cell by cell: one cell that is no number becomes NaN, and the rest stay numbers.
    if are_numbers and classes is None and is_untyped:
        y = np.array([call_quietly(float, cell) for cell in y], dtype=np.float64)
    check_dtype(getattr(y, "dtype", None), "y", "y")
    y = _labels_to_array(y, classes is not None)
    if y.dtype.kind not in "iubfOSU":
        raise ValueError(f"y must be labels or numbers; got dtype {y.dtype}.")
    y = column_or_1d(y, warn=True)
    check_length(y, n_rows)
    if classes is not None:
        return y, _match_classes(check_classes(classes), y.dtype), False
    # Categories may be floats: the categorical dtype declares them as labels.
    if y.dtype.kind == "f" and not is_categorical:
        if is_untyped and not are_numbers:
            warn_caller(
                "y is a list, and is taken for numbers by its cells: that it holds no classes is "
                "treated as public. Pass y_bounds=(lower, upper), or classes=[...], or an array.",
                PrivacyLeakWarning,
            )
        elif not are_numbers:
            warn_caller(
                "y holds floats and is taken for numbers. If it holds labels, pass classes=[...]; "
                "if numbers, y_bounds=(lower, upper).",
                FitQualityWarning,
            )
        return y.astype(np.float64), None, False
    warn_caller(
        "The classes were inferred from y and are treated as public: ε does not cover which "
        "labels occur. Pass classes=[...] to declare them.",
        PrivacyLeakWarning,
    )
    return y, _infer_classes(y), True


def _labels_to_array(y, are_declared):
    """Return labels as an array.

    For lists and nullable dtypes, NumPy would choose a dtype by the cells.
    """
    y = adapt_column(y).data
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, ExtensionDtype):
        is_float = dtype.kind == "f"
        return y.to_numpy(np.float64, na_value=np.nan) if is_float else np.array(y, dtype=object)
    if are_declared and isinstance(y, list | tuple):
        return as_objects(y)
    labels = call_quietly(np.asarray, y)
    if labels is None:
        raise ValueError("y must be labels or numbers: it holds what is neither.")
    if labels.dtype.kind == "U" and isinstance(y, list | tuple):
        labels = as_objects(y)  # NumPy makes texts of numbers beside texts
    return _to_native(labels)


def _infer_classes(y):
    # The labels that occur are taken for public, and so are their types.
    if y.dtype == object and not all(map(pd.api.types.is_scalar, y)):
        raise ValueError(
            "y holds labels that are no scalars, such as lists, tuples, sets or members of an "
            "enumeration. Give one text or number for each row, as y=[str(label) for label in y]."
        )
    classes = None
    with drops_errors():
        classes = np.unique(y[~pd.isna(y)])
        # Objects are converted to the plain dtype that their labels share, as users would write
        # them.
        classes = np.array(classes.tolist()) if classes.dtype == object else classes
    if classes is None:
        raise ValueError("y mixes labels of different types; use one type.")
    if len(classes) == 0:
        raise ValueError("Input y contains NaN or missing values only.")
    if len(classes) > _MAX_INFERRED:
        raise ValueError(
            f"y holds more than {_MAX_INFERRED} different labels. If it is a number, convert it to "
            "float; if it is classes, declare them with classes=[...]."
        )
    return classes


def check_classes(classes) -> np.ndarray:
    """Check declared labels, and return them as an array.

    Raises
    ------
    ValueError
        If labels are missing, repeated, or of several types.
    """
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise ValueError(f"classes must be a list of labels; got {classes!r}.")
    listed = list(classes)
    if not all(map(is_writable, listed)):
        raise ValueError("classes must be texts that UTF-8 can write, with no half of a pair.")
    classes = _to_native(np.asarray(listed))
    if pd.isna(classes).any():
        raise ValueError("classes holds missing values.")
    if classes.dtype.kind == "U" and not all(isinstance(label, str) for label in listed):
        raise ValueError("classes mixes labels of different types; use one type.")
    if classes.ndim != 1 or len(classes) == 0 or len(pd.unique(classes)) < len(classes):
        raise ValueError("classes must be a 1-dimensional list of distinct labels.")
    return classes


def _to_native(labels):
    """Return labels in this machine's byte order, and floats of 32 or 64 bits, for pandas."""
    # pandas' hash tables take neither other byte orders nor half floats.
    dtype = labels.dtype.newbyteorder("=")
    if dtype.kind == "f" and dtype.itemsize not in (4, 8):
        dtype = np.float64
    # NumPy warns of numbers that are too large for the dtype.
    with muted(RuntimeWarning):
        return labels.astype(dtype, copy=False)


def _match_classes(classes, dtype):
    """Return declared classes for labels of a dtype; refuse them if it can hold none of them."""
    are_texts = [kind in "US" for kind in (dtype.kind, classes.dtype.kind)]
    if "O" not in (dtype.kind, classes.dtype.kind) and are_texts[0] != are_texts[1]:
        # The message names no dtype: the width of a text dtype is that of the longest label.
        types = {True: "texts", False: "numbers"}
        raise ValueError(
            f"y holds {types[are_texts[0]]}, and classes are {types[are_texts[1]]}: declare labels "
            "in the type that they have in y."
        )
    if dtype.kind == "O" and (pair := find_ambiguous(classes.tolist())) is not None:
        raise ValueError(
            f"classes has {pair[0]!r} and {pair[1]!r}, which readers of files may turn into "
            "the same label. Give y with the dtype of its labels, or declare one of them."
        )
    if dtype.kind in "iuf" and classes.dtype.kind in "iuf":
        # Samples return labels in the dtype of y.
        same = classes.astype(dtype)
        classes = same if (same == classes).all() else classes
    return classes


def encode_labels(labels: np.ndarray, levels) -> np.ndarray:
    """Return the position of each label among the levels, decided for each on its own.

    Examples
    --------
    >>> encode_labels(np.array([0.0, 1.0, np.nan]), [0, 1]).tolist()
    [0, 1, -1]
    """
    kinds = {labels.dtype.kind, levels.dtype.kind if isinstance(levels, np.ndarray) else "O"}
    # Numbers on both sides: pandas' index is exact and fast, and needs no canonical form.
    if not kinds & set("ObUS"):
        return pd.Index(levels).get_indexer(labels.astype(np.float64) if "f" in kinds else labels)
    column = pd.Series(labels.astype(object), dtype=object)
    return encode_levels(column, tuple(np.asarray(levels, dtype=object).tolist()))


def find_positions(y, classes):
    """Return the positions of labels among the classes, an array of shape (n_samples,)."""
    if classes is None:
        raise ValueError("y=... asks for classes, but fit was given none.")
    positions = call_quietly(_look_up_all, y, classes)
    if positions is None or positions.ndim != 1 or len(positions) == 0 or (positions < 0).any():
        raise ValueError(f"y must be a list of at least one label, all among {classes.tolist()}.")
    return positions


def _look_up_all(y, classes):
    labels = np.atleast_1d(np.asarray(as_array(y)))
    found = encode_labels(labels.astype(labels.dtype.newbyteorder("="), copy=False), classes)
    # Requested classes are public, so a text is no number here.
    return np.where(classes[found].astype(object) == labels.astype(object), found, -1)
