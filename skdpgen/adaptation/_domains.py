# SPDX-License-Identifier: BSD-3-Clause
"""Target rows that cross-validation does not slice."""


class Whole:
    """Target rows that cross-validation passes on as a whole.

    Cross-validation slices every array in its ``params`` that has as many rows as X, which a target
    has only by coincidence. A wrapped target is passed to each fit unchanged.

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

    def __init__(self, X_target) -> None:
        self.X_target = X_target

    def __repr__(self):
        return "Whole(...)"


def unwrap(X_target):
    """Return the rows of a `Whole`; other rows are returned as they are."""
    return X_target.X_target if isinstance(X_target, Whole) else X_target
