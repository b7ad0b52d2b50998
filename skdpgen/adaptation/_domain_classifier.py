"""Classify rows of a private target domain."""

from sklearn.base import ClassifierMixin
from sklearn.utils.validation import _num_samples
from torch import nn

from .._validation import undo_on_failure
from ..accounting.figures import plain_numbers
from ._domain_adapter import DPSWDDomainAdapter
from ._domains import split_domains

__all__ = ["DPSWDDomainClassifier"]


class DPSWDDomainClassifier(ClassifierMixin, DPSWDDomainAdapter):
    """A classifier for a private target domain, trained on a public source.

    The representation of `DPSWDDomainAdapter`, with the classifier it is trained with.

    Parameters
    ----------
    epsilon, delta, relation, accountant, bounds, clip_norm, network, n_components, n_projections, \
align_weight, class_align_weight, n_steps, batch_size, learning_rate, augment, release, \
target_gradient, grad_clip, encoder, encoder_share, random_state, device, verbose, strict
        As in `DPSWDDomainAdapter`.

    Attributes
    ----------
    privacy_, epsilon_, sigma_, target_sampler_, classes_, n_target_, n_features_in_, \
feature_names_in_, n_iter_, loss_curve_
        As in `DPSWDDomainAdapter`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpgen.adaptation import DPSWDDomainClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=400)
    >>> X = rng.normal(size=(400, 2)) + np.c_[4 * y, 0 * y]
    >>> X_target = X[:, ::-1] + 1.0
    >>> classifier = DPSWDDomainClassifier(epsilon=5.0, delta=1e-4, random_state=0)

    Without the target 0.55 of its rows are classified correctly.

    >>> bool(classifier.fit(X, y, X_target=X_target).score(X_target, y) > 0.75)
    True
    """

    # Stacked rows do not belong behind steps that are fitted on them: `sample_domain` has to be
    # asked for.
    __metadata_request__fit = {"X_target": True, "sample_domain": None}

    def fit(self, X, y=None, *, X_target=None, sample_domain=None):
        """Learn a representation of both domains, and a classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Public rows of the source; with `sample_domain`, of both domains.
        y : array-like of shape (n_samples,)
            Labels of the source. With `sample_domain`, those of target rows are not looked at.
        X_target : array-like or Whole of shape (n_target, n_features), default=None
            Private rows of the target.
        sample_domain : array-like of int of shape (n_samples,), default=None
            At least 0 for rows of the source, negative for rows of the target. Only for rows as
            they come: a step of a pipeline before this one would be fitted on private rows, too,
            without noise, and splitters and scorers of a search would look at them.

        Returns
        -------
        self : object
        """
        if sample_domain is not None:
            if X_target is not None:
                raise ValueError("Give X_target or sample_domain, not both.")
            X, y, X_target = split_domains(X, y, sample_domain)
            if _num_samples(X_target) == 0:
                X_target = None
        with undo_on_failure(self), plain_numbers(self):
            return self._fit(X, y, X_target)

    def predict_proba(self, X):
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._apply(
            X, lambda: nn.Sequential(self._encoder, self._head, nn.Softmax(dim=1)).eval()
        )

    def predict(self, X):
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        codes = self.predict_proba(X).argmax(axis=1)
        return self.classes_[codes]
