"""Generator networks trained by noisy gradients of the Sinkhorn divergence to private rows."""

import math
import numbers

import numpy as np
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent

from .._validation import check_choice, check_positive, check_size, warn_of_absent
from ..accounting.accountants import ledger_epsilon
from ..accounting.events import DiameterGaussianDpEvent, repeat, split_repetition
from ..accounting.figures import show
from ..accounting.plan import Plan, repeated_plan
from ..base import check_generator
from ..exceptions import BudgetExceededError
from ..learners.gradients import SinkhornLoss, fit_to_gradients
from ..learners.rows import has_unit_output, input_scale, make_rows
from ..privacy import ClassCountsMechanism, ClippedGradientMechanism
from ._encoded_generator import EncodedGenerator

__all__ = ["DPSinkhornGenerator"]

# Share of the budget, of Σ s⁻², for how frequent the classes are.
_COUNTS_SHARE = 0.01
# Far more private steps than anybody can make.
_MOST_STEPS = 2**22


class DPSinkhornGenerator(EncodedGenerator):
    """Generator network trained by noisy gradients of the Sinkhorn divergence to private rows.

    At each step a network generates a batch of rows, of a fixed size. The gradient of the
    semi-debiased Sinkhorn loss between these and a random sample of the private rows is taken in
    the generated rows, clipped as a whole, and released with noise. The network descends it: what
    follows the release is post-processing. This is DP-Sinkhorn [1]_.

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
    batch_size : int, default=None
        Expected records a step (q is capped at 1). None: n_samples / 4 within [10, 100].
    n_steps : int, default=None
        Private steps. None: n_samples / 4 within [30, 15000], unless `noise_multiplier` is given.
    noise_multiplier : float, default=None
        σ, where the noise has a standard deviation of 2Δσ. Then as many steps are made as the
        budget allows. None: σ follows from the budget and `n_steps`. One of the two can be given.
    grad_clip : float, default=0.1
        Radius Δ of the gradients. Where it is less than their norms it only sets the scale, and
        Adam does not look at the scale.
    n_generated : int, default=None
        Size n of the generated batch. None: `batch_size` within [2, 50].
    n_debias : int, default=None
        Number n' of further rows that are generated for debiasing, at most n. None: n / 5.
    debias : bool, default=True
        False: leave out the debiasing term, also for n' = 0, where it is the biased one.
    reg : float, default=None
        Entropic regularisation, in the units of the cost. None: 0.05, or n_features / 160
        if that is more and rows are compared by features in [0, 1]: with `bounds`, and neither an
        encoder that was fitted beforehand nor a numeric `y`.
    l1_weight : float, default=0.0
        Weight m of the L1 part of the cost ``L2² + m L1`` between rows; of features in [0, 1] where
        `reg` says so, and else of rows in the unit ball. In [1]_ it is 1, for sharper images; it
        costs time, and here it made classifiers that are trained on samples worse.
    label_weight : float, default=15.0
        What the one-hot of a row's class is multiplied by when it is joined to the row.
    balance_classes : bool, default=True
        Weigh the rows of a sample so that each class has the same share as among the generated
        ones, and leave out classes that were not drawn. False: all rows weigh the same, as in [1]_.
    perturb : {"images", "parameters"}, default="images"
        What is released: the gradient in the generated rows, or that of the whole loss in the
        network's weights.
    optimizer : {"adam", "sgd"}, default="adam"
        With a warm-up.
    learning_rate : float, default=None
        Of the optimizer. None: 0.25 / √n_steps, and half of it in principal components, but at
        most 0.005.
    decay : float, default=1.0
        Share of the steps, the last ones, over which the learning rate falls linearly to 0.
    averaging : float, default=0.999
        Memory of the moving average of the network's weights, which is what samples are drawn
        from; 0: the last weights.
    encoder : None, "dp-pca", object or (object, "dp-pca"), default=None
        Dimension reduction before rows are compared. ``"dp-pca"``: principal components from noisy
        second moments, paid for by `encoder_share`; sensible from a few thousand rows on, and far
        better then for images, since gradients in fewer columns have less noise in all. An object
        has `transform` and `inverse_transform` and was fitted on public data; wrap it in
        scikit-learn's `FrozenEstimator` if the generator is to be cloned, as searches do. A pair:
        principal components of what the object makes.
    encoder_share : float, default=0.2
        Share of the budget, of Σ s⁻² over the noise multipliers s of Gaussian releases, that
        ``"dp-pca"`` gets.
    n_components : int, default=None
        Components that ``"dp-pca"`` keeps. None: 40, or all if they are less.
    generator : str or callable, default="mlp"
        Network: ``"mlp"`` for tables and encoded rows; for images, channels first, with `bounds`,
        ``"conv28"`` and ``"dcgan28"`` (that of [1]_; slow on a CPU) of 28×28 grey ones,
        ``"resnet32"`` and ``"conv64"`` of RGB ones. A factory takes the numbers of inputs and
        outputs and returns a torch module; by ``unit_output = True`` it says that outputs are
        features in [0, 1] rather than encoded rows.
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
        Standard deviation of the noise on each number of a gradient.
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
        Private steps that were made.

    Notes
    -----
    A record can turn the clipped gradient from any vector of norm Δ into any other, so that the
    sensitivity is 2Δ. It is no sum of one vector for each record; that the pair of a
    Poisson-sampled Gaussian mechanism still dominates a step is shown in the user guide. A clip for
    each generated row would be no bound, since one record moves all rows through the plan.

    Unlike in [1]_, classes are balanced, and generated by their noisy frequencies, for which a
    hundredth of the budget, in Σ s⁻², is spent; codes are Gaussian; the learning rate decays, and
    weights are averaged. There are fewer steps, with less noise: their number T and σ trade as
    T / σ², and time is short on a CPU.
    The noise is the same, and as costly, if no record was drawn. No loss is released, so there is
    no loss curve.

    References
    ----------
    .. [1] Cao, Bie, Vahdat, Fidler & Kreis, "Don't Generate Me: Training Differentially Private
       Generative Models with Sinkhorn Divergence", NeurIPS 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdpgen import DPSinkhornGenerator
    >>> X, y = load_iris(return_X_y=True)
    >>> generator = DPSinkhornGenerator(
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
        batch_size=None,
        n_steps=None,
        noise_multiplier=None,
        grad_clip=0.1,
        n_generated=None,
        n_debias=None,
        debias=True,
        reg=None,
        l1_weight=0.0,
        label_weight=15.0,
        balance_classes=True,
        perturb="images",
        optimizer="adam",
        learning_rate=None,
        decay=1.0,
        averaging=0.999,
        encoder=None,
        encoder_share=0.2,
        n_components=None,
        generator="mlp",
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
        self.batch_size = batch_size
        self.n_steps = n_steps
        self.noise_multiplier = noise_multiplier
        self.grad_clip = grad_clip
        self.n_generated = n_generated
        self.n_debias = n_debias
        self.debias = debias
        self.reg = reg
        self.l1_weight = l1_weight
        self.label_weight = label_weight
        self.balance_classes = balance_classes
        self.perturb = perturb
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.decay = decay
        self.averaging = averaging
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

    def _check_params(self):
        super()._check_params()
        check_generator(self.generator)
        for name in ("batch_size", "n_steps", "n_generated"):
            check_positive(name, getattr(self, name), whole=True, optional=True)
        for name in ("noise_multiplier", "reg", "learning_rate"):
            check_positive(name, getattr(self, name), optional=True)
        if self.n_generated == 1:
            raise ValueError("n_generated must be at least 2: batches are normalised.")
        check_positive("grad_clip", self.grad_clip)
        check_positive("latent_dim", self.latent_dim, whole=True)
        for name in ("l1_weight", "label_weight"):
            _check_range(name, getattr(self, name))
        _check_range("decay", self.decay, most=1)
        _check_range("averaging", self.averaging, below=1)
        if self.n_debias is not None and not (
            isinstance(self.n_debias, numbers.Integral) and self.n_debias >= 0
        ):
            raise ValueError(f"n_debias must be a whole number or None; got {self.n_debias!r}.")
        check_choice("perturb", self.perturb, ["images", "parameters"])
        check_choice("optimizer", self.optimizer, ["adam", "sgd"])
        if self.noise_multiplier is not None and self.n_steps is not None:
            raise ValueError(
                "Give n_steps or noise_multiplier, not both: with epsilon, one follows from the "
                "other."
            )
        if self.noise_multiplier is not None and math.isinf(self.epsilon):
            raise ValueError("With epsilon=inf there is no noise: give n_steps.")
        if self._is_table() and has_unit_output(self.generator):
            raise ValueError(f"generator={self.generator!r} makes images, not tables.")

    # The plan.

    def _plan(self, n_samples, codec, n_classes):
        shares, thresholds = self._first_shares(codec)
        n_generated, _ = self._batch_sizes(n_samples)  # refuses what does not fit
        n_others = max(n_generated, self._batch_size(n_samples))
        check_size("n_generated", n_generated, n_others)
        if not codec.releases:
            check_size("n_generated", n_generated, codec.n_columns)
        if n_classes > 1:
            shares[ClassCountsMechanism.name] = _COUNTS_SHARE
        rate = self._batch_size(n_samples) / n_samples

        def step(multiplier):
            if rate == 1:
                return GaussianDpEvent(multiplier)
            return PoissonSampledDpEvent(rate, DiameterGaussianDpEvent(multiplier))

        n_steps = 1 if self.noise_multiplier else self._n_steps(n_samples)
        sensitivity = ClippedGradientMechanism.sensitivity_of(self.grad_clip)
        plan = repeated_plan(
            ClippedGradientMechanism.name,
            step,
            n_steps,
            self.epsilon,
            self.delta,
            shares=shares,
            thresholds=thresholds,
            relation=self.relation,
            accountant=self.accountant,
            sensitivity=sensitivity,
        )
        if self.noise_multiplier is None:
            return plan
        # What comes first is as it was: it does not depend on the number of steps.
        return _repeat_within_budget(
            plan, step(self.noise_multiplier), self.noise_multiplier * sensitivity
        )

    def _n_steps(self, n_samples):
        return self.n_steps or min(15_000, max(30, n_samples // 4))

    def _batch_size(self, n_samples):
        return min(self.batch_size or max(10, min(100, n_samples // 4)), n_samples)

    def _batch_sizes(self, n_samples):
        """Return how many rows a step generates, and how many of them debias the loss."""
        n = self.n_generated or max(2, min(50, self._batch_size(n_samples)))
        n_debias = n // 5 if self.n_debias is None else self.n_debias
        if n_debias > n:
            raise ValueError(f"n_debias = {n_debias} is more than the {n} rows that are generated.")
        return n, n_debias

    # Learning.

    def _learn(self, curator, codec, noise):
        # What can fail comes before the next release.
        n_encoded = self._n_encoded(codec.n_columns)
        rows = make_rows(
            self.generator, codec, self.latent_dim, curator.n_classes, noise, n_encoded
        )
        scale = input_scale(codec)
        n, n_debias = self._batch_sizes(curator.n_records)
        loss = SinkhornLoss(
            self.reg or _default_reg(codec, scale),
            self.l1_weight,
            self.label_weight if curator.n_classes > 1 else 0.0,
            scale,
            self.debias,
            self.balance_classes,
        )
        rows.set_components(self._release_components(curator, codec.n_columns))
        self.class_probabilities_ = np.ones(1)
        if curator.n_classes > 1:
            released, n_records = curator.release(ClassCountsMechanism()), curator.n_records
            counts, std = released.value, released.std * math.sqrt(curator.n_classes)
            warn_of_absent(counts.sum() / n_records, std / n_records)
            # Each is taken to have one record at least.
            self.class_probabilities_ = np.maximum(counts, 1) / np.maximum(counts, 1).sum()
        self.n_iter_ = split_repetition(dict(curator.plan.releases)[ClippedGradientMechanism.name])[
            1
        ]
        self._network = fit_to_gradients(
            rows.to(curator.device),
            loss,
            curator.release,
            n_steps=self.n_iter_,
            n_generated=n,
            n_debias=n_debias,
            grad_clip=self.grad_clip,
            shares=self.class_probabilities_,
            perturb=self.perturb,
            optimizer=self.optimizer,
            learning_rate=self.learning_rate or self._default_rate(),
            decay=self.decay,
            averaging=self.averaging,
            generator=noise.torch_generator(),
            verbose=self.verbose,
        )

    def _default_rate(self):
        return min(0.005, (0.125 if self._has_dp_pca() else 0.25) / math.sqrt(self.n_iter_))

    def _default_n_components(self):
        return 40

    def _generate(self, codes, generator):
        return self._network.sample(codes, generator)


def _default_reg(codec, scale):
    return 0.05 if scale == 1 else max(0.05, codec.n_columns / 160)


def _check_range(name, value, most=1e15, below=math.inf):
    """Refuse what is not a number from 0 to `most`, and less than `below`."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= most or not value < below:
        raise ValueError(f"{name} is out of its range; got {value!r}.")


def _repeat_within_budget(plan, event, sigma):
    """Return a plan whose last release is `event`, as often as the budget allows."""
    *first, (name, _) = plan.releases
    before = [planned for _, planned in first]

    def costs(n_steps, accountant=plan.accountant):
        events = [*before, repeat(event, n_steps)]
        return ledger_epsilon(events, plan.delta, accountant=accountant, relation=plan.relation)

    if costs(1) > plan.epsilon:
        raise BudgetExceededError(
            f"One step with this noise_multiplier costs ε = {show(costs(1))}, over the budget of "
            f"{show(plan.epsilon)}. Raise noise_multiplier, or lower batch_size."
        )
    low, high = 1, 2
    while high <= _MOST_STEPS and costs(high) <= plan.epsilon:
        low, high = high, 2 * high
    # Prices are slow to find, and nobody misses a thousandth of the steps.
    while high - low > max(1, low // 1000):
        middle = (low + high) // 2
        low, high = (middle, high) if costs(middle) <= plan.epsilon else (low, middle)
    releases = (*first, (name, repeat(event, low)))
    return Plan(releases, plan.epsilon, plan.delta, plan.relation, plan.accountant, sigma)
