# SPDX-License-Identifier: BSD-3-Clause
"""Layout of images in rows: found from the shape of X, declared, or guessed from its width."""

import math
from dataclasses import dataclass

import numpy as np

from ..data.containers import as_array
from ..images import find_shape
from ..registry import savable

# Grey, grey and alpha, RGB, and RGBA: longer axes are none of channels.
_MOST_CHANNELS = 4
# Images of a smaller side are used as other rows: they hardly have low frequencies.
_LEAST_SIDE = 8


@savable
@dataclass(frozen=True)
class ImageLayout:
    """Shape of the images that records of an array are, and the order of their pixels.

    These are public facts.

    Parameters
    ----------
    image_shape : tuple of (channels, height, width), default=None
        None: records are no images.
    channels_last : bool, default=False
        Whether X holds the channels of a pixel next to each other. Releases see channels first.
    is_told : bool, default=False
        Whether X or the user states this. Otherwise it is guessed from the number of columns.

    Examples
    --------
    >>> ImageLayout.of(3072, (32, 32, 3)).image_shape, ImageLayout.of(3072).is_told
    ((3, 32, 32), False)
    """

    image_shape: tuple | None = None
    channels_last: bool = False
    is_told: bool = False

    @classmethod
    def of(cls, n_features: int, image_shape="auto", record_shape=None) -> "ImageLayout":
        """Return the layout of records, from the parameter `image_shape` and their own shape.

        Flat rows are guessed to be square images, grey or in three colours with channels first, or
        none. Raises ValueError if the shape does not fit, or does not tell which axis is that of
        channels.
        """
        is_auto = isinstance(image_shape, str)
        if record_shape is None and is_auto:
            guessed = find_shape(n_features, (1, 3))
            return cls(guessed if guessed[1] > 1 else None)
        if image_shape is None:
            return cls(is_told=True)
        shape = record_shape if is_auto else tuple(map(int, image_shape))
        if math.prod(shape) != n_features or record_shape not in (None, shape):
            found = f"{n_features} features" if record_shape is None else f"shape {record_shape}"
            raise ValueError(f"image_shape={shape} does not fit records of X, of {found}.")
        channels_last = len(shape) == 3 and shape[0] > _MOST_CHANNELS
        n_channels, *sides = (shape[-1], *shape[:2]) if channels_last else (1, *shape)[-3:]
        # Users who declare both as few mean channels first.
        are_tiny = len(shape) == 3 and min(sides) <= _MOST_CHANNELS and is_auto
        if n_channels > _MOST_CHANNELS or are_tiny:
            raise ValueError(
                f"Images of shape {shape} do not tell which axis is that of channels, the first or "
                f"the last of up to {_MOST_CHANNELS} and longer others. If they are no images, set "
                "image_shape=None."
            )
        return cls((n_channels, *sides), channels_last, is_told=True)

    @property
    def are_images(self) -> bool:
        """Whether records are said to be images that are large enough to have low frequencies."""
        shape = self.image_shape if self.is_told else None
        return shape is not None and min(shape[1:]) >= _LEAST_SIDE

    def arrange(self, rows):
        """Return flat rows of X, an array or a tensor, with channels first."""
        return self._swap(rows, -1, (self.image_shape or (1,))[0])

    def restore(self, rows):
        """Return the flat rows that `arrange` maps to these."""
        return self._swap(rows, (self.image_shape or (1,))[0], -1)

    def _swap(self, rows, *shape):
        if not self.channels_last:
            return rows
        return rows.reshape(len(rows), *shape).swapaxes(1, 2).reshape(rows.shape)


def flatten(X, image_shape="auto") -> tuple:
    """Return public images as rows with channels first, or other data as an array, and a layout."""
    from ..data.lists import find_record_shape

    X = as_array(X)
    shape = find_record_shape(X)
    rows = X if shape is None else X.reshape(len(X), math.prod(shape))
    n_columns = np.shape(rows)[1] if np.ndim(rows) == 2 else 0
    layout = ImageLayout.of(n_columns, image_shape, shape)
    return layout.arrange(rows), layout
