# SPDX-License-Identifier: BSD-3-Clause
"""Public rows from which particles start: their checks, before any private row is read."""

import numpy as np
from sklearn.utils.validation import _check_feature_names

from .box import BoxFormat
from .numbers import read_numbers

# Ratio of ranges of images from which units differ: a byte has 255 or 127 times those of floats.
_OTHER_UNITS = 100


def check_starts(estimator, init, format: BoxFormat) -> None:
    """Raise a ValueError for starts that are no rows of a format, or in other units."""
    rows = read_numbers(init, "init").astype(np.float64)
    if rows.shape[1] != format.n_features:
        raise ValueError(
            f"init has {rows.shape[1]} features, but X has {format.n_features} features."
        )
    shapes = [tuple(getattr(init, "shape", ())[1:]), format.images.record_shape or ()]
    if len({tuple(n for n in shape if n > 1) for shape in shapes if len(shape) > 1}) > 1:
        raise ValueError(f"init and X hold images of two shapes, {shapes}.")
    if hasattr(init, "columns"):
        _check_feature_names(estimator, init, reset=False)
    if format.are_images and format.bounds is not None:
        lower, upper = format.bounds
        ends = np.quantile((rows - lower) / (upper - lower), [0.01, 0.99])
        # Images of bytes beside those in [0, 1] or [-1, 1], whichever of them init is.
        if np.ptp(ends) > _OTHER_UNITS or 0 < np.ptp(ends) < 1 / _OTHER_UNITS:
            raise ValueError(
                f"init has values from {rows.min():g} to {rows.max():g}, and the bounds of X "
                f"are {lower.min():g} and {upper.max():g}: give both in the same units."
            )
    # Bounds may still be inferred.
    if not np.isfinite(BoxFormat.encode(format, rows)).all():
        raise ValueError("init holds NaN or infinite numbers after the encoder.")
