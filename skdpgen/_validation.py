"""Checks of parameters, the same for all estimators."""

import contextlib
import math
import numbers
import warnings

import torch

__all__ = [
    "check_choice",
    "check_positive",
    "check_share",
    "choose_device",
    "undo_on_failure",
    "warn_of_delta",
]


@contextlib.contextmanager
def undo_on_failure(estimator):
    """Put an estimator's attributes back if something is raised.

    What a failed fit has left behind is covered by no certificate.
    """
    before = vars(estimator).copy()
    try:
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


def check_choice(name, value, choices):
    """Refuse a value that is not among `choices`."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}; got {value!r}.")


def check_share(name, value):
    """Refuse what is no share of a budget."""
    check_positive(name, value)
    if value >= 1:
        raise ValueError(f"{name} must be in (0, 1); got {value!r}.")


def check_positive(name, value, *, whole=False, optional=False):
    """Refuse what is not a positive (whole) number."""
    if optional and value is None:
        return
    kind = numbers.Integral if whole else numbers.Real
    if isinstance(value, bool) or not isinstance(value, kind) or not 0 < value < math.inf:
        what = "a positive whole number" if whole else "a positive number"
        raise ValueError(f"{name} must be {what}{' or None' if optional else ''}; got {value!r}.")


def warn_of_delta(delta, n_samples, stacklevel):
    """Warn of a δ that allows to publish a record outright."""
    if delta >= 1 / n_samples:
        warnings.warn(
            f"delta = {delta:g} is not below 1 / n_samples = {1 / n_samples:g}: it allows to "
            "publish a record outright. Choose a smaller delta.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )
