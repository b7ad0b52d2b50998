# SPDX-License-Identifier: BSD-3-Clause
"""Images as rows: lists of arrays, tensors or images of Pillow, and arrays of their shape."""

import math

import numpy as np
import torch
from sklearn.base import BaseEstimator

from .record_functions import call_quietly

# Modes of Pillow that the dtype and the shape of an array determine.
_MODES = {"1", "L", "LA", "RGB", "RGBA", "I", "I;16", "F"}


def stack(images, read) -> tuple[np.ndarray, str]:
    """Return a list as one array, and its name for `give`.

    Types, modes and shapes are public, and must not differ. ``read(image)`` makes an array of one
    that is not of Pillow.
    """
    names = {call_quietly(_find_library, image) for image in images}
    arrays = [call_quietly(_read, image, read) for image in images]
    shapes = {None if array is None else array.shape for array in arrays}
    if len(names) > 1 or None in names | shapes:
        raise ValueError(
            "X is a list of images, which must all be arrays of numbers, tensors, or images of "
            "Pillow of one mode, such as 'L' or 'RGB': convert them by image.convert('RGB')."
        )
    if len(shapes) > 1:
        raise ValueError(
            f"X is a list of images of {len(shapes)} shapes, such as {[*shapes][:2]}: bring "
            "them to one by a public rule, as image.convert('RGB').resize((32, 32)) does."
        )
    # Of all dtypes: that of the first alone could cut numbers of others.
    dtype = np.result_type(*{array.dtype for array in arrays})
    return np.stack(arrays, dtype=dtype), names.pop()


def give(array, name: str) -> list:
    """Return records of an array as the list that it names."""
    if name == "tensors":
        return list(torch.as_tensor(array))
    if name == "arrays":
        return list(array)
    from PIL import Image

    return [Image.fromarray(image) for image in array]


def flatten_images(estimator: BaseEstimator, X, *, reset: bool):
    """Return an array of three or four dimensions as rows, and other data unchanged.

    The shape of its records is kept as ``record_shape_in_``; later records must have it, or be
    rows.
    """
    shape = find_record_shape(X)
    if reset:
        vars(estimator).pop("record_shape_in_", None)
    if shape is None:
        return X
    if reset:
        estimator.record_shape_in_ = shape
    else:
        declared = getattr(estimator, "image_shape", None)
        known = getattr(estimator, "record_shape_in_", declared)
        if shape != tuple(known or ()):
            fitted = "rows" if isinstance(known, str | None) else f"records of shape {known}"
            raise ValueError(f"X holds records of shape {shape}, and fit was given {fitted}.")
    return X.reshape(len(X), math.prod(shape))


def find_record_shape(X) -> tuple | None:
    """Return the shape of a record of an array of three or four dimensions; None for other data."""
    return X.shape[1:] if isinstance(X, np.ndarray) and X.ndim in (3, 4) else None


def _find_library(image):
    if issubclass(type(image), torch.Tensor):
        return "tensors"
    # With the mode: black and white is 0 and 1, or 0 and 255.
    return "arrays" if issubclass(type(image), np.ndarray) else f"Pillow {image.mode}"


def _read(image, read):
    is_array = _find_library(image) in ("arrays", "tensors")
    array = read(image) if is_array else np.asarray(image)
    is_known = is_array or image.mode in _MODES
    return array if is_known and array.dtype.kind in "iufb" else None
