"""A random search over the parameters of a domain adapter, with one price for all of it."""

import copy
import numbers
import warnings
from dataclasses import replace

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterSampler
from sklearn.utils.validation import _num_features, _num_samples

from .._validation import warn_of_delta
from ..accounting.accountants import ledger_epsilon
from ..accounting.calibration import check_delta
from ..accounting.certificate import Certificate
from ..accounting.selection import select_best, selection_plan
from ..privacy import NoiseSource
from ._domain_adapter import DPSWDDomainAdapter
from ._domains import Whole

__all__ = ["private_search", "reverse_validation_score"]

# What is said of the search as a whole.
_FIXED = {
    "epsilon",
    "delta",
    "relation",
    "accountant",
    "release",
    "random_state",
    "device",
    "verbose",
}
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


def private_search(
    estimator,
    param_distributions,
    X,
    y,
    *,
    X_target,
    n_candidates=10,
    shape=1.0,
    scoring=None,
):
    """Choose parameters of a domain adapter at random, and return the best fit.

    The estimator's `epsilon` and `delta` are those of the whole search. What it costs follows from
    what is searched:

    - With ``release="sketch"``, parameters of the network and of its training act on a sketch that
      is released already. It is released once, and all candidates are fitted to it: the search
      costs what one fit does, however many there are. The estimator as it was given is the first
      of `n_candidates`, and the sketch is its.
    - Otherwise (`encoder`, `encoder_share`, `bounds`, `clip_norm`; or ``release="rows"``) each
      candidate has releases of its own. How many there are is drawn at random, and only the best
      is ever shown: then all of them cost about what three fits would [1]_. The certificate says
      so by a `RepeatAndSelectDpEvent`; the ``"rdp"`` accountant, the only one that knows it, finds
      the noise.

    Candidates are scored without private rows. By default that is reverse validation [2]_: guesses
    of the classes of synthetic target rows teach a classifier, which is scored on the source.

    Parameters
    ----------
    estimator : DPSWDDomainClassifier or DPSWDDomainAdapter
        Left as it is.
    param_distributions : dict or list of dicts
        Names of parameters, with lists or distributions (with a method ``rvs``), as for
        `RandomizedSearchCV`; chosen without looking at the target. With ``release="rows"``,
        parameters that change the price of a fit cannot be among them: `network`, `n_components`,
        `n_projections`, `n_steps`, `batch_size` and `target_gradient`.
    X : array-like of shape (n_samples, n_features)
        Public rows of the source.
    y : array-like of shape (n_samples,)
        Their labels.
    X_target : array-like or Whole of shape (n_target, n_features)
        Private rows of the target.
    n_candidates : float, default=10
        Candidates; their mean number, where that is drawn at random.
    shape : float, default=1.0
        Of the law of their number, from 0 to 10, where it is drawn: truncated negative binomial. 1
        is geometric; 0, logarithmic, costs less, but then one candidate is the likeliest number.
    scoring : callable, default=None
        ``scoring(model, X, y)`` gives a score of a fitted model, the greater the better. It must
        not depend on the target but by the model, nor on models that it has seen before. None:
        reverse validation, which needs a classifier and a sketch.

    Returns
    -------
    model : estimator
        The best fit, with its own parameters, but the search's `epsilon`. Its `privacy_` and
        `epsilon_` are those of the whole search. It also has a ``search_score_``, its score.

    Raises
    ------
    ValueError
        For bad data or parameters.
    BudgetExceededError
        If an open `PrivacyBudget` cannot pay for the search; nothing is released then.

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
    >>> from skdpgen.adaptation import DPSWDDomainClassifier, private_search
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=200)
    >>> X = rng.normal(size=(200, 2)) + np.c_[4 * y, 0 * y]
    >>> X_target = X[:, ::-1] + 1.0
    >>> classifier = DPSWDDomainClassifier(epsilon=5.0, delta=1e-4, n_steps=50, random_state=0)
    >>> best = private_search(
    ...     classifier, {"align_weight": [0.03, 0.3, 3.0]}, X, y, X_target=X_target, n_candidates=4
    ... )
    >>> best.privacy_.releases, bool(best.epsilon_ <= 5.0)
    (('slice sketch',), True)
    """
    names = _check(estimator, param_distributions, X_target, n_candidates, scoring)

    def score(model):
        if scoring is not None:
            return float(scoring(model, X, y))
        # The same rows for all candidates that share a sketch.
        synthetic = model.target_sampler_.sample(_N_SCORED, random_state=0)
        return reverse_validation_score(model, X, y, synthetic)

    noise = NoiseSource(estimator.random_state, stream=3)

    def draw():
        """Return an estimator with parameters that are drawn anew, also from lists."""
        state = np.random.RandomState(np.random.MT19937(noise.seed()))
        drawn = next(iter(ParameterSampler(param_distributions, 1, random_state=state)))
        # Copies, as `clone` makes them: what one fit leaves in an object, no other may find.
        return clone(estimator).set_params(**copy.deepcopy(drawn))

    if estimator.release == "sketch" and names <= estimator._after_the_sketch:
        best = _search_after_the_sketch(estimator, draw, score, X, y, X_target, n_candidates)
    else:
        best = _search_releases(
            estimator,
            names,
            draw,
            score,
            X,
            y,
            X_target,
            (float(n_candidates), float(shape)),
            noise,
        )
    if scoring is not None:
        assumptions = *best.privacy_.assumptions, _ASSUMED_OF_SCORING
        _certify(best, replace(best.privacy_, assumptions=assumptions))
    return best


def _search_after_the_sketch(estimator, draw, score, X, y, X_target, n_candidates):
    """Return the best of fits to one sketch: all are post-processing of it."""
    candidates = [draw() for _ in range(round(n_candidates) - 1)]
    for model in candidates:
        # Bad parameters cost nothing.
        clone(model)._begin(X, y)
    best = clone(estimator).fit(X, y, X_target=X_target)
    best.search_score_ = score(best)
    for model in candidates:
        model._fit_to_sampler(X, y, best.target_sampler_)
        model.search_score_ = score(model)
        best = max(best, model, key=lambda fitted: fitted.search_score_)
    return best


def _search_releases(estimator, names, draw, score, X, y, X_target, law, noise):
    """Return the best of a random number of fits, each with releases of its own."""
    n_target = _num_samples(X_target.X_target if isinstance(X_target, Whole) else X_target)
    sizes = _num_features(X), len(np.unique(y)), n_target
    warn_of_delta(estimator.delta, n_target, stacklevel=3)
    delta = check_delta(estimator.delta)
    plan = selection_plan(
        "best of several fits",
        estimator._event_function(*sizes),
        *law,
        estimator.epsilon,
        delta,
        relation=estimator.relation,
    )
    # A little less than what a run has, so that rounding does not take it beyond.
    epsilon = (1 - 1e-9) * ledger_epsilon(
        [plan.events[0].event], delta, accountant="rdp", relation=estimator.relation
    )

    def run():
        model = draw().set_params(
            epsilon=epsilon,
            accountant="rdp",
            random_state=noise.seed() if noise.reproducible else None,
            verbose=0,
        )
        model.fit(X, y, X_target=X_target)
        return score(model), model

    best_score, best = select_best(run, plan, noise)
    best.search_score_ = best_score
    for fitted in _fitted(best):
        fitted.set_params(epsilon=estimator.epsilon, verbose=estimator.verbose)
    assumptions = *best.privacy_.assumptions, *_ASSUMED
    if "encoder" in names:
        assumptions += (_ASSUMED_OF_ENCODERS,)
    certificate = Certificate.of_plan(plan, assumptions, reproducible=noise.reproducible)
    _certify(best, replace(certificate, sigma=best.sigma_, n_records=n_target))
    return best


def _certify(model, certificate):
    """Replace the certificate of a fit, wherever it is kept."""
    for fitted in _fitted(model):
        fitted.privacy_, fitted.epsilon_ = certificate, certificate.epsilon


def _fitted(model):
    return [fitted for fitted in (model, model.target_sampler_) if fitted is not None]


def _check(estimator, param_distributions, X_target, n_candidates, scoring):
    """Refuse what cannot be searched; return the names of the parameters."""
    if not isinstance(estimator, DPSWDDomainAdapter):
        raise TypeError(
            f"private_search takes a domain adapter or classifier; got {type(estimator).__name__}."
        )
    estimator._check_params()
    if X_target is None:
        raise ValueError("private_search needs X_target: without it nothing is private.")
    is_number = isinstance(n_candidates, numbers.Real) and not isinstance(n_candidates, bool)
    if not is_number or not n_candidates >= 1:
        raise ValueError(f"n_candidates must be a number of at least 1; got {n_candidates!r}.")
    # Its own errors say what is wrong with distributions.
    ParameterSampler(param_distributions, 1)
    dicts = [param_distributions] if isinstance(param_distributions, dict) else param_distributions
    names = {name for parameters in dicts for name in parameters}
    if not names:
        raise ValueError("param_distributions names no parameter.")
    if unknown := names - set(estimator.get_params(deep=False)):
        raise ValueError(f"{type(estimator).__name__} has no parameters {sorted(unknown)}.")
    if fixed := names & _FIXED:
        raise ValueError(f"{sorted(fixed)} are said of the whole search, and cannot be searched.")
    if estimator.release == "rows" and (priced := names & estimator._priced_by_the_row):
        raise ValueError(
            f"{sorted(priced)} change what a fit with release='rows' costs, and all candidates "
            "have to cost the same; they cannot be searched."
        )
    if estimator.release == "rows" and (idle := names & estimator._of_a_sketch):
        raise ValueError(f"{sorted(idle)} do nothing with release='rows'.")
    if scoring is None and (estimator.release == "rows" or not hasattr(estimator, "predict")):
        raise ValueError(
            "Reverse validation needs a DPSWDDomainClassifier with release='sketch': give scoring, "
            "a function of a fitted model and the source, which reads no private rows."
        )
    if scoring is not None and not callable(scoring):
        raise ValueError(f"scoring must be a function of a model, X and y; got {scoring!r}.")
    return names


def reverse_validation_score(model, X, y, X_synthetic):
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
    with warnings.catch_warnings():
        # A last digit of the score is not worth a warning for each model.
        warnings.simplefilter("ignore", ConvergenceWarning)
        reverse.fit(model.transform(X_synthetic), guesses)
    return float(reverse.score(model.transform(X), y))
