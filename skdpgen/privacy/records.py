"""Validation of private rows and labels, whose error messages never quote a value."""

import contextlib
import warnings
from collections.abc import Hashable, Iterable

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from .exceptions import PrivacyLeakWarning, TableError

__all__ = ["first_chunk", "read_labels", "read_rows", "read_table"]

# Integers with more values than this are rather numbers, which inferred classes would publish.
_MAX_INFERRED = 100


def read_rows(estimator, X, *, reset=True):
    """Validate X as scikit-learn does, but without quoting cells in errors.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        float32 or float64; float64 for other numbers. No copy where none is needed.
    """
    if not sparse.issparse(X):
        _refuse_what_quotes_cells(X)
    return validate_data(
        estimator, X, reset=reset, dtype=[np.float64, np.float32], ensure_min_samples=1
    )


def first_chunk(X):
    """Return the first chunk of a table that a function gives, or the table itself."""
    if not callable(X):
        return X
    chunk = next(iter(X()), None)
    if chunk is None:
        raise TableError("The table has no rows.")
    return chunk


def read_table(estimator, X, y, label, codec, *, reset=True):
    """Take the cells of a table, with the label beside them, in the order of the schema.

    Nothing is looked at but names and sizes: whether cells are as declared is checked when they are
    encoded.

    Returns
    -------
    cells : ndarray of object of shape (n_samples, n_columns), or callable
        A function that gives chunks of such cells if `X` gives chunks.
    n_samples : int
    """
    head = first_chunk(X)
    if callable(X):
        if y is not None:
            raise ValueError("Chunks of a table hold all of its columns; give target, not y.")
        cells, n_samples = lambda: map(codec.cells, X()), sum(map(len, X()))
        codec.cells(head)
    else:
        table = X
        if y is not None:
            y = column_or_1d(y, warn=True)
            check_consistent_length(y, X)
            table = X.assign(**{label: y})
        cells, n_samples = codec.cells(table), len(X)
    _check_feature_names(estimator, head, reset=reset)
    _check_n_features(estimator, head, reset=reset)
    return cells, n_samples


def read_labels(y, n_samples, classes=None):
    """Decide by its dtype whether `y` is classes or a number, and check it.

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
    y = np.asarray(y)
    if y.dtype.kind not in "iubfOSU":
        raise ValueError(f"y must be labels or numbers; got dtype {y.dtype}.")
    y = column_or_1d(y, warn=True)
    check_consistent_length(y, np.empty(n_samples))
    if pd.isna(y).any():
        raise ValueError("Input y contains NaN or missing values; drop those rows first.")
    if y.dtype.kind == "f" and classes is None and not is_categorical:
        if not np.isfinite(y).all():
            raise ValueError("Input y contains infinity.")
        return y.astype(np.float64), None, False
    if classes is not None:
        if not isinstance(classes, Iterable):
            raise ValueError(f"classes must be a list of labels; got {classes!r}.")
        listed = list(classes)
        classes = np.asarray(listed)
        if pd.isna(classes).any():
            raise ValueError("classes holds missing values.")
        if classes.dtype.kind == "U" and not all(isinstance(label, str) for label in listed):
            raise ValueError("classes mixes labels of different types; use one type.")
        if classes.ndim != 1 or len(classes) == 0 or len(pd.unique(classes)) < len(classes):
            raise ValueError("classes must be a 1-dimensional list of distinct labels.")
        if not _are_labels(y) or (pd.Index(classes).get_indexer(y) < 0).any():
            raise ValueError(
                "y holds labels that are not in classes; declare every label that may occur, in "
                f"the type that it has in y (dtype {y.dtype}; classes have {classes.dtype})."
            )
        if y.dtype.kind in "iuf" and classes.dtype.kind in "iuf":
            # Labels are handed back in the dtype that they came in.
            same = classes.astype(y.dtype)
            classes = same if (same == classes).all() else classes
        return y, classes, False
    warnings.warn(
        "The classes were inferred from y and are treated as public: ε does not cover which "
        "labels occur. Pass classes=[...] to declare them.",
        PrivacyLeakWarning,
        stacklevel=4,
    )
    found = None
    with contextlib.suppress(TypeError):
        found = np.unique(y)
    if found is None:
        raise ValueError("y mixes labels of different types; use one type.")
    if len(found) > _MAX_INFERRED:
        raise ValueError(
            f"y holds more than {_MAX_INFERRED} different labels. If it is a number, convert it to "
            "float; if it is classes, declare them with classes=[...]."
        )
    return y, found, True


def _are_labels(y):
    """Whether every entry can be looked up."""
    return y.dtype.kind != "O" or all(isinstance(label, Hashable) for label in y)


def _refuse_what_quotes_cells(X):
    """Raise, in our words, where scikit-learn's or NumPy's message would quote the data."""
    ndim = X.ndim if hasattr(X, "ndim") else np.asanyarray(X).ndim
    if ndim != 2:
        raise ValueError(
            f"Expected 2D array, got an array with {ndim} dimensions instead. Reshape your data: "
            "X.reshape(-1, 1) for a single feature, X.reshape(1, -1) for a single sample."
        )
    dtypes = list(X.dtypes) if hasattr(X, "dtypes") and hasattr(X, "columns") else []
    if dtypes and len(set(X.columns)) < len(dtypes):
        raise ValueError("X has several columns of the same name.")
    array = None if dtypes else np.asanyarray(X)
    kinds = {getattr(dtype, "kind", "O") for dtype in dtypes or [array.dtype]}
    if "c" in kinds:
        raise ValueError("Complex data not supported; X must be real.")
    if kinds <= set("iufb"):
        return
    cells_are_numbers = not kinds & set("mM")
    try:
        (X if dtypes else array).astype(np.float64)
    except ValueError:
        cells_are_numbers = False
    except TypeError:
        # Names the type of a cell, not its value; validate_data says it as users know it.
        pass
    if not cells_are_numbers:
        names = X.columns if dtypes else ()
        columns = [c for c, d in zip(names, dtypes, strict=True) if d.kind not in "iufb"]
        where = f" (non-numeric columns: {columns})" if columns else ""
        raise ValueError(
            f"X holds cells that are not numbers{where}; encode them first, for instance with "
            "OrdinalEncoder or OneHotEncoder fitted on public categories."
        )
