# SPDX-License-Identifier: BSD-3-Clause
"""Interface checks: shapes, dtypes, seeds, frames, labels and pickles of `fit` and `sample`."""

import math
import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ..exceptions import FitQualityWarning, PrivacyLeakWarning
from .common import (
    LABELS,
    assert_not_quoted,
    assert_raises,
    assert_same,
    differ,
    fitted_state,
    make_data,
    make_quick,
    restored_global_generators,
    sample_with_labels,
)


def check_sample_shapes(estimator):
    """`sample(n)` returns n finite rows; `sample()` as many as were fitted, up to a million."""
    X, y = make_data(estimator)
    for target in (None, y):
        fitted = make_quick(estimator, target).fit(X, target)
        for n in (1, 2, 7, 100, 10_001):
            sampled, labels = sample_with_labels(fitted, target, n)
            assert sampled.shape == (n, X.shape[1]), f"sample({n}) has shape {sampled.shape}."
            assert np.isfinite(sampled).all(), f"sample({n}) is not finite."
            assert labels is None or labels.shape == (n,), f"sample({n}) has {labels.shape} labels."
        sampled, _ = sample_with_labels(fitted, target)
        assert sampled.shape == X.shape, "sample() does not return as many rows as were fitted."
        # As if so many rows had been fitted: only the number is read.
        fitted.n_samples_ = 10**6 + 1
        error = assert_raises(ValueError, fitted.sample)
        assert "n_samples" in str(error), "sample() does not require n_samples above a million."
        assert_raises(ValueError, partial(fitted.sample, 0))


def check_dtypes(estimator):
    """`sample` returns the dtype of X."""
    X, _ = make_data(estimator)
    for dtype in (np.float32, np.float64, np.int64, np.int32, np.uint8, bool):
        sampled = make_quick(estimator).fit((X > 0).astype(dtype)).sample(5)
        assert sampled.dtype == dtype, f"After fit on {np.dtype(dtype)}, rows are {sampled.dtype}."
    sampled = make_quick(estimator).fit(X.tolist()).sample(5)
    assert isinstance(sampled, np.ndarray), "After fit on a list of lists, sample gives no array."
    assert sampled.dtype == np.float64, "After fit on a list of lists, rows are not float64."


def check_seeds(estimator):
    """An int seed repeats fits and samples; None repeats neither, whatever the global seeds."""
    X, y = make_data(estimator)
    first, second = (make_quick(estimator, y, random_state=3).fit(X, y) for _ in range(2))
    same = partial(assert_same, "random_state=3")
    same(first.sample(20), first.sample(20), "sampled twice")
    same(first.sample(20), second.sample(20), "fitted twice")
    same(fitted_state(first), fitted_state(second), "fitted twice")
    same(first.sample(20, random_state=1), second.sample(20, random_state=1), "sampled with a seed")
    assert differ(first.sample(20), first.sample(20, random_state=1)), "sample ignores its seed."
    other = make_quick(estimator, y, random_state=4).fit(X, y)
    assert differ(first.sample(20), other.sample(20)), "fit ignores its seed."
    state = np.random.RandomState(0)
    assert differ(first.sample(20, random_state=state), first.sample(20, random_state=state)), (
        "A RandomState does not advance."
    )
    fits = []
    with restored_global_generators():
        for _ in range(2):
            np.random.seed(0)  # noqa: NPY002
            torch.manual_seed(0)
            fits.append(make_quick(estimator, y, random_state=None).fit(X, y))
    assert differ(fits[0].sample(20), fits[0].sample(20)), "Samples repeat without a seed."
    # Both samples have the same seed, so that a difference must come from the fits.
    drawn = [fitted.sample(20, random_state=0) for fitted in fits]
    assert differ(*drawn), "Fits repeat without a seed: their noise follows a global seed."


def check_frames(estimator):
    """`sample` returns frames and series where they were fitted, with names in the same order."""
    X, y = make_data(estimator)
    frame, series = pd.DataFrame(X, columns=["c", "a", "b"]), pd.Series(y, name="label")
    sampled, labels = make_quick(estimator, y).fit(frame, series).sample(6)
    assert isinstance(sampled, pd.DataFrame), f"After fit on a DataFrame, rows are {type(sampled)}."
    assert list(sampled.columns) == ["c", "a", "b"], f"Columns are {list(sampled.columns)}."
    assert isinstance(labels, pd.Series), f"After fit on a Series, labels are {type(labels)}."
    assert labels.name == "label", f"The Series is called {labels.name!r}."
    assert len(sampled) == len(labels) == 6, "sample(6) does not return 6 rows."
    sampled, labels = make_quick(estimator, y).fit(frame.astype(np.float32), y).sample(6)
    assert set(sampled.dtypes) == {np.dtype(np.float32)}, "A float32 DataFrame changes its dtype."
    assert isinstance(labels, np.ndarray), f"After fit on an array y, labels are {type(labels)}."
    sampled = make_quick(estimator).fit(frame).sample(2)
    assert isinstance(sampled, pd.DataFrame), "Without y, rows are no DataFrame."


def check_not_fitted(estimator):
    """`sample` and `score` raise NotFittedError before a fit."""
    estimator = make_quick(estimator)
    for call in (estimator.sample, partial(estimator.score, np.zeros((2, 3)))):
        assert_raises(NotFittedError, call)


def check_n_samples(estimator):
    """`sample` refuses numbers of rows that are not positive integers."""
    fitted = make_quick(estimator).fit(make_data(estimator)[0])
    for n in (0, -1, 1.5, "3", True):
        assert_raises(ValueError, partial(fitted.sample, n))


def check_score(estimator):
    """`score` returns a finite float, higher for rows like those fitted, and checks its input."""
    X, _ = make_data(estimator)
    fitted = make_quick(estimator, epsilon=math.inf, n_steps=20, random_state=0).fit(X)
    near, far = fitted.score(X), fitted.score(X + 100)
    assert isinstance(near, float), f"score returns {type(near)}."
    assert math.isfinite(near), f"score returns {near}."
    assert near > far, "score prefers distant rows."
    assert near == fitted.score(X), "score returns two values for the same rows."
    for bad in (X[:, :2], np.full_like(X, np.nan)):
        assert_raises(ValueError, partial(fitted.score, bad))


def check_pickle(estimator):
    """A fitted estimator that was pickled has the same state and samples the same rows."""
    X, y = make_data(estimator)
    fitted = make_quick(estimator, y, random_state=0).fit(X, y)
    loaded = pickle.loads(pickle.dumps(fitted))
    assert_same("pickle", fitted.sample(20), loaded.sample(20), "the samples")
    assert_same("pickle", fitted_state(fitted), fitted_state(loaded), "the state")


def check_clone(estimator):
    """A clone has the parameters and no fitted state."""
    X, y = make_data(estimator)
    fitted = make_quick(estimator, y, random_state=0).fit(X, y)
    cloned = clone(fitted)
    assert_raises(NotFittedError, cloned.sample)
    assert_same("clone", fitted.sample(20), cloned.fit(X, y).sample(20), "the samples")


def check_global_generators(estimator):
    """Global random generators are not changed (`check_seeds` checks that they are not read)."""
    X, y = make_data(estimator)
    for random_state in (None, 0):
        numpy_before, torch_before = np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
        fitted = make_quick(estimator, y, random_state=random_state).fit(X, y)
        fitted.sample(10)
        fitted.score(X)
        numpy_after = np.random.get_state()  # noqa: NPY002
        same = all(np.array_equal(a, b) for a, b in zip(numpy_before, numpy_after, strict=True))
        assert same, "NumPy's global generator was changed."
        assert torch.equal(torch_before, torch.get_rng_state()), "torch's generator was changed."


def check_input_unchanged(estimator):
    """`fit` and `score` do not write to their input, which may be read-only."""
    X, y = make_data(estimator)
    X[0] *= 100  # so that a row is clipped
    kept = X.copy(), y.copy()
    make_quick(estimator, y).fit(X, y).score(X)
    assert_same("input", (X, y), kept, "X or y")
    X.flags.writeable = y.flags.writeable = False
    always = torch.is_warn_always_enabled()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for expected in (FitQualityWarning, PrivacyLeakWarning):
            warnings.simplefilter("ignore", expected)
        torch.set_warn_always(True)
        try:
            make_quick(estimator, y).fit(X, y).score(X)
        finally:
            torch.set_warn_always(always)
    assert not caught, f"Read-only rows raise a warning: {caught[0].message}"


def check_labels(estimator):
    """`sample` returns declared labels, and with `y=` just the requested ones."""
    X, y = make_data(estimator)
    for labels in ([0, 1], ["no", "yes"], [False, True], [3, -1]):
        target = np.array(labels)[y]
        fitted = make_quick(estimator, classes=labels, random_state=0).fit(X, target)
        _, drawn = fitted.sample(50)
        assert set(drawn) <= set(labels), f"Labels {set(drawn)} are sampled for {labels}."
        requested = [labels[1], labels[0], labels[1]]
        sampled, drawn = fitted.sample(y=requested)
        assert list(drawn) == requested, f"sample(y={requested}) returns {list(drawn)}."
        assert sampled.shape == (3, X.shape[1]), f"sample(y={requested}) has shape {sampled.shape}."
        for unknown in (["other"], [7], [], [labels[0], None]):
            assert_raises(ValueError, partial(fitted.sample, y=unknown))
    fitted = make_quick(estimator).fit(X)
    assert_raises(ValueError, partial(fitted.sample, y=[0]))


def check_class_probabilities(estimator):
    """`fit` learns how frequent classes are, and `sample` draws them accordingly."""
    X, _ = make_data(estimator, n_samples=200)
    y = np.arange(200) % 10 // 9
    fitted = make_quick(estimator, y, epsilon=math.inf, n_steps=30, random_state=0).fit(X, y)
    shares = np.asarray(fitted.class_probabilities_)
    assert shares.shape == (2,), f"class_probabilities_ has shape {shares.shape}."
    assert math.isclose(shares.sum(), 1, abs_tol=1e-6), f"class_probabilities_ are {shares}."
    drawn = fitted.sample(1000)[1].mean()
    assert shares[1] < 0.3, f"A tenth of the labels is 1; class_probabilities_ are {shares}."
    assert abs(drawn - shares[1]) < 0.1, f"sample draws {drawn:.0%} of labels 1, not {shares[1]}."


def check_unknown_labels(estimator):
    """Only strict estimators refuse undeclared labels, and no error quotes one."""
    X, y = make_data(estimator)
    target = np.where(np.arange(len(y)) == 5, "Smith", np.array(["no", "yes"])[y])
    make = partial(make_quick, estimator, classes=["no", "yes"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FitQualityWarning)
        _, drawn = make().fit(X, target).sample(50)
    assert set(drawn) <= {"no", "yes"}, "An undeclared label is sampled."
    error = assert_raises(ValueError, partial(make(strict=True).fit, X, target))
    assert_not_quoted(error, "Smith")
    assert_raises(ValueError, partial(make().fit, X))


def check_class_warning(estimator):
    """If the classes are inferred from y, a warning and the certificate say so."""
    X, y = make_data(estimator)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        inferred = make_quick(estimator).fit(X, y)
    has_warned = any(issubclass(w.category, PrivacyLeakWarning) for w in caught)
    assert has_warned, "Classes are inferred without a PrivacyLeakWarning."
    assert "inferred" in str(inferred.privacy_), "The certificate hides that classes were inferred."
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        declared = make_quick(estimator, classes=LABELS).fit(X, y)
    assert "inferred" not in str(declared.privacy_), "Declared classes are stated as inferred."


def check_number(estimator):
    """A floating y is treated as a numeric column within `y_bounds`, whatever its values."""
    X, y = make_data(estimator)
    fitted = make_quick(estimator, y_bounds=(-1, 2), epsilon=10.0).fit(X, y.astype(np.float64))
    assert not hasattr(fitted, "classes_"), "A floating y is treated as classes."
    _, drawn = fitted.sample(50)
    assert drawn.dtype == np.float64, f"A floating y is sampled as {drawn.dtype}."
    assert len(set(drawn)) > 2, "A floating y is sampled as classes."
    assert drawn.min() >= -1, "A sampled y is below y_bounds."
    assert drawn.max() <= 2, "A sampled y is above y_bounds."
    assert_raises(ValueError, partial(fitted.sample, y=[0.0]))
    series = pd.Series(y, name="t").astype(float)
    _, drawn = make_quick(estimator, y_bounds=(0, 1)).fit(X, series).sample(3)
    assert isinstance(drawn, pd.Series), f"After fit on a Series y, sample gives {type(drawn)}."
    assert drawn.name == "t", "A numeric Series y loses its name."
