# SPDX-License-Identifier: BSD-3-Clause
"""Moments of numbers in the residuals of two-way tables that noise cannot explain."""

import itertools
from collections.abc import Sequence

import numpy as np
from scipy import stats

from ..mechanisms.two_way import own_and_later, tables_with_later

# Largest degree of the moments of numbers that are searched; set by hand.
_DEGREE = 2


def find_clear_moments(
    cells: np.ndarray,
    sizes: Sequence[int],
    is_knot: np.ndarray,
    std: float,
    rate: float,
) -> np.ndarray:
    """Return what the two-way tables of numbers show in low moments, beyond their noise.

    The noise of all cells together hides a correlation, which is a sum over the cells of a table
    and has far less noise. Significant moments are found by the procedure of Benjamini and
    Hochberg [1]_, of which noise alone is expected to be a share `rate`.

    Cells are released minus generated records, of shape (n_strata, n_cells), as is the result;
    `std` is that of the noise on each. `is_knot` marks the levels whose order is that of numbers.

    References
    ----------
    .. [1] Y. Benjamini, Y. Hochberg, "Controlling the False Discovery Rate", Journal of the Royal
       Statistical Society B, 1995.
    """
    found, owns = np.zeros_like(cells), [own for own, _ in own_and_later(sizes)]
    bases = [make_polynomials(is_knot[own]) for own in owns]
    numbers = [c for c, basis in enumerate(bases) if basis.size]
    residuals, clear = (tables_with_later(part, sizes) for part in (cells, found))
    pairs = {
        (c, d): slice(owns[d].start - owns[c].stop, owns[d].stop - owns[c].stop)
        for c, d in itertools.combinations(numbers, 2)
    }
    if not pairs:
        return found
    moments = [bases[c].T @ residuals[c][..., at] @ bases[d] for (c, d), at in pairs.items()]
    magnitudes = np.concatenate([np.abs(moment).ravel() for moment in moments])
    chances = stats.false_discovery_control(2 * stats.norm.sf(magnitudes / std))
    kept = np.split(chances <= rate, np.cumsum([moment.size for moment in moments])[:-1])
    for ((c, d), at), moment, is_kept in zip(pairs.items(), moments, kept, strict=True):
        moment = np.where(is_kept.reshape(moment.shape), moment, 0)
        clear[c][..., at] = bases[c] @ moment @ bases[d].T
    return found


def make_polynomials(is_knot: np.ndarray) -> np.ndarray:
    """Return orthonormal polynomials of the positions of knots, without the constant.

    Their degrees are 1 to `_DEGREE`, or to one less than the number of knots; each is a column of
    the matrix (n_levels, n_polynomials), 0 at other levels.
    """
    n_knots = int(is_knot.sum())
    powers = np.linspace(-1, 1, n_knots)[:, None] ** np.arange(min(_DEGREE + 1, n_knots))
    polynomials = np.zeros((len(is_knot), max(0, powers.shape[1] - 1)))
    polynomials[is_knot] = np.linalg.qr(powers)[0][:, 1:]
    return polynomials
