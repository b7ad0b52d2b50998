# SPDX-License-Identifier: BSD-3-Clause
"""Warning of flat rows whose columns may be pixels."""

from ..exceptions import FitQualityWarning, warn_caller


def warn_of_pixels(shape, are_images):
    """Warn, before anything is spent, of columns that are guessed to be pixels, or not to be any.

    It is not public whether they are: features of networks are as many. `shape` is that of images,
    (channels, height, width), and `are_images` the guess.
    """
    n_channels, *sides = shape
    shapes = [shape, (*sides, n_channels)] if n_channels > 1 else [tuple(sides)]
    guess = "not taken for images, which principal components encode better at this ε"
    if are_images:
        guess = "taken for images with channels first"
    warn_caller(
        f"Flat rows of {n_channels * sides[0] * sides[1]:,} columns are {guess}. Declare "
        f"image_shape={' or '.join(map(str, shapes))} if they are images, None if not.",
        FitQualityWarning,
    )
