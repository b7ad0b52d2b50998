# SPDX-License-Identifier: BSD-3-Clause
"""What formats of arrays share: which arrays were given, and how samples are handed back."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch

from ..curator.inputs import as_array, encode_labels, read_rows
from ..curator.record_functions import call_quietly
from ..format import SAMPLE_BLOCK, Format, check_count
from ..registry import savable

# Of dtypes with few values.
_BOUNDS = {np.dtype(bool): (0, 1), np.dtype(np.uint8): (0, 255)}


@savable
@dataclass(frozen=True)
class ArrayKind:
    """Of what kind arrays were given to `fit`, and are handed back."""

    columns: pd.Index | None
    dtype: np.dtype
    has_target: bool
    is_series: bool
    target_name: object
    is_categorical: bool
    bounds: tuple | None = None

    @classmethod
    def of(cls, dataset):
        dtypes, label = set(dataset.dtypes), dataset.label
        is_series = label is not None and label.is_series
        return cls(
            columns=dataset.columns,
            dtype=np.dtype(np.float32 if dtypes == {np.dtype(np.float32)} else np.float64),
            has_target=label is not None,
            is_series=is_series,
            target_name=label.name if is_series else None,
            is_categorical=is_series and isinstance(label.dtype, pd.CategoricalDtype),
            bounds=_BOUNDS.get(dtypes.pop()) if len(dtypes) == 1 else None,
        )

    def give(self, X, y):
        """Return X, and y if `fit` was given one, as arrays of this kind."""
        X = X.astype(self.dtype, copy=False)
        if self.columns is not None:
            X = pd.DataFrame(X, columns=self.columns)
        if not self.has_target:
            return X
        if self.is_series:
            y = pd.Series(y, name=self.target_name)
            y = y.astype("category") if self.is_categorical else y
        return X, y


@dataclass(frozen=True)
class ArrayFormat(Format):
    """Features with bounds, and a numeric target beside them. Nothing is learnt from data.

    Parameters
    ----------
    n_features : int
        Columns of X.
    bounds : None or (lower, upper), default=None
        Public bounds, scalars or arrays of shape (n_features,).
    has_number : bool, default=False
        Whether a numeric y rides along as a last column.
    y_bounds : None or (lower, upper), default=None
        Its public bounds.
    classes : ndarray, default=None
        The classes that y holds.
    kind : ArrayKind, default=None
        What samples are handed back as.
    """

    n_features: int
    bounds: tuple | None = None
    has_number: bool = False
    y_bounds: tuple | None = None
    classes: np.ndarray | None = None
    kind: ArrayKind | None = None

    def __post_init__(self):
        object.__setattr__(self, "bounds", check_bounds(self.bounds, self.n_features, "bounds"))
        object.__setattr__(self, "y_bounds", check_bounds(self.y_bounds, 1, "y_bounds"))

    def read_public(self, estimator, X):
        return read_rows(estimator, X, reset=False)

    def without_target(self):
        return replace(self, has_number=False)

    def sample(self, generate, shares, n_samples, *, y, where, noise):
        if where is not None:
            raise ValueError("where=... needs a schema; ask for classes by y=[...].")
        generator = noise.torch_generator()
        if y is None:
            n_samples = check_count(n_samples)
            positions = torch.multinomial(
                torch.as_tensor(shares), n_samples, True, generator=generator
            )
        else:
            positions = torch.as_tensor(find_positions(y, self.classes))
        parts = [self.decode(generate(part, generator)) for part in positions.split(SAMPLE_BLOCK)]
        X, numbers = zip(*parts, strict=True)
        labels = None
        if self.kind.has_target:
            labels = np.concatenate(numbers) if self.has_number else self.classes[positions.numpy()]
        return self.kind.give(np.concatenate(X), labels)


def find_positions(y, classes):
    """Return the positions of labels among the classes, an array of shape (n_samples,)."""
    if classes is None:
        raise ValueError("y=... asks for classes, but fit was given none.")
    positions = call_quietly(_look_up_all, y, classes)
    if positions is None or positions.ndim != 1 or len(positions) == 0 or (positions < 0).any():
        raise ValueError(f"y must be a list of at least one label, all among {classes.tolist()}.")
    return positions


def _look_up_all(y, classes):
    labels = np.atleast_1d(np.asarray(as_array(y)))
    found = encode_labels(labels.astype(labels.dtype.newbyteorder("="), copy=False), classes)
    # What is asked for is public: a text is no number here.
    return np.where(classes[found].astype(object) == labels.astype(object), found, -1)


def check_bounds(bounds, n_features, name):
    """Return bounds as two arrays of shape (n_features,), or None."""
    if bounds is None:
        return None
    try:
        if any(map(np.iscomplexobj, bounds)):
            raise TypeError
        # Copies: what the caller does to his arrays later is nothing to what was fitted.
        lower, upper = (np.full(n_features, b, dtype=np.float64) for b in bounds)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a pair (lower, upper) of numbers or of arrays of {n_features} numbers."
        ) from None
    if not (np.isfinite(lower).all() and np.isfinite(upper).all() and (lower < upper).all()):
        raise ValueError(f"{name} must be finite, with lower < upper in every column.")
    return lower, upper
