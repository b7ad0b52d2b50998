# SPDX-License-Identifier: BSD-3-Clause
"""Public rows of numbers: their validation, and feature names that a fitted estimator knows."""

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import _get_feature_names, check_array

from ..data.containers import as_array, find_record_shape
from ..data.record_functions import call_quietly, clears_frames


@clears_frames()
def read_numbers(X, name="X"):
    """Check rows of numbers, or images, and return them as flat floats; errors quote none."""
    dtypes = set(X.dtypes) if hasattr(X, "columns") else {getattr(X, "dtype", None)}
    dtype = np.float32 if dtypes <= {np.dtype(np.float32), torch.float32} else np.float64
    rows = call_quietly(np.asarray, as_array(X))
    if find_record_shape(rows) is not None and rows.size:
        rows = rows.reshape(len(rows), -1)
    if rows is not None and rows.dtype.kind in "iufbO":
        rows = call_quietly(rows.astype, dtype)
    if rows is None or rows.ndim != 2 or rows.dtype != dtype:
        raise ValueError(f"{name} must be a 2D array of numbers, a row for each sample.")
    return check_array(rows, input_name=name)


def match_names(estimator: object, X):
    """Return rows with the feature names that an estimator was fitted with, or with none.

    scikit-learn warns of rows with names where there were none, and the other way round. A user can
    do nothing about rows that the package itself passes on, and an error in place of the warning
    would stop a fit that has spent its budget. Names that differ stay: the estimator refuses them.
    """
    known, given = getattr(estimator, "feature_names_in_", None), _get_feature_names(X)
    if (known is None) == (given is None):
        return X
    if known is None:
        return X.set_axis(range(X.shape[1]), axis=1)
    # The estimator says what is wrong about rows of another width.
    return pd.DataFrame(X).set_axis(known, axis=1) if X.shape[1] == len(known) else X
