# SPDX-License-Identifier: BSD-3-Clause
"""Test data, quick clones of estimators, and comparisons of fitted state."""

import contextlib
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.preprocessing import FunctionTransformer

from ..encoders import split_encoder

LABELS = [0, 1]

# Extreme records: zero, opposite, huge, tiny.
EXTREMES = np.array(
    [
        [0, 0, 0],
        [1, 0, 0],
        [-1, 0, 0],
        [0, 1, 0],
        [1e6, 0, 0],
        [0, -1e6, 0],
        [1e9, 1e9, 1e9],
        [-1e9, -1e9, -1e9],
        [1e-9, 0, 0],
        [0.3, -0.4, 0.5],
        [-0.1, 0.2, 0.9],
    ],
    dtype=np.float64,
)


def make_data(estimator, n_samples: int = 40, n_features: int = 3) -> tuple:
    """Return Gaussian rows of shape (n_samples, n_features), and y.

    It holds the labels 0 and 1, which are numbers for an estimator that takes no classes.
    """
    rng = np.random.RandomState(0)
    X, y = rng.normal(scale=0.4, size=(n_samples, n_features)), rng.randint(2, size=n_samples)
    return X, y if estimator._takes_classes else y.astype(np.float64)


def make_quick(estimator, y=None, **params):
    """Clone an estimator for a quick fit, with the classes declared if there are labels.

    Parameters are those of the estimator or of its release; those that it lacks are ignored. A
    release with one step keeps one, since more would be another release.
    """
    known, quick = estimator.get_params(deep=False), clone(estimator)
    # Rényi moments price sampled steps in milliseconds; `check_epsilon` takes all accountants.
    quickly = {"n_steps": 5, "accountant": "rdp"}
    has_classes = y is not None and estimator._takes_classes
    params = {**quickly, **({"classes": LABELS} if has_classes else {}), **params}
    released = quick._resolve_spec("release").get_params() if "release" in known else {}
    for name, value in params.items():
        # A number of steps may be that of the release; 1 is a release of a single step.
        if released.get(name, 1) != 1:
            quick.set_params(**{f"release__{name}": value})
        elif name in known:
            quick.set_params(**{name: value})
    return quick


def make_plain(estimator):
    """Clone an estimator, and declare a clipping norm where it would infer one.

    Rows in an inferred box lie on one side of the unit ball, so that no two of them are as far
    apart as a sensitivity allows.
    """
    known, plain = estimator.get_params(deep=False), clone(estimator)
    if known.get("clip_norm") != "auto" or known.get("schema") not in ("auto", None):
        return plain
    public, private = split_encoder(known["encoder"])
    if public is None and known["bounds"] is None:
        public = FunctionTransformer()
    encoder = [part for part in (public, private) if part is not None and part != "auto"]
    return plain.set_params(clip_norm=1.0, encoder=encoder if encoder else None)


def choices_of(estimator, name: str, choices) -> list:
    """Return the choices for a parameter; without the parameter, the attribute of that name."""
    if name in estimator.get_params(deep=False):
        return list(choices)
    return [getattr(estimator, name, None)]


def sample_with_labels(fitted, y, *args):
    """Return rows, and labels or None."""
    return (fitted.sample(*args), None) if y is None else fitted.sample(*args)


def fitted_state(estimator) -> dict[str, Any]:
    """Return fitted attributes, and copies of networks' weights and of tensors."""
    state: dict[str, Any] = {}
    for name, value in sorted(vars(estimator).items()):
        if isinstance(value, torch.nn.Module):
            state[name] = deepcopy(value.state_dict())
        elif name.endswith("_") and not name.startswith("_"):
            state[name] = value.detach().clone() if isinstance(value, torch.Tensor) else value
    return state


def assert_same(what: str, first, second, which: str) -> None:
    """Fail unless two nested structures are the same to the bit."""
    assert not differ(first, second), f"{what}: {which} differ."


def differ(first, second) -> bool:
    """Return whether two nested structures of arrays, tensors, frames and values differ."""
    if isinstance(first, dict):
        return first.keys() != second.keys() or any(differ(first[k], second[k]) for k in first)
    if isinstance(first, tuple | list):
        pairs = zip(first, second, strict=False)
        return len(first) != len(second) or any(differ(a, b) for a, b in pairs)
    if isinstance(first, torch.nn.Module):
        return type(first) is not type(second) or differ(first.state_dict(), second.state_dict())
    if isinstance(first, BaseEstimator) or is_dataclass(first):
        return type(first) is not type(second) or differ(vars(first), vars(second))
    if isinstance(first, pd.DataFrame | pd.Series):
        return not first.astype(object).equals(second.astype(object))
    if isinstance(first, pd.Index):
        return not first.equals(second)
    if isinstance(first, torch.Tensor):
        if not isinstance(second, torch.Tensor) or first.dtype != second.dtype:
            return True
        return not torch.equal(first.detach().cpu(), second.detach().cpu())
    if isinstance(first, np.ndarray):
        return not np.array_equal(first, np.asarray(second))
    # NaN, which differs from itself, stands for an unknown number.
    return first != second and not (first != first and second != second)


def assert_raises(expected: type[Exception], call: Callable) -> Exception:
    """Return the error that `call` raises, which must be of the expected type."""
    try:
        call()
    except expected as error:
        return error
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} instead of {expected.__name__}.") from error
    raise AssertionError(f"No {expected.__name__} is raised.")


def assert_not_quoted(error: BaseException | None, secret: str) -> None:
    """Fail if an error, or one that it was raised from or during, quotes a private value."""
    while error is not None:
        assert secret not in str(error), "An error quotes a private value."
        error = error.__cause__ or error.__context__


@contextlib.contextmanager
def restored_global_generators() -> Iterator[None]:
    """Restore the states of the global generators of NumPy and torch at the end."""
    numpy_state, torch_state = np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        torch.set_rng_state(torch_state)
