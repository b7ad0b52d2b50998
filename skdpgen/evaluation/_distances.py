# SPDX-License-Identifier: BSD-3-Clause
"""Distances between samples."""

import numpy as np
from sklearn.utils.validation import check_array


def frechet_distance(X, Y) -> float:
    """Squared 2-Wasserstein distance between Gaussians with the moments of two samples.

    ``‖μ_X - μ_Y‖² + Tr(Σ_X + Σ_Y - 2(Σ_X^½ Σ_Y Σ_X^½)^½)``: the Fréchet distance [1]_. Of
    features of a classifier of images it is known as FID; say which classifier, since values in
    different feature spaces cannot be compared.

    Parameters
    ----------
    X, Y : array-like of shape (n, d) and (m, d)
        Samples, or features of them; at least 2 rows each.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the samples are no matrices of finite numbers, or differ in width.

    References
    ----------
    .. [1] Dowson & Landau, "The Fréchet distance between multivariate normal distributions",
       Journal of Multivariate Analysis, 1982.

    Examples
    --------
    >>> from skdpgen.evaluation import frechet_distance
    >>> frechet_distance([[0.0], [2.0]], [[3.0], [5.0]])
    9.0
    """
    X, Y = (
        check_array(rows, dtype=np.float64, ensure_min_samples=2, input_name=name)
        for rows, name in ((X, "X"), (Y, "Y"))
    )
    if X.shape[1] != Y.shape[1]:
        raise ValueError(f"X and Y must be of one width; got {X.shape[1]} and {Y.shape[1]}.")
    first, second = (np.atleast_2d(np.cov(rows, rowvar=False)) for rows in (X, Y))
    values, vectors = np.linalg.eigh(first)
    root = (vectors * np.sqrt(values.clip(0))) @ vectors.T
    cross = np.sqrt(np.linalg.eigvalsh(root @ second @ root).clip(0)).sum()
    gap = ((X.mean(0) - Y.mean(0)) ** 2).sum()
    return float(gap + max(0.0, np.trace(first) + np.trace(second) - 2 * cross))
