"""Tensors in place of arrays, and arrays of public numbers."""

import numpy as np
import torch
from sklearn.utils.validation import check_array

from .privacy.record_functions import call_quietly, forgetting

# Those that NumPy has, too.
_FLOATS = (torch.float16, torch.float32, torch.float64)


def as_array(data):
    """Return a tensor as an array, and other data as they are.

    Raises
    ------
    TypeError
        For a sparse tensor.
    """
    if not isinstance(data, torch.Tensor):
        return data
    if data.layout != torch.strided:
        raise TypeError("Sparse tensors are no arrays: X and y must be dense, as of to_dense().")
    data = data.detach().cpu().resolve_conj().resolve_neg()
    return (data if data.dtype in _FLOATS or not data.is_floating_point() else data.float()).numpy()


@forgetting()
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
