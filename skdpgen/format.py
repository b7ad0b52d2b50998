# SPDX-License-Identifier: BSD-3-Clause
"""Interface of data formats: the public map between user data and rows of the unit ball."""

import numbers
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

__all__ = ["Format"]

# Rows that are generated and decoded at once.
SAMPLE_BLOCK = 10_000
# Most rows of one call.
_MOST_SAMPLES = 10**9


class Format(ABC):
    """Public description of the data, and its map to the rows that releases read.

    Attributes
    ----------
    n_columns : int
        Columns of a row.
    classes : ndarray or None
        Classes that `sample` takes as `y`.
    are_images : bool
        Whether bounds and sizes suggest that rows are pixels of square images.
    could_be_images : bool
        Whether they would with declared bounds from 0 to one number.
    encoder : object or None
        A public transformer of rows.
    components : PrivatePCA or None
        Private principal components after it, at a cost.
    is_open : bool
        Whether `resolve` releases anything.
    has_blocks : bool
        Whether rows are blocks of weights of levels or knots, of `block_sizes` columns each.
    clip_norm : float
        Radius to which encoded rows are clipped.
    found : dict
        Values of fitted attributes, by name.
    feature_scale : float or None
        Scale of features in [0, 1] in a row of the unit ball; None for other rows.
    """

    n_columns: Any
    classes: np.ndarray | None = None
    are_images = could_be_images = False
    encoder: Any = None
    components: Any = None
    is_open = False
    has_blocks = False
    clip_norm = 1.0
    feature_scale = None
    found: Mapping[str, Any] = MappingProxyType({})

    @abstractmethod
    def encode(self, X, y=None):
        """Map data, and a numeric target, to rows; each row on its own."""

    @abstractmethod
    def sample(self, generate, shares, n_samples, *, y, where, noise):
        """Return samples in the container of `fit`; for parameters see `BaseGenerator.sample`.

        ``generate(classes, generator)`` returns a row for each of a tensor of classes; `shares` are
        the probabilities of classes.
        """

    @abstractmethod
    def sample_batches(self, generate, shares, sizes, *, where, noise):
        """Yield a sample of each size, as `sample` returns it."""

    @abstractmethod
    def read_public(self, estimator, X):
        """Validate public rows as scikit-learn does; return them for `encode`."""

    def without_target(self):
        """Return the format of X alone."""
        return self

    def draw_windows(self, n_windows, generator):
        """Draw small windows of images, as public directions of rows.

        Parameters
        ----------
        n_windows : int
        generator : torch.Generator
            On the CPU, where directions are made, so that every device gets the same.

        Yields
        ------
        tensor of shape (n, n_columns)
            Together `n_windows`, in blocks; none if rows are not known to be images.
        """
        yield from ()

    def split_budget(self, noise: float) -> Mapping[str, float]:
        """Return the releases of `resolve`, in order, and their shares of ρ (the budget in zCDP).

        Parameters
        ----------
        noise : float
            Noise multiplier of a release that has the whole budget, over the number of records.
        """
        return {}

    def resolve(self, curator):
        """Release what is not declared, and return the resolved format."""
        return self

    def describe(self) -> dict[str, Any]:
        """Return fitted attributes that need no released value, by name."""
        return {}

    def calibrate_marginals(self, generate):
        """Return the format whose samples match the released marginals.

        ``generate(classes, generator)`` returns learnt rows.
        """
        return self

    def validate(self, X, y=None):
        """Raise an error if a block of private rows holds what cannot be encoded."""
        return  # invalid numbers are found without a format


def check_count(n_samples, name="n_samples", most=_MOST_SAMPLES):
    """Return a valid number of samples, or raise a ValueError."""
    if isinstance(n_samples, bool) or not isinstance(n_samples, numbers.Integral | np.integer):
        raise ValueError(f"{name} must be a whole number; got {n_samples!r}.")
    if n_samples < 1:
        raise ValueError(
            f"Invalid value for {name!r}: {n_samples}. The sampling requires at least one sample."
        )
    if most is not None and n_samples > most:
        raise ValueError(f"{name} must be at most {most:,}; draw more rows by sample_batches.")
    return int(n_samples)
