# SPDX-License-Identifier: BSD-3-Clause
"""Moments of numbers in the residuals of two-way tables that noise cannot explain."""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from ..mechanisms.tables import own_and_later, tables_with_later

# Largest degree of the moments of numbers that are searched; set by hand.
_DEGREE = 2


def find_clear_moments(
    cells: np.ndarray,
    sizes: Sequence[int],
    is_knot: np.ndarray,
    std: float,
    chance: float,
) -> np.ndarray:
    """Return what the two-way tables of numbers show in low moments, beyond their noise.

    The noise of all cells together hides a correlation, which is a sum over the cells of a table
    and has far less noise.

    Parameters
    ----------
    cells : ndarray of shape (n_strata, n_cells)
        Released minus generated records, as in `skdpgen.mechanisms.tables.Tables`.
    sizes : sequence of int
        Numbers of levels of the columns.
    is_knot : ndarray of bool of shape (n_levels,)
        Levels whose order is that of numbers.
    std : float
        Standard deviation of the Gaussian noise on each cell.
    chance : float
        Probability that noise alone is taken for a moment of any table.

    Returns
    -------
    ndarray of shape (n_strata, n_cells)
    """
    found, owns = np.zeros_like(cells), [own for own, _ in own_and_later(sizes)]
    bases = [make_polynomials(is_knot[own]) for own in owns]
    numbers = [c for c, basis in enumerate(bases) if basis.size]
    chance /= max(1, len(cells) * math.comb(len(sizes), 2))
    residuals, clear = (tables_with_later(part, sizes) for part in (cells, found))
    for c, d in itertools.combinations(numbers, 2):
        where = slice(owns[d].start - owns[c].stop, owns[d].stop - owns[c].stop)
        moments = keep_clear(bases[c].T @ residuals[c][..., where] @ bases[d], std, chance)
        clear[c][..., where] = bases[c] @ moments @ bases[d].T
    return found


def make_polynomials(is_knot: np.ndarray) -> np.ndarray:
    """Return orthonormal polynomials of the positions of knots, without the constant.

    Parameters
    ----------
    is_knot : ndarray of bool of shape (n_levels,)

    Returns
    -------
    ndarray of shape (n_levels, n_polynomials)
        Their degrees are 1 to `_DEGREE`, or to one less than the number of knots; 0 at other
        levels.
    """
    n_knots = int(is_knot.sum())
    powers = np.linspace(-1, 1, n_knots)[:, None] ** np.arange(min(_DEGREE + 1, n_knots))
    polynomials = np.zeros((len(is_knot), max(0, powers.shape[1] - 1)))
    polynomials[is_knot] = np.linalg.qr(powers)[0][:, 1:]
    return polynomials


def keep_clear(residual: np.ndarray, std: float, chance: float) -> np.ndarray:
    """Return what matrices show beyond their noise: their large singular values, shrunk.

    Kept are singular values that noise alone reaches with a probability of at most `chance` [1]_.
    They are shrunk for the smallest expected squared error [2]_.

    Parameters
    ----------
    residual : ndarray of shape (..., a, b)
    std : float
        Standard deviation of the Gaussian noise on each entry.
    chance : float

    Returns
    -------
    ndarray of shape (..., a, b)

    References
    ----------
    .. [1] K. R. Davidson, S. J. Szarek, "Local operator theory, random matrices and Banach spaces",
       Handbook of the Geometry of Banach Spaces, 2001, Theorem II.13.
    .. [2] M. Gavish, D. L. Donoho, "Optimal Shrinkage of Singular Values", IEEE Transactions on
       Information Theory, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpgen.learners.moments import keep_clear
    >>> residual = 5 + np.random.default_rng(0).normal(size=(8, 8))
    >>> keep_clear(residual, 1.0, 0.01).round(1)[0]
    array([5.3, 5.6, 5.3, 5.2, 4.7, 5.3, 5.4, 5.7])
    """
    left, values, right = np.linalg.svd(residual / std, full_matrices=False)
    a, b = residual.shape[-2:]
    is_clear = values > math.sqrt(a) + math.sqrt(b) + math.sqrt(-2 * math.log(chance))
    values = np.where(is_clear, values, np.inf)
    squares = (values - (a + b) / values) ** 2 - 4 * a * b / values**2
    shrunk = np.where(is_clear, np.sqrt(squares), 0)
    return std * (left * shrunk[..., None, :]) @ right
