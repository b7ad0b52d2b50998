# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the target as one thing that searches do not slice."""


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
    >>> from skdpgen import DPSWFlowSampler
    >>> from skdpgen.adaptation import DPSWDDomainClassifier, Whole
    >>> rng = np.random.default_rng(0)
    >>> X, X_target = rng.normal(size=(60, 3)), rng.normal(size=(60, 3)) + 0.5
    >>> y = (X[:, 0] > 0).astype(int)
    >>> classifier = DPSWDDomainClassifier(
    ...     epsilon=1.0, delta=1e-3, sampler=DPSWFlowSampler(n_steps=20), n_steps=20
    ... )
    >>> whole = Whole(X_target)
    >>> scores = cross_val_score(classifier, X, y, cv=2, params={"X_target": whole})
    >>> scores.shape
    (2,)
    """

    def __init__(self, X_target):
        self.X_target = X_target

    def __repr__(self):
        return "Whole(...)"


def take_whole(X_target):
    """Return the rows of a `Whole`, and other rows as they are."""
    return X_target.X_target if isinstance(X_target, Whole) else X_target
