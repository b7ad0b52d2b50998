# SPDX-License-Identifier: BSD-3-Clause
"""Lists of images: arrays, tensors or images of Pillow."""

import numpy as np
import torch

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
