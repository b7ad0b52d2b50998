# SPDX-License-Identifier: BSD-3-Clause
"""Exact matrix products, reproducible in any order of summation."""

import math

import torch

# Bits of a row's numbers, and of the sum of a matrix column: together at most 52, so that sums of
# products are integers below 2^53, which float64 represents exactly.
_ROW_BITS, _COLUMN_BITS = 24, 28


class ExactMatrix:
    """A matrix whose products with rows are computed without rounding, in any order.

    A floating-point product depends on how a library splits its sums: on the number of rows, on
    a row's position, on threads and on the machine. Here rows and matrix are first rounded to
    integers so small that all sums are exact, so a product is a function of its row and of the
    matrix alone.

    Parameters
    ----------
    matrix : tensor of shape (n_features, k)
    """

    def __init__(self, matrix: torch.Tensor) -> None:
        matrix = matrix.double()
        # The largest column sum bounds every product, and so the bits that a sum needs.
        largest = matrix.abs().sum(0).max().item()
        # A power of 2; rounding adds less than n_features to the 2^28 of a column.
        self._step = 2.0 ** (math.ceil(math.log2(max(largest, 1e-200))) - _COLUMN_BITS)
        self._whole = (matrix / self._step).round()

    def to(self, device) -> "ExactMatrix":
        """Move the matrix to `device`, in place."""
        self._whole = self._whole.to(device)
        return self

    def times(self, rows: torch.Tensor) -> torch.Tensor:
        """Round each row of an array (n, n_features), and return its products, in float64."""
        rows = rows.double()
        # The step is 2^-24 times the power of 2 above the row's largest number, which is that
        # number divided by its mantissa.
        largest = rows.abs().amax(1, keepdim=True).clamp(min=1e-200)
        step = largest / torch.frexp(largest).mantissa * 2.0**-_ROW_BITS
        return ((rows / step).round() @ self._whole) * (step * self._step)
