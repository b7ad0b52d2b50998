"""How domains are given: apart, stacked, or as one thing that searches do not slice."""

import numpy as np
from sklearn.utils import _safe_indexing, check_consistent_length

__all__ = ["Whole", "split_domains"]


class Whole:
    """Rows of the target that are passed on as a whole.

    Cross-validation slices everything in its ``params`` that has as many rows as X, which target
    rows have by chance only. Wrapped, they are handed to each fit as they are.

    Parameters
    ----------
    X_target : array-like or DataFrame of shape (n_target, n_features)
        Private rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from skdpgen.adaptation import DPSWDDomainClassifier, Whole
    >>> rng = np.random.default_rng(0)
    >>> X, X_target = rng.normal(size=(60, 3)), rng.normal(size=(60, 3)) + 0.5
    >>> y = (X[:, 0] > 0).astype(int)
    >>> scores = cross_val_score(
    ...     DPSWDDomainClassifier(epsilon=1.0, delta=1e-3, random_state=0),
    ...     X, y, cv=3, params={"X_target": Whole(X_target)},
    ... )
    >>> scores.shape
    (3,)
    """

    def __init__(self, X_target):
        self.X_target = X_target

    def __repr__(self):
        return "Whole(...)"


def split_domains(X, y, sample_domain):
    """Split stacked rows into those of the source and those of the target.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_samples, n_features)
        Rows of both domains.
    y : array-like of shape (n_samples,)
        Labels; entries of target rows are not looked at.
    sample_domain : array-like of int of shape (n_samples,)
        At least 0 for rows of the source, negative for rows of the target.

    Returns
    -------
    X_source, y_source, X_target
        Of the types of X and y.

    Examples
    --------
    >>> from skdpgen.adaptation import split_domains
    >>> split_domains([[1.0], [2.0], [3.0]], ["a", None, "b"], [0, -1, 0])
    ([[1.0], [3.0]], ['a', 'b'], [[2.0]])
    """
    check_consistent_length(X, y, sample_domain)
    domain = np.asarray(sample_domain)
    if domain.ndim != 1 or domain.dtype.kind not in "iu":
        raise ValueError("sample_domain holds one whole number for each row.")
    source, target = np.flatnonzero(domain >= 0), np.flatnonzero(domain < 0)
    if len(source) == 0:
        raise ValueError("sample_domain marks no row as one of the source, by 0 or more.")
    return _safe_indexing(X, source), _safe_indexing(y, source), _safe_indexing(X, target)
