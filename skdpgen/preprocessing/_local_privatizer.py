"""Noise on single rows and labels, for their owners to add."""

import math
import numbers
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from .._validation import (
    check_choice,
    check_flag,
    check_positive,
    check_share,
    list_refusals,
    undo_on_failure,
)
from ..accounting.accountants import ACCOUNTANTS
from ..accounting.calibration import check_delta, check_epsilon
from ..accounting.certificate import Certificate
from ..accounting.figures import plain_numbers
from ..formats.ball import LocalCodec
from ..formats.output import ArrayFormat
from ..privacy import Curator, LocalLabelsMechanism, LocalRowsMechanism, NoiseSource, local_plan
from ..privacy.noise import ASSUMED_OF_NOISE
from ..privacy.records import check_classes, parse_rows, take_labels, take_rows

__all__ = ["LOCAL_NORMS", "LocalPrivatizer"]

# Which norm, and which cost ‖·‖_p^p, goes with which noise.
LOCAL_NORMS = {"laplace": 1, "gaussian": 2}

_ASSUMED = (
    "all cells are numbers: where the dtype of X does not say so, others are refused",
    "each owner has one record and noises it once: to noise it again is a further release",
    "all parameters were chosen without looking at the private rows; column names and dtypes are "
    "public",
    *ASSUMED_OF_NOISE,
)


class LocalPrivatizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Noise on single rows, which their owners add before anybody else sees them (local privacy).

    Each row is brought into a public ball and noised once: Laplace noise in an L1 ball gives
    (ε, 0), Gaussian noise in an L2 ball (ε, δ). Two rows of a ball are at most its **diameter**
    apart, so the noise is calibrated to twice the radius. Labels go through k-ary randomised
    response, and both together cost ε.

    `fit` learns the number and the names of the columns, and nothing else; a row of zeros will do.
    `transform` and `privatize` add fresh noise at each call, also with an int `random_state`.
    Whoever noises a row twice spends ε twice.

    Parameters
    ----------
    mechanism : {"laplace", "gaussian"}, default="laplace"
        Which noise, and with it the norm of the ball, L1 or L2.
    epsilon : float, default=1.0
        Privacy budget of each record. ``inf``: no noise, and the certificate says so.
    delta : float, default=1e-5
        Probability scale at which ε may fail, for Gaussian noise. Laplace noise needs none: its ε
        holds at δ = 0.
    radius : float, default=None
        Public radius of the ball, in the units after `bounds`. Rows outside are projected on it.
        None: 1; with `bounds`, that of the smallest ball around the whole box, in which nothing is
        projected: n_features (``"laplace"``) or √n_features (``"gaussian"``).
    bounds : None or (lower, upper), default=None
        Public bounds of the features, numbers or arrays of shape (n_features,). Features are
        clipped to them and mapped to [-1, 1]. None: rows as they are, in a ball around 0.
    basis : None or "dct", default=None
        ``"dct"``: the noise is added to the coefficients of the orthonormal cosine transform of a
        row, which for images have a smaller L1 norm than the pixels.
    keep : float, default=None
        With ``basis="dct"``, the share of coefficients that a row keeps, its largest ones; the
        others become 0 before the row is projected. None: all.
    image_shape : tuple of int, default=None
        Shape of the images that rows are, (height, width) or (channels, height, width). The cosine
        transform is along the last two axes. None: along the row.
    classes : array-like, default=None
        The labels that `privatize` takes. None: it takes none.
    label_share : float, default=0.2
        The share of ε that labels get.
    accountant : {"pld", "rdp", "autodp"}, default="pld"
        What finds Gaussian noise and certifies it.
    random_state : None, int or RandomState, default=None
        None: noise from the operating system. Anything else is for reproducing an experiment,
        **not a private release**: whoever has the seed can recompute the noise. Calls still differ
        from each other. What is set after `fit` counts from the next `fit` on: setting the
        parameter again then starts anew, and a clone or a copy repeats what its original did from
        there on.
    strict : bool, default=False
        Whether to refuse bad records: with a label that is not declared, or a number that is not
        finite. A refusal is an exact answer about the rows, which ε does not cover, and the
        certificate says so. By default such a record counts as the centre of the ball, with the
        first class, and is noised like any other.

    Attributes
    ----------
    privacy_ : skdpgen.privacy.Certificate
        What each record costs if it is noised once, with its label if there are `classes`.
        ``privacy_.shuffled(n, delta)`` says what it costs towards those who see only shuffled
        records.
    epsilon_ : float
        ε at `delta`; at most `epsilon`.
    sigma_ : float
        Scale of the noise, in the units of what `transform` returns: the scale parameter b of
        Laplace noise (its standard deviation is √2·b), the standard deviation of Gaussian noise.
    classes_ : ndarray of shape (n_classes,)
        Labels, if there are `classes`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` has string column names.

    See Also
    --------
    LDPEntropicGAN : Learns the distribution of the rows from noised ones.

    Notes
    -----
    Proof: for rows x and x' in the ball, Laplace noise of scale b has densities with a ratio of at
    most exp(‖x - x'‖₁ / b) ≤ exp(2r / b). Gaussian noise is that of Balle & Wang (2018) at
    ‖x - x'‖₂ ≤ 2r. What comes before, the clipping, the cosine transform and the projection, looks
    at one row at a time. ε of rows and of labels add up.

    The paper [1]_ takes the radius for the sensitivity, and so states half of the ε that it spends
    with Laplace noise.

    References
    ----------
    .. [1] Reshetova, Chen & Özgür, "Training generative models from privatized data", 2023.
    .. [2] Dwork, McSherry, Nissim & Smith, "Calibrating Noise to Sensitivity in Private Data
       Analysis", TCC 2006.
    .. [3] Kairouz, Oh & Viswanath, "Extremal Mechanisms for Local Differential Privacy", JMLR 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdpgen import LocalPrivatizer
    >>> X, y = load_iris(return_X_y=True)
    >>> privatizer = LocalPrivatizer("gaussian", epsilon=5.0, bounds=(0, 8), classes=[0, 1, 2])
    >>> noised, labels = privatizer.fit(X).privatize(X, y)
    >>> noised.shape, labels.shape
    ((150, 4), (150,))
    >>> bool(4.9 < privatizer.epsilon_ <= 5.0)
    True
    """

    def __init__(
        self,
        mechanism="laplace",
        epsilon=1.0,
        delta=1e-5,
        radius=None,
        *,
        bounds=None,
        basis=None,
        keep=None,
        image_shape=None,
        classes=None,
        label_share=0.2,
        accountant="pld",
        random_state=None,
        strict=False,
    ):
        self.mechanism = mechanism
        self.epsilon = epsilon
        self.delta = delta
        self.radius = radius
        self.bounds = bounds
        self.basis = basis
        self.keep = keep
        self.image_shape = image_shape
        self.classes = classes
        self.label_share = label_share
        self.accountant = accountant
        self.random_state = random_state
        self.strict = strict

    def set_params(self, **params):
        super().set_params(**params)
        if "random_state" in params:
            vars(self).pop("_counter", None)  # of the next fit
        return self

    def fit(self, X, y=None):
        """Note the number and the names of the columns; no cell is looked at, but for its type.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows; public ones will do.
        y : Ignored

        Returns
        -------
        self : object
        """
        with undo_on_failure(self), plain_numbers(self):
            return self._fit(X)

    def _fit(self, X):
        self._check_params()
        output = ArrayFormat.of(X, None)
        X = parse_rows(self._read(X))
        self._codec = self._make_codec(X.shape[1])
        classes = None if self.classes is None else check_classes(self.classes)
        self._plan = self._make_plan(None if classes is None else len(classes))
        vars(self).pop("classes_", None)
        if classes is not None:
            self.classes_ = classes
        self._output = output
        self._n_features_out = self._codec.n_columns
        # What calls refuse and take their noise from is what the certificate speaks of.
        self._refuse = self._codec.refuse if self.strict else None
        self._counter = getattr(self, "_counter", [0])
        self._seed = self.random_state, self._counter
        self.sigma_ = self._plan.sigma * self._codec.radius
        plan = replace(self._plan, sigma=self.sigma_)
        self.privacy_ = self._certify(plan, reproducible=self.random_state is not None)
        self.epsilon_ = self.privacy_.epsilon
        return self

    def transform(self, X):
        """Noise rows, each on its own. Each call is a release.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Private rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Noised rows, or noised cosine coefficients, in the units after `bounds` and of the
            floating dtype of `X`.

        Raises
        ------
        ValueError
            For bad shapes and dtypes; nothing is spent then. For rows that are refused for what is
            in them (``strict=True``, or cells of dtype object that are no numbers). Messages quote
            no cell.
        """
        return self.privatize(X)

    def privatize(self, X, y=None):
        """Noise rows and their labels, each on its own. Each call is a release.

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
        X = self._read(X, reset=False)
        plan, has_labels = self._plan, y is not None
        if has_labels:
            if not hasattr(self, "classes_"):
                raise ValueError(
                    "Labels are released by randomised response over declared labels: give "
                    "classes=[...]. A numeric target is one more column of X."
                )
            y, classes, _ = take_labels(y, len(X), self.classes_)
        else:
            # Rows alone: what labels would cost is not spent.
            plan, classes = replace(plan, releases=plan.releases[:1]), None
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        with Curator(
            X,
            y,
            classes=classes,
            plan=plan,
            noise=self._noise(),
            prepare=self._codec.encode,
            refuse=self._refuse,
        ) as curator:
            noised = curator.release(LocalRowsMechanism(self._codec.p)).values * self._codec.radius
            if has_labels:
                y = classes[curator.release(LocalLabelsMechanism(len(classes))).codes]
        noised = noised.astype(dtype, copy=False)
        return (noised, y) if has_labels else noised

    def inverse_transform(self, X):
        """Map noised rows, or what was generated like them, back to features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            In the units that `fit` was given, noise included; not clipped to `bounds`.
        """
        check_is_fitted(self, "privacy_")
        X = self.check_noised(X)
        return self._codec.invert(X.astype(np.float64))[0].astype(X.dtype, copy=False)

    def check_noised(self, X):
        """Check that an array could come from `transform`, by its width; return it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        X = check_array(X, dtype=[np.float64, np.float32])
        if X.shape[1] != self._codec.n_columns:
            raise ValueError(
                f"Rows from this privatizer have {self._codec.n_columns} columns; got an array of "
                f"shape {X.shape}."
            )
        return X

    def _read(self, X, *, reset=True):
        if not (hasattr(X, "columns") or sparse.issparse(X)):
            X = np.asanyarray(X)
        return take_rows(self, X, reset=reset)

    def _noise(self):
        """Return the noise of one call: with a seed, of a stream that no other call has."""
        random_state, counter = self._seed
        counter[0] += 1
        return NoiseSource(random_state, stream=counter[0] + 1)  # generators have 0 and 1

    def _make_codec(self, n_features, has_number=False, y_bounds=None):
        return LocalCodec(
            n_features,
            LOCAL_NORMS[self.mechanism],
            radius=self.radius,
            bounds=self.bounds,
            basis=self.basis,
            keep=self.keep,
            image_shape=None if self.image_shape is None else tuple(self.image_shape),
            has_number=has_number,
            y_bounds=y_bounds,
        )

    def _make_plan(self, n_classes):
        return local_plan(
            LOCAL_NORMS[self.mechanism],
            n_classes,
            self.epsilon,
            self.delta,
            label_share=self.label_share,
            accountant=self.accountant,
        )

    def _certify(self, plan, reproducible):
        assumed = (*list_refusals(self.strict), *_ASSUMED)
        return Certificate.of_plan(plan, assumed, reproducible=reproducible)

    def _preview(self, n_samples, n_features, n_classes):
        """Price a call without data; see `skdpgen.privacy.preview`."""
        self._check_params()
        codec = self._make_codec(n_features)
        plan = self._make_plan(n_classes)
        plan = replace(plan, sigma=plan.sigma * codec.radius)
        return self._certify(plan, reproducible=self.random_state is not None)

    def _check_params(self):
        """Refuse bad parameters before any row is read."""
        check_choice("mechanism", self.mechanism, LOCAL_NORMS)
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        check_positive("radius", self.radius, optional=True, most=math.inf)
        check_choice("basis", self.basis, [None, "dct"])
        if self.keep is not None:
            check_positive("keep", self.keep)
            if self.keep > 1 or self.basis is None:
                raise ValueError("keep is a share of cosine coefficients, for basis='dct'.")
        if self.image_shape is not None:
            sides = list(self.image_shape) if isinstance(self.image_shape, Iterable) else []
            whole = all(isinstance(side, numbers.Integral) and side > 0 for side in sides)
            if len(sides) not in (2, 3) or not whole:
                raise ValueError(
                    "image_shape must be (height, width) or (channels, height, width); got "
                    f"{self.image_shape!r}."
                )
        check_share("label_share", self.label_share)
        check_flag("strict", self.strict)
        check_choice("accountant", self.accountant, ACCOUNTANTS)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
