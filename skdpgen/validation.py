# SPDX-License-Identifier: BSD-3-Clause
"""Checks of parameters, the same for all estimators."""

import contextlib
import math
import numbers
import warnings

import numpy as np
import torch

from ._choices import check_choice
from .accounting.accountants import ACCOUNTANTS, RELATIONS
from .accounting.calibration import check_delta, check_epsilon
from .accounting.rounding import show
from .curator.record_functions import clears_frames

# Squares of numbers up to this are finite in float32, which is what learners compute in.
_LARGEST = 1e15
# Entries of an array, at most: 2 GiB of doubles.
_MOST_ENTRIES = 2**28


@contextlib.contextmanager
def rollback_on_failure(estimator):
    """Put an estimator's attributes back if something is raised.

    What a failed fit has left behind is covered by no certificate; nor is what the frames of the
    error hold, which are cleared.
    """
    before = vars(estimator).copy()
    try:
        with clears_frames():
            yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def choose_device(device):
    """Turn ``"auto"`` into CUDA where there is one, and check other names."""
    if isinstance(device, str) and device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.empty(0, device=device or "none").device
    except (AssertionError, RuntimeError, TypeError):
        raise ValueError(
            f"device must be 'auto' or one that torch has here; got {device!r}."
        ) from None


class Checked:
    """Declares what its parameters may be."""

    # A function ``check(name, value)`` for each; subclasses add to them.
    _checks = {}

    def _check_params(self):
        """Raise a ValueError if a parameter is not what it may be."""
        checks = {}
        for cls in reversed(type(self).__mro__):
            checks.update(vars(cls).get("_checks", {}))
        for name, check in checks.items():
            check(name, getattr(self, name))


def positive(**options):
    """Declare a positive number; see `check_positive`."""
    return lambda name, value: check_positive(name, value, **options)


def whole(**options):
    """Declare a positive whole number."""
    return positive(whole=True, **options)


def in_range(*, whole=False, optional=False):
    """Declare a (whole) number of at least 0 that arithmetic can hold."""
    kind = numbers.Integral if whole else numbers.Real

    def check(name, value):
        if optional and value is None:
            return
        if isinstance(value, bool) or not isinstance(value, kind) or not 0 <= value < math.inf:
            what = "a whole number" if whole else "a number"
            raise ValueError(
                f"{name} must be {what} of at least 0{' or None' if optional else ''}; "
                f"got {value!r}."
            )
        if value > _LARGEST:
            raise ValueError(f"{name} must be at most {_LARGEST:g}; got {value!r}.")

    return check


def one_of(*choices):
    """Declare one of several strings, or None."""
    return lambda name, value: check_choice(name, value, choices)


def budget_share(name, value):
    """Declare a share of a budget, in (0, 1)."""
    check_positive(name, value)
    if value >= 1:
        raise ValueError(f"{name} must be in (0, 1); got {value!r}.")


def radius(name, value):
    """Declare ``"auto"`` or a positive number."""
    if not (isinstance(value, str) and value == "auto"):
        check_positive(name, value, most=math.inf)


def flag(name, value):
    """Declare True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}.")


def check_finite(*learnt):
    """Refuse tensors, of what was learnt or of what it makes, that are not finite."""
    if not all(torch.isfinite(part).all() for part in learnt):
        raise ValueError(
            "Training has diverged: what was learnt is not finite. Use smaller steps or weights."
        )


def check_size(name, *shape):
    """Refuse an array that memory would not hold, before anything is released."""
    if math.prod(shape) > _MOST_ENTRIES:
        raise ValueError(
            f"{name} is too large: it takes an array of {' × '.join(map(str, shape))} numbers, "
            f"and {_MOST_ENTRIES:,} are the most."
        )


def check_positive(name, value, *, whole=False, optional=False, most=_LARGEST):
    """Refuse what is not a positive (whole) number, or one that arithmetic cannot hold."""
    if optional and value is None:
        return
    kind = numbers.Integral if whole else numbers.Real
    if isinstance(value, bool) or not isinstance(value, kind) or not 0 < value < math.inf:
        what = "a positive whole number" if whole else "a positive number"
        raise ValueError(f"{name} must be {what}{' or None' if optional else ''}; got {value!r}.")
    if value > most:
        raise ValueError(f"{name} must be at most {most:g}; got {value!r}.")


def warn_of_delta(delta, n_samples, stacklevel):
    """Warn of a δ that allows to publish a record outright."""
    if delta >= 1 / n_samples:
        warnings.warn(
            f"delta = {show(delta)} is not below 1 / n_samples = {1 / n_samples:g}: it allows to "
            "publish a record outright. Choose a smaller delta.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


# Of every estimator that spends a budget.
PRIVACY_CHECKS = {
    "epsilon": lambda name, value: check_epsilon(value),
    "delta": lambda name, value: check_delta(value),
    "accountant": one_of(*ACCOUNTANTS),
    "strict": flag,
}
CENTRAL_CHECKS = {
    **PRIVACY_CHECKS,
    "relation": one_of(*RELATIONS),
    "clip_norm": radius,
    "device": lambda name, value: choose_device(value),
}
