# SPDX-License-Identifier: BSD-3-Clause
"""Two-way tables of a stream of records: sums over all periods so far, at each period's end.

The factorisation mechanism [1]_, [2]_. Let x_j be the tables of period j of T, and A the lower
triangular matrix of ones: (Ax)_t are the tables of all periods up to t. With A = LR, the releases
are y_t = (Rx)_t + z_t with iid Gaussian noise z_t, and A R⁻¹ y estimates Ax without bias; this is
post-processing. R is lower triangular, and has the least mean variance of the estimates; rounded to
multiples of 2^-10, so that (Rx)_t has an exact integer value.

*Optimality.* For a given X = RᵀR with a unit diagonal, the mean variance is tr(AX⁻¹Aᵀ)/T. Its least
value has X = V^-½ M^½ V^-½ with M = V^½ AᵀA V^½ and V the diagonal matrix whose entries are those
of the diagonal of M^½, a fixed point that iteration finds [2]_.

*Sensitivity.* A record of period j adds a vector v of norm at most Δ to x_j and so R_tj·v to
(Rx)_t. The change of all releases together has the norm ‖v‖·(Σ_t R_tj²)^½ ≤ Δ·c, with c the largest
norm of a column of R, after rounding. If a record is replaced by another, of any period, all
entries of both are non-negative, and the bound is √2·c, as for a single release. The bounds also
hold if the cells of a record, other than its period, differ from update to update. So all T
releases together are one Gaussian mechanism, of the multiplier σ/(Δ·c), and records of later
periods may even depend on earlier releases [2]_. None of this depends on how R was found.

References
----------
.. [1] Li, Miklau, Hay, McGregor & Rastogi, "The matrix mechanism", VLDB Journal 2015.
.. [2] Denisov, McMahan, Rush, Smith & Thakurta, "Improved differential privacy for SGD via optimal
   private linear operators on adaptive streams", NeurIPS 2022.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import solve_triangular

from .two_way import Tables, TablesMechanism

# Weights of periods are whole multiples of 2^-10: more bits would coarsen the grid of the records.
WEIGHT_BITS = 10
# The factor of so many periods takes ten seconds.
MAX_HORIZON = 1000
# Relative change of the fixed point at which its iteration ends, and most iterations; by hand: the
# mean variance at 12 periods is within 2e-4 of the least one.
_TOLERANCE, _N_ITERATIONS = 1e-3, 100


def factorize(horizon: int) -> np.ndarray:
    """Return R in units of 2^-10, an array of int64 of shape (horizon, horizon).

    Processors may round it differently: all releases of a stream must have the same.
    """
    ones = np.tril(np.ones((horizon, horizon)))
    squares = ones.T @ ones
    diagonal = np.sqrt(np.diag(squares))
    for _ in range(_N_ITERATIONS):
        scale, last = np.sqrt(diagonal), diagonal
        values, vectors = np.linalg.eigh(scale[:, None] * squares * scale)
        root = (vectors * np.sqrt(values.clip(0))) @ vectors.T
        diagonal = np.diag(root)
        if np.abs(diagonal / last - 1).max() < _TOLERANCE:
            break
    # Of RᵀR, the Cholesky factor of the reversed matrix is the reversed Rᵀ.
    lower = np.linalg.cholesky((root / scale[:, None] / scale)[::-1, ::-1])[::-1, ::-1].T
    return np.round(lower.clip(0) * 2**WEIGHT_BITS).astype(np.int64)


def weigh_releases(factor: np.ndarray, t: int) -> np.ndarray:
    """Return the weights of y_1, ..., y_t whose sum estimates the tables of t periods.

    They are row t of A R⁻¹: the solution w of wᵀR = 1ᵀ, with R that of the first t periods.
    """
    return solve_triangular(factor[:t, :t].T / 2**WEIGHT_BITS, np.ones(t))


def estimate_tables(released: Sequence[Tables], factor: np.ndarray) -> Tables:
    """Return the estimated tables of all periods, with the standard deviation of their noise.

    `released` are all releases so far, in order, and `factor` is from `factorize`.
    """
    weights = weigh_releases(factor, len(released))
    std = float(np.linalg.norm(weights))
    return replace(
        released[0],
        cells=sum(w * tables.cells for w, tables in zip(weights, released, strict=True)),
        columns=sum(w * tables.columns for w, tables in zip(weights, released, strict=True)),
        # All releases have independent noise of the same scale.
        pairs_std=released[0].pairs_std * std,
        columns_std=released[0].columns_std * std,
    )


class StreamedTablesMechanism(TablesMechanism):
    """Tables of all periods so far, weighted for one release y_t of a stream.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of levels of the columns, including the period.
    by : int
        Position of the column that holds the period, whose levels are all T periods.
    t : int
        Number of periods so far. Records of later ones add nothing.
    factor : ndarray of int of shape (n_periods, n_periods)
        From `factorize`, the same for all releases of a stream.
    """

    def __init__(self, sizes: Sequence[int], by: int, t: int, factor: np.ndarray) -> None:
        super().__init__(sizes, by)
        self._weights = factor[t - 1]
        # Rounded up: the norm is that of whole numbers, whose squares are exact.
        largest = int((factor**2).sum(axis=0).max())
        self._norm = math.sqrt(largest) / 2**WEIGHT_BITS * (1 + 2.0**-50)

    def sensitivity(self, relation: str) -> float:
        """Return the sensitivity of all releases of the stream together."""
        return super().sensitivity(relation) * self._norm

    def _find_scale(self, std, n_records):
        # The sum of products, times a weight, stays below 2^62.
        return super()._find_scale(std, n_records << WEIGHT_BITS) * 2**WEIGHT_BITS

    def _add_up(self, scale, source):
        return np.tensordot(self._weights, super()._add_up(scale / 2**WEIGHT_BITS, source), 1)

    def postprocess(self, noisy, measured):
        return replace(super().postprocess(noisy, measured), by=None)
