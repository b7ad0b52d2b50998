# SPDX-License-Identifier: BSD-3-Clause
"""Base of domain adapters: source validation, networks, training and the fitted map."""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch
from pandas.api.extensions import ExtensionDtype
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from .._process.isolation import isolated
from ..accounting.accountants import RELATIONS
from ..accounting.certificate import Certificate
from ..accounting.rounding import plain_numbers
from ..arrays.kind import check_bounds
from ..checks import factory_of, in_range, one_of, positive, tried, whole
from ..data.containers import as_array
from ..data.inputs import check_order, check_rows, read_rows
from ..data.record_functions import clears_frames
from ..exceptions import warn_caller
from ..learners.rehearsal import rehearse
from ..mechanisms.noise import NoiseSource
from ..networks import ENCODERS, build_encoder
from ..networks.generators import rehearsing
from ..params import (
    PRIVACY_CHECKS,
    Checked,
    DocumentedEstimator,
    check_finite,
    choose_device,
    fitting,
    parameters,
)
from ..saving.registry import savable
from ..saving.serialization import Certified
from ._domains import unwrap
from .learner import fit_adaptation

# Assumptions on certificates of adapters.
ASSUMED = (
    "the rows and labels of the source are public",
    "only the fitted map is covered: mapped private rows are as sensitive as the rows, and so is a "
    "classifier that is fitted on them",
    "the network maps each row on its own and stores none",
)
# Parameters that an adapter shares with its sampler, and a search with its candidates.
SHARED_PARAMETERS = (
    "epsilon",
    "delta",
    "relation",
    "accountant",
    "random_state",
    "device",
    "verbose",
    "strict",
)
# Rows that are mapped at once.
_BLOCK = 10_000
# Rows of the random source of an audit.
_AUDITED_SOURCE = 40


@dataclass(frozen=True)
class Start:
    """Public starting point of a fit.

    Attributes
    ----------
    X : array of shape (n_samples, n_features)
        Source rows.
    bounds : pair of arrays of shape (n_features,)
    encoder, head : torch.nn.Module
        The untrained representation, and an untrained classifier on it.
    source : tuple of tensors of shape (n_samples, n_inputs) and (n_samples,)
        Source rows as inputs of the encoder, and their classes.
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
    """Preprocessing of rows of either domain for the network.

    Rows are clipped to the bounds and mapped to [0, 1], or standardised by the source.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Source rows.
    bounds : pair of arrays of shape (n_features,)
    standardise : bool
    """

    def __init__(self, X, bounds, standardise):
        self.bounds = bounds
        self.mean, self.scale = 0.0, 1.0
        if standardise:
            rows = self(X).numpy()
            self.mean, deviations = rows.mean(axis=0), rows.std(axis=0)
            # Columns that hardly vary in the source are not amplified.
            typical = np.sqrt(np.mean(deviations**2))
            self.scale = np.hypot(deviations, 0.1 * typical or 1.0)

    def __call__(self, X):
        lower, upper = self.bounds
        # Clipped to bounds that the source or the user gives: a private row cannot leave their
        # range.
        return self.of_unit(torch.as_tensor((np.clip(X, lower, upper) - lower) / (upper - lower)))

    def of_unit(self, rows):
        """Map a tensor of features in [0, 1]."""
        mean, scale = (
            torch.as_tensor(part, device=rows.device) for part in (self.mean, self.scale)
        )
        return ((rows - mean) / scale).float()


@parameters
class BaseAdapter(
    Certified,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    Checked,
    DocumentedEstimator,
    metaclass=ABCMeta,
):
    """Base of domain adapters.

    Subclasses implement ``_adapt(start, X_target)``, which trains on the source and on releases of
    the target, and returns ``_finish(start, certificate)``. For searches they implement
    `event_function` and name their free and priced parameters.

    Attributes
    ----------
    free_parameters : set of str
        Parameters that act only after all releases: a search can vary them at no cost.
    priced_parameters : set of str
        Parameters that determine the privacy cost of a fit.
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

    # With metadata routing, pipelines pass it on by default.
    __metadata_request__fit = {"X_target": True}

    # Validators of parameters; bounds are checked against the source.
    _checks = {
        **PRIVACY_CHECKS,
        "relation": one_of(*RELATIONS),
        "device": lambda name, value: choose_device(value),
        "verbose": in_range(),
        "network": factory_of(ENCODERS),
        "n_components": whole(optional=True),
        "n_projections": whole(),
        "align_weight": in_range(),
        "n_steps": whole(optional=True),
        "batch_size": whole(),
        "learning_rate": positive(),
    }
    # Data augmentation; none by default.
    _augment = None

    def fit(self, X, y=None, *, X_target=None, persons=None):
        """Learn a common representation of both domains.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Public source rows.
        y : array-like of shape (n_samples,)
            Their labels.
        X_target : array-like or Whole of shape (n_target, n_features), default=None
            Private target rows. None: the representation is fitted to the source, with a warning.
            Cross-validation cuts rows that are as many as those of `X`: give ``Whole(X_target)``.
        persons : None
            Not supported; the error names alternatives for several rows per person.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For bad source data, shapes, dtypes or parameters, before anything is spent. For values
            of target rows that are refused (``strict=True``, or cells of dtype object that are no
            numbers); open budgets are then charged with the fit.
        BudgetExceededError
            If the fit exceeds an open `PrivacyBudget`; nothing is released.
        """
        refuse_persons(self, persons)
        with fitting(self):
            return self._fit(X, y, X_target)

    def _fit(self, X, y, X_target):
        start = self._start(X, y)
        X_target = self._read_target(X_target)
        if X_target is None:
            warn_caller(
                "X_target is None: the representation is fitted to the source, and nothing is "
                "adapted. Give X_target=..., for instance as a fit parameter of the pipeline.",
                UserWarning,
            )
            self.n_target_ = 0
            return self._fit_source(start)
        self.n_target_ = len(X_target)
        return self._adapt(start, X_target)

    def _fit_audited(self, data, seed):
        """Fit to the records of an audit as the target, with a random public source."""
        if data.keys() != {"X"}:
            raise ValueError("The target of an adapter has neither labels nor columns with names.")
        self.set_params(random_state=seed)
        generator, shape = np.random.default_rng(seed), (_AUDITED_SOURCE, data["X"].shape[1])
        lower, upper = (0, 1) if self.bounds is None else map(np.asarray, self.bounds)
        source = lower + generator.random(shape) * (upper - lower)
        self.fit(source, np.arange(len(source)) % 2, X_target=data["X"])

    def check_fit(self, X, y):
        """Raise the errors of `fit` about parameters and the source, at no cost."""
        # A copy: a check must leave no fitted attribute behind.
        copied = clone(self)
        with plain_numbers(copied):
            copied._start(X, y)

    @abstractmethod
    def event_function(self, n_features, n_classes, n_target):
        """Return a function from a noise multiplier to the event of all releases of a fit."""

    @abstractmethod
    def _adapt(self, start, X_target):
        """Train on the source and the target, and return `_finish(start, certificate)`."""

    def _start(self, X, y):
        """Check parameters and the source, and build networks, before any release."""
        self._check_params()
        X, classes = self._read_source(X, y)
        # Stream 2: a sampler with the same seed has its own streams, and noise must not be reused.
        bounds, noise = self._find_bounds(X), NoiseSource(self.random_state, stream=2)
        device = choose_device(self.device)
        # Means and deviations are those of the source, which is public.
        self._input = _Input(X, bounds, standardise=not getattr(self._factory, "unit_input", False))
        rows = self._input(X)
        source = rows.to(device), torch.as_tensor(classes, device=device)
        batch = rows[torch.arange(self.batch_size) % len(X)].to(device)
        with tried("network"):
            encoder, head, self._n_features_out = build_encoder(
                self._factory, X.shape[1], self.n_components, len(self.classes_), noise.seed()
            )
        if callable(self.network) or device.type != "cpu":
            self._rehearse(encoder.to(device), batch)
        self._try_augment(batch)
        return Start(X, bounds, encoder.train().to(device), head.train().to(device), source, noise)

    def _read_source(self, X, y):
        """Validate the source; return its rows, and the codes of its labels."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: the "
                "source is labelled."
            )
        check_order(X, y, "y")
        X, y = as_array(X), as_array(y)
        if isinstance(getattr(y, "dtype", None), ExtensionDtype):
            # scikit-learn reads nullable integers and booleans as floats.
            y = np.array(y.tolist())
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        if y.dtype.kind in "US":
            # The dtype's width may come from labels that are not in y.
            y = np.array(y.tolist())
        check_classification_targets(y)
        self.classes_, classes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2 and y.dtype.kind in "if" and -1 in self.classes_:
            raise ValueError(
                "y holds the label -1, which often marks target rows. Give these as X_target; if "
                "-1 is a class, rename it."
            )
        if len(self.classes_) < 2:
            raise ValueError(f"y must hold at least 2 classes; got {self.classes_.tolist()}.")
        return X, classes

    def _find_bounds(self, X):
        if self.bounds is not None:
            return check_bounds(self.bounds, X.shape[1], "bounds")
        lower, upper = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        # A constant column gets a range as well, since features are divided by it.
        return lower, np.where(upper > lower, upper, lower + np.maximum(1, np.abs(lower)))

    def _rehearse(self, encoder, rows):
        """Raise an error if the network cannot be trained and used, by public rows."""
        rehearse(encoder, rows, self._n_features_out)

    def _try_augment(self, rows):
        if self._augment is None:
            return
        # Tried on public rows, since an error after the release would waste its ε.
        with rehearsing("augment"), torch.no_grad():
            changed = self._augment(rows.clone(), torch.Generator().manual_seed(0))
        is_tensor = isinstance(changed, torch.Tensor)
        if not is_tensor or changed.shape != rows.shape or changed.dtype != rows.dtype:
            found = type(changed).__name__
            if is_tensor:
                found = f"{changed.dtype} numbers of shape {tuple(changed.shape)}"
            raise ValueError(
                f"augment must return a tensor of {rows.dtype} numbers of shape "
                f"{tuple(rows.shape)}, as it is given; got {found}."
            )
        if not changed.isfinite().all():
            raise ValueError("augment gives NaN or infinity for rows of the source.")

    @property
    def _factory(self):
        return ENCODERS[self.network] if isinstance(self.network, str) else self.network

    def _read_target(self, X_target):
        X_target = unwrap(X_target)
        if X_target is None:
            return None
        X_target = check_rows(self, X_target, reset=False)
        if len(X_target) < 2:
            raise ValueError("X_target must have at least 2 rows; got n_samples = 1.")
        return X_target

    def _fit_source(self, start):
        """Train on the source alone, which costs nothing."""
        # No release: its ε is 0.
        empty = Certificate((), (), self.relation, self.accountant, self.delta)
        return self._train(start, empty)

    def _train(self, start, certificate, target=None, **alignment):
        """Train on the source, and on public stand-ins for target rows, if there are any."""
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
        # Augmented images take more epochs to overfit.
        n_epochs = 20 if self._augment is None else 50
        return min(6000, max(200, n_epochs * n_source // self.batch_size))

    def _finish(self, start, certificate):
        self._encoder, self._head = start.encoder.eval().cpu(), start.head.eval().cpu()
        check_finite(*self._encoder.parameters(), *self._head.parameters())
        self.privacy_ = certificate.made_by(self)
        return self

    def _list_certified(self):
        yield from super()._list_certified()
        # The certificate counts the private records; without a release it has none.
        yield "n_target_", self.n_target_, self.privacy_.n_records or 0

    def transform(self, X):
        """Map rows of either domain to the representation.

        Mapped private rows are as sensitive as the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        return self._apply(X, lambda: self._encoder)

    @clears_frames()
    @isolated()
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
    """Raise ValueError for several rows per person, whose cost is not known here."""
    if persons is not None:
        raise ValueError(
            f"{type(estimator).__name__} does not take persons: its cost is known only for one row "
            "per person. Fit a DPSWFlowSampler to the target with persons, and then "
            "DPSWDDomainAdapter().fit_to_sampler(X, y, sampler), at no further cost; or give one "
            "row per person, without persons."
        )
