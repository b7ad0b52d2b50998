# SPDX-License-Identifier: BSD-3-Clause
"""Low-frequency cosine coefficients of images, a public linear dimension reduction."""

import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._process.isolation import isolated
from ..arrays.image_layout import ImageLayout
from ..checks import whole
from ..data.inputs import flatten_images
from ..images import cosine_matrices, find_shape
from ..params import Checked, documented
from ..saving.serialization import Saves


@documented
class LowFrequencies(
    Saves, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Checked, BaseEstimator
):
    """Coefficients of images in the lowest frequencies of the orthonormal cosine transform.

    `fit` learns the number of columns only. As the public part of an encoder,
    ``encoder=[FrozenEstimator(LowFrequencies(14).fit(X_public)), "dp-pca"]``, it reduces the
    dimension in which noise rotates principal components: 196 coefficients represent a smooth image
    of 784 pixels almost completely.

    Parameters
    ----------
    n_frequencies : int, default=14
        Frequencies to keep along each axis of an image, at most its size.
    image_shape : "auto", None or tuple of (channels, height, width), default="auto"
        Shape of the images, with channels first or last, or (height, width). None: rows are
        one-dimensional signals. ``"auto"``: that of `X`, if it has three or four dimensions; else
        square grey images if the number of columns is a square; otherwise None.

    Attributes
    ----------
    image_shape_ : tuple of (channels, height, width)
        Shape of an image.
    %(n_features_in_)s
    %(feature_names_in_)s

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skdpgen.preprocessing import LowFrequencies
    >>> X, y = load_digits(return_X_y=True)
    >>> encoder = LowFrequencies(5).fit(X)
    >>> encoder.transform(X).shape, encoder.inverse_transform(encoder.transform(X)).shape
    ((1797, 25), (1797, 64))
    """

    _checks = {"n_frequencies": whole()}

    def __init__(
        self,
        n_frequencies: int = 14,
        *,
        image_shape: Any = "auto",
    ) -> None:
        self.n_frequencies = n_frequencies
        self.image_shape = image_shape

    @isolated()
    def fit(self, X, y=None) -> "LowFrequencies":
        """Learn the number of columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or images
            Public rows, or zeros of the same width.
        y : Ignored

        Returns
        -------
        self : object
        """
        self._check_params()
        X = validate_data(self, flatten_images(self, X, reset=True))
        shape = getattr(self, "record_shape_in_", None)
        self._layout = ImageLayout.of(X.shape[1], self.image_shape, shape, find_shape)
        self.image_shape_ = self._layout.image_shape or (1, 1, X.shape[1])
        self._n_features_out = self.image_shape_[0] * math.prod(map(len, self._bases()))
        return self

    @isolated()
    def transform(self, X) -> np.ndarray:
        """Return the low-frequency coefficients of images.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, channels * n_kept)
            `n_kept` is the square of `n_frequencies`, or less for small images.
        """
        check_is_fitted(self)
        X = flatten_images(self, X, reset=False)
        X = self._layout.arrange(validate_data(self, X, reset=False, dtype=np.float64))
        rows, columns = self._bases()
        # The transform is separable: two small products in place of one by a matrix of all pixels.
        return (rows @ X.reshape(-1, *self.image_shape_) @ columns.T).reshape(len(X), -1)

    @isolated()
    def inverse_transform(self, X) -> np.ndarray:
        """Return the images that have these coefficients, and no other frequencies.

        Parameters
        ----------
        X : array-like of shape (n_samples, channels * n_kept)

        Returns
        -------
        ndarray of shape (n_samples, n_features), or of images
        """
        check_is_fitted(self)
        X = np.asarray(X, dtype=np.float64)
        rows, columns = self._bases()
        shape = (-1, self.image_shape_[0], len(rows), len(columns))
        # Rows of an orthonormal transform: the transpose is the inverse on the frequencies that are
        # kept.
        images = (rows.T @ X.reshape(shape) @ columns).reshape(len(X), -1)
        return self._layout.reshape(self._layout.restore(images))

    def maps_windows(self, image_shape) -> bool:
        """Return whether windows of images of a shape can be mapped, too."""
        return self.image_shape_ == image_shape

    def _bases(self) -> list[np.ndarray]:
        """Return the matrices of the lowest frequencies along both axes."""
        return [basis[: self.n_frequencies] for basis in cosine_matrices(self.image_shape_)]
