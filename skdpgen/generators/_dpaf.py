"""Generator networks trained by noisy aggregates of a discriminator's features."""

import math
import numbers
from functools import partial

from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent

from .._validation import check_size
from ..accounting.plan import repeated_plan
from ..base import BaseGenerator, check_choice, check_generator, check_positive
from ..formats.table import TableCodec
from ..learners.aggregates import RecordFeatures, fit_classifier, fit_to_aggregates
from ..learners.rows import has_unit_output, input_scale, make_rows
from ..networks import Discriminator, default_layers, infer_square_shape, mirror, seeded
from ..privacy import ForwardAggregateMechanism

__all__ = ["DPAFGenerator"]

# Names of the releases of the two phases.
_FIRST, _SECOND = "classifier's aggregate", "discriminator's aggregate"
_OBJECTIVES = ["matching", "rows"]


class DPAFGenerator(BaseGenerator):
    """Generator network trained by noisy aggregates of a discriminator's features.

    A discriminator has layers that see single rows, and layers that see mean features of many. At
    each step the features of a random sample of the private rows are added up for each class, and
    released with noise. What comes after the aggregate, and the generator, are trained on that
    release: post-processing. Layers before it get clipped and noised vector-Jacobian products of
    single rows, with a cotangent at the noisy aggregate. This is DPAF [1]_, repaired: as published
    it is not private, see the notes.

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
        clipped to them and mapped to [0, 1]; samples are mapped back. None: rows as they are.
    y_bounds : None or (lower, upper), default=None
        Public bounds of a numeric `y`.
    clip_norm : float, default=1.0
        Public radius: each row is scaled down to it. With `bounds` it is in units in which features
        in [0, 1] were divided by √n_features, so that 1 changes nothing.
    classes : array-like, default=None
        The labels that `y` may hold. None: inferred from `y`, with a `PrivacyLeakWarning`.
    image_shape : "auto", None or tuple of (channels, height, width), default="auto"
        Shape of rows that are images; None: they are none, and layers are dense. ``"auto"``: a
        square one, grey or RGB, of at least 8×8 pixels, if there are `bounds` and as many features;
        otherwise None.
    layers : tuple of (int, int, int), default=None
        Numbers c1, c2, c3 of layers: conv1, which are frozen; conv2*, the others before the
        aggregate; and conv3*, those after it, which only images have. None: (2, 1, 0) for images of
        up to 32 pixels, (2, 2, 1) of up to 64, (3, 1, 0) of more; (1, 1, 0) for dense layers.
    batch_size : int, default=None
        Expected records a step (q is capped at 1). None: n_samples / 30 within [200, 2000].
    n_steps : int, default=None
        Private steps of the generator's phase. None: n_samples / 60 within [20, 1000].
    n_pretrain : int, default=None
        Private steps of the classifier's phase, if it has a budget. None: `n_steps` / 4.
    budget_split : tuple of (float, float, float), default=(0.0, 0.2, 0.8)
        Shares of the budget, of Σ s⁻² over the noise multipliers s of all steps, of conv1, of
        conv2* and of the aggregates. They sum to 1. Without a share, conv1 is random and there is
        no first phase; conv2* stays random, too. In the first phase, aggregates and products have
        half of its share each.
    grad_clip : float, default=1.0
        Radius of each record's products.
    keep : float, default=1.0
        Share of the numbers of a product, the largest ones, that are kept; 0.9 in [1]_.
    asymmetry : int, default=8
        Steps for one update of conv2*.
    n_critic : int, default=1
        Steps for one round of the generator's updates.
    n_updates : int, default=None
        Updates of the generator in a round, each after one of the discriminator's upper layers.
        They cost time, but no privacy. None: n_samples / 5,000 within [2, 12].
    n_generated : int, default=None
        Generated rows at an update. None: n_samples / 100 within [20, 200].
    objective : {"matching", "rows"}, default="matching"
        What the generator is trained by: the distance of the mean features of generated rows from
        those that were released; or, as in [1]_, the discriminator's verdict on single rows.
    learning_rate : float, default=0.001
        Of Adam, after a warm-up; it decays linearly to 0.
    encoder : None or object, default=None
        Has `transform` and `inverse_transform`, and was fitted on public data; wrap it in
        scikit-learn's `FrozenEstimator` if the generator is to be cloned, as searches do.
    generator : str or callable, default=None
        Network. None: the mirror of the discriminator for images with `bounds`, and else ``"mlp"``.
        Names and factories are those of `DPSlicedWassersteinGenerator`.
    latent_dim : int, default=16
        Dimension of the network's random code; the one-hot class is joined to it.
    schema : Schema, default=None
        Public kinds, bounds and levels of the columns of a table, which is then encoded in rows
        of norm 1.
    infer : None or "private", default=None
        How to find bounds and categories that the schema leaves open: not at all, or by noisy
        histograms and counts.
    infer_share : float, default=0.2
        Share of the budget, of Σ s⁻² over the noise multipliers s of Gaussian releases, that
        ``infer="private"`` gets if something is open.
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
        Standard deviation of the noise of a step of the last phase, on sums to which a record adds
        a vector of norm 1.
    classes_ : ndarray of shape (n_classes,)
        If `y` holds classes.
    class_probabilities_ : ndarray of shape (n_classes,)
        Noisy frequencies of the classes, from the counts that ride in the aggregates.
    n_samples_ : int
        Number of rows, which is public.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` has string column names.
    n_iter_ : int
        Private steps that were made in the last phase.
    loss_curve_ : list of float
        At each update, the estimated squared distance between the mean features of generated
        rows and those that were released.

    Notes
    -----
    In [1]_ the layers after the classifier's aggregate are trained without noise, and thrown away;
    but they shape the gradients that train conv1. The gradient of conv2* goes through an aggregate
    without noise. Both leak, and the stated guarantee does not hold. Here every aggregate is
    released with noise, and cotangents are taken there. The user guide proves what that costs.

    Differences to [1]_ that are no repairs: an aggregate for each class; large batches; averaged
    weights; by default a random conv1, and a generator that matches mean features.

    References
    ----------
    .. [1] Lin, Hsu, Yu, Cao & Huang, "DPAF: Image Synthesis via Differentially Private Aggregation
       in Forward Phase", 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdpgen import DPAFGenerator
    >>> X, y = load_iris(return_X_y=True)
    >>> generator = DPAFGenerator(
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
        image_shape="auto",
        layers=None,
        batch_size=None,
        n_steps=None,
        n_pretrain=None,
        budget_split=(0.0, 0.2, 0.8),
        grad_clip=1.0,
        keep=1.0,
        asymmetry=8,
        n_critic=1,
        n_updates=None,
        n_generated=None,
        objective="matching",
        learning_rate=0.001,
        encoder=None,
        generator=None,
        latent_dim=16,
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
        self.image_shape = image_shape
        self.layers = layers
        self.batch_size = batch_size
        self.n_steps = n_steps
        self.n_pretrain = n_pretrain
        self.budget_split = budget_split
        self.grad_clip = grad_clip
        self.keep = keep
        self.asymmetry = asymmetry
        self.n_critic = n_critic
        self.n_updates = n_updates
        self.n_generated = n_generated
        self.objective = objective
        self.learning_rate = learning_rate
        self.encoder = encoder
        self.generator = generator
        self.latent_dim = latent_dim
        self.schema = schema
        self.infer = infer
        self.infer_share = infer_share
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.strict = strict

    def _check_params(self):
        super()._check_params()
        if isinstance(self.encoder, (str, tuple)):
            raise ValueError("encoder must be None or an object that was fitted on public data.")
        if self.generator is not None:
            check_generator(self.generator)
        for name in ("batch_size", "n_steps", "n_pretrain", "n_generated", "n_updates"):
            check_positive(name, getattr(self, name), whole=True, optional=True)
        for name in ("asymmetry", "n_critic", "latent_dim"):
            check_positive(name, getattr(self, name), whole=True)
        for name in ("grad_clip", "learning_rate", "keep"):
            check_positive(name, getattr(self, name))
        if self.keep > 1:
            raise ValueError(f"keep must be at most 1; got {self.keep!r}.")
        check_choice("objective", self.objective, _OBJECTIVES)
        _check_split(self.budget_split)
        _check_tuple("layers", self.layers, (1, 1, 0))
        if not self._guesses_shape():
            _check_tuple("image_shape", self.image_shape, (1, 4, 4), or_else="None or 'auto'")
        if self._is_table() and not (self._guesses_shape() or self.image_shape is None):
            raise ValueError("image_shape is for rows of X, not for tables with a schema.")
        if self._is_table() and self.generator is not None and has_unit_output(self.generator):
            raise ValueError(f"generator={self.generator!r} makes images, not tables.")

    # The plan.

    def _plan(self, n_samples, codec, n_classes):
        shares, thresholds = self._inference_shares(codec)
        self._find_layers(codec)  # refuses what does not fit
        if not codec.releases:
            check_size("n_generated", self.n_generated or 1, codec.n_columns)
            check_size("batch_size", self._batch_size(n_samples), codec.n_columns)
        first, _, _ = self.budget_split
        if first > 0 and n_classes == 1:
            raise ValueError(
                "The classifier of the first phase needs two classes or more. Give a y that holds "
                "classes, or no budget to conv1: budget_split=(0, ..., ...)."
            )
        rate = self._batch_size(n_samples) / n_samples
        n_steps, n_first = self._n_steps(n_samples), self._n_pretrain(n_samples)

        def step(multiplier):
            event = GaussianDpEvent(multiplier)
            return event if rate == 1 else PoissonSampledDpEvent(rate, event)

        before = []
        if first > 0:
            # Its steps have a share of Σ s⁻² over all steps.
            ratio = math.sqrt(n_first / first * (1 - first) / n_steps)
            before = [(_FIRST, lambda multiplier: step(ratio * multiplier), n_first)]
        return repeated_plan(
            _SECOND,
            step,
            n_steps,
            self.epsilon,
            self.delta,
            shares=shares,
            thresholds=thresholds,
            before=before,
            relation=self.relation,
            accountant=self.accountant,
            sensitivity=ForwardAggregateMechanism.sensitivity_of(self.relation),
        )

    def _n_steps(self, n_samples):
        return self.n_steps or min(1000, max(20, n_samples // 60))

    def _n_pretrain(self, n_samples):
        return self.n_pretrain or max(1, self._n_steps(n_samples) // 4)

    def _batch_size(self, n_samples):
        return min(self.batch_size or max(200, min(2000, n_samples // 30)), n_samples)

    def _find_layers(self, codec):
        """Return the shape of the images that rows are, or None, and the numbers of layers."""
        image_shape = self._find_image_shape(codec)
        layers = self.layers or default_layers(image_shape)
        if image_shape is None and layers[2]:
            raise ValueError("Only images have layers after the aggregate: layers=(c1, c2, 0).")
        return image_shape, layers

    def _guesses_shape(self):
        return isinstance(self.image_shape, str) and self.image_shape == "auto"

    def _find_image_shape(self, codec):
        if self.image_shape is None:
            return None
        is_plain = not isinstance(codec, TableCodec) and codec.encoder is None
        is_plain = is_plain and not codec.has_number
        if self._guesses_shape():
            can_be = is_plain and codec.has_unit_features
            return infer_square_shape(codec.n_features) if can_be else None
        if not is_plain:
            raise ValueError("image_shape is for rows of X without an encoder or a numeric y.")
        if math.prod(self.image_shape) != codec.n_features:
            raise ValueError(
                f"Images of shape {tuple(self.image_shape)} have {math.prod(self.image_shape)} "
                f"features; X has {codec.n_features}."
            )
        return tuple(self.image_shape)

    # Learning.

    def _learn(self, curator, codec, noise):
        image_shape, layers = self._find_layers(codec)
        n_classes, batch_size = curator.n_classes, self._batch_size(curator.n_records)
        factory = self.generator
        if factory is None:
            has_mirror = image_shape is not None and codec.has_unit_features
            factory = mirror(image_shape) if has_mirror else "mlp"
        rows = make_rows(factory, codec, self.latent_dim, n_classes, noise).to(curator.device)

        def make_network(layers, n_outputs):
            with seeded(noise.seed()):
                network = Discriminator(
                    codec.n_columns, n_classes, layers, image_shape, *_input_map(codec), n_outputs
                )
            return network.to(curator.device)

        def mechanism_of(features, name, share):
            return partial(
                ForwardAggregateMechanism,
                features,
                features.network.n_features,
                n_classes,
                n_products=features.n_products,
                grad_clip=self.grad_clip,
                share=share,
                name=name,
            )

        n_frozen, n_trained, n_after = layers
        conv1, conv2, aggregates = self.budget_split
        network, generator = make_network(layers, 1), noise.torch_generator()
        features = RecordFeatures(network, self.keep)
        if conv1 > 0:
            classifier = make_network((0, n_frozen + n_trained, n_after), n_classes)
            fit_classifier(
                classifier,
                curator.release,
                mechanism_of(RecordFeatures(classifier, self.keep), _FIRST, 0.5),
                n_steps=self._n_pretrain(curator.n_records),
                batch_size=batch_size,
                learning_rate=self.learning_rate,
                generator=generator,
                verbose=self.verbose,
            )
            network.frozen.load_state_dict(classifier.trained[:n_frozen].state_dict())
        self.n_iter_ = self._n_steps(curator.n_records)
        self._network, self.class_probabilities_, self.loss_curve_ = fit_to_aggregates(
            rows,
            features,
            curator.release,
            mechanism_of(features, _SECOND, aggregates / (conv2 + aggregates)),
            n_steps=self.n_iter_,
            batch_size=batch_size,
            grad_clip=self.grad_clip,
            n_generated=self.n_generated or min(200, max(20, curator.n_records // 100)),
            n_updates=self.n_updates or min(12, max(2, curator.n_records // 5000)),
            n_critic=self.n_critic,
            asymmetry=self.asymmetry if conv2 > 0 else None,
            objective=self.objective,
            learning_rate=self.learning_rate,
            generator=generator,
            verbose=self.verbose,
        )

    def _generate(self, codes, generator):
        return self._network.sample(codes, generator)


def _input_map(codec):
    """Return the scale and shift by which the numbers of rows get a size of about 1."""
    if isinstance(codec, TableCodec):
        return math.sqrt(len(codec.block_sizes)), 0.0
    if codec.has_unit_features:
        return 2 * input_scale(codec), -1.0
    return math.sqrt(codec.n_columns), 0.0


def _check_split(split):
    """Refuse what are no three shares of a budget."""
    is_split = (
        isinstance(split, tuple | list)
        and len(split) == 3
        and all(isinstance(share, numbers.Real) and 0 <= share <= 1 for share in split)
        and math.isclose(sum(split), 1)
    )
    if not is_split or split[2] == 0:
        raise ValueError(
            "budget_split must be shares of conv1, conv2* and the aggregates that sum to 1, the "
            f"last one positive; got {split!r}."
        )


def _check_tuple(name, value, least, or_else="None"):
    """Refuse what is neither None nor three whole numbers that are large enough."""
    if value is None:
        return
    is_tuple = isinstance(value, tuple | list) and len(value) == 3
    if not is_tuple or not all(
        isinstance(number, numbers.Integral) and number >= low
        for number, low in zip(value, least, strict=True)
    ):
        raise ValueError(
            f"{name} must be three whole numbers, of at least {least}, or {or_else}; got {value!r}."
        )
