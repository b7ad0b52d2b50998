# SPDX-License-Identifier: BSD-3-Clause
"""Format of bounded arrays, encoded as rows of the unit ball."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..data.record_functions import call_quietly
from ..images import draw_windows, find_shape
from ..registry import savable
from .layout import ArrayFormat

# Smaller squares are not guessed to be images: a table may well have as many columns.
_GUESSED_SIDE = 16


@savable
@dataclass(frozen=True)
class BoxFormat(ArrayFormat):
    """Maps features, and a numeric target if there is one, to rows and back.

    With bounds, features are clipped to them, mapped to [0, 1] and divided by √(number of
    columns), so that rows lie in the unit ball. With an encoder, features are clipped to the
    bounds, if any, and encoded. Otherwise they are used as they are.
    """

    # With `transform` and `inverse_transform`, fitted on public data.
    encoder: object = None
    # Principal components of the rows: they are released first, and then encode the rows.
    components: Any = None
    # Radius to which rows are scaled down. Decoding starts from rows of the unit ball.
    clip_norm: float = 1.0

    @property
    def parameters(self):
        encoder = self.encoder, self.components
        return {**super().parameters, "clip_norm": self.clip_norm, "encoder": encoder}

    @property
    def fitted_attributes(self):
        fitted = {
            "bounds_": self.shaped_bounds,
            "clip_norm_": self.clip_norm,
            "encoder_": self.encoder if self.components is None else self.components,
        }
        if self.y_bounds is not None:
            fitted["y_bounds_"] = tuple(float(bound[0]) for bound in self.y_bounds)
        return fitted

    @property
    def unit(self):
        """Factor of each column in [0, 1], so that rows lie in the unit ball."""
        return (self.n_features + self.has_number) ** -0.5

    @property
    def feature_scale(self):
        is_plain = self.bounds is not None and self.encoder is None and not self.has_number
        return self.unit / self.clip_norm if is_plain else None

    @property
    def n_columns(self):
        """Number of columns of a row; those of an encoder are found by a public row of zeros."""
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

    @property
    def are_images(self):
        """Whether rows are said, or guessed, to be images; None if they could be.

        Guessed are squares of numbers from 0 to the same bound, and others with one lower and one
        upper bound could be: embeddings by a network may have as many columns, but seldom such
        bounds.
        """
        is_plain = self.encoder is None and not self.has_number
        if self.images.is_told or not is_plain or self.bounds is None:
            return is_plain and self.images.are_images
        is_even = all((ends == ends[0]).all() for ends in self.bounds)
        if self.row_shape[1] < _GUESSED_SIDE or not is_even:
            return False
        return bool(self.bounds[0][0] == 0) or None

    @property
    def row_shape(self):
        if self.images.is_told and self.encoder is None and not self.has_number:
            return self.images.image_shape or (1, 1, self.n_features)
        return find_shape(self.n_columns, (1, 3))

    def draw_windows(self, n_windows: int, generator: torch.Generator) -> Iterator[torch.Tensor]:
        """Draw small windows of images, as public directions of rows, in blocks of tensors.

        Images are rows of pixels or of their `LowFrequencies`; there are none if rows are not known
        to be images. Windows are drawn on the CPU, so that every device gets the same.
        """
        shape, maps_windows = self.images.image_shape, getattr(self.encoder, "maps_windows", None)
        is_linear = self.encoder is None if maps_windows is None else maps_windows(shape)
        if is_linear and shape is not None and not self.has_number:
            for windows in draw_windows(shape, n_windows, generator):
                if self.encoder is not None:
                    seen = call_quietly(self._encode_features, self.images.restore(windows).numpy())
                    windows = torch.as_tensor(seen)
                yield windows

    def encode(self, X, y=None):
        """Map (n, n_features) features, and (n,) numbers if there are any, to rows."""
        # A copy, since encoders may work in place.
        X = np.array(X, dtype=np.float64)
        if self.bounds is not None:
            # In place, since allocating memory takes longer than the arithmetic.
            np.clip(X, *self.bounds, out=X)
        if self.encoder is not None:
            rows = self._encode_features(X)
        elif self.bounds is not None:
            rows = self.images.arrange(_to_unit(X, self.bounds))
            rows *= self.unit
        else:
            rows = self.images.arrange(X)
        if not self.has_number:
            return rows
        y = np.asarray(y, dtype=np.float64)[:, None]
        if self.y_bounds is not None:
            y = _to_unit(np.clip(y, *self.y_bounds), self.y_bounds) * self.unit
        return np.hstack([rows, y])

    def _encode_features(self, X):
        """Return the encoded features."""
        from .numbers import match_names

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
            X = X.reshape(len(rows), -1)
        else:
            X = self.images.restore(rows)
            X = X if self.bounds is None else _from_unit(X / self.unit, self.bounds)
        return (X if self.bounds is None else np.clip(X, *self.bounds)), y


def _to_unit(X, bounds):
    """Map numbers to [0, 1] in place, and return them."""
    lower, upper = bounds
    X -= lower
    X /= upper - lower
    return X


def _from_unit(X, bounds):
    lower, upper = bounds
    return lower + X * (upper - lower)
