"""Principal components of private rows, from noisy second moments."""

import math
from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from .._validation import (
    check_choice,
    check_flag,
    check_positive,
    check_size,
    choose_device,
    list_refusals,
    undo_on_failure,
    warn_of_delta,
)
from ..accounting.accountants import ACCOUNTANTS, RELATIONS
from ..accounting.calibration import check_delta, check_epsilon
from ..accounting.certificate import Certificate
from ..accounting.figures import plain_numbers
from ..accounting.plan import gaussian_plan
from ..formats.box import RowCodec
from ..privacy import CovarianceMechanism, Curator, NoiseSource
from ..privacy.noise import ASSUMED_OF_NOISE
from ..privacy.records import parse_rows, take_rows

__all__ = ["DPPCA"]

_MOST_COMPONENTS = 64
# Numbers are kept this small, so that sums of their products stay finite.
_LARGEST = 1e300

_ASSUMED = (
    "one person has one record",
    "bounds, clip_norm and all other parameters were chosen without looking at the private rows; "
    "column names and dtypes are public",
    "only what fit released is covered: transformed private rows are as private as the rows, and "
    "steps of a pipeline that were fitted on private rows are not covered",
    *ASSUMED_OF_NOISE,
)


class DPPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Principal components of private rows, under differential privacy.

    The second moments of the rows are released once, with Gaussian noise (Analyze Gauss [1]_), and
    their leading eigenvectors kept. Rows are **not centred**, as their mean is private: with
    `bounds`, the first component is mostly that mean.

    The components are public, and so are the maps `transform` and `inverse_transform`, which cost
    nothing further. What `transform` makes of private rows is as private as the rows.

    Parameters
    ----------
    n_components : int, default=None
        Components to keep, at most n_features. None: 64, or all if they are less.
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
        clipped to them, mapped to [0, 1] and divided by √n_features. None: rows as they are.
    clip_norm : float, default=1.0
        Public radius, in the units after `bounds`. For the second moments, each row is scaled down
        to it; `transform` does not clip.
    random_state : None, int or RandomState, default=None
        None: noise from the operating system. Anything else is for reproducing an experiment,
        **not a private release**: whoever has the seed can recompute the noise.
    device : str, default="auto"
        Where `fit` computes: "cpu", "cuda", or "auto" for CUDA where there is one.
    verbose : int, default=0
        1 shows a progress bar.
    strict : bool, default=False
        Whether to refuse rows with a number that is not finite. A refusal is an exact answer
        about them, which ε does not cover, and the certificate says so. By default such a row
        counts as absent.

    Attributes
    ----------
    components_ : ndarray of shape (`n_components_`, `n_features_in_`)
        Orthonormal rows, in the units after `bounds`, by decreasing noisy second moment.
    explained_variance_ : ndarray of shape (`n_components_`,)
        Noisy mean squares of the components, not centred; those that are mostly noise may be
        negative.
    n_components_ : int
        Number of components.
    privacy_ : skdpgen.privacy.Certificate
        What was released and what it costs.
    epsilon_ : float
        ε spent at `delta`; at most `epsilon`.
    sigma_ : float
        Standard deviation of the noise on a sum of squares, for rows in the unit ball. On a sum of
        products of two features it is 1/√2 of that.
    n_samples_ : int
        Number of rows, which is public.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` has string column names.

    See Also
    --------
    skdpgen.preprocessing.Autoencoder : For public rows.

    Notes
    -----
    A record moves the second moments by at most 1, and by √2 under ``relation="replace_one"``, in
    units of ``clip_norm²``, however many features there are. Noise alone has eigenvalues up to
    about ``sigma_``·√(2·n_features): components with less than that, divided by n_samples and in
    the units of `explained_variance_`, are arbitrary.

    **As the encoder of a generator that is fitted on the same rows**, this is a second fit on them.
    The generator's certificate does not include it, and assumes that the encoder is public:
    ``skdpgen.privacy.compose(pca.privacy_, generator.privacy_)`` states what both cost together,
    and a `PrivacyBudget` is charged with both. The generators' own ``encoder="dp-pca"`` needs no
    such care.

    References
    ----------
    .. [1] Dwork, Talwar, Thakurta & Zhang, "Analyze Gauss", STOC 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skdpgen import DPPCA, DPSlicedWassersteinGenerator
    >>> from skdpgen.privacy import compose
    >>> X = load_digits().data
    >>> pca = DPPCA(n_components=4, epsilon=1.0, bounds=(0, 16), random_state=0).fit(X)
    >>> pca.transform(X).shape
    (1797, 4)
    >>> generator = DPSlicedWassersteinGenerator(encoder=pca, n_steps=20, random_state=1).fit(X)
    >>> generator.sample(10).shape
    (10, 64)
    >>> bool(1.0 < compose(pca.privacy_, generator.privacy_).epsilon < 2.0)
    True
    """

    def __init__(
        self,
        n_components=None,
        epsilon=1.0,
        delta=1e-5,
        *,
        relation="zero_out",
        accountant="pld",
        bounds=None,
        clip_norm=1.0,
        random_state=None,
        device="auto",
        verbose=0,
        strict=False,
    ):
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.accountant = accountant
        self.bounds = bounds
        self.clip_norm = clip_norm
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.strict = strict

    def fit(self, X, y=None):
        """Find the components of private rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Private rows.
        y : Ignored

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For bad shapes, dtypes or parameters; nothing is spent then. For rows that are refused
            for what is in them (``strict=True``, or cells of dtype object that are no numbers);
            open budgets are charged with the fit then.
        BudgetExceededError
            If an open `PrivacyBudget` cannot pay for the fit; nothing is released then.
        """
        with undo_on_failure(self), plain_numbers(self):
            return self._fit(X)

    def _fit(self, X):
        device = self._check_params()
        X = take_rows(self, X)
        assumed = (*list_refusals(self.strict, X.dtype == object), *_ASSUMED)
        n_samples, n_features = X.shape
        check_size("X", n_features, n_features)
        codec = RowCodec(n_features, bounds=self.bounds)
        n_components = self._n_components(n_features)
        warn_of_delta(self.delta, n_samples, stacklevel=3)
        plan = self._plan()
        with Curator(
            X,
            plan=plan,
            noise=NoiseSource(self.random_state),
            prepare=codec.encode,
            clip_norm=self.clip_norm,
            refuse=codec.refuse if self.strict else None,
            device=device,
            verbose=self.verbose,
        ) as curator:
            del X  # from here on only the curator holds the rows
            moments = curator.release(CovarianceMechanism())
            certificate = curator.certificate(assumed)
        values, vectors = np.linalg.eigh(moments.value)
        values, vectors = values[::-1][:n_components], vectors.T[::-1][:n_components]
        # Eigenvectors have no sign: their largest entry is positive.
        largest = np.abs(vectors).argmax(axis=1, keepdims=True)
        self.components_ = vectors * np.sign(np.take_along_axis(vectors, largest, axis=1))
        self.explained_variance_ = values * (self.clip_norm**2 / n_samples)
        self.n_components_ = self._n_features_out = n_components
        self._codec = codec
        self.n_samples_ = n_samples
        self.sigma_ = plan.sigma
        self.privacy_ = certificate
        self.epsilon_ = certificate.epsilon
        return self

    def transform(self, X):
        """Project rows on the components, each on its own; this costs no privacy.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows. What is made of private rows is as private as they are.

        Returns
        -------
        ndarray of shape (n_samples, `n_components_`)
            In the units after `bounds`, and of the floating dtype of `X`; NaN for rows that are
            not finite.
        """
        check_is_fitted(self, "privacy_")
        X = parse_rows(take_rows(self, X, reset=False))
        # Products of the largest numbers overflow; so may what fits a double, in float32.
        rows = np.clip(self._codec.encode(X), -_LARGEST, _LARGEST) @ self.components_.T
        limit = np.finfo(X.dtype).max
        rows = np.clip(rows, -limit, limit)
        rows[~np.isfinite(X).all(axis=1)] = np.nan
        return rows.astype(X.dtype, copy=False)

    def inverse_transform(self, X):
        """Map projections, or what was generated like them, back to features.

        Parameters
        ----------
        X : array-like of shape (n_samples, `n_components_`)

        Returns
        -------
        ndarray of shape (n_samples, `n_features_in_`)
            Within `bounds`, if there are any, and of the floating dtype of `X`.
        """
        check_is_fitted(self, "privacy_")
        X = check_array(X, dtype=[np.float64, np.float32])
        if X.shape[1] != self.n_components_:
            raise ValueError(
                f"Projections have {self.n_components_} columns; got an array of shape {X.shape}."
            )
        features, _ = self._codec.decode(X.astype(np.float64) @ self.components_)
        return features.astype(X.dtype, copy=False)

    def _plan(self):
        plan = gaussian_plan(
            {CovarianceMechanism.name: 1.0},
            self.epsilon,
            self.delta,
            relation=self.relation,
            accountant=self.accountant,
        )
        sensitivity = CovarianceMechanism().sensitivity(self.relation)
        return replace(plan, sigma=plan.multiplier(CovarianceMechanism.name) * sensitivity)

    def _preview(self, n_samples, n_features, n_classes):
        """Price a fit without data; see `skdpgen.privacy.preview`."""
        self._check_params()
        RowCodec(n_features, bounds=self.bounds)
        self._n_components(n_features)
        assumed = (*list_refusals(self.strict), *_ASSUMED)
        return Certificate.of_plan(
            self._plan(), assumed, reproducible=self.random_state is not None
        )

    def _n_components(self, n_features):
        n_components = self.n_components or min(_MOST_COMPONENTS, n_features)
        if n_components > n_features:
            raise ValueError(
                f"n_components must be at most the number of features, {n_features}; got "
                f"{n_components}."
            )
        return n_components

    def _check_params(self):
        """Refuse bad parameters before any row is read; return the device."""
        check_positive("n_components", self.n_components, whole=True, optional=True)
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        check_flag("strict", self.strict)
        check_choice("relation", self.relation, RELATIONS)
        check_choice("accountant", self.accountant, ACCOUNTANTS)
        check_positive("clip_norm", self.clip_norm, most=math.inf)
        return choose_device(self.device)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
