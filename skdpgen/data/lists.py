# SPDX-License-Identifier: BSD-3-Clause
"""Lists of images, which are arrays, tensors or images of Pillow, and images that are no list."""

import numpy as np
import torch

from .record_functions import call_quietly

# Modes of Pillow that the dtype and the shape of an array determine.
_MODES = {"1", "L", "LA", "RGB", "RGBA", "I", "I;16", "F"}
# Sides of a colour image, at least: shorter arrays of three dimensions are rather series.
_LEAST_SIDE = 8


def stack(images, as_array) -> tuple[np.ndarray, str]:
    """Return a list as one array, and the name of its container.

    Types, modes and shapes are public, and must not differ.
    """
    read = [call_quietly(_read, image, as_array) or (None, None) for image in images]
    names, arrays = zip(*read, strict=True)
    if len(set(names)) > 1 or names[0] is None:
        raise ValueError(
            "X is a list of images, which must all be arrays of numbers, tensors, or images of "
            "Pillow of one mode, such as 'L' or 'RGB': convert them by image.convert('RGB')."
        )
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise ValueError(
            f"X is a list of images of {len(shapes)} shapes, such as {[*shapes][:2]}: bring "
            "them to one by a public rule, as image.convert('RGB').resize((32, 32)) does."
        )
    # Of all dtypes: that of the first alone could cut numbers of others.
    dtype = np.result_type(*{array.dtype for array in arrays})
    return np.stack(arrays, dtype=dtype), names[0]


def _read(image, as_array):
    """Return the library that an image is of, with Pillow's mode, and it as an array, or None."""
    if issubclass(type(image), np.ndarray | torch.Tensor):
        name = "arrays" if issubclass(type(image), np.ndarray) else "tensors"
    elif image.mode in _MODES:
        # Black and white is 0 and 1, or 0 and 255.
        name, image = f"Pillow {image.mode}", np.asarray(image)
    else:
        return None
    array = as_array(image)
    return (name, array) if array.dtype.kind in "iufb" else None


def refuse_one_image(shape):
    """Raise a ValueError for the three dimensions of an image with channels."""
    ends = ((shape[0], shape[1:]), (shape[-1], shape[:-1]))
    if any(n in (3, 4) and min(sides) >= _LEAST_SIDE for n, sides in ends):
        raise ValueError(
            f"X of shape {shape} may be a single image, which X[None] is. Otherwise X[..., None] "
            "holds grey images, and np.reshape(X, (len(X), -1)) rows that are none."
        )
