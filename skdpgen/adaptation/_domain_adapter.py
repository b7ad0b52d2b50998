"""Adapt a representation to a private target domain."""

import warnings
from dataclasses import replace

import numpy as np
import torch
from dp_accounting import PoissonSampledDpEvent
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import resample
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch.nn.modules.batchnorm import _BatchNorm

from .._validation import (
    check_choice,
    check_finite,
    check_flag,
    check_positive,
    check_share,
    choose_device,
    list_refusals,
    undo_on_failure,
    warn_of_delta,
)
from ..accounting.accountants import ACCOUNTANTS, RELATIONS
from ..accounting.calibration import check_delta, check_epsilon
from ..accounting.certificate import Certificate, naming_what_was_spent
from ..accounting.events import SlicedGaussianDpEvent, gaussian_event, repeat
from ..accounting.figures import plain_numbers
from ..accounting.plan import repeated_plan
from ..base import list_assumptions
from ..formats.box import RowCodec, check_bounds
from ..generators import DPSWFlowSampler
from ..learners.adaptation import fit_adaptation, fit_to_released_rows
from ..networks import ENCODERS, build_encoder
from ..preprocessing import LowFrequencies
from ..privacy import Curator, NoiseSource, SlicedRowsMechanism
from ..privacy.noise import ASSUMED_OF_DIRECTIONS
from ..privacy.records import read_rows, take_rows
from ._augmentation import AUGMENTATIONS
from ._domains import Whole

__all__ = ["DPSWDDomainAdapter"]

# From so many target rows on, their own principal components are worth their price.
_MANY_ROWS = 1000
# Columns that a sketch can do with as they are; components of the source, of few target rows.
_FEW_COLUMNS, _SOURCE_COMPONENTS = 64, 32
# Frequencies of 28×28 images.
_FREQUENCIES = 14
# Synthetic target rows.
_FEWEST, _MOST = 500, 5000
_BLOCK = 10_000
_ASSUMED = (
    "the rows and labels of the source are public",
    "only the fitted map is covered: what it makes of private rows is as private as they are, and "
    "so is a classifier that is fitted on it",
    "the network maps each row on its own, and keeps none",
)


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


class DPSWDDomainAdapter(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A representation in which a public source and a private target look alike.

    The source is public and labelled; the target is private, and its labels are never asked for.
    By default, a slice sketch of the target rows is released once, with Gaussian noise (before it
    their second moments, if there are many columns and many rows: see `encoder`), and particles
    that started from source rows and have the same sketch stand in for them: synthetic
    target rows (see `DPSWFlowSampler`). A network and a classifier on top of it are then trained on
    the labelled source rows, while the squared sliced Wasserstein distance between both domains,
    and that between the means of their classes, as the classifier sees them, are kept small in the
    representation [1]_. All of that is post-processing: it costs no privacy, however long it takes.

    `transform` is one map of rows, for both domains::

        make_pipeline(DPSWDDomainAdapter(), LogisticRegression()).fit(
            X_source, y_source, dpswddomainadapter__X_target=X_target
        )

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget for the target. ``inf``: no noise, and the certificate says so.
    delta : float, default=1e-5
        Probability scale at which ε may fail; choose it well below 1 / n_target.
    relation : {"zero_out", "replace_one"}, default="zero_out"
        Which target data sets are neighbours: one record replaced by a null record that counts as
        absent, or by any other record. The number of records is public.
    accountant : {"pld", "rdp", "autodp"}, default="pld"
        What finds the noise and certifies it.
    bounds : None or (lower, upper), default=None
        Bounds of the features, numbers or arrays of shape (n_features,), to which rows of both
        domains are clipped. None: the least and the greatest value in the source.
    clip_norm : float, default=None
        Radius of target rows for a sketch, in the units after `bounds` and the encoder. None: the
        0.9-quantile of the norms of the source's.
    network : {"mlp", "conv28"} or callable, default="mlp"
        The representation: ``"mlp"``, two layers, of rows that are standardised by the source;
        ``"conv28"``, two convolutions, of 28×28 grey images in [0, 1]. A factory takes the number
        of features and `n_components`, and returns a torch module; by ``unit_input = True`` it says
        that it wants features in [0, 1]. It
        maps each row on its own; with ``release="rows"`` batch normalisation is refused.
    n_components : int, default=None
        Columns of the representation. None: 50, or 1280 for ``"conv28"``.
    n_projections : int, default=200
        Directions on which the domains are compared at each step.
    align_weight : float, default=0.1
        Weight of the squared sliced distance, summed over the columns of the representation.
    class_align_weight : float, default=0.1
        Weight of the squared distance between the means of the classes; of a sketch only.
    n_steps : int, default=None
        Steps. None: 20 times through the source, or 50 times if its images are changed at random,
        within [200, 6000]. With ``release="rows"``, private steps, which follow three tenths as
        many on the source alone; None: n_target / 20 within [30, 1000].
    batch_size : int, default=128
        Rows a step from each domain; with ``release="rows"``, those that are expected of the
        target.
    learning_rate : float, default=0.002
        Of Adam.
    augment : "auto", None, "affine" or callable, default="auto"
        For a sketch: how rows of both domains, which are public or synthetic, are changed at random
        at each step.
        ``"affine"``: square grey images are turned, scaled, sheared and shifted a little. A
        function takes a tensor of rows, as the network gets them, and a torch generator.
        ``"auto"``: ``"affine"`` for ``network="conv28"``, else None.
    release : {"sketch", "rows"}, default="sketch"
        What leaves the target: a slice sketch, once; or noisy projections of a fresh batch of
        encoded rows at each step, as in Algorithm 2 of [1]_, which takes many target rows.
    target_gradient : {"dp-sgd", "none"}, default="dp-sgd"
        For ``release="rows"``: whether the encoder also gets the gradient that passes through
        target rows, record by record clipped and noised, for half of the budget.
    grad_clip : float, default=1.0
        Radius of a record's part in that gradient.
    encoder : "auto", None, "dp-pca", object or (object, "dp-pca"), default="auto"
        Dimension reduction before the sketch, as for `DPSWFlowSampler`. Domains are compared by
        rows that went through it; the network classifies and maps rows as they are. ``"auto"``: of
        more than 64 columns, 64 principal components of the target, paid for by `encoder_share`, if
        there are 1000 target rows; else 32 of the source, which cost nothing. For ``"conv28"``,
        those of the target are in the 14×14 lowest frequencies.
    encoder_share : float, default=0.2
        Share of the budget, of Σ s⁻² over the noise multipliers s, that ``"dp-pca"`` gets.
    random_state : None, int or RandomState, default=None
        None: noise from the operating system. Anything else is for reproducing an experiment,
        **not a private release**: whoever has the seed can recompute the noise.
    device : str, default="auto"
        Where to compute: "cpu", "cuda", or "auto" for CUDA where there is one.
    verbose : int, default=0
        1 shows progress bars.
    strict : bool, default=False
        Whether to refuse target rows with a number that is not finite. A refusal is an exact answer
        about them, which ε does not cover, and the certificate says so. By default such a row
        counts as absent.

    Attributes
    ----------
    privacy_ : skdpgen.privacy.Certificate
        What was released of the target and what it costs.
    epsilon_ : float
        ε spent at `delta`; at most `epsilon`, and 0 without a target.
    sigma_ : float or None
        Standard deviation of the noise on the sketch, or on projections.
    target_sampler_ : DPSWFlowSampler or None
        What makes synthetic target rows, by ``target_sampler_.sample(n)``; of a sketch only.
    classes_ : ndarray of shape (n_classes,)
        Labels of the source.
    n_target_ : int
        Number of target rows, which is public.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` has string column names.
    n_iter_ : int
        Steps that were made; with ``release="rows"``, releases.
    loss_curve_ : list of float
        Loss of each step, on source rows and synthetic or released ones.

    Notes
    -----
    Algorithm 2 of [1]_ publishes a gradient that passes through raw target features, and scales
    rows by the largest norm in a private batch. Neither is a post-processing of noisy projections.
    Here nothing of a target row is used but what the certificate lists.

    **Pipelines.** Earlier steps are fitted on the source, and see the source only: `X_target` is
    handed to this step as it was given. Put the adapter first, or ask for the same public maps of
    the target by ``Pipeline(..., transform_input=["X_target"])``, with metadata routing on. Such
    maps must treat each row on its own.

    **Searches.** `private_search` has one price for all candidates. Else every fit pays anew: a
    grid search over c candidates and f folds costs as much as c·f + 1 fits, which an open
    `PrivacyBudget` adds up. A target of as many rows as X would be sliced by fold; wrap it in
    `Whole`. Scores on folds of the source are public.

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
    >>> adapter = DPSWDDomainAdapter(epsilon=5.0, delta=1e-4, random_state=0)
    >>> model = make_pipeline(adapter, LogisticRegression())
    >>> model = model.fit(X, y, dpswddomainadapter__X_target=X_target)
    >>> model.predict(X_target).shape, bool(adapter.epsilon_ <= 5.0)
    ((400,), True)
    """

    # With metadata routing on, pipelines hand it on without being asked.
    __metadata_request__fit = {"X_target": True}

    # Parameters that act on a sketch after it is released; those that released rows are priced by;
    # those that matter to a sketch only.
    _after_the_sketch = {
        "network",
        "n_components",
        "n_projections",
        "align_weight",
        "class_align_weight",
        "n_steps",
        "batch_size",
        "learning_rate",
        "augment",
    }
    _priced_by_the_row = {
        "network",
        "n_components",
        "n_projections",
        "n_steps",
        "batch_size",
        "target_gradient",
    }
    _of_a_sketch = {"augment", "class_align_weight", "clip_norm", "encoder", "encoder_share"}

    def __init__(
        self,
        epsilon=1.0,
        delta=1e-5,
        *,
        relation="zero_out",
        accountant="pld",
        bounds=None,
        clip_norm=None,
        network="mlp",
        n_components=None,
        n_projections=200,
        align_weight=0.1,
        class_align_weight=0.1,
        n_steps=None,
        batch_size=128,
        learning_rate=0.002,
        augment="auto",
        release="sketch",
        target_gradient="dp-sgd",
        grad_clip=1.0,
        encoder="auto",
        encoder_share=0.2,
        random_state=None,
        device="auto",
        verbose=0,
        strict=False,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.accountant = accountant
        self.bounds = bounds
        self.clip_norm = clip_norm
        self.network = network
        self.n_components = n_components
        self.n_projections = n_projections
        self.align_weight = align_weight
        self.class_align_weight = class_align_weight
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.augment = augment
        self.release = release
        self.target_gradient = target_gradient
        self.grad_clip = grad_clip
        self.encoder = encoder
        self.encoder_share = encoder_share
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.strict = strict

    def fit(self, X, y=None, *, X_target=None):
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
        with undo_on_failure(self), plain_numbers(self):
            return self._fit(X, y, X_target)

    def _fit(self, X, y, X_target):
        X, bounds, networks, noise = self._begin(X, y)
        X_target = self._read_target(X_target)
        if X_target is None:
            warnings.warn(
                "There is no X_target: the representation is that of the source, and nothing was "
                "adapted.",
                UserWarning,
                stacklevel=3,
            )
            self.target_sampler_, self.n_target_ = None, 0
            certificate = Certificate((), (), self.relation, self.accountant, self.delta)
            return self._train(X, networks, None, certificate, noise)
        self.n_target_ = len(X_target)
        if self.release == "rows":
            self.target_sampler_ = None
            return self._fit_to_rows(X, bounds, networks, X_target, noise)
        self.target_sampler_ = self._make_sampler(X, bounds, self.n_target_).fit(X_target)
        return self._train_on_samples(X, networks, noise)

    def _fit_to_sampler(self, X, y, sampler):
        """Fit to the source, and to what a sampler was fitted to: all is post-processing."""
        X, _, networks, noise = self._begin(X, y)
        self.target_sampler_, self.n_target_ = sampler, sampler.n_samples_
        return self._train_on_samples(X, networks, noise)

    def _begin(self, X, y):
        """Check parameters and the source, and make networks: what can fail before all releases.

        Returns
        -------
        X : array of shape (n_samples, n_features)
            Rows of the source.
        bounds : pair of arrays of shape (n_features,)
        networks : tuple
            See `_start`.
        noise : NoiseSource
        """
        self._check_params()
        X, codes = self._read_source(X, y)
        bounds, noise = self._find_bounds(X), NoiseSource(self.random_state, stream=2)
        return X, bounds, self._start(X, codes, bounds, noise), noise

    def _read_target(self, X_target):
        if isinstance(X_target, Whole):
            X_target = X_target.X_target
        if X_target is None:
            return None
        X_target = take_rows(self, X_target, reset=False)
        if len(X_target) < 2:
            raise ValueError("X_target holds one row: n_samples = 1, and 2 are the least.")
        return X_target

    def _read_source(self, X, y):
        """Check the source; return its rows, and the codes of its labels."""
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
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2 and y.dtype.kind in "if" and -1 in self.classes_:
            raise ValueError(
                "y holds -1 among other labels, which often stands for rows of the target. Give "
                "these as X_target; if -1 is a label, rename it."
            )
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class only, {self.classes_.tolist()}.")
        return X, codes

    def _find_bounds(self, X):
        if self.bounds is not None:
            return check_bounds(self.bounds, X.shape[1], "bounds")
        lower, upper = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        return lower, np.where(upper > lower, upper, lower + np.maximum(1, np.abs(lower)))

    def _make_sampler(self, X, bounds, n_target):
        """Return the sampler of synthetic target rows, in units that follow from the source."""
        encoder = self.encoder
        if isinstance(encoder, str) and encoder == "auto":
            encoder = self._choose_encoder(X, bounds, n_target)
        sampler = DPSWFlowSampler(
            self.epsilon,
            self.delta,
            relation=self.relation,
            accountant=self.accountant,
            bounds=bounds,
            encoder=encoder,
            encoder_share=self.encoder_share,
            random_state=self.random_state,
            device=self.device,
            verbose=self.verbose,
            strict=self.strict,
        )
        radius = self.clip_norm
        if radius is None:
            norms = np.linalg.norm(sampler._make_codec(X.shape[1]).encode(X), axis=1)
            radius = float(np.quantile(norms, 0.9)) or 1.0
        # What the sketch leaves open stays as it is in the source.
        n_starts = min(len(X), sampler._n_particles(n_target, 1))
        starts = resample(X, replace=False, n_samples=n_starts, random_state=0)
        return sampler.set_params(clip_norm=radius, init=starts.astype(np.float32))

    def _choose_encoder(self, X, bounds, n_target):
        if X.shape[1] <= _FEW_COLUMNS:
            return None
        if n_target >= _MANY_ROWS:
            if self.network == "conv28":
                return LowFrequencies(_FREQUENCIES).fit(X), "dp-pca"
            return "dp-pca"
        components = PCA(min(_SOURCE_COMPONENTS, *X.shape), random_state=0)
        return make_pipeline(StandardScaler(), components).fit(np.clip(X, *bounds))

    def _default_n_steps(self, n_source):
        # Changed at random, images are not soon learnt by heart.
        n_epochs = 20 if self._augment is None else 50
        return min(6000, max(200, n_epochs * n_source // self.batch_size))

    def _train_on_samples(self, X, networks, noise):
        """Sample target rows, train on them and the source, and take over the certificate."""
        sampler = self.target_sampler_
        target = sampler.sample(min(_MOST, max(_FEWEST, self.n_target_)))
        certificate = replace(
            sampler.privacy_, assumptions=(*_ASSUMED, *sampler.privacy_.assumptions)
        )
        return self._train(X, networks, target, certificate, noise)

    def _train(self, X, networks, target, certificate, noise):
        """Train on the source and on synthetic target rows, if there are any."""
        encoder, head, source = networks
        seen = None
        if target is not None:
            target, seen = (self._find_seen(rows).to(source[0]) for rows in (target, X))
            if torch.allclose(seen, source[0], atol=1e-5):
                seen = None
        self.n_iter_ = self.n_steps or self._default_n_steps(len(X))
        with naming_what_was_spent(lambda: certificate):
            self.loss_curve_ = fit_adaptation(
                encoder,
                head,
                source,
                target,
                seen=seen,
                align_weight=self.align_weight,
                class_align_weight=self.class_align_weight,
                n_projections=self.n_projections,
                n_steps=self.n_iter_,
                batch_size=self.batch_size,
                learning_rate=self.learning_rate,
                augment=self._augment,
                generator=noise.torch_generator(),
                verbose=self.verbose,
            )
        return self._finish(encoder, head, certificate)

    def _find_seen(self, X):
        """Map rows without what the release has not seen of the target's."""
        return self._input(self.target_sampler_._project(X))

    def _fit_to_rows(self, X, bounds, networks, X_target, noise):
        """Train on the source, and on releases of encoded target rows."""
        warn_of_delta(self.delta, self.n_target_, stacklevel=4)
        encoder, head, source = networks
        if any(isinstance(module, _BatchNorm) for module in encoder.modules()):
            raise ValueError(
                "network has batch normalisation, which mixes private rows; use GroupNorm or none, "
                "or release='sketch'."
            )
        n_columns, n_target = self._n_features_out, self.n_target_
        beside, rate = self._beside(n_columns), self._rate(n_target)
        self.n_iter_ = self._n_private_steps(n_target)
        plan = repeated_plan(
            SlicedRowsMechanism.name,
            lambda multiplier: self._step_event(multiplier, n_columns, n_target),
            self.n_iter_,
            self.epsilon,
            self.delta,
            relation=self.relation,
            accountant=self.accountant,
            sensitivity=SlicedRowsMechanism(n_columns).sensitivity(self.relation),
        )
        codec = RowCodec(X.shape[1], bounds=bounds)
        refusals = list_refusals(self.strict, X_target.dtype == object)
        with Curator(
            X_target,
            plan=plan,
            noise=noise,
            prepare=codec.encode,
            refuse=codec.refuse if self.strict else None,
            device=source[0].device,
            verbose=self.verbose,
        ) as curator:
            del X_target  # from here on only the curator holds the rows
            with naming_what_was_spent(curator.certificate):
                self.loss_curve_ = fit_to_released_rows(
                    encoder,
                    head,
                    source,
                    curator.release,
                    lambda rows: self._input.of_unit(rows / codec.unit),
                    align_weight=self.align_weight,
                    n_steps=self.n_iter_,
                    batch_size=round(rate * n_target),
                    learning_rate=self.learning_rate,
                    beside=beside,
                    grad_clip=self.grad_clip,
                    generator=noise.torch_generator(),
                    verbose=self.verbose,
                )
            assumed = list_assumptions(codec, refusals=refusals)
            certificate = curator.certificate((*_ASSUMED, *assumed, ASSUMED_OF_DIRECTIONS))
        return self._finish(encoder, head, certificate)

    def _event_function(self, n_features, n_classes, n_target):
        """Return what covers all releases of a fit, as a function of the noise multiplier."""
        if self.release == "sketch":
            # Shares of a sketch and of components add up to one Gaussian release.
            return gaussian_event
        n_columns = build_encoder(self._factory, n_features, self.n_components, n_classes, 0)[2]
        n_steps = self._n_private_steps(n_target)
        return lambda s: repeat(self._step_event(s, n_columns, n_target), n_steps)

    def _step_event(self, multiplier, n_columns, n_target):
        """Return the event of one release of rows."""
        rate, beside = self._rate(n_target), self._beside(n_columns)
        event = SlicedGaussianDpEvent(
            multiplier, n_columns, self.n_projections, orthogonal=True, beside=beside
        )
        return event if rate == 1 else PoissonSampledDpEvent(rate, event)

    def _beside(self, n_columns):
        return self.n_projections / n_columns if self.target_gradient == "dp-sgd" else 0.0

    def _rate(self, n_target):
        return min(1.0, self.batch_size / n_target)

    def _n_private_steps(self, n_target):
        return self.n_steps or min(1000, max(30, n_target // 20))

    def _start(self, X, codes, bounds, noise):
        """Return a fresh encoder, a head, and the source as they read it: rows and codes."""
        device = choose_device(self.device)
        self._input = _Input(X, bounds, standardise=not getattr(self._factory, "unit_input", False))
        encoder, head, self._n_features_out = build_encoder(
            self._factory, X.shape[1], self.n_components, len(self.classes_), noise.seed()
        )
        source = self._input(X).to(device), torch.as_tensor(codes, device=device)
        self._try_augment(source[0][:2])
        return encoder.train().to(device), head.train().to(device), source

    def _try_augment(self, rows):
        if self._augment is None:
            return
        changed = self._augment(rows, torch.Generator().manual_seed(0))
        if getattr(changed, "shape", None) != rows.shape:
            raise ValueError(
                f"augment must return a tensor of rows of shape {tuple(rows.shape)}; got "
                f"{tuple(changed.shape) if hasattr(changed, 'shape') else type(changed).__name__}."
            )

    def _finish(self, encoder, head, certificate):
        self._encoder, self._head = encoder.eval().cpu(), head.eval().cpu()
        with naming_what_was_spent(lambda: certificate):
            check_finite(*self._encoder.parameters(), *self._head.parameters())
        self.privacy_ = certificate
        self.epsilon_, self.sigma_ = certificate.epsilon, certificate.sigma
        return self

    @property
    def _factory(self):
        return ENCODERS[self.network] if isinstance(self.network, str) else self.network

    @property
    def _augment(self):
        augment = self.augment
        if isinstance(augment, str) and augment == "auto":
            augment = "affine" if self.network == "conv28" else None
        return AUGMENTATIONS[augment] if isinstance(augment, str) else augment

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

    def _apply(self, X, find_network):
        """Apply a network to rows of either domain, block by block."""
        check_is_fitted(self, "privacy_")
        X = read_rows(self, X, reset=False)
        network = find_network()
        with torch.no_grad():
            blocks = [network(self._input(X[i : i + _BLOCK])) for i in range(0, len(X), _BLOCK)]
        return torch.cat(blocks).numpy().astype(X.dtype, copy=False)

    def _check_params(self):
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        check_flag("strict", self.strict)
        check_choice("relation", self.relation, RELATIONS)
        check_choice("accountant", self.accountant, ACCOUNTANTS)
        check_choice("release", self.release, ["sketch", "rows"])
        check_choice("target_gradient", self.target_gradient, ["dp-sgd", "none"])
        if isinstance(self.network, str):
            check_choice("network", self.network, ENCODERS)
        elif not callable(self.network):
            raise ValueError(
                f"network must be one of {list(ENCODERS)} or a factory; got {self.network!r}."
            )
        if isinstance(self.augment, str):
            check_choice("augment", self.augment, ["auto", *AUGMENTATIONS])
        elif self.augment is not None and not callable(self.augment):
            raise ValueError(f"augment must be a function; got {self.augment!r}.")
        for name in ("n_components", "n_steps"):
            check_positive(name, getattr(self, name), whole=True, optional=True)
        for name in ("n_projections", "batch_size"):
            check_positive(name, getattr(self, name), whole=True)
        check_positive("clip_norm", self.clip_norm, optional=True, most=np.inf)
        if not (isinstance(self.encoder, str) and self.encoder == "auto"):
            DPSWFlowSampler(encoder=self.encoder)._check_params()
        check_positive("learning_rate", self.learning_rate)
        check_positive("grad_clip", self.grad_clip)
        check_share("encoder_share", self.encoder_share)
        for name in ("align_weight", "class_align_weight"):
            if getattr(self, name) != 0:
                check_positive(name, getattr(self, name))
        choose_device(self.device)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.non_deterministic = True
        return tags
