# SPDX-License-Identifier: BSD-3-Clause
"""Validation of public numeric arrays."""

import numpy as np
import torch
from sklearn.utils.validation import check_array

from ..curator.containers import as_array
from ..curator.record_functions import call_quietly, clears_frames


@clears_frames()
def read_numbers(X, name="X"):
    """Check rows of numbers, such as codes, and return them as floats; errors quote none."""
    dtypes = set(X.dtypes) if hasattr(X, "columns") else {getattr(X, "dtype", None)}
    dtype = np.float32 if dtypes <= {np.dtype(np.float32), torch.float32} else np.float64
    rows = call_quietly(np.asarray, as_array(X))
    if rows is not None and rows.dtype.kind in "iufbO":
        rows = call_quietly(rows.astype, dtype)
    if rows is None or rows.ndim != 2 or rows.dtype != dtype:
        raise ValueError(f"{name} must be a 2D array of numbers, a row for each sample.")
    return check_array(rows, input_name=name)
