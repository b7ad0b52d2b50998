# SPDX-License-Identifier: BSD-3-Clause
"""Data and estimators to check with, and comparisons."""

import contextlib
from dataclasses import is_dataclass

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.preprocessing import FunctionTransformer

from ..encoders import split_encoder

LABELS = [0, 1]

# Records at the ends of what may come: opposite, huge, tiny, zero.
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


def make_data(n_samples=40, n_features=3):
    rng = np.random.RandomState(0)
    return rng.normal(scale=0.4, size=(n_samples, n_features)), rng.randint(2, size=n_samples)


def make_quick(estimator, y=None, **params):
    """Clone, for a quick fit with declared classes, and set the parameters that there are.

    Those of the release, if it has them: but one step stays one, which is another release.
    """
    known, made = estimator.get_params(deep=False), clone(estimator)
    params = {"n_steps": 5, **({} if y is None else {"classes": LABELS}), **params}
    released = made._resolve_spec("release").get_params() if "release" in known else {}
    for name, value in params.items():
        if released.get(name, 1) != 1:
            made.set_params(**{f"release__{name}": value})
        elif name in known:
            made.set_params(**{name: value})
    return made


def make_plain(estimator):
    """Clone, and take rows as they are, or of declared bounds, where a radius would be found.

    Of a box that is found, rows lie on one side of the ball: no two are as far apart as there can
    be.
    """
    known, made = estimator.get_params(deep=False), clone(estimator)
    if known.get("clip_norm") != "auto" or known["schema"] not in ("auto", None):
        return made
    public, private = split_encoder(known["encoder"])
    if public is None and known["bounds"] is None:
        public = FunctionTransformer()
    encoder = [part for part in (public, private) if part is not None and part != "auto"]
    return made.set_params(clip_norm=1.0, encoder=encoder if encoder else None)


def choices_of(estimator, name, choices):
    if name in estimator.get_params(deep=False):
        return list(choices)
    # Some estimators know one choice only.
    return [getattr(estimator, name, None)]


def sample_with_labels(fitted, y, *args):
    return (fitted.sample(*args), None) if y is None else fitted.sample(*args)


def fitted_state(estimator):
    """Return fitted attributes and the weights of networks."""
    state = {}
    for name, value in sorted(vars(estimator).items()):
        if isinstance(value, torch.nn.Module):
            state.update({f"{name}.{k}": v.numpy() for k, v in value.state_dict().items()})
        elif name.endswith("_") and not name.startswith("_"):
            state[name] = value
    return state


def assert_same(what, first, second, which):
    """Fail unless two nested structures are the same to the bit."""
    assert not differ(first, second), f"{what}: {which} differ."


def differ(first, second):
    if isinstance(first, dict):
        return first.keys() != second.keys() or any(differ(first[k], second[k]) for k in first)
    if isinstance(first, (tuple, list)):
        pairs = zip(first, second, strict=False)
        return len(first) != len(second) or any(differ(a, b) for a, b in pairs)
    if isinstance(first, BaseEstimator):
        return type(first) is not type(second) or differ(vars(first), vars(second))
    if is_dataclass(first):
        return type(first) is not type(second) or differ(vars(first), vars(second))
    if isinstance(first, (pd.DataFrame, pd.Series)):
        return not first.astype(object).equals(second.astype(object))
    if isinstance(first, np.ndarray):
        return not np.array_equal(np.asarray(first), np.asarray(second))
    return first != second


def assert_raises(expected, call):
    """Return the error that `call` raises, which must be of the expected type."""
    try:
        call()
    except expected as error:
        return error
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} instead of {expected.__name__}.") from error
    raise AssertionError(f"No {expected.__name__} is raised.")


def assert_untold(error, secret):
    """Fail if an error, or one that it was raised from or during, quotes a private value."""
    while error is not None:
        assert secret not in str(error), "An error quotes a private value."
        error = error.__cause__ or error.__context__


@contextlib.contextmanager
def kept_global_generators():
    numpy_state, torch_state = np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        torch.set_rng_state(torch_state)
