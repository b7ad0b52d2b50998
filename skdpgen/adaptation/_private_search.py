# SPDX-License-Identifier: BSD-3-Clause
"""A random search over the parameters of an adapter, with one price for all of it."""

import copy
import numbers
from dataclasses import KW_ONLY, replace

import numpy as np
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterSampler
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_features, _num_samples, check_is_fitted

from .._muting import muted
from ..accounting.accountants import ledger_epsilon
from ..accounting.calibration import check_delta
from ..accounting.certificate import Certificate
from ..accounting.selection import select_best, selection_plan
from ..accounting.spending import report_spent_on_error
from ..mechanisms.noise import NoiseSource
from ..params import DocumentedEstimator, parameters, warn_of_delta
from ._base import SAID_OF_ALL, BaseAdapter, refuse_persons
from ._domain_classifier import DPSWDDomainClassifier
from ._domains import take_whole

# Synthetic target rows that scores are of.
_N_SCORED = 1000
_ASSUMED = (
    "nothing is told of the fits that were not chosen, of how many there were, nor of how long "
    "they took; how many is drawn in double precision",
)
_ASSUMED_OF_ENCODERS = (
    "every encoder that could be drawn was fitted on public data, maps each row on its own and "
    "keeps none"
)
_ASSUMED_OF_SCORING = "scoring reads one fitted model at a time, and public rows"


def _best_has(name):
    """Check for `available_if` whether the best fit, or what would be it, has a method."""
    return lambda search: hasattr(getattr(search, "best_estimator_", search.estimator), name)


@parameters
class PrivateSearch(MetaEstimatorMixin, DocumentedEstimator):
    """A random search over the parameters of an adapter, with one price for all of it.

    The estimator's `epsilon` and `delta` are those of the whole search. What it costs follows from
    what is searched:

    - The parameters of a `DPSWDDomainAdapter` act on synthetic target rows: all but `sampler`, its
      parameters, and those that are handed on to it (`bounds`, and what is said of the whole
      search). If only such are searched, the sampler is fitted once, and all candidates are fitted
      to it: the search costs what one fit does, however many there are. The estimator as it was
      given is the first of `n_candidates`, and the sampler is its.
    - Otherwise each candidate has releases of its own. How many there are is drawn at random, and
      only the best is ever shown: then all of them cost about what three fits would [1]_. The
      certificate says so by a `RepeatAndSelectDpEvent`; the ``"rdp"`` accountant, the only one that
      knows it, finds the noise. Of a `DPSWDDomainAdapter` this takes a sampler that learns from a
      slice sketch.

    Candidates are scored without private rows. By default that is reverse validation [2]_: guesses
    of the classes of synthetic target rows teach a classifier, which is scored on the source.

    Parameters
    ----------
    estimator : DPSWDDomainClassifier, DPSWDDomainAdapter or DPSWDRowAdapter
        Left as it is.
    param_distributions : dict or list of dicts
        Names of parameters, with lists or distributions (with a method ``rvs``), as for
        `RandomizedSearchCV`; chosen without looking at the target. Those of the sampler are called
        ``sampler__n_particles`` and so on, if the estimator has one. What is said of the whole
        search cannot be among them: `epsilon`, `delta`, `relation`, `accountant`, `random_state`,
        `device`, `verbose` and `strict`. Nor, of a `DPSWDRowAdapter`, what changes the price of a
        fit: `network`, `n_components`, `n_projections`, `n_steps`, `batch_size` and
        `target_gradient`.
    n_candidates : float, default=10
        Candidates; their mean number, where that is drawn at random.
    shape : float, default=1.0
        Of the law of their number, from 0 to 10, where it is drawn: truncated negative binomial. 1
        is geometric; 0, logarithmic, costs less, but then one candidate is the likeliest number.
    scoring : callable, default=None
        ``scoring(model, X, y)`` gives a score of a fitted model, the greater the better. It must
        not depend on the target but by the model, nor on models that it has seen before. None:
        reverse validation, which needs a `DPSWDDomainClassifier`.

    Attributes
    ----------
    best_estimator_ : estimator
        The best fit, with its own parameters, but the search's `epsilon`. Its `privacy_` and
        `epsilon_` are those of the whole search.
    best_params_ : dict
        What it has of the parameters that were searched.
    best_score_ : float
        Its score.
    privacy_ : skdpgen.privacy.Certificate
        What was released of the target in the whole search and what it costs.
    epsilon_ : float
        ε spent at the estimator's `delta`; at most its `epsilon`.
    classes_ : ndarray of shape (n_classes,)
        Labels of the source.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` has string column names.

    Notes
    -----
    The price of a random number of candidates holds if they are alike and independent. Each draws
    its parameters anew, also from lists, so that the same can occur twice, and has noise of its
    own; with an int `random_state` that of all follows from it, and, as for a fit, the search is no
    private release. Different parameters may make different releases, but none reveals more than
    one and the same event: a fit to a sketch with ε and δ makes Gaussian releases that add up to
    the same multiplier, in whatever shares. This is checked before each release.

    References
    ----------
    .. [1] Papernot & Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022.
    .. [2] Ganin et al., "Domain-Adversarial Training of Neural Networks", JMLR 2016, section 5.1.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpgen.adaptation import DPSWDDomainClassifier, PrivateSearch
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=200)
    >>> X = rng.normal(size=(200, 2)) + np.c_[4 * y, 0 * y]
    >>> X_target = X[:, ::-1] + 1.0
    >>> classifier = DPSWDDomainClassifier(epsilon=5.0, delta=1e-4, n_steps=50, random_state=0)
    >>> search = PrivateSearch(classifier, {"align_weight": [0.03, 0.3, 3.0]}, n_candidates=4)
    >>> search = search.fit(X, y, X_target=X_target)
    >>> search.privacy_.releases, bool(search.epsilon_ <= 5.0)
    (('slice sketch',), True)
    >>> search.predict(X_target).shape
    (200,)
    """

    estimator: object
    param_distributions: dict | list
    _: KW_ONLY
    n_candidates: float = 10
    shape: float = 1.0
    scoring: object = None

    # With metadata routing on, pipelines hand it on without being asked.
    __metadata_request__fit = {"X_target": True}

    def fit(self, X, y, *, X_target, persons=None) -> "PrivateSearch":
        """Fit candidates, and keep the best.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Public rows of the source.
        y : array-like of shape (n_samples,)
            Their labels.
        X_target : array-like or Whole of shape (n_target, n_features)
            Private rows of the target.
        persons : None
            Refused: see the error for what to do with several rows of a person.

        Returns
        -------
        self : object

        Raises
        ------
        TypeError
            If the estimator is no adapter.
        ValueError
            For bad data or parameters.
        BudgetExceededError
            If an open `PrivacyBudget` cannot pay for the search; nothing is released then.
        """
        refuse_persons(self, persons)
        names = self._check_params()
        if X_target is None:
            raise ValueError("PrivateSearch needs X_target: without it nothing is private.")
        self.estimator.check_fit(X, y)
        noise = NoiseSource(self.estimator.random_state, stream=3)
        if {name.split("__")[0] for name in names} <= self.estimator.free_parameters:
            best_score, best = self._search_one_release(X, y, X_target, noise)
        else:
            best_score, best = self._search_releases(X, y, X_target, noise, names)
        if self.scoring is not None:
            assumptions = *best.privacy_.assumptions, _ASSUMED_OF_SCORING
            _certify(best, replace(best.privacy_, assumptions=assumptions))
        params = best.get_params()
        self.best_estimator_, self.best_score_ = best, best_score
        self.best_params_ = {name: params[name] for name in sorted(names) if name in params}
        self.privacy_ = best.privacy_
        return self

    @property
    def epsilon_(self):
        return self.privacy_.epsilon

    def _search_one_release(self, X, y, X_target, noise):
        """Return the best of fits to one sampler: all are post-processing of it."""
        candidates = [self._draw(noise) for _ in range(round(self.n_candidates) - 1)]
        for model in candidates:
            # Bad parameters cost nothing.
            model.check_fit(X, y)
        best = clone(self.estimator).fit(X, y, X_target=X_target)
        sampler = best.target_sampler_
        with report_spent_on_error(lambda: sampler.privacy_):
            best_score = self._score(best, X, y)
            for model in candidates:
                model.fit_to_sampler(X, y, sampler)
                score = self._score(model, X, y)
                if score > best_score:
                    best_score, best = score, model
        return best_score, best

    def _search_releases(self, X, y, X_target, noise, names):
        """Return the best of a random number of fits, each with releases of its own."""
        estimator, n_target = self.estimator, _num_samples(take_whole(X_target))
        warn_of_delta(estimator.delta, n_target, stacklevel=3)
        delta = check_delta(estimator.delta)
        plan = selection_plan(
            "best of several fits",
            estimator.event_function(_num_features(X), len(np.unique(y)), n_target),
            float(self.n_candidates),
            float(self.shape),
            estimator.epsilon,
            delta,
            relation=estimator.relation,
        )
        # A little less than what a run has, so that rounding does not take it beyond.
        epsilon = (1 - 1e-9) * ledger_epsilon(
            [plan.events[0].event], delta, accountant="rdp", relation=estimator.relation
        )

        def run():
            model = _say(
                self._draw(noise),
                epsilon=epsilon,
                accountant="rdp",
                random_state=noise.seed() if noise.reproducible else None,
                verbose=0,
            )
            model.fit(X, y, X_target=X_target)
            return self._score(model, X, y), model

        best_score, best = select_best(run, plan, noise)
        for fitted in _fitted(best):
            _say(fitted, epsilon=estimator.epsilon, verbose=estimator.verbose)
        assumptions = *best.privacy_.assumptions, *_ASSUMED
        if any(name == "sampler" or name.startswith("sampler__encoder") for name in names):
            assumptions += (_ASSUMED_OF_ENCODERS,)
        certificate = Certificate.of_plan(plan, assumptions, reproducible=noise.reproducible)
        certificate = replace(certificate, sigma=best.sigma_, n_records=n_target)
        _certify(best, certificate.made_by(self))
        return best_score, best

    def _draw(self, noise):
        """Return an estimator with parameters that are drawn anew, also from lists."""
        state = np.random.RandomState(np.random.MT19937(noise.seed()))
        drawn = next(iter(ParameterSampler(self.param_distributions, 1, random_state=state)))
        # Copies, as `clone` makes them: what one fit leaves in an object, no other may find.
        return clone(self.estimator).set_params(**copy.deepcopy(drawn))

    def _score(self, model, X, y):
        if self.scoring is not None:
            return float(self.scoring(model, X, y))
        # The same rows for all candidates that share a sampler.
        synthetic = model.target_sampler_.sample(_N_SCORED, random_state=0)
        return reverse_validation_score(model, X, y, synthetic)

    def _check_params(self):
        """Refuse what cannot be searched; return the names of the parameters."""
        estimator = self.estimator
        if not isinstance(estimator, BaseAdapter):
            raise TypeError(
                "PrivateSearch takes a domain adapter or classifier; got "
                f"{type(estimator).__name__}."
            )
        n = self.n_candidates
        if isinstance(n, bool) or not isinstance(n, numbers.Real) or not n >= 1:
            raise ValueError(f"n_candidates must be a number of at least 1; got {n!r}.")
        # Its own errors say what is wrong with distributions.
        dicts = ParameterSampler(self.param_distributions, 1).param_distributions
        names = {name for parameters in dicts for name in parameters}
        if not names:
            raise ValueError("param_distributions names no parameter.")
        for searched in dicts:
            drawn = next(iter(ParameterSampler(searched, 1, random_state=0)))
            try:
                clone(estimator).set_params(**copy.deepcopy(drawn))
            except (AttributeError, ValueError) as error:
                message = f"{type(estimator).__name__} has no parameters {sorted(drawn)}: {error}"
                raise ValueError(message) from None
        if fixed := {name for name in names if name.removeprefix("sampler__") in SAID_OF_ALL}:
            raise ValueError(
                f"{sorted(fixed)} are said of the whole search, and cannot be searched."
            )
        if priced := {n for n in names if n.split("__")[0] in estimator.priced_parameters}:
            raise ValueError(
                f"{sorted(priced)} change what a fit of {type(estimator).__name__} costs, and all "
                "candidates have to cost the same; they cannot be searched."
            )
        if self.scoring is None and not isinstance(estimator, DPSWDDomainClassifier):
            raise ValueError(
                "Reverse validation needs a DPSWDDomainClassifier: give scoring, a function of a "
                "fitted model and the source, which reads no private rows."
            )
        if self.scoring is not None and not callable(self.scoring):
            raise ValueError(
                f"scoring must be a function of a model, X and y; got {self.scoring!r}."
            )
        return names

    @available_if(_best_has("transform"))
    def transform(self, X):
        """Map rows of either domain by the best fit; see its `transform`."""
        check_is_fitted(self)
        return self.best_estimator_.transform(X)

    @available_if(_best_has("predict"))
    def predict(self, X):
        """Return the most probable class of each row, by the best fit."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(_best_has("predict_proba"))
    def predict_proba(self, X):
        """Return the probabilities of the classes, by the best fit."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    @available_if(_best_has("score"))
    def score(self, X, y):
        """Return the accuracy of the best fit. On private rows it is not covered by ε."""
        check_is_fitted(self)
        return self.best_estimator_.score(X, y)

    @property
    def classes_(self):
        return self.best_estimator_.classes_

    @property
    def n_features_in_(self):
        return self.best_estimator_.n_features_in_

    @property
    def feature_names_in_(self):
        return self.best_estimator_.feature_names_in_

    def __sklearn_tags__(self):
        # To scikit-learn it is what its estimator is.
        return get_tags(self.estimator)


def _say(model, **params):
    """Set what is said of a whole fit, also of its sampler, if it has one."""
    known = model.get_params()
    nested = {f"sampler__{name}": value for name, value in params.items()}
    return model.set_params(**params, **{n: v for n, v in nested.items() if n in known})


def _certify(model, certificate):
    """Replace the certificate of a fit, wherever it is kept."""
    for fitted in _fitted(model):
        fitted.privacy_ = certificate


def _fitted(model):
    sampler = getattr(model, "target_sampler_", None)
    return [model] if sampler is None else [model, sampler]


def reverse_validation_score(model, X, y, X_synthetic) -> float:
    """Score a classifier for a target without labels, by what its guesses teach of the source.

    The classes that it guesses for synthetic target rows teach another classifier, in the same
    representation. The score is the accuracy of that one on the source. All of it is
    post-processing.

    Parameters
    ----------
    model : DPSWDDomainClassifier
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Public rows of the source.
    y : array-like of shape (n_samples,)
        Their labels.
    X_synthetic : array-like of shape (n_synthetic, n_features)
        Rows that stand in for the target, as ``model.target_sampler_.sample(1000)`` gives them. No
        private rows: that would be a read of them outside of every ledger.

    Returns
    -------
    float
        Accuracy; 0 if all guesses are the same.
    """
    guesses = model.predict(X_synthetic)
    if len(np.unique(guesses)) < 2:
        return 0.0
    reverse = LogisticRegression(max_iter=200)
    # A last digit of the score is not worth a warning for each model.
    with muted(ConvergenceWarning):
        reverse.fit(model.transform(X_synthetic), guesses)
    return float(reverse.score(model.transform(X), y))
