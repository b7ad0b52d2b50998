# SPDX-License-Identifier: BSD-3-Clause
"""Layout of images in rows: found from the shape of X, declared, or guessed from its width."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral

from ..images import find_shape
from ..registry import savable

# Grey, grey and alpha, RGB, and RGBA: longer axes are none of channels.
_MOST_CHANNELS = 4
# Images of a smaller side are used as other rows: they hardly have low frequencies.
_LEAST_SIDE = 8


def _guess_square(n_features):
    """Return the shape of square images, grey or in three colours with channels first, or None."""
    shape = find_shape(n_features, (1, 3))
    return shape if shape[1] > 1 else None


@savable
@dataclass(frozen=True)
class ImageLayout:
    """Shape of the images that records of an array are, and the order of their pixels.

    These are public facts.

    Examples
    --------
    >>> ImageLayout.of(3072, (32, 32, 3)).image_shape, ImageLayout.of(3072).is_told
    ((3, 32, 32), False)
    """

    # None: records are no images.
    image_shape: tuple | None = None
    # Whether X holds the channels of a pixel next to each other. Releases see channels first.
    channels_last: bool = False
    # Whether X or the user states this. Otherwise it is guessed from the number of columns.
    is_told: bool = False
    # Shape of a record of X that is no row.
    record_shape: tuple | None = None

    @classmethod
    def of(
        cls, n_features: int, image_shape="auto", record_shape=None, guess=_guess_square
    ) -> "ImageLayout":
        """Return the layout of records, from the parameter `image_shape` and their own shape.

        ``guess(n_features)`` gives the shape of flat rows, or None. Raises ValueError if a shape is
        none, does not fit, or does not tell which axis is that of channels.
        """
        is_auto = isinstance(image_shape, str) and image_shape == "auto"
        if record_shape is None and is_auto:
            return cls(guess(n_features))
        if image_shape is None:
            return cls(is_told=True, record_shape=record_shape)
        shape = record_shape if is_auto else image_shape
        shape = tuple(shape) if isinstance(shape, Iterable) else ()
        are_whole = all(isinstance(side, Integral) and int(side) > 0 for side in shape)
        if len(shape) not in (2, 3) or not are_whole:
            raise ValueError(
                "image_shape must be (height, width), (channels, height, width), (height, width, "
                f"channels), 'auto' or None; got {image_shape!r}."
            )
        shape = tuple(map(int, shape))
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
        return cls((n_channels, *sides), channels_last, True, record_shape)

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

    def reshape(self, rows):
        """Return flat rows of X, or one, in the shape of its records."""
        shape = self.record_shape
        return rows if shape is None else rows.reshape(*rows.shape[:-1], *shape)

    def _swap(self, rows, *shape):
        if not self.channels_last:
            return rows
        return rows.reshape(len(rows), *shape).swapaxes(1, 2).reshape(rows.shape)
