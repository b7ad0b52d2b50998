# SPDX-License-Identifier: BSD-3-Clause
"""Wasserstein distance of synthetic rows, beside what sampling alone gives."""

from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from ..checks import check_number
from ..data.inputs import read_array
from ..transport import sliced_wasserstein_distance
from ._columns import as_table, check_tables, read_alike
from ._comparisons import to_points


class WassersteinDistance(NamedTuple):
    """Distance of synthetic rows from real ones, and of two halves of the real ones."""

    distance: float
    between_halves: float


def wasserstein_distance(
    real, synthetic, *, p: float = 2, n_projections: int | None = None, random_state=None
) -> WassersteinDistance:
    """Return the Wasserstein distance of order `p` between real and synthetic rows.

    Parameters
    ----------
    real, synthetic : array-like of shape (n, ...) and (m, ...), or DataFrames
        Rows of arrays, or images, are compared as they are. Columns of DataFrames are in units of
        the real ones: numbers over their standard deviation; different categories are 1 apart.
        Real rows are read outside of any privacy ledger: they must be public, or a held-out set
        whose distances are not released.
    p : float, default=2
        Order, at least 1: the p-th root of the least mean of ‖x - y‖₂^p.
    n_projections : int, default=None
        None: exact, by the network simplex of POT [1]_, in seconds and 700 MB for 4,000 rows each.
        Else the sliced distance over so many random directions, for any number of rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the halves and the directions.

    Returns
    -------
    distance : float
        It is not zero for a perfect generator.
    between_halves : float
        Distance of two random halves of `real`, which differ by sampling alone. As they have half
        of the rows, other rows of the same distribution are a little nearer.

    References
    ----------
    .. [1] Flamary et al., "POT: Python Optimal Transport", JMLR, 2021.

    Examples
    --------
    >>> from skdpgen.evaluation import wasserstein_distance
    >>> X = [[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]]
    >>> wasserstein_distance(X, [[3.0, 4.0], [4.0, 6.0], [5.0, 5.0]]).distance
    5.0
    """
    check_number("p", p)
    if p < 1:
        raise ValueError(f"p must be at least 1; got {p!r}.")
    real, synthetic = read_array(real), read_array(synthetic)
    if isinstance(real, pd.DataFrame) or isinstance(synthetic, pd.DataFrame):
        real, synthetic = as_table(real), as_table(synthetic)
        check_tables(synthetic, real)
        X, Y = to_points(real, synthetic)
    else:
        X, Y, _ = read_alike(real, synthetic, ("real", "synthetic"))
    if len(X) < 2:
        raise ValueError("real must have at least 2 rows; got 1.")
    rng = np.random.RandomState() if random_state is None else check_random_state(random_state)
    order, seed = rng.permutation(len(X)), int(rng.randint(2**31 - 1))
    options = {"n_projections": n_projections, "p": p, "random_state": seed}
    measure = partial(_exact, p=p)
    if n_projections is not None:
        measure = partial(sliced_wasserstein_distance, **options)
    return WassersteinDistance(measure(X, Y), measure(*np.array_split(X[order], 2)))


def _exact(X: np.ndarray, Y: np.ndarray, p: float) -> float:
    """Return the exact distance of two samples."""
    # Imported here, since it takes a second.
    from ot import emd2

    cost = cdist(X, Y)
    largest = float(cost.max()) or 1.0
    if not np.isfinite(largest):
        raise ValueError("Distances of real and synthetic rows leave the range of a float.")
    # Powers of ratios stay in the range of a float.
    cost = np.power(cost / largest, p, out=cost)
    # POT's own limit of iterations is too low for 4,000 rows.
    return largest * float(emd2([], [], cost, numItermax=10**9)) ** (1 / p)
