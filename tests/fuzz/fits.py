"""Cases of arrays: an estimator, its parameters, rows, labels and persons; what is asked then."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from hypothesis import strategies as st

from .estimators import MAKERS, NESTED, ODD, Estimator, estimators, evaluate, expressions
from .oracle import Call, check_fitted, check_stored, fault_if
from .rows import NOBODY, PLAIN, Labels, Rows, labels, rows

# Subjects of refusals beside parameters: arguments, and what they are.
WORDS = {
    *("X", "y", "persons", "target", "where", "n_samples", "classes", "labels", "init", "Labels"),
    *("X_target", "source", "schema", "Schema", "PrivacyBudget", "release", "n_features"),
    *("2D", "array", "features", "samples", "sparse", "Sparse", "DataFrame", "columns", "budget"),
}


@dataclass(frozen=True)
class Fit:
    """A fit to rows, and a sample."""

    estimator: Estimator
    rows: Rows
    labels: Labels
    persons: Labels = NOBODY
    has_budget: bool = False
    asked: tuple = ()

    def call(self, is_benign=False):
        """Return the `Call` of a fit."""
        estimator, X = self.estimator.make(), self.rows.make(is_benign)
        n = self.rows.shape[0]
        y = self.labels.make(n)
        kwargs = {}
        if self.persons.kind != "none":
            kwargs["persons"] = self.persons.make(n)
        if self.estimator.maker == "adapter":
            source = np.random.RandomState(0).uniform(size=(12, 3))
            kwargs |= {"X_target": X}
            args = (source, np.arange(12) % 2)
        else:
            args = (X, y)
        given = (*args, *kwargs.values(), estimator)

        return Call(
            lambda: estimator.fit(*args, **kwargs),
            given,
            frozenset(
                WORDS | NESTED | set(estimator.get_params()) | set(map(str, self.rows.names))
            ),
            check=self.check,
            state=lambda: sorted(vars(estimator)),
            has_budget=self.has_budget,
            may_refuse_cells=self._may_refuse_cells(estimator),
            benign=None if is_benign else self.call(is_benign=True),
        )

    def _may_refuse_cells(self, estimator):
        """Whether rows may be refused for what is in them, as is documented."""
        has_inferred = self.labels.kind != "none" and getattr(estimator, "classes", 1) is None
        is_strict = isinstance(estimator.strict, bool | np.bool_) and estimator.strict
        return is_strict or has_inferred or not self.rows.says_numbers

    def check(self, fitted):
        """Raise a `Fault` unless a fit is sound."""
        # Labels are public if they were inferred, and all is without noise.
        is_inferred = self.labels.kind != "none" and getattr(fitted, "classes", 0) is None
        is_noisy = fitted.epsilon < 50 and not is_inferred
        check_fitted(fitted, epsilon=fitted.epsilon, is_noisy=is_noisy)
        if hasattr(fitted, "sample"):
            self.check_sample(fitted, fitted.sample(7))
        n_features = 3 if self.estimator.maker == "adapter" else self.rows.shape[1]
        check_stored(fitted, is_noisy, lambda fitted: _use(fitted, n_features))

    def check_sample(self, fitted, made):
        has_labels = self.labels.kind != "none"
        fault_if(isinstance(made, tuple) != has_labels, "Labels are lacking, or too many.")
        X, y = made if has_labels else (made, None)
        is_frame = self.rows.container in ("frame", "sparse frame")
        fault_if(isinstance(X, pd.DataFrame) != is_frame, f"A sample is a {type(X).__name__}.")
        cells = np.asarray(X.float() if isinstance(X, torch.Tensor) else X)
        fault_if(cells.shape != (7, self.rows.shape[1]), f"A sample is of shape {cells.shape}.")
        if not hasattr(fitted, "schema_"):
            fault_if(cells.dtype.kind not in "fiub", f"A sample is of dtype {cells.dtype}.")
            cells = cells.astype(float)
            fault_if(not np.isfinite(cells).all(), "A sample is not finite.")
        bounds = getattr(fitted, "bounds_", None)
        if bounds is not None and not hasattr(fitted, "schema_"):
            lower, upper = bounds
            slack = 1e-5 * (upper - lower) + 1e-6 * np.abs(upper + lower)
            inside = (lower - slack <= cells) & (cells <= upper + slack)
            fault_if(not inside.all(), "A sample is out of its bounds.")
        if has_labels and hasattr(fitted, "classes_"):
            fault_if(not set(y) <= set(fitted.classes_.tolist()), "A sample has other labels.")
        elif has_labels:
            fault_if(not np.isfinite(np.asarray(y, dtype=float)).all(), "Numbers not finite.")


def _use(fitted, n_features):
    """Return what a fitted estimator makes of public numbers."""
    if hasattr(fitted, "sample"):
        return fitted.sample(5, random_state=0)
    if hasattr(fitted, "components_"):
        return fitted.transform(np.eye(max(1, n_features))[:, :n_features])
    if hasattr(fitted, "format_"):
        return fitted.inverse_transform(np.zeros((2, fitted.format_.n_columns)))
    return fitted.transform(np.eye(n_features))


@st.composite
def fits(draw):
    estimator = draw(estimators(kept=("schema",)))
    persons = NOBODY
    if draw(st.integers(0, 7)) == 0:
        kinds = ("persons", "persons", "ints", "mixed persons")
        persons = draw(labels(usual=kinds, none=0))
    usual = rows(("array", "frame"), ("f8", "f4", "i8", "O"), (6, 12))
    return Fit(
        estimator,
        draw(usual if draw(st.booleans()) else rows()),
        draw(labels()),
        persons,
        draw(st.integers(0, 4)) == 0,
    )


# Calls of fitted estimators.

_ASKED = ODD + expressions("""
    7 | np.uint8(3) | 10**15 | [0, 1] | [5] | ["A", "B"] | [[0]] | pd.Series([0, 1, 0])
    | pd.Categorical(["A"]) | {"a": 1} | {"a": (0, 1)} | np.random.RandomState(0)
""")


@dataclass(frozen=True)
class Asking:
    """Call of a fitted estimator: samples, scores, maps of rows."""

    maker: str
    labels: Labels
    method: str
    asked: tuple = ()
    rows: Rows = PLAIN

    def call(self, is_benign=False):
        fitted, X = fit_once(self.maker, self.labels), self.rows.make(is_benign)
        if self.method == "sample":
            args, kwargs = (), {name: evaluate(value) for name, value in self.asked}
        else:
            args, kwargs = (X,), {}
        if self.method == "privatize":
            args = (X, self.labels.make(self.rows.shape[0]))
        return Call(
            lambda: getattr(fitted, self.method)(*args, **kwargs),
            (*args, *kwargs.values(), fitted),
            frozenset(WORDS | {"random_state", "array", "Projections", "privatizer", "number"}),
            check=self.check,
            state=lambda: sorted(vars(fitted)),
            may_refuse_cells=self.method != "privatize" or not self.rows.says_numbers,
            benign=None if is_benign else self.call(is_benign=True),
        )

    def check(self, result):
        if self.method == "score":
            fault_if(not (isinstance(result, float) and math.isfinite(result)), f"{result!r}")
            return
        X = result[0] if isinstance(result, tuple) else result
        cells = np.asarray(X)
        may_miss = self.method == "transform" and self.maker == "pca"
        finite = np.isfinite(cells).all() or may_miss
        fault_if(cells.ndim != 2 or cells.dtype.kind != "f" or not finite, f"Made {cells[:3]}.")


_FITTED = {}


def fit_once(maker, labels):
    """Return an estimator that was fitted to good rows, the same for all cases."""
    key = maker, labels.kind
    if key not in _FITTED:
        X, y = np.random.RandomState(0).uniform(size=(12, 3)), labels.make(12)
        estimator = MAKERS[maker]().set_params(random_state=0)
        if "bounds" in estimator.get_params():
            estimator.set_params(bounds=(0, 1))
        if "y_bounds" in estimator.get_params() and labels.kind == "numbers":
            estimator.set_params(y_bounds=(0, 1))
        if y is not None and "classes" in estimator.get_params() and labels.kind != "numbers":
            estimator.set_params(classes=np.unique(np.asarray(y)))
        kwargs = {"X_target": X} if maker == "adapter" else {}
        _FITTED[key] = estimator.fit(X, y, **kwargs)
    return _FITTED[key]


_METHODS = {
    "pca": ("transform", "inverse_transform"),
    "privatizer": ("transform", "privatize", "inverse_transform"),
    "adapter": ("transform",),
}


@st.composite
def askings(draw):
    maker = draw(st.sampled_from(tuple(MAKERS)))
    # Samples most of all.
    method = draw(st.sampled_from(_METHODS.get(maker, ("sample", "sample", "sample", "score"))))
    kinds = {"pca": ("none",), "adapter": ("ints", "texts")}
    known = Labels(draw(st.sampled_from(kinds.get(maker, ("none", "ints", "texts", "numbers")))))
    if maker == "privatizer" and known.kind == "numbers":
        known = NOBODY
    if method != "sample":
        return Asking(maker, known, method, rows=draw(rows()))
    names = draw(
        st.lists(
            st.sampled_from(("n_samples", "n_samples", "y", "y", "where", "random_state")),
            unique=True,
            min_size=1,
            max_size=2,
        )
    )
    return Asking(maker, known, method, tuple((n, draw(st.sampled_from(_ASKED))) for n in names))
