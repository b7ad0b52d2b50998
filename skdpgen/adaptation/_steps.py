# SPDX-License-Identifier: BSD-3-Clause
"""Pipelines with a domain adapter, of which only the adapter learns from the target.

Steps before it are fitted to the source, which is public, and map each target row on its own. Steps
after it are fitted to the mapped source.
"""

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from ..arrays.numbers import match_names
from ..data.containers import as_array
from ..data.record_functions import RecordFunction
from ._domain_adapter import DPSWDDomainAdapter

# Target rows that are mapped at once; of a block with a row that fails, each is mapped anew.
_BLOCK = 256


def split_pipeline(model):
    """Return the pipeline of the steps before the adapter, or None, and the model from it on."""
    steps = model.steps if isinstance(model, Pipeline) else [("", model)]
    found = [i for i, (_, step) in enumerate(steps) if isinstance(step, DPSWDDomainAdapter)]
    if len(found) != 1:
        raise TypeError(
            "estimator must be a domain adapter or classifier, or a Pipeline with one as a "
            f"step; got {type(model).__name__} with {len(found)}."
        )
    before, after = steps[: found[0]], steps[found[0] :]
    return Pipeline(before) if before else None, Pipeline(after) if after[0][0] else model


def find_adapter(model):
    """Return the adapter of a model, which may be a pipeline."""
    last = split_pipeline(model)[1]
    return last.steps[0][1] if isinstance(last, Pipeline) else last


def fit_steps(model, X, y, fit):
    """Fit the adapter by a function of it, and the steps after it to mapped rows of the source."""
    fit(adapter := find_adapter(model))
    if adapter is not model and len(model) > 1:
        model[1:].fit(adapter.transform(X), y)


def map_target(before, X, X_target):
    """Return target rows, mapped by steps that were fitted to the source.

    A row for which they fail becomes NaN, and so counts as absent: an error would be a statement
    about it. Raises ValueError if the target has other columns than the source, or the steps map a
    row of the source by other rows.
    """
    mapped, half = before.transform(X), before.transform(_safe_indexing(X, slice(n := len(X) // 2)))
    if not np.allclose(*(np.asarray(part, float)[:n] for part in (half, mapped)), 1e-4, 1e-8, True):
        raise ValueError(
            f"The steps {list(before.named_steps)} map a row by other rows, or at random, which ε "
            "would not cover for the target. Use steps that, once fitted, map each row on its own."
        )
    public, private = (
        match_names(before, as_array(rows)) for rows in (_safe_indexing(X, slice(1)), X_target)
    )
    join, blocks = pd.concat, []
    if not hasattr(public, "columns"):
        join, private = np.vstack, np.asarray(private)
    elif list(getattr(private, "columns", ())) != list(public.columns):
        raise ValueError("X_target must have the columns of X, in the same order.")
    for start in range(0, len(private), _BLOCK):
        # A public row comes first, by which those that fail are replaced.
        rows = join([public, private[start : start + _BLOCK]])

        def at(positions, rows=rows):
            return np.asarray(before.transform(_safe_indexing(rows, positions[:, 0].astype(int))))

        blocks.append(RecordFunction(at).on(np.arange(1, len(rows))[:, None]).numpy())
    rows = np.concatenate(blocks)
    return pd.DataFrame(rows, columns=mapped.columns) if hasattr(mapped, "columns") else rows
