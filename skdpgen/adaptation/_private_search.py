# SPDX-License-Identifier: BSD-3-Clause
"""Private hyperparameter search for domain adapters."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import xlogy
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterSampler
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from .._process.muting import muted
from ..accounting.accountants import ledger_epsilon
from ..accounting.budget import PublicRun
from ..accounting.calibration import find_delta
from ..accounting.certificate import Certificate
from ..accounting.events import gaussian_event
from ..accounting.selection import select_best, selection_plan
from ..accounting.spending import keep_nothing, report_spent_on_error
from ..arrays.numbers import match_names
from ..checks import check_choice, check_number, tried
from ..learners.training import shortens_loops
from ..mechanisms.noise import NoiseSource
from ..params import documented, fitting, warn_of_delta
from ..saving.serialization import Certified
from ._domain_adapter import SHARED_PARAMETERS, refuse_persons
from ._domains import split_domains
from ._steps import find_adapter, fit_steps, map_target, split_pipeline

# Number of synthetic target rows for scores.
_N_SCORED = 1000
# Number of candidates, or its mean, at most: an accountant's probabilities are floats up to here.
_MOST_CANDIDATES = 1e6
_ASSUMED = (
    "nothing is disclosed about fits that were not chosen, their number or their duration; the "
    "number is drawn in double precision",
)
_ASSUMED_OF_ENCODERS = (
    "every encoder that could be drawn was fitted on public data, maps each row on its own and "
    "stores none"
)
_ASSUMED_OF_SCORING = "scoring reads one fitted model at a time, and public rows"


def _best_has(name):
    """Return a check for `available_if`: whether the (best) estimator has a method."""
    return lambda search: hasattr(getattr(search, "best_estimator_", search.estimator), name)


@documented
class PrivateSearch(Certified, MetaEstimatorMixin, BaseEstimator):
    """Random search over an adapter's parameters with one privacy cost for the whole search.

    The adapter's `epsilon` and `delta` are those of the whole search. It may be a step of a
    pipeline. Steps before it are fitted once, to the source; they map each target row on its own,
    which is checked on the source, before the budget is reserved: nothing of it is released. Steps
    after it are fitted to the mapped source. The cost depends on the parameters that are searched:

    - Most parameters of a `DPSWDDomainAdapter` act on synthetic target rows only: all but `sampler`
      with its parameters, `bounds`, and the parameters of the whole search (see
      `param_distributions`); so do those of steps after it. If only such parameters are searched,
      the sampler is fitted once and shared by all candidates: the search costs as much as one fit.
      The given estimator is the first of `n_candidates`, and its sampler is used.
    - Otherwise each candidate makes its own releases. The number of candidates is drawn at random,
      and only the best is disclosed: then all of them cost about as much as three fits [1]_. The
      certificate lists a `RepeatAndSelectDpEvent`, which is priced by the ``"rdp"`` accountant. The
      sampler of a `DPSWDDomainAdapter` must learn from a slice sketch.

    Scores do not read private rows, and cost nothing.

    Parameters
    ----------
    estimator : DPSWDDomainClassifier, DPSWDDomainAdapter or Pipeline
        It is cloned, not changed.
    param_distributions : dict or list of dicts
        Names of parameters, with lists or distributions (with a method ``rvs``), as for
        `RandomizedSearchCV`; chosen without looking at the target. Parameters of the estimator's
        sampler are called ``sampler__n_particles`` and so on, after the name of a pipeline's step.
        Parameters of the whole search cannot be searched: `epsilon`, `delta`, `relation`,
        `accountant`, `random_state`, `device`, `verbose` and `strict`, and those of steps before
        the adapter.
    n_candidates : float, default=10
        Number of candidates, or its mean where the number is drawn at random.
    shape : float, default=1.0
        Shape, from 0 to 10, of the truncated negative binomial distribution of that number: 1 is
        geometric; 0, logarithmic, costs less, but a single candidate is then most likely.
    scoring : str or callable, default=None
        Score of a fitted model; greater is better. ``"reverse_validation"`` or None: predicted
        classes of synthetic target rows train a classifier, which is scored on the source [2]_.
        ``"source_accuracy"``: accuracy on the source rows of the fit. ``"target_entropy"``: minus
        the mean entropy of predicted classes of synthetic target rows [3]_. A function
        ``scoring(model, X, y)`` takes the steps from the adapter on, and rows as they read them. It
        may depend on the target only through the model, and not on earlier models.

    Attributes
    ----------
    best_estimator_ : estimator
        The best fit, with its own parameters and the search's `epsilon`. Its `privacy_` and
        `epsilon_` are those of the whole search.
    best_params_ : dict
        Values of the searched parameters of the best fit.
    best_score_ : float
        Score of the best fit.
    privacy_ : skdpgen.privacy.Certificate
        Releases of the whole search and their cost.
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
    The cost of a random number of candidates holds if they are independent and identically
    distributed. Each draws its parameters with replacement, also from lists, and its own noise; an
    int `random_state` determines all noise, and the search is then not private. Different
    parameters may lead to different releases, but none costs more than one common event: the
    Gaussian releases of a fit to a sketch with ε and δ have the same total multiplier, whatever
    their shares. This is checked before each release.

    References
    ----------
    .. [1] Papernot & Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022.
    .. [2] Ganin et al., "Domain-Adversarial Training of Neural Networks", JMLR 2016, section 5.1.2.
    .. [3] Morerio et al., "Minimal-Entropy Correlation Alignment for Unsupervised Deep Domain
       Adaptation", ICLR 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpgen.adaptation import DPSWDDomainClassifier, PrivateSearch
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=200)
    >>> X = rng.normal(size=(200, 2)) + np.c_[4 * y, 0 * y]
    >>> X_target = X[:, ::-1] + 1.0
    >>> classifier = DPSWDDomainClassifier(epsilon=5.0, delta=1e-4, n_steps=10, random_state=0)
    >>> search = PrivateSearch(classifier, {"align_weight": [0.03, 0.3, 3.0]}, n_candidates=4)
    >>> search = search.fit(X, y, X_target=X_target)
    >>> search.privacy_.releases, bool(search.epsilon_ <= 5.0)
    (('slice sketch',), True)
    >>> search.predict(X_target).shape
    (200,)
    """

    # With metadata routing on, pipelines hand it on without being asked.
    __metadata_request__fit = {"X_target": True, "sample_domain": UNUSED}

    def __init__(
        self,
        estimator: object,
        param_distributions: dict | list,
        *,
        n_candidates: float = 10,
        shape: float = 1.0,
        scoring: object = None,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_candidates = n_candidates
        self.shape = shape
        self.scoring = scoring

    def fit(self, X, y, *, X_target=None, sample_domain=None, persons=None) -> "PrivateSearch":
        """Fit the candidates and keep the best one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Public source rows.
        y : array-like of shape (n_samples,)
            Their labels.
        X_target : array-like or Whole of shape (n_target, n_features)
            Private target rows; see `Whole` for cross-validation.
        sample_domain : array-like of int, default=None
            In place of `X_target`; see `DPSWDDomainAdapter.fit`.
        persons : None
            Not supported; the error names alternatives for several rows per person.

        Returns
        -------
        self : object

        Raises
        ------
        TypeError
            If the estimator is not an adapter.
        ValueError
            For bad data or parameters.
        BudgetExceededError
            If the search exceeds an open `PrivacyBudget`; nothing is released.
        """
        refuse_persons(self, persons)
        with fitting(self):
            return self._fit(*split_domains(X, y, X_target, sample_domain))

    def _fit(self, X, y, X_target):
        # Other estimators are refused by name before they are cloned.
        find_adapter(self.estimator)
        before, model = split_pipeline(clone(self.estimator))
        names = self._check_params(model)
        if X_target is None:
            raise ValueError(
                "PrivateSearch needs X_target. For public rows, use RandomizedSearchCV."
            )
        if before is not None:
            mapped = before.fit_transform(X, y)
            X, X_target = mapped, map_target(before, X, X_target)
        # Errors about the source come before the first release.
        _check_fit(model, X, y)
        if callable(self.scoring):
            self._try_scoring(model, X, y)
        # A stream that no candidate uses: the number of fits is drawn from it.
        noise = NoiseSource(find_adapter(model).random_state, stream=3)
        free = {*find_adapter(model).free_parameters, *getattr(model, "named_steps", ())}
        if {own.split("__")[0] for own in names.values()} <= free:
            # All candidates read one release, so that one price pays for any number of them.
            best_score, best = self._search_one_release(model, X, y, X_target, noise)
        else:
            best_score, best = self._search_releases(model, X, y, X_target, noise, names)
        adapter = find_adapter(best)
        if callable(self.scoring):
            assumptions = *adapter.privacy_.assumptions, _ASSUMED_OF_SCORING
            _certify(adapter, replace(adapter.privacy_, assumptions=assumptions))
        params = best.get_params()
        self.best_params_ = {name: params[name] for name in names if name in params}
        self.best_estimator_ = best if before is None else Pipeline([*before.steps, *best.steps])
        self.best_score_, self.privacy_ = best_score, adapter.privacy_
        return self

    def _list_certified(self):
        best = find_adapter(self.best_estimator_)
        best.check_certified()
        yield "privacy_ of best_estimator_", best.privacy_, self.privacy_
        yield "sigma_", self.sigma_, best.sigma_

    def _find_sigma(self):
        return find_adapter(self.best_estimator_).sigma_

    def _search_one_release(self, model, X, y, X_target, noise):
        """Return the best of several fits to one sampler, by post-processing of its release."""
        candidates = [self._draw(model, noise) for _ in range(round(self.n_candidates) - 1)]
        for candidate in candidates:
            # Raise for bad parameters before anything is spent.
            _check_fit(candidate, X, y)
        first = find_adapter(best := model)
        certificate = partial(getattr, first, "privacy_", None)
        with report_spent_on_error(certificate, partial(self._keep, first)):
            fit_steps(model, X, y, lambda adapter: adapter.fit(X, y, X_target=X_target))
            sampler, best_score = first.target_sampler_, self._score(model, X, y)
            for candidate in candidates:
                fit_steps(candidate, X, y, lambda adapter: adapter.fit_to_sampler(X, y, sampler))
                score = self._score(candidate, X, y)
                # Strictly: of equal candidates the first one stays, whatever their number.
                if score > best_score:
                    best_score, best = score, candidate
        return best_score, best

    def _keep(self, model):
        """Keep the sampler of all candidates of a failed search; see `report_spent_on_error`."""
        if not hasattr(model, "target_sampler_"):
            return keep_nothing()
        self.target_sampler_ = sampler = model.target_sampler_
        text = ""
        if hasattr(model, "privacy_"):
            model = split_pipeline(self.estimator)[1]
            step = f"[{model.steps[0][0]!r}]" if isinstance(model, Pipeline) else ""
            text = f"search.estimator{step}.fit_to_sampler(X, y, search.target_sampler_)"
            text += f"{', of mapped X,' * bool(step)} costs nothing."
        return sampler.release_.published, text

    def _search_releases(self, model, X, y, X_target, noise, names):
        """Return the best of a random number of fits with their own releases."""
        estimator, n_target = find_adapter(model), _num_samples(X_target)
        delta = find_delta(estimator.delta, n_target)
        warn_of_delta(delta, n_target)
        # Papernot & Steinke 2022 price the best of a random number of runs in Rényi divergence.
        plan = selection_plan(
            "best of several fits",
            # Shares of a sketch and of components add up to one Gaussian release.
            gaussian_event,
            float(self.n_candidates),
            float(self.shape),
            estimator.epsilon,
            delta,
            relation=estimator.relation,
        )
        # Slightly below a run's cost, so that rounding does not exceed it.
        epsilon = (1 - 1e-9) * ledger_epsilon(
            [plan.events[0].event], delta, accountant="rdp", relation=estimator.relation
        )

        def run():
            candidate = self._draw(model, noise)
            _set_shared(
                find_adapter(candidate),
                epsilon=epsilon,
                accountant="rdp",
                # Each run draws noise of its own: equal noise would be one release, priced as
                # several.
                random_state=noise.seed() if noise.reproducible else None,
                verbose=0,
            )
            fit_steps(candidate, X, y, lambda adapter: adapter.fit(X, y, X_target=X_target))
            return self._score(candidate, X, y), candidate

        best_score, chosen = select_best(run, plan, noise)
        best = find_adapter(chosen)
        # Each run has paid for itself; the best one states the parameters of the whole search.
        for fitted in _fitted(best):
            _set_shared(fitted, epsilon=estimator.epsilon, verbose=estimator.verbose)
        assumptions = *best.privacy_.assumptions, *_ASSUMED
        own = names.values()
        if any(name == "sampler" or name.startswith("sampler__encoder") for name in own):
            assumptions += (_ASSUMED_OF_ENCODERS,)
        certificate = Certificate.of_plan(plan, assumptions, reproducible=noise.reproducible)
        certificate = replace(
            certificate,
            sigma=best.sigma_,
            n_records=n_target,
            digests=[(best.privacy_.digest,)],
            engine=best.privacy_.engine,
        )
        _certify(best, certificate.made_by(self))
        return best_score, chosen

    def _draw(self, model, noise):
        """Return an estimator with parameters that are drawn with replacement."""
        state = np.random.RandomState(np.random.MT19937(noise.seed()))
        drawn = next(iter(ParameterSampler(self.param_distributions, 1, random_state=state)))
        # Copied, so that no fit sees the state that another one left in an object.
        return clone(model).set_params(**copy.deepcopy(drawn))

    def _try_scoring(self, model, X, y):
        """Raise an error if `scoring` fails for a model of one step, to the source as target."""
        adapter = find_adapter(model := clone(model))
        adapter.set_params(random_state=0, verbose=0)
        with muted(), PublicRun(), shortens_loops():
            fit_steps(model, X, y, lambda adapter: adapter.fit(X, y, X_target=X))
        # It may fit estimators in other threads: no lock of global generators is held.
        with tried("scoring"), muted():
            # Copied, so that an object that counts its calls does not count this one.
            float(copy.deepcopy(self.scoring)(model, X, y))

    def _score(self, model, X, y):
        score = self.scoring if callable(self.scoring) else SCORES[self.scoring]
        return float(score(model, X, y))

    def _check_params(self, model):
        """Validate the search; return the searched parameters, and their names in the adapter."""
        # A mean, which need not be whole.
        check_number("n_candidates", self.n_candidates, most=_MOST_CANDIDATES)
        if self.n_candidates < 1:
            raise ValueError(
                f"n_candidates must be a number of at least 1; got {self.n_candidates!r}."
            )
        check_number("shape", self.shape, zero=True, most=10)
        searched = self.param_distributions
        searched = searched if isinstance(searched, list | tuple) else [searched]
        if not all(isinstance(part, Mapping) for part in searched):
            raise TypeError(
                "param_distributions must be a dict of names and lists or distributions, or a list "
                f"of such dicts; got {self.param_distributions!r}."
            )
        # ParameterSampler validates the distributions.
        dicts = ParameterSampler(self.param_distributions, 1).param_distributions
        names = {name for parameters in dicts for name in parameters}
        if not names:
            raise ValueError("param_distributions must name at least one parameter.")
        for searched in dicts:
            drawn = next(iter(ParameterSampler(searched, 1, random_state=0)))
            try:
                clone(self.estimator).set_params(**copy.deepcopy(drawn))
            except (AttributeError, ValueError) as error:
                name = type(self.estimator).__name__
                raise ValueError(f"{name} has no parameters {sorted(drawn)}: {error}") from None
        # All runs must cost the same, and draw noise of their own.
        first, *after = getattr(model, "named_steps", [""])
        names = {name: name.removeprefix(f"{first}__") for name in sorted(names)}
        known = {*find_adapter(model).get_params(deep=False), *after}.difference(SHARED_PARAMETERS)
        fixed = [
            name
            for name, own in names.items()
            if own.split("__")[0] not in known or own.removeprefix("sampler__") in SHARED_PARAMETERS
        ]
        if fixed:
            raise ValueError(
                f"{fixed} belong to the whole search, and cannot be searched. Set them "
                "on the estimator."
            )
        if not callable(self.scoring):
            check_choice("scoring", self.scoring, SCORES)
            method = "predict_proba" if self.scoring == "target_entropy" else "predict"
            if not hasattr(model, method):
                raise ValueError(
                    f"scoring={self.scoring!r} needs an estimator with {method}, such as "
                    "DPSWDDomainClassifier. Or give scoring, a function scoring(model, X, y) that "
                    "reads no private rows."
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
    def score(self, X, y, sample_weight=None):
        """Return the accuracy of the best fit. On private rows it is not covered by ε."""
        check_is_fitted(self)
        return self.best_estimator_.score(X, y, sample_weight=sample_weight)

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
        # scikit-learn treats the search like its estimator.
        return get_tags(self.estimator)


def _check_fit(model, X, y):
    """Raise the errors of a fit about parameters and the source, at no cost."""
    find_adapter(model).check_fit(X, y)
    # The steps after the adapter learn from one that has made one step, on the source alone.
    with muted(), shortens_loops():
        if find_adapter(model) is not model:
            fit_steps(clone(model), X, y, lambda adapter: adapter.set_params(verbose=0).fit(X, y))


def _set_shared(model, **params):
    """Set parameters of a model, and of its sampler if it has one."""
    known = model.get_params()
    nested = {f"sampler__{name}": value for name, value in params.items()}
    return model.set_params(**params, **{n: v for n, v in nested.items() if n in known})


def _certify(model, certificate):
    """Replace the certificate of a model, of its sampler, and of its published values."""
    for fitted in _fitted(model):
        fitted.privacy_ = certificate
        published = getattr(getattr(fitted, "release_", None), "published", None)
        if published is not None:
            # Whoever gets the values of the best of several fits must know the price of all.
            epsilon = max(published.plan.epsilon, certificate.epsilon)
            fitted.release_.published = replace(
                published,
                plan=replace(published.plan, epsilon=epsilon),
                certificate=replace(certificate, provenance=None),
            )


def _fitted(model):
    sampler = getattr(model, "target_sampler_", None)
    return [model] if sampler is None else [model, sampler]


def reverse_validation_score(model, X, y, X_synthetic=None) -> float:
    """Return the reverse-validation score of a classifier, without target labels.

    The predicted classes of synthetic target rows train a second classifier in the same
    representation. The score is the accuracy of the second one on the source. This is
    post-processing.

    Parameters
    ----------
    model : DPSWDDomainClassifier or Pipeline with an adapter
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Public rows of the source.
    y : array-like of shape (n_samples,)
        Their labels.
    X_synthetic : array-like of shape (n_synthetic, n_features), default=None
        Synthetic rows that the adapter takes. None: 1000 rows of its `target_sampler_`, the same at
        each call. Private rows must not be given: no ledger would record that they are read.

    Returns
    -------
    float
        Accuracy; 0 if all predictions are the same.
    """
    adapter, (before, model) = find_adapter(model), split_pipeline(model)
    X = X if before is None else before.transform(X)
    X_synthetic = _sample(adapter) if X_synthetic is None else match_names(adapter, X_synthetic)
    predicted = model.predict(X_synthetic)
    # A classifier with one answer cannot train the reverse one.
    if len(np.unique(predicted)) < 2:
        return 0.0
    reverse = LogisticRegression(max_iter=200)
    # An unconverged digit of the score does not deserve a warning for each model.
    with muted(ConvergenceWarning):
        reverse.fit(adapter.transform(X_synthetic), predicted)
    return float(reverse.score(adapter.transform(X), y))


def _sample(adapter):
    """Return synthetic target rows, the same for all candidates that share a sampler."""
    return match_names(adapter, adapter.target_sampler_.sample(_N_SCORED, random_state=0))


def _find_certainty(model, X, y):
    """Return minus the mean entropy of predicted classes of synthetic target rows."""
    shares = split_pipeline(model)[1].predict_proba(_sample(find_adapter(model)))
    return np.mean(np.sum(xlogy(shares, shares), axis=1))


def _find_accuracy(model, X, y):
    return np.mean(model.predict(X) == np.asarray(y))


# Scores by name, which read the source and released values only.
SCORES = {
    None: reverse_validation_score,
    "reverse_validation": reverse_validation_score,
    "source_accuracy": _find_accuracy,
    "target_entropy": _find_certainty,
}


def get_scorer(name: str) -> Callable:
    """Return a score of `PrivateSearch` as the `scoring` of scikit-learn's searches.

    It reads public rows and released values, and costs nothing; fits of a search all count.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skdpgen.adaptation import DPSWDDomainClassifier, get_scorer
    >>> grid = {"align_weight": [0.1, 1.0]}
    >>> search = GridSearchCV(DPSWDDomainClassifier(), grid, scoring=get_scorer("target_entropy"))
    """
    check_choice("name", name, SCORES)
    return SCORES[name]
