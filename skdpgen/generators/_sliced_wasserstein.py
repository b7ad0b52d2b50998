"""Generator networks trained by the sliced Wasserstein distance to private rows."""

import math
from functools import partial

from .._validation import check_positive
from ..base import check_generator
from ..learners.rows import has_unit_output, make_rows
from ..learners.sketch import fit_to_sketch
from ..learners.slices import fit_to_rows
from ..learners.tables import TableNetwork, fit_to_tables
from ..networks import build, find_factory
from ..privacy import SlicedRowsMechanism, TablesMechanism
from ._sliced_generator import SlicedGenerator

__all__ = ["DPSlicedWassersteinGenerator"]

# For the sketch: generated rows a step, shared by the classes.
_BATCH_SIZE = 256
# For tables: the loss is a difference of squares, and too noisy to stop by in smaller batches.
_TABLE_BATCH_SIZE = 2000


class DPSlicedWassersteinGenerator(SlicedGenerator):
    """Generator network trained by the sliced Wasserstein distance to private rows.

    With ``release="sketch"`` the rows are read once: for every class, sums of sines and cosines of
    their projections on public random directions are released with Gaussian noise (the *slice
    sketch*). They are the empirical characteristic functions of the slices that a sliced
    Wasserstein distance compares. A network is then trained until what it generates has the same
    sketch, which costs no further privacy, however long it takes.

    With ``release="rows"`` this is DP-SWD [1]_: at each step a random batch of rows is projected
    on fresh directions and released with noise on every number, and the network descends the
    sliced distance to these rows from generated ones that are noised alike. It needs far more
    noise for the same ε than the sketch.

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
    release : {"sketch", "rows"}, default="sketch"
        What leaves the data: a slice sketch, once, or projected rows, at each step.
    sampling : {"poisson", "fixed"}, default="poisson"
        How ``"rows"`` samples its batches: by independent coins, or a fixed number without
        replacement, which is accounted under ``relation="replace_one"`` only.
    n_projections : int, default=None
        Number of directions k. None: for a sketch 25 for each column of the rows (after the
        encoder), within [50, 2000]; for rows the root of the number of their columns, for each
        class, but at least 4.
    n_harmonics : int, default=None
        Harmonics on each slice of a sketch, at most 1000. None: 3 to 6, more where there is less
        noise.
    batch_size : int, default=None
        For a sketch: generated rows a step, shared by the classes; None: 256, or 2000 for tables.
        For rows: expected
        records a step (q is capped at 1); None: 0.75·n_samples·μ / √n_steps within [10, 500],
        where μ is 1 over the noise multiplier of a Gaussian mechanism at (ε, δ). There the
        noise on an average over all steps is about least.
    n_steps : int, default=None
        For a sketch: largest number of training steps; None: 250 / (√ρ·(1 + ρ)) within
        [20, 3000], where ρ is the noise on a sketch value over its largest possible size,
        n_samples / n_classes, or 1000 for tables. For rows: private steps; None: n_samples / 20
        within [30, 3000].
    learning_rate : float, default=None
        Of Adam, with a warm-up and a linear decay to 0: over the last fifth of the steps for a
        sketch, over all of them for rows. None: 0.01 and 0.001, or 0.003 for tables.
    encoder : None, "dp-pca", object or (object, "dp-pca"), default=None
        Dimension reduction before the sketch. ``"dp-pca"``: principal components from noisy
        second moments, paid for by `encoder_share`; sensible from a few thousand rows on. An
        object, such as `Autoencoder`, has `transform` and `inverse_transform` and was fitted on
        public data; wrap it in scikit-learn's `FrozenEstimator` if the generator is to be cloned,
        as searches do. A pair: principal components of what the object makes, such as
        `LowFrequencies`. Fewer columns have less noise in their components.
    encoder_share : float, default=0.2
        Share of the budget, of Σ s⁻² over the noise multipliers s, that ``"dp-pca"`` gets.
    n_components : int, default=None
        Components that ``"dp-pca"`` keeps. None: 64 for a sketch, 30 for rows, or all if they are
        less.
    generator : {"mlp", "conv28", "conv64", "dpswgen"} or callable, default="mlp"
        Network. ``"conv28"`` makes 28×28 grey images and ``"conv64"`` 64×64 RGB ones, channels
        first (Tables 3 and 5 of [1]_); both need `bounds`. A factory takes the numbers of inputs
        and outputs and returns a torch module; by ``unit_output = True`` the module says that it
        gives features in [0, 1] rather than encoded rows.
    latent_dim : int, default=20
        Dimension of the network's random code; the one-hot class is joined to it.
    schema : Schema, default=None
        Public kinds, bounds and levels of the columns of a table. Then X is a DataFrame, and what
        is released are its *two-way tables*: for each pair of columns, how often their levels
        (or values near the knots of numbers and dates) occur together; and how often each level
        occurs, with a weight that follows from the numbers of levels. The network gives
        probabilities of levels. With ``release="rows"``, encoded rows are released as others are.
        `bounds`, `clip_norm`, `classes` and `encoder` are not for tables.
    infer : None or "private", default=None
        How to find bounds and categories that the schema leaves open, or those of columns that it
        lacks, or of all if there is none. None: not at all; such columns are refused.
        ``"private"``: by noisy histograms of numbers and dates, and by noisy counts of categories,
        paid for by `infer_share`. The dtypes of the table are public. Rare categories, which no
        count shows, become ``"other"``.
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
        Training steps that were made.
    loss_curve_ : list of float
        At each step, an estimate from releases alone. For a sketch, the squared distance between
        generated and noisy sketch per slice: once its running mean falls to the known energy of
        the noise, the learning rate decays and training ends, since fitting further would fit
        the noise. For rows, the smoothed squared distance, summed over the classes.

    Notes
    -----
    The sketch's basis has norm 1 on each of the k slices, so a record moves it by at most
    √(k + c²), where c weighs the coordinate that counts the class, whatever the numbers of
    features, harmonics and classes; under ``relation="replace_one"`` by the larger of a√k and, with
    several classes, √(2(k + c²)), where a is 2 for one harmonic, 1.71 for three and 1.61 for six.

    For ``release="rows"``, a row is joined with the one-hot of its label, in the unit ball, and
    projected for the slices of its class. Given the directions U, which are fresh at each step, a
    record changes one row by zᵀU, so that ε is an average over the law of ‖zᵀU‖². As in [1]_,
    generated rows get the same noise. Unlike there, rows are clipped to a public radius, batches
    are Poisson-sampled and padded to a public size, which hides how many joined, and no
    approximation enters ε. With ``"dp-pca"``, the second moments that were released for it are
    matched as well.

    With a `schema`, each row is encoded as one block of weights for each column. The vector of all
    their two-way and one-way tables is scaled so that a record moves it by at most 1 (√2 under
    ``relation="replace_one"``), however many columns and levels there are.

    A scaler or PCA that is fitted on private rows in an earlier step of a pipeline voids ε: use
    `bounds` and `encoder` instead. In a pipeline of public steps, ``pipe[-1].sample(n)`` gives
    rows in the units of the last step, and ``pipe[:-1].inverse_transform`` leads back.

    References
    ----------
    .. [1] Rakotomamonjy & Ralaivola, "Differentially Private Sliced Wasserstein Distance",
       ICML 2021.
    .. [2] Balle & Wang, "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdpgen import DPSlicedWassersteinGenerator
    >>> X, y = load_iris(return_X_y=True)
    >>> generator = DPSlicedWassersteinGenerator(
    ...     epsilon=5.0, bounds=(0, 8), classes=[0, 1, 2], random_state=0
    ... ).fit(X, y)
    >>> X_synthetic, y_synthetic = generator.sample(100)
    >>> X_synthetic.shape, bool(generator.epsilon_ <= 5.0)
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
        batch_size=None,
        n_steps=None,
        learning_rate=None,
        encoder=None,
        encoder_share=0.2,
        n_components=None,
        generator="mlp",
        latent_dim=20,
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
        self.batch_size = batch_size
        self.n_steps = n_steps
        self.learning_rate = learning_rate
        self.encoder = encoder
        self.encoder_share = encoder_share
        self.n_components = n_components
        self.generator = generator
        self.latent_dim = latent_dim
        self.schema = schema
        self.infer = infer
        self.infer_share = infer_share
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.strict = strict

    _releases = ("sketch", "rows")

    def _check_params(self):
        super()._check_params()
        check_generator(self.generator)
        check_positive("latent_dim", self.latent_dim, whole=True)
        check_positive("learning_rate", self.learning_rate, optional=True)
        if self._is_table() and has_unit_output(self.generator):
            raise ValueError(f"generator={self.generator!r} makes images, not tables.")

    def _learn(self, curator, codec, noise):
        if self._is_table() and self.release == "sketch":
            self._learn_table(curator, codec, noise)
        else:
            self._learn_encoded(curator, codec, noise)
        self.n_iter_ = len(self.loss_curve_)

    def _learn_table(self, curator, codec, noise):
        factory = find_factory(self.generator)
        network = build(factory, self.latent_dim, codec.n_columns, noise.seed())
        tables = curator.release(TablesMechanism(codec.block_sizes))
        curator.close()  # the rest is post-processing
        self._network, self.loss_curve_ = fit_to_tables(
            partial(TableNetwork, network, self.latent_dim),
            codec.block_sizes,
            tables,
            curator.n_records,
            n_steps=self.n_steps or 1000,
            batch_size=self.batch_size or _TABLE_BATCH_SIZE,
            learning_rate=self.learning_rate or 0.003,
            generator=noise.torch_generator(),
            device=curator.device,
            verbose=self.verbose,
        )

    def _learn_encoded(self, curator, codec, noise):
        # Anything that can fail comes before the first release.
        n_encoded = self._n_encoded(codec.n_columns)
        rows = make_rows(
            self.generator, codec, self.latent_dim, curator.n_classes, noise, n_encoded
        )
        rows.set_components(self._release_components(curator, codec.n_columns))
        learn = self._learn_rows if self._has_rows() else self._learn_sketch
        learn(curator, rows.to(curator.device), noise)

    def _learn_sketch(self, curator, rows, noise):
        basis, sketch = self._release_sketch(curator, rows.components, rows.spread.cpu(), noise)
        curator.close()  # the rest is post-processing
        self.class_probabilities_ = sketch.class_shares
        self._network, self.loss_curve_ = fit_to_sketch(
            rows,
            basis,
            sketch,
            n_steps=self.n_steps or _default_n_steps(self._noise_ratio(curator)),
            rows_per_class=max(2, (self.batch_size or _BATCH_SIZE) // curator.n_classes),
            learning_rate=self.learning_rate or 0.01,
            generator=noise.torch_generator(),
            verbose=self.verbose,
        )

    def _learn_rows(self, curator, rows, noise):
        mechanism = SlicedRowsMechanism(len(rows.spread), curator.n_classes, rows.encode)
        self._network, self.class_probabilities_, self.loss_curve_ = fit_to_rows(
            rows,
            mechanism,
            lambda: curator.release(mechanism),
            n_steps=self._n_private_steps(curator.n_records),
            batch_size=self._batch_size(curator.n_records),
            learning_rate=self.learning_rate or 0.001,
            generator=noise.torch_generator(),
            verbose=self.verbose,
        )

    def _generate(self, codes, generator):
        return self._network.sample(codes, generator)


def _default_n_steps(noise_ratio):
    if noise_ratio == 0:
        return 3000
    return round(min(3000, max(20, 250 / (math.sqrt(noise_ratio) * (1 + noise_ratio)))))
