"""Particles moved by a private sliced Wasserstein flow."""

import itertools
from functools import partial

import numpy as np
import torch
from sklearn.utils import check_array
from sklearn.utils.validation import _check_feature_names

from .._validation import check_positive, check_size
from ..learners.particles import Particles, draw_starts, fit_particles_to_sketch, flow_along_slices
from ..learners.rows import even_spread
from ..learners.tables import TableParticles, fit_to_tables
from ..privacy import SlicedRowsMechanism, TablesMechanism
from ..privacy.mechanisms.base import clip_rows
from ._sliced_generator import SlicedGenerator

__all__ = ["DPSWFlowSampler"]

# Particles, over all classes.
_FEWEST, _MOST = 500, 10_000
# For tables: particles a step.
_TABLE_BATCH_SIZE = 2000
# For "presample": records that are projected, at most; steps; and how many times as many directions
# are released as a step looks at.
_PRESAMPLED, _FREE_STEPS, _DIRECTIONS = 2000, 1500, 8


class DPSWFlowSampler(SlicedGenerator):
    """Particles moved, by a sliced Wasserstein flow, towards the private distribution.

    They start from noise, or from public rows (`init`).

    With ``release="sketch"`` the rows are read once: for every class, sums of sines and cosines of
    their projections on public random directions are released with Gaussian noise (the *slice
    sketch*). Particles then descend the squared distance between their sketch and the noisy one,
    until it is down to the known energy of the noise.

    The other releases are those of the DPSWflow paper [1]_. With ``"resample"`` (DPSWflow-r,
    Algorithm 1) each step projects a fresh random batch of rows on fresh directions, with noise on
    every number; particles follow the quantile maps between their own smoothed projections and
    these. With ``"presample"`` (DPSWflow, Algorithm 2) this is released once, on many directions,
    of which each step looks at a few, as often as one likes.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget. ``inf``: no noise, and the certificate says so.
    delta : float, default=1e-5
        Probability scale at which ε may fail; choose it well below 1 / n_samples.
    relation : {"zero_out", "replace_one"}, default="zero_out"
        Which data sets are neighbours: one record replaced by a null record that counts as
        absent, or by any other record. The number of records is public.
    accountant : {"pld", "rdp", "autodp"}, default="pld"
        What finds the noise and certifies it.
    bounds : None or (lower, upper), default=None
        Public bounds of the features, numbers or arrays of shape (n_features,). Features are
        clipped to them, mapped to [0, 1] and divided by √n_features; samples are mapped back.
        None: rows as they are.
    y_bounds : None or (lower, upper), default=None
        Public bounds of a numeric `y`.
    clip_norm : float, default=1.0
        Public radius, in the units after `bounds`. Each row is scaled down to it.
    classes : array-like, default=None
        The labels that `y` may hold. None: inferred from `y`, with a `PrivacyLeakWarning`.
    release : {"sketch", "resample", "presample"}, default="sketch"
        What leaves the data: a slice sketch, once; projected rows, at each step; or projected
        rows, once.
    sampling : {"poisson", "fixed"}, default="poisson"
        How rows are sampled: by independent coins, or a fixed number without replacement, which
        is accounted under ``relation="replace_one"`` only.
    n_projections : int, default=None
        Number of directions k. None: for a sketch 25 for each column of the rows (after the
        encoder), within [50, 2000]; for ``"resample"`` the root of the number of their columns,
        for each class, but at least 4; for ``"presample"`` 8 times as many.
    n_harmonics : int, default=None
        Harmonics on each slice of a sketch, at most 1000. None: 3 to 6, more where there is less
        noise.
    n_particles : int, default=None
        Number of particles, shared equally by the classes. None: n_samples / 2 within
        [500, 10000].
    init : array-like of shape (n_rows, n_features), default=None
        **Public** rows, somewhat like the private ones, that the particles of each class start
        from, in random order, again and again, each with a jitter of a tenth of their standard
        deviations. What a sketch leaves open stays as it is there. None: particles start from
        noise. Not for tables, nor with a numeric `y`.
    batch_size : int, default=None
        Expected records that are projected (q is capped at 1). None: for ``"resample"``
        0.75·n_samples·μ / √n_steps within [10, 500], where μ is 1 over the noise multiplier of a
        Gaussian mechanism at (ε, δ); for ``"presample"`` 2000. For a table's sketch: particles a
        step; None: 2000.
    n_steps : int, default=None
        For a sketch: largest number of steps; None: 2000, or 1000 for tables. For ``"resample"``:
        private steps; None: n_samples / 20 within [30, 3000]. For ``"presample"``: free steps;
        None: 1500.
    step_size : float, default=None
        For a sketch: the learning rate of Adam, in units of the particles' mean spread; None:
        0.05. For a table's sketch, of their logits; None: 0.03. Else h, the step of Euler and
        Maruyama; None: the number of columns over 10, since the drift is an average over
        directions, and so the smaller the more columns there are.
    diffusion : float, default=0.0
        λ: particles get √(2λh) of Gaussian noise at each step of a flow along projected rows.
        This regularises; no privacy is claimed from it.
    annealing : float, default=0.5
        For a flow along projected rows: the share of the steps, at the end, in which the step size
        falls linearly to 0.
    encoder : None, "dp-pca", object or (object, "dp-pca"), default=None
        Dimension reduction before the release. ``"dp-pca"``: principal components from noisy
        second moments, paid for by `encoder_share`; sensible from a few thousand rows on. An
        object, such as `Autoencoder`, has `transform` and `inverse_transform` and was fitted on
        public data; wrap it in scikit-learn's `FrozenEstimator` if the sampler is to be cloned, as
        searches do. A pair: principal components of what the object makes, such as
        `LowFrequencies`. Fewer columns have less noise in their components.
    encoder_share : float, default=0.2
        Share of the budget, of Σ s⁻² over the noise multipliers s, that ``"dp-pca"`` gets.
    n_components : int, default=None
        Components that ``"dp-pca"`` keeps. None: 64 for a sketch, else 30, or all if they are
        less.
    schema : Schema, default=None
        Public kinds, bounds and levels of the columns of a table. Then X is a DataFrame, and what
        a sketch releases are its *two-way tables*: for each pair of columns, how often their
        levels (or values near the knots of numbers and dates) occur together. Particles then hold
        probabilities of levels. `bounds`, `clip_norm`, `classes` and `encoder` are not for tables.
    infer : None or "private", default=None
        How to find bounds and categories that the schema leaves open, or those of columns that it
        lacks, or of all if there is none. None: not at all; such columns are refused.
        ``"private"``: by noisy histograms and counts, paid for by `infer_share`; see
        `DPSlicedWassersteinGenerator`.
    infer_share : float, default=0.2
        Share of the budget, of Σ s⁻² over the noise multipliers s, that ``infer="private"`` gets
        if something is open. Counts of categories also take a tenth of δ.
    random_state : None, int or RandomState, default=None
        None: noise from the operating system. Anything else is for reproducing an experiment,
        **not a private release**: whoever has the seed can recompute the noise.
    device : str, default="auto"
        Where to compute: "cpu", "cuda", or "auto" for CUDA where there is one.
    verbose : int, default=0
        1 shows a progress bar.
    strict : bool, default=False
        Whether to refuse bad records: with a label that is not declared, a number that is not
        finite, or a cell that is not as declared. A refusal is an exact answer about the rows,
        which ε does not cover, and the certificate says so. By default such a record counts as
        absent, and nothing tells which they are.

    Attributes
    ----------
    privacy_ : skdpgen.privacy.Certificate
        What was released and what it costs.
    schema_ : Schema
        The columns of the table, if there is one, with what was found of them.
    epsilon_ : float
        ε spent at `delta`; at most `epsilon`.
    sigma_ : float
        Standard deviation of the noise on the sums of the sketch, or on each projection of a row,
        for rows in the unit ball; on tables, of which a record adds a vector of norm 1.
    classes_ : ndarray of shape (n_classes,)
        If `y` holds classes.
    class_probabilities_ : ndarray of shape (n_classes,)
        Noisy frequencies of the classes.
    n_samples_ : int
        Number of rows, which is public.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` has string column names.
    n_iter_ : int
        Steps that were made.
    loss_curve_ : list of float
        At each step, an estimate from releases alone: for a sketch the squared distance to the
        noisy sketch per slice, of the class that took most steps; else the mean square of the
        drift.

    Notes
    -----
    `sample` draws particles in random order, again and again if more rows are asked for than there
    are particles, each time with a Gaussian jitter of a tenth of the standard deviations of their
    class (the smoothed bootstrap). Particles start from noise or from public rows, and whatever
    moves them is a release: none is a record.

    Releases and their costs are those of `DPSlicedWassersteinGenerator`. Rows that were released
    once can be used as often as one likes, and cost what a single step does. The paper composes the
    directions of ``"presample"`` by a bound on the sensitivity that holds with probability 1 - δ/2;
    here the law of the sensitivity is used as it is, which needs much less noise.

    References
    ----------
    .. [1] Sebag, Pydi, Franceschi, Rakotomamonjy, Gartrell, Atif & Allauzen, "Differentially
       Private Gradient Flow based on the Sliced Wasserstein Distance", 2023.
    .. [2] Liutkus, Şimşekli, Majewski, Durmus & Stöter, "Sliced-Wasserstein Flows", ICML 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdpgen import DPSWFlowSampler
    >>> X, y = load_iris(return_X_y=True)
    >>> sampler = DPSWFlowSampler(
    ...     epsilon=5.0, bounds=(0, 8), classes=[0, 1, 2], random_state=0
    ... ).fit(X, y)
    >>> X_synthetic, y_synthetic = sampler.sample(100)
    >>> X_synthetic.shape, bool(sampler.epsilon_ <= 5.0)
    ((100, 4), True)
    """

    def __init__(
        self,
        epsilon=1.0,
        delta=1e-5,
        *,
        relation="zero_out",
        accountant="pld",
        bounds=None,
        y_bounds=None,
        clip_norm=1.0,
        classes=None,
        release="sketch",
        sampling="poisson",
        n_projections=None,
        n_harmonics=None,
        n_particles=None,
        init=None,
        batch_size=None,
        n_steps=None,
        step_size=None,
        diffusion=0.0,
        annealing=0.5,
        encoder=None,
        encoder_share=0.2,
        n_components=None,
        schema=None,
        infer=None,
        infer_share=0.2,
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
        self.y_bounds = y_bounds
        self.clip_norm = clip_norm
        self.classes = classes
        self.release = release
        self.sampling = sampling
        self.n_projections = n_projections
        self.n_harmonics = n_harmonics
        self.n_particles = n_particles
        self.init = init
        self.batch_size = batch_size
        self.n_steps = n_steps
        self.step_size = step_size
        self.diffusion = diffusion
        self.annealing = annealing
        self.encoder = encoder
        self.encoder_share = encoder_share
        self.n_components = n_components
        self.schema = schema
        self.infer = infer
        self.infer_share = infer_share
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.strict = strict

    _releases = ("sketch", "resample", "presample")
    # Particles go wherever a sketch lets them: small components need less weight than in a network.
    _whiten = 0.4

    def _check_params(self):
        super()._check_params()
        check_positive("n_particles", self.n_particles, whole=True, optional=True)
        check_positive("step_size", self.step_size, optional=True)
        for name in ("diffusion", "annealing"):
            if getattr(self, name) != 0:
                check_positive(name, getattr(self, name))
        if self.annealing > 1:
            raise ValueError(f"annealing must be in [0, 1]; got {self.annealing!r}.")
        if self.init is not None and self._is_table():
            raise ValueError("init is for rows of X, not for tables with a schema.")

    def _plan(self, n_samples, codec, n_classes):
        if self.init is not None and codec.has_number:
            raise ValueError("init cannot be combined with a numeric y, which it lacks.")
        if not codec.releases:
            check_size("n_particles", self._n_particles(n_samples, 1), codec.n_columns)
        return super()._plan(n_samples, codec, n_classes)

    def _list_assumptions(self, codec, inferred=False, has_objects=False):
        assumed = super()._list_assumptions(codec, inferred, has_objects)
        return assumed if self.init is None else ("the rows in init are public", *assumed)

    def _learn(self, curator, codec, noise):
        if self._is_table() and not self._has_rows():
            self._learn_table(curator, codec, noise)
        else:
            self._learn_encoded(curator, codec, noise)
        self.n_iter_ = len(self.loss_curve_)

    def _learn_table(self, curator, codec, noise):
        tables = curator.release(TablesMechanism(codec.block_sizes))
        curator.close()  # the rest is post-processing
        n_particles = self._n_particles(curator.n_records, 1)
        self._particles, self.loss_curve_ = fit_to_tables(
            partial(TableParticles, n_particles, noise.torch_generator()),
            codec.block_sizes,
            tables,
            curator.n_records,
            n_steps=self.n_steps or 1000,
            batch_size=min(self.batch_size or _TABLE_BATCH_SIZE, n_particles),
            learning_rate=self.step_size or 0.03,
            generator=noise.torch_generator(),
            device=curator.device,
            verbose=self.verbose,
        )

    def _learn_encoded(self, curator, codec, noise):
        # Before anything is released: bad rows cost nothing.
        init = None if self.init is None else self._read_init(codec)
        components = self._release_components(curator, codec.n_columns)
        spread = even_spread(codec.n_columns)
        if components is not None:
            spread = components.spread
            if init is not None:
                init = components.encode(init.to(curator.device))
        learn = self._flow if self._has_rows() else self._descend
        rows = learn(curator, components, spread.to(curator.device), init, noise)
        self._particles = Particles(rows, components)

    def _read_init(self, codec):
        """Return the public rows to start from, in the unit ball."""
        rows = check_array(self.init, dtype=np.float64, input_name="init")
        if rows.shape[1] != codec.n_features:
            raise ValueError(
                f"init has {rows.shape[1]} features, but X has {codec.n_features} features."
            )
        if hasattr(self.init, "columns"):
            _check_feature_names(self, self.init, reset=False)
        rows = _to_unit_ball(rows, codec)
        if not torch.isfinite(rows).all():
            raise ValueError("init holds NaN or infinite numbers after the encoder.")
        return rows

    def _draw_starts(self, curator, spread, init, generator):
        """Return where the particles of each class start."""
        n_particles = self._n_particles(curator.n_records, curator.n_classes)
        return draw_starts(curator.n_classes, n_particles, spread, init, generator)

    def _descend(self, curator, components, spread, init, noise):
        """Return particles with the sketch of the rows."""
        basis, sketch = self._release_sketch(curator, components, spread.cpu(), noise)
        curator.close()  # the rest is post-processing
        self.class_probabilities_ = sketch.class_shares
        generator = noise.torch_generator()
        rows, self.loss_curve_ = fit_particles_to_sketch(
            basis,
            sketch,
            self._draw_starts(curator, spread, init, generator),
            spread,
            1.0 if components is None else components.scale,
            n_steps=self.n_steps or 2000,
            learning_rate=self.step_size or 0.05,
            generator=generator,
            verbose=self.verbose,
        )
        return rows

    def _flow(self, curator, components, spread, init, noise):
        """Return particles at the end of a flow along projected rows."""
        encode = None if components is None else components.encode
        mechanism = SlicedRowsMechanism(len(spread), curator.n_classes, encode)
        generator, n_directions = noise.torch_generator(), None
        starts = self._draw_starts(curator, spread, init, generator)
        if self.release == "presample":
            n_steps = self.n_steps or _FREE_STEPS
            releases = itertools.repeat(curator.release(mechanism))
            n_directions = -(-self._n_projections(len(spread), curator.n_classes) // _DIRECTIONS)
            curator.close()  # the rest is post-processing
        else:
            n_steps = self._n_private_steps(curator.n_records)
            releases = (curator.release(mechanism) for _ in itertools.count())
        rows, self.class_probabilities_, self.loss_curve_ = flow_along_slices(
            starts,
            mechanism,
            releases,
            step_sizes=self._step_sizes(n_steps, mechanism.n_features),
            diffusion=self.diffusion,
            batch_size=self._batch_size(curator.n_records),
            n_directions=n_directions,
            generator=generator,
            verbose=self.verbose,
        )
        return rows

    def _generate(self, codes, generator):
        return self._particles.sample(codes, generator)

    def _project(self, X):
        """Return features without what the release has not seen of them: a public map of rows.

        That is what the components lack, and what is outside of the radius.
        """
        rows, components = _to_unit_ball(X, self._codec), self._particles.components
        if components is not None:
            rows = components.decode(components.encode(rows))
        return self._codec.decode(rows.double().numpy())[0]

    def _n_particles(self, n_samples, n_classes):
        """Return the number of particles of a class."""
        total = self.n_particles or min(_MOST, max(_FEWEST, n_samples // 2))
        return max(2, total // n_classes)

    def _step_sizes(self, n_steps, n_features):
        start = self.step_size or n_features / 10
        falling = self.annealing * n_steps
        return [start * min(1.0, (n_steps - i) / max(falling, 1.0)) for i in range(n_steps)]

    def _n_projections(self, n_columns, n_classes=1):
        n_projections = super()._n_projections(n_columns, n_classes)
        is_default = self.release == "presample" and not self.n_projections
        return n_projections * (_DIRECTIONS if is_default else 1)

    def _n_private_steps(self, n_samples):
        return 1 if self.release == "presample" else super()._n_private_steps(n_samples)

    def _batch_size(self, n_samples):
        if self.release == "presample":
            return min(self.batch_size or _PRESAMPLED, n_samples)
        return super()._batch_size(n_samples)


def _to_unit_ball(X, codec):
    """Map public rows as the curator maps private ones."""
    return clip_rows(torch.as_tensor(codec.encode(X) / codec.radius), 1.0)
