# SPDX-License-Identifier: BSD-3-Clause
"""Two-way tables of a stream of records: sums over all periods so far, at each period's end.

The factorisation mechanism [1]_, [2]_. Let x_j be the tables of period j of T, and A the lower
triangular matrix of ones: (Ax)_t are the tables of all periods up to t. With A ≈ LR, the releases
are y_t = (Rx)_t + z_t with iid Gaussian noise z_t, and A R⁻¹ y estimates Ax without bias; this is
post-processing. R is a lower triangular Toeplitz matrix. Its first column is that of the square
root of A, C(2k, k)/4^k, rounded to multiples of 2^-10, so that (Rx)_t has an exact integer value.

*Sensitivity.* A record of period j adds a vector v of norm at most Δ to x_j and so R_tj·v to
(Rx)_t. The change of all releases together has the norm ‖v‖·(Σ_t R_tj²)^½ ≤ Δ·c, with c the norm
of the first column of R, which holds all its entries. If a record is replaced by another, of any
period, all entries of both are non-negative, and the bound is √2·c, as for a single release. The
bounds also hold if the cells of a record, other than its period, differ from update to update. So
all T releases together are one Gaussian mechanism, of the multiplier σ/(Δ·c), and records of later
periods may even depend on earlier releases [3]_.

References
----------
.. [1] Li, Miklau, Hay, McGregor & Rastogi, "The matrix mechanism", VLDB Journal 2015.
.. [2] Fichtenberger, Henzinger & Upadhyay, "Constant matters: fine-grained error bound on
   differentially private continual observation", ICML 2023.
.. [3] Denisov, McMahan, Rush, Smith & Thakurta, "Improved differential privacy for SGD via optimal
   private linear operators on adaptive streams", NeurIPS 2022.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .two_way import Tables, TablesMechanism

# Weights of periods are whole multiples of 2^-10: more bits would coarsen the grid of the records.
WEIGHT_BITS = 10
# From about so many periods on, weights would round to 0 and estimates lose their precision.
MAX_HORIZON = 1000


def list_weights(horizon: int) -> np.ndarray:
    """Return the first column of R, in units of 2^-10: an array of int64 of shape (horizon,)."""
    weights, found = 1.0, []
    for k in range(horizon):
        found.append(round(weights * 2**WEIGHT_BITS))
        weights *= (2 * k + 1) / (2 * k + 2)
    return np.array(found, dtype=np.int64)


def weigh_releases(horizon: int, t: int) -> np.ndarray:
    """Return the weights of y_1, ..., y_t whose sum estimates the tables of t periods.

    They are row t of A R⁻¹: the solution w of wᵀR = 1ᵀ, with R that of the first t periods.
    """
    weights = list_weights(horizon)[:t] / 2**WEIGHT_BITS
    found = np.zeros(t)
    for j in reversed(range(t)):
        # Column j: Σ_{i ≥ j} w_i R_ij = 1, with R_jj = 1.
        found[j] = 1 - found[j + 1 :] @ weights[1 : t - j]
    return found


def estimate_tables(released: Sequence[Tables], horizon: int) -> Tables:
    """Return the estimated tables of all periods, with the standard deviation of their noise.

    Parameters
    ----------
    released : sequence of Tables
        The releases so far, in order.
    horizon : int
        Number of all periods.
    """
    weights = weigh_releases(horizon, len(released))
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
    """

    def __init__(self, sizes: Sequence[int], by: int, t: int) -> None:
        super().__init__(sizes, by)
        weights = list_weights(sizes[by])
        self._weights = np.zeros(sizes[by], dtype=np.int64)
        self._weights[:t] = weights[:t][::-1]
        # Rounded up: the norm is that of whole numbers, whose squares are exact.
        self._norm = math.sqrt(int((weights**2).sum())) / 2**WEIGHT_BITS * (1 + 2.0**-50)

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
