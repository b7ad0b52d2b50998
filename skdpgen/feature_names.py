# SPDX-License-Identifier: BSD-3-Clause
"""Feature names of rows that the package passes to fitted estimators."""

import pandas as pd
from sklearn.utils.validation import _get_feature_names


def match_names(estimator: object, X):
    """Return rows with the feature names that an estimator was fitted with, or with none.

    scikit-learn warns of rows with names where there were none, and the other way round. A user can
    do nothing about rows that the package itself passes on, and an error in place of the warning
    would stop a fit that has spent its budget. Names that differ stay: the estimator refuses them.

    Parameters
    ----------
    estimator : estimator
        A fitted one.
    X : array or DataFrame of shape (n_samples, n_features)

    Returns
    -------
    array or DataFrame of shape (n_samples, n_features)
    """
    known, given = getattr(estimator, "feature_names_in_", None), _get_feature_names(X)
    if (known is None) == (given is None):
        return X
    if known is None:
        return X.set_axis(range(X.shape[1]), axis=1)
    # The estimator says what is wrong about rows of another width.
    return pd.DataFrame(X).set_axis(known, axis=1) if X.shape[1] == len(known) else X
