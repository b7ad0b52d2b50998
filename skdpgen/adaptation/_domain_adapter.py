# SPDX-License-Identifier: BSD-3-Clause
"""Domain adaptation by synthetic target rows."""

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from inspect import signature

import numpy as np
import torch
from pandas.api.extensions import ExtensionDtype
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import resample
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from .._process.isolation import isolated
from ..accounting.accountants import RELATIONS
from ..accounting.calibration import find_delta
from ..accounting.certificate import Certificate
from ..accounting.previews import preview
from ..accounting.rounding import plain_numbers
from ..accounting.spending import keep_nothing, report_spent_on_error
from ..arrays.box import BoxFormat
from ..arrays.image_layout import ImageLayout
from ..arrays.layout import check_bounds
from ..arrays.numbers import match_names
from ..base import BaseGenerator, CentralGenerator
from ..checks import check_choice, factory_of, in_range, one_of, positive, tried, whole
from ..data.containers import as_array
from ..data.inputs import check_rows, flatten_images, read_rows
from ..data.labels import check_order
from ..data.record_functions import clears_frames
from ..encoders import PrivatePCA, split_encoder
from ..exceptions import warn_caller
from ..generators._sliced_flow import DPSWFlowSampler
from ..learners.rehearsal import rehearse
from ..mechanisms.noise import NoiseSource
from ..networks.encoders import ENCODERS, build_encoder
from ..networks.generators import find_shaped, rehearsing
from ..params import (
    RUNNING_CHECKS,
    TakesSpecifications,
    check_finite,
    choose_device,
    documented,
    fitting,
)
from ..preprocessing._low_frequencies import LowFrequencies
from ..quality import advising_on_few_rows
from ..registry import savable
from ..saving.serialization import Certified
from ._domains import split_domains, warn_of_steps_before
from .learner import AUGMENTATIONS, fit_adaptation

# Assumptions on certificates of adapters.
_ASSUMED = (
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
# Rows of the made-up source of an audit or a preview.
_N_MADE_UP = 40


# Parameters that a sampler leaves at their defaults, or sets to the adapter's values.
_SET_BY_ADAPTER = ("epsilon", "delta", "relation", "random_state")
# Fields in which an adapter's certificate differs from its sampler's.
_OWN = ("assumptions", "notes", "provenance")
# Least number of target rows for private principal components (see the adaptation benchmark).
_MANY_ROWS = 1000
# Most columns without dimension reduction; principal components of the source for few target rows.
_FEW_COLUMNS, _SOURCE_COMPONENTS = 64, 32
# Frequencies per axis of 28×28 images.
_FREQUENCIES = 14
# Least and largest number of synthetic target rows.
_FEWEST, _MOST = 500, 5000


@dataclass(frozen=True)
class _Start:
    """Public starting point of a fit: the source, and untrained networks."""

    # Shape (n_samples, n_features): source rows.
    X: np.ndarray
    # Two arrays of shape (n_features,).
    bounds: tuple
    # The untrained representation, and an untrained classifier on it.
    encoder: nn.Module
    head: nn.Module
    # Source rows as inputs of the encoder, and their classes.
    source: tuple
    noise: NoiseSource


@savable
class _Input:
    """Preprocessing of rows of either domain for the network, by those of the source.

    Rows are clipped to the bounds and mapped to [0, 1], or standardised by the source; channels of
    images come first.
    """

    def __init__(self, X, bounds, standardise, layout):
        self.bounds, self.layout = bounds, layout
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
        unit = self.layout.arrange((np.clip(X, lower, upper) - lower) / (upper - lower))
        return torch.as_tensor((unit - self.mean) / self.scale).float()


def _check_sampler(name, value):
    if value is not None and not isinstance(value, BaseGenerator):
        raise ValueError(f"{name} must be None or a generator of skdpgen; got {value!r}.")


def _check_augment(name, value):
    if isinstance(value, str):
        check_choice(name, value, ["auto", *AUGMENTATIONS])
    elif value is not None and not callable(value):
        raise ValueError(f"{name} must be a function; got {value!r}.")


@documented
class DPSWDDomainAdapter(
    Certified,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    TakesSpecifications,
    BaseEstimator,
):
    """Unsupervised domain adaptation from a public source to a private target.

    The source is public and labelled; the target is private, and its labels are not used. A sampler
    learns synthetic target rows, which replace the private ones. By default it is a
    `DPSWFlowSampler`: a slice sketch of the target is released once, with Gaussian noise, and
    particles are moved from source rows until they match the sketch. A network and a classifier on
    top of it are then trained on the labelled source, with penalties on the squared sliced
    Wasserstein distance between both domains, and on that between the means of their predicted
    classes, in the representation [1]_. Training is post-processing and costs no privacy.

    `transform` maps rows of both domains in the same way::

        make_pipeline(DPSWDDomainAdapter(), LogisticRegression()).fit(
            X_source, y_source, dpswddomainadapter__X_target=X_target
        )

    Parameters
    ----------
    %(privacy)s
    %(running)s
    bounds : None or (lower, upper), default=None
        Bounds of the features, numbers or arrays of shape (n_features,), to which rows of both
        domains are clipped. None: the least and the greatest value in the source.
    network : {"mlp", "conv", "conv28"} or callable, default="mlp"
        The representation: ``"mlp"``, two layers for rows that are standardised by the source;
        ``"conv28"``, two convolutions for 28×28 grey images, and ``"conv"`` for others. A factory
        takes the number of features and `n_components`, and returns a torch module that maps each
        row on its own; its attribute ``unit_input = True`` requests features in [0, 1].
    n_components : int, default=None
        Columns of the representation. None: 50, or up to 1280 for convolutions.
    n_projections : int, default=200
        Directions per step of the sliced distance.
    align_weight : float, default=0.1
        Weight of the squared sliced distance, summed over the columns of the representation.
    n_steps : int, default=None
        Training steps. None: 20 epochs of the source, or 50 with augmentation, within 200 to 6000
        steps.
    batch_size : int, default=128
        Rows per step from each domain.
    learning_rate : float, default=0.002
        Learning rate of Adam.
    sampler : generator, default=None
        Generator of synthetic target rows. It is cloned, and gets the adapter's `epsilon`, `delta`,
        `relation`, `accountant`, `random_state`, `device`, `verbose` and `strict`. Raises
        ValueError if it sets its own `epsilon`, `delta` or `relation` to a different value, or a
        `random_state` where the adapter has none. Its `bounds`, `clip_norm`, `init` and `encoder`,
        where they are left at their defaults, follow from the source: the adapter's bounds; the
        0.9-quantile of the norms of encoded source rows; source rows; and an encoder that depends
        on sizes: none for up to 64 columns, 64 private principal components of the target for 1000
        target rows or more, otherwise 32 components of the source, which cost nothing. For
        ``network="conv28"``, the components of the target are restricted to the 14×14 lowest
        frequencies. None: a `DPSWFlowSampler`.
    class_align_weight : float, default=0.1
        Weight of the squared distance between the means of the classes.
    augment : "auto", None, "affine" or callable, default="auto"
        Augmentation of public and synthetic rows at each step. ``"affine"``: images are rotated,
        scaled, sheared and shifted slightly. A function takes a tensor of inputs of the
        network, and a torch generator.
        ``"auto"``: ``"affine"`` for networks with convolutions by name, else None.

    Attributes
    ----------
    %(adapted)s
    sigma_ : float or None
        Standard deviation of the noise on the sampler's release; None without a target.
    target_sampler_ : generator or None
        Fitted generator of synthetic target rows; None without a target.
    %(n_features_in_)s
    %(record_shape_in_)s
    %(feature_names_in_)s
    n_iter_ : int
        Number of training steps.
    loss_curve_ : list of float
        Loss of each step, on source and synthetic rows.

    Notes
    -----
    Target rows are used only through the releases that the certificate lists. If the sampler has a
    method ``project``, as `DPSWFlowSampler` has, domains are compared after rows are projected on
    the subspace that its release covers, and the classifier learns from projected and unprojected
    source rows.

    **Pipelines.** Earlier steps are fitted to the source; `X_target` reaches this step unchanged,
    with a warning, unless it is in `transform_input`, with metadata routing enabled. Then they must
    map each row on its own. `PrivateSearch` maps the target by itself, and checks that.

    **Searches.** `PrivateSearch` has one cost for all candidates. In a grid search each fit costs,
    c·f + 1 for c candidates and f folds, which an open `PrivacyBudget` adds up. Wrap the target in
    `Whole`: cross-validation would slice one with as many rows as X. Scores on folds of the source
    are public.

    References
    ----------
    .. [1] Rakotomamonjy & Ralaivola, "Differentially Private Sliced Wasserstein Distance", ICML
       2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdpgen import DPSWDDomainAdapter
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=400)
    >>> X = rng.normal(size=(400, 2)) + np.c_[4 * y, 0 * y]
    >>> X_target = X[:, ::-1] + 1.0
    >>> adapter = DPSWDDomainAdapter(epsilon=5.0, delta=1e-4, n_steps=20, random_state=0)
    >>> model = make_pipeline(adapter, LogisticRegression())
    >>> model = model.fit(X, y, dpswddomainadapter__X_target=X_target)
    >>> model.predict(X_target).shape, bool(adapter.epsilon_ <= 5.0)
    ((400,), True)
    """

    # With metadata routing, pipelines pass it on by default.
    __metadata_request__fit = {"X_target": True, "sample_domain": UNUSED}

    _shorthands = {"sampler": {None: DPSWFlowSampler}}
    # Validators of parameters; bounds are checked against the source.
    _checks = {
        **RUNNING_CHECKS,
        "relation": one_of(*RELATIONS),
        "network": factory_of(ENCODERS),
        "n_components": whole(optional=True),
        "n_projections": whole(),
        "align_weight": in_range(),
        "n_steps": whole(optional=True),
        "batch_size": whole(),
        "learning_rate": positive(),
        "sampler": _check_sampler,
        "class_align_weight": in_range(),
        "augment": _check_augment,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        relation: str = "zero_out",
        accountant: str = "pld",
        random_state: object = None,
        device: str = "auto",
        verbose: int = 0,
        strict: bool = False,
        bounds: Sequence | None = None,
        network: Callable | str = "mlp",
        n_components: int | None = None,
        n_projections: int = 200,
        align_weight: float = 0.1,
        n_steps: int | None = None,
        batch_size: int = 128,
        learning_rate: float = 0.002,
        sampler: object = None,
        class_align_weight: float = 0.1,
        augment: Callable | str | None = "auto",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.strict = strict
        self.bounds = bounds
        self.network = network
        self.n_components = n_components
        self.n_projections = n_projections
        self.align_weight = align_weight
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.sampler = sampler
        self.class_align_weight = class_align_weight
        self.augment = augment

    def _check_params(self):
        super()._check_params()
        if self.sampler is None:
            return
        self.sampler._check_params()
        given = self.sampler.get_params(deep=False)
        names = given.keys() & set(_SET_BY_ADAPTER) - _list_defaults(self.sampler)
        if self.random_state is not None:
            # Meta-estimators of scikit-learn give every nested estimator a seed of its own.
            names -= {"random_state"}
        for name in names:
            # A sampler that asks for something else would be overruled without a word.
            if not _is_same(given[name], own := getattr(self, name)):
                raise ValueError(
                    f"sampler has {name}={given[name]!r}, but the adapter has {own!r}. Set {name} "
                    "of the adapter, which passes it to the sampler."
                )

    @property
    def free_parameters(self):
        """Names of the parameters that act on synthetic rows, so that varying them is free."""
        # Bounds and the sampler determine the release itself.
        return set(self.get_params(deep=False)) - {"sampler", "bounds", *SHARED_PARAMETERS}

    def fit(self, X, y=None, *, X_target=None, sample_domain=None, persons=None):
        """Learn a common representation of both domains.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or images
            Public source rows; with `sample_domain`, the rows of both domains.
        y : array-like of shape (n_samples,)
            Their labels. Those of target rows are not read.
        X_target : array-like or Whole of shape (n_target, n_features), or images, default=None
            Private target rows. None: the representation is fitted to the source, with a warning.
            Cross-validation cuts rows that are as many as those of `X`: give ``Whole(X_target)``.
        sample_domain : array-like of int of shape (n_samples,), default=None
            In place of `X_target`, the public domain of each row of `X`, as in skada: positive for
            the source, negative for the target. Pipelines and searches of scikit-learn would let
            other steps and scores read the target, and raise ValueError.
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
            return self._fit(*split_domains(X, y, X_target, sample_domain))

    def _fit(self, X, y, X_target):
        start = self._start(X, y)
        if X_target is None:
            warn_caller(
                "X_target is None: the representation is fitted to the source, and nothing is "
                "adapted. Give X_target=..., for instance as a fit parameter of the pipeline.",
                UserWarning,
            )
            self.n_target_, self.target_sampler_ = 0, None
            # No release: its ε is 0.
            delta = find_delta(self.delta, 1)
            empty = Certificate((), (), self.relation, self.accountant, delta)
            return self._train(start, empty)
        X_target = check_rows(self, X_target, reset=False)
        if len(X_target) < 2:
            raise ValueError("X_target must have at least 2 rows; got n_samples = 1.")
        self.n_target_ = len(X_target)
        warn_of_steps_before(DPSWDDomainAdapter)
        return self._adapt(start, X_target)

    def _preview(self, n_samples, n_features, n_classes):
        """Price a fit to a target of a size, with a made-up source; see `skdpgen.preview`."""
        self._check_params()
        copied = clone(self)
        copied._layout = ImageLayout.of(n_features)
        source, bounds = self._make_source(n_features, 0)
        planned = copied._make_sampler(source, bounds, n_samples)._preview(n_samples, n_features, 1)
        assumptions = (*_ASSUMED, *planned.assumptions)
        return replace(planned, assumptions=assumptions).made_by(self)

    def fit_to_sampler(self, X, y, sampler):
        """Learn a common representation of the source and of a fitted sampler's target.

        The cost is that of the sampler, whose certificate is adopted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Public source rows.
        y : array-like of shape (n_samples,)
            Their labels.
        sampler : generator
            Fitted to target rows, such as another adapter's `target_sampler_`.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For bad parameters or data.
        """
        if not isinstance(sampler, BaseGenerator):
            raise ValueError(
                "sampler must be a fitted generator of skdpgen, such as target_sampler_; got "
                f"{type(sampler).__name__}."
            )
        check_is_fitted(sampler, "privacy_")
        with fitting(self):
            start = self._start(X, y)
            self.n_target_ = sampler.n_samples_
            return self._train_on_samples(start, sampler)

    def _fit_audited(self, data, seed):
        """Fit to the records of an audit as the target, with a random public source."""
        if data.keys() != {"X"}:
            raise ValueError("The target of an adapter has neither labels nor columns with names.")
        self.set_params(random_state=seed)
        source, _ = self._make_source(data["X"].shape[1], seed)
        self.fit(source, np.arange(len(source)) % 2, X_target=data["X"])

    def _make_source(self, n_features, seed):
        """Return a made-up public source within the bounds, and these."""
        bounds = check_bounds((0, 1) if self.bounds is None else self.bounds, n_features, "bounds")
        rng = np.random.default_rng(seed)
        return rng.uniform(*bounds, (_N_MADE_UP, n_features)), bounds

    def check_fit(self, X, y):
        """Raise the errors of `fit` about parameters and the source, at no cost."""
        # A copy: a check must leave no fitted attribute behind.
        copied = clone(self)
        with plain_numbers(copied):
            copied._start(X, y)

    def _start(self, X, y):
        """Check parameters and the source, and build networks, before any release."""
        self._check_params()
        X, classes = self._read_source(X, y)
        # Stream 2: a sampler with the same seed has its own streams, and noise must not be reused.
        bounds, noise = self._find_bounds(X), NoiseSource(self.random_state, stream=2)
        device = choose_device(self.device)
        # Means and deviations are those of the source, which is public.
        factory = find_shaped(self.network, self._layout, ENCODERS)
        standardise = not getattr(factory, "unit_input", False)
        self._input = _Input(X, bounds, standardise, self._layout)
        rows = self._input(X)
        source = rows.to(device), torch.as_tensor(classes, device=device)
        batch = rows[torch.arange(self.batch_size) % len(X)].to(device)
        with tried("network"):
            sizes = X.shape[1], self.n_components, len(self.classes_)
            made = build_encoder(factory, *sizes, noise.seed())
            encoder, head, self._n_features_out = made
        if callable(self.network) or device.type != "cpu":
            rehearse(encoder.to(device), batch, self._n_features_out)
        self._try_augment(batch)
        return _Start(X, bounds, encoder.train().to(device), head.train().to(device), source, noise)

    def _read_source(self, X, y):
        """Validate the source; return its rows, and the codes of its labels."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: the "
                "source is labelled."
            )
        check_order(X, y, "y")
        X, y = flatten_images(self, X, reset=True), as_array(y)
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
                "y holds the label -1, which often marks target rows. Give these as X_target, or "
                "give sample_domain; if -1 is a class, rename it."
            )
        if len(self.classes_) < 2:
            raise ValueError(f"y must hold at least 2 classes; got {self.classes_.tolist()}.")
        shape = getattr(self, "record_shape_in_", None)
        self._layout = ImageLayout.of(X.shape[1], record_shape=shape)
        return X, classes

    def _find_bounds(self, X):
        if self.bounds is not None:
            return check_bounds(self.bounds, X.shape[1], "bounds", self._layout.record_shape)
        lower, upper = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        # A constant column gets a range as well, since features are divided by it.
        return lower, np.where(upper > lower, upper, lower + np.maximum(1, np.abs(lower)))

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
    def _augment(self):
        augment = self.augment
        if isinstance(augment, str) and augment == "auto":
            augment = "affine" if self.network in ("conv", "conv28") else None
        if not isinstance(augment, str):
            return augment
        if self._layout.image_shape is None:
            raise ValueError(f"augment={augment!r} is for images: give X of their shape.")
        return partial(AUGMENTATIONS[augment], shape=self._layout.image_shape)

    def _adapt(self, start, X_target):
        sampler = self._make_sampler(start.X, start.bounds, self.n_target_)
        if X_target.dtype != object:
            # Synthetic rows have the names, too; as columns of objects rows would be refused.
            X_target = match_names(self, X_target)
        # Cross-validation cuts a target that happens to have as many rows as the source.
        is_cut = self.n_target_ == len(start.X)
        advice = "If cross-validation has cut X_target, give Whole(X_target)." if is_cut else ""
        certificate = partial(getattr, sampler, "privacy_", None)
        with report_spent_on_error(certificate, partial(self._keep, sampler)):
            with advising_on_few_rows(advice):
                sampler.fit(X_target)
            return self._train_on_samples(start, sampler)

    def _keep(self, sampler):
        """Keep the sampler of a failed fit, if it has released; see `report_spent_on_error`."""
        if not hasattr(sampler, "release_"):
            return keep_nothing()
        self.target_sampler_, published = sampler, sampler.release_.published
        fitted = "adapter.target_sampler_" if hasattr(sampler, "privacy_") else "that sampler"
        return published, f"adapter.fit_to_sampler(X, y, {fitted}) goes on at no cost."

    def _make_sampler(self, X, bounds, n_target):
        """Return the unfitted sampler, with defaults that follow from the source."""
        # A clone: the given sampler stays unfitted, as meta-estimators of scikit-learn leave it.
        sampler = DPSWFlowSampler() if self.sampler is None else clone(self.sampler)
        defaults = _list_defaults(sampler)
        shared = sampler.get_params(deep=False).keys() & set(SHARED_PARAMETERS)
        sampler.set_params(**{name: getattr(self, name) for name in shared})
        if "bounds" in defaults:
            sampler.set_params(bounds=bounds)
        if "image_shape" in defaults and self._layout.is_told:
            sampler.set_params(image_shape=self._layout.record_shape)
        is_central = isinstance(sampler, CentralGenerator)
        if is_central and "encoder" in defaults:
            sampler.set_params(encoder=self._choose_encoder(sampler, X, bounds, n_target))
        # Raise for bad parameters before anything is spent.
        preview(sampler, n_target, X.shape[1])
        if is_central and "clip_norm" in defaults:
            # The radius is the 90% quantile of norms of the source, as those of private rows are
            # unknown.
            public, _ = split_encoder(sampler.encoder)
            format = BoxFormat(X.shape[1], bounds=sampler.bounds, encoder=public)
            norms = np.linalg.norm(format.encode(X), axis=1)
            sampler.set_params(clip_norm=float(np.quantile(norms, 0.9)) or 1.0)
        if "init" in defaults:
            # Features that the release does not determine keep the source's distribution.
            n_starts = min(len(X), sampler.n_particles or max(_FEWEST, n_target // 2))
            # A fixed seed: the choice among public rows needs no secret.
            starts = resample(X, replace=False, n_samples=n_starts, random_state=0)
            sampler.set_params(init=starts.astype(np.float32))
        return sampler

    def _choose_encoder(self, sampler, X, bounds, n_target):
        """Return the encoder that ``"auto"`` stands for, given the source."""
        # The encoder follows from the source and public sizes, so that the choice reveals nothing.
        if X.shape[1] <= _FEW_COLUMNS or not sampler._takes_components:
            return None
        if n_target >= _MANY_ROWS:
            if self.network == "conv28":
                return [FrozenEstimator(LowFrequencies(_FREQUENCIES).fit(X)), PrivatePCA()]
            return PrivatePCA()
        components = PCA(min(_SOURCE_COMPONENTS, *X.shape), random_state=0)
        public = make_pipeline(StandardScaler(), components).fit(np.clip(X, *bounds))
        return FrozenEstimator(public)

    def _train_on_samples(self, start, sampler):
        """Train on the source and on synthetic target rows, and adopt the certificate."""
        self.target_sampler_, rows = sampler, start.source[0]
        certificate = replace(
            sampler.privacy_, assumptions=(*_ASSUMED, *sampler.privacy_.assumptions)
        )
        # Sampling is post-processing: as many rows as training can use are free.
        synthetic = sampler.sample(min(_MOST, max(_FEWEST, self.n_target_)))
        # Labels of a sampler that has them are not used: the adaptation is unsupervised.
        if isinstance(synthetic, tuple):
            synthetic, _ = synthetic
        synthetic = read_rows(self, match_names(self, synthetic), reset=False)
        target, projected = (self._project(part).to(rows) for part in (synthetic, start.X))
        return self._train(
            start,
            certificate,
            target,
            masked=None if torch.allclose(projected, rows, atol=1e-5) else projected,
            align_weight=self.align_weight,
            class_align_weight=self.class_align_weight,
            n_projections=self.n_projections,
        )

    def _project(self, X):
        """Return inputs of the network, projected on the space of the sampler's release."""
        sampler = self.target_sampler_
        is_projected = hasattr(sampler, "project")
        return self._input(sampler.project(match_names(sampler, X)) if is_projected else X)

    def _train(self, start, certificate, target=None, **alignment):
        """Train on the source, and on public stand-ins for target rows, if there are any."""
        # Augmented images take more epochs to overfit.
        n_epochs = 20 if self._augment is None else 50
        n_steps = min(6000, max(200, n_epochs * len(start.X) // self.batch_size))
        self.loss_curve_ = fit_adaptation(
            start.encoder,
            start.head,
            start.source,
            target,
            n_steps=self.n_steps or n_steps,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            augment=self._augment,
            generator=start.noise.torch_generator(),
            verbose=self.verbose,
            **alignment,
        )
        self.n_iter_ = len(self.loss_curve_)
        self._encoder, self._head = start.encoder.eval().cpu(), start.head.eval().cpu()
        check_finite(*self._encoder.parameters(), *self._head.parameters())
        self.privacy_ = certificate.made_by(self)
        return self

    def _list_certified(self):
        sampler = self.target_sampler_
        if sampler is None:
            yield from super()._list_certified()
            # Without a release the certificate counts no record.
            yield "n_target_", self.n_target_, self.privacy_.n_records or 0
            return
        # The sampler, with its own parameters, made the releases.
        yield "n_target_", self.n_target_, sampler.n_samples_
        for name in (field.name for field in fields(Certificate)):
            if name not in _OWN:
                own, certified = getattr(self.privacy_, name), getattr(sampler.privacy_, name)
                yield f"{name} of target_sampler_", own, certified

    def _find_sigma(self):
        return self.target_sampler_.sigma_

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
        tags.input_tags.three_d_array = True
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


def _list_defaults(sampler):
    """Return the names of the parameters that a sampler has at their defaults."""
    declared = signature(type(sampler)).parameters
    return {
        name
        for name, value in sampler.get_params(deep=False).items()
        if _is_same(value, declared[name].default)
    }


def _is_same(value, other):
    """Whether parameter values are equal; other objects are compared by identity."""
    return value is other or (isinstance(value, numbers.Real | str) and value == other)
