# SPDX-License-Identifier: BSD-3-Clause
"""Supported events of the accountants, and the ranges of their parameters."""

import math
import numbers
from typing import Any

from dp_accounting import (
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    RandomizedResponseDpEvent,
)
from dp_accounting.dp_event import RepeatAndSelectDpEvent

from .directions import check_shape
from .events import (
    DiameterGaussianDpEvent,
    SlicedGaussianDpEvent,
    ThresholdDpEvent,
    flatten,
    pure_epsilon,
    split_sampling,
)

_GAUSSIANS = DiameterGaussianDpEvent, GaussianDpEvent, SlicedGaussianDpEvent
# Mean number of runs of a search, and shape of its distribution: probabilities are floats up to
# here.
_MAX_RUNS, _MAX_SHAPE = 1e6, 10


def find_unsupported(leaf: DpEvent, relation: str, supports_selection: bool) -> str | None:
    """Return why a leaf event has no price, or None if it has one.

    Parameters
    ----------
    leaf : dp_accounting.DpEvent
        Event from `flatten`.
    relation : {"zero_out", "replace_one"}
    supports_selection : bool
        Whether the accountant supports private selection.

    Returns
    -------
    str or None
    """
    # These have no noise multiplier, which the checks below read.
    if isinstance(leaf, NonPrivateDpEvent):
        return None
    if isinstance(leaf, RandomizedResponseDpEvent):
        return _check_response(leaf, relation)
    if isinstance(leaf, RepeatAndSelectDpEvent):
        return _check_selection(leaf, relation, supports_selection)
    base, rate, sampling = split_sampling(leaf)
    if isinstance(leaf, ThresholdDpEvent):
        if not (_is_rate(leaf.delta) and leaf.delta < 1):
            return "the delta of a threshold must be in [0, 1)"
    elif isinstance(base, LaplaceDpEvent):
        if sampling != "none":
            return "sampled Laplace releases are not known"
    elif not isinstance(base, _GAUSSIANS):
        return f"events of type {type(base).__name__} are not known"
    s = base.noise_multiplier
    # Multipliers closer to no noise, or to no information, would leave the range of a float.
    if not (_is_number(s) and (1e-9 <= s <= 1e100 or s in (0, math.inf))):
        return "a noise multiplier must be 0, infinite, or from 1e-9 to 1e100"
    if not _is_rate(rate):
        return "a sampling rate must be in [0, 1]"
    if isinstance(base, SlicedGaussianDpEvent):
        check_shape(base.n_features, base.n_projections)
        if not isinstance(base.orthogonal, bool):
            return "orthogonal must be True or False"
        if type(base.n_classes) is not int or base.n_classes < 1:
            return "n_classes must be a whole number of at least 1"
        if not (_is_number(base.beside) and 0 <= base.beside < math.inf):
            return "beside must be a number of at least 0"
        if base.beside > 0 and base.n_classes > 1:
            return "a release beside sliced rows is supported for one class only"
    if sampling == "fixed" and relation != "replace_one":
        return "fixed-size sampling is supported under relation='replace_one' only"
    return None


def _check_response(leaf: DpEvent, relation: str) -> str | None:
    if relation != "replace_one":
        return "randomised response is supported under relation='replace_one' only"
    if not _is_rate(leaf.noise_parameter):
        return "the noise parameter of randomised response must be in [0, 1]"
    if type(leaf.num_buckets) is not int or leaf.num_buckets < 1:
        return "num_buckets of randomised response must be a whole number of at least 1"
    return None


def _check_selection(leaf: DpEvent, relation: str, supports_selection: bool) -> str | None:
    if not supports_selection:
        return "private selection is supported by accountant='rdp' only"
    if not (_is_number(leaf.mean) and 1 <= leaf.mean <= _MAX_RUNS):
        return f"the mean number of runs must be from 1 to {_MAX_RUNS:g}"
    if not (_is_number(leaf.shape) and 0 <= leaf.shape <= _MAX_SHAPE):
        return f"the shape of the number of runs must be from 0 to {_MAX_SHAPE}"
    for part in flatten([leaf.event]):
        # A run is priced by the moments of its Gaussian releases.
        unknown = RepeatAndSelectDpEvent, ThresholdDpEvent
        if isinstance(part, unknown) or pure_epsilon(part) is not None:
            return f"private selection over runs of {type(part).__name__} is not known"
        if reason := find_unsupported(part, relation, supports_selection):
            return reason
    return None


def _is_rate(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
