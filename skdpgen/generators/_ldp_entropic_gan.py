# SPDX-License-Identifier: BSD-3-Clause
"""Generator networks trained on locally privatised rows."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..accounting.certificate import Certificate
from ..arrays.units import warn_of_noised_rows
from ..base import BaseGenerator
from ..checks import check_size, positive, whole
from ..curator.curator import find_digest
from ..data.containers import NUMPY
from ..learners.entropic import LocalRowNetwork, fit_to_noised_rows
from ..learners.rehearsal import try_generator, try_loss
from ..learners.rows import has_unit_output
from ..losses import EntropicWasserstein, OwnLoss, SinkhornDivergence, Wasserstein
from ..mechanisms.local import DEVIATIONS, LocalLabelsMechanism, LocalRowsMechanism
from ..mechanisms.noise import NoiseSource
from ..networks.generators import build, find_shaped
from ..params import choose_device, documented, fitting
from ..preprocessing._local_privatizer import LocalPrivatizer
from ..releases.local_noise import LocalNoise, find_local_sigma
from ._network import check_network

# Rows per step, without labels and for each label; and least and largest number of steps.
_BATCH_SIZE, _CLASS_BATCH_SIZE, _FEWEST_ROWS = 256, 100, 32
_FEWEST_STEPS, _MOST_STEPS = 60, 3000


@documented
class LDPEntropicGAN(BaseGenerator):
    """Generator network trained by entropic transport on locally privatised rows.

    Each row is noised on its own, once (local privacy, see `LocalPrivatizer`). A network is then
    trained so that the entropic Wasserstein distance from its rows to the *noised* rows is least.
    If the regularisation matches the noise, the minimiser is the distribution of the rows *without*
    noise [1]_ (Theorem 1): the entropic loss removes in expectation what the noise has added.

    `fit` adds the noise itself. In a deployment clients add it, and `fit_privatized` takes their
    noised rows. Training reads noised rows only and costs nothing.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of each record. ``inf``: no noise, and the certificate says so.
    delta : float, default=1e-5
        Probability scale at which ε may fail, for Gaussian noise. Laplace noise needs none.
    %(accountant)s
    %(random_state)s
    %(device)s
    %(verbose)s
    strict : bool, default=False
        As in `LocalPrivatizer`.
    bounds : None or (lower, upper), default=None
        Public bounds of the features, numbers or arrays of shape (n_features,). Features are
        clipped to them and mapped to [-1, 1]; samples are mapped back. None: those of
        the dtype if it is bool or uint8 and `clip_norm` is None; else rows as they are.
    %(y_bounds)s
    classes : array-like, default=None
        The labels that `y` may hold. None: inferred from `y`, with a `PrivacyLeakWarning`; the
        certificate then does not call itself local, since somebody saw all labels.
    clip_norm : float, default=None
        Public radius of the ball, in the units after `bounds`. Rows outside are projected on it,
        and the noise is calibrated to its diameter. None: 1; with `bounds`, that of the
        smallest ball around the whole box, n_features (``"laplace"``) or √n_features.
    image_shape : "auto", None or tuple of int, default="auto"
        Shape of the images that records are: (height, width), or with channels first or last.
        ``"auto"``: that of `X`, if it has three or four dimensions; flat rows are no images then.
    release : {"laplace", "gaussian"} or LocalNoise, default="laplace"
        Noise and its basis, in which generated rows are compared, too.
    loss : {"entropic", "wasserstein", "sinkhorn_divergence"} or object, default="entropic"
        `EntropicWasserstein` removes the noise; `Wasserstein` and `SinkhornDivergence` learn the
        noised distribution, and are there to compare with. The cost is ‖·‖_p^p with the p that goes
        with the noise, 1 for Laplace and 2 for Gaussian noise. An own ``loss(generated, noised)``
        returns one number for tensors of rows in units of the radius; it sees noised rows only.
    network : str or callable, default="mlp"
        As in `DPSlicedWassersteinGenerator`; those that make images need `bounds`.
    latent_dim : int, default=20
        Dimension of the network's random code; the one-hot class is joined to it.
    n_steps : int, default=None
        Training steps. None: n_samples / 20 within [60, 3000].
    batch_size : int, default=None
        Noised rows a step, and as many generated ones; with labels, for each of them. None: 256, or
        100 with labels, or n_samples if that is less, but at least 32.
    learning_rate : float, default=0.003
        Learning rate of Adam, with a warm-up and a linear decay to 0.

    Attributes
    ----------
    privacy_ : skdpgen.privacy.Certificate
        Cost of each record. ``privacy_.shuffled(n, delta)`` gives the cost in the shuffle model
        (Laplace noise).
    epsilon_ : float
        ε spent at `delta`; at most `epsilon`.
    sigma_ : float
        Standard deviation of the noise on each number, in the units after `bounds`.
    reg_ : float or None
        λ, in the units after `bounds`; None with an own loss.
    classes_ : ndarray of shape (n_classes,)
        Labels, if `y` holds classes.
    class_probabilities_ : ndarray of shape (n_classes,)
        Shares of the classes, estimated from noised labels.
    loss_curve_ : list of float
        The loss on noised rows at each step, in units of the ball's radius to the power of p.
    n_iter_ : int
        Number of training steps.
    %(shape)s

    See Also
    --------
    skdpgen.preprocessing.LocalPrivatizer : The clients' side.
    DPSlicedWassersteinGenerator : Central privacy: far less noise at the same ε.

    Notes
    -----
    Local noise is on every row, and does not shrink with n. It takes many rows, few features and an
    ε of several units to learn from them.

    With labels, the transport is between the rows with one noised label and generated rows of
    classes that are drawn given that label. So classes are not blurred by the randomised response.

    The neighbouring relation is always ``"replace_one"``. A bad record does not count as absent,
    but as the centre of the ball, with the first class, and is noised like any other.

    References
    ----------
    .. [1] Reshetova, Chen & Özgür, "Training generative models from privatized data", 2023.
    .. [2] Feldman, McMillan & Talwar, "Hiding Among the Clones", FOCS 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpgen import LDPEntropicGAN
    >>> from skdpgen.preprocessing import LocalPrivatizer
    >>> rng = np.random.RandomState(0)
    >>> angles = np.pi * rng.uniform(size=500)
    >>> X = np.column_stack([np.cos(angles), np.sin(angles)])
    >>> gan = LDPEntropicGAN(5.0, release="gaussian", n_steps=20, random_state=0).fit(X)
    >>> gan.sample(10).shape, bool(gan.epsilon_ <= 5.0)
    ((10, 2), True)

    With noise that clients add:

    >>> privatizer = LocalPrivatizer(mechanism="gaussian", epsilon=5.0).fit(X)
    >>> noised = privatizer.transform(X)
    >>> gan = LDPEntropicGAN(n_steps=20).fit_privatized(noised, privatizer=privatizer)
    >>> bool(gan.epsilon_ == privatizer.epsilon_)
    True
    """

    _shorthands = {
        "release": {"laplace": LocalNoise, "gaussian": partial(LocalNoise, "gaussian")},
        "loss": {
            "entropic": EntropicWasserstein,
            "wasserstein": Wasserstein,
            "sinkhorn_divergence": SinkhornDivergence,
        },
    }
    _wrappers = {"loss": OwnLoss}
    _checks = {
        "clip_norm": positive(optional=True, most=math.inf),
        "network": check_network,
        "latent_dim": whole(),
        "n_steps": whole(optional=True),
        "batch_size": whole(optional=True),
        "learning_rate": positive(),
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        accountant: str = "pld",
        random_state: object = None,
        device: str = "auto",
        verbose: int = 0,
        strict: bool = False,
        bounds: Sequence | None = None,
        y_bounds: Sequence | None = None,
        classes: Sequence | None = None,
        clip_norm: float | None = None,
        image_shape: Sequence | str | None = "auto",
        release: LocalNoise | str = "laplace",
        loss: EntropicWasserstein | SinkhornDivergence | Wasserstein | Callable | str = "entropic",
        network: Callable | str = "mlp",
        latent_dim: int = 20,
        n_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float = 0.003,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.accountant = accountant
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.strict = strict
        self.bounds = bounds
        self.y_bounds = y_bounds
        self.classes = classes
        self.clip_norm = clip_norm
        self.image_shape = image_shape
        self.release = release
        self.loss = loss
        self.network = network
        self.latent_dim = latent_dim
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate

    def fit_privatized(self, Y, y=None, *, privatizer: LocalPrivatizer) -> "LDPEntropicGAN":
        """Learn the distribution of locally privatised rows.

        The parameters that say how rows are noised (`epsilon`, `release`, `clip_norm`,
        `bounds` and `classes`) are not read: those of the privatizer count.

        Parameters
        ----------
        Y : array-like of shape (n_samples, n_features)
            Noised rows, as `LocalPrivatizer.transform` gives them.
        y : array-like of shape (n_samples,), default=None
            Noised labels, as `LocalPrivatizer.privatize` gives them.
        privatizer : LocalPrivatizer
            The fitted privatizer of the clients, or a copy of it.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For rows of another width, rows or labels without noise, or bad parameters. Noised rows
            fill a grid, so that others are recognised; rounded ones are refused, too. Labels show
            only whether the privatizer has classes.
        """
        with fitting(self):
            return self._fit_privatized(Y, y, privatizer)

    def _fit_privatized(self, Y, y, privatizer):
        if not isinstance(privatizer, LocalPrivatizer):
            raise ValueError(
                f"privatizer must be a LocalPrivatizer; got {type(privatizer).__name__}."
            )
        check_is_fitted(privatizer, "privacy_")
        Y, format, plan = privatizer.check_noised(Y), privatizer.format_, privatizer.plan_
        self._check_params()
        if not LocalRowsMechanism(format.p).are_noised(Y, format.radius, plan.events[0]):
            raise ValueError(
                "Y does not have the noise of this privatizer: give the rows as its transform "
                "returned them, not rounded. For rows without noise, use fit."
            )
        codes, classes, probability = None, None, 0.0
        if y is None:
            # The response to labels is not a release of this fit if there are none.
            plan = replace(plan, releases=plan.releases[:1])
        else:
            codes, classes = _read_noised_labels(y, len(Y), privatizer)
            probability = getattr(plan.releases[1][1], "noise_parameter", 0.0)
        # A refit must not keep attributes of the last fit.
        for name in ("classes_", "feature_names_in_", "release_"):
            vars(self).pop(name, None)
        n_classes = 1 if classes is None else len(classes)
        # Training takes the scale of Laplace or Gaussian noise, in units of the radius; σ is a
        # deviation.
        scale = plan.sigma / format.radius / DEVIATIONS[format.p]
        release = _Release(Y / format.radius, scale, codes, probability)
        self._fit_released(
            release, format, n_classes, NoiseSource(self.random_state), choose_device(self.device)
        )
        self.n_features_in_ = format.n_features
        if hasattr(privatizer, "feature_names_in_"):
            self.feature_names_in_ = privatizer.feature_names_in_
        layout = replace(format.layout, y=None if y is None else NUMPY)
        return self._finish(
            replace(format, layout=layout, classes=classes),
            len(Y),
            # That of the clients' releases: training adds nothing to it.
            replace(
                Certificate.of_plan(
                    plan,
                    privatizer.privacy_.assumptions,
                    reproducible=privatizer.privacy_.reproducible,
                ),
                digests=((find_digest((Y, y)),),) * len(plan.events),
            ),
        )

    def _list_certified(self):
        # The plan of privatised rows follows from the parameters of a privatizer.
        return super()._list_certified() if hasattr(self, "release_") else ()

    def _find_sigma(self):
        return find_local_sigma(self.privacy_, self._format)

    def _check_params(self):
        super()._check_params()
        if self.batch_size == 1:
            raise ValueError("batch_size must be at least 2: batches are normalised.")

    def _make_format(self, n_samples, n_features, n_classes, **public):
        bounds, layout = self.bounds, public.get("layout")
        # `clip_norm` is in the units after bounds, and a number y needs bounds beside those of X.
        is_open = public.get("has_number") and self.y_bounds is None
        if bounds is None and layout is not None and self.clip_norm is None and not is_open:
            bounds = layout.bounds
        return self._resolve_spec("release").make_format(
            n_features,
            bounds=bounds,
            y_bounds=self.y_bounds,
            radius=self.clip_norm,
            image_shape=self.image_shape,
            **public,
        )

    def _plan(self, terms, format):
        batch_size = self.batch_size or 1
        check_size("batch_size", batch_size, max(batch_size, terms.n_columns))
        self._find_factory(format)
        has_labels = terms.n_classes > 1
        try_generator(
            self.network,
            self.latent_dim,
            terms.n_classes,
            format.n_columns,
            terms.n_classes * self._count_rows(terms.n_samples, has_labels),
            choose_device(self.device),
            images=format.images,
        )
        loss = self._resolve_spec("loss")
        if isinstance(loss, OwnLoss):
            n_rows = self._count_rows(terms.n_samples, has_labels)
            try_loss(loss, (n_rows, n_rows), terms.n_columns, choose_device(self.device))
        # None: no labels, and so no response to pay for.
        n_classes = terms.n_classes if has_labels else None
        return self._find_release(format).plan(replace(terms, n_classes=n_classes), format)

    def _learn(self, curator, format, noise):
        noised = curator.release(LocalRowsMechanism(format.p))
        labels = None
        if curator.n_classes > 1:
            labels = curator.release(LocalLabelsMechanism(curator.n_classes))
        curator.close()  # the rest is post-processing
        release = _Release(noised.values, noised.scale)
        if labels is not None:
            release = replace(release, codes=labels.codes, probability=labels.probability)
        self._fit_released(release, format, curator.n_classes, noise, curator.device)

    def _fit_released(self, release, format, n_classes, noise, device):
        """Train on privatised rows."""
        warn_of_noised_rows(format, release.rows, release.scale * DEVIATIONS[format.p])
        rows = self._build(format, n_classes, noise.seed()).to(device)
        n_samples = len(release.rows)
        loss, p = self._resolve_spec("loss"), format.p
        # The loss is in units of the radius, and λ scales with its power p.
        reg = _matched_reg(p, release.scale) if loss.reg is None else loss.reg / format.radius**p
        sampler = fit_to_noised_rows(
            rows,
            release.rows,
            release.codes,
            probability=release.probability,
            distance=loss.distance,
            p=p,
            reg=reg,
            n_steps=self.n_steps or min(_MOST_STEPS, max(_FEWEST_STEPS, n_samples // 20)),
            batch_size=self._count_rows(n_samples, release.codes is not None),
            learning_rate=self.learning_rate,
            generator=noise.torch_generator(),
            verbose=self.verbose,
        )
        self._take_sampler(sampler)
        # In the units of the rows again.
        self.reg_ = None if isinstance(loss, OwnLoss) else reg * format.radius**p

    def _count_rows(self, n_samples, has_labels):
        """Return the rows of each noised label in a step."""
        largest = _CLASS_BATCH_SIZE if has_labels else _BATCH_SIZE
        return self.batch_size or max(_FEWEST_ROWS, min(largest, n_samples))

    def _find_factory(self, format):
        if has_unit_output(self.network) and (format.bounds is None or format.has_number):
            raise ValueError(
                f"network={self.network!r} makes features in [0, 1]: it needs bounds, and no "
                "numeric y beside them."
            )
        return find_shaped(self.network, format.images)

    def _build(self, format, n_classes, seed):
        factory = self._find_factory(format)
        network = build(factory, self.latent_dim + n_classes, format.n_columns, seed)
        return LocalRowNetwork(
            network, n_classes, self.latent_dim, format, has_unit_output(self.network)
        )

    def _generate(self, classes, generator):
        return self._rows.sample(classes, generator)


@dataclass(frozen=True)
class _Release:
    """Noised rows, and labels beside them, in units of the ball's radius."""

    rows: np.ndarray
    scale: float
    codes: np.ndarray | None = None
    probability: float = 0.0


def _matched_reg(p, scale):
    """Return the λ = p·b^p whose kernel exp(-‖·‖_p^p / λ) is the density of noise of scale b.

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
    # Not sorted in general: classes keep the order in which they were declared.
    classes = privatizer.classes_
    sorter = np.argsort(classes)
    positions = np.searchsorted(classes, y, sorter=sorter).clip(0, len(classes) - 1)
    codes = sorter[positions]
    if len(y) != n_samples or not (classes[codes] == y).all():
        raise ValueError("y must hold one of the privatizer's classes for each row.")
    return codes, classes
