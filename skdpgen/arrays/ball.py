# SPDX-License-Identifier: BSD-3-Clause
"""Format of rows for local privacy: projection into a public ball."""

import math
from dataclasses import dataclass

import numpy as np

from ..images import cosine_matrices
from ..registry import savable
from .layout import ArrayFormat

# Numbers are kept this small, so that sums of squares stay finite.
_LARGEST = 1e150


@savable
@dataclass(frozen=True)
class BallFormat(ArrayFormat):
    """Maps features, and a numeric target beside them, to the unit ball and back.

    Features are clipped to their bounds, if there are any, and mapped to [-1, 1]; turned into
    cosine coefficients, if asked for; projected on the ball; and divided by its radius. Each row is
    mapped on its own.
    """

    # The norm of the ball, 1 or 2.
    p: int = 2
    # Radius of the ball. None: 1, or, with bounds, that of the smallest ball around their box.
    radius: float | None = None
    # "dct": the orthonormal cosine transform of a row, or of the images that it is said to be.
    basis: str | None = None
    # Share of coefficients, the largest, that a row keeps; the others become 0.
    keep: float | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.has_number and self.bounds is not None and self.y_bounds is None:
            raise ValueError(
                "y is a number (float dtype) and bounds were given: give y_bounds=(lower, upper) "
                "too, or classes=[...] if y holds labels."
            )
        if self.layout is not None:
            # Declared, as none are inferred.
            self.layout.check_bounds(self.bounds, self.y_bounds)
        if self.radius is None:
            widest = self.n_columns if self.p == 1 else math.sqrt(self.n_columns)
            # A box of half-width 1; turned, it stays in the ball, since ‖c‖₁ ≤ √d ‖c‖₂.
            object.__setattr__(self, "radius", 1.0 if self.bounds is None else float(widest))

    @property
    def n_columns(self):
        """Number of columns of a row."""
        return self.n_features + self.has_number

    @property
    def grid(self):
        """The shape of the images in a row, or of a row that is none: (n, height, width)."""
        shape = self.images.image_shape if self.images.is_told else None
        return (-1, *(shape or (1, 1, self.n_features))[1:])

    def encode(self, X, y=None):
        """Map (n, n_features) features, and (n,) numbers if there are any, to rows."""
        rows = np.clip(np.array(X, dtype=np.float64), -_LARGEST, _LARGEST)
        if self.bounds is not None:
            rows = _to_box(rows, self.bounds)
        rows = self.images.arrange(rows)
        if self.basis is not None:
            rows = self._turn(rows)
            if self.keep is not None:
                rows = _keep_largest(rows, math.ceil(self.keep * self.n_features))
        if self.has_number:
            y = np.clip(np.asarray(y, dtype=np.float64)[:, None], -_LARGEST, _LARGEST)
            rows = np.hstack([rows, y if self.y_bounds is None else _to_box(y, self.y_bounds)])
        return project_on_ball(rows, self.radius, self.p) / self.radius

    def decode_rows(self, rows):
        X, y = self.invert(rows * self.radius)
        if y is not None and self.y_bounds is not None:
            y = np.clip(y, *self.y_bounds)
        return (X if self.bounds is None else np.clip(X, *self.bounds)), y

    def invert(self, rows):
        """Map rows, as they are before they are divided by the radius, back; no clipping."""
        y = None
        if self.has_number:
            rows, y = rows[:, :-1], rows[:, -1:]
            y = (y if self.y_bounds is None else _from_box(y, self.y_bounds))[:, 0]
        if self.basis is not None:
            rows = self._turn(rows, inverse=True)
        rows = self.images.restore(rows)
        return (rows if self.bounds is None else _from_box(rows, self.bounds)), y

    def _turn(self, rows, inverse=False):
        across, along = cosine_matrices(self.grid)
        if inverse:
            across, along = across.T, along.T
        return (across @ rows.reshape(len(rows), *self.grid) @ along.T).reshape(rows.shape)


def project_on_ball(rows, radius, p):
    """Project each row on the L1 or L2 ball around 0, in Euclidean distance.

    On the L1 ball, numbers move towards 0 by the same amount in each row, as far as 0 (Duchi,
    Shalev-Shwartz, Singer & Chandra, ICML 2008).

    Examples
    --------
    >>> project_on_ball(np.array([[3.0, 1.0], [0.2, -0.3]]), 1.0, 1)
    array([[ 1. ,  0. ],
           [ 0.2, -0.3]])
    """
    sizes = np.abs(rows)
    if p == 2:
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows * (radius / np.maximum(norms, radius))
    outside = sizes.sum(1) > radius
    rows, sizes = rows.copy(), sizes[outside]
    falling = -np.sort(-sizes, axis=1)
    shifts = (np.cumsum(falling, axis=1) - radius) / np.arange(1, rows.shape[1] + 1)
    n_left = (falling > shifts).sum(1, keepdims=True).clip(1)
    shift = np.take_along_axis(shifts, n_left - 1, axis=1)
    rows[outside] = np.sign(rows[outside]) * np.maximum(sizes - shift, 0)
    return rows


def _keep_largest(rows, n_kept):
    least = -np.partition(-np.abs(rows), n_kept - 1, axis=1)[:, n_kept - 1 : n_kept]
    return np.where(np.abs(rows) >= least, rows, 0.0)


def _to_box(X, bounds):
    lower, upper = bounds
    return (2 * np.clip(X, lower, upper) - lower - upper) / (upper - lower)


def _from_box(X, bounds):
    lower, upper = bounds
    return (lower + upper + X * (upper - lower)) / 2
