"""Checks of parameters, the same for all estimators."""

import contextlib
import math
import numbers
import warnings

import numpy as np
import torch

from .accounting.figures import show
from .exceptions import FitQualityWarning

__all__ = [
    "check_choice",
    "check_finite",
    "check_flag",
    "check_positive",
    "check_share",
    "check_size",
    "choose_device",
    "list_refusals",
    "undo_on_failure",
    "warn_of_absent",
    "warn_of_delta",
]

# Fewer bad records than this are not worth a warning.
_MANY_ABSENT = 0.01
# Squares of numbers up to this are finite in float32, which is what learners compute in.
_LARGEST = 1e15
# Entries of an array, at most: 2 GiB of doubles.
_MOST_ENTRIES = 2**28


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
    # An unhashable value is in no dict; an array equals none of the choices as a whole.
    if not isinstance(value, str | int | None) or value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}; got {value!r}.")


def check_flag(name, value):
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}.")


def check_share(name, value):
    """Refuse what is no share of a budget."""
    check_positive(name, value)
    if value >= 1:
        raise ValueError(f"{name} must be in (0, 1); got {value!r}.")


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


def warn_of_absent(share, std):
    """Warn if many records count as absent, from a noisy share of those that do not.

    Returns
    -------
    bool
        Whether it warned.
    """
    absent = 1 - share
    is_much = bool(absent > max(_MANY_ABSENT, 4 * std))
    if is_much:
        warnings.warn(
            f"About {absent:.0%} of the records count as absent, by the noisy counts that were "
            "released: their labels were not declared, or cells are missing, not finite, or not as "
            "declared. strict=True refuses such records, but a refusal tells of the rows.",
            FitQualityWarning,
            stacklevel=2,
        )
    return is_much


def list_refusals(strict, has_objects=False):
    """List what a certificate rests on where a fit may refuse rows for what is in them."""
    refusals = []
    if strict:
        refusals.append(
            "every record is valid: with strict=True others are refused, and whether a fit was "
            "refused is outside of ε"
        )
    elif has_objects:
        refusals.append(
            "all cells of X, which is of dtype object, are numbers: others are refused, and "
            "whether a fit was refused is outside of ε"
        )
    return refusals
