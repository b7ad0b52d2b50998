# SPDX-License-Identifier: BSD-3-Clause
"""Interface of data formats: the public map between user data and rows of the unit ball."""

import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

__all__ = ["Format"]

# Rows that are generated and decoded at once.
SAMPLE_BLOCK = 10_000
# Most rows of one call.
_MOST_SAMPLES = 10**9


@dataclass(frozen=True)
class RowSource:
    """Generated rows, made when a format asks for them: it may reject some, and ask for more.

    Attributes
    ----------
    generate : callable
        ``generate(classes, generator)`` returns a row for each of a tensor of classes.
    shares : ndarray of shape (n_classes,)
        Probabilities of the classes.
    noise : NoiseSource
        Fresh randomness.
    """

    generate: Callable
    shares: np.ndarray
    noise: Any


class Format(ABC):
    """Public description of the data, and its map to the rows that releases read.

    An estimator makes a format of public facts before a budget is touched. `resolve` is called
    once, within the trust boundary, and makes the releases that `split_budget` has planned. The
    curator calls `encode` with batches of private records: it maps each record on its own, keeps
    none, and neither raises nor warns because of a cell. `decode` is called after `fit`, with
    generated rows. No other method is given a private record, but for `validate` of a strict fit.

    Attributes
    ----------
    n_columns : int
        Columns of an encoded row.
    n_planned : int or None
        The same of the resolved format; None if they are not known before `resolve`.
    classes : ndarray or None
        Classes that `sample` takes as `y`.
    components : PrivatePCA or None
        Private principal components of encoded rows, at a cost.
    clip_norm : float
        Radius to which encoded rows are clipped.
    feature_scale : float or None
        Scale of features in [0, 1] in a row of the unit ball; None for other rows.
    block_sizes : sequence of int
        Columns of each block of an encoded row that holds weights of levels or knots; empty for
        other rows.
    images : ImageLayout or None
        Shape of the images that records are; None for tables.
    parameters : dict
        Values of the estimators' parameters that describe the data, by name.
    fitted_attributes : dict
        Values of fitted attributes, by name.
    """

    n_columns: Any
    classes: np.ndarray | None = None
    components: Any = None
    clip_norm = 1.0
    feature_scale = None
    block_sizes: Sequence[int] = ()
    images: Any = None
    parameters: Mapping[str, Any]
    fitted_attributes: Mapping[str, Any] = MappingProxyType({})

    @property
    def n_planned(self) -> int | None:
        return self.n_columns

    @abstractmethod
    def encode(self, X, y=None):
        """Map data, and a numeric target, to rows; each row on its own."""

    @abstractmethod
    def decode(self, rows: RowSource, sizes, *, y=None, where=None):
        """Yield a sample of each size, in the container of `fit`; see `BaseGenerator.sample`."""

    def resolve(self, curator):
        """Release what is not declared, and return the resolved format."""
        return self

    def split_budget(self, noise: float) -> Mapping[str, float]:
        """Return the releases of `resolve`, in order, and their shares of ρ (the budget in zCDP).

        Parameters
        ----------
        noise : float
            Noise multiplier of a release that has the whole budget, over the number of records.
        """
        return {}

    @abstractmethod
    def read_public(self, estimator, X):
        """Validate public rows as scikit-learn does; return them for `encode`."""

    def without_target(self):
        """Return the format of X alone."""
        return self

    def describe(self) -> dict[str, Any]:
        """Return fitted attributes that need no released value, by name."""
        return {}

    def calibrate_marginals(self, generate, report=None):
        """Return the format whose samples match the released marginals.

        ``generate(classes, generator)`` returns learnt rows; `report` is a ``schema_report_``.
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
