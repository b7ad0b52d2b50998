# SPDX-License-Identifier: BSD-3-Clause
"""What adapters share: a source that is checked, networks on it, and one map of rows."""

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from ..accounting.accountants import RELATIONS
from ..accounting.certificate import Certificate
from ..accounting.rounding import plain_numbers
from ..accounting.spending import report_spent_on_error
from ..arrays.kind import check_bounds
from ..checks import check_choice, in_range, one_of, positive, whole
from ..curator.record_functions import clears_frames
from ..curator.records import read_rows, take_rows
from ..learners.adaptation import fit_adaptation
from ..mechanisms.noise import NoiseSource
from ..networks import ENCODERS, build_encoder
from ..params import (
    PRIVACY_CHECKS,
    Checked,
    DocumentedEstimator,
    check_finite,
    choose_device,
    parameters,
    rollback_on_failure,
)
from ..registry import savable
from ..serialization import Saves
from ._domains import take_whole

# What certificates of adapters rest on.
ASSUMED = (
    "the rows and labels of the source are public",
    "only the fitted map is covered: what it makes of private rows is as private as they are, and "
    "so is a classifier that is fitted on it",
    "the network maps each row on its own, and keeps none",
)
# What is said of a fit and of all that it consists of: a sampler, the candidates of a search.
SAID_OF_ALL = (
    "epsilon",
    "delta",
    "relation",
    "accountant",
    "random_state",
    "device",
    "verbose",
    "strict",
)
_BLOCK = 10_000
# Rows of the source that is made for an audit.
_AUDITED_SOURCE = 40


@dataclass(frozen=True)
class Start:
    """What a fit starts from; all of it is public.

    Attributes
    ----------
    X : array of shape (n_samples, n_features)
        Rows of the source.
    bounds : pair of arrays of shape (n_features,)
    encoder, head : torch.nn.Module
        The representation, and a classifier on it; not trained yet.
    source : tuple of tensors of shape (n_samples, n_inputs) and (n_samples,)
        Rows of the source as the encoder reads them, and their classes.
    noise : NoiseSource
    """

    X: np.ndarray
    bounds: tuple
    encoder: nn.Module
    head: nn.Module
    source: tuple
    noise: NoiseSource


@savable
class _Input:
    """The map of rows, of either domain, to what the network reads.

    They are clipped to the bounds, and mapped to [0, 1], or standardised by the source.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Rows of the source.
    bounds : pair of arrays of shape (n_features,)
    standardise : bool
    """

    def __init__(self, X, bounds, standardise):
        self.bounds = bounds
        self.mean, self.scale = 0.0, 1.0
        if standardise:
            rows = self(X).numpy()
            self.mean, deviations = rows.mean(axis=0), rows.std(axis=0)
            # What hardly varies in the source is not blown up.
            typical = np.sqrt(np.mean(deviations**2))
            self.scale = np.hypot(deviations, 0.1 * typical or 1.0)

    def __call__(self, X):
        lower, upper = self.bounds
        return self.of_unit(torch.as_tensor((np.clip(X, lower, upper) - lower) / (upper - lower)))

    def of_unit(self, rows):
        """Map a tensor of features in [0, 1]."""
        mean, scale = (
            torch.as_tensor(part, device=rows.device) for part in (self.mean, self.scale)
        )
        return ((rows - mean) / scale).float()


def _check_network(name, value):
    if isinstance(value, str):
        check_choice(name, value, ENCODERS)
    elif not callable(value):
        raise ValueError(f"{name} must be one of {list(ENCODERS)} or a factory; got {value!r}.")


@parameters
class BaseAdapter(
    Saves,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    Checked,
    DocumentedEstimator,
    metaclass=ABCMeta,
):
    """Base of the adapters: the public verbs, the source, the networks and the map.

    Subclasses fill in one step, ``_adapt(start, X_target)``. From a `Start` it trains on the source
    and on what it releases of the target, and returns by ``_finish(start, certificate)``. For
    searches they have an `event_function`, and name parameters that are special to these.

    Attributes
    ----------
    free_parameters : set of str
        Those that matter only after all was released, so that others can be tried for nothing.
    priced_parameters : set of str
        Those that the price of a fit follows from.
    """

    epsilon: float = 1.0
    delta: float = 1e-5
    _: KW_ONLY
    relation: str = "zero_out"
    accountant: str = "pld"
    random_state: object = None
    device: str = "auto"
    verbose: int = 0
    strict: bool = False
    bounds: Sequence | None = None
    network: Callable | str = "mlp"
    n_components: int | None = None
    n_projections: int = 200
    align_weight: float = 0.1
    n_steps: int | None = None
    batch_size: int = 128
    learning_rate: float = 0.002

    free_parameters = frozenset()
    priced_parameters = frozenset()

    # With metadata routing on, pipelines hand it on without being asked.
    __metadata_request__fit = {"X_target": True}

    # For each parameter, what refuses bad values; bounds are checked against the source.
    _checks = {
        **PRIVACY_CHECKS,
        "relation": one_of(*RELATIONS),
        "device": lambda name, value: choose_device(value),
        "network": _check_network,
        "n_components": whole(optional=True),
        "n_projections": whole(),
        "align_weight": in_range(),
        "n_steps": whole(optional=True),
        "batch_size": whole(),
        "learning_rate": positive(),
    }
    # How rows are changed at random; not at all.
    _augment = None

    def fit(self, X, y=None, *, X_target=None, persons=None):
        """Learn a representation of both domains.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Public rows of the source.
        y : array-like of shape (n_samples,)
            Their labels.
        X_target : array-like or Whole of shape (n_target, n_features), default=None
            Private rows of the target. None: the representation is that of the source, and a
            warning says so.
        persons : None
            Refused: see the error for what to do with several rows of a person.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For bad data of the source, or bad shapes, dtypes or parameters; nothing is spent then.
            For target rows that are refused for what is in them (``strict=True``, or cells of
            dtype object that are no numbers); open budgets are charged with the fit then.
        BudgetExceededError
            If an open `PrivacyBudget` cannot pay for the fit; nothing is released then.
        """
        refuse_persons(self, persons)
        with rollback_on_failure(self), plain_numbers(self):
            return self._fit(X, y, X_target)

    def _fit(self, X, y, X_target):
        start = self._start(X, y)
        X_target = self._read_target(X_target)
        if X_target is None:
            warnings.warn(
                "There is no X_target: the representation is that of the source, and nothing was "
                "adapted.",
                UserWarning,
                stacklevel=3,
            )
            self.n_target_ = 0
            return self._stay(start)
        self.n_target_ = len(X_target)
        return self._adapt(start, X_target)

    def _fit_audited(self, data, seed):
        """Fit to the records of an audit as the target, beside a made source, which is public."""
        if data.keys() != {"X"}:
            raise ValueError("The target of an adapter has neither labels nor columns with names.")
        self.set_params(random_state=seed)
        generator, shape = np.random.default_rng(seed), (_AUDITED_SOURCE, data["X"].shape[1])
        lower, upper = (0, 1) if self.bounds is None else map(np.asarray, self.bounds)
        source = lower + generator.random(shape) * (upper - lower)
        self.fit(source, np.arange(len(source)) % 2, X_target=data["X"])

    def check_fit(self, X, y):
        """Raise what `fit` would raise of the parameters and the source, which costs nothing."""
        copied = clone(self)
        with plain_numbers(copied):
            copied._start(X, y)

    @abstractmethod
    def event_function(self, n_features, n_classes, n_target):
        """Return the event of all releases of a fit, as a function of the noise multiplier."""

    @abstractmethod
    def _adapt(self, start, X_target):
        """Train on the source and the target; return the estimator, by `_finish`."""

    def _start(self, X, y):
        """Check parameters and the source, and make networks: what can fail before all releases."""
        self._check_params()
        X, classes = self._read_source(X, y)
        bounds, noise = self._find_bounds(X), NoiseSource(self.random_state, stream=2)
        device = choose_device(self.device)
        self._input = _Input(X, bounds, standardise=not getattr(self._factory, "unit_input", False))
        encoder, head, self._n_features_out = build_encoder(
            self._factory, X.shape[1], self.n_components, len(self.classes_), noise.seed()
        )
        source = self._input(X).to(device), torch.as_tensor(classes, device=device)
        self._try_augment(source[0][:2])
        return Start(X, bounds, encoder.train().to(device), head.train().to(device), source, noise)

    def _read_source(self, X, y):
        """Check the source; return its rows, and the positions of its labels."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: the "
                "source is labelled."
            )
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        if y.dtype.kind in "US":
            # Its width may be that of labels that were left out.
            y = np.array(y.tolist())
        check_classification_targets(y)
        self.classes_, classes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2 and y.dtype.kind in "if" and -1 in self.classes_:
            raise ValueError(
                "y holds -1 among other labels, which often stands for rows of the target. Give "
                "these as X_target; if -1 is a label, rename it."
            )
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class only, {self.classes_.tolist()}.")
        return X, classes

    def _find_bounds(self, X):
        if self.bounds is not None:
            return check_bounds(self.bounds, X.shape[1], "bounds")
        lower, upper = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        return lower, np.where(upper > lower, upper, lower + np.maximum(1, np.abs(lower)))

    def _try_augment(self, rows):
        if self._augment is None:
            return
        changed = self._augment(rows, torch.Generator().manual_seed(0))
        if getattr(changed, "shape", None) != rows.shape:
            raise ValueError(
                f"augment must return a tensor of rows of shape {tuple(rows.shape)}; got "
                f"{tuple(changed.shape) if hasattr(changed, 'shape') else type(changed).__name__}."
            )

    @property
    def _factory(self):
        return ENCODERS[self.network] if isinstance(self.network, str) else self.network

    def _read_target(self, X_target):
        X_target = take_whole(X_target)
        if X_target is None:
            return None
        X_target = take_rows(self, X_target, reset=False)
        if len(X_target) < 2:
            raise ValueError("X_target holds one row: n_samples = 1, and 2 are the least.")
        return X_target

    def _stay(self, start):
        """Train on the source alone, which costs nothing."""
        nothing = Certificate((), (), self.relation, self.accountant, self.delta)
        return self._train(start, nothing)

    def _train(self, start, certificate, target=None, **alignment):
        """Train on the source, and on public rows in place of the target's, if there are any."""
        self.n_iter_ = self.n_steps or self._default_n_steps(len(start.X))
        self.loss_curve_ = fit_adaptation(
            start.encoder,
            start.head,
            start.source,
            target,
            n_steps=self.n_iter_,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            augment=self._augment,
            generator=start.noise.torch_generator(),
            verbose=self.verbose,
            **alignment,
        )
        return self._finish(start, certificate)

    def _default_n_steps(self, n_source):
        # Changed at random, images are not soon learnt by heart.
        n_epochs = 20 if self._augment is None else 50
        return min(6000, max(200, n_epochs * n_source // self.batch_size))

    def _finish(self, start, certificate):
        self._encoder, self._head = start.encoder.eval().cpu(), start.head.eval().cpu()
        with report_spent_on_error(lambda: certificate):
            check_finite(*self._encoder.parameters(), *self._head.parameters())
        self.privacy_ = certificate.made_by(self)
        return self

    def _list_certified(self):
        yield from super()._list_certified()
        yield "n_target_", self.n_target_, self.privacy_.n_records or 0

    def transform(self, X):
        """Map rows of either domain to the representation.

        What this makes of private rows is as private as they are.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        return self._apply(X, lambda: self._encoder)

    @clears_frames()
    def _apply(self, X, find_network):
        """Apply a network to rows of either domain, block by block."""
        check_is_fitted(self, "privacy_")
        X = read_rows(self, X, reset=False)
        network = find_network()
        with torch.no_grad():
            blocks = [network(self._input(X[i : i + _BLOCK])) for i in range(0, len(X), _BLOCK)]
        return torch.cat(blocks).numpy().astype(X.dtype, copy=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.non_deterministic = True
        return tags


def refuse_persons(estimator, persons):
    """Say what to do with several target rows of a person, which have no price here."""
    if persons is not None:
        raise ValueError(
            f"{type(estimator).__name__} takes no persons: what it costs, with samples that are "
            "read again and again, or as the best of several fits, is known for one row of each. "
            "Fit a DPSWFlowSampler to the target with persons, and then "
            "DPSWDDomainAdapter().fit_to_sampler(X, y, sampler), which costs no more; or give one "
            "row of each person, and no persons."
        )
