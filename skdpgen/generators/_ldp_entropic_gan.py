"""Generator networks trained on rows that were noised by their owners."""

import math
from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .._validation import check_choice, check_positive, check_size, choose_device, undo_on_failure
from ..accounting.figures import plain_numbers
from ..base import BaseGenerator, check_generator
from ..learners.entropic import LOSSES, LocalRowNetwork, fit_to_noised_rows
from ..networks import build, find_factory
from ..preprocessing import LocalPrivatizer
from ..preprocessing._local_privatizer import LOCAL_NORMS
from ..privacy import LocalLabelsMechanism, LocalRowsMechanism, NoiseSource

__all__ = ["LDPEntropicGAN"]

# Rows a step, without labels and for each label; and steps.
_BATCH_SIZE, _CLASS_BATCH_SIZE, _FEWEST_ROWS = 256, 100, 32
_FEWEST_STEPS, _MOST_STEPS = 60, 3000


class LDPEntropicGAN(BaseGenerator):
    """Generator network trained, by entropic transport, on rows that their owners have noised.

    Each row is noised on its own, once (local privacy, see `LocalPrivatizer`). A network is then
    trained so that the entropic Wasserstein distance from its rows to the *noised* rows is least.
    If the regularisation matches the noise, the minimiser is the distribution of the rows *without*
    noise [1]_ (Theorem 1): the entropic loss removes in expectation what the noise has added.

    With `fit`, the noise is added here. In life it is added by the owners, and `fit_privatized`
    takes what they send. Training reads noised rows only and costs nothing, however long it takes.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of each record. ``inf``: no noise, and the certificate says so.
    delta : float, default=1e-5
        Probability scale at which ε may fail, for Gaussian noise. Laplace noise needs none.
    mechanism : {"laplace", "gaussian"}, default="laplace"
        Which noise, and with it the norm of the ball, L1 or L2.
    radius : float, default=None
        Public radius of the ball, in the units after `bounds`. Rows outside are projected on it,
        and the noise is calibrated to its diameter. None: 1; with `bounds`, that of the
        smallest ball around the whole box, n_features (``"laplace"``) or √n_features.
    bounds : None or (lower, upper), default=None
        Public bounds of the features, numbers or arrays of shape (n_features,). Features are
        clipped to them and mapped to [-1, 1]; samples are mapped back. None: rows as they are.
    y_bounds : None or (lower, upper), default=None
        Public bounds of a numeric `y`.
    basis, keep, image_shape
        A cosine transform before the noise, as in `LocalPrivatizer`. The network's rows are
        compared in it.
    classes : array-like, default=None
        The labels that `y` may hold. None: inferred from `y`, with a `PrivacyLeakWarning`; the
        certificate then does not call itself local, since somebody saw all labels.
    label_share : float, default=0.2
        The share of ε that labels get.
    accountant : {"pld", "rdp", "autodp"}, default="pld"
        What finds Gaussian noise and certifies it.
    loss : {"entropic", "wasserstein", "sinkhorn_divergence"}, default="entropic"
        ``"entropic"``: ⟨π, C⟩ at the entropic plan π (Algorithm 1 of [1]_), which removes the
        noise. ``"wasserstein"``, without regularisation, and ``"sinkhorn_divergence"``, which is
        debiased, learn the noised distribution, and are there to compare with.
    p : {None, 1, 2}, default=None
        The cost is ‖·‖_p^p. None: the one that goes with the noise, 1 for Laplace and 2 for
        Gaussian noise; the other is refused.
    reg : float, default=None
        The regularisation λ, in the units after `bounds`. None: p·σ^p, which matches the noise: the
        scale parameter of Laplace noise, twice the variance of Gaussian noise.
    batch_size : int, default=None
        Noised rows a step, and as many generated ones; with labels, for each of them. None: 256, or
        100 with labels, or n_samples if that is less, but at least 32.
    n_steps : int, default=None
        Training steps. None: n_samples / 20 within [60, 3000].
    learning_rate : float, default=0.003
        Of Adam, with a warm-up and a linear decay to 0.
    generator : {"mlp", "conv28", "conv64", "dpswgen"} or callable, default="mlp"
        Network, as in `DPSlicedWassersteinGenerator`; those that make images need `bounds`.
    latent_dim : int, default=20
        Dimension of the network's random code; the one-hot class is joined to it.
    random_state : None, int or RandomState, default=None
        None: noise from the operating system. Anything else is for reproducing an experiment,
        **not a private release**: whoever has the seed can recompute the noise.
    device : str, default="auto"
        Where to compute: "cpu", "cuda", or "auto" for CUDA where there is one.
    verbose : int, default=0
        1 shows progress bars.
    strict : bool, default=False
        Whether to refuse bad records: with a label that is not declared, a number that is not
        finite, or a cell that is not as declared. A refusal is an exact answer about the rows,
        which ε does not cover, and the certificate says so. By default such a record counts as
        the centre of the ball, with the first class, and is noised like any other.

    Attributes
    ----------
    privacy_ : skdpgen.privacy.Certificate
        What each record costs, towards everybody. ``privacy_.shuffled(n, delta)`` says what it
        costs towards those who see only shuffled records (Laplace noise).
    epsilon_ : float
        ε spent at `delta`; at most `epsilon`.
    sigma_ : float
        Scale of the noise, in the units after `bounds`: the scale parameter b of Laplace noise, the
        standard deviation of Gaussian noise.
    reg_ : float
        λ, in the units after `bounds`.
    classes_ : ndarray of shape (n_classes,)
        Labels, if `y` holds classes.
    class_probabilities_ : ndarray of shape (n_classes,)
        Shares of the classes, estimated from noised labels.
    loss_curve_ : list of float
        The loss on noised rows at each step, in units of the ball's radius to the power of p.
    n_iter_ : int
        Number of training steps.
    n_samples_ : int
        Number of rows, which is public.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` has string column names.

    See Also
    --------
    LocalPrivatizer : The owners' half.
    DPSlicedWassersteinGenerator : For rows in trusted hands: far less noise at the same ε.

    Notes
    -----
    Local noise is on every row, and does not shrink with n. It takes many rows, few features and an
    ε of several units to learn from them.

    With labels, the transport is between the rows with one noised label and generated rows of
    classes that are drawn given that label. So classes are not blurred by the randomised response.

    The neighbouring relation is always ``"replace_one"``.

    References
    ----------
    .. [1] Reshetova, Chen & Özgür, "Training generative models from privatized data", 2023.
    .. [2] Feldman, McMillan & Talwar, "Hiding Among the Clones", FOCS 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpgen import LDPEntropicGAN, LocalPrivatizer
    >>> rng = np.random.RandomState(0)
    >>> angles = np.pi * rng.uniform(size=500)
    >>> X = np.column_stack([np.cos(angles), np.sin(angles)])
    >>> gan = LDPEntropicGAN(5.0, mechanism="gaussian", random_state=0).fit(X)
    >>> gan.sample(10).shape, bool(gan.epsilon_ <= 5.0)
    ((10, 2), True)

    In two halves, as in life:

    >>> privatizer = LocalPrivatizer("gaussian", epsilon=5.0).fit(X)
    >>> noised = privatizer.transform(X)
    >>> gan = LDPEntropicGAN(random_state=0).fit_privatized(noised, privatizer=privatizer)
    >>> bool(gan.epsilon_ == privatizer.epsilon_)
    True
    """

    # What other generators choose is fixed here: rows come in a ball of radius 1 from the codec.
    relation = "replace_one"
    clip_norm = 1.0
    encoder = None
    schema = None
    infer = None
    infer_share = 0.2

    def __init__(
        self,
        epsilon=1.0,
        delta=1e-5,
        *,
        mechanism="laplace",
        radius=None,
        bounds=None,
        y_bounds=None,
        basis=None,
        keep=None,
        image_shape=None,
        classes=None,
        label_share=0.2,
        accountant="pld",
        loss="entropic",
        p=None,
        reg=None,
        batch_size=None,
        n_steps=None,
        learning_rate=0.003,
        generator="mlp",
        latent_dim=20,
        random_state=None,
        device="auto",
        verbose=0,
        strict=False,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.mechanism = mechanism
        self.radius = radius
        self.bounds = bounds
        self.y_bounds = y_bounds
        self.basis = basis
        self.keep = keep
        self.image_shape = image_shape
        self.classes = classes
        self.label_share = label_share
        self.accountant = accountant
        self.loss = loss
        self.p = p
        self.reg = reg
        self.batch_size = batch_size
        self.n_steps = n_steps
        self.learning_rate = learning_rate
        self.generator = generator
        self.latent_dim = latent_dim
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.strict = strict

    def fit(self, X, y=None):
        """Noise every row once, and learn the distribution of the rows from the noised ones.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,), default=None
            Labels (int, bool, string or categorical dtype, or any dtype with `classes`), or
            numbers (float dtype), which are treated as one more column.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For bad data or parameters; nothing is spent then.
        """
        return super().fit(X, y)

    def fit_privatized(self, Y, y=None, *, privatizer):
        """Learn the distribution of rows that arrived noised.

        The parameters that say how rows are noised (`epsilon`, `mechanism`, `radius`, `bounds`,
        `classes` and their like) are not read: those of the privatizer count.

        Parameters
        ----------
        Y : array-like of shape (n_samples, n_features)
            Noised rows, as `LocalPrivatizer.transform` gives them.
        y : array-like of shape (n_samples,), default=None
            Noised labels, as `LocalPrivatizer.privatize` gives them.
        privatizer : LocalPrivatizer
            The fitted privatizer that the owners have used, or a copy of it.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For rows of another width, labels without randomised response, or bad parameters.
        """
        with undo_on_failure(self), plain_numbers(self):
            return self._fit_privatized(Y, y, privatizer)

    def _fit_privatized(self, Y, y, privatizer):
        if not isinstance(privatizer, LocalPrivatizer):
            raise ValueError(
                f"privatizer must be a LocalPrivatizer; got {type(privatizer).__name__}."
            )
        check_is_fitted(privatizer, "privacy_")
        Y, codec, plan = privatizer.check_noised(Y), privatizer._codec, privatizer._plan
        self._check_learning(codec.p)
        codes, classes, probability = None, None, 0.0
        if y is None:
            plan = replace(plan, releases=plan.releases[:1])
        else:
            codes, classes = _read_noised_labels(y, len(Y), privatizer)
            probability = getattr(plan.releases[1][1], "noise_parameter", 0.0)
        for name in ("classes_", "feature_names_in_"):
            vars(self).pop(name, None)
        n_classes = 1 if classes is None else len(classes)
        release = _Release(Y / codec.radius, plan.sigma, codes, probability)
        self._fit_released(
            release, codec, n_classes, NoiseSource(self.random_state), choose_device(self.device)
        )
        self._codec, self.n_features_in_ = codec, codec.n_features
        if hasattr(privatizer, "feature_names_in_"):
            self.feature_names_in_ = privatizer.feature_names_in_
        if classes is not None:
            self.classes_ = classes
        self._output = replace(privatizer._output, has_target=y is not None, classes=classes)
        self.n_samples_ = len(Y)
        self.sigma_ = plan.sigma * codec.radius
        self.privacy_ = privatizer._certify(
            replace(plan, sigma=self.sigma_), reproducible=privatizer.privacy_.reproducible
        )
        self.epsilon_ = self.privacy_.epsilon
        self._check_learnt()
        return self

    def _check_params(self):
        super()._check_params()
        self._privatizer()._check_params()
        self._check_learning(LOCAL_NORMS[self.mechanism])

    def _check_learning(self, p):
        check_choice("loss", self.loss, LOSSES)
        check_choice("p", self.p, [None, 1, 2])
        if self.p not in (None, p):
            mechanism = next(name for name, norm in LOCAL_NORMS.items() if norm == p)
            raise ValueError(
                f"p={self.p} does not go with mechanism={mechanism!r}: its noise is removed by the "
                f"cost ‖·‖_p^p with p={p}."
            )
        for name in ("reg", "batch_size", "n_steps"):
            check_positive(name, getattr(self, name), whole=name != "reg", optional=True)
        if self.batch_size == 1:
            raise ValueError("batch_size must be at least 2: batches are normalised.")
        check_positive("learning_rate", self.learning_rate)
        check_positive("latent_dim", self.latent_dim, whole=True)
        check_generator(self.generator)

    def _privatizer(self):
        """Return the privatizer that `fit` noises rows by."""
        names = LocalPrivatizer().get_params()
        return LocalPrivatizer(**{name: getattr(self, name) for name in names})

    def _make_codec(self, n_features, has_number=False):
        return self._privatizer()._make_codec(n_features, has_number, self.y_bounds)

    def _plan(self, n_samples, codec, n_classes):
        batch_size = self.batch_size or 1
        check_size("batch_size", batch_size, max(batch_size, codec.n_columns))
        plan = self._privatizer()._make_plan(n_classes if n_classes > 1 else None)
        return replace(plan, sigma=plan.sigma * codec.radius)

    def _learn(self, curator, codec, noise):
        # Anything that can fail comes before the first release.
        self._build(codec, curator.n_classes, 0)
        noised = curator.release(LocalRowsMechanism(codec.p))
        labels = None
        if curator.n_classes > 1:
            labels = curator.release(LocalLabelsMechanism(curator.n_classes))
        curator.close()  # the rest is post-processing
        release = _Release(noised.values, noised.scale)
        if labels is not None:
            release = replace(release, codes=labels.codes, probability=labels.probability)
        self._fit_released(release, codec, curator.n_classes, noise, curator.device)

    def _fit_released(self, release, codec, n_classes, noise, device):
        """Train on what was released."""
        rows = self._build(codec, n_classes, noise.seed()).to(device)
        n_samples = len(release.rows)
        largest = _BATCH_SIZE if release.codes is None else _CLASS_BATCH_SIZE
        reg = _matched_reg(codec.p, release.scale)
        if self.reg is not None:
            reg = self.reg / codec.radius**codec.p
        self._network, self.class_probabilities_, self.loss_curve_ = fit_to_noised_rows(
            rows,
            release.rows,
            release.codes,
            probability=release.probability,
            loss=self.loss,
            p=codec.p,
            reg=reg,
            n_steps=self.n_steps or min(_MOST_STEPS, max(_FEWEST_STEPS, n_samples // 20)),
            batch_size=self.batch_size or max(_FEWEST_ROWS, min(largest, n_samples)),
            learning_rate=self.learning_rate,
            generator=noise.torch_generator(),
            verbose=self.verbose,
        )
        self.reg_ = reg * codec.radius**codec.p
        self.n_iter_ = len(self.loss_curve_)

    def _build(self, codec, n_classes, seed):
        factory = find_factory(self.generator)
        unit_output = getattr(factory, "unit_output", False)
        if unit_output and not codec.has_unit_features:
            raise ValueError(
                f"generator={self.generator!r} makes features in [0, 1]: it needs bounds, and no "
                "numeric y beside them."
            )
        network = build(factory, self.latent_dim + n_classes, codec.n_columns, seed)
        return LocalRowNetwork(network, n_classes, self.latent_dim, codec, unit_output)

    def _generate(self, codes, generator):
        return self._network.sample(codes, generator)


@dataclass(frozen=True)
class _Release:
    """Noised rows, and labels beside them, in units of the ball's radius."""

    rows: np.ndarray
    scale: float
    codes: np.ndarray | None = None
    probability: float = 0.0


def _matched_reg(p, scale):
    """Return the λ = p·σ^p whose kernel exp(-‖·‖_p^p / λ) is the density of the noise.

    The paper's Corollary 1 writes ε / Δ for Laplace noise; its proof asks for Δ / ε.
    """
    return p * scale**p if math.isfinite(scale) else math.inf


def _read_noised_labels(y, n_samples, privatizer):
    """Return the positions of noised labels among the classes, and the classes."""
    if not hasattr(privatizer, "classes_"):
        raise ValueError(
            "Labels came without randomised response: the privatizer has no classes. Labels that "
            "are not noised are not covered by its certificate."
        )
    y = column_or_1d(y)
    classes = privatizer.classes_
    sorter = np.argsort(classes)
    positions = np.searchsorted(classes, y, sorter=sorter).clip(0, len(classes) - 1)
    codes = sorter[positions]
    if len(y) != n_samples or not (classes[codes] == y).all():
        raise ValueError("y must hold one of the privatizer's classes for each row.")
    return codes, classes
