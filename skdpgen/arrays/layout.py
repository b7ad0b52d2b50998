# SPDX-License-Identifier: BSD-3-Clause
"""Containers and dtypes of arrays, and samples in them."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch

from ..data.containers import NUMPY, Container
from ..data.dtypes import cast, find_held_range, find_numpy_dtype, hide_values
from ..data.inputs import find_positions, read_rows
from ..format import SAMPLE_BLOCK, Format, check_count
from ..registry import savable
from .image_layout import ImageLayout

# Bounds that follow from the dtype.
_BOUNDS = {np.dtype(bool): (0, 1), np.dtype(np.uint8): (0, 255)}


@savable
@dataclass(frozen=True)
class ArrayLayout:
    """Containers, dtypes and shapes of the arrays given to `fit`, in which samples are returned."""

    columns: pd.Index | None
    dtypes: tuple
    target_name: object
    target_dtype: object
    target_categories: object = None
    bounds: tuple | None = None
    X: Container = NUMPY
    y: Container | None = None
    record_shape: tuple | None = None

    @classmethod
    def of(cls, dataset, *, has_classes: bool = False):
        """Describe arrays, whose classes are known, by what is public of them.

        The categories of a categorical `y` are its classes: others that its dtype lists may be
        private. If classes were inferred, they have the order of an ordered dtype.
        """
        dtypes, label = tuple(dataset.dtypes), dataset.label
        target_dtype, categories = (
            (None, None) if label is None else (label.dtype, label.read_dtype)
        )
        if not isinstance(categories, pd.CategoricalDtype):
            categories = None
        elif has_classes or not categories.ordered:
            categories = pd.CategoricalDtype(ordered=categories.ordered)
        else:
            is_class = categories.categories.isin(dataset.classes)
            categories = pd.CategoricalDtype(categories.categories[is_class], ordered=True)
        if isinstance(target_dtype, pd.CategoricalDtype):
            target_dtype = categories
        is_sized = isinstance(target_dtype, np.dtype) and target_dtype.kind in "US"
        return cls(
            columns=dataset.columns,
            dtypes=tuple(map(_find_sample_dtype, dtypes)),
            target_name=label and label.name,
            # The length of the longest label in NumPy's dtypes of strings is private.
            target_dtype=None if is_sized else target_dtype,
            target_categories=categories,
            bounds=_BOUNDS.get(find_numpy_dtype(dtypes[0])) if len(set(dtypes)) == 1 else None,
            X=dataset.container,
            y=label and label.container,
            record_shape=dataset.record_shape,
        )

    def check_bounds(self, bounds, y_bounds=None):
        """Raise a ValueError for declared bounds between which a dtype has no value."""
        pairs = [("y_bounds", y_bounds, self.target_dtype)] * (y_bounds is not None)
        if bounds is not None:
            bounds = _move_inwards(self.X, bounds)
            n_columns = max(map(np.size, (self.dtypes, *bounds)))
            ends = zip(*(np.broadcast_to(end, n_columns) for end in bounds), strict=True)
            dtypes = self.dtypes * (n_columns // len(self.dtypes))
            pairs += [("bounds", *part) for part in zip(ends, dtypes, strict=True)]
        for name, ends, dtype in pairs:
            if not np.all(np.less_equal(*find_held_range(dtype, *ends))):
                raise ValueError(
                    f"{name} have no value of dtype {dtype} between them: declare them in the "
                    "units of the data, or give the data another dtype."
                )

    def give(self, X, y, bounds=None, y_bounds=None, classes=None):
        """Return X, and y if `fit` was given one, in the containers and dtypes of `fit`.

        `y` holds numbers, or with `classes` their positions.
        """
        lower, upper = _move_inwards(self.X, bounds)
        if len(set(self.dtypes)) == 1 and isinstance(self.dtypes[0], np.dtype):
            X = cast_numbers(X, self.dtypes[0], lower, upper)
            named = self.columns is not None
            X = pd.DataFrame(X, columns=self.columns) if named else self.X.give_array(X)
        else:
            # Column by column, as their dtypes differ.
            ends = (np.broadcast_to(end, X.shape[1]) for end in (lower, upper))
            columns = zip(X.T, self.dtypes, *ends, strict=True)
            X = pd.DataFrame({i: cast_numbers(*column) for i, column in enumerate(columns)})
            X.columns = self.columns
        X = X if self.columns is None else self.X.give(X)
        if self.y is None:
            return X
        dtype, categories = self.target_dtype, self.target_categories
        if categories is not None and categories.categories is None:
            categories = pd.CategoricalDtype(classes, categories.ordered)
        if isinstance(dtype, pd.CategoricalDtype):
            dtype = categories
        if classes is None:
            levels, y = cast_numbers(y, dtype, *_move_inwards(self.y, y_bounds)), slice(None)
        else:
            levels = classes
        # Classes are cast, rather than labels: the dtype of a draw must not depend on it.
        if self.y.library != "numpy":
            levels = cast(pd.Series(levels, name=self.target_name), categories)
            return X, self.y.give(cast(levels, dtype).iloc[y].reset_index(drop=True))
        if isinstance(dtype, np.dtype):
            levels = cast(pd.Series(levels), dtype).to_numpy()
            # No Series holds NumPy's texts of any length.
            levels = levels.astype(dtype) if dtype.kind == "T" else levels
        return X, levels[y]


def _move_inwards(container, bounds):
    """Return bounds, moved inwards to what a dtype of torch that NumPy lacks can hold."""
    lower, upper = bounds or (-np.inf, np.inf)
    dtype = getattr(torch, container.library.partition(".")[2], None)
    if dtype is None:
        return lower, upper
    info, ends = torch.finfo(dtype), []
    for end, sign in ((lower, 1), (upper, -1)):
        end = torch.as_tensor(end, dtype=torch.float64)
        # Twice the largest error of rounding.
        step = info.eps * end.abs().clamp(info.smallest_normal, info.max)
        held, inner = (value.to(dtype).double() for value in (end, end + sign * step))
        ends.append(torch.where(sign * held < sign * end, inner, held).numpy())
    return tuple(ends)


def _find_sample_dtype(dtype):
    """Return the dtype of sampled numbers: float64 where a column had none of numbers."""
    numbers = find_numpy_dtype(dtype)
    if not isinstance(numbers, np.dtype) or numbers.kind not in "iufb":
        return np.dtype(np.float64)
    return dtype.newbyteorder("=") if isinstance(dtype, np.dtype) else hide_values(dtype)


def cast_numbers(values, dtype, lower=-np.inf, upper=np.inf):
    """Return numbers in a dtype of NumPy, or a nullable one of pandas.

    They are rounded, within their bounds, which broadcast to them, and the dtype's range.
    """
    numpy_dtype = find_numpy_dtype(dtype)
    if not isinstance(numpy_dtype, np.dtype) or numpy_dtype.kind not in "iufb":
        return values
    if numpy_dtype.kind == "b":
        values = values >= 0.5
    else:
        values = np.rint(values) if numpy_dtype.kind in "iu" else values
        (least, most), (first, last) = (
            find_held_range(numpy_dtype, *ends) for ends in ((lower, upper), ())
        )
        # Inferred bounds may have no integer between them.
        fits = least <= most
        values = values.clip(np.where(fits, least, first), np.where(fits, most, last))
    values = values.astype(numpy_dtype, copy=False)
    return values if isinstance(dtype, np.dtype) else cast(pd.Series(values), dtype).array


@dataclass(frozen=True)
class ArrayFormat(Format):
    """Features with bounds, and a numeric target beside them. Nothing is learnt from data."""

    # Columns of X.
    n_features: int
    # Public bounds, scalars or arrays of shape (n_features,).
    bounds: tuple | None = None
    # Whether a numeric y rides along as a last column.
    has_number: bool = False
    # Its public bounds.
    y_bounds: tuple | None = None
    # The classes that y holds.
    classes: np.ndarray | None = None
    # Containers and dtypes of samples.
    layout: ArrayLayout | None = None
    # Shape of the images that records are. "auto": that of records, or else a guess.
    image_shape: Any = "auto"

    def __post_init__(self):
        bounds = check_bounds(self.bounds, self.n_features, "bounds", self.images.record_shape)
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "y_bounds", check_bounds(self.y_bounds, 1, "y_bounds"))

    @cached_property
    def images(self):
        """The images that records are, if any."""
        shape = None if self.layout is None else self.layout.record_shape
        return ImageLayout.of(self.n_features, self.image_shape, shape)

    @property
    def parameters(self):
        names = ("y_bounds", "classes", "image_shape")
        return {
            "schema": None,
            "bounds": self.shaped_bounds,
            **{name: getattr(self, name) for name in names},
        }

    @property
    def column_names(self):
        """Names of the columns, and of y beside them, for messages."""
        columns = None if self.layout is None else self.layout.columns
        columns = range(self.n_features) if columns is None else list(columns)
        columns = [columns[i] for i in self._order]
        return [*(f"column {name!r}" for name in columns), *["y"] * self.has_number]

    @property
    def column_bounds(self):
        """Bounds of the columns, and of y beside them, two arrays."""
        pairs = [[end[self._order] for end in self.bounds], *[self.y_bounds] * self.has_number]
        return tuple(np.concatenate(ends) for ends in zip(*pairs, strict=True))

    @property
    def shaped_bounds(self):
        """Bounds of X in the shape of its records, or None."""
        return None if self.bounds is None else tuple(map(self.images.reshape, self.bounds))

    @property
    def _order(self):
        """Positions in X of the columns of rows."""
        return self.images.arrange(np.arange(self.n_features)[None])[0]

    def read_public(self, estimator, X):
        return read_rows(estimator, X, reset=False)

    def without_target(self):
        return replace(self, has_number=False)

    @abstractmethod
    def decode_rows(self, rows):
        """Map rows in the unit ball back to (features, numbers or None), within the bounds."""

    def decode(self, rows, sizes, *, y=None, where=None):
        if where is not None:
            raise ValueError("where=... needs a schema; ask for classes by y=[...].")
        generator, shares = rows.noise.torch_generator(), torch.as_tensor(rows.shares)
        for size in sizes:
            if y is None:
                drawn = torch.multinomial(shares, check_count(size), True, generator=generator)
            else:
                drawn = torch.as_tensor(find_positions(y, self.classes))
            parts = drawn.split(SAMPLE_BLOCK)
            X, numbers = zip(
                *(self.decode_rows(rows.generate(part, generator)) for part in parts), strict=True
            )
            label = np.concatenate(numbers) if self.has_number else drawn.numpy()
            X = self.images.reshape(np.concatenate(X))
            yield self.layout.give(X, label, self.shaped_bounds, self.y_bounds, self.classes)


def check_bounds(bounds, n_features, name, record_shape=None):
    """Return bounds, which may have the shape of records, as two flat arrays, or None."""
    if bounds is None:
        return None
    try:
        if any(map(np.iscomplexobj, bounds)):
            raise TypeError
        if record_shape is not None and any(np.shape(b) not in ((), (n_features,)) for b in bounds):
            bounds = [np.broadcast_to(b, record_shape).ravel() for b in bounds]
        # Copies: the caller may change its arrays after the fit.
        lower, upper = (np.full(n_features, b, dtype=np.float64) for b in bounds)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a pair (lower, upper) of numbers or of arrays of {n_features} numbers."
        ) from None
    if not (np.isfinite(lower).all() and np.isfinite(upper).all() and (lower < upper).all()):
        raise ValueError(f"{name} must be finite, with lower < upper in every column.")
    return lower, upper
