# SPDX-License-Identifier: BSD-3-Clause
"""Tensors in place of arrays."""

import pandas as pd
import torch

# Those that NumPy has, too.
_FLOATS = (torch.float16, torch.float32, torch.float64)


def as_array(data):
    """Return a tensor as an array, and other data as they are.

    Raises
    ------
    TypeError
        For a sparse tensor, and for a DataFrame of sparse columns alone.
    """
    if isinstance(data, pd.DataFrame) and len(data.columns):
        # scikit-learn would make a sparse matrix, which not all of them can be.
        if all(isinstance(dtype, pd.SparseDtype) for dtype in data.dtypes):
            raise TypeError("Sparse columns are no array: X must be dense, as X.sparse.to_dense().")
    if not isinstance(data, torch.Tensor):
        return data
    if data.layout != torch.strided:
        raise TypeError("Sparse tensors are no arrays: X and y must be dense, as of to_dense().")
    data = data.detach().cpu().resolve_conj().resolve_neg()
    return (data if data.dtype in _FLOATS or not data.is_floating_point() else data.float()).numpy()
