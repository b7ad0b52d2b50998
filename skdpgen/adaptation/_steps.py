# SPDX-License-Identifier: BSD-3-Clause
"""Pipelines around a domain adapter: which step learns from which rows.

Steps before the adapter are fitted to the source, which is public, and map the target row by row.
Steps after it are fitted to the mapped source. Only the adapter learns from the target.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from .._process.muting import muted
from ..arrays.numbers import match_names
from ..data.containers import as_array
from ..data.record_functions import RecordFunction
from ._domain_adapter import DPSWDDomainAdapter

# Target rows that are mapped at once; of a block with a row that fails, each is mapped anew.
_BLOCK = 256


@dataclass(frozen=True)
class Steps:
    """An adapter, and the steps of a pipeline around it.

    Attributes
    ----------
    name : str
        Name of the adapter's step; empty without a pipeline.
    before, after : Pipeline or None
        The steps before the adapter, and those after it.
    adapter : DPSWDDomainAdapter
    """

    name: str
    before: Pipeline | None
    adapter: DPSWDDomainAdapter
    after: Pipeline | None

    @classmethod
    def of(cls, model: BaseEstimator) -> "Steps":
        """Return the steps of an adapter, or of a pipeline with one; they are not copied."""
        steps = model.steps if isinstance(model, Pipeline) else [("", model)]
        found = [i for i, (_, step) in enumerate(steps) if isinstance(step, DPSWDDomainAdapter)]
        if len(found) != 1:
            raise TypeError(
                "estimator must be a domain adapter or classifier, or a Pipeline with one as a "
                f"step; got {type(model).__name__} with {len(found)}."
            )
        i = found[0]
        before, after = (Pipeline(part) if part else None for part in (steps[:i], steps[i + 1 :]))
        return cls(steps[i][0], before, steps[i][1], after)

    def own(self, name: str) -> str:
        """Return the name that a parameter of the model has in the adapter; "" if it has none."""
        step, _, own = name.partition("__") if self.name else ("", "", name)
        return own if step == self.name else ""

    def is_free(self, name: str) -> bool:
        """Whether a parameter of the model acts on synthetic rows, so that varying it is free."""
        after = () if self.after is None else self.after.named_steps
        own = self.own(name).split("__")[0]
        return own in self.adapter.free_parameters or name.split("__")[0] in after

    def fit_before(self, X, y):
        """Fit the steps before the adapter to the source; return its mapped rows."""
        return X if self.before is None else self.before.fit_transform(X, y)

    def fit_after(self, rows, y) -> None:
        """Fit the steps after the adapter to rows of the source that those before have mapped."""
        if self.after is not None:
            self.after.fit(self.adapter.transform(rows), y)

    def fit(self, X, y, X_target) -> None:
        """Fit all steps."""
        rows = self.fit_before(X, y)
        self.adapter.fit(rows, y, X_target=self.map_target(X_target, X))
        self.fit_after(rows, y)

    def transform(self, X):
        """Map public rows by the steps before the adapter."""
        return X if self.before is None else self.before.transform(X)

    def predict(self, X, method: str = "predict"):
        """Apply a method of the model to public rows that the steps before have mapped."""
        rows = X if self.after is None else self.adapter.transform(X)
        return getattr(self.adapter if self.after is None else self.after, method)(rows)

    def map_target(self, X_target, X):
        """Map private rows by the steps before the adapter, each on its own.

        A row for which they fail becomes NaN, so that it counts as absent: an error would be a
        statement about it.

        Parameters
        ----------
        X_target : array-like of shape (n_target, n_features)
        X : array-like of shape (n_samples, n_features)
            Public rows, which stand in for rows that fail.
        """
        if self.before is None:
            return X_target
        public, X_target = (
            match_names(
                self.before, np.array(rows, dtype=object) if isinstance(rows, list) else rows
            )
            for rows in (as_array(_safe_indexing(X, [0])), as_array(X_target))
        )
        if X_target.shape[1:] != public.shape[1:] or (
            hasattr(public, "columns") and list(public.columns) != list(X_target.columns)
        ):
            raise ValueError("X_target must have the columns of X, in the same order.")
        mapped = self.before.transform(public)
        join = pd.concat if hasattr(public, "columns") else np.concatenate
        blocks = []
        for start in range(0, len(X_target), _BLOCK):
            # Position 0 is the public row.
            rows = join([public, _safe_indexing(X_target, slice(start, start + _BLOCK))])
            function = RecordFunction(partial(_map_at, self.before, rows))
            positions = np.arange(1, len(rows))[:, None]
            blocks.append(function.on(positions, width=mapped.shape[1]).numpy())
        rows = np.concatenate(blocks)
        return (
            rows if not hasattr(mapped, "columns") else pd.DataFrame(rows, columns=mapped.columns)
        )

    def check(self, X, y) -> None:
        """Raise what is wrong of the parameters and the source, at no cost; fits the steps."""
        rows = self.fit_before(X, y)
        self.adapter.check_fit(rows, y)
        if self.before is not None:
            self._check_rows(X)
        if self.after is not None:
            # One step on the source alone: rows of the right width for the steps after it.
            with muted():
                self.adapter.set_params(n_steps=1, verbose=0).fit(rows, y)
            self.fit_after(rows, y)

    def _check_rows(self, X):
        """Raise ValueError if the steps before the adapter map a row by others, or at random."""
        half = max(1, _num_samples(X) // 2)
        rows, alone = (
            np.asarray(self.transform(part), dtype=float)
            for part in (X, _safe_indexing(X, slice(half)))
        )
        if not np.allclose(alone, rows[:half], rtol=1e-4, equal_nan=True):
            raise ValueError(
                f"The steps {list(self.before.named_steps)} map a row by other rows, or at random, "
                "which ε would not cover for the target. Use steps that, once they are fitted, map "
                "each row on its own."
            )


def _map_at(before, rows, positions):
    return np.asarray(before.transform(_safe_indexing(rows, positions[:, 0].astype(int))))
