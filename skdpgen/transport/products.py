# SPDX-License-Identifier: BSD-3-Clause
"""Products of rows with a matrix that are the same in any order of summation."""

import math

import torch

# Numbers of a row have so many bits, and a column of the matrix adds up to one of so many: sums of
# products are whole numbers below 2^53, in any order, of any part of the columns.
_ROW_BITS, _COLUMN_BITS = 24, 28


class ExactMatrix:
    """A matrix whose products with rows are computed without rounding, in any order.

    A floating-point product depends on how a library splits its sums, and that on how many rows
    there are, where a row stands among them, threads and machine. Here rows and matrix are rounded
    first, to whole numbers so small that all sums are exact. So a product is a function of its row
    and of the matrix alone.

    Parameters
    ----------
    matrix : tensor of shape (n_features, k)
    """

    def __init__(self, matrix):
        matrix = matrix.double()
        largest = matrix.abs().sum(0).max().item()
        # A power of 2; rounding adds less than n_features to the 2^28 of a column.
        self._step = 2.0 ** (math.ceil(math.log2(max(largest, 1e-200))) - _COLUMN_BITS)
        self._whole = (matrix / self._step).round()

    def to(self, device):
        """Move the matrix to `device`, in place."""
        self._whole = self._whole.to(device)
        return self

    def columns(self, chosen):
        """Return the matrix of some of the columns, an array of their positions."""
        part = object.__new__(ExactMatrix)
        part._step, part._whole = self._step, self._whole[:, chosen]
        return part

    def times(self, rows):
        """Return rows (n, n_features), of which each is rounded, times the matrix, in float64."""
        rows = rows.double()
        # In steps of 2^-24 of the power of 2 above the row's largest number: a number divided by
        # its mantissa is a power of 2.
        largest = rows.abs().amax(1, keepdim=True).clamp(min=1e-200)
        step = largest / torch.frexp(largest).mantissa * 2.0**-_ROW_BITS
        return ((rows / step).round() @ self._whole) * (step * self._step)
