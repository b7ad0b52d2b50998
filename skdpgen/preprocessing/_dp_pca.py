# SPDX-License-Identifier: BSD-3-Clause
"""Differentially private principal component analysis."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._process.isolation import isolated
from ..accounting.calibration import calibrate_gaussian, find_delta
from ..accounting.certificate import Certificate
from ..accounting.plan import Terms
from ..accounting.spending import keep_nothing, say_how_to_go_on
from ..accounting.units import ONE_RECORD, equivalent_records
from ..arrays.box import BoxFormat
from ..arrays.discovery import make_box
from ..arrays.layout import ArrayLayout, cast_numbers
from ..arrays.numbers import read_numbers
from ..arrays.units import warn_of_moments, warn_of_radius
from ..checks import check_size, whole
from ..curator.curator import open_curator
from ..curator.dataset import Dataset, list_refusals
from ..data.inputs import check_rows, parse_rows
from ..data.record_functions import clears_frames
from ..mechanisms.noise import ASSUMED_OF_NOISE, NoiseSource
from ..mechanisms.sums import CovarianceMechanism, RowCountMechanism, count_rows_by
from ..params import (
    CENTRAL_CHECKS,
    Checked,
    choose_device,
    documented,
    fitting,
    warn_of_delta,
)
from ..releases.published import PublishedRelease
from ..releases.release import Release
from ..saving.serialization import Certified, list_certified_sizes

# Default number of components: beyond it, components of digits and faces are mostly noise.
_MOST_COMPONENTS = 64
# Bound on encoded values, so that sums of products stay finite.
_LARGEST = 1e300

_ASSUMED = (
    ONE_RECORD,
    "bounds, clip_norm and all other parameters were chosen without looking at the private rows; "
    "column names and dtypes are public",
    "only what fit released is covered: transformed private rows are as sensitive as the rows, and "
    "steps of a pipeline that were fitted on private rows are not covered",
    *ASSUMED_OF_NOISE,
)


@dataclass(eq=False, repr=False)
class SecondMoments(Release):
    """The second moments of the rows, released once."""

    is_sum = True
    name = CovarianceMechanism.name


@documented
class DPPCA(Certified, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Checked, BaseEstimator):
    """Principal component analysis under differential privacy.

    `fit` releases the second moments of the rows once, with Gaussian noise (Analyze Gauss [1]_),
    and computes their leading eigenvectors. Rows are **not centred**, since their mean is private:
    with `bounds`, the first component is mostly that mean. Components of images are restricted to
    low frequencies if the noisy moments show more of them there.

    The components are public, and `transform` and `inverse_transform` cost nothing further.
    Transformed private rows are as sensitive as the rows.

    Parameters
    ----------
    %(privacy)s
    %(running)s
    bounds : None or (lower, upper), default=None
        Public bounds of the features, numbers or arrays of shape (n_features,), to which features
        are clipped; they are then mapped to [0, 1] and divided by the root of their number. None:
        those of the dtype if it is bool or uint8; otherwise `fit` infers them from noisy counts at
        a cost: a range for each of up to 50 columns, or one for all columns. Declare them if you
        can.
    clip_norm : "auto" or float, default="auto"
        Radius, in the units after `bounds`, to which each row is scaled down before second moments
        are computed; `transform` does not clip. ``"auto"``: from the root mean square norm, by
        noisy counts at a cost. A number without `bounds`: rows are used as they are.
    %(image_shape)s
    n_components : int, default=None
        Number of components, at most n_features. None: 64, or all if there are fewer.
    %(persons)s

    Attributes
    ----------
    components_ : ndarray of shape (`n_components_`, `n_features_in_`)
        Orthonormal rows, in the units after `bounds`, by decreasing noisy second moment.
    explained_variance_ : ndarray of shape (`n_components_`,)
        Noisy mean squares of the components, not centred; noise may make small ones negative.
    n_components_ : int
        Number of components.
    bounds_ : (lower, upper) or None
        Bounds of the features, arrays of shape (n_features,), declared or inferred.
    clip_norm_ : float
        The radius, declared or inferred.
    %(certified)s
    sigma_ : float
        Standard deviation of the noise on a sum of squares, for rows in the unit ball; for a sum of
        products of two features it is smaller by a factor of √2.
    %(shape)s

    Notes
    -----
    The sensitivity of the second moments is 1, and √2 under ``relation="replace_one"``, in units of
    ``clip_norm²``, for any number of features. Noise alone has eigenvalues up to
    about ``sigma_``·√(2·n_features): components with less than that, divided by n_samples and in
    the units of `explained_variance_`, are arbitrary.

    **As the encoder of a generator that is fitted on the same rows**, this is a second fit on them.
    The generator's certificate does not include it, and assumes that the encoder is public:
    ``skdpgen.compose(pca.privacy_, generator.privacy_)`` states the cost of both together, and a
    `PrivacyBudget` is charged with both. The generators' own ``encoder="dp-pca"`` needs no
    such care.

    References
    ----------
    .. [1] Dwork, Talwar, Thakurta & Zhang, "Analyze Gauss", STOC 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.frozen import FrozenEstimator
    >>> from skdpgen import DPSlicedWassersteinGenerator
    >>> from skdpgen.preprocessing import DPPCA
    >>> from skdpgen.privacy import compose
    >>> X = load_digits().data
    >>> pca = DPPCA(n_components=4, epsilon=1.0, bounds=(0, 16), random_state=0).fit(X)
    >>> pca.transform(X).shape
    (1797, 4)
    >>> generator = DPSlicedWassersteinGenerator(encoder=FrozenEstimator(pca), n_steps=20)
    >>> generator.fit(X).sample(10).shape
    (10, 64)
    >>> bool(1.0 < compose(pca.privacy_, generator.privacy_).epsilon < 2.0)
    True
    """

    _checks = {
        **CENTRAL_CHECKS,
        "n_components": whole(optional=True),
        "max_rows_per_person": whole(),
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        relation: str = "zero_out",
        accountant: str = "pld",
        random_state: object = None,
        device: str = "auto",
        verbose: int = 0,
        strict: bool = False,
        bounds: Sequence | None = None,
        clip_norm: float | str = "auto",
        image_shape: Sequence | str | None = "auto",
        n_components: int | None = None,
        max_rows_per_person: int = 1,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.strict = strict
        self.bounds = bounds
        self.clip_norm = clip_norm
        self.image_shape = image_shape
        self.n_components = n_components
        self.max_rows_per_person = max_rows_per_person

    def fit(self, X, y=None, *, persons=None) -> "DPPCA":
        """Find the components of private rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Private rows.
        y : Ignored
        persons : str or array-like of shape (n_samples,), default=None
            Identifier of the person that each row belongs to, by position, or the name of the
            column of a DataFrame that holds it: the guarantee is then for persons with all their
            rows. Equal strings or numbers identify one person. A row without an identifier counts
            as absent.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For bad shapes, dtypes or parameters, before anything is spent. For values that are
            refused (``strict=True``, or cells of dtype object that are no numbers); open budgets
            are then charged with the fit.
        BudgetExceededError
            If the fit exceeds an open `PrivacyBudget`; nothing is released.
        """
        with fitting(self):
            return self._fit(X, persons)

    def _fit(self, X, persons):
        self._check_params()
        max_rows = None if persons is None else self.max_rows_per_person
        dataset = Dataset.of(X, persons=persons, max_rows=max_rows)
        # Sizes and dtypes are checked before the plan: an error after a release would waste its ε.
        dataset.validate_array(self)
        layout = ArrayLayout.of(dataset)
        n_samples, n_features = dataset.n_records, dataset.n_columns
        # The second moments are a square matrix, whose size is refused before anything is spent.
        check_size("X", n_features, n_features)
        format = self._make_format(n_samples, n_features, layout, max_rows)
        self._n_components(n_features)
        plan = self._plan(format, n_samples, max_rows)
        warn_of_delta(plan.delta, n_samples)
        vars(self).pop("release_", None)
        with open_curator(
            dataset,
            format,
            plan,
            NoiseSource(self.random_state),
            strict=self.strict,
            device=choose_device(self.device),
            verbose=self.verbose,
            keep=self._keep,
            row_count=RowCountMechanism(),
        ) as curator:
            resolved, n_inferred = format.resolve(curator), len(curator.released)

            def publish():
                if len(curator.released) == len(plan.releases):
                    release, planned = SecondMoments(), curator.plan
                    self.release_ = PublishedRelease.of(
                        self, release, curator, planned, resolved, n_inferred, _ASSUMED
                    )

            curator.on_release = publish
            curator.release(CovarianceMechanism())
            curator.close()  # the rest is post-processing
            self._learn(self.release_, resolved)
        # Components are of use, and moments of thousands of columns are large.
        del self.release_
        return self

    def _keep(self):
        kept = vars(self).get("release_")
        return (kept, say_how_to_go_on(type(self)())) if kept else keep_nothing()

    def _find_release(self, format):
        return SecondMoments()

    def _fit_published(self, published, format):
        """Fit to the moments that a failed fit has released; see `from_release`."""
        with fitting(self):
            self._check_params()
            if published.learner != type(self).__name__:
                raise ValueError(f"DPPCA cannot be fitted to the release of a {published.learner}.")
            vars(self).update(published.features)
            self._learn(published, format)
        return self

    def _learn(self, published, format):
        """Compute the components from noisy moments."""
        n_components = self._n_components(format.n_features)
        moments = published.main
        warn_of_moments(format, moments, published.n_rows)
        if not isinstance(self.clip_norm, str):
            warn_of_radius(format, moments, published.n_rows)
        space, inside = np.eye(format.n_columns), moments.value
        if format.are_images:
            from ..networks.components import choose_space

            space, inside, _ = choose_space(moments, n_components, format.row_shape)
        values, vectors = np.linalg.eigh(inside)
        values, vectors = values[::-1][:n_components], (space @ vectors).T[::-1][:n_components]
        vectors = format.images.restore(vectors)
        # The sign of an eigenvector is arbitrary: its largest entry is made positive.
        largest = np.abs(vectors).argmax(axis=1, keepdims=True)
        self.components_ = vectors * np.sign(np.take_along_axis(vectors, largest, axis=1))
        # Moments were released in units of the radius, and as a sum over rows.
        self.explained_variance_ = values * (format.clip_norm**2 / published.n_rows)
        self.n_components_ = self._n_features_out = n_components
        self._format, self.clip_norm_, self.bounds_ = format, format.clip_norm, format.shaped_bounds
        self.n_samples_ = published.n_samples
        self.privacy_ = published.certificate.made_by(self)

    @clears_frames()
    @isolated()
    def transform(self, X) -> np.ndarray:
        """Project rows on the components, each on its own; this costs no privacy.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows. Projections of private rows are as sensitive as the rows.

        Returns
        -------
        ndarray of shape (n_samples, `n_components_`)
            Projections in the units after `bounds` and the floating dtype of `X`; NaN for rows that
            are not finite.
        """
        check_is_fitted(self, "privacy_")
        X = parse_rows(check_rows(self, X, reset=False))
        # Products of the largest numbers overflow.
        rows = self._format.images.restore(self._format.encode(X))
        rows = np.clip(rows, -_LARGEST, _LARGEST) @ self.components_.T
        # Each component mixes all cells of a row, so that one missing cell leaves none of them
        # known.
        rows[~np.isfinite(X).all(axis=1)] = np.nan
        return cast_numbers(rows, X.dtype)

    @isolated()
    def inverse_transform(self, X) -> np.ndarray:
        """Map projections, fitted or generated, back to features.

        Parameters
        ----------
        X : array-like of shape (n_samples, `n_components_`)

        Returns
        -------
        ndarray of shape (n_samples, `n_features_in_`), or of images
            Features within `bounds`, if there are any, in the floating dtype of `X`.
        """
        check_is_fitted(self, "privacy_")
        X = read_numbers(X)
        if X.shape[1] != self.n_components_:
            raise ValueError(
                f"Projections have {self.n_components_} columns; got an array of shape {X.shape}."
            )
        rows = self._format.images.arrange(X.astype(np.float64) @ self.components_)
        features, _ = self._format.decode_rows(rows)
        return self._format.images.reshape(cast_numbers(features, X.dtype))

    def _make_format(self, n_samples, n_features, layout=None, max_rows=None):
        public = {"clip_norm": self.clip_norm, "layout": layout, "image_shape": self.image_shape}
        if self.bounds is None and not isinstance(self.clip_norm, str):
            return BoxFormat(n_features, **public)
        # Over the sensitivity, under either relation.
        delta = find_delta(self.delta, n_samples)
        multiplier = calibrate_gaussian(self.epsilon, delta, accountant=self.accountant)
        n_samples = equivalent_records(n_samples, max_rows)
        return make_box(
            n_samples, n_features, multiplier, self.relation, bounds=self.bounds, **public
        )

    def _plan(self, format, n_samples, max_rows):
        terms = Terms(
            self.epsilon,
            find_delta(self.delta, n_samples),
            self.relation,
            self.accountant,
            n_samples,
            n_classes=1,
            n_columns=format.n_columns,
            shares={**count_rows_by(max_rows), **format.split_budget(0.0)},
            max_rows=max_rows,
        )
        # The moments get what the count of rows and the inference of bounds leave.
        shares, sensitivity = {CovarianceMechanism.name: 1.0}, CovarianceMechanism.sensitivity_of
        return terms.plan_once(shares, lambda plan, relation: sensitivity(relation))

    def _list_certified(self):
        yield from super()._list_certified()
        yield from list_certified_sizes(self)

    def _find_sigma(self):
        return self.privacy_.find_sigma(
            CovarianceMechanism.name, CovarianceMechanism.sensitivity_of
        )

    def _preview(self, n_samples, n_features, n_classes, has_persons=False):
        """Price a fit without data; see `skdpgen.privacy.preview`."""
        self._check_params()
        max_rows = self.max_rows_per_person if has_persons else None
        format = self._make_format(n_samples, n_features, max_rows=max_rows)
        self._n_components(n_features)
        assumed = (*list_refusals(self.strict), *_ASSUMED)
        return Certificate.of_plan(
            self._plan(format, n_samples, max_rows),
            assumed,
            reproducible=self.random_state is not None,
        ).made_by(self)

    def _n_components(self, n_features):
        n_components = self.n_components or min(_MOST_COMPONENTS, n_features)
        if n_components > n_features:
            raise ValueError(
                f"n_components must be at most the number of features, {n_features}; got "
                f"{n_components}."
            )
        return n_components

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
