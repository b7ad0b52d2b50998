# SPDX-License-Identifier: BSD-3-Clause
"""Format of bounded arrays, encoded as rows of the unit ball."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..data.record_functions import call_quietly
from ..images import draw_windows, find_shape
from ..registry import savable
from .layout import ArrayFormat
from .numbers import match_names

# Squares of fewer pixels a side are not taken for images: a table may well have as many columns.
_SIDE_OF_IMAGES = 16


@savable
@dataclass(frozen=True)
class BoxFormat(ArrayFormat):
    """Maps features, and a numeric target beside them, to rows and back.

    With bounds, features are clipped to them, mapped to [0, 1] and divided by √(number of
    columns), so that rows lie in the unit ball. With an encoder, features are clipped to the
    bounds, if any, and encoded. Otherwise they are used as they are.

    Parameters
    ----------
    n_features, bounds, has_number, y_bounds, classes, layout
        As in `ArrayFormat`.
    encoder : object, default=None
        With `transform` and `inverse_transform`, fitted on public data.
    components : PrivatePCA, default=None
        Components of the rows, which are released first and encode them.
    clip_norm : float, default=1.0
        The radius of rows, which are decoded from the unit ball.
    """

    encoder: object = None
    components: Any = None
    clip_norm: float = 1.0

    @property
    def parameters(self):
        encoder = self.encoder, self.components
        return {**super().parameters, "clip_norm": self.clip_norm, "encoder": encoder}

    @property
    def fitted_attributes(self):
        fitted = {
            "bounds_": self.bounds,
            "clip_norm_": self.clip_norm,
            "encoder_": self.encoder if self.components is None else self.components,
        }
        if self.y_bounds is not None:
            fitted["y_bounds_"] = tuple(float(bound[0]) for bound in self.y_bounds)
        return fitted

    @property
    def unit(self):
        """Factor of a feature in [0, 1], by which rows of all columns lie in the unit ball."""
        return (self.n_features + self.has_number) ** -0.5

    @property
    def feature_scale(self):
        is_plain = self.bounds is not None and self.encoder is None and not self.has_number
        return self.unit / self.clip_norm if is_plain else None

    @property
    def n_columns(self):
        """Number of columns of a row; an encoder's are found with a public row of zeros."""
        if self.encoder is None:
            return self.n_features + self.has_number
        zeros = np.zeros((1, self.n_features))
        zeros = zeros if self.bounds is None else np.clip(zeros, *self.bounds)
        rows = call_quietly(self._encode_features, zeros)
        if rows is None or rows.ndim != 2 or len(rows) != 1:
            raise ValueError(
                f"encoder must map rows of {self.n_features} features to rows of numbers; it does "
                "not map a row of zeros."
            )
        return rows.shape[1] + self.has_number

    # Whether rows would be images with declared bounds from 0 to one number.
    could_be_images = False

    @property
    def are_images(self):
        """Whether rows are square images, by their sizes and bounds from 0 to one number.

        Features that a network made of something may be as many, and are unlike images: few of them
        come with such bounds.
        """
        if self.encoder is not None or self.has_number or self.bounds is None:
            return False
        is_square = find_shape(self.n_features, (1, 3))[1] >= _SIDE_OF_IMAGES
        lower, upper = self.bounds
        return bool(is_square and (lower == 0).all() and (upper == upper[0]).all())

    def draw_windows(self, n_windows, generator):
        """Draw small windows of images, as public directions of rows.

        Images are rows of pixels or of their `LowFrequencies`.

        Parameters
        ----------
        n_windows : int
        generator : torch.Generator
            On the CPU, where directions are made, so that every device gets the same.

        Yields
        ------
        tensor of shape (n, n_columns)
            Together `n_windows`, in blocks; none if rows are not known to be images.
        """
        is_linear = getattr(self.encoder, "maps_windows", self.encoder is None)
        if is_linear and not self.has_number:
            for windows in draw_windows(self.n_features, n_windows, generator):
                if self.encoder is not None:
                    seen = call_quietly(self._encode_features, windows.numpy())
                    windows = torch.as_tensor(seen)
                yield windows

    def encode(self, X, y=None):
        """Map (n, n_features) features, and (n,) numbers if there are any, to rows."""
        # A copy: an encoder may work in place.
        X = np.array(X, dtype=np.float64)
        if self.bounds is not None:
            # In place: fresh memory for each step takes longer than the arithmetic.
            np.clip(X, *self.bounds, out=X)
        if self.encoder is not None:
            rows = self._encode_features(X)
        elif self.bounds is not None:
            rows = _to_unit(X, self.bounds)
            rows *= self.unit
        else:
            rows = X
        if not self.has_number:
            return rows
        y = np.asarray(y, dtype=np.float64)[:, None]
        if self.y_bounds is not None:
            y = _to_unit(np.clip(y, *self.y_bounds), self.y_bounds) * self.unit
        return np.hstack([rows, y])

    def _encode_features(self, X):
        """Return the encoded features."""
        return np.asarray(self.encoder.transform(match_names(self.encoder, X)), dtype=np.float64)

    def decode_rows(self, rows):
        rows, y = rows * self.clip_norm, None
        if self.has_number:
            rows, y = rows[:, :-1], rows[:, -1:]
            if self.y_bounds is not None:
                y = np.clip(_from_unit(y / self.unit, self.y_bounds), *self.y_bounds)
            y = y[:, 0]
        if self.encoder is not None:
            X = np.asarray(self.encoder.inverse_transform(rows), dtype=np.float64)
        elif self.bounds is not None:
            X = _from_unit(rows / self.unit, self.bounds)
        else:
            X = rows
        return (X if self.bounds is None else np.clip(X, *self.bounds)), y


def _to_unit(X, bounds):
    """Map numbers to [0, 1], in place."""
    lower, upper = bounds
    X -= lower
    X /= upper - lower
    return X


def _from_unit(X, bounds):
    lower, upper = bounds
    return lower + X * (upper - lower)
