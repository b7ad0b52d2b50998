# SPDX-License-Identifier: BSD-3-Clause
"""Scores of domain adapters that cost nothing: of source rows, and of synthetic target rows.

Each is a function of a fitted model and the source. A model is a `DPSWDDomainClassifier`, or a
pipeline with an adapter; `PrivateSearch` takes their names, `GridSearchCV` the functions.
"""

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from .._process.muting import muted
from ..arrays.numbers import match_names
from ._steps import Steps

# Number of synthetic target rows.
_N_SCORED = 1000


def reverse_validation_score(model, X, y, X_synthetic=None) -> float:
    """Return the reverse-validation score of a classifier, without target labels.

    The predicted classes of synthetic target rows train a second classifier in the same
    representation. The score is the accuracy of the second one on the source [1]_. This is
    post-processing.

    Parameters
    ----------
    model : DPSWDDomainClassifier or Pipeline
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Public rows of the source.
    y : array-like of shape (n_samples,)
        Their labels.
    X_synthetic : array-like of shape (n_synthetic, n_features), default=None
        Synthetic rows that the adapter takes. None: 1000 rows of its `target_sampler_`, the same
        at each call. Private rows must not be given: no ledger would record that they are read.

    Returns
    -------
    float
        Accuracy; 0 if all predictions are the same.

    References
    ----------
    .. [1] Ganin et al., "Domain-Adversarial Training of Neural Networks", JMLR 2016, section 5.1.2.
    """
    steps = Steps.of(model)
    X_synthetic = _read_synthetic(steps.adapter, X_synthetic)
    predicted = steps.predict(X_synthetic)
    # A classifier with one answer cannot train the reverse one.
    if len(np.unique(predicted)) < 2:
        return 0.0
    reverse = LogisticRegression(max_iter=200)
    # An unconverged digit of the score does not deserve a warning for each model.
    with muted(ConvergenceWarning):
        reverse.fit(steps.adapter.transform(X_synthetic), predicted)
    return float(reverse.score(steps.adapter.transform(steps.transform(X)), y))


def source_accuracy_score(model, X, y) -> float:
    """Return the accuracy on rows of the source, which may be those of the fit.

    Parameters
    ----------
    model : DPSWDDomainClassifier or Pipeline
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Public rows of the source.
    y : array-like of shape (n_samples,)
        Their labels.

    Returns
    -------
    float
    """
    return float(np.mean(model.predict(X) == np.asarray(y)))


def target_entropy_score(model, X=None, y=None) -> float:
    """Return minus the mean entropy of the predicted classes of synthetic target rows [1]_.

    Parameters
    ----------
    model : DPSWDDomainClassifier or Pipeline
        Fitted, with ``predict_proba``.
    X, y : Ignored

    Returns
    -------
    float
        In nats, at most 0.

    References
    ----------
    .. [1] Morerio, Cavazza & Murino, "Minimal-Entropy Correlation Alignment for Unsupervised Deep
       Domain Adaptation", ICLR 2018.
    """
    steps = Steps.of(model)
    shares = steps.predict(_read_synthetic(steps.adapter), "predict_proba")
    # A share of 0 contributes nothing.
    logs = np.log(np.clip(shares, np.finfo(np.float32).tiny, 1.0))
    return float((shares * logs).sum(axis=1).mean())


def _read_synthetic(adapter, X_synthetic=None):
    """Return synthetic target rows, the same for all models that share a sampler."""
    if X_synthetic is None:
        if adapter.target_sampler_ is None:
            raise ValueError("The model was fitted without X_target: there are no synthetic rows.")
        X_synthetic = adapter.target_sampler_.sample(_N_SCORED, random_state=0)
    return match_names(adapter, X_synthetic)


# Functions by the values of `scoring`.
SCORES = {
    "reverse_validation": reverse_validation_score,
    "source_accuracy": source_accuracy_score,
    "target_entropy": target_entropy_score,
}
