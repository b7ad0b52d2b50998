# SPDX-License-Identifier: BSD-3-Clause
"""Local differential privacy for rows and labels."""

import math
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._process.isolation import isolated
from ..accounting.certificate import Certificate
from ..accounting.plan import Plan, Terms
from ..arrays.layout import ArrayLayout, cast_numbers
from ..arrays.numbers import read_numbers
from ..checks import positive
from ..curator.curator import open_curator
from ..curator.dataset import Dataset, list_refusals
from ..data.inputs import check_classes, check_rows, parse_rows
from ..data.record_functions import clears_frames
from ..exceptions import warn_of_seed
from ..mechanisms.local import LocalLabelsMechanism, LocalRowsMechanism
from ..mechanisms.noise import ASSUMED_OF_NOISE, NoiseSource, check_seed
from ..params import PRIVACY_CHECKS, Checked, documented, fitting
from ..releases.local_noise import LocalNoise, find_local_sigma
from ..saving.serialization import Certified

_ASSUMED = (
    "all cells are numbers: where the dtype of X does not say so, others are refused",
    "each client has one record, and noises it once, with its label: to noise it again is a "
    "further release",
    "all parameters were chosen without looking at the private rows; column names and dtypes are "
    "public",
    *ASSUMED_OF_NOISE,
)


@documented
class LocalPrivatizer(
    Certified, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Checked, BaseEstimator
):
    """Local differential privacy: clients add noise to their own rows before anybody collects them.

    Each row is projected into a public ball and noised once: Laplace noise in an L1 ball gives
    (ε, 0), Gaussian noise in an L2 ball (ε, δ). Two rows of a ball are at most its **diameter**
    apart, so the noise is calibrated to twice the radius. Labels are released by k-ary randomised
    response, and both together cost ε.

    `fit` learns only the number and the names of the columns; a row of zeros suffices.
    `transform` and `privatize` add fresh noise at each call, also with an int `random_state`.
    Noising a row twice costs ε twice.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of each record. ``inf``: no noise, and the certificate says so.
    delta : float, default=1e-5
        Probability scale at which ε may fail, for Gaussian noise. Laplace noise needs none: its ε
        holds at δ = 0.
    accountant : {"pld", "rdp", "autodp"}, default="pld"
        Accountant that calibrates and certifies Gaussian noise.
    random_state : None, int or RandomState, default=None
        None: noise from the operating system. Anything else is for reproducing an experiment,
        **not a private release**: whoever has the seed can recompute the noise. Each call draws
        new noise. A value that is set after `fit` takes effect at the next `fit`, which starts the
        sequence again; a clone or a copy repeats the noise of its original.
    strict : bool, default=False
        Whether to refuse bad records: with a label that is not declared, or a number that is not
        finite. A refusal is an exact answer about the rows, which ε does not cover, and the
        certificate says so. By default such a record counts as the centre of the ball, with the
        first class, and is noised like any other.
    bounds : None or (lower, upper), default=None
        Public bounds of the features, numbers or arrays of shape (n_features,). Features are
        clipped to them and mapped to [-1, 1]. None: rows as they are, in a ball around 0.
    classes : array-like, default=None
        The labels that `privatize` accepts. None: it accepts no labels.
    clip_norm : float, default=None
        Public radius of the ball, in the units after `bounds`. Rows outside are projected on it.
        None: 1; with `bounds`, that of the smallest ball around the whole box, in which nothing is
        projected: n_features (``"laplace"``) or √n_features (``"gaussian"``).
    %(mechanism)s
    %(basis)s
    %(keep)s
    image_shape : "auto", None or tuple of int, default="auto"
        Shape of images for `basis`: (height, width), or with channels first or last. ``"auto"``:
        that of `X`, if it has three or four dimensions; the transform of flat rows is along them.
    %(label_share)s

    Attributes
    ----------
    privacy_ : skdpgen.privacy.Certificate
        Cost of noising a record once, with its label if there are `classes`.
        ``privacy_.shuffled(n, delta)`` gives the cost in the shuffle model.
    epsilon_ : float
        ε at `delta`; at most `epsilon`.
    sigma_ : float
        Standard deviation of the noise on each number, in the units of what `transform` returns.
    classes_ : ndarray of shape (n_classes,)
        Labels, if there are `classes`.
    format_ : BallFormat
        The public map of rows into the ball.
    plan_ : Plan
        The releases of one call of `privatize`.
    %(n_features_in_)s
    %(feature_names_in_)s

    See Also
    --------
    skdpgen.LDPEntropicGAN : Learns the distribution of the rows from noised ones.

    Notes
    -----
    Proof: for rows x and x' in the ball, Laplace noise of scale b has densities with a ratio of at
    most exp(‖x - x'‖₁ / b) ≤ exp(2r / b). Gaussian noise is that of Balle & Wang (2018) at
    ‖x - x'‖₂ ≤ 2r. Clipping, cosine transform and projection are applied to each row on its own. ε
    of rows and of labels add up.

    The paper [1]_ uses the radius as the sensitivity, and so states half of the actual ε of its
    Laplace noise.

    References
    ----------
    .. [1] Reshetova, Chen & Özgür, "Training generative models from privatized data", 2023.
    .. [2] Dwork, McSherry, Nissim & Smith, "Calibrating Noise to Sensitivity in Private Data
       Analysis", TCC 2006.
    .. [3] Kairouz, Oh & Viswanath, "Extremal Mechanisms for Local Differential Privacy", JMLR 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdpgen.preprocessing import LocalPrivatizer
    >>> X, y = load_iris(return_X_y=True)
    >>> privatizer = LocalPrivatizer(5.0, mechanism="gaussian", bounds=(0, 8), classes=[0, 1, 2])
    >>> noised, labels = privatizer.fit(X).privatize(X, y)
    >>> noised.shape, labels.shape
    ((150, 4), (150,))
    >>> bool(4.9 < privatizer.epsilon_ <= 5.0)
    True
    """

    relation = "replace_one"

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        accountant: str = "pld",
        random_state: object = None,
        strict: bool = False,
        bounds: Sequence | None = None,
        classes: Sequence | None = None,
        clip_norm: float | None = None,
        mechanism: str = "laplace",
        basis: str | None = None,
        keep: float | None = None,
        image_shape: Sequence | str | None = "auto",
        label_share: float = 0.2,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.accountant = accountant
        self.random_state = random_state
        self.strict = strict
        self.bounds = bounds
        self.classes = classes
        self.clip_norm = clip_norm
        self.mechanism = mechanism
        self.basis = basis
        self.keep = keep
        self.image_shape = image_shape
        self.label_share = label_share

    def set_params(self, **params):
        super().set_params(**params)
        if "random_state" in params:
            vars(self).pop("_counter", None)  # of the next fit
        return self

    def fit(self, X, y=None) -> "LocalPrivatizer":
        """Learn the number and the names of the columns; only dtypes of cells are read.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features), or images
            Rows; public ones suffice.
        y : Ignored

        Returns
        -------
        self : object
        """
        with fitting(self):
            return self._fit(X)

    def _fit(self, X):
        self._check_params()
        # Whoever knows the seed can subtract the noise from each row.
        if self.random_state is not None:
            warn_of_seed()
        layout = ArrayLayout.of(Dataset(X))
        X = parse_rows(check_rows(self, X))
        format = self._make_format(X.shape[1], layout=layout)
        classes = None if self.classes is None else check_classes(self.classes)
        plan = self._make_plan(format, None if classes is None else len(classes))
        vars(self).pop("classes_", None)
        if classes is not None:
            self.classes_ = classes
        self.format_, self.plan_ = format, plan
        self._n_features_out = format.n_columns
        # Later calls use the values that the certificate states.
        self._is_strict = self.strict
        # The counter survives refits: otherwise a second fit would repeat the noise of the first
        # one.
        self._counter = getattr(self, "_counter", [0])
        self._seed = self.random_state, self._counter
        self.privacy_ = self._certify(plan)
        return self

    def transform(self, X):
        """Add noise to rows, each on its own. Each call is a release.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Private rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Noised rows, or noised cosine coefficients, in the units after `bounds` and the floating
            dtype of `X`.
        """
        return self.privatize(X)

    @clears_frames()
    @isolated()
    def privatize(self, X, y=None):
        """Add noise to rows and their labels, each on its own. Each call is a release.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,), default=None
            Private labels, all among `classes`.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            As from `transform`.
        y : ndarray of shape (n_samples,)
            Labels after randomised response; only if `y` was given.

        Raises
        ------
        ValueError
            As in `transform`, and for labels without `classes`.
        """
        check_is_fitted(self, "privacy_")
        dtype = check_rows(self, X, reset=False).dtype
        format, plan, has_labels = self.format_, self.plan_, y is not None
        classes = self.classes_ if has_labels and hasattr(self, "classes_") else None
        if has_labels and classes is None:
            raise ValueError(
                "Labels are released by randomised response over declared labels: give "
                "classes=[...]. A numeric target is one more column of X."
            )
        if not has_labels:
            # Without labels, their share of the budget is not spent.
            plan = replace(plan, releases=plan.releases[:1])
        dtype = np.float32 if dtype == np.float32 else np.float64
        dataset = Dataset(X, y).validate_array(self, classes, reset=False)
        with open_curator(dataset, format, plan, self._noise(), strict=self._is_strict) as curator:
            noised = curator.release(LocalRowsMechanism(format.p)).values * format.radius
            if has_labels:
                y = classes[curator.release(LocalLabelsMechanism(len(classes))).codes]
        # Rounding to the dtype of the input is post-processing of the released rows.
        noised = cast_numbers(noised, np.dtype(dtype))
        return (noised, y) if has_labels else noised

    @isolated()
    def inverse_transform(self, X) -> np.ndarray:
        """Map noised or generated rows back to features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Features in the units of the input, noise included; not clipped to `bounds`.
        """
        check_is_fitted(self, "privacy_")
        X = self.check_noised(X)
        features = cast_numbers(self.format_.invert(X.astype(np.float64))[0], X.dtype)
        return self.format_.images.reshape(features)

    def save(self, path: str | PathLike) -> None:
        """Write the fitted privatizer to a file, from which `skdpgen.load` reads it.

        See `BaseGenerator.save`. A privatizer with a `random_state` is refused: two copies would
        add the same noise to different rows.

        Parameters
        ----------
        path : str or path
            The file, which is overwritten.

        Raises
        ------
        ValueError
            If the privatizer was fitted with a `random_state`.
        """
        check_is_fitted(self, "privacy_")
        if self.random_state is not None or self._seed[0] is not None:
            raise ValueError(
                "A privatizer with a random_state is not saved, since its copies would repeat its "
                "noise; set random_state=None and fit again."
            )
        super().save(path)

    def _check_loaded(self):
        """Raise ValueError for noise that follows from a seed, or that is not certified."""
        if self.random_state is not None or self._seed[0] is not None:
            raise ValueError("The noise follows from a seed.")
        super()._check_loaded()

    def _list_certified(self):
        yield from super()._list_certified()
        certificate = self.privacy_
        certified = Plan(
            tuple(zip(certificate.releases, certificate.events, strict=True)),
            self.epsilon,
            certificate.delta,
            certificate.relation,
            certificate.accountant,
            certificate.sigma,
            certificate.local,
        )
        yield "plan_", self.plan_, certified

    def _find_sigma(self):
        return find_local_sigma(self.privacy_, self.format_)

    def check_noised(self, X):
        """Validate the width of rows from `transform`, and return them as an array."""
        X = read_numbers(X)
        if X.shape[1] != self.format_.n_columns:
            raise ValueError(
                f"Rows from this privatizer have {self.format_.n_columns} columns; got an array of "
                f"shape {X.shape}."
            )
        return X

    def _noise(self):
        """Return the noise source of one call; seeded calls have a stream each."""
        random_state, counter = self._seed
        counter[0] += 1
        return NoiseSource(random_state, stream=counter[0] + 1)  # generators have 0 and 1

    def _find_noise(self):
        return LocalNoise(self.mechanism, self.basis, self.keep, self.label_share)

    def _make_format(self, n_features, **public):
        return self._find_noise().make_format(
            n_features,
            bounds=self.bounds,
            radius=self.clip_norm,
            image_shape=self.image_shape,
            **public,
        )

    def _make_plan(self, format, n_classes):
        terms = Terms(
            self.epsilon, self.delta, "replace_one", self.accountant, 1, n_classes, format.n_columns
        )
        return self._find_noise().plan(terms, format)

    def _certify(self, plan):
        assumed = (*list_refusals(self.strict), *_ASSUMED)
        reproducible = self.random_state is not None
        return Certificate.of_plan(plan, assumed, reproducible=reproducible).made_by(self)

    def _preview(self, n_samples, n_features, n_classes):
        """Price a call without data; see `skdpgen.privacy.preview`."""
        self._check_params()
        return self._certify(self._make_plan(self._make_format(n_features), n_classes))

    _checks = {
        **PRIVACY_CHECKS,
        "clip_norm": positive(optional=True, most=math.inf),
        "random_state": check_seed,
    }

    def _check_params(self):
        """Raise a ValueError if a parameter is bad; no row is read."""
        super()._check_params()
        # The mechanism's parameters are those of a release, which validates them.
        self._find_noise()._check_params()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
